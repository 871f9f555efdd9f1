//! The path of a view, a page at a time: what every export that people read is written from.
//!
//! Drafts are not in it: an export shows what was committed. What is left out of the rendering is not in it
//! either.

use std::collections::VecDeque;

use loom::path::ViewOverrides;
use loom::render::{self, Passage};
use loom::{CellKey, RowError, TreeReader, ViewName};

/// Positions read at a time.
const PAGE: u32 = 64;

/// The passages of a view from the top, genesis left out.
pub struct Passages<'a> {
    rows: &'a dyn TreeReader,
    view: &'a ViewName,
    path: ViewOverrides,
    next: u32,
    held: VecDeque<Passage>,
}

impl<'a> Passages<'a> {
    /// Those of a view.
    ///
    /// # Errors
    /// [`RowError`] when the store fails or there is no such view.
    pub fn new(rows: &'a dyn TreeReader, view: &'a ViewName) -> Result<Self, RowError> {
        let path = ViewOverrides::read(rows, view, render::tip(rows, view)?)?;
        Ok(Self { rows, view, path, next: 1, held: VecDeque::new() })
    }

    fn fill(&mut self) -> Result<(), RowError> {
        while self.held.is_empty() && self.next <= self.path.tip.depth {
            let last = self.path.tip.depth.min(self.next.saturating_add(PAGE - 1));
            let count = (last - self.next + 1) as usize;
            let page = render::window(self.rows, self.view, &self.path, Some(last), count)?;
            self.next = last + 1;
            self.held.extend(page.into_iter().filter(|passage| !passage.excluded));
        }
        Ok(())
    }
}

impl Iterator for Passages<'_> {
    type Item = Result<Passage, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.fill() {
            Err(error) => Some(Err(error)),
            Ok(()) => self.held.pop_front().map(|mut passage| {
                if passage.pending {
                    passage.text = passage.row.node.text().into_owned();
                    passage.pending = false;
                }
                Ok(passage)
            }),
        }
    }
}

/// The tree's title; empty if it has none.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn title(rows: &dyn TreeReader) -> Result<String, RowError> {
    Ok(rows.cell(&CellKey::Title)?.value.as_text().unwrap_or_default().to_owned())
}
