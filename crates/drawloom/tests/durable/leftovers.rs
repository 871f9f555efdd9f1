//! Copies of the store that a killed command left.

use std::fs;
use std::path::{Path, PathBuf};

use store::home::{NEW_STORE, new_store_name};

use crate::support::{Home, ended, until};

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
    let name = new_store_name(0x0123);
    for name in [format!("{name}-journal"), name] {
        fs::write(home.path().join(name), "half a store").unwrap();
    }
    home.ok(&["tree", "list"]);
    assert_eq!(left(&home.path(), NEW_STORE), Vec::<PathBuf>::new());
}

#[test]
fn first_commands_at_once_find_one_store() {
    let home = Home::with_tale("It rained.");
    for _ in 0..5 {
        for file in left(&home.path(), "loom.db") {
            fs::remove_file(file).unwrap();
        }
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
