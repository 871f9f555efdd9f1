//! Tools of the conversation they are called in: a node that left the window, how full the window is, and what is noted for
//! the next session (spec: agent §3, continuity §3).

use ::tools::{CallPlace, NOTE_OUTCOME, Tool};
use agent::{AgentError, Runtime};
use loom::path::{ViewOverrides, is_ancestor};
use loom::render::{self, tip, window};
use loom::{RowError, TreeReader, Trust};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use store::{NodeName, OutcomeId, OutcomeKind, Principal, StoreError};
use tokio::runtime::Handle;

use super::window_usage::WindowUsage;
use crate::cost;
use crate::error::CommandError;
use crate::outcomes::{self, Note, NotePlace};

const RECALL: &str = "recall";
const CONTEXT_STATUS: &str = "context_status";

/// Characters of a node that one call gives at most.
pub(super) const PAGE: usize = 20_000;

/// The names of them.
pub(super) const NAMES: [&str; 3] = [CONTEXT_STATUS, NOTE_OUTCOME, RECALL];

/// All of them.
pub(super) fn tools(runtime: &Runtime) -> Vec<Tool> {
    let (of_status, of_note, of_recall) = (runtime.clone(), runtime.clone(), runtime.clone());
    vec![
        Tool::of_conversation(
            CONTEXT_STATUS,
            "Say how full the context window is, what fills it, and what in it is from outside.",
            move |place, _: NoArguments| status(&of_status, place),
        )
        .beside_the_core(),
        Tool::of_conversation(
            NOTE_OUTCOME,
            "Note a conclusion, question or step for the next session.",
            move |place, noted: NoteArguments| note(&of_note, place, &noted),
        )
        .in_order()
        .beside_the_core(),
        Tool::of_conversation(
            RECALL,
            "Read a node of this conversation that is no longer shown, or only in part.",
            move |place, asked: RecallArguments| recall(&of_recall, place, &asked),
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoteArguments {
    #[schemars(schema_with = "kinds")]
    kind: OutcomeKind,
    text: String,
    /// Number of a note.
    #[schemars(schema_with = "number")]
    #[serde(default)]
    corrects: Option<i64>,
}

fn kinds(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": OutcomeKind::ALL})
}

fn number(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["integer", "null"]})
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecallArguments {
    /// Id of the node, as it stands where something is left out.
    node: String,
    /// Character to begin with: 0 without it.
    #[serde(default)]
    from: usize,
}

/// Rows of the conversation a call is made in. It blocks.
fn read<T: Send + 'static>(
    runtime: &Runtime,
    place: &CallPlace,
    of: impl FnOnce(&dyn TreeReader) -> Result<T, RowError> + Send + 'static,
) -> Result<T, String> {
    Handle::current()
        .block_on(runtime.read(&Principal::Owner, place.tree, of))
        .map_err(|error: AgentError| format!("the conversation could not be read: {error}"))
}

fn note(runtime: &Runtime, place: &CallPlace, noted: &NoteArguments) -> Result<(String, Trust), String> {
    let at = NotePlace { tree: place.tree, node: place.answer, fence: place.fence };
    let note = Note {
        kind: noted.kind,
        trust: place.trust,
        text: place.masked(&noted.text),
        corrects: noted.corrects.map(OutcomeId),
    };
    let done = Handle::current().block_on(outcomes::append(runtime, &Principal::Owner, &at, note));
    match done {
        Ok(told) => Ok((told.sentence, Trust::Owner)),
        Err(CommandError { message, hint, .. }) => Err(format!("{message}: {hint}")),
    }
}

/// What was found where a node stands.
enum Recalled {
    /// The node stands on another branch, or was taken back.
    Elsewhere,
    Excluded,
    Forgotten,
    Said(String, Trust),
}

fn recall(runtime: &Runtime, place: &CallPlace, asked: &RecallArguments) -> Result<(String, Trust), String> {
    let elsewhere = || format!("no node {:?} stands on the way to here", asked.node);
    let found = Handle::current().block_on(runtime.store.resolve_node(
        &Principal::Owner,
        Some(place.tree),
        &asked.node,
    ));
    let NodeName { tree, position, short_id, .. } = match found {
        Err(StoreError::NotFound(_) | StoreError::Ambiguous(_)) => return Err(elsewhere()),
        found => found.map_err(|error| error.to_string())?,
    };
    if tree != place.tree {
        return Err(elsewhere());
    }
    let view = place.view.clone();
    let recalled = read(runtime, place, move |rows| {
        let end = tip(rows, &view)?;
        if !is_ancestor(rows, position, end)? {
            return Ok(Recalled::Elsewhere);
        }
        let path = ViewOverrides::read(rows, &view, end)?;
        let depth = loom::path::position(rows, position)?.depth;
        let Some(passage) = window(rows, &view, &path, Some(depth), 1)?.pop() else {
            return Ok(Recalled::Elsewhere);
        };
        let render::Passage { row, text, pending, excluded, .. } = passage;
        Ok(match (excluded, row.purged) {
            (true, _) => Recalled::Excluded,
            (_, true) => Recalled::Forgotten,
            (false, false) if pending => Recalled::Said(text, row.node.trust),
            (false, false) => Recalled::Said(row.node.said().into_owned(), row.node.trust),
        })
    })?;
    match recalled {
        Recalled::Elsewhere => Err(elsewhere()),
        Recalled::Excluded => {
            Err(format!("node {short_id} is left out of what is sent: its owner took it out"))
        }
        Recalled::Forgotten => Err(format!("node {short_id} was forgotten: nothing is left of it")),
        Recalled::Said(text, trust) => Ok((page(&short_id, &place.masked(&text), asked.from)?, trust)),
    }
}

/// A page of what a node says.
pub(super) fn page(node: &str, text: &str, from: usize) -> Result<String, String> {
    let chars = text.chars().count();
    if from >= chars.max(1) {
        return Err(format!("node {node} has {chars} characters: none stands at {from}"));
    }
    let at = |index: usize| text.char_indices().nth(index).map_or(text.len(), |(at, _)| at);
    let to = (from + PAGE).min(chars);
    let shown = &text[at(from)..at(to)];
    let more = if to < chars {
        format!("\n[{} more characters: go on with from = {to}]", chars - to)
    } else {
        String::new()
    };
    Ok(format!("[node {node}, characters {from} to {to} of {chars}]\n{shown}{more}"))
}

fn status(runtime: &Runtime, place: &CallPlace) -> Result<(String, Trust), String> {
    let view = place.view.clone();
    let usage = read(runtime, place, move |rows| WindowUsage::read(rows, &view))?;
    let Some(usage) = usage else { return Err("no request was answered here yet".to_owned()) };
    let cost = Handle::current()
        .block_on(cost::of_session(&runtime.store, &Principal::Owner, place.tree))
        .map_err(|error| format!("what it cost could not be read: {error}"))?;
    Ok((format!("cost of the session: {cost}\n{}", usage.in_words()), Trust::Owner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_node_is_read_page_by_page_and_nothing_of_it_is_lost() {
        let text = "äöü\n".repeat(12_000);
        let (mut from, mut read) = (0, String::new());
        loop {
            let page = page("a1", &text, from).unwrap();
            let (_, said) = page.split_once('\n').unwrap();
            let said = said.rsplit_once("\n[").filter(|_| page.ends_with(']')).map_or(said, |(said, _)| said);
            read += said;
            from += said.chars().count();
            if !page.ends_with(']') {
                break;
            }
        }
        assert_eq!(read, text);
        assert_eq!(page("a1", "ab", 0).unwrap(), "[node a1, characters 0 to 2 of 2]\nab");
        assert_eq!(page("a1", "ab", 2).unwrap_err(), "node a1 has 2 characters: none stands at 2");
        assert_eq!(page("a1", "", 0).unwrap(), "[node a1, characters 0 to 0 of 0]\n");
    }
}
