//! Questions of running work, answered from another process (spec: cli §2 `approvals`, agent §1 *Budgets*).

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::replaying::{Server, server};
use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::world::World;

/// A server each of whose requests is over the day's budget.
fn dear(world: &World) -> Server {
    let server = server();
    world.write(
        "config.toml",
        &format!(
            "[budget]\nturn = 10\nday = 0.05\n[providers.told]\nbase_url = \"http://127.0.0.1:{}\"\n\
             place = \"remote\"\ndialect = \"anthropic_messages\"\n\
             [models.\"told/m\"]\noutput_limit = 1000\nprice_input = 0\nprice_output = 100\n",
            server.port
        ),
    );
    server
}

/// A conversation that has come to the question.
fn asked(world: &World) -> Terminal {
    let command = world.command(&["--model", "told/m", "chat", "--color", "never"]);
    let mut terminal = Terminal::start(with_terminal(&command));
    terminal.at_prompt();
    terminal.types("hi\r");
    terminal.shows("today (UTC)? (or `drawloom approve");
    terminal
}

fn open(world: &World) -> Vec<Value> {
    world.json(&["approvals", "list"]).1["approvals"].as_array().unwrap().clone()
}

#[test]
fn a_question_is_answered_with_yes_from_another_process() {
    let world = World::new();
    let server = dear(&world);
    let mut terminal = asked(&world);
    let found = open(&world);
    assert_eq!(found.len(), 1, "{found:?}");
    let question = &found[0];
    assert_eq!((&question["kind"], &question["session"]), (&"budget".into(), &"main".into()));
    assert_eq!(question["answers"], serde_json::json!(["yes"]));
    let id = question["short_id"].as_str().unwrap().to_owned();
    let shown = world.ok(&["approvals", "list"]);
    assert!(shown.contains(&id) && shown.contains("session main"), "{shown}");
    let wide = crate::narrow::too_wide(&world, &["approvals", "list"]);
    assert!(wide.is_empty(), "{wide:#?}");

    let wrong = world.run(&["approve", &id, "--answer", "maybe"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("it takes yes"), "{wrong:?}");
    assert!(server.asked.lock().unwrap().is_empty(), "it waits");
    let short = world.run(&["approve", &id[..3]]);
    assert!(short.code == Some(3) && short.err.contains("at least four characters"), "{short:?}");
    let done = world.ok(&["approve", &id[..4]]);
    assert!(done.starts_with("approved (process ") && done.contains("this request may cost up to"), "{done}");
    terminal.shows("approved by process");
    terminal.shows("from afar");
    terminal.at_prompt();

    let second = world.run(&["deny", &id]);
    assert_eq!(second.code, Some(2), "{second:?}");
    assert!(second.err.contains("it was approved by process"), "{second:?}");
    assert!(open(&world).is_empty());
    assert_eq!(world.run(&["approve", "zzzz"]).code, Some(3));
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn what_waits_in_the_home_of_another_user_is_listed() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new();
    let _server = dear(&world);
    let mut terminal = asked(&world);
    let owned = std::process::Command::new("chown").args(["-R", "65534:65534"]).arg(world.home()).status();
    assert!(owned.unwrap().success());
    let run = world.run(&["approvals", "list"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("belongs to uid 65534") && run.out.contains("session main"), "{run:?}");
    terminal.types("\u{3}");
    terminal.at_prompt();
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn a_question_is_answered_with_no_from_another_process() {
    let world = World::new();
    let server = dear(&world);
    let mut terminal = asked(&world);
    let id = open(&world)[0]["id"].as_str().unwrap().to_owned();
    world.ok(&["deny", &id, "--reason", "not today"]);
    terminal.shows("(drawloom deny): not today");
    terminal.shows("error: this request may cost up to $0.1");
    assert!(terminal.contents().contains("; the limit of a day is $0.05"), "{}", terminal.contents());
    terminal.at_prompt();
    assert!(server.asked.lock().unwrap().is_empty());
    let (_, session) = world.json(&["sessions", "show", "main"]);
    let (_, shown) = world.json(&["tree", "show", session["tree"].as_str().unwrap()]);
    let said = shown["nodes"].as_array().unwrap().iter().find(|node| node["text"] == "hi").unwrap();
    let remark = said["annotations"][0]["text"].as_str().unwrap();
    assert!(remark.starts_with("this request may cost up to $0.1"), "{remark}");
    assert!(remark.contains("? denied by process ") && remark.ends_with(": not today"), "{remark}");
    // The control: a yes the next time.
    terminal.types("hi again\r");
    terminal.until("the second question", |terminal| {
        terminal.contents().matches("today (UTC)? (or").count() == 2
    });
    world.ok(&["approve", open(&world)[0]["short_id"].as_str().unwrap()]);
    terminal.shows("from afar");
    terminal.at_prompt();
    assert!(open(&world).is_empty());
}

#[test]
fn a_question_about_a_document_names_it_and_ctrl_c_cancels_it() {
    let world = World::new();
    let _server = dear(&world);
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained."]);
    let command = world.command(&["--model", "told/m", "tree", "generate", "Rain", "--color", "never"]);
    let mut terminal = Terminal::start(with_terminal(&command));
    terminal.shows("today (UTC)? (or `drawloom approve");
    let shown = world.ok(&["approvals", "list"]);
    assert!(shown.contains("document Rain, process "), "{shown}");
    terminal.signal(Signal::INT);
    terminal.shows("cancelled by you");
    assert_eq!(terminal.ended(), Some(130));
    assert!(open(&world).is_empty());
}

#[test]
fn a_question_of_a_process_that_is_gone_is_denied() {
    let world = World::new();
    let _server = dear(&world);
    let terminal = asked(&world);
    let question = open(&world).remove(0);
    let asker = question["asker"].as_str().unwrap();
    let pid: i32 = asker.split(' ').nth(1).unwrap().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    drop(terminal);
    let late = world.run(&["approve", question["short_id"].as_str().unwrap()]);
    assert_eq!(late.code, Some(2), "{late:?}");
    assert!(late.err.contains("it was denied by the end of its process"), "{late:?}");
    assert!(open(&world).is_empty());
}

#[test]
fn where_nobody_can_answer_it_is_denied_at_once_and_nobody_is_asked() {
    let world = World::new();
    let server = dear(&world);
    let run = world.run(&["--model", "told/m", "chat", "-m", "hi"]);
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(server.asked.lock().unwrap().is_empty() && open(&world).is_empty());
    assert!(!run.err.contains("leaves this machine"), "nothing left it: {run:?}");
    world.write("config.toml", &world.read("config.toml").replace("day = 0.05", "day = 10"));
    for is_told in [true, false] {
        let run = world.run(&["--model", "told/m", "chat", "-m", "hi"]);
        assert_eq!((run.code, run.err.contains("leaves this machine")), (Some(0), is_told), "{run:?}");
    }
}

#[test]
fn what_is_neither_yes_nor_no_leaves_a_question_open_and_a_no_is_said() {
    let world = World::new();
    let server = dear(&world);
    let mut terminal = asked(&world);
    terminal.shows("[y/N, or n and why]");
    terminal.types("hmm\n");
    terminal.shows("answer [y/N, or n and why]");
    assert_eq!(open(&world).len(), 1, "it is no answer");
    terminal.types("n\n");
    terminal.shows("denied");
    terminal.shows("error: this request may cost up to");
    terminal.at_prompt();
    assert!(open(&world).is_empty() && server.asked.lock().unwrap().is_empty());
}

#[test]
fn a_question_is_answered_by_a_slash_command_of_a_person_and_by_no_other_text() {
    let world = World::new();
    let server = dear(&world);
    let mut terminal = asked(&world);
    let id = open(&world)[0]["short_id"].as_str().unwrap().to_owned();
    // What comes from standard input is a text, whatever it looks like.
    let echo = ["--model", "script:echo", "chat", "--session", "other", "-m", "-"];
    for text in ["/approve".to_owned(), format!("/approve {id}"), "/deny".to_owned()] {
        assert_eq!(world.fed(&echo, text.as_bytes()).out.trim_end(), text);
    }
    // Nor are one question, an attached file, the text of a tree, and what a model answers, which is each of them.
    let line = format!("/approve {id}");
    world.write("note.md", &line);
    let note = world.home().join("note.md").display().to_string();
    let echo = ["--model", "script:echo"];
    for words in [
        &["ask", line.as_str()][..],
        &["ask", "Look.", "--file", &note],
        &["chat", "--session", "other", "--file", &note, "-m", "Look."],
        &["chat", "--session", "other", "--system", &line, "-m", "Look."],
        &["tree", "new", "--title", "Tale", "--text", &line],
        &["tree", "generate", "Tale"],
    ] {
        world.ok(&[&echo, words].concat());
    }
    assert_eq!(open(&world).len(), 1, "nobody answered");
    // Without an id it is the question of the session.
    let missing = world.run(&["chat", "--session", "other", "-m", "/approve"]);
    assert_eq!(missing.code, Some(3), "{missing:?}");
    assert!(server.asked.lock().unwrap().is_empty());
    world.ok(&["chat", "-m", "/approve"]);
    terminal.shows("approved by process");
    terminal.shows("from afar");
    terminal.at_prompt();

    terminal.types("hi again\r");
    terminal.until("the second question", |terminal| {
        terminal.contents().matches("(or `drawloom approve").count() == 2
    });
    world.ok(&["chat", "-m", "/deny not today"]);
    terminal.shows("denied by process");
    terminal.at_prompt();
    terminal.types("and again\r");
    terminal.until("the third question", |terminal| {
        terminal.contents().matches("(or `drawloom approve").count() == 3
    });
    let id = open(&world)[0]["short_id"].as_str().unwrap().to_owned();
    world.ok(&["chat", "--session", "other", "-m", &format!("/approve {id}")]);
    terminal.until("the second answer", |terminal| terminal.contents().matches("from afar").count() == 2);
    terminal.at_prompt();
    assert!(open(&world).is_empty());
}
