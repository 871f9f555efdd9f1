//! Many turns that nobody watches, most of which meet a fault: what a program reads of each, and that none waits for
//! anybody (spec: cli §1).

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::headless::where_nobody_is;
use crate::program::program;
use crate::world::{World, text};

/// No run takes as long: one that does waits for somebody.
const PATIENCE: Duration = Duration::from_secs(60);

/// A turn: the lines of its model, the exit codes it may end with, and the blocks of 512 bytes that its files may have.
struct Case {
    name: &'static str,
    lines: Vec<Value>,
    codes: &'static [i32],
    file_blocks: Option<u64>,
    more: &'static [&'static str],
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"tool_calls": [{"name": name, "arguments": arguments}]})
}

/// The case of a number. Where in the answer the fault comes varies with it.
fn case(number: u64) -> Case {
    let done = || json!({"text": "Done."});
    let words: Vec<String> = (0..=number % 7).map(|word| format!("word{word} ")).collect();
    let faulty = |fault: &str| json!({"deltas": words, "fault": fault});
    let case = |name, lines, codes| Case { name, lines, codes, file_blocks: None, more: &[] };
    let agents = call("write", &json!({"path": "AGENTS.md", "content": format!("{number}\n")}));
    match number % 14 {
        0 => case("denied", vec![agents, done()], &[0]),
        1 => Case { more: &["--wait", "1"], ..case("nobody answers", vec![agents, done()], &[0]) },
        2 => case(
            "limit",
            vec![json!({"tool_calls": [{"name": "list", "arguments": {}}], "loop": true})],
            &[1],
        ),
        3 => case("cut stream", vec![faulty("cut")], &[5]),
        4 => case("garbage", vec![faulty("garbage")], &[5]),
        5 => case(
            "cut behind a call",
            vec![call("exec", &json!({"command": "echo x >> log"})), faulty("cut")],
            &[5],
        ),
        6 => case("busy server", vec![json!({"fault": "500"})], &[5]),
        7 => case("too long", vec![json!({"fault": "context_too_long"})], &[5]),
        8 => case("killed command", vec![call("exec", &json!({"command": "kill -9 $$"})), done()], &[0]),
        9 => {
            let sleeps = call("exec", &json!({"command": "sleep 300", "timeout": 1}));
            case("command without an end", vec![sleeps, done()], &[0])
        }
        10 => case("script that ends", vec![call("list", &json!({}))], &[5]),
        11 => {
            let text = "x".repeat(2_000);
            let lines = vec![call("exec", &json!({"command": format!("echo {text} > big")})), done()];
            // From less than an empty store has to more than the turn needs.
            let file_blocks = Some(1 << (number / 14 % 14));
            Case { file_blocks, ..case("full disk", lines, &[0, 5, 6]) }
        }
        12 => {
            let reads = call("exec", &json!({"command": "cat; head -c 1 < /dev/tty; echo read"}));
            case("command that reads its input", vec![reads, done()], &[0])
        }
        _ => case(
            "wrong arguments",
            vec![call("read", &json!({"file": 7})), call("raed", &json!({})), done()],
            &[0],
        ),
    }
}

fn world() -> World {
    let world = World::new();
    fs::create_dir_all(world.path("project")).unwrap();
    let file = text(&{
        world.write("lines.jsonl", "");
        world.home().join("lines.jsonl")
    });
    let tools = r#"["exec", "list", "read", "write"]"#;
    world.write(
        "config.toml",
        &format!(
            "[model]\ndefault = \"script:{file}\"\n[agents.assistant]\ntools = {tools}\n[limits]\nturn_calls = 3\nsame_call = 9\n"
        ),
    );
    world
}

fn run(world: &World, number: u64) {
    let Case { name, lines, codes, file_blocks, more } = case(number);
    world.write("lines.jsonl", &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    let project = text(&world.path("project"));
    let events = number.is_multiple_of(2);
    let said = format!("Go on with {number}.");
    let session = format!("s{}", number % 5);
    let form = if events { "--events" } else { "--json" };
    let words =
        [&["--workspace", &project, "chat", "--session", &session, "-m", &said, form][..], more].concat();
    let command = match file_blocks {
        None => world.command(&words),
        Some(blocks) => {
            let limited = world.command::<&str>(&[]);
            let mut shell = Command::new("/bin/sh");
            shell
                .args(["-c", &format!("ulimit -f {blocks}; exec \"$0\" \"$@\""), &text(program().as_ref())])
                .args(&words);
            shell.env_clear().envs(limited.get_envs().filter_map(|(name, value)| Some((name, value?))));
            shell.current_dir(limited.get_current_dir().unwrap());
            shell
        }
    };
    let mut child = where_nobody_is(&command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < PATIENCE, "{number} {name}: it waits for somebody");
        std::thread::sleep(Duration::from_millis(5));
    }
    let done = child.wait_with_output().unwrap();
    let (out, err) =
        (String::from_utf8(done.stdout).unwrap(), String::from_utf8_lossy(&done.stderr).into_owned());
    let told = || format!("{number} {name}: {:?}\n{out}\n{err}", done.status);
    let code = done.status.code().unwrap_or_else(|| panic!("{}", told()));
    assert!(codes.contains(&code), "{}", told());
    let lines: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {}", told())))
        .collect();
    let (last, before) = lines.split_last().unwrap_or_else(|| panic!("{}", told()));
    assert_eq!(last["error"].is_object(), code > 1, "{}", told());
    assert!(events || before.is_empty(), "{}", told());
    assert!(before.iter().all(|event| event["event"].is_string()), "{}", told());
    assert!(!err.contains("panicked"), "{}", told());
    if events {
        let numbers: Vec<u64> = lines.iter().map(|line| line["n"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{}", told());
        assert_eq!(last["event"], "finished", "{}", told());
    }
    match name {
        "denied" | "nobody answers" => assert_eq!(last["denied"][0]["tool"], "write", "{}", told()),
        "cut behind a call" => {
            assert_eq!(last["calls"][0]["status"], "ok", "{}", told());
            assert_eq!(last["changed"][0]["path"], "log", "{}", told());
        }
        "script that ends" => assert_eq!(last["calls"][0]["tool"], "list", "{}", told()),
        "limit" => {
            assert_eq!(last["finish"], "limit", "{}", told());
            assert_eq!(
                last["limit"],
                "the turn ended at a limit: the model was asked 3 times in this turn",
                "{}",
                told()
            );
        }
        _ => {}
    }
}

/// Runs the cases of these numbers in one home; after each the next begins with what it left.
fn all(numbers: impl Iterator<Item = u64>) {
    let world = world();
    numbers.for_each(|number| run(&world, number));
    world.write("lines.jsonl", "{\"text\": \"Done.\"}\n");
    let project = text(&world.path("project"));
    for session in 0..5 {
        let words = ["--workspace", &project, "chat", "--session", &format!("s{session}"), "-m", "And now?"];
        let (code, said) = world.json(&words);
        assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    }
    assert!(!world.path("project/AGENTS.md").exists());
    for tree in world.json(&["tree", "list"]).1["trees"].as_array().unwrap() {
        assert!(world.ok(&["tree", "verify", tree["short_id"].as_str().unwrap()]).starts_with("valid"));
    }
    assert_eq!(world.json(&["approvals", "list"]).1["approvals"], json!([]));
}

#[test]
fn turns_with_faults_end_by_themselves_with_a_code_and_lines_that_parse() {
    all(0..28);
}

#[test]
#[ignore = "takes minutes: .ci/run runs it"]
fn many_turns_with_faults_end_by_themselves() {
    all(0..200);
}
