//! What commands did that run, or were killed: what file tools and instructions are beside them (spec: security §1).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::exec::{exec, world_with};
use crate::tools::{calls, chat, nodes};
use crate::trust::said_in;
use crate::world::{Run, World, piped, text};

/// A command of the owner's in the project, which makes instructions and waits; once it did.
fn making_instructions(world: &World) -> Child {
    running(world, "echo EVIL > AGENTS.md; touch made; until test -e over; do sleep 0.01; done")
}

/// A command of the owner's in the project; once it made a file `made`.
fn running(world: &World, line: &str) -> Child {
    let project = text(&world.path("project"));
    let mut command = world.command(&["--workspace", &project, "sandbox", "--", "sh", "-c", line]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the command does not run", || world.path("project/made").exists());
    child
}

pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

/// Stops a program, and waits until something else marks the time of these files, which is long ago by then.
pub(crate) fn stop_until_marked(child: &Child, files: &[PathBuf]) {
    kill_process(Pid::from_child(child), Signal::STOP).unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    for file in files {
        File::options().write(true).open(file).unwrap().set_modified(long_ago).unwrap();
    }
    let is_marked = |file: &PathBuf| fs::metadata(file).unwrap().modified().unwrap() > long_ago;
    wait_until("nobody gives a sign of life", || files.iter().all(is_marked));
}

/// Files of a folder whose names have this end.
pub(crate) fn with_end(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|found| found == end)).collect()
}

/// A request of a conversation in the project, and what was told beside its answer.
fn sent(world: &World) -> (String, Run) {
    let project = world.path("project");
    let named = text(&project);
    said_in(world, &project, &["--workspace", &named])
}

#[test]
fn where_the_record_of_a_killed_command_cannot_be_read_no_other_one_begins() {
    let world = world_with(&[], "");
    let mut killed = running(&world, "echo EVIL > AGENTS.md; touch made; sleep 1000");
    killed.kill().unwrap();
    killed.wait().unwrap();
    let records = world.path("home/sandbox/tracked/running");
    let [lock] = &with_end(&records, "lock")
        .into_iter()
        .filter(|lock| lock.with_extension("").is_file())
        .collect::<Vec<_>>()[..]
    else {
        panic!("{:?}", with_end(&records, "lock"))
    };
    let record = lock.with_extension("");
    let kept = fs::read(&record).unwrap();
    fs::write(&record, "").unwrap();
    let project = text(&world.path("project"));
    let line = ["--workspace", &project, "sandbox", "--", "true"];
    let refused = world.run(&line);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.err.contains(&text(&record)), "{refused:?}");
    assert!(world.path("project/AGENTS.md").exists());
    fs::write(&record, kept).unwrap();
    world.ok(&line);
    assert!(!world.path("project/AGENTS.md").exists());
}

#[test]
fn a_folder_that_a_tool_names_frees_nothing_in_it_for_a_running_command() {
    let line = "read line; echo evil > .envrc; echo made; read line";
    let input = |text: &str| json!({"name": "process", "arguments": {"process": 1, "input": text, "wait_for": "made"}});
    let world = world_with(
        &[
            calls(&json!([{"name": "exec", "arguments": {"command": line, "background": true}}])),
            calls(&json!([{"name": "mkdir", "arguments": {"path": "."}}])),
            calls(&json!([input("go\n")])),
            json!({"text": "Done.", "expect": [". is there already", "made"]}),
        ],
        "",
    );
    let config = world.read("config.toml");
    world.write("config.toml", &config.replace("tools = [\"exec\"", "tools = [\"mkdir\", \"exec\""));
    let (code, said) = chat(&world, "Do it.");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    assert!(!world.path("project/.envrc").exists());
}

#[test]
fn instructions_of_a_running_command_are_not_loaded_nor_where_nobody_knows_whose_they_are() {
    let world = world_with(&[], "");
    let mut command = making_instructions(&world);
    let (shown, run) = sent(&world);
    assert!(!shown.contains("EVIL"), "{shown}");
    assert!(
        run.err.contains("AGENTS.md is left out: a command that runs in the workspace changed it"),
        "{run:?}"
    );
    let records = fs::read_dir(world.home().join("sandbox/tracked/running")).unwrap();
    let records = records.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_none());
    for record in records {
        fs::write(record, "{").unwrap();
    }
    let (shown, run) = sent(&world);
    assert!(!shown.contains("EVIL"), "{shown}");
    assert!(run.err.contains("whether a running command changed it cannot be said"), "{run:?}");
    fs::write(world.path("project/over"), "").unwrap();
    command.wait().unwrap();
    assert!(!world.path("project/AGENTS.md").exists());
    fs::write(world.path("project/AGENTS.md"), "OURS\n").unwrap();
    assert!(sent(&world).0.contains("OURS"), "the control");
}

#[test]
fn instructions_of_a_killed_command_are_not_loaded_and_moved_away_by_the_next_one() {
    let world = world_with(&[], "");
    let mut command = making_instructions(&world);
    command.kill().unwrap();
    command.wait().unwrap();
    let (shown, run) = sent(&world);
    assert!(!shown.contains("EVIL") && run.err.contains("AGENTS.md is left out"), "{shown} {run:?}");
    let project = text(&world.path("project"));
    let next = world.run(&["--workspace", &project, "sandbox", "--", "true"]);
    assert!(next.err.contains("AGENTS.md") && !world.path("project/AGENTS.md").exists(), "{next:?}");
}

#[test]
fn instructions_of_a_command_whose_program_was_stopped_and_killed_are_moved_away_by_the_next_one() {
    let world = world_with(&[], "");
    let line =
        "touch made; until test -e go; do sleep 0.01; done; echo EVIL > AGENTS.md; touch over; sleep 300";
    let mut command = running(&world, line);
    let mut locks = with_end(&world.home().join("sandbox/tracked/running"), "lock");
    locks.retain(|lock| !lock.ends_with("changing.lock"));
    assert!(!locks.is_empty());
    stop_until_marked(&command, &locks);
    fs::write(world.path("project/go"), "").unwrap();
    wait_until("the command ended with its program", || world.path("project/over").exists());
    command.kill().unwrap();
    command.wait().unwrap();
    let project = text(&world.path("project"));
    let next = world.run(&["--workspace", &project, "sandbox", "--", "true"]);
    assert!(next.err.contains("AGENTS.md") && !world.path("project/AGENTS.md").exists(), "{next:?}");
}

/// Session whose command runs, beside another one whose calls the owner approves.
struct TwoSessions {
    world: World,
    project: PathBuf,
    running: Child,
}

impl TwoSessions {
    /// The command makes a file `made`, waits for one `go`, and runs a line.
    fn with_line(line: &str) -> Self {
        let wait = format!("touch made; until test -e go; do sleep 0.01; done; {line}");
        let world = world_with(&[calls(&json!([exec(&wait)])), json!({"text": "Done."})], "");
        let config = fs::read_to_string(world.home().join("config.toml")).unwrap();
        world.write("config.toml", &config.replace("\"process\"", "\"move\""));
        let project = world.path("project");
        fs::write(project.join("draft.md"), "ours, too\n").unwrap();
        let words = ["--workspace", &text(&project), "chat", "-m", "Work."];
        let running = piped(&mut world.command(&words));
        wait_until("the command does not run", || world.path("project/made").exists());
        Self { world, project, running }
    }

    /// The other session makes calls, each of which the owner approves, until its path is there.
    fn approve(&self, asked: &Value, paths: &[&str]) {
        let Self { world, project, .. } = self;
        world.write("other.jsonl", &format!("{}\n{}\n", calls(asked), json!({"text": "Written."})));
        let model = format!("script:{}", text(&world.home().join("other.jsonl")));
        let project_name = text(project);
        let words = ["--workspace", &project_name, "--model", &model, "chat", "--session", "b"];
        let writing = piped(&mut world.command(&[&words[..], &["--wait", "60", "-m", "Write it."]].concat()));
        for path in paths {
            let open = || world.json(&["approvals", "list"]).1["approvals"].as_array().unwrap().clone();
            wait_until("nobody is asked", || !open().is_empty());
            world.ok(&["approve", open()[0]["short_id"].as_str().unwrap()]);
            wait_until("it is not written", || project.join(path).exists());
        }
        let written = writing.wait_with_output().unwrap();
        assert!(written.status.success(), "{written:?}");
    }

    fn make(&self, name: &str) {
        fs::write(self.project.join(name), "").unwrap();
    }

    /// Lets the command end.
    fn end(self) -> (World, PathBuf) {
        self.make("go");
        assert!(self.running.wait_with_output().unwrap().status.success());
        (self.world, self.project)
    }
}

fn write(path: &str, content: &str) -> Value {
    json!({"name": "write", "arguments": {"path": path, "content": content}})
}

/// A command of another session runs while the owner lets a file be written, which is new by then.
#[test]
fn what_a_person_lets_another_session_write_is_not_a_commands() {
    let paths = ["AGENTS.md", "skills/one/SKILL.md", "CLAUDE.md", ".envrc"];
    for (line, stays) in
        [("true", true), (&format!("for file in {}; do echo evil > $file; done", paths.join(" ")), false)]
    {
        let sessions = TwoSessions::with_line(line);
        let moved = json!({"name": "move", "arguments": {"from": "draft.md", "to": "CLAUDE.md"}});
        let touching =
            json!({"name": "exec", "arguments": {"command": "echo x > .envrc", "touches": [".envrc"]}});
        let skill = write("skills/one/SKILL.md", "ours too\n");
        sessions.approve(&json!([write("AGENTS.md", "ours\n"), skill, moved, touching]), &paths);
        let (_world, project) = sessions.end();
        for path in paths {
            assert_eq!(project.join(path).exists(), stays, "{line}: {path}");
        }
    }
}

#[test]
fn what_a_person_took_back_and_a_command_puts_there_again_is_moved_away() {
    for (line, taken_back, stays) in [
        (
            "cp -p AGENTS.md kept; touch copied; until test -e on; do sleep 0.01; done; mv kept AGENTS.md",
            true,
            false,
        ),
        ("touch copied; until test -e on; do sleep 0.01; done; touch AGENTS.md", true, false),
        ("touch copied", false, true),
    ] {
        let sessions = TwoSessions::with_line(line);
        sessions.approve(&json!([write("AGENTS.md", "ours\n")]), &["AGENTS.md"]);
        sessions.make("go");
        wait_until("the text is not copied", || sessions.project.join("copied").exists());
        if taken_back {
            let project = text(&sessions.project);
            let words = ["--workspace", &project, "chat", "--session", "b", "-m", "/undo --files"];
            assert_eq!(sessions.world.ok(&words), "given back: AGENTS.md\n");
            assert!(!sessions.project.join("AGENTS.md").exists());
        }
        sessions.make("on");
        let (_world, project) = sessions.end();
        assert_eq!(project.join("AGENTS.md").exists(), stays, "{line}");
    }
}

/// Packages put files of their own beside the hook that the owner approved.
#[test]
fn a_file_that_a_person_approved_stays_where_a_command_adds_to_its_new_folder() {
    let sessions = TwoSessions::with_line("mkdir .husky/_; echo x > .husky/_/h");
    sessions.approve(&json!([write(".husky/pre-commit", "make check\n")]), &[".husky/pre-commit"]);
    let (_world, project) = sessions.end();
    assert_eq!(fs::read_to_string(project.join(".husky/pre-commit")).unwrap(), "make check\n");
    assert!(!project.join(".husky/_").exists());
}

/// One that has another name, by which the command may write. The control is the save that nobody makes: what the command writes
/// by that name is taken back.
#[test]
fn what_its_owner_saves_while_a_command_runs_stays() {
    let line = "echo EVIL >> other; touch asked; until test -e saved; do sleep 0.01; done";
    for saves in [true, false] {
        let world = world_with(&[calls(&json!([exec(line)])), json!({"text": "Done."})], "");
        let at = |name: &str| world.path("project").join(name);
        fs::write(at("AGENTS.md"), "Be brief.\n").unwrap();
        fs::hard_link(at("AGENTS.md"), at("other")).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                wait_until("the command does not run", || at("asked").exists());
                if saves {
                    fs::write(at("new"), "Be kind.\n").unwrap();
                    fs::rename(at("new"), at("AGENTS.md")).unwrap();
                }
                fs::write(at("saved"), "").unwrap();
            });
            assert_eq!(chat(&world, "Do it.").0, Some(0));
        });
        let nodes = nodes(&world);
        let told = nodes.iter().find(|node| node["author"] == "exec").unwrap()["text"].as_str().unwrap();
        assert!(told.starts_with("exit 0 "), "{told}");
        let now = fs::read_to_string(at("AGENTS.md")).unwrap();
        assert_eq!(now, if saves { "Be kind.\n" } else { "Be brief.\n" }, "{told}");
        assert_eq!(told.contains("it is back as it was"), !saves, "{told}");
        let kept = format!(
            "{} was replaced by somebody else while the command ran, and stays so",
            at("AGENTS.md").display()
        );
        assert_eq!(told.matches(&kept).count(), usize::from(saves), "{told}");
        let mut quarantined = Vec::new();
        let mut rest = vec![world.path("home/quarantine")];
        while let Some(folder) = rest.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    rest.push(path);
                } else {
                    quarantined.push(fs::read_to_string(path).unwrap());
                }
            }
        }
        assert_eq!(quarantined, [if saves { "Be brief.\n" } else { "Be brief.\nEVIL\n" }], "{told}");
    }
}
