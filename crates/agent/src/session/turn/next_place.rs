//! Where a view goes once a turn has ended: the turn's own path is never cut under it, so that a call and its result stay
//! together.

use loom::{Author, AuthorKind, Op, RowError, TreeId, TreeReader, render, resolve};
use store::{AttachedWrites, Principal};
use tools::NextPlace;

use super::{Turn, Written};
use crate::commit::GenerationOutcome;
use crate::error::AgentError;
use crate::event::SessionEvent;
use crate::lease::SessionLease;

/// What is said where somebody goes elsewhere in a conversation while its tools run.
pub(super) const MOVED: &str =
    "the conversation went elsewhere meanwhile: the turn ends, and its results stand where it was";

impl Turn<'_> {
    /// Goes where a tool of the turn said, if the turn was answered and nobody went elsewhere meanwhile. It is undone with
    /// the turn.
    pub(super) async fn go_on(
        &self,
        held: &SessionLease,
        written: &Written,
        (tree, agent): (TreeId, &str),
        (next, ended): (&NextPlace, &Result<GenerationOutcome, AgentError>),
    ) {
        let (Some(to), Ok(GenerationOutcome { error: None, nodes, .. })) = (next.take(), ended) else {
            return;
        };
        let Some(answer) = nodes.first().map(|node| node.id) else { return };
        let (runtime, who, view) = (self.runtime, &Principal::Owner, written.view.clone());
        let gone = async {
            let in_view = view.clone();
            let tip = runtime.read(who, tree, move |rows| render::tip(rows, &in_view)).await?;
            if tip != answer.as_position() {
                return Ok(None);
            }
            let with = AttachedWrites { guards: vec![held.guard()], ..AttachedWrites::nothing() };
            let author = Author { kind: AuthorKind::Model, id: agent.to_owned(), profile: None };
            let op = Op::ByTool { part_of: written.part_of, op: Box::new(Op::Switch(to)) };
            runtime.change_as((who, &author, written.trust), tree, &view, op, with).await?;
            let name = move |rows: &dyn TreeReader| {
                let shown = resolve::shown(rows, &view, render::tip(rows, &view)?)?;
                rows.node(shown)?.map(|row| row.short_id).ok_or_else(|| RowError::missing("node", shown))
            };
            runtime.read(who, tree, name).await.map(Some)
        };
        let told = match self.named(held, gone.await).await {
            Ok(None) => return,
            Ok(Some(node)) => {
                format!("the conversation goes on behind {node}, as {agent} chose: /undo takes the turn back")
            }
            Err(error) => {
                format!("the conversation stays here, though {agent} chose another branch: {error}")
            }
        };
        self.log.push(SessionEvent::notice(told));
    }
}
