//! Arguments of the `tree` commands.

mod generation;
mod writing;

pub use generation::{Generate, InvalidNumber, Regenerate, Sampling};
pub(super) use generation::{number, whole};
pub use writing::{Append, Branch, DraftArgs, Edit, EditAsArg, Split};

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

use super::{NodeArg, TreeArg, ViewArg, WholeTreeArg};

/// Work with trees: documents and conversations.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum TreeCommand {
    /// Make a new tree.
    New(New),
    /// List trees, the newest change first.
    List(List),
    /// Show the nodes of the active path, first to last, or with --all every node.
    Show(ShowArgs),
    /// Print the text of a view, drafts included.
    Text(TextArgs),
    /// Commit a text at the end of the path.
    Append(Append),
    /// Set or print the draft after the last node, or a pending edit of a node.
    Draft(DraftArgs),
    /// Change the text of a document in your editor or by a file, or that of one node.
    Edit(Edit),
    /// Merge a passage into the one above it.
    Merge(NodeArg),
    /// Split a passage in two, at the end of the path or above an empty passage.
    Split(Split),
    /// Branch inside a passage: keep the text before a place and continue from there.
    Branch(Branch),
    /// Ask a model to continue.
    Generate(Generate),
    /// Ask a model for more siblings of a node.
    Regenerate(Regenerate),
    /// List the siblings of a passage.
    Siblings(PassageArg),
    /// List the versions of a passage.
    Versions(PassageArg),
    /// List the passages with a bookmark.
    Bookmarks(PassageArg),
    /// List the tokens of a passage, with what the model could have said instead.
    Tokens(PassageArg),
    /// Switch to a sibling branch, where you last left it.
    Switch(SwitchArgs),
    /// Go to a passage of any branch, to continue from there.
    Go(NodeArg),
    /// Choose which version of a passage is shown.
    Select(NodeArg),
    /// Mark a passage as reviewed after text above it changed.
    Keep(KeepArgs),
    /// Hide a passage, or with --version one version of it.
    Prune(Flag),
    /// Show a pruned passage or version again.
    Restore(Flag),
    /// Leave a passage out of rendering and context.
    Exclude(Flag),
    /// Include an excluded passage again.
    Include(Flag),
    /// Set a bookmark on a passage.
    Bookmark(Bookmark),
    /// Tag a passage, or list the tags.
    Tag(Mark),
    /// Add a remark to a passage, or list the remarks. One is sent to a model only where a request names it.
    Annotate(Annotate),
    /// Set or print the tree's head: a text that is sent first.
    Head(HeadArgs),
    /// Set or print the tree's note: a text that is sent some paragraphs before the end.
    Note(NoteArgs),
    /// Move the start of the context window forward.
    Compact(Compact),
    /// Undo the last operation of a view, or give back the files that its last turn changed.
    Undo(StepArgs),
    /// Redo the last operation that was undone, or the last giving-back of files.
    Redo(StepArgs),
    /// List the operations of a tree, newest first.
    Log(LogArgs),
    /// List, make and delete views of a tree.
    View(View),
    /// Compare the paths to two nodes.
    Compare(Compare),
    /// Check a tree, or an exported file, against its hashes.
    Verify(Verify),
    /// Sign the head of a tree with this home's key.
    Seal(WholeTreeArg),
    /// Trust the authors of an imported tree, or the text of nodes that are from outside.
    Trust(TrustArgs),
    /// Give a tree another title.
    Rename(RenameArgs),
    /// Archive a tree. Nothing is removed.
    Delete(WholeTreeArg),
    /// Restore a tree from the archive.
    Undelete(WholeTreeArg),
    /// Remove a whole tree for good. It asks twice and cannot be undone.
    Purge(Purge),
    /// Write a tree to a file or to standard output.
    Export(Export),
    /// Import trees from an exported file.
    Import(super::maintenance::ImportArgs),
    /// Search the text of nodes.
    Search(super::maintenance::Search),
}

/// How a tree is shown and edited by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModeArg {
    /// A document: continuous text.
    #[value(alias = "buffer")]
    #[serde(alias = "buffer")]
    Document,
    /// A conversation: turns with roles.
    Dialogue,
}

/// `tree new`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct New {
    /// A document: continuous text; or a dialogue: a conversation in turns.
    #[arg(long, value_enum, default_value = "document")]
    pub mode: ModeArg,
    /// Title of the tree.
    #[arg(long)]
    #[serde(default)]
    pub title: Option<String>,
    /// Text to begin with.
    #[arg(long, conflicts_with = "file")]
    #[serde(default)]
    pub text: Option<String>,
    /// File with the text to begin with. `-` reads standard input, as no file and no text do where something is piped.
    #[arg(long)]
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// How the file becomes passages of a document [default: a passage a paragraph].
    #[arg(long, value_enum, conflicts_with = "text")]
    #[serde(default)]
    pub split: Option<SplitArg>,
}

/// How a text becomes passages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitArg {
    /// A passage a chapter: at headings of Markdown, or at lines such as `Chapter 1`.
    Chapter,
    /// A passage a paragraph.
    Paragraph,
    /// A passage a line.
    Line,
    /// One passage.
    None,
}

/// `tree rename`.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
pub struct RenameArgs {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: WholeTreeArg,
    /// The new title.
    #[arg(value_name = "TITLE")]
    pub title: String,
}

/// `tree list`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct List {
    /// List the archived trees instead.
    #[arg(long)]
    #[serde(default)]
    pub archived: bool,
}

/// A passage of a tree; each command says which one is meant without a node.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
pub struct PassageArg {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The node: its id or short id. Without one: for siblings the last passage of the path that has any, for versions
    /// and tokens the end of the path, else all.
    #[arg(value_name = "NODE")]
    #[serde(default)]
    pub node: Option<String>,
}

/// `tree switch`.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
pub struct SwitchArgs {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The node: its id or short id; or the number of a sibling in `tree siblings TREE`. With --next or --prev: beside
    /// this node, not the last passage of the path that has siblings.
    #[arg(value_name = "NODE|N", required_unless_present_any = ["next", "prev"])]
    #[serde(default)]
    pub node: Option<String>,
    /// To the next sibling.
    #[arg(long, conflicts_with = "prev")]
    #[serde(default)]
    pub next: bool,
    /// To the previous sibling.
    #[arg(long)]
    #[serde(default)]
    pub prev: bool,
}

/// `tree show`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct ShowArgs {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// Show the whole tree with its branches folded, not only the active path. With --json: every node in the order
    /// it was made.
    #[arg(long)]
    #[serde(default)]
    pub all: bool,
    /// Show only nodes down to this depth. The beginning of the tree has depth 0. With --around: so many levels above
    /// and below the node [default: 3].
    #[arg(long)]
    #[serde(default)]
    pub depth: Option<u32>,
    /// Show what stands around this node: the passages above it, beside it and below it, with their branches.
    #[arg(long, value_name = "NODE", conflicts_with = "from")]
    #[serde(default)]
    pub around: Option<String>,
    /// Print this node alone, with the whole of its text and its calls; of the result of a tool all that came.
    #[arg(long, value_name = "NODE", conflicts_with_all = ["all", "depth", "around", "from", "limit"])]
    #[serde(default)]
    pub node: Option<String>,
    /// End the page at this node, or with --all start after it: `next` of the page before.
    #[arg(long)]
    #[serde(default)]
    pub from: Option<String>,
    /// Rows of a page.
    #[arg(long, default_value_t = PAGE)]
    #[serde(default = "page")]
    pub limit: usize,
}

/// Rows of a page of `tree show`.
pub(crate) const PAGE: usize = 200;

const fn page() -> usize {
    PAGE
}

/// `tree text`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct TextArgs {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// Show who wrote which part: in colours, else by a sign before each line; and as the spans of --json.
    #[arg(long)]
    #[serde(default)]
    pub authors: bool,
    /// List who wrote which part.
    #[arg(long)]
    #[serde(default)]
    pub spans: bool,
    /// Leave out pending edits and the draft.
    #[arg(long)]
    #[serde(default)]
    pub committed: bool,
}

/// What is trusted of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
pub struct TrustArgs {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// Nodes whose text you answer for; without any, all that an import brought in.
    #[arg(value_name = "NODE")]
    #[serde(default)]
    pub nodes: Vec<String>,
    /// Have the nodes count as from outside again.
    #[arg(long, requires = "nodes")]
    #[serde(default)]
    pub off: bool,
    /// Do not ask.
    #[arg(long)]
    #[serde(default)]
    pub yes: bool,
}

/// `tree keep`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct KeepArgs {
    /// The node.
    #[command(flatten)]
    #[serde(flatten)]
    pub node: NodeArg,
    /// Mark this passage and all below it.
    #[arg(long)]
    #[serde(default)]
    pub below: bool,
}

/// `tree prune`, `restore`, `exclude`, `include`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Flag {
    /// The node.
    #[command(flatten)]
    #[serde(flatten)]
    pub node: NodeArg,
    /// Only this version, not the whole passage.
    #[arg(long)]
    #[serde(default)]
    pub version: bool,
}

/// `tree bookmark`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Bookmark {
    /// The node.
    #[command(flatten)]
    #[serde(flatten)]
    pub node: NodeArg,
    /// Title of the bookmark [default: none].
    #[serde(default)]
    pub text: Option<String>,
    /// Remove the bookmark.
    #[arg(long, conflicts_with = "text")]
    #[serde(default)]
    pub remove: bool,
}

/// `tree tag`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Mark {
    /// The passage.
    #[command(flatten)]
    #[serde(flatten)]
    pub passage: PassageArg,
    /// The tag. Without one, the tags at this passage and below it are listed.
    #[arg(value_name = "TAG")]
    #[serde(default)]
    pub text: Option<String>,
    /// Remove the tag.
    #[arg(long, requires = "text")]
    #[serde(default)]
    pub remove: bool,
}

/// `tree annotate`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Annotate {
    /// The passage.
    #[command(flatten)]
    #[serde(flatten)]
    pub passage: PassageArg,
    /// The remark. `-` reads standard input. Without one, the remarks at this passage and below it are listed.
    #[arg(value_name = "TEXT")]
    #[serde(default)]
    pub text: Option<String>,
}

/// `tree head`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct HeadArgs {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The text. An empty text removes the head. Without it, the head is printed.
    #[arg(long)]
    #[serde(default)]
    pub text: Option<String>,
}

/// `tree note`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct NoteArgs {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The text. An empty text removes the note. Without it, the note is printed.
    #[arg(long)]
    #[serde(default)]
    pub text: Option<String>,
    /// How many paragraphs before the end the note is sent [default: 3].
    #[arg(long, requires = "text")]
    #[serde(default)]
    pub depth: Option<u64>,
}

/// `tree compact`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Compact {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The node the window starts at [default: half of what is sent now leaves].
    #[arg(long, value_name = "NODE")]
    #[serde(default)]
    pub to: Option<String>,
    /// Only show what would leave.
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
}

/// `tree undo`, `redo`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct StepArgs {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The files that tools changed, and nothing in the tree: those of the last turn that changed some.
    #[arg(long, conflicts_with = "view")]
    #[serde(default)]
    pub files: bool,
}

/// `tree log`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct LogArgs {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// Operations of a page.
    #[arg(long, default_value_t = 100)]
    #[serde(default = "operations")]
    pub limit: usize,
    /// Show only operations before this number: `next` of the page before.
    #[arg(long, value_name = "SEQ")]
    #[serde(default)]
    pub before: Option<u64>,
}

const fn operations() -> usize {
    100
}

/// `tree view`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct View {
    /// What to do.
    #[command(subcommand)]
    pub action: ViewAction,
}

/// What to do with views.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewAction {
    /// List the views of a tree.
    List {
        /// The tree.
        tree: String,
    },
    /// Make a view that shows what another view shows.
    New {
        /// The tree.
        tree: String,
        /// The new view's name.
        name: String,
        /// The view to copy.
        #[command(flatten)]
        #[serde(flatten)]
        view: ViewArg,
    },
    /// Delete a view. What it showed stays in the tree.
    Delete {
        /// The tree.
        tree: String,
        /// The view.
        name: String,
    },
}

/// `tree compare`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Compare {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The first node.
    pub a: String,
    /// The second node.
    pub b: String,
}

/// `tree verify`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[command(group(ArgGroup::new("what").required(true).args(["tree", "file"])))]
pub struct Verify {
    /// The tree: its id, short id or exact title.
    #[serde(default)]
    pub tree: Option<String>,
    /// Check an exported file instead.
    #[arg(long)]
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// Show only findings about this node.
    #[arg(long, value_name = "NODE")]
    #[serde(default)]
    pub node: Option<String>,
}

/// `tree purge`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Purge {
    /// The tree.
    pub tree: String,
    /// Only list what would be removed.
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
    /// Do not ask. Both questions need one: `--yes --yes`.
    #[arg(long, action = clap::ArgAction::Count)]
    #[serde(default)]
    pub yes: u8,
}

/// What an export is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormatArg {
    /// Drawloom's own format (JSON Lines): everything.
    Jsonl,
    /// The text of the path.
    Text,
    /// The path as Markdown.
    Markdown,
    /// One web page with authors marked.
    Html,
    /// Markdown Annotations: the text with ranges by author.
    Annotations,
    /// Chat fine-tuning JSON Lines.
    Training,
}

impl FormatArg {
    /// The format that the ending of a file's name stands for, in small or capital letters.
    pub fn of_ending(file: &Path) -> Option<Self> {
        match file.extension()?.to_ascii_lowercase().to_str()? {
            "jsonl" => Some(Self::Jsonl),
            "txt" => Some(Self::Text),
            "md" | "markdown" => Some(Self::Markdown),
            "html" | "htm" => Some(Self::Html),
            _ => None,
        }
    }
}

/// `tree export`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Export {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The format [default: that of the file's ending (.jsonl, .txt, .md, .html), else jsonl].
    #[arg(long, value_enum)]
    #[serde(default)]
    pub format: Option<FormatArg>,
    /// For other people: only content, authors and structure.
    #[arg(long, conflicts_with = "with_context")]
    #[serde(default)]
    pub share: bool,
    /// Include the bodies of requests: text and files that were sent to models.
    #[arg(long)]
    #[serde(default)]
    pub with_context: bool,
    /// The file to write [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    #[serde(default)]
    pub output: Option<PathBuf>,
}

/// The view an argument names.
impl ViewArg {
    /// Name of the view, `main` if none was given.
    ///
    /// # Errors
    /// When it is no name of a view.
    pub fn name(&self) -> Result<loom::ViewName, crate::CommandError> {
        match &self.view {
            None => Ok(loom::ViewName::default()),
            Some(name) => name.parse().map_err(|error: loom::id::BadViewName| {
                crate::CommandError::usage(
                    error.to_string(),
                    "`drawloom tree view list TREE` shows the views of a tree",
                )
            }),
        }
    }
}
