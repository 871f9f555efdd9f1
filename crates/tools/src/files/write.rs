//! `write`: a whole file.

use std::borrow::Cow;

use loom::Digest;
use policy::{PathAccess, PathUse};
use schemars::JsonSchema;
use serde::Deserialize;

use super::marks::ShownFile;
use super::place;
use crate::changes::{FileEdit, apply, changed_since, difference, found};
use crate::edits::BOM;
use crate::tool::{CallScope, ToolScope};

pub(super) const DESCRIPTION: &str = "Write a whole file, new or in the place of one that was read before. Folders on the \
                                      way are made. To change a part of a file use edit.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Path in the workspace.
    path: String,
    /// All of its text.
    content: String,
}

pub(super) fn paths(scope: &ToolScope, asked: &Arguments) -> Vec<PathUse> {
    scope.path_use(&asked.path, PathAccess::Write).into_iter().collect()
}

fn planned<'s>(
    scope: &'s ToolScope,
    asked: &Arguments,
    read: &mut Vec<Digest>,
) -> Result<FileEdit<'s>, String> {
    let place = place(scope, &asked.path)?;
    let before = found(place.root, &place.path)?;
    if let Some(before) = &before {
        match scope.seen.digest(place.root, &place.path) {
            None => {
                return Err(format!("{} is there already and was not read yet: read it first", asked.path));
            }
            Some(seen) if seen != before.digest => {
                return Err(changed_since(scope, (place.root, &place.path), before, read));
            }
            Some(_) => {}
        }
    }
    let says = before.as_ref().map(|before| String::from_utf8_lossy(&before.bytes)).unwrap_or_default();
    let content = as_the_file_has_it(&says, &asked.content);
    let text = ShownFile::new(scope, &says).with_secrets(&content);
    let after = Some(text.map_err(|why| format!("{}: {why}", asked.path))?.into_bytes());
    Ok(FileEdit { root: place.root, path: place.path, before, after, mode: None })
}

/// A text with the byte order mark and the CR LF of a file, which nobody sees who reads it.
fn as_the_file_has_it<'t>(before: &str, content: &'t str) -> Cow<'t, str> {
    let mut text = Cow::Borrowed(content);
    let ends_in = |end: &str| before.matches(end).count();
    if ends_in("\n") > 0 && ends_in("\n") == ends_in("\r\n") && !content.contains('\r') {
        text = content.replace('\n', "\r\n").into();
    }
    if before.starts_with(BOM) && !content.starts_with(BOM) {
        text.to_mut().insert(0, BOM);
    }
    text
}

pub(super) fn preview(scope: &ToolScope, asked: &Arguments) -> Result<String, String> {
    Ok(difference(scope, &[planned(scope, asked, &mut Vec::new())?]))
}

pub(super) fn run(call: &CallScope<'_>, asked: &Arguments) -> Result<String, String> {
    let mut read = Vec::new();
    // What became of a file since is quoted.
    let edit = planned(call.scope, asked, &mut read).inspect_err(|_| call.has_read(read))?;
    let (is_new, counts) = (edit.before.is_none(), edit.counts());
    apply(call, &[edit])?;
    let did = if is_new { "made" } else { "wrote" };
    Ok(format!("{did} {} ({counts})", asked.path))
}
