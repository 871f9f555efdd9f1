//! Copies of the store that a killed command left.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Home, ended, until};

/// Beginning of the names of a store that is being made.
const NEW_STORE: &str = ".loom.db.";

/// Bytes that take a while to be packed and unpacked.
fn noise() -> Vec<u8> {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..16 << 20).map(|_| next()).collect()
}

/// What of a folder has a name that begins so.
fn left(folder: &Path, beginning: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(beginning)).collect()
}

#[test]
fn what_a_killed_first_command_left_is_swept_by_the_next_one() {
    let home = Home::new();
    fs::create_dir_all(home.path().join("run")).unwrap();
    let name = format!("{NEW_STORE}{:032x}", 0x0123);
    for name in [format!("{name}-journal"), name] {
        fs::write(home.path().join(name), "half a store").unwrap();
    }
    home.ok(&["tree", "list"]);
    assert_eq!(left(&home.path(), NEW_STORE), Vec::<PathBuf>::new());
}

#[test]
fn what_a_person_put_beside_the_store_is_swept_by_nobody() {
    let home = Home::with_tale("It rained.");
    let number = format!("{:032x}", 0x0123);
    let folder = |name: &str| {
        fs::create_dir(home.path().join(name)).unwrap();
        home.path().join(name).join("a.txt")
    };
    let mut mine: Vec<PathBuf> = [
        ".loom.db.bak".to_owned(),
        ".loom.db.0123".to_owned(),
        format!(".loom.db.{number}.old"),
        format!(".loom.db.{}", number.replace('1', "A")),
        ".backup-20261123.db".to_owned(),
        format!(".backup-{number}.db"),
        ".backups.json.4711.new".to_owned(),
        "store.id.old".to_owned(),
        "loom.db.v2.bak.gz".to_owned(),
        "loom.db.version-of-monday".to_owned(),
        "run/restore-mine".to_owned(),
        "run/restore-1-2".to_owned(),
    ]
    .map(|name| home.path().join(name))
    .into();
    mine.extend([".loom.db.notes", &format!(".loom.db.{number}"), "run/restore-of-monday"].map(folder));
    for file in &mine {
        fs::write(file, "mine").unwrap();
    }
    let swept = [".loom.db.", ".backup-", ".backups.json.", "store.id."]
        .map(|beginning| home.path().join(format!("{beginning}{:032x}", 0x0456)));
    for file in &swept {
        fs::write(file, "half").unwrap();
    }
    home.ok(&["tree", "list"]);
    for file in &mine {
        assert_eq!(fs::read_to_string(file).ok().as_deref(), Some("mine"), "{}", file.display());
    }
    assert!(swept.iter().all(|file| !file.exists()), "the control: {swept:?}");
}

#[test]
fn a_folder_with_the_files_of_a_person_is_no_home() {
    let home = Home::new();
    let notes = home.path().join(".loom.db.notes");
    fs::create_dir_all(&notes).unwrap();
    fs::write(home.path().join(".loom.db.old"), "mine").unwrap();
    home.run(&["tree", "list"]).refused(2, &["holds other files"]);
}

#[test]
fn first_commands_at_once_find_one_store() {
    let home = Home::with_tale("It rained.");
    for _ in 0..5 {
        for file in left(&home.path(), "loom.db") {
            fs::remove_file(file).unwrap();
        }
        fs::remove_dir(home.path().join("spool")).unwrap();
        let children: Vec<_> = (0..6).map(|_| home.command(&["tree", "list"]).spawn().unwrap()).collect();
        for child in children {
            let done = child.wait_with_output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
    }
    assert_eq!(left(&home.path(), NEW_STORE), Vec::<PathBuf>::new());
}

#[test]
fn what_a_killed_backup_and_a_killed_restore_left_is_swept_by_the_next_command() {
    let home = Home::with_tale("The marzipan crocodile.");
    let shard = home.path().join("blobs/aa");
    fs::create_dir_all(&shard).unwrap();
    fs::write(shard.join("b".repeat(62)), noise()).unwrap();

    let killed = home.folder().join("killed.backup");
    let mut child = home.command(&["backup", "-o", killed.to_str().unwrap()]).spawn().unwrap();
    until("the copy is made", || !left(&home.path(), ".backup-").is_empty());
    child.kill().unwrap();
    ended(child);
    assert!(!left(&home.path(), ".backup-").is_empty(), "the control: it was killed in time");
    home.ok(&["tree", "list"]);
    assert_eq!(left(&home.path(), ".backup-"), Vec::<PathBuf>::new());

    let backup = home.folder().join("whole.backup");
    let backup = backup.to_str().unwrap();
    home.ok(&["backup", "-o", backup]);
    let other = home.folder().join("other");
    let to = other.to_str().unwrap();
    let mut child = home.command(&["restore", backup, "--to", to]).spawn().unwrap();
    until("it is unpacked", || !left(&other.join("run"), "restore-").is_empty());
    child.kill().unwrap();
    ended(child);
    assert!(!left(&other.join("run"), "restore-").is_empty(), "the control: it was killed in time");
    home.ok(&["--home", to, "tree", "list"]);
    assert_eq!(left(&other.join("run"), "restore-"), Vec::<PathBuf>::new());
}

#[test]
fn backups_at_once_are_all_made_and_remembered() {
    let home = Home::with_tale("The marzipan crocodile.");
    for round in 0..4 {
        let names: Vec<_> = (0..4).map(|at| format!("{round}-{at}.backup")).collect();
        let made = names.iter().map(|name| home.command(&["backup", "-o", name]).spawn().unwrap());
        for child in made.collect::<Vec<_>>() {
            let done = ended(child);
            assert_eq!(done.status.code(), Some(0), "{done:?}");
        }
    }
    let known = fs::read_to_string(home.path().join("backups.json")).unwrap();
    assert_eq!(known.matches(".backup\"").count(), 16, "{known}");
    assert_eq!(left(&home.path(), "."), Vec::<PathBuf>::new());
}
