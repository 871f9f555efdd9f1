//! Promises to several processes in one conversation, and about money, each as it was once broken (spec: agent §1,
//! security §7, §10).

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::replaying::Server;
use crate::server;
use crate::terminal::Terminal;
use crate::world::{Run, World, piped};

/// How long something that has to happen is waited for.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// A process that is ended with the test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn script(world: &World, lines: &[Value]) -> String {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let file = world.path("script.jsonl");
    std::fs::write(&file, lines.join("\n")).unwrap();
    format!("script:{}", file.display())
}

/// An answer of words, one every 20 ms.
pub(crate) fn slowly(words: usize) -> Value {
    let deltas: Vec<String> = (0..words).map(|number| format!("w{number} ")).collect();
    json!({"deltas": deltas, "delta_delay_ms": 20})
}

/// Waits until an answer comes in some process.
pub(crate) fn until_streaming(world: &World) {
    let began = Instant::now();
    let spool = world.home().join("spool");
    while !spool.read_dir().is_ok_and(|mut found| found.next().is_some()) {
        assert!(began.elapsed() < SOON, "no answer came");
        std::thread::yield_now();
    }
}

/// Waits until a process has received this much of an answer.
fn until_received(world: &World, word: &str) {
    let began = Instant::now();
    let holds = |path: std::path::PathBuf| {
        std::fs::read(path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(word))
    };
    let spool = world.home().join("spool");
    while !spool.read_dir().is_ok_and(|mut found| found.any(|entry| holds(entry.unwrap().path()))) {
        assert!(began.elapsed() < SOON, "{word} did not come");
        std::thread::yield_now();
    }
}

fn trees(world: &World) -> usize {
    let (_, session) = world.json(&["sessions", "show", "main"]);
    session["trees"].as_array().unwrap().len()
}

#[test]
fn what_is_said_to_a_local_model_never_goes_to_the_remote_one_of_another_process() {
    let world = World::new();
    // The first answer takes longer than another process waits for a session.
    let far = server::Server::start(|path, _| {
        if path.ends_with("/chat/completions") {
            std::thread::sleep(Duration::from_secs(8));
        }
        let message = json!({"role": "assistant", "content": "far"});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        Some(json!({"id": "f", "choices": [choice]}).to_string())
    });
    world.write(
        "config.toml",
        &format!("[providers.far]\nbase_url = \"{}\"\nplace = \"remote\"\n", far.base()),
    );
    let first = Running(piped(&mut world.command(&["--model", "far/m", "chat", "-m", "one"])));
    until_streaming(&world);
    let said =
        |words: &[&str]| world.run(&[&["--model", "script:echo", "chat", "-m", "private"], words].concat());
    let Run { code, err, .. } = said(&[]);
    let went: Vec<String> = far.bodies().iter().map(Value::to_string).collect();
    assert!(!went.iter().any(|body| body.contains("private")), "{went:?}");
    assert_eq!(code, Some(6), "{err}");
    assert!(err.contains("with another model") && err.contains("nothing was sent"), "{err}");
    drop(first);
    let Run { code, out, .. } = said(&[]);
    assert_eq!((code, out.as_str()), (Some(0), "private\n"), "the control: once the session is free");
}

/// The answer that comes ends before another process has waited long enough for the session.
#[test]
fn what_is_said_with_another_preset_or_thinking_waits_and_is_asked_so() {
    for (flags, field, value) in [
        (["--preset", "cold"], "temperature", json!(0.125)),
        (["--think", "high"], "reasoning_effort", json!("high")),
    ] {
        let world = World::new();
        let near = server::Server::start(|path, body| {
            let is_first = body["messages"].as_array()?.len() < 3 && path.ends_with("/chat/completions");
            if is_first {
                std::thread::sleep(Duration::from_secs(2));
            }
            path.ends_with("/chat/completions").then(|| server::chat("", "Said.", 10))
        });
        world.write(
            "config.toml",
            &format!(
                "[providers.box]\nbase_url = \"{}\"\nkind = \"ollama\"\nwindow = 32000\n\
                 [presets.cold]\ntemperature = 0.125\n",
                near.base()
            ),
        );
        let say = ["--model", "box/qwen3:8b", "chat", "-m"];
        let mut first = Running(piped(&mut world.command(&[&say[..], &["one"]].concat())));
        until_streaming(&world);
        let run = world.run(&[&say[..], &["two"], &flags].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(0), "Said.\n"), "{run:?}");
        assert_eq!(first.0.wait().unwrap().code(), Some(0));
        let bodies = near.bodies();
        let of = |said: &str| bodies.iter().find(|body| body["messages"].to_string().contains(said)).unwrap();
        assert_eq!((&of("two")[field], &of("one")[field]), (&value, &Value::Null), "{bodies:?}");
    }
}

#[test]
fn to_begin_anew_in_the_middle_of_a_turn_is_refused_and_moves_nothing() {
    let world = World::new();
    let model = script(&world, &[slowly(600), json!({"text": "second"})]);
    std::fs::write(world.path("here").join("note.txt"), "a note").unwrap();
    let first = Running(piped(&mut world.command(&["--model", &model, "chat", "-m", "tale"])));
    until_streaming(&world);
    for words in
        [&["chat", "--new", "-m", "anew"][..], &["chat", "--new", "--file", "note.txt", "-m", "anew"]]
    {
        let run = world.run(&[&["--model", &model], words].concat());
        assert_eq!(run.code, Some(6), "{run:?}");
        assert_eq!(trees(&world), 1, "refused is as if it had not been said: {words:?}");
    }
    drop(first);
    world.ok(&["--model", "script:echo", "chat", "--new", "-m", "anew"]);
    assert_eq!(trees(&world), 2, "the control: once the session is free");
}

#[test]
fn to_undo_in_the_middle_of_another_processs_turn_is_refused() {
    let world = World::new();
    let model = script(&world, &[slowly(600)]);
    let first = Running(piped(&mut world.command(&["--model", &model, "chat", "-m", "tale"])));
    until_streaming(&world);
    let (_, session) = world.json(&["sessions", "show", "main"]);
    let tree = session["tree"].as_str().unwrap();
    let steps = [
        &["--model", &model, "chat", "-m", "/undo"][..],
        &["--model", &model, "chat", "-m", "/redo"],
        &["tree", "undo", tree],
        &["tree", "redo", tree],
    ];
    let answers =
        format!("busy: process {} (drawloom chat) works in it: wait until it is done", first.0.id());
    for step in steps {
        let run = world.run(step);
        assert_eq!(run.code, Some(6), "{run:?}");
        assert!(run.err.contains(&answers) && !run.err.contains("nothing was sent"), "{run:?}");
    }
    drop(first);
    for step in [steps[0], steps[3], steps[2]] {
        world.ok(step);
    }
}

#[test]
fn to_undo_after_another_process_took_the_session_over_is_refused() {
    let world = World::new();
    let undo = ["--model", "script:echo", "chat", "-m", "/undo"];
    world.ok(&["--model", "script:echo", "chat", "-m", "tale"]);
    let store = rusqlite::Connection::open(world.home().join("loom.db")).unwrap();
    // As by a process that takes it right behind this one, which was paused.
    let overtaken = "CREATE TRIGGER overtaken AFTER UPDATE OF fence ON leases
        BEGIN UPDATE leases SET fence = fence + 1 WHERE name = new.name; END";
    store.execute_batch(overtaken).unwrap();
    let run = world.run(&undo);
    assert!(run.code == Some(6) && run.err.contains("taken over"), "{run:?}");
    store.execute_batch("DROP TRIGGER overtaken; UPDATE leases SET holder = NULL").unwrap();
    world.ok(&undo);
}

#[test]
fn one_call_prints_when_its_own_turn_is_done_whoever_else_waits() {
    let world = World::new();
    let model = script(&world, &[slowly(200), json!({"fault": "hang"})]);
    let mut first = Running(piped(&mut world.command(&["--model", &model, "chat", "-m", "tale"])));
    let out = first.0.stdout.take().unwrap();
    let (found, printed) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).unwrap();
        found.send(line)
    });
    until_streaming(&world);
    let _second = Running(piped(&mut world.command(&["--model", &model, "chat", "-m", "and then?"])));
    let line = printed.recv_timeout(SOON).expect("its answer was there, and was not printed");
    assert!(line.starts_with("w0 w1 ") && line.contains("w199"), "{line}");
}

#[test]
fn a_message_that_waits_says_for_whom_and_ctrl_c_withdraws_it() {
    let world = World::new();
    let model = script(&world, &[slowly(2000)]);
    let first = Running(piped(&mut world.command(&["--model", &model, "chat", "-m", "tale"])));
    until_streaming(&world);
    let mut second = Running(piped(&mut world.command(&["--model", &model, "chat", "-m", "private"])));
    let mut err = BufReader::new(second.0.stderr.take().unwrap());
    let mut told = [const { String::new() }; 2];
    for line in &mut told {
        err.read_line(line).unwrap();
    }
    let holder = format!("waiting for process {} (drawloom chat)\n", first.0.id());
    assert!(told[0].starts_with("no workspace here") && told[1] == holder, "{told:?}");
    kill_process(Pid::from_child(&second.0), Signal::INT).unwrap();
    assert_eq!(second.0.wait().unwrap().code(), Some(130));
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("what you said was not sent"), "{rest}");
    world.ok(&["chat", "-m", "/stop"]);
    drop(first);
    let (_, session) = world.json(&["sessions", "show", "main"]);
    let text = world.ok(&["tree", "text", session["tree"].as_str().unwrap()]);
    assert!(text.contains("tale") && !text.contains("private"), "{text}");
}

#[test]
fn what_ctrl_c_stopped_is_named_with_what_is_kept_of_it() {
    let stopped = |line: Value, word: &str, flags: &[&str]| {
        let world = World::new();
        let model = script(&world, &[line]);
        let asks = [&["--model", &model, "chat", "-m", "tale"], flags].concat();
        let mut child = Running(piped(&mut world.command(&asks)));
        until_received(&world, word);
        kill_process(Pid::from_child(&child.0), Signal::INT).unwrap();
        let mut told = [String::new(), String::new()];
        child.0.stdout.take().unwrap().read_to_string(&mut told[0]).unwrap();
        child.0.stderr.take().unwrap().read_to_string(&mut told[1]).unwrap();
        assert_eq!(child.0.wait().unwrap().code(), Some(130), "{told:?}");
        told
    };
    let [out, err] = stopped(slowly(2000), "w9 ", &[]);
    assert!(out.is_empty() && err.contains(": the part received is kept as "), "{out}{err}");
    let [out, _] = stopped(slowly(2000), "w9 ", &["--json"]);
    let error = serde_json::from_str::<Value>(&out).unwrap();
    assert_eq!(error["error"]["code"], "cancelled", "{error}");
    let [_, err] = stopped(json!({"text": "late", "delay_ms": 60_000}), "", &[]);
    assert!(err.contains(": your message is kept as "), "{err}");
}

#[test]
fn a_long_answer_is_heard_to_its_end_though_the_process_that_gave_it_is_done() {
    let world = World::new();
    // The last of it is one line of 4 MB over the socket, behind which that process has nothing more to do.
    let long = json!({"deltas": vec!["word ".repeat(20_000); 40]});
    let model = script(&world, &[slowly(200), long]);
    let mut first = Terminal::start(world.command(&["--model", &model, "chat", "--color", "never"]));
    first.at_prompt();
    first.types("tale\r");
    until_streaming(&world);
    let second = piped(&mut world.command(&["--model", &model, "chat", "-m", "and then?"]));
    // It waits until the turn is done.
    first.types("/quit\n");
    let heard = std::thread::spawn(move || second.wait_with_output().unwrap());
    assert_eq!(first.ended(), Some(0));
    let heard = heard.join().unwrap();
    let err = String::from_utf8_lossy(&heard.stderr);
    assert_eq!(heard.status.code(), Some(0), "{err}");
    assert!(heard.stdout.len() >= 4_000_000, "{} bytes: {err}", heard.stdout.len());
}

#[test]
fn a_request_that_was_not_billed_costs_nothing_and_the_fallback_is_not_refused() {
    let world = World::new();
    let other: Server = crate::replaying::server();
    // Each request is reckoned with 10 ¢ at most, and the turn has 15.
    world.write(
        "config.toml",
        &format!(
            "[model]\nfallbacks = [\"told/m\"]\n[budget]\nturn = 0.15\n\
             [providers.down]\nbase_url = \"http://127.0.0.1:1/v1\"\nplace = \"remote\"\n\
             [models.\"down/m\"]\noutput_limit = 1000\nprice_input = 0\nprice_output = 100\n\
             [providers.told]\nbase_url = \"http://127.0.0.1:{}\"\nplace = \"remote\"\n\
             dialect = \"anthropic_messages\"\n\
             [models.\"told/m\"]\noutput_limit = 1000\nprice_input = 0\nprice_output = 100\n",
            other.port
        ),
    );
    let run = world.run(&["--model", "down/m", "chat", "-m", "hi"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("told/m is asked instead"), "{run:?}");
}

#[test]
fn five_processes_share_one_purse() {
    let world = World::new();
    world.ok(&["--model", "script:echo", "chat", "--session", "first", "-m", "the home is made"]);
    // Each request is reckoned with 10 ¢ at most, and none is answered before all have been made or refused.
    let (release, released) = (Arc::new(Mutex::new(false)), Arc::new(Condvar::new()));
    let (gate, opened) = (Arc::clone(&release), Arc::clone(&released));
    let far = server::Server::start(move |path, _| {
        if path.ends_with("/chat/completions") {
            drop(opened.wait_while(gate.lock().unwrap(), |released| !*released).unwrap());
        }
        let message = json!({"role": "assistant", "content": "far"});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 1});
        Some(json!({"id": "f", "choices": [choice], "usage": usage}).to_string())
    });
    world.write(
        "config.toml",
        &format!(
            "[budget]\nday = 0.25\n[providers.far]\nbase_url = \"{}\"\nplace = \"remote\"\n\
             [models.\"far/m\"]\noutput_limit = 1000\nprice_input = 0\nprice_output = 100\n",
            far.base()
        ),
    );
    let mut all: Vec<Running> = (0..5)
        .map(|number| {
            let session = format!("s{number}");
            let words = ["--model", "far/m", "chat", "--session", &session, "-m", "hi"];
            Running(piped(&mut world.command(&words)))
        })
        .collect();
    let began = Instant::now();
    let mut ended = || all.iter_mut().filter_map(|one| one.0.try_wait().unwrap()).count();
    while ended() + far.bodies().len() < 5 {
        assert!(began.elapsed() < SOON, "they hang: {} ended, {} asked", ended(), far.bodies().len());
        std::thread::yield_now();
    }
    *release.lock().unwrap() = true;
    released.notify_all();
    let codes: Vec<_> = all.iter_mut().map(|one| one.0.wait().unwrap().code()).collect();
    let passed = codes.iter().filter(|code| **code == Some(0)).count();
    let refused = codes.iter().filter(|code| **code == Some(4)).count();
    assert_eq!((passed, refused), (2, 3), "{codes:?}");
    assert_eq!(far.bodies().len(), 2);
    // The control: what was reserved is given back, and what was spent is little.
    world.ok(&["--model", "far/m", "chat", "--session", "s9", "-m", "hi"]);
}

#[test]
fn a_turn_is_stopped_from_another_process() {
    let world = World::new();
    let model = script(&world, &[slowly(2000)]);
    let mut first = Running(piped(&mut world.command(&["--model", &model, "chat", "-m", "tale"])));
    until_received(&world, "w9 ");
    assert_eq!(first.0.try_wait().unwrap(), None, "the control: it goes on by itself");
    let stop = world.run(&["chat", "-m", "/stop"]);
    assert_eq!(stop.code, Some(0), "{stop:?}");
    assert!(stop.err.contains("the turn of another process is stopped"), "{stop:?}");
    let mut err = String::new();
    first.0.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(first.0.wait().unwrap().code(), Some(5), "{err}");
    assert!(err.contains("stopped"), "{err}");
    // What came is kept, and is all there is.
    let (_, shown) = world.json(&["tree", "show", "tale"]);
    let answer = shown["nodes"].as_array().unwrap().last().unwrap();
    let text = answer["text"].as_str().unwrap();
    assert!(text.starts_with("w0 w1 ") && text.contains("w9 ") && !text.contains("w1999"), "{answer}");
    assert_eq!(answer["finish"], json!({"interrupted": "cancelled"}));
    let again = world.run(&["chat", "-m", "/stop"]);
    assert!(again.err.contains("nothing is under way"), "{again:?}");
    assert_eq!(world.ok(&["--model", "script:echo", "chat", "-m", "on"]), "on\n", "the session is free");
}
