//! What a home remembers of its backups: when each was made and where it went (`<home>/backups.json`), so that
//! `doctor` can say when the newest is too old (spec: scale §3).
//!
//! The file is versioned: one of a newer program is left as it is, and keys this program does not know stay.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::home::{BACKUPS, Home, UnfinishedFile};

use super::leftovers::lock_file;

const VERSION: u32 = 1;

const MAX_LISTED: usize = 20;

/// A file that is longer is not ours, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// A backup that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupMade {
    /// When, ms since 1970.
    pub at: i64,
    pub file: PathBuf,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// The newest event it holds.
    pub seq: u64,
    /// What a newer program says of it.
    #[serde(flatten)]
    more: Map<String, Value>,
}

impl BackupMade {
    /// A backup that was just made.
    pub fn new(at: i64, file: PathBuf, bytes: u64, seq: u64) -> Self {
        Self { at, file, bytes, seq, more: Map::new() }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Backups {
    version: u32,
    backups: Vec<BackupMade>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// The newest backup of a home; none if none was made.
///
/// # Errors
/// When the file cannot be read, or is no such file.
pub fn newest(home: &Path) -> io::Result<Option<BackupMade>> {
    Ok(read(home)?.backups.into_iter().max_by_key(|made| made.at))
}

/// Remembers a backup, after whoever remembers another one now.
///
/// # Errors
/// When the file cannot be read or written, or a newer program wrote it.
pub(crate) fn remember(home: &Home, made: BackupMade) -> io::Result<()> {
    let lock = lock_file(home, "backups.lock")?;
    lock.lock()?;
    let mut known = read(home.root())?;
    if known.version > VERSION {
        return Err(io::Error::other(format!("{BACKUPS} was written by a newer program")));
    }
    known.backups.push(made);
    let over = known.backups.len().saturating_sub(MAX_LISTED);
    known.backups.drain(..over);
    let new = home.root().join(UnfinishedFile::Backups.new_name().map_err(io::Error::other)?);
    let written = write(&new, &known).and_then(|()| std::fs::rename(&new, home.root().join(BACKUPS)));
    if written.is_err() {
        // Ours alone, and of no use to anybody.
        let _ = std::fs::remove_file(&new);
    }
    written
}

fn write(path: &Path, known: &Backups) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(&serde_json::to_vec_pretty(known).map_err(io::Error::other)?)?;
    file.sync_all()
}

fn read(home: &Path) -> io::Result<Backups> {
    let path = home.join(BACKUPS);
    let none = Backups { version: VERSION, backups: Vec::new(), more: Map::new() };
    let found = match path.metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(none),
        Err(error) => return Err(error),
    };
    if !found.is_file() || found.len() > MAX_BYTES {
        return Err(io::Error::other("it is no list of backups"));
    }
    serde_json::from_slice(&std::fs::read(path)?).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use store::home::HomeOptions;

    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path(), HomeOptions::default()).unwrap();
        (folder, home)
    }

    fn made(at: i64) -> BackupMade {
        BackupMade::new(at, PathBuf::from("/b"), 1, 2)
    }

    #[test]
    fn the_newest_is_told_and_the_oldest_go() {
        let (_folder, home) = home();
        assert_eq!(newest(home.root()).unwrap(), None);
        for at in 0..30 {
            remember(&home, made(at)).unwrap();
        }
        assert_eq!(newest(home.root()).unwrap(), Some(made(29)));
        assert_eq!(read(home.root()).unwrap().backups.len(), MAX_LISTED);
        assert_eq!(home.root().read_dir().unwrap().count(), 2, "the list and the folder of its lock");
    }

    #[test]
    fn backups_that_end_at_once_are_all_remembered() {
        let (_folder, home) = home();
        std::thread::scope(|scope| {
            for at in 0..MAX_LISTED as i64 {
                let home = &home;
                scope.spawn(move || remember(home, made(at)).unwrap());
            }
        });
        assert_eq!(read(home.root()).unwrap().backups.len(), MAX_LISTED);
    }

    #[test]
    fn what_a_newer_program_wrote_stays() {
        let (_folder, home) = home();
        let path = home.root().join(BACKUPS);
        let later =
            r#"{"version":1,"backups":[{"at":1,"file":"/a","bytes":1,"seq":1,"to":"tape"}],"plan":"daily"}"#;
        std::fs::write(&path, later).unwrap();
        remember(&home, made(2)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("tape") && text.contains("daily"), "{text}");
        let newer = r#"{"version":2,"backups":[]}"#;
        std::fs::write(&path, newer).unwrap();
        assert!(remember(&home, made(3)).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), newer);
    }
}
