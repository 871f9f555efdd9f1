//! Files that tools wrote while commands run, of whichever process: by their paths and bytes.
//!
//! A protected file that is new when a command ends looks like the command's. One that a tool wrote was accepted before, and
//! is written down here before it is written: it stays as long as it has these bytes.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, DirEntry};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use workspace::{read_beginning, replace_small_file};

/// Folder of these records, beside those of the commands that run.
const FOLDER: &str = "accepted";
/// Characters of the name of a record: the digest of a path.
const DIGEST: usize = 64;
/// How long before a file is written it is written down, at most.
const EARLIER: Duration = Duration::from_secs(10);
/// Time after which no command runs any more that was running then.
const OVER: Duration = Duration::from_secs(48 * 3600);

#[derive(Serialize, Deserialize)]
struct AcceptedFile {
    #[serde(with = "crate::path_form")]
    path: PathBuf,
    bytes: u64,
    digest: String,
    at: SystemTime,
}

impl AcceptedFile {
    fn read(record: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(record).ok()?).ok()
    }

    /// Whether it stands as it was accepted.
    fn stands(&self) -> bool {
        let is_file =
            self.path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() == self.bytes);
        is_file && read_beginning(&self.path, self.bytes + 1).is_ok_and(|bytes| digest(&bytes) == self.digest)
    }
}

fn digest(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

/// Says that a tool is about to write these bytes to files, as a person let it: no look at what commands did takes them for
/// theirs. `records` is that of [`Walls::tracked_records`](crate::Walls::tracked_records).
///
/// # Errors
/// If it cannot be written down.
pub fn accept_files<'b>(
    records: &Path,
    files: impl IntoIterator<Item = (PathBuf, &'b [u8])>,
) -> io::Result<()> {
    let folder = records.join(FOLDER);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let at = SystemTime::now();
    for record in records_in(&folder) {
        let is_over = |file: AcceptedFile| at.duration_since(file.at).is_ok_and(|age| age > OVER);
        if AcceptedFile::read(&record).is_none_or(is_over)
            && let Err(error) = fs::remove_file(record)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
    }
    for (path, bytes) in files {
        let name = digest(path.as_os_str().as_bytes());
        let file = AcceptedFile { path, bytes: bytes.len() as u64, digest: digest(bytes), at };
        replace_small_file(&folder.join(name), &serde_json::to_vec(&file)?)?;
    }
    Ok(())
}

/// Files of that kind that were accepted since, and stand so; folders that hold nothing else. `records` as in
/// [`accept_files`].
pub(crate) fn accepted_since(records: &Path, since: SystemTime) -> Vec<PathBuf> {
    let files = records_in(&records.join(FOLDER)).filter_map(|record| AcceptedFile::read(&record));
    let files = files.filter(|file| file.at + EARLIER > since && file.stands());
    let mut accepted: BTreeSet<PathBuf> = files.map(|file| file.path).collect();
    let mut folders: Vec<PathBuf> =
        accepted.iter().filter_map(|path| Some(path.parent()?.to_owned())).collect();
    while let Some(folder) = folders.pop() {
        let mut entries = fs::read_dir(&folder).into_iter().flatten().peekable();
        let is_there = entries.peek().is_some();
        if is_there && entries.all(|entry| entry.is_ok_and(|entry| accepted.contains(&entry.path()))) {
            folders.extend(folder.parent().map(Path::to_owned));
            accepted.insert(folder);
        }
    }
    accepted.into_iter().collect()
}

/// Records, without what another process is about to make one of.
fn records_in(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_record = |entry: &DirEntry| {
        let name = entry.file_name();
        name.len() == DIGEST && name.as_bytes().iter().all(u8::is_ascii_hexdigit)
    };
    entries.filter(is_record).map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_another_process_is_writing_is_left() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join(FOLDER);
        fs::create_dir(&folder).unwrap();
        let (being_written, damaged) = (folder.join(".tmpA1b2C3"), folder.join(digest(b"/damaged")));
        fs::write(&being_written, "").unwrap();
        fs::write(&damaged, "{").unwrap();
        let file = temp.path().join("AGENTS.md");
        fs::write(&file, "ours").unwrap();
        accept_files(temp.path(), [(file.clone(), &b"ours"[..])]).unwrap();
        assert!(being_written.exists() && !damaged.exists());
        assert_eq!(accepted_since(temp.path(), SystemTime::now()).first(), Some(&file));
    }
}
