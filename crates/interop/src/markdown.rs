//! Markdown: the path of a view, with remote pictures as links.
//!
//! A document is written as it renders; a dialogue gets its title, a heading for each turn, and the calls of an answer as
//! code. A reader's
//! program must not fetch anything because it shows the file (spec: security §10), so pictures from elsewhere
//! are turned into links ([`images`]).

pub mod images;

use std::io::Write;

use loom::{Mode, TreeReader, ViewName};

use crate::ExportError;
use crate::passages::{Passages, call_lines, title};
use crate::plain::speaker;
use images::{ImageLinks, RemoteLabels};

/// Writes a view's path as Markdown. Reads the path twice: where a picture points may be said far below it.
///
/// # Errors
/// [`ExportError`] when the tree cannot be read or the text not written.
pub fn export(rows: &dyn TreeReader, view: &ViewName, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut labels = RemoteLabels::default();
    each_piece(rows, view, |piece| {
        labels.push(piece);
        Ok(())
    })?;
    let mut links = ImageLinks::new(out, labels.finish());
    each_piece(rows, view, |piece| links.push(piece))?;
    links.finish()?;
    Ok(())
}

/// The document, piece by piece.
fn each_piece(
    rows: &dyn TreeReader,
    view: &ViewName,
    mut each: impl FnMut(&str) -> std::io::Result<()>,
) -> Result<(), ExportError> {
    let dialogue = rows.tree()?.mode == Mode::Dialogue;
    let title = title(rows)?;
    if dialogue && !title.is_empty() {
        each(&format!("# {}\n\n", text::terminal::one_line(&title)))?;
    }
    for passage in Passages::new(rows, view)? {
        let passage = passage?;
        if !dialogue {
            each(&passage.text)?;
            continue;
        }
        let calls = call_lines(&passage);
        if passage.text.is_empty() && calls.is_empty() {
            continue;
        }
        each(&format!("### {}\n\n", speaker(rows, &passage.row.node)?))?;
        if !passage.text.is_empty() {
            each(&passage.text)?;
            each("\n\n")?;
        }
        for line in &calls {
            each(&format!("    {line}\n"))?;
        }
        if !calls.is_empty() {
            each("\n")?;
        }
    }
    Ok(())
}
