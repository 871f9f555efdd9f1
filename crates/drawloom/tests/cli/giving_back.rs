//! What the owner gave back of files is told to the model with the next message, once (spec: agent §3 *Checkpoints*).

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::exec::{exec, world_with};
use crate::file_tools::{listed, say};
use crate::tools::{calls, chat, writing};
use crate::world::{World, lacks};

const GAVE: &str = "[files] the owner gave back, as they were before tools changed them: ";
const TOOK: &str = "[files] the owner took again, as they were before being given back: ";

/// The request of one message, as it was sent by a process of its own.
fn sent(world: &World, message: &str) -> String {
    world.write("lines.jsonl", &format!("{}\n", json!({"text": "Well."})));
    let (code, said) = chat(world, message);
    assert_eq!(code, Some(0), "{said}");
    world.ok(&["context", "show", said["node"].as_str().unwrap(), "--text"])
}

fn write(path: &str) -> Value {
    json!({"name": "write", "arguments": {"path": path, "content": "new\n"}})
}

#[test]
fn the_model_is_told_once_what_was_given_back_and_what_was_taken_again() {
    let turn = calls(&json!([write("one.txt"), write("a\u{202e}b\nc.txt")]));
    let world = writing(&[turn, json!({"text": "Made."})], "");
    assert_eq!(chat(&world, "Make them.").0, Some(0));
    // A control: nothing was given back.
    assert!(!sent(&world, "Nothing yet.").contains("[files] the owner"));

    assert_eq!(say(&world, "/undo --files").code, Some(0));
    let first = sent(&world, "Go on.");
    assert_eq!(first.matches(GAVE).count(), 1, "{first}");
    let told = first.split(GAVE).nth(1).unwrap();
    assert!(told.starts_with("one.txt, a") && !told.contains('\u{202e}') && !told.contains("b\nc"), "{told}");
    assert!(first.rfind(GAVE) > first.find("Go on."), "{first}");
    let second = sent(&world, "Further.");
    assert_eq!(second.matches(GAVE).count(), 1, "it is told once: {second}");

    assert_eq!(say(&world, "/redo --files").code, Some(0));
    let third = sent(&world, "Again.");
    assert_eq!((third.matches(GAVE).count(), third.matches(TOOK).count()), (1, 1), "{third}");
    assert_eq!(sent(&world, "And on.").matches(TOOK).count(), 1);

    // The message is undone, and with it what was told: the next one tells it.
    assert_eq!(say(&world, "/restore one.txt --yes").code, Some(0));
    let restored = format!("{GAVE}one.txt");
    assert!(sent(&world, "Undone.").contains(&restored));
    assert_eq!(say(&world, "/undo").code, Some(0));
    assert!(sent(&world, "Instead.").contains(&restored));
}

#[test]
fn files_of_several_names_come_back_where_all_of_them_are_given_back() {
    let line = "ln old other; echo more >> old; echo a > made; ln made twin; mkdir .l; \
        for name in one two; do ln $name .l/$name; echo evil >> $name; done; ln mine further; \
        echo more >> shared";
    let world = world_with(&[calls(&json!([exec(line)])), json!({"text": "Done."})], "");
    let project = world.path("project");
    for name in ["old", "one", "two", "mine", "shared"] {
        fs::write(project.join(name), "here\n").unwrap();
    }
    let before = listed(&project);
    assert_eq!(chat(&world, "Do it.").0, Some(0));
    // A name that is not given back, so that the file is somebody else's as well.
    fs::hard_link(project.join("shared"), world.path("user/shared")).unwrap();
    let back = say(&world, "/undo --files");
    let told = format!("{}{}", back.out, back.err);
    assert!(told.contains("shared: it has 2 hard links"), "{told}");
    assert_eq!(fs::read_to_string(project.join("shared")).unwrap(), "here\nmore\n");
    fs::remove_file(world.path("user/shared")).unwrap();
    assert_eq!(say(&world, "/undo --files").code, Some(0));
    assert_eq!(listed(&project), before);
}

#[test]
fn what_an_answer_changed_that_is_not_sent_is_not_told() {
    let world = writing(&[calls(&json!([write("one.txt")])), json!({"text": "Made."})], "");
    assert_eq!(chat(&world, "Make it.").0, Some(0));
    let undone = say(&world, "/undo");
    assert!(undone.err.contains("/undo --files gives them back"), "{undone:?}");
    assert_eq!(say(&world, "/undo --files").code, Some(0));
    assert!(!sent(&world, "Something else.").contains("[files] the owner"));
}

/// A world in which two turns change a file each, whose bytes are kept up to this bound.
fn two_turns(bound: &str) -> World {
    let write = |name: &str| exec(&format!("printf '%01000d{name}' 2 > {name}"));
    let world = world_with(&[], &format!("[limits]\nkept_files = {bound}\n"));
    for name in ["a", "b"] {
        fs::write(world.path("project").join(name), name.repeat(1_000)).unwrap();
    }
    for name in ["a", "b"] {
        let lines = [calls(&json!([write(name)])), json!({"text": "Done."})];
        world.write("lines.jsonl", &lines.map(|line| format!("{line}\n")).concat());
        assert_eq!(chat(&world, "Do it.").0, Some(0));
    }
    world
}

#[test]
fn what_is_no_longer_kept_is_said_and_the_rest_is_given_back() {
    for (bound, is_kept) in [("\"4 KiB\"", true), ("2500", false)] {
        let world = two_turns(bound);
        let read = |name: &str| fs::read_to_string(world.path("project").join(name)).unwrap();
        let why = "its bytes are no longer kept (limits.kept_files, limits.kept_days)";
        let diff = say(&world, "/diff");
        assert_eq!(diff.code, Some(0), "{diff:?}");
        assert!(diff.out.contains("+++ b\n"), "{diff:?}");
        assert_eq!(diff.out.contains(&format!("a: {why}")), !is_kept, "{diff:?}");
        assert_eq!(say(&world, "/undo --files").out, "given back: b\n");
        assert_eq!(read("b"), "b".repeat(1_000));
        let restored = say(&world, "/restore a --yes");
        let back = say(&world, "/undo --files");
        if is_kept {
            assert_eq!(restored.code, Some(0), "{restored:?}");
            assert_eq!(read("a"), "a".repeat(1_000));
        } else {
            assert!(restored.err.contains(&format!("a: {why}")), "{restored:?}");
            assert!(
                format!("{}{}", back.out, back.err).contains(&format!("left as it is: a: {why}")),
                "{back:?}"
            );
            assert!(read("a").ends_with("2a"));
        }
        let problems = world.run(&["store", "check"]);
        assert_eq!(problems.code, Some(0), "{problems:?}");
        let blobs = fs::read_dir(world.home().join("blobs")).unwrap();
        let blobs = blobs.flat_map(|shard| fs::read_dir(shard.unwrap().path()).unwrap()).count();
        assert_eq!(blobs, if is_kept { 4 } else { 2 });
    }
}

#[test]
fn forgetting_by_words_names_the_kept_bytes_that_it_does_not_look_into() {
    let world = world_with(&[calls(&json!([exec("echo more >> own")])), json!({"text": "Done."})], "");
    fs::write(world.path("project/own"), "the canary slept\n").unwrap();
    let words = ["forget", "--text", "the canary slept", "--yes", "--yes"];
    let told = "not reached: bytes of files that other answers changed";
    world.ok(&["tree", "new", "--title", "Rain", "--text", "the canary slept"]);
    let said = world.run(&words);
    assert!(said.code == Some(0) && !said.err.contains(told), "the control: {said:?}");
    assert_eq!(chat(&world, "Do it.").0, Some(0));
    let said = world.run(&words);
    assert!(said.code == Some(0) && said.err.contains(told), "{said:?}");
}

#[test]
fn where_nothing_stands_of_a_conversation_the_one_that_changed_files_is_named() {
    let turn = calls(&json!([write("one.txt")]));
    let world = writing(&[turn, json!({"text": "Made."}), json!({"text": "Anew."})], "");
    assert_eq!(chat(&world, "Make it.").0, Some(0));
    let project = world.path("project");
    let workspace = project.to_str().unwrap();
    world.ok(&["--workspace", workspace, "chat", "--new", "-m", "Begin anew."]);
    let restored = say(&world, "/restore one.txt");
    assert!(restored.err.contains("`drawloom files restore one.txt` gives it back"), "{restored:?}");
    let undone = say(&world, "/undo --files");
    let command = undone.err.split('`').nth(1).unwrap();
    assert!(undone.err.contains("there is nothing to give back of this conversation: "), "{undone:?}");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    world.ok(&[&["--workspace", workspace], &words[..]].concat());
    assert!(!project.join("one.txt").exists(), "{command}");
    // The control: nothing stands anywhere.
    let nothing = say(&world, "/undo --files");
    assert!(nothing.err.contains("there is nothing to give back\n"), "{nothing:?}");
    assert!(!say(&world, "/restore one.txt").err.contains("another conversation"));
}

#[test]
fn a_commit_that_stays_where_files_are_given_back_is_named() {
    if lacks(&["git"]) {
        return;
    }
    let world = world_with(&[calls(&json!([write("new.txt")])), json!({"text": "Made."})], "");
    let project = world.path("project");
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(&project).env("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z");
        let ran = git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words).output().unwrap();
        assert!(ran.status.success(), "{words:?}: {ran:?}");
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "one"]);
    let before = git(&["rev-parse", "HEAD"]);
    // The control: nothing was committed since.
    assert_eq!(chat(&world, "Make it.").0, Some(0));
    let back = say(&world, "/undo --files");
    assert!(back.out.contains("new.txt") && !back.err.contains("history"), "{back:?}");

    let commit = "echo q >> src/main.rs; git -c user.name=a -c user.email=a@b commit -qam agent";
    world.write("lines.jsonl", &format!("{}\n{}\n", calls(&json!([exec(commit)])), json!({"text": "Done."})));
    assert_eq!(chat(&world, "Commit it.").0, Some(0));
    let after = git(&["rev-parse", "HEAD"]);
    let back = say(&world, "/undo --files");
    let (before, after) = (&before[..7], &after[..7]);
    let told = format!("since the second in which that turn began HEAD went from {before} to {after}");
    assert!(back.err.contains(&told), "{back:?}");
}
