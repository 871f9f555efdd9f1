//! Sessions: what their commands share, and that it ends with them.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use drawloom_sandbox::Level;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::rows::{HOLDS, still_holds};
use crate::world::{User, World, lacks};

#[derive(Debug, Deserialize)]
pub(crate) struct Given {
    pub(crate) ending: String,
    pub(crate) text: String,
    pub(crate) notices: String,
}

pub(crate) fn follow(world: &World, level: Level, steps: &Value) -> Vec<Given> {
    given(world.sessions(level, &steps.to_string(), &[]))
}

pub(crate) fn follow_with_cache(world: &World, steps: &Value) -> Vec<Given> {
    given(world.sessions(Level::Full, &steps.to_string(), &[world.cache()]))
}

fn given(mut program: Command) -> Vec<Given> {
    let output = program.output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

pub(crate) fn step(session: usize, name: &str, value: impl Into<Value>) -> Value {
    let action = if name.is_empty() { value.into() } else { json!({ name: value.into() }) };
    json!({ "session": session, "action": action })
}

pub(crate) fn background(session: usize, line: &str, until: &str) -> Value {
    step(session, "background", json!([line, until]))
}

const SERVER: &str = r#"exec "$ATTEMPT" serve 8123"#;
const CLIENT: &str = r#""$ATTEMPT" ask 8123"#;
const EXITED: &str = "Exited(0)";

#[test]
fn a_server_and_a_file_of_a_session_are_found_by_its_next_command_and_by_no_other_session() {
    for user in User::all() {
        let world = World::new(user);
        let given = follow(
            &world,
            Level::Full,
            &json!([
                background(0, SERVER, "listening"),
                step(0, "run", "echo ours > /tmp/file"),
                step(0, "run", format!("{CLIENT} && cat /tmp/file && ls /tmp")),
                step(1, "run", CLIENT),
                step(1, "run", "ls /tmp"),
                step(0, "run", r"cat /proc/[0-9]*/cmdline"),
            ]),
        );
        assert!(given[0].ending.starts_with("Printed"), "{user:?}: {given:?}");
        assert_eq!(
            (given[2].ending.as_str(), given[2].notices.as_str()),
            (EXITED, "[]"),
            "{user:?}: {given:?}"
        );
        assert!(given[2].text.starts_with("hello\nours\n"), "{user:?}: {given:?}");
        assert_eq!(given[3].ending, "Exited(1)", "{user:?}: {given:?}");
        assert!(!given[4].text.contains("file"), "{user:?}: {given:?}");
        // Processes are those of each command.
        assert!(!given[5].text.contains("serve"), "{user:?}: {given:?}");
    }
}

#[test]
fn a_session_holds_what_the_walls_of_a_command_hold() {
    let world = World::new(User::Own);
    let given = follow(
        &world,
        Level::Full,
        &json!([
            background(0, SERVER, "listening"),
            step(0, "run", r#"! "$ATTEMPT" attempt tcp && ! test -e "$OUTSIDE/file""#),
            step(0, "run", "echo evil > .envrc; ! touch AGENTS.md"),
            step(0, "run", "head -c 20000000 /dev/zero > /tmp/big"),
            step(0, "run", r#""$ATTEMPT" attempt setns"#),
        ]),
    );
    assert!(given[3].text.contains("No space left"), "{given:?}");
    assert_ne!(given[4].ending, EXITED, "{given:?}");
    assert_eq!(given[1].ending, EXITED, "{given:?}");
    assert_eq!(given[2].ending, EXITED, "{given:?}");
    assert!(given[2].notices.contains("Quarantined"), "{given:?}");
}

#[test]
fn below_full_a_session_has_a_folder_and_no_network() {
    let world = World::new(User::Own);
    let given = follow(
        &world,
        Level::Partial,
        &json!([
            step(0, "run", "echo ours > $TMPDIR/file"),
            step(0, "run", "cat $TMPDIR/file"),
            step(1, "run", "cat $TMPDIR/file"),
        ]),
    );
    assert_eq!(given[1].text, "ours\n", "{given:?}");
    assert_eq!(given[2].ending, "Exited(1)", "{given:?}");
    assert_eq!(std::fs::read_dir(world.path("sessions")).unwrap().count(), 0);
}

#[test]
fn a_background_command_is_spoken_to_and_ends_when_its_input_does_or_it_is_cancelled() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        let given = follow(
            &world,
            level,
            &json!([
                background(0, "echo ready; while read line; do echo got $line; done; echo over", "ready"),
                step(0, "say", json!(["one\n", "got one"])),
                step(0, "say", json!(["two\n", "got two"])),
                step(0, "", "close_input"),
                step(0, "", "finish"),
                background(0, "echo ready; sleep 60", "ready"),
                step(0, "", "cancel"),
                step(0, "", "finish"),
            ]),
        );
        assert!(given[2].ending.starts_with("Printed"), "{level}: {given:?}");
        let all = "ready\ngot one\ngot two\nover\n";
        assert_eq!((given[4].ending.as_str(), given[4].text.as_str()), (EXITED, all), "{level}: {given:?}");
        assert_eq!(given[7].ending, "Cancelled", "{level}: {given:?}");
    }
}

/// Abstract sockets are held by Landlock alone in a network that is shared.
#[test]
fn a_socket_in_tmp_answers_another_command_and_an_abstract_one_does_not() {
    if lacks(&["python3"]) {
        return;
    }
    let world = World::new(User::Own);
    let server = |address: &str| {
        format!(
            "/usr/bin/python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.bind({address}); s.listen(); \
            print(\"on\", flush=True); s.accept()[0].send(b\"x\")'"
        )
    };
    let client = |address: &str| {
        format!(
            "/usr/bin/python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.connect({address}); \
            print(s.recv(1))' 2>&1"
        )
    };
    let (file, free) = ("\"/tmp/socket\"", "\"\\0free\"");
    let given = follow(
        &world,
        Level::Full,
        &json!([
            background(0, &server(file), "on"),
            step(0, "run", client(file)),
            background(0, &server(free), "on"),
            step(0, "run", client(free)),
        ]),
    );
    assert_eq!(given[1].ending, EXITED, "{given:?}");
    assert!(given[2].ending.starts_with("Printed"), "{given:?}");
    assert!(given[3].text.contains("PermissionError"), "{given:?}");
}

#[test]
fn commands_end_with_their_session_and_none_begins_in_one_that_is_over() {
    for level in [Level::Full, Level::Partial, Level::None] {
        let world = World::new(User::Own);
        let steps = json!([
            background(0, HOLDS, "on"),
            step(0, "", "end"),
            step(0, "", "finish"),
            step(0, "run", "true"),
        ]);
        let given = follow(&world, level, &steps);
        assert_eq!(given[2].ending, "Cancelled", "{level}: {given:?}");
        assert_eq!(given[3].ending, "the session of the command is over", "{level}: {given:?}");
        assert!(!still_holds(&world), "{level}");
    }
}

#[test]
fn commands_end_with_a_process_of_a_session_that_is_killed() {
    for level in [Level::Full, Level::Partial, Level::None] {
        let world = World::new(User::Own);
        let steps = json!([background(0, HOLDS, "on"), step(0, "", "wait")]);
        let mut program =
            world.sessions(level, &steps.to_string(), &[]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "waiting\n");
        assert!(still_holds(&world), "{level}: the control");
        program.kill().unwrap();
        program.wait().unwrap();
        let until = Instant::now() + Duration::from_secs(5);
        while still_holds(&world) {
            assert!(Instant::now() < until, "{level}");
            std::thread::yield_now();
        }
    }
}

#[test]
fn what_a_person_accepted_while_a_command_ran_stays() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        let steps = |accepts: bool| {
            let way = if accepts { "accept" } else { "write" };
            json!([
                background(0, "echo on; read line", "on"),
                step(1, way, json!([".envrc", "a person's"])),
                step(0, "", "close_input"),
                step(0, "", "finish"),
            ])
        };
        let given = follow(&world, level, &steps(true));
        assert_eq!(given[3].notices, "[]", "{level}: {given:?}");
        assert_eq!(world.text("root/.envrc").unwrap(), "a person's");
        std::fs::remove_file(world.path("root/.envrc")).unwrap();
        let given = follow(&world, level, &steps(false));
        assert!(given[3].notices.contains("Quarantined"), "{level}, the control: {given:?}");
    }
}

/// What a person took away is no file of theirs that a command may put there again.
#[test]
fn what_a_command_puts_where_a_tool_took_a_file_away_is_moved_away() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        let given = follow(
            &world,
            level,
            &json!([
                background(0, "echo on; read line; echo evil > AGENTS.md", "on"),
                step(1, "remove", json!("AGENTS.md")),
                step(0, "", "close_input"),
                step(0, "", "finish"),
            ]),
        );
        assert_ne!(world.text("root/AGENTS.md").as_deref(), Some("evil\n"), "{level}: {given:?}");
        assert!(given[3].notices.contains("AGENTS.md"), "{level}: {given:?}");
    }
}

/// The command has the accepted text, and gives the file that text again, or other rights, or another name.
#[test]
fn what_a_command_does_to_an_accepted_file_is_found() {
    let again = "printf \"a person's\"";
    for level in [Level::Full, Level::Partial] {
        for (line, is_found) in [
            ("cat .envrc", false),
            ("rm .envrc; mv copy .envrc", true),
            (&format!("{again} > .envrc"), true),
            ("chmod 755 .envrc", true),
            ("ln -f copy .envrc", true),
            ("ln .envrc name", true),
        ] {
            let world = World::new(User::Own);
            let given = follow(
                &world,
                level,
                &json!([
                    background(0, &format!("{again} > copy; echo on; read line; {line}"), "on"),
                    step(1, "accept", json!([".envrc", "a person's"])),
                    step(0, "", "close_input"),
                    step(0, "", "finish"),
                ]),
            );
            assert_eq!(given[3].notices.contains("Quarantined"), is_found, "{level} {line}: {given:?}");
            assert_eq!(world.path("root/.envrc").exists(), !is_found, "{level} {line}: {given:?}");
        }
    }
}

#[test]
fn of_a_new_folder_that_holds_an_accepted_file_only_what_else_is_in_it_is_moved_away() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        let given = follow(
            &world,
            level,
            &json!([
                background(0, "echo on; read line; mkdir .husky/_; echo evil > .husky/_/x", "on"),
                step(1, "accept", json!([".husky/pre-commit", "a person's"])),
                step(0, "", "close_input"),
                step(0, "", "finish"),
            ]),
        );
        assert_eq!(given[3].notices.matches("Quarantined").count(), 1, "{level}: {given:?}");
        assert_eq!(world.text("root/.husky/pre-commit").unwrap(), "a person's", "{level}: {given:?}");
        assert!(!world.path("root/.husky/_").exists(), "{level}: {given:?}");
    }
}

#[test]
fn what_was_accepted_long_ago_is_given_back_when_a_command_of_another_session_changes_it() {
    let world = World::new(User::Own);
    let until = |is_so: &str| format!("until {is_so}; do sleep 0.01; done");
    let evil = "echo begun; read line; echo evil > AGENTS.md; echo evil > .envrc; echo on";
    let given = follow(
        &world,
        Level::Partial,
        &json!([
            step(0, "accept", json!(["AGENTS.md", "ours"])),
            step(0, "accept", json!([".envrc", "ours"])),
            background(1, &format!("{evil}; {}", until("test -e over")), "begun"),
            // The session of the acceptance joins the record.
            step(0, "run", "true"),
            step(1, "say", json!(["\n", "on"])),
            // It begins when the text is the other one, and ends once that was given back.
            step(2, "run", format!("touch over; {}", until("grep -q ours AGENTS.md"))),
            step(1, "", "finish"),
        ]),
    );
    assert!(given[6].notices.contains("Restored"), "{given:?}");
    assert_eq!(world.text("root/AGENTS.md").unwrap(), "ours", "{given:?}");
    assert_eq!(world.text("root/.envrc").unwrap(), "ours", "{given:?}");
}
