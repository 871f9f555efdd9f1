//! What is said at a terminal while a model says nothing yet (spec: cli).

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::server::{self, Server};
use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::typing::said;
use crate::world::World;

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A server that tells what is sent through the channel, of one answer; its base address.
fn stepping() -> (String, Sender<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, pieces) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            serve(&stream.unwrap(), &pieces);
        }
    });
    (base, sender)
}

fn serve(mut stream: &TcpStream, pieces: &Receiver<String>) {
    let mut reader = BufReader::new(stream);
    let (mut lines, mut length) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        length = line.strip_prefix("content-length:").map_or(length, |n| n.trim().parse().unwrap());
        lines.push(line);
    }
    reader.take(length).read_to_end(&mut Vec::new()).unwrap();
    if lines[0].starts_with("post ") && !lines[0].contains("/tokenize") {
        stream.write_all(HEAD.as_bytes()).unwrap();
        pieces.iter().take_while(|piece| !piece.is_empty()).for_each(|piece| {
            stream.write_all(piece.as_bytes()).unwrap();
        });
    } else {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    }
}

/// A world with a model of that server, and the server's channel.
pub(crate) fn world() -> (World, Sender<String>) {
    let (base, pieces) = stepping();
    let world = World::new();
    let provider = "kind = \"llamacpp\"\nwindow = 32000\n";
    world.write("config.toml", &format!("[providers.box]\nbase_url = \"{base}\"\n{provider}"));
    (world, pieces)
}

fn read(done: u32) -> String {
    format!("data: {{\"choices\": [], \"prompt_progress\": {{\"total\": 200, \"processed\": {done}}}}}\n\n")
}

#[test]
fn it_says_who_is_asked_what_was_sent_and_how_far_it_is_read_and_goes_before_the_answer() {
    let (world, pieces) = world();
    let mut terminal = Terminal::start(world.command(&["--model", "box/m", "chat"]));
    terminal.at_prompt();
    terminal.types("Wet?\r");
    // Nobody counted them.
    terminal.shows("waiting for box/m: ≈ ");
    pieces.send(read(50)).unwrap();
    terminal.shows("tokens sent, 25 % read · ");
    pieces.send(read(200)).unwrap();
    terminal.shows("tokens sent, read · ");
    pieces.send(server::chat("", "Wet.", 100)).unwrap();
    pieces.send(String::new()).unwrap();
    terminal.at_prompt();
    let screen = terminal.contents();
    assert!(screen.contains("Wet.") && !screen.contains("waiting for"), "{screen}");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
}

/// Answers that a model gives in chat completions and in completions.
fn answer(words: &[&str]) -> String {
    if words[0] == "ask" { server::chat("", "Wet.", 100) } else { crate::narrow::probable() }
}

#[test]
fn a_question_and_a_passage_are_waited_for_as_a_conversation_is() {
    for words in
        [&["ask", "Wet?"][..], &["tree", "generate", "Tale"], &["tree", "generate", "Tale", "-n", "2"]]
    {
        let (world, pieces) = world();
        world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
        let mut terminal = Terminal::start(world.command(&[&["--model", "box/m"], words].concat()));
        terminal.shows("waiting for box/m: ");
        pieces.send(read(50)).unwrap();
        terminal.shows("tokens sent, 25 % read · ");
        pieces.send(answer(words)).unwrap();
        pieces.send(String::new()).unwrap();
        if words.contains(&"-n") {
            terminal.shows("in the reeds");
            terminal.shows("waiting for box/m: ");
        }
        pieces.send(answer(words)).unwrap();
        pieces.send(String::new()).unwrap();
        assert_eq!(terminal.ended(), Some(0), "{words:?}: {}", terminal.contents());
        while terminal.listen() {}
        let screen = terminal.contents();
        let is_there = screen.contains("Wet.") || screen.contains("in the reeds");
        assert!(is_there && !screen.contains("waiting for"), "{words:?}: {screen}");
    }
}

#[test]
fn a_model_that_is_tested_is_waited_for() {
    let (world, pieces) = world();
    let mut terminal = Terminal::start(world.command(&["model", "test", "box/m"]));
    terminal.shows("waiting for box/m: ");
    pieces.send(server::chat("", "Wet.", 100)).unwrap();
    pieces.send(String::new()).unwrap();
    assert_eq!(terminal.ended(), Some(0), "{}", terminal.contents());
    while terminal.listen() {}
    assert!(terminal.contents().contains("Wet.") && !terminal.contents().contains("waiting for"));
}

#[test]
fn a_terminal_that_takes_nothing_away_is_told_once() {
    for words in [&["ask", "Wet?"][..], &["tree", "generate", "Tale"], &["chat", "-m", "Wet?"]] {
        let (world, pieces) = world();
        world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
        let mut command = world.command(&[&["--model", "box/m"], words].concat());
        command.env("TERM", "dumb");
        let mut terminal = Terminal::start(command);
        terminal.until("a line of its own", |terminal| {
            let screen = terminal.contents();
            screen
                .lines()
                .any(|line| line.starts_with("waiting for box/m: ") && line.ends_with(" tokens sent"))
        });
        let said = if words[0] == "chat" { server::chat("", "Wet.", 100) } else { answer(words) };
        pieces.send(said).unwrap();
        pieces.send(String::new()).unwrap();
        assert_eq!(terminal.ended(), Some(0), "{words:?}: {}", terminal.contents());
        while terminal.listen() {}
        let screen = terminal.contents();
        assert_eq!(screen.matches("waiting for").count(), 1, "{words:?}: {screen}");
        assert!(!terminal.wrote(b"\x1b"), "{words:?}: {screen}");
    }
}

#[test]
fn a_sibling_that_fails_leaves_the_line_of_the_one_that_is_written() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let deltas =
        r#"{"deltas": [" The", " rain", " fell", " softly", " on", " the", " roof."], "delta_delay_ms": 60}"#;
    std::fs::write(world.path("here/slow.jsonl"), format!("{deltas}\n{{\"fault\": \"garbage\"}}\n")).unwrap();
    let generate = ["--model", "script:slow.jsonl", "tree", "generate", "Tale", "-n", "2"];
    let mut terminal = Terminal::of_width(world.command(&generate), 120);
    terminal.shows("one of the requests failed");
    assert_eq!(terminal.ended(), Some(0));
    while terminal.listen() {}
    assert!(terminal.contents().contains("The rain fell softly on the roof."), "{}", terminal.contents());
}

/// A server that never answers at paths that end so, and tells when it is asked there; at others it says what a model
/// says.
fn mute_at(path: &'static str) -> (Server, Receiver<()>) {
    let (sender, asked) = channel();
    let server = Server::start(move |at, _| {
        if at.ends_with(path) {
            let _ = sender.send(());
            loop {
                std::thread::park();
            }
        }
        at.ends_with("completions").then(|| server::chat("", "Wet.", 100))
    });
    (server, asked)
}

/// A world with a model of a server.
fn world_of(server: &Server, more: &str) -> World {
    let world = World::new();
    let provider = format!("[providers.box]\nbase_url = \"{}\"\nkind = \"llamacpp\"\n{more}", server.base());
    world.write("config.toml", &provider);
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    world
}

#[test]
fn ctrl_c_ends_the_wait_for_a_server_that_counts_and_what_was_said_is_kept() {
    for words in [
        &["ask", "Wet?"][..],
        &["chat", "-m", "Wet?"],
        &["tree", "generate", "Tale"],
        &["tree", "generate", "Tale", "-n", "2"],
        &["tree", "generate", "Tale", "--dry-run"],
    ] {
        let (server, asked) = mute_at("/tokenize");
        let world = world_of(&server, "window = 32000\n");
        let command = world.command(&[&["--model", "box/m"], words].concat());
        let mut terminal = Terminal::of_width(with_terminal(&command), 120);
        asked.recv().unwrap();
        let pressed = Instant::now();
        terminal.types("\x03");
        assert_eq!(terminal.ended(), Some(130), "{words:?}: {}", terminal.contents());
        assert!(pressed.elapsed() < Duration::from_secs(4), "{words:?}: {:?}", pressed.elapsed());
        while terminal.listen() {}
        let screen = terminal.contents();
        assert!(screen.contains("stopped"), "{words:?}: {screen}");
        assert!(!server.asked().iter().any(|(path, _)| path.ends_with("completions")), "{words:?}");
        if words[0] == "chat" {
            assert_eq!(said(&world), ["Wet?"]);
        }
    }
}

#[test]
fn ctrl_c_in_a_conversation_ends_the_wait_for_a_server_that_counts() {
    let (server, asked) = mute_at("/tokenize");
    let world = world_of(&server, "window = 32000\n");
    let command = world.command(&["--model", "box/m", "chat"]);
    let mut terminal = Terminal::of_width(with_terminal(&command), 120);
    terminal.at_prompt();
    terminal.types("Wet?\r");
    asked.recv().unwrap();
    let pressed = Instant::now();
    terminal.types("\x03");
    terminal.shows("stopped");
    terminal.at_prompt();
    assert!(pressed.elapsed() < Duration::from_secs(4), "{:?}", pressed.elapsed());
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(said(&world), ["Wet?"]);
}

#[test]
fn ctrl_c_ends_the_wait_for_the_window_of_a_model_and_says_nothing_about_its_server() {
    let (server, asked) = mute_at("/models");
    let world = world_of(&server, "");
    let command = world.command(&["--model", "box/m", "tree", "generate", "Tale"]);
    let mut terminal = Terminal::of_width(with_terminal(&command), 120);
    asked.recv().unwrap();
    terminal.types("\x03");
    assert_eq!(terminal.ended(), Some(130), "{}", terminal.contents());
    assert_eq!(std::fs::read_dir(world.home().join("cache/windows")).unwrap().count(), 0);
    assert!(!server.asked().iter().any(|(path, _)| path.ends_with("completions")));
}

#[test]
fn ctrl_c_while_a_conversation_begins_ends_it() {
    let (server, asked) = mute_at("/models");
    let world = world_of(&server, "");
    let command = world.command(&["--model", "box/m", "chat"]);
    let mut terminal = Terminal::of_width(with_terminal(&command), 120);
    asked.recv().unwrap();
    terminal.types("\x03");
    assert_eq!(terminal.ended(), Some(130), "{}", terminal.contents());
}

#[test]
fn ctrl_c_while_the_server_of_another_model_counts_asks_no_further_one() {
    let (server, asked) = mute_at("/tokenize");
    let world = World::new();
    let mut config = "[model]\nfallbacks = [\"box/m\", \"third/m\"]\n".to_owned();
    for (name, base) in
        [("down", "http://127.0.0.1:1/v1"), ("box", &*server.base()), ("third", &*server.base())]
    {
        config += &format!("[providers.{name}]\nbase_url = \"{base}\"\nwindow = 32000\n");
    }
    world.write("config.toml", &config);
    let command = world.command(&["--model", "down/m", "chat", "-m", "Wet?"]);
    let mut terminal = Terminal::of_width(with_terminal(&command), 120);
    asked.recv().unwrap();
    terminal.types("\x03");
    assert_eq!(terminal.ended(), Some(130), "{}", terminal.contents());
    while terminal.listen() {}
    let screen = terminal.contents();
    assert!(screen.contains("box/m is asked instead") && !screen.contains("third/m"), "{screen}");
}

#[test]
fn a_server_that_counts_is_waited_for_as_one_that_answers_is() {
    for words in [
        &["ask", "Wet?"][..],
        &["chat", "-m", "Wet?"],
        &["tree", "generate", "Tale"],
        &["tree", "generate", "Tale", "--dry-run"],
        &["context", "show", "--next", "-m", "Wet?"],
    ] {
        let (server, _asked) = mute_at("/tokenize");
        let world = world_of(&server, "window = 32000\n");
        let command = world.command(&[&["--model", "box/m"], words].concat());
        let mut terminal = Terminal::of_width(with_terminal(&command), 120);
        terminal.shows("waiting for box/m: its server counts the tokens · ");
        terminal.types("\x03");
        assert_eq!(terminal.ended(), Some(130), "{words:?}: {}", terminal.contents());
        while terminal.listen() {}
        assert!(!terminal.contents().contains("waiting for"), "{words:?}: {}", terminal.contents());
    }
}

#[test]
fn the_line_of_a_server_that_counts_becomes_that_of_the_answer() {
    let (go_on, held) = channel::<()>();
    let held = Mutex::new(held);
    let server = Server::start(move |at, body| {
        if at.ends_with("/tokenize") {
            // Once it is let, every question is answered.
            let _ = held.lock().unwrap().recv();
            let words = body["content"].as_str()?.split_whitespace().count().max(1);
            return Some(json!({"tokens": vec![7; words]}).to_string());
        }
        if at.ends_with("completions") {
            loop {
                std::thread::park();
            }
        }
        None
    });
    let world = world_of(&server, "window = 32000\n");
    let command = world.command(&["--model", "box/m", "chat"]);
    let mut terminal = Terminal::of_width(with_terminal(&command), 120);
    terminal.at_prompt();
    terminal.types("Wet?\r");
    terminal.shows("waiting for box/m: its server counts the tokens · ");
    drop(go_on);
    terminal.shows("tokens sent · ");
    assert_eq!(terminal.contents().matches("waiting for").count(), 1, "{}", terminal.contents());
    terminal.types("\x03");
    terminal.shows("stopped");
    terminal.at_prompt();
    assert!(!terminal.contents().contains("waiting for"), "{}", terminal.contents());
}

#[test]
fn a_server_that_is_asked_for_a_window_is_waited_for() {
    let (server, asked) = mute_at("/models");
    let world = world_of(&server, "");
    let command = world.command(&["--model", "box/m", "tree", "generate", "Tale", "--dry-run"]);
    let mut terminal = Terminal::of_width(with_terminal(&command), 120);
    asked.recv().unwrap();
    terminal.until("the line", |terminal| {
        terminal.wrote("waiting for box/m: its server is asked for the window · ".as_bytes())
    });
    assert_eq!(terminal.ended(), Some(0), "{}", terminal.contents());
    while terminal.listen() {}
    assert!(!terminal.contents().contains("waiting for"), "{}", terminal.contents());
}
