use std::os::unix::fs::PermissionsExt as _;

use super::*;

struct Fixture {
    temp: tempfile::TempDir,
    file: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("AGENTS.md");
        Self { temp, file }
    }

    fn begin(&self, state: AcceptedState) -> AcceptedChanges {
        AcceptedChanges::begin(self.temp.path(), [(self.file.clone(), state)]).unwrap()
    }

    fn since(&self, since: SystemTime) -> AcceptedPaths {
        AcceptedPaths::since(self.temp.path(), since, |_| true)
    }

    fn is_accepted(&self) -> bool {
        self.since(SystemTime::UNIX_EPOCH).paths.contains(&self.file)
    }

    fn write_accepted(&self) {
        let being_made = self.begin(ours());
        fs::write(&self.file, "ours").unwrap();
        being_made.finish().unwrap();
        assert!(self.is_accepted());
    }
}

fn ours() -> AcceptedState {
    AcceptedState::file(None, b"ours")
}

/// A coarse clock could give two changes one time.
fn later() {
    let began = SystemTime::now();
    while began.elapsed().unwrap() < Duration::from_millis(25) {
        std::thread::yield_now();
    }
}

/// What was changed before is older than the clock can be wrong.
fn settled() {
    let began = SystemTime::now();
    while began.elapsed().unwrap() <= CLOCK_RESOLUTION * 2 {
        std::thread::yield_now();
    }
}

#[test]
fn a_file_counts_while_it_is_made_and_then_until_anybody_changes_anything_of_it() {
    let at = Fixture::new();
    let being_made = at.begin(ours());
    fs::write(&at.file, "ours").unwrap();
    assert!(at.is_accepted(), "while it is made");
    drop(being_made);
    assert!(!at.is_accepted(), "it was not made after all");
    let copy = at.temp.path().join("copy");
    fs::write(&copy, "ours").unwrap();
    let changes: [(&str, &dyn Fn()); 6] = [
        ("written over with its own text", &|| fs::write(&at.file, "ours").unwrap()),
        ("closed", &|| fs::set_permissions(&at.file, fs::Permissions::from_mode(0o755)).unwrap()),
        ("linked", &|| fs::hard_link(&at.file, at.temp.path().join("link")).unwrap()),
        ("copied back", &|| {
            fs::remove_file(&at.file).unwrap();
            fs::copy(&copy, &at.file).map(drop).unwrap();
        }),
        ("moved away and back", &|| {
            fs::rename(&at.file, at.temp.path().join("aside")).unwrap();
            fs::rename(at.temp.path().join("aside"), &at.file).unwrap();
        }),
        ("another one of the same text", &|| fs::rename(&copy, &at.file).unwrap()),
    ];
    for (what, change) in changes {
        at.write_accepted();
        later();
        change();
        assert!(!at.is_accepted(), "{what}");
        fs::remove_file(&at.file).unwrap();
    }
}

#[test]
fn a_path_that_was_taken_back_counts_as_gone_for_those_alone_that_saw_what_was_there() {
    let at = Fixture::new();
    at.write_accepted();
    let before = SystemTime::now();
    let being_made = at.begin(AcceptedState::Absent);
    fs::remove_file(&at.file).unwrap();
    being_made.finish().unwrap();
    later();
    assert!(at.since(before).paths.contains(&at.file));
    assert!(at.since(SystemTime::now()).paths.is_empty(), "who looked later saw it gone");
    fs::write(&at.file, "ours").unwrap();
    assert!(!at.is_accepted());
}

/// Of a process that was killed before it said that it had made a file, the record is left, and nobody holds it.
#[test]
fn what_a_killed_process_made_counts_until_a_tool_takes_it_back() {
    let at = Fixture::new();
    let being_made = at.begin(ours());
    fs::write(&at.file, "ours").unwrap();
    fs::copy(being_made.being_made.path(), at.temp.path().join(FOLDER).join("being-made-killed")).unwrap();
    drop(being_made);
    assert!(at.is_accepted());
    let being_made = at.begin(AcceptedState::Absent);
    fs::remove_file(&at.file).unwrap();
    being_made.finish().unwrap();
    fs::write(&at.file, "ours").unwrap();
    assert!(!at.is_accepted(), "a command may have put it there again");
}

#[test]
fn what_a_command_made_by_its_touches_counts_path_by_path_once_it_ended() {
    let at = Fixture::new();
    let being_made = at.begin(AcceptedState::Any);
    fs::create_dir(&at.file).unwrap();
    fs::write(at.file.join("one"), "ours").unwrap();
    assert!(at.is_accepted());
    being_made.finish().unwrap();
    fs::write(at.file.join("two"), "a command's").unwrap();
    let found = at.since(SystemTime::UNIX_EPOCH);
    assert_eq!(found.paths, BTreeSet::from([at.file.join("one")]));
    assert_eq!(found.folders, BTreeSet::from([at.file.clone()]));
    assert!(found.any_in(&at.file) && !found.any_in(&at.file.join("two")));
}

#[test]
fn of_a_folder_that_a_command_moved_to_its_touches_all_counts() {
    let at = Fixture::new();
    let aside = at.temp.path().join("aside");
    fs::create_dir(&aside).unwrap();
    fs::write(aside.join("one"), "ours").unwrap();
    settled();
    let began = SystemTime::now();
    let being_made = at.begin(AcceptedState::Any);
    fs::rename(&aside, &at.file).unwrap();
    being_made.finish().unwrap();
    let found = at.since(began);
    assert_eq!(found.paths, BTreeSet::from([at.file.join("one")]));
    assert_eq!(found.by_commands, found.paths);
    assert!(at.since(SystemTime::now()).by_commands.is_empty(), "who began later saw it");
    // The control: what stood there before is no command's.
    fs::remove_dir_all(at.temp.path().join(FOLDER)).unwrap();
    settled();
    at.begin(AcceptedState::Any).finish().unwrap();
    assert!(at.since(SystemTime::UNIX_EPOCH).paths.is_empty());
}

#[test]
fn a_record_that_another_process_is_writing_is_left_and_a_damaged_one_goes() {
    let at = Fixture::new();
    let folder = at.temp.path().join(FOLDER);
    let being_made = at.begin(ours());
    let (being_written, damaged) = (folder.join(".tmpA1b2C3"), folder.join(digest(b"/damaged")));
    fs::write(&being_written, "").unwrap();
    fs::write(&damaged, "{").unwrap();
    at.write_accepted();
    assert!(being_written.exists() && !damaged.exists());
    drop(being_made);
}
