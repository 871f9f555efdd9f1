//! Hooks around a call that a person said yes to.

use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::headless::question;
use crate::hooks::{after, call, hook, made, results, world};
use crate::tools::calls;
use crate::world::{World, text};

/// A chat that waits for answers.
fn chat(world: &World) -> Child {
    let project = text(&world.path("project"));
    let mut chat = world.command(&["--workspace", &project, "chat", "-m", "Do it.", "--wait", "60"]);
    chat.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn approve(world: &World, chat: &mut Child) {
    let asked = question(world, chat);
    world.ok(&["approve", asked["short_id"].as_str().unwrap()]);
}

#[test]
fn what_a_tool_writes_with_a_yes_is_finished_before_its_hooks_run() {
    let waits = "touch begun; while ! test -e go; do sleep 0.02; done";
    let world = world(
        &made(&json!([call("write", &json!({"path": "AGENTS.md", "content": "Be kind.\n"}))])),
        &after("slow", waits, "timeout = 60"),
    );
    let mut chat = chat(&world);
    approve(&world, &mut chat);
    let began = Instant::now();
    while !world.path("project/begun").exists() {
        assert!(chat.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(60));
        std::thread::yield_now();
    }
    // Whoever looks at what commands did has it alone.
    let lock = File::open(world.home().join("sandbox/tracked/accepted/lock")).unwrap();
    lock.try_lock().expect("no look waits for a hook");
    drop(lock);
    fs::write(world.path("project/go"), "").unwrap();
    assert_eq!(chat.wait().unwrap().code(), Some(0));
    assert_eq!(fs::read_to_string(world.path("project/AGENTS.md")).unwrap(), "Be kind.\n");
    let written = results(&world, "write");
    assert!(written[0].contains("[hook slow]\n[files]\nmade begun"), "{written:?}");
}

#[test]
fn a_yes_does_not_hold_for_a_call_before_which_a_hook_changed_files() {
    let write = || calls(&json!([call("write", &json!({"path": "AGENTS.md", "content": "Be kind.\n"}))]));
    let lines = [write(), write(), json!({"text": "Done."})];
    let world = world(&lines, &hook("stamp", "echo stamped > src/main.rs", "tools = [\"write\"]"));
    let mut chat = chat(&world);
    approve(&world, &mut chat);
    // By then it finds nothing to change.
    approve(&world, &mut chat);
    assert_eq!(chat.wait().unwrap().code(), Some(0));
    let written = results(&world, "write");
    assert!(
        written[0].starts_with("write was not run: the hook stamp changed files after a person allowed it")
            && written[0].contains("[hook stamp]\n[files]\nchanged src/main.rs"),
        "{written:?}"
    );
    assert!(written[1].starts_with("made AGENTS.md"), "{written:?}");
    assert_eq!(fs::read_to_string(world.path("project/AGENTS.md")).unwrap(), "Be kind.\n");
}
