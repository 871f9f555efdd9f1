//! Paths and links by which a call could leave the workspace (cases 3.1 to 3.11, 3.20 and F11 to F15 of docs/cases.md).

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, symlink};

use policy::Policy;
use serde_json::{Value, json};
use workspace::{AllowedRoots, FurtherRoot, Root};

use super::fixture::Fixture;

const OUTSIDE: &str = "the outside\n";

/// A workspace with a file, beside it a secret and a folder whose name begins like its own.
fn beside_a_secret() -> Fixture {
    let fixture = Fixture::new();
    fixture.put("a.txt", "mine\n");
    fs::create_dir(fixture.temp.path().join("w-other")).unwrap();
    for name in ["secret", "w-other/secret"] {
        fs::write(fixture.temp.path().join(name), OUTSIDE).unwrap();
    }
    fixture
}

/// Every call that names `path` where a tool takes one.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    let (add, update) =
        (format!("Add File: {path}\n+x"), format!("Update File: {path}\n@@\n-the outside\n+x"));
    let patch = |what: &str| json!({"patch": format!("*** Begin Patch\n*** {what}\n*** End Patch\n")});
    let moved = format!("Update File: a.txt\n*** Move to: {path}\n@@\n-mine\n+x");
    vec![
        ("read", json!({"path": path})),
        ("list", json!({"path": path})),
        ("glob", json!({"path": path, "pattern": "*"})),
        ("grep", json!({"path": path, "pattern": "outside"})),
        ("write", json!({"path": path, "content": "x"})),
        ("edit", json!({"path": path, "old": "the outside", "new": "x"})),
        ("patch", patch(&add)),
        ("patch", patch(&update)),
        ("patch", patch(&format!("Delete File: {path}"))),
        ("patch", patch(&moved)),
        ("move", json!({"from": path, "to": "stolen.txt"})),
        ("move", json!({"from": "a.txt", "to": path})),
        ("copy", json!({"from": path, "to": "stolen.txt"})),
        ("copy", json!({"from": "a.txt", "to": path, "overwrite": true})),
        ("delete", json!({"path": path})),
        ("mkdir", json!({"path": path})),
    ]
}

/// Every such call is refused, and all stands as it was.
fn nothing_comes_of(fixture: &Fixture, path: &str) {
    let names = fixture.names();
    for (tool, arguments) in calls(path) {
        let refused = fixture.call(tool, &arguments);
        assert!(refused.is_err(), "{tool} {arguments}: {refused:?}");
        assert!(!refused.unwrap_err().contains(OUTSIDE.trim()) || tool == "edit", "{tool} {arguments}");
    }
    assert_eq!(fixture.names(), names, "{path:?}");
    assert_eq!(fixture.text("a.txt").as_deref(), Some("mine\n"), "{path:?}");
    for name in ["secret", "w-other/secret"] {
        assert_eq!(fs::read_to_string(fixture.temp.path().join(name)).unwrap(), OUTSIDE, "{path:?}");
    }
    assert_eq!(fs::read_dir(fixture.temp.path()).unwrap().count(), 3, "{path:?}: nothing came beside it");
    assert!(fixture.recorded.kept.rows.lock().unwrap().is_empty(), "{path:?}");
}

#[test]
fn files_3_1_to_3_6_and_x28_no_spelling_leads_any_tool_out() {
    let fixture = beside_a_secret();
    let temp = fixture.temp.path().canonicalize().unwrap();
    let at = |name: &str| temp.join(name).display().to_string();
    for path in [
        &at("w-other/secret"),
        &at("w/../secret"),
        &at("w/../w-other/secret"),
        "../w-other/secret",
        "..",
        "../",
        "./..//secret",
        "a/../../secret",
        "a.txt/../../secret",
        "/etc/passwd",
        "//etc/passwd",
        "~/secret",
        "~root/x",
        "../secret\0.txt",
        "a\0b",
        "   ",
        "",
        "%2e%2e/../../secret",
    ] {
        nothing_comes_of(&fixture, path);
    }
}

#[test]
fn files_3_2_3_5_3_7_3_8_what_means_something_elsewhere_is_a_plain_name() {
    let fixture = Fixture::new();
    let mut names = vec![
        "%2e%2e%2fsecret",
        "%00",
        "C:\\x",
        "\\\\?\\C:\\x",
        "\\\\host\\share",
        "x.md:stream",
        "CON",
        "NUL.txt",
        "PROGRA~1",
        "x",
        "x ",
        "x.",
        " x",
        "README.md",
        "README.MD",
        "Card.md",
        "card.md",
        "caf\u{e9}",
        "cafe\u{301}",
    ];
    for name in &names {
        fixture.call("write", &json!({"path": name, "content": name})).unwrap();
    }
    names.sort_unstable();
    assert_eq!(fixture.names(), names, "each is a file of its own");
    for name in &names {
        let told = fixture.call("read", &json!({"path": name})).unwrap();
        assert_eq!(told, format!("     1\t{name}\n"));
    }
    let told = fixture.call("list", &json!({})).unwrap();
    assert_eq!(told.lines().collect::<Vec<_>>(), names);
    fixture.refused("read", &json!({"path": "cARD.md"}), "does not exist");
    fixture.refused("mkdir", &json!({"path": "x".repeat(256)}), "too long");
    for path in [".//x", "./x/", "y/../x", "x/."] {
        assert_eq!(fixture.call("read", &json!({"path": path})).unwrap(), "     1\tx\n", "{path}");
    }
}

#[test]
fn files_3_4_a_name_that_begins_with_a_tilde_is_searched_like_any_other() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("~draft")).unwrap();
    for (name, text) in [
        ("~notes", "weave\n"),
        ("~draft/a", "weave\n"),
        ("~draft/b", "weave\n"),
        ("~draft/.gitignore", "b\n"),
    ] {
        fixture.put(name, text);
    }
    let found = fixture.call("grep", &json!({"pattern": "^weave"})).unwrap();
    assert_eq!(found, "~notes:1:weave\n~draft/a:1:weave\n");
    assert_eq!(fixture.call("glob", &json!({"pattern": "[a~]*"})).unwrap(), "~notes\n~draft/a\n");
    fixture.refused("read", &json!({"path": "~notes"}), "write `./~name`");
    fixture.call("read", &json!({"path": "./~notes"})).unwrap();
}

#[test]
fn files_3_9_links_lead_no_tool_out() {
    let fixture = beside_a_secret();
    let w = fixture.path("");
    for (target, link) in [
        ("../secret", "up"),
        ("up", "chain"),
        ("..", "parent"),
        ("loop-b", "loop-a"),
        ("loop-a", "loop-b"),
        ("../gone", "dangling"),
        ("/proc/self/root/etc/passwd", "by-proc"),
    ] {
        symlink(target, w.join(link)).unwrap();
    }
    for path in ["parent/secret", "parent/w-other/secret", "up/x", "loop-a/x", "parent/new/deep"] {
        nothing_comes_of(&fixture, path);
    }
    for link in ["up", "chain", "loop-a", "dangling", "by-proc", "parent"] {
        // What a link itself may suffer: it is moved, copied and deleted as the link it is.
        let refused = |call: &&(&str, Value)| !matches!(call.0, "move" | "copy" | "delete");
        for (tool, arguments) in calls(link).iter().filter(refused) {
            assert!(fixture.call(tool, arguments).is_err(), "{tool} {arguments}");
        }
    }
    assert!(!fixture.temp.path().join("gone").exists());
    assert_eq!(fs::read_to_string(fixture.temp.path().join("secret")).unwrap(), OUTSIDE);
    let found = fixture.call("grep", &json!({"pattern": "outside|mine"})).unwrap();
    assert_eq!(found, "a.txt:1:mine\n", "links are not gone into");
    fs::create_dir(fixture.path("d")).unwrap();
    symlink("../a.txt", fixture.path("d/inside")).unwrap();
    symlink("d", fixture.path("folder")).unwrap();
    let told = fixture.call("read", &json!({"path": "folder/inside"})).unwrap();
    assert_eq!(told, "     1\tmine\n", "one that stays in the workspace is read through");
}

#[test]
fn files_3_10_what_has_a_second_name_is_not_changed_under_it() {
    let fixture = beside_a_secret();
    let secret = fixture.temp.path().join("secret");
    fs::hard_link(&secret, fixture.path("second")).unwrap();
    fixture.call("read", &json!({"path": "second"})).unwrap();
    for (tool, arguments) in calls("second") {
        if !matches!(tool, "read" | "grep" | "glob" | "list" | "mkdir") && arguments["from"] != "second" {
            assert!(fixture.call(tool, &arguments).is_err(), "{tool} {arguments}");
        }
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), OUTSIDE);
    assert_eq!(secret.metadata().unwrap().nlink(), 2);
    fixture.call("copy", &json!({"from": "second", "to": "own"})).unwrap();
    fixture.call("edit", &json!({"path": "own", "old": "the outside", "new": "mine"})).unwrap();
    assert_eq!(fs::read_to_string(&secret).unwrap(), OUTSIDE, "a copy has its own bytes");
}

#[test]
fn files_3_11_and_4_4_nothing_is_lost_between_two_file_systems() {
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    fs::create_dir(elsewhere.path().join("d")).unwrap();
    fs::write(elsewhere.path().join("d/a"), "one\n").unwrap();
    let fixture = Fixture::in_roots(Policy::default(), |root, guard| {
        AllowedRoots::within(vec![root, Root::open(elsewhere.path(), guard).unwrap()])
    });
    let device = |path: &std::path::Path| path.metadata().unwrap().dev();
    if device(elsewhere.path()) == device(fixture.temp.path()) {
        println!("not run: there is one file system");
        return;
    }
    let there = elsewhere.path().canonicalize().unwrap();
    let moved = fixture.call("move", &json!({"from": there.join("d"), "to": "d"}));
    let (stays, came) = (there.join("d/a").exists(), fixture.text("d/a").is_some());
    assert_eq!((moved.is_ok(), stays, came), (came, !came, came), "{moved:?}");
    if let Err(why) = moved {
        assert!(why.contains("another file system"), "{why}");
    }
    fixture.call("copy", &json!({"from": there.join("d"), "to": "c"})).unwrap();
    assert_eq!(fixture.text("c/a").as_deref(), Some("one\n"));
}

#[test]
fn files_3_20_links_of_proc_to_what_a_process_has_open_are_not_followed() {
    let fixture = Fixture::in_roots(Policy::default(), |root, guard| {
        AllowedRoots::within(vec![root, FurtherRoot::everything().open(guard, &[]).unwrap()])
    });
    let secret = fixture.temp.path().join("secret");
    fs::write(&secret, OUTSIDE).unwrap();
    let open = fs::File::open(&secret).unwrap();
    let link = format!("/proc/self/fd/{}", open.as_raw_fd());
    assert_eq!(fs::read_to_string(&link).unwrap(), OUTSIDE, "the control: the link works");
    for path in [link.as_str(), "/proc/self/exe", "/proc/self/root/etc/passwd", "/proc/self/cwd/Cargo.toml"] {
        for (tool, arguments) in
            calls(path).iter().filter(|(tool, _)| matches!(*tool, "read" | "grep" | "write" | "edit"))
        {
            let refused = fixture.call(tool, arguments);
            assert!(refused.as_ref().is_err_and(|why| !why.contains(OUTSIDE)), "{tool} {path}: {refused:?}");
        }
    }
}

#[test]
fn a_name_of_several_lines_forges_no_line_of_what_is_found() {
    let fixture = Fixture::new();
    fixture.put("a\nfake.rs:1:needle", "needle\n");
    fixture.put("b\u{1b}[31m\u{202e}", "needle\n");
    let shown = "a␊fake.rs:1:needle";
    let red = "b␛[31m\\u{202e}";
    let found = |tool: &str, arguments: &Value| fixture.call(tool, arguments).unwrap();
    assert_eq!(found("grep", &json!({"pattern": "needle"})), format!("{shown}:1:needle\n{red}:1:needle\n"));
    assert_eq!(found("glob", &json!({"pattern": "*"})), format!("{shown}\n{red}\n"));
    assert_eq!(found("list", &json!({})), format!("{shown}\n{red}\n"));
    assert_eq!(
        found("read", &json!({"path": "a\nfake.rs:1:needle"})).lines().count(),
        1,
        "it is found by its name"
    );
}
