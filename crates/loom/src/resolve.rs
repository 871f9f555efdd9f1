//! Which version of a position a view shows (spec: loom §3).
//!
//! The version the view selected, else the original; if that is pruned, the newest visible version.
//! Versions made through another view are offered, never switched to.

use crate::cell::{CellKey, OpTarget};
use crate::id::{NodeId, PositionId, ViewName};
use crate::reader::{Order, RowError, TreeReader};

/// The version `view` shows at `position`.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn shown(rows: &dyn TreeReader, view: &ViewName, position: PositionId) -> Result<NodeId, RowError> {
    let selected = rows.cell(&CellKey::Selected { view: view.clone(), position })?.value.as_node();
    visible_or_newest(rows, position, selected.unwrap_or(position.original()))
}

/// `wanted`, or the newest visible version if it is pruned.
///
/// # Errors
/// [`RowError`] when the store fails.
pub(crate) fn visible_or_newest(
    rows: &dyn TreeReader,
    position: PositionId,
    wanted: NodeId,
) -> Result<NodeId, RowError> {
    if !is_pruned(rows, wanted)? {
        return Ok(wanted);
    }
    Ok(newest_visible(rows, position, None)?.unwrap_or(wanted))
}

/// The newest version at a position that is not pruned, other than `except`.
///
/// # Errors
/// [`RowError`] when the store fails.
pub(crate) fn newest_visible(
    rows: &dyn TreeReader,
    position: PositionId,
    except: Option<NodeId>,
) -> Result<Option<NodeId>, RowError> {
    let mut before: Option<Order> = None;
    loop {
        let page = rows.versions(position, before, 16)?;
        for row in &page {
            if Some(row.node.id) != except && !is_pruned(rows, row.node.id)? {
                return Ok(Some(row.node.id));
            }
        }
        match page.last() {
            Some(last) if page.len() == 16 => before = Some((last.seq, last.place)),
            _ => return Ok(None),
        }
    }
}

fn is_pruned(rows: &dyn TreeReader, version: NodeId) -> Result<bool, RowError> {
    Ok(rows.cell(&CellKey::Pruned { target: OpTarget::Version(version) })?.value.is_set())
}
