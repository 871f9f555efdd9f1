//! What people do every day in a repository, run by a model without a question (spec: security §1, §9).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::exec::{exec, world};
use crate::tools::{calls, nodes};
use crate::world::{World, text};

/// Git of the person whose machine it is.
fn git(folder: &Path, arguments: &[&str]) -> String {
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
fn repository(folder: PathBuf) -> PathBuf {
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
fn told(commands: &[&str], prepare: impl FnOnce(&World) -> PathBuf) -> (World, PathBuf, Vec<String>) {
    let batch: Vec<Value> = commands.iter().map(|command| exec(command)).collect();
    let world = world(&[calls(&json!(batch)), json!({"text": "Done."})]);
    let folder = prepare(&world);
    let workspace = text(&folder);
    let (code, said) = world.json(&["--workspace", &workspace, "chat", "-m", "Do it."]);
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    assert!(said["denied"].is_null(), "nothing is asked: {said}");
    let results = nodes(&world).into_iter().filter(|node| node["author"] == "exec");
    let told = results.map(|node| node["text"].as_str().unwrap().to_owned()).collect();
    (world, folder, told)
}

/// A day's work with git: every command ends well.
const DAY: [&str; 12] = [
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
    assert!(told[11].contains("\n2\n") && told[11].contains("more.txt"), "{layout}: {}", told[11]);
    // For whoever owns the machine, too: nothing is left open, and no file came that nobody meant.
    assert_eq!(git(&folder, &["status", "--porcelain", "--ignored"]), "", "{layout}");
    let subjects = git(&folder, &["log", "--format=%s", "later"]);
    assert_eq!(subjects, "four\nthree\ntwo\none\n", "{layout}");
}

#[test]
fn git_is_used_all_day_in_a_plain_clone() {
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
    works_a_day("worktree", |world| {
        let main = repository(world.path("origin"));
        let linked = world.path("linked");
        git(&main, &["worktree", "add", "-q", "-b", "mine", &text(&linked)]);
        linked
    });
}

#[test]
fn git_is_used_all_day_in_a_submodule() {
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
fn of_a_larger_repository_a_command_sees_what_git_has_and_writes_nothing() {
    let commands = [
        "cat ../README.md ../other/a.rs",
        "cat ../.env ../other/.env ../notes/todo 2>&1; ls -A .. ../other",
        "! touch ../new && ! sh -c 'echo x >> ../README.md' && git status --porcelain",
        "git -C .. ls-files | sort | head -1",
    ];
    let (world, folder, told) = told(&commands, |world| {
        let outer = repository(world.path("outer"));
        for (name, text) in [
            ("README.md", "all of it\n"),
            ("other/a.rs", "fn a() {}\n"),
            ("part/b.rs", "fn b() {}\n"),
            (".gitignore", ".env\n"),
        ] {
            fs::create_dir_all(outer.join(name).parent().unwrap()).unwrap();
            fs::write(outer.join(name), text).unwrap();
        }
        git(&outer, &["add", "-A"]);
        git(&outer, &["commit", "-q", "-m", "two"]);
        fs::create_dir_all(outer.join("notes")).unwrap();
        for name in [".env", "other/.env", "notes/todo"] {
            fs::write(outer.join(name), "SECRETIVE\n").unwrap();
        }
        outer.join("part")
    });
    assert!(told[0].contains("all of it") && told[0].contains("fn a()"), "{}", told[0]);
    assert!(!told[1].contains("SECRETIVE") && told[1].contains("a.rs"), "{}", told[1]);
    assert!(told[2].starts_with("exit 0 ("), "{}", told[2]);
    assert!(!told[2].contains(" D ") && !told[2].contains("part/"), "{}", told[2]);
    assert!(told[3].contains(".gitignore"), "{}", told[3]);
    let outer = folder.parent().unwrap();
    assert_eq!(fs::read_to_string(outer.join("README.md")).unwrap(), "all of it\n");
    assert_eq!(fs::read_to_string(outer.join("other/.env")).unwrap(), "SECRETIVE\n");
    drop(world);
}

#[test]
fn a_command_that_writes_the_index_of_a_larger_repository_sees_no_more_of_it() {
    let guess =
        "git update-index --add --cacheinfo 100644,$(echo guess | git hash-object -w --stdin),other/.env";
    let commands = [
        "cat ../other/.env ../other/a.rs",
        &format!("cd .. && {guess} && cat other/.env"),
        "cat ../other/.env ../other/a.rs",
        "cat b.rs",
    ];
    let (_world, _, told) = told(&commands, |world| {
        let outer = repository(world.path("outer"));
        for (name, text) in
            [("other/a.rs", "fn a() {}\n"), ("part/b.rs", "fn b() {}\n"), (".gitignore", ".env\n")]
        {
            fs::create_dir_all(outer.join(name).parent().unwrap()).unwrap();
            fs::write(outer.join(name), text).unwrap();
        }
        git(&outer, &["add", "-A"]);
        git(&outer, &["commit", "-q", "-m", "two"]);
        fs::write(outer.join("other/.env"), "SECRETIVE\n").unwrap();
        outer.join("part")
    });
    assert!(told[0].contains("fn a()"), "control: {}", told[0]);
    assert!(told[1].starts_with("exit 0 ("), "control: the index is the command's to write: {}", told[1]);
    assert!(told.iter().all(|told| !told.contains("SECRETIVE")), "{told:?}");
    assert!(!told[2].contains("fn a()") && told[2].contains("other/.env is new to git"), "{}", told[2]);
    assert!(told[3].contains("fn b()"), "{}", told[3]);
}
