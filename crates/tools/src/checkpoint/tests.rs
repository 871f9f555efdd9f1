use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::Cancel;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

use workspace::{RelativePath, Root, StoreGuard};

use super::*;

struct Fixture {
    temp: TempDir,
    records: Checkpoints,
}

impl Fixture {
    fn new() -> Self {
        Self::with(CheckpointRules::default())
    }

    fn with(rules: CheckpointRules) -> Self {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("w")).unwrap();
        let records = Checkpoints::within(temp.path().join("records/w"), rules);
        Self { temp, records }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join("w").join(name)
    }

    fn put(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn root(&self) -> Root {
        Root::open(&self.temp.path().join("w"), &StoreGuard::new()).unwrap()
    }

    fn record(&self) -> Arc<Checkpoint> {
        self.records.record(&self.root(), None, &Cancel::never()).unwrap()
    }

    /// Another process's records of the same root.
    fn again(&self) -> Checkpoints {
        Checkpoints::within(self.records.folder.clone(), self.records.rules.clone())
    }
}

/// Paths with what stood there before and after, in words.
fn told(before: &Checkpoint, after: &Checkpoint) -> Vec<String> {
    told_until(before, after, None)
}

fn told_until(before: &Checkpoint, after: &Checkpoint, until: Option<i64>) -> Vec<String> {
    let words = |checkpoint: &Checkpoint, state: &StoodState| match state {
        StoodState::Absent => "nothing".to_owned(),
        StoodState::Folder { .. } => "folder".to_owned(),
        StoodState::Unknown => "what is not known".to_owned(),
        StoodState::Special(_) => "a pipe or socket".to_owned(),
        StoodState::Large { stamp } => format!("{} bytes", stamp.bytes),
        StoodState::Link { target } => format!("-> {}", String::from_utf8_lossy(target)),
        StoodState::File { mode, .. } => {
            let bytes = checkpoint.bytes(state).unwrap();
            format!("{} {mode:o}", String::from_utf8_lossy(&bytes))
        }
    };
    let differences = Differences::between(before, after, until);
    let mut told: Vec<String> = differences
        .changes
        .iter()
        .map(|change| {
            let (was, is) = (words(before, &change.before), words(after, &change.after));
            format!("{}: {was}, then {is}", change.path)
        })
        .collect();
    told.sort();
    told
}

#[test]
fn what_a_command_may_do_to_a_path_is_told_with_the_old_bytes() {
    let at = Fixture::new();
    for (name, text) in
        [("changed", "old"), ("same", "same"), ("gone/a", "a"), ("mode", "m"), ("to_link", "x")]
    {
        at.put(name, text);
    }
    symlink("same", at.path("link")).unwrap();
    let before = at.record();

    at.put("changed", "new");
    at.put("made/b", "b");
    fs::remove_dir_all(at.path("gone")).unwrap();
    fs::set_permissions(at.path("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(at.path("to_link")).unwrap();
    symlink("changed", at.path("to_link")).unwrap();
    fs::remove_file(at.path("link")).unwrap();
    symlink("mode", at.path("link")).unwrap();
    assert_eq!(
        told(&before, &at.record()),
        [
            "changed: old 644, then new 644",
            "gone/a: a 644, then nothing",
            "gone: folder, then nothing",
            "link: -> same, then -> mode",
            "made/b: nothing, then b 644",
            "made: nothing, then folder",
            "mode: m 644, then m 755",
            "to_link: x 644, then -> changed",
        ]
    );
}

#[test]
fn a_change_of_the_same_length_in_the_same_moment_is_seen() {
    let at = Fixture::new();
    at.put("a", "one");
    let before = at.record();
    let modified = fs::metadata(at.path("a")).unwrap().modified().unwrap();
    at.put("a", "two");
    // As a program can do that sets the time back.
    File::options().write(true).open(at.path("a")).unwrap().set_modified(modified).unwrap();
    assert_eq!(told(&before, &at.record()), ["a: one 644, then two 644"]);
}

#[test]
fn what_is_not_recorded_is_never_taken_for_new() {
    let at = Fixture::new();
    at.put(".gitignore", "*.log\nbuild/\n");
    for name in ["a.log", "build/out", "node_modules/x/index.js", ".git/config", "kept"] {
        at.put(name, "before");
    }
    let before = at.record();
    // Nothing is ignored any more.
    fs::remove_file(at.path(".gitignore")).unwrap();
    for name in ["a.log", "build/out", "node_modules/x/index.js", ".git/config"] {
        at.put(name, "after");
    }
    assert_eq!(told(&before, &at.record()), [".gitignore: *.log\nbuild/\n 644, then nothing"]);
    // And what was recorded stays so when it is ignored.
    let before = at.record();
    at.put(".gitignore", "kept\n");
    at.put("kept", "after");
    assert_eq!(
        told(&before, &at.record()),
        [".gitignore: nothing, then kept\n 644", "kept: before 644, then after 644"]
    );
}

#[test]
fn past_the_limits_a_change_is_named() {
    let at =
        Fixture::with(CheckpointRules { file: 8, files: 3, workspace: 12, ..CheckpointRules::default() });
    at.put("a", "large and larger");
    at.put("b", "12345678");
    at.put("c", "12345678");
    at.put("d", "1");
    let before = at.record();
    for name in ["a", "b", "c", "d"] {
        at.put(name, "x");
    }
    assert_eq!(
        told(&before, &at.record()),
        [
            "a: 16 bytes, then x 644",
            "b: 12345678 644, then x 644",
            "c: 8 bytes, then x 644",
            "d: 1 bytes, then what is not known"
        ]
    );
}

#[test]
fn of_many_files_that_are_not_kept_the_first_are_named() {
    let at = Fixture::with(CheckpointRules { files: 0, ..CheckpointRules::default() });
    let before = at.record();
    (0..510).for_each(|number| at.put(&format!("{number:03}"), "x"));
    let differences = Differences::between(&before, &at.record(), None);
    assert_eq!((differences.changes.len(), differences.unnamed), (500, 10));
}

#[test]
fn what_was_kept_stays_so_whatever_becomes_of_it_or_comes_beside_it() {
    let at = Fixture::with(CheckpointRules { file: 8, files: 2, ..CheckpointRules::default() });
    at.put("b/kept", "1234");
    at.put("grows", "1234");
    let before = at.record();
    at.put("a/1", "x");
    at.put("a/2", "x");
    at.put("b/kept", "changed");
    at.put("grows", "large and larger");
    assert_eq!(
        told(&before, &at.record()),
        [
            "a/1: nothing, then what is not known",
            "a/2: nothing, then what is not known",
            "a: nothing, then folder",
            "b/kept: 1234 644, then changed 644",
            "grows: 1234 644, then 16 bytes",
        ]
    );
}

#[test]
fn a_name_that_is_no_text_keeps_nothing_else_from_being_recorded() {
    let at = Fixture::new();
    at.put("a", "one");
    let wild = at.temp.path().join("w").join(OsStr::from_bytes(b"caf\xe9"));
    fs::write(&wild, "x").unwrap();
    let before = at.record();
    fs::write(&wild, "y").unwrap();
    at.put("a", "two");
    let other = at.again();
    assert_eq!(
        told(&before, &other.record(&at.root(), None, &Cancel::never()).unwrap()),
        ["a: one 644, then two 644"]
    );
}

#[test]
fn what_was_changed_after_a_process_had_died_is_not_the_commands() {
    let at = Fixture::new();
    at.put("command", "old");
    at.put("person", "old");
    at.put("gone", "old");
    let before = at.records.record(&at.root(), Some("call"), &Cancel::never()).unwrap();
    let sign = at.records.begin("call", false);
    at.put("command", "new");
    fs::remove_file(at.path("gone")).unwrap();
    let at_command = at.root().stamp(&RelativePath::parse("command").unwrap()).unwrap().1.changed;
    while SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64 <= at_command + 20_000_000 {
        std::thread::yield_now();
    }
    let until = at_command + 10_000_000;
    let marked = UNIX_EPOCH + Duration::from_secs(1_000);
    File::options().write(true).open(sign).unwrap().set_modified(marked).unwrap();
    assert_eq!(at.records.lived_until("call"), Some(1_002_000_000_000), "two seconds are left to it");
    at.put("person", "mine");
    at.put("made", "mine");
    let after = at.record();
    assert_eq!(
        told_until(&before, &after, Some(until)),
        [
            "command: old 644, then new 644",
            "gone: old 644, then nothing",
            "person: old 644, then what is not known",
        ]
    );
    assert_eq!(told(&before, &after).len(), 4, "without that all would be the command's");
    at.records.finish("call");
    assert_eq!(at.records.lived_until("call"), None);
}

#[test]
fn another_process_goes_on_from_the_record_and_reads_nothing_again() {
    let at = Fixture::new();
    let many: Vec<String> = (0..50).map(|number| format!("d{}/f{number}", number % 7)).collect();
    many.iter().for_each(|name| at.put(name, name));
    // What changed just now is read again.
    let before = loop {
        let before = at.record();
        if before.entries().values().all(|entry| entry.settled) {
            break before;
        }
    };
    let len = before.pack.len();
    let other = at.again();
    // What cannot be read any more is still known by its stamp.
    let after = other.record(&at.root(), None, &Cancel::never()).unwrap();
    assert!(told(&before, &after).is_empty());
    assert_eq!((after.pack.len(), after.pack.name()), (len, before.pack.name()), "nothing was added");
    at.put(&many[3], "other");
    let changed = other.record(&at.root(), None, &Cancel::never()).unwrap();
    assert_eq!(changed.pack.len(), len + 5);
    assert_eq!(told(&before, &changed), [format!("{0}: {0} 644, then other 644", many[3])]);
    // The first one sees what the other wrote.
    assert!(told(&changed, &at.record()).is_empty());
}

#[test]
fn a_record_under_a_name_outlives_later_ones_and_ends_when_it_is_finished() {
    let at = Fixture::new();
    at.put("a", "one");
    at.records.record(&at.root(), Some("call-1"), &Cancel::never()).unwrap();
    at.put("a", "two");
    at.record();
    let all = at.temp.path().join("records");
    let [(records, UnfinishedRecord::Read { root, before })] = &Checkpoints::unfinished(&all, "call-1")[..]
    else {
        panic!("one record")
    };
    assert_eq!(root.as_path(), at.root().path());
    assert_eq!(told(before, &at.record()), ["a: one 644, then two 644"]);
    assert!(Root::open_known(root, &StoreGuard::new(), before.folder().unwrap()).is_ok());
    // One that does not say which folder it is of, as earlier versions wrote it.
    let mut index: serde_json::Value =
        serde_json::from_slice(&fs::read(records.pending("call-1")).unwrap()).unwrap();
    assert!(index["index"].as_object_mut().unwrap().remove("folder").is_some());
    fs::remove_file(records.pending("call-1")).unwrap();
    fs::write(records.pending("call-1"), index.to_string()).unwrap();
    let earlier = Checkpoints::unfinished(&all, "call-1");
    let [(_, UnfinishedRecord::Read { before, .. })] = &earlier[..] else { panic!("{earlier:?}") };
    assert!(before.folder().is_none());
    records.finish("call-1");
    assert!(Checkpoints::unfinished(&all, "call-1").is_empty());
    assert!(Checkpoints::unfinished(Path::new("/nowhere"), "call-1").is_empty());
}

#[test]
fn a_record_under_a_name_that_cannot_be_read_is_told_and_keeps_no_packs() {
    let at = Fixture::new();
    at.put("a", "one");
    let all = at.temp.path().join("records");
    for damage in ["index", "pack"] {
        at.records.record(&at.root(), Some("call-1"), &Cancel::never()).unwrap();
        at.records.begin("call-1", false);
        match damage {
            "index" => fs::write(at.records.pending("call-1"), "{\"version\":99}").unwrap(),
            _ => fs::remove_file(at.records.folder.join(at.record().pack.name())).unwrap(),
        }
        let found = Checkpoints::unfinished(&all, "call-1");
        let [(records, UnfinishedRecord::Unreadable)] = &found[..] else { panic!("{damage}: {found:?}") };
        records.finish("call-1");
        assert!(!at.records.has_pending(), "{damage}");
        let anew = at.again().record(&at.root(), None, &Cancel::never()).unwrap();
        let packs = fs::read_dir(&at.records.folder).unwrap().map(|entry| entry.unwrap().file_name());
        let packs: Vec<_> = packs.filter(|name| pack::is_pack(name)).collect();
        assert_eq!(packs, [anew.pack.name()], "{damage}");
    }
}

#[test]
fn records_are_removed_while_others_begin_and_finish() {
    let at = Fixture::new();
    at.put("a", "one");
    let all = at.temp.path().join("records");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let records = at.again();
            for number in 0..300 {
                let name = format!("call-{number}");
                records.record(&at.root(), Some(&name), &Cancel::never()).unwrap();
                records.begin(&name, false);
                records.finish(&name);
            }
        });
        for _ in 0..1_000 {
            remove_records(&all).unwrap();
        }
    });
}

#[test]
fn a_damaged_record_is_made_anew() {
    let at = Fixture::new();
    at.put("a", "one");
    at.record();
    let index = at.records.folder.join(index::NAME);
    for damage in ["", "{", "{\"version\":9}"] {
        fs::write(&index, damage).unwrap();
        let before = at.again().record(&at.root(), None, &Cancel::never()).unwrap();
        at.put("a", "two");
        assert_eq!(told(&before, &at.record()), ["a: one 644, then two 644"]);
        at.put("a", "one");
    }
    // A pack of which bytes are gone is told when they are needed.
    let before = at.record();
    let pack = at.records.folder.join(before.pack.name());
    fs::write(&pack, "").unwrap();
    at.put("a", "two");
    let after = at.record();
    let differences = Differences::between(&before, &after, None);
    assert!(before.bytes(&differences.changes[0].before).unwrap_err().contains("kept"));
}

#[test]
fn records_are_the_owners_alone() {
    let at = Fixture::new();
    at.put("secret", "text");
    at.record();
    for entry in fs::read_dir(&at.records.folder).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{}", entry.path().display());
    }
}

#[test]
fn a_text_is_found_in_records_wherever_it_lies() {
    let at = Fixture::new();
    at.put("a", &("x".repeat(SEARCHED - 3) + "canary" + &"y".repeat(SEARCHED)));
    at.record();
    let all = at.temp.path().join("records");
    assert_eq!(records_with(&all, "canary").unwrap(), 1);
    assert_eq!(records_with(&all, "canaries").unwrap(), 0);
    assert_eq!(records_with(Path::new("/nowhere"), "canary").unwrap(), 0);
}

#[test]
fn records_that_are_removed_hold_nothing_any_more() {
    let at = Fixture::new();
    at.put("a", "canary");
    let before = at.records.record(&at.root(), Some("call-1"), &Cancel::never()).unwrap();
    let all = at.temp.path().join("records");
    let mut pack = File::open(at.records.folder.join(before.pack.name())).unwrap();
    remove_records(&all).unwrap();
    assert_eq!(fs::read_dir(&all).unwrap().count(), 0);
    let mut left = String::new();
    pack.read_to_string(&mut left).unwrap();
    assert_eq!(left, "\0".repeat(6));
    // The next command is recorded as ever.
    at.put("a", "new");
    assert!(told(&at.record(), &at.record()).is_empty());
    remove_records(&at.temp.path().join("nowhere")).unwrap();
}

/// Each of them holds the lock of the folder that is there, and records what it reads back.
#[test]
fn records_that_are_removed_while_others_record_are_whole() {
    let at = Fixture::new();
    at.put("a", "one");
    let all = at.temp.path().join("records");
    std::thread::scope(|scope| {
        for name in ["b", "c"] {
            let at = &at;
            scope.spawn(move || {
                for number in 0..200 {
                    at.put(name, &format!("{name}{number}"));
                    at.again().record(&at.root(), None, &Cancel::never()).unwrap();
                }
            });
        }
        for _ in 0..400 {
            remove_records(&all).unwrap();
        }
    });
    let record = at.record();
    let states = Differences::between(
        &Checkpoint { index: Index::default(), pack: record.pack.again().unwrap() },
        &record,
        None,
    );
    assert_eq!(states.changes.len(), 3);
    for change in states.changes {
        record.bytes(&change.after).unwrap();
    }
}
