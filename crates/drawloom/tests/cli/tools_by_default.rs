//! Which tools a model is offered where the configuration names none (docs/decisions/0029).

use serde_json::{Value, json};

use crate::server::{self, Server};
use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::world::{World, text};

/// A world with a folder to work in and two models that take tools, one in a small window, and one that takes none.
fn world(more: &str) -> (World, Server) {
    let world = World::new();
    let near =
        Server::start(|path, _| path.ends_with("/chat/completions").then(|| server::chat("", "Said.", 10)));
    let base = near.base();
    world.write(
        "config.toml",
        &format!(
            "[model]\ndefault = \"box/m\"\n[providers.box]\nbase_url = \"{base}\"\nwindow = 64000\nplace = \"local\"\n\
             [models.\"box/small\"]\nwindow = 12000\n[models.\"box/mute\"]\ntools = false\n{more}"
        ),
    );
    std::fs::create_dir_all(world.path("project")).unwrap();
    (world, near)
}

/// The tools of the last request.
fn offered(near: &Server) -> Vec<String> {
    let body = near.bodies().pop().unwrap();
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

/// The tools of a request that a conversation in the folder sends.
fn offered_in_folder(world: &World, near: &Server, more: &[&str]) -> Vec<String> {
    let project = text(&world.path("project"));
    world.ok(&[&["--workspace", &project, "chat", "-m", "Hi"], more].concat());
    offered(near)
}

#[test]
fn a_conversation_in_a_workspace_offers_what_works_there() {
    let (world, near) = world("[tools.mine]\ncommand = \"true\"\ndescription = \"Does nothing.\"\n");
    let tools = offered_in_folder(&world, &near, &[]);
    for name in ["read", "edit", "exec", "grep", "web_fetch", "plan", "mine"] {
        assert!(tools.iter().any(|tool| tool == name), "{name} is not among {tools:?}");
    }
    assert!(!tools.iter().any(|tool| tool.starts_with("loom_") || tool == "web_search"), "{tools:?}");
    let project = text(&world.path("project"));
    let (_, shown) = world.json(&["--workspace", &project, "chat", "-m", "/tools"]);
    let of = |key: &str| shown[key].as_array().unwrap().len();
    assert!(of("tools") > 15 && of("others") == 13, "all but those of the loom: {shown}");
}

/// With the tools as they are (spec: context §3; scale §1).
#[test]
fn a_greeting_with_every_tool_of_a_fresh_workspace_is_small() {
    let (world, near) = world("");
    assert!(offered_in_folder(&world, &near, &[]).len() > 15);
    let body = near.bodies().pop().unwrap().to_string();
    assert!(body.len() <= 12 << 10, "{} bytes", body.len());
    println!("{} bytes", body.len());
}

/// What is sent whatever the session: a search for the others, and the way to call them, included (spec: agent §3).
#[test]
fn what_is_sent_where_the_others_wait_has_at_most_2500_tokens() {
    let own: String = (0..60)
        .map(|number| format!("[tools.own_{number}]\ncommand = \"true\"\ndescription = \"Does nothing.\"\n"))
        .collect();
    let searches = "[web]\nsearch = \"searxng\"\nsearch_url = \"http://127.0.0.1:1\"\n";
    let (world, near) = world(&format!("{searches}{own}"));
    assert_eq!(
        offered_in_folder(&world, &near, &[]),
        [
            "call_tool",
            "edit",
            "exec",
            "glob",
            "grep",
            "list",
            "plan",
            "read",
            "recall",
            "tool_search",
            "web_fetch",
            "web_search",
            "write"
        ]
    );
    let body = near.bodies().pop().unwrap();
    let schemas: String =
        body["tools"].as_array().unwrap().iter().map(|tool| tool["function"].to_string()).collect();
    let tokens = context::Estimator::default().estimated(&schemas);
    assert!((1_000..=2_500).contains(&tokens), "{tokens}");
}

/// Tools of the loom come with permissions, and no fresh workspace has these; they are sent while they fit as others are.
#[test]
fn tools_of_the_loom_are_sent_where_they_fit_and_wait_where_they_do_not() {
    let permissions = "[agents.assistant]\nloom_aware = true\nloom_write = true\nloom_generate = true\n\
                       doc_read = true\ndoc_write = true\n";
    let small = "[models.\"box/tight\"]\nwindow = 32000\n";
    let (world, near) = world(&format!("{small}{permissions}"));
    let sent = |more: &[&str]| {
        let tools = offered_in_folder(&world, &near, more);
        let body = near.bodies().pop().unwrap();
        let schemas: String =
            body["tools"].as_array().unwrap().iter().map(|tool| tool["function"].to_string()).collect();
        (tools, body.to_string().len(), context::Estimator::default().estimated(&schemas))
    };
    let is_loom = |tool: &String| tool.starts_with("loom_");
    let (tools, bytes, tokens) = sent(&[]);
    assert!(tools.iter().filter(|tool| is_loom(tool)).count() > 10, "{tools:?}");
    assert!(
        tokens <= 6_400 && bytes > 12 << 10,
        "within a tenth of the window: {tokens} tokens, {bytes} bytes"
    );
    let (tools, bytes, tokens) = sent(&["--model", "box/tight", "--new"]);
    assert!(!tools.iter().any(is_loom) && tools.iter().any(|tool| tool == "tool_search"), "{tools:?}");
    assert!(tokens <= 2_500 && bytes <= 12 << 10, "{tokens} tokens, {bytes} bytes");
}

#[test]
fn nothing_is_offered_without_a_workspace_to_a_question_and_to_models_that_take_none() {
    let (world, near) = world("");
    world.ok(&["chat", "-m", "Hi"]);
    assert_eq!(offered(&near), Vec::<String>::new(), "without a workspace");
    let project = text(&world.path("project"));
    world.ok(&["--workspace", &project, "ask", "Hi"]);
    assert_eq!(offered(&near), Vec::<String>::new(), "a single question");
    for model in ["box/mute", "box/small"] {
        assert_eq!(
            offered_in_folder(&world, &near, &["--model", model, "--new"]),
            Vec::<String>::new(),
            "{model}"
        );
    }
    let small = ["--workspace", &project, "--model", "box/small", "chat", "--new", "-m", "/tools"];
    let shown = world.ok(&small);
    assert!(
        shown.starts_with("not all tools are sent: a window of 12000 tokens is too small for"),
        "{shown}"
    );
    let others = shown.split("not given to it: ").nth(1).unwrap();
    assert!(["read", "exec", "grep", "plan"].iter().all(|tool| others.contains(tool)), "{shown}");
    let (_, large) = world.json(&["--workspace", &project, "chat", "--new", "-m", "/tools"]);
    assert_eq!(large["small_window"], Value::Null, "the control: {large}");
    let shown = world.ok(&["chat", "-m", "/tools"]);
    assert!(shown.starts_with("the model may call no tools without a workspace"), "{shown}");
}

#[test]
fn what_is_named_is_offered_wherever_it_can_be() {
    let (world, near) = world("[agents.assistant]\ntools = [\"read\"]\n");
    assert_eq!(offered_in_folder(&world, &near, &[]), ["read"]);
    assert_eq!(offered_in_folder(&world, &near, &["--model", "box/small", "--new"]), ["read"]);
    let project = text(&world.path("project"));
    world.ok(&["--workspace", &project, "ask", "Hi"]);
    assert_eq!(offered(&near), ["read"]);
    let (_, said) =
        world.json(&["--workspace", &project, "chat", "--new", "--model", "box/mute", "-m", "Hi"]);
    assert_eq!(offered(&near), Vec::<String>::new());
    let (_, shown) = world.json(&["context", "show", said["node"].as_str().unwrap()]);
    assert!(shown.to_string().contains("this model takes no tools"), "{shown}");
    world.ok(&["config", "set", "agents.assistant.tools", "[]"]);
    assert_eq!(offered_in_folder(&world, &near, &["--new"]), Vec::<String>::new());
}

#[test]
fn a_model_that_takes_tools_gets_them_when_it_is_asked_instead() {
    let (world, near) = world("");
    let project = text(&world.path("project"));
    let command = world.command(&["--workspace", &project, "--model", "box/mute", "chat"]);
    let mut terminal = Terminal::start(with_terminal(&command));
    for (typed, shown) in [
        ("Hi", "Said."),
        ("/tools", "no tools are sent: box/mute takes none"),
        ("/model box/m", "box/m"),
        ("And now?", "Said."),
    ] {
        terminal.at_prompt();
        terminal.types(&format!("{typed}\r"));
        terminal.shows(shown);
    }
    terminal.at_prompt();
    terminal.types("/quit\r");
    assert_eq!(terminal.ended(), Some(0));
    let bodies: Vec<Value> = near.bodies();
    let with_tools = |body: &Value| body["tools"] != Value::Null && body["tools"] != json!([]);
    assert_eq!(bodies.iter().map(with_tools).collect::<Vec<_>>(), [false, true]);
}
