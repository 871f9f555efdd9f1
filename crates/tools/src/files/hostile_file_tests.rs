//! Files and folders that are not what a tool hopes for (cases 3.12 to 3.19 of docs/cases.md): none blocks it, brings it
//! down, or is passed over in silence.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use loom::ToolStatus;
use model::Cancel;
use policy::Policy;
use rustix::fs::{CWD, Mode, RenameFlags, mkfifoat, renameat_with};
use serde_json::{Value, json};
use workspace::{AllowedRoots, FurtherRoot};

use super::fixture::{Fixture, place};
use crate::PlannedChange;
use crate::testing::{KeptChanges, TestRecorder};

/// Calls that would open a file.
fn openings(path: &str) -> Vec<(&'static str, Value)> {
    let update = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch\n");
    vec![
        ("read", json!({"path": path})),
        ("grep", json!({"path": path, "pattern": "a"})),
        ("write", json!({"path": path, "content": "x"})),
        ("edit", json!({"path": path, "old": "a", "new": "b"})),
        ("patch", json!({"patch": update})),
        ("copy", json!({"from": path, "to": "c"})),
        ("move", json!({"from": path, "to": "m"})),
        ("delete", json!({"path": path})),
    ]
}

#[test]
fn files_3_12_pipes_sockets_and_devices_are_named_and_not_waited_for() {
    let fixture = Fixture::in_roots(Policy::default(), |root, guard| {
        AllowedRoots::within(vec![root, FurtherRoot::everything().open(guard, &[]).unwrap()])
    });
    fs::create_dir(fixture.path("d")).unwrap();
    fixture.put("d/a", "a\n");
    mkfifoat(CWD, fixture.path("d/pipe.md"), Mode::from_raw_mode(0o600)).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(fixture.path("d/socket")).unwrap();
    for (path, kind) in
        [("d/pipe.md", "FIFO"), ("d/socket", "socket"), ("/dev/zero", "device"), ("/dev/tty", "device")]
    {
        for (tool, arguments) in openings(path) {
            if tool == "grep" {
                assert!(fixture.call(tool, &arguments).is_err(), "{path}");
            } else {
                fixture.refused(tool, &arguments, kind);
            }
        }
    }
    let names = fixture.names();
    fixture.refused("copy", &json!({"from": "d", "to": "e"}), "FIFO");
    assert_eq!(fixture.call("grep", &json!({"pattern": "a"})).unwrap(), "d/a:1:a\n");
    assert_eq!(fixture.call("glob", &json!({"pattern": "*"})).unwrap(), "d/a\n");
    assert_eq!(fixture.names(), names);
}

#[test]
fn files_3_13_a_file_without_end_is_refused_before_it_is_read() {
    let fixture = Fixture::new();
    fs::File::create(fixture.path("sparse")).unwrap().set_len(1 << 40).unwrap();
    for (tool, arguments) in openings("sparse") {
        let why = fixture.call(tool, &arguments).unwrap_err();
        let is_told = ["10 MiB", "10485760", "64 MiB"].iter().any(|most| why.contains(most));
        assert!(is_told, "{tool}: {why}");
    }
    assert_eq!(fixture.names(), ["sparse"]);
}

#[test]
fn files_3_14_and_3_17_what_may_not_be_read_is_named_and_counted() {
    let fixture = Fixture::new();
    for (name, mode) in [("closed", 0), ("locked", 0), ("open", 0o644)] {
        if name == "locked" {
            fs::create_dir(fixture.path(name)).unwrap();
        } else {
            fixture.put(name, "weave\n");
        }
        fs::set_permissions(fixture.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(fixture.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    thread::scope(|threads| {
        threads.spawn(|| {
            // No mode stops the administrator; another user of this thread alone is stopped.
            if rustix::process::geteuid().is_root() {
                let nobody = rustix::process::Uid::from_raw(65_534);
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            fixture.refused("read", &json!({"path": "closed"}), "permission denied");
            fixture.refused("grep", &json!({"path": "closed", "pattern": "a"}), "permission denied");
            fixture.refused("list", &json!({"path": "locked"}), "permission denied");
            for tool in ["glob", "grep"] {
                fixture.refused(tool, &json!({"path": "locked", "pattern": "a"}), "permission denied");
            }
            fixture.refused("copy", &json!({"from": "locked", "to": "c"}), "permission denied");
            let passed =
                "[Passed over, as they cannot be listed, lie too deep or have a name that is no text: 1.]\n";
            let found = fixture.call("grep", &json!({"pattern": "weave"})).unwrap();
            let unread = "[Not searched, as they are no text, too long or cannot be read: 1.]\n";
            assert_eq!(found, format!("open:1:weave\n{unread}{passed}"));
            let named = fixture.call("glob", &json!({"pattern": "*"})).unwrap();
            assert_eq!(named, format!("closed\nopen\n{passed}"));
        });
    });
}

#[test]
fn files_3_15_a_folder_by_the_name_of_a_file_is_a_folder() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.path("x.md/sub")).unwrap();
    fixture.put("x.md/a.md", "a\n");
    for (tool, arguments) in
        openings("x.md").into_iter().filter(|(tool, _)| !matches!(*tool, "grep" | "copy" | "move" | "delete"))
    {
        fixture.refused(tool, &arguments, "folder");
    }
    assert_eq!(fixture.call("glob", &json!({"pattern": "*.md"})).unwrap(), "x.md/a.md\n");
    fixture.refused("read", &json!({"path": "x.md/a.md/b"}), "not a folder");
    assert_eq!(fixture.names(), ["x.md", "x.md/a.md", "x.md/sub"]);
}

#[test]
fn files_3_16_a_hundred_thousand_names_are_told_in_part_and_it_is_said() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("many")).unwrap();
    for number in 0..100_000 {
        fs::File::create(fixture.path("many").join(number.to_string())).unwrap();
    }
    let told = fixture.call("list", &json!({"path": "many"})).unwrap();
    assert!(told.lines().count() == 1_001 && told.contains("more than these 1000"), "{}", told.len());
    let told = fixture.call("glob", &json!({"pattern": "*"})).unwrap();
    assert!(told.lines().count() == 1_001 && told.contains("More than 1000 files match"), "{}", told.len());
    assert_eq!(fixture.call("glob", &json!({"pattern": "99999"})).unwrap(), "many/99999\n", "none is missed");
    fixture.refused("copy", &json!({"from": "many", "to": "c"}), "more than 20000 paths");
}

#[test]
fn files_3_16_what_lies_too_deep_and_names_that_are_no_text_are_counted() {
    use std::os::unix::ffi::OsStrExt as _;
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.path(&"d/".repeat(70))).unwrap();
    fs::write(fixture.path("").join(std::ffi::OsStr::from_bytes(b"caf\xe9")), "weave\n").unwrap();
    fixture.put("a", "weave\n");
    for tool in ["grep", "glob"] {
        let told =
            fixture.call(tool, &json!({"pattern": if tool == "grep" { "weave" } else { "*" }})).unwrap();
        assert!(told.ends_with("have a name that is no text: 2.]\n"), "{tool}: {told}");
    }
}

/// Keeps nothing: what stands there changes from moment to moment.
#[derive(Default)]
struct Careless;

impl KeptChanges for Careless {
    fn keep(&self, _: &[PlannedChange<'_>]) -> Result<(), String> {
        Ok(())
    }

    fn take_back(&self) {}
}

/// Ends what runs beside a test, also where the test fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn files_3_18_and_3_19_what_is_swapped_meanwhile_leads_no_tool_out() {
    let fixture = Fixture::new();
    let temp = fixture.temp.path();
    fs::create_dir(fixture.path("swap")).unwrap();
    fs::create_dir(temp.join("evil")).unwrap();
    for (name, text) in [("w/swap/x", "inside\n"), ("w/file", "inside\n"), ("evil/x", "the outside\n")] {
        fs::write(temp.join(name), text).unwrap();
    }
    symlink(temp.join("evil"), temp.join("spare")).unwrap();
    symlink(temp.join("evil/x"), temp.join("spare-file")).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for (here, spare) in [("w/swap", "spare"), ("w/file", "spare-file")] {
                    renameat_with(CWD, temp.join(here), CWD, temp.join(spare), RenameFlags::EXCHANGE)
                        .unwrap();
                }
            }
        });
        let _stop = StopOnDrop(&done);
        let (mut done_tools, mut misled) = (BTreeSet::new(), 0);
        for round in 0..150 {
            let plainly = fs::read_to_string(fixture.path("swap/x")).unwrap_or_default();
            misled += usize::from(plainly.contains("the outside"));
            for (tool, arguments) in [
                ("read", json!({"path": "swap/x"})),
                ("read", json!({"path": "file"})),
                ("grep", json!({"pattern": "side"})),
                ("glob", json!({"pattern": "*"})),
                ("write", json!({"path": format!("swap/new{round}"), "content": "x"})),
                ("mkdir", json!({"path": format!("swap/d{round}")})),
                ("edit", json!({"path": "file", "old": "inside", "new": "inside"})),
                ("edit", json!({"path": "swap/x", "old": "inside\n", "new": "inside\ninside\n"})),
                ("copy", json!({"from": "file", "to": format!("c{round}")})),
                ("copy", json!({"from": "swap/x", "to": format!("d{round}")})),
            ] {
                let call = fixture.registry.check(tool, &arguments).ok().unwrap();
                let told = call.run(&Cancel::never(), &TestRecorder::<Careless>::default(), &place());
                assert!(!told.text.contains("the outside"), "{tool}: {told:?}");
                done_tools.extend((told.status == ToolStatus::Ok).then_some(tool));
            }
        }
        assert!(misled > 0, "the control: whoever just opens the path is led out");
        assert!(["read", "grep", "glob"].iter().all(|tool| done_tools.contains(tool)), "{done_tools:?}");
    });
    assert_eq!(fs::read_to_string(temp.join("evil/x")).unwrap(), "the outside\n");
    assert_eq!(fs::read_dir(temp.join("evil")).unwrap().count(), 1, "nothing was made there");
    for name in fixture.names().iter().filter(|name| name.starts_with(['c', 'd'])) {
        let path = fixture.path(name);
        assert!(path.is_symlink() || fs::read_to_string(&path).unwrap().starts_with("inside"), "{name}");
    }
}
