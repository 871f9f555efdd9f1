//! Plan mode: tools look and change nothing, and the model is told once when it begins and when it ends (spec: agent §4).

use std::fs;

use serde_json::{Value, json};

use crate::world::{World, text};

fn world() -> World {
    let world = World::new();
    let file = text(&world.home().join("lines.jsonl"));
    world.write(
        "config.toml",
        &format!("[model]\ndefault = \"script:{file}\"\n[agents.assistant]\ntools = [\"read\", \"write\"]\n"),
    );
    fs::create_dir_all(world.path("project")).unwrap();
    world
}

fn chat(world: &World, more: &[&str]) -> String {
    let project = text(&world.path("project"));
    world.ok(&[&["--workspace", &project, "chat"], more].concat())
}

/// The same, where the model answers from these lines.
fn chat_with(world: &World, lines: &[Value], more: &[&str]) -> String {
    world.write("lines.jsonl", &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    chat(world, more)
}

/// How often what is sent next names this.
fn told(world: &World, what: &str) -> usize {
    let project = text(&world.path("project"));
    let (_, shown) = world.json(&["--workspace", &project, "context", "show", "--next"]);
    shown["segments"].to_string().matches(what).count()
}

fn write(path: &str) -> Value {
    json!({"tool_calls": [{"name": "write", "arguments": {"path": path, "content": "x\n"}}]})
}

#[test]
fn a_call_with_the_flag_changes_nothing_and_the_next_one_may() {
    let begins = "Plan mode is on: nothing is changed";
    let world = world();
    let refused = json!({"text": "I would write it.", "expect": [begins, "was not run: plan mode is on"]});
    let said = chat_with(&world, &[write("a.md"), refused], &["--plan", "-m", "Write a.md."]);
    assert_eq!(said, "I would write it.\n");
    assert!(!world.path("project/a.md").exists());
    let done = json!({"text": "Written.", "expect": [begins, "Plan mode is off"]});
    assert_eq!(chat_with(&world, &[write("b.md"), done], &["-m", "Now b.md."]), "Written.\n");
    assert!(world.path("project/b.md").exists());
    let last = json!({"text": "Yes.", "expect": ["Plan mode is off"]});
    assert_eq!(chat_with(&world, &[last], &["-m", "Really?"]), "Yes.\n");
    assert_eq!((told(&world, "plan#on"), told(&world, "plan#off")), (1, 1), "each stands once");
}

#[test]
fn a_session_keeps_it_until_it_is_turned_off() {
    let world = world();
    chat_with(&world, &[json!({"text": "Hello."})], &["-m", "Hello."]);
    assert_eq!(chat(&world, &["-m", "/plan"]), "plan mode: off (tools may change things, as policy says)\n");
    assert_eq!(chat(&world, &["-m", "/plan on"]), "plan mode: on, in this session (tools change nothing)\n");
    assert!(chat(&world, &["-m", "/status"]).contains("on: tools change nothing"));
    let refused = json!({"text": "Not yet.", "expect": ["was not run: plan mode is on"]});
    assert_eq!(chat_with(&world, &[write("a.md"), refused], &["-m", "Write a.md."]), "Not yet.\n");
    assert!(!world.path("project/a.md").exists());
    chat(&world, &["-m", "/plan off"]);
    let lines = [write("a.md"), json!({"text": "Written."})];
    assert_eq!(chat_with(&world, &lines, &["-m", "Write a.md."]), "Written.\n");
    assert!(world.path("project/a.md").exists());
}
