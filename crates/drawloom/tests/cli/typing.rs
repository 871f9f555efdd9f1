//! What is typed while an answer comes: none of it is lost, and keys that write no text write none.

use serde_json::json;

use crate::terminal::Terminal;
use crate::world::World;

/// A model that says so many words slowly first, and anything at once then.
fn slow(world: &World, words: usize) -> String {
    let deltas: Vec<String> = (0..words).map(|number| format!("w{number} ")).collect();
    let lines = [json!({"deltas": deltas, "delta_delay_ms": 50}), json!({"text": "fine", "loop": true})];
    let script: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(world.path("typing.jsonl"), script).unwrap();
    format!("script:{}", world.path("typing.jsonl").display())
}

/// A conversation whose first answer comes now.
fn answering(world: &World, words: usize) -> Terminal {
    let mut terminal = Terminal::start(world.command(&["--model", &slow(world, words), "chat"]));
    terminal.at_prompt();
    terminal.types("hello\r");
    terminal.shows("w1 ");
    terminal
}

/// What a person said, in order.
fn said(world: &World) -> Vec<String> {
    let (_, session) = world.json(&["sessions", "show", "main"]);
    let (_, shown) = world.json(&["tree", "show", session["tree"].as_str().unwrap()]);
    let nodes = shown["nodes"].as_array().unwrap().iter();
    let own = nodes.filter(|node| node["role"] == "user");
    own.map(|node| node["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn lines_that_find_no_place_in_the_turn_are_said_after_it() {
    let world = World::new();
    let mut terminal = answering(&world, 20);
    let lines: Vec<String> = (0..66).map(|number| format!("line {number:03}")).collect();
    terminal.types(&(lines.join("\r") + "\r"));
    terminal.shows("line 065 (this waits until the turn is done)");
    terminal.shows("main> line 065");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert!(!terminal.contents().contains("was not taken"), "{}", terminal.contents());
    assert_eq!(said(&world)[1..], lines);
}
