//! Tools that look at a tree: its path, lists of what stands beside it, and how it branches.

use std::collections::BTreeMap;

use ::tools::{CallPlace, Tool};
use loom::{AuthorKind, NodeId, PositionId, PositionKind, Role, Trust};
use schemars::JsonSchema;
use serde::Deserialize;

use super::place::{DEFECT, LoomAgent, TreePlace, listed, open_text};
use crate::args::tree::{Annotate, List, Mark, PassageArg, ShowArgs, TreeCommand};
use crate::chat::conversation_tools::{PAGE, page};
use crate::results::CommandOutcome;
use crate::results::tree::{NodeShown, TreeShown, word_of};
use crate::tree::first_words;

const VIEW: &str = "loom_view";
const LIST: &str = "loom_list";
const TREE: &str = "loom_tree";

/// The names of them.
pub(super) const NAMES: [&str; 3] = [LIST, TREE, VIEW];

/// Passages of a path, or of an outline, that one call reads at most.
const PASSAGES: usize = 200;
/// Levels of an outline above and below its middle, and the most.
const LEVELS: u32 = 3;
const MOST_LEVELS: u32 = 20;

pub(super) fn tools(agent: &LoomAgent) -> Vec<Tool> {
    let (of_view, of_list, of_tree) = (agent.clone(), agent.clone(), agent.clone());
    vec![
        Tool::of_conversation(
            VIEW,
            "Read the path of this conversation's tree that ends at a node, on whichever branch that stands, each passage \
             with its id: the newest 20,000 characters of it.",
            move |place, asked: ViewArguments| view(&of_view, place, &asked),
        ),
        Tool::of_conversation(
            LIST,
            "List nodes of this conversation's tree by id and first words: the siblings or versions of a node, or what has a \
             bookmark, tag or remark; or the documents there are.",
            move |place, asked: ListArguments| list(&of_list, place, &asked),
        ),
        Tool::of_conversation(
            TREE,
            "Show how this conversation's tree branches around a node: ids and first words of what stands above, beside and \
             below it.",
            move |place, asked: TreeArguments| outline(&of_tree, place, &asked),
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ViewArguments {
    /// Id of the node at which the path ends: the newest of this branch without it.
    node: Option<String>,
    /// Character of that node to begin with; it is read alone then.
    from: Option<usize>,
    /// Id or title of a document: this conversation without it.
    tree: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// What is listed.
    what: Listing,
    /// Id of the node whose siblings or versions are listed, or below which marks are looked for.
    node: Option<String>,
    /// Rows to leave out at the beginning: 0 without it.
    #[serde(default)]
    from: usize,
    /// Id or title of a document: this conversation without it.
    tree: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Listing {
    Siblings,
    Versions,
    Bookmarks,
    Tags,
    Remarks,
    Documents,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TreeArguments {
    /// Id of the node in the middle: the newest of this branch without it.
    node: Option<String>,
    /// Levels above and below it: 3 without it, at most 20.
    levels: Option<u32>,
    /// Id or title of a document: this conversation without it.
    tree: Option<String>,
}

/// A text that grows to a page, with the lowest trust of what it shows.
struct Page {
    text: String,
    trust: Trust,
}

impl Page {
    const fn new() -> Self {
        Self { text: String::new(), trust: Trust::Owner }
    }

    fn has_room(&self, more: &str) -> bool {
        self.text.is_empty() || self.text.chars().count() + more.chars().count() <= PAGE
    }
}

fn view(agent: &LoomAgent, place: &CallPlace, asked: &ViewArguments) -> Result<(String, Trust), String> {
    let at = agent.tree(place, asked.tree.as_deref())?;
    let named = asked.node.as_deref().map(|node| agent.node(&at, node)).transpose()?;
    let is_alone = |node: &&NodeShown| asked.from.is_some() || !node.shown || node.kind != PositionKind::Path;
    if let Some(node) = named.as_ref().filter(is_alone) {
        return read_alone(place, node, asked.from.unwrap_or_default());
    }
    if asked.from.is_some() {
        return Err("from is of a node: name it".to_owned());
    }
    let from = named.map(|node| node.id.to_string());
    let TreeShown { nodes, next, .. } = shown(agent, ShowArgs { from, ..show(&at) })?;
    let passages: Vec<&NodeShown> = nodes.iter().filter(|node| node.parent.is_some()).collect();
    let Some(last) = passages.last() else { return Err("nothing stands there yet".to_owned()) };
    let (mut blocks, mut page, mut more) = (Vec::new(), Page::new(), next);
    for node in passages.iter().rev() {
        let block = match shown_text(place, node) {
            Ok(text) => format!("[{}]\n{text}\n", heading(node)),
            Err(why) => format!("[{} {why}]\n", node.short_id),
        };
        if !page.has_room(&block) {
            more = Some(node.short_id.clone());
            break;
        }
        page.text += &block;
        page.trust = page.trust.min(node.trust);
        blocks.push(block);
    }
    if page.text.chars().count() > PAGE {
        return read_alone(place, last, 0);
    }
    let more = more.map(|node| format!("[more stands above: go on with node = {node}]\n"));
    blocks.extend(more);
    blocks.reverse();
    Ok((blocks.concat(), page.trust))
}

/// A page of one node.
fn read_alone(place: &CallPlace, node: &NodeShown, from: usize) -> Result<(String, Trust), String> {
    let text = shown_text(place, node).map_err(|why| format!("node {} {why}", node.short_id))?;
    Ok((page(&node.short_id, &text, from)?, node.trust))
}

/// What a node says, masked whole.
///
/// # Errors
/// As [`open_text`].
fn shown_text(place: &CallPlace, node: &NodeShown) -> Result<String, &'static str> {
    open_text(node).map(|text| place.masked(text))
}

fn glimpse(place: &CallPlace, text: &str) -> String {
    first_words(&place.masked(text))
}

fn list(agent: &LoomAgent, place: &CallPlace, asked: &ListArguments) -> Result<(String, Trust), String> {
    if asked.what == Listing::Documents {
        return documents(agent, place, asked.from);
    }
    let at = agent.tree(place, asked.tree.as_deref())?;
    let node = asked.node.as_deref().map(|node| agent.node_id(&at, node)).transpose()?;
    let passage = PassageArg { tree: at.arg(), node: node.map(|node| node.to_string()) };
    let command = match asked.what {
        Listing::Siblings => TreeCommand::Siblings(passage),
        Listing::Versions => TreeCommand::Versions(passage),
        Listing::Bookmarks => TreeCommand::Bookmarks(passage),
        Listing::Tags => TreeCommand::Tag(Mark { passage, text: None, remove: false }),
        Listing::Remarks | Listing::Documents => TreeCommand::Annotate(Annotate { passage, text: None }),
    };
    let found = listed(agent.run(command)?)?;
    let remarks = remarks(agent, &at, &found.nodes)?;
    let lines = found.nodes.iter().enumerate().map(|(index, node)| {
        let here = if found.current == Some(index) { "* " } else { "" };
        let (line, trust) = line(&at, place, (node, &remarks));
        (format!("{here}{line}\n"), trust)
    });
    rows(lines, asked.from)
}

/// The documents there are. The title of one from a file is that file's, and is left out.
fn documents(agent: &LoomAgent, place: &CallPlace, from: usize) -> Result<(String, Trust), String> {
    if !agent.may_read_documents() {
        return Err(agent.no_documents());
    }
    let CommandOutcome::Trees(found) = agent.run(TreeCommand::List(List { archived: false }))? else {
        return Err(DEFECT.to_owned());
    };
    let mut lines = Vec::new();
    for tree in found.trees.iter().filter(|tree| tree.mode == loom::Mode::Buffer) {
        let is_imported =
            agent.wait(async |app, asker| Ok(!app.imports(asker, tree.tree).await?.is_empty()))?;
        let title = if is_imported { "(imported)".to_owned() } else { glimpse(place, &tree.title) };
        let what = word_of(tree.mode);
        lines.push((
            format!("{} {title}: {what}, {} passages\n", tree.short_id, tree.passages),
            Trust::Workspace,
        ));
    }
    rows(lines.into_iter(), from)
}

/// Rows from a number on, as far as a page holds them.
fn rows(mut lines: impl Iterator<Item = (String, Trust)>, from: usize) -> Result<(String, Trust), String> {
    let (mut page, mut count) = (Page::new(), 0);
    for (line, trust) in lines.by_ref().skip(from) {
        if !page.has_room(&line) {
            page.text += &format!("[there are more: go on with from = {}]\n", from + count);
            return Ok((page.text, page.trust));
        }
        page.text += &line;
        page.trust = page.trust.min(trust);
        count += 1;
    }
    if count == 0 {
        page.text += "there are none\n";
    }
    Ok((page.text, page.trust))
}

fn outline(agent: &LoomAgent, place: &CallPlace, asked: &TreeArguments) -> Result<(String, Trust), String> {
    let at = agent.tree(place, asked.tree.as_deref())?;
    let middle = match &asked.node {
        Some(node) => agent.node_id(&at, node)?.to_string(),
        None => {
            let (tree, view) = (at.tree, at.view.clone());
            let tip = async |app: &crate::App, asker: &crate::Asker| {
                app.read(asker, tree, move |rows| loom::render::tip(rows, &view)).await
            };
            agent.wait(tip)?.original().to_string()
        }
    };
    let depth = Some(asked.levels.unwrap_or(LEVELS).min(MOST_LEVELS));
    let found = shown(agent, ShowArgs { around: Some(middle), depth, ..show(&at) })?;
    let remarks = Remarks::new();
    let mut below: BTreeMap<Option<PositionId>, Vec<&NodeShown>> = BTreeMap::new();
    for node in &found.nodes {
        below.entry(node.parent).or_default().push(node);
    }
    let top = found.nodes.first();
    let mut left: Vec<&NodeShown> = top.into_iter().collect();
    let mut lines = Vec::new();
    while let Some(node) = left.pop() {
        let indent = "  ".repeat(node.depth.saturating_sub(top.map_or(0, |top| top.depth)) as usize);
        let mark = if node.active { "* " } else { "- " };
        let (line, trust) = match node.parent {
            None => ("the beginning".to_owned(), Trust::Owner),
            Some(_) => line(&at, place, (node, &remarks)),
        };
        lines.push((format!("{indent}{mark}{line}\n"), trust));
        left.extend(below.get(&Some(node.position)).into_iter().flatten().rev());
    }
    if found.nodes.len() >= PASSAGES {
        lines.push((
            "[more stands there: ask for fewer levels, or around another node]\n".to_owned(),
            Trust::Owner,
        ));
    }
    rows(lines.into_iter(), 0)
}

fn show(at: &TreePlace) -> ShowArgs {
    ShowArgs {
        tree: at.arg(),
        all: false,
        depth: None,
        around: None,
        node: None,
        from: None,
        limit: PASSAGES,
    }
}

fn shown(agent: &LoomAgent, args: ShowArgs) -> Result<TreeShown, String> {
    match agent.run(TreeCommand::Show(args))? {
        CommandOutcome::Shown(shown) => Ok(shown),
        _ => Err(DEFECT.to_owned()),
    }
}

/// Id, author and role of a node.
fn heading(node: &NodeShown) -> String {
    let role = match node.role {
        Some(Role::System) => " system",
        Some(Role::User) => " user",
        Some(Role::Assistant) => " assistant",
        Some(Role::Tool) => " tool",
        None => "",
    };
    let by = match node.author_kind {
        AuthorKind::Human => "human",
        AuthorKind::Model => "model",
        AuthorKind::Tool => "tool",
    };
    format!("{}{role}, by {by} {}", node.short_id, node.author)
}

/// Trust of the remarks that are told of.
type Remarks = BTreeMap<NodeId, Trust>;

fn remarks(agent: &LoomAgent, at: &TreePlace, nodes: &[NodeShown]) -> Result<Remarks, String> {
    let ids: Vec<NodeId> =
        nodes.iter().flat_map(|node| &node.annotations).map(|remark| remark.node).collect();
    let tree = at.tree;
    let read = agent.wait(async |app, asker| app.read(asker, tree, move |rows| rows.nodes(&ids)).await)?;
    Ok(read.into_iter().map(|row| (row.node.id, row.node.trust)).collect())
}

/// A node by id, author and first words, with its marks; of one that its owner took away nothing but that.
fn line(at: &TreePlace, place: &CallPlace, (node, remarks): (&NodeShown, &Remarks)) -> (String, Trust) {
    let text = match open_text(node) {
        Ok(text) => text,
        Err(why) => return (format!("{} {why}", node.short_id), Trust::Owner),
    };
    let (mut line, mut trust) = (heading(node), node.trust);
    if node.versions > 1 {
        line += &format!(", {} versions", node.versions);
    }
    if node.siblings > 1 {
        line += &format!(", {} siblings", node.siblings);
    }
    if let Some(title) = &node.bookmark {
        let title = if title.is_empty() { String::new() } else { format!(" {}", glimpse(place, title)) };
        line += &format!(", bookmark{title}");
        trust = trust.min(at.labels);
    }
    for tag in &node.tags {
        line += &format!(", #{tag}");
        trust = trust.min(at.labels);
    }
    line += &format!(": {}", glimpse(place, text));
    for remark in &node.annotations {
        let Some(of_remark) = remarks.get(&remark.node) else { continue };
        let begins = glimpse(place, &remark.text);
        line += &format!("\n    remark {} by {}: {begins}", remark.short_id, remark.author);
        trust = trust.min(*of_remark);
    }
    (line, trust)
}
