//! Each limit of scale §4 is met: what was met is said, with the key, and what to do.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::headless::question;
use crate::world::{Run, World, piped, text};

fn limited(limits: &str) -> World {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    world.write("config.toml", &format!("[limits]\n{limits}\n"));
    world
}

/// It was refused with this code, says these words, and the text is as it was.
fn refused(world: &World, run: &Run, code: i32, words: &[&str]) {
    assert_eq!(run.code, Some(code), "{run:?}");
    for word in words {
        assert!(run.err.contains(word), "{word}: {run:?}");
    }
    assert_eq!(world.ok(&["--quiet", "tree", "text", "Tale"]), "It rained.");
}

#[test]
fn little_free_space_ends_turns_and_nothing_else() {
    let world = limited("free_space = \"1000000 TiB\"");
    let turn = ["--model", "script:echo", "tree", "generate", "Tale"];
    refused(&world, &world.run(&turn), 6, &["too little free space", "limits.free_space"]);
    world.ok(&["tree", "draft", "Tale", " It poured."]);
    world.ok(&["tree", "append", "Tale", " It cleared."]);
    assert_eq!(world.run(&["doctor", "--quick"]).code, Some(1));
    world.write("config.toml", "[limits]\nfree_space = 0\n");
    world.ok(&turn);
}

#[test]
fn a_large_home_is_told_by_every_command_and_by_doctor() {
    let world = limited("home_warn = \"1 KiB\"");
    let run = world.run(&["tree", "text", "Tale"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "It rained."));
    assert!(run.err.contains("limits.home_warn") && run.err.contains("purge"), "{run:?}");
    assert_eq!(state(&world, "size"), "warn");
    world.write("config.toml", "");
    assert_eq!(world.run(&["tree", "text", "Tale"]).err, "");
    assert_eq!(state(&world, "size"), "ok");
}

#[test]
fn a_long_log_of_the_store_is_told_by_doctor() {
    let world = limited("wal = \"1 MiB\"");
    world.ok(&["tree", "text", "Tale"]);
    assert_eq!(state(&world, "log"), "ok");
    let log = std::fs::File::create(world.home().join("loom.db-wal")).unwrap();
    log.set_len(2 << 20).unwrap();
    assert_eq!(state(&world, "log"), "warn");
}

fn state(world: &World, name: &str) -> String {
    let (_, found) = world.json(&["doctor"]);
    let checks = found["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name);
    check.unwrap_or_else(|| panic!("no {name} in {found}"))["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_page_has_as_many_rows_as_the_limit_says() {
    let world = limited("show_all = 2");
    for text in ["a", "b", "c"] {
        world.ok(&["tree", "append", "Tale", text]);
    }
    let run = world.run(&["tree", "show", "Tale", "--all", "--json"]);
    let page: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(page["nodes"].as_array().unwrap().len(), 2);
    assert!(run.err.contains("limits.show_all") && page["next"].is_string(), "{run:?}");
    let asked = world.run(&["tree", "show", "Tale", "--all", "--limit", "2"]);
    assert!(asked.code == Some(0) && !asked.err.contains("limits"), "{asked:?}");
}

#[test]
fn a_text_longer_than_a_node_is_refused_or_becomes_several() {
    let world = limited("node = \"1 KiB\"");
    let long = "rain ".repeat(300);
    let (_, shown) = world.json(&["tree", "show", "Tale"]);
    let node = shown["nodes"][1]["id"].as_str().unwrap().to_owned();
    let file = world.path("long.txt");
    std::fs::write(&file, &long).unwrap();
    for arguments in [
        &["tree", "append", "Tale", &long][..],
        &["tree", "draft", "Tale", &long],
        &["tree", "edit", "Tale", &node, "--text", &long],
        &["tree", "new", "--mode", "dialogue", "--text", &long],
        &["tree", "head", "Tale", "--text", &long],
        &["tree", "note", "Tale", "--text", &long],
        &["tree", "annotate", "Tale", &node, &long],
        &["--model", "script:echo", "chat", "-m", &long],
        &["--model", "script:echo", "chat", "-m", "look", "--file", file.to_str().unwrap()],
    ] {
        let said = &["longer than one node holds (1 KiB, limits.node)", "piece by piece"];
        refused(&world, &world.run(arguments), 2, said);
    }
    assert_eq!(world.json(&["sessions", "list"]).1["sessions"], json!([]));
    // At the default, which is the most there is, a document's text is cut into nodes.
    world.write("config.toml", "");
    let huge = "rain\n\n".repeat((16 << 20) / 6 + 1);
    let run = world.fed(&["tree", "append", "Tale", "-"], huge.as_bytes());
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.json(&["tree", "list"]).1["trees"][0]["nodes"], 4);
    world.write("config.toml", "[limits]\nnode = \"17 MiB\"\n");
    assert_eq!(world.run(&["tree", "append", "Tale", "x"]).code, Some(2));
}

#[test]
fn a_paste_longer_than_the_limit_is_refused() {
    let world = limited("paste = \"1 KiB\"");
    let long = "rain ".repeat(300);
    let said = &["longer than 1 KiB", "piece by piece", "limits.paste"];
    refused(&world, &world.run(&["tree", "append", "Tale", &long]), 2, said);
    refused(&world, &world.fed(&["tree", "append", "Tale", "-"], long.as_bytes()), 2, said);
    let file = world.path("long.txt");
    std::fs::write(&file, &long).unwrap();
    refused(&world, &world.run(&["tree", "new", "--file", file.to_str().unwrap()]), 2, said);
    world.write("config.toml", "");
    world.ok(&["tree", "append", "Tale", &long]);
}

#[test]
fn input_that_says_nothing_is_given_up() {
    let world = limited("input_wait = 0.05");
    let mut silent = piped(world.command(&["tree", "append", "Tale", "-"]).stdin(Stdio::piped()));
    // It is open as long as the program reads.
    let input = silent.stdin.take();
    let ended = Run::from(silent.wait_with_output().unwrap());
    drop(input);
    refused(&world, &ended, 2, &["limits.input_wait"]);
    world.ok(&["tree", "show", "Tale"]);
}

/// A world in which the model calls a tool and then answers, after a second each, with these limits.
fn calling(limits: &str) -> World {
    let call = json!({"tool_calls": [{"name": "list", "arguments": {}}], "delay_ms": 1000,
        "usage": {"input": 60, "output": 40}});
    let world = World::new();
    world.write("lines.jsonl", &format!("{call}\n{}\n", json!({"text": "Done."})));
    let file = text(&world.home().join("lines.jsonl"));
    let tools = "[agents.assistant]\ntools = [\"list\"]\n";
    world.write("config.toml", &format!("[model]\ndefault = \"script:{file}\"\n{tools}[limits]\n{limits}\n"));
    world
}

/// A turn there.
fn turn(limits: &str) -> (Option<i32>, Value) {
    let world = calling(limits);
    let project = text(&world.path("here"));
    world.json(&["--workspace", &project, "chat", "-m", "Look around."])
}

#[test]
fn what_is_answered_about_a_limit_is_a_remark_on_the_answer_that_calls() {
    for (word, finish) in [("approve", "stop"), ("deny", "limit")] {
        let world = calling("turn_calls = 1");
        let project = text(&world.path("here"));
        let words = ["--json", "--workspace", &project, "chat", "-m", "Look around.", "--wait", "60"];
        let mut command = world.command(&words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let asked = question(&world, &mut child);
        world.ok(&[word, asked["short_id"].as_str().unwrap()]);
        let done = child.wait_with_output().unwrap();
        let said: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(said["finish"], finish, "{said}");
        let (_, shown) = world.json(&["tree", "show", said["tree"].as_str().unwrap()]);
        let nodes = shown["nodes"].as_array().unwrap();
        let remarks: Vec<(&Value, &str)> = nodes
            .iter()
            .flat_map(|node| {
                node["annotations"].as_array().into_iter().flatten().map(move |remark| (node, remark))
            })
            .map(|(node, remark)| (&node["role"], remark["text"].as_str().unwrap()))
            .collect();
        let [(role, remark)] = &remarks[..] else { panic!("{shown}") };
        let decision = if word == "approve" { "allowed" } else { "denied" };
        let begins = format!("the model was asked 1 times in this turn: 1 more? {decision} by process ");
        assert!(**role == "assistant" && remark.starts_with(&begins), "{remarks:?}");
    }
}

#[test]
fn a_turn_that_is_long_or_large_ends_where_nobody_can_be_asked() {
    for (limits, why) in [
        ("turn_time = 1", "the turn takes 1 s"),
        ("turn_tokens = 100", "100 tokens were sent and received in this turn"),
        ("turn_calls = 1", "the model was asked 1 times in this turn"),
    ] {
        let (code, said) = turn(limits);
        assert_eq!((code, said["finish"].as_str()), (Some(1), Some("limit")), "{limits}: {said}");
        assert!(said["limit"].as_str().unwrap().contains(why), "{limits}: {said}");
    }
    let (code, said) = turn("turn_time = 3600\nturn_tokens = 1000000\nturn_calls = 2");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "the control: {said}");
}
