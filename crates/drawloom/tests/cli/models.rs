//! Models by name and by file, and what is done without being asked: nothing (spec: agent §2, cli *First run*).

use crate::tiny::TINY;
use crate::world::{World, text};

fn tiny(world: &World) -> String {
    let path = world.path("tiny.gguf");
    std::fs::write(&path, TINY.file().bytes()).unwrap();
    text(&path)
}

#[test]
fn a_file_of_weights_answers_and_says_once_what_it_is() {
    let world = World::new();
    let file = tiny(&world);
    let chat = ["chat", "-m", "hi", "--preset", "short", "--json", "--model-file", &file];
    world.write("config.toml", "[presets.short]\nmax_tokens = 8\n");
    let run = world.run(&chat);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("a model inside this program; it cannot act"), "{}", run.err);
    assert!(!world.run(&chat).err.contains("cannot act"), "the session has begun");
    let (_, found) = world.json(&["model", "test", "--model-file", &file]);
    assert_eq!((&found["name"], &found["place"]), (&"embedded/tiny".into(), &"local".into()));
    assert!(found["usage_reported"].as_bool().unwrap() && found["output"].as_u64().unwrap() > 0, "{found}");
}

#[test]
fn a_file_that_is_no_weights_is_named() {
    let world = World::new();
    std::fs::write(world.path("here/x.gguf"), "no").unwrap();
    let (code, error) = world.json(&["chat", "-m", "hi", "--model-file", "x.gguf"]);
    assert_eq!((code, &error["error"]["code"]), (Some(2), &"bad_model_file".into()));
    let (code, error) = world.json(&["chat", "-m", "hi", "--model-file", "nowhere.gguf"]);
    assert_eq!((code, &error["error"]["code"]), (Some(3), &"not_found".into()));
}

#[test]
fn s24_unattended_nothing_is_downloaded_and_the_error_names_the_ways() {
    let world = World::new();
    let run = world.run(&["chat", "-m", "hi"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    for way in ["--model PROVIDER/NAME", "model use", "--model smollm2"] {
        assert!(run.err.contains(way), "{way}: {}", run.err);
    }
    world.ok(&["model", "use", "smollm2"]);
    let (code, error) = world.json(&["chat", "-m", "hi"]);
    assert_eq!((code, &error["error"]["code"]), (Some(4), &"download_not_asked".into()));
    let hint = error["error"]["hint"].as_str().unwrap();
    for way in ["--model smollm2", "model pull smollm2", "model.auto_pull = true"] {
        assert!(hint.contains(way), "{way}: {hint}");
    }
    assert!(!world.home().join("cache/weights").exists());
}

#[test]
fn models_are_listed_chosen_and_tried() {
    let world = World::new();
    world.write("config.toml", "[providers.box]\nbase_url = \"http://127.0.0.1:9\"\nwindow = 4096\n");
    let shown = |name: &str| {
        let (_, found) = world.json(&["model", "list"]);
        found["models"].as_array().unwrap().iter().find(|model| model["name"] == name).cloned()
    };
    let demo = shown("smollm2").unwrap();
    assert_eq!((&demo["embedded"], &demo["installed"]), (&true.into(), &false.into()));
    assert!(demo["about"].as_str().unwrap().contains("continues prose and cannot act"));
    assert_eq!(shown("box/…").unwrap()["window"], 4096);
    world.ok(&["model", "use", "box/small"]);
    let chosen = shown("box/small").unwrap();
    assert_eq!((&chosen["default"], &chosen["place"]), (&true.into(), &"local".into()));
    assert!(world.read("config.toml").contains("default = \"box/small\""));
    assert_eq!(world.run(&["model", "use", "nobody/small"]).code, Some(3));
    assert_eq!(world.run(&["model", "pull", "gpt-9"]).code, Some(3));
    let (code, error) = world.json(&["model", "test"]);
    assert_eq!((code, error["error"]["code"].as_str().is_some()), (Some(5), true), "{error}");
    let (_, tried) = world.json(&["model", "test", "script:echo"]);
    assert!(tried["text"].as_str().unwrap().contains("sky"), "{tried}");
    assert!(tried["total_ms"].is_u64());
}

#[test]
fn unattended_init_decides_nothing_and_says_what_it_found() {
    let world = World::new();
    let output = world.command(&["init", "--json"]).env("OPENAI_API_KEY", "sk-canary-0123456789").output();
    let output = output.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("canary"), "{text}");
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["model"], serde_json::Value::Null);
    let step = |name: &str| {
        let steps = found["steps"].as_array().unwrap();
        steps.iter().find(|step| step["name"] == name).cloned().unwrap()
    };
    assert_eq!(step("key")["state"], "open");
    assert!(step("key")["what"].as_str().unwrap().contains("OPENAI_API_KEY"));
    assert!(step("embedded")["next"].as_str().unwrap().contains("model pull smollm2"));
    assert_eq!(step("workspace")["state"], "done");
    assert!(world.home().exists() && !world.home().join("config.toml").exists());
    assert!(!world.home().join("cache/weights").exists());
}
