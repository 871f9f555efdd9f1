//! Workspaces whose trust is withdrawn: nothing of them is sent from then on (spec: security §4).

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::server::{self, Server};
use crate::terminal::Terminal;
use crate::tools::nodes;
use crate::trust::{CANARY, clone, said_in, states};
use crate::world::{Run, World, text};

#[test]
fn s4_a_session_that_goes_on_sends_nothing_of_a_workspace_that_was_untrusted_meanwhile() {
    let world = World::new();
    let clone = clone(&world);
    let sent = |said: &str| {
        let mut command = world.command(&["--model", "script:echo", "--json", "chat", "-m", said]);
        let run: Run = command.current_dir(&clone).output().unwrap().into();
        let answer: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(answer["session"], "main");
        world.ok(&["context", "show", answer["node"].as_str().unwrap(), "--text", "--json"])
    };
    world.ok(&["workspace", "trust", &text(&clone)]);
    assert!(sent("first").contains(CANARY));
    assert!(sent("second").contains(CANARY), "control: what was frozen is sent again");
    world.ok(&["workspace", "untrust", &text(&clone)]);
    let third = sent("third");
    assert!(third.contains("second") && !third.contains(CANARY), "{third}");
}

#[test]
fn s4_a_generation_in_a_conversation_sends_nothing_of_a_workspace_that_was_untrusted_meanwhile() {
    let world = World::new();
    let clone = clone(&world);
    let path = text(&clone);
    world.ok(&["workspace", "trust", &path]);
    let mut chat = world.command(&["--model", "script:echo", "--json", "chat", "-m", "first"]);
    let run: Run = chat.current_dir(&clone).output().unwrap().into();
    let tree = serde_json::from_str::<Value>(&run.out).unwrap()["tree"].as_str().unwrap().to_owned();
    let generated = || {
        let (_, made) = world.json(&["--model", "script:echo", "tree", "generate", &tree]);
        let node = made["nodes"][0]["id"].as_str().unwrap();
        world.ok(&["context", "show", node, "--text", "--json"])
    };
    assert!(generated().contains(CANARY), "control: what was frozen goes along");
    world.ok(&["workspace", "untrust", &path]);
    let sent = generated();
    assert!(sent.contains("first") && !sent.contains(CANARY), "{sent}");
}

#[test]
fn s4_what_was_told_of_a_changed_file_is_not_sent_once_its_workspace_is_untrusted() {
    let world = World::new();
    let clone = clone(&world);
    let path = text(&clone);
    let run = |arguments: &[&str]| {
        let mut command = world.command(&[&["--json"], arguments].concat());
        command.env("DRAWLOOM_MODEL__DEFAULT", "script:echo");
        let run: Run = command.current_dir(&clone).output().unwrap().into();
        assert_eq!(run.code, Some(0), "{run:?}");
        run.out
    };
    let made = |out: &str| -> Value { serde_json::from_str(out).unwrap() };
    let sent = |node: &Value| run(&["context", "show", node.as_str().unwrap(), "--text"]);
    world.ok(&["workspace", "trust", &path]);
    run(&["chat", "--system", "OWNERS-words", "-m", "first"]);
    std::fs::write(clone.join("AGENTS.md"), format!("{CANARY} changed")).unwrap();
    world.ok(&["workspace", "trust", &path]);
    let second = made(&run(&["chat", "-m", "second"]));
    let (tree, told) = (second["tree"].as_str().unwrap(), sent(&second["node"]));
    assert!(told.contains("OBEY-7f3a changed") && told.contains("OBEY-7f3a in"), "control: {told}");
    // To another model it is put together anew.
    std::fs::write(clone.join("other.jsonl"), "{\"text\": \"Yes.\", \"loop\": true}\n").unwrap();
    let replay = ["context", "replay", second["node"].as_str().unwrap(), "--model", "script:other.jsonl"];
    for trusted in [true, false] {
        if !trusted {
            world.ok(&["workspace", "untrust", &path]);
        }
        let generated = made(&run(&["tree", "generate", tree]));
        let replayed = made(&run(&replay));
        for (way, sent) in [
            ("generate", sent(&generated["nodes"][0]["id"])),
            ("next", run(&["context", "show", "--next", tree, "--text"])),
            ("replay", sent(&replayed["node"])),
        ] {
            assert!(sent.contains("OWNERS-words") && sent.contains("first"), "{way}: {sent}");
            assert_eq!(sent.contains(CANARY), trusted, "{way}: {sent}");
        }
    }
    let third = sent(&made(&run(&["chat", "-m", "third"]))["node"]);
    assert!(third.contains("OWNERS-words") && third.contains("second") && !third.contains(CANARY), "{third}");
}

#[test]
fn s4_a_workspace_that_is_untrusted_while_work_runs_or_once_its_folder_is_gone_is_sent_no_more() {
    let world = World::new();
    let clone = clone(&world);
    let path = text(&clone);
    let mut untrust = world.command(&["workspace", "untrust", &path]);
    untrust.current_dir(&clone).stdout(Stdio::null());
    let armed = Arc::new(AtomicBool::new(false));
    let (is_armed, untrust) = (Arc::clone(&armed), Mutex::new(untrust));
    let server = Server::start(move |path, body| {
        let is_chat = path.ends_with("/chat/completions") && !body.is_null();
        if is_chat && is_armed.swap(false, Ordering::SeqCst) {
            assert!(untrust.lock().unwrap().status().unwrap().success());
        }
        is_chat.then(|| server::chat("", "Yes.", 100))
    });
    world.write("config.toml", &format!("[providers.box]\nbase_url = {:?}\n", server.base()));
    let run = |arguments: &[&str], folder: &Path| -> Value {
        let mut command = world.command(&[&["--json", "--model", "box/m"], arguments].concat());
        let run: Run = command.current_dir(folder).output().unwrap().into();
        assert_eq!(run.code, Some(0), "{run:?}");
        serde_json::from_str(&run.out).unwrap()
    };
    let sent = |from: usize| -> Vec<bool> {
        server.bodies()[from..].iter().map(|body| body.to_string().contains(CANARY)).collect()
    };
    world.ok(&["workspace", "trust", &path]);
    let said = run(&["chat", "-m", "first"], &clone);
    let tree = said["tree"].as_str().unwrap();
    armed.store(true, Ordering::SeqCst);
    let before = server.bodies().len();
    run(&["tree", "generate", tree, "-n", "2"], &clone);
    assert_eq!(sent(before), [true, false], "the second sibling was put together behind the first answer");

    world.ok(&["workspace", "trust", &path]);
    run(&["chat", "-m", "again"], &clone);
    std::fs::remove_dir_all(&clone).unwrap();
    let before = server.bodies().len();
    run(&["tree", "generate", tree], &world.path("here"));
    let shown = world.ok(&["workspace", "untrust", &path]);
    assert!(shown.contains("missing"), "{shown}");
    run(&["tree", "generate", tree], &world.path("here"));
    assert_eq!(sent(before), [true, false], "control: what was frozen goes along");
}

#[test]
fn s4_a_request_that_waits_to_be_repeated_is_sent_without_a_workspace_that_was_untrusted_meanwhile() {
    let world = World::new();
    let clone = clone(&world);
    let path = text(&clone);
    let mut untrust = world.command(&["workspace", "untrust", &path]);
    untrust.current_dir(&clone).stdout(Stdio::null());
    // What is done before the server says that it is busy.
    let untrusts = Arc::new(AtomicBool::new(false));
    let is_busy = Arc::new(AtomicBool::new(false));
    let (does_untrust, was_busy, untrust) =
        (Arc::clone(&untrusts), Arc::clone(&is_busy), Mutex::new(untrust));
    let server = Server::start(move |path, body| {
        let is_chat = path.ends_with("/chat/completions") && !body.is_null();
        if is_chat && was_busy.swap(false, Ordering::SeqCst) {
            if does_untrust.load(Ordering::SeqCst) {
                assert!(untrust.lock().unwrap().status().unwrap().success());
            }
            return Some(server::BUSY.to_owned());
        }
        is_chat.then(|| server::chat("", "Yes.", 100))
    });
    world.write("config.toml", &format!("[providers.box]\nbase_url = {:?}\n", server.base()));
    world.ok(&["workspace", "trust", &path]);
    for is_untrusted in [false, true] {
        untrusts.store(is_untrusted, Ordering::SeqCst);
        is_busy.store(true, Ordering::SeqCst);
        let before = server.bodies().len();
        let mut command = world.command(&["--model", "box/m", "chat", "-m", "first"]);
        let run: Run = command.current_dir(&clone).output().unwrap().into();
        assert_eq!(run.code, Some(0), "{run:?}");
        let sent: Vec<_> =
            server.bodies()[before..].iter().map(|body| body.to_string().contains(CANARY)).collect();
        assert_eq!(sent, [true, !is_untrusted], "{run:?}");
        assert_eq!(run.err.contains("was withdrawn while it waited"), is_untrusted, "{run:?}");
    }
}

#[test]
fn a_request_that_waits_to_be_repeated_is_not_repeated_with_what_was_pruned_meanwhile() {
    for (prunes, is_version) in [(false, false), (true, false), (true, true)] {
        let world = World::new();
        world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained."]);
        let (_, made) = world.json(&["tree", "append", "Rain", " It poured."]);
        let (_, made) =
            world.json(&["tree", "edit", "Rain", made["node"].as_str().unwrap(), "--text", " PRUNED."]);
        let node = made["node"].as_str().unwrap();
        let mut prune = world.command(&["tree", "prune", "Rain", node]);
        prune.args(is_version.then_some("--version"));
        prune.stdout(Stdio::null());
        let (prune, is_busy) = (Mutex::new(prune), AtomicBool::new(true));
        let server = Server::start(move |path, body| {
            let is_asked = path.ends_with("/completions") && !body.is_null();
            if is_asked && is_busy.swap(false, Ordering::SeqCst) {
                assert!(!prunes || prune.lock().unwrap().status().unwrap().success());
                return Some(server::BUSY.to_owned());
            }
            is_asked.then(|| server::chat("", "Yes.", 100))
        });
        world.write("config.toml", &format!("[providers.box]\nbase_url = {:?}\n", server.base()));
        let run = world.run(&["--model", "box/m", "tree", "generate", "Rain"]);
        let sent = server.bodies().iter().filter(|body| body.to_string().contains("PRUNED")).count();
        assert_eq!(sent, if prunes { 1 } else { 2 }, "{run:?}");
        // With another version shown, it is put together anew.
        assert_eq!(run.code == Some(0), !prunes || is_version, "{run:?}");
    }
}

#[test]
fn s4_a_conversation_that_runs_loads_nothing_more_of_a_workspace_that_is_untrusted() {
    let world = World::new();
    let clone = clone(&world);
    world.ok(&["workspace", "trust", &text(&clone)]);
    let mut command = world.command(&["--model", "script:echo", "chat"]);
    command.current_dir(&clone);
    let mut terminal = Terminal::start(command);
    let sent = |terminal: &mut Terminal, said: &str| {
        terminal.at_prompt();
        terminal.types(&format!("{said}\r"));
        terminal.until("the answer", |terminal| terminal.plain().matches(said).count() > 1);
        terminal.at_prompt();
        let nodes = nodes(&world);
        world.ok(&["context", "show", nodes.last().unwrap()["id"].as_str().unwrap(), "--text", "--json"])
    };
    assert!(sent(&mut terminal, "first").contains(CANARY));
    world.ok(&["workspace", "untrust", &text(&clone)]);
    let second = sent(&mut terminal, "second");
    assert!(!second.contains(CANARY), "{second}");
}

#[test]
fn s4_of_two_answers_about_one_folder_at_two_paths_the_later_counts() {
    let world = World::new();
    let (clone, moved) = (clone(&world), world.path("here/moved"));
    let untrusted_elsewhere = || {
        std::fs::rename(&clone, &moved).unwrap();
        world.ok(&["workspace", "untrust", &text(&moved)]);
        std::fs::rename(&moved, &clone).unwrap();
    };
    let is_sent = || said_in(&world, &clone, &[]).0.contains(CANARY);
    let state = || states(&world, &clone).into_iter().find(|(path, ..)| *path == text(&clone)).unwrap().1;
    untrusted_elsewhere();
    world.ok(&["workspace", "trust", &text(&clone)]);
    assert_eq!((is_sent(), state().as_str()), (true, "trusted"));
    untrusted_elsewhere();
    assert_eq!((is_sent(), state().as_str()), (false, "untrusted"));
}

#[test]
fn s4_a_workspace_in_whose_place_a_file_stands_is_untrusted() {
    let world = World::new();
    let clone = clone(&world);
    world.ok(&["workspace", "trust", &text(&clone)]);
    std::fs::remove_dir_all(&clone).unwrap();
    std::fs::write(&clone, "a file").unwrap();
    world.ok(&["workspace", "untrust", &text(&clone)]);
    assert_ne!(world.run(&["workspace", "trust", &text(&clone)]).code, Some(0), "control");
}

#[test]
fn s4_a_workspace_that_is_gone_is_untrusted_however_its_path_is_written() {
    for spelling in ["../clone", "../link/clone", "../gone/../clone", "clone/../../link/clone/."] {
        let world = World::new();
        let (clone, here) = (clone(&world), world.path("here"));
        let inner = here.join("inner");
        std::fs::create_dir(&inner).unwrap();
        std::os::unix::fs::symlink(&here, here.join("link")).unwrap();
        world.ok(&["workspace", "trust", &text(&clone)]);
        std::fs::remove_dir_all(&clone).unwrap();
        let mut command = world.command(&["workspace", "untrust", spelling, "--json"]);
        let run: Run = command.current_dir(&inner).output().unwrap().into();
        assert_eq!(run.code, Some(0), "{spelling}: {run:?}");
        let shown: Value = serde_json::from_str(&run.out).unwrap();
        let shown = &shown["workspaces"][0];
        assert_eq!(
            (shown["path"].as_str(), shown["state"].as_str()),
            (Some(&*text(&clone)), Some("missing"))
        );
        assert!(shown["why"].as_str().unwrap().starts_with("you said not to load it"), "{shown}");
    }
}
