//! Drift: model text whose basis has changed since (spec: loom §3 *Drift*).

use crate::id::{PositionId, Seq};
use crate::node::NodeRow;
use crate::path::{Keeps, ViewOverrides};
use crate::position::Position;
use crate::reader::{RowError, TreeReader};

/// The newest keep that covers a position, on the path or off it.
fn newest_keep(rows: &dyn TreeReader, path: &ViewOverrides, at: PositionId) -> Result<Option<Seq>, RowError> {
    if path.is_above(rows, at, path.tip.id)? {
        return path.keeps.covering(rows, path, at);
    }
    Keeps::of(&rows.choices(Some(&path.view), at)?).covering(rows, path, at)
}

/// Whether the model text at a position of the path followed from something else than what stands above it
/// now: the digest of a run of its window differs, and a choice in that run is newer than the keep that
/// covers it.
///
/// Reads the generation; the positions of its runs only where `path` has not met them yet.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn is_drifted(
    rows: &dyn TreeReader,
    path: &ViewOverrides,
    at: &Position,
    row: &NodeRow,
) -> Result<bool, RowError> {
    let Some(generation) = row.node.generation else { return Ok(false) };
    let Some(generation) = rows.generation(generation)? else { return Ok(false) };
    path.meet(at);
    let mut covered = None;
    for run in &generation.runs {
        let (from, to) = (path.position(rows, run.from)?, path.position(rows, run.to)?);
        let on_path = to.depth < at.depth && path.is_above(rows, to.id, path.tip.id)?;
        if !on_path || path.digest(&from, &to) == run.digest {
            continue;
        }
        let kept = match covered {
            Some(kept) => kept,
            None => *covered.insert(newest_keep(rows, path, at.id)?),
        };
        let newest = path.between(from.depth, to.depth).map(|exception| exception.chosen).max();
        if newest.is_some_and(|newest| kept.is_none_or(|kept| newest > kept)) {
            return Ok(true);
        }
    }
    Ok(false)
}
