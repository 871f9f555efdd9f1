//! Stores of older versions: brought up to date once, whole, and kept as they were.
//!
//! The fixtures are stores of versions 2 to 7 with branches, versions, drafts, views, a seal, a conversation, a
//! forgotten text, a purged tree and, from 5 on, a call of a tool, from 6 on a file that a tool wrote, and the exports that the program of that version wrote of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use crate::kill::kills;
use crate::support::{Home, Seeded, ended, resume, suspend, until};

/// Versions with a fixture.
pub(crate) const VERSIONS: [u32; 6] = [2, 3, 4, 5, 6, 7];
/// The version this program writes.
pub(crate) const CURRENT: u32 = 8;

fn fixture(of: u32, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/version_{of}")).join(name)
}

pub(crate) fn of_version(of: u32) -> Home {
    let home = Home::new();
    fs::create_dir(home.path()).unwrap();
    fs::copy(fixture(of, "loom.db"), home.database()).unwrap();
    for folder in fs::read_dir(fixture(of, "blobs")).into_iter().flatten().map(Result::unwrap) {
        let to = home.path().join("blobs").join(folder.file_name());
        fs::create_dir_all(&to).unwrap();
        for blob in fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
            fs::copy(blob.path(), to.join(blob.file_name())).unwrap();
        }
    }
    for path in [home.path(), home.database()] {
        let mode = if path.is_dir() { 0o700 } else { 0o600 };
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }
    home
}

fn of_version_1() -> Home {
    let home = of_version(2);
    let older =
        "DROP TABLE injections; UPDATE meta SET value = 1 WHERE key = 'min_writer'; PRAGMA user_version = 1";
    rusqlite::Connection::open(home.database()).unwrap().execute_batch(older).unwrap();
    home
}

pub(crate) fn version(path: &Path) -> u32 {
    let store = rusqlite::Connection::open(path).unwrap();
    store.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

/// Everything of the trees is as the older program exported it, and the store is whole.
pub(crate) fn is_what_it_was(home: &Home, of: u32) {
    for (title, export) in [("Rain", "rain"), ("Snow", "snow"), ("Hello, loom", "hello--loom")] {
        let to = home.folder().join(format!("{export}.jsonl"));
        home.ok(&["tree", "export", title, "--with-context", "-o", to.to_str().unwrap()]);
        let expected = fs::read(fixture(of, &format!("{export}.jsonl"))).unwrap();
        assert!(fs::read(&to).unwrap() == expected, "the export of {title} is another one");
        fs::remove_file(to).unwrap();
        home.ok(&["tree", "verify", title]);
    }
    home.ok(&["store", "check"]);
}

#[test]
fn an_older_store_is_brought_up_to_date_once_and_kept_as_it_was() {
    let home = of_version_1();
    let doctor = home.run(&["doctor", "--quick"]);
    assert!(doctor.stdout.contains("an older Drawloom wrote the store"), "{doctor:?}");
    let racing: Vec<_> = (0..5).map(|_| home.command(&["tree", "text", "Rain"]).spawn().unwrap()).collect();
    let ran: Vec<_> = racing.into_iter().map(ended).collect();
    assert!(ran.iter().all(|ran| ran.stdout.contains("It rained")), "{ran:?}");
    let told = ran.iter().filter(|ran| ran.stderr.contains(&format!("from version 1 to {CURRENT}"))).count();
    assert_eq!(told, 1, "the one that did it says so: {ran:?}");
    assert_eq!(home.run(&["tree", "text", "Rain"]).stderr, "");
    assert_eq!(version(&home.path().join("loom.db.v1.bak")), 1);
    is_what_it_was(&home, 2);
}

#[test]
fn nothing_of_an_older_store_is_lost_and_work_goes_on_in_it() {
    VERSIONS.into_iter().for_each(goes_on);
}

fn goes_on(of: u32) {
    let home = of_version(of);
    is_what_it_was(&home, of);
    let text = home.run(&["tree", "text", "Rain"]).stdout;
    assert!(text.contains("It rained (pending).") && text.ends_with("a draft that waits"), "{text}");
    assert!(home.run(&["tree", "search", "roof"]).stdout.contains("check the roof"));
    assert_eq!(home.run(&["tree", "search", "\"What do you see?\""]).stdout, "");
    if of >= 5 {
        assert!(home.run(&["tree", "show", "What is there?"]).stdout.contains("main.rs"));
        home.ok(&["tree", "verify", "What is there?"]);
    }
    if of >= 6 {
        assert!(home.run(&["tree", "show", "Write a note."]).stdout.contains("notes.md"));
    }
    home.ok(&["tree", "undo", "Rain"]);
    home.ok(&["tree", "redo", "Rain"]);
    home.ok(&["tree", "append", "Snow", "And on."]);
    home.ok(&["tree", "verify", "Snow"]);
    home.ok(&["tree", "verify", "Rain"]);
    home.ok(&["store", "check"]);
}

#[test]
fn an_older_store_is_left_alone_while_an_older_program_may_have_it_open() {
    use store::instance::{About, InstanceId, Instances};
    let home = of_version_1();
    let folder = store::home::Home::open(&home.path(), store::home::HomeOptions::default()).unwrap();
    let about = About { schema: 0, ..About::this_process("up", "0.0.1", 1) };
    let old = Instances::of(&folder).unwrap().start(InstanceId::generate(1).unwrap(), &about).unwrap();
    home.run(&["tree", "append", "Rain", " x"])
        .refused(6, &["older Drawloom", "drawloom up", "nothing was changed"]);
    let read = home.run(&["tree", "text", "Rain"]);
    assert!(read.stdout.contains("It rained"), "{read:?}");
    assert!(read.stderr.contains("from a private copy") && read.stderr.contains("drawloom up"), "{read:?}");
    assert_eq!(version(&home.database()), 1);
    drop(old);
    home.ok(&["tree", "text", "Rain"]);
    assert_eq!(version(&home.database()), CURRENT);
}

#[test]
fn an_update_that_is_killed_has_not_happened_and_happens_with_the_next_command() {
    for of in VERSIONS {
        let whole = {
            let home = of_version(of);
            let start = std::time::Instant::now();
            home.ok(&["tree", "list"]);
            start.elapsed()
        };
        let longest = whole.as_micros() as u64;
        let mut seeded = Seeded::new(3);
        for _ in 0..kills() / 10 {
            let home = of_version(of);
            let mut child = home.command(&["tree", "list"]).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(seeded.below(longest)));
            child.kill().unwrap();
            ended(child);
            assert!([of, CURRENT].contains(&version(&home.database())));
            home.ok(&["tree", "list"]);
            assert_eq!(version(&home.database()), CURRENT);
            is_what_it_was(&home, of);
        }
    }
}

/// A store of an older version that takes a while to be copied: much of its file is free.
fn large_of_version(of: u32) -> Home {
    let home = of_version(of);
    let noise = "CREATE TABLE noise (bytes); INSERT INTO noise VALUES (zeroblob(40000000)); DROP TABLE noise";
    rusqlite::Connection::open(home.database()).unwrap().execute_batch(noise).unwrap();
    home
}

/// The copies of the store that lie in a home, unfinished or whole.
pub(crate) fn copies(home: &Home) -> Vec<String> {
    let names =
        fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains(".bak")).collect()
}

/// Starts a command that updates the store, up to the middle of the copy it makes first.
fn in_the_middle(home: &Home, of: u32) -> Child {
    let child = home.command(&["tree", "list"]).spawn().unwrap();
    let part = home.path().join(format!("loom.db.v{of}.bak.part"));
    until("a part of the copy", || fs::metadata(&part).is_ok_and(|part| part.len() > 0));
    child
}

#[test]
fn an_update_that_is_killed_in_the_middle_leaves_nothing_behind() {
    for of in VERSIONS {
        let home = large_of_version(of);
        let mut child = in_the_middle(&home, of);
        child.kill().unwrap();
        ended(child);
        let part = format!("loom.db.v{of}.bak.part");
        assert!(copies(&home).contains(&part), "the control: it was killed in time: {:?}", copies(&home));
        assert_eq!(version(&home.database()), of);
        // Of an update from another version, which no command would write anew.
        fs::write(home.path().join("loom.db.v1.bak.part"), "half").unwrap();
        home.ok(&["tree", "list"]);
        assert_eq!(copies(&home), [format!("loom.db.v{of}.bak")]);
        assert_eq!(version(&home.database()), CURRENT);
        is_what_it_was(&home, of);
    }
}

#[test]
fn nobody_sweeps_the_copy_of_an_update_under_way() {
    let home = large_of_version(3);
    let updating = in_the_middle(&home, 3);
    suspend(&updating);
    let before = copies(&home);
    let part = "loom.db.v3.bak.part".to_owned();
    assert!(before.contains(&part), "the control: it stands in the middle: {before:?}");
    home.run(&["tree", "list"]).refused(6, &["busy"]);
    assert_eq!(copies(&home), before);
    resume(&updating);
    let updated = ended(updating);
    assert_eq!(updated.status.code(), Some(0), "{updated:?}");
    assert_eq!(copies(&home), ["loom.db.v3.bak"]);
    assert_eq!(version(&home.path().join("loom.db.v3.bak")), 3);
    is_what_it_was(&home, 3);
}

/// The later tables of version 3 had the columns of version 4.
#[test]
fn a_store_with_the_later_tables_of_version_3_is_brought_up_to_date() {
    let home = of_version(3);
    is_what_it_was(&home, 3);
    let conn = rusqlite::Connection::open(home.database()).unwrap();
    let lanes = |conn: &rusqlite::Connection| -> Vec<i64> {
        let mut read = conn.prepare("SELECT lane FROM positions ORDER BY pk").unwrap();
        read.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let before = lanes(&conn);
    conn.execute_batch("PRAGMA user_version = 3; UPDATE meta SET value = 3 WHERE key LIKE 'min_%'").unwrap();
    drop(conn);
    is_what_it_was(&home, 3);
    assert_eq!(version(&home.database()), CURRENT);
    assert_eq!(lanes(&rusqlite::Connection::open(home.database()).unwrap()), before);
}

#[test]
fn conversations_of_the_homes_own_workspace_lose_its_path() {
    // Since version 4 they are written without it.
    for of in [2, 3] {
        let home = of_version(of);
        let conn = rusqlite::Connection::open(home.database()).unwrap();
        let own = home.path().canonicalize().unwrap().join("workspace");
        let named = "UPDATE sessions SET workspace = iif(name = 'main', ?1, '/else/.drawloom/workspace')";
        conn.execute(named, [own.to_str().unwrap()]).unwrap();
        drop(conn);
        let listed = home.run(&["sessions", "list"]).stdout;
        assert!(listed.contains("main") && listed.contains("side"), "{of}: {listed}");
    }
}
