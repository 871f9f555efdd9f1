//! Subagents: agents that an agent hands work to, in the background, and what comes back of it (spec: agent §8).

use std::fs;
use std::process::{Child, Stdio};

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
fn begun(world: &World, more: &[&str], text: &str) -> Child {
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
    assert_eq!(
        (last[1]["author"].as_str(), said(last[2])),
        (Some("subagent/docs"), "The docs are being written.")
    );
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
    let task = &nodes_of(&world, tree)[0];
    assert_eq!((said(task), task["author"].as_str()), ("Do the docs.", Some("spawn")));
    for tree in [tree, done["tree"].as_str().unwrap()] {
        assert!(world.ok(&["tree", "verify", tree]).contains("valid"));
    }
    let plain = run(&world, &[], "/subagents");
    assert!(plain.out.contains("docs") && plain.out.contains("done"), "{plain:?}");
    assert!(begun(&world, &[], "/subagents").wait_with_output().unwrap().status.success());
}
