//! Tokens that are counted by the model itself before a request is sent (spec: context §4).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::models::tiny;
use crate::server::{self, Server};
use crate::terminal::Terminal;
use crate::world::World;

const GERMAN: &str = "Der Regen hatte drei Tage lang nicht aufgehört, und das Weberschiffchen lag still.";

#[test]
fn the_embedded_engine_counts_what_it_reads() {
    let world = World::new();
    let file = tiny(&world);
    world.ok(&["tree", "new", "--title", "Regen", "--text", GERMAN]);
    let ask = ["tree", "generate", "Regen", "--max-tokens", "4", "--model-file", &file];
    let (_, before) = world.json(&[&ask[..], &["--dry-run"]].concat());
    assert_eq!(before["counted"], true, "{before}");
    let (code, made) = world.json(&ask);
    assert_eq!(code, Some(0), "{made}");
    let usage = &made["usage"];
    let read = usage["input_uncached"].as_u64().unwrap() + usage["cache_read"].as_u64().unwrap();
    assert_eq!(before["input_tokens"], read, "{made}");
    let (_, sent) = world.json(&["context", "show", made["nodes"][0]["id"].as_str().unwrap()]);
    assert_eq!((&sent["estimated"], &sent["used"]), (&Value::from(false), &Value::from(read)), "{sent}");
}

#[test]
fn a_server_on_this_machine_counts_and_one_that_cannot_is_estimated() {
    let counted = |counts: bool, kind: &str| {
        let world = World::new();
        let near = Server::start(move |path, body| {
            if path.ends_with("/tokenize") {
                let words = body["content"].as_str()?.split_whitespace().count().max(1);
                return counts.then(|| json!({"tokens": vec![7; words]}).to_string());
            }
            path.ends_with("/chat/completions").then(|| server::chat("", "Ja.", 0))
        });
        world.write(
            "config.toml",
            &format!("[providers.box]\nbase_url = \"{}\"\n{kind}window = 32000\n", near.base()),
        );
        let (code, said) = world.json(&["--model", "box/m", "chat", "-m", GERMAN]);
        assert_eq!(code, Some(0), "{said}");
        let (_, sent) = world.json(&["context", "show", said["node"].as_str().unwrap()]);
        (sent, near.asked().len())
    };
    let llama = "kind = \"llamacpp\"\n";
    let ((with, asked), (without, asked_too)) = (counted(true, llama), counted(false, llama));
    let (of_no_kind, _) = counted(true, "");
    assert_eq!(of_no_kind["used"], with["used"], "one of which nothing but the address is known counts too");
    assert_eq!((asked, asked_too), (1, 1), "counting is no request");
    assert_eq!(with["estimated"], true, "what the template adds is not counted");
    let tokens = |sent: &Value| sent["used"].as_u64().unwrap();
    assert!(tokens(&with) < tokens(&without), "words are fewer than tokens: {with}, {without}");
}

#[test]
fn a_document_has_the_tokens_that_its_server_counts_before_it_is_sent_and_after() {
    let world = World::new();
    let near = Server::start(move |path, body| {
        if path.ends_with("/tokenize") {
            let words = body["content"].as_str()?.split_whitespace().count();
            return Some(json!({"tokens": vec![7; words]}).to_string());
        }
        path.ends_with("/completions").then(|| server::chat("", "Ja.", 0))
    });
    let box_of = |base: &str| {
        format!(
            "[model]\ndefault = \"box/m\"\n[providers.box]\nbase_url = \"{base}\"\nkind = \"llamacpp\"\nwindow = 32000\n"
        )
    };
    world.write("config.toml", &box_of(&near.base()));
    world.ok(&["tree", "new", "--title", "Regen", "--text", GERMAN]);
    let words = GERMAN.split_whitespace().count();
    let (_, before) = world.json(&["tree", "generate", "Regen", "--dry-run"]);
    assert_eq!((&before["input_tokens"], &before["counted"]), (&json!(words), &json!(true)), "{before}");
    let (_, next) = world.json(&["context", "show", "--next", "Regen"]);
    assert_eq!((&next["used"], &next["counted_by"]), (&json!(words), &json!("server")), "{next}");
    assert_eq!(near.asked().len(), 0, "counting is no request");
    let (code, made) = world.json(&["tree", "generate", "Regen"]);
    assert_eq!(code, Some(0), "{made}");
    let (_, sent) = world.json(&["context", "show", made["nodes"][0]["id"].as_str().unwrap()]);
    assert_eq!(sent["used"], json!(words), "{sent}");
    world.write("config.toml", &box_of("http://127.0.0.1:1/v1"));
    let (code, unreached) = world.json(&["tree", "generate", "Regen", "--dry-run"]);
    assert_eq!((code, &unreached["counted_by"]), (Some(0), &json!("estimate")), "{unreached}");
}

#[test]
fn the_first_request_to_a_server_that_counts_leaves_out_nothing_that_fits() {
    for is_document in [true, false] {
        let world = World::new();
        let near = Server::start(move |path, body| {
            if path.ends_with("/tokenize") {
                let words = body["content"].as_str()?.split_whitespace().count();
                return Some(json!({"tokens": vec![7; words]}).to_string());
            }
            path.ends_with("completions").then(|| server::chat("", "Ja.", 0))
        });
        let provider = format!(
            "[model]\ndefault = \"box/m\"\n[providers.box]\nbase_url = \"{}\"\nkind = \"llamacpp\"\nwindow = 4096\n",
            near.base()
        );
        world.write("config.toml", &provider);
        // By a prior it is longer than the window, by its server half as long.
        let text = format!("{}{GERMAN}", format!("{GERMAN}\n\n").repeat(120));
        let sent = if is_document {
            world.ok(&["tree", "new", "--title", "Regen", "--text", &text]);
            let (code, made) = world.json(&["tree", "generate", "Regen", "--max-tokens", "50"]);
            assert_eq!((code, &made["left_out"]), (Some(0), &json!(0)), "{made}");
            near.bodies()[0]["prompt"].as_str().unwrap().to_owned()
        } else {
            let (code, said) = world.json(&["chat", "-m", &text, "--max-tokens", "50"]);
            assert_eq!(code, Some(0), "{said}");
            near.bodies()[0]["messages"].to_string()
        };
        assert_eq!(sent.matches("Weberschiffchen").count(), 121, "{is_document}");
    }
}

#[test]
fn a_server_that_counts_nothing_is_sent_the_request_alone() {
    let world = World::new();
    let paths = Arc::<Mutex<Vec<String>>>::default();
    let all = Arc::clone(&paths);
    let near = Server::start(move |path, _| {
        all.lock().unwrap().push(path.to_owned());
        Some(server::chat("", "Ja.", 0))
    });
    world.write("config.toml", &format!("[providers.box]\nbase_url = \"{}\"\n", near.base()));
    let (code, said) = world.json(&["--model", "box/m", "chat", "-m", GERMAN]);
    assert_eq!(code, Some(0), "{said}");
    let paths = paths.lock().unwrap();
    assert!(
        paths.iter().any(|path| path == "/tokenize") && !paths.iter().any(|path| path == "/apply-template")
    );
    assert_eq!(near.bodies().iter().filter(|body| !body["messages"].is_null()).count(), 1);
}

#[test]
fn a_server_that_counts_one_token_whatever_it_is_asked_gets_no_more_than_the_budget_allows() {
    for lies in [true, false] {
        let world = World::new();
        let near = Server::start(move |path, _| match path {
            "/tokenize" => lies.then(|| json!({"count": 1}).to_string()),
            _ => path.ends_with("completions").then(|| server::chat("", "Ja.", 0)),
        });
        let provider = format!("[budget]\nturn = 5.0\n[providers.box]\nbase_url = \"{}\"\n", near.base());
        let prices = "[models.\"box/m\"]\nwindow = 131072\noutput_limit = 100\nprice_input = 1000.0\nprice_output = 1000.0\n";
        world.write("config.toml", &format!("{provider}{prices}"));
        let file = world.path("rain.txt");
        std::fs::write(&file, "The rain is in the hand of the weaver. ".repeat(2_000)).unwrap();
        let run = world.run(&["--model", "box/m", "chat", "-m", "sum up", "--file", file.to_str().unwrap()]);
        assert!(run.code.is_some_and(|code| code != 0) && run.err.contains("budget.turn"), "{lies}: {run:?}");
        assert!(near.bodies().iter().all(|body| body["messages"].is_null()), "{lies}");
    }
}

#[test]
fn the_next_request_is_shown_where_nothing_that_was_said_fits() {
    let world = World::new();
    world.write("config.toml", "[providers.box]\nbase_url = \"http://127.0.0.1:1/v1\"\nwindow = 4096\n");
    for _ in 0..2 {
        world.ok(&["--model", "script:echo", "chat", "-m", &GERMAN.repeat(50)]);
    }
    let (code, next) = world.json(&["--model", "box/m", "context", "show", "--next", "-m", "And now?"]);
    assert_eq!(code, Some(0), "{next}");
    assert!(next["left_out"].as_u64().unwrap() > 0, "{next}");
}

#[test]
fn a_conversation_has_the_tokens_of_the_template_that_its_server_writes() {
    let world = World::new();
    let near = Server::start(move |path, body| {
        if path.ends_with("/tokenize") {
            let words = body["content"].as_str()?.split_whitespace().count();
            return Some(json!({"tokens": vec![7; words]}).to_string());
        }
        if path.ends_with("/apply-template") {
            let messages = body["messages"].as_array()?.iter();
            let told = messages.map(|said| format!("of the template {} ", said["content"].as_str().unwrap()));
            return Some(json!({"prompt": told.collect::<String>()}).to_string());
        }
        path.ends_with("/chat/completions").then(|| server::chat("", "Ja.", 0))
    });
    let provider =
        format!("[providers.box]\nbase_url = \"{}\"\nkind = \"llamacpp\"\nwindow = 32000\n", near.base());
    world.write("config.toml", &provider);
    let (code, said) = world.json(&["--model", "box/m", "chat", "-m", GERMAN]);
    assert_eq!(code, Some(0), "{said}");
    let bodies = near.bodies();
    let messages = bodies[0]["messages"].as_array().unwrap().iter();
    let words = messages.map(|said| 3 + said["content"].as_str().unwrap().split_whitespace().count());
    let told: usize = words.sum();
    let (_, sent) = world.json(&["context", "show", said["node"].as_str().unwrap()]);
    assert_eq!((&sent["used"], &sent["estimated"]), (&json!(told), &json!(false)), "{sent}");
    assert_eq!(near.asked().len(), 1, "counting is no request");
}

#[test]
fn a_server_that_was_loading_is_asked_to_count_again() {
    let world = World::new();
    let counted = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&counted);
    let near = Server::start(move |path, _| {
        if !path.ends_with("/tokenize") {
            return path.ends_with("/chat/completions").then(|| server::chat("", "Ja.", 0));
        }
        let is_first = asked.fetch_add(1, Ordering::SeqCst) == 0;
        Some(if is_first { server::BUSY.to_owned() } else { json!({"tokens": [7]}).to_string() })
    });
    let provider = format!(
        "[providers.box]\nbase_url = \"{}\"\nkind = \"llamacpp\"\nwindow = 32000\n[model]\ndefault = \"box/m\"\n",
        near.base()
    );
    world.write("config.toml", &provider);
    let mut terminal = Terminal::start(world.command(&["chat"]));
    terminal.at_prompt();
    terminal.says("Guten Tag.\r");
    terminal.shows("Ja.");
    terminal.at_prompt();
    let once = counted.load(Ordering::SeqCst);
    terminal.says("Und nun?\r");
    terminal.until("the second", |terminal| terminal.contents().matches("Ja.").count() == 2);
    terminal.at_prompt();
    assert!(once >= 1 && counted.load(Ordering::SeqCst) > once);
}

#[test]
fn a_model_of_openai_is_counted_with_its_vocabulary_and_an_unknown_one_is_estimated() {
    let world = World::new();
    let near = "[providers.openai]\nbase_url = \"http://127.0.0.1:1\"\nplace = \"remote\"\n";
    world.write("config.toml", near);
    world.write("keys.toml", "[providers.openai]\nkey = \"canary-0123456789\"\n");
    let mut text = String::new();
    for line in 0..400 {
        text += &format!("{line}. {GERMAN}\n");
    }
    world.ok(&["tree", "new", "--title", "Regen", "--text", &text]);
    let before = |model: &str| {
        let (code, said) = world.json(&["--model", model, "tree", "generate", "Regen", "--dry-run"]);
        assert_eq!(code, Some(0), "{said}");
        said
    };
    let (known, unknown) = (before("openai/gpt-4o"), before("openai/a-model-of-tomorrow"));
    assert_eq!((&known["counted_by"], &known["counted"]), (&json!("library"), &json!(true)), "{known}");
    assert_eq!(
        (&unknown["counted_by"], &unknown["counted"]),
        (&json!("estimate"), &json!(false)),
        "{unknown}"
    );
    let tokens = |said: &Value| said["input_tokens"].as_u64().unwrap();
    // The text has 8,400; what to do with it is said in a sentence or two.
    assert!((8_400..8_700).contains(&tokens(&known)), "{known}");
    assert!(tokens(&unknown) > tokens(&known), "{unknown}");
}
