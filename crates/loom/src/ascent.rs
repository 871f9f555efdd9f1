//! The way up from a position, read page by page.

use std::vec::IntoIter;

use crate::id::PositionId;
use crate::path::is_ancestor;
use crate::position::Position;
use crate::reader::{AnswerRow, Order, RowError, TreeReader};

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

/// The first nodes that are of a generation, of a position and all above it, upwards. Those near are found by walking;
/// behind them the answers of the tree are looked through, so that a long path that people wrote costs nothing.
pub struct Answers<'a> {
    rows: &'a dyn TreeReader,
    from: PositionId,
    near: std::iter::Take<Ascent<'a>>,
    /// Behind this node, or the newest of the tree if none, it goes on; nowhere once the top is reached.
    before: Option<Option<Order>>,
    page: IntoIter<AnswerRow>,
}

impl<'a> Answers<'a> {
    pub fn new(rows: &'a dyn TreeReader, from: PositionId) -> Self {
        let near = Ascent::new(rows, from).take(FIRST_PAGE);
        Self { rows, from, near, before: Some(None), page: Vec::new().into_iter() }
    }

    fn find_near(&mut self) -> Result<Option<AnswerRow>, RowError> {
        for position in self.near.by_ref() {
            let position = position?;
            let id = position.id.original();
            let row = self.rows.node(id)?.ok_or_else(|| RowError::missing("node", id))?;
            self.before = position.parent.map(|_| Some((row.seq, row.place)));
            if let Some(answer) = AnswerRow::of(&row) {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    fn find_far(&mut self) -> Result<Option<AnswerRow>, RowError> {
        loop {
            for answer in self.page.by_ref() {
                if is_ancestor(self.rows, answer.node.as_position(), self.from)? {
                    return Ok(Some(answer));
                }
            }
            let Some(before) = self.before else { return Ok(None) };
            let page = self.rows.answers(before, FIRST_PAGE)?;
            self.before = page.last().map(|last| Some(last.order));
            self.page = page.into_iter();
        }
    }
}

impl Iterator for Answers<'_> {
    type Item = Result<AnswerRow, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = match self.find_near() {
            Ok(None) => self.find_far(),
            found => found,
        };
        found.transpose()
    }
}
