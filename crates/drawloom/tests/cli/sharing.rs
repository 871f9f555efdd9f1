//! Promises to several processes in one conversation, and about money, each as a reviewer broke it (spec: agent §1,
//! security §7, §10).

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::replaying::Server;
use crate::server;
use crate::world::{Run, World, piped};

/// How long something that has to happen is waited for.
const SOON: Duration = Duration::from_secs(30);

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
    let mut told = String::new();
    err.read_line(&mut told).unwrap();
    let holder = format!("waiting for process {} (drawloom chat)\n", first.0.id());
    assert_eq!(told, holder);
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
    let first = piped(&mut world.command(&["--model", &model, "chat", "-m", "tale"]));
    until_streaming(&world);
    let stop = world.run(&["chat", "-m", "/stop"]);
    assert_eq!(stop.code, Some(0), "{stop:?}");
    assert!(stop.err.contains("the turn of another process is stopped"), "{stop:?}");
    let ended: Run = first.wait_with_output().unwrap().into();
    assert!(ended.code == Some(5) && ended.err.contains("stopped"), "{ended:?}");
    let (_, session) = world.json(&["sessions", "show", "main"]);
    let text = world.ok(&["tree", "text", session["tree"].as_str().unwrap()]);
    assert!(text.contains("tale") && !text.contains("w1999"), "{text}");
    let again = world.run(&["chat", "-m", "/stop"]);
    assert!(again.err.contains("nothing is under way"), "{again:?}");
}
