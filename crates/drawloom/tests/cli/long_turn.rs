//! A turn of many results: what is looked for above them is found, however many they are (spec: context §3, agent §1).

use std::fs;

use serde_json::{Value, json};

use crate::world::{World, text};

/// Results of one turn.
const RESULTS: usize = 400;

/// A world whose model makes that many calls in its second turn.
fn world() -> World {
    let world = World::new();
    let file = text(&world.home().join("lines.jsonl"));
    world.write(
        "config.toml",
        &format!("[model]\ndefault = \"script:{file}\"\n[agents.assistant]\ntools = [\"list\"]\n"),
    );
    fs::create_dir_all(world.path("project")).unwrap();
    fs::write(world.path("project/AGENTS.md"), "Be kind.\n").unwrap();
    world
}

fn chat(world: &World, lines: &[Value], text_said: &str) -> (Value, String) {
    world.write("lines.jsonl", &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    let project = text(&world.path("project"));
    let run = world.run(&["--workspace", &project, "--json", "chat", "-m", text_said]);
    assert_eq!(run.code, Some(0), "{text_said}: {run:?}");
    (serde_json::from_str(&run.out).unwrap(), run.err)
}

/// What stood above the conversation in the request that a node answers: the texts, as they were sent.
fn above(world: &World, said: &Value) -> Vec<String> {
    let node = said["node"].as_str().unwrap();
    let (_, shown) = world.json(&["context", "show", node, "--text"]);
    let segments = shown["segments"].as_array().unwrap();
    let above: Vec<String> = segments
        .iter()
        .filter(|segment| segment["stable"] == true)
        .map(|segment| segment["text"].to_string())
        .collect();
    assert!(above.iter().any(|text| text.contains("Be kind.")), "{shown}");
    above
}

#[test]
fn what_is_above_a_turn_of_many_results_is_found() {
    let world = world();
    // Orange: 44 % of the window of a script.
    let full = json!({"input": 56_000, "output": 10});
    let (first, told) = chat(&world, &[json!({"text": "Hello.", "usage": full})], "first");
    assert!(told.contains("of the window is in use"), "{told}");
    let before = above(&world, &first);
    fs::write(world.path("project/AGENTS.md"), "Be bold.\n").unwrap();
    let calls: Vec<Value> =
        (0..RESULTS).map(|n| json!({"name": "list", "arguments": {"path": format!("no/{n}")}})).collect();
    let done = json!({"text": "Done.", "usage": full, "expect": "More than two fifths"});
    let (second, told) = chat(&world, &[json!({"tool_calls": calls, "usage": full}), done], "second");
    assert!(!told.contains("of the window is in use"), "once: {told}");
    assert_eq!(above(&world, &second), before, "byte for byte");
    let (_, shown) = world.json(&["context", "show", second["node"].as_str().unwrap(), "--text"]);
    assert_eq!(
        shown["segments"].to_string().matches("More than two fifths").count(),
        1,
        "the model is told once"
    );

    let (edited, told) =
        chat(&world, &[json!({"text": "Again.", "expect": "second thoughts"})], "/edit second thoughts");
    assert!(!told.contains("of the window is in use"), "{told}");
    assert_eq!(above(&world, &edited), before, "also beside it");
    let (_, texts) = world.json(&["context", "show", edited["node"].as_str().unwrap(), "--text"]);
    assert!(!texts["segments"].to_string().contains("no/399"), "it stands beside the message of the turn");
}

/// The middle of the window is in the answer that calls, and the next message far behind it.
#[test]
fn a_window_is_moved_to_the_next_message_behind_many_results() {
    let world = world();
    chat(&world, &[json!({"text": "Hello."})], "first");
    let calls: Vec<Value> =
        (0..RESULTS).map(|n| json!({"name": "list", "arguments": {"path": format!("no/{n}")}})).collect();
    let looks = json!({"text": "I look. ".repeat(400), "tool_calls": calls});
    chat(&world, &[looks, json!({"text": "Done."})], "second");
    chat(&world, &[json!({"text": "Yes."})], "third");
    let (moved, _) = chat(&world, &[json!({"text": "Yes."})], "/compact");
    assert_eq!(moved["leaves"], RESULTS + 5, "{moved}");
}
