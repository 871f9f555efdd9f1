//! The path of a view, a page at a time.
//!
//! Rows that are damaged may lead into another branch, whose text would be as easy to read. So each passage has to
//! follow the one above it, in a page and from page to page.

use std::ops::RangeInclusive;

use super::{Passage, ending_at, window};
use crate::id::ViewName;
use crate::path::{ViewOverrides, follows};
use crate::position::Position;
use crate::reader::{RowError, TreeReader};

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
