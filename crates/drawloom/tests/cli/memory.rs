//! What one answer costs the whole program in memory, beside what it has anyhow.

use serde_json::json;

use crate::server::{self, Server};
use crate::terminal::Terminal;
use crate::world::World;

/// Bytes of thinking in one delta, and of all of them.
const DELTA: usize = 4 << 10;
const THOUGHT: usize = 24 << 20;
/// What does not grow with an answer: the session's events (8 MiB), pages of the store, buffers of the compressor.
const FIXED: usize = 32 << 20;

/// An answer that was thought about for long.
fn long() -> String {
    let thought = "rain on the roof ".repeat(DELTA / 17);
    let delta = json!({"id": "c", "choices": [{"index": 0, "delta": {"reasoning_content": thought}}]});
    format!("data: {delta}\n\n").repeat(THOUGHT / thought.len()) + &server::chat("", "Enough.", 10)
}

/// Three times at the peak, while the node's row is written: its content, which the plan holds, and in SQLite a copy as
/// the statement's parameter and one as the row. Nothing else of its size is there: the body is packed and gone by then,
/// the content's JSON is gone once it is bound.
#[test]
fn a_long_answer_takes_three_times_its_bytes_and_something_fixed() {
    let world = World::new();
    let server = Server::start(|_, body| {
        let said = body["messages"].as_array()?.iter().rfind(|message| message["role"] == "user")?;
        let is_long = said["content"].as_str().is_some_and(|text| text.contains("long"));
        Some(if is_long { long() } else { server::chat("", "Hello.", 10) })
    });
    world.write(
        "config.toml",
        &format!("[providers.big]\nbase_url = \"{}\"\nwindow = 32000\n", server.base()),
    );
    let mut terminal = Terminal::start(world.command(&["--model", "big/m", "chat", "--color", "never"]));
    terminal.says("hello\r");
    terminal.shows("Hello.");
    let before = terminal.peak();
    terminal.says("think long\r");
    terminal.shows("Enough.");
    let grown = terminal.peak() - before;
    assert!(grown < 3 * THOUGHT + FIXED, "{} MiB for {} MiB", grown >> 20, THOUGHT >> 20);
    assert!(grown > THOUGHT, "control: it was received");
}
