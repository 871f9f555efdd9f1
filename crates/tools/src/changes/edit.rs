//! Edits of single files, all of them or none.

use std::borrow::Cow;

use loom::Digest;
use workspace::{FileProblem, LinkPolicy, ReadRules, RelativePath, Root};

use super::difference::{file_difference, line_name, lines_between};
use super::missing_folders::MissingFolders;
use super::path::{NEW_FILE, change_file};
use super::{BytesOrigin, FileContent, PlannedChange};
use crate::edits::Miss;
use crate::files::MAX_BYTES;
use crate::tool::{CallScope, ToolScope};

/// A file as it stands, in order to be changed.
pub(crate) struct FoundFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) digest: Digest,
}

/// Reads a file that is to be changed; none where there is none. A link is refused: what was judged by its name is what
/// is changed.
///
/// # Errors
/// It is no plain file, too large, or cannot be read.
pub(crate) fn found(root: &Root, path: &RelativePath) -> Result<Option<FoundFile>, String> {
    let rules = ReadRules { links: LinkPolicy::Refuse, ..ReadRules::at_most(MAX_BYTES) };
    match root.read(path, &rules) {
        Ok(content) => {
            let digest = content.digest();
            Ok(Some(FoundFile { mode: content.metadata.mode, bytes: content.bytes, digest }))
        }
        Err(error) if matches!(error.problem, FileProblem::NotFound) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// A file and what becomes of it.
pub(crate) struct FileEdit<'s> {
    pub(crate) root: &'s Root,
    pub(crate) path: RelativePath,
    pub(crate) before: Option<FoundFile>,
    /// New bytes of the file; none where it goes.
    pub(crate) after: Option<Vec<u8>>,
    /// The permission bits it gets, where they change or another file's come along.
    pub(crate) mode: Option<u32>,
}

impl FileEdit<'_> {
    pub(crate) fn changes_something(&self) -> bool {
        let mode = self.before.as_ref().map(|before| before.mode);
        self.before.as_ref().map(|before| &before.bytes) != self.after.as_ref()
            || (self.after.is_some() && self.mode.is_some() && self.mode != mode)
    }

    /// The permission bits of the file by then.
    fn mode_after(&self, umask: u32) -> u32 {
        let before = self.before.as_ref().map(|before| before.mode);
        self.mode.or(before).unwrap_or(NEW_FILE & !umask)
    }

    /// What it does, in a line.
    pub(crate) fn told(&self) -> String {
        let did = match (&self.before, &self.after) {
            (None, _) => "made",
            (Some(_), None) => "deleted",
            (Some(_), Some(_)) => "changed",
        };
        let path = line_name(&self.root.shown(&self.path).to_string_lossy());
        format!("{did} {path} ({})", self.counts())
    }

    /// Lines that come and go.
    pub(crate) fn counts(&self) -> String {
        let (came, went) = lines_between(self.before_text().as_ref(), self.after_text().as_ref());
        format!("+{came} −{went}")
    }

    fn before_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.before.as_ref().map_or(&[], |before| before.bytes.as_slice()))
    }

    fn after_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.after.as_deref().unwrap_or_default())
    }

    fn planned(&self, umask: u32) -> PlannedChange<'_> {
        let mode = self.before.as_ref().map(|before| before.mode);
        let mode_after = Some(self.mode_after(umask));
        PlannedChange {
            root: self.root.path(),
            path: &self.path,
            before: self
                .before
                .as_ref()
                .map_or(FileContent::Absent, |before| FileContent::File { mode, bytes: &before.bytes }),
            after: self
                .after
                .as_deref()
                .map_or(FileContent::Absent, |bytes| FileContent::File { mode: mode_after, bytes }),
            origin: BytesOrigin::Call,
        }
    }
}

/// Edits as a unified diff of files as they are shown: of a part of a file it could not be told what is secret.
pub(crate) fn difference(scope: &ToolScope, edits: &[FileEdit<'_>]) -> String {
    let of = |edit: &FileEdit<'_>| {
        let before = edit.before.as_ref().map(|before| masked(scope, &before.bytes));
        let after = edit.after.as_deref().map(|after| masked(scope, after));
        let name = edit.root.shown(&edit.path).display().to_string();
        file_difference(&name, before.as_deref(), after.as_deref())
    };
    edits.iter().map(of).collect()
}

/// What is told of a text that does not stand in a file as it should. It quotes the file, unless a rule keeps that from being
/// read.
pub(crate) fn told_miss(scope: &ToolScope, (root, path): (&Root, &RelativePath), miss: &Miss) -> String {
    let more = scope.seen.miss(root, path);
    match scope.require_read(root, path) {
        Ok(()) => format!("{miss}{more}"),
        Err(why) => format!("what it looks for does not stand there as it should, and {why}"),
    }
}

/// A text as it is shown; other bytes as they are.
pub(super) fn masked(scope: &ToolScope, bytes: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(bytes) {
        Ok(text) => scope.masker.mask_entering(text).text.into_owned().into_bytes(),
        Err(_) => bytes.to_vec(),
    }
}

/// Changes files: all of them, or none.
///
/// # Errors
/// Why none was, or what could not be given back.
pub(crate) fn apply(call: &CallScope<'_>, edits: &[FileEdit<'_>]) -> Result<(), String> {
    let CallScope { scope, changes: recorder, cancel, .. } = call;
    if cancel.is_cancelled() {
        return Err("it was stopped: nothing was changed".to_owned());
    }
    let new = edits.iter().filter(|edit| edit.before.is_none() && edit.after.is_some());
    let folders = MissingFolders::above(new.map(|edit| (edit.root, &edit.path)))?;
    let edited = edits.iter().map(|edit| edit.planned(scope.umask));
    let planned: Vec<_> = folders.planned(scope.umask).chain(edited).collect();
    recorder.record(&planned)?;
    let (mut done, mut failed) = (0, folders.make(scope.umask).err());
    for edit in edits {
        if failed.is_some() {
            break;
        }
        let before = edit.before.as_ref().map(|before| before.digest);
        let mode = edit.mode_after(scope.umask);
        match change_file(&scope.locks, (edit.root, &edit.path), before, (edit.after.as_deref(), mode)) {
            Ok(()) => done += 1,
            Err(why) => failed = Some(why),
        }
    }
    if let Some(why) = failed {
        let back = edits[..done].iter().rev().filter_map(|edit| undo(scope, edit).err());
        let stuck: Vec<String> = back.collect();
        folders.remove();
        if stuck.is_empty() {
            recorder.take_back();
            return Err(why);
        }
        return Err(format!("{why}; {}", stuck.join("; ")));
    }
    for edit in edits {
        if let Some(bytes) = &edit.after {
            scope.seen.see(edit.root, &edit.path, (Digest::of(bytes), Some(bytes)));
        }
    }
    Ok(())
}

fn undo(scope: &ToolScope, edit: &FileEdit<'_>) -> Result<(), String> {
    let after = edit.after.as_deref().map(Digest::of);
    let before = edit.before.as_ref().map(|before| before.bytes.as_slice());
    let mode = edit.before.as_ref().map_or(NEW_FILE & !scope.umask, |before| before.mode);
    change_file(&scope.locks, (edit.root, &edit.path), after, (before, mode))
        .map_err(|why| format!("{} was not given back: {why}", edit.path))
}
