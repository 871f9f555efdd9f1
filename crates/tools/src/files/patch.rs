//! `patch`: changes of several files, all of them or none.

use loom::Digest;
use policy::{PathAccess, PathUse};
use schemars::JsonSchema;
use serde::Deserialize;

use super::marks::ShownFile;
use super::place;
use crate::changes::{FileEdit, apply, changed_since, difference, found, told_miss};
use crate::edits::{FileAction, FilePatch, Patch};
use crate::tool::{CallScope, ToolScope};

pub(super) const DESCRIPTION: &str = "Apply a patch to one or several files: a unified diff, or the form that begins with \
                                      *** Begin Patch. All of it applies, or nothing is changed.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The patch.
    patch: String,
}

pub(super) fn paths(scope: &ToolScope, asked: &Arguments) -> Vec<PathUse> {
    let named = named(&asked.patch).into_iter();
    named.filter_map(|(path, access)| scope.path_use(&path, access)).collect()
}

/// The paths of a patch, with what it does to them; nothing of one that is none.
pub(super) fn named(patch: &str) -> Vec<(String, PathAccess)> {
    let Ok(patch) = Patch::parse(patch) else { return Vec::new() };
    let of = |file: FilePatch| match file.action {
        FileAction::Add { path } | FileAction::Update { path } => vec![(path, PathAccess::Write)],
        FileAction::Delete { path } => vec![(path, PathAccess::Remove)],
        FileAction::Move { from, to } => vec![(from, PathAccess::Remove), (to, PathAccess::Write)],
    };
    patch.files.into_iter().flat_map(of).collect()
}

/// Edits of a patch, in its order: a path that stands there twice is changed on top of its first change.
struct PatchPlan<'s> {
    scope: &'s ToolScope,
    edits: Vec<FileEdit<'s>>,
    /// Files that a refusal quotes.
    quoted: Vec<Digest>,
}

impl<'s> PatchPlan<'s> {
    /// Takes in what a patch does.
    fn follow(&mut self, patch: &Patch) -> Result<(), String> {
        for file in &patch.files {
            match &file.action {
                FileAction::Add { path } => {
                    if self.text(path)?.is_some() {
                        return Err(format!("{path} is there already: update it, or delete it first"));
                    }
                    let text = self.applied(path, file, "")?;
                    self.set(path, Some(text), executable(None, file.executable))?;
                }
                FileAction::Delete { path } => {
                    // A deletion that names lines names all of them.
                    self.patched(path, file)?;
                    self.set(path, None, None)?;
                }
                FileAction::Update { path } => {
                    let text = self.patched(path, file)?;
                    let mode = executable(self.mode(path)?, file.executable);
                    self.set(path, Some(text), mode)?;
                }
                FileAction::Move { from, to } => {
                    let text = self.patched(from, file)?;
                    if self.text(to)?.is_some() {
                        return Err(format!("{to} is there already: nothing is moved over it"));
                    }
                    let mode = self.mode(from)?;
                    self.set(from, None, None)?;
                    self.set(to, Some(text), executable(mode, file.executable).or(mode))?;
                }
            }
        }
        Ok(())
    }

    fn patched(&mut self, path: &str, file: &FilePatch) -> Result<String, String> {
        let text = self.text(path)?.ok_or_else(|| format!("{path} is not there"))?;
        self.applied(path, file, &text)
    }

    /// What a patch makes of a text, of which it is one as that is shown.
    fn applied(&self, path: &str, file: &FilePatch, text: &str) -> Result<String, String> {
        let before = ShownFile::new(self.scope, text);
        // A secret that is known otherwise is named by its mark.
        let masked = |line: &str| self.scope.masker.mask_entering(line).text.into_owned();
        let applied = file
            .apply(before.shown())
            .or_else(|miss| file.clone().with_old_lines(masked).apply(before.shown()).map_err(|_| miss));
        let applied = applied.map_err(|miss| match place(self.scope, path) {
            Ok(place) => format!("{path}: {}", told_miss(self.scope, (place.root, &place.path), &miss)),
            Err(why) => why,
        })?;
        before.with_secrets(&applied).map_err(|why| format!("{path}: {why}"))
    }

    /// The text of a path as it is by then; none where there is no file.
    fn text(&mut self, path: &str) -> Result<Option<String>, String> {
        let at = self.at(path)?;
        let edit = &self.edits[at];
        let text = edit.after.clone().map(String::from_utf8).transpose();
        text.map_err(|_| format!("{path} is no text in UTF-8: it is not patched"))
    }

    /// The permission bits of a file as they are by then; none of one that is new.
    fn mode(&mut self, path: &str) -> Result<Option<u32>, String> {
        let at = self.at(path)?;
        let edit = &self.edits[at];
        Ok(edit.mode.or(edit.before.as_ref().map(|before| before.mode)))
    }

    fn set(&mut self, path: &str, text: Option<String>, mode: Option<u32>) -> Result<(), String> {
        let at = self.at(path)?;
        let edit = &mut self.edits[at];
        edit.after = text.map(String::into_bytes);
        edit.mode = mode.or(edit.mode);
        Ok(())
    }

    /// Which edit is about a path; a new one changes nothing.
    fn at(&mut self, path: &str) -> Result<usize, String> {
        let place = place(self.scope, path)?;
        let is_it = |edit: &FileEdit<'_>| edit.root.id() == place.root.id() && edit.path == place.path;
        if let Some(at) = self.edits.iter().position(is_it) {
            return Ok(at);
        }
        let before = found(place.root, &place.path)?;
        // Of a file that was never read its context tells.
        if let (Some(seen), Some(before)) = (self.scope.seen.digest(place.root, &place.path), &before)
            && seen != before.digest
        {
            return Err(changed_since(self.scope, (place.root, &place.path), before, &mut self.quoted));
        }
        let after = before.as_ref().map(|before| before.bytes.clone());
        self.edits.push(FileEdit { root: place.root, path: place.path, before, after, mode: None });
        Ok(self.edits.len() - 1)
    }
}

/// The permission bits of a file that a patch makes executable or not; none where it says nothing.
fn executable(mode: Option<u32>, is_executable: Option<bool>) -> Option<u32> {
    let mode = mode.unwrap_or(0o644);
    // Whoever may read it may run it.
    is_executable.map(|is| if is { mode | (mode & 0o444) >> 2 } else { mode & !0o111 })
}

fn planned<'s>(
    scope: &'s ToolScope,
    asked: &Arguments,
    read: &mut Vec<Digest>,
) -> Result<Vec<FileEdit<'s>>, String> {
    let patch = Patch::parse(&asked.patch).map_err(|error| error.to_string())?;
    let mut plan = PatchPlan { scope, edits: Vec::new(), quoted: Vec::new() };
    let followed = plan.follow(&patch);
    read.extend(plan.edits.iter().filter_map(|edit| Some(edit.before.as_ref()?.digest)));
    read.append(&mut plan.quoted);
    followed?;
    let mut edits = plan.edits;
    edits.retain(FileEdit::changes_something);
    if edits.is_empty() {
        return Err("the patch changes nothing".to_owned());
    }
    Ok(edits)
}

pub(super) fn preview(scope: &ToolScope, asked: &Arguments) -> Result<String, String> {
    Ok(difference(scope, &planned(scope, asked, &mut Vec::new())?))
}

pub(super) fn run(call: &CallScope<'_>, asked: &Arguments) -> Result<String, String> {
    let mut read = Vec::new();
    // A miss quotes what stands there.
    let edits = planned(call.scope, asked, &mut read).inspect_err(|_| call.has_read(read))?;
    let names: Vec<String> = edits.iter().map(FileEdit::told).collect();
    apply(call, &edits)?;
    Ok(names.join("\n"))
}
