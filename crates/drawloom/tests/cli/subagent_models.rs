//! Models of subagents: those that the owner lists, and that of whoever begins them.

use serde_json::{Value, json};

use crate::subagents::{chat, nodes_of, of, of_calls, spawn, subagents, world};
use crate::tools::calls;
use crate::world::{World, text};

/// A world in which subagents may have a model that answers from `other.jsonl`.
fn listing(model: &Value, more: &[Value]) -> (World, String) {
    let lines = [calls(&json!([spawn("poem", &json!({"model": model}))])), json!({"text": "Begun."})];
    let lines = [&lines[..], more].concat();
    let world = world(&lines, "");
    let file = text(&world.home().join("other.jsonl"));
    world.write("other.jsonl", &format!("{}\n", of("poem", json!({"text": "Roses are red."}))));
    let config = std::fs::read_to_string(world.home().join("config.toml")).unwrap();
    world.write(
        "config.toml",
        &config.replacen("[model]\n", &format!("[model]\nsubagents = [\"script:{file}\"]\n"), 1),
    );
    (world, file)
}

/// What the call of `spawn` gave.
fn spawned(world: &World, said: &Value) -> String {
    let nodes = nodes_of(world, said["tree"].as_str().unwrap());
    nodes.iter().find(|node| node["author"] == "spawn").unwrap()["text"].to_string()
}

#[test]
fn a_subagent_works_with_a_model_that_its_owner_lists() {
    let (world, _) = listing(&json!("script/other.jsonl"), &[json!({"text": "A poem came."})]);
    let (code, said) = chat(&world, &[], "Have a poem written.");
    assert_eq!(
        (code, &said["text"], &said["model"]),
        (Some(0), &json!("A poem came."), &json!("script/lines.jsonl"))
    );
    let begun = spawned(&world, &said);
    assert!(begun.contains("has begun on script/other.jsonl; "), "{said}");
    let [one] = &subagents(&world)[..] else { panic!("one subagent") };
    let (_, shown) = world.json(&["tree", "show", one["tree"].as_str().unwrap()]);
    let written = shown["nodes"].as_array().unwrap().iter().find(|node| node["text"] == "Roses are red.");
    assert!(written.is_some_and(|node| node.to_string().contains("script/other.jsonl")), "{shown}");
}

#[test]
fn a_model_that_is_not_listed_is_refused_with_those_that_are() {
    for model in ["script/elsewhere.jsonl", "openai/gpt-5", "far/away"] {
        let (world, file) = listing(&json!(model), &[]);
        let (code, said) = chat(&world, &[], "Have a poem written.");
        assert_eq!(code, Some(0), "{said}");
        let why = spawned(&world, &said);
        assert!(
            why.contains("no subagent may have the model") && why.contains(file.trim_start_matches('/')),
            "{why}"
        );
        assert_eq!(subagents(&world), [] as [Value; 0]);
    }
}

/// What a local model says to its subagents leaves for a remote one only where the owner allowed that in so many words.
#[test]
fn s10_a_subagent_of_a_local_model_has_a_remote_one_only_by_consent() {
    for (consent, told) in [
        ("", "far/m is not asked: text would leave this machine (model.subagent_remote allows it)"),
        ("subagent_remote = true\n", "has begun on far/m (remote)"),
    ] {
        let (world, _) = listing(&json!("far/m"), &[json!({"text": "It failed."})]);
        let config = std::fs::read_to_string(world.home().join("config.toml")).unwrap();
        let config = config.replacen(
            "[model]\nsubagents = [",
            &format!("[model]\n{consent}subagents = [\"far/m\", "),
            1,
        );
        let far = "[providers.far]\nbase_url = \"http://127.0.0.1:9/v1\"\nplace = \"remote\"\n";
        world.write("config.toml", &(config + far));
        let (code, said) = chat(&world, &[], "Have a poem written.");
        assert_eq!(code, Some(0), "{said}");
        assert!(spawned(&world, &said).contains(told), "{said}");
    }
}

#[test]
fn what_a_subagent_comes_to_is_shown_in_lines_that_nobody_typed() {
    let (world, _) = listing(&json!("script/other.jsonl"), &[json!({"text": "A poem came."})]);
    let answer = of("poem", json!({"text": "Roses are red.\n\nViolets are blue."}));
    world.write("other.jsonl", &format!("{answer}\n"));
    let project = text(&world.path("project"));
    let run = world.run(&["--workspace", &project, "chat", "-m", "Have a poem written."]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.lines().any(|line| line.starts_with("[subagent poem, sub-")), "{run:?}");
    assert!(run.err.contains("\n  Roses are red.\n\n  Violets are blue.\n"), "{run:?}");
    assert!(!run.err.contains('␊'), "{run:?}");
    let listed = world.ok(&["--workspace", &project, "chat", "-m", "/subagents"]);
    assert!(
        listed.contains("poem on script/other.jsonl") && listed.contains("1 request, 0 calls"),
        "{listed}"
    );
    let [one] = &subagents(&world)[..] else { panic!("one subagent") };
    assert_eq!(one["model"], "script/other.jsonl");
}

#[test]
fn what_a_subagent_changed_and_was_denied_stands_in_the_result_of_the_turn() {
    let lines = [
        calls(&json!([spawn("docs", &json!({}))])),
        json!({"text": "Begun."}),
        json!({"text": "All is done."}),
        of_calls(
            "docs",
            &json!([
                {"name": "write", "arguments": {"path": "docs.md", "content": "It weaves.\n"}},
                {"name": "write", "arguments": {"path": "AGENTS.md", "content": "Be loud.\n"}},
            ]),
        ),
        of("docs", json!({"text": "I wrote docs.md."})),
    ];
    let world = world(&lines, "");
    let (code, said) = chat(&world, &[], "Have the docs written.");
    assert_eq!((code, &said["text"], &said["denied"]), (Some(0), &json!("All is done."), &json!([])));
    let [one] = &said["subagents"].as_array().unwrap()[..] else { panic!("{said}") };
    assert_eq!(
        (&one["label"], &one["state"], &one["tool_calls"]),
        (&json!("docs"), &json!("done"), &json!(2))
    );
    assert_eq!(one["changed"], json!([{"path": "docs.md", "added": 1, "removed": 0}]), "{one}");
    let [denied] = &one["denied"].as_array().unwrap()[..] else { panic!("{one}") };
    assert_eq!(denied["tool"], "write");
    assert!(denied["why"].as_str().unwrap().contains("so a person sees its difference first"), "{denied}");
    // A turn without any has none of them.
    crate::subagents::say(&world, &[json!({"text": "Nothing to do."})]);
    let (_, said) = chat(&world, &[], "And now?");
    assert_eq!((&said["text"], said.get("subagents")), (&json!("Nothing to do."), None));
}
