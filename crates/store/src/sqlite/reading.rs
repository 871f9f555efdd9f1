//! Opening a file that cannot be written, or not now, in order to read it.
//!
//! SQLite reads a file with a log where it lies if the log and its index are there. Without the index it would have to
//! make one, and with `immutable` it would not look at the log, and so show less than was acknowledged: then a copy of
//! file and log is read, made in a private folder. A copy is also what is brought up to date where the file is an older
//! program's. A file without a log is read as it lies, and each answer counts only if the file is still the same.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::connection::failure;
use super::migrate::{bring_up, copy_to};
use super::open::{Access, Found, HEADER, State, raw, state};
use super::versions::STEPS;
use crate::error::StoreError;
use crate::home::{DATABASE, JOURNAL, LOG, NoRoom, SHARED, Scratch, beside, migration_copy};
use crate::schema::VERSION;

/// How often a file is copied anew that is written meanwhile.
const ATTEMPTS: usize = 8;

/// What a file and its log look like: another process that writes them changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// Of the file, its log and its journal; none of one that is missing or empty.
    files: [Option<Looks>; 3],
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Looks {
    inode: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Fingerprint {
    pub(crate) fn of(path: &Path) -> Result<Self, StoreError> {
        let [file, log, journal] = ["", LOG, JOURNAL].map(|end| looks(&beside(path, end)));
        Ok(Self { files: [file?, log?, journal?] })
    }

    const fn has_log(&self) -> bool {
        self.files[1].is_some()
    }

    const fn has_journal(&self) -> bool {
        self.files[2].is_some()
    }

    /// Of all files, in bytes.
    fn bytes(&self) -> u64 {
        self.files.iter().flatten().map(|file| file.bytes).sum()
    }
}

fn looks(path: &Path) -> Result<Option<Looks>, StoreError> {
    let found = match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(|error| StoreError::io(format!("open {}", path.display()), error))?,
    };
    let looks = Looks {
        inode: (found.dev(), found.ino()),
        bytes: found.len(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    };
    Ok(Some(looks).filter(|looks| looks.bytes > 0))
}

/// Finds the way in which a file can be read.
pub(crate) fn prepare(path: &Path, scratch: &Scratch) -> Result<Found, StoreError> {
    // A log lies beside the file that a link leads to.
    let path =
        path.canonicalize().map_err(|error| StoreError::io(format!("open {}", path.display()), error))?;
    for _ in 0..ATTEMPTS {
        let before = Fingerprint::of(&path)?;
        match attempt(&path, &before, scratch) {
            // Who closes it last removes its log, and who opens it makes one.
            Err(_) if Fingerprint::of(&path)? != before => {}
            Err(StoreError::Busy) => {}
            found => return found,
        }
    }
    Err(StoreError::Busy)
}

fn attempt(path: &Path, before: &Fingerprint, scratch: &Scratch) -> Result<Found, StoreError> {
    if before.files[0].as_ref().is_none_or(|file| file.bytes < HEADER) {
        return Err(StoreError::Foreign(path.display().to_string()));
    }
    let has = |end| beside(path, end).symlink_metadata().is_ok();
    let access = match (before.has_journal(), has(LOG) && has(SHARED), before.has_log()) {
        (false, true, _) => Access::InPlace,
        (false, false, false) => Access::Frozen,
        _ => return copy(path, before, scratch),
    };
    let found = raw(path, access).and_then(|conn| {
        let state = state(&conn, path)?;
        conn.execute_batch("ROLLBACK").map_err(failure)?;
        Ok((state, conn))
    });
    match found {
        Ok((state, conn)) if is_current(&state, path)? => {
            let found = Found::new(path, access);
            Ok(match access {
                Access::Frozen => Found { frozen: Some(before.clone()), ..found },
                _ => Found { held: Some(Arc::new(Mutex::new(conn))), ..found },
            })
        }
        Ok((_, conn)) => {
            let to = room_for(before, scratch)?;
            copy_to(&conn, &to).map_err(|error| no_room(error, before))?;
            if access == Access::Frozen {
                require_same(path, before)?;
            }
            opened(&to).map_err(|error| no_room(error, before))
        }
        // What SQLite makes of files that may not be opened or mapped.
        Err(StoreError::Sqlite(_) | StoreError::ReadOnly | StoreError::DiskFull) => {
            copy(path, before, scratch)
        }
        Err(error) => Err(error),
    }
}

/// Whether a file can be read as it is; else it is an older one.
fn is_current(found: &State, path: &Path) -> Result<bool, StoreError> {
    match found {
        State::Current | State::Newer { readable: true, .. } => Ok(true),
        State::Older(_) => Ok(false),
        State::Empty => Err(StoreError::Foreign(path.display().to_string())),
        State::Newer { version, readable: false } => {
            let backup = migration_copy(path, VERSION).display().to_string();
            Err(StoreError::SchemaTooNew { found: *version, known: VERSION, backup })
        }
    }
}

/// Bytes that a copy needs: for itself, for what its log may add and for bringing it up to date.
fn room_needed(before: &Fingerprint) -> u64 {
    before.bytes().saturating_mul(2)
}

/// The name of a new copy, in a place with room for it.
fn room_for(before: &Fingerprint, scratch: &Scratch) -> Result<PathBuf, StoreError> {
    let folder = scratch.with_room(room_needed(before))?;
    let to = folder.join(DATABASE);
    for end in ["", LOG, JOURNAL, SHARED] {
        match std::fs::remove_file(beside(&to, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::io(format!("remove {}", to.display()), error));
            }
            _ => {}
        }
    }
    Ok(to)
}

/// A place that had the room and has it no more.
fn no_room(error: StoreError, before: &Fingerprint) -> StoreError {
    match error {
        StoreError::DiskFull => NoRoom { needed: room_needed(before), tried: Scratch::places() }.into(),
        error => error,
    }
}

/// Copies the file and its log byte by byte. No connection of this process has it open, so that closing it drops no
/// lock; who writes it meanwhile is noticed.
fn copy(path: &Path, before: &Fingerprint, scratch: &Scratch) -> Result<Found, StoreError> {
    let to = room_for(before, scratch)?;
    for (end, looks) in ["", LOG, JOURNAL].into_iter().zip(&before.files) {
        if looks.is_some() {
            copy_file(&beside(path, end), &beside(&to, end)).map_err(|error| no_room(error, before))?;
        }
    }
    require_same(path, before)?;
    opened(&to).map_err(|error| no_room(error, before))
}

/// Refuses what was read of a file that was written meanwhile.
fn require_same(path: &Path, before: &Fingerprint) -> Result<(), StoreError> {
    if Fingerprint::of(path)? == *before { Ok(()) } else { Err(StoreError::Busy) }
}

fn copy_file(from: &Path, to: &Path) -> Result<(), StoreError> {
    let mut source = match File::open(from) {
        // Who closed the file last removed its log.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(StoreError::Busy),
        opened => opened.map_err(|error| StoreError::io(format!("open {}", from.display()), error))?,
    };
    let mut options = File::options();
    let target = options.write(true).create_new(true).mode(0o600).open(to);
    let copied = target.and_then(|mut target| io::copy(&mut source, &mut target));
    copied.map(drop).map_err(|error| StoreError::io(format!("write {}", to.display()), error))
}

/// A copy, with what its log holds, brought up to date, and then written by nobody any more.
fn opened(copy: &Path) -> Result<Found, StoreError> {
    let mut conn = raw(copy, Access::Write)?;
    // It is not to outlive this process.
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY").map_err(failure)?;
    let found = state(&conn, copy)?;
    conn.execute_batch("ROLLBACK").map_err(failure)?;
    if !is_current(&found, copy)? {
        bring_up(&mut conn, None, STEPS)?;
    }
    conn.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).map_err(failure)?;
    conn.close().map_err(|(_, error)| failure(error))?;
    Ok(Found { is_copy: true, ..Found::new(copy, Access::Frozen) })
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::super::open::{Options, reader};
    use super::*;
    use crate::store::Store;

    /// A store as a process left it that was killed, and a connection that keeps its log.
    fn with_log(folder: &Path) -> (PathBuf, Connection) {
        let path = folder.join(DATABASE);
        drop(Store::open_with(&path, &Options::default()).unwrap());
        let conn = raw(&path, Access::Write).unwrap();
        write(&conn, "first");
        (path, conn)
    }

    fn write(conn: &Connection, key: &str) {
        conn.execute("INSERT INTO meta (key, value) VALUES (?1, 1)", [key]).unwrap();
    }

    fn has(found: &Found, key: &str) -> bool {
        let conn = reader(found).unwrap();
        conn.query_row("SELECT count(*) FROM meta WHERE key = ?1", [key], |row| row.get::<_, i64>(0)).unwrap()
            == 1
    }

    #[test]
    fn a_copy_of_a_file_that_is_written_meanwhile_counts_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (path, conn) = with_log(folder.path());
        let scratch = Scratch::default();
        let before = Fingerprint::of(&path).unwrap();
        write(&conn, "second");
        let copied = copy(&path, &before, &scratch);
        assert!(matches!(copied, Err(StoreError::Busy)), "{copied:?}");
        let found = copy(&path, &Fingerprint::of(&path).unwrap(), &scratch).unwrap();
        assert!(found.is_copy && has(&found, "first") && has(&found, "second"));
    }

    #[test]
    fn a_log_with_its_index_is_read_in_place_and_one_without_through_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let (path, conn) = with_log(folder.path());
        let scratch = Scratch::default();
        let found = prepare(&path, &scratch).unwrap();
        assert_eq!(found.access, Access::InPlace);
        assert!(has(&found, "first"));
        write(&conn, "second");
        assert!(has(&found, "second") && !found.is_changed());
        // As they lie after a process was killed and the machine was started anew.
        let other = tempfile::tempdir().unwrap();
        let left = other.path().join("a%20 name?#.db");
        for end in ["", LOG] {
            std::fs::copy(beside(&path, end), beside(&left, end)).unwrap();
        }
        let found = prepare(&left, &scratch).unwrap();
        assert!(found.is_copy && has(&found, "second"));
        assert_eq!(other.path().read_dir().unwrap().count(), 2, "nothing was made beside it");
        let alone = Found::new(&left, Access::Frozen);
        assert!(!has(&alone, "second"), "the control: without its log the file says less");
    }

    #[test]
    fn a_file_without_a_log_is_read_as_it_lies_until_somebody_writes_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, conn) = with_log(folder.path());
        conn.close().unwrap();
        let found = prepare(&path, &Scratch::default()).unwrap();
        assert_eq!(found.access, Access::Frozen);
        assert!(has(&found, "first") && !found.is_changed());
        let conn = raw(&path, Access::Write).unwrap();
        write(&conn, "second");
        assert!(found.is_changed());
    }

    #[tokio::test]
    async fn an_answer_from_a_file_that_was_written_meanwhile_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let (path, conn) = with_log(folder.path());
        conn.close().unwrap();
        let (scratch, limits) = (Scratch::default(), crate::limits::StoreLimits::default());
        let store = Store::open_for_reading(&path, &scratch, limits).unwrap();
        let owner = crate::principal::Principal::Owner;
        store.identity(&owner).await.unwrap();
        write(&raw(&path, Access::Write).unwrap(), "second");
        let answer = store.identity(&owner).await;
        assert!(matches!(answer, Err(StoreError::Busy)), "{answer:?}");
    }
}
