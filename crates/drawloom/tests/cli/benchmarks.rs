//! Measurements that run the program itself.

use serde_json::{Value, json};

use crate::world::{World, text};

/// No time is asserted: a busy machine does not decide.
#[test]
fn every_row_of_the_tools_is_there_and_is_a_number() {
    let world = World::new();
    let (code, answer) = world.json(&["bench", "tools", "--files", "200"]);
    assert_eq!(code, Some(0), "{answer}");
    let rows = answer["rows"].as_array().unwrap();
    for name in [
        "grep over 200 files, thread_42 = 5[0-9]*42",
        "grep over 200 files, nowhere_at_all",
        "glob over 200 files, **/d*7/f07.rs",
        "start, walls and look of `exec` in 0 files",
        "start, walls and look of `exec` in 20 files",
        "start, walls and look of `exec` in 200 files",
        "`drawloom sandbox -- true` in 20 files",
        "`drawloom sandbox -- true` in 200 files",
        "first command of a turn in 20 files of 0 MB",
        "later commands of a turn in 20 files of 0 MB",
        "later commands of a turn in an empty folder",
        "from Ctrl-C to the end of a command that runs",
        "from the start of a process that says `/stop` to the end of a command that runs",
    ] {
        let row =
            rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}: {answer}"));
        assert!(row["value"].as_f64().is_some_and(|value| value > 0.0), "{row}");
    }
}

#[test]
fn every_row_of_routing_is_there_and_those_that_can_be_known_are_right() {
    let world = World::new();
    let write = |name: &str, lines: &[Value]| {
        std::fs::create_dir_all(world.path("data")).unwrap();
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(world.path("data").join(name), lines).unwrap();
    };
    // The words of a kind are in no other one.
    let of = |kind: &str, number: usize| format!("{kind}ing the {kind}er {number}");
    let kinds = ["bake", "weave", "print"];
    write("tools.jsonl", &kinds.map(|kind| json!({"id": kind, "description": format!("To {kind}.")})));
    let asked = |kind: &&str| {
        (0..14).map(|number| json!({"query": of(kind, number), "tool": kind})).collect::<Vec<_>>()
    };
    write("tool_queries.jsonl", &kinds.iter().flat_map(asked).collect::<Vec<_>>());
    let intents = |kind: &&str| {
        let split = |number| if number < 10 { "train" } else { "validation" };
        (0..14)
            .map(|number| json!({"split": split(number), "intent": kind, "query": of(kind, number)}))
            .collect::<Vec<_>>()
    };
    let mut lines = kinds.iter().flat_map(intents).collect::<Vec<_>>();
    lines.extend(
        (0..4).map(|_| json!({"split": "out_of_scope", "intent": null, "query": "xylophone quartz"})),
    );
    write("intents.jsonl", &lines);
    let data = text(&world.path("data"));
    let (code, answer) = world.json(&["bench", "routing", "--data", &data]);
    assert_eq!(code, Some(0), "{answer}");
    let value = |name: &str| {
        let row = answer["rows"].as_array().unwrap().iter().find(|row| row["name"] == name);
        row.unwrap_or_else(|| panic!("no {name}: {answer}"))["value"].as_f64().unwrap()
    };
    for way in ["fused", "bm25", "letters", "likeness", "plain BM25"] {
        assert_eq!(value(&format!("3 tools, {way}: the right card is among the first 1")), 100.0);
        assert_eq!(value(&format!("3 tools, {way}: the right card is among the first 5")), 100.0);
        assert_eq!(value(&format!("3 intents, {way}: the right card is the first")), 100.0);
        assert_eq!(value(&format!("3 intents, {way}: area under the curve of wanted and unwanted")), 100.0);
        assert_eq!(value(&format!("3 intents, {way}: out of scope and rejected by it")), 100.0);
    }
    assert_eq!(value("3 intents, fused, threshold of 0.6: the right card is sent"), 100.0);
    assert_eq!(value("3 intents, fused, threshold of 0.6: out of scope and a card is sent"), 0.0);
    for name in ["router, 200 cards with 10 examples", "selection of 200 cards", "registry of 100 cards"] {
        assert!(value(name) > 0.0, "{answer}");
    }
    let (code, answer) = world.json(&["bench", "routing"]);
    assert_eq!((code, &answer["error"]["code"]), (Some(2), &json!("usage")), "{answer}");
    std::fs::write(world.path("data/tools.jsonl"), "{}\n").unwrap();
    let (code, answer) = world.json(&["bench", "routing", "--data", &data]);
    assert!(
        code == Some(2) && answer["error"]["message"].as_str().unwrap().contains("tools.jsonl:1: "),
        "{answer}"
    );
}

#[test]
fn every_row_of_turns_is_there_and_is_a_number() {
    let world = World::new();
    let (code, answer) = world.json(&["bench", "turn", "--nodes", "20"]);
    assert_eq!(code, Some(0), "{answer}");
    let rows = answer["rows"].as_array().unwrap();
    for name in [
        "one-shot turn, `drawloom chat -m`",
        "own work from an answer that calls a tool to the next request, path of 22, window 32000, 60 tools, 100 skills",
        "own work from an answer that calls a tool to the next request, path of 22, window 200000, 60 tools, 100 skills",
        "prefix of a request that the one before had, 10 turns, tools that wait, hooks",
        "request of a bare hello",
        "request of a bare hello with 60 tools",
        "what 100 skills add to it, descriptions of 150 characters",
        "schemas that are sent where others wait",
        "from the start of `drawloom approve` to the result of the call that waited",
    ] {
        let row =
            rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}: {answer}"));
        assert!(row["value"].as_f64().is_some_and(|value| value > 0.0), "{row}");
    }
}
