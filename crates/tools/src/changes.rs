//! Changes of files: what a session read of them, what is about to be changed, and the change itself.
//!
//! A call says what it will do before it does any of it, so that all of it can be given back whatever ends the program.
//! Then it changes files one after the other, and where one of them is refused it gives back those before.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use loom::Digest;
use text::terminal::{explicit, one_line};
use workspace::{
    Documents, Expected, FileId, FileProblem, LinkPolicy, ReadRules, RecoveredDocument, RelativePath,
    RemoveOutcome, ReplaceOutcome, Replacement, Root, Stamp, Unmerged, WorkspaceLock,
};

use crate::files::MAX_BYTES;
use crate::tool::{CallScope, ToolScope};

/// How long another process may write in the same workspace before a call is refused.
const PATIENCE: Duration = Duration::from_secs(5);

/// What stands at a path, or will.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileContent<'a> {
    Absent,
    /// A file with its permission bits; none of a new one, to which the system gives them.
    File {
        mode: Option<u32>,
        bytes: &'a [u8],
    },
    Folder,
}

/// A change that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct PlannedChange<'a> {
    /// Canonical path of the folder it is made beneath.
    pub root: &'a Path,
    pub path: &'a RelativePath,
    pub before: FileContent<'a>,
    pub after: FileContent<'a>,
}

/// Where a call writes down what it is about to change.
pub trait ChangeRecorder: Send + Sync {
    /// Makes changes durable before they are made. It blocks.
    ///
    /// # Errors
    /// Why nothing may be changed now.
    fn record(&self, changes: &[PlannedChange<'_>]) -> Result<(), String>;

    /// Says that none of them was made, or all were taken back. It blocks.
    fn take_back(&self);
}

/// What a session knows of files by having read or written them: digests of their bytes.
#[derive(Debug, Default)]
pub struct SeenFiles(Mutex<HashMap<(FileId, RelativePath), Digest>>);

impl SeenFiles {
    pub(crate) fn see(&self, root: &Root, path: &RelativePath, digest: Digest) {
        self.locked().insert((root.id(), path.clone()), digest);
    }

    pub(crate) fn digest(&self, root: &Root, path: &RelativePath) -> Option<Digest> {
        self.locked().get(&(root.id(), path.clone())).copied()
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, HashMap<(FileId, RelativePath), Digest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
    /// Its new bytes; none where it goes.
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
        let path = self.path.as_path().display();
        let (came, went) = lines_between(self.before_text().as_ref(), self.after_text().as_ref());
        format!("{did} {path} (+{came} −{went})")
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
        }
    }
}

/// Edits as a unified diff.
pub(crate) fn difference(edits: &[FileEdit<'_>]) -> String {
    let of = |edit: &FileEdit<'_>| {
        let (before, after) = (edit.before_text(), edit.after_text());
        let before = edit.before.is_some().then_some(before.as_ref());
        let after = edit.after.is_some().then_some(after.as_ref());
        unified_diff(&edit.path.as_path().display().to_string(), before, after)
    };
    edits.iter().map(of).collect()
}

/// A file before and after as a unified diff; none of a file that is not there.
pub fn unified_diff(path: &str, before: Option<&str>, after: Option<&str>) -> String {
    // A name of several lines would look like lines of the difference.
    let path = explicit(&one_line(path)).into_owned();
    let name = |text: Option<&str>| if text.is_some() { path.clone() } else { "/dev/null".to_owned() };
    let mut config = similar::TextDiff::configure();
    let diff = config.timeout(DIFF_TIME).diff_lines(before.unwrap_or_default(), after.unwrap_or_default());
    diff.unified_diff().header(&name(before), &name(after)).to_string()
}

/// How long two texts are compared before what is left counts as replaced.
const DIFF_TIME: Duration = Duration::from_secs(1);

/// Lines that came, and lines that went.
fn lines_between(before: &str, after: &str) -> (usize, usize) {
    let diff = similar::TextDiff::configure().timeout(DIFF_TIME).diff_lines(before, after);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    (count(similar::ChangeTag::Insert), count(similar::ChangeTag::Delete))
}

/// Changes files: all of them, or none.
///
/// # Errors
/// Why none was, or what could not be given back.
pub(crate) fn apply(call: &CallScope<'_>, edits: &[FileEdit<'_>]) -> Result<(), String> {
    let CallScope { scope, changes: recorder, cancel } = call;
    if cancel.is_cancelled() {
        return Err("it was stopped: nothing was changed".to_owned());
    }
    let folders = missing_folders(edits)?;
    let made = |(root, path): &(&Root, RelativePath)| (root.path().to_owned(), path.clone());
    let made: Vec<(PathBuf, RelativePath)> = folders.iter().map(made).collect();
    let of_folders = made.iter().map(|(root, path)| PlannedChange {
        root,
        path,
        before: FileContent::Absent,
        after: FileContent::Folder,
    });
    let planned: Vec<_> = of_folders.chain(edits.iter().map(|edit| edit.planned(scope.umask))).collect();
    recorder.record(&planned)?;
    let (mut done, mut failed) = (0, None);
    for (root, path) in &folders {
        if let Err(error) = make_folder(root, path, scope.umask) {
            failed = failed.or(Some(error));
        }
    }
    for edit in edits {
        if failed.is_some() {
            break;
        }
        let before = edit.before.as_ref().map(|before| before.digest);
        let mode = edit.mode_after(scope.umask);
        match change(&scope.locks, (edit.root, &edit.path), before, (edit.after.as_deref(), mode)) {
            Ok(()) => done += 1,
            Err(why) => failed = Some(why),
        }
    }
    if let Some(why) = failed {
        let back = edits[..done].iter().rev().filter_map(|edit| undo(scope, edit).err());
        let stuck: Vec<String> = back.collect();
        // A folder that somebody put something into stays.
        folders.iter().rev().for_each(|(root, path)| drop(root.remove_folder(path)));
        if stuck.is_empty() {
            recorder.take_back();
            return Err(why);
        }
        return Err(format!("{why}; {}", stuck.join("; ")));
    }
    for edit in edits {
        if let Some(bytes) = &edit.after {
            scope.seen.see(edit.root, &edit.path, Digest::of(bytes));
        }
    }
    Ok(())
}

/// Permission bits of new files and folders, before the owner's umask.
const NEW_FILE: u32 = 0o666;
const NEW_FOLDER: u32 = 0o777;

fn make_folder(root: &Root, path: &RelativePath, umask: u32) -> Result<(), String> {
    let made = root.create_folder(path).and_then(|()| root.set_mode(path, NEW_FOLDER & !umask));
    made.map_err(|error| error.to_string())
}

/// Brings one path from what it is expected to hold to something else, with these permission bits.
///
/// # Errors
/// It holds another text, which stays; or the system refused.
fn change(
    locks: &Path,
    (root, path): (&Root, &RelativePath),
    expected: Option<Digest>,
    (to, mode): (Option<&[u8]>, u32),
) -> Result<(), String> {
    let lock = WorkspaceLock::acquire(locks, root.id(), PATIENCE).map_err(|error| error.to_string())?;
    let documents = Documents::new(root, &lock).map_err(|error| error.to_string())?.refuse_links();
    let stamp = stamp();
    let changed = |kept: &str| format!("{path} was changed by somebody else meanwhile, and stays so{kept}");
    match (expected, to) {
        (Some(expected), None) => match documents.remove(path, expected, &stamp) {
            Ok(RemoveOutcome::Removed) => Ok(()),
            Ok(RemoveOutcome::Conflict { .. }) => Err(changed("")),
            Err(error) => Err(error.to_string()),
        },
        (_, Some(text)) => {
            let expected = expected.map_or(Expected::Absent, Expected::Text);
            let replacement = Replacement { text, expected, stamp, unmerged: Unmerged::Beside };
            match documents.replace(path, &replacement) {
                Ok(ReplaceOutcome::Saved(_)) => root.set_mode(path, mode).map_err(|error| error.to_string()),
                Ok(ReplaceOutcome::Conflict { ours, .. }) => {
                    Err(changed(&format!("; the new text lies in {ours}")))
                }
                Err(error) => Err(error.to_string()),
            }
        }
        (None, None) => Ok(()),
    }
}

/// Brings a path back from what a change made of it to what stood there before.
///
/// # Errors
/// Somebody changed it since: it is left; or the system refused.
pub fn give_back(
    locks: &Path,
    root: &Root,
    path: &RelativePath,
    (before, after): (FileContent<'_>, FileContent<'_>),
    umask: u32,
) -> Result<(), String> {
    let bytes = |content| match content {
        FileContent::File { bytes, .. } => Some(bytes),
        FileContent::Absent | FileContent::Folder => None,
    };
    if after == FileContent::Folder {
        return root.remove_folder(path).map_err(|error| error.to_string());
    }
    let mode = match before {
        FileContent::File { mode: Some(mode), .. } => mode,
        _ => NEW_FILE & !umask,
    };
    // The folder it was in may have gone with it.
    if let (FileContent::File { .. }, FileContent::Absent) = (before, after) {
        let (folder, _) = path.split().map_err(|error| error.to_string())?;
        let mut so_far = RelativePath::root();
        for name in folder.as_path() {
            so_far = so_far.join(name).map_err(|error| error.to_string())?;
            if root.stat(&so_far, LinkPolicy::Refuse).is_err() {
                make_folder(root, &so_far, umask)?;
            }
        }
    }
    change(locks, (root, path), bytes(after).map(Digest::of), (bytes(before), mode))
}

/// Clears away what a process that died in a change left beside a file: working files that hold its text are removed, an
/// old text whose name is free goes back. Returns what became of them, in words.
pub(crate) fn recover(scope: &ToolScope, path: &Path) -> Result<Vec<String>, String> {
    let named = path.to_str().ok_or("its name is no text")?;
    let place = scope.roots.place(named).map_err(|error| error.to_string())?;
    let (folder, _) = place.path.split().map_err(|error| error.to_string())?;
    let lock =
        WorkspaceLock::acquire(&scope.locks, place.root.id(), PATIENCE).map_err(|error| error.to_string())?;
    let documents = Documents::new(place.root, &lock).map_err(|error| error.to_string())?;
    let found = documents.recover(&folder, &stamp()).map_err(|error| error.to_string())?;
    let told = found.into_iter().filter_map(|found| match found {
        RecoveredDocument::Removed(_) => None,
        RecoveredDocument::Kept(path) => Some(format!("a text that was cut off is kept as {path}")),
        RecoveredDocument::Restored(path) => {
            Some(format!("{path} is back as it was before a change that was cut off"))
        }
    });
    Ok(told.collect())
}

fn undo(scope: &ToolScope, edit: &FileEdit<'_>) -> Result<(), String> {
    let after = edit.after.as_deref().map(Digest::of);
    let before = edit.before.as_ref().map(|before| before.bytes.as_slice());
    let mode = edit.before.as_ref().map_or(NEW_FILE & !scope.umask, |before| before.mode);
    change(&scope.locks, (edit.root, &edit.path), after, (before, mode))
        .map_err(|why| format!("{} was not given back: {why}", edit.path))
}

/// The folders that files to be written need and that are not there, from the top.
fn missing_folders<'s>(edits: &[FileEdit<'s>]) -> Result<Vec<(&'s Root, RelativePath)>, String> {
    let mut missing: Vec<(&Root, RelativePath)> = Vec::new();
    for edit in edits.iter().filter(|edit| edit.before.is_none() && edit.after.is_some()) {
        let (folder, _) = edit.path.split().map_err(|error| error.to_string())?;
        let mut so_far = RelativePath::root();
        for name in folder.as_path() {
            so_far = so_far.join(name).map_err(|error| error.to_string())?;
            let is_known = missing.iter().any(|(root, path)| root.id() == edit.root.id() && *path == so_far);
            let is_missing = || match edit.root.stat(&so_far, LinkPolicy::Refuse) {
                Err(error) if matches!(error.problem, FileProblem::NotFound) => Ok(true),
                Err(error) => Err(error.to_string()),
                Ok(_) => Ok(false),
            };
            if !is_known && is_missing()? {
                missing.push((edit.root, so_far.clone()));
            }
        }
    }
    Ok(missing)
}

/// The time, for the name of a text that is kept beside another: seconds since 1970.
fn stamp() -> Stamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Stamp::new(&now.as_secs().to_string()).unwrap_or_else(|| unreachable!("digits are fit for a name"))
}
