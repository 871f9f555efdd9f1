//! `edit`: a passage of a file becomes another one.

use loom::Digest;
use policy::{PathAccess, PathUse};
use schemars::JsonSchema;
use serde::Deserialize;

use super::marks::ShownFile;
use super::place;
use crate::changes::{FileEdit, apply, difference, found, told_miss};
use crate::edits::{MissReason, replace};
use crate::tool::{CallScope, ToolScope};

pub(super) const DESCRIPTION: &str = "Replace a passage of a file. The old text must stand there exactly, and once unless \
                                      all are meant.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Path in the workspace.
    path: String,
    /// The text as it stands, without line numbers.
    old: String,
    /// The text in its place.
    new: String,
    /// Replace it wherever it stands.
    #[serde(default)]
    replace_all: bool,
}

pub(super) fn paths(scope: &ToolScope, asked: &Arguments) -> Vec<PathUse> {
    scope.path_use(&asked.path, PathAccess::Write).into_iter().collect()
}

/// The edit, how many places it changes, and the first line of them.
fn planned<'s>(
    scope: &'s ToolScope,
    asked: &Arguments,
    read: &mut Vec<Digest>,
) -> Result<(FileEdit<'s>, usize, usize), String> {
    let place = place(scope, &asked.path)?;
    let before = found(place.root, &place.path)?.ok_or_else(|| format!("{} is not there", asked.path))?;
    read.push(before.digest);
    let text = std::str::from_utf8(&before.bytes)
        .map_err(|_| format!("{} is no text in UTF-8: it is not edited", asked.path))?;
    let file = ShownFile::new(scope, text);
    let replaced = |old: &str| replace(file.shown(), old, &asked.new, asked.replace_all);
    // A secret that is known otherwise is named by its mark.
    let done = replaced(&asked.old).or_else(|miss| match miss.reason {
        MissReason::NotFound(_) => replaced(&scope.masker.mask_entering(&asked.old).text).map_err(|_| miss),
        _ => Err(miss),
    });
    let done = done
        .map_err(|miss| format!("{}: {}", asked.path, told_miss(scope, (place.root, &place.path), &miss)))?;
    let after = file.with_secrets(&done.text).map_err(|why| format!("{}: {why}", asked.path))?;
    let after = Some(after.into_bytes());
    let edit = FileEdit { root: place.root, path: place.path, before: Some(before), after, mode: None };
    Ok((edit, done.count, done.line))
}

pub(super) fn preview(scope: &ToolScope, asked: &Arguments) -> Result<String, String> {
    planned(scope, asked, &mut Vec::new()).map(|(edit, ..)| difference(scope, &[edit]))
}

pub(super) fn run(call: &CallScope<'_>, asked: &Arguments) -> Result<String, String> {
    let mut read = Vec::new();
    // A miss quotes what stands there.
    let planned = planned(call.scope, asked, &mut read).inspect_err(|_| call.has_read(read));
    let (edit, count, line) = planned?;
    let counts = edit.counts();
    apply(call, &[edit])?;
    let places = if count == 1 { "1 place".to_owned() } else { format!("{count} places") };
    Ok(format!("changed {places} of {} ({counts}), the first in line {line}", asked.path))
}
