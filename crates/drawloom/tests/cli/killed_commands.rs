//! What commands changed whose program was killed or stopped meanwhile.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;

use crate::exec::{exec, world};
use crate::file_tools::{listed, say};
use crate::running_commands::{stop_until_marked, wait_until, with_end};
use crate::tools::{calls, chat, nodes};
use crate::undo_states::{give_to_user, user_command};
use crate::world::{Run, text};

#[test]
fn what_a_command_changed_whose_process_was_killed_is_given_back_after_it() {
    let world = world(&[calls(&json!([exec("echo agent > a; rm src/main.rs; sleep 300")]))]);
    let project = world.path("project");
    let before = listed(&project);
    let mut child = world.command(&["--workspace", &text(&project), "chat", "-m", "Do it."]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !project.join("a").exists() || project.join("src/main.rs").exists() {
        assert!(Instant::now() < deadline, "the command does not run");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    world.write("lines.jsonl", "{\"text\": \"Again.\"}\n");
    let (_, said) = chat(&world, "What now?");
    assert_eq!(said["text"], "Again.", "{said}");
    let told = "The outcome of this call is unknown: it was cut off. It may have had its effect. It changed 2 paths.";
    assert!(
        nodes(&world).iter().any(|node| node["text"].as_str().unwrap().contains(told)),
        "{:?}",
        nodes(&world)
    );
    let (_, log) = world.json(&["--workspace", &text(&project), "log"]);
    let cut: Vec<_> = log["exchanges"].as_array().unwrap().iter().map(|exchange| &exchange["cut"]).collect();
    assert_eq!(cut, [true, false], "{log}");
    let shown = say(&world, "/diff session").out;
    assert!(shown.contains("+agent") && shown.contains("-fn weave() {}"), "{shown}");
    for _ in 0..2 {
        say(&world, "/undo --files");
    }
    assert_eq!(listed(&project), before);
}

#[test]
fn what_a_command_changed_while_its_program_was_stopped_is_given_back_after_it() {
    let line = "touch made; until test -e go; do sleep 0.01; done; rm src/main.rs; touch over; sleep 300";
    let world = world(&[calls(&json!([exec(line)]))]);
    let project = world.path("project");
    let mut child = world.command(&["--workspace", &text(&project), "chat", "-m", "Do it."]).spawn().unwrap();
    wait_until("the command does not run", || project.join("made").exists());
    let roots = fs::read_dir(world.home().join("cache/checkpoints")).unwrap();
    let pending = roots.map(|root| root.unwrap().path().join("pending")).filter(|pending| pending.exists());
    let signs: Vec<_> = pending.flat_map(|pending| with_end(&pending, "alive")).collect();
    assert_eq!(signs.len(), 1);
    stop_until_marked(&child, &signs);
    fs::write(project.join("go"), "").unwrap();
    wait_until("the command ended with its program", || project.join("over").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    world.write("lines.jsonl", "{\"text\": \"Again.\"}\n");
    chat(&world, "What now?");
    for _ in 0..2 {
        say(&world, "/undo --files");
    }
    assert!(project.join("src/main.rs").exists() && !project.join("over").exists());
}

#[test]
fn what_a_person_changed_after_a_process_was_killed_is_theirs() {
    let world = world(&[calls(&json!([exec("echo agent > a; echo agent > notes; sleep 300")]))]);
    let project = world.path("project");
    fs::write(project.join("notes"), "old\n").unwrap();
    let mut child = world.command(&["--workspace", &text(&project), "chat", "-m", "Do it."]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_written = || fs::read_to_string(project.join("notes")).is_ok_and(|text| text == "agent\n");
    while !is_written() {
        assert!(Instant::now() < deadline, "the command does not run");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What is written within two seconds of the last sign of life may be the command's.
    let dead = SystemTime::now() + Duration::from_secs(3);
    while SystemTime::now() < dead {
        std::thread::yield_now();
    }
    fs::write(project.join("notes"), "mine\n").unwrap();
    fs::write(project.join("mine"), "mine\n").unwrap();
    world.write("lines.jsonl", "{\"text\": \"Again.\"}\n");
    chat(&world, "What now?");
    let back = say(&world, "/undo --files");
    assert!(
        back.err.contains("left as it is: notes: what it became was not kept, or may be yours"),
        "{back:?}"
    );
    assert!(!project.join("a").exists());
    assert_eq!(fs::read_to_string(project.join("notes")).unwrap(), "mine\n");
    assert_eq!(fs::read_to_string(project.join("mine")).unwrap(), "mine\n");
    let restored = world.run(&["--workspace", &text(&project), "chat", "-m", "/restore notes --yes"]);
    assert_eq!(fs::read_to_string(project.join("notes")).unwrap(), "old\n", "{restored:?}");
}

/// A folder that is not there for a time, as one of a drive that is not mounted.
#[test]
fn what_a_killed_command_changed_in_a_folder_that_is_away_waits_for_it() {
    for is_old in [false, true] {
        let world = world(&[calls(&json!([exec("echo agent > a; sleep 300")]))]);
        let project = world.path("project");
        let before = listed(&project);
        let mut child =
            world.command(&["--workspace", &text(&project), "chat", "-m", "Do it."]).spawn().unwrap();
        wait_until("the command does not run", || {
            fs::read_to_string(project.join("a")).is_ok_and(|text| text == "agent\n")
        });
        child.kill().unwrap();
        child.wait().unwrap();
        let (away, other) = (world.path("away"), world.path("other"));
        fs::rename(&project, &away).unwrap();
        fs::create_dir(&other).unwrap();
        if is_old {
            for record in fs::read_dir(world.home().join("cache/checkpoints")).unwrap() {
                for sign in with_end(&record.unwrap().path().join("pending"), "alive") {
                    let long_ago = SystemTime::now() - Duration::from_secs(31 * 24 * 60 * 60);
                    File::options().write(true).open(sign).unwrap().set_modified(long_ago).unwrap();
                }
            }
        }
        world.write("lines.jsonl", "{\"text\": \"Other.\"}\n{\"text\": \"Other.\"}\n");
        let tells = || {
            let chat = ["--workspace", &text(&other), "chat", "--session", "b", "-m", "Hi."];
            let said = world.run(&chat);
            assert_eq!(said.code, Some(0), "{said:?}");
            said.err.contains("cut off")
        };
        assert_eq!((tells(), tells()), (is_old, false));
        fs::rename(&away, &project).unwrap();
        world.write("lines.jsonl", "{\"text\": \"Again.\"}\n");
        chat(&world, "What now?");
        for _ in 0..2 {
            say(&world, "/undo --files");
        }
        assert_eq!(listed(&project) == before, !is_old);
    }
}

/// Such as a fresh clone under the old name.
#[test]
fn another_folder_in_the_place_of_that_of_a_killed_command_is_left_and_its_own_is_waited_for() {
    let world = world(&[calls(&json!([exec("echo agent > a; rm src/main.rs; sleep 300")]))]);
    let (project, away, other) = (world.path("project"), world.path("away"), world.path("other"));
    let before = listed(&project);
    let mut child = world.command(&["--workspace", &text(&project), "chat", "-m", "Do it."]).spawn().unwrap();
    wait_until("the command does not run", || {
        project.join("a").exists() && !project.join("src/main.rs").exists()
    });
    // Older than the kill, so that no time tells whose it is.
    fs::create_dir_all(other.join("src")).unwrap();
    fs::write(other.join("src/main.rs"), "fn own() {}\n").unwrap();
    fs::write(other.join("thesis"), "own\n").unwrap();
    let owners = listed(&other);
    child.kill().unwrap();
    child.wait().unwrap();
    fs::rename(&project, &away).unwrap();
    fs::rename(&other, &project).unwrap();
    world.write("lines.jsonl", "{\"text\": \"Again.\"}\n");
    for said in ["What now?", "/undo --files"] {
        let run = say(&world, said);
        assert!(run.err.contains("in whose place another folder stands"), "{run:?}");
        assert_eq!(listed(&project), owners, "{run:?}");
    }
    let shown = say(&world, "/diff session");
    assert!(!shown.out.contains("own") && !shown.out.contains("agent"), "{shown:?}");
    fs::rename(&project, &other).unwrap();
    fs::rename(&away, &project).unwrap();
    let back = say(&world, "/undo --files");
    assert_eq!(listed(&project), before, "{back:?}");
}

#[test]
fn a_workspace_that_a_killed_command_closed_is_open_again() {
    let command = "echo agent > a; chmod 000 .; sleep 300";
    for is_user in [false, true] {
        let world = world(&[calls(&json!([exec(command)]))]);
        let project = world.path("project");
        fs::set_permissions(&project, Permissions::from_mode(0o755)).unwrap();
        let before = listed(&project);
        if is_user {
            give_to_user(&world);
        }
        let command = |said: &str| match is_user {
            true => user_command(&world, &["chat", "-m", said]),
            false => world.command(&["--workspace", &text(&project), "chat", "-m", said]),
        };
        let mode = || fs::metadata(&project).unwrap().permissions().mode() & 0o7777;
        let mut child = command("Do it.").spawn().unwrap();
        wait_until("the command does not run", || mode() == 0);
        child.kill().unwrap();
        child.wait().unwrap();
        let back: Run = command("/undo --files").output().unwrap().into();
        assert!(back.err.contains("has its mode again: a command set it to"), "{back:?}");
        assert_eq!(mode(), 0o755, "{back:?}");
        assert_eq!(listed(&project), before, "{back:?}");
        // What its owner closes then stays so.
        fs::set_permissions(&project, Permissions::from_mode(0o000)).unwrap();
        let closed: Run = command("/undo --files").output().unwrap().into();
        assert_eq!(mode(), 0, "{closed:?}");
    }
}

/// Whether git takes a path for something that it runs is told there, too.
#[test]
fn what_a_killed_command_changed_comes_back_where_it_closed_a_folder() {
    for closed in ["sub", ".git"] {
        let command = format!("rm lib.rs sub/c; chmod 000 {closed}; echo > made; sleep 300");
        let world = world(&[calls(&json!([exec(&command)]))]);
        let project = world.path("project");
        for (path, text) in
            [("lib.rs", "ours\n"), ("sub/c", "ours\n"), (".git/HEAD", "ref: refs/heads/main\n")]
        {
            fs::create_dir_all(project.join(path).parent().unwrap()).unwrap();
            fs::write(project.join(path), text).unwrap();
        }
        give_to_user(&world);
        let mut child = user_command(&world, &["chat", "-m", "Do it."]).spawn().unwrap();
        wait_until("the command does not run", || project.join("made").exists());
        child.kill().unwrap();
        child.wait().unwrap();
        let back: Run = user_command(&world, &["chat", "-m", "/undo --files"]).output().unwrap().into();
        for path in ["lib.rs", "sub/c"] {
            assert_eq!(
                fs::read_to_string(project.join(path)).ok().as_deref(),
                Some("ours\n"),
                "{closed}: {back:?}"
            );
        }
        assert!(!project.join("made").exists(), "{closed}: {back:?}");
    }
}

#[test]
fn a_record_of_a_killed_command_that_cannot_be_read_is_said_and_ends() {
    let world = world(&[calls(&json!([exec("echo agent > a; sleep 300")]))]);
    let project = world.path("project");
    let mut child = world.command(&["--workspace", &text(&project), "chat", "-m", "Do it."]).spawn().unwrap();
    wait_until("the command does not run", || project.join("a").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let records = fs::read_dir(world.home().join("cache/checkpoints")).unwrap();
    let pending: Vec<_> = records.map(|root| root.unwrap().path().join("pending")).collect();
    let left = || -> Vec<_> {
        let entries = pending.iter().flat_map(|pending| fs::read_dir(pending).unwrap());
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    for record in left() {
        fs::write(record, "{\"version\": 99}").unwrap();
    }
    world.write("lines.jsonl", "{\"text\": \"Again.\"}\n");
    let next = say(&world, "What now?");
    let why =
        "what a command changed that was cut off cannot be given back: what stood before it cannot be read";
    assert!(next.err.contains(why), "{next:?}");
    assert!(left().is_empty(), "{:?}", left());
}
