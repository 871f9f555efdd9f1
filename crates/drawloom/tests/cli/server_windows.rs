//! The window a local server has given a model is asked for once, and believed for a day (spec: agent §2).

use serde_json::json;

use crate::server::{self, Asked, Server};
use crate::world::World;

/// A server that says its model has this window, where llama.cpp says so; none, if it does not say.
fn server(window: Option<u32>) -> Server {
    Server::start(move |path, _| match path {
        "/v1/models" => Some(json!({"data": [{"id": "small"}]}).to_string()),
        "/props" => Some(json!({"default_generation_settings": {"n_ctx": window?}}).to_string()),
        path if path.ends_with("/chat/completions") => Some(server::chat("", "Yes.", 600)),
        _ => None,
    })
}

fn asked(server: &Server) -> usize {
    server.asked().iter().filter(|(path, _): &&Asked| path == "/props").count()
}

fn share(world: &World, model: &str) -> f64 {
    let (code, done) = world.json(&["chat", "-m", "Is it?", "--model", model, "--new"]);
    assert_eq!(code, Some(0), "{done}");
    done["share"].as_f64().unwrap()
}

fn near(found: f64, window: f64) -> bool {
    (found - 605.0 / window).abs() < 1e-6
}

#[test]
fn it_is_asked_once_and_kept() {
    let server = server(Some(3_000));
    let world = World::new();
    world.write(
        "config.toml",
        &format!("[providers.box]\nbase_url = \"{}\"\nkind = \"llamacpp\"\n", server.base()),
    );
    assert!(near(share(&world, "box/small"), 3_000.0));
    assert_eq!(asked(&server), 1);
    assert!(near(share(&world, "box/small"), 3_000.0), "as it was said");
    assert_eq!(asked(&server), 1, "within a day it is believed");
    world.ok(&["config", "set", "providers.box.window", "6000"]);
    assert!(near(share(&world, "box/small"), 6_000.0), "the owner knows better");
    assert_eq!(asked(&server), 1);
}

#[test]
fn a_server_by_its_address_is_asked_in_every_way_and_one_that_does_not_say_is_asked_all_the_same() {
    let world = World::new();
    let says = server(Some(2_000));
    assert!(near(share(&world, &format!("http://127.0.0.1:{}/small", says.port)), 2_000.0));
    let silent = server(None);
    assert!(
        near(share(&world, &format!("http://127.0.0.1:{}/small", silent.port)), 8_192.0),
        "as is assumed"
    );
    let so_far = asked(&silent);
    share(&world, &format!("http://127.0.0.1:{}/small", silent.port));
    assert_eq!(asked(&silent), so_far, "it is not asked again at once");
}

#[test]
fn a_server_elsewhere_is_not_asked() {
    let server = server(Some(3_000));
    let world = World::new();
    let config = format!(
        "[providers.far]\nbase_url = \"{}\"\nplace = \"remote\"\nkind = \"llamacpp\"\n",
        server.base()
    );
    world.write("config.toml", &config);
    share(&world, "far/small");
    assert_eq!(asked(&server), 0);
}

#[test]
fn a_server_of_llama_cpp_with_one_model_has_it_by_any_name() {
    let listing = |id: &'static str| {
        Server::start(move |path, _| match path {
            "/v1/models" => Some(json!({"data": [{"id": id}]}).to_string()),
            path if path.ends_with("/chat/completions") => Some(server::chat("", "Yes.", 600)),
            _ => None,
        })
    };
    let world = World::new();
    for (kind, id, taken) in [
        ("", "/models/one.gguf", true),
        ("kind = \"llamacpp\"", "one", true),
        ("", "one", false),
        ("kind = \"vllm\"", "/models/one.gguf", false),
    ] {
        let server = listing(id);
        world.write("config.toml", &format!("[providers.local]\nbase_url = \"{}\"\n{kind}\n", server.base()));
        let used = world.run(&["model", "use", "local/smollm2"]);
        assert_eq!(used.code, Some(if taken { 0 } else { 3 }), "{kind} {id}: {used:?}");
        assert!(used.err.contains(id), "{kind} {id}: {used:?}");
        assert_eq!(used.err.contains("answers to any name"), taken, "{kind} {id}: {used:?}");
    }
    let near = world.run(&["model", "use", "smollm"]);
    assert!(near.code == Some(3) && near.err.contains("did you mean smollm2?"), "{near:?}");
}
