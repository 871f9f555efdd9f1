//! HTML: one self-contained file, authors marked, branches and versions to be opened.
//!
//! Nothing in it is fetched and nothing runs: no script, no picture, no font; a content security policy in the
//! file says so too, and names the style by its hash. Everything from the tree is escaped. Pictures of Markdown
//! stay text, addresses become links (spec: security §10). Authors are told apart by colour, and without it by
//! the form of an underline and a title.
//!
//! Written as it is read: memory grows with the branches that wait to be written, by their ids.
//! Pruned branches and versions, passages that are left out, remarks and drafts are not in it.

mod author_styles;
mod escape;
mod tree;

use std::io::Write;

use data_encoding::BASE64;
use loom::{Digest, Mode, TreeReader, ViewName};

use crate::ExportError;
use crate::passages::{Passages, title};
use escape::Escaped;

/// The look of the file: paper and ink, light and dark.
const STYLE: &str = include_str!("html/style.css");

/// Writes a view's path, with what branches off it.
///
/// # Errors
/// [`ExportError`] when the tree cannot be read or the file not written.
pub fn export(rows: &dyn TreeReader, view: &ViewName, out: &mut dyn Write) -> Result<(), ExportError> {
    let title = title(rows)?;
    let title = text::terminal::one_line(&title);
    let shown = if title.is_empty() { "Untitled" } else { &title };
    let dialogue = rows.tree()?.mode == Mode::Dialogue;
    let style = BASE64.encode(&Digest::of(STYLE.as_bytes()).0);
    write!(
        out,
        "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{style}'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header><h1 dir=\"auto\">{}</h1></header>\n\
         <main class=\"{}\" dir=\"auto\">\n",
        Escaped(shown),
        Escaped(shown),
        if dialogue { "dialogue" } else { "document" },
    )?;
    let mut tree = tree::Tree::new(rows, view, out, dialogue)?;
    let mut last = rows.tree()?.root;
    for passage in Passages::new(rows, view)? {
        let passage = passage?;
        tree.passage(&passage)?;
        last = passage.position.id;
    }
    tree.below(last)?;
    let styles = tree.finish();
    out.write_all(b"</main>\n<footer>\n")?;
    styles.legend(out)?;
    out.write_all(b"</footer>\n</body>\n</html>\n")?;
    out.flush()?;
    Ok(())
}
