//! How much a model thinks, from what a person says to what is sent, and what of it is seen (spec: agent §2).

use serde_json::{Value, json};

use crate::server::{self, Server};
use crate::terminal::Terminal;
use crate::world::World;

const THOUGHT: &str = "It rains, so it is wet.";

/// A server of messages and one of chat completions, each with a model that thinks, and one that cannot.
fn two(world: &World) -> (Server, Server) {
    let messages = Server::start(|_, _| Some(server::messages(THOUGHT, "Wet.", 100)));
    let chat = Server::start(|_, _| Some(server::chat(THOUGHT, "Wet.", 100)));
    world.write(
        "config.toml",
        &format!(
            "[providers.cl]\nbase_url = \"{}\"\nkind = \"anthropic\"\n\
             [providers.ol]\nbase_url = \"{}\"\nkind = \"ollama\"\nwindow = 32000\n\
             [providers.plain]\nbase_url = \"{}\"\nwindow = 32000\ncompletion_endpoint = false\n\
             [presets.deep]\nthink = \"high\"\n",
            messages.base(),
            chat.base(),
            chat.base(),
        ),
    );
    (messages, chat)
}

#[test]
fn a_flag_a_preset_and_the_configuration_say_how_much_in_the_servers_words() {
    let world = World::new();
    let (messages, chat) = two(&world);
    let say = |model: &str, more: &[&str]| {
        let (code, done) = world.json(&[&["chat", "-m", "Wet?", "--model", model], more].concat());
        assert_eq!(code, Some(0), "{done}");
        assert_eq!(done["text"], "Wet.", "what was thought is no part of the answer");
        assert!(!done.to_string().contains("rains"), "{done}");
    };
    let last = |server: &Server| server.bodies().last().unwrap().clone();
    say("cl/claude-opus-5", &["--think", "high"]);
    let sent = last(&messages);
    assert_eq!(sent["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    assert_eq!(sent["output_config"]["effort"], "high");
    say("cl/claude-opus-5-5", &["--think", "off"]);
    let sent = last(&messages);
    assert_eq!(sent["output_config"]["effort"], "low", "it cannot do without");
    assert_eq!(
        sent["thinking"],
        json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}})
    );
    say("ol/qwen3:8b", &["--preset", "deep"]);
    assert_eq!(chat.bodies().last().unwrap()["reasoning_effort"], "high");
    say("ol/qwen3:8b", &["--preset", "deep", "--think", "off"]);
    assert_eq!(chat.bodies().last().unwrap()["reasoning_effort"], "none", "a flag goes before a preset");
    say("ol/qwen3:8b", &[]);
    assert_eq!(chat.bodies().last().unwrap()["reasoning_effort"], Value::Null, "control");
    world.ok(&["config", "set", "model.think", "low"]);
    say("ol/qwen3:8b", &[]);
    assert_eq!(chat.bodies().last().unwrap()["reasoning_effort"], "low");
}

#[test]
fn a_model_that_cannot_be_told_says_so_and_a_default_is_for_those_that_can() {
    let world = World::new();
    let (_, chat) = two(&world);
    let run = world.run(&["chat", "-m", "Wet?", "--model", "plain/m", "--think", "high"]);
    assert!(run.err.contains("the thinking of plain/m cannot be set"), "{run:?}");
    world.ok(&["config", "set", "model.think", "high"]);
    let run = world.run(&["chat", "-m", "Wet?", "--model", "plain/m"]);
    assert!(run.code == Some(0) && !run.err.contains("cannot be set"), "{run:?}");
    assert!(chat.bodies().iter().all(|body| body["reasoning_effort"].is_null()));
}

#[test]
fn a_document_says_it_too() {
    let world = World::new();
    let (_, chat) = two(&world);
    world.ok(&["tree", "new", "--title", "story", "--text", "It was a dark night."]);
    world.ok(&["config", "set", "providers.ol.prefill", "false"]);
    world.ok(&["tree", "generate", "story", "--think", "low", "--model", "ol/qwen3:8b"]);
    assert_eq!(chat.bodies().last().unwrap()["reasoning_effort"], "low");
    world.ok(&["config", "set", "providers.ol.prefill", "true"]);
    let run = world.run(&["tree", "generate", "story", "--think", "low", "--model", "ol/qwen3:8b"]);
    assert!(run.err.contains("continues raw text and cannot think"), "{run:?}");
    assert_eq!(chat.bodies().last().unwrap()["reasoning_effort"], "none", "its beginning is given");
}

#[test]
fn a_model_that_always_thinks_is_shown_with_what_it_was_told() {
    let world = World::new();
    let _servers = two(&world);
    world.ok(&["chat", "-m", "Wet?", "--model", "cl/claude-opus-5-5", "--think", "off"]);
    let (_, said) = world.json(&["log"]);
    let tree = said["exchanges"][0]["tree"].as_str().unwrap().to_owned();
    let shown = world.ok(&["tree", "show", &tree]);
    assert!(shown.contains("thinking low"), "{shown}");
}

#[test]
fn a_passage_that_a_local_server_continues_has_a_length() {
    let world = World::new();
    let (_, chat) = two(&world);
    world.ok(&["config", "set", "providers.ol.kind", "llamacpp"]);
    world.ok(&["tree", "new", "--title", "story", "--text", "It was a dark night."]);
    world.ok(&["tree", "generate", "story", "--model", "ol/m"]);
    let sent = chat.bodies().last().unwrap().clone();
    assert!(sent["prompt"].is_string() && sent["max_tokens"] == 96, "{sent}");
}

#[test]
fn text_that_is_continued_raw_is_shown_without_the_thinking_that_nobody_was_told_of() {
    let world = World::new();
    let (_, chat) = two(&world);
    world.ok(&["config", "set", "providers.plain.completion_endpoint", "true"]);
    world.ok(&["config", "set", "providers.plain.kind", "ollama"]);
    world.ok(&["tree", "new", "--title", "story", "--text", "It was a dark night."]);
    world.ok(&["tree", "generate", "story", "--think", "high", "--temperature", "0.3", "--model", "plain/m"]);
    let sent = chat.bodies().last().unwrap().clone();
    assert!(sent["prompt"].is_string() && sent["reasoning_effort"].is_null(), "{sent}");
    let shown = world.ok(&["tree", "show", "story"]);
    assert!(shown.contains("temperature 0.3") && !shown.contains("thinking"), "{shown}");
}

#[test]
fn a_look_ahead_at_a_document_is_the_request_that_is_sent() {
    let world = World::new();
    let (_, chat) = two(&world);
    world.ok(&["config", "set", "model.think", "low"]);
    world.ok(&["config", "set", "providers.ol.prefill", "false"]);
    for model in ["ol/qwen3:8b", "plain/m"] {
        world.ok(&["config", "set", "model.default", model]);
        world.ok(&["tree", "new", "--title", model, "--text", "It was a dark night."]);
        world.ok(&["tree", "draft", model, " It rained."]);
        let (_, ahead) = world.json(&["context", "show", "--next", model]);
        let (_, made) = world.json(&["tree", "generate", model]);
        let (_, sent) = world.json(&["context", "show", made["nodes"][0]["id"].as_str().unwrap()]);
        for key in ["sha256", "budget", "window", "model"] {
            assert_eq!(ahead[key], sent[key], "{model}: {key}");
        }
    }
    let sent = chat.bodies();
    let [thinks, told] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(
        (&thinks["reasoning_effort"], &told["max_tokens"]),
        (&"low".into(), &96.into()),
        "the controls"
    );
}

#[test]
fn a_conversation_is_told_and_shows_its_thinking_apart() {
    let world = World::new();
    let (_, chat) = two(&world);
    let mut terminal =
        Terminal::start(world.command(&["--model", "ol/qwen3:8b", "--color", "always", "chat"]));
    terminal.says("/think high\r");
    terminal.shows("thinking: high, in this session");
    terminal.says("Wet?\r");
    terminal.shows(THOUGHT);
    terminal.shows("Wet.");
    terminal.says("/status\r");
    terminal.shows("thinking   high");
    terminal.says("/think much\r");
    terminal.shows("it takes off, low or high");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(chat.bodies().last().unwrap()["reasoning_effort"], "high");
    let lines = terminal.contents();
    let line = lines.lines().find(|line| line.contains(THOUGHT)).unwrap();
    assert!(!line.contains("Wet."), "it stands on a line of its own: {line}");

    let mut plain = Terminal::start(world.command(&["--model", "ol/qwen3:8b", "--color", "never", "chat"]));
    plain.says("Wet?\r");
    plain.shows("[thinking: 23 characters]");
    plain.types("\u{4}");
    assert_eq!(plain.ended(), Some(0));
    assert!(!plain.contents().contains(THOUGHT), "what cannot be told apart is counted");
}
