//! Subagents: agents that an agent hands work to, in the background, and what comes back of it (spec: agent §8).

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::tools::calls;
use crate::world::{Run, World, text};

const TOOLS: &str = r#"["read", "write", "exec", "web_fetch", "spawn", "subagent_status", "subagent_stop"]"#;

/// A world whose model answers from these lines, with a workspace and this configuration more.
pub(crate) fn world(lines: &[Value], more: &str) -> World {
    let world = World::new();
    let file = text(&world.home().join("lines.jsonl"));
    world.write(
        "config.toml",
        &format!("[model]\ndefault = \"script:{file}\"\n[agents.assistant]\ntools = {TOOLS}\n{more}"),
    );
    fs::create_dir_all(world.path("project")).unwrap();
    fs::write(world.path("project/AGENTS.md"), "Be brief.\n").unwrap();
    say(&world, lines);
    world
}

/// What the model says from now on.
pub(crate) fn say(world: &World, lines: &[Value]) {
    world.write("lines.jsonl", &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
}

pub(crate) fn spawn(label: &str, more: &Value) -> Value {
    let mut arguments = json!({"task": format!("Do the {label}."), "label": label});
    let more = more.as_object().into_iter().flatten();
    arguments.as_object_mut().unwrap().extend(more.map(|(key, value)| (key.clone(), value.clone())));
    json!({"name": "spawn", "arguments": arguments})
}

/// A line for a subagent.
pub(crate) fn of(label: &str, mut line: Value) -> Value {
    line["for"] = "subagent".into();
    line["label"] = label.into();
    line
}

/// A line of a subagent that calls these.
pub(crate) fn of_calls(label: &str, those: &Value) -> Value {
    of(label, calls(those))
}

fn words(world: &World, more: &[&str], text: &str) -> Vec<String> {
    let project = crate::world::text(&world.path("project"));
    let words = ["--workspace", &project, "chat"].into_iter().chain(more.iter().copied());
    words.chain(["-m", text]).map(str::to_owned).collect()
}

pub(crate) fn chat(world: &World, more: &[&str], text: &str) -> (Option<i32>, Value) {
    let words = words(world, more, text);
    world.json(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn run(world: &World, more: &[&str], text: &str) -> Run {
    world.run(&words(world, more, text))
}

/// A call that goes on while a test looks at it.
pub(crate) fn begun(world: &World, more: &[&str], text: &str) -> Child {
    let mut command = world.command(&words(world, more, text));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The subagents of the session.
pub(crate) fn subagents(world: &World) -> Vec<Value> {
    let (code, found) = chat(world, &[], "/subagents");
    assert_eq!(code, Some(0), "{found}");
    found["subagents"].as_array().unwrap().clone()
}

pub(crate) fn nodes_of(world: &World, tree: &str) -> Vec<Value> {
    let (_, found) = world.json(&["tree", "show", tree]);
    found["nodes"].as_array().unwrap_or_else(|| panic!("{found}")).clone()
}

fn said(node: &Value) -> &str {
    node["text"].as_str().unwrap()
}

#[test]
fn what_a_subagent_comes_to_begins_the_next_turn_of_whoever_began_it() {
    let world = world(
        &[
            calls(&json!([spawn("docs", &json!({}))])),
            json!({"text": "The docs are being written."}),
            json!({"text": "All is done.", "expect": ["[subagent docs, sub-"]}),
            of_calls(
                "docs",
                &json!([{"name": "write", "arguments": {"path": "docs.md", "content": "It weaves.\n"}}]),
            ),
            of("docs", json!({"text": "I wrote docs.md.", "usage": {"input": 40, "output": 2}})),
        ],
        "",
    );
    let (code, done) = chat(&world, &[], "Have the docs written.");
    assert_eq!((code, done["text"].as_str()), (Some(0), Some("All is done.")), "{done}");
    assert_eq!(fs::read_to_string(world.path("project/docs.md")).unwrap(), "It weaves.\n");
    let nodes = nodes_of(&world, done["tree"].as_str().unwrap());
    let last: Vec<&Value> = nodes.iter().rev().take(3).collect();
    let result = said(last[1]);
    assert!(
        result.starts_with("[subagent docs, sub-") && result.ends_with(": done]\nI wrote docs.md."),
        "{result}"
    );
    assert!(last[1]["author"].as_str().unwrap().starts_with("subagent/sub-"), "{}", last[1]);
    assert_eq!(said(last[2]), "The docs are being written.");
    let all = subagents(&world);
    let one = &all[0];
    assert_eq!((all.len(), &one["state"], &one["label"]), (1, &json!("done"), &json!("docs")), "{all:?}");
    assert_eq!(
        (&one["model_calls"], &one["tool_calls"], &one["tokens"]),
        (&json!(2), &json!(1), &json!(42)),
        "{one}"
    );
    // A session of its own, in a tree of its own, that is whole.
    let tree = one["tree"].as_str().unwrap();
    let task = &nodes_of(&world, tree)[1];
    assert_eq!((said(task), task["author"].as_str()), ("Do the docs.", Some("spawn")));
    for tree in [tree, done["tree"].as_str().unwrap()] {
        assert!(world.ok(&["tree", "verify", tree]).contains("valid"));
    }
    let plain = run(&world, &[], "/subagents");
    assert!(plain.out.contains("docs") && plain.out.contains("done"), "{plain:?}");
    assert!(begun(&world, &[], "/subagents").wait_with_output().unwrap().status.success());
}

/// Questions that stand, once there are as many.
pub(crate) fn questions(world: &World, number: usize) -> Vec<Value> {
    let began = Instant::now();
    loop {
        let (_, open) = world.json(&["approvals", "list"]);
        let open = open["approvals"].as_array().unwrap().clone();
        if open.len() == number {
            return open;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{open:?}");
    }
}

/// The state of each subagent by its label, once this holds of them.
pub(crate) fn states(world: &World, is: impl Fn(&[(String, String)]) -> bool) -> Vec<(String, String)> {
    let began = Instant::now();
    loop {
        let word = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
        let found: Vec<_> =
            subagents(world).iter().map(|one| (word(one, "label"), word(one, "state"))).collect();
        if is(&found) {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{found:?}");
    }
}

/// Each with its state.
fn with(states: &[(&str, &str)]) -> Vec<(String, String)> {
    states.iter().map(|(label, state)| ((*label).to_owned(), (*state).to_owned())).collect()
}

const MEMORY: &str = "Be kind.\n";

/// A call that asks.
pub(crate) fn asks() -> Value {
    json!([{"name": "write", "arguments": {"path": "MEMORY.md", "content": MEMORY}}])
}

#[test]
fn four_run_at_once_and_one_that_waits_for_a_yes_is_answered_where_it_was_begun() {
    let names = ["asks", "long", "one", "two", "five"];
    let look = || calls(&json!([{"name": "read", "arguments": {"path": "AGENTS.md"}}]));
    let world = world(
        &[
            calls(&names.map(|name| spawn(name, &json!({}))).into()),
            json!({"text": "Five are at work."}),
            json!({"text": "One more."}),
            json!({"text": "One more."}),
            json!({"text": "One more."}),
            json!({"text": "One more."}),
            json!({"text": "All is done."}),
            of_calls("asks", &asks()),
            of("asks", json!({"text": "It is kind now."})),
            of("long", look()),
            of("long", look()),
            of("one", json!({"text": "One."})),
            of("two", json!({"text": "Two."})),
            of("five", json!({"text": "Five."})),
        ],
        "[limits]\nsubagent_calls = 2\n",
    );
    let chat = begun(&world, &["--wait", "60"], "Have it all done.");
    let question = questions(&world, 1).remove(0);
    let asked = question["text"].as_str().unwrap();
    assert!(asked.starts_with("subagent \"asks\": write asks to run"), "{question}");
    assert!(question["session"].as_str().unwrap().starts_with("sub-"), "{question}");
    let rest = [("long", "limit"), ("one", "done"), ("two", "done"), ("five", "done")];
    let meanwhile = with(&[&[("asks", "waiting")], &rest[..]].concat());
    assert_eq!(states(&world, |now| now == meanwhile), meanwhile);
    // From another process, as the only question of the session that began it.
    assert_eq!(chat_code(&world, "/approve"), Some(0));
    let ended = chat.wait_with_output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success() && told.contains("subagent \"asks\": write asks to run"), "{told}");
    assert_eq!(fs::read_to_string(world.path("project/MEMORY.md")).unwrap(), MEMORY);
    // After a restart.
    let all = with(&[&[("asks", "done")], &rest[..]].concat());
    assert_eq!(states(&world, |_| true), all);
    let results: Vec<String> = nodes_of(&world, &main_tree(&world))
        .iter()
        .filter(|node| node["author"].as_str().unwrap().starts_with("subagent/"))
        .map(|node| said(node).to_owned())
        .collect();
    assert_eq!(results.len(), 5, "{results:?}");
    let of_long = results.iter().find(|result| result.contains("[subagent long, ")).unwrap();
    assert!(of_long.contains("not finished: a limit was reached"), "{of_long}");
}

pub(crate) fn chat_code(world: &World, line: &str) -> Option<i32> {
    run(world, &[], line).code
}

pub(crate) fn main_tree(world: &World) -> String {
    let project = text(&world.path("project"));
    let (_, found) = world.json(&["--workspace", &project, "sessions", "show", "main"]);
    found["tree"].as_str().unwrap_or_else(|| panic!("{found}")).to_owned()
}

#[test]
fn where_nobody_answers_a_subagent_is_denied_as_its_parent_is() {
    let lines = [
        calls(&json!([spawn("asks", &json!({}))])),
        json!({"text": "Waiting."}),
        json!({"text": "So it was not done."}),
        of_calls("asks", &asks()),
        of("asks", json!({"text": "I may not.", "expect": ["write was not run"]})),
    ];
    let world = world(&lines, "");
    let (code, done) = chat(&world, &[], "Be kind.");
    assert_eq!((code, done["text"].as_str()), (Some(0), Some("So it was not done.")), "{done}");
    assert!(!world.path("project/MEMORY.md").exists());
    say(&world, &lines);
    let plain = run(&world, &["--new"], "Be kind.");
    let told = plain.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("subagent \"asks\": write was not run: this file runs, steers"), "{plain:?}");
    assert_eq!(subagents(&world)[0]["denied_calls"], 1);
    let listed = run(&world, &[], "/subagents");
    assert!(listed.out.contains("1 call, 1 denied"), "{listed:?}");
}

#[test]
fn x26_one_that_goes_on_too_long_is_told_as_unfinished_with_what_there_is() {
    let look = |path: &str| json!([{"name": "read", "arguments": {"path": path}}]);
    let mut again = of_calls("long", &look("AGENTS.md"));
    again["text"] = "I looked.".into();
    let lines = [
        calls(&json!([spawn("long", &json!({}))])),
        json!({"text": "Waiting."}),
        json!({"text": "It was not finished.", "expect": ["not finished: a limit was reached: the model was asked 2 times"]}),
        again.clone(),
        again.clone(),
        again,
    ];
    let world = world(&lines, "[limits]\nsubagent_calls = 2\n");
    let (code, done) = chat(&world, &[], "Look long.");
    assert_eq!((code, done["text"].as_str()), (Some(0), Some("It was not finished.")), "{done}");
    let found = subagents(&world);
    assert_eq!((&found[0]["state"], &found[0]["model_calls"]), (&json!("limit"), &json!(2)), "{found:?}");
}

#[test]
fn no_more_run_at_once_than_the_limit_says_and_they_have_none_of_their_own() {
    let lines = [
        calls(&json!([spawn("first", &json!({})), spawn("second", &json!({}))])),
        json!({"text": "Waiting."}),
        json!({"text": "Waiting for one."}),
        json!({"text": "Both are done."}),
        of_calls("first", &asks()),
        of("first", json!({"text": "Done."})),
        of_calls("second", &json!([spawn("third", &json!({}))])),
        of("second", json!({"text": "I have none.", "expect": ["there is no tool \"spawn\""]})),
    ];
    let world = world(&lines, "[limits]\nsubagents = 1\n");
    let chat = begun(&world, &["--wait", "60"], "Have both done.");
    questions(&world, 1);
    let meanwhile = with(&[("first", "waiting"), ("second", "running")]);
    // Of one that another process has in its queue it is known that it has not ended.
    assert_eq!(states(&world, |_| true), meanwhile);
    assert_eq!(subagents(&world)[1]["model_calls"], json!(0));
    assert_eq!(chat_code(&world, "/deny"), Some(0));
    assert!(chat.wait_with_output().unwrap().status.success());
    assert_eq!(states(&world, |_| true), with(&[("first", "done"), ("second", "done")]));
    assert_eq!(subagents(&world).len(), 2);
    let tree = subagents(&world)[1]["tree"].as_str().unwrap().to_owned();
    assert_eq!(said(nodes_of(&world, &tree).last().unwrap()), "I have none.");
}

#[test]
fn a_subagent_below_another_one_is_had_where_the_limit_lets_it() {
    let lines = [
        calls(&json!([spawn("outer", &json!({}))])),
        json!({"text": "Waiting."}),
        json!({"text": "All is done.", "expect": ["[subagent outer, ", "The inner one is kind."]}),
        of_calls("outer", &json!([spawn("inner", &json!({}))])),
        of("outer", json!({"text": "Waiting for the inner one."})),
        of("outer", json!({"text": "The inner one is kind.", "expect": ["[subagent inner, "]})),
        of_calls("inner", &asks()),
        of("inner", json!({"text": "Kind."})),
    ];
    let world = world(&lines, "[limits]\nsubagent_depth = 2\n");
    let chat = begun(&world, &["--wait", "60"], "Have it done.");
    let asked = questions(&world, 1)[0]["text"].as_str().unwrap().to_owned();
    assert!(asked.starts_with("subagent \"inner\": write asks to run"), "{asked}");
    assert_eq!(chat_code(&world, "/approve"), Some(0));
    let ended = chat.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(String::from_utf8(ended.stdout).unwrap().trim(), "All is done.");
}

#[test]
fn a_turn_that_a_result_begins_goes_on_with_the_one_before_it_and_its_limits() {
    let lines = [
        of("again", json!({"text": "Done again."})),
        calls(&json!([spawn("again", &json!({}))])),
        json!({"text": "It is begun.", "loop": true}),
    ];
    let world = world(&lines, "[limits]\nturn_calls = 7\n");
    let (code, done) = chat(&world, &[], "Go round.");
    assert_eq!((code, done["finish"].as_str()), (Some(1), Some("limit")), "{done}");
    assert!(done["limit"].as_str().unwrap().contains("the model was asked 7 times"), "{done}");
    assert_eq!(subagents(&world).len(), 4);
}
