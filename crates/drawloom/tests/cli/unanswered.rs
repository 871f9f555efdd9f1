//! Messages that got no answer: kept in the tree, left out of requests, asked again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::server::{self, Server};
use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::world::World;

/// A home whose server answers while the switch is on.
fn home() -> (World, Server, Arc<AtomicBool>) {
    let world = World::new();
    let on = Arc::new(AtomicBool::new(false));
    let is_on = Arc::clone(&on);
    let near = Server::start(move |path, _| {
        (path.ends_with("/chat/completions") && is_on.load(Ordering::SeqCst))
            .then(|| server::chat("", "Said.", 10))
    });
    world.write(
        "config.toml",
        &format!(
            "[model]\ndefault = \"box/m\"\n[providers.box]\nbase_url = \"{}\"\nkind = \"ollama\"\nwindow = 32000\n",
            near.base()
        ),
    );
    (world, near, on)
}

fn asked_last(near: &Server) -> String {
    let mut chats = near.asked().into_iter().filter(|(path, _)| path.ends_with("/chat/completions"));
    chats.next_back().map(|(_, body): (String, Value)| body["messages"].to_string()).unwrap()
}

#[test]
fn a_message_that_failed_is_not_sent_with_the_next_one() {
    let (world, near, on) = home();
    std::fs::write(world.path("here/note.txt"), "a heavy file").unwrap();
    let run = world.run(&["chat", "-m", "first", "--file", "note.txt"]);
    assert!(run.code != Some(0) && run.err.contains("chat -m /retry"), "{run:?}");
    on.store(true, Ordering::SeqCst);
    world.ok(&["chat", "-m", "second"]);
    let sent = asked_last(&near);
    assert!(sent.contains("second") && !sent.contains("first") && !sent.contains("a heavy file"), "{sent}");
    let (_, sessions) = world.json(&["sessions", "show", "main"]);
    let tree = sessions["sessions"][0]["tree"].as_str().or(sessions["tree"].as_str()).unwrap().to_owned();
    let (_, shown) = world.json(&["tree", "show", &tree]);
    let said = |text: &str| {
        let nodes = shown["nodes"].as_array().unwrap().clone();
        nodes.into_iter().find(|node| node["text"].as_str().is_some_and(|said| said == text)).unwrap()
    };
    assert_eq!((&said("first")["excluded"], &said("second")["excluded"]), (&true.into(), &false.into()));
    world.ok(&["chat", "-m", "third"]);
    assert!(asked_last(&near).contains("second"), "the control: what was answered is sent");
    assert!(world.ok(&["tree", "verify", &tree]).contains("valid"));
}

#[test]
fn the_way_to_ask_again_names_the_model_that_was_named_and_how_it_was_asked() {
    let (world, near, on) = home();
    let other = Server::start(|_, _| Some(server::chat("", "Said elsewhere.", 10)));
    let more =
        format!("[providers.far]\nbase_url = \"{}\"\nkind = \"ollama\"\nwindow = 32000\n", other.base());
    let config = std::fs::read_to_string(world.path("home/config.toml")).unwrap();
    world.write("config.toml", &(config.replace("box/m", "far/m") + &more));
    let flags = ["--model", "box/m", "--temperature", "0.2", "--seed", "7", "--think", "low"];
    let run = world.run(&[&["chat"], &flags[..], &["-m", "for this machine"]].concat());
    let again = "chat --model box/m --temperature 0.2 --seed 7 --think low -m /retry";
    assert!(run.code != Some(0) && run.err.contains(&format!("`drawloom {again}`")), "{run:?}");
    on.store(true, Ordering::SeqCst);
    world.ok(&again.split(' ').collect::<Vec<_>>());
    let (_, body) = near.asked().into_iter().rfind(|(path, _)| path.ends_with("/chat/completions")).unwrap();
    assert_eq!((&body["temperature"], &body["seed"]), (&0.2.into(), &7.into()));
    assert!(other.asked().iter().all(|(_, body)| !body.to_string().contains("for this machine")));
}

#[test]
fn the_way_to_ask_again_keeps_plan_mode_and_finds_an_odd_name_and_a_schema_is_not_forgotten() {
    let (world, _, on) = home();
    for (words, again) in [
        (&["chat", "--plan", "-m", "Tidy up"][..], "chat --plan -m /retry"),
        (&["chat", "--session=-x", "-m", "Hello"], "chat --session=-x -m /retry"),
    ] {
        let run = world.run(words);
        assert!(run.err.contains(&format!("`drawloom {again}`")), "{run:?}");
    }
    std::fs::write(world.path("here/s.json"), r#"{"type": "object"}"#).unwrap();
    let run = world.run(&["ask", "--schema", "s.json", "Invent"]);
    assert!(run.err.contains("ask it as before") && !run.err.contains("/retry`"), "{run:?}");
    on.store(true, Ordering::SeqCst);
    world.ok(&["chat", "--session=-x", "-m", "/retry"]);
}

#[test]
fn a_question_that_is_stopped_is_kept_and_the_way_to_ask_it_again_works() {
    let (world, near, on) = home();
    let silent = r#"{"deltas": ["Wet", "."], "delta_delay_ms": 60000}"#;
    for script in [silent, r#"{"fault": "hang"}"#] {
        std::fs::write(world.path("here/silent.jsonl"), script).unwrap();
        let command = world.command(&["--model", "script:silent.jsonl", "ask", "How wet is it?"]);
        let mut terminal = Terminal::of_width(with_terminal(&command), 200);
        terminal.shows("waiting for");
        terminal.types("\x03");
        assert_eq!(terminal.ended(), Some(130), "{}", terminal.contents());
        while terminal.listen() {}
        let screen = terminal.contents();
        let again = screen.split('`').find(|command| command.ends_with("-m /retry"));
        let again =
            again.unwrap_or_else(|| panic!("no way: {screen}")).replace("script:silent.jsonl", "box/m");
        on.store(true, Ordering::SeqCst);
        assert_eq!(world.ok(&again.split(' ').skip(1).collect::<Vec<_>>()), "Said.\n", "{screen}");
        assert!(asked_last(&near).contains("How wet is it?"));
        on.store(false, Ordering::SeqCst);
    }
    // A retry knows no schema.
    std::fs::write(world.path("here/s.json"), r#"{"type": "object"}"#).unwrap();
    let asked = ["--model", "script:silent.jsonl", "ask", "--schema", "s.json", "How wet is it?"];
    let mut terminal = Terminal::of_width(with_terminal(&world.command(&asked)), 200);
    terminal.shows("waiting for");
    terminal.types("\x03");
    assert_eq!(terminal.ended(), Some(130), "{}", terminal.contents());
    while terminal.listen() {}
    let screen = terminal.contents();
    assert!(screen.contains("ask it as before") && !screen.contains("/retry"), "{screen}");
}

#[test]
fn retry_asks_a_message_that_failed_and_gives_one_more_answer_to_another() {
    let (world, near, on) = home();
    assert_ne!(world.run(&["chat", "-m", "first"]).code, Some(0));
    assert_ne!(world.run(&["chat", "-m", "/retry"]).code, Some(0), "it fails again");
    on.store(true, Ordering::SeqCst);
    let (code, answer) = world.json(&["chat", "-m", "/retry"]);
    assert_eq!((code, &answer["text"]), (Some(0), &"Said.".into()), "{answer}");
    assert!(asked_last(&near).contains("first"));
    let (_, again) = world.json(&["chat", "-m", "/retry"]);
    assert_eq!(again["text"], "Said.");
    assert_ne!(again["node"], answer["node"]);
    let sent = asked_last(&near);
    assert_eq!(sent.matches("first").count(), 1, "{sent}");
    assert!(!sent.contains("Said."), "the answer beside it is not sent: {sent}");
    world.ok(&["chat", "-m", "next"]);
    assert_eq!(asked_last(&near).matches("Said.").count(), 1, "the conversation goes on at the new answer");
}

#[test]
fn a_message_that_was_left_out_can_be_taken_up_again() {
    let (world, near, on) = home();
    assert_ne!(world.run(&["chat", "-m", "first"]).code, Some(0));
    assert_ne!(world.run(&["chat", "-m", "second"]).code, Some(0));
    on.store(true, Ordering::SeqCst);
    // What is undone takes its exclusion with it.
    world.ok(&["chat", "-m", "/undo"]);
    world.ok(&["chat", "-m", "/retry"]);
    let sent = asked_last(&near);
    assert!(sent.contains("first") && !sent.contains("second"), "{sent}");
}

#[test]
fn there_must_be_something_to_ask_again() {
    let (world, near, _) = home();
    let run = world.run(&["chat", "-m", "/retry"]);
    assert!(run.code == Some(3) && run.err.contains("say something first"), "{run:?}");
    assert!(near.bodies().is_empty());
}

#[test]
fn a_question_without_an_answer_is_an_exchange_by_itself() {
    let (world, _near, on) = home();
    std::fs::write(world.path("here/note.txt"), "a heavy file").unwrap();
    let exchanges = || -> Vec<(String, Option<String>)> {
        let (_, log) = world.json(&["log"]);
        let of = |exchange: &Value, name: &str| exchange[name].as_str().map(str::to_owned);
        let all = log["exchanges"].as_array().unwrap().iter();
        all.map(|exchange| (of(exchange, "question").unwrap(), of(exchange, "answer"))).collect()
    };
    assert_ne!(world.run(&["chat", "-m", "first", "--file", "note.txt"]).code, Some(0));
    assert_ne!(world.run(&["chat", "-m", "second"]).code, Some(0));
    let unanswered = [("first".to_owned(), None), ("second".to_owned(), None)];
    assert_eq!(exchanges(), unanswered);
    on.store(true, Ordering::SeqCst);
    world.ok(&["chat", "-m", "third"]);
    let answered = ("third".to_owned(), Some("Said.".to_owned()));
    assert_eq!(exchanges(), [&unanswered[..], &[answered]].concat());
    let shown = world.ok(&["log", "-n", "2"]);
    assert!(!shown.contains("first") && shown.contains("> second\n\n(no answer)\n"), "{shown}");
}
