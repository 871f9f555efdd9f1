//! `move`, `copy`, `delete` and `mkdir`: what they refuse, what goes along, and that nothing is lost.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use model::Cancel;
use policy::{Attendance, Decision, Policy, SandboxLevel, SessionFacts, SessionType};
use serde_json::{Value, json};

use super::fixture::{FOLDER, Fixture, place};

fn relocation(from: &str, to: &str) -> Value {
    json!({"from": from, "to": to})
}

fn mode(fixture: &Fixture, name: &str) -> u32 {
    fixture.path(name).symlink_metadata().unwrap().permissions().mode() & 0o777
}

/// A folder with files, a program, an empty folder and a link out of the workspace.
fn furnished() -> Fixture {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.path("d/sub")).unwrap();
    fs::create_dir(fixture.path("d/empty")).unwrap();
    fixture.put("d/a.txt", "one\n");
    fixture.put("d/sub/run.sh", "two\n");
    fs::set_permissions(fixture.path("d/sub/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(fixture.path("d/sub"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::write(fixture.temp.path().join("secret"), "the outside\n").unwrap();
    symlink(fixture.temp.path().join("secret"), fixture.path("d/link")).unwrap();
    fixture
}

#[test]
fn f12_to_f16_nothing_comes_in_or_goes_out() {
    let fixture = furnished();
    fixture.put("source.txt", "mine\n");
    symlink(fixture.temp.path(), fixture.path("out")).unwrap();
    let before = fixture.names();
    for (tool, from, to) in [
        ("move", "../secret", "stolen.txt"),
        ("move", "source.txt", "../escaped.txt"),
        ("copy", "/etc/passwd", "stolen.txt"),
        ("move", "source.txt", "../w/../escaped.txt"),
        ("copy", "source.txt", "/tmp/escaped.txt"),
        ("copy", "source.txt", "~/escaped.txt"),
        ("move", "out/secret", "stolen.txt"),
        ("copy", "out/secret", "stolen.txt"),
        ("copy", "source.txt", "out/escaped.txt"),
        ("move", "source.txt", "out/escaped.txt"),
        ("move", "", "stolen.txt"),
        ("move", "source.txt", "   "),
        ("copy", "source.txt", "a\0b"),
    ] {
        let refused = fixture.call(tool, &relocation(from, to));
        assert!(refused.is_err(), "{tool} {from} {to}: {refused:?}");
    }
    for path in ["../escape_dir", "out/escape_dir", "/tmp/escape_dir/x", "~/x", "", "a\0b"] {
        assert!(fixture.call("mkdir", &json!({"path": path})).is_err(), "mkdir {path}");
    }
    for path in ["../secret", "out/secret", "/etc/passwd", "", ".", "no-such"] {
        assert!(fixture.call("delete", &json!({"path": path})).is_err(), "delete {path}");
    }
    assert_eq!(fixture.names(), before);
    assert_eq!(fixture.text("source.txt").as_deref(), Some("mine\n"), "f13, f15: it is still there");
    assert!(!fixture.temp.path().join("escaped.txt").exists());
    assert!(!fixture.temp.path().join("escape_dir").exists(), "f16");
    assert!(fixture.recorded.kept.rows.lock().unwrap().is_empty());
    fixture.refused("move", &relocation("../secret", "x"), "outside the allowed workspace");
}

#[test]
fn f1_to_f8_paths_of_relocations_are_read_as_those_of_other_tools() {
    let fixture = Fixture::new();
    fixture.put("test.txt", "one\n");
    fixture.call("move", &relocation("./test.txt", "a/../b/./test.txt")).unwrap();
    assert_eq!(fixture.names(), ["b", "b/test.txt"]);
    for (path, why) in [("   ", "empty path"), ("test\0.txt", "invalid characters"), ("~/x", "outside")] {
        fixture.refused("copy", &relocation(path, "c"), why);
    }
}

#[test]
fn x1_a_link_goes_along_as_a_link_and_never_what_it_leads_to() {
    let fixture = furnished();
    let outside = fixture.temp.path().join("secret");
    assert_eq!(fixture.call("copy", &relocation("d", "c")).unwrap(), "copied d to c (files: 2)");
    assert_eq!(fs::read_link(fixture.path("c/link")).unwrap(), outside);
    fixture.call("copy", &relocation("d/link", "link")).unwrap();
    fixture.call("move", &relocation("link", "n/moved")).unwrap();
    assert_eq!(fs::read_link(fixture.path("n/moved")).unwrap(), outside);
    fixture.call("delete", &json!({"path": "c"})).unwrap();
    fixture.call("delete", &json!({"path": "n/moved"})).unwrap();
    fixture.refused("copy", &json!({"from": "d/a.txt", "to": "d/link", "overwrite": true}), "link");
    assert_eq!(fs::read_to_string(outside).unwrap(), "the outside\n");
    let rows = fixture.recorded.kept.rows.lock().unwrap();
    let says = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains("the outside"));
    assert!(!rows.iter().any(|(_, before, after)| says(before) || says(after)), "{rows:?}");
}

#[test]
fn a_folder_is_moved_whole_and_every_path_is_written_down_before() {
    let fixture = furnished();
    fs::write(fixture.path("d/~odd\nname"), "x").unwrap();
    fixture.call("read", &json!({"path": "d/a.txt"})).unwrap();
    assert_eq!(fixture.call("move", &relocation("d", "new/e")).unwrap(), "moved d to new/e (files: 3)");
    let expected = [
        "new",
        "new/e",
        "new/e/a.txt",
        "new/e/empty",
        "new/e/link",
        "new/e/sub",
        "new/e/sub/run.sh",
        "new/e/~odd\nname",
    ];
    assert_eq!(fixture.names(), expected);
    assert_eq!((mode(&fixture, "new/e/sub/run.sh"), mode(&fixture, "new/e/sub")), (0o755, 0o750));
    let rows = fixture.recorded.kept.rows.lock().unwrap().clone();
    let row = |path: &str, before: Option<&str>, after: Option<&str>| {
        rows.contains(&(path.to_owned(), before.map(str::to_owned), after.map(str::to_owned)))
    };
    for (path, text) in [("d/a.txt", "one\n"), ("d", FOLDER), ("d/empty", FOLDER), ("d/sub/run.sh", "two\n")]
    {
        assert!(row(path, Some(text), None), "{path}: {rows:?}");
        assert!(row(&path.replacen('d', "new/e", 1), None, Some(text)), "{path}: {rows:?}");
    }
    assert!(row("new", None, Some(FOLDER)));
    fixture.call("write", &json!({"path": "new/e/a.txt", "content": "read where it was\n"})).unwrap();
}

#[test]
fn a_copy_has_the_modes_of_its_source_which_stays() {
    let fixture = furnished();
    fs::set_permissions(fixture.path("d/sub"), fs::Permissions::from_mode(0o550)).unwrap();
    fixture.call("copy", &relocation("d", "c")).unwrap();
    assert_eq!((mode(&fixture, "c/sub"), mode(&fixture, "c/sub/run.sh")), (0o550, 0o755));
    assert_eq!(fixture.text("c/a.txt"), fixture.text("d/a.txt"));
    assert!(fixture.path("c/empty").is_dir());
    for (from, to) in [("d", "d"), ("d", "d/sub/x"), ("d/a.txt", "d/a.txt"), (".", "x")] {
        assert!(fixture.call("copy", &relocation(from, to)).is_err(), "{from} {to}");
        assert!(fixture.call("move", &relocation(from, to)).is_err(), "{from} {to}");
    }
}

#[test]
fn what_is_there_is_written_over_by_a_file_alone_and_only_where_that_is_said() {
    let fixture = furnished();
    fixture.put("there.txt", "old\n");
    let over = |from: &str, to: &str| json!({"from": from, "to": to, "overwrite": true});
    for tool in ["move", "copy"] {
        fixture.refused(tool, &relocation("d/a.txt", "there.txt"), "there already: overwrite");
        fixture.refused(tool, &over("d/a.txt", "d/sub"), "is a folder");
        fixture.refused(tool, &over("d/sub", "there.txt"), "in the place of none");
        fixture.refused(tool, &over("d/link", "there.txt"), "in the place of none");
    }
    fixture.call("read", &json!({"path": "there.txt"})).unwrap();
    fixture.put("there.txt", "a person's\n");
    fixture.refused("move", &over("d/a.txt", "there.txt"), "changed since it was read");
    fixture.refused("delete", &json!({"path": "there.txt"}), "changed since it was read");
    fixture.call("read", &json!({"path": "there.txt"})).unwrap();
    fixture.call("copy", &over("d/sub/run.sh", "there.txt")).unwrap();
    assert_eq!((fixture.text("there.txt").as_deref(), mode(&fixture, "there.txt")), (Some("two\n"), 0o755));
    fixture.call("move", &over("d/a.txt", "there.txt")).unwrap();
    assert_eq!((fixture.text("there.txt").as_deref(), fixture.text("d/a.txt")), (Some("one\n"), None));
    let rows = fixture.recorded.kept.rows.lock().unwrap();
    assert!(rows.contains(&("there.txt".into(), Some("a person's\n".into()), Some("two\n".into()))));
}

#[test]
fn a_folder_is_deleted_with_what_was_read_of_it_and_its_bytes_are_kept() {
    let fixture = furnished();
    fs::write(fixture.path("d/bytes"), b"\0\xff").unwrap();
    assert_eq!(fixture.call("delete", &json!({"path": "d"})).unwrap(), "deleted d (files: 3)");
    assert!(fixture.names().is_empty());
    let rows = fixture.recorded.kept.rows.lock().unwrap();
    assert!(rows.iter().all(|(_, before, after)| before.is_some() && after.is_none()));
    assert_eq!(rows.len(), 7);
}

/// Files of a second name go on being shown by it; a pipe cannot be kept.
#[test]
fn what_could_not_be_given_back_is_not_deleted() {
    let fixture = furnished();
    fs::hard_link(fixture.path("d/a.txt"), fixture.temp.path().join("other")).unwrap();
    fixture.refused("delete", &json!({"path": "d"}), "d/a.txt has a second name");
    fs::remove_file(fixture.path("d/a.txt")).unwrap();
    let large = fs::File::create(fixture.path("d/large")).unwrap();
    large.set_len((10 << 20) + 1).unwrap();
    for (tool, arguments) in
        [("delete", json!({"path": "d"})), ("move", relocation("d", "e")), ("copy", relocation("d", "e"))]
    {
        fixture.refused(tool, &arguments, "d/large has more than 10");
    }
    fs::remove_file(fixture.path("d/large")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(fixture.path("d/socket")).unwrap();
    fixture.refused("delete", &json!({"path": "d"}), "socket");
    assert!(fixture.path("d/sub/run.sh").exists() && fixture.recorded.kept.rows.lock().unwrap().is_empty());
}

#[test]
fn more_paths_than_are_taken_at_once_are_refused_by_number() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("d")).unwrap();
    for number in 0..20_000 {
        fs::File::create(fixture.path(&format!("d/{number}"))).unwrap();
    }
    fixture.refused("delete", &json!({"path": "d"}), "more than 20000 paths");
    assert_eq!(fixture.names().len(), 20_001);
}

#[test]
fn a_relocation_that_cannot_be_written_down_or_made_leaves_all_as_it_was() {
    let mut fixture = furnished();
    fixture.put("file", "x");
    let before = fixture.names();
    fixture.recorded.kept.refuses = true;
    for (tool, arguments) in [
        ("move", relocation("d", "n/e")),
        ("copy", relocation("d", "n/e")),
        ("delete", json!({"path": "d"})),
        ("mkdir", json!({"path": "n/m"})),
    ] {
        fixture.refused(tool, &arguments, "the disk is full");
    }
    fixture.recorded.kept.refuses = false;
    for (tool, arguments) in [
        ("move", relocation("d", "file/e")),
        ("copy", relocation("d", "file/e")),
        ("mkdir", json!({"path": "file/m"})),
        ("mkdir", json!({"path": "file"})),
    ] {
        assert!(fixture.call(tool, &arguments).is_err(), "{tool} {arguments}");
    }
    assert_eq!(fixture.names(), before);
    assert!(fixture.recorded.kept.rows.lock().unwrap().is_empty());
    let (stop, cancel) = Cancel::new();
    stop.cancel();
    let call = fixture.registry.check("move", &relocation("d", "e")).ok().unwrap();
    assert!(call.run(&cancel, &fixture.recorded, &place()).text.contains("stopped"));
    assert_eq!(fixture.names(), before);
}

#[test]
fn a_folder_is_made_with_those_above_and_found_where_it_is() {
    let fixture = Fixture::new();
    assert_eq!(fixture.call("mkdir", &json!({"path": "a/b"})).unwrap(), "made a/b");
    assert_eq!(fixture.call("mkdir", &json!({"path": "a/b"})).unwrap(), "a/b is there already");
    assert_eq!((fixture.names(), mode(&fixture, "a/b")), (vec!["a".to_owned(), "a/b".to_owned()], 0o755));
    let rows = fixture.recorded.kept.rows.lock().unwrap();
    let folder = |path: &str| (path.to_owned(), None, Some(FOLDER.to_owned()));
    assert_eq!(*rows, [folder("a"), folder("a/b")]);
}

#[test]
fn all_problems_of_arguments_are_told_at_once() {
    let fixture = Fixture::new();
    let why = fixture.call("move", &json!({"form": "a", "overwrite": "yes"})).unwrap_err();
    for problem in
        ["missing required from", "missing required to", "overwrite should be boolean", "unknown form"]
    {
        assert!(why.contains(problem), "{problem}: {why}");
    }
}

fn decision(fixture: &Fixture, tool: &str, arguments: &Value) -> Decision {
    let session = SessionFacts {
        kind: SessionType::Main,
        attendance: Attendance::Attended,
        sandbox: SandboxLevel::None,
        tainted: false,
        plan_mode: false,
        keeps_old_bytes: true,
    };
    fixture.registry.check(tool, arguments).ok().unwrap().decide(&session, &[]).decision
}

#[test]
fn both_ends_of_a_move_and_all_a_folder_holds_are_judged() {
    let fixture = furnished();
    fs::create_dir_all(fixture.path("repo/.git")).unwrap();
    fixture.put("repo/.git/config", "x");
    fs::create_dir(fixture.path("pack")).unwrap();
    fixture.put("pack/.envrc", "x");
    fixture.put("AGENTS.md", "Be kind.\n");
    let ask = |tool: &str, from: &str, to: &str| decision(&fixture, tool, &relocation(from, to));
    assert_eq!(ask("move", "d", "e"), Decision::Allow);
    assert_eq!(ask("move", "repo", "e"), Decision::Deny, "it holds .git");
    assert_eq!(ask("copy", "repo", "e"), Decision::Deny, "it would make a .git");
    assert_eq!(ask("move", "d", ".drawloom/x"), Decision::Deny);
    assert_eq!(ask("copy", "d/a.txt", ".git/hooks/pre-commit"), Decision::Deny);
    assert_eq!(ask("move", "AGENTS.md", "old.md"), Decision::Ask);
    assert_eq!(ask("copy", "AGENTS.md", "old.md"), Decision::Allow, "it is only read");
    assert_eq!(ask("copy", "d/a.txt", "CLAUDE.md"), Decision::Ask);
    assert_eq!(ask("move", "pack", "d/pack"), Decision::Ask, "it holds what the owner's programs run");
    assert_eq!(decision(&fixture, "delete", &json!({"path": "pack"})), Decision::Ask);
    assert_eq!(decision(&fixture, "delete", &json!({"path": "repo"})), Decision::Deny);
    assert_eq!(decision(&fixture, "delete", &json!({"path": "."})), Decision::Deny);
    assert_eq!(decision(&fixture, "mkdir", &json!({"path": ".git/hooks"})), Decision::Deny);
    assert_eq!(decision(&fixture, "mkdir", &json!({"path": "skills/x"})), Decision::Ask);
}

#[test]
fn what_git_runs_or_reads_and_folders_of_its_shape_are_judged_by_every_tool() {
    let fixture = furnished();
    for folder in [".git", "remote.git/objects", "remote.git/refs", "n/objects", "stage/refs"] {
        fs::create_dir_all(fixture.path(folder)).unwrap();
    }
    fixture.put(".git/config", "[core]\n\thooksPath = .githooks # ours\n[include]\n\tpath = ../team.cfg\n");
    fixture.put("remote.git/HEAD", "ref: refs/heads/m\n");
    fixture.put("n/HEAD", "ref: refs/heads/m\n");
    fixture.put("docs.md", "Be kind.\n");
    symlink("docs.md", fixture.path("AGENTS.md")).unwrap();
    let write = |path: &str| decision(&fixture, "write", &json!({"path": path, "content": "x"}));
    assert_eq!(write("src/main.rs"), Decision::Allow, "control");
    assert_eq!(write(".githooks/pre-commit"), Decision::Ask);
    assert_eq!(write("team.cfg"), Decision::Ask);
    assert_eq!(write("docs.md"), Decision::Ask, "AGENTS.md leads there");
    assert_eq!(write("remote.git/config"), Decision::Deny);
    assert_eq!(write("remote.git/hooks/post-receive"), Decision::Deny);
    let edit = json!({"path": "team.cfg", "old": "a", "new": "b"});
    assert_eq!(decision(&fixture, "edit", &edit), Decision::Ask);
    assert_eq!(decision(&fixture, "mkdir", &json!({"path": ".githooks"})), Decision::Ask);
    let ask = |tool: &str, from: &str, to: &str| decision(&fixture, tool, &relocation(from, to));
    assert_eq!(ask("copy", "d/a.txt", ".githooks/pre-push"), Decision::Ask);
    assert_eq!(ask("copy", "d", ".githooks"), Decision::Ask);
    // The last that is missing makes a folder one of git's.
    assert_eq!(decision(&fixture, "mkdir", &json!({"path": "n/refs"})), Decision::Deny);
    assert_eq!(ask("move", "stage/refs", "n/refs"), Decision::Deny);
    assert_eq!(ask("move", "remote.git", "d/r"), Decision::Deny);
    assert_eq!(ask("move", "n", "d/n"), Decision::Allow, "control");
    let patch = "*** Begin Patch\n*** Add File: q/HEAD\n+x\n*** Add File: q/objects/x\n+x\n*** Add File: q/refs/x\n+x\n\
                 *** End Patch";
    assert_eq!(decision(&fixture, "patch", &json!({"patch": patch})), Decision::Deny);
    assert_eq!(
        decision(&fixture, "patch", &json!({"patch": patch.replace("q/refs", "q/other")})),
        Decision::Allow
    );
}

#[test]
fn a_rule_on_a_path_within_a_folder_holds_for_the_folder() {
    let rule = |decision: &str, tool: &str| {
        let rule = json!({"decision": decision, "tool": [tool], "reason": "private"});
        serde_json::from_value::<policy::PolicyRule>(rule).unwrap()
    };
    let rules = vec![rule("deny", "effect:read path=d/sub/**"), rule("deny", "delete path=keep/a/**")];
    let fixture = Fixture::with(Policy::new(rules).unwrap());
    fs::create_dir_all(fixture.path("d/sub")).unwrap();
    fs::create_dir_all(fixture.path("keep/a")).unwrap();
    fixture.put("d/sub/x", "secret\n");
    fixture.put("keep/a/x", "x\n");
    for tool in ["move", "copy"] {
        assert_eq!(decision(&fixture, tool, &relocation("d", "e")), Decision::Deny, "{tool}");
        fixture.refused(tool, &relocation("d", "e"), "private");
    }
    assert_eq!(decision(&fixture, "delete", &json!({"path": "keep"})), Decision::Deny);
    assert_eq!(decision(&fixture, "delete", &json!({"path": "d"})), Decision::Allow, "control");
}

#[test]
fn a_question_shows_what_comes_and_what_goes() {
    let fixture = furnished();
    fs::write(fixture.path("d/bytes"), b"\0\xff").unwrap();
    let shown = |tool: &str, arguments: &Value| {
        fixture.registry.check(tool, arguments).ok().unwrap().preview().unwrap().unwrap()
    };
    let moved = shown("move", &relocation("d", "e"));
    for line in [
        "move from d",
        "move to e",
        "new folder e/sub",
        "+++ e/a.txt",
        "+one",
        "e/bytes: nothing becomes 2 bytes",
    ] {
        assert!(moved.lines().any(|shown| shown.starts_with(line)), "{line}: {moved}");
    }
    assert!(moved.contains("new link e/link to ") && !moved.contains("the outside"), "{moved}");
    let gone = shown("delete", &json!({"path": "d"}));
    assert!(gone.contains("--- d/a.txt\n+++ /dev/null") && gone.contains("deleted folder d/empty"), "{gone}");
    fixture.put("long", &"line\n".repeat(500));
    let gone = shown("delete", &json!({"path": "long"}));
    assert!(gone.starts_with("long: 2500 bytes with SHA-256 ") && gone.lines().count() == 1, "{gone}");
    assert_eq!(shown("mkdir", &json!({"path": "n/m"})), "new folder n\nnew folder n/m\n");
    let over = shown("move", &json!({"from": "d/a.txt", "to": "long", "overwrite": true}));
    assert!(over.contains("+++ long") && over.contains("-line") && over.contains("--- d/a.txt"), "{over}");
}

#[test]
fn two_names_of_one_file_stay() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "one\n");
    fs::hard_link(fixture.path("a.txt"), fixture.path("b.txt")).unwrap();
    for tool in ["move", "copy"] {
        let asked = json!({"from": "a.txt", "to": "b.txt", "overwrite": true});
        let why = fixture.call(tool, &asked).unwrap_err();
        assert!(why.contains("are one file"), "{tool}: {why}");
    }
    assert!(fixture.path("a.txt").exists() && fixture.path("b.txt").exists());
}

/// By a link of such a name files are read as protected ones that were written by another name.
#[test]
fn a_link_on_the_way_to_a_protected_path_is_asked_about() {
    let fixture = furnished();
    symlink("d/sub", fixture.path("latest")).unwrap();
    for (from, to, wanted) in [
        ("latest", ".cargo", Decision::Ask),
        ("latest", ".github", Decision::Ask),
        ("latest", "other", Decision::Allow),
        ("d/sub", ".cargo", Decision::Allow),
    ] {
        assert_eq!(decision(&fixture, "copy", &relocation(from, to)), wanted, "{from} {to}");
    }
}
