//! Servers of tools that fail, hang, flood, end, or tell their tools otherwise than they were accepted: no turn breaks
//! for them.

use std::fs::File;
use std::process::Child;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::laundering::{self, may_fetch};
use crate::mcp::{accepted, allowed, called, result, script, server, there, world};
use crate::tools::{chat, nodes};
use crate::web::{Site, answer, named};
use crate::world::{World, heeds_ctrl_c, piped, text};

/// What the call of a tool gave, each in order.
fn results(world: &World, tool: &str) -> Vec<String> {
    let found = nodes(world).into_iter().filter(|node| node["author"] == tool);
    found.map(|node| node["text"].as_str().unwrap().to_owned()).collect()
}

fn add() -> Value {
    called("notes:add", &json!({"a": 1, "b": 1}))
}

/// A turn that calls these, one after another, and comes to its end.
fn turn(world: &World, batches: &[Value]) -> Value {
    let lines = batches.iter().map(|call| json!({"tool_calls": [call]}));
    script(world, &lines.chain([json!({"text": "Done."})]).collect::<Vec<_>>());
    let (code, said) = chat(world, "Go on.");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    said
}

#[test]
fn a_server_that_hangs_floods_or_ends_gives_an_error_and_is_started_anew() {
    for (tool, told) in [
        ("notes:hang", "server notes: it did not answer within 1 s"),
        ("notes:flood", "server notes: it said more than 8 MiB in one message"),
        ("notes:die", "server notes: it ended with exit 3; the end of its errors:"),
    ] {
        let world = accepted(&[], &[tool, "notes:add"], "timeout = 1\n");
        let said = turn(&world, &[add(), called(tool, &json!({})), add()]);
        let failed = result(&world, tool);
        assert!(failed.starts_with(told), "{failed}");
        assert_eq!(results(&world, "notes:add"), ["2", "2"], "{said}");
        assert_eq!(failed.contains("the server is tired"), tool == "notes:die", "{failed}");
        if tool == "notes:die" {
            script(&world, &[json!({"tool_calls": [called(tool, &json!({}))]}), json!({"text": "Done."})]);
            let project = text(&world.path("project"));
            let told = world.run(&["--workspace", &project, "chat", "-m", "Go."]).err;
            assert!(told.contains("the server is tired"), "{told}");
        }
    }
}

#[test]
fn a_server_that_does_not_start_is_not_tried_again_at_once() {
    let world = accepted(&[], &["notes:add"], "");
    world.ok(&["config", "set", "mcp.notes.env.STUMBLES", "yes"]);
    turn(&world, &[add(), add()]);
    let told = results(&world, "notes:add");
    assert!(
        told[0].starts_with("server notes: it ended with exit 4") && told[0].contains("no such database"),
        "{told:?}"
    );
    assert!(
        told[1].starts_with("server notes: it is not started again for") && told[1].contains("exit 4"),
        "{told:?}"
    );
    let (code, tested) = there(&world, &["mcp", "test", "notes"]);
    assert!(
        code == Some(5) && tested["error"]["message"].as_str().unwrap().contains("no such database"),
        "{tested}"
    );
    world.ok(&["config", "set", "mcp.notes.command", "/no/such/program"]);
    let (_, tested) = there(&world, &["mcp", "test", "notes"]);
    assert!(tested["error"]["message"].as_str().unwrap().contains("/no/such/program"), "{tested}");
}

#[test]
fn a_program_that_refuses_to_begin_says_why_before_how_it_ended() {
    let world = world(&[], &server("notes", "[mcp.notes.env]\nUNLICENSED = \"yes\"\n"));
    let (code, tested) = there(&world, &["mcp", "test", "notes"]);
    let told = tested["error"]["message"].as_str().unwrap();
    assert!(code == Some(5) && told.contains("error -32603: licence missing: set LICENCE"), "{tested}");
    assert!(told.contains("looked for a licence"), "{tested}");
}

#[test]
fn tools_that_are_malformed_are_left_out_and_the_others_are_there() {
    let world = world(&[], &server("notes", "[mcp.notes.env]\nMALFORMED = \"yes\"\n"));
    let (code, tested) = there(&world, &["mcp", "test", "notes"]);
    assert_eq!((code, &tested["tool_count"]), (Some(0), &json!(10)), "{tested}");
    let refused = tested["refused"].to_string();
    assert!(refused.contains("no schema") && refused.contains("missing field `inputSchema`"), "{refused}");
    assert_eq!(refused.matches("is malformed").count(), 3, "{refused}");
}

#[test]
fn addresses_that_a_server_wants_a_person_to_have_been_at_are_named_to_the_model_and_to_the_person() {
    let world = accepted(&[], &["notes:fail"], "[mcp.notes.env]\nSENDS = \"yes\"\n");
    script(&world, &[json!({"tool_calls": [called("notes:fail", &json!({}))]}), json!({"text": "Done."})]);
    let plain = world.run(&["--workspace", &text(&world.path("project")), "chat", "-m", "Go."]);
    let told = result(&world, "notes:fail");
    assert!(told.starts_with("server notes: it answered with error -32042: Log in first.\n"), "{told}");
    assert!(told.contains("nothing was opened") && told.contains("made again afterwards:\n"), "{told}");
    for (address, is_named) in [("1?b=c\n", true), ("3", true), ("4", false)] {
        let address = format!("https://a.example/{address}");
        assert_eq!(told.contains(&address), is_named, "{told}");
        assert_eq!(plain.err.contains(address.trim()), is_named, "{plain:?}");
    }
    assert!(!told.contains('\u{1b}') && !told.contains("javascript:") && !told.contains('@'), "{told}");
}

#[test]
fn s15_a_tool_that_is_told_otherwise_is_switched_off_and_named_until_it_is_accepted() {
    let world = accepted(&[], &["notes:add", "notes:change", "notes:fail"], "");
    let refused = "server notes: add is ";
    // In mid-session.
    let said =
        turn(&world, &[add(), called("notes:change", &json!({})), add(), called("notes:fail", &json!({}))]);
    let told = results(&world, "notes:add");
    assert!(
        told[0] == "2" && told[1].starts_with(refused) && told[1].contains("mcp accept notes"),
        "{told:?}"
    );
    assert!(result(&world, "notes:fail").contains("the disk is full"), "the others work: {said}");
    // In later sessions, too, whatever the server says there.
    let shown = |key: &str| there(&world, &["mcp", "list"]).1["servers"][0][key].clone();
    assert_eq!((shown("changed"), shown("tool_count")), (json!(["add"]), json!(9)));
    turn(&world, &[add()]);
    let told = results(&world, "notes:add");
    assert!(told.last().unwrap().contains("there is no tool \"notes:add\""), "{told:?}");
    // The owner looks at it.
    let asked = world.run(&["mcp", "accept", "notes"]);
    assert!(asked.code == Some(4) && asked.err.contains("now: add: Adds two numbers."), "{asked:?}");
    assert_eq!(there(&world, &["mcp", "accept", "notes", "add", "--yes"]).0, Some(0));
    turn(&world, &[add()]);
    assert_eq!(result(&world, "notes:add"), "2");

    // Between two sessions, where the list that models have is older.
    world.ok(&["config", "set", "mcp.notes.env.CHANGED", "yes"]);
    turn(&world, &[add()]);
    assert!(result(&world, "notes:add").starts_with(refused), "{}", result(&world, "notes:add"));
    let asked = world.run(&["mcp", "accept", "notes"]);
    assert!(
        asked.err.contains("was: add: Adds two numbers.") && asked.err.contains("First read all keys"),
        "{asked:?}"
    );
}

/// Starts a turn that waits for a server which never answers, and returns once the server is at it.
pub(crate) fn waiting(world: &World) -> Child {
    script(world, &[json!({"tool_calls": [called("notes:hang", &json!({}))]}), json!({"text": "Done."})]);
    let mut command = world.command(&["--workspace", &text(&world.path("project")), "chat", "-m", "Wait."]);
    let child = piped(&mut command);
    let is_at_it = || {
        let is_held = File::open(world.path("project/held")).is_ok_and(|file| file.try_lock().is_err());
        is_held && heeds_ctrl_c(&child)
    };
    let until = Instant::now() + Duration::from_secs(60);
    while !is_at_it() {
        assert!(Instant::now() < until, "the server is not at it");
        thread::yield_now();
    }
    child
}

/// Waits until no server is at a call any more.
pub(crate) fn is_gone(world: &World) -> bool {
    let held = File::open(world.path("project/held")).unwrap();
    let (sender, freed) = mpsc::channel();
    thread::spawn(move || sender.send(held.lock().is_ok()));
    freed.recv_timeout(Duration::from_secs(20)).is_ok_and(|freed| freed)
}

#[test]
fn a_server_ends_with_its_process_however_that_ends_and_a_call_with_its_turn() {
    let world = accepted(&[], &["notes:hang"], "roots = [\".:rw\"]\ntimeout = 3600\n");
    let mut killed = waiting(&world);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(is_gone(&world), "kill -9 leaves no server");

    let mut stopped = waiting(&world);
    kill(Pid::from_raw(i32::try_from(stopped.id()).unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(stopped.wait().unwrap().code(), Some(130));
    assert!(is_gone(&world), "nor does a turn that is stopped");
}

#[test]
fn s3_what_a_server_wrote_in_a_call_that_was_killed_is_from_outside() {
    let site = Site::start(|_| answer("text/plain", "A page."));
    let config = server("notes", "roots = [\".:rw\"]\n") + &allowed(&["notes:hang"]) + &named(&[&site]);
    let world = world(&[], &config);
    assert_eq!(there(&world, &["mcp", "accept", "notes", "--yes"]).0, Some(0));
    let mut killed = waiting(&world);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(is_gone(&world));
    let reads = |session: &str, path: &str| {
        let read = json!({"name": "read", "arguments": {"path": path}});
        assert_eq!(laundering::turn(&world, session, &[&[read]]), [""; 0], "{session}");
        may_fetch(&world, &site, session)
    };
    assert!(!reads("other", "held"));
    assert!(reads("plain", "plain.md"), "the control");
}

#[test]
fn s15_no_server_has_a_folder_that_no_tool_reaches_the_workspace_included() {
    let world = accepted(&[], &["notes:add"], "");
    let tested = |workspace: &str, roots: &str| {
        world.ok(&["config", "set", "mcp.notes.roots", roots]);
        let (_, tested) = world.json(&["--workspace", &text(&world.path(workspace)), "mcp", "test", "notes"]);
        tested.to_string()
    };
    for (workspace, roots, why) in [
        ("user", "[\".\"]", "your home folder"),
        ("user", "[\".:rw\"]", "your home folder"),
        ("project", "[\"/proc\"]", "/proc is closed to tools"),
        ("project", "[\"/\"]", "no folder is opened"),
        ("project", "[\"/etc/hostname\"]", "it is not a folder"),
    ] {
        let tested = tested(workspace, roots);
        assert!(tested.contains(why) && !tested.contains("connected"), "{roots} {tested}");
    }
    assert!(tested("project", "[\".:rw\"]").contains("connected"), "the control");
}

#[test]
fn several_processes_have_a_server_of_their_own_each() {
    let world = accepted(&[], &["notes:add"], "");
    script(&world, &[json!({"tool_calls": [add()]}), json!({"text": "Done."})]);
    thread::scope(|scope| {
        for session in ["one", "two", "three"] {
            let world = &world;
            scope.spawn(move || {
                let (code, said) = there(world, &["chat", "--session", session, "-m", "Add."]);
                assert_eq!((code, &said["calls"][0]["status"]), (Some(0), &json!("ok")), "{said}");
            });
        }
    });
}

#[test]
fn an_agent_that_names_a_tool_which_is_not_there_now_works_without_it() {
    let agent = "[agents.assistant]\ntools = [\"read\", \"notes:add\"]\n";
    let world = world(&[json!({"text": "Done."})], &(server("notes", "") + agent));
    let project = text(&world.path("project"));
    let run = world.run(&["--workspace", &project, "chat", "-m", "Hello."]);
    assert!(run.code == Some(0) && run.err.contains("there is no tool notes:add now"), "{run:?}");
}
