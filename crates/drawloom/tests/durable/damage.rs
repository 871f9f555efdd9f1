//! Files that are damaged, foreign or from the future: said, and not made worse.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::{Before, Home};

/// Asserts that no command opens this file, and that none changes a byte of it.
#[track_caller]
fn is_left_alone(home: &Home, words: &[&str]) {
    let bytes = fs::read(home.database()).unwrap();
    let model = home.script(&[serde_json::json!({"text": " It poured."})]);
    let commands: [&[&str]; 4] = [
        &["tree", "text", "Tale"],
        &["tree", "append", "Tale", " It poured."],
        &["tree", "new", "--text", "x"],
        &["--model", &model, "tree", "generate", "Tale"],
    ];
    for arguments in commands {
        home.run(arguments).refused(6, words);
        assert!(fs::read(home.database()).unwrap() == bytes, "{arguments:?} changed the file");
    }
}

/// A tale with enough in it that its store has many pages.
fn long_tale() -> Home {
    let home = Home::with_tale("It rained.");
    for number in 0..4 {
        let text: String = (0..20_000).map(|word| format!(" {number}/{word}")).collect();
        home.run_with(&["tree", "append", "Tale", "-"], text.as_bytes());
    }
    home
}

/// Overwrites a part of the store.
fn overwrite(home: &Home, at: usize, with: &[u8]) {
    let mut bytes = fs::read(home.database()).unwrap();
    bytes[at..at + with.len()].copy_from_slice(with);
    fs::write(home.database(), bytes).unwrap();
}

#[test]
fn a_store_whose_beginning_is_overwritten_is_not_opened() {
    let home = long_tale();
    overwrite(&home, 0, &[0xa5; 512]);
    is_left_alone(&home, &["not a Drawloom store"]);
}

#[test]
fn a_store_that_ends_too_early_is_found_damaged() {
    let home = long_tale();
    let bytes = fs::read(home.database()).unwrap();
    fs::write(home.database(), &bytes[..bytes.len() / 2]).unwrap();
    home.run(&["tree", "append", "Tale", " It poured."]).refused(6, &["damaged", "backup"]);
}

#[test]
fn a_store_with_a_hole_in_it_is_found_damaged() {
    let home = long_tale();
    let length = fs::read(home.database()).unwrap().len();
    overwrite(&home, length / 4 / 4096 * 4096, &vec![0xa5; length / 2 / 4096 * 4096]);
    for arguments in [&["tree", "verify", "Tale"][..], &["tree", "text", "Tale"]] {
        let ran = home.run(arguments);
        ran.refused(6, &["damaged", "backup"]);
    }
    let check = home.run(&["--json", "store", "check"]);
    assert!([Some(1), Some(6)].contains(&check.status.code()), "{check:?}");
}

#[test]
fn one_changed_letter_of_a_text_is_found_by_verify() {
    let home = Home::with_tale("Plainly visible in the file.");
    let bytes = fs::read(home.database()).unwrap();
    let needle = b"Plainly visible";
    let places: Vec<usize> =
        (0..bytes.len() - needle.len()).filter(|at| bytes[*at..].starts_with(needle)).collect();
    assert!(!places.is_empty(), "the text is not stored as it is");
    for at in places {
        overwrite(&home, at, b"B");
    }
    let verified = home.run(&["--json", "tree", "verify", "Tale"]);
    assert_eq!(verified.status.code(), Some(1), "{verified:?}");
    assert!(verified.stdout.contains(r#""status":"invalid""#), "{verified:?}");
}

#[test]
fn a_view_whose_tip_is_damaged_is_damage_and_not_a_lack() {
    let home = Home::with_tale("It rained.");
    let before = Before::of(&home);
    let conn = rusqlite::Connection::open(home.database()).unwrap();
    // The cell of the tip, as the store keeps it.
    let (form, number): (i64, i64) = conn
        .query_row("SELECT form, number FROM cells WHERE kind = 6", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    for (form, number) in [(0, 0), (form, number + 40), (form + 1, number)] {
        conn.execute("UPDATE cells SET form = ?1, number = ?2 WHERE kind = 6", (form, number)).unwrap();
        for arguments in [&["tree", "text", "Tale"][..], &["tree", "append", "Tale", " It poured."]] {
            home.run(arguments).refused(6, &["damaged"]);
        }
    }
    conn.execute("UPDATE cells SET form = ?1, number = ?2 WHERE kind = 6", (form, number)).unwrap();
    drop(conn);
    home.run(&["tree", "text", "Tale", "--view", "nobody"]).refused(3, &["nobody"]);
    before.unharmed(&home);
}

#[test]
fn another_programs_file_is_not_touched() {
    for content in [&b"Dear diary, today it rained.\n"[..], &[0; 4096]] {
        let home = Home::with_tale("It rained.");
        fs::write(home.database(), content).unwrap();
        is_left_alone(&home, &["not a Drawloom store", "--home"]);
    }
}

#[test]
fn another_programs_database_is_not_touched() {
    let home = Home::with_tale("It rained.");
    fs::remove_file(home.database()).unwrap();
    let foreign = rusqlite::Connection::open(home.database()).unwrap();
    foreign.execute_batch("CREATE TABLE diary (day, entry); INSERT INTO diary VALUES (1, 'rain')").unwrap();
    drop(foreign);
    is_left_alone(&home, &["not a Drawloom store"]);
}

#[test]
fn a_store_of_a_later_version_is_not_opened_unless_it_says_that_it_may_be_read() {
    let home = Home::with_tale("It rained.");
    let before = Before::of(&home);
    let store = |sql: &str| rusqlite::Connection::open(home.database()).unwrap().execute_batch(sql).unwrap();
    let version: u32 = rusqlite::Connection::open(home.database())
        .unwrap()
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    store("PRAGMA user_version = 999; UPDATE meta SET value = 999 WHERE key = 'min_reader'");
    is_left_alone(&home, &["version 999", "update it"]);
    store("UPDATE meta SET value = 1 WHERE key = 'min_reader'");
    assert_eq!(home.text(), "It rained.");
    home.run(&["tree", "append", "Tale", " It poured."]).refused(6, &["reading only"]);
    store(&format!("PRAGMA user_version = {version}"));
    before.unharmed(&home);
}

#[test]
fn a_spool_that_cannot_be_read_stays_for_whoever_can() {
    let home = Home::with_tale("It rained.");
    let name = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let spool = home.path().join("spool").join(name);
    fs::create_dir_all(spool.parent().unwrap()).unwrap();
    fs::write(&spool, "{\"version\":999}\ndata: a later answer\n\n").unwrap();
    let ran = home.run(&["tree", "text", "Tale"]);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert!(ran.stderr.contains("later version (999)"), "{ran:?}");
    assert!(spool.exists(), "what a later version received was thrown away");
    // A header that is not whole has nothing behind it.
    fs::write(&spool, "{\"versi").unwrap();
    home.ok(&["tree", "text", "Tale"]);
    assert!(!spool.exists());
}

#[test]
fn a_log_with_a_second_name_or_behind_a_link_is_not_written_through() {
    let home = Home::with_tale("It rained.");
    let before = Before::of(&home);
    let mine = home.file("thesis.txt", "mine");
    let links: [fn(&Path, &Path) -> std::io::Result<()>; 2] =
        [|mine, log| fs::hard_link(mine, log), |mine, log| symlink(mine, log)];
    for (link, said) in links.into_iter().zip(["hard links", "not a plain file"]) {
        for name in ["loom.db-wal", "loom.db-journal"] {
            let log = home.path().join(name);
            link(&mine, &log).unwrap();
            home.run(&["tree", "append", "Tale", " It poured."]).refused(6, &[name, said]);
            assert_eq!(home.run(&["doctor", "--quick"]).status.code(), Some(1));
            assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
            fs::remove_file(&log).unwrap();
        }
    }
    before.unharmed(&home);
}

#[test]
fn an_empty_store_in_a_home_that_was_used_is_damage_and_no_beginning() {
    let home = Home::with_tale("It rained.");
    let backup = home.folder().join("kept.backup");
    home.ok(&["backup", "-o", backup.to_str().unwrap()]);
    fs::write(home.database(), b"").unwrap();
    is_left_alone(&home, &["the store is damaged", "loom.db is empty", "backup"]);
    let check = home.run(&["store", "check"]);
    check.refused(6, &["loom.db is empty", "`drawloom doctor`"]);
    assert!(!check.stderr.contains("`drawloom store check`"), "{check:?}");
    let doctor = home.run(&["doctor", "--quick"]);
    assert_eq!(doctor.status.code(), Some(1), "{doctor:?}");
    let kept = doctor.stdout.lines().find(|line| line.contains("backup  ")).unwrap();
    assert!(kept.contains("kept.backup") && kept.contains("drawloom restore"), "{doctor:?}");
}

#[test]
fn a_log_without_its_store_is_damage_until_it_is_moved_away() {
    let home = Home::with_tale("It rained.");
    fs::remove_file(home.database()).unwrap();
    let logs = ["loom.db-wal", "loom.db-journal"];
    for name in logs {
        let log = home.path().join(name);
        fs::write(&log, "the log of the store that was here").unwrap();
        home.run(&["tree", "list"]).refused(6, &["loom.db is missing", name]);
        let doctor = home.run(&["doctor", "--quick"]);
        assert_eq!(doctor.status.code(), Some(1), "{doctor:?}");
        assert!(doctor.stdout.contains(name) && !doctor.stdout.contains("nothing was stored"), "{doctor:?}");
        fs::remove_file(&log).unwrap();
    }
    home.run(&["tree", "list"]).refused(6, &["is not there", "remove spool"]);
    fs::remove_dir(home.path().join("spool")).unwrap();
    home.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let backup = home.folder().join("kept.backup");
    let backup = backup.to_str().unwrap();
    home.ok(&["backup", "-o", backup]);
    fs::remove_file(home.database()).unwrap();
    for name in logs {
        let log = home.path().join(name);
        fs::write(&log, "the log of the store that was here").unwrap();
        home.run(&["tree", "list"]).refused(6, &["loom.db is missing", name]);
        home.run(&["restore", backup]).refused(2, &[name, "--to"]);
        assert!(log.exists() && !home.database().exists());
        let doctor = home.run(&["doctor", "--quick"]);
        assert_eq!(doctor.status.code(), Some(1), "{doctor:?}");
        assert_eq!(doctor.stdout.matches("`drawloom restore FILE --to DIR`").count(), 2, "{doctor:?}");
        // Nothing is in it that could be read as the log of another store.
        fs::write(&log, "").unwrap();
    }
    home.ok(&["restore", backup]);
    assert_eq!(home.text(), "It rained.");
    home.is_sound();
}

/// The control: what a process leaves that was killed while it made the first store.
#[test]
fn an_empty_store_in_a_home_that_was_never_used_is_a_beginning() {
    let home = Home::new();
    for folder in ["", "run", "locks"] {
        fs::create_dir(home.path().join(folder)).unwrap();
    }
    fs::write(home.database(), b"").unwrap();
    home.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    assert_eq!(home.text(), "It rained.");
}
