//! What commands in the background change is shown and given back, as what tools change is (spec: agent §3 *Checkpoints*).

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::exec::{exec, world};
use crate::file_tools::{listed, say};
use crate::server::{self, Server};
use crate::terminal::Terminal;
use crate::tools::{calls, chat, nodes};
use crate::trust::with_terminal;
use crate::world::{Run, World, piped, text};

fn background(command: &str) -> Value {
    json!({"name": "exec", "arguments": {"command": command, "background": true}})
}

fn look(arguments: &Value) -> Value {
    json!({"name": "process", "arguments": arguments})
}

#[test]
fn what_is_set_in_a_conversation_ends_nothing_that_runs_in_its_background() {
    let world = world(&[
        calls(&json!([background("read go; printf 'he%s\\n' ard; read go")])),
        json!({"text": "Started."}),
        calls(&json!([look(&json!({"process": 1, "input": "\n", "wait_for": "he"}))])),
        // In no line but what it printed.
        json!({"text": "Still there.", "expect": ["heard"]}),
    ]);
    let project = text(&world.path("project"));
    let command = world.command(&["--color", "never", "--workspace", &project, "chat"]);
    let mut terminal = Terminal::sized(with_terminal(&command), 100, 200);
    terminal.at_prompt();
    terminal.says("Start.\r");
    terminal.shows("Started.");
    for line in ["/set temperature=0.5\r", "/system Be brief.\r", "/plan on\r", "/plan off\r"] {
        terminal.says(line);
        terminal.at_prompt();
    }
    terminal.says("Look.\r");
    terminal.shows("Still there.");
    terminal.types("/quit\r");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn what_a_command_in_the_background_changes_is_shown_and_given_back() {
    let command = "read go; echo bg > bg.txt; echo '// x' >> src/main.rs; echo one; \
                   read go; rm gone; echo two; read go; echo three > three.txt; echo three";
    let next = |text: &str| look(&json!({"process": 1, "input": "\n", "wait_for": text}));
    let world = world(&[
        calls(&json!([background(command)])),
        calls(&json!([next("one")])),
        calls(&json!([exec("echo mine > mine.txt")])),
        calls(&json!([look(&json!({"process": 1}))])),
        calls(&json!([next("two"), next("three")])),
        json!({"text": "Done."}),
    ]);
    let project = world.path("project");
    fs::write(project.join("gone"), "here\n").unwrap();
    let before = listed(&project);
    let (code, said) = chat(&world, "Do it.");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    let told: Vec<String> = nodes(&world)
        .into_iter()
        .filter(|node| node["author"] == "process" || node["author"] == "exec")
        .map(|node| node["text"].as_str().unwrap().to_owned())
        .collect();
    let marked = "[files changed in the background]\n";
    assert!(!told[0].contains(marked), "{told:?}");
    assert!(
        told[1].ends_with(&format!("{marked}made bg.txt (+1 −0)\nchanged src/main.rs (+1 −0)")),
        "{told:?}"
    );
    assert!(told[2].contains("made mine.txt") && !told[2].contains(marked), "{told:?}");
    assert!(!told[3].contains(marked), "what another call changed is its own: {told:?}");
    assert!(told[4].ends_with(&format!("{marked}deleted gone (+0 −1)")), "{told:?}");
    assert!(told[5].ends_with(&format!("{marked}made three.txt (+1 −0)")), "{told:?}");

    let shown = say(&world, "/diff").out;
    for line in ["+bg", "+// x", "+mine", "-here", "+three"] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    let back = say(&world, "/undo --files");
    assert_eq!((back.code, back.err.as_str()), (Some(0), "/redo --files takes it again\n"), "{back:?}");
    assert_eq!(listed(&project), before);
}

#[test]
fn a_person_is_told_at_once_what_a_command_in_the_background_changed() {
    let world = world(&[
        calls(&json!([background("read go; echo bg > bg.txt; echo one; read go")])),
        calls(&json!([look(&json!({"process": 1, "input": "\n", "wait_for": "one"}))])),
        json!({"text": "Done."}),
    ]);
    let project = world.path("project");
    let told = world.run(&["--workspace", project.to_str().unwrap(), "chat", "-m", "Do it."]).err;
    assert!(told.contains("made bg.txt (+1 −0)"), "{told}");
}

#[test]
fn what_it_changes_before_its_turn_ends_is_found_and_what_a_person_changes_after_is_not() {
    let command = "echo bg > bg.txt; read go; echo later > later.txt; echo done";
    let world = world(&[
        calls(&json!([background(command)])),
        calls(&json!([exec("while [ ! -s bg.txt ]; do :; done")])),
        json!({"text": "First."}),
        // What the first look of a turn brings about is the command's.
        calls(&json!([look(&json!({"process": 1, "input": "\n", "wait_for": "done"}))])),
        json!({"text": "Second."}),
    ]);
    let project = world.path("project");
    let command = world.command(&["--workspace", &text(&project), "chat", "--color", "never"]);
    let mut terminal = Terminal::sized(with_terminal(&command), 100, 200);
    terminal.at_prompt();
    terminal.says("One.\r");
    terminal.shows("First.");
    // A person works between the turns: it stays theirs.
    fs::write(project.join("mine.txt"), "mine\n").unwrap();
    fs::remove_file(project.join("bg.txt")).unwrap();
    terminal.says("Two.\r");
    terminal.shows("Second.");
    terminal.types("/quit\r");
    assert_eq!(terminal.ended(), Some(0));
    let shown = say(&world, "/diff").out;
    assert!(shown.contains("+later") && !shown.contains("mine"), "{shown}");
    let back = say(&world, "/undo --files");
    assert_eq!(back.out, "given back: later.txt\n", "{back:?}");
    assert!(project.join("mine.txt").exists() && !project.join("later.txt").exists());
}

/// A turn in which a command builds over a file of the owner's is shown and taken back.
fn is_given_back(world: &World) {
    let project = world.path("project");
    fs::write(project.join("owner.txt"), "the owner's\n").unwrap();
    let before = listed(&project);
    let (code, said) = chat(world, "Do it.");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    let shown = say(world, "/diff").out;
    assert!(shown.contains("-the owner's") && shown.contains("+built"), "{shown}");
    say(world, "/undo --files");
    assert_eq!(listed(&project), before);
}

#[test]
fn what_it_changes_while_another_call_writes_is_given_back_too() {
    let command = "until [ -s src.txt ]; do :; done; echo built > owner.txt; echo done; read go";
    let world = world(&[
        calls(&json!([background(command)])),
        // The command goes on within this one.
        calls(&json!([exec("echo x > src.txt; until grep -q built owner.txt; do :; done")])),
        calls(&json!([json!({"name": "write", "arguments": {"path": "own.txt", "content": "own\n"}})])),
        calls(&json!([look(&json!({"process": 1, "kill": true}))])),
        json!({"text": "Done."}),
    ]);
    is_given_back(&world);
}

/// At any time: before the other command is recorded, while it runs, and once it has ended.
#[test]
fn what_it_changes_all_along_while_other_commands_run_is_given_back_too() {
    let command = "i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i > changing.txt; done; echo built > owner.txt; rm stop";
    let other = || exec("cat changing.txt; echo x >> other.txt");
    let world = world(&[
        calls(&json!([background(command)])),
        calls(&json!([other(), other(), other()])),
        calls(&json!([other()])),
        calls(&json!([exec("touch stop; while [ -e stop ]; do :; done")])),
        calls(&json!([look(&json!({"process": 1, "kill": true}))])),
        json!({"text": "Done."}),
    ]);
    fs::write(world.path("project/changing.txt"), "0\n").unwrap();
    is_given_back(&world);
}

#[test]
fn what_it_changes_once_another_call_has_written_is_its_change() {
    // It sees the file as soon as it is there, in the middle of the call.
    let command = "until [ -e src.txt ]; do :; done; echo built > owner.txt; echo done; read go";
    let write = json!({"name": "write", "arguments": {"path": "src.txt", "content": "x\n"}});
    let world = world(&[
        calls(&json!([background(command)])),
        calls(&json!([write])),
        calls(&json!([look(&json!({"process": 1, "wait_for": "done"}))])),
        calls(&json!([look(&json!({"process": 1, "kill": true}))])),
        json!({"text": "Done."}),
    ]);
    is_given_back(&world);
}

/// The first turns of two conversations have one number.
#[test]
fn what_a_person_changes_before_another_conversation_is_not_the_commands() {
    let world = world(&[
        calls(&json!([background("read go")])),
        json!({"text": "Done."}),
        calls(&json!([exec("echo other > other.txt")])),
        json!({"text": "Done."}),
    ]);
    let project = world.path("project");
    let command = world.command(&["--workspace", &text(&project), "chat", "--color", "never"]);
    let mut terminal = Terminal::sized(with_terminal(&command), 100, 200);
    terminal.at_prompt();
    terminal.says("One.\r");
    fs::write(project.join("mine.txt"), "mine\n").unwrap();
    terminal.says("/new\r");
    terminal.says("Two.\r");
    terminal.says("/diff\r");
    let seen = terminal.plain();
    assert_eq!(seen.matches("calls exec").count(), 2, "{seen}");
    assert!(seen.contains("+other") && !seen.contains("mine.txt"), "{seen}");
    terminal.types("/quit\r");
    assert_eq!(terminal.ended(), Some(0));
}

/// A world whose model starts a command and answers only once that has written a file of these lines, and `answer` let it.
fn world_behind_a_command(answer: impl Fn() + Send + Sync + 'static) -> (World, Server) {
    let world = World::new();
    let project = world.path("project");
    let of_server = project.clone();
    let near = Server::start(move |path, body| {
        if !path.ends_with("/chat/completions") {
            return None;
        }
        if body["messages"].as_array()?.iter().all(|message| message["role"] != "tool") {
            let arguments = json!({"command": "until [ -e go ]; do :; done; echo bg > bg.txt; read go", "background": true});
            return Some(server::call("one", "", "exec", &arguments));
        }
        // The command goes on only while the model answers.
        fs::write(of_server.join("go"), "").unwrap();
        while !fs::read(of_server.join("bg.txt")).is_ok_and(|read| read == b"bg\n") {
            std::thread::yield_now();
        }
        fs::remove_file(of_server.join("go")).unwrap();
        answer();
        Some(server::chat("", "Done.", 1_000))
    });
    world.write(
        "config.toml",
        &format!(
            "[providers.box]\nbase_url = \"{}\"\nkind = \"openai\"\nwindow = 16000\n[models.\"box/m\"]\ntools = true\n\
             [model]\ndefault = \"box/m\"\n[agents.assistant]\ntools = [\"exec\"]\n",
            near.base()
        ),
    );
    fs::create_dir_all(&project).unwrap();
    (world, near)
}

/// What the command of that world changed is shown and given back.
fn is_shown_and_given_back(world: &World) {
    let shown = say(world, "/diff").out;
    assert!(shown.contains("+bg"), "{shown}");
    assert_eq!(say(world, "/undo --files").out, "given back: bg.txt\n");
    assert!(!world.path("project").join("bg.txt").exists());
}

#[test]
fn what_it_changes_after_the_last_call_is_found_at_the_end_of_the_turn() {
    let (world, _near) = world_behind_a_command(|| ());
    let (code, said) = chat(&world, "Do it.");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    is_shown_and_given_back(&world);
}

/// Sends a signal to `chat -m` while its model answers, which it does once the receiver is told to go on.
fn signalled(world: &World, prefix: &str, (signal, waits): (Signal, &Receiver<()>)) -> Child {
    let project = text(&world.path("project"));
    let chat = world.command(&["--workspace", &project, "chat", "-m", "Do it."]);
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("{prefix} exec \"$@\""), "sh"])
        .arg(chat.get_program())
        .args(chat.get_args());
    command.env_clear().envs(chat.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null());
    let child = piped(&mut command);
    waits.recv().unwrap();
    kill_process(Pid::from_child(&child), signal).unwrap();
    child
}

/// A model that says when it was asked, and answers when it is let.
fn waiting_answer() -> (impl Fn() + Send + Sync + 'static, Receiver<()>, Sender<()>) {
    let (asked, waits) = channel();
    let (let_on, lets) = channel::<()>();
    let held = Mutex::new((asked, lets));
    let answer = move || {
        let held = held.lock().unwrap();
        held.0.send(()).unwrap();
        let _ = held.1.recv();
    };
    (answer, waits, let_on)
}

#[test]
fn a_signal_that_ends_the_call_keeps_what_was_changed_in_the_background() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        if signal == Signal::HUP && hangup_is_ignored() {
            println!("not run: the tests themselves ignore SIGHUP");
            continue;
        }
        let (answer, waits, _let_on) = waiting_answer();
        let (world, _near) = world_behind_a_command(answer);
        let run: Run = signalled(&world, "", (signal, &waits)).wait_with_output().unwrap().into();
        assert_eq!(run.code, Some(code), "{signal:?}: {run:?}");
        is_shown_and_given_back(&world);
    }
}

fn hangup_is_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1
}

#[test]
fn who_is_to_outlive_the_terminal_does() {
    let (answer, waits, let_on) = waiting_answer();
    let (world, _near) = world_behind_a_command(answer);
    let child = signalled(&world, "trap '' HUP;", (Signal::HUP, &waits));
    let_on.send(()).unwrap();
    let run: Run = child.wait_with_output().unwrap().into();
    assert_eq!((run.code, run.out.trim_end()), (Some(0), "Done."), "{run:?}");
}

#[test]
fn what_it_writes_until_the_call_ends_it_is_its_change() {
    let world = world(&[
        calls(&json!([background("while :; do n=$((n+1)); echo $n > bg.txt; done")])),
        // It is empty most of the time: a file system may write out what is cut off before it goes on.
        calls(&json!([exec("until [ -e bg.txt ]; do :; done")])),
        json!({"text": "Done."}),
    ]);
    let (code, said) = chat(&world, "Do it.");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    let undone = say(&world, "/undo --files");
    assert_eq!(undone.out, "given back: bg.txt\n", "{undone:?} {:?}", nodes(&world));
}
