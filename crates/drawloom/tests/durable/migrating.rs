//! Stores of older versions: brought up to date once, whole, and kept as they were.
//!
//! The fixture is a store of version 2 with branches, versions, drafts, views, a seal, a conversation, a forgotten text
//! and a purged tree, and the exports that the program of that version wrote of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::kill::kills;
use crate::support::{Home, Seeded, ended};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/version_2").join(name)
}

fn of_version_2() -> Home {
    let home = Home::new();
    fs::create_dir(home.path()).unwrap();
    fs::copy(fixture("loom.db"), home.database()).unwrap();
    for path in [home.path(), home.database()] {
        let mode = if path.is_dir() { 0o700 } else { 0o600 };
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }
    home
}

fn of_version_1() -> Home {
    let home = of_version_2();
    let older =
        "DROP TABLE injections; UPDATE meta SET value = 1 WHERE key = 'min_writer'; PRAGMA user_version = 1";
    rusqlite::Connection::open(home.database()).unwrap().execute_batch(older).unwrap();
    home
}

fn version(path: &Path) -> u32 {
    let store = rusqlite::Connection::open(path).unwrap();
    store.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

/// Everything of the trees is as the older program exported it, and the store is whole.
fn is_what_it_was(home: &Home) {
    for (title, export) in [("Rain", "rain"), ("Snow", "snow"), ("Hello, loom", "hello--loom")] {
        let to = home.folder().join(format!("{export}.jsonl"));
        home.ok(&["tree", "export", title, "--with-context", "-o", to.to_str().unwrap()]);
        let expected = fs::read(fixture(&format!("{export}.jsonl"))).unwrap();
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
    let racing: Vec<_> = (0..4).map(|_| home.command(&["tree", "text", "Rain"]).spawn().unwrap()).collect();
    let ran: Vec<_> = racing.into_iter().map(ended).collect();
    assert!(ran.iter().all(|ran| ran.stdout.contains("It rained")), "{ran:?}");
    assert!(ran.iter().any(|ran| ran.stderr.contains("from version 1 to 3")), "{ran:?}");
    assert_eq!(home.run(&["tree", "text", "Rain"]).stderr, "");
    assert_eq!(version(&home.path().join("loom.db.v1.bak")), 1);
    is_what_it_was(&home);
}

#[test]
fn nothing_of_a_store_of_version_2_is_lost_and_work_goes_on_in_it() {
    let home = of_version_2();
    is_what_it_was(&home);
    let text = home.run(&["tree", "text", "Rain"]).stdout;
    assert!(text.contains("It rained (pending).") && text.ends_with("a draft that waits"), "{text}");
    assert!(home.run(&["tree", "search", "roof"]).stdout.contains("check the roof"));
    assert_eq!(home.run(&["tree", "search", "\"What do you see?\""]).stdout, "");
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
    home.run(&["tree", "text", "Rain"]).refused(6, &["older Drawloom", "drawloom up", "nothing was changed"]);
    assert_eq!(version(&home.database()), 1);
    drop(old);
    home.ok(&["tree", "text", "Rain"]);
    assert_eq!(version(&home.database()), 3);
}

#[test]
fn an_update_that_is_killed_has_not_happened_and_happens_with_the_next_command() {
    let whole = {
        let home = of_version_2();
        let start = std::time::Instant::now();
        home.ok(&["tree", "list"]);
        start.elapsed()
    };
    let longest = whole.as_micros() as u64;
    let mut seeded = Seeded::new(3);
    for _ in 0..kills() / 5 {
        let home = of_version_2();
        let mut child = home.command(&["tree", "list"]).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(seeded.below(longest)));
        child.kill().unwrap();
        ended(child);
        assert!(matches!(version(&home.database()), 2 | 3));
        home.ok(&["tree", "list"]);
        assert_eq!(version(&home.database()), 3);
        is_what_it_was(&home);
    }
}
