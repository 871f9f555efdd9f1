//! Bringing a file to the version this program writes.
//!
//! All steps are one transaction that ends with the new version number, so what was killed has not happened, and
//! the next start begins anew. Before them a copy is put beside the file; the last two copies are kept (spec:
//! security §22).

use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, ErrorCode};

use super::connection::failure;
use super::open::{Access, raw};
use super::versions::{APPLICATION_ID, Step, create};
use crate::error::StoreError;
use crate::home::{migration_copy, unfinished_migration_copy};
use crate::identity::StoreId;

/// Copies that are kept beside the file.
const COPIES: usize = 2;

/// The version of the file a connection is open on; 0 for an empty one.
pub(crate) fn version(conn: &Connection) -> Result<u32, StoreError> {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failure)
}

/// Takes the steps that are missing, all or none: a file that is being made has the newest version or is empty.
///
/// Processes of this program may do so at once, the first does it; that no older one has the file open is the
/// caller's word. A copy of an older one is put beside the file named by `keep`. Returns the version the file had, if it
/// was this process that took steps.
pub(crate) fn bring_up(
    conn: &mut Connection,
    keep: Option<&Path>,
    steps: &[Step],
) -> Result<Option<u32>, StoreError> {
    // A step is a write, for which others would be waited for: a file that is up to date is only looked at.
    if missing(version(conn)?, steps).is_empty() {
        return Ok(None);
    }
    let transaction =
        conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(failure)?;
    // Another process may have been first.
    let from = version(&transaction)?;
    let missing = missing(from, steps);
    let Some(last) = missing.last() else { return Ok(None) };
    if from == 0 {
        create(&transaction)?;
    } else {
        if let Some(path) = keep {
            // A connection that writes cannot be copied from.
            keep_copy(&raw(path, Access::Read)?, path, from)?;
        }
        let taken = missing.iter().try_for_each(|step| (step.run)(&transaction));
        taken.map_err(|error| of_other_tables(error, from))?;
    }
    finish(&transaction, last)?;
    transaction.commit().map_err(failure)?;
    Ok(Some(from).filter(|from| *from > 0))
}

/// The steps from a version to the newest; of an empty file the last alone, which says what it is once made.
fn missing(from: u32, steps: &[Step]) -> Vec<&Step> {
    if from == 0 {
        return steps.last().into_iter().collect();
    }
    let mut at = from;
    let next = || {
        let step = steps.iter().find(|step| step.from == at)?;
        at = step.to;
        Some(step)
    };
    std::iter::from_fn(next).collect()
}

/// What a step met that found other tables than those of the version that the file names.
fn of_other_tables(error: StoreError, from: u32) -> StoreError {
    match error {
        StoreError::Sqlite(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => {
            tracing::warn!(%error, "a step to newer tables failed");
            StoreError::Damaged(format!("it names version {from}, and its tables are not of that"))
        }
        other => other,
    }
}

/// Writes down what the file is now.
fn finish(transaction: &Connection, last: &Step) -> Result<(), StoreError> {
    let mut set = transaction
        .prepare("INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value")
        .map_err(failure)?;
    set.execute(("min_reader", last.min_reader)).map_err(failure)?;
    set.execute(("min_writer", last.min_writer)).map_err(failure)?;
    transaction
        .execute("INSERT OR IGNORE INTO meta (key, value) VALUES ('store', ?1)", [StoreId::random()?.0])
        .map_err(failure)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(failure)?;
    transaction.pragma_update(None, "user_version", last.to).map_err(failure)
}

/// Puts a copy of the file beside it, whole or not at all.
fn keep_copy(conn: &Connection, path: &Path, version: u32) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| StoreError::io(format!("copy {}", path.display()), error);
    let size = conn
        .query_row("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", [], |row| {
            row.get::<_, i64>(0)
        })
        .map_err(failure)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let space = rustix::fs::statvfs(folder).map_err(|error| failed(error.into()))?;
    // The copy, and the log of a step that writes every page.
    if space.f_bavail.saturating_mul(space.f_frsize) < (size as u64).saturating_mul(2) {
        return Err(StoreError::DiskFull);
    }
    let copy = migration_copy(path, version);
    let unfinished = unfinished_migration_copy(path, version);
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    copy_to(conn, &unfinished)?;
    std::fs::rename(&unfinished, &copy).map_err(failed)?;
    sync(folder).map_err(failed)?;
    drop_old_copies(path, version);
    Ok(())
}

/// Writes a copy of the file, as of one moment, by SQLite's own means, and syncs it.
pub(crate) fn copy_to(from: &Connection, to: &Path) -> Result<(), StoreError> {
    create_private(to)?;
    let mut copy = Connection::open(to).map_err(failure)?;
    let backup = Backup::new(from, &mut copy).map_err(failure)?;
    // In one go: a copy in pieces begins anew with each write of another process.
    match backup.step(-1).map_err(failure)? {
        StepResult::Done => {}
        _ => return Err(StoreError::Busy),
    }
    drop(backup);
    // Only the process that made the copy knows of it, so that closing it drops nobody's locks.
    copy.close().map_err(|(_, error)| failure(error))?;
    sync(to).map_err(|error| StoreError::io(format!("write {}", to.display()), error))
}

/// Makes an empty file that only its owner reads.
///
/// # Errors
/// [`StoreError::Exists`] when there is one.
fn create_private(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let created = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match created {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(StoreError::Exists("file")),
        Err(error) => Err(StoreError::io(format!("create {}", path.display()), error)),
    }
}

fn sync(path: &Path) -> std::io::Result<()> {
    std::fs::File::open(path)?.sync_all()
}

/// Removes all but the newest copies. One that cannot be removed is in nobody's way.
fn drop_old_copies(path: &Path, newest: u32) {
    let older = (0..newest).rev().map(|version| migration_copy(path, version)).filter(|copy| copy.exists());
    for copy in older.skip(COPIES - 1) {
        if let Err(error) = std::fs::remove_file(&copy) {
            tracing::warn!(file = %copy.display(), %error, "an old copy of the store could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::versions::{Run, STEPS, batch};
    use super::*;
    use crate::schema::VERSION;

    /// Steps of a later program, by how many versions later they are.
    fn later(steps: &[Run]) -> Vec<Step> {
        let added = steps.iter().zip(VERSION..).map(|(run, from)| Step {
            from,
            to: from + 1,
            min_reader: 1,
            min_writer: from + 1,
            run: *run,
        });
        STEPS.iter().copied().chain(added).collect()
    }

    fn open(path: &Path) -> Connection {
        let conn = Connection::open(path).unwrap();
        conn.pragma_update(None, "journal_mode", "WAL").unwrap();
        conn
    }

    #[test]
    fn a_step_that_fails_half_way_has_not_happened_and_is_taken_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loom.db");
        bring_up(&mut open(&path), Some(&path), STEPS).unwrap();
        let broken = later(&[|conn| {
            batch(conn, "CREATE TABLE two (x); INSERT INTO two VALUES (1); INSERT INTO nowhere VALUES (1);")
        }]);
        let failed = bring_up(&mut open(&path), Some(&path), &broken).unwrap_err();
        assert!(matches!(failed, StoreError::Damaged(_)), "{failed}");
        let conn = open(&path);
        assert_eq!(version(&conn).unwrap(), VERSION);
        assert!(conn.prepare("SELECT * FROM two").is_err());
        drop(conn);
        let whole = later(&[
            |conn| batch(conn, "CREATE TABLE two (x);"),
            |conn| batch(conn, "CREATE TABLE three (x);"),
        ]);
        bring_up(&mut open(&path), Some(&path), &whole).unwrap();
        let conn = open(&path);
        assert_eq!(version(&conn).unwrap(), VERSION + 2);
        let writer: u32 =
            conn.query_row("SELECT value FROM meta WHERE key = 'min_writer'", [], |row| row.get(0)).unwrap();
        assert_eq!(writer, VERSION + 2);
        let old = Connection::open(migration_copy(&path, VERSION)).unwrap();
        assert_eq!(version(&old).unwrap(), VERSION);
    }

    #[test]
    fn the_last_two_copies_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loom.db");
        let steps = later(&[|_| Ok(()), |_| Ok(()), |_| Ok(())]);
        for end in STEPS.len()..=steps.len() {
            bring_up(&mut open(&path), Some(&path), &steps[..end]).unwrap();
        }
        let kept: Vec<_> =
            (0..VERSION + 4).filter(|version| migration_copy(&path, *version).exists()).collect();
        assert_eq!(kept, [VERSION + 1, VERSION + 2]);
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &migration_copy(&path, VERSION + 2).metadata().unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
    }
}
