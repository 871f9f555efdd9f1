//! What is typed while an answer comes: none of it is lost, and keys that write no text write none.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
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
pub(crate) fn answering(world: &World, words: usize) -> Terminal {
    answering_at(world, words, "xterm-256color", &["chat"])
}

/// The same, at a terminal of a kind.
pub(crate) fn answering_at(world: &World, words: usize, kind: &str, arguments: &[&str]) -> Terminal {
    let model = slow(world, words);
    let mut command = world.command(&[&["--model", &model], arguments].concat());
    // A shell with job control gives each line a group of its own.
    command.env("TERM", kind).process_group(0);
    let mut terminal = Terminal::start(command);
    terminal.at_prompt();
    terminal.types("hello\n");
    terminal.shows("w1 ");
    terminal
}

/// `chat` with a model that answers all with one word.
pub(crate) fn answering_to_all(world: &World) -> Command {
    let script = json!({"text": "fine", "loop": true});
    std::fs::write(world.path("typing.jsonl"), format!("{script}\n")).unwrap();
    let model = format!("script:{}", world.path("typing.jsonl").display());
    world.command(&["--model", &model, "chat"])
}

/// The same at its first line.
pub(crate) fn conversing(world: &World, kind: &str) -> Terminal {
    let mut command = answering_to_all(world);
    command.env("TERM", kind).process_group(0);
    let mut terminal = Terminal::start(command);
    terminal.at_prompt();
    terminal
}

/// Waits for so many of its answers, and the prompt behind them.
pub(crate) fn answers(terminal: &mut Terminal, answers: usize) {
    terminal.until("all answers", |terminal| {
        terminal.plain().matches("fine").count() >= answers && terminal.is_at_prompt()
    });
}

/// What a person said, in order.
pub(crate) fn said(world: &World) -> Vec<String> {
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

#[test]
fn what_joined_a_turn_whose_disk_was_full_is_named_and_the_session_goes_on() {
    let world = World::new();
    let mut terminal = answering(&world, 60);
    terminal.types("joined text\rsecond text\r");
    terminal.shows("second text (this joins the turn");
    terminal.limits_files(Some(0));
    terminal.shows("not sent: joined text\nnot sent: second text");
    terminal.at_prompt();
    assert!(!terminal.contents().contains("drawloom_agent"), "{}", terminal.contents());
    terminal.limits_files(None);
    terminal.types("again\r");
    answers(&mut terminal, 1);
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(said(&world).last().unwrap(), "again");
}

#[test]
fn what_is_typed_while_an_answer_comes_is_kept_at_once() {
    for kind in ["xterm-256color", "dumb"] {
        let world = World::new();
        let mut terminal = answering_at(&world, 400, kind, &["chat"]);
        terminal.types("joined text\n not this\n/queue later\n");
        terminal.shows("this waits until the turn is done");
        terminal.signal(Signal::KILL);
        assert_eq!(terminal.ended(), None);
        let kept = std::fs::read_to_string(world.home().join("cache/history")).unwrap();
        assert_eq!(kept, "hello\njoined text\n/queue later\n", "{kind}");
    }
    let world = World::new();
    let mut terminal = answering_at(&world, 400, "xterm-256color", &["chat", "--private"]);
    terminal.types("joined text\n");
    terminal.shows("this joins the turn");
    terminal.signal(Signal::KILL);
    terminal.ended();
    let kept = std::fs::read_to_string(world.home().join("cache/history")).unwrap_or_default();
    assert_eq!(kept, "", "of a private conversation");
}

#[test]
fn what_was_typed_while_an_answer_came_is_found_at_the_next_line() {
    let world = World::new();
    let mut terminal = answering(&world, 20);
    terminal.types("joined text\r");
    terminal.shows("main> joined text");
    terminal.at_prompt();
    terminal.types("\x1b[A");
    terminal.until("the line", |terminal| terminal.contents().trim_end().ends_with("main> joined text"));
    terminal.types("\x15\x04");
    assert_eq!(terminal.ended(), Some(0));
}

/// Types byte by byte: each is read before the next one comes.
fn types_slowly(terminal: &mut Terminal, keys: &str) {
    for key in keys.chars() {
        terminal.types(&key.to_string());
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn escape_takes_no_key_along() {
    let world = World::new();
    let mut terminal = answering(&world, 60);
    types_slowly(&mut terminal, "\x1b");
    terminal.types("next\r");
    terminal.shows("> next (this joins");
    terminal.types("two\x1b\rlines\r");
    terminal.shows("lines (this joins");
    terminal.shows("main> next");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(said(&world), ["hello", "next", "two\nlines"]);
}

#[test]
fn an_answer_of_the_terminal_that_comes_in_parts_is_no_text() {
    let world = World::new();
    let command = world.command(&["--model", &slow(&world, 2), "chat"]);
    let mut terminal = Terminal::start(command).mute();
    terminal.until("the question", |terminal| terminal.wrote(b"\x1b[6n"));
    types_slowly(&mut terminal, "\x1b[2;1R");
    terminal.types("hello\n");
    terminal.shows("w1");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(said(&world), ["hello"]);
}

#[test]
fn a_line_that_the_terminal_cut_is_not_sent_and_told() {
    let world = World::new();
    let mut terminal = answering_at(&world, 60, "dumb", &["chat"]);
    let long = "y".repeat(6_000);
    terminal.types(&format!("{long}\n"));
    terminal.shows("the rest was cut");
    terminal.types("short\n");
    terminal.shows("main> short");
    terminal.at_prompt();
    terminal.types(&format!("{long}\n"));
    let told = |terminal: &Terminal| terminal.plain().matches("the rest was cut").count();
    terminal.until("the error again", |terminal| told(terminal) == 2);
    terminal.at_prompt();
    terminal.types(&format!("{}\n", &long[..4_000]));
    terminal.until("the answer", |terminal| terminal.plain().matches("w59").count() == 2);
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(said(&world), ["hello", "short", &long[..4_000]]);
}

/// What a terminal is told to mark pastes with, and to do so no more.
pub(crate) const PASTES: &[u8] = b"\x1b[?2004h";
pub(crate) const NO_PASTES: &[u8] = b"\x1b[?2004l";

/// Several lines, among them some that are commands when they are typed.
const PASTE: &str = "def f():\r    return 1\r\r\r# note\r/undo\r/exit\r//x\r\tend";

#[test]
fn a_paste_is_one_text_while_an_answer_comes_as_at_the_prompt() {
    let world = World::new();
    let mut terminal = answering(&world, 40);
    assert_eq!((terminal.times(PASTES), terminal.times(NO_PASTES)), (2, 1), "at the prompt, and since");
    terminal.types(&format!("see \x1b[200~{PASTE}\x1b[201~"));
    terminal.shows("//x");
    terminal.types("\r");
    terminal.shows("end (this joins the turn");
    terminal.at_prompt();
    terminal.types(&format!("see \x1b[200~{PASTE}\x1b[201~\r"));
    terminal.until("the second answer", |terminal| terminal.contents().matches("w39").count() == 2);
    terminal.at_prompt();
    let before = terminal.times(NO_PASTES);
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert!(terminal.times(NO_PASTES) > before, "it is switched off again");
    let text = format!("see {}", PASTE.replace('\r', "\n"));
    assert_eq!(said(&world), ["hello", &text, &text]);
}

#[test]
fn a_paste_whose_first_line_is_a_command_is_read_as_at_the_prompt() {
    let world = World::new();
    let mut terminal = answering(&world, 40);
    terminal.types("\x1b[200~/undo\r/exit\x1b[201~\r");
    // What waits below an answer names the same error, without its advice.
    terminal.shows("type /undo");
    terminal.at_prompt();
    terminal.types("\x1b[200~/undo\r/exit\x1b[201~\r");
    terminal.until("the same error", |terminal| terminal.plain().matches("type /undo").count() >= 2);
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(said(&world), ["hello"]);
}

#[test]
fn a_paste_that_never_ends_begins_the_next_line() {
    let world = World::new();
    let mut terminal = answering(&world, 400);
    types_slowly(&mut terminal, "\x1b[200~on");
    terminal.types("e\r/exit\r\x1b");
    std::thread::sleep(Duration::from_millis(200));
    terminal.signal(Signal::INT);
    terminal.shows("main> one");
    terminal.types("two\r");
    terminal.shows("fine");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(said(&world), ["hello", "one\n/exit\ntwo"]);
}

#[test]
fn a_paste_that_is_too_long_is_told_and_not_taken() {
    let world = World::new();
    world.write("config.toml", "[limits]\npaste = \"1 KiB\"\n");
    let mut terminal = answering(&world, 60);
    terminal.types(&format!("\x1b[200~{}\x1b[201~short\r", "long\r".repeat(300)));
    terminal.shows("longer than limits.paste");
    terminal.shows("main> short");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(said(&world), ["hello", "short"]);
}

#[test]
fn what_comes_with_a_line_at_the_prompt_is_neither_lost_nor_moved() {
    let paste = "\x1b[200~pasted\r/exit\x1b[201~";
    for (typed, later, lines) in [
        ("one\ntwo\nthree\n", "", vec!["one", "two", "three"]),
        ("one\rtwo", " more\r", vec!["one", "two more"]),
        ("one\rtwo\rthr", "ee\r", vec!["one", "two", "three"]),
        ("a \\\nb\nc\n", "", vec!["a \nb", "c"]),
        ("gone\x03def\r", "", vec!["def"]),
        (&format!("one\r{paste}"), "\r", vec!["one", "pasted\n/exit"]),
    ] {
        let world = World::new();
        let mut terminal = conversing(&world, "xterm-256color");
        terminal.types(typed);
        std::thread::sleep(Duration::from_millis(500));
        terminal.types(later);
        answers(&mut terminal, lines.len());
        terminal.types("\x04");
        assert_eq!(terminal.ended(), Some(0), "{typed:?}");
        assert_eq!(said(&world), lines, "{typed:?}");
    }
}

#[test]
fn a_backslash_makes_several_lines_while_an_answer_comes() {
    for kind in ["xterm-256color", "dumb"] {
        let world = World::new();
        let mut terminal = answering_at(&world, 40, kind, &["chat"]);
        terminal.types("abc\\\ndef\n");
        terminal.shows("fine");
        terminal.at_prompt();
        terminal.types("\x04");
        assert_eq!(terminal.ended(), Some(0));
        assert_eq!(said(&world), ["hello", "abc\ndef"], "{kind}");
    }
}

#[test]
fn what_is_not_sent_is_named_once_and_kept() {
    let kept = |world: &World| std::fs::read_to_string(world.home().join("cache/history")).unwrap();
    let world = World::new();
    let mut terminal = answering(&world, 20);
    terminal.types("joined one\r/exit\rafter exit line\r");
    terminal.until("its end", |terminal| terminal.contents().contains("not sent:"));
    assert_eq!(terminal.ended(), Some(0));
    assert!(terminal.contents().contains("not sent: after exit line"), "{}", terminal.contents());
    assert_eq!(terminal.plain().matches("not sent:").count(), 1);
    assert_eq!(said(&world), ["hello", "joined one"]);
    assert!(kept(&world).ends_with("after exit line\n"));

    for signal in [Signal::TERM, Signal::HUP] {
        let world = World::new();
        let mut terminal = answering(&world, 400);
        terminal.types("first text\rsecond text\r/redo\rthird text\rbegun");
        terminal.shows("> begun");
        terminal.signal(signal);
        terminal.ended();
        while terminal.listen() {}
        let shown = terminal.plain();
        for text in ["first text", "second text", "/redo", "third text", "begun"] {
            assert_eq!(shown.matches(&format!("not sent: {text}\n")).count(), 1, "{text}: {shown}");
        }
        assert!(!shown.contains("error:"), "{shown}");
        assert_eq!(said(&world), ["hello"]);
        assert!(kept(&world).ends_with("first text\nsecond text\n/redo\nthird text\nbegun\n"));
    }
}

#[test]
fn lines_that_were_answered_together_are_one_exchange_and_taken_back_together() {
    let world = World::new();
    let mut terminal = answering(&world, 40);
    let lines: Vec<String> = (0..6).map(|number| format!("line {number}")).collect();
    terminal.types(&(lines.join("\r") + "\r"));
    terminal.shows("fine");
    terminal.at_prompt();
    terminal.types("/history\r");
    terminal.shows("\n> line 0\n> line 1\n> line 2\n");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    let asked = |world: &World| -> Vec<String> {
        let (_, log) = world.json(&["log"]);
        let told = log["exchanges"].as_array().unwrap().iter();
        told.map(|exchange| exchange["question"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(asked(&world), ["hello", &lines.join("\n")]);
    assert!(world.ok(&["log", "-n", "1"]).contains("> line 0\n> line 1\n> line 2\n"));
    world.ok(&["chat", "-m", "/undo"]);
    assert_eq!(asked(&world), ["hello"]);
    let (_, session) = world.json(&["sessions", "show", "main"]);
    let text = world.ok(&["tree", "text", session["tree"].as_str().unwrap()]);
    assert!(text.contains("w39") && !text.contains("line"), "no line stays: {text}");
    world.ok(&["chat", "-m", "/redo"]);
    assert_eq!(asked(&world)[1], lines.join("\n"));
}
