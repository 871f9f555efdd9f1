//! The path of a view, a page at a time: what every export that people read is written from.
//!
//! Drafts are not in it: an export shows what was committed. What is left out of the rendering is not in it
//! either.

use std::collections::VecDeque;

use loom::path::ViewOverrides;
use loom::render::{self, Pages, Passage};
use loom::{Block, CellKey, RowError, TreeReader, ViewName};

/// Positions read at a time.
const PAGE: u32 = 64;

/// The passages of a view from the top, genesis left out.
pub struct Passages<'a> {
    rows: &'a dyn TreeReader,
    view: &'a ViewName,
    path: ViewOverrides,
    pages: Pages,
    /// The depth at which the next page begins.
    next: u32,
    held: VecDeque<Passage>,
}

impl<'a> Passages<'a> {
    /// Passages of a view; they are read a page at a time.
    ///
    /// # Errors
    /// [`RowError`] when the store fails or there is no such view.
    pub fn new(rows: &'a dyn TreeReader, view: &'a ViewName) -> Result<Self, RowError> {
        let path = ViewOverrides::read(rows, view, render::tip(rows, view)?)?;
        Ok(Self { rows, view, path, pages: Pages::default(), next: 0, held: VecDeque::new() })
    }

    fn fill(&mut self) -> Result<(), RowError> {
        while self.held.is_empty() && self.next <= self.path.tip.depth {
            let last = self.path.tip.depth.min(self.next.saturating_add(PAGE - 1));
            let page = self.pages.read(self.rows, self.view, &self.path, self.next..=last)?;
            self.next = last + 1;
            let shown = page.into_iter().filter(|passage| passage.position.depth > 0 && !passage.excluded);
            self.held.extend(shown);
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

/// Calls of tools that a passage holds, as notices draw them; none of one without.
pub(crate) fn call_lines(passage: &Passage) -> Vec<String> {
    let calls = passage.row.node.content.iter().filter_map(|block| match block {
        Block::ToolCall { name, arguments, .. } => Some(loom::call_lines::call_lines(name, arguments)),
        _ => None,
    });
    calls.flatten().collect()
}

/// The tree's title; empty if it has none.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn title(rows: &dyn TreeReader) -> Result<String, RowError> {
    Ok(rows.cell(&CellKey::Title)?.value.as_text().unwrap_or_default().to_owned())
}
