//! Tools that change files: what they say first, what they refuse, and that they change all or nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use policy::Policy;
use serde_json::json;
use workspace::{Root, StoreGuard};

use super::fixture::{FOLDER, Fixture};
use crate::{FileContent, give_back};

#[test]
fn a_new_file_is_written_down_with_its_folders_before_it_is_made() {
    let fixture = Fixture::new();
    let told = fixture.call("write", &json!({"path": "a/b/new.rs", "content": "one\ntwo\n"})).unwrap();
    assert_eq!(told, "made a/b/new.rs (+2 −0)");
    assert_eq!(fixture.text("a/b/new.rs").unwrap(), "one\ntwo\n");
    let rows = fixture.recorded.kept.rows.lock().unwrap();
    let folder = |name: &str| (name.to_owned(), None, Some(FOLDER.to_owned()));
    let file = ("a/b/new.rs".to_owned(), None, Some("one\ntwo\n".to_owned()));
    assert_eq!(*rows, [folder("a"), folder("a/b"), file]);
}

#[test]
fn a_file_is_written_over_once_it_was_read_and_as_it_was_read() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "old\n");
    fs::set_permissions(fixture.path("a.txt"), fs::Permissions::from_mode(0o640)).unwrap();
    let write = json!({"path": "a.txt", "content": "new\n"});
    fixture.refused("write", &write, "read it first");
    fixture.call("read", &json!({"path": "a.txt"})).unwrap();
    fixture.put("a.txt", "a person's\n");
    fixture.refused("write", &write, "was changed since it was read");
    fixture.refused("write", &write, "-old\n+a person's\n");
    let patch = "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-a person's\n+new\n";
    fixture.refused("patch", &json!({"patch": patch}), "-old\n+a person's\n");
    // A long difference is cut.
    fixture.put("a.txt", &"line\n".repeat(1000));
    let refused = fixture.call("write", &write).unwrap_err();
    assert!(
        refused.lines().count() < 110 && refused.ends_with("more lines of the difference]\n"),
        "{refused}"
    );
    fixture.call("read", &json!({"path": "a.txt"})).unwrap();
    fixture.call("write", &write).unwrap();
    assert_eq!(fixture.text("a.txt").unwrap(), "new\n");
    assert_eq!(fixture.path("a.txt").metadata().unwrap().permissions().mode() & 0o777, 0o640);
    fixture.call("write", &json!({"path": "a.txt", "content": "newer\n"})).unwrap();
}

#[test]
fn f11_what_lies_outside_or_behind_a_link_is_not_written() {
    let fixture = Fixture::new();
    fixture.put("real.md", "text\n");
    symlink("real.md", fixture.path("link.md")).unwrap();
    symlink(fixture.temp.path(), fixture.path("out")).unwrap();
    for path in ["../escape.txt", "/etc/passwd", "out/escape.txt", "link.md"] {
        fixture.call("read", &json!({"path": path})).ok();
        assert!(fixture.call("write", &json!({"path": path, "content": "x"})).is_err(), "{path}");
        assert!(fixture.call("edit", &json!({"path": path, "old": "text", "new": "x"})).is_err(), "{path}");
    }
    assert!(!fixture.temp.path().join("escape.txt").exists());
    assert_eq!(fixture.text("real.md").unwrap(), "text\n");
    assert!(fixture.recorded.kept.rows.lock().unwrap().is_empty());
}

#[test]
fn an_edit_keeps_line_ends_and_names_the_nearest_place_of_a_miss() {
    let fixture = Fixture::new();
    fixture.put("a.rs", "\u{feff}fn one() {}\r\nfn two() {}\r\n");
    let told =
        fixture.call("edit", &json!({"path": "a.rs", "old": "fn two() {}\n", "new": "fn three() {}\n"}));
    assert_eq!(told.unwrap(), "changed 1 place of a.rs (+1 −1), the first in line 2");
    assert_eq!(fixture.text("a.rs").unwrap(), "\u{feff}fn one() {}\r\nfn three() {}\r\n");
    fixture.refused("edit", &json!({"path": "a.rs", "old": "fn tree() {}", "new": "x"}), "a.rs: ");
    fixture.refused("edit", &json!({"path": "no.rs", "old": "a", "new": "b"}), "is not there");
}

const TWO: &str = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+ONE\n*** Update File: b.txt\n@@\n-two\n+TWO\n\
                   *** Add File: n/new.txt\n+new\n*** Delete File: gone.txt\n*** End Patch\n";

#[test]
fn a_patch_is_applied_whole_or_not_at_all() {
    let fixture = Fixture::new();
    for (name, text) in [("a.txt", "one\n"), ("b.txt", "other\n"), ("gone.txt", "gone\n")] {
        fixture.put(name, text);
    }
    fixture.refused("patch", &json!({"patch": TWO}), "b.txt: ");
    assert_eq!((fixture.text("a.txt").as_deref(), fixture.names().len()), (Some("one\n"), 3));
    fixture.put("b.txt", "two\n");
    let told = fixture.call("patch", &json!({"patch": TWO})).unwrap();
    assert_eq!(
        told.lines().collect::<Vec<_>>(),
        [
            "changed a.txt (+1 −1)",
            "changed b.txt (+1 −1)",
            "made n/new.txt (+1 −0)",
            "deleted gone.txt (+0 −1)"
        ]
    );
    assert_eq!(fixture.names(), ["a.txt", "b.txt", "n", "n/new.txt"]);
    assert_eq!(fixture.text("b.txt").as_deref(), Some("TWO\n"));
}

#[test]
fn what_cannot_be_written_down_is_not_done() {
    let mut fixture = Fixture::new();
    for (name, text) in [("a.txt", "one\n"), ("b.txt", "two\n"), ("gone.txt", "gone\n")] {
        fixture.put(name, text);
    }
    fixture.recorded.kept.refuses = true;
    fixture.refused("patch", &json!({"patch": TWO}), "the disk is full");
    fixture.refused("write", &json!({"path": "x/y", "content": "x"}), "the disk is full");
    assert_eq!(fixture.names(), ["a.txt", "b.txt", "gone.txt"]);
    assert_eq!(fixture.text("a.txt").as_deref(), Some("one\n"));
}

/// The third file of a patch cannot be written: the two before are what they were.
#[test]
fn a_patch_that_fails_in_the_middle_is_taken_back() {
    let fixture = Fixture::new();
    for name in ["a.txt", "b.txt", "gone.txt"] {
        fixture.put(
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
    fs::hard_link(fixture.path("gone.txt"), fixture.temp.path().join("other")).unwrap();
    assert!(fixture.call("patch", &json!({"patch": TWO})).is_err());
    assert_eq!(fixture.text("a.txt").as_deref(), Some("one\n"));
    assert_eq!(fixture.text("b.txt").as_deref(), Some("two\n"));
    assert_eq!(fixture.text("n/new.txt"), None);
    assert_eq!(fixture.text("gone.txt").as_deref(), Some("gone\n"));
    assert!(
        !fixture.path("n").exists() && fixture.recorded.kept.rows.lock().unwrap().is_empty(),
        "nothing was changed"
    );
}

#[test]
fn modes_go_along_and_are_the_owners_for_what_is_new() {
    let fixture = Fixture::new();
    fixture.put("run.sh", "one\n");
    fs::set_permissions(fixture.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let patch = "diff --git a/run.sh b/go.sh\nrename from run.sh\nrename to go.sh\n--- a/run.sh\n+++ b/go.sh\n\
                 @@ -1 +1 @@\n-one\n+two\ndiff --git a/x.sh b/x.sh\nnew file mode 100755\n--- /dev/null\n+++ b/x.sh\n\
                 @@ -0,0 +1 @@\n+x\n";
    fixture.call("patch", &json!({"patch": patch})).unwrap();
    fixture.call("write", &json!({"path": "d/plain.txt", "content": "x"})).unwrap();
    for (name, mode) in [("go.sh", 0o755), ("x.sh", 0o755), ("d/plain.txt", 0o644), ("d", 0o755)] {
        assert_eq!(fixture.path(name).metadata().unwrap().permissions().mode() & 0o777, mode, "{name}");
    }
}

#[test]
fn a_deletion_that_names_less_than_the_file_holds_is_refused() {
    let fixture = Fixture::new();
    fixture.put("long.txt", "one\ntwo\nthree\n");
    let patch = "--- a/long.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n";
    fixture.refused("patch", &json!({"patch": patch}), "2 of its lines are not in the patch");
    assert_eq!(fixture.text("long.txt").as_deref(), Some("one\ntwo\nthree\n"));
}

/// What a search or a failed look saw is not read.
#[test]
fn only_what_was_shown_counts_as_read() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "one\n");
    fixture.call("grep", &json!({"pattern": "no such"})).unwrap();
    fixture.call("read", &json!({"path": "a.txt", "offset": 9})).unwrap_err();
    fixture.refused("write", &json!({"path": "a.txt", "content": "x"}), "read it first");
}

#[test]
fn a_rule_on_reading_holds_for_what_a_search_meets() {
    let rules: policy::PolicyRule = serde_json::from_value(
        json!({"decision": "deny", "tool": ["effect:read path=sec/**"], "reason": "private"}),
    )
    .unwrap();
    let fixture = Fixture::with(Policy::new(vec![rules]).unwrap());
    fs::create_dir(fixture.path("sec")).unwrap();
    fixture.put("sec/a", "one\n");
    fixture.put("b", "one\n");
    let found = fixture.call("grep", &json!({"pattern": "one"})).unwrap();
    assert!(found.contains("b:1:one") && !found.contains("sec/a:1"), "{found}");
    fixture.refused("read", &json!({"path": "sec/a"}), "private");
    // The call was decided when the link led elsewhere.
    symlink("sec", fixture.path("way")).unwrap();
    fixture.refused("read", &json!({"path": "way/a"}), "private");
    symlink("b", fixture.path("other")).unwrap();
    assert!(fixture.call("read", &json!({"path": "other"})).unwrap().contains("one"), "the control");
}

#[test]
fn a_path_is_given_back_with_its_mode_unless_somebody_changed_it() {
    let fixture = Fixture::new();
    let root = Root::open(&fixture.path(""), &StoreGuard::new()).unwrap();
    let locks = fixture.temp.path().join("locks");
    let path = workspace::RelativePath::parse("a.txt").unwrap();
    let was = FileContent::File { mode: Some(0o755), bytes: b"old\n" };
    fixture.put("a.txt", "a person's\n");
    let changed = FileContent::File { mode: None, bytes: b"new\n" };
    let why = give_back(&locks, (&root, &path, 1), (was, changed), 0o022).unwrap_err();
    assert_eq!(fixture.text("a.txt").as_deref(), Some("a person's\n"));
    let kept = why.rsplit(' ').next().unwrap();
    assert_eq!(fixture.text(kept).as_deref(), Some("old\n"), "{why}");
    fs::remove_file(fixture.path(kept)).unwrap();
    fs::remove_file(fixture.path("a.txt")).unwrap();
    give_back(&locks, (&root, &path, 1), (was, FileContent::Absent), 0o022).unwrap();
    assert_eq!(fixture.text("a.txt").as_deref(), Some("old\n"));
    assert_eq!(fixture.path("a.txt").metadata().unwrap().permissions().mode() & 0o777, 0o755);
    give_back(&locks, (&root, &path, 1), (FileContent::Absent, was), 0o022).unwrap();
    assert!(fixture.names().is_empty());
}

#[test]
fn a_rule_that_keeps_a_file_from_being_read_keeps_its_difference_back() {
    let rule = r#"{"decision": "deny", "tool": ["read path=a.txt"]}"#;
    let policy = Policy::new(vec![serde_json::from_str(rule).unwrap()]).unwrap();
    let fixture = Fixture::with(policy);
    fixture.call("write", &json!({"path": "a.txt", "content": "mine\n"})).unwrap();
    fixture.put("a.txt", "hidden\n");
    let refused = fixture.call("write", &json!({"path": "a.txt", "content": "x"})).unwrap_err();
    assert!(refused.contains("was changed since") && !refused.contains("hidden"), "{refused}");
}

#[test]
fn the_third_miss_in_one_file_says_to_read_it_again() {
    const AGAIN: &str = "read it again before the next one";
    let fixture = Fixture::new();
    fixture.put("a.txt", "one\ntwo\n");
    fixture.put("b.txt", "one\n");
    let miss =
        |path: &str| fixture.call("edit", &json!({"path": path, "old": "three", "new": "x"})).unwrap_err();
    assert!(!miss("a.txt").contains(AGAIN) && !miss("a.txt").contains(AGAIN));
    assert!(!miss("b.txt").contains(AGAIN), "each file has its own");
    let patch = "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-three\n+x\n";
    fixture.refused("patch", &json!({"patch": patch}), AGAIN);
    fixture.call("read", &json!({"path": "a.txt"})).unwrap();
    assert!(!miss("a.txt").contains(AGAIN), "it was read again");
}

#[test]
fn an_outline_is_shown_and_is_no_reading_of_the_file() {
    let fixture = Fixture::new();
    fixture.put("a.md", "# One\ntext\n## Two\n");
    let outline = json!({"path": "a.md", "outline": true});
    assert_eq!(
        fixture.call("read", &outline).unwrap(),
        "     1\t# One\n     3\t## Two\n[The file has 3 lines: offset and limit show some of them.]\n"
    );
    fixture.refused("write", &json!({"path": "a.md", "content": "x"}), "was not read yet");
    fixture.refused(
        "read",
        &json!({"path": "a.md", "outline": true, "offset": 2}),
        "neither offset nor limit",
    );
}
