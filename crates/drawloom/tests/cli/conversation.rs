//! A conversation at a terminal, as a person has it (spec: cli §2 `chat`, agent §7).

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::terminal::{Terminal, screen};
use crate::world::World;

fn talk(world: &World, arguments: &[&str]) -> Terminal {
    let arguments = [arguments, &["--color", "never"]].concat();
    Terminal::start(world.command(&arguments))
}

fn echo(world: &World) -> Terminal {
    talk(world, &["--model", "script:echo", "chat"])
}

fn script(world: &World, lines: &[Value]) -> String {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let file = world.path("script.jsonl");
    std::fs::write(&file, lines.join("\n")).unwrap();
    format!("script:{}", file.display())
}

/// What was said and answered in `main`, with how it ended.
fn said(world: &World) -> Vec<(String, String)> {
    let (_, session) = world.json(&["sessions", "show", "main"]);
    let tree = session["tree"].as_str().unwrap().to_owned();
    let (_, shown) = world.json(&["tree", "show", &tree]);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let nodes = shown["nodes"].as_array().unwrap().iter();
    let found = nodes.map(|node| (text(&node["text"]), text(&node["finish"])));
    found.filter(|(text, _)| !text.is_empty()).collect()
}

fn texts(world: &World) -> Vec<String> {
    said(world).into_iter().map(|(text, _)| text).collect()
}

#[test]
fn two_turns_and_some_commands() {
    let world = World::new();
    let mut terminal = echo(&world);
    terminal.shows("main · script/echo · local");
    terminal.says("hello\r");
    terminal.says("again\r");
    terminal.shows("% of the window");
    terminal.says("/status\r");
    terminal.shows("script/echo · local");
    terminal.says("/stauts\r");
    terminal.shows("did you mean /status?");
    terminal.says("//slashed\r");
    terminal.says("/doctor\r");
    terminal.says("/undo\r");
    terminal.shows("undone: ");
    terminal.shows("again");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(texts(&world), ["hello", "hello", "again", "again"]);
    let mut terminal = echo(&world);
    terminal.says("/redo\r");
    terminal.types("/quit\r");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(texts(&world)[4..], ["/slashed", "/slashed"], "the session goes on where it was");
}

#[test]
fn a_text_has_as_many_lines_as_it_needs() {
    let world = World::new();
    let mut terminal = echo(&world);
    terminal.at_prompt();
    terminal.types("one\\\r");
    terminal.shows("| ");
    terminal.says_on("two\r");
    terminal.says("three\u{1b}\rfour\r");
    terminal.says("```\rfive\r```\r");
    terminal.says("\u{1b}[200~six\n/status\u{1b}[201~\r");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    let found = texts(&world);
    let asked: Vec<&str> = found.iter().step_by(2).map(String::as_str).collect();
    assert_eq!(asked, ["one\ntwo", "three\nfour", "```\nfive\n```", "six\n/status"]);
}

#[test]
fn names_are_completed() {
    let world = World::new();
    let mut terminal = echo(&world);
    terminal.says("/sta\t\r");
    terminal.shows("no message yet");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
}

fn slow(world: &World) -> String {
    let slow: Vec<String> = (0..2_000).map(|number| format!("w{number} ")).collect();
    let lines = [
        json!({"deltas": slow, "delta_delay_ms": 20}),
        json!({"text": "the second answer"}),
        json!({"text": "the third answer"}),
    ];
    script(world, &lines)
}

#[test]
fn ctrl_c_stops_the_answer_and_keeps_what_came() {
    let world = World::new();
    let mut terminal = talk(&world, &["--model", &slow(&world), "chat"]);
    terminal.at_prompt();
    terminal.types("go\r");
    terminal.shows("w1 ");
    terminal.signal(Signal::INT);
    terminal.shows("stopped: the part received is kept as");
    terminal.says("and now\r");
    terminal.shows("the second answer");
    // At the prompt it throws away what was typed, and nothing else.
    terminal.says("thrown away\u{3}");
    terminal.says("kept\r");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    let found = said(&world);
    let asked: Vec<&str> = found.iter().step_by(2).map(|(text, _)| text.as_str()).collect();
    assert_eq!(asked, ["go", "and now", "kept"]);
    let (partial, finish) = &found[1];
    assert!(partial.starts_with("w0 w1 ") && partial.len() < 2_000, "{partial}");
    assert_eq!(finish, r#"{"interrupted":"cancelled"}"#);
}

#[test]
fn what_is_typed_while_an_answer_comes_is_not_lost() {
    let world = World::new();
    let mut terminal = talk(&world, &["--model", &slow(&world), "chat"]);
    terminal.at_prompt();
    terminal.types("go\r");
    terminal.shows("w1 ");
    terminal.types("/queue second\r/stop\runfin");
    terminal.shows("the second answer");
    terminal.types("ished\r");
    terminal.shows("the third answer");
    terminal.at_prompt();
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    let found = texts(&world);
    let asked: Vec<&str> = found.iter().step_by(2).map(String::as_str).collect();
    assert_eq!(asked, ["go", "second", "unfinished"]);
}

/// The words of an answer that takes its time, as a model says them.
fn slowly(words: usize, delay_ms: u64) -> Value {
    let deltas: Vec<String> = (0..words).map(|number| format!("w{number} ")).collect();
    json!({"deltas": deltas, "delta_delay_ms": delay_ms})
}

#[test]
fn what_is_typed_while_an_answer_comes_joins_the_turn() {
    let world = World::new();
    let lines = [
        slowly(120, 20),
        json!({"text": "answer two", "expect": ["more", "and more"]}),
        json!({"text": "answer three", "expect": "at the end"}),
    ];
    let mut terminal = talk(&world, &["--model", &script(&world, &lines), "chat"]);
    terminal.at_prompt();
    terminal.types("go\r");
    terminal.shows("w1 ");
    terminal.types("/queue at the end\rmore\r");
    terminal.shows("this waits until the turn is done");
    terminal.shows("this joins the turn");
    terminal.types("and more\r/stauts\r");
    terminal.shows("did you mean /status?");
    terminal.shows("w119");
    let seen = terminal.contents();
    let is_line = |is: &dyn Fn(&str) -> bool| seen.lines().any(|line| is(line.trim_end()));
    assert!(is_line(&|line| line.starts_with("error: there is no command /stauts")), "{seen}");
    assert!(is_line(&|line| line.ends_with("begins a text with a slash")), "nothing follows it: {seen}");
    terminal.shows("main> more");
    terminal.shows("main> and more");
    terminal.shows("answer two");
    terminal.shows("main> at the end");
    terminal.shows("answer three");
    terminal.at_prompt();
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    let found = texts(&world);
    assert_eq!(found[2..], ["more", "and more", "answer two", "at the end", "answer three"]);
    assert!(found[1].ends_with("w119 "), "the answer under way was not cut");
}

#[test]
fn what_waits_is_said_before_what_is_typed_at_a_choice() {
    let world = World::new();
    let lines = [
        json!({"text": "answer one"}),
        slowly(60, 20),
        json!({"text": "another one"}),
        json!({"text": "the last answer", "expect": "waiting text"}),
    ];
    let mut terminal = talk(&world, &["--model", &script(&world, &lines), "chat"]);
    terminal.at_prompt();
    terminal.says("go\r");
    terminal.at_prompt();
    terminal.types("/regenerate -n 2\r");
    terminal.shows("w1 ");
    terminal.types("waiting text\r");
    terminal.shows("this waits until the turn is done");
    terminal.shows("which one, 2 to 3?");
    terminal.types("/exit\r");
    terminal.shows("the last answer");
    assert_eq!(terminal.ended(), Some(0));
    let (_, found) = world.json(&["log", "-n", "5"]);
    assert!(found.to_string().contains("waiting text"), "{found}");
}

#[test]
fn what_joined_a_turn_that_is_stopped_is_said_next() {
    let world = World::new();
    let mut terminal = talk(&world, &["--model", &slow(&world), "chat"]);
    terminal.at_prompt();
    terminal.types("go\r");
    terminal.shows("w1 ");
    terminal.types("/queue later\rno, in French\r");
    terminal.shows("this joins the turn");
    terminal.types("/stop\r");
    terminal.shows("stopped: the part received is kept");
    terminal.shows("the second answer");
    terminal.shows("the third answer");
    terminal.at_prompt();
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    let asked: Vec<String> = texts(&world).into_iter().step_by(2).collect();
    assert_eq!(asked, ["go", "no, in French", "later"]);
}

#[test]
fn what_is_typed_behind_a_command_waits_with_it() {
    let world = World::new();
    let mut terminal = talk(&world, &["--model", &script(&world, &[slowly(60, 20)]), "chat"]);
    terminal.at_prompt();
    terminal.types("go\r");
    terminal.shows("w1 ");
    terminal.types("/new other\rhello\r");
    // A script is counted by the session: the other one is told the same.
    terminal.shows("other> hello");
    terminal.at_prompt();
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(texts(&world).len(), 2, "nothing joined the turn before the command");
    let (_, other) = world.json(&["sessions", "show", "other"]);
    assert_eq!(other["title"], "hello");
}

#[test]
fn a_model_that_fails_ends_nothing() {
    let world = World::new();
    let model = script(&world, &[json!({"fault": "garbage"}), json!({"text": "better"})]);
    let mut terminal = talk(&world, &["--model", &model, "chat"]);
    terminal.says("one\r");
    terminal.shows("error: ");
    terminal.says("two\r");
    terminal.shows("better");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
}

/// Sequences a terminal would obey.
const HOSTILE: [&str; 41] = [
    "\x1b]52;c;eA==\x07",
    "\x1b]52;c;?\x07",
    "\x1b]0;title\x07",
    "\x1b]2;title\x1b\\",
    "\x1b]1;icon\x07",
    "\x1b]8;;http://evil.example\x07here\x1b]8;;\x07",
    "\x1b[2J",
    "\x1b[3J",
    "\x1b[H",
    "\x1b[10A",
    "\x1b[5;1H",
    "\x1b[1K",
    "\x1b[2K",
    "\x1b[2M",
    "\x1b[3L",
    "\x1b[9P",
    "\x1b[4h",
    "\x1b[?25l",
    "\x1b[?1049h",
    "\x1b[?2004l",
    "\x1b[?1000h",
    "\x1b[1;2r",
    "\x1b[31;41m",
    "\x1b[6n",
    "\x1b[8;1;1t",
    "\x1bc",
    "\x1b7\x1b8",
    "\x1bM",
    "\x1b#8",
    "\x1b(0lqk",
    "\x1bP+q544e\x1b\\",
    "\u{9b}2J",
    "\u{9d}52;c;eA==\u{9c}",
    "\rEVIL",
    "\x08\x08\x08",
    "\x07",
    "\x0b\x0c",
    "\x0e\x0f",
    "\x7f\x1a\x18",
    "\u{85}",
    "\u{202e}gpj.\u{2066}",
];

/// The screen of a conversation whose model says this, in these pieces, without what differs from run to run.
fn screen_of(deltas: &[String]) -> (Vec<String>, Vec<&'static str>) {
    let world = World::new();
    let model = script(&world, &[json!({"deltas": deltas})]);
    let mut terminal = talk(&world, &["--model", &model, "chat"]);
    terminal.says("go\r");
    terminal.shows("of the window");
    let shown = terminal.contents();
    let lines = shown.lines().map(|line| match line.rsplit_once(" · ") {
        Some((cost, _)) if line.contains("of the window") => cost.to_owned(),
        _ => line.to_owned(),
    });
    (lines.collect(), terminal.obeyed().0.clone())
}

#[test]
fn s26_what_a_model_says_changes_nothing_but_text() {
    let said: String = HOSTILE.iter().map(|sequence| format!("a{sequence}b\n")).collect();
    let pieces: Vec<String> = said.chars().map(String::from).collect();
    let shown = text::terminal::visible(&said).into_owned();
    assert_eq!(screen_of(&pieces), screen_of(&[shown]));

    let mut control = screen();
    control.process(said.as_bytes());
    let obeyed = &control.callbacks().0;
    assert!(obeyed.contains(&"copy") && obeyed.contains(&"title"), "the control: {obeyed:?}");
}

#[test]
fn what_was_typed_is_kept_for_the_owner_alone() {
    let world = World::new();
    let mut terminal = echo(&world);
    terminal.says("remember\r");
    terminal.says(" not this\r");
    // The arrow brings back what was typed before: the last line once more, though it is not kept.
    terminal.types("\u{1b}[A\u{1b}[A");
    terminal.shows("main> remember\n");
    terminal.says_on("\u{3}");
    terminal.types("\u{4}");
    terminal.ended();
    let kept = world.home().join("cache/history");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "remember\n");
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_temporary_conversation_is_forgotten_however_it_ends() {
    for how in ["end", "quit", "terminate", "hangup", "in a turn", "kill"] {
        let world = World::new();
        let temporary = ["--model", "script:echo", "chat", "--private"];
        let mut terminal = match how {
            "in a turn" => talk(&world, &["--model", &slow(&world), "chat", "--private"]),
            _ => talk(&world, &temporary),
        };
        terminal.shows("forgotten when you leave");
        terminal.shows("private> ");
        let code = match how {
            "in a turn" => {
                terminal.at_prompt();
                terminal.types("secretly\r");
                terminal.shows("w1 ");
                terminal.signal(Signal::TERM);
                Some(143)
            }
            how => {
                terminal.says("secretly\r");
                match how {
                    "end" => terminal.types("\u{4}"),
                    "quit" => terminal.types("/quit\r"),
                    "terminate" => terminal.signal(Signal::TERM),
                    "hangup" => terminal.signal(Signal::HUP),
                    _ => terminal.signal(Signal::KILL),
                }
                match how {
                    "end" | "quit" => Some(0),
                    "terminate" => Some(143),
                    "hangup" => Some(129),
                    _ => None,
                }
            }
        };
        assert_eq!(terminal.ended(), code, "{how}");
        // The next start forgets what a killed process could not.
        let (_, trees) = world.json(&["tree", "list"]);
        assert_eq!(trees["trees"], json!([]), "{how}");
        let (_, hits) = world.json(&["search", "secretly"]);
        assert_eq!(hits["hits"], json!([]), "{how}");
        assert!(!world.home().join("cache/history").exists(), "{how}");
    }
}

#[test]
fn the_temporary_conversation_of_a_living_process_is_left_alone() {
    let world = World::new();
    let mut terminal = talk(&world, &["--model", "script:echo", "chat", "--private"]);
    terminal.says("still here\r");
    // One that died, so that there is something to clear away.
    let mut dead = talk(&world, &["--model", "script:echo", "chat", "--private"]);
    dead.says("gone\r");
    dead.signal(Signal::KILL);
    dead.ended();
    let (_, hits) = world.json(&["search", "here"]);
    assert_eq!(hits["hits"].as_array().unwrap().len(), 2, "{hits}");
    let (_, hits) = world.json(&["search", "gone"]);
    assert_eq!(hits["hits"], json!([]));
    terminal.says("/status\r");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn s5_what_another_process_says_is_never_a_command() {
    let world = World::new();
    let words: Vec<String> = (0..2_000).map(|number| format!("w{number} ")).collect();
    let lines = [
        json!({"deltas": words[..150], "delta_delay_ms": 20}),
        json!({"text": "that was text", "expect": "/quit"}),
    ];
    let model = script(&world, &lines);
    let mut terminal = talk(&world, &["--model", &model, "chat"]);
    terminal.at_prompt();
    terminal.types("go\r");
    terminal.shows("w1 ");
    let other = world.fed(&["--model", &model, "chat", "-m", "-"], b"/quit");
    assert_eq!((other.code, other.out.as_str()), (Some(0), "that was text\n"), "{other:?}");
    terminal.says("/status\r");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(texts(&world)[2..], ["/quit", "that was text"]);
}

#[test]
fn without_a_terminal_it_names_the_way_to_say_one_thing() {
    let world = World::new();
    let run = world.run(&["--model", "script:echo", "chat"]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("-m TEXT"), "{run:?}");
    let (code, answer) = world.json(&["--model", "script:echo", "chat"]);
    assert_eq!(code, Some(2));
    assert!(answer["error"]["hint"].as_str().unwrap().contains("-m TEXT"), "{answer}");
    assert!(!world.home().exists(), "nothing was made");
}

#[test]
fn a_command_that_asks_no_model_needs_none() {
    let world = World::new();
    for line in ["/help", "/status", "/sessions", "/search x", "/stop", "/quit"] {
        let run = world.run(&["chat", "-m", line]);
        assert_eq!(run.code, Some(0), "{line}: {run:?}");
    }
    let (_, status) = world.json(&["chat", "-m", "/status"]);
    assert_eq!((&status["model"], &status["named"]), (&Value::Null, &Value::Null));
    assert_eq!(status["exists"], false, "the home's own workspace is made when something is put there");
    let run = world.run(&["chat", "-m", "/status"]);
    assert!(run.out.contains("none is chosen") && run.out.contains("not made yet"), "{run:?}");
    let (_, status) = world.json(&["--model", "script:echo", "chat", "-m", "/status"]);
    assert_eq!(status["named"], "script:echo");
    for line in ["hello", "/model", "//help"] {
        let run = world.run(&["chat", "-m", line]);
        assert!(
            run.code == Some(2) && run.err.contains("no model is chosen"),
            "the control: {line}: {run:?}"
        );
    }
    assert!(!world.home().join("spool").read_dir().is_ok_and(|mut found| found.next().is_some()));
}

#[test]
fn one_line_may_be_a_command_and_standard_input_may_not() {
    let world = World::new();
    let model = ["--model", "script:echo"];
    let (code, status) = world.json(&[&model[..], &["chat", "-m", "/status"]].concat());
    assert_eq!((code, &status["session"], &status["tree"]), (Some(0), &json!("main"), &Value::Null));
    let run = world.fed(&[&model[..], &["chat", "-m", "-"]].concat(), b"/status");
    assert_eq!(run.out, "/status\n", "the echo of a text");
    let run = world.run(&[&model[..], &["chat", "-m", "/stauts"]].concat());
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("/status"), "{run:?}");
}
