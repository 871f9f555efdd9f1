//! What was sent to one model, sent once more: with servers that note what reaches them.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::post;
use serde_json::Value;

use crate::trust::at_terminal;
use crate::world::World;

/// A server of another dialect, and what it was asked.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) asked: Arc<Mutex<Vec<Value>>>,
    _runtime: tokio::runtime::Runtime,
}

const ANSWER: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"type\":\"message\",",
    "\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,",
    "\"usage\":{\"input_tokens\":30,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,",
    "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,",
    "\"delta\":{\"type\":\"text_delta\",\"text\":\"from afar\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},",
    "\"usage\":{\"output_tokens\":3}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

pub(crate) fn server() -> Server {
    server_saying(ANSWER.to_owned())
}

/// One that does not say how many tokens there were.
pub(crate) fn silent_server() -> Server {
    let (usage, delta) =
        (",\"usage\":{\"input_tokens\":30,\"output_tokens\":1}", ",\"usage\":{\"output_tokens\":3}");
    server_saying(ANSWER.replace(usage, "").replace(delta, ""))
}

fn server_saying(answer: String) -> Server {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let asked = Arc::<Mutex<Vec<Value>>>::default();
    let seen = Arc::clone(&asked);
    let answer = move |body: String| {
        seen.lock().unwrap().push(serde_json::from_str(&body).unwrap());
        let answer = answer.clone();
        async move { ([("content-type", "text/event-stream")], answer) }
    };
    let router = Router::new().route("/v1/messages", post(answer));
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    runtime.spawn(async move { axum::serve(listener, router).await });
    Server { port, asked, _runtime: runtime }
}

/// A conversation with a local model, and a server elsewhere; the node of the last answer.
fn conversation(world: &World, server: &Server) -> String {
    world.write(
        "config.toml",
        &format!(
            "[providers.far]\nbase_url = \"http://127.0.0.1:{}\"\nplace = \"remote\"\n\
             dialect = \"anthropic_messages\"\n[models.\"far/m\"]\nprice_input = 1\nprice_output = 1\n",
            server.port
        ),
    );
    let say = |text: &str| world.json(&["chat", "-m", text, "--model", "script:echo"]).1;
    say("my secret plan");
    say("and more of it")["node"].as_str().unwrap().to_owned()
}

#[test]
fn s10_a_private_conversation_is_not_sent_elsewhere_by_a_flag() {
    let (world, server) = (World::new(), server());
    let node = conversation(&world, &server);
    let replay = ["context", "replay", &node, "--model", "far/m"];
    let (code, refused) = world.json(&replay);
    assert_eq!((code, &refused["error"]["code"]), (Some(4), &"elsewhere".into()), "{refused}");
    assert!(refused["error"]["hint"].as_str().unwrap().contains("model.replay"), "{refused}");
    let (code, _) = world.json(&[&replay[..], &["--yes"]].concat());
    assert_eq!(code, Some(4), "that many tokens may go is not that they may go there");
    world.ok(&[&replay[..], &["--dry-run"]].concat());
    assert!(server.asked.lock().unwrap().is_empty(), "not a byte");

    world.ok(&["config", "set", "model.replay", "[\"far/m\"]"]);
    let run = world.run(&replay);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("it is built again") && run.err.contains("text goes to 127.0.0.1"), "{run:?}");
    assert_eq!(run.out, "from afar\n", "the answer alone");
    assert!(run.err.contains("far/m, encoded for far/m]"), "{run:?}");
    let asked = server.asked.lock().unwrap().pop().unwrap();
    let messages = asked["messages"].to_string();
    assert!(messages.contains("my secret plan") && messages.contains("and more of it"), "{asked}");
    assert!(asked["system"].to_string().contains("helpful"), "what stood above goes along: {asked}");
    let line = run.err.lines().find(|line| line.contains("stays where it is")).unwrap();
    let command: Vec<&str> = line.split('\'').collect();
    let short = command[2].trim().split('`').next().unwrap();
    let made = &format!("my secret plan:{short}");
    let (_, shown) = world.json(&["context", "show", made]);
    assert_eq!(shown["model"], "far/m", "{shown}");
    // The sibling is that model's own: its stored bytes go to it again.
    let (_, again) = world.json(&["context", "replay", made]);
    assert_eq!((&again["identical"], again["model"].as_str()), (&true.into(), Some("far/m")), "{again}");
}

#[test]
fn s10_whoever_sits_at_the_terminal_is_asked() {
    let (world, server) = (World::new(), server());
    let node = conversation(&world, &server);
    for (answer, code, sent) in [("n\n", 4, 0), ("y\n", 0, 1)] {
        let words = ["context", "replay", &node, "--model", "far/m"];
        let (ended, shown) = at_terminal(&world, &world.path("here"), &words, answer);
        assert_eq!(ended, Some(code), "{answer:?}: {shown}");
        assert!(shown.contains("Send it there?"), "{shown}");
        assert_eq!(server.asked.lock().unwrap().len(), sent, "{answer:?}");
    }
}

#[test]
fn an_answer_of_a_script_names_the_way_to_ask_one() {
    let world = World::new();
    world.ok(&["--model", "script:echo", "chat", "-m", "hello"]);
    let (_, said) = world.json(&["sessions", "show", "main"]);
    let run = world.run(&["context", "replay", said["tip"].as_str().unwrap()]);
    assert!(run.code == Some(2) && run.err.contains("--model script:FILE"), "{run:?}");
    assert!(!run.err.contains("base_url"), "{run:?}");
}

#[test]
fn an_answer_that_was_cut_is_cut_again_when_its_request_is_sent_once_more() {
    let world = World::new();
    let lines = world.path("loop.jsonl");
    std::fs::write(&lines, "{\"text\": \" One. Two. Three.\", \"loop\": true}\n").unwrap();
    let model = format!("script:{}", lines.display());
    world.ok(&["tree", "new", "--title", "Rain", "--text", "Start."]);
    for (stop, cut) in [("sentence", " One. "), ("Two", " One. ")] {
        let (_, made) = world.json(&["tree", "generate", "Rain", "--model", &model, "--stop", stop]);
        let (_, shown) = world.json(&["tree", "show", "Rain"]);
        let node = shown["nodes"].as_array().unwrap().last().unwrap();
        assert_eq!(node["text"], cut, "{made}");
        let (code, again) =
            world.json(&["context", "replay", node["id"].as_str().unwrap(), "--model", &model]);
        assert_eq!((code, again["text"].as_str()), (Some(0), Some(cut)), "{again}");
        world.ok(&["tree", "undo", "Rain"]);
    }
    assert_eq!(world.ok(&["tree", "verify", "Rain", "--json"]).matches("\"valid\"").count(), 1);
}
