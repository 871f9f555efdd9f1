//! What subagents have together with the turn that began them: what was denied, and what may be used.

use serde_json::{Value, json};

use crate::subagents::{asks, begun, chat_code, of, of_calls, questions, spawn, world};
use crate::tools::calls;
use crate::world::World;

/// A turn whose only question is answered with a no: its events.
fn denied_once(world: &World) -> Vec<Value> {
    let chat = begun(world, &["--wait", "60", "--events"], "Be kind.");
    questions(world, 1);
    assert_eq!(chat_code(world, "/deny"), Some(0));
    let ended = chat.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let lines = String::from_utf8(ended.stdout).unwrap();
    assert!(!world.path("project/MEMORY.md").exists());
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn asked(events: &[Value]) -> usize {
    events.iter().filter(|event| event["event"] == "question").count()
}

const BEFORE: &str = "it was denied before in this turn";

#[test]
fn what_was_denied_is_asked_no_more_by_subagents_nor_once_they_are_done() {
    let lines = [
        calls(&asks()),
        calls(&json!([spawn("one", &json!({}))])),
        json!({"text": "Waiting."}),
        calls(&asks()),
        json!({"text": "So be it.", "expect": [BEFORE]}),
        of_calls("one", &asks()),
        of("one", json!({"text": "I may not.", "expect": [BEFORE]})),
    ];
    let events = denied_once(&world(&lines, ""));
    let done = events.last().unwrap();
    assert_eq!((asked(&events), done["text"].as_str()), (1, Some("So be it.")), "{done}");
}

#[test]
fn what_two_of_them_would_do_is_asked_once() {
    let lines = [
        calls(&json!([spawn("one", &json!({})), spawn("two", &json!({}))])),
        json!({"text": "Waiting."}),
        json!({"text": "Done.", "loop": true}),
        of_calls("one", &asks()),
        of("one", json!({"text": "I may not.", "expect": ["write was not run"]})),
        of_calls("two", &asks()),
        of("two", json!({"text": "Nor I.", "expect": ["write was not run"]})),
    ];
    let events = denied_once(&world(&lines, ""));
    assert_eq!(asked(&events), 1, "{events:?}");
}
