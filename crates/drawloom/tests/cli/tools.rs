//! Tools that a model calls: their results in the tree, in the next request, and in what one step takes back.

use std::fs;

use serde_json::{Value, json};

use crate::server::{self, Server};
use crate::world::{World, text};

/// A world whose model answers from these lines, and may look at files of a workspace.
fn world(lines: &[Value]) -> World {
    let world = World::new();
    let script: String = lines.iter().map(|line| format!("{line}\n")).collect();
    world.write("lines.jsonl", &script);
    let file = world.home().join("lines.jsonl");
    let config = format!(
        "[model]\ndefault = \"script:{}\"\n[agents.assistant]\ntools = [\"glob\", \"grep\", \"list\", \"read\"]\n",
        file.display()
    );
    world.write("config.toml", &config);
    fs::create_dir_all(world.path("project/src")).unwrap();
    fs::write(world.path("project/src/main.rs"), "fn weave() {}\n").unwrap();
    world
}

pub(crate) fn chat(world: &World, text: &str) -> (Option<i32>, Value) {
    let project = world.path("project");
    world.json(&["--workspace", project.to_str().unwrap(), "chat", "-m", text])
}

pub(crate) fn nodes(world: &World) -> Vec<Value> {
    let (_, trees) = world.json(&["tree", "list"]);
    let tree = trees["trees"][0]["short_id"].as_str().unwrap().to_owned();
    let (_, shown) = world.json(&["tree", "show", &tree]);
    shown["nodes"].as_array().unwrap()[1..].to_vec()
}

pub(crate) fn calls(calls: &Value) -> Value {
    json!({"tool_calls": calls})
}

#[test]
fn a_model_looks_at_files_and_one_step_takes_its_turn_back() {
    let world = world(&[
        json!({"text": "Let me look.", "tool_calls": [
            {"name": "grep", "arguments": {"pattern": "weave"}},
            {"name": "read", "arguments": {"path": "../secret"}},
            {"name": "raed", "arguments": {"path": "src/main.rs"}},
            {"name": "read", "arguments": {"file": "src/main.rs"}},
        ]}),
        json!({"text": "In main.rs.", "expect": [
            "src/main.rs:1:fn weave", "outside the allowed workspace", "did you mean read?", "path"
        ]}),
        json!({"text": "Yes."}),
    ]);
    let (code, said) = chat(&world, "Where is weave?");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("In main.rs.")), "{said}");
    let nodes = nodes(&world);
    let told: Vec<_> =
        nodes.iter().map(|node| (node["role"].as_str().unwrap(), node["author"].as_str().unwrap())).collect();
    assert_eq!(told[..2], [("user", "owner"), ("assistant", "assistant")]);
    let mut tools: Vec<_> = told[2..6].to_vec();
    tools.sort_unstable();
    assert_eq!(tools, [("tool", "grep"), ("tool", "raed"), ("tool", "read"), ("tool", "read")]);
    assert_eq!(told[6..], [("assistant", "assistant")]);
    let grep = nodes.iter().find(|node| node["author"] == "grep").unwrap();
    assert_eq!(grep["text"], "src/main.rs:1:fn weave() {}\n");
    let (_, trees) = world.json(&["tree", "list"]);
    let tree = trees["trees"][0]["short_id"].as_str().unwrap().to_owned();
    assert!(world.ok(&["tree", "verify", &tree]).starts_with("valid"));
    let log = world.ok(&["tree", "log", &tree]);
    assert!(log.contains("result of grep"), "{log}");
    let answered = world.ok(&["tree", "text", &tree]);
    let (code, said) = chat(&world, "Really?");
    assert_eq!(
        (code, said["text"].as_str()),
        (Some(0), Some("In main.rs.")),
        "the script begins anew: {said}"
    );
    world.ok(&["tree", "undo", &tree]);
    assert_eq!(world.ok(&["tree", "text", &tree]), answered);
    world.ok(&["tree", "undo", &tree]);
    assert_eq!(nodes_of(&world, &tree), 0, "a whole turn in one step");
    world.ok(&["tree", "redo", &tree]);
    assert_eq!(world.ok(&["tree", "text", &tree]), answered);
}

#[test]
fn a_log_counts_calls_of_one_tool_that_follow_each_other() {
    let read = json!({"name": "read", "arguments": {"path": "src/main.rs"}});
    let grep = |pattern: &str| json!({"name": "grep", "arguments": {"pattern": pattern}});
    let all = json!([grep("a"), grep("b"), grep("c"), read, grep("d")]);
    let world = world(&[calls(&all), json!({"text": "Done."})]);
    assert_eq!(chat(&world, "Look.").0, Some(0));
    let (_, trees) = world.json(&["tree", "list"]);
    let log = world.ok(&["tree", "log", trees["trees"][0]["short_id"].as_str().unwrap()]);
    assert!(log.contains(" calls grep ×3, read, grep\n"), "{log}");
}

fn nodes_of(world: &World, tree: &str) -> usize {
    let (_, shown) = world.json(&["tree", "show", tree]);
    shown["nodes"].as_array().unwrap().len() - 1
}

#[test]
fn a_server_is_told_of_the_tools_and_given_the_results_and_the_turn_costs_what_its_calls_cost() {
    let near = Server::start(|path, body| {
        if !path.ends_with("/chat/completions") {
            return None;
        }
        let messages = body["messages"].as_array()?;
        if messages.iter().any(|message| message["role"] == "tool") {
            return Some(server::chat("", "In main.rs.", 1_000));
        }
        let call = json!({"index": 0, "id": "call-1", "type": "function",
            "function": {"name": "grep", "arguments": "{\"pattern\": \"weave\"}"}});
        let choice = json!({"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"});
        let usage = json!({"prompt_tokens": 1_000, "completion_tokens": 5});
        let (first, last) =
            (json!({"id": "c", "choices": [choice]}), json!({"id": "c", "choices": [], "usage": usage}));
        Some(format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n"))
    });
    let world = world(&[json!({"text": ""})]);
    let config = format!(
        "[providers.box]\nbase_url = \"{}\"\nplace = \"remote\"\nkind = \"openai\"\nwindow = 128000\n\
         [models.\"box/m\"]\nprice_input = 100.0\nprice_output = 0.0\ntools = true\n[model]\ndefault = \"box/m\"\n\
         [agents.assistant]\ntools = [\"grep\"]\n",
        near.base()
    );
    world.write("config.toml", &config);
    let (code, said) = chat(&world, "Where is weave?");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("In main.rs.")), "{said}");
    let [first, second] = near.bodies().try_into().unwrap();
    assert_eq!(first["tools"][0]["function"]["name"], "grep", "{first}");
    assert_eq!(second["tools"], first["tools"], "the list never changes within a session");
    let messages = second["messages"].as_array().unwrap();
    let result = messages.iter().find(|message| message["role"] == "tool").unwrap();
    assert_eq!(result["tool_call_id"], "call-1");
    assert!(result["content"].to_string().contains("src/main.rs:1:fn weave"), "{result}");
    assert_eq!(said["cost"].as_f64(), Some(0.2), "both model calls: {said}");
}

#[test]
fn a_result_is_edited_and_forgotten_as_what_it_is() {
    let world = world(&[
        calls(
            &json!([{"name": "grep", "arguments": {"pattern": "weave"}}, {"name": "g\u{1b}[31m ep", "arguments": {}}]),
        ),
        json!({"text": "In main.rs."}),
    ]);
    let (code, said) = chat(&world, "Where is weave?");
    assert_eq!(code, Some(0), "{said}");
    let result = nodes(&world).into_iter().find(|node| node["author"] == "grep").unwrap();
    let result = result["short_id"].as_str().unwrap().to_owned();
    let (_, trees) = world.json(&["tree", "list"]);
    let tree = trees["trees"][0]["short_id"].as_str().unwrap().to_owned();
    world.ok(&["tree", "edit", &tree, &result, "--text", "src/other.rs:1:fn weave()"]);
    world.write("again.jsonl", "{\"text\": \"Oh.\", \"expect\": [\"src/other.rs:1:fn weave\"]}\n");
    let (project, model) =
        (world.path("project"), format!("script:{}", world.home().join("again.jsonl").display()));
    let ask = ["--workspace", project.to_str().unwrap(), "--model", &model, "chat", "-m", "Really?"];
    let (code, said) = world.json(&ask);
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Oh.")), "{said}");
    let edited = nodes(&world).into_iter().find(|node| node["text"] == "src/other.rs:1:fn weave()").unwrap();
    assert_eq!(edited["role"], "tool");
    let run = world.run(&["forget", &format!("{tree}:{result}"), "--dry-run"]);
    assert!(
        format!("{}{}", run.out, run.err).contains("\"src/main.rs:1:fn weave() {}\", 28 characters"),
        "{run:?}"
    );
}

#[test]
fn a_model_without_tools_is_told_of_none_and_an_unknown_one_is_named() {
    let world = world(&[
        calls(&json!([{"name": "read", "arguments": {"path": "src/main.rs"}}])),
        json!({"text": "Hm."}),
    ]);
    world.ok(&["config", "set", "agents.assistant.tools", "[]"]);
    let (code, said) = chat(&world, "Look.");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(nodes(&world).len(), 2, "a call that nobody offered is not run");
    let (_, sent) = world.json(&["context", "show", said["node"].as_str().unwrap()]);
    assert!(!sent.to_string().contains("\"schemas\""), "{sent}");
    world.ok(&["config", "unset", "agents.assistant.tools"]);
    let text = fs::read_to_string(world.home().join("config.toml")).unwrap();
    world.write(
        "config.toml",
        &(text.replace("[agents.assistant]\n", "") + "[agents.assistant]\ntools = [\"raed\"]\n"),
    );
    let (code, checked) = world.json(&["config", "check"]);
    assert!(code == Some(1) && checked.to_string().contains("names raed"), "{checked}");
    let (code, said) = chat(&world, "Look.");
    assert!(code == Some(2) && said["error"]["message"].as_str().unwrap().contains("no tool raed"), "{said}");
}

#[test]
fn x26_a_turn_that_goes_in_circles_ends_at_its_limit_where_nobody_can_be_asked() {
    let call = calls(&json!([{"name": "list", "arguments": {}}]));
    let world = world(&[json!({"loop": true, "tool_calls": call["tool_calls"]})]);
    let (code, said) = chat(&world, "Look around.");
    assert_eq!((code, said["finish"].as_str()), (Some(1), Some("limit")), "{said}");
    assert!(said["limit"].as_str().unwrap().contains("list was called 3 times"), "{said}");
    assert_eq!(nodes(&world).len(), 1 + 3 * 2, "what was done is kept");
    // Each call differs: the number of model calls is the limit.
    let lines: Vec<Value> = (0..50)
        .map(|offset| calls(&json!([{"name": "glob", "arguments": {"pattern": format!("{offset}")}}])))
        .collect();
    let world = self::world(&lines);
    let (code, said) = chat(&world, "Look around.");
    assert_eq!((code, said["finish"].as_str()), (Some(1), Some("limit")), "{said}");
    assert!(said["limit"].as_str().unwrap().contains("40 times"), "{said}");
    assert_eq!(nodes(&world).len(), 1 + 40 * 2);
    assert_eq!(nodes_after_undo(&world), 0, "it is one turn");
}

fn nodes_after_undo(world: &World) -> usize {
    let (_, trees) = world.json(&["tree", "list"]);
    let tree = trees["trees"][0]["short_id"].as_str().unwrap().to_owned();
    world.ok(&["tree", "undo", &tree]);
    nodes_of(world, &tree)
}

#[test]
fn what_a_stranger_says_in_an_untrusted_folder_taints_the_answer() {
    let lines =
        [calls(&json!([{"name": "read", "arguments": {"path": "src/main.rs"}}])), json!({"text": "Weave."})];
    // Found by looking upwards, and not trusted; named, as a control.
    for is_named in [false, true] {
        let world = world(&lines);
        let project = world.path("project");
        fs::write(project.join("AGENTS.md"), "Obey.").unwrap();
        let named = ["--workspace", project.to_str().unwrap()];
        let more: &[&str] = if is_named { &named } else { &[] };
        let mut command = world.command(&[more, &["--json", "chat", "-m", "Look."]].concat());
        let run: crate::world::Run = command.current_dir(&project).output().unwrap().into();
        let said: Value = serde_json::from_str(&run.out).unwrap();
        let (_, sent) = world.json(&["context", "show", said["node"].as_str().unwrap()]);
        assert_eq!(sent["tainted_by"].is_null(), is_named, "{sent}");
    }
}

/// A world whose model may change files, too.
pub(crate) fn writing(lines: &[Value], policy: &str) -> World {
    let world = world(lines);
    let config = fs::read_to_string(world.home().join("config.toml")).unwrap();
    let tools = "tools = [\"copy\", \"delete\", \"edit\", \"list\", \"mkdir\", \"move\", \"patch\", \"read\", \"write\"]";
    let config = config.replace("tools = [\"glob\", \"grep\", \"list\", \"read\"]", tools);
    world.write("config.toml", &format!("{config}{policy}"));
    world
}

#[test]
fn what_a_turn_changed_in_files_is_shown_and_given_back() {
    let world = writing(
        &[
            calls(&json!([
                {"name": "edit", "arguments": {"path": "src/main.rs", "old": "weave", "new": "unweave"}},
                {"name": "write", "arguments": {"path": "docs/new.md", "content": "New.\n"}},
                {"name": "read", "arguments": {"path": "docs/new.md"}},
                {"name": "write", "arguments": {"path": "docs/new.md", "content": "Newer.\n"}},
            ])),
            json!({"text": "Done.", "expect": ["changed 1 place of src/main.rs", "made docs/new.md", "wrote docs/new.md"]}),
        ],
        "",
    );
    let project = world.path("project");
    let at = |name: &str| fs::read_to_string(project.join(name)).ok();
    let chat = |text: &str| {
        let words = ["--workspace", project.to_str().unwrap(), "chat", "-m", text];
        let run = world.run(&words);
        assert_eq!(run.code, Some(0), "{text}: {run:?}");
        run
    };
    assert!(chat("Change it.").out.contains("Done."));
    assert_eq!(at("src/main.rs").as_deref(), Some("fn unweave() {}\n"));
    assert_eq!(at("docs/new.md").as_deref(), Some("Newer.\n"));
    let shown = chat("/diff").out;
    for line in ["--- src/main.rs", "-fn weave() {}", "+fn unweave() {}", "--- /dev/null", "+Newer."] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    fs::write(project.join("docs/mine.md"), "A person's.\n").unwrap();
    let back = chat("/undo --files");
    assert!(back.out.contains("given back: src/main.rs") && back.out.contains("docs/new.md"), "{back:?}");
    assert!(
        back.err.contains("left as it is: docs: Directory not empty"),
        "it holds what a person put there: {back:?}"
    );
    assert_eq!(at("src/main.rs").as_deref(), Some("fn weave() {}\n"));
    assert_eq!((at("docs/new.md"), at("docs/mine.md").as_deref()), (None, Some("A person's.\n")));
    fs::remove_file(project.join("docs/mine.md")).unwrap();
    assert_eq!(chat("/undo --files").out, "given back: docs\n");
    assert!(!project.join("docs").exists());
    assert_eq!(chat("/undo --files").out, "");
    assert_eq!(chat("/diff").out, "");
}

#[test]
fn a_file_that_somebody_changed_since_is_left() {
    let edit = |old: &str, new: &str| json!([{"name": "edit", "arguments": {"path": "src/main.rs", "old": old, "new": new}}]);
    let world = writing(&[calls(&edit("weave", "unweave")), json!({"text": "Done."})], "");
    let project = world.path("project");
    assert_eq!(chat(&world, "Change it.").0, Some(0));
    fs::write(project.join("src/main.rs"), "fn mine() {}\n").unwrap();
    let run = world.run(&["--workspace", project.to_str().unwrap(), "chat", "-m", "/undo --files"]);
    assert!(run.err.contains("left as it is: src/main.rs: somebody changed it since"), "{run:?}");
    assert_eq!(fs::read_to_string(project.join("src/main.rs")).unwrap(), "fn mine() {}\n");
}

#[test]
fn policy_decides_before_a_tool_runs() {
    let rule = "[[policy.rules]]\ndecision = \"deny\"\ntool = [\"write path=src/**\"]\nreason = \"sources are frozen\"\n";
    let write = |path: &str| json!({"name": "write", "arguments": {"path": path, "content": "x\n"}});
    let world = writing(
        &[
            calls(&json!([
                write("AGENTS.md"),
                write(".git/config"),
                write(".GIT/hooks/pre-commit"),
                write("src/new.rs"),
                write("free.txt"),
            ])),
            json!({"text": "Done.", "expect": ["sources are frozen", "never written by a tool", "made free.txt"]}),
        ],
        rule,
    );
    let (code, said) = chat(&world, "Write.");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    let results: Vec<Value> = nodes(&world).into_iter().filter(|node| node["role"] == "tool").collect();
    let denied = results.iter().filter(|node| node["text"].as_str().unwrap().contains("was not run")).count();
    assert_eq!((results.len(), denied), (5, 4), "{results:?}");
    for name in ["AGENTS.md", ".git", ".GIT", "src/new.rs"] {
        assert!(!world.path("project").join(name).exists(), "{name}");
    }
    assert!(world.path("project/free.txt").exists(), "control");
    // A rule that says nothing would let pass what it was to deny.
    let config = fs::read_to_string(world.home().join("config.toml")).unwrap();
    world.write("config.toml", &config.replace("[\"write path=src/**\"]", "[]"));
    let project = world.path("project");
    let run = || world.run(&["--workspace", project.to_str().unwrap(), "chat", "-m", "Write."]);
    let refused = run();
    assert!(refused.code == Some(2) && refused.err.contains("policy rule 1 is about nothing"), "{refused:?}");
    world.write("config.toml", &config.replace("write path=", "wirte path="));
    let refused = run();
    assert!(
        refused.code == Some(2) && refused.err.contains("rule 1: there is no such tool as wirte"),
        "{refused:?}"
    );
}

#[test]
fn what_went_out_of_a_folder_comes_back_with_the_folder_and_a_call_that_failed_is_no_change() {
    let patch = |patch: &str| json!([{"name": "patch", "arguments": {"patch": patch}}]);
    let world = writing(
        &[
            calls(&patch(
                "*** Begin Patch\n*** Update File: src/main.rs\n@@\n-fn weave() {}\n+fn lost() {}\n*** Add File: n\n+x\n\
                 *** Add File: n/x\n+x\n*** End Patch\n",
            )),
            calls(&patch(
                "*** Begin Patch\n*** Update File: src/main.rs\n*** Move to: main.rs\n@@\n-fn weave() {}\n+fn moved() {}\n\
                 *** End Patch\n",
            )),
            json!({"text": "Done."}),
        ],
        "",
    );
    let project = world.path("project");
    assert_eq!(chat(&world, "Move it.").0, Some(0));
    fs::remove_dir(project.join("src")).unwrap();
    assert_eq!(fs::read_to_string(project.join("main.rs")).unwrap(), "fn moved() {}\n");
    let names = || fs::read_dir(&project).unwrap().count();
    assert_eq!(names(), 1, "what failed left nothing");
    let run = |text: &str| world.run(&["--workspace", project.to_str().unwrap(), "chat", "-m", text]);
    let shown = run("/diff").out;
    assert!(!shown.contains("lost") && shown.contains("+fn moved() {}"), "{shown}");
    let back = run("/undo --files");
    assert_eq!((back.code, back.err.as_str()), (Some(0), "/redo --files takes it again\n"), "{back:?}");
    assert_eq!(fs::read_to_string(project.join("src/main.rs")).unwrap(), "fn weave() {}\n");
    assert_eq!(names(), 1);
}

#[test]
fn a_turn_of_which_nothing_can_be_given_back_is_not_in_the_way_of_the_one_before() {
    let edit = |path: &str, old: &str, new: &str| {
        calls(&json!([{"name": "edit", "arguments": {"path": path, "old": old, "new": new}}]))
    };
    let world = writing(&[edit("src/main.rs", "weave", "first"), json!({"text": "Done."})], "");
    let project = world.path("project");
    fs::write(project.join("b.txt"), "one\n").unwrap();
    assert_eq!(chat(&world, "Change it.").0, Some(0));
    let lines = format!("{}\n{}\n", edit("b.txt", "one", "two"), json!({"text": "Done."}));
    world.write("lines.jsonl", &lines);
    assert_eq!(chat(&world, "Change that.").0, Some(0));
    fs::write(project.join("b.txt"), "mine\n").unwrap();
    let back = world.run(&["--workspace", project.to_str().unwrap(), "chat", "-m", "/undo --files"]);
    assert_eq!(back.out, "given back: src/main.rs\n", "{back:?}");
    assert!(back.err.contains("left as it is: b.txt"), "{back:?}");
    assert_eq!(fs::read_to_string(project.join("b.txt")).unwrap(), "mine\n");
}

#[test]
fn answers_that_only_call_tools_leave_no_empty_lines_where_the_text_is_read() {
    let look = |path: &str| calls(&json!([{"name": "read", "arguments": {"path": path}}]));
    let world = world(&[
        json!({"text": "Let me look.", "tool_calls": [{"name": "list", "arguments": {"path": "."}}]}),
        look("src/main.rs"),
        look("README.md"),
        json!({"text": "In main.rs."}),
    ]);
    chat(&world, "Where is weave?");
    let project = text(&world.path("project"));
    let log = world.ok(&["--workspace", &project, "log"]);
    let called = "calls list {\"path\":\".\"}\ncalls read {\"path\":\"src/main.rs\"}\ncalls read {\"path\":\"README.md\"}";
    let answered = format!("> Where is weave?\n{called}\n\nLet me look.\n\nIn main.rs.\n\n");
    assert!(log.ends_with(&answered), "{log:?}");
    let (_, trees) = world.json(&["tree", "list"]);
    let path = world.ok(&["tree", "text", trees["trees"][0]["short_id"].as_str().unwrap()]);
    assert_eq!(path, "Where is weave?\n\nLet me look.\n\nIn main.rs.");
    let undo =
        world.run(&["--workspace", world.path("project").to_str().unwrap(), "chat", "-m", "/undo --files"]);
    assert_eq!((undo.code, undo.err.as_str()), (Some(0), "there is nothing to give back\n"), "{undo:?}");
}
