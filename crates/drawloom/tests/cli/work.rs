//! Work with trees and models through the program: one home, one process after another.

use std::io::Read;
use std::process::Child;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::{get, post};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::files::ended;
use crate::world::{Run, World, heeds_ctrl_c, piped, text};

#[test]
fn what_one_process_writes_the_next_one_reads() {
    let world = World::new();
    let (_, made) = world.json(&["tree", "new", "--title", "Story", "--text", "Once upon a time"]);
    world.ok(&["tree", "append", "Story", " there was a loom."]);
    world.ok(&["--model", "script:echo", "tree", "generate", "Story", "-n", "2"]);
    assert!(
        world
            .ok(&["tree", "text", made["tree"].as_str().unwrap()])
            .starts_with("Once upon a time there was a loom.")
    );
    let list = world.ok(&["tree", "list"]);
    assert!(list.contains("document  3 passages  Story"), "{list}");
    let undone = world.ok(&["tree", "undo", "Story"]);
    assert!(
        undone.starts_with("undone: ") && undone.contains("“echo ") && !undone.contains("operation"),
        "{undone}"
    );
    let redone = world.ok(&["tree", "redo", "Story"]);
    assert!(redone.starts_with("redone: ") && redone.contains("“echo "), "{redone}");
    world.ok(&["tree", "undo", "Story"]);
    assert_eq!(world.ok(&["tree", "text", "Story"]), "Once upon a time there was a loom.");
}

/// A process whose model has begun to answer `x` and says no more.
fn hanging(world: &World) -> Child {
    let script = world.path("hang.jsonl");
    std::fs::write(&script, "{\"text\": \" upon a time\", \"fault\": \"hang\"}\n").unwrap();
    let model = format!("script:{}", text(&script));
    let mut child = piped(&mut world.command(&["--verbose", "--model", &model, "tree", "generate", "x"]));
    // What is shown was kept before.
    let mut shown = Vec::new();
    let err = child.stderr.as_mut().unwrap();
    while !String::from_utf8_lossy(&shown).contains(" upon a") {
        let mut byte = [0];
        err.read_exact(&mut byte).unwrap();
        shown.push(byte[0]);
    }
    child
}

#[test]
fn ctrl_c_keeps_what_was_received_and_exits_130() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "x", "--text", "Once"]);
    let child = hanging(&world);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let run: Run = child.wait_with_output().unwrap().into();
    assert_eq!(run.code, Some(130), "{run:?}");
    assert!(world.home().join("run").read_dir().unwrap().next().is_none(), "the instance ended in order");
    assert!(world.ok(&["tree", "show", "x", "--all"]).contains(" upon a"));
}

#[test]
fn what_a_killed_process_had_received_is_kept_by_the_next() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "x", "--text", "Once"]);
    let mut child = hanging(&world);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(world.home().join("run").read_dir().unwrap().next().is_some(), "control: it left its files");
    let run = world.run(&["tree", "show", "x", "--all"]);
    assert!(run.err.contains("an answer that was cut off is kept"), "{run:?}");
    assert!(run.out.contains(" upon a") && run.out.contains("interrupted"), "{run:?}");
    assert!(world.home().join("run").read_dir().unwrap().next().is_none());
}

#[test]
fn an_end_of_an_answer_that_cannot_be_read_is_logged_and_the_answer_kept() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "x", "--text", "Once"]);
    let mut child = hanging(&world);
    child.kill().unwrap();
    child.wait().unwrap();
    let spool = world.home().join("spool").read_dir().unwrap().next().unwrap().unwrap().path();
    let received = std::fs::read(&spool).unwrap();
    let (header, body) = received.split_at(received.iter().position(|byte| *byte == b'\n').unwrap());
    let mut header: Value = serde_json::from_slice(header).unwrap();
    header["stops"] = 7.into();
    std::fs::write(&spool, [header.to_string().as_bytes(), body].concat()).unwrap();
    let run = world.run(&["tree", "show", "x", "--all"]);
    let generation = header["generation"].as_str().unwrap();
    let logged = run.err.lines().find(|line| line.starts_with("warn "));
    assert!(logged.is_some_and(|line| line.contains(generation) && line.contains("stops")), "{run:?}");
    assert!(run.out.contains(" upon a") && run.out.contains("interrupted"), "{run:?}");
}

#[test]
fn ctrl_c_ends_a_wait_for_input() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "x"]);
    let appending = ["tree", "append", "x", "-"];
    let forms = [(appending, None), (appending, Some("--json")), (["--quiet", "chat", "-m", "-"], None)];
    for (command, form) in forms {
        let arguments = command.into_iter().chain(form).collect::<Vec<_>>();
        let mut child = piped(world.command(&arguments).stdin(Stdio::piped()));
        // Until it is closed, which waiting for the output does.
        let input = child.stdin.take();
        while !heeds_ctrl_c(&child) {
            assert_eq!(child.try_wait().unwrap(), None, "it waits");
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let run = ended(child, "Ctrl-C changes nothing");
        assert_eq!(run.code, Some(130), "{run:?}");
        match form {
            None => assert_eq!(run.out, ""),
            Some(_) => {
                let said: Value = serde_json::from_str(&run.out).unwrap();
                assert_eq!(said["error"]["code"], "interrupted", "{run:?}");
            }
        }
        drop(input);
    }
}

/// A server that has two models and answers every prompt; what it was sent is kept.
pub(crate) struct Server {
    pub(crate) port: u16,
    keys: Arc<Mutex<Vec<Option<String>>>>,
    _runtime: tokio::runtime::Runtime,
}

pub(crate) fn server() -> Server {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let keys = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&keys);
    let answer = move |headers: HeaderMap| {
        let key = headers.get("authorization").map(|key| key.to_str().unwrap().to_owned());
        seen.lock().unwrap().push(key);
        let piece =
            serde_json::json!({"choices": [{"index": 0, "text": " and on", "finish_reason": "stop"}]});
        async move { ([("content-type", "text/event-stream")], format!("data: {piece}\n\ndata: [DONE]\n\n")) }
    };
    let models = || async { r#"{"data": [{"id": "small"}, {"id": "large"}]}"# };
    let router = Router::new().route("/v1/completions", post(answer)).route("/v1/models", get(models));
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    runtime.spawn(async move { axum::serve(listener, router).await });
    Server { port, keys, _runtime: runtime }
}

#[test]
fn a_server_is_reached_by_address_and_by_section() {
    let (world, server) = (World::new(), server());
    world.ok(&["tree", "new", "--title", "x", "--text", "On"]);
    let address = format!("http://127.0.0.1:{}", server.port);
    let named = format!("{address}/small");
    assert_eq!(world.ok(&["--model", &named, "tree", "generate", "x"]), " and on\n");
    world.ok(&["config", "set", "providers.box.base_url", &address]);
    world.ok(&["config", "set", "providers.box.key", "canary-0123456789"]);
    world.ok(&["config", "set", "model.default", "box/small"]);
    world.ok(&["tree", "generate", "x"]);
    let keys = server.keys.lock().unwrap().clone();
    assert_eq!(keys, [None, Some("Bearer canary-0123456789".to_owned())]);
}

#[test]
fn doctor_asks_local_servers_and_only_when_it_may_take_time() {
    let (world, server) = (World::new(), server());
    world.ok(&["config", "set", "providers.box.base_url", &format!("http://127.0.0.1:{}", server.port)]);
    assert!(world.ok(&["doctor"]).contains("has small, large"));
    assert!(!world.ok(&["doctor", "--quick"]).contains("small"));
}

#[test]
fn a_key_in_the_environment_waits_to_be_named() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "x", "--text", "On"]);
    world.write("config.toml", "[model]\ndefault = \"openai/some\"\n");
    let generate = |arguments: &[&str]| -> Run {
        let mut command = world.command(&[arguments, &["tree", "generate", "x", "--dry-run"]].concat());
        command.env("OPENAI_API_KEY", "canary-0123456789").output().unwrap().into()
    };
    let run = generate(&[]);
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.err.contains("OPENAI_API_KEY"), "{run:?}");
    let run = generate(&["--model", "openai/some"]);
    assert_ne!(run.code, Some(4), "control: {run:?}");
    assert!(!run.err.contains("canary"), "{run:?}");
}

#[test]
fn an_unknown_provider_is_met_with_the_known_ones() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "x", "--text", "On"]);
    world.ok(&["config", "set", "providers.box.base_url", "http://localhost:1"]);
    let run = world.run(&["--model", "bix/m", "tree", "generate", "x"]);
    assert_eq!(run.code, Some(3));
    assert!(run.err.contains("did you mean box/m?"), "{run:?}");
}
