//! Known secrets in what a model says, and in names (spec: security §11).

use std::path::Path;

use axum::Router;
use axum::routing::post;
use serde_json::json;

use crate::world::{Run, World};

/// The value of a key in the environment, which is known although it is not used.
pub(crate) const SECRET: &str = "sk-canary-0123456789";
const MASKED: &str = "⟦secret:OPENAI_API_KEY⟧";

fn run(world: &World, arguments: &[&str]) -> Run {
    world.command(arguments).env("OPENAI_API_KEY", SECRET).output().unwrap().into()
}

fn script(world: &World, lines: &[serde_json::Value]) -> String {
    let file = world.path("script.jsonl");
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    format!("script:{}", file.display())
}

/// Everything the home says of a tree: its text, its responses, its export.
fn told(world: &World, tree: &str) -> String {
    let export = world.ok(&["tree", "export", tree, "--with-context", "-o", "-"]);
    world.ok(&["tree", "show", tree, "--all"]) + &world.ok(&["tree", "text", tree]) + &export
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Whether a text stands in any file below a folder.
pub(crate) fn is_below(folder: &Path, text: &str) -> bool {
    folder.read_dir().unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            is_below(&path, text)
        } else {
            path.is_file() && holds(&std::fs::read(path).unwrap(), text)
        }
    })
}

#[test]
fn e9_a_secret_split_over_deltas_is_neither_shown_nor_stored_nor_sent_on() {
    let world = World::new();
    let deltas: Vec<String> = SECRET.chars().map(String::from).collect();
    let deltas = [&["It is ".to_owned()][..], &deltas, &[", keep it.".to_owned()]].concat();
    let answer = json!({"deltas": deltas});
    let model = script(&world, &[answer, json!({"text": "Yes.", "expect": MASKED})]);
    let first = run(&world, &["chat", "-m", "which?", "--model", &model]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(first.out.contains(&format!("It is {MASKED}, keep it.")), "{first:?}");
    let show = run(&world, &["sessions", "show", "main", "--json"]);
    let session: serde_json::Value = serde_json::from_str(&show.out).unwrap();
    let tree = session["tree"].as_str().unwrap();
    let told = told(&world, tree);
    assert!(told.contains(MASKED) && !told.contains(SECRET), "{told}");
    assert!(!is_below(&world.home(), SECRET));
    // The second line of the script expects the mark in what it is sent.
    let lines = std::fs::read_to_string(world.path("script.jsonl")).unwrap();
    std::fs::write(world.path("script.jsonl"), lines.lines().nth(1).unwrap()).unwrap();
    let second = run(&world, &["chat", "-m", "sure?", "--model", &model]);
    assert_eq!(second.code, Some(0), "{second:?}");
    assert!(
        world.ok(&["tree", "verify", tree, "--json"]).contains("\"incomplete\""),
        "what was masked is said"
    );
}

#[test]
fn e9_a_split_secret_is_masked_on_the_screen_as_it_comes() {
    let world = World::new();
    let (one, two) = SECRET.split_at(8);
    let model = script(&world, &[json!({"deltas": ["It is ", one, two, "."]})]);
    let mut command = world.command(&["--model", &model, "chat", "--color", "never"]);
    command.env("OPENAI_API_KEY", SECRET);
    let mut terminal = crate::terminal::Terminal::start(command);
    terminal.says("which?\r");
    terminal.shows(&format!("It is {MASKED}."));
    assert!(!terminal.contents().contains(one), "{}", terminal.contents());
}

/// A server that answers every prompt with these bytes.
fn answering(body: Vec<u8>) -> (u16, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let answer = move || async move { ([("content-type", "text/event-stream")], body) };
    let router = Router::new().route("/v1/completions", post(answer));
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    runtime.spawn(async move { axum::serve(listener, router).await });
    (port, runtime)
}

#[test]
fn e9_neither_escapes_nor_an_invalid_byte_hide_a_secret() {
    let escaped: String = SECRET.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    let beside = [&b"\xff"[..], SECRET.as_bytes()].concat();
    for said in [escaped.into_bytes(), beside] {
        let world = World::new();
        world.ok(&["tree", "new", "--title", "x", "--text", "It is"]);
        let frame = |text: &[u8]| {
            [
                &b"data: {\"choices\":[{\"index\":0,\"text\":\" "[..],
                text,
                b"\",\"finish_reason\":\"stop\"}]}\n\n",
            ]
            .concat()
        };
        let (port, _runtime) = answering([frame(&said), b"data: [DONE]\n\n".to_vec()].concat());
        let model = format!("http://127.0.0.1:{port}/small");
        let made = run(&world, &["tree", "generate", "x", "--model", &model]);
        assert_eq!(made.code, Some(0), "{made:?}");
        assert!(made.out.contains(MASKED) && !made.out.contains(SECRET), "{made:?}");
        let told = told(&world, "x");
        assert!(told.contains(MASKED) && !told.contains(SECRET), "{told}");
        assert!(!is_below(&world.home(), SECRET));
    }
}

#[test]
fn e9_names_of_sessions_are_masked() {
    let world = World::new();
    let name = format!("my-{SECRET}");
    let begun = run(&world, &["chat", "-m", "hello", "--model", "script:echo", "--session", &name]);
    assert_eq!(begun.code, Some(0), "{begun:?}");
    let list = world.ok(&["sessions", "list"]);
    assert!(list.contains("my-secret-OPENAI_API_KEY") && !list.contains(SECRET), "{list}");
    // The name that was typed still means this session.
    let again = run(&world, &["sessions", "rename", &name, &format!("{SECRET}.old")]);
    assert_eq!(again.code, Some(0), "{again:?}");
    let list = world.ok(&["sessions", "list"]);
    assert!(list.contains("secret-OPENAI_API_KEY.old"), "{list}");
    assert!(!is_below(&world.home(), SECRET));
}

#[test]
fn a_secret_in_the_name_of_a_file_is_neither_sent_nor_stored() {
    let world = World::new();
    let file = world.path(&format!("notes-{SECRET}.txt"));
    std::fs::write(&file, "It rained.").unwrap();
    let words = ["chat", "-m", "what is it?", "--model", "script:echo", "--file", file.to_str().unwrap()];
    let said = run(&world, &words);
    assert_eq!(said.code, Some(0), "{said:?}");
    let sent = run(&world, &["sessions", "show", "main", "--json"]);
    let tree: serde_json::Value = serde_json::from_str(&sent.out).unwrap();
    let told = told(&world, tree["tree"].as_str().unwrap());
    assert!(told.contains("File notes-secret-OPENAI_API_KEY.txt:"), "{told}");
    assert!(!told.contains(SECRET) && !is_below(&world.home(), SECRET));
}

#[test]
fn s11_what_is_kept_of_instructions_to_show_their_changes_holds_no_known_secret() {
    let world = World::new();
    let folder = world.path("here/project");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("AGENTS.md"), format!("Use {SECRET} for all, plainly-kept.\n")).unwrap();
    assert_eq!(run(&world, &["workspace", "trust", folder.to_str().unwrap()]).code, Some(0));
    assert!(is_below(&world.home(), "plainly-kept"), "control");
    assert!(!is_below(&world.home(), SECRET));
}

#[test]
fn an_empty_variable_is_no_key() {
    let world = World::new();
    let test = |key: Option<&str>| -> Run {
        let mut command = world.command(&["model", "test", "openai/gpt-5.1"]);
        command.envs(key.map(|key| ("OPENAI_API_KEY", key))).output().unwrap().into()
    };
    let empty = "OPENAI_API_KEY is empty";
    for (key, why) in [(None, "OPENAI_API_KEY is not set"), (Some(""), empty), (Some(" \t "), empty)] {
        let run = test(key);
        assert_eq!(run.code, Some(4), "{run:?}");
        assert!(run.err.contains(&format!("there is no key for openai: {why}")), "{run:?}");
        assert!(run.err.contains("`drawloom config set providers.openai.key`"), "{run:?}");
    }
    assert!(test(Some("canary")).err.contains("used only when it is named"), "the control");
    let box_of = |key: &str| -> Run {
        let near = "[providers.box]\nbase_url = \"http://127.0.0.1:1\"\nkey_env = \"MYK\"\n";
        world.write("config.toml", near);
        world.command(&["ask", "--model", "box/m", "hi"]).env("MYK", key).output().unwrap().into()
    };
    let blank = box_of("   ");
    assert!(blank.code == Some(4) && blank.err.contains("MYK is empty"), "{blank:?}");
    assert_eq!(box_of("canary").code, Some(5), "the control");
    let found: Run = world.command(&["init"]).env("ANTHROPIC_API_KEY", "  ").output().unwrap().into();
    assert!(!found.out.contains("key in ANTHROPIC_API_KEY. "), "{found:?}");
}
