//! `/stop` while a tool runs: what runs ends with all that it started, and what did not begin never does (spec: agent §1).

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::exec::{exec, world, world_with};
use crate::files::ended;
use crate::tools::{calls, nodes};
use crate::world::text;

/// Processes of which the arguments hold a text.
fn processes(argument: &str) -> usize {
    let found = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|part| part == argument.as_bytes())
    });
    found.count()
}

#[test]
fn a_stop_while_a_command_runs_ends_its_processes_and_the_calls_behind_it_never_begin() {
    // Nobody else sleeps as long.
    let long = format!("{}.25", 100_000 + std::process::id());
    let line = format!("(setsid sleep {long} &); sleep {long} & touch begun; sleep {long}");
    let world = world(&[
        calls(&json!([exec(&line), exec("touch second"), exec("touch third")])),
        json!({"text": "Never said."}),
    ]);
    let project = world.path("project");
    let workspace = text(&project);
    let mut chat = world.command(&["--workspace", &workspace, "--json", "chat", "-m", "Do it."]);
    let mut chat = chat.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while !project.join("begun").exists() || processes(&long) < 3 {
        assert!(chat.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(60));
        std::thread::yield_now();
    }
    world.ok(&["--workspace", &workspace, "chat", "-m", "/stop"]);
    let run = ended(chat, "the chat that was stopped");
    assert_eq!((processes(&long), run.code), (0, Some(130)), "{run:?}");
    assert!(!project.join("second").exists() && !project.join("third").exists());

    world.write("lines.jsonl", &format!("{}\n", json!({"text": "On."})));
    let (code, said) = world.json(&["--workspace", &workspace, "chat", "-m", "And now?"]);
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("On.")), "{said}");
    let results: Vec<Value> = nodes(&world).into_iter().filter(|node| node["author"] == "exec").collect();
    let [stopped] = results.as_slice() else { panic!("{results:?}") };
    assert!(stopped["text"].as_str().unwrap().starts_with("stopped ("), "{stopped}");
    let sent = world.ok(&["context", "show", said["node"].as_str().unwrap(), "--text"]);
    assert_eq!(sent.matches("was not run: its turn ended before it began").count(), 2, "{sent}");
}

#[test]
fn a_stop_while_a_hook_runs_at_a_turns_end_ends_it_and_no_further_one_begins() {
    let hook = |name: &str, command: &str| {
        format!("[hooks.{name}]\ncommand = \"{command}\"\non = [\"turn_end\"]\ntimeout = 600\n")
    };
    let lines = [calls(&json!([exec("touch called")])), json!({"text": "Done."})];
    let world = world_with(&lines, &(hook("first", "touch begun; sleep 600") + &hook("second", "true")));
    let project = world.path("project");
    let workspace = text(&project);
    let mut chat = world.command(&["--workspace", &workspace, "chat", "-m", "Do it."]);
    let mut chat = chat.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while !project.join("begun").exists() {
        assert!(chat.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(60));
        std::thread::yield_now();
    }
    world.ok(&["--workspace", &workspace, "chat", "-m", "/stop"]);
    let run = ended(chat, "the chat that was stopped");
    assert!(run.err.contains("the hook first: it failed: "), "{run:?}");
    assert!(!run.err.contains("the hook second"), "{run:?}");
}
