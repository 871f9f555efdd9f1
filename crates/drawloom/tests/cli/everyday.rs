//! What people do every day in a repository, run by a model without a question (spec: security §1, §9).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::exec::{exec, world_with};
use crate::tools::{calls, nodes};
use crate::world::{World, lacks, text};

/// Git of the person whose machine it is.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"])
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{arguments:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// A repository of one commit.
pub(crate) fn repository(folder: PathBuf) -> PathBuf {
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("src/main.rs"), "fn weave() {}\n").unwrap();
    git(&folder, &["init", "-q"]);
    git(&folder, &["config", "user.name", "A"]);
    git(&folder, &["config", "user.email", "a@example.org"]);
    git(&folder, &["add", "-A"]);
    git(&folder, &["commit", "-q", "-m", "one"]);
    folder
}

/// What each of these commands told, run in one turn in a folder.
pub(crate) fn told(
    commands: &[&str],
    prepare: impl FnOnce(&World) -> PathBuf,
) -> (World, PathBuf, Vec<String>) {
    told_with("", commands, prepare)
}

/// The same, with more in the configuration.
pub(crate) fn told_with(
    more: &str,
    commands: &[&str],
    prepare: impl FnOnce(&World) -> PathBuf,
) -> (World, PathBuf, Vec<String>) {
    let batch: Vec<Value> = commands.iter().map(|command| exec(command)).collect();
    let world = world_with(&[calls(&json!(batch)), json!({"text": "Done."})], more);
    let folder = prepare(&world);
    let workspace = text(&folder);
    let (code, said) = world.json(&["--workspace", &workspace, "chat", "-m", "Do it."]);
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    assert!(said["denied"].as_array().unwrap().is_empty(), "nothing is asked: {said}");
    let results = nodes(&world).into_iter().filter(|node| node["author"] == "exec");
    let told = results.map(|node| node["text"].as_str().unwrap().to_owned()).collect();
    (world, folder, told)
}

/// A day's work with git: every command ends well.
const DAY: [&str; 14] = [
    "git init -q made && git -C made -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m one",
    "git -C made log --format=%s && rm -rf made",
    "git checkout -q -b feature",
    "echo 'fn warp() {}' >> src/main.rs",
    "git commit -q -a -m two",
    "git checkout -q -",
    "echo notes > notes.txt && git add notes.txt && git commit -q -m three",
    "git merge -q -m merged feature",
    "git checkout -q -b later HEAD~1",
    "echo more > more.txt && git add more.txt && git commit -q -m four",
    "git rebase -q feature",
    "echo '// open' >> src/main.rs && git stash -q && git diff --quiet && git stash pop -q",
    "git checkout -q src/main.rs",
    "test -z \"$(git status --porcelain)\" && cat src/main.rs | grep -c fn && ls *.txt",
];

fn works_a_day(layout: &str, prepare: impl FnOnce(&World) -> PathBuf) {
    let (_world, folder, told) = told(&DAY, prepare);
    assert_eq!(told.len(), DAY.len());
    for (command, told) in DAY.iter().zip(&told) {
        assert!(told.starts_with("exit 0 ("), "{layout}: {command}: {told}");
    }
    assert!(told[1].contains("\none"), "{layout}: {}", told[1]);
    assert!(told[13].contains("\n2\n") && told[13].contains("more.txt"), "{layout}: {}", told[13]);
    // For whoever owns the machine, too: nothing is left open, and no file came that nobody meant.
    assert_eq!(git(&folder, &["status", "--porcelain", "--ignored"]), "", "{layout}");
    let subjects = git(&folder, &["log", "--format=%s", "later"]);
    assert_eq!(subjects, "four\nthree\ntwo\none\n", "{layout}");
}

#[test]
fn git_is_used_all_day_in_a_plain_clone() {
    if lacks(&["git"]) {
        return;
    }
    works_a_day("clone", |world| {
        let origin = repository(world.path("origin"));
        let clone = world.path("clone");
        git(&world.path("here"), &["clone", "-q", &text(&origin), &text(&clone)]);
        git(&clone, &["config", "user.name", "A"]);
        git(&clone, &["config", "user.email", "a@example.org"]);
        clone
    });
}

#[test]
fn git_is_used_all_day_in_a_linked_worktree() {
    if lacks(&["git"]) {
        return;
    }
    works_a_day("worktree", |world| {
        let main = repository(world.path("origin"));
        let linked = world.path("linked");
        git(&main, &["worktree", "add", "-q", "-b", "mine", &text(&linked)]);
        linked
    });
}

#[test]
fn git_is_used_all_day_in_a_submodule() {
    if lacks(&["git"]) {
        return;
    }
    works_a_day("submodule", |world| {
        let inner = repository(world.path("inner"));
        let outer = repository(world.path("outer"));
        git(&outer, &["submodule", "--quiet", "add", &text(&inner), "part"]);
        git(&outer, &["commit", "-q", "-m", "with a part"]);
        let part = outer.join("part");
        git(&part, &["config", "user.name", "A"]);
        git(&part, &["config", "user.email", "a@example.org"]);
        part
    });
}

#[test]
fn git_is_used_all_day_in_a_folder_of_a_larger_repository() {
    if lacks(&["git"]) {
        return;
    }
    works_a_day("larger repository", |world| {
        let outer = repository(world.path("outer"));
        fs::create_dir_all(outer.join("part/src")).unwrap();
        fs::write(outer.join("part/src/main.rs"), "fn weave() {}\n").unwrap();
        git(&outer, &["add", "-A"]);
        git(&outer, &["commit", "-q", "--amend", "-m", "one"]);
        outer.join("part")
    });
}

#[test]
fn a_clone_below_the_workspace_names_what_git_misses_in_it() {
    if lacks(&["git"]) {
        return;
    }
    let (_world, folder, told) = told(&["git clone -q . inner", "touch .envrc"], |world| {
        let folder = repository(world.path("project"));
        fs::write(folder.join("AGENTS.md"), "Be kind.\n").unwrap();
        git(&folder, &["add", "-A"]);
        git(&folder, &["commit", "-q", "-m", "two"]);
        folder
    });
    assert!(!folder.join("inner/AGENTS.md").exists() && folder.join("inner/src/main.rs").exists());
    let missed = format!(
        "if git has what was moved away from {}, it takes it for deleted",
        folder.join("inner").display()
    );
    assert!(told[0].contains(&missed), "{}", told[0]);
    assert!(!told[1].contains("if git has"), "a new file at the top is none of git's: {}", told[1]);
}

#[test]
fn in_plan_mode_the_git_folder_of_a_linked_worktree_is_read_and_not_written() {
    if lacks(&["git"]) {
        return;
    }
    let commands =
        ["git log --format=%s", "git -c user.name=A -c user.email=a@b commit -q --allow-empty -m two"];
    let batch: Vec<Value> = commands.iter().map(|command| exec(command)).collect();
    let world = world_with(&[calls(&json!(batch)), json!({"text": "Done."})], "");
    let main = repository(world.path("origin"));
    let linked = text(&world.path("linked"));
    git(&main, &["worktree", "add", "-q", "-b", "mine", &linked]);
    let (_, said) = world.json(&["--workspace", &linked, "chat", "--plan", "-m", "Look."]);
    assert_eq!(said["text"], "Done.", "{said}");
    let results = nodes(&world).into_iter().filter(|node| node["author"] == "exec");
    let told: Vec<String> = results.map(|node| node["text"].as_str().unwrap().to_owned()).collect();
    assert!(told[0].starts_with("exit 0 (") && told[0].contains("one"), "{}", told[0]);
    assert!(!told[1].starts_with("exit 0 ("), "{}", told[1]);
    assert_eq!(git(&main, &["log", "--all", "--format=%s"]), "one\n");
}
