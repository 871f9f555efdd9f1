//! Turns that end behind calls of tools otherwise than with an answer: by a budget, a model that fails, Ctrl-C. What was done
//! stands, and a program is told of it (spec: agent §1 *Limits*, *Budgets*; cli §1).

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::exec::{exec, world};
use crate::headless::question;
use crate::server::{self, Server};
use crate::terminal::Terminal;
use crate::tools::{calls, nodes};
use crate::trust::with_terminal;
use crate::world::{World, text};

/// What is said where what was done is not to be done once more.
const GO_ON: &str = "what was done is kept; say how to go on";

fn write(path: &str, content: &str) -> Value {
    json!({"name": "write", "arguments": {"path": path, "content": content}})
}

/// The fields of what was done, in an answer and in an error alike.
fn done(said: &Value) -> (Vec<&str>, &Value, usize) {
    let calls = said["calls"].as_array().unwrap_or_else(|| panic!("{said}"));
    let ends = calls.iter().map(|call| call["status"].as_str().unwrap_or("none")).collect();
    (ends, &said["changed"], said["denied"].as_array().unwrap().len())
}

/// A model that writes files in its first answers, at a dollar for ten thousand tokens of its answers: each request may come
/// to $0.1, and comes to $0.0005.
fn dear(world: &World, budget: &str, limits: &str) -> Server {
    let server = Server::start(|path, body| {
        let results = body["messages"].as_array()?.iter().filter(|message| message["role"] == "tool").count();
        path.ends_with("/chat/completions").then(|| match ["a.txt", "b.txt"].get(results) {
            Some(file) => server::call(file, "I write.", "write", &json!({"path": file, "content": "a\n"})),
            None => server::chat("", "Done.", 1_000),
        })
    });
    world.write(
        "config.toml",
        &format!(
            "[budget]\n{budget}\n[limits]\n{limits}\n[agents.assistant]\ntools = [\"write\"]\n[providers.far]\n\
             base_url = \"{}\"\nplace = \"remote\"\n[models.\"far/m\"]\noutput_limit = 1000\nwindow = 32000\n\
             tools = true\nprice_input = 0\nprice_output = 100\n",
            server.base()
        ),
    );
    std::fs::create_dir_all(world.path("project")).unwrap();
    server
}

fn words<'a>(project: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["--workspace", project, "--model", "far/m", "chat", "-m", "Write it."], more].concat()
}

#[test]
fn a_budget_that_is_met_behind_a_call_ends_the_turn_as_a_limit_does() {
    for budget in ["turn = 0.1003", "day = 0.1003", "month = 0.1003"] {
        let world = World::new();
        let server = dear(&world, budget, "");
        let project = text(&world.path("project"));
        let (code, said) = world.json(&words(&project, &[]));
        assert_eq!((code, &said["finish"], said.get("error")), (Some(1), &json!("limit"), None), "{said}");
        let key = format!("budget.{}", budget.split(' ').next().unwrap());
        assert!(said["limit"].as_str().unwrap().contains(&format!("({key} sets it)")), "{said}");
        assert_eq!((&said["text"], &said["cost"]), (&json!("I write."), &json!(0.0005)), "{said}");
        let changed = json!([{"path": "a.txt", "added": 1, "removed": 0}]);
        assert_eq!(done(&said), (vec!["ok"], &changed, 0), "{said}");
        assert_eq!(server.bodies().len(), 1, "nothing else was sent");
        let plain = world.run(&words(&project, &[]));
        // Of the turn's budget another one has its own.
        let is_of_turn = key == "budget.turn";
        assert_eq!(plain.code, Some(if is_of_turn { 1 } else { 4 }), "{plain:?}");
        assert_eq!(plain.err.contains(GO_ON), is_of_turn, "{plain:?}");
    }
}

#[test]
fn whoever_is_asked_about_a_budget_is_not_waited_for_in_the_time_of_the_turn() {
    let world = World::new();
    let server = dear(&world, "turn = 0.1003", "turn_time = 2");
    let project = text(&world.path("project"));
    let mut chat = world.command(&words(&project, &["--wait", "60", "--json"]));
    let mut chat = chat.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let asked = question(&world, &mut chat);
    assert_eq!(asked["kind"], "budget", "{asked}");
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(2) {
        assert_eq!(question(&world, &mut chat)["id"], asked["id"], "it stands");
    }
    // The next answer calls a tool, for which the turn has time left.
    world.ok(&["approve", asked["short_id"].as_str().unwrap()]);
    let (code, said) = ended(chat);
    assert_eq!((code, &said["text"], &said["finish"]), (Some(0), &json!("Done."), &json!("stop")), "{said}");
    assert_eq!(server.bodies().len(), 3);
}

fn ended(chat: Child) -> (Option<i32>, Value) {
    let done = chat.wait_with_output().unwrap();
    let out = String::from_utf8(done.stdout).unwrap();
    let last = out.lines().last().unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&done.stderr)));
    (done.status.code(), serde_json::from_str(last).unwrap())
}

#[test]
fn what_was_done_before_a_model_failed_stands_beside_the_error() {
    let first = json!({"text": "I write.", "tool_calls": [write("a.txt", "a\nb\n"), write("AGENTS.md", "Be brief.\n")]});
    for (fault, code, part) in [
        (json!({"fault": "500"}), "server_unavailable", None),
        (json!({"deltas": ["Do", "ne"], "fault": "cut"}), "stream_cut", Some("Done")),
        (json!({"fault": "context_too_long"}), "context_too_long", None),
    ] {
        let world = world(&[first.clone(), fault]);
        let project = text(&world.path("project"));
        let (exit, said) = world.json(&["--workspace", &project, "chat", "-m", "Write it."]);
        let error = &said["error"];
        assert_eq!((exit, &error["code"]), (Some(5), &json!(code)), "{said}");
        let changed = json!([{"path": "a.txt", "added": 2, "removed": 0}]);
        assert_eq!(done(&said), (vec!["ok", "denied"], &changed, 1), "{said}");
        assert_eq!(said["denied"][0]["call"], said["calls"][1]["call"]);
        assert_eq!((&said["text"], &said["session"]), (&json!(part.unwrap_or("I write.")), &json!("main")));
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.ends_with(GO_ON) && !hint.contains("retry"), "{said}");
        // What was said, the answer and the results are sent with the next message.
        let nodes = nodes(&world);
        assert_eq!(nodes.iter().filter(|node| node["author"] == "write").count(), 2, "{nodes:?}");
        assert!(nodes.iter().any(|node| node["id"] == said["node"]), "{said}");
        assert!(nodes.iter().any(|node| node["id"] == said["said"] && node["excluded"] != true), "{said}");
    }
}

#[test]
fn whoever_comes_back_to_a_turn_without_an_answer_is_not_told_to_have_it_done_once_more() {
    for (lines, hint) in [
        (vec![calls(&json!([write("a.txt", "a\n")])), json!({"fault": "500"})], GO_ON),
        (vec![json!({"fault": "500"})], "/retry asks again"),
    ] {
        let world = world(&lines);
        let project = text(&world.path("project"));
        assert_eq!(world.run(&["--workspace", &project, "chat", "-m", "Write it."]).code, Some(5));
        let mut terminal = Terminal::start(with_terminal(&world.command(&["--workspace", &project, "chat"])));
        terminal.shows(&format!("(no answer: {hint})"));
    }
}

#[test]
fn a_turn_that_fails_before_any_call_says_that_it_did_nothing_and_how_to_ask_again() {
    let world = world(&[json!({"fault": "500"})]);
    let (exit, said) = world.json(&["chat", "-m", "Write it."]);
    assert_eq!((exit, &said["node"], &said["text"]), (Some(5), &Value::Null, &Value::Null), "{said}");
    assert_eq!(done(&said), (vec![], &json!([]), 0), "{said}");
    let hint = said["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("-m /retry") && hint.contains("sent without it"), "{said}");
}

#[test]
fn ctrl_c_while_a_command_runs_reports_what_was_done() {
    for form in ["--json", "--events"] {
        let line = "echo x > kept; touch begun; sleep 300";
        let world =
            world(&[calls(&json!([exec(line), exec("touch second")])), json!({"text": "Never said."})]);
        let project = text(&world.path("project"));
        let mut chat = world.command(&["--workspace", &project, "chat", "-m", "Do it.", form]);
        let mut chat =
            chat.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let began = Instant::now();
        while !world.path("project/begun").exists() {
            assert!(chat.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(60));
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&chat), Signal::INT).unwrap();
        let (code, said) = ended(chat);
        assert_eq!((code, &said["error"]["code"]), (Some(130), &json!("cancelled")), "{said}");
        assert_eq!(said["error"]["hint"], GO_ON, "{said}");
        let [call] = &said["calls"].as_array().unwrap()[..] else { panic!("{said}") };
        assert!(call["tool"] == "exec" && call["node"].is_string(), "{said}");
        let changed: Vec<&str> =
            said["changed"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
        assert_eq!(changed, ["begun", "kept"], "{said}");
        assert_eq!(said["event"] == "finished", form == "--events", "{said}");
    }
}

/// What runs beside a call that cannot be written down comes to its end, and has a result.
#[test]
fn a_call_that_cannot_be_begun_costs_no_result_of_those_beside_it() {
    let read = json!({"name": "read", "arguments": {"path": "src/main.rs"}});
    let world = world(&[calls(&json!([read, read])), json!({"text": "Read."})]);
    let words = ["--workspace", &text(&world.path("project")), "chat", "-m", "Read it."];
    let (code, said) = world.json(&words);
    assert_eq!((code, done(&said).0), (Some(0), vec!["ok", "ok"]), "a control: {said}");
    let store = rusqlite::Connection::open(world.path("home/loom.db")).unwrap();
    let refusing =
        "CREATE TRIGGER refusing BEFORE INSERT ON calls WHEN NEW.n = 1 BEGIN SELECT RAISE(ABORT, 'no'); END";
    store.execute_batch(refusing).unwrap();
    let (code, said) = world.json(&words);
    assert_ne!(code, Some(0), "{said}");
    assert_eq!(done(&said).0, ["ok", "none"], "{said}");
}
