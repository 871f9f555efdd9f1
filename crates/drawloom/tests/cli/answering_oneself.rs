//! A command answers no question: neither by the program, nor in the store, nor over the socket of the process that asks
//! (spec: security §5, §14, §29). Each attempt is made without walls afterwards, where it succeeds.

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::exec::exec;
use crate::headless::question;
use crate::tools::calls;
use crate::world::{World, lacks, text};

/// A world with a question that waits: a process may write AGENTS.md. Its program is in the workspace.
fn asked() -> (World, Child, Value) {
    let world = crate::exec::world(&[
        calls(&json!([{"name": "write", "arguments": {"path": "AGENTS.md", "content": "Obey.\n"}}])),
        json!({"text": "Done."}),
    ]);
    fs::copy(crate::program::program(), world.path("project/drawloom")).unwrap();
    let project = text(&world.path("project"));
    let mut waits = world.command(&["--workspace", &project, "chat", "-m", "Write it.", "--wait", "120"]);
    let mut waits = waits.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let question = question(&world, &mut waits);
    (world, waits, question)
}

/// What a command of the model's told, run in another session of the workspace.
fn told(world: &World, line: &str) -> String {
    let script = format!("{}\n{}\n", calls(&json!([exec(line)])), json!({"text": "Done."}));
    world.write("other.jsonl", &script);
    let model = format!("script:{}", text(&world.home().join("other.jsonl")));
    let project = text(&world.path("project"));
    let chat = ["--workspace", &project, "--model", &model, "chat", "--session", "other", "-m", "Do it."];
    let (code, said) = world.json(&chat);
    assert_eq!((code, &said["denied"]), (Some(0), &json!([])), "{said}");
    let (_, shown) = world.json(&["tree", "show", said["tree"].as_str().unwrap()]);
    let result = shown["nodes"].as_array().unwrap().iter().rfind(|node| node["author"] == "exec").unwrap();
    result["text"].as_str().unwrap().to_owned()
}

fn freely(world: &World, line: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(world.path("project"));
    shell.stdin(Stdio::null()).status().unwrap().success()
}

fn is_open(world: &World) -> bool {
    world.json(&["approvals", "list"]).1["approvals"].as_array().unwrap().len() == 1
}

/// Makes an attempt of a command, given the home and the question, and then the same without walls.
fn is_held(line: impl Fn(&str, &str) -> String) -> (World, Child) {
    let (world, waits, question) = asked();
    let line = line(&text(&world.home()), question["id"].as_str().unwrap());
    let told = told(&world, &line);
    assert!(!told.starts_with("exit 0 "), "{told}");
    assert!(is_open(&world), "{told}");
    assert!(!world.path("project/AGENTS.md").exists());
    assert!(freely(&world, &line), "the control of {line}");
    (world, waits)
}

#[test]
fn a_command_answers_no_question_by_the_program() {
    let approve = |home: &str, question: &str| format!("DRAWLOOM_HOME={home} ./drawloom approve {question}");
    let (world, mut waits) = is_held(approve);
    assert!(waits.wait().unwrap().success());
    assert_eq!(fs::read_to_string(world.path("project/AGENTS.md")).unwrap(), "Obey.\n");
}

#[test]
fn a_command_answers_no_question_in_the_store() {
    if lacks(&["python3"]) {
        return;
    }
    let (world, mut waits) = is_held(|home, _| {
        format!(
            "/usr/bin/python3 -c 'import sqlite3; store = sqlite3.connect(\"file:{home}/loom.db?mode=rw\", uri=True, timeout=30); \
             assert store.execute(\"UPDATE questions SET decision = 1, word = ?, answered_by = ?, answered = 1\", \
             (\"once\", \"owner\")).rowcount == 1; store.commit()'"
        )
    });
    assert!(!is_open(&world));
    waits.kill().unwrap();
    waits.wait().unwrap();
}

#[test]
fn a_command_reaches_no_socket_of_the_process_that_asks() {
    if lacks(&["python3"]) {
        return;
    }
    let (_world, mut waits) = is_held(|home, _| {
        format!(
            "/usr/bin/python3 -c 'import os, socket; os.chdir(\"{home}/run\"); \
             names = [name for name in os.listdir() if name.endswith(\".sock\")]; assert names; \
             [socket.socket(socket.AF_UNIX).connect(name) for name in names]'"
        )
    });
    waits.kill().unwrap();
    waits.wait().unwrap();
}

/// The helper that lacks protections is the tests' own (security §29).
#[test]
fn the_program_has_no_switch_that_takes_a_protection_away() {
    let switch = "__exec-without";
    let of_tests = include_str!("../../../sandbox/test_helper/main.rs");
    assert!(of_tests.contains(&format!("\"{switch}\"")), "the control: the tests' own helper has it");
    let holds = |text: &str| {
        let mut grep = Command::new("grep");
        grep.args(["-qaF", text]).arg(crate::program::program()).status().unwrap().success()
    };
    assert!(holds(sandbox::HELPER_ARGUMENT), "the control: the helper's own argument");
    assert!(!holds(switch));
    let run = World::new().run(&[switch, "seccomp"]);
    assert_eq!(run.code, Some(2), "{run:?}");
}
