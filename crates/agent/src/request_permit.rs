//! Whether a request may still be sent as it was put together: what it holds may be withdrawn while it waits.

use async_trait::async_trait;
use loom::plan::Refusal;
use loom::{GenerationPlace, NodeId, OriginRole, PositionId, RowError, TreeId, TreeReader, path};
use model::SendPermit;
use store::Principal;

use crate::error::AgentError;
use crate::runtime::Runtime;

/// Permit of a request of a tree.
pub(crate) struct RequestPermit<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) who: &'a Principal,
    pub(crate) tree: TreeId,
    pub(crate) place: Option<&'a GenerationPlace>,
    /// Nodes that it was given beside the path.
    pub(crate) inputs: &'a [(OriginRole, NodeId)],
    /// Whether it may hold texts of a workspace that the owner's record trusted when it was put together.
    pub(crate) trusts_by_record: bool,
}

impl RequestPermit<'_> {
    async fn read(&self) -> Result<bool, AgentError> {
        if self.trusts_by_record && self.runtime.distrusts_workspace(self.who, self.tree).await? {
            return Ok(false);
        }
        let Some(place) = self.place else { return Ok(true) };
        let (at, inputs) = (place.parent, self.inputs.iter().map(|(_, node)| *node).collect::<Vec<_>>());
        let hidden = self.runtime.read(self.who, self.tree, move |rows| hidden(rows, at, &inputs)).await?;
        Ok(hidden.is_none())
    }
}

#[async_trait]
impl SendPermit for RequestPermit<'_> {
    async fn is_granted(&self) -> bool {
        self.read().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "whether a request may still be sent cannot be read: it is not");
            false
        })
    }
}

/// Why a request at a position is not sent with these nodes beside the path: one of them, or what stands above it, is pruned
/// (spec: loom §2).
///
/// # Errors
/// [`RowError`] when the store fails.
pub(crate) fn hidden(
    rows: &dyn TreeReader,
    at: PositionId,
    inputs: &[NodeId],
) -> Result<Option<Refusal>, RowError> {
    if let Some(refusal) = path::hidden(rows, at)? {
        return Ok(Some(refusal));
    }
    for input in rows.nodes(inputs)? {
        if let Some(refusal) = path::hidden(rows, input.node.position)? {
            return Ok(Some(refusal));
        }
    }
    Ok(None)
}
