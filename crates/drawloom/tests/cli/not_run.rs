//! An agent without tools, as there is no workspace, and calls that were never run: what their owner is told.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::exec::exec;
use crate::headless::question;
use crate::server::{self, Server};
use crate::terminal::Terminal;
use crate::tools::calls;
use crate::trust::with_terminal;
use crate::world::{Run, World, text};

const NO_TOOLS: &str = "no workspace here: the model has no tools";

/// A world with a model that answers from these lines, and more in its configuration.
fn world(lines: &[Value], more: &str) -> World {
    let world = World::new();
    world.write("lines.jsonl", &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    let file = text(&world.home().join("lines.jsonl"));
    world.write("config.toml", &format!("[model]\ndefault = \"script:{file}\"\n{more}"));
    world
}

fn says(world: &World, folder: &str, more: &[&str]) -> Run {
    let words = [&["chat", "-m", "Hi."], more].concat();
    world.command(&words).current_dir(world.path(folder)).output().unwrap().into()
}

#[test]
fn a_chat_without_a_workspace_says_that_the_model_has_no_tools() {
    let hello = [json!({"text": "Hello."})];
    let world = world(&hello, "[agents.quiet]\ntools = []\n");
    let said = says(&world, "here", &["--json"]);
    let line =
        format!("{NO_TOOLS}; `--workspace .` works in this folder, and an AGENTS.md in it makes it one\n");
    assert_eq!(said.err.matches(NO_TOOLS).count(), 1, "{said:?}");
    assert!(said.err.contains(&line), "{said:?}");
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap()["text"], "Hello.");
    // Where it has tools, has none anyway, or is asked one question, nothing is said.
    for more in [&["--workspace", "."][..], &["--agent", "quiet", "--session", "quiet"]] {
        let said = says(&world, "here", more);
        assert!(said.code == Some(0) && !said.err.contains("no workspace"), "{more:?}: {said:?}");
    }
    let asked = world.run(&["ask", "Hi."]);
    assert!(asked.code == Some(0) && !asked.err.contains("no workspace"), "{asked:?}");

    let mut terminal = Terminal::start(with_terminal(&world.command(&["chat"])));
    terminal.at_prompt();
    assert!(terminal.plain().contains(NO_TOOLS), "{}", terminal.plain());
    terminal.types("/quit\r");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn below_the_top_of_a_repository_the_top_is_named() {
    let world = world(&[json!({"text": "Hello."})], "[agents.reader]\ntools = [\"read\"]\n");
    fs::create_dir_all(world.path("here/big/.git")).unwrap();
    fs::write(world.path("here/big/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::create_dir_all(world.path("here/big/.git/objects")).unwrap();
    fs::create_dir_all(world.path("here/big/.git/refs")).unwrap();
    fs::create_dir_all(world.path("here/big/sub")).unwrap();
    let top = text(&world.path("here/big"));
    let trust = format!("`drawloom workspace trust {top}` makes the repository found");
    let said = says(&world, "here/big/sub", &[]);
    assert_eq!((said.err.matches(&trust).count(), said.err.matches(NO_TOOLS).count()), (1, 1), "{said:?}");

    world.ok(&["workspace", "untrust", &top]);
    let said = says(&world, "here/big/sub", &[]);
    assert!(said.err.contains(NO_TOOLS) && said.err.contains(&trust), "{said:?}");
    let said = says(&world, "here/big/sub", &["--agent", "reader", "--session", "reader"]);
    assert!(said.err.contains("tools find no workspace: ") && said.err.contains(&trust), "{said:?}");
    world.ok(&["workspace", "trust", &top]);
    let said = says(&world, "here/big/sub", &[]);
    assert!(said.code == Some(0) && !said.err.contains("no workspace"), "{said:?}");
}

#[test]
fn a_window_that_is_too_small_for_tools_is_said_with_what_to_set() {
    let near =
        Server::start(|path, _| path.ends_with("/chat/completions").then(|| server::chat("", "Hi.", 10)));
    let provider = format!("[providers.box]\nbase_url = \"{}\"\nkind = \"openai\"\n", near.base());
    let models = "[models.\"box/m\"]\ntools = true\n[model]\ndefault = \"box/m\"\n";
    for (more, expected) in [
        ("", Some("`drawloom config set providers.box.window 32768` says so")),
        ("window = 15999\n", Some("its window is 15999 tokens")),
        ("window = 16000\n", None),
        ("window = 8000\n[agents.assistant]\ntools = [\"read\"]\n", None),
    ] {
        let world = world(&[], "");
        world.write("config.toml", &format!("{provider}{more}{models}"));
        fs::create_dir_all(world.path("here/project")).unwrap();
        let project = text(&world.path("here/project"));
        let said: Run = world.run(&["--workspace", &project, "chat", "-m", "Hi."]);
        let told = "these take 16000 or more: ";
        assert_eq!((said.code, said.err.contains(told)), (Some(0), expected.is_some()), "{more}: {said:?}");
        assert!(said.err.contains(expected.unwrap_or_default()), "{more}: {said:?}");
        // Without a workspace it has none anyway.
        assert!(!says(&world, "here", &["--new"]).err.contains(told), "{more}");
        if more.is_empty() {
            world.ok(&["config", "set", "providers.box.window", "32768"]);
            let said = world.run(&["--workspace", &project, "chat", "-m", "Hi."]);
            assert!(said.code == Some(0) && !said.err.contains("no tools"), "what it names helps: {said:?}");
        }
    }
}

#[test]
fn a_call_for_which_no_tool_is_offered_is_named() {
    let world = world(&[calls(&json!([exec("ls")]))], "");
    let said = says(&world, "here", &["--json"]);
    assert!(said.err.contains("1 call was not run: exec: no tools are offered here\n"), "{said:?}");
    let done: Value = serde_json::from_str(&said.out).unwrap();
    let [call] = &done["calls"].as_array().unwrap()[..] else { panic!("{done}") };
    let id = format!("{}-0", done["node"].as_str().unwrap());
    let none = json!({"call": id, "tool": "exec", "effects": [], "status": null, "node": null});
    assert_eq!((call, &done["denied"]), (&none, &json!([])), "{done}");
    let next = says(&world, "here", &[]);
    assert!(!next.err.contains("the turn ended before"), "it was told already: {next:?}");
    let said = says(&world, "here", &["--new", "--events"]);
    let told = said.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told: Vec<Value> = told.filter(|event| event["event"] == "notice").collect();
    assert!(told.iter().any(|event| event["text"].as_str().unwrap().contains("not run: exec")), "{said:?}");
}

#[test]
fn calls_of_tools_that_an_agent_does_not_have_and_of_plan_mode_are_in_the_result() {
    let write = json!({"name": "write", "arguments": {"path": "a.md", "content": "One.\n"}});
    let lines =
        [calls(&json!([exec("ls"), {"name": "weave", "arguments": {}}, write])), json!({"text": "Done."})];
    let world = world(&lines, "[agents.assistant]\ntools = [\"read\", \"write\"]\n");
    fs::create_dir_all(world.path("here/project")).unwrap();
    let project = text(&world.path("here/project"));
    let (_, done) = world.json(&["--workspace", &project, "chat", "--plan", "-m", "Do it."]);
    let calls = done["calls"].as_array().unwrap();
    let ended: Vec<_> = calls.iter().map(|call| (call["tool"].as_str(), call["status"].as_str())).collect();
    let [error, denied] = ["error", "denied"].map(Some);
    assert_eq!(ended, [(Some("exec"), error), (Some("weave"), error), (Some("write"), denied)], "{done}");
    assert!(calls.iter().all(|call| call["node"].is_string()), "{done}");
    let [refused] = &done["denied"].as_array().unwrap()[..] else { panic!("{done}") };
    assert!(refused["tool"] == "write" && refused["why"].to_string().contains("plan mode is on"), "{done}");
}

#[test]
fn flags_that_need_tools_say_that_they_have_no_effect_where_there_are_none() {
    let hello = [json!({"text": "Hello."})];
    let more = "[agents.quiet]\ntools = []\n[agents.reader]\ntools = [\"read\"]\n";
    let world = world(&hello, more);
    fs::create_dir_all(world.path("here/project")).unwrap();
    fs::create_dir_all(world.path("further")).unwrap();
    let (project, further) = (text(&world.path("here/project")), text(&world.path("further")));
    let told = |words: &[&str]| {
        let said = world.run(&[&["--workspace", &project], words].concat());
        assert_eq!((said.code, said.out.trim_end()), (Some(0), "Hello."), "{said:?}");
        said.err
            .lines()
            .filter(|line| line.contains("no effect") || line.contains("--wait"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let ask = "`ask` has no tools but those that agents.assistant.tools names";
    let quiet = ["chat", "--agent", "quiet", "--session", "quiet", "-m", "Hi."];
    let here = "the model has no tools here";
    let wait = "--wait waits for answers about a budget alone";
    for (words, flags, line) in [
        (&["ask", "Hi."][..], &["--plan"][..], format!("{ask}: --plan has no effect")),
        (&["ask", "Hi."], &["--wait", "5"], format!("{ask}: {wait}")),
        (&quiet, &["--plan", "--allow", &further], format!("{here}: --plan and --allow have no effect")),
        (&quiet, &["--no-restrict", "--wait", "5"], format!("{here}: --no-restrict has no effect, {wait}")),
    ] {
        assert_eq!(told(&[words, flags].concat()), [line], "{words:?} {flags:?}");
    }
    // The controls: nothing is said of flags that were not given, nor where there are tools.
    assert_eq!(told(&["ask", "Hi."]), [""; 0]);
    assert_eq!(told(&["ask", "--agent", "reader", "--plan", "--wait", "5", "Hi."]), [""; 0]);
    assert_eq!(told(&["chat", "--plan", "--wait", "5", "--allow", &further, "-m", "Hi."]), [""; 0]);
}

#[test]
fn a_call_whose_question_died_with_its_process_is_told_with_the_next_turn() {
    let write = json!({"name": "write", "arguments": {"path": "AGENTS.md", "content": "Be brief.\n"}});
    let world = world(&[calls(&json!([write, exec("true")]))], "");
    world.write("next.jsonl", &format!("{}\n", json!({"text": "Hello."})));
    fs::create_dir_all(world.path("here/project")).unwrap();
    let project = text(&world.path("here/project"));
    let mut asks = world.command(&["--workspace", &project, "chat", "-m", "Do it.", "--wait", "60"]);
    let mut asks = asks.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    question(&world, &mut asks);
    asks.kill().unwrap();
    asks.wait().unwrap();

    let next = format!("script:{}", text(&world.home().join("next.jsonl")));
    let goes_on = || world.run(&["--workspace", &project, "--model", &next, "chat", "-m", "Hi."]);
    let told = goes_on();
    let line = "2 calls were not run: write, exec (the turn ended before)\n";
    assert_eq!((told.code, told.err.matches(line).count()), (Some(0), 1), "{told:?}");
    let again = goes_on();
    assert!(again.code == Some(0) && !again.err.contains("not run"), "once: {again:?}");
    assert!(!world.path("here/project/AGENTS.md").exists());
}
