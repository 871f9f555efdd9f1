//! A turn that a program follows: its events, its questions answered by another process, and what was refused in it
//! (spec: agent §1, §4; cli §1).

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::world::{World, text};

/// A world whose model writes AGENTS.md, which is asked about.
fn world() -> World {
    let world = World::new();
    let call = json!({"tool_calls": [
        {"name": "write", "arguments": {"path": "AGENTS.md", "content": "Be brief.\nBe kind.\n"}}
    ]});
    world.write("lines.jsonl", &format!("{call}\n{}\n", json!({"text": "Done."})));
    let file = text(&world.home().join("lines.jsonl"));
    world.write(
        "config.toml",
        &format!("[model]\ndefault = \"script:{file}\"\n[agents.assistant]\ntools = [\"write\"]\n"),
    );
    fs::create_dir_all(world.path("project")).unwrap();
    world
}

fn chat(world: &World, more: &[&str]) -> Command {
    let project = text(&world.path("project"));
    let words = [&["--workspace", &project, "chat", "-m", "Write it."], more].concat();
    let mut command = where_nobody_is(&world.command(&words));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The same command without a terminal, and with a standard input that stays open and on which nothing comes: whoever reads
/// from either waits for ever. A pipe would be read by right, as its text goes along.
pub(crate) fn where_nobody_is(program: &Command) -> Command {
    let (ours, theirs) = UnixStream::pair().unwrap();
    // It stays open until the test's process ends.
    let _ = ours.into_raw_fd();
    let mut command = Command::new("setsid");
    command.arg(program.get_program()).args(program.get_args());
    command.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("PATH", "/usr/bin:/bin").stdin(OwnedFd::from(theirs));
    command.current_dir(program.get_current_dir().unwrap());
    command
}

/// The one question that waits, once it does.
pub(crate) fn question(world: &World, child: &mut Child) -> Value {
    loop {
        let (_, found) = world.json(&["approvals", "list"]);
        if let Some(question) = found["approvals"].as_array().and_then(|all| all.first()) {
            return question.clone();
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended without a question");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn written(world: &World) -> Option<String> {
    fs::read_to_string(world.path("project/AGENTS.md")).ok()
}

#[test]
fn a_question_that_waits_is_answered_by_another_process_which_sees_the_difference() {
    let world = world();
    let mut child = chat(&world, &["--wait", "60", "--json"]).spawn().unwrap();
    let asked = question(&world, &mut child);
    let about = asked["about"].as_str().unwrap();
    assert!(about.contains("+Be brief.") && about.contains("+Be kind."), "{asked}");
    assert!(asked["text"].as_str().unwrap().starts_with("write asks to run"), "{asked}");
    let shown = world.ok(&["approvals", "list"]);
    assert!(shown.contains("+Be kind."), "{shown}");
    assert_eq!(written(&world), None, "nothing before the answer");
    world.ok(&["approve", asked["short_id"].as_str().unwrap()]);
    let done = child.wait_with_output().unwrap();
    let said: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((done.status.code(), &said["text"], &said["denied"]), (Some(0), &json!("Done."), &json!([])));
    assert_eq!(written(&world).as_deref(), Some("Be brief.\nBe kind.\n"));
}

#[test]
fn what_is_refused_stands_in_the_result_with_its_reason() {
    // By a person in another process, by nobody in time, and at once where nobody is waited for.
    for (more, why) in [
        (&["--wait", "60"][..], "too loud"),
        (&["--wait", "1"], "it was denied"),
        (&[], "so a person sees its difference first"),
    ] {
        let world = world();
        let mut child = chat(&world, &[more, &["--json"]].concat()).spawn().unwrap();
        if why == "too loud" {
            let asked = question(&world, &mut child);
            world.ok(&["deny", asked["short_id"].as_str().unwrap(), "--reason", why]);
        }
        let done = child.wait_with_output().unwrap();
        let said: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!((done.status.code(), &said["text"]), (Some(0), &json!("Done.")), "{said}");
        let [denied] = &said["denied"].as_array().unwrap()[..] else { panic!("{said}") };
        assert_eq!(denied["tool"], "write");
        assert!(denied["why"].as_str().unwrap().contains(why), "{denied}");
        assert_eq!(written(&world), None);
        assert_eq!(world.json(&["approvals", "list"]).1["approvals"], json!([]));
    }
}

#[test]
fn a_call_that_is_denied_is_told_at_a_terminal_too() {
    let world = world();
    let project = text(&world.path("project"));
    let words = ["--workspace", &project, "chat", "-m", "Write it."];
    let mut terminal = Terminal::start(with_terminal(&world.command(&words)));
    terminal.shows("Done.");
    terminal.shows("so a person sees its difference first");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn whoever_said_yes_hears_that_a_call_which_became_another_was_not_run() {
    let world = world();
    let mut child = chat(&world, &["--wait", "60", "--json"]).spawn().unwrap();
    let asked = question(&world, &mut child);
    fs::write(world.path("project/AGENTS.md"), "of somebody else\n").unwrap();
    world.ok(&["approve", asked["short_id"].as_str().unwrap()]);
    let done = child.wait_with_output().unwrap();
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(told.contains("write was not run: "), "{told}");
    let said: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(said["denied"][0]["why"].as_str().unwrap().contains("call it again"), "{said}");
    assert_eq!(written(&world).as_deref(), Some("of somebody else\n"));
}

#[test]
fn events_are_a_line_each_and_the_last_one_is_the_result() {
    let world = world();
    let done = chat(&world, &["--events"]).output().unwrap();
    let lines: Vec<Value> = String::from_utf8(done.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let last = lines.last().unwrap();
    assert_eq!((&last["event"], last["denied"][0]["tool"].as_str()), (&json!("finished"), Some("write")));
    let numbers: Vec<u64> = lines.iter().map(|event| event["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    // It has every field of `--json`.
    let (_, whole) = world.json(&["--workspace", &text(&world.path("project")), "chat", "-m", "Write it."]);
    let fields = |said: &Value| said.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let events: BTreeSet<String> = ["event", "n"].map(str::to_owned).into();
    assert_eq!(fields(last), &fields(&whole) | &events);
    let names: Vec<&str> = lines.iter().map(|event| event["event"].as_str().unwrap()).collect();
    for (name, times) in [("accepted", 1), ("started", 2), ("call", 1), ("result", 1), ("finished", 1)] {
        assert_eq!(names.iter().filter(|found| **found == name).count(), times, "{name}: {names:?}");
    }
    let refused = world.run(&["chat", "--events"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[test]
fn the_result_names_the_calls_of_the_turn_and_what_they_changed() {
    let world = world();
    let write =
        |path: &str, content: &str| json!({"name": "write", "arguments": {"path": path, "content": content}});
    let lines = [
        json!({"tool_calls": [write("said.txt", "a\nb\n"), write("AGENTS.md", "Be brief.\n")]}),
        json!({"tool_calls": [write("said.txt", "a\nc\nd\n"), json!({"name": "write", "arguments": {}})]}),
        json!({"text": "Done."}),
    ];
    world.write("lines.jsonl", &lines.map(|line| format!("{line}\n")).concat());
    let done = chat(&world, &["--events"]).output().unwrap();
    let out = String::from_utf8(done.stdout).unwrap();
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = lines.last().unwrap();
    let named = |name: &str| lines.iter().filter(move |event| event["event"] == name).collect::<Vec<_>>();
    let of_call = |event: &Value| {
        let call = event["call"].as_str().unwrap().to_owned();
        assert_eq!(call, format!("{}-{}", event["answer"].as_str().unwrap(), event["number"]), "{event}");
        call
    };
    let events: Vec<(String, &Value)> =
        named("call").into_iter().map(|event| (of_call(event), &event["effects"])).collect();
    let results: Vec<String> = named("result").into_iter().map(of_call).collect();
    let calls = said["calls"].as_array().unwrap();
    let listed: Vec<(String, &Value)> =
        calls.iter().map(|call| (call["call"].as_str().unwrap().to_owned(), &call["effects"])).collect();
    assert_eq!(listed, events, "{said}");
    assert_eq!(results, listed.iter().map(|(call, _)| call.clone()).collect::<Vec<_>>());
    assert_eq!(calls[0]["effects"], json!(["read", "write"]));
    let ends: Vec<&Value> = calls.iter().map(|call| &call["status"]).collect();
    assert_eq!(ends, ["ok", "denied", "ok", "error"]);
    assert!(calls.iter().all(|call| call["tool"] == "write" && call["node"].is_string()), "{said}");
    assert_eq!(said["denied"][0]["call"], calls[1]["call"]);
    assert_eq!(said["changed"], json!([{"path": "said.txt", "added": 3, "removed": 0}]));
    // Those of another turn are not among them.
    world.write("lines.jsonl", &format!("{}\n", json!({"text": "Nothing."})));
    let done = chat(&world, &["--json"]).output().unwrap();
    let said: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!([&said["calls"], &said["changed"], &said["denied"]], [&json!([]), &json!([]), &json!([])]);
}

#[test]
fn an_error_is_a_line_of_its_own_too() {
    let world = world();
    world.write("lines.jsonl", &format!("{}\n", json!({"fault": "500"})));
    let done = chat(&world, &["--events"]).output().unwrap();
    let out = String::from_utf8(done.stdout).unwrap();
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert!(done.status.code() != Some(0) && last["error"].is_object(), "{out}");
    assert_eq!((&last["event"], &last["calls"]), (&json!("finished"), &json!([])), "{out}");
    assert_eq!(last["n"].as_u64(), Some(out.lines().count() as u64), "{out}");
}

#[test]
fn several_turns_of_one_call_end_with_one_finished_line() {
    let world = world();
    world.write("lines.jsonl", &format!("{}\n", json!({"text": "Done.", "loop": true})));
    world.ok(&["chat", "-m", "Write it."]);
    let out = world.ok(&["chat", "-m", "/regenerate -n 2", "--events"]);
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = lines.iter().map(|event| event["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let (last, before) = lines.split_last().unwrap();
    assert_eq!((&last["event"], last["answers"].as_array().unwrap().len()), (&json!("finished"), 2), "{out}");
    assert_eq!(before.iter().filter(|event| event["event"] == "committed").count(), 2, "{out}");
    assert!(before.iter().all(|event| event["event"] != "finished"), "{out}");
}

#[test]
fn a_question_says_who_asks() {
    let world = world();
    let mut child = chat(&world, &["--wait", "60", "--events"]).spawn().unwrap();
    let asked = question(&world, &mut child);
    world.ok(&["deny", asked["short_id"].as_str().unwrap()]);
    let pid = child.id();
    let out = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let event: Value =
        serde_json::from_str(out.lines().find(|line| line.contains(r#""event":"question""#)).unwrap())
            .unwrap();
    assert_eq!(event["question"]["asker"], asked["asker"], "{event}");
    assert!(event["question"]["asker"].as_str().unwrap().contains(&pid.to_string()), "{event}");
}

#[test]
fn a_difference_that_cannot_be_shown_whole_is_not_asked_about() {
    let world = world();
    let call = json!({"tool_calls": [
        {"name": "write", "arguments": {"path": "AGENTS.md", "content": "x".repeat(80 << 10)}}
    ]});
    world.write("lines.jsonl", &format!("{call}\n{}\n", json!({"text": "Done."})));
    let done = chat(&world, &["--wait", "60", "--json"]).output().unwrap();
    let said: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(said["denied"][0]["why"].as_str().unwrap().contains("more than a question shows"), "{said}");
    assert_eq!(written(&world), None);
}

#[test]
fn wrong_arguments_are_a_line_of_json_too() {
    let world = world();
    let done = chat(&world, &["--events", "--wait", "0"]).output().unwrap();
    let said: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(done.status.code() == Some(2) && said["error"].is_object(), "{said}");
    assert_eq!((&said["event"], &said["n"]), (&json!("finished"), &json!(1)), "{said}");
}
