//! Chat fine-tuning JSONL: one line `{"messages":[{"role":…,"content":…}]}` for the path of a view.
//!
//! Only what was said goes in: text by role. Tool calls and their results are left out, because the shapes
//! trainers expect differ. A document has no roles; it is written as one `{"text":…}` line.

use std::io::Write;

use loom::{Mode, Role, TreeReader, ViewName};
use serde::Serialize;

use crate::ExportError;
use crate::passages::Passages;

#[derive(Serialize)]
struct Message<'a> {
    role: Role,
    content: &'a str,
}

/// Writes the line of a view's path; nothing where the path says nothing.
///
/// # Errors
/// [`ExportError`] when the tree cannot be read or the line not written.
pub fn export(rows: &dyn TreeReader, view: &ViewName, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut any = false;
    let dialogue = rows.tree()?.mode == Mode::Dialogue;
    for passage in Passages::new(rows, view)? {
        let passage = passage?;
        if passage.text.is_empty() {
            continue;
        }
        if !dialogue {
            out.write_all(if any { b"" } else { b"{\"text\":\"" })?;
            // A JSON string is the concatenation of its parts' escapes.
            let escaped = serde_json::to_string(&passage.text)?;
            out.write_all(&escaped.as_bytes()[1..escaped.len() - 1])?;
            any = true;
            continue;
        }
        let Some(role) = passage.row.node.role.filter(|role| *role != Role::Tool) else { continue };
        out.write_all(if any { b"," } else { b"{\"messages\":[" })?;
        serde_json::to_writer(&mut *out, &Message { role, content: &passage.text })?;
        any = true;
    }
    if any {
        out.write_all(if dialogue { b"]}\n" } else { b"\"}\n" })?;
    }
    out.flush()?;
    Ok(())
}
