//! Calls that were never run, told to their owner: of a turn that ended before they began, and of an answer for which no
//! tools were offered. A request says of each that it was not run ([`context`]).

use context::segment::SegmentOutcome;
use context::{Kind, Segment};
use loom::{Ascent, Block, Node, NodeId, NodeRow, Role, RowError, TreeId, TreeReader, ViewName, resolve};
use store::Principal;

use super::Turn;
use super::calls::AskedCall;
use crate::event::SessionEvent;
use crate::stored;

impl Turn<'_> {
    /// Tells which calls of the answer at which a view stands were never started. What cannot be read is said by the
    /// request.
    pub(super) async fn tell_not_run(&self, tree: TreeId, view: &ViewName) {
        let in_view = view.clone();
        let read = move |rows: &dyn TreeReader| not_run(rows, &in_view);
        match self.runtime.read(&Principal::Owner, tree, read).await {
            Ok(tools) if tools.is_empty() => {}
            Ok(tools) => self
                .log
                .push(SessionEvent::notice(format!("{} (the turn ended before)", calls_not_run(&tools)))),
            Err(error) => tracing::debug!(%error, "calls that were not run are not known"),
        }
    }

    /// Tells the calls of an answer for which no tools were offered: each is one without a result.
    pub(super) async fn tell_not_offered(&self, tree: TreeId, answer: Option<NodeId>) {
        let Some(answer) = answer else { return };
        let read = move |rows: &dyn TreeReader| Ok(rows.node(answer)?.as_ref().map(AskedCall::of));
        let calls = self.runtime.read(&Principal::Owner, tree, read).await.ok().flatten().unwrap_or_default();
        let tools: Vec<String> = calls.iter().map(|call| call.tool.clone()).collect();
        calls.iter().for_each(|call| self.log.push(call.event(answer, Vec::new())));
        if !tools.is_empty() {
            let told = format!("{}: no tools are offered here", calls_not_run(&tools));
            self.log.push(SessionEvent::notice(told));
        }
    }
}

/// The tools of calls at the end of a view that were never started and have no result.
fn not_run(rows: &dyn TreeReader, view: &ViewName) -> Result<Vec<String>, RowError> {
    let mut results = Vec::new();
    for position in Ascent::new(rows, loom::render::tip(rows, view)?) {
        let position = position?;
        if !matches!(position.role, Some(Role::Tool | Role::Assistant)) {
            break;
        }
        let Some(row) = rows.node(resolve::shown(rows, view, position.id)?)? else { break };
        if position.role == Some(Role::Assistant) {
            return tools_not_run(rows, (&row, position.id.original()), results);
        }
        results.extend(answered_calls(&row));
    }
    Ok(Vec::new())
}

/// The calls whose results a node holds.
pub fn answered_calls(row: &NodeRow) -> impl Iterator<Item = String> + '_ {
    row.node.content.iter().filter_map(|block| match block {
        Block::ToolResult { call_id, .. } => Some(call_id.clone()),
        _ => None,
    })
}

/// The tools of the calls of an answer that were never started and have none of these results. None of one for which no
/// tools were offered, which was told with the answer.
///
/// # Errors
/// As the rows say.
pub fn tools_not_run(
    rows: &dyn TreeReader,
    (answer, id): (&NodeRow, NodeId),
    mut results: Vec<String>,
) -> Result<Vec<String>, RowError> {
    let calls = AskedCall::of(answer);
    if calls.is_empty() || !were_offered(rows, &answer.node)? {
        return Ok(Vec::new());
    }
    let started = rows.started_calls(id)?;
    let mut tools = Vec::new();
    for call in calls {
        match results.iter().position(|result| *result == call.id) {
            Some(at) => drop(results.swap_remove(at)),
            None if started.contains(&call.number) => {}
            None => tools.push(call.tool),
        }
    }
    Ok(tools)
}

/// Whether tools were offered to the model that answered; so it is taken where that cannot be told.
fn were_offered(rows: &dyn TreeReader, answer: &Node) -> Result<bool, RowError> {
    let generation = answer.generation.map(|id| rows.generation(id)).transpose()?.flatten();
    let manifest = generation.map(|row| stored::manifest(rows, row.manifest)).transpose()?.flatten();
    let is_sent =
        |segment: &Segment| segment.kind == Kind::Schemas && segment.decision == SegmentOutcome::Sent;
    Ok(manifest.is_none_or(|manifest| manifest.segments.iter().any(is_sent)))
}

/// How many calls were not run, and of which tools.
pub fn calls_not_run(tools: &[String]) -> String {
    let were = if tools.len() == 1 { "call was" } else { "calls were" };
    let names: Vec<_> = tools.iter().map(|tool| text::terminal::one_line(tool)).collect();
    format!("{} {were} not run: {}", tools.len(), names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_and_named() {
        assert_eq!(calls_not_run(&["exec".to_owned()]), "1 call was not run: exec");
        let two = ["exec".to_owned(), "wr\nite".to_owned()];
        assert_eq!(calls_not_run(&two), "2 calls were not run: exec, wr␊ite");
    }
}
