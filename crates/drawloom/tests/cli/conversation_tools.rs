//! Tools that read the conversation they are called in, and those that wait until they are searched for.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::loom_tools::{script, told, tree, world};
use crate::server::{self, Server};
use crate::tools::{calls, chat, nodes};
use crate::world::{World, text};

const TOOLS: &str = "tools = [\"context_status\", \"recall\"]\n";

/// What a call of `recall` for a node gives, said in a turn of its own that is taken back.
fn recalled(world: &World, arguments: &Value) -> String {
    told(world, "recall", arguments)
}

#[test]
fn a_node_on_the_way_here_is_recalled_and_none_that_its_owner_took_away() {
    let world = world(TOOLS);
    script(&world, &[json!({"text": "The thread is red."})]);
    let long = format!("Of the loom: {}end", "warp and weft; ".repeat(2_000));
    chat(&world, &long);
    let id = |at: usize| nodes(&world)[at]["short_id"].as_str().unwrap().to_owned();
    let (question, answer) = (id(0), id(1));
    assert_eq!(
        recalled(&world, &json!({"node": answer})),
        format!("[node {answer}, characters 0 to 18 of 18]\nThe thread is red.")
    );
    let page = recalled(&world, &json!({"node": question}));
    assert!(page.ends_with("\n[10016 more characters: go on with from = 20000]"), "{page}");
    assert!(recalled(&world, &json!({"node": question, "from": 20_000})).ends_with("weft; end"));
    assert!(recalled(&world, &json!({"node": "nowhere"})).contains("no node \"nowhere\" stands on the way"));
    let tree = tree(&world);
    world.ok(&["tree", "edit", &tree, &answer, "--text", "The thread is blue."]);
    let elsewhere = recalled(&world, &json!({"node": answer}));
    assert!(elsewhere.contains("stands on the way to here") && !elsewhere.contains("red"), "{elsewhere}");
    assert!(recalled(&world, &json!({"node": id(1)})).ends_with("The thread is blue."));
    world.ok(&["tree", "undo", &tree]);
    world.ok(&["tree", "exclude", &tree, &answer]);
    let left_out = recalled(&world, &json!({"node": answer}));
    assert!(left_out.contains("left out of what is sent") && !left_out.contains("thread"), "{left_out}");
    world.ok(&["tree", "undo", &tree]);
    world.ok(&["forget", "--text", "The thread is red.", "--yes", "--yes"]);
    let forgotten = recalled(&world, &json!({"node": answer}));
    assert!(forgotten.contains("was forgotten") && !forgotten.contains("thread"), "{forgotten}");
    // On another branch, and in another conversation.
    world.ok(&["tree", "new", "--title", "Other", "--text", "The thread is green."]);
    let (_, other) = world.json(&["tree", "show", "Other"]);
    let other = other["nodes"].as_array().unwrap().last().unwrap()["short_id"].as_str().unwrap().to_owned();
    for name in [other.clone(), format!("Other:{other}")] {
        assert!(!recalled(&world, &json!({"node": name})).contains("green"));
    }
}

#[test]
fn a_model_is_told_how_full_its_window_is() {
    let world = world(TOOLS);
    script(&world, &[json!({"text": "Hello."})]);
    chat(&world, "Hello?");
    script(
        &world,
        &[calls(&json!([{"name": "context_status", "arguments": {}}])), json!({"text": "Green."})],
    );
    chat(&world, "How full is it?");
    let told = nodes(&world).into_iter().rfind(|node| node["author"] == "context_status").unwrap();
    let told = told["text"].as_str().unwrap();
    assert!(
        told.starts_with("cost of the session: $0.00\nzone green: ") && told.contains(" tokens, "),
        "{told}"
    );
    assert!(told.ends_with("from outside: nothing"), "{told}");
}

#[test]
fn a_tool_that_does_not_fit_is_found_and_called_and_decided_on_as_itself() {
    let call = |id: &str, name: &str, arguments: Value| Some(server::call(id, "", name, &arguments));
    let near = Server::start(move |path, body| {
        if !path.ends_with("/chat/completions") {
            return None;
        }
        let results = body["messages"].as_array()?.iter().filter(|message| message["role"] == "tool");
        let through = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
        match results.count() {
            0 => call("one", "tool_search", json!({"query": "make a folder"})),
            1 => call("two", "call_tool", through("mkdir", json!({"path": "made"}))),
            2 => call("three", "call_tool", through("mkdir", json!({"paht": "x"}))),
            3 => call("four", "call_tool", through("move", json!({"from": "made", "to": "moved"}))),
            _ => Some(server::chat("", "Done.", 1_000)),
        }
    });
    let world = World::new();
    let all = r#"["glob", "grep", "list", "read", "edit", "patch", "write", "move", "copy", "delete", "mkdir", "exec", "process"]"#;
    world.write(
        "config.toml",
        &format!(
            "[providers.box]\nbase_url = \"{}\"\nkind = \"openai\"\nwindow = 16000\n[models.\"box/m\"]\ntools = true\n\
             [model]\ndefault = \"box/m\"\n[agents.assistant]\ntools = {all}\n\
             [[policy.rules]]\ndecision = \"deny\"\ntool = [\"move\"]\nreason = \"nothing is moved\"\n",
            near.base()
        ),
    );
    fs::create_dir_all(world.path("project")).unwrap();
    let (code, said) = chat(&world, "Make a folder.");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    assert!(world.path("project/made").is_dir() && !world.path("project/moved").exists());
    assert_eq!(said["denied"][0]["tool"], "move", "a rule is about what is called: {said}");
    let bodies = near.bodies();
    let names = |body: &Value| {
        let tools = body["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let sent = names(&bodies[0]);
    assert!(sent.contains(&"call_tool".to_owned()) && sent.contains(&"read".to_owned()), "{sent:?}");
    assert!(!sent.contains(&"mkdir".to_owned()), "{sent:?}");
    assert!(bodies.iter().all(|body| body["tools"] == bodies[0]["tools"]), "the list never changes");
    let results: Vec<String> = bodies.last().unwrap()["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].to_string())
        .collect();
    let [found, made, wrong, denied] = results.try_into().unwrap();
    assert!(found.contains("mkdir") && found.contains("parameters"), "{found}");
    assert!(made.contains("made made"), "{made}");
    assert!(wrong.contains("Invalid parameters of mkdir"), "{wrong}");
    assert!(denied.contains("move was not run") && denied.contains("nothing is moved"), "{denied}");
    let authors: Vec<_> = nodes(&world).into_iter().filter(|node| node["role"] == "tool").collect();
    assert_eq!(authors[1]["author"], "mkdir", "{authors:?}");
}

#[test]
fn a_plan_is_shown_and_stays_in_sight_and_is_forgotten_with_the_call_that_set_it() {
    let asked = AtomicUsize::new(0);
    let near = Server::start(move |path, _| {
        if !path.ends_with("/chat/completions") {
            return None;
        }
        if asked.fetch_add(1, Ordering::Relaxed) > 0 {
            return Some(server::chat("", "Woven.", 1_000));
        }
        let plan = json!({"steps": [
            {"step": "dress the loom", "state": "done"}, {"step": "weave", "state": "active"},
        ]});
        Some(server::call("one", "", "plan", &plan))
    });
    let world = World::new();
    world.write(
        "config.toml",
        &format!(
            "[providers.box]\nbase_url = \"{}\"\nkind = \"openai\"\nwindow = 16000\n[models.\"box/m\"]\ntools = true\n\
             [model]\ndefault = \"box/m\"\n[agents.assistant]\ntools = [\"plan\"]\n",
            near.base()
        ),
    );
    fs::create_dir_all(world.path("project")).unwrap();
    let project = text(&world.path("project"));
    let ran = world.run(&["--workspace", &project, "chat", "-m", "Weave me a cloth."]);
    assert!(ran.err.contains("plan: 1 of 2 steps done; now: weave"), "{ran:?}");
    let shown = world.ok(&["--workspace", &project, "chat", "-m", "/plan"]);
    assert!(shown.ends_with("the plan:\n  1. done: dress the loom\n  2. active: weave\n"), "{shown}");
    let set = nodes(&world).into_iter().find(|node| node["author"] == "assistant").unwrap();
    let long = "warp and weft; ".repeat(1_200);
    for _ in 0..4 {
        chat(&world, &long);
    }
    let has = |body: &Value, text: &str| body["messages"].to_string().contains(text);
    let last = near.bodies().pop().unwrap();
    assert!(!has(&last, "Weave me a cloth"), "control: what set it has left");
    assert!(has(&last, "[The plan, as you set it last:") && has(&last, "2. active: weave"), "{last}");
    let (_, plan) = world.json(&["--workspace", &project, "chat", "-m", "/plan"]);
    assert_eq!(plan["steps"][1], json!({"step": "weave", "state": "active"}), "{plan}");
    chat(&world, "On.");
    assert!(has(&near.bodies().pop().unwrap(), "2. active: weave"), "control: it stays");
    world.ok(&["forget", set["id"].as_str().unwrap(), "--yes", "--yes"]);
    let (_, found) = world.json(&["search", "dress"]);
    assert_eq!(found["hits"], json!([]), "its result says nothing of it");
    chat(&world, "Go on.");
    let last = near.bodies().pop().unwrap();
    assert!(!has(&last, "The plan, as you set it") && !has(&last, "dress the loom"), "{last}");
}
