//! A subtree that is moved, copied or deleted: written down first, then changed.

use std::fmt::Write as _;

use loom::Digest;
use workspace::{LinkPolicy, ReadRules, RelativePath, Root, RootedPath};

use super::difference::{file_difference, line_name};
use super::missing_folders::MissingFolders;
use super::path::{change_file, make_folder, remove_link};
use super::subtree::{Entry, EntryKind, Subtree};
use super::{BytesOrigin, FileContent, PlannedChange};
use crate::files::MAX_BYTES;
use crate::tool::{CallScope, ToolScope};

/// Bytes and paths that are written down in one step.
const BATCH_BYTES: u64 = 16 << 20;
const BATCH_PATHS: usize = 512;
/// Lines of a difference after which the rest is only counted: no question shows as many.
const SHOWN_LINES: usize = 1_000;
/// What an owner may do in a folder that is filled: its own bits come when it is full.
const FILLABLE: u32 = 0o700;

/// What becomes of a subtree. The place it goes to is free.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SubtreeChange<'a, 's> {
    Move(&'a RootedPath<'s>),
    Copy(&'a RootedPath<'s>),
    Delete,
}

impl<'s> SubtreeChange<'_, 's> {
    const fn to(&self) -> Option<&RootedPath<'s>> {
        match self {
            Self::Move(to) | Self::Copy(to) => Some(to),
            Self::Delete => None,
        }
    }

    /// What it does, as a question shows it.
    ///
    /// # Errors
    /// A file is another one by now.
    pub(crate) fn difference(self, subtree: &Subtree<'s>) -> Result<String, String> {
        let name = |root: &Root, path: &RelativePath| line_name(&root.shown(path).display().to_string());
        let from = name(subtree.root, &subtree.entries[0].path);
        let mut out = match self {
            Self::Move(to) => format!("move from {from}\nmove to {}\n", name(to.root, &to.path)),
            Self::Copy(to) => format!("copy from {from}\ncopy to {}\n", name(to.root, &to.path)),
            Self::Delete => String::new(),
        };
        let root = self.to().map_or(subtree.root, |to| to.root);
        let did = if self.to().is_some() { "new" } else { "deleted" };
        let paths = self.paths(subtree)?;
        for (number, (entry, path)) in subtree.entries.iter().zip(&paths).enumerate() {
            if out.lines().count() > SHOWN_LINES {
                let _ = writeln!(out, "[{} more paths.]", paths.len() - number);
                break;
            }
            let path = name(root, path);
            match &entry.kind {
                EntryKind::Folder { .. } => drop(writeln!(out, "{did} folder {path}")),
                EntryKind::Link { target } => {
                    let target = line_name(&String::from_utf8_lossy(target));
                    let _ = writeln!(out, "{did} link {path} to {target}");
                }
                EntryKind::File { .. } => {
                    let bytes = content(subtree.root, entry)?;
                    let (before, after) = match self.to() {
                        Some(_) => (None, Some(bytes.as_slice())),
                        None => (Some(bytes.as_slice()), None),
                    };
                    out.push_str(&file_difference(&path, before, after));
                }
            }
        }
        Ok(out)
    }

    /// The paths that a difference is about.
    fn paths(self, subtree: &Subtree<'s>) -> Result<Vec<RelativePath>, String> {
        match self.to() {
            Some(to) => subtree.paths_at(&to.path),
            None => Ok(subtree.entries.iter().map(|entry| entry.path.clone()).collect()),
        }
    }

    /// Makes it. Where it fails, a move and a copy are taken back; of a deletion what is gone is written down.
    ///
    /// # Errors
    /// Why it was not made, or not wholly.
    pub(crate) fn apply(self, call: &CallScope<'_>, subtree: &Subtree<'s>) -> Result<(), String> {
        let (scope, umask) = (call.scope, call.scope.umask);
        let paths = self.paths(subtree)?;
        let folders = MissingFolders::above(self.to().map(|to| (to.root, &to.path)).into_iter())?;
        let recorded = self.record(call, subtree, &paths).and_then(|()| record_folders(call, &folders));
        if let Err(why) = recorded {
            call.changes.take_back();
            return Err(why);
        }
        let Some(place) = self.to() else { return delete(call, subtree) };
        let made = folders.make(umask).and_then(|()| match self {
            Self::Move(_) => {
                let from = &subtree.entries[0].path;
                subtree.root.rename(from, place.root, &place.path).map_err(|error| error.to_string())
            }
            _ => copy(call, subtree, place.root, &paths),
        });
        if let Err(why) = made {
            folders.remove();
            call.changes.take_back();
            return Err(why);
        }
        see(scope, subtree, place.root, &paths);
        Ok(())
    }

    /// Writes down what becomes of every path, a batch at a time: all before the first is changed.
    fn record(
        self,
        call: &CallScope<'_>,
        subtree: &Subtree<'s>,
        paths: &[RelativePath],
    ) -> Result<(), String> {
        let goes = !matches!(self, Self::Copy(_));
        let mut rest = subtree.entries.as_slice();
        let mut at = 0;
        while !rest.is_empty() {
            require_running(call)?;
            let (batch, more) = rest.split_at(batch_length(rest));
            let bytes =
                batch.iter().map(|entry| content(subtree.root, entry)).collect::<Result<Vec<_>, _>>()?;
            let mut planned = Vec::new();
            for (number, (entry, bytes)) in batch.iter().zip(&bytes).enumerate() {
                let is = state(entry, bytes);
                let origin = BytesOrigin::Files;
                let change = |root, path, before, after| PlannedChange { root, path, before, after, origin };
                if let Some(to) = self.to() {
                    planned.push(change(to.root.path(), &paths[at + number], FileContent::Absent, is));
                }
                if goes {
                    planned.push(change(subtree.root.path(), &entry.path, is, FileContent::Absent));
                }
            }
            call.changes.record(&planned)?;
            at += batch.len();
            rest = more;
        }
        Ok(())
    }
}

fn record_folders(call: &CallScope<'_>, folders: &MissingFolders<'_>) -> Result<(), String> {
    let planned: Vec<_> = folders.planned(call.scope.umask).collect();
    if planned.is_empty() { Ok(()) } else { call.changes.record(&planned) }
}

/// How many of the first entries are written down together.
fn batch_length(entries: &[Entry]) -> usize {
    let mut sum = 0;
    let fits = |entry: &&Entry| {
        if let EntryKind::File { bytes, .. } = entry.kind {
            sum += bytes;
        }
        sum <= BATCH_BYTES
    };
    entries.iter().take(BATCH_PATHS).take_while(fits).count().max(1)
}

fn require_running(call: &CallScope<'_>) -> Result<(), String> {
    if call.cancel.is_cancelled() { Err("it was stopped".to_owned()) } else { Ok(()) }
}

/// The bytes of a file as it was read before; none of anything else.
fn content(root: &Root, entry: &Entry) -> Result<Vec<u8>, String> {
    let EntryKind::File { digest, .. } = entry.kind else { return Ok(Vec::new()) };
    let rules = ReadRules { links: LinkPolicy::Refuse, ..ReadRules::at_most(MAX_BYTES) };
    let found = root.read(&entry.path, &rules).map_err(|error| error.to_string())?;
    if found.digest() == digest {
        return Ok(found.bytes);
    }
    Err(format!("{} was changed by somebody else meanwhile", root.shown(&entry.path).display()))
}

fn state<'e>(entry: &'e Entry, bytes: &'e [u8]) -> FileContent<'e> {
    match &entry.kind {
        EntryKind::Folder { mode } => FileContent::Folder { mode: Some(*mode) },
        EntryKind::File { mode, .. } => FileContent::File { mode: Some(*mode), bytes },
        EntryKind::Link { target } => FileContent::Link { target },
    }
}

/// Copies a subtree to where nothing is, a folder before what it holds; takes back what it made where it fails.
fn copy(
    call: &CallScope<'_>,
    subtree: &Subtree<'_>,
    root: &Root,
    paths: &[RelativePath],
) -> Result<(), String> {
    let locks = &call.scope.locks;
    let make = |entry: &Entry, path: &RelativePath| {
        require_running(call)?;
        match &entry.kind {
            EntryKind::Folder { mode } => make_folder(root, path, mode | FILLABLE),
            EntryKind::Link { target } => root.create_link(path, target).map_err(|error| error.to_string()),
            EntryKind::File { mode, .. } => {
                let bytes = content(subtree.root, entry)?;
                change_file(locks, (root, path), None, (Some(&bytes), *mode))
            }
        }
    };
    let all = || subtree.entries.iter().zip(paths);
    let take_back = |count: usize| {
        let made: Vec<_> = all().take(count).collect();
        made.into_iter().rev().for_each(|(entry, path)| drop(remove(call, (root, path), &entry.kind)));
    };
    for (number, (entry, path)) in all().enumerate() {
        if let Err(why) = make(entry, path) {
            take_back(number);
            return Err(why);
        }
    }
    // What a folder may not be written by is taken from it when it is full.
    for (entry, path) in all() {
        if let EntryKind::Folder { mode } = entry.kind
            && mode & FILLABLE != FILLABLE
            && let Err(error) = root.set_mode(path, mode)
        {
            take_back(paths.len());
            return Err(error.to_string());
        }
    }
    Ok(())
}

/// Deletes a subtree, a folder after what it held. What somebody changed or put there meanwhile stays.
fn delete(call: &CallScope<'_>, subtree: &Subtree<'_>) -> Result<(), String> {
    let all = subtree.entries.len();
    for (number, entry) in subtree.entries.iter().rev().enumerate() {
        let removed =
            require_running(call).and_then(|()| remove(call, (subtree.root, &entry.path), &entry.kind));
        if let Err(why) = removed {
            if number == 0 {
                call.changes.take_back();
                return Err(why);
            }
            return Err(format!("only {number} of {all} paths were deleted: {why}"));
        }
    }
    Ok(())
}

/// Removes what stands at a path if it still is what it was.
fn remove(
    call: &CallScope<'_>,
    (root, path): (&Root, &RelativePath),
    kind: &EntryKind,
) -> Result<(), String> {
    match kind {
        EntryKind::Folder { .. } => root.remove_folder(path).map_err(|error| error.to_string()),
        EntryKind::Link { target } => remove_link(&call.scope.locks, root, path, target),
        EntryKind::File { digest, .. } => {
            change_file(&call.scope.locks, (root, path), Some(*digest), (None, 0))
        }
    }
}

/// What was read of a file is read of it where it is by now.
fn see(scope: &ToolScope, subtree: &Subtree<'_>, root: &Root, paths: &[RelativePath]) {
    for (entry, path) in subtree.entries.iter().zip(paths) {
        let EntryKind::File { digest, .. } = entry.kind else { continue };
        let seen: Option<Digest> = scope.seen.digest(subtree.root, &entry.path);
        if seen == Some(digest) {
            scope.seen.see(root, path, (digest, None));
        }
    }
}
