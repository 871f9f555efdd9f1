//! A hundred commands of a day in a repository: what they meant is there, and nothing else ever was (spec: security §1);
//! and a branch that brings other instructions.

use std::collections::BTreeSet;
use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::everyday::{git, repository, told};
use crate::exec::{exec, world};
use crate::headless::question;
use crate::tools::calls;
use crate::trust::said_in;
use crate::world::{World, lacks, text};

/// Watches what comes into folders, however short it stays.
struct Watcher {
    notify: rustix::fd::OwnedFd,
}

impl Watcher {
    fn of(folders: &[&Path]) -> Self {
        let notify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        for folder in folders {
            inotify::add_watch(&notify, *folder, WatchFlags::CREATE | WatchFlags::MOVED_TO).unwrap();
        }
        Self { notify }
    }

    /// Names that came since it began.
    fn came(&self) -> BTreeSet<String> {
        let mut buffer = [MaybeUninit::uninit(); 64 << 10];
        let mut events = inotify::Reader::new(&self.notify, &mut buffer);
        let mut came = BTreeSet::new();
        loop {
            match events.next() {
                Ok(event) => {
                    assert!(!event.events().contains(ReadFlags::QUEUE_OVERFLOW), "not all was seen");
                    came.extend(event.file_name().map(|name| name.to_string_lossy().into_owned()));
                }
                Err(Errno::AGAIN) => return came,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Five commands of a round: each ends well.
fn round(number: usize) -> [String; 5] {
    [
        format!("echo 'fn weft{number}() {{}}' >> src/main.rs && cat src/*.rs | grep -c weft"),
        format!("git checkout -q -b part{number} && git commit -q -a -m part{number} && git checkout -q -"),
        format!("git merge -q part{number} && test -z \"$(git status -s -uno)\""),
        "make -s && ./built.sh > printed && wc -l < printed && make -s clean".to_owned(),
        "python3 -c 'open(\"drafts.txt\", \"a\").write(\"a line\\n\")' && git stash list | wc -l".to_owned(),
    ]
}

#[test]
fn a_hundred_commands_leave_what_they_meant_and_no_other_file_ever_stood_there() {
    if lacks(&["git", "make", "python3"]) {
        return;
    }
    let commands: Vec<String> =
        (0..20).flat_map(round).chain(["touch .envrc.d && rm .envrc.d".to_owned()]).collect();
    let words: Vec<&str> = commands.iter().map(String::as_str).collect();
    let mut watchers = None;
    let (_world, folder, told) = told(&words, |world| {
        let folder = repository(world.path("project"));
        let makefile = "built.sh:\n\tprintf '#!/bin/sh\\necho built\\n' > built.sh\n\tchmod +x built.sh\nclean:\n\trm -f built.sh printed\n.PHONY: clean\n";
        fs::write(folder.join("Makefile"), makefile).unwrap();
        git(&folder, &["add", "-A"]);
        git(&folder, &["commit", "-q", "-m", "make"]);
        watchers = Some((Watcher::of(&[&folder, &folder.join("src")]), Watcher::of(&[&folder.join(".git")])));
        folder
    });
    for (command, told) in commands.iter().zip(&told) {
        assert!(told.starts_with("exit 0 ("), "{command}: {told}");
    }
    assert_eq!(told.len(), 101);
    assert_eq!(git(&folder, &["status", "--porcelain", "--ignored"]), "?? drafts.txt\n");
    assert_eq!(git(&folder, &["log", "--format=%s"]).lines().count(), 22);
    let (in_folder, in_git) = watchers.unwrap();
    // The last command is the control: what stands there for a moment is seen. Git makes its files anew.
    let meant = [".envrc.d", "built.sh", "drafts.txt", "main.rs", "printed"];
    assert_eq!(in_folder.came().iter().map(String::as_str).collect::<Vec<_>>(), meant);
    let in_git = in_git.came();
    let stubs = ["commondir", "config", "config.worktree", "hooks", "info", "modules", "worktrees"];
    assert!(in_git.contains("index.lock") && !stubs.iter().any(|name| in_git.contains(*name)), "{in_git:?}");
}

const THEIRS: &str = "THEIRS-9c1e";

/// A chat that waits for an answer.
fn waits(world: &World, folder: &Path) -> Child {
    let mut chat = world.command(&["chat", "-m", "Look at the other branch.", "--wait", "120", "--json"]);
    chat.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Every request of a conversation, as it was sent.
fn requests(world: &World, tree: &str) -> String {
    let (_, shown) = world.json(&["tree", "show", tree]);
    let answers = shown["nodes"].as_array().unwrap().iter().filter(|node| node["role"] == "assistant");
    let request = |node: &Value| world.ok(&["context", "show", node["id"].as_str().unwrap(), "--text"]);
    answers.map(request).collect()
}

#[test]
fn a_checkout_that_brings_other_instructions_asks_once_and_sends_them_once_they_are_accepted() {
    if lacks(&["git"]) {
        return;
    }
    let checkout = |more: Value| {
        let mut call = exec("git checkout -q other && git status -s && git log -1 --format=%s");
        call["arguments"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        calls(&json!([call]))
    };
    let world = world(&[
        calls(&json!([exec("git checkout -q other; git checkout -q -f -")])),
        checkout(json!({"touches": ["AGENTS.md"]})),
        json!({"text": "Done."}),
    ]);
    let project = repository(world.path("project"));
    let agents = project.join("AGENTS.md");
    fs::write(&agents, "OURS-41bd\n").unwrap();
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "ours"]);
    git(&project, &["checkout", "-q", "-b", "other"]);
    fs::write(&agents, format!("{THEIRS}\n")).unwrap();
    git(&project, &["commit", "-q", "-a", "-m", "theirs"]);
    git(&project, &["checkout", "-q", "-"]);
    world.ok(&["workspace", "trust", &text(&project)]);
    assert!(said_in(&world, &project, &["--session", "before"]).0.contains("OURS-41bd"));

    let mut chat = waits(&world, &project);
    let asked = question(&world, &mut chat);
    assert!(asked["about"].as_str().unwrap().contains("writes AGENTS.md"), "{asked}");
    assert_eq!(fs::read_to_string(&agents).unwrap(), "OURS-41bd\n", "nothing before the answer");
    world.ok(&["approve", asked["short_id"].as_str().unwrap()]);
    // A second question would let it wait.
    let said = chat.wait_with_output().unwrap();
    let said: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(said["text"], "Done.", "{said}");
    assert_eq!(fs::read_to_string(&agents).unwrap(), format!("{THEIRS}\n"));
    assert_eq!(git(&project, &["status", "--porcelain"]), "");
    let tree = said["tree"].as_str().unwrap();
    let (_, shown) = world.json(&["tree", "show", tree]);
    let results: Vec<_> =
        shown["nodes"].as_array().unwrap().iter().filter(|node| node["author"] == "exec").collect();
    let [refused, done] = results.as_slice() else { panic!("{results:?}") };
    assert!(refused["text"].as_str().unwrap().contains("AGENTS.md"), "it is named: {refused}");
    assert!(done["text"].as_str().unwrap().starts_with("exit 0 ("), "{done}");

    // Neither the conversation itself nor a new one has their text, until the owner accepts it.
    let sent = requests(&world, tree);
    assert!(sent.contains("OURS-41bd") && !sent.contains(THEIRS), "{sent}");
    let (sent, run) = said_in(&world, &project, &["--session", "after"]);
    assert!(!sent.contains(THEIRS) && run.err.contains("AGENTS.md is left out"), "{sent} {}", run.err);
    world.ok(&["workspace", "trust", &text(&project)]);
    assert!(said_in(&world, &project, &["--session", "accepted"]).0.contains(THEIRS));
}

#[test]
fn a_checkout_that_brings_protected_files_makes_those_that_are_named_and_no_others() {
    if lacks(&["git"]) {
        return;
    }
    let mut call = exec("git checkout -q other && git status -s");
    call["arguments"]["touches"] = json!(["CLAUDE.md", "new/.envrc"]);
    let world = world(&[calls(&json!([call])), json!({"text": "Done."})]);
    let project = repository(world.path("project"));
    git(&project, &["checkout", "-q", "-b", "other"]);
    fs::create_dir(project.join("new")).unwrap();
    for name in ["CLAUDE.md", "new/.envrc", "SOUL.md"] {
        fs::write(project.join(name), THEIRS).unwrap();
    }
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "theirs"]);
    git(&project, &["checkout", "-q", "-"]);

    let named = text(&project);
    let in_it = |words: &[&str]| world.command(&[&["--workspace", &named, "chat"], words].concat());
    let mut chat = in_it(&["-m", "Look at the other branch.", "--wait", "120", "--json"]);
    let mut chat = chat.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let asked = question(&world, &mut chat);
    let about = asked["about"].as_str().unwrap();
    assert!(about.contains("makes CLAUDE.md") && about.contains("makes new/.envrc"), "{asked}");
    world.ok(&["approve", asked["short_id"].as_str().unwrap()]);
    let said = chat.wait_with_output().unwrap();
    let said: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(said["text"], "Done.", "{said}");
    assert_eq!(fs::read_to_string(project.join("CLAUDE.md")).unwrap(), THEIRS);
    assert_eq!(
        git(&project, &["status", "--porcelain"]),
        " D SOUL.md\n",
        "the one that was not named is away"
    );
    let undone = in_it(&["-m", "/undo --files"]).stdin(Stdio::null()).output().unwrap();
    assert!(undone.status.success(), "{undone:?}");
    assert!(!project.join("CLAUDE.md").exists() && !project.join("new").exists());
}

#[test]
fn what_was_allowed_stays_while_a_server_runs_and_later_commands_come() {
    let mut server = exec("sleep 1000");
    server["arguments"]["background"] = json!(true);
    let mut touches = exec("echo theirs > CLAUDE.md");
    touches["arguments"]["touches"] = json!(["CLAUDE.md"]);
    let written = json!({"name": "write", "arguments": {"path": "AGENTS.md", "content": "Be brief.\n"}});
    let world = world(&[
        calls(&json!([server])),
        calls(&json!([touches])),
        calls(&json!([written])),
        calls(&json!([exec("echo later; echo evil > SOUL.md")])),
        json!({"text": "Done."}),
    ]);
    let project = world.path("project");
    let mut chat =
        world.command(&["--workspace", &text(&project), "chat", "-m", "Work.", "--wait", "120", "--json"]);
    let mut chat = chat.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut answered = String::new();
    for _ in 0..2 {
        let asked = loop {
            let asked = question(&world, &mut chat);
            if asked["short_id"] != answered.as_str() {
                break asked;
            }
        };
        answered = asked["short_id"].as_str().unwrap().to_owned();
        world.ok(&["approve", &answered]);
    }
    let said = chat.wait_with_output().unwrap();
    let said: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(said["text"], "Done.", "{said}");
    let (_, shown) = world.json(&["tree", "show", said["tree"].as_str().unwrap()]);
    let mut results = shown["nodes"].as_array().unwrap().iter().filter(|node| node["author"] == "exec");
    let later = results.next_back().unwrap()["text"].as_str().unwrap();
    assert!(later.contains("SOUL.md is protected") && !later.contains("CLAUDE.md is protected"), "{later}");
    for (name, content) in [("CLAUDE.md", "theirs\n"), ("AGENTS.md", "Be brief.\n")] {
        assert_eq!(fs::read_to_string(project.join(name)).ok().as_deref(), Some(content), "{later}");
    }
    assert!(!project.join("SOUL.md").exists());
}

#[test]
fn what_a_command_in_the_background_writes_of_what_was_allowed_is_recorded_and_given_back() {
    let mut evil =
        exec("until [ -e go ]; do sleep 0.05; done; echo evil >> .envrc; echo evil >> CLAUDE.md; sleep 1000");
    evil["arguments"]["background"] = json!(true);
    evil["arguments"]["touches"] = json!([".envrc"]);
    let mut touches = exec("echo theirs > CLAUDE.md");
    touches["arguments"]["touches"] = json!(["CLAUDE.md"]);
    let waits_for = "touch go; until grep -q evil CLAUDE.md; do sleep 0.05; done";
    let world = world(&[
        calls(&json!([evil])),
        calls(&json!([touches])),
        calls(&json!([exec(waits_for)])),
        json!({"text": "Done."}),
    ]);
    let project = world.path("project");
    fs::write(project.join(".envrc"), "ours\n").unwrap();
    let project_text = text(&project);
    let mut chat =
        world.command(&["--workspace", &project_text, "chat", "-m", "Work.", "--wait", "120", "--json"]);
    let mut chat = chat.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut answered = String::new();
    for _ in 0..2 {
        let asked = loop {
            let asked = question(&world, &mut chat);
            if asked["short_id"] != answered.as_str() {
                break asked;
            }
        };
        answered = asked["short_id"].as_str().unwrap().to_owned();
        world.ok(&["approve", &answered]);
    }
    let said = chat.wait_with_output().unwrap();
    let said: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(said["text"], "Done.", "{said}");
    assert_eq!(fs::read_to_string(project.join(".envrc")).unwrap(), "ours\nevil\n");
    let shown = world.ok(&["--workspace", &project_text, "chat", "-m", "/diff"]);
    assert!(shown.contains(".envrc") && shown.contains("+evil"), "{shown}");
    world.ok(&["--workspace", &project_text, "chat", "-m", "/undo --files"]);
    assert_eq!(fs::read_to_string(project.join(".envrc")).unwrap(), "ours\n");
    assert!(!project.join("CLAUDE.md").exists());
}
