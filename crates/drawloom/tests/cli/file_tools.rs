//! Tools that move, copy and delete: what they did is shown, given back and restored.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::tools::{calls, chat, nodes, writing};
use crate::world::{Run, World, piped};

fn relocation(tool: &str, from: &str, to: &str) -> Value {
    json!({"name": tool, "arguments": {"from": from, "to": to}})
}

fn named(tool: &str, path: &str) -> Value {
    json!({"name": tool, "arguments": {"path": path}})
}

pub(crate) fn say(world: &World, text: &str) -> Run {
    let project = world.path("project");
    world.run(&["--workspace", project.to_str().unwrap(), "chat", "-m", text])
}

/// Every path below a folder with its mode and what it holds.
pub(crate) fn listed(folder: &Path) -> Vec<(String, u32, String)> {
    fn below(folder: &Path, from: &Path, found: &mut Vec<(String, u32, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let mode = path.symlink_metadata().unwrap().permissions().mode() & 0o7777;
            let holds = if path.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else if path.is_dir() {
                below(&path, from, found);
                String::new()
            } else {
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
            };
            found.push((path.strip_prefix(from).unwrap().display().to_string(), mode, holds));
        }
    }
    let mut found = Vec::new();
    below(folder, folder, &mut found);
    found.sort();
    found
}

#[test]
fn folders_that_were_moved_copied_and_deleted_come_back_with_modes_and_links() {
    let world = writing(
        &[
            calls(&json!([
                relocation("move", "src", "lib/core"),
                relocation("copy", "lib/core", "copy"),
                named("delete", "lib/core/deep"),
                named("delete", "gone"),
                named("mkdir", "made/empty"),
                relocation("move", "../outside", "in"),
                relocation("copy", "copy/main.rs", ".git/hooks/pre-commit"),
                relocation("move", "AGENTS.md", "old.md"),
            ])),
            json!({"text": "Done.", "expect": [
                "moved src to lib/core (files: 2)", "copied lib/core to copy (files: 2)", "deleted gone (files: 1)",
                "made made/empty", "outside the allowed workspace", "never written by a tool", "move was not run"
            ]}),
        ],
        "",
    );
    let project = world.path("project");
    fs::create_dir_all(project.join("src/deep")).unwrap();
    fs::create_dir(project.join("gone")).unwrap();
    fs::write(project.join("gone/bytes"), b"\0\x01\xff").unwrap();
    fs::write(project.join("src/deep/run.sh"), "run\n").unwrap();
    fs::write(project.join("AGENTS.md"), "Be kind.\n").unwrap();
    fs::set_permissions(project.join("src/deep/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(project.join("src/deep"), fs::Permissions::from_mode(0o550)).unwrap();
    fs::set_permissions(project.join("gone"), fs::Permissions::from_mode(0o750)).unwrap();
    symlink("/etc/passwd", project.join("src/link")).unwrap();
    let before = listed(&project);
    let done = say(&world, "Tidy up.");
    assert!(done.out.contains("Done."), "{done:?}");
    assert!(project.join("copy/deep/run.sh").exists() && !project.join("src").exists());
    assert_eq!(fs::read_link(project.join("copy/link")).unwrap(), Path::new("/etc/passwd"));
    let shown = say(&world, "/diff").out;
    for line in [
        "move from src/main.rs",
        "move to lib/core/main.rs",
        "new folder made/empty",
        "gone/bytes: bytes with",
    ] {
        assert!(shown.lines().any(|shown| shown.starts_with(line)), "{line}: {shown}");
    }
    assert!(!shown.contains("root:"), "{shown}");
    let back = say(&world, "/undo --files");
    assert_eq!((back.code, back.err.as_str()), (Some(0), "/redo --files takes it again\n"), "{back:?}");
    assert_eq!(listed(&project), before);
    assert_eq!(say(&world, "/diff").out, "");
}

#[test]
fn what_a_person_changed_after_a_move_stays_where_it_is() {
    let moves = calls(&json!([relocation("move", "src", "lib")]));
    let world = writing(&[moves, json!({"text": "Done."})], "");
    let project = world.path("project");
    fs::write(project.join("src/other.rs"), "other\n").unwrap();
    assert_eq!(chat(&world, "Move it.").0, Some(0));
    fs::write(project.join("lib/main.rs"), "mine\n").unwrap();
    fs::write(project.join("lib/new.rs"), "new\n").unwrap();
    let back = say(&world, "/undo --files");
    assert!(back.err.contains("left as it is: lib/main.rs: somebody changed it since"), "{back:?}");
    let files: Vec<_> = listed(&project).into_iter().map(|(path, _, holds)| (path, holds)).collect();
    let expected = [
        ("lib", ""),
        ("lib/main.rs", "mine\n"),
        ("lib/new.rs", "new\n"),
        ("src", ""),
        ("src/main.rs", "fn weave() {}\n"),
        ("src/other.rs", "other\n"),
    ];
    assert_eq!(files, expected.map(|(path, holds)| (path.to_owned(), holds.to_owned())));
}

#[test]
fn a_file_is_restored_to_what_it_was_before_the_last_change_or_a_turn() {
    let edit = |old: &str, new: &str| json!({"name": "edit", "arguments": {"path": "a b.txt", "old": old, "new": new}});
    let world =
        writing(&[calls(&json!([edit("one", "two"), edit("two", "three")])), json!({"text": "Done."})], "");
    let project = world.path("project");
    let at = || fs::read_to_string(project.join("a b.txt")).ok();
    fs::write(project.join("a b.txt"), "one\n").unwrap();
    assert_eq!(chat(&world, "First.").0, Some(0));
    let first = nodes(&world)[0]["short_id"].as_str().unwrap().to_owned();
    let second =
        [calls(&json!([edit("three", "four"), relocation("move", "src", "lib")])), json!({"text": "Done."})];
    world.write("lines.jsonl", &second.map(|line| format!("{line}\n")).concat());
    assert_eq!(chat(&world, "Second.").0, Some(0));
    assert_eq!(at().as_deref(), Some("four\n"));

    let shown = say(&world, &format!("/diff @{first}")).out;
    assert!(shown.contains("-one") && shown.contains("+three") && !shown.contains("four"), "{shown}");
    let shown = say(&world, "/diff session").out;
    assert!(
        shown.contains("-one") && shown.contains("+four") && shown.contains("move to lib/main.rs"),
        "{shown}"
    );

    let refused = say(&world, "/restore 'a b.txt'");
    assert!(refused.code != Some(0) && refused.err.contains("--yes"), "{refused:?}");
    assert!(
        refused.err.contains("-four") && refused.err.contains("+three"),
        "the difference first: {refused:?}"
    );
    assert_eq!(at().as_deref(), Some("four\n"));
    let (code, done) = chat(&world, "/restore 'a b.txt' --yes");
    assert_eq!((code, &done["given"]), (Some(0), &json!(["a b.txt"])), "{done}");
    assert_eq!(at().as_deref(), Some("three\n"));
    fs::write(project.join("a b.txt"), "mine\n").unwrap();
    assert_eq!(say(&world, &format!("/restore 'a b.txt' @{first} --yes")).code, Some(0));
    assert_eq!(at().as_deref(), Some("one\n"));
    let shown = say(&world, "/diff").out;
    assert!(!shown.contains("a b.txt") && shown.contains("move to lib/main.rs"), "{shown}");

    let left = say(&world, "/restore lib --yes");
    assert!(project.join("lib/main.rs").exists(), "it stands nowhere else: {left:?}");
    assert_eq!(say(&world, "/restore src --yes").code, Some(0));
    assert_eq!(fs::read_to_string(project.join("src/main.rs")).unwrap(), "fn weave() {}\n");
    let missing = say(&world, "/restore no-such.txt --yes");
    assert!(missing.code != Some(0) && missing.err.contains("no-such.txt"), "{missing:?}");
}

/// A process that is killed in the middle of a deletion: the files that are gone were kept.
#[test]
fn a_deletion_that_is_killed_in_the_middle_is_given_back() {
    let world = writing(&[calls(&json!([named("delete", "many")])), json!({"text": "Done."})], "");
    let project = world.path("project");
    fs::create_dir(project.join("many")).unwrap();
    for number in 0..600 {
        fs::write(project.join(format!("many/{number:04}")), format!("{number}\n")).unwrap();
    }
    let before = listed(&project);
    let words = ["--workspace", project.to_str().unwrap(), "chat", "-m", "Delete it."];
    let mut child = piped(&mut world.command(&words));
    let start = Instant::now();
    while fs::read_dir(project.join("many")).map_or(0, Iterator::count) > 590 {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is deleted");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let left = fs::read_dir(project.join("many")).map_or(0, Iterator::count);
    // One that is between its name and its end: a kill seldom meets it. They go from the last to the first.
    let hash = &loom::Digest::of(b"1\n").to_string()[..32];
    let aside = format!("many/.0001.drawloom-{}-{hash}.old", "0".repeat(16));
    fs::rename(project.join("many/0001"), project.join(&aside)).unwrap();
    // Anybody may call a file so.
    let planted = project.join(format!("many/.AGENTS.md.drawloom-{}-{hash}.old", "0".repeat(16)));
    fs::write(&planted, "1\n").unwrap();
    world.write("lines.jsonl", &format!("{}\n", json!({"text": "Again.", "expect": ["unknown"]})));
    let next = say(&world, "Go on.");
    assert_eq!(next.code, Some(0), "{left} were left: {next:?}");
    assert!(next.err.contains("many/0001 is back as it was before a change that was cut off"), "{next:?}");
    let shown = say(&world, "/diff").out;
    assert!(
        shown.contains("many/0599") && !shown.contains("many/0001"),
        "what stands was not deleted: {shown}"
    );
    let back = say(&world, "/undo --files");
    assert_eq!(back.code, Some(0), "{back:?}");
    fs::remove_file(planted).unwrap();
    assert_eq!(listed(&project), before, "{left} were left");
}

/// A process that is killed in the middle of a patch: all of it is made, or nothing is.
#[test]
fn a_patch_that_is_killed_in_the_middle_changes_nothing() {
    let patch: String = (0..300)
        .map(|number| format!("--- a/many/{number:04}\n+++ b/many/{number:04}\n@@ -1 +1 @@\n-old\n+new\n"))
        .collect();
    let made = "--- /dev/null\n+++ b/made/deep/new\n@@ -0,0 +1 @@\n+new\n";
    let call = json!({"name": "patch", "arguments": {"patch": format!("{made}{patch}")}});
    let world = writing(&[calls(&json!([call])), json!({"text": "Done."})], "");
    let project = world.path("project");
    fs::create_dir(project.join("many")).unwrap();
    for number in 0..300 {
        fs::write(project.join(format!("many/{number:04}")), "old\n").unwrap();
    }
    let before = listed(&project);
    let words = ["--workspace", project.to_str().unwrap(), "chat", "-m", "Patch it."];
    let mut child = piped(&mut world.command(&words));
    let start = Instant::now();
    while fs::read_to_string(project.join("many/0002")).unwrap() == "old\n" {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is patched");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read_to_string(project.join("many/0299")).unwrap(), "old\n", "the kill came too late");
    // A person's own since then.
    fs::write(project.join("many/0001"), "mine\n").unwrap();
    fs::write(project.join("many/0299"), "mine\n").unwrap();
    let expect = ["outcome of this call is unknown", "It changed 2 of 303 paths."];
    world.write("lines.jsonl", &format!("{}\n", json!({"text": "Again.", "expect": expect})));
    let next = say(&world, "Go on.");
    assert_eq!(next.code, Some(0), "{next:?}");
    assert!(next.err.contains("a call of patch was cut off: what it had changed, "), "{next:?}");
    for mine in ["many/0001", "many/0299"] {
        assert_eq!(fs::read_to_string(project.join(mine)).unwrap(), "mine\n");
        fs::write(project.join(mine), "old\n").unwrap();
    }
    // A text that was cut off while it was written is kept beside, and named.
    let mut left = listed(&project);
    left.retain(|(path, ..)| !path.contains(".drawloom-"));
    assert_eq!(left, before);
    let shown = say(&world, "/diff").out;
    assert!(!shown.contains("many/0000") && !shown.contains("made"), "{shown}");
}

#[test]
fn what_is_given_back_is_kept_and_taken_again() {
    let write =
        |path: &str, content: &str| json!({"name": "write", "arguments": {"path": path, "content": content}});
    let turn = calls(&json!([
        write("work.py", "an hour of work\n"),
        json!({"name": "edit", "arguments": {"path": "a.txt", "old": "one", "new": "two"}}),
        relocation("move", "src", "lib"),
    ]));
    let world = writing(&[turn, json!({"text": "Done."})], "");
    let project = world.path("project");
    fs::write(project.join("a.txt"), "one\n").unwrap();
    let before = listed(&project);
    assert_eq!(chat(&world, "Work.").0, Some(0));
    let worked = listed(&project);
    let diff = say(&world, "/diff").out;

    let back = say(&world, "/undo --files");
    assert_eq!((back.code, listed(&project)), (Some(0), before), "{back:?}");
    assert!(back.err.contains("/redo --files"), "{back:?}");
    let named = say(&world, "/diff");
    assert!(named.err.contains("work.py") && named.err.contains("/redo --files takes it again"), "{named:?}");
    let again = say(&world, "/redo --files");
    assert!(again.out.contains("redone: work.py"), "{again:?}");
    assert_eq!(listed(&project), worked);
    assert_eq!(say(&world, "/diff").out, diff, "its changes stand again");
    assert_eq!(say(&world, "/redo --files").err, "no giving-back of files is left to redo\n");

    // A person's own line is in the home once it was overwritten, and comes back; one after another.
    fs::write(project.join("work.py"), "an hour of work\nMINE\n").unwrap();
    assert_eq!(say(&world, "/restore work.py --yes").code, Some(0));
    assert_eq!(say(&world, "/restore a.txt --yes").code, Some(0));
    assert!(!project.join("work.py").exists());
    assert!(say(&world, "/redo --files").out.contains("redone: a.txt"));
    assert!(say(&world, "/redo --files").out.contains("redone: work.py"));
    assert_eq!(fs::read_to_string(project.join("work.py")).unwrap(), "an hour of work\nMINE\n");

    // What was written since is left, and what was given back before is taken again all the same.
    assert_eq!(say(&world, "/restore work.py --yes").code, Some(0));
    assert_eq!(say(&world, "/restore a.txt --yes").code, Some(0));
    fs::write(project.join("a.txt"), "since\n").unwrap();
    let left = say(&world, "/redo --files");
    assert!(left.err.contains("left as it is: a.txt: somebody changed it since"), "{left:?}");
    assert!(left.out.contains("redone: work.py"), "{left:?}");
    assert_eq!(fs::read_to_string(project.join("a.txt")).unwrap(), "since\n");
}

#[test]
fn what_was_taken_from_a_path_that_is_left_stays_where_it_is() {
    let world = writing(&[calls(&json!([relocation("move", "a", "b")])), json!({"text": "Done."})], "");
    let project = world.path("project");
    fs::write(project.join("a"), "ours\n").unwrap();
    assert_eq!(chat(&world, "Move it.").0, Some(0));
    assert_eq!(say(&world, "/undo --files").code, Some(0));
    fs::write(project.join("b"), "a person's\n").unwrap();
    let left = say(&world, "/redo --files");
    assert!(left.err.contains("left as it is: b: somebody changed it since"), "{left:?}");
    assert_eq!(fs::read_to_string(project.join("a")).unwrap(), "ours\n", "{left:?}");
    assert_eq!(fs::read_to_string(project.join("b")).unwrap(), "a person's\n");
    fs::remove_file(project.join("b")).unwrap();
    say(&world, "/redo --files");
    assert_eq!(fs::read_to_string(project.join("b")).unwrap(), "ours\n", "the control");
    assert!(!project.join("a").exists());
}

#[test]
fn nothing_is_given_back_where_it_cannot_be_kept() {
    let write = json!({"name": "write", "arguments": {"path": "work.py", "content": "an hour of work\n"}});
    let world = writing(&[calls(&json!([write])), json!({"text": "Done."})], "");
    let work = world.path("project").join("work.py");
    assert_eq!(chat(&world, "Work.").0, Some(0));
    // 10 MiB is what is kept of one file.
    let large = "x".repeat((10 << 20) + 1);
    fs::write(&work, &large).unwrap();
    let refused = say(&world, "/restore work.py --yes");
    assert!(refused.code != Some(0), "{refused:?}");
    assert_eq!(fs::metadata(&work).unwrap().len(), large.len() as u64);
}

#[test]
fn what_the_session_wrote_in_an_earlier_turn_is_written_over_unless_somebody_changed_it() {
    let write = |content: &str| {
        calls(&json!([{"name": "write", "arguments": {"path": "notes.md", "content": content}}]))
    };
    let world = writing(&[write("one\n"), json!({"text": "Made."})], "");
    let notes = world.path("project/notes.md");
    let turn = |content: &str, expect: &str| {
        let answer = json!({"text": "Well.", "expect": [expect]});
        world.write("lines.jsonl", &format!("{}\n{answer}\n", write(content)));
        let (code, said) = chat(&world, "Go on.");
        assert_eq!(code, Some(0), "{said}");
    };
    assert_eq!(chat(&world, "Make it.").0, Some(0));
    // Another process of the same session.
    turn("two\n", "wrote notes.md");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "two\n");
    fs::write(&notes, "a person's\n").unwrap();
    turn("three\n", "was changed since it was read");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "a person's\n");
    // The control: what no tool of the session wrote was not read.
    fs::write(world.path("project/other.md"), "x\n").unwrap();
    let other = calls(&json!([{"name": "write", "arguments": {"path": "other.md", "content": "y\n"}}]));
    let answer = json!({"text": "Well.", "expect": ["was not read yet"]});
    world.write("lines.jsonl", &format!("{other}\n{answer}\n"));
    assert_eq!(chat(&world, "And that.").0, Some(0));
}

#[test]
fn a_rule_on_reading_holds_behind_a_link() {
    for (rule, is_read) in
        [("read path=docs/**", false), ("read path=dl/**", false), ("read path=other/**", true)]
    {
        let read = json!({"name": "read", "arguments": {"path": "dl/a.md"}});
        let rules = format!("[[policy.rules]]\ndecision = \"deny\"\ntool = [\"{rule}\"]\n");
        let world = writing(&[calls(&json!([read])), json!({"text": "Done."})], &rules);
        let project = world.path("project");
        fs::create_dir(project.join("docs")).unwrap();
        fs::write(project.join("docs/a.md"), "confidential\n").unwrap();
        symlink("docs", project.join("dl")).unwrap();
        let (code, said) = chat(&world, "Read it.");
        assert_eq!(code, Some(0), "{said}");
        let denied = said["denied"].as_array().unwrap();
        assert_eq!(denied.is_empty(), is_read, "{rule}: {said}");
        let (_, shown) = world.json(&["tree", "show", said["tree"].as_str().unwrap(), "--all"]);
        assert_eq!(shown.to_string().contains("confidential"), is_read, "{rule}: {shown}");
    }
}

#[test]
fn a_miss_quotes_no_file_that_a_rule_keeps_from_being_read() {
    let edit =
        json!({"name": "edit", "arguments": {"path": "c.txt", "old": "confidential line 6x", "new": "y"}});
    let patch = "*** Begin Patch\n*** Update File: c.txt\n-confidential line 7x\n+y\n*** End Patch\n";
    let patch = json!({"name": "patch", "arguments": {"patch": patch}});
    for (rules, is_quoted) in
        [("", true), ("[[policy.rules]]\ndecision = \"deny\"\ntool = [\"read path=c.txt\"]\n", false)]
    {
        let called = calls(&json!([edit, patch]));
        let world = writing(&[called, json!({"text": "Done."})], rules);
        let lines: String = (1..=12).map(|line| format!("confidential line {line}\n")).collect();
        fs::write(world.path("project/c.txt"), lines).unwrap();
        let (_, said) = chat(&world, "Change it.");
        let (_, shown) = world.json(&["tree", "show", said["tree"].as_str().unwrap(), "--all"]);
        let results: Vec<String> = shown["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|node| node["role"] == "tool")
            .map(Value::to_string)
            .collect();
        assert_eq!(results.len(), 2, "{shown}");
        for result in results {
            assert_eq!(result.contains("confidential line 5"), is_quoted, "{result}");
        }
    }
}
