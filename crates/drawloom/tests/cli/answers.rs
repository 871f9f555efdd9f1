//! Answers that are not as they were asked for, and models that are known by several names.

use serde_json::{Value, json};

use crate::server::{self, Server};
use crate::world::World;

/// A server elsewhere that gives one choice of this number, and counts this many tokens each way.
fn far(world: &World, index: u32, tokens: u64, more: &str) -> Server {
    let server = Server::start(move |path, _| {
        let message = json!({"role": "assistant", "content": "a short answer"});
        let choice = json!({"index": index, "message": message, "finish_reason": "stop"});
        let usage = json!({"prompt_tokens": tokens, "completion_tokens": tokens});
        let answer = json!({"id": "f", "choices": [choice], "usage": usage});
        path.ends_with("/chat/completions").then(|| answer.to_string())
    });
    world.write(
        "config.toml",
        &format!(
            "{more}[providers.far]\nbase_url = \"{}\"\nplace = \"remote\"\nwindow = 32000\n\
             [models.\"far/m\"]\noutput_limit = 1000\nprice_input = 1\nprice_output = 10\n",
            server.base()
        ),
    );
    server
}

/// The calls of the month, their tokens of output and what they came to.
fn spent(world: &World) -> (u64, u64, f64) {
    let (_, costs) = world.json(&["cost", "month"]);
    let row = &costs["rows"][0];
    let count = |name: &str| row[name].as_u64().unwrap_or_else(|| panic!("no {name}: {costs}"));
    (count("calls"), count("output"), costs["total"].as_f64().unwrap())
}

#[test]
fn a_choice_that_nobody_asked_for_is_kept_and_booked() {
    for index in [1, 7] {
        let world = World::new();
        let _far = far(&world, index, 100, "");
        let run = world.run(&["--model", "far/m", "chat", "-m", "hello"]);
        assert_eq!((run.code, run.out.as_str()), (Some(0), "a short answer\n"), "{run:?}");
        let (_, shown) = world.json(&["tree", "show", "hello"]);
        let last = shown["nodes"].as_array().unwrap().last().unwrap();
        assert_eq!((&last["text"], &last["author_kind"]), (&"a short answer".into(), &"model".into()));
        // 100 at $1 and 100 at $10 a million.
        assert_eq!(spent(&world), (1, 100, 0.001_1));
    }
}

#[test]
fn counts_that_cannot_be_are_not_believed_and_stop_no_budget() {
    for tokens in [1 << 53, 1 << 63] {
        let world = World::new();
        let _far = far(&world, 0, tokens, "[budget]\nmonth = 1.0\n");
        let say = || world.run(&["--model", "far/m", "chat", "-m", "hello"]);
        let run = say();
        assert_eq!((run.code, run.out.as_str()), (Some(0), "a short answer\n"), "{run:?}");
        let (calls, output, cost) = spent(&world);
        assert!(
            calls == 1 && (1..100).contains(&output) && cost > 0.0 && cost < 0.01,
            "{output} tokens for ${cost}"
        );
        assert!(run.err.contains("not plausible"), "{run:?}");
        let again = say();
        assert_eq!(again.code, Some(0), "the month is not spent: {again:?}");
    }
}

#[test]
fn a_model_by_another_route_takes_its_earlier_answers_for_its_own() {
    let world = World::new();
    let server =
        Server::start(|path, _| path.ends_with("/chat/completions").then(|| server::chat("", "I look.", 10)));
    let provider =
        |name: &str| format!("[providers.{name}]\nbase_url = \"{}\"\nwindow = 32000\n", server.base());
    world.write("config.toml", &["maker", "gate"].map(provider).concat());
    let messages = |model: &str| -> Vec<(String, String)> {
        world.ok(&["chat", "--session", "s", "-m", "look", "--model", model]);
        let bodies = server.bodies();
        let sent = bodies.last().unwrap()["messages"].as_array().unwrap();
        let text = |message: &Value, name: &str| message[name].as_str().unwrap_or_default().to_owned();
        let of = sent.iter().map(|message| (text(message, "role"), text(message, "content")));
        of.filter(|(role, _)| role != "system").collect()
    };
    messages("maker/claude-opus-4-5");
    for (number, route) in
        ["gate/anthropic/claude-opus-4.5", "gate/claude-opus-4-5-20251101", "maker/claude-opus-4-5"]
            .iter()
            .enumerate()
    {
        let sent = messages(route);
        let own = sent.iter().filter(|(role, text)| role == "assistant" && text == "I look.").count();
        assert_eq!(own, number + 1, "{route}: {sent:?}");
        assert!(
            !sent.iter().any(|(role, text)| role == "user" && text.contains("I look.")),
            "{route}: {sent:?}"
        );
    }
    let sent = messages("gate/anthropic/claude-opus-4.6");
    assert!(sent.iter().all(|(role, _)| role == "user"), "the control: another model: {sent:?}");
}
