//! Tools that change files: what they say first, what they refuse, and that they change all or nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::{Arc, Mutex};

use loom::{ToolStatus, Trust};
use model::Cancel;
use policy::{Policy, SessionType};
use serde_json::{Value, json};
use text::mask::Masker;
use workspace::{AllowedRoots, Root, StoreGuard};

use crate::{ChangeRecorder, FileContent, PlannedChange, SeenFiles, ToolRegistry, ToolScope, give_back};

/// Path, text before, text after.
type Row = (String, Option<String>, Option<String>);

/// What was written down before it was done.
#[derive(Default)]
struct Recorded {
    rows: Mutex<Vec<Row>>,
    refuses: bool,
}

impl ChangeRecorder for Recorded {
    fn record(&self, changes: &[PlannedChange<'_>]) -> Result<(), String> {
        if self.refuses {
            return Err("the disk is full".to_owned());
        }
        let text = |content: FileContent<'_>| match content {
            FileContent::File { bytes, .. } => Some(String::from_utf8_lossy(bytes).into_owned()),
            FileContent::Folder => Some("(folder)".to_owned()),
            FileContent::Absent => None,
        };
        let row = |change: &PlannedChange<'_>| {
            let path = change.path.as_path().display().to_string();
            let now = fs::read_to_string(change.root.join(&path)).ok();
            let before = text(change.before);
            assert_eq!(now, before.clone().filter(|text| text != "(folder)"), "{path}: nothing is done yet");
            (path, before, text(change.after))
        };
        self.rows.lock().unwrap().extend(changes.iter().map(row));
        Ok(())
    }

    fn take_back(&self) {
        self.rows.lock().unwrap().clear();
    }
}

struct Desk {
    temp: tempfile::TempDir,
    registry: Arc<ToolRegistry>,
    recorded: Recorded,
}

impl Desk {
    fn new() -> Self {
        Self::with(Policy::default())
    }

    fn with(policy: Policy) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("w");
        fs::create_dir(&folder).unwrap();
        let scope = ToolScope {
            roots: AllowedRoots::within(vec![Root::open(&folder, &StoreGuard::new()).unwrap()]),
            trust: Trust::Workspace,
            masker: Arc::new(Masker::new(&[]).unwrap()),
            policy,
            session: SessionType::Main,
            locks: temp.path().join("locks"),
            umask: 0o022,
            seen: SeenFiles::default(),
        };
        let registry = Arc::new(ToolRegistry::new(scope, &ToolRegistry::names()).unwrap());
        Self { temp, registry, recorded: Recorded::default() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.temp.path().join("w").join(name)
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    fn call(&self, name: &str, arguments: &Value) -> Result<String, String> {
        let output = match self.registry.check(name, arguments) {
            Ok(call) => call.run(&Cancel::never(), &self.recorded),
            Err(output) => output,
        };
        if output.status == ToolStatus::Ok { Ok(output.text) } else { Err(output.text) }
    }

    fn refused(&self, name: &str, arguments: &Value, why: &str) {
        let refused = self.call(name, arguments).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }

    /// Names of everything below the folder.
    fn names(&self) -> Vec<String> {
        fn below(folder: &Path, from: &Path, names: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                names.push(path.strip_prefix(from).unwrap().display().to_string());
                if path.is_dir() && !path.is_symlink() {
                    below(&path, from, names);
                }
            }
        }
        let (mut names, root) = (Vec::new(), self.path(""));
        below(&root, &root, &mut names);
        names.sort();
        names
    }
}

#[test]
fn a_new_file_is_written_down_with_its_folders_before_it_is_made() {
    let desk = Desk::new();
    let told = desk.call("write", &json!({"path": "a/b/new.rs", "content": "one\ntwo\n"})).unwrap();
    assert_eq!(told, "made a/b/new.rs (2 lines)");
    assert_eq!(desk.text("a/b/new.rs").unwrap(), "one\ntwo\n");
    let rows = desk.recorded.rows.lock().unwrap();
    let folder = |name: &str| (name.to_owned(), None, Some("(folder)".to_owned()));
    let file = ("a/b/new.rs".to_owned(), None, Some("one\ntwo\n".to_owned()));
    assert_eq!(*rows, [folder("a"), folder("a/b"), file]);
}

#[test]
fn a_file_is_written_over_once_it_was_read_and_as_it_was_read() {
    let desk = Desk::new();
    desk.put("a.txt", "old\n");
    fs::set_permissions(desk.path("a.txt"), fs::Permissions::from_mode(0o640)).unwrap();
    let write = json!({"path": "a.txt", "content": "new\n"});
    desk.refused("write", &write, "read it first");
    desk.call("read", &json!({"path": "a.txt"})).unwrap();
    desk.put("a.txt", "a person's\n");
    desk.refused("write", &write, "was changed since it was read");
    desk.call("read", &json!({"path": "a.txt"})).unwrap();
    desk.call("write", &write).unwrap();
    assert_eq!(desk.text("a.txt").unwrap(), "new\n");
    assert_eq!(desk.path("a.txt").metadata().unwrap().permissions().mode() & 0o777, 0o640);
    desk.call("write", &json!({"path": "a.txt", "content": "newer\n"})).unwrap();
}

#[test]
fn f11_what_lies_outside_or_behind_a_link_is_not_written() {
    let desk = Desk::new();
    desk.put("real.md", "text\n");
    symlink("real.md", desk.path("link.md")).unwrap();
    symlink(desk.temp.path(), desk.path("out")).unwrap();
    for path in ["../escape.txt", "/etc/passwd", "out/escape.txt", "link.md"] {
        desk.call("read", &json!({"path": path})).ok();
        assert!(desk.call("write", &json!({"path": path, "content": "x"})).is_err(), "{path}");
        assert!(desk.call("edit", &json!({"path": path, "old": "text", "new": "x"})).is_err(), "{path}");
    }
    assert!(!desk.temp.path().join("escape.txt").exists());
    assert_eq!(desk.text("real.md").unwrap(), "text\n");
    assert!(desk.recorded.rows.lock().unwrap().is_empty());
}

#[test]
fn an_edit_keeps_line_ends_and_names_the_nearest_place_of_a_miss() {
    let desk = Desk::new();
    desk.put("a.rs", "\u{feff}fn one() {}\r\nfn two() {}\r\n");
    let told = desk.call("edit", &json!({"path": "a.rs", "old": "fn two() {}\n", "new": "fn three() {}\n"}));
    assert_eq!(told.unwrap(), "changed 1 place of a.rs, the first in line 2");
    assert_eq!(desk.text("a.rs").unwrap(), "\u{feff}fn one() {}\r\nfn three() {}\r\n");
    desk.refused("edit", &json!({"path": "a.rs", "old": "fn tree() {}", "new": "x"}), "a.rs: ");
    desk.refused("edit", &json!({"path": "no.rs", "old": "a", "new": "b"}), "is not there");
}

const TWO: &str = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+ONE\n*** Update File: b.txt\n@@\n-two\n+TWO\n\
                   *** Add File: n/new.txt\n+new\n*** Delete File: gone.txt\n*** End Patch\n";

#[test]
fn a_patch_is_applied_whole_or_not_at_all() {
    let desk = Desk::new();
    for (name, text) in [("a.txt", "one\n"), ("b.txt", "other\n"), ("gone.txt", "gone\n")] {
        desk.put(name, text);
    }
    desk.refused("patch", &json!({"patch": TWO}), "b.txt: ");
    assert_eq!((desk.text("a.txt").as_deref(), desk.names().len()), (Some("one\n"), 3));
    desk.put("b.txt", "two\n");
    let told = desk.call("patch", &json!({"patch": TWO})).unwrap();
    assert_eq!(
        told.lines().collect::<Vec<_>>(),
        [
            "changed a.txt (+1 −1)",
            "changed b.txt (+1 −1)",
            "made n/new.txt (+1 −0)",
            "deleted gone.txt (+0 −1)"
        ]
    );
    assert_eq!(desk.names(), ["a.txt", "b.txt", "n", "n/new.txt"]);
    assert_eq!(desk.text("b.txt").as_deref(), Some("TWO\n"));
}

#[test]
fn what_cannot_be_written_down_is_not_done() {
    let mut desk = Desk::new();
    for (name, text) in [("a.txt", "one\n"), ("b.txt", "two\n"), ("gone.txt", "gone\n")] {
        desk.put(name, text);
    }
    desk.recorded.refuses = true;
    desk.refused("patch", &json!({"patch": TWO}), "the disk is full");
    desk.refused("write", &json!({"path": "x/y", "content": "x"}), "the disk is full");
    assert_eq!(desk.names(), ["a.txt", "b.txt", "gone.txt"]);
    assert_eq!(desk.text("a.txt").as_deref(), Some("one\n"));
}

/// The third file of a patch cannot be written: the two before are what they were.
#[test]
fn a_patch_that_fails_in_the_middle_is_taken_back() {
    let desk = Desk::new();
    for name in ["a.txt", "b.txt", "gone.txt"] {
        desk.put(
            name,
            if name == "a.txt" {
                "one\n"
            } else if name == "b.txt" {
                "two\n"
            } else {
                "gone\n"
            },
        );
    }
    // A second name: such a file is not removed, as the other name would go on showing it.
    fs::hard_link(desk.path("gone.txt"), desk.temp.path().join("other")).unwrap();
    assert!(desk.call("patch", &json!({"patch": TWO})).is_err());
    assert_eq!(desk.text("a.txt").as_deref(), Some("one\n"));
    assert_eq!(desk.text("b.txt").as_deref(), Some("two\n"));
    assert_eq!(desk.text("n/new.txt"), None);
    assert_eq!(desk.text("gone.txt").as_deref(), Some("gone\n"));
    assert!(!desk.path("n").exists() && desk.recorded.rows.lock().unwrap().is_empty(), "nothing was changed");
}

#[test]
fn modes_go_along_and_are_the_owners_for_what_is_new() {
    let desk = Desk::new();
    desk.put("run.sh", "one\n");
    fs::set_permissions(desk.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let patch = "diff --git a/run.sh b/go.sh\nrename from run.sh\nrename to go.sh\n--- a/run.sh\n+++ b/go.sh\n\
                 @@ -1 +1 @@\n-one\n+two\ndiff --git a/x.sh b/x.sh\nnew file mode 100755\n--- /dev/null\n+++ b/x.sh\n\
                 @@ -0,0 +1 @@\n+x\n";
    desk.call("patch", &json!({"patch": patch})).unwrap();
    desk.call("write", &json!({"path": "d/plain.txt", "content": "x"})).unwrap();
    for (name, mode) in [("go.sh", 0o755), ("x.sh", 0o755), ("d/plain.txt", 0o644), ("d", 0o755)] {
        assert_eq!(desk.path(name).metadata().unwrap().permissions().mode() & 0o777, mode, "{name}");
    }
}

#[test]
fn a_deletion_that_names_less_than_the_file_holds_is_refused() {
    let desk = Desk::new();
    desk.put("long.txt", "one\ntwo\nthree\n");
    let patch = "--- a/long.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n";
    desk.refused("patch", &json!({"patch": patch}), "2 of its lines are not in the patch");
    assert_eq!(desk.text("long.txt").as_deref(), Some("one\ntwo\nthree\n"));
}

/// What a search or a failed look saw is not read.
#[test]
fn only_what_was_shown_counts_as_read() {
    let desk = Desk::new();
    desk.put("a.txt", "one\n");
    desk.call("grep", &json!({"pattern": "no such"})).unwrap();
    desk.call("read", &json!({"path": "a.txt", "offset": 9})).unwrap_err();
    desk.refused("write", &json!({"path": "a.txt", "content": "x"}), "read it first");
}

#[test]
fn a_rule_on_reading_holds_for_what_a_search_meets() {
    let rules: policy::PolicyRule = serde_json::from_value(
        json!({"decision": "deny", "tool": ["effect:read path=sec/**"], "reason": "private"}),
    )
    .unwrap();
    let desk = Desk::with(Policy::new(vec![rules]).unwrap());
    fs::create_dir(desk.path("sec")).unwrap();
    desk.put("sec/a", "one\n");
    desk.put("b", "one\n");
    let found = desk.call("grep", &json!({"pattern": "one"})).unwrap();
    assert!(found.contains("b:1:one") && !found.contains("sec/a:1"), "{found}");
    desk.refused("read", &json!({"path": "sec/a"}), "private");
}

#[test]
fn a_path_is_given_back_with_its_mode_unless_somebody_changed_it() {
    let desk = Desk::new();
    let root = Root::open(&desk.path(""), &StoreGuard::new()).unwrap();
    let locks = desk.temp.path().join("locks");
    let path = workspace::RelativePath::parse("a.txt").unwrap();
    let was = FileContent::File { mode: Some(0o755), bytes: b"old\n" };
    desk.put("a.txt", "a person's\n");
    let changed = FileContent::File { mode: None, bytes: b"new\n" };
    let why = give_back(&locks, &root, &path, (was, changed), 0o022).unwrap_err();
    assert_eq!(desk.text("a.txt").as_deref(), Some("a person's\n"));
    let kept = why.rsplit(' ').next().unwrap();
    assert_eq!(desk.text(kept).as_deref(), Some("old\n"), "{why}");
    fs::remove_file(desk.path(kept)).unwrap();
    fs::remove_file(desk.path("a.txt")).unwrap();
    give_back(&locks, &root, &path, (was, FileContent::Absent), 0o022).unwrap();
    assert_eq!(desk.text("a.txt").as_deref(), Some("old\n"));
    assert_eq!(desk.path("a.txt").metadata().unwrap().permissions().mode() & 0o777, 0o755);
    give_back(&locks, &root, &path, (FileContent::Absent, was), 0o022).unwrap();
    assert!(desk.names().is_empty());
}
