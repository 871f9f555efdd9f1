//! What an answer, an edit or a setting must not lose: between two processes, with a signal, with a pipe.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use serde_json::Value;

use crate::server::{self, Server};
use crate::terminal::Terminal;
use crate::world::World;

/// A home whose server answers while the switch is on.
fn home() -> (World, Server, Arc<AtomicBool>) {
    let world = World::new();
    let on = Arc::new(AtomicBool::new(true));
    let is_on = Arc::clone(&on);
    let near = Server::start(move |path, _| {
        (path.ends_with("/chat/completions") && is_on.load(Ordering::SeqCst))
            .then(|| server::chat("", "Said.", 10))
    });
    let provider = format!(
        "[providers.box]\nbase_url = \"{}\"\nkind = \"ollama\"\nwindow = 32000\n[model]\ndefault = \"box/m\"\n",
        near.base()
    );
    world.write("config.toml", &provider);
    (world, near, on)
}

fn sent(near: &Server) -> String {
    near.bodies().pop().unwrap()["messages"].to_string()
}

/// The nodes of the conversation, oldest first.
fn nodes(world: &World) -> (String, Vec<Value>) {
    let tree = world.json(&["sessions", "show", "main"]).1["tree"].as_str().unwrap().to_owned();
    let (_, shown) = world.json(&["tree", "show", &tree, "--all"]);
    (tree, shown["nodes"].as_array().unwrap().clone())
}

#[test]
fn what_was_appended_and_got_no_answer_is_left_out_by_name_and_can_be_sent_along() {
    let (world, near, _) = home();
    world.ok(&["chat", "-m", "one"]);
    let (tree, _) = nodes(&world);
    let appended = world.ok(&["tree", "append", &tree, "A heavy context."]).trim().to_owned();
    let run = world.run(&["chat", "-m", "two"]);
    assert!(run.err.contains("tree include") && run.err.contains(&format!("{appended}` sends")), "{run:?}");
    assert!(!sent(&near).contains("heavy"));
    world.ok(&["tree", "include", &tree, &appended]);
    let run = world.run(&["chat", "-m", "three"]);
    assert!(sent(&near).contains("heavy") && !run.err.contains("left out"), "{run:?}");
}

#[test]
fn a_file_goes_along_again_with_its_message() {
    let (world, near, on) = home();
    std::fs::write(world.path("here/note.txt"), "a heavy file").unwrap();
    on.store(false, Ordering::SeqCst);
    assert_ne!(world.run(&["chat", "-m", "first", "--file", "note.txt"]).code, Some(0));
    on.store(true, Ordering::SeqCst);
    world.ok(&["chat", "-m", "second"]);
    assert!(!sent(&near).contains("a heavy file"));
    let (_, all) = nodes(&world);
    let first = all.iter().find(|node| node["text"] == "first").unwrap();
    world.ok(&["chat", "-m", &format!("/edit @{} first, changed", first["short_id"].as_str().unwrap())]);
    let asked = sent(&near);
    assert!(asked.contains("first, changed") && asked.contains("a heavy file"), "{asked}");
    assert!(!asked.contains("second"), "the control: it stands beside: {asked}");
}

#[test]
fn what_is_piped_goes_along_with_a_message_that_waits_for_its_turn() {
    let (world, near, _) = home();
    let run = world.fed(&["chat", "-m", "/queue review"], b"let x = 1;");
    assert_eq!(run.code, Some(0), "{run:?}");
    let asked = sent(&near);
    assert!(asked.contains("review") && asked.contains("let x = 1;"), "{asked}");
}

#[test]
fn settings_of_a_session_do_not_go_along_into_a_new_one() {
    let (world, near, _) = home();
    let mut terminal = Terminal::start(world.command(&["chat", "--system", "Speak like a boatman."]));
    terminal.says("hello\r");
    assert!(sent(&near).contains("boatman"));
    terminal.says("/set temperature=0.5\r");
    terminal.says("/new other\r");
    terminal.says("hello\r");
    let body = near.bodies().pop().unwrap();
    assert!(!body.to_string().contains("boatman") && body["temperature"].is_null(), "{body}");
    terminal.says("/switch main\r");
    terminal.says("again\r");
    let body = near.bodies().pop().unwrap();
    assert!(body.to_string().contains("boatman") && body["temperature"] == 0.5, "{body}");
    terminal.types("/exit\r");
    assert_eq!(terminal.ended(), Some(0));
}

/// A script whose third answer never comes.
fn hanging(world: &World) -> String {
    let lines = [r#"{"text": "One."}"#, r#"{"text": "Two."}"#, r#"{"fault": "hang"}"#];
    std::fs::write(world.path("answers.jsonl"), lines.join("\n")).unwrap();
    format!("script:{}", world.path("answers.jsonl").display())
}

#[test]
fn a_signal_ends_a_conversation_that_would_ask_which_answer_is_meant() {
    let world = World::new();
    let model = hanging(&world);
    let mut terminal = Terminal::start(world.command(&["--model", &model, "chat"]));
    terminal.says("Go on?\r");
    terminal.types("/regenerate -n 3\r");
    terminal.shows("answer 2 of 3:");
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.ended(), Some(143));
    assert!(!terminal.contents().contains("which one"), "{}", terminal.contents());
}

#[test]
fn the_one_answer_that_came_of_several_is_printed() {
    let world = World::new();
    std::fs::write(world.path("one.jsonl"), r#"{"text": "Only."}"#).unwrap();
    let model = format!("script:{}", world.path("one.jsonl").display());
    world.ok(&["--model", "script:echo", "chat", "-m", "Go on?"]);
    let run = world.run(&["--model", &model, "chat", "-m", "/regenerate -n 2"]);
    assert_eq!((run.code, run.out.trim()), (Some(0), "Only."), "{run:?}");
    assert!(run.err.contains("one of the answers failed"), "{run:?}");
}

#[test]
fn the_last_exchange_is_that_which_was_said_last() {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    world.ok(&["chat", "--session", "older", "-m", "the older one"]);
    world.ok(&["chat", "--session", "newer", "-m", "the newer one"]);
    // Not a word is said by it.
    let tree = world.json(&["sessions", "show", "older"]).1["tree"].as_str().unwrap().to_owned();
    world.ok(&["tree", "rename", &tree, "Another title"]);
    let (_, log) = world.json(&["log", "-n", "1"]);
    assert_eq!(log["exchanges"][0]["question"], "the newer one", "{log}");
}

#[test]
fn where_nothing_can_be_drawn_a_copy_is_printed() {
    let world = World::new();
    let mut command = world.command(&["--model", "script:echo", "chat"]);
    command.env("TERM", "dumb");
    let mut terminal = Terminal::start(command);
    terminal.says("A word.\r");
    terminal.says("/copy\r");
    assert!(!terminal.wrote(b"\x1b]52"), "{}", terminal.contents());
    assert_eq!(terminal.contents().matches("\nA word.").count(), 2, "{}", terminal.contents());
    terminal.types("/exit\r");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn one_node_in_an_editor_takes_back_nothing_that_others_did() {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let (_, shown) = world.json(&["tree", "show", "Tale"]);
    let node = shown["nodes"][1]["short_id"].as_str().unwrap().to_owned();
    let edited = |editor: &str| {
        let mut command = world.command(&["tree", "edit", "Tale", &node]);
        command.env("EDITOR", editor);
        let done = command.output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    world.ok(&["tree", "draft", "Tale", "It poured.", "--at", &node]);
    assert_eq!(edited("true").0, Some(0));
    assert_eq!(world.ok(&["tree", "text", "Tale"]), "It poured.", "what was typed before stays");
    let program = crate::program::program();
    let meanwhile = format!(
        "sh -c '{} --home {} tree edit Tale {node} --text Snow. >/dev/null; sed -i s/poured/hailed/ \"$1\"' sh",
        program.display(),
        world.home().display()
    );
    let (code, said) = edited(&meanwhile);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("changed meanwhile"), "{said}");
    assert_eq!(world.ok(&["tree", "text", "Tale"]), "Snow.");
    let kept = std::fs::read_dir(world.home().join("edits")).unwrap().map(|file| file.unwrap().path());
    let kept: Vec<_> = kept.filter(|file| said.contains(file.to_str().unwrap())).collect();
    let holds = |file: &std::path::PathBuf| std::fs::read_to_string(file).unwrap().contains("It hailed.");
    assert!(kept.iter().any(holds), "{kept:?}");
}

#[test]
fn line_ends_of_another_system_are_no_change() {
    let world = World::new();
    std::fs::write(world.path("here/tale.md"), "It rained.\r\n\r\nIt poured.").unwrap();
    world.ok(&["tree", "new", "--title", "Tale", "--file", "tale.md"]);
    let edited = |editor: &str| {
        let mut command = world.command(&["tree", "edit", "Tale"]);
        command.env("EDITOR", editor);
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    };
    // An editor that gives every line the same end.
    for editor in ["sed -i 's/\\r*$/\\r/'", "sed -i 's/\\r*$//'"] {
        assert_eq!(edited(editor), "nothing was changed\n", "{editor}");
    }
    assert_eq!(world.ok(&["tree", "text", "Tale"]), "It rained.\r\n\r\nIt poured.");
}

#[test]
fn settings_that_cannot_be_read_hold_as_they_were_for_what_reads() {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n[limits]\nshow_all = 2\n");
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    world.ok(&["tree", "generate", "Tale"]);
    let refused = |world: &World| {
        let run = world.run(&["tree", "show", "Tale", "--all"]);
        (run.code, run.err)
    };
    assert!(refused(&world).1.contains("limits.show_all"), "{:?}", refused(&world));
    world.write("config.toml", "[model\n");
    let (code, said) = refused(&world);
    assert!(
        said.contains("limits.show_all") && said.contains("what it said before holds"),
        "{code:?} {said}"
    );
    assert_eq!(world.run(&["tree", "append", "Tale", " x"]).code, Some(2), "what writes waits for its owner");
    std::fs::remove_file(world.home().join("cache/config.toml")).unwrap();
    assert!(!refused(&world).1.contains("limits.show_all"), "the control");
}

#[test]
fn a_value_that_does_not_fit_holds_as_it_was_for_what_reads() {
    let world = World::new();
    world.write("config.toml", "[budget]\nday = 3\n");
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    for wrong in ["[budget]\nday = \"x\"\n", "[budget]\nday = { x = 1 }\n", "[budget\n"] {
        world.write("config.toml", wrong);
        let run = world.run(&["cost"]);
        assert!(run.code == Some(0) && run.out.contains("of $3.00"), "{wrong}: {run:?}");
        assert!(run.err.contains("what it said before holds") && run.err.contains("config.toml"), "{run:?}");
        assert_eq!(
            world.run(&["tree", "append", "Tale", " x"]).code,
            Some(2),
            "what writes waits for its owner"
        );
    }
    std::fs::remove_file(world.home().join("cache/config.toml")).unwrap();
    assert!(world.run(&["cost"]).out.contains("of $5.00"), "the control");
}

#[test]
fn siblings_stand_in_the_order_in_which_they_were_asked_for() {
    let world = World::new();
    // The first takes longest.
    let lines = [
        r#"{"deltas": ["one", " and", " more"], "delta_delay_ms": 120}"#,
        r#"{"text": "two"}"#,
        r#"{"text": "three"}"#,
    ];
    std::fs::write(world.path("three.jsonl"), lines.join("\n")).unwrap();
    let model = format!("script:{}", world.path("three.jsonl").display());
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    world.ok(&["--model", &model, "tree", "generate", "Tale", "-n", "3"]);
    let (_, siblings) = world.json(&["tree", "siblings", "Tale"]);
    let texts = siblings["nodes"].as_array().unwrap().iter().map(|node| node["text"].as_str().unwrap());
    assert_eq!(texts.collect::<Vec<_>>(), ["one and more", "two", "three"]);
    assert!(world.ok(&["tree", "text", "Tale"]).ends_with("one and more"), "the first is where it goes on");
}
