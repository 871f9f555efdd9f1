//! Whether a request may still be sent as it was put together: what it holds may be withdrawn while it waits.

use async_trait::async_trait;
use loom::path::{self, ViewOverrides};
use loom::plan::Refusal;
use loom::{
    CellKey, GenerationPlace, NodeId, OpTarget, OriginRole, PositionId, RowError, Run, TreeId, TreeReader,
};
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
    /// The runs of the path that it holds.
    pub(crate) runs: &'a [Run],
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
        let withdrawn = withdrawn(self.runtime, self.who, (self.tree, place), self.runs, self.inputs).await?;
        Ok(withdrawn.is_none())
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

/// Why a request that was put together is not sent: what it stands below, what it holds, or what it was given beside the
/// path, was pruned since.
///
/// # Errors
/// When the store fails.
pub(crate) async fn withdrawn(
    runtime: &Runtime,
    who: &Principal,
    (tree, place): (TreeId, &GenerationPlace),
    runs: &[Run],
    inputs: &[(OriginRole, NodeId)],
) -> Result<Option<Refusal>, AgentError> {
    let (place, runs) = (place.clone(), runs.to_vec());
    let inputs: Vec<NodeId> = inputs.iter().map(|(_, node)| *node).collect();
    let refusal = move |rows: &dyn TreeReader| match hidden(rows, place.parent, &inputs)? {
        None => pruned_version(rows, &place, &runs),
        hidden => Ok(hidden),
    };
    runtime.read(who, tree, refusal).await
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
        let version = OpTarget::Version(input.node.id);
        if rows.cell(&CellKey::Pruned { target: version })?.value.is_set() {
            return Ok(Some(Refusal::Pruned(version)));
        }
        if let Some(refusal) = path::hidden(rows, input.node.position)? {
            return Ok(Some(refusal));
        }
    }
    Ok(None)
}

/// Why runs of a path are not sent again: a version at one of their positions is pruned, and they show something else by now.
fn pruned_version(
    rows: &dyn TreeReader,
    place: &GenerationPlace,
    runs: &[Run],
) -> Result<Option<Refusal>, RowError> {
    let versions = rows.choices(None, place.parent)?.into_iter().filter_map(|(key, cell)| match key {
        CellKey::Pruned { target: OpTarget::Version(node) } if cell.value.is_set() => Some(node),
        _ => None,
    });
    let versions: Vec<NodeId> = versions.collect();
    if versions.is_empty() {
        return Ok(None);
    }
    let now = ViewOverrides::read(rows, &place.view, place.parent)?;
    for version in rows.nodes(&versions)? {
        let at = path::position(rows, version.node.position)?;
        for run in runs {
            let (from, to) = (path::position(rows, run.from)?, path::position(rows, run.to)?);
            if (from.depth..=to.depth).contains(&at.depth) && now.digest(&from, &to) != run.digest {
                return Ok(Some(Refusal::Pruned(OpTarget::Version(version.node.id))));
            }
        }
    }
    Ok(None)
}
