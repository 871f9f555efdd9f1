//! What a session knows of files by having read or written them, and what it is told where one became another since.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use loom::Digest;
use workspace::{FileId, RelativePath, Root};

use super::difference::file_difference;
use super::edit::{FoundFile, masked};
use crate::tool::ToolScope;

/// Bytes of a file that is remembered whole, and of all that are: of others it is only known that they changed.
const KEPT: usize = 256 << 10;
const ALL_KEPT: usize = 8 << 20;

/// Lines and bytes of a difference that are told.
const TOLD_LINES: usize = 100;
const TOLD_BYTES: usize = 8 << 10;

/// Misses in one file after which it is to be read again (spec: agent §3 *Edits*).
const MISSES: u32 = 3;

/// A file that a tool of the session wrote in another process, or before this one began.
#[derive(Debug, Clone)]
pub struct WrittenFile {
    /// Canonical path of the folder it lies beneath.
    pub root: PathBuf,
    pub path: PathBuf,
    pub digest: Digest,
    /// When, in ms since 1970.
    pub at: i64,
}

/// A file as the session knows it.
#[derive(Debug)]
struct SeenFile {
    digest: Digest,
    /// When, in ms since 1970.
    at: i64,
    bytes: Option<Arc<[u8]>>,
}

#[derive(Default)]
struct Seen {
    files: HashMap<(FileId, RelativePath), SeenFile>,
    /// Bytes of all that are remembered.
    kept: usize,
    /// Edits that found no place, since the file was read or written last.
    misses: HashMap<(FileId, RelativePath), u32>,
}

/// Files that a session has read or written: digests of their bytes, and the bytes of small ones.
#[derive(Default)]
pub struct SeenFiles(Mutex<Seen>);

impl fmt::Debug for SeenFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeenFiles").field("files", &self.locked().files.len()).finish_non_exhaustive()
    }
}

impl SeenFiles {
    /// A file was read or written; its bytes, if they are at hand.
    pub(crate) fn see(&self, root: &Root, path: &RelativePath, (digest, bytes): (Digest, Option<&[u8]>)) {
        let mut seen = self.locked();
        let key = (root.id(), path.clone());
        seen.misses.remove(&key);
        let bytes: Option<Arc<[u8]>> = bytes.filter(|bytes| bytes.len() <= KEPT).map(Arc::from);
        let before = seen.files.remove(&key).and_then(|file| file.bytes);
        seen.kept -= before.map_or(0, |bytes| bytes.len());
        seen.kept += bytes.as_ref().map_or(0, |bytes| bytes.len());
        if seen.kept > ALL_KEPT {
            seen.files.values_mut().for_each(|file| file.bytes = None);
            seen.kept = bytes.as_ref().map_or(0, |bytes| bytes.len());
        }
        seen.files.insert(key, SeenFile { digest, at: now(), bytes });
    }

    pub(crate) fn digest(&self, root: &Root, path: &RelativePath) -> Option<Digest> {
        self.locked().files.get(&(root.id(), path.clone())).map(|file| file.digest)
    }

    /// Files were written by tools of the session, in their order: what is known of them by now is older.
    pub(crate) fn learn(&self, files: impl Iterator<Item = (FileId, RelativePath, WrittenFile)>) {
        let mut seen = self.locked();
        for (root, path, WrittenFile { digest, at, .. }) in files {
            let key = (root, path);
            if seen.files.get(&key).is_some_and(|known| known.at >= at) {
                continue;
            }
            let before = seen.files.insert(key, SeenFile { digest, at, bytes: None });
            seen.kept -= before.and_then(|file| file.bytes).map_or(0, |bytes| bytes.len());
        }
    }

    /// An edit found no place in a file. What its model is told beside.
    pub(crate) fn miss(&self, root: &Root, path: &RelativePath) -> &'static str {
        let mut seen = self.locked();
        let misses = seen.misses.entry((root.id(), path.clone())).or_default();
        *misses += 1;
        if *misses >= MISSES {
            "\nSeveral edits of this file missed: read it again before the next one."
        } else {
            ""
        }
    }

    /// Drops the bytes of all files: something was forgotten that may stand in them.
    pub(crate) fn forget(&self) {
        let mut seen = self.locked();
        seen.files.values_mut().for_each(|file| file.bytes = None);
        seen.kept = 0;
    }

    /// What the session knew of a file; none where its bytes are not remembered.
    fn bytes(&self, root: &Root, path: &RelativePath) -> Option<Arc<[u8]>> {
        self.locked().files.get(&(root.id(), path.clone()))?.bytes.clone()
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a file is refused that became another one since the session read or wrote it: with the difference, masked as the file
/// is shown, unless a rule keeps it from being read. `read` gets what is quoted of.
pub(crate) fn changed_since(
    scope: &ToolScope,
    (root, path): (&Root, &RelativePath),
    found: &FoundFile,
    read: &mut Vec<Digest>,
) -> String {
    let why = format!("{} was changed since it was read: read it again", root.shown(path).display());
    // What is no text is not masked, and may hold a secret of several lines.
    let is_text = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok();
    let is_small =
        found.bytes.len() <= KEPT && is_text(&found.bytes) && scope.require_read(root, path).is_ok();
    let before = scope.seen.bytes(root, path).filter(|before| is_small && is_text(before));
    let Some(before) = before else { return why };
    read.extend([Digest::of(&before), found.digest]);
    let (before, after) = (masked(scope, &before), masked(scope, &found.bytes));
    let name = root.shown(path).display().to_string();
    let difference = file_difference(&name, Some(&before), Some(&after));
    format!("{why}. Since then:\n{}", first_lines(&difference))
}

/// The beginning of a difference.
pub(crate) fn first_lines(difference: &str) -> String {
    let lines = difference.lines().count();
    let mut told = String::new();
    for (number, line) in difference.lines().enumerate() {
        if number == TOLD_LINES || told.len() + line.len() >= TOLD_BYTES {
            return told + &format!("[{} more lines of the difference]\n", lines - number);
        }
        told.push_str(line);
        told.push('\n');
    }
    told
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
