//! Plain text: the path of a view.
//!
//! A document is written byte for byte as it renders. A dialogue gets a line with the speaker before each
//! turn, because its turns run together without one, and the calls of an answer below its text.

use std::io::Write;

use loom::{Author, Mode, Node, Role, RowError, TreeReader, ViewName, source};

use crate::ExportError;
use crate::passages::{Passages, call_lines};

/// Writes the text of a view's path.
///
/// # Errors
/// [`ExportError`] when the tree cannot be read or the text not written.
pub fn export(rows: &dyn TreeReader, view: &ViewName, out: &mut dyn Write) -> Result<(), ExportError> {
    let dialogue = rows.tree()?.mode == Mode::Dialogue;
    let mut first = true;
    for passage in Passages::new(rows, view)? {
        let passage = passage?;
        let calls = if dialogue { call_lines(&passage) } else { Vec::new() };
        if dialogue {
            if passage.text.is_empty() && calls.is_empty() {
                continue;
            }
            let gap = if first { "" } else { "\n\n" };
            writeln!(out, "{gap}{}:", speaker(rows, &passage.row.node)?)?;
        }
        out.write_all(passage.text.as_bytes())?;
        let gap = if passage.text.is_empty() || calls.is_empty() { "" } else { "\n" };
        write!(out, "{gap}{}", calls.join("\n"))?;
        first = false;
    }
    if dialogue && !first {
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}

/// Speaker of a turn: the role, and the author where it says more, on one line.
pub(crate) fn speaker(rows: &dyn TreeReader, node: &Node) -> Result<String, RowError> {
    let author = &node.author;
    let label = source::label(author.kind, &author.id, source::model_of(rows, node)?.as_deref());
    let name = text::terminal::one_line(&label);
    Ok(match node.role {
        None => name.into_owned(),
        Some(Role::System) => "system".to_owned(),
        Some(Role::User) if author.id == Author::OWNER => "user".to_owned(),
        Some(Role::User) => format!("user ({name})"),
        Some(Role::Assistant) => format!("assistant ({name})"),
        Some(Role::Tool) => format!("tool ({name})"),
    })
}
