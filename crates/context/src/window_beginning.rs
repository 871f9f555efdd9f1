//! Where the window of a document begins, for its owner.

use loom::path::ViewOverrides;
use loom::render::Pages;
use loom::{RowError, TreeReader, ViewName};

/// Most characters that name where a window begins.
const FIRST_WORDS: usize = 40;

/// The first words of a text, or its heading, in one line.
pub fn first_words(text: &str) -> String {
    let line = text.trim_start().lines().next().unwrap_or_default().trim_start_matches('#').trim();
    if line.chars().count() <= FIRST_WORDS {
        return line.to_owned();
    }
    let end = line.char_indices().nth(FIRST_WORDS).map_or(line.len(), |(at, _)| at);
    let cut = line[..end].rfind(char::is_whitespace).unwrap_or_else(|| text::grapheme::floor(line, end));
    format!("{}…", line[..cut].trim_end())
}

/// Where the window of a document begins, in words its owner knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowBeginning {
    /// The first words that are sent.
    pub words: String,
    /// The heading they stand below, if it is not sent and not far above.
    pub chapter: Option<String>,
    /// Whether the request before began elsewhere: its owner is told.
    pub is_new: bool,
}

impl WindowBeginning {
    /// That of `sent`, which begins in the passage at `depth` behind `cut_off`.
    ///
    /// # Errors
    /// When the passages above cannot be read.
    pub fn find(
        rows: &dyn TreeReader,
        view: &ViewName,
        path: &ViewOverrides,
        depth: u32,
        cut_off: &str,
        sent: &str,
    ) -> Result<Self, RowError> {
        let first_line = sent.trim_start().lines().next().unwrap_or_default();
        let chapter = match text::passages::first_heading(first_line) {
            Some(_) => None,
            None => match text::passages::last_heading(cut_off) {
                Some(heading) => Some(heading.to_owned()),
                None => heading_above(rows, view, path, depth)?,
            },
        };
        let chapter = chapter.map(|heading| first_words(&heading));
        Ok(Self { words: first_words(sent), chapter, is_new: false })
    }
}

/// Most passages above a window among which the heading of its chapter is looked for.
const CHAPTER_WITHIN: u32 = 128;
/// Passages of them read at a time.
const PAGE: u32 = 64;

/// The nearest heading above the passage at `depth`.
fn heading_above(
    rows: &dyn TreeReader,
    view: &ViewName,
    path: &ViewOverrides,
    depth: u32,
) -> Result<Option<String>, RowError> {
    let (mut pages, lowest) = (Pages::default(), depth.saturating_sub(CHAPTER_WITHIN).max(1));
    let mut below = depth;
    while below > lowest {
        let from = below.saturating_sub(PAGE).max(lowest);
        let page = pages.read(rows, view, path, from..=below - 1)?;
        let heading = page.iter().rev().filter(|passage| !passage.excluded);
        if let Some(heading) =
            heading.filter_map(|passage| text::passages::last_heading(&passage.text)).next()
        {
            return Ok(Some(heading.to_owned()));
        }
        below = from;
    }
    Ok(None)
}
