//! Arguments of the `tree` commands.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

use super::think::Think;
use super::{NodeArg, TreeArg, ViewArg};

/// Work with trees: documents and conversations.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum TreeCommand {
    /// Make a new tree, perhaps with a first text.
    New(New),
    /// List trees, the one changed last first.
    List(List),
    /// Show the nodes of the active path, from the tip upwards; with --all every node.
    Show(ShowArgs),
    /// Print the text a view shows, drafts included.
    Text(TextArgs),
    /// Commit a text after the tip.
    Append(Append),
    /// Set the working buffer, or a pending edit of a node.
    Draft(DraftArgs),
    /// Change the text of a node; what hangs below it stays.
    Edit(Edit),
    /// Branch inside a passage: keep the text before a place and go on from there.
    Branch(Branch),
    /// Ask a model to continue.
    Generate(Generate),
    /// Ask again at the place a node was made: more siblings of it.
    Regenerate(Regenerate),
    /// Go to a sibling, and on to where you were below it.
    Switch(NodeArg),
    /// Show this version of its passage.
    Select(NodeArg),
    /// Accept what stands above as the basis of a passage, so that it no longer counts as drifted.
    Keep(KeepArgs),
    /// Hide a passage, or with --version one version of it.
    Prune(Flag),
    /// Show a pruned passage or version again.
    Restore(Flag),
    /// Leave a passage out of rendering and context.
    Exclude(Flag),
    /// Take an excluded passage in again.
    Include(Flag),
    /// Set a bookmark on a passage.
    Bookmark(Mark),
    /// Tag a passage.
    Tag(Mark),
    /// Hang a remark on a passage. It is never sent.
    Annotate(Mark),
    /// Write the tree's head, which is sent first.
    Head(Pin),
    /// Write the tree's note, which is sent some paragraphs before the end.
    Note(Pin),
    /// Move the start of the window forward.
    Compact(Compact),
    /// Take the newest thing back.
    Undo(StepArgs),
    /// Do it again.
    Redo(StepArgs),
    /// List the operations of a tree, newest first.
    Log(LogArgs),
    /// Work with the views of a tree.
    View(View),
    /// Compare the paths to two nodes.
    Compare(Compare),
    /// Check that what is stored is complete and agrees with itself.
    Verify(Verify),
    /// Sign the head of a tree with this home's key.
    Seal(TreeArg),
    /// Trust the authors of an imported tree.
    Trust(TreeArg),
    /// Archive a tree. Nothing is removed.
    Delete(TreeArg),
    /// Take a tree out of the archive.
    Undelete(TreeArg),
    /// Remove a whole tree for good. Asked twice; cannot be undone.
    Purge(Purge),
    /// Write a tree to a file. Says what it contains first.
    Export(Export),
    /// Take in a file of trees.
    Import(super::maintenance::ImportArgs),
    /// Search the text of nodes.
    Search(super::maintenance::Search),
}

/// How a tree is shown and edited by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModeArg {
    /// A document: continuous text.
    Buffer,
    /// The same.
    Document,
    /// A conversation: turns with roles.
    Dialogue,
}

/// `tree new`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct New {
    /// A document (buffer) or a conversation (dialogue).
    #[arg(long, value_enum, default_value = "buffer")]
    pub mode: ModeArg,
    /// Its title.
    #[arg(long)]
    #[serde(default)]
    pub title: Option<String>,
    /// Its first text.
    #[arg(long, conflicts_with = "file")]
    #[serde(default)]
    pub text: Option<String>,
    /// A file with its first text; `-` reads standard input.
    #[arg(long)]
    #[serde(default)]
    pub file: Option<PathBuf>,
}

/// `tree list`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct List {
    /// Archived trees instead.
    #[arg(long)]
    #[serde(default)]
    pub archived: bool,
}

/// `tree show`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct ShowArgs {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// Every node in the order it was made, not only the active path.
    #[arg(long)]
    #[serde(default)]
    pub all: bool,
    /// Only nodes at most this deep; the genesis has depth 0.
    #[arg(long)]
    #[serde(default)]
    pub depth: Option<u32>,
    /// Where to begin: on the path upwards from this node; with --all behind it. `next` of the page before.
    #[arg(long)]
    #[serde(default)]
    pub from: Option<String>,
    /// Rows a page.
    #[arg(long, default_value_t = 200)]
    #[serde(default = "page")]
    pub limit: usize,
}

const fn page() -> usize {
    200
}

/// `tree text`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct TextArgs {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// Find out who wrote which part: in colours, and as the spans of --json.
    #[arg(long)]
    #[serde(default)]
    pub authors: bool,
    /// List who wrote which part.
    #[arg(long)]
    #[serde(default)]
    pub spans: bool,
    /// Without pending edits and the working buffer.
    #[arg(long)]
    #[serde(default)]
    pub committed: bool,
}

/// `tree append`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Append {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The text; `-` reads standard input.
    pub text: String,
}

/// `tree draft`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct DraftArgs {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The whole text of the draft; `-` reads standard input.
    pub text: String,
    /// The node to edit; without it the working buffer after the last node.
    #[arg(long, value_name = "NODE")]
    #[serde(default)]
    pub at: Option<String>,
    /// Commit at once.
    #[arg(long)]
    #[serde(default)]
    pub commit: bool,
}

/// Version or branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditAsArg {
    /// A version at the same place: everything below stays.
    Version,
    /// A new sibling: what was below stays on the old one.
    Branch,
}

/// `tree edit`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Edit {
    /// The node.
    #[command(flatten)]
    #[serde(flatten)]
    pub node: NodeArg,
    /// The new text; `-` reads standard input.
    #[arg(long)]
    pub text: String,
    /// A version (default in documents) or a branch (default in conversations).
    #[arg(long = "as", value_enum)]
    #[serde(default)]
    pub edit_as: Option<EditAsArg>,
}

/// `tree branch`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Branch {
    /// The node.
    #[command(flatten)]
    #[serde(flatten)]
    pub node: NodeArg,
    /// The place in its text, in characters as people count them (grapheme clusters).
    #[arg(long, value_name = "OFFSET")]
    pub at: u64,
    /// Go on with the alternative token of this rank at that place (0 is the likeliest), out of the stored
    /// probabilities.
    #[arg(long, value_name = "RANK")]
    #[serde(default)]
    pub token: Option<u32>,
}

/// How a model is asked.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct Sampling {
    /// How many siblings.
    #[arg(short = 'n', long = "count", value_name = "N")]
    #[serde(default)]
    pub n: Option<u32>,
    /// A preset of the configuration.
    #[arg(long)]
    #[serde(default)]
    pub preset: Option<String>,
    /// Agents of the configuration; each adds its share.
    #[arg(long = "agent", value_name = "AGENT")]
    #[serde(default)]
    pub agents: Vec<String>,
    /// Sampling temperature.
    #[arg(long)]
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[arg(long)]
    #[serde(default)]
    pub top_p: Option<f64>,
    /// Least probability, relative to the likeliest token.
    #[arg(long)]
    #[serde(default)]
    pub min_p: Option<f64>,
    /// Texts to stop at; also `sentence` and `paragraph`.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub stop: Vec<String>,
    /// Seed of the sampling: of the first sibling; each further one gets the next number.
    #[arg(long)]
    #[serde(default)]
    pub seed: Option<i64>,
    /// Tokens an answer may have.
    #[arg(long, value_name = "TOKENS")]
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// How much the model thinks before it answers.
    #[arg(long, value_name = "off|low|high", hide_possible_values = true)]
    #[serde(default)]
    pub think: Option<Think>,
    /// Keep the probabilities of this many alternatives a token.
    #[arg(long, value_name = "K")]
    #[serde(default)]
    pub logprobs: Option<u8>,
    /// Nodes sent before the newest text.
    #[arg(long, value_name = "NODE")]
    #[serde(default)]
    pub context: Vec<String>,
    /// Nodes sent first, as instructions.
    #[arg(long, value_name = "NODE")]
    #[serde(default)]
    pub instruction: Vec<String>,
    /// Say what would be sent and what it would cost; send nothing.
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
    /// Do not ask before many tokens are sent.
    #[arg(long)]
    #[serde(default)]
    pub yes: bool,
}

/// `tree generate`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Generate {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// Continue at this node instead of the tip.
    #[arg(long, value_name = "NODE")]
    #[serde(default)]
    pub from: Option<String>,
    /// How the model is asked.
    #[command(flatten)]
    #[serde(flatten)]
    pub sampling: Sampling,
}

/// `tree regenerate`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Regenerate {
    /// The node.
    #[command(flatten)]
    #[serde(flatten)]
    pub node: NodeArg,
    /// How the model is asked.
    #[command(flatten)]
    #[serde(flatten)]
    pub sampling: Sampling,
}

/// `tree keep`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct KeepArgs {
    /// The node.
    #[command(flatten)]
    #[serde(flatten)]
    pub node: NodeArg,
    /// There and everything below.
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

/// `tree bookmark`, `tag`, `annotate`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Mark {
    /// The node.
    #[command(flatten)]
    #[serde(flatten)]
    pub node: NodeArg,
    /// Title, tag or remark.
    #[arg(required_unless_present = "remove", default_value = "")]
    #[serde(default)]
    pub text: String,
    /// Take the bookmark or tag away.
    #[arg(long)]
    #[serde(default)]
    pub remove: bool,
}

/// `tree head`, `note`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Pin {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The text; an empty one takes it away.
    #[arg(long)]
    pub text: String,
    /// Note only: how many paragraphs before the end it stands [default: 3].
    #[arg(long)]
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
    /// The node the window starts at; without it, half of what is sent now leaves.
    #[arg(long, value_name = "NODE")]
    #[serde(default)]
    pub to: Option<String>,
    /// Only say what would leave.
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
}

/// `tree log`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct LogArgs {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// Operations a page.
    #[arg(long, default_value_t = 100)]
    #[serde(default = "operations")]
    pub limit: usize,
    /// Only operations before this number: `next` of the page before.
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
    /// Make a view out of another, with what it shows.
    New {
        /// The tree.
        tree: String,
        /// The new view's name.
        name: String,
        /// The view it starts from.
        #[command(flatten)]
        #[serde(flatten)]
        view: ViewArg,
    },
    /// Remove a view. What it showed stays in the tree.
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
    /// One node.
    pub a: String,
    /// Another.
    pub b: String,
}

/// `tree verify`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Verify {
    /// The tree: its id, short id or exact title.
    #[arg(required_unless_present = "file")]
    #[serde(default)]
    pub tree: Option<String>,
    /// An exported file instead.
    #[arg(long, conflicts_with = "tree")]
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// Only findings about this node.
    #[arg(long, value_name = "NODE")]
    #[serde(default)]
    pub node: Option<String>,
}

/// `tree purge`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Purge {
    /// The tree.
    pub tree: String,
    /// Only show what would be removed.
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
    /// Do not ask. Give it twice: `--yes --yes`.
    #[arg(long, action = clap::ArgAction::Count)]
    #[serde(default)]
    pub yes: u8,
}

/// What an export is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormatArg {
    /// The own format: everything, JSON Lines.
    Jsonl,
    /// The text of the path.
    Text,
    /// The path as Markdown.
    Markdown,
    /// One page with authors marked.
    Html,
    /// Markdown Annotations: text with ranges by author.
    Annotations,
    /// Chat fine-tuning JSON Lines.
    Training,
}

/// `tree export`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Export {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// The format.
    #[arg(long, value_enum, default_value = "jsonl")]
    pub format: FormatArg,
    /// For others: content, authors and structure only.
    #[arg(long, conflicts_with = "with_context")]
    #[serde(default)]
    pub share: bool,
    /// The bodies of requests too.
    #[arg(long)]
    #[serde(default)]
    pub with_context: bool,
    /// The file to write; standard output without it.
    #[arg(short, long, value_name = "FILE")]
    #[serde(default)]
    pub output: Option<PathBuf>,
}

/// The view an argument names.
impl ViewArg {
    /// Its name, `main` if none was given.
    ///
    /// # Errors
    /// When it is no name of a view.
    pub fn name(&self) -> Result<loom::ViewName, crate::CommandError> {
        match &self.view {
            None => Ok(loom::ViewName::default()),
            Some(name) => name.parse().map_err(|error: loom::id::BadViewName| {
                crate::CommandError::usage(error.to_string(), "`tree view list` shows the views of a tree")
            }),
        }
    }
}
