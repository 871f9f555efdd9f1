//! What was said and got no answer: it stays in the tree, and out of requests until it is asked again.

use loom::{CellKey, CellValue, OpTarget};
use loom::{NodeId, Op, PositionId, Role, Seq, TreeId, TreeReader, ViewName};
use store::{AttachedWrites, Principal};

use super::turn::Turn;
use crate::error::AgentError;
use crate::event::SessionEvent;
use crate::lease::SessionLease;

/// Positions looked at upwards; those above it are asked with what is said next.
const MAX_UNANSWERED: usize = 256;

impl Turn<'_> {
    /// What was said last in a view and is left out of the next request: an earlier turn asked it, and nothing stands
    /// below it.
    pub(super) async fn unanswered(
        &self,
        tree: TreeId,
        view: &ViewName,
    ) -> Result<Vec<PositionId>, AgentError> {
        let view = view.clone();
        let read = move |rows: &dyn TreeReader| {
            let tip = loom::render::tip(rows, &view)?;
            if !rows.children(tip, None, 1)?.is_empty() {
                return Ok(Vec::new());
            }
            let above = rows.upwards(tip, MAX_UNANSWERED)?;
            let said = above.iter().take_while(|position| position.role == Some(Role::User));
            let mut unanswered = Vec::new();
            for position in said {
                // Another branch may have answered it.
                if rows.children(position.id, None, 2)?.len() > 1 {
                    break;
                }
                unanswered.push(position.id);
            }
            Ok(unanswered)
        };
        self.runtime.read(&Principal::Owner, tree, read).await
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
        let read = move |rows: &dyn TreeReader| {
            let node = loom::resolve::shown(rows, &in_view, of)?;
            let key = CellKey::Excluded { target: OpTarget::Position(of) };
            Ok((node, rows.cell(&key)?.value == CellValue::Set))
        };
        let (node, is_excluded) = runtime.read(who, tree, read).await?;
        if !is_excluded {
            return Ok((node, None));
        }
        let with = AttachedWrites { guards: vec![held.guard()], ..AttachedWrites::nothing() };
        let op = Op::Include(OpTarget::Position(of));
        let included = self.named(held, runtime.change(who, tree, view, op, with).await).await?;
        Ok((node, included.seq))
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
