//! What stood beneath a root, as a file.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufWriter, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use workspace::RootStamp;

use super::pack::Pack;
use super::{CheckpointError, CheckpointRules, Entry, EntryKind, io_at};

pub(super) const NAME: &str = "index.json";

/// Version of the file; another one is made anew.
const VERSION: u32 = 1;

/// What stood beneath a root.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Index {
    /// The folder itself; none in a record of an earlier form, of which its path is all that is known.
    #[serde(default)]
    pub(super) folder: Option<RootStamp>,
    /// By hash: paths are compared name by name, which an ordered map of many files does too often.
    pub(super) entries: HashMap<PathBuf, Entry>,
    /// Paths that were there and are not recorded, with all below them. Their names may be no text.
    pub(super) passed_over: HashSet<OsString>,
    /// Whether there was more than is looked at.
    pub(super) is_cut: bool,
}

impl Index {
    pub(super) fn kept_bytes(&self) -> u64 {
        let kept = |entry: &Entry| match entry.kind {
            EntryKind::File { place, .. } => place.bytes,
            _ => 0,
        };
        self.entries.values().map(kept).sum()
    }
}

#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    root: &'a Path,
    rules: &'a CheckpointRules,
    pack: &'a str,
    index: &'a Index,
}

/// What an index file says.
#[derive(Deserialize)]
pub(super) struct ReadIndex {
    version: u32,
    /// Canonical path of the root.
    pub(super) root: PathBuf,
    pub(super) rules: CheckpointRules,
    /// Name of the pack.
    pub(super) pack: String,
    pub(super) index: Index,
}

/// The file of an index, told apart from one that replaced it.
#[derive(Debug)]
pub(super) struct IndexFile {
    path: PathBuf,
    /// Inode of the file, and when it was written, in s and ns: a later file may get the inode of one that is gone.
    identity: (u64, i64, i64),
}

fn identity(file: &fs::Metadata) -> (u64, i64, i64) {
    (file.ino(), file.mtime(), file.mtime_nsec())
}

impl IndexFile {
    pub(super) fn write(
        folder: &Path,
        (root, rules): (&Path, &CheckpointRules),
        index: &Index,
        pack: &Pack,
    ) -> Result<Self, CheckpointError> {
        let (path, unfinished) = (folder.join(NAME), folder.join("index.new"));
        fs::remove_file(&unfinished).ok();
        let open = File::options().create_new(true).write(true).mode(0o600).open(&unfinished);
        let file = open.map_err(io_at("made", &unfinished))?;
        let mut out = BufWriter::new(&file);
        let pack = pack.name().to_string_lossy();
        let written = Written { version: VERSION, root, rules, pack: &pack, index };
        let written = serde_json::to_writer(&mut out, &written);
        let written = written.map_err(std::io::Error::from).and_then(|()| out.flush());
        written.map_err(io_at("written", &unfinished))?;
        let identity = identity(&file.metadata().map_err(io_at("read", &unfinished))?);
        fs::rename(&unfinished, &path).map_err(io_at("replaced", &path))?;
        Ok(Self { path, identity })
    }

    /// An index; none where it is not there or cannot be read.
    pub(super) fn read(path: &Path) -> Option<(Self, ReadIndex)> {
        let mut file = workspace::open_small_file(path).ok()?;
        let identity = identity(&file.metadata().ok()?);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let read: ReadIndex = serde_json::from_slice(&bytes).ok()?;
        (read.version == VERSION).then(|| (Self { path: path.to_owned(), identity }, read))
    }

    /// Whether it still is the index of a folder.
    pub(super) fn is_current(&self, folder: &Path) -> bool {
        let path = folder.join(NAME);
        self.path == path && fs::metadata(&path).is_ok_and(|found| identity(&found) == self.identity)
    }

    /// Gives it a second name, under which it stays as it is.
    pub(super) fn keep_as(&self, path: &Path) -> Result<(), CheckpointError> {
        fs::remove_file(path).ok();
        fs::hard_link(&self.path, path).map_err(io_at("kept", path))
    }
}
