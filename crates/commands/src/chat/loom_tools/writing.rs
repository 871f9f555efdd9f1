//! Tools that change a tree: what they write is the agent's, and believed as far as what their request held.

use ::tools::{CallPlace, Tool};
use loom::{AuthorKind, PositionKind, Role, Trust};
use schemars::JsonSchema;
use serde::Deserialize;

use super::place::{DEFECT, LoomAgent, Target};
use crate::args::NodeArg;
use crate::args::tree::{Annotate, Bookmark, Edit, EditAsArg, Flag, NoteArgs, PassageArg, TreeCommand};
use crate::results::CommandOutcome;

const SWITCH: &str = "loom_switch";
const EDIT: &str = "loom_edit";
const ANNOTATE: &str = "loom_annotate";
const BOOKMARK: &str = "loom_bookmark";
const PRUNE: &str = "loom_prune";
const PIN: &str = "loom_pin";
/// Characters of a note that is pinned: it goes along with every message.
const NOTE: usize = 2_000;

/// The names of them.
pub(super) const NAMES: [&str; 6] = [ANNOTATE, BOOKMARK, EDIT, PIN, PRUNE, SWITCH];

pub(super) fn tools(agent: &LoomAgent) -> Vec<Tool> {
    let (of_switch, of_edit, of_annotate) = (agent.clone(), agent.clone(), agent.clone());
    let (of_bookmark, of_prune, of_pin) = (agent.clone(), agent.clone(), agent.clone());
    let tools = [
        Tool::of_conversation(
            SWITCH,
            "Have the conversation go on behind a node of another branch once this turn has ended.",
            move |place, asked: SwitchArguments| switch(&of_switch, place, &asked),
        ),
        Tool::of_conversation(
            EDIT,
            "Give an answer of this conversation, or a passage of a document, another text: a new version of it. The old one \
             stays, and what stands below as well.",
            move |place, asked: EditArguments| edit(&of_edit, place, asked),
        ),
        Tool::of_conversation(
            ANNOTATE,
            "Hang a remark on a node: it is shown with the node and is no part of the conversation.",
            move |place, asked: AnnotateArguments| annotate(&of_annotate, place, asked),
        ),
        Tool::of_conversation(
            BOOKMARK,
            "Set a bookmark on a node that has none.",
            move |place, asked: BookmarkArguments| bookmark(&of_bookmark, place, asked),
        ),
        Tool::of_conversation(
            PRUNE,
            "Hide a node with all that stands below it. Its owner can show it again.",
            move |place, asked: PruneArguments| prune(&of_prune, place, &asked),
        ),
        Tool::of_conversation(
            PIN,
            "Pin a note of yours to this conversation: it is sent near the newest message from the next turn on, until you set \
             another one, or an empty one.",
            move |place, asked: PinArguments| pin(&of_pin, place, asked),
        ),
    ];
    tools.into_iter().map(Tool::changing_trees).collect()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SwitchArguments {
    /// Id of a node that is not on this branch.
    node: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditArguments {
    /// Id of the node.
    node: String,
    /// Whole new text.
    text: String,
    /// Id or title of a document: this conversation without it.
    tree: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnnotateArguments {
    /// Id of the node.
    node: String,
    /// The remark.
    text: String,
    /// Id or title of a document: this conversation without it.
    tree: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BookmarkArguments {
    /// Id of the node.
    node: String,
    /// Title of the bookmark, on one line: none without it.
    title: Option<String>,
    /// Id or title of a document: this conversation without it.
    tree: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PruneArguments {
    /// Id of a node that is not on this branch.
    node: String,
    /// Id or title of a document: this conversation without it.
    tree: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PinArguments {
    /// The note, at most 2,000 characters; empty to take it away.
    text: String,
}

fn switch(agent: &LoomAgent, place: &CallPlace, asked: &SwitchArguments) -> Result<(String, Trust), String> {
    let Target { node, .. } = agent.target(place, &asked.node, None)?;
    if node.kind != PositionKind::Path {
        return Err(format!("{} is no passage: nothing goes on behind it", node.short_id));
    }
    if node.active {
        return Err(format!("{} stands on this branch already", node.short_id));
    }
    place.next.set(node.position);
    Ok((format!("once this turn has ended the conversation goes on behind {}", node.short_id), place.trust))
}

fn edit(agent: &LoomAgent, place: &CallPlace, asked: EditArguments) -> Result<(String, Trust), String> {
    let target = agent.target(place, &asked.node, asked.tree.as_deref())?;
    let node = &target.node;
    if node.kind != PositionKind::Path {
        return Err(format!("{} is no passage", node.short_id));
    }
    if node.role.is_some_and(|role| role != Role::Assistant) {
        return Err(format!(
            "{} is no answer: what people and tools said stays as they said it",
            node.short_id
        ));
    }
    target.require_earlier()?;
    let args = Edit {
        tree: target.at.arg(),
        node: Some(node.id.to_string()),
        from: None,
        to: None,
        text: Some(asked.text),
        file: None,
        replace: Vec::new(),
        all: false,
        edit_as: Some(EditAsArg::Version),
    };
    let CommandOutcome::Edited(done) = agent.change(place, &target.at, TreeCommand::Edit(args))? else {
        return Err(DEFECT.to_owned());
    };
    let made = &done.result;
    let told = if made.node == node.id && node.shown {
        format!("nothing was changed: {} has this text", node.short_id)
    } else {
        format!("{} is the version of {} that is shown now", made.short_id, node.short_id)
    };
    Ok((told, place.trust))
}

fn annotate(
    agent: &LoomAgent,
    place: &CallPlace,
    asked: AnnotateArguments,
) -> Result<(String, Trust), String> {
    let Target { at, node, .. } = agent.target(place, &asked.node, asked.tree.as_deref())?;
    let passage = PassageArg { tree: at.arg(), node: Some(node.id.to_string()) };
    let args = Annotate { passage, text: Some(asked.text) };
    let CommandOutcome::Node(done) = agent.change(place, &at, TreeCommand::Annotate(args))? else {
        return Err(DEFECT.to_owned());
    };
    Ok((format!("remark {} hangs on {}", done.result.short_id, node.short_id), place.trust))
}

fn bookmark(
    agent: &LoomAgent,
    place: &CallPlace,
    asked: BookmarkArguments,
) -> Result<(String, Trust), String> {
    if asked.title.is_some() && place.trust == Trust::Outside {
        return Err(
            "text from outside is in view, and a title would not show that it comes from there: set a bookmark without one"
                .to_owned(),
        );
    }
    let Target { at, node, .. } = agent.target(place, &asked.node, asked.tree.as_deref())?;
    if node.bookmark.is_some() {
        return Err(format!("{} has a bookmark, and that stays", node.short_id));
    }
    let named = NodeArg { tree: at.arg(), node: node.id.to_string() };
    let args = Bookmark { node: named, text: asked.title, remove: false };
    agent.change(place, &at, TreeCommand::Bookmark(args))?;
    Ok((format!("{} has a bookmark now", node.short_id), place.trust))
}

fn prune(agent: &LoomAgent, place: &CallPlace, asked: &PruneArguments) -> Result<(String, Trust), String> {
    let target = agent.target(place, &asked.node, asked.tree.as_deref())?;
    let node = &target.node;
    target.require_earlier()?;
    if let Some(view) = agent.view_below(&target)? {
        return Err(format!(
            "{view} stands at {} or below it: what somebody reads is not hidden",
            node.short_id
        ));
    }
    let named = NodeArg { tree: target.at.arg(), node: node.id.to_string() };
    agent.change(place, &target.at, TreeCommand::Prune(Flag { node: named, version: false }))?;
    Ok((format!("{} is hidden with what stands below it", node.short_id), place.trust))
}

fn pin(agent: &LoomAgent, place: &CallPlace, asked: PinArguments) -> Result<(String, Trust), String> {
    if place.trust == Trust::Outside {
        return Err("text from outside is in view, and a note would instruct later turns".to_owned());
    }
    let chars = asked.text.chars().count();
    if chars > NOTE {
        return Err(format!("the note has {chars} characters, and at most {NOTE} are pinned: shorten it"));
    }
    let at = agent.tree(place, None)?;
    let args = |text| NoteArgs { tree: at.arg(), text, depth: None };
    let CommandOutcome::StoredText(note) = agent.run(TreeCommand::Note(args(None)))? else {
        return Err(DEFECT.to_owned());
    };
    let tree = at.tree;
    let author = note.node.map(|node| {
        agent.wait(async |app, asker| app.read(asker, tree, move |rows| rows.nodes(&[node])).await)
    });
    let rows = author.transpose()?.unwrap_or_default();
    if rows.iter().any(|row| row.node.author.kind != AuthorKind::Model) {
        return Err("its owner pinned a note to this conversation, and that stays".to_owned());
    }
    if asked.text.is_empty() && rows.is_empty() {
        return Err("no note is pinned".to_owned());
    }
    let told = if asked.text.is_empty() { "the note is taken away" } else { "the note is pinned" };
    agent.change(place, &at, TreeCommand::Note(args(Some(asked.text))))?;
    Ok((told.to_owned(), place.trust))
}
