//! The way up from a position, read page by page.

use std::vec::IntoIter;

use crate::id::PositionId;
use crate::position::Position;
use crate::reader::{RowError, TreeReader};

/// Positions of the first page: most of what is looked for stands near.
const FIRST_PAGE: usize = 64;
/// Positions of a page at most.
const LARGEST_PAGE: usize = 4_096;

/// A position and all above it, upwards; reads no further than it is asked.
pub struct Ascent<'a> {
    rows: &'a dyn TreeReader,
    page: IntoIter<Position>,
    next: Option<PositionId>,
    size: usize,
}

impl<'a> Ascent<'a> {
    pub fn new(rows: &'a dyn TreeReader, from: PositionId) -> Self {
        Self { rows, page: Vec::new().into_iter(), next: Some(from), size: FIRST_PAGE }
    }

    /// The way up on which answers are looked for: none in a tree in which no model was asked, as in an imported one.
    pub fn to_answers(rows: &'a dyn TreeReader, from: PositionId) -> Result<Self, RowError> {
        let was_asked = !rows.generations(None, 1)?.is_empty();
        Ok(Self { next: was_asked.then_some(from), ..Self::new(rows, from) })
    }
}

impl Iterator for Ascent<'_> {
    type Item = Result<Position, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(position) = self.page.next() {
            return Some(Ok(position));
        }
        // After an error nothing more comes.
        let page = match self.rows.upwards(self.next.take()?, self.size) {
            Ok(page) => page,
            Err(error) => return Some(Err(error)),
        };
        self.next = page.last().and_then(|last| last.parent);
        self.size = (self.size * 4).min(LARGEST_PAGE);
        self.page = page.into_iter();
        self.page.next().map(Ok)
    }
}
