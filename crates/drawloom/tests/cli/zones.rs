//! How full a session is: who is told what, and when (spec: context §5).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::server::{self, Server};
use crate::world::World;

/// A model with a window of 10,000 tokens that reports as many as the test says.
struct Filling {
    world: World,
    server: Server,
    tokens: Arc<AtomicU64>,
}

impl Filling {
    fn new() -> Self {
        let tokens = Arc::new(AtomicU64::new(0));
        let reported = Arc::clone(&tokens);
        let server = Server::start(move |_, body| {
            let turn = body["messages"].as_array()?.len();
            Some(server::chat("", &format!("Answer {turn}."), reported.load(Ordering::SeqCst)))
        });
        let world = World::new();
        let base = server.base();
        world.write(
            "config.toml",
            &format!("[providers.box]\nbase_url = \"{base}\"\nwindow = 10000\ncompletion_endpoint = false\n"),
        );
        Self { world, server, tokens }
    }

    /// Says something, with the tokens the model reports for it; gives the result, and what was said beside it.
    fn say(&self, text: &str, tokens: u64) -> (Value, String) {
        self.tokens.store(tokens, Ordering::SeqCst);
        let run = self.world.run(&["chat", "-m", text, "--model", "box/m", "--json"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        (serde_json::from_str(&run.out).unwrap(), run.err)
    }

    fn sent(&self) -> String {
        self.server.bodies().last().unwrap().to_string()
    }
}

#[test]
fn each_zone_is_told_once_to_the_owner_and_once_to_the_model() {
    let filling = Filling::new();
    let (green, said) = filling.say("one", 1_000);
    assert_eq!((&green["zone"], &green["measured"]), (&"green".into(), &true.into()));
    assert!(said.is_empty(), "{said}");
    let (orange, said) = filling.say("two", 4_400);
    assert_eq!(orange["zone"], "orange");
    assert!(said.contains("44 % of the window is in use") && said.contains("/zone"), "{said}");
    assert!(!filling.sent().contains("context window"), "nothing was full yet");
    let (_, said) = filling.say("three", 4_500);
    assert!(said.is_empty(), "once: {said}");
    assert!(filling.sent().contains("More than two fifths"), "{}", filling.sent());
    let (red, said) = filling.say("four", 6_000);
    assert_eq!(red["zone"], "red");
    assert_eq!(filling.sent().matches("More than two fifths").count(), 1, "once, and sent again");
    assert!(said.contains("60 % of the window is in use") && said.contains("/new"), "{said}");
    let (_, said) = filling.say("five", 6_100);
    assert!(said.is_empty(), "{said}");
    let (_, shown) = filling.world.json(&["chat", "-m", "/zone"]);
    assert_eq!(
        (&shown["zone"], &shown["used"], &shown["wrap"]),
        (&"red".into(), &6_105.into(), &"ask".into())
    );
    assert_eq!(shown["sources"][0]["name"], "the conversation");
    let page = filling.world.ok(&["chat", "-m", "/zone"]);
    assert!(
        page.contains("red, 61 % of the window") && page.contains("6105 of 10000 tokens, reported"),
        "{page}"
    );
}

#[test]
fn a_window_that_is_full_at_once_is_a_fixed_load_and_names_what_fills_it() {
    let filling = Filling::new();
    let (_, said) = filling.say("one", 6_000);
    assert!(said.contains("a new session would hardly help: "), "{said}");
    assert!(said.contains("tokens)") && !said.contains("/new"), "{said}");
    let (_, shown) = filling.world.json(&["chat", "-m", "/zone"]);
    assert_eq!(shown["wrap"], "fixed_load");
}

#[test]
fn what_nobody_reports_is_estimated_and_says_so() {
    let filling = Filling::new();
    let (done, _) = filling.say("one", 0);
    assert_eq!(done["measured"], false);
    assert!(done["share"].as_f64().unwrap() > 0.0, "unknown is not nothing");
    let (_, status) = filling.world.json(&["chat", "-m", "/status"]);
    assert_eq!(status["measured"], false);
    assert!(filling.world.ok(&["chat", "-m", "/zone"]).contains("tokens, estimated"));
    assert_eq!(filling.world.run(&["chat", "-m", "/zone", "--session", "other"]).code, Some(3));
}

#[test]
fn a_question_asked_again_is_told_to_the_model_and_to_nobody_else() {
    let filling = Filling::new();
    filling.say("Why does the build fail here?", 100);
    filling.say("And what of the tests?", 100);
    assert!(!filling.sent().contains("in circles"), "control");
    let (done, said) = filling.say("why does the build fail here", 100);
    assert!(filling.sent().contains("This may be going in circles: the same question"), "{}", filling.sent());
    assert_eq!((&done["zone"], said.as_str()), (&"green".into(), ""), "the zone is what it is");
    filling.say("Why does the build fail here?", 100);
    assert_eq!(filling.sent().matches("in circles").count(), 1, "once");
}
