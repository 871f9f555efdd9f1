//! Workspaces that were never trusted, entered by `cd` (spec: security §4, cli *Workspace trust*).

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde_json::{Value, json};

use crate::headless::question;
use crate::world::{Run, World, text};

/// Stands in every file a stranger's repository would have loaded.
pub(crate) const CANARY: &str = "OBEY-7f3a";

/// A stranger's repository that brings everything a workspace can bring.
pub(crate) fn clone(world: &World) -> PathBuf {
    let clone = world.path("here/clone");
    for name in [
        "AGENTS.md",
        "SOUL.md",
        "IDENTITY.md",
        "USER.md",
        "TOOLS.md",
        "HEARTBEAT.md",
        "HANDOFF.md",
        "MEMORY.md",
        "skills/run/SKILL.md",
        "commands/morning.md",
        "docs/capabilities/deploy.md",
        "memory/2031-01-01.md",
        "reminders.json",
        ".mcp.json",
        ".drawloom/workspace.toml",
    ] {
        let file = clone.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, format!("{CANARY} in {name}")).unwrap();
    }
    std::fs::create_dir_all(clone.join(".git")).unwrap();
    clone
}

/// Says something in a folder, and gives what was sent with how the run went.
pub(crate) fn said_in(world: &World, folder: &Path, more: &[&str]) -> (String, Run) {
    let arguments = [&["chat", "-m", "hi", "--new", "--model", "script:echo", "--json"], more].concat();
    let run: Run = world.command(&arguments).current_dir(folder).output().unwrap().into();
    assert_eq!(run.code, Some(0), "{run:?}");
    let answer: Value = serde_json::from_str(&run.out).unwrap();
    (world.ok(&["context", "show", answer["node"].as_str().unwrap(), "--text", "--json"]), run)
}

/// The workspaces that are listed in a folder: path, state, and whether it is the current one.
pub(crate) fn states(world: &World, folder: &Path) -> Vec<(String, String, bool)> {
    let output = world.command(&["workspace", "list", "--json"]).current_dir(folder).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = found["workspaces"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    all.iter().map(|one| (text(&one["path"]), text(&one["state"]), one["current"] == true)).collect()
}

#[test]
fn s4_no_byte_of_a_clone_is_sent_before_it_is_trusted() {
    let world = World::new();
    let clone = clone(&world);
    let (sent, run) = said_in(&world, &clone, &[]);
    assert!(!sent.contains("OBEY"), "{sent}");
    assert!(run.err.contains("is not loaded: it was never trusted"), "{}", run.err);
    let below = clone.join("docs");
    assert!(!said_in(&world, &below, &[]).0.contains("OBEY"), "nor from a folder in it");
    let (named, run) = said_in(&world, &clone, &["--workspace", &text(&clone)]);
    assert!(named.contains("OBEY-7f3a in AGENTS.md"), "control: written out, it is loaded: {named}");
    assert!(!run.err.contains("not loaded"), "{}", run.err);
    assert!(!said_in(&world, &clone, &[]).0.contains("OBEY"), "that was the decision for one call");
}

#[test]
fn s4_a_trusted_workspace_is_loaded_as_it_was_and_an_untrusted_one_is_not() {
    let world = World::new();
    let clone = clone(&world);
    let path = text(&clone);
    assert_eq!(states(&world, &clone), [(path.clone(), "untrusted".to_owned(), true)]);
    let (_, done) = world.json(&["workspace", "trust", &path]);
    assert_eq!(done["workspaces"][0]["state"], "trusted");
    let kinds: Vec<_> = done["workspaces"][0]["items"].as_array().unwrap().iter().collect();
    assert!(kinds.iter().any(|item| item["path"] == "skills/run/SKILL.md" && item["kind"] == "skill"));
    assert!(said_in(&world, &clone, &[]).0.contains("OBEY-7f3a in AGENTS.md"));

    std::fs::write(clone.join("SOUL.md"), "PULLED-9c1e").unwrap();
    let (sent, run) = said_in(&world, &clone, &[]);
    assert!(sent.contains("OBEY-7f3a in AGENTS.md") && !sent.contains("PULLED"), "{sent}");
    assert!(run.err.contains("SOUL.md is left out"), "{}", run.err);
    let list = world.ok(&["workspace", "list"]);
    assert!(list.contains("came or changed since") && list.contains("changed"), "{list}");
    world.ok(&["workspace", "trust", &path]);
    assert!(said_in(&world, &clone, &[]).0.contains("PULLED"), "control: accepted as it is now");

    let run: Run = world.command(&["workspace", "untrust"]).current_dir(&clone).output().unwrap().into();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!said_in(&world, &clone, &[]).0.contains("OBEY"));
    assert_eq!(states(&world, &world.path("here"))[0], (path.clone(), "untrusted".to_owned(), false));
    std::fs::remove_dir_all(&clone).unwrap();
    assert_eq!(states(&world, &world.path("here"))[0].1, "missing");
}

/// A turn in a folder whose one question the owner answers with yes; nobody names the workspace.
pub(crate) fn approved_in(world: &World, folder: &Path) {
    let mut chat = world.command(&["chat", "-m", "Write it.", "--wait", "60"]);
    let mut chat = chat.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let asked = question(world, &mut chat);
    world.ok(&["approve", asked["short_id"].as_str().unwrap()]);
    assert_eq!(chat.wait().unwrap().code(), Some(0));
}

/// The model of the world calls these in its next turn.
fn calls_in_a_turn(world: &World, calls: &Value) {
    let call = json!({"tool_calls": calls});
    world.write("lines.jsonl", &format!("{call}\n{}\n", json!({"text": "Done."})));
    world.write(
        "config.toml",
        &format!(
            "[model]\ndefault = \"script:{}\"\n[agents.assistant]\ntools = [\"edit\", \"read\", \"write\"]\n",
            text(&world.home().join("lines.jsonl"))
        ),
    );
}

#[test]
fn s4_what_no_difference_showed_is_not_accepted_by_it() {
    let rules = |third: &str| {
        let rule = |n| if n == 3 { format!("{third}\n") } else { format!("rule {n}\n") };
        (1..=30).map(rule).collect::<String>()
    };
    for (pulled, is_loaded) in [("rule 3", true), ("PULLED-9c1e", false)] {
        let world = World::new();
        let clone = clone(&world);
        std::fs::write(clone.join("AGENTS.md"), rules("rule 3")).unwrap();
        world.ok(&["workspace", "trust", &text(&clone)]);
        std::fs::write(clone.join("AGENTS.md"), rules(pulled)).unwrap();
        let edit = json!({"path": "AGENTS.md", "old": "rule 28\n", "new": "rule 28, EDITED-77ab\n"});
        let read = json!({"name": "read", "arguments": {"path": "AGENTS.md"}});
        calls_in_a_turn(&world, &json!([read, {"name": "edit", "arguments": edit}]));
        approved_in(&world, &clone);
        let (sent, run) = said_in(&world, &clone, &[]);
        assert!(!sent.contains("PULLED"), "{sent}");
        assert_eq!(sent.contains("EDITED-77ab"), is_loaded, "{pulled}: {sent}");
        assert_eq!(run.err.contains("AGENTS.md is left out"), !is_loaded, "{}", run.err);
    }
    let world = World::new();
    let clone = clone(&world);
    std::fs::remove_file(clone.join("SOUL.md")).unwrap();
    world.ok(&["workspace", "trust", &text(&clone)]);
    let hidden = json!({"path": "SOUL.md", "content": "\u{0}\nHIDDEN-5d2c in what is shown by its digest\n"});
    calls_in_a_turn(&world, &json!([{"name": "write", "arguments": hidden}]));
    approved_in(&world, &clone);
    let (sent, _) = said_in(&world, &clone, &[]);
    assert!(!sent.contains("HIDDEN"), "{sent}");
}

#[test]
fn s4_what_the_owner_approved_with_its_difference_counts() {
    let world = World::new();
    let clone = clone(&world);
    world.ok(&["workspace", "trust", &text(&clone)]);
    calls_in_a_turn(
        &world,
        &json!([
            {"name": "read", "arguments": {"path": "AGENTS.md"}},
            {"name": "write", "arguments": {"path": "AGENTS.md", "content": "APPROVED-41bd\n"}},
            {"name": "write", "arguments": {"path": "notes.md", "content": "nobody is asked\n"}},
        ]),
    );
    approved_in(&world, &clone);
    let (sent, run) = said_in(&world, &clone, &["--session", "other"]);
    assert!(sent.contains("APPROVED-41bd") && !run.err.contains("AGENTS.md"), "{sent} {}", run.err);
    let (_, list) = world.json(&["workspace", "list"]);
    assert_eq!(list["workspaces"][0]["changes"], json!([]), "{list}");

    let undo = world
        .command(&["chat", "--session", "main", "-m", "/undo --files"])
        .current_dir(&clone)
        .output()
        .unwrap();
    let undo = Run::from(undo);
    assert!(undo.out.contains("given back: AGENTS.md"), "{undo:?}");
    let (sent, _) = said_in(&world, &clone, &[]);
    assert!(sent.contains("OBEY-7f3a in AGENTS.md"), "what was accepted before still is: {sent}");

    std::fs::write(clone.join("AGENTS.md"), "PULLED-9c1e").unwrap();
    let (sent, run) = said_in(&world, &clone, &[]);
    assert!(!sent.contains("PULLED") && run.err.contains("AGENTS.md is left out"), "control: {sent}");
}

#[test]
fn s4_another_folder_at_a_trusted_path_is_not_trusted() {
    let world = World::new();
    let trusted = clone(&world);
    world.ok(&["workspace", "trust", &text(&trusted)]);
    std::fs::rename(&trusted, world.path("here/moved")).unwrap();
    let replaced = clone(&world);
    let (sent, run) = said_in(&world, &replaced, &[]);
    assert!(!sent.contains("OBEY") && run.err.contains("another folder is where"), "{}", run.err);
    let (sent, run) = said_in(&world, &world.path("here/moved"), &[]);
    assert!(!sent.contains("OBEY") && run.err.contains("was moved here"), "{}", run.err);
}

#[test]
fn s4_instructions_in_a_folder_anybody_may_write_to_are_ignored_with_the_reason() {
    let world = World::new();
    let (shared, below) = (world.path("shared"), world.path("shared/mine"));
    std::fs::create_dir_all(&below).unwrap();
    std::fs::write(shared.join("AGENTS.md"), CANARY).unwrap();
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o1777)).unwrap();
    let (sent, run) = said_in(&world, &below, &[]);
    assert!(!sent.contains("OBEY"), "{sent}");
    assert!(run.err.contains("anybody may write to it"), "{}", run.err);
}

#[test]
fn s4_the_users_own_folder_is_refused_for_chat() {
    let world = World::new();
    let user = text(&world.path("user"));
    std::fs::write(world.path("user/AGENTS.md"), CANARY).unwrap();
    let chat = ["chat", "-m", "hi", "--model", "script:echo", "--workspace", &user];
    let run = world.run(&chat);
    assert_eq!(run.code, Some(4), "{run:?}");
    assert_eq!(world.run(&["workspace", "trust", &user]).code, Some(4));
    let around = text(&world.path("."));
    assert_eq!(world.run(&["workspace", "trust", &around]).code, Some(4), "it contains the home");
    assert_eq!(world.run(&["sessions", "list", "--workspace", &user]).code, Some(0), "reading works");
}

#[test]
fn doctor_names_the_state_and_changes_nothing() {
    let world = World::new();
    let clone = clone(&world);
    let why = |world: &World| {
        let output = world.command(&["doctor", "--quick", "--json"]).current_dir(&clone).output().unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let checks = found["checks"].as_array().unwrap();
        let one = checks.iter().find(|check| check["name"] == "workspace").unwrap();
        one["why"].as_str().unwrap().to_owned()
    };
    assert!(why(&world).contains("it was never trusted"), "{}", why(&world));
    assert!(!world.home().exists());
    world.ok(&["workspace", "trust", &text(&clone)]);
    assert!(why(&world).contains("trusted") && !why(&world).contains("never"), "{}", why(&world));
}

/// The same command, of whose terminal questions can be asked: its standard input becomes its terminal.
pub(crate) fn with_terminal(program: &Command) -> Command {
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait"]).arg(program.get_program()).args(program.get_args());
    command.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("PATH", "/usr/bin:/bin");
    program.get_current_dir().into_iter().for_each(|folder| {
        command.current_dir(folder);
    });
    command
}

/// Runs the program at a terminal of its own, where a person answers what is asked.
pub(crate) fn at_terminal(
    world: &World,
    folder: &Path,
    arguments: &[&str],
    answer: &str,
) -> (Option<i32>, String) {
    PersonAtTerminal { echo: false, stdout: false, question: "[y/N] ", answer }.run(world, folder, arguments)
}

/// A person who answers one question.
pub(crate) struct PersonAtTerminal<'a> {
    /// Whether the terminal shows what is typed.
    pub(crate) echo: bool,
    /// Whether standard output goes there, too.
    pub(crate) stdout: bool,
    /// How the question ends.
    pub(crate) question: &'a str,
    pub(crate) answer: &'a str,
}

impl PersonAtTerminal<'_> {
    /// Runs the program; its exit code and what the terminal showed.
    pub(crate) fn run(&self, world: &World, folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = world.command(arguments);
        command.current_dir(folder);
        self.answers(&command)
    }

    /// The same of a command.
    pub(crate) fn answers(&self, program: &Command) -> (Option<i32>, String) {
        let person: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap();
        let stream = || {
            let opened = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
            Stdio::from(opened)
        };
        // Without echo, so that what comes back is the program's.
        let settings = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let mut modes = tcgetattr(&settings).unwrap();
        modes.local_modes.set(LocalModes::ECHO, self.echo);
        tcsetattr(&settings, OptionalActions::Now, &modes).unwrap();
        drop(settings);
        let mut command = with_terminal(program);
        let stdout = if self.stdout { stream() } else { Stdio::null() };
        let mut child = command.stdin(stream()).stdout(stdout).stderr(stream()).spawn().unwrap();
        drop(command);
        let mut person = std::fs::File::from(person);
        let mut shown = Vec::new();
        let mut buffer = [0; 1024];
        // The terminal ends with an error once nobody has it open.
        while let Ok(read @ 1..) = person.read(&mut buffer) {
            shown.extend_from_slice(&buffer[..read]);
            let question = self.question.as_bytes();
            if shown.ends_with(question) {
                // What is typed before the program threw away what lay there is thrown away, too: type until it is taken.
                while shown.ends_with(question) {
                    person.write_all(self.answer.as_bytes()).unwrap();
                    let mut ready = [rustix::event::PollFd::new(&person, rustix::event::PollFlags::IN)];
                    let wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
                    if rustix::event::poll(&mut ready, Some(&wait)).unwrap() > 0 {
                        break;
                    }
                }
            }
        }
        (child.wait().unwrap().code(), String::from_utf8_lossy(&shown).into_owned())
    }
}

#[test]
fn s4_at_a_terminal_it_is_asked_once_and_the_answer_is_kept_both_ways() {
    for (answer, loaded) in [("y\n", true), ("n\n", false), ("go on\nyess\ny\n", true)] {
        let world = World::new();
        let clone = clone(&world);
        let chat = ["chat", "-m", "hi", "--model", "script:echo"];
        let (code, shown) = at_terminal(&world, &clone, &chat, answer);
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.contains("Load it?") && shown.contains("skills/run/SKILL.md"), "{shown}");
        let (code, again) = at_terminal(&world, &clone, &chat, answer);
        assert_eq!(code, Some(0), "{again}");
        assert!(!again.contains("Load it?"), "{again}");
        assert_eq!(said_in(&world, &clone, &[]).0.contains("OBEY"), loaded);
    }
}

#[test]
fn s4_at_a_terminal_instructions_that_changed_are_asked_about_again() {
    let world = World::new();
    let clone = clone(&world);
    world.ok(&["workspace", "trust", &text(&clone)]);
    std::fs::write(clone.join("SOUL.md"), "PULLED-9c1e").unwrap();
    let chat = ["chat", "-m", "hi", "--model", "script:echo"];
    let (_, shown) = at_terminal(&world, &clone, &chat, "n\n");
    assert!(shown.contains("SOUL.md  changed, 20 B before, 11 B now"), "{shown}");
    assert!(shown.contains("-OBEY-7f3a in SOUL.md") && shown.contains("+PULLED-9c1e"), "{shown}");
    assert!(!shown.contains("OBEY-7f3a in AGENTS.md"), "only what changed: {shown}");
    assert!(!said_in(&world, &clone, &[]).0.contains("PULLED"));
    at_terminal(&world, &clone, &chat, "y\n");
    assert!(said_in(&world, &clone, &[]).0.contains("PULLED"));
    // A text too long to be kept is shown by its sizes, and that is said.
    std::fs::write(clone.join("SOUL.md"), "long\n".repeat(20_000)).unwrap();
    let (_, shown) = at_terminal(&world, &clone, &chat, "y\n");
    assert!(shown.contains("The difference of SOUL.md cannot be shown"), "{shown}");
    assert!(
        shown.contains("SOUL.md  changed, 11 B before, 97.7 KiB now") && !shown.contains("+long"),
        "{shown}"
    );
}
