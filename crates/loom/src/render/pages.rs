//! The path of a view, a page at a time.
//!
//! Rows that are damaged may lead into another branch, whose text would be as easy to read. So each passage has to
//! follow the one above it, in a page and from page to page.

use std::ops::RangeInclusive;

use super::{Passage, ending_at, window};
use crate::cell::CellKey;
use crate::id::ViewName;
use crate::path::{ViewOverrides, checked_ancestor, follows, is_ancestor};
use crate::position::Position;
use crate::reader::{RowError, TreeReader};

/// Passages that are read at a time.
const PAGE: u32 = 256;

/// Where the window of a view starts, as it was moved there; the top, if it was not, or to a place that is not on the path.
///
/// # Errors
/// As the rows say.
pub fn window_start(
    rows: &dyn TreeReader,
    view: &ViewName,
    path: &ViewOverrides,
) -> Result<Position, RowError> {
    let place = rows.cell(&CellKey::WindowStart { view: view.clone() })?.value.as_place();
    let start = place.map(|place| rows.position(place.position)).transpose()?.flatten();
    match start {
        Some(start) if start.depth <= path.tip.depth && is_ancestor(rows, start.id, path.tip.id)? => {
            Ok(start)
        }
        _ => checked_ancestor(rows, path.tip.clone(), 0),
    }
}

/// Looks at the passages of a view's window from the newest to its start, a page at a time, until one is what is looked
/// for.
///
/// # Errors
/// As [`Pages::read`].
pub fn find_in_window<T>(
    rows: &dyn TreeReader,
    view: &ViewName,
    path: &ViewOverrides,
    mut look: impl FnMut(&Passage) -> Option<T>,
) -> Result<Option<T>, RowError> {
    let top = window_start(rows, view, path)?.depth;
    let (mut pages, mut next) = (Pages::default(), Some(path.tip.depth));
    while let Some(to) = next {
        let page = pages.read(rows, view, path, top.max(to.saturating_sub(PAGE - 1))..=to)?;
        if let Some(found) = page.iter().rev().find_map(&mut look) {
            return Ok(Some(found));
        }
        next = to.checked_sub(PAGE).filter(|next| *next >= top);
    }
    Ok(None)
}

/// Pages of one path, read upwards or downwards without a gap.
#[derive(Debug, Default)]
pub struct Pages {
    /// The first and the last position of the page before.
    before: Option<(Position, Position)>,
}

impl Pages {
    /// The passages between two depths, both included, from the top. Costs as many reads as passages, and where the
    /// page stands further down than the one before, the way to it.
    ///
    /// # Errors
    /// [`RowError::Damaged`] when they do not join the page before, or do not begin where they should.
    pub fn read(
        &mut self,
        rows: &dyn TreeReader,
        view: &ViewName,
        path: &ViewOverrides,
        depths: RangeInclusive<u32>,
    ) -> Result<Vec<Passage>, RowError> {
        let (from, to) = depths.into_inner();
        let limit = to.saturating_sub(from) as usize + 1;
        let below = self.before.take();
        let parent = below.as_ref().filter(|(first, _)| first.depth.checked_sub(1) == Some(to));
        let page = match parent.and_then(|(first, _)| first.parent) {
            Some(parent) => ending_at(rows, view, path, parent, limit)?,
            None => window(rows, view, path, Some(to), limit)?,
        };
        let ends = page.first().zip(page.last());
        let Some((first, last)) = ends.map(|(first, last)| (&first.position, &last.position)) else {
            return Err(RowError::damaged("position", path.tip.id));
        };
        if (first.depth, last.depth) != (from, to) || (from == 0) != first.parent.is_none() {
            return Err(RowError::damaged("position", first.id));
        }
        page.windows(2).try_for_each(|pair| follows(&pair[0].position, &pair[1].position))?;
        if let Some((top, bottom)) = &below {
            if last.depth < top.depth { follows(last, top) } else { follows(bottom, first) }?;
        }
        self.before = Some((first.clone(), last.clone()));
        Ok(page)
    }
}
