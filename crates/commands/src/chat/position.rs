//! Where a conversation stands in its tree, and what was asked last on the way there.

use agent::{LOOK_UP_REQUEST, stored};
use context::{Manifest, Zone};
use loom::{Digest, NodeId, Position, PositionId, Role, RowError, TreeReader, ViewName, render, resolve};
use model::TokenUsage;

/// Positions looked at upwards for the last thing the owner said.
const LOOK_UP_SAID: usize = 256;

pub(crate) struct ViewPosition {
    /// The node that is shown there.
    pub(crate) node: NodeId,
    pub(crate) short_id: String,
    /// The last request on the path.
    pub(crate) last: Option<Last>,
}

/// A request that was sent.
pub(crate) struct Last {
    pub(crate) digest: Digest,
    pub(crate) manifest: Manifest,
    pub(crate) usage: Option<TokenUsage>,
}

impl Last {
    /// Whether the tokens are what a server reported.
    pub(crate) fn is_measured(&self) -> bool {
        self.usage.is_some()
    }

    /// Tokens of the request and its answer: reported where a server did, else estimated for the request.
    pub(crate) fn used(&self) -> u64 {
        let reported = self.usage.map(|usage| usage.input().saturating_add(usage.output));
        reported.unwrap_or(self.manifest.tokens)
    }

    /// The used share of the window.
    pub(crate) fn share(&self) -> f64 {
        self.used() as f64 / self.manifest.budget.window.max(1) as f64
    }

    /// The zone of that share.
    pub(crate) fn zone(&self) -> Zone {
        Zone::of(self.share())
    }
}

/// Where a view of a tree stands.
pub(crate) fn view_position(rows: &dyn TreeReader, view: &ViewName) -> Result<ViewPosition, RowError> {
    let at = render::tip(rows, view)?;
    let node = resolve::shown(rows, view, at)?;
    let short_id = rows.node(node)?.map(|row| row.short_id).unwrap_or_default();
    Ok(ViewPosition { node, short_id, last: last(rows, at)? })
}

fn last(rows: &dyn TreeReader, at: PositionId) -> Result<Option<Last>, RowError> {
    for position in rows.upwards(at, LOOK_UP_REQUEST)? {
        if let Some(last) = request(rows, position.id)? {
            return Ok(Some(last));
        }
    }
    Ok(None)
}

/// The request that was answered at a position.
fn request(rows: &dyn TreeReader, at: PositionId) -> Result<Option<Last>, RowError> {
    let original = at.original();
    let Some(generation) = rows.node(original)?.and_then(|row| row.node.generation) else { return Ok(None) };
    let Some(generation) = rows.generation(generation)? else { return Ok(None) };
    let Some(manifest) = stored::manifest(rows, generation.manifest)? else { return Ok(None) };
    let usage = stored::response(rows, original)?.and_then(|said| said.usage());
    Ok(Some(Last { digest: generation.manifest, manifest, usage }))
}

/// The model that answered at a position, `PROVIDER/NAME`; none where none did.
pub(crate) fn asked_model(rows: &dyn TreeReader, at: PositionId) -> Result<Option<String>, RowError> {
    let asked = request(rows, at)?.map(|last| last.manifest.model);
    Ok(asked.map(|model| model.full_name()))
}

/// The last requests on the path of a view, the newest first.
pub(crate) fn requests(rows: &dyn TreeReader, view: &ViewName) -> Result<Vec<Last>, RowError> {
    let path = rows.upwards(render::tip(rows, view)?, LOOK_UP_REQUEST)?;
    path.iter().filter_map(|position| request(rows, position.id).transpose()).collect()
}

/// The last thing that was said on the path of a view.
pub(crate) fn said_last(rows: &dyn TreeReader, view: &ViewName) -> Result<Option<PositionId>, RowError> {
    let path = rows.upwards(render::tip(rows, view)?, LOOK_UP_SAID)?;
    Ok(path.iter().find(|position| is_said(position)).map(|position| position.id))
}

/// Whether something was said at a position, and not answered.
pub(crate) fn is_said(position: &Position) -> bool {
    position.role == Some(Role::User)
}
