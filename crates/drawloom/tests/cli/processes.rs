//! Commands in the background that a model looks at, hands input and ends: as policy and plan mode allow.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::exec::{world, world_with};
use crate::terminal::Terminal;
use crate::tools::{calls, chat, nodes};
use crate::world::{World, text};

fn background(command: &str) -> Value {
    json!({"name": "exec", "arguments": {"command": command, "background": true}})
}

fn process(arguments: &Value) -> Value {
    json!({"name": "process", "arguments": arguments})
}

fn done(expect: &[&str]) -> Value {
    json!({"text": "Done.", "expect": expect})
}

/// A turn whose answers are these, which ends as the last one expects.
fn turn(lines: &[Value]) -> World {
    let world = world(lines);
    let (code, said) = chat(&world, "Do it.");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    world
}

/// What the calls of a tool were told, in order.
fn results(world: &World, tool: &str) -> Vec<String> {
    let results = nodes(world).into_iter().filter(|node| node["author"] == tool);
    results.map(|node| node["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn in_plan_mode_a_process_that_may_write_takes_no_input_and_is_looked_at_and_ended() {
    let evil = process(&json!({"process": 1, "input": "echo EVIL > src/main.rs; echo wrote\n"}));
    let lines = [
        calls(&json!([background("sh")])),
        json!({"text": "Started."}),
        calls(&json!([evil])),
        calls(&json!([process(&json!({"process": 1, "wait_for": "wrote", "timeout": 1})), background("sh")])),
        calls(&json!([process(
            &json!({"process": 2, "input": "exec 2>&1; echo EVIL > src/main.rs; echo tried\n", "wait_for": "tried"})
        )])),
        json!({"text": "Looked.", "expect": [
            "process was not run: plan mode is on, and process 1 was started outside of it",
            "process 1 (sh): runs", "it did not print \"wrote\"", "ead-only file system"
        ]}),
        calls(&json!([process(
            &json!({"process": 1, "input": "echo fine > src/main.rs; echo wrote\n", "wait_for": "wrote"})
        )])),
        calls(&json!([process(&json!({"process": 1, "kill": true}))])),
        json!({"text": "Written.", "expect": ["process 1 (sh): stopped"]}),
    ];
    let world = world(&lines);
    let project = text(&world.path("project"));
    let command = world.command(&["--color", "never", "--workspace", &project, "chat"]);
    let mut terminal = Terminal::start(crate::trust::with_terminal(&command));
    let main = || fs::read_to_string(world.path("project/src/main.rs")).unwrap();
    for said in ["Start.\r", "/plan on\r", "Look.\r"] {
        terminal.says(said);
    }
    terminal.shows("Looked.");
    assert_eq!(main(), "fn weave() {}\n");
    for said in ["/plan off\r", "Write.\r"] {
        terminal.says(said);
    }
    terminal.shows("Written.");
    assert_eq!(main(), "fine\n", "the control: outside of plan mode it writes");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn looks_at_a_process_are_not_the_same_call_again() {
    let look = || calls(&json!([process(&json!({"process": 1}))]));
    turn(&[calls(&json!([background("sleep 60")])), look(), look(), look(), look(), done(&["runs"])]);
}

#[test]
fn calls_on_one_process_in_one_reply_run_one_after_another() {
    let world = turn(&[
        calls(&json!([background("while read line; do sleep 0.2; echo got $line; done")])),
        calls(&json!([
            process(&json!({"process": 1, "input": "one\n", "wait_for": "got one"})),
            process(&json!({"process": 1, "input": "two\n", "wait_for": "got two"})),
            process(&json!({"process": 1})),
            process(&json!({"process": 1})),
            process(&json!({"process": 1, "kill": true})),
            process(&json!({"process": 1, "timeout": 1})),
        ])),
        done(&[]),
    ]);
    let told = results(&world, "process");
    let line = "process 1 (while read line; do sleep 0.2; echo got $line; done)";
    assert_eq!(told[0], format!("{line}: runs\n[output]\ngot one"));
    assert_eq!(told[1], format!("{line}: runs\n[output]\ngot two"));
    assert_eq!(told[2..4], [format!("{line}: runs"), format!("{line}: runs")]);
    assert_eq!(told[4..], [format!("{line}: stopped"), format!("{line}: stopped")]);
}

/// A world where one command is denied.
fn without_rm(lines: &[Value]) -> World {
    world_with(lines, "[[policy.rules]]\ndecision = \"deny\"\ntool = [\"exec rm *\"]\n")
}

#[test]
fn a_line_in_pieces_is_judged_as_the_line_it_becomes() {
    for pieces in [["r", "m -r src\n"], ["rm \\\n", "-r src\n"], ["echo fine\nr", "m -r src; echo\n"]] {
        let [first, second] =
            pieces.map(|input| calls(&json!([process(&json!({"process": 1, "input": input}))])));
        let last =
            calls(&json!([process(&json!({"process": 1, "input": "\necho end\n", "wait_for": "end"}))]));
        let world = without_rm(&[
            calls(&json!([background("sh")])),
            first,
            second,
            last,
            done(&["was not run: rule 1"]),
        ]);
        let (_, said) = chat(&world, "Do it.");
        assert_eq!(said["text"], "Done.", "{pieces:?}: {said}");
        assert!(world.path("project/src").exists(), "{pieces:?}");
    }
    // The control: what is allowed runs in pieces.
    let pieces = ["touch a", "b\necho end\n"]
        .map(|input| calls(&json!([process(&json!({"process": 1, "input": input}))])));
    let [first, second] = pieces;
    let wait = calls(&json!([process(&json!({"process": 1, "wait_for": "end"}))]));
    let world = without_rm(&[calls(&json!([background("sh")])), first, second, wait, done(&[])]);
    assert_eq!(chat(&world, "Do it.").1["text"], "Done.");
    assert!(world.path("project/ab").exists());
}

#[test]
fn a_secret_that_is_printed_in_two_pieces_is_masked_in_what_both_looks_tell() {
    let key = "sk-drawloom-0123456789abcdef";
    let world = world(&[
        calls(&json!([background(
            "head -c 17 key.txt; read line; tail -c +18 key.txt; echo; echo end; sleep 300"
        )])),
        calls(&json!([process(&json!({"process": 1, "wait_for": "-0123"}))])),
        calls(&json!([process(&json!({"process": 1, "input": "\n", "wait_for": "end"}))])),
        done(&["secret:"]),
    ]);
    world.write("keys.toml", &format!("[providers.other]\nkey = \"{key}\"\n"));
    fs::set_permissions(world.home().join("keys.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(world.path("project/key.txt"), key).unwrap();
    let (_, said) = chat(&world, "Show it.");
    assert_eq!(said["text"], "Done.", "{said}");
    let told = results(&world, "process");
    assert!(told[0].ends_with(": runs") && told[1].ends_with("⟧\nend"), "{told:?}");
    let all = told.concat();
    assert!(!all.contains(&key[..17]) && !all.contains(&key[17..]), "{all}");
}

#[test]
fn a_text_over_the_end_of_the_last_look_is_found_and_one_before_it_is_not() {
    let world = turn(&[
        calls(&json!([background("printf ab; read line; printf cd; sleep 300")])),
        calls(&json!([process(&json!({"process": 1, "wait_for": "ab"}))])),
        calls(&json!([process(&json!({"process": 1, "wait_for": "ab", "timeout": 1}))])),
        calls(&json!([process(&json!({"process": 1, "input": "\n", "wait_for": "bcd", "timeout": 5}))])),
        done(&[]),
    ]);
    let told = results(&world, "process");
    assert!(told[0].ends_with("[output]\nab"), "{told:?}");
    assert!(told[1].contains("it did not print \"ab\" in 1 s"), "{told:?}");
    assert!(told[2].ends_with("[output]\ncd"), "{told:?}");
}

#[test]
fn input_to_a_process_that_has_ended_says_how_it_ended() {
    let world = turn(&[
        calls(&json!([background("echo bye; exit 3")])),
        calls(&json!([process(&json!({"process": 1, "wait_for": "never"}))])),
        calls(&json!([process(&json!({"process": 1, "input": "hello\n"}))])),
        done(&[]),
    ]);
    let told = results(&world, "process");
    assert!(told[0].contains("exit 3\n[output]\nbye"), "{told:?}");
    assert!(told[1].starts_with("process 1 (echo bye; exit 3): exit 3\n"), "{told:?}");
    assert!(told[1].contains("it did not take the input: it has ended"), "{told:?}");
}

#[test]
fn a_process_reads_the_end_of_its_input_after_the_last_of_it() {
    let world = turn(&[
        calls(&json!([background("cat; echo end")])),
        calls(&json!([process(&json!({"process": 1, "input": "one\n"}))])),
        calls(&json!([process(
            &json!({"process": 1, "input": "two\n", "end_of_input": true, "wait_for": "end"})
        )])),
        calls(&json!([process(&json!({"process": 1, "input": "three\n"}))])),
        done(&[]),
    ]);
    let told = results(&world, "process");
    assert!(told[..2].concat().contains("one") && told[1].ends_with("two\nend"), "{told:?}");
    assert!(told[2].contains(": exit 0") && told[2].contains("it has ended"), "{told:?}");
}

/// What exec said of these, in the home with these limits.
fn started(limits: &str, prepare: impl FnOnce(&World) -> Option<fs::File>, batches: &[Value]) -> Vec<String> {
    let mut lines: Vec<Value> = batches.iter().map(|batch| calls(&json!([batch]))).collect();
    lines.push(json!({"text": "Done."}));
    let world = world_with(&lines, &format!("[limits]\n{limits}\n"));
    let _held = prepare(&world);
    let (code, said) = chat(&world, "Do it.");
    assert_eq!(code, Some(0), "{said}");
    results(&world, "exec")
}

#[test]
fn commands_in_the_background_are_counted_in_a_conversation_and_in_all() {
    let [first, second] = <[String; 2]>::try_from(started(
        "processes = 1",
        |_| None,
        &[background("read go"), background("read go")],
    ))
    .unwrap();
    assert!(first.starts_with("process 1 runs"), "{first}");
    let why = "1 commands run in the background of this conversation already (limits.processes)";
    assert!(second.contains(why), "{second}");

    // Another process of the home has the only place.
    let other = |world: &World| {
        let locks = world.home().join("locks");
        fs::create_dir_all(&locks).unwrap();
        let place = fs::File::create(locks.join("background-0.lock")).unwrap();
        place.try_lock().unwrap();
        Some(place)
    };
    let why = "1 commands run in the background of all conversations already (limits.processes_in_all)";
    let refused = started("processes_in_all = 1", other, &[background("read go")]);
    assert!(refused[0].contains(why), "{refused:?}");
    let placed = started("processes_in_all = 2", other, &[background("read go"), background("read go")]);
    assert!(placed[0].starts_with("process 1 runs") && placed[1].contains("2 commands run"), "{placed:?}");
    // The place of one that ended is free.
    let end = process(&json!({"process": 1, "kill": true}));
    let again =
        started("processes_in_all = 1", |_| None, &[background("read go"), end, background("read go")]);
    assert!(again.iter().all(|said| said.contains("runs in the background")), "{again:?}");
}

#[test]
fn what_is_not_kept_of_the_output_of_one_in_the_background_names_the_limit() {
    let print = "i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); done; echo end; read go";
    let look = process(&json!({"process": 1, "wait_for": "end\n"}));
    let lines = [calls(&json!([background(print)])), calls(&json!([look])), json!({"text": "Done."})];
    let world = world_with(&lines, "[limits]\nprocess_log = 1024\n");
    assert_eq!(chat(&world, "Do it.").0, Some(0));
    let told = &results(&world, "process")[0];
    assert!(
        told.contains("are not kept any more (limits.process_log)") && told.contains("line 399"),
        "{told}"
    );
    assert!(!told.contains("line 12\n"), "{told}");
}
