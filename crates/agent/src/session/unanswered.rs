//! What was said and got no answer: it stays in the tree, and out of requests until it is asked again.

use loom::{Ascent, CellKey, CellValue, OpTarget};
use loom::{NodeId, Op, PositionId, Role, RowError, Seq, TreeId, TreeReader, ViewName};
use store::{AttachedWrites, Principal};

use super::turn::Turn;
use crate::error::AgentError;
use crate::event::SessionEvent;
use crate::lease::SessionLease;

impl Turn<'_> {
    /// What stands last in a view without an answer, and is left out of the next request; a notice names it.
    pub(super) async fn unanswered(
        &self,
        tree: TreeId,
        view: &ViewName,
    ) -> Result<Vec<PositionId>, AgentError> {
        let view = view.clone();
        let read = move |rows: &dyn TreeReader| {
            let tip = loom::render::tip(rows, &view)?;
            if !rows.children(tip, None, 1)?.is_empty() {
                return Ok((Vec::new(), Vec::new()));
            }
            let (mut unanswered, mut names) = (Vec::new(), Vec::new());
            for position in Ascent::new(rows, tip) {
                let position = position?;
                if position.role != Some(Role::User) {
                    break;
                }
                // Another branch may have answered it.
                if rows.children(position.id, None, 2)?.len() > 1 {
                    break;
                }
                let target = OpTarget::Position(position.id);
                if rows.cell(&CellKey::Excluded { target })?.value != CellValue::Set {
                    names.push(original(rows, position.id)?.short_id);
                }
                unanswered.push(position.id);
            }
            Ok((unanswered, names))
        };
        let (unanswered, mut names) = self.runtime.read(&Principal::Owner, tree, read).await?;
        names.reverse();
        if !names.is_empty() {
            let entry = self.runtime.store.tree(&Principal::Owner, tree).await?;
            self.log.push(SessionEvent::notice(left_out(&names, &entry.short_id)));
        }
        Ok(unanswered)
    }

    /// Has something said before be part of requests again. Returns the node that is asked.
    pub(super) async fn take_up(
        &self,
        held: &SessionLease,
        tree: TreeId,
        view: &ViewName,
        of: PositionId,
    ) -> Result<(NodeId, Option<Seq>), AgentError> {
        let (runtime, who, in_view) = (self.runtime, &Principal::Owner, view.clone());
        let node = runtime.read(who, tree, move |rows| loom::resolve::shown(rows, &in_view, of)).await?;
        Ok((node, self.include(held, tree, view, of, true).await?))
    }

    /// Has what was said with a message be part of requests again, and the message itself if it is asked. Returns the
    /// last operation that was needed for it.
    pub(super) async fn include(
        &self,
        held: &SessionLease,
        tree: TreeId,
        view: &ViewName,
        of: PositionId,
        itself: bool,
    ) -> Result<Option<Seq>, AgentError> {
        let (runtime, who) = (self.runtime, &Principal::Owner);
        let read = move |rows: &dyn TreeReader| {
            let said_by = original(rows, of)?.seq;
            let mut excluded = Vec::new();
            for position in Ascent::new(rows, of) {
                let position = position?;
                let target = OpTarget::Position(position.id);
                if position.role != Some(Role::User) || original(rows, position.id)?.seq != said_by {
                    break;
                }
                let is_asked = itself || position.id != of;
                if is_asked && rows.cell(&CellKey::Excluded { target })?.value == CellValue::Set {
                    excluded.push(target);
                }
            }
            Ok(excluded)
        };
        let mut included = None;
        for target in runtime.read(who, tree, read).await? {
            let with = AttachedWrites { guards: vec![held.guard()], ..AttachedWrites::nothing() };
            let change = runtime.change(who, tree, view, Op::Include(target), with).await;
            included = self.named(held, change).await?.seq;
        }
        Ok(included)
    }

    /// Goes to what was answered once more, unless the view is there: beside an earlier answer it stays where it was.
    pub(super) async fn go_to(&self, held: &SessionLease, tree: TreeId, view: &ViewName, answer: NodeId) {
        let (runtime, who, in_view) = (self.runtime, &Principal::Owner, view.clone());
        let to = answer.as_position();
        let gone = async {
            let tip = runtime.read(who, tree, move |rows| loom::render::tip(rows, &in_view)).await?;
            if tip == to {
                return Ok(());
            }
            let with = AttachedWrites { guards: vec![held.guard()], ..AttachedWrites::nothing() };
            runtime.change(who, tree, view, Op::Switch(to), with).await.map(drop)
        };
        if let Err(error) = self.named(held, gone.await).await {
            self.log
                .push(SessionEvent::notice(format!("the new answer stands beside the earlier one: {error}")));
        }
    }
}

/// Notice of the messages that a request leaves out, with the command that sends each along again.
fn left_out(names: &[String], tree: &str) -> String {
    let include = names.iter().map(|name| format!("`drawloom tree include {tree} {name}`"));
    let include = include.collect::<Vec<_>>().join(" and ");
    let (is, send, it) = if names.len() == 1 { ("is", "sends", "it") } else { ("are", "send", "them") };
    format!("{} got no answer and {is} left out; {include} {send} {it} along again", names.join(", "))
}

/// The node first written at a position: what was said with it has the same operation.
pub(super) fn original(rows: &dyn TreeReader, at: PositionId) -> Result<loom::NodeRow, RowError> {
    let node = at.original();
    rows.node(node)?.ok_or_else(|| RowError::missing("node", node))
}
