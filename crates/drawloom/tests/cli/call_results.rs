//! What a person sees of a call: the command whole, what came of it, the difference it made (spec: cli §2).

use std::fs;

use serde_json::json;

use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::world::{World, text};

/// A world whose model writes, edits, is denied, and runs commands in one turn.
fn world() -> World {
    let world = World::new();
    let file = text(&world.home().join("lines.jsonl"));
    world.write(
        "config.toml",
        &format!(
            "[model]\ndefault = \"script:{file}\"\n[agents.assistant]\ntools = [\"edit\", \"write\", \"exec\"]\n\
             [[policy.rules]]\ndecision = \"deny\"\ntool = [\"write path=docs/**\"]\nreason = \"by hand\"\n"
        ),
    );
    fs::create_dir_all(world.path("project/docs")).unwrap();
    fs::write(world.path("project/calc.py"), "one\ntwo\n").unwrap();
    let exec = |command: &str| json!({"name": "exec", "arguments": {"command": command}});
    let call = |name: &str, arguments: serde_json::Value| json!({"name": name, "arguments": arguments});
    let calls = [
        call("edit", json!({"path": "calc.py", "old": "two", "new": "three"})),
        call("edit", json!({"path": "calc.py", "old": "nowhere", "new": "x"})),
        call("write", json!({"path": "docs/a.md", "content": "a\n"})),
        call("write", json!({"path": "long.txt", "content": "line\n".repeat(40)})),
        exec("seq 1 30; echo broken >&2; exit 3"),
        exec(&format!("echo {}; echo the tail", "a".repeat(300))),
    ];
    let lines = [json!({"tool_calls": calls}), json!({"text": "Done."})];
    world.write("lines.jsonl", &lines.map(|line| format!("{line}\n")).concat());
    world
}

/// What is seen of the turn.
fn is_all_seen(seen: &str) {
    for line in [
        "  changed 1 place of calc.py",
        "  -two",
        "  +three",
        "  write was not run: ",
        "more lines: /diff shows them.]",
        "  exit 3 (",
        "  broken",
        "; echo the tail",
        "  exit 0 (",
    ] {
        assert!(seen.contains(line), "{line}: {seen}");
    }
    assert!(!seen.contains("  12\n"), "the end of what a failed command printed: {seen}");
    assert_eq!(seen.matches("write was not run: ").count(), 1, "{seen}");
}

#[test]
fn the_result_of_each_call_is_shown() {
    let world = world();
    let project = text(&world.path("project"));
    let run = world.run(&["--workspace", &project, "chat", "-m", "Work."]);
    assert_eq!(run.out, "Done.\n", "{run:?}");
    is_all_seen(&run.err);
    let undone = world.run(&["--workspace", &project, "chat", "-m", "/undo"]);
    assert!(undone.err.contains("/undo --files gives them back"), "{undone:?}");
    assert!(world.run(&["--quiet", "--workspace", &project, "chat", "-m", "Work."]).err.is_empty());
}

#[test]
fn the_result_of_each_call_is_shown_at_a_terminal() {
    let world = world();
    let project = text(&world.path("project"));
    let command = world.command(&["--workspace", &project, "chat", "--color", "never"]);
    let mut terminal = Terminal::sized(with_terminal(&command), 100, 400);
    terminal.at_prompt();
    terminal.says("Work.\r");
    terminal.shows("Done.");
    is_all_seen(&terminal.plain());
    terminal.types("/quit\r");
    assert_eq!(terminal.ended(), Some(0));
}
