//! Texts that an agent puts aside under a name. Each is a remark on the beginning of the tree with a tag that holds the
//! name, so that it stands on no path and in no request, and its owner sees it as any remark.

use ::tools::{CallPlace, Tool};
use loom::cell::CellScope;
use loom::{CellKey, NodeRow, PositionKind, RowError, TreeReader, Trust, ViewName, path, resolve};
use schemars::JsonSchema;
use serde::Deserialize;

use super::place::{DEFECT, LoomAgent};
use crate::args::tree::{Annotate, Mark, PassageArg, TreeCommand};
use crate::chat::conversation_tools::page;
use crate::results::CommandOutcome;
use crate::tree::first_words;

const STASH: &str = "loom_stash";
const RECALL: &str = "loom_recall";
const DROP: &str = "loom_drop";

/// The names of them.
pub(super) const NAMES: [&str; 3] = [DROP, RECALL, STASH];

/// What a tag that names such a text begins with.
const TAG: &str = "stash:";
/// Characters of a name.
const NAME: usize = 40;
/// Texts that one conversation holds.
const MOST: usize = 100;

pub(super) fn tools(agent: &LoomAgent) -> Vec<Tool> {
    let (of_stash, of_recall, of_drop) = (agent.clone(), agent.clone(), agent.clone());
    vec![
        Tool::of_conversation(
            STASH,
            "Put a text aside under a name, to read it later with loom_recall: it is no part of the conversation.",
            move |place, asked: StashArguments| stash(&of_stash, place, asked),
        )
        .changing_trees(),
        Tool::of_conversation(
            RECALL,
            "Read a text that was put aside with loom_stash; without a name list them.",
            move |place, asked: RecallArguments| recall(&of_recall, place, &asked),
        ),
        Tool::of_conversation(
            DROP,
            "Give up the name of a text that was put aside: it is recalled no more.",
            move |place, asked: DropArguments| give_up(&of_drop, place, &asked),
        )
        .changing_trees(),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StashArguments {
    /// Name: small letters, digits and hyphens, at most 40.
    name: String,
    /// The text.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecallArguments {
    /// Name: all names without it.
    name: Option<String>,
    /// Character to begin with: 0 without it.
    #[serde(default)]
    from: usize,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DropArguments {
    /// Name of the text.
    name: String,
}

fn stash(agent: &LoomAgent, place: &CallPlace, asked: StashArguments) -> Result<(String, Trust), String> {
    let StashArguments { name, text } = asked;
    let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > NAME || !name.chars().all(is_of_name) {
        return Err(format!("a name has small letters, digits and hyphens, at most {NAME}"));
    }
    let there = all(agent, place)?;
    if there.iter().any(|(other, _)| *other == name) {
        return Err(format!("{name} is put aside already: drop it first, or choose another name"));
    }
    if there.len() >= MOST {
        return Err(format!("{MOST} texts are put aside, and more are not taken: drop one"));
    }
    let at = agent.tree(place, None)?;
    let root = agent.wait(async |app, asker| app.read(asker, at.tree, |rows| Ok(rows.tree()?.root)).await)?;
    let beginning = PassageArg { tree: at.arg(), node: Some(root.original().to_string()) };
    let args = Annotate { passage: beginning, text: Some(text) };
    let CommandOutcome::Node(done) = agent.change(place, &at, TreeCommand::Annotate(args))? else {
        return Err(DEFECT.to_owned());
    };
    let passage = PassageArg { tree: at.arg(), node: Some(done.result.node.to_string()) };
    let tag = Mark { passage, text: Some(format!("{TAG}{name}")), remove: false };
    agent.change(place, &at, TreeCommand::Tag(tag))?;
    Ok((format!("{name} is put aside as {}", done.result.short_id), place.trust))
}

fn recall(agent: &LoomAgent, place: &CallPlace, asked: &RecallArguments) -> Result<(String, Trust), String> {
    let there = all(agent, place)?;
    let Some(name) = &asked.name else {
        let trust = there.iter().map(|(_, row)| row.node.trust).min();
        let lines = there.iter().map(|(name, row)| {
            let begins = if row.purged {
                "(forgotten)".to_owned()
            } else {
                first_words(&place.masked(&row.node.text()))
            };
            format!("{name}: {begins}\n")
        });
        let trust = trust.ok_or_else(|| "nothing is put aside".to_owned())?;
        return Ok((lines.collect(), trust));
    };
    let row = named(there, name)?;
    if row.purged {
        return Err(format!("{name} was forgotten: nothing is left of it"));
    }
    Ok((page(&row.short_id, &place.masked(&row.node.text()), asked.from)?, row.node.trust))
}

fn give_up(agent: &LoomAgent, place: &CallPlace, asked: &DropArguments) -> Result<(String, Trust), String> {
    let row = named(all(agent, place)?, &asked.name)?;
    let at = agent.tree(place, None)?;
    let passage = PassageArg { tree: at.arg(), node: Some(row.node.id.to_string()) };
    let tag = Mark { passage, text: Some(format!("{TAG}{}", asked.name)), remove: true };
    agent.change(place, &at, TreeCommand::Tag(tag))?;
    Ok((format!("{} is put aside no more", asked.name), place.trust))
}

fn named(there: Vec<(String, NodeRow)>, name: &str) -> Result<NodeRow, String> {
    let found = there.into_iter().find(|(other, _)| other == name).map(|(_, row)| row);
    found.ok_or_else(|| format!("nothing is put aside as {name}"))
}

/// The texts that are put aside in the conversation, by their names. It blocks.
fn all(agent: &LoomAgent, place: &CallPlace) -> Result<Vec<(String, NodeRow)>, String> {
    let (tree, view) = (place.tree, place.view.clone());
    agent.wait(async |app, asker| app.read(asker, tree, move |rows| stashed(rows, &view)).await)
}

fn stashed(rows: &dyn TreeReader, view: &ViewName) -> Result<Vec<(String, NodeRow)>, RowError> {
    let mut found = Vec::new();
    for (key, cell) in rows.cells(&CellScope::AllTags)? {
        if let CellKey::Tag { position, tag } = key
            && cell.value.is_set()
            && let Some(name) = tag.strip_prefix(TAG)
            && path::position(rows, position)?.kind == PositionKind::Annotation
        {
            let shown = resolve::shown(rows, view, position)?;
            let row = rows.node(shown)?.ok_or_else(|| RowError::missing("node", shown))?;
            found.push((name.to_owned(), row));
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(found)
}
