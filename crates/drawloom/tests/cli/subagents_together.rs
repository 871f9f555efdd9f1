//! What subagents have together with the turn that began them: what was denied, and what may be used.

use std::process::Child;

use serde_json::{Value, json};

use crate::server::{self, Server};
use crate::subagents::{
    asks, begun, chat, chat_code, main_tree, nodes_of, of, of_calls, questions, say, spawn, states,
    subagents, world,
};
use crate::subagents_ended::at_a_price;
use crate::tools::calls;
use crate::world::World;

/// A turn whose only question is answered with a no: its events.
fn denied_once(world: &World) -> Vec<Value> {
    let chat = begun(world, &["--wait", "60", "--events"], "Be kind.");
    questions(world, 1);
    assert_eq!(chat_code(world, "/deny"), Some(0));
    let ended = chat.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let lines = String::from_utf8(ended.stdout).unwrap();
    assert!(!world.path("project/MEMORY.md").exists());
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn asked(events: &[Value]) -> usize {
    events.iter().filter(|event| event["event"] == "question").count()
}

const BEFORE: &str = "it was denied before in this turn";

#[test]
fn what_was_denied_is_asked_no_more_by_subagents_nor_once_they_are_done() {
    let lines = [
        calls(&asks()),
        calls(&json!([spawn("one", &json!({}))])),
        json!({"text": "Waiting."}),
        calls(&asks()),
        json!({"text": "So be it.", "expect": [BEFORE]}),
        of_calls("one", &asks()),
        of("one", json!({"text": "I may not.", "expect": [BEFORE]})),
    ];
    let events = denied_once(&world(&lines, ""));
    let done = events.last().unwrap();
    assert_eq!((asked(&events), done["text"].as_str()), (1, Some("So be it.")), "{done}");
}

#[test]
fn what_two_of_them_would_do_is_asked_once() {
    let lines = [
        calls(&json!([spawn("one", &json!({})), spawn("two", &json!({}))])),
        json!({"text": "Waiting."}),
        json!({"text": "Done."}),
        json!({"text": "Done."}),
        of_calls("one", &asks()),
        of("one", json!({"text": "I may not.", "expect": ["write was not run"]})),
        of_calls("two", &asks()),
        of("two", json!({"text": "Nor I.", "expect": ["write was not run"]})),
    ];
    let events = denied_once(&world(&lines, ""));
    assert_eq!(asked(&events), 1, "{events:?}");
}

#[test]
fn a_label_that_is_given_twice_has_a_number_behind_it() {
    let lines = [
        calls(&json!([spawn("same", &json!({})), spawn("same", &json!({}))])),
        json!({"text": "Waiting."}),
        json!({"text": "Done."}),
        json!({"text": "Done."}),
        of("same", json!({"text": "I looked."})),
        of("same 2", json!({"text": "So did I."})),
    ];
    let world = world(&lines, "");
    chat(&world, &[], "Have both look.");
    let found = subagents(&world);
    let mut labels: Vec<&str> = found.iter().map(|one| one["label"].as_str().unwrap()).collect();
    labels.sort_unstable();
    assert_eq!(labels, ["same", "same 2"], "{found:?}");
}

#[test]
fn tokens_of_subagents_are_those_of_the_turn_that_began_them() {
    let with = |mut line: Value, tokens: u64| {
        line["usage"] = json!({"input": tokens, "output": 1});
        line
    };
    let look = json!([{"name": "read", "arguments": {"path": "AGENTS.md"}}]);
    let lines = [
        with(calls(&json!([spawn("first", &json!({})), spawn("second", &json!({}))])), 10),
        with(json!({"text": "Waiting."}), 10),
        with(json!({"text": "Done."}), 10),
        with(of_calls("first", &look), 60_000),
        with(of("first", json!({"text": "I looked."})), 60_000),
        with(of_calls("second", &look), 10),
        with(of("second", json!({"text": "I looked."})), 10),
    ];
    let world = world(&lines, "[limits]\nsubagents = 1\nturn_tokens = 100000\n");
    chat(&world, &[], "Have both look.");
    let found = subagents(&world);
    let states: Vec<&str> = found.iter().map(|one| one["state"].as_str().unwrap()).collect();
    assert_eq!((states, &found[1]["model_calls"]), (vec!["done", "limit"], &json!(0)), "{found:?}");
    assert!(found[1]["why"].as_str().unwrap().contains("tokens were sent and received"), "{found:?}");
}

#[test]
fn what_one_below_another_spends_is_held_to_the_budget_of_both() {
    let server = Server::start(|path, body| {
        if !path.ends_with("/chat/completions") {
            return None;
        }
        let messages = body["messages"].to_string();
        let calls = body["messages"].as_array()?.iter().filter(|message| message["role"] == "tool").count();
        let is_of = |label: &str| messages.contains(&format!("\"Do the {label}.\""));
        let spawned = |label: &str, more: Value| {
            Some(server::call("s", "", "spawn", &spawn(label, &more)["arguments"]))
        };
        match calls {
            _ if is_of("inner") => {
                Some(server::call("l", "I looked.", "read", &json!({"path": format!("{calls}.md")})))
            }
            0 if is_of("outer") => spawned("inner", json!({})),
            0 => spawned("outer", json!({"budget": 0.6})),
            _ => Some(server::chat("", "Done.", 1_000)),
        }
    });
    let world = at_a_price(&server, "[limits]\nsubagent_depth = 2\n");
    let (code, done) = chat(&world, &[], "Go deep.");
    assert_eq!(code, Some(0), "{done}");
    let outer = subagents(&world).remove(0);
    let nodes = nodes_of(&world, outer["tree"].as_str().unwrap());
    let told = nodes.iter().find(|node| node["text"].as_str().unwrap().starts_with("[subagent inner, "));
    let told = told.unwrap_or_else(|| panic!("{nodes:?}"))["text"].as_str().unwrap();
    assert!(
        told.contains("not finished: a limit was reached") && told.contains("its budget is $0.6000"),
        "{told}"
    );
    // What the inner one left is too little for the outer one to go on.
    assert_eq!(outer["state"], json!("limit"), "{outer}");
    assert!(nodes_of(&world, &main_tree(&world)).len() > 3);
}

/// Two subagents are done while the turn that began them waits for an answer.
fn two_done(last: Value) -> (World, Child) {
    let lines = [
        calls(&json!([spawn("one", &json!({})), spawn("two", &json!({}))])),
        calls(&asks()),
        last,
        of("one", json!({"text": "I am the first."})),
        of("two", json!({"text": "I am the second."})),
    ];
    let world = world(&lines, "[limits]\nsteering = 1\n");
    let chat = begun(&world, &["--wait", "60"], "Have both done.");
    questions(&world, 1);
    let done = [("one", "done"), ("two", "done")].map(|(label, state)| (label.to_owned(), state.to_owned()));
    states(&world, |now| now == done);
    (world, chat)
}

fn both_are_told(text: &str) -> Value {
    json!({"text": text, "expect": ["[subagent one, ", "I am the first.", "[subagent two, ", "I am the second."]})
}

/// Nodes of what subagents came to.
fn told(world: &World) -> usize {
    let nodes = nodes_of(world, &main_tree(world));
    nodes.iter().filter(|node| node["author"].as_str().unwrap().starts_with("subagent/")).count()
}

#[test]
fn results_are_told_however_few_messages_may_wait() {
    let (world, chat) = two_done(both_are_told("Both are done."));
    assert_eq!(chat_code(&world, "/deny"), Some(0));
    let ended = chat.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(ended.stdout).unwrap().trim(), "Both are done.");
    assert_eq!(told(&world), 2);
}

#[test]
fn results_that_a_kill_kept_from_being_told_are_told_in_the_next_turn() {
    let (world, mut killed) = two_done(json!({"text": "None."}));
    killed.kill().unwrap();
    killed.wait().unwrap();
    // One that was quick was told with the results of the calls that began them.
    assert!(told(&world) < 2);
    say(&world, &[both_are_told("I see.")]);
    for text in ["How is it?", "Is that all?"] {
        let (code, done) = chat(&world, &[], text);
        assert_eq!((code, done["text"].as_str()), (Some(0), Some("I see.")), "{done}");
        assert_eq!(told(&world), 2);
    }
}

#[test]
fn of_a_task_that_is_forgotten_while_it_waits_nothing_is_kept() {
    let task = "canary-9f8e7d6c5b4a3210 sings";
    let lines = [
        calls(&json!([spawn("first", &json!({})), {"name": "spawn", "arguments": {"task": task}}])),
        json!({"text": "Waiting."}),
        json!({"text": "One is done."}),
        of_calls("first", &asks()),
        of("first", json!({"text": "Done."})),
        of(task, json!({"text": "It sang."})),
    ];
    let world = world(&lines, "[limits]\nsubagents = 1\n");
    let chat = begun(&world, &["--wait", "60"], "Have both done.");
    questions(&world, 1);
    world.ok(&["forget", "--text", task, "--yes", "--yes"]);
    assert_eq!(chat_code(&world, "/deny"), Some(0));
    assert!(chat.wait_with_output().unwrap().status.success());
    let found = subagents(&world);
    let [first, second] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&first["state"], &second["state"]), (&json!("done"), &json!("stopped")), "{found:?}");
    assert_eq!(second["label"], json!("…"));
    let again = world.run(&["forget", "--text", task, "--yes", "--yes"]);
    assert_eq!(again.code, Some(3), "it is nowhere: {again:?}");
}
