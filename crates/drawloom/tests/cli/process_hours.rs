//! A command in the background that is older than `limits.process_hours` is ended, and its end is told with that name (spec:
//! scale §4).

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::exec::{exec, world_with};
use crate::tools::{calls, nodes};
use crate::world::{World, lacks, text};

/// A clock that is two hours ahead as long as a file is there: what is measured in hours is met without waiting for it.
const CLOCK: &str = r#"
    #include <stdlib.h>
    #include <sys/syscall.h>
    #include <time.h>
    #include <unistd.h>

    int clock_gettime(clockid_t clock, struct timespec *now) {
        const char *file = getenv("AHEAD");
        int failed = syscall(SYS_clock_gettime, clock, now);
        if (!failed && clock == CLOCK_MONOTONIC && file && syscall(SYS_faccessat, -100, file, 0) == 0)
            now->tv_sec += 2 * 60 * 60;
        return failed;
    }
"#;

fn clock(world: &World) -> PathBuf {
    let library = world.path("clock.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-x", "c", "-o"]).arg(&library).arg("-").stdin(Stdio::piped());
    let mut compiler = compiler.spawn().unwrap();
    compiler.stdin.take().unwrap().write_all(CLOCK.as_bytes()).unwrap();
    assert!(compiler.wait().unwrap().success());
    library
}

fn process(arguments: &Value) -> Value {
    calls(&json!([{"name": "process", "arguments": arguments}]))
}

#[test]
fn a_command_in_the_background_that_is_too_old_is_ended_and_named() {
    if lacks(&["cc"]) {
        return;
    }
    for (hours, is_ended) in [(1, true), (3, false)] {
        let lines = [
            calls(&json!([{"name": "exec", "arguments":
                {"command": "while sleep 0.1; do echo tick; done", "background": true}}])),
            process(&json!({"process": 1, "wait_for": "tick", "timeout": 60})),
            calls(&json!([exec("touch ahead")])),
            process(
                &json!({"process": 1, "wait_for": if is_ended { "never" } else { "tick" }, "timeout": 60}),
            ),
            json!({"text": "Done."}),
        ];
        let world = world_with(
            &lines,
            &format!("[limits]\nprocess_hours = {hours}\nturn_time = 86400\nsame_call = 100\n"),
        );
        let (library, project) = (clock(&world), world.path("project"));
        let mut command = world.command(&["--workspace", &text(&project), "--json", "chat", "-m", "Do it."]);
        command.env("LD_PRELOAD", library).env("AHEAD", project.join("ahead"));
        let done = command.output().unwrap();
        let said: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
        assert_eq!(said["text"], "Done.", "{said}");
        assert!(fs::exists(project.join("ahead")).unwrap(), "{said}");
        let told: Vec<String> = nodes(&world)
            .into_iter()
            .filter(|node| node["author"] == "process")
            .map(|node| node["text"].as_str().unwrap().to_owned())
            .collect();
        let [before, after] = &told[..] else { panic!("{told:?}") };
        assert!(before.contains("): runs"), "{before}");
        assert_eq!(
            after.contains("): ended: it ran as long as one in the background may (limits.process_hours)"),
            is_ended,
            "{after}"
        );
        assert_eq!(after.contains("): runs"), !is_ended, "the control: {after}");
    }
}
