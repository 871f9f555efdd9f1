//! Where a conversation stands in its tree, and what was asked last on the way there.

use agent::stored;
use context::{Manifest, Zone};
use loom::reader::AnswerRow;
use loom::{
    Answers, Ascent, Digest, NodeId, Position, PositionId, Role, RowError, TreeReader, ViewName, render,
    resolve,
};
use model::TokenUsage;

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
    Ok(ViewPosition { node, short_id, last: requests(rows, at).next().transpose()? })
}

/// The request that was answered at a position.
fn request(rows: &dyn TreeReader, at: PositionId) -> Result<Option<Last>, RowError> {
    let answer = rows.node(at.original())?.as_ref().and_then(AnswerRow::of);
    answer.map_or(Ok(None), |answer| answered(rows, answer))
}

fn answered(rows: &dyn TreeReader, answer: AnswerRow) -> Result<Option<Last>, RowError> {
    let Some(generation) = rows.generation(answer.generation)? else { return Ok(None) };
    let Some(manifest) = stored::manifest(rows, generation.manifest)? else { return Ok(None) };
    let usage = stored::response(rows, answer.node)?.and_then(|said| said.usage());
    Ok(Some(Last { digest: generation.manifest, manifest, usage }))
}

/// The model that answered at a position, `PROVIDER/NAME`; none where none did.
pub(crate) fn asked_model(rows: &dyn TreeReader, at: PositionId) -> Result<Option<String>, RowError> {
    let asked = request(rows, at)?.map(|last| last.manifest.model);
    Ok(asked.map(|model| model.full_name()))
}

/// The requests answered at a position and above it, the newest first; read as far as they are asked for.
pub(crate) fn requests(
    rows: &dyn TreeReader,
    at: PositionId,
) -> impl Iterator<Item = Result<Last, RowError>> {
    Answers::new(rows, at)
        .filter_map(move |answer| answer.and_then(|answer| answered(rows, answer)).transpose())
}

/// Messages that were answered on the path that ends at a position, as far back as `most`. A turn may hold many requests
/// and results.
pub(crate) fn answered_messages(rows: &dyn TreeReader, at: PositionId, most: u32) -> Result<u32, RowError> {
    let (mut found, mut is_answered) = (0, false);
    for position in Ascent::new(rows, at) {
        match position?.role {
            Some(Role::Assistant) => is_answered = true,
            Some(Role::User) if std::mem::take(&mut is_answered) => found += 1,
            _ => {}
        }
        if found == most {
            break;
        }
    }
    Ok(found)
}

/// The last thing that was said on the path of a view.
pub(crate) fn said_last(rows: &dyn TreeReader, view: &ViewName) -> Result<Option<PositionId>, RowError> {
    for position in Ascent::new(rows, render::tip(rows, view)?) {
        let position = position?;
        if is_said(&position) {
            return Ok(Some(position.id));
        }
    }
    Ok(None)
}

/// Whether something was said at a position, and not answered.
pub(crate) fn is_said(position: &Position) -> bool {
    position.role == Some(Role::User)
}
