//! Whose file it is, which version it has, whether it is whole.

use std::path::Path;
use std::sync::Arc;

use loom::{Mode, Op};
use rusqlite::Connection;
use store::{AttachedWrites, Options, Store, StoreError, TreeFilter};

use crate::both::block_on;
use crate::home::{Home, OWNER, owner_text};

fn home(path: &Path) -> Home {
    Home::new(Arc::new(Store::open(path).unwrap()))
}

/// A store with one tree of a few nodes.
fn fill(path: &Path) -> loom::TreeId {
    block_on(async {
        let page = home(path).create(Mode::Buffer, "Rain").await;
        for line in 0..20 {
            page.append(&format!("line {line} of the story. ")).await;
        }
        page.tree
    })
}

fn page(path: &Path, tree: loom::TreeId) -> crate::home::Page {
    crate::home::Page { home: home(path), tree }
}

#[test]
fn what_was_acknowledged_is_there_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let tree = fill(&path);
    let identity = block_on(home(&path).store.identity(OWNER)).unwrap();
    block_on(async {
        let page = page(&path, tree);
        assert!(page.text().await.ends_with("line 19 of the story. "));
        assert_eq!(page.home.store.identity(OWNER).await.unwrap(), identity);
    });
    let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_store_has_its_name_only_when_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let seen = scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                match path.metadata() {
                    Ok(found) if found.len() == 0 => return "an empty store",
                    _ => std::hint::spin_loop(),
                }
            }
            "none"
        });
        for _ in 0..50 {
            drop(Store::open(&path).unwrap());
            for entry in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_file() {
                    std::fs::remove_file(entry.path()).unwrap();
                }
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(seen.join().unwrap(), "none");
    });
}

#[test]
fn stores_that_are_made_at_once_are_one_and_leave_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let stores: Vec<_> = std::thread::scope(|scope| {
        let opening: Vec<_> = (0..6).map(|_| scope.spawn(|| Store::open(&path).unwrap())).collect();
        opening.into_iter().map(|store| store.join().unwrap()).collect()
    });
    let names: Vec<_> = stores.iter().map(|store| block_on(store.identity(OWNER)).unwrap()).collect();
    assert!(names.iter().all(|name| *name == names[0]));
    let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| name.to_string_lossy().starts_with("loom.db")));
}

#[test]
fn what_is_left_of_a_store_is_damage_and_no_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let damaged = || matches!(Store::open(&path), Err(StoreError::Damaged(_)));
    for log in ["loom.db-wal", "loom.db-journal"].map(|name| folder.path().join(name)) {
        std::fs::write(&log, "a log that somebody left").unwrap();
        assert!(damaged(), "a log without its store");
        assert!(log.exists() && !path.exists());
        std::fs::remove_file(&log).unwrap();
    }
    std::fs::write(&path, "").unwrap();
    std::fs::create_dir(folder.path().join("spool")).unwrap();
    assert!(damaged(), "an empty one in a home that was used");
    set(&path, "PRAGMA user_version = 0;");
    assert!(path.metadata().unwrap().len() > 0 && damaged(), "one without tables");
    for beginning in [1, 99, 100, 4096] {
        std::fs::write(&path, vec![0; beginning]).unwrap();
        assert!(matches!(Store::open(&path), Err(StoreError::Foreign(_))), "{beginning} bytes");
        assert_eq!(std::fs::read(&path).unwrap(), vec![0; beginning]);
    }
}

#[test]
fn a_store_that_says_no_version_is_damaged_and_not_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    fill(&path);
    set(&path, "PRAGMA user_version = 0;");
    let before = std::fs::read(&path).unwrap();
    match Store::open(&path) {
        Err(StoreError::Damaged(why)) => {
            assert!(why.contains("does not say of which version it is"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn another_programs_file_is_refused_and_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "not a database, but a long enough text to look at. ".repeat(100)).unwrap();
    let other = folder.path().join("other.db");
    let conn = Connection::open(&other).unwrap();
    conn.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1);").unwrap();
    conn.close().unwrap();
    for path in [text, other] {
        let before = std::fs::read(&path).unwrap();
        assert!(matches!(Store::open(&path), Err(StoreError::Foreign(_))), "{path:?}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}

fn set(path: &Path, sql: &str) {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch(sql).unwrap();
    conn.close().unwrap();
}

#[test]
fn a_newer_programs_file_is_read_if_it_allows_and_else_refused_by_version() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let tree = fill(&path);
    set(&path, "UPDATE meta SET value = 9 WHERE key = 'min_writer'; PRAGMA user_version = 9;");
    block_on(async {
        let store = Arc::new(Store::open(&path).unwrap());
        assert!(store.is_read_only());
        let page = crate::home::Page { home: Home::new(store), tree };
        assert!(page.text().await.starts_with("line 0"));
        let written = page.change_as(OWNER, Op::Append(owner_text("x")), AttachedWrites::nothing()).await;
        assert!(matches!(written, Err(StoreError::ReadOnly)));
    });
    set(&path, "UPDATE meta SET value = 9 WHERE key = 'min_reader';");
    let before = std::fs::read(&path).unwrap();
    let refused = Store::open(&path);
    let Err(StoreError::SchemaTooNew { found: 9, known, backup }) = refused else { panic!("{refused:?}") };
    assert!(backup.ends_with(&format!("loom.db.v{known}.bak")));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_file_changed_by_a_newer_program_while_open_is_written_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let tree = fill(&path);
    block_on(async {
        let page = page(&path, tree);
        page.append("before").await;
        set(&path, "UPDATE meta SET value = 9 WHERE key = 'min_writer';");
        let written = page.change_as(OWNER, Op::Append(owner_text("after")), AttachedWrites::nothing()).await;
        assert!(matches!(written, Err(StoreError::SchemaTooNew { found: 9, .. })), "{written:?}");
        assert!(page.text().await.ends_with("before"));
    });
}

#[test]
fn a_file_cut_off_before_its_first_step_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    // Version 0 with our mark: made, and cut off before the first step.
    set(&path, "PRAGMA application_id = 0x44724c6d;");
    drop(Store::open(&path).unwrap());
    block_on(async {
        assert!(home(&path).store.trees(OWNER, TreeFilter::All, None, 9_999).await.unwrap().is_empty());
    });
}

#[test]
fn damage_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let tree = fill(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    let len = bytes.len();
    bytes[8192..len - 4096].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let found = block_on(async {
        let store = match Store::open(&path) {
            Ok(store) => store,
            Err(error) => return Err(error),
        };
        let home = Home::new(Arc::new(store));
        home.store.tree(OWNER, tree).await?;
        let problems = home.store.check(OWNER).await?;
        assert!(!problems.is_empty());
        Ok(())
    });
    assert!(matches!(found, Ok(()) | Err(StoreError::Damaged(_))), "{found:?}");
}

#[test]
fn a_missing_row_is_found_by_check() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let tree = fill(&path);
    block_on(async { assert!(home(&path).store.check(OWNER).await.unwrap().is_empty()) });
    set(&path, "DELETE FROM operations WHERE seq = 5; DELETE FROM nodes WHERE seq = 7;");
    let problems = block_on(async { home(&path).store.check(OWNER).await.unwrap() });
    let id = tree.to_string();
    assert!(problems.iter().any(|line| line.contains("operations") && line.ends_with(&id)), "{problems:?}");
    assert!(problems.iter().any(|line| line.contains("nodes") && line.ends_with(&id)), "{problems:?}");
}

#[test]
fn a_store_opened_for_reading_reads_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let options = Options { read_only: true, ..Options::default() };
    assert!(matches!(Store::open_with(&path, &options), Err(StoreError::Io { .. })));
    let tree = fill(&path);
    block_on(async {
        let home = Home::new(Arc::new(Store::open_with(&path, &options).unwrap()));
        let page = crate::home::Page { home, tree };
        assert!(page.text().await.starts_with("line 0"));
        let written = page.change_as(OWNER, Op::Append(owner_text("x")), AttachedWrites::nothing()).await;
        assert!(matches!(written, Err(StoreError::ReadOnly)));
    });
}

#[test]
fn a_backup_is_one_file_of_one_moment_with_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let tree = fill(&path);
    let copy = folder.path().join("copy.db");
    block_on(async {
        let page = page(&path, tree);
        let identity = page.home.store.identity(OWNER).await.unwrap();
        let backup = page.home.store.backup(OWNER, &copy).await.unwrap();
        assert_eq!(backup.identity, identity);
        assert_eq!(backup.bytes, copy.metadata().unwrap().len());
        let again = page.home.store.backup(OWNER, &copy).await;
        assert!(matches!(again, Err(StoreError::Exists("file"))));
        page.append("later").await;
    });
    let mode = std::os::unix::fs::PermissionsExt::mode(&copy.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert!(!folder.path().join("copy.db-wal").exists());
    block_on(async {
        let restored = page(&copy, tree);
        assert!(restored.text().await.ends_with("line 19 of the story. "));
        assert!(restored.home.store.check(OWNER).await.unwrap().is_empty());
        restored.append("and on").await;
    });
}

#[test]
fn a_store_that_was_closed_has_its_log_copied_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    for _ in 0..40 {
        block_on(async {
            let home = Home::new(Arc::new(Store::open(&path).unwrap()));
            let page = home.create(Mode::Buffer, "").await;
            page.append("It rained.").await;
            assert_eq!(page.text().await, "It rained.");
        });
        let log = path.with_file_name("loom.db-wal");
        assert!(!log.exists(), "the log is left behind");
    }
}
