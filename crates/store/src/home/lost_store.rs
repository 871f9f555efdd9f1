//! What tells of a store that is gone: no new one takes its place, which would look as if nothing had been lost.

use std::path::{Path, PathBuf};

use super::layout::{BACKUPS, HomeDir, JOURNAL, LOG, STORE_ID, beside, migration_copy};
use crate::schema::VERSION;

/// What tells that a home had a store, where its database is missing or empty: the database's log, or what is
/// [`made_with_store`]. Whoever begins anew removes it.
pub(crate) fn sign_of_store(database: &Path) -> Option<PathBuf> {
    let sign = stray_log(database).or_else(|| made_with_store(database));
    // Last: another process may make the store meanwhile.
    sign.filter(|_| database.metadata().map_or(true, |found| found.len() == 0))
}

/// What lies beside a database and is there only once a store was open: the id of one on a server, the list of
/// backups, the folder of spools, the copies that migrations make.
pub fn made_with_store(database: &Path) -> Option<PathBuf> {
    let beside = [STORE_ID, BACKUPS, HomeDir::Spool.name()].map(|name| database.with_file_name(name));
    let copies = (1..=VERSION).map(|version| migration_copy(database, version));
    beside.into_iter().chain(copies).find(|sign| sign.symlink_metadata().is_ok())
}

/// The log of a store that is gone, which SQLite would take for that of the next one: a log or journal with content
/// beside no database, or a log beside an empty one. A journal beside an empty one is of a store that is being made.
/// Where the database is a link, they lie beside the file that it leads to.
pub fn stray_log(database: &Path) -> Option<PathBuf> {
    let database = &real(database);
    let [log, journal] = [LOG, JOURNAL].map(|end| {
        let path = beside(database, end);
        path.symlink_metadata().is_ok_and(|found| found.len() > 0).then_some(path)
    });
    // Last: another process may make the store meanwhile.
    match database.metadata() {
        Ok(found) if found.len() > 0 => None,
        Ok(_) => log,
        Err(_) => log.or(journal),
    }
}

/// Where the bytes of a database lie, or would lie.
pub(super) fn real(database: &Path) -> PathBuf {
    let target = || {
        let link = std::fs::read_link(database).ok()?;
        let target = database.parent()?.join(link);
        Some(target.parent()?.canonicalize().ok()?.join(target.file_name()?))
    };
    database.canonicalize().ok().or_else(target).unwrap_or_else(|| database.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::DATABASE;
    use super::*;

    #[test]
    fn the_log_of_a_store_that_is_gone_is_known() {
        let tmp = tempfile::tempdir().unwrap();
        let database = tmp.path().join(DATABASE);
        for end in [LOG, JOURNAL] {
            let log = beside(&database, end);
            fs::write(&log, "").unwrap();
            assert_eq!(stray_log(&database), None, "{end}: nothing is in it");
            fs::write(&log, "content").unwrap();
            assert_eq!(stray_log(&database), Some(log.clone()));
            fs::write(&database, "").unwrap();
            assert_eq!(stray_log(&database).is_some(), end == LOG, "{end}: one is being made");
            fs::write(&database, "a store").unwrap();
            assert_eq!(stray_log(&database), None, "{end}: it has its store");
            fs::remove_file(&database).unwrap();
            fs::remove_file(&log).unwrap();
        }
    }

    #[test]
    fn the_log_of_a_store_behind_a_link_lies_where_the_link_leads() {
        let tmp = tempfile::tempdir().unwrap();
        let disk = tmp.path().join("disk");
        fs::create_dir(&disk).unwrap();
        let (database, file) = (tmp.path().join(DATABASE), disk.canonicalize().unwrap().join("kept.db"));
        std::os::unix::fs::symlink("disk/kept.db", &database).unwrap();
        let log = beside(&file, LOG);
        fs::write(&log, "content").unwrap();
        assert_eq!(stray_log(&database), Some(log.clone()), "no database");
        fs::write(&file, "").unwrap();
        assert_eq!(stray_log(&database), Some(log), "an empty one");
        fs::write(&file, "a store").unwrap();
        assert_eq!(stray_log(&database), None);
    }

    #[test]
    fn what_is_made_with_a_store_tells_of_it_where_it_is_missing_or_empty() {
        let tmp = tempfile::tempdir().unwrap();
        let database = tmp.path().join(DATABASE);
        for name in ["config.toml", "run", "locks", "blobs", "loom.db.mine"] {
            fs::write(tmp.path().join(name), "").unwrap();
        }
        assert_eq!(sign_of_store(&database), None, "a home is made before its store");
        for name in ["store.id", "backups.json", "spool", "loom.db.v1.bak", "loom.db.v3.bak", "loom.db-wal"] {
            let sign = tmp.path().join(name);
            fs::write(&sign, "content").unwrap();
            assert_eq!(sign_of_store(&database), Some(sign.clone()), "no database");
            fs::write(&database, "").unwrap();
            assert_eq!(sign_of_store(&database), Some(sign.clone()), "an empty one");
            fs::write(&database, "a store").unwrap();
            assert_eq!(sign_of_store(&database), None, "{name}: it has its store");
            fs::remove_file(&database).unwrap();
            fs::remove_file(&sign).unwrap();
        }
    }
}
