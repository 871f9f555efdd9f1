//! What `chat` takes besides the message: system prompt, sampling, text at standard input.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::headless::question;
use crate::server::{self, Server};
use crate::terminal::Terminal;
use crate::world::{World, piped, text};

/// A home whose default model is a server on this machine, and the server.
fn home() -> (World, Server) {
    let world = World::new();
    let near =
        Server::start(|path, _| path.ends_with("/chat/completions").then(|| server::chat("", "Said.", 10)));
    world.write(
        "config.toml",
        &format!(
            "[model]\ndefault = \"box/m\"\n[providers.box]\nbase_url = \"{}\"\nkind = \"ollama\"\nwindow = 32000\n\
             [presets.cold]\ntemperature = 0.125\nmax_tokens = 70\n",
            near.base()
        ),
    );
    (world, near)
}

fn asked_last(near: &Server) -> Value {
    near.bodies().pop().unwrap()
}

/// The text of what stands above a conversation.
fn system(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap();
    messages
        .iter()
        .filter(|message| message["role"] == "system")
        .map(|message| message["content"].to_string())
        .collect()
}

#[test]
fn flags_of_a_chat_set_its_sampling_for_that_call_alone() {
    let (world, near) = home();
    world.ok(&["chat", "-m", "one", "--temperature", "0.5", "--max-tokens", "9", "--seed", "7"]);
    let body = asked_last(&near);
    assert_eq!((&body["temperature"], &body["seed"]), (&json!(0.5), &json!(7)), "{body}");
    assert!(body.to_string().contains("max_tokens\":9"), "{body}");
    world.ok(&["chat", "-m", "two", "--preset", "cold", "--max-tokens", "8"]);
    let body = asked_last(&near);
    assert_eq!((&body["temperature"], &body["seed"]), (&json!(0.125), &Value::Null), "{body}");
    assert!(body.to_string().contains("max_tokens\":8"), "a flag goes before the preset: {body}");
    world.ok(&["chat", "-m", "three"]);
    assert_eq!(asked_last(&near)["temperature"], Value::Null);
    for (flag, value) in [("--temperature", "9"), ("--max-tokens", "0"), ("--seed", "x")] {
        let run = world.run(&["chat", "-m", "four", flag, value]);
        assert!(run.code == Some(2) && run.err.contains(flag), "{run:?}");
    }
}

#[test]
fn a_system_prompt_is_kept_with_its_session() {
    let (world, near) = home();
    world.ok(&["chat", "-m", "before"]);
    let built_in = system(&asked_last(&near));
    world.ok(&["chat", "-m", "one", "--system", "Speak like a boatman."]);
    assert!(system(&asked_last(&near)).contains("Speak like a boatman."));
    assert!(!system(&asked_last(&near)).contains("helpful assistant"), "it stands in its place");
    world.ok(&["chat", "-m", "two"]);
    assert!(system(&asked_last(&near)).contains("Speak like a boatman."), "the next call has it too");
    world.ok(&["chat", "--session", "other", "-m", "there"]);
    assert_eq!(system(&asked_last(&near)), built_in);
    let (_, shown) = world.json(&["chat", "-m", "/system"]);
    assert_eq!(shown["system"], "Speak like a boatman.");
    world.ok(&["chat", "-m", "/system off"]);
    world.ok(&["chat", "-m", "three"]);
    assert_eq!(system(&asked_last(&near)), built_in);
}

#[test]
fn what_is_set_in_a_session_stays_until_it_is_taken_back() {
    let (world, near) = home();
    world.ok(&["chat", "-m", "one"]);
    world.ok(&["chat", "-m", "/set temperature=0.25"]);
    world.ok(&["chat", "-m", "/set seed=-3"]);
    world.ok(&["chat", "-m", "two"]);
    let body = asked_last(&near);
    assert_eq!((&body["temperature"], &body["seed"]), (&json!(0.25), &json!(-3)), "{body}");
    world.ok(&["chat", "-m", "three", "--temperature", "1"]);
    assert_eq!(asked_last(&near)["temperature"], json!(1.0), "a flag goes before it");
    let (_, shown) = world.json(&["chat", "-m", "/set temperature="]);
    assert_eq!(shown, json!({"temperature": null, "max_tokens": null, "seed": -3, "preset": null}));
    world.ok(&["chat", "-m", "four"]);
    assert_eq!(asked_last(&near)["temperature"], Value::Null);
    for wrong in ["/set temperature=9", "/set warmth=1", "/set temperature"] {
        let run = world.run(&["chat", "-m", wrong]);
        assert!(run.code == Some(2) && run.err.contains("temperature"), "{wrong}: {run:?}");
    }
}

#[test]
fn a_preset_of_the_configuration_is_set_with_other_values_in_one_line() {
    let (world, near) = home();
    world.ok(&["chat", "-m", "one"]);
    let (_, shown) = world.json(&["chat", "-m", "/set preset=cold  seed=4"]);
    assert_eq!(shown, json!({"temperature": null, "max_tokens": null, "seed": 4, "preset": "cold"}));
    world.ok(&["chat", "-m", "two"]);
    let body = asked_last(&near);
    assert_eq!((&body["temperature"], &body["seed"]), (&json!(0.125), &json!(4)), "{body}");
    assert!(body.to_string().contains("max_tokens\":70"), "{body}");
    let run = world.run(&["chat", "-m", "/set preset=warm"]);
    assert!(run.code == Some(3) && run.err.contains("no preset warm"), "{run:?}");
    // A preset that is gone is left out, and the session goes on.
    world.write("config.toml", world.read("config.toml").split("[presets").next().unwrap());
    let run = world.run(&["chat", "-m", "three"]);
    assert!(run.code == Some(0) && run.err.contains("the preset cold"), "{run:?}");
    let body = asked_last(&near);
    assert_eq!((&body["temperature"], &body["seed"]), (&Value::Null, &json!(4)), "{body}");
    world.ok(&["chat", "-m", "/set preset="]);
    assert!(!world.run(&["chat", "-m", "four"]).err.contains("cold"));
}

#[test]
fn the_earlier_name_of_a_private_conversation_names_the_new_one() {
    let (world, near) = home();
    let run = world.run(&["chat", "--temp", "-m", "hi"]);
    assert!(run.code == Some(2) && run.err.contains("--private"), "{run:?}");
    for typed in [&["chat", "--temp=0.5", "-m", "hi"][..], &["chat", "--temp", "0.5", "-m", "hi"]] {
        let run = world.run(typed);
        assert!(
            run.code == Some(2) && run.err.contains("--temperature") && run.err.contains("--private"),
            "{run:?}"
        );
    }
    for near in ["--tempe", "--temper", "--tempr", "--tmp"] {
        let run = world.run(&["chat", near, "0.5", "-m", "hi"]);
        assert!(!run.err.contains("--temp?"), "it is refused: {run:?}");
    }
    assert!(near.bodies().is_empty());
}

#[test]
fn text_at_standard_input_goes_along_with_a_message() {
    let (world, near) = home();
    let run = world.fed(&["chat", "-m", "review"], b"fn main() {}\n");
    assert_eq!(run.code, Some(0), "{run:?}");
    let messages = asked_last(&near)["messages"].to_string();
    assert!(messages.contains("File standard input:") && messages.contains("fn main() {}"), "{messages}");
    assert!(messages.contains("review"));

    let file = world.path("here/long.txt");
    std::fs::write(&file, "from a file").unwrap();
    let read = std::fs::File::open(&file).unwrap();
    let run = world.command(&["chat", "-m", "again"]).stdin(read).output().unwrap();
    assert!(run.status.success());
    assert!(asked_last(&near)["messages"].to_string().contains("from a file"));

    let count = near.bodies().len();
    let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
    world.ok(&["chat", "-m", "device"]);
    assert_eq!(world.fed(&["chat", "-m", "empty"], b"").code, Some(0));
    let socket = world.command(&["chat", "-m", "socket"]).stdin(std::os::fd::OwnedFd::from(reader)).output();
    assert!(socket.unwrap().status.success(), "what may never end is not read");
    drop(writer);
    let bodies = near.bodies();
    assert_eq!(bodies.len(), count + 3);
    let new = bodies[count..].iter().map(|body| body["messages"].to_string());
    let files: Vec<usize> = new.map(|messages| messages.matches("standard input").count()).collect();
    assert_eq!(files, [2; 3], "only those of before");
}

#[test]
fn a_closed_standard_input_and_a_terminal_are_not_read() {
    let (world, near) = home();
    for command in [&["chat", "-m", "closed"][..], &["ask", "closed"]] {
        let mut shell = world.command(&[""; 0]);
        let program = shell.get_program().to_owned();
        let with_home: Vec<_> =
            shell.get_envs().map(|(name, value)| (name.to_owned(), value.unwrap().to_owned())).collect();
        shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", "exec \"$0\" \"$@\" <&-"]).arg(program).args(command);
        shell.env_clear().envs(with_home).current_dir(world.path("here"));
        let run = shell.output().unwrap();
        assert!(run.status.success(), "{command:?}: {}", String::from_utf8_lossy(&run.stderr));
        let sent = asked_last(&near)["messages"].to_string();
        assert!(sent.contains("closed") && !sent.contains("standard input"), "{sent}");
    }
    for command in [&["chat", "-m", "terminal"][..], &["ask", "terminal"]] {
        let mut terminal = Terminal::start(world.command(command));
        terminal.types("typed for something else\r");
        assert_eq!(terminal.ended(), Some(0), "{}", terminal.contents());
        let sent = asked_last(&near)["messages"].to_string();
        assert!(sent.contains("terminal") && !sent.contains("typed for something else"), "{sent}");
    }
    // What is a pipe is read by both.
    for command in [&["chat", "-m", "pipe"][..], &["ask", "pipe"]] {
        assert_eq!(world.fed(command, b"piped text").code, Some(0), "{command:?}");
        assert!(asked_last(&near)["messages"].to_string().contains("piped text"), "{command:?}");
    }
}

#[test]
fn text_at_standard_input_that_cannot_be_sent_says_nothing() {
    let (world, near) = home();
    let run = world.fed(&["chat", "-m", "review"], b"ok\xff");
    assert!(run.code == Some(2) && run.err.contains("standard input is not UTF-8"), "{run:?}");
    world.write("config.toml", &format!("{}[limits]\npaste = \"1 KiB\"\n", world.read("config.toml")));
    let run = world.fed(&["chat", "-m", "review"], &[b'x'; 1025]);
    assert!(run.code == Some(2) && run.err.contains("standard input is longer than"), "{run:?}");
    assert!(near.bodies().is_empty());
    let alone = world.fed(&["chat", "-m", "-"], b"alone");
    assert_eq!(alone.code, Some(0), "the text alone: {alone:?}");
    assert!(!asked_last(&near).to_string().contains("standard input"));
}

#[test]
fn a_command_leaves_standard_input_alone() {
    let (world, _near) = home();
    assert_eq!(world.fed(&["chat", "-m", "/status"], b"\xff").code, Some(0));
    let path = world.path("here/said.txt");
    let with = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let input = std::fs::File::open(&path).unwrap();
        let run = world.command(&["chat", "-m", "/status"]).stdin(input).output().unwrap();
        String::from_utf8(run.stderr).unwrap()
    };
    let said = with("some text");
    assert!(said.contains("standard input was not read: /status takes no text from it"), "{said}");
    assert!(!with("").contains("standard input"), "control: there was none");
}

#[test]
fn a_pipe_that_gives_nothing_is_named_with_the_way_out() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let (world, near) = home();
    let mut child = piped(world.command(&["chat", "-m", "review"]).stdin(Stdio::piped()));
    let mut input = child.stdin.take().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = told.find(|line| line.as_ref().is_ok_and(|line| line.contains("</dev/null")));
    assert!(line.is_some());
    input.write_all(b"late text").unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    assert!(asked_last(&near)["messages"].to_string().contains("late text"));
}

#[test]
fn a_pipe_that_gives_a_byte_and_stops_is_said_to_be_waited_for() {
    let world = World::new();
    for (arguments, said) in [
        (
            &["chat", "-m", "hi", "--model", "script:echo"][..],
            "1 byte and has not ended, and its text goes along",
        ),
        (&["chat", "-m", "-", "--model", "script:echo"], "1 byte and has not ended: waiting for its end"),
        (&["tree", "new", "--text", "-"], "1 byte and has not ended: waiting for its end"),
    ] {
        use std::io::{BufRead as _, BufReader, Write as _};

        let mut child = piped(world.command(arguments).stdin(Stdio::piped()));
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"x").unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        // It ends only when the pipe does: that it says so is what is waited for.
        assert!(lines.any(|line| line.contains(said)), "{arguments:?}");
        drop(input);
        assert_eq!(lines.filter(|line| line.contains("waiting for")).count(), 0, "{arguments:?}: once");
        assert!(child.wait().unwrap().success(), "{arguments:?}");
    }
}

#[test]
fn a_conversation_is_asked_as_its_agent_says_unless_something_nearer_says_otherwise() {
    let (world, near) = home();
    let config = world.read("config.toml");
    world.write(
        "config.toml",
        &format!("{config}[presets.warm]\nmodel = \"box/warm\"\n[agents.assistant]\nmodel = \"box/own\"\npreset = \"cold\"\n"),
    );
    let asked = |flags: &[&str]| {
        world.ok(&[&["chat", "-m", "Hello."], flags].concat());
        let body = asked_last(&near);
        (body["model"].as_str().unwrap().to_owned(), body["temperature"].clone())
    };
    assert_eq!(asked(&[]), ("own".into(), json!(0.125)));
    assert_eq!(asked(&["--model", "box/m"]), ("m".into(), json!(0.125)));
    assert_eq!(asked(&["--preset", "warm"]), ("warm".into(), Value::Null));
    assert_eq!(asked(&["--temperature", "0.5"]), ("own".into(), json!(0.5)));
}

#[test]
fn a_passage_is_asked_as_its_agent_says_unless_a_flag_says_otherwise() {
    let (world, near) = home();
    let config = world.read("config.toml");
    world.write(
        "config.toml",
        &format!("{config}[presets.warm]\nmodel = \"box/warm\"\nn = 1\n[agents.poet]\nmodel = \"box/own\"\npreset = \"cold\"\nn = 2\n"),
    );
    world.ok(&["tree", "new", "--mode", "dialogue", "--title", "Talk", "--text", "Hello."]);
    let asked = |flags: &[&str]| {
        let before = near.bodies().len();
        world.ok(&[&["tree", "generate", "Talk", "--agent", "poet"], flags].concat());
        let body = asked_last(&near);
        (
            near.bodies().len() - before,
            body["model"].as_str().unwrap().to_owned(),
            body["temperature"].clone(),
        )
    };
    assert_eq!(asked(&["--preset", "warm"]), (1, "warm".into(), Value::Null));
    // The control.
    assert_eq!(asked(&[]), (2, "own".into(), json!(0.125)));
}

#[test]
fn one_question_takes_what_tools_may_do_and_is_answered_by_another_process() {
    let world = World::new();
    let call = json!({"tool_calls": [{"name": "write", "arguments": {"path": "AGENTS.md", "content": "Be brief.\n"}}]});
    world.write("lines.jsonl", &format!("{call}\n{}\n", json!({"text": "Done."})));
    let file = text(&world.home().join("lines.jsonl"));
    let tools = "[agents.assistant]\ntools = [\"write\"]\n";
    world.write("config.toml", &format!("[model]\ndefault = \"script:{file}\"\n{tools}"));
    std::fs::create_dir(world.path("project")).unwrap();
    let project = text(&world.path("project"));
    let ask = |more: &[&str]| {
        let mut command = world.command(&[&["--workspace", &project, "ask", "Write it."], more].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut child = ask(&["--wait", "60", "--events"]).spawn().unwrap();
    let asked = question(&world, &mut child);
    world.ok(&["approve", asked["short_id"].as_str().unwrap()]);
    let done = child.wait_with_output().unwrap();
    let lines = String::from_utf8(done.stdout).unwrap();
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().any(|event| event["event"] == "question"), "{lines}");
    assert_eq!(std::fs::read_to_string(world.path("project/AGENTS.md")).unwrap(), "Be brief.\n");
    // Planned, it is refused before anybody is asked.
    let planned = ask(&["--wait", "60", "--plan", "--json"]).output().unwrap();
    let said: Value = serde_json::from_slice(&planned.stdout).unwrap();
    assert!(said["denied"][0]["why"].as_str().unwrap().contains("plan mode"), "{said}");
}

#[test]
fn what_left_is_written_down_by_host_and_bytes_and_without_its_text() {
    let (world, near) = home();
    world.ok(&["chat", "-m", "A heron."]);
    world.ok(&["doctor"]);
    let written = world.read("egress.jsonl");
    let lines: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_models: Vec<&Value> = lines.iter().filter(|line| line["why"] == "a request to a model").collect();
    let place = near.base().split('/').nth(2).unwrap().to_owned();
    assert!(
        of_models.iter().any(|line| line["host"] == place.as_str() && line["sent"].as_u64() > Some(100)),
        "{written}"
    );
    assert!(of_models.iter().all(|line| line["received"].as_u64().is_some()), "{written}");
    // `doctor` looks at servers, and says nothing to a model.
    assert!(of_models.iter().all(|line| line["sent"] != 0), "{written}");
    let looks = lines.iter().filter(|line| line["why"] == "a look whether a server is there");
    assert!(looks.clone().count() > 0 && looks.clone().all(|line| line["sent"] == 0), "{written}");
    assert!(!written.contains("heron") && !written.contains("chat/completions"), "{written}");
}
