//! Every list and status at a terminal of forty columns, over titles, names and texts that are wider.

use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use crate::server::{self, Server};
use crate::terminal::Terminal;
use crate::world::{World, text};

const COLUMNS: u16 = 40;
const MODEL: &str = "box/a-model-with-a-very-long-name-indeed-instruct-q8_0.gguf";
const TITLE: &str = "漢字検索についての長い物語であり題名は四十桁より広いものとする。漢字検索";
const SAID: &str = "漢字検索についての長い問いであり四十桁より広いものとする。Which heron is meant?";
const WORD: &str = "Rainanditsconsequencesforheronsinthereedsofthelakeanditsisland";

/// An answer in completions whose two tokens have alternatives.
pub(crate) fn probable() -> String {
    let piece = |text: &str, logprob: f64, other: &str| {
        let top = json!([{ text: logprob, other: logprob - 0.5 }]);
        let probable = json!({"tokens": [text], "token_logprobs": [logprob], "top_logprobs": top});
        json!({"id": "p", "choices": [{"index": 0, "text": text, "logprobs": probable, "finish_reason": null}]})
    };
    let end =
        json!({"id": "p", "choices": [{"index": 0, "text": "", "logprobs": null, "finish_reason": "stop"}]});
    let all = [piece(" the", -0.25, " a"), piece(" 漢字 in the reeds", -2.5, " herons of the island"), end];
    all.iter().map(|event| format!("data: {event}\n\n")).collect::<String>() + "data: [DONE]\n\n"
}

/// A server of both dialects.
pub(crate) fn near() -> Server {
    Server::start(|path, _| match path {
        "/v1/chat/completions" => Some(server::chat("", &format!("{SAID} It rains."), 1_000)),
        "/v1/completions" => Some(probable()),
        _ => None,
    })
}

/// A home in which everything is wide: its server, and an id of a node before and behind an edit.
fn wide() -> (World, Server, [String; 2]) {
    let world = World::new();
    let near = near();
    let (provider, name) = MODEL.split_once('/').unwrap();
    world.write(
        "config.toml",
        &format!(
            "[model]\ndefault = \"{MODEL}\"\n[providers.{provider}]\nbase_url = \"{}\"\nwindow = 32000\n\
             [models.\"{MODEL}\"]\nprice_input = 2.0\nprice_output = 4.0\n[presets.{name_long}]\ntemperature = 0.25\n",
            near.base(),
            name_long = name.replace(['.', '_'], "-"),
        ),
    );
    std::fs::write(world.path("here/AGENTS.md"), "Be brief.\n").unwrap();
    std::fs::create_dir_all(world.path("here/skills").join(WORD)).unwrap();
    std::fs::write(world.path("here/skills").join(WORD).join("SKILL.md"), "---\nname: a\n---\n").unwrap();
    world.ok(&["workspace", "trust"]);
    world.ok(&["tree", "new", "--title", WORD, "--text", "Short."]);
    world.ok(&["tree", "new", "--title", TITLE, "--text", TITLE]);
    let (_, shown) = world.json(&["tree", "show", TITLE]);
    let first = shown["nodes"][1]["id"].as_str().unwrap().to_owned();
    let (_, made) = world.json(&["tree", "generate", TITLE, "--temperature", "0.5", "--seed", "7"]);
    let node = made["nodes"][0]["id"].as_str().unwrap().to_owned();
    world.ok(&["tree", "edit", TITLE, &first, "--text", WORD]);
    let (_, again) = world.json(&["tree", "regenerate", TITLE, &node]);
    let again = again["nodes"][0]["id"].as_str().unwrap().to_owned();
    world.ok(&["tree", "bookmark", TITLE, &first, TITLE]);
    world.ok(&["tree", "tag", TITLE, &first, WORD]);
    world.ok(&["tree", "annotate", TITLE, &first, &format!("{TITLE} {WORD}")]);
    world.ok(&["tree", "head", TITLE, "--text", TITLE]);
    world.ok(&["tree", "note", TITLE, "--text", WORD]);
    world.ok(&["tree", "draft", TITLE, WORD]);
    world.ok(&["tree", "view", "new", TITLE, WORD]);
    world.ok(&["chat", "-m", SAID]);
    world.ok(&["chat", "--session", WORD, "-m", WORD]);
    world.ok(&["chat", "--session", WORD, "-m", "And then?"]);
    world.ok(&["chat", "--session", WORD, "-m", "/regenerate"]);
    world.ok(&["ask", SAID]);
    let long: String = (0..3_000).map(|number| format!("{number}. {TITLE}\n\n")).collect();
    std::fs::write(world.path("long.txt"), long).unwrap();
    world.ok(&["tree", "new", "--title", "Long", "--file", &text(&world.path("long.txt"))]);
    std::fs::create_dir(world.path("there")).unwrap();
    (world, near, [node, again])
}

/// Lines at the terminal that have more cells than it.
pub(crate) fn too_wide(world: &World, words: &[&str]) -> Vec<String> {
    let mut terminal = Terminal::of_width(world.command(words), COLUMNS);
    terminal.ended();
    while terminal.listen() {}
    let is_wide = |line: &String| line.width() > COLUMNS.into();
    // A name or path that is too wide for any place begins a line, and is the terminal's to break: it is copied whole.
    let is_alone =
        |line: &String| line == WORD || line == MODEL || line.starts_with('/') && !line.contains(' ');
    let seen = terminal.plain();
    if seen.trim().is_empty() || seen.contains("error:") {
        return vec![format!("it shows nothing: {seen}")];
    }
    seen.lines().map(str::to_owned).filter(|line| is_wide(line) && !is_alone(line)).collect()
}

#[test]
fn no_line_of_a_list_is_wider_than_the_terminal() {
    let (world, _near, [node, again]) = wide();
    let there = text(&world.path("there"));
    let mut failed = Vec::new();
    for words in [
        vec!["tree", "list"],
        vec!["tree", "show", TITLE],
        vec!["tree", "show", TITLE, "--all"],
        vec!["tree", "show", TITLE, "--around", &node],
        vec!["tree", "show", TITLE, "--depth", "1"],
        vec!["tree", "siblings", TITLE],
        vec!["tree", "versions", TITLE],
        vec!["tree", "bookmarks", TITLE],
        vec!["tree", "tokens", TITLE, &node],
        vec!["tree", "tag", TITLE],
        vec!["tree", "annotate", TITLE],
        vec!["tree", "log", TITLE],
        vec!["tree", "view", "list", TITLE],
        vec!["tree", "verify", TITLE],
        vec!["tree", "generate", TITLE, "--dry-run"],
        vec!["tree", "search", "漢字"],
        vec!["tree", "compare", TITLE, &node, &again],
        vec!["context", "show", &node],
        vec!["context", "show", &node, "--map"],
        vec!["context", "show", "--next", TITLE],
        vec!["context", "show", "--next", "Long"],
        vec!["context", "diff", &node, &again],
        vec!["sessions", "list"],
        vec!["sessions", "list", "--all"],
        vec!["sessions", "list", "--workspace", &there],
        vec!["sessions", "show", WORD],
        vec!["model", "list"],
        vec!["model", "test", MODEL],
        vec!["workspace", "list"],
        vec!["cost"],
        vec!["cost", "--by", "session"],
        vec!["cost", "--by", "purpose"],
        vec!["config", "show"],
        vec!["config", "show", "--defaults"],
        vec!["config", "path"],
        vec!["doctor", "--quick"],
        vec!["forget", &again, "--dry-run"],
        vec!["chat", "--session", WORD, "-m", "/status"],
        vec!["chat", "--session", WORD, "-m", "/context"],
        vec!["chat", "--session", WORD, "-m", "/context detail"],
        vec!["chat", "--session", WORD, "-m", "/context map"],
        vec!["chat", "--session", WORD, "-m", "/zone"],
        vec!["chat", "--session", WORD, "-m", "/model"],
        vec!["chat", "--session", WORD, "-m", "/sessions"],
        vec!["chat", "--session", WORD, "-m", "/siblings"],
        vec!["chat", "--session", WORD, "-m", "/verify"],
        vec!["chat", "--session", WORD, "-m", "/search 漢字"],
        vec!["chat", "-m", "/help"],
        vec!["chat", "-m", "/help looking"],
        vec!["chat", "-m", "/help session"],
        vec!["chat", "-m", "/help settings"],
        vec!["chat", "-m", "/help saying"],
        vec!["chat", "-m", "/help moving"],
        vec!["chat", "-m", "/help cost"],
    ] {
        let found = too_wide(&world, &[&words[..], &["--quiet"]].concat());
        failed.extend((!found.is_empty()).then(|| format!("{words:?}: {found:#?}")));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn no_sentence_of_what_was_done_is_wider_than_the_terminal() {
    let (world, _near, [node, _]) = wide();
    let shown = world.json(&["tree", "show", TITLE]).1;
    let last = shown["nodes"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap();
    let mut failed = Vec::new();
    for words in [
        vec!["tree", "new", "--title", "Of a heron that stands in the reeds", "--text", "It rained."],
        vec!["tree", "append", TITLE, "It rained on the lake and its island."],
        vec!["tree", "draft", TITLE, "It rained on the lake and its island."],
        vec!["tree", "edit", TITLE, &node, "--text", "It rained on the lake, and on the reeds."],
        vec!["tree", "undo", TITLE],
        vec!["tree", "redo", TITLE],
        vec!["tree", "go", TITLE, last],
        vec!["tree", "compact", TITLE, "--to", last],
        vec!["tree", "seal", TITLE],
        vec!["tree", "rename", TITLE, "Of a heron that stands in the reeds"],
        vec!["tree", "delete", "Long"],
        vec!["tree", "undelete", "Long"],
        vec!["sessions", "rename", "main", "other"],
        vec!["sessions", "archive", "other"],
        vec!["chat", "-m", "/plan"],
    ] {
        let found = too_wide(&world, &[&words[..], &["--quiet"]].concat());
        failed.extend((!found.is_empty()).then(|| format!("{words:?}: {found:#?}")));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_head_of_an_exchange_fits_and_its_text_is_the_terminals_to_break() {
    let (world, _near, _) = wide();
    for words in [&["log"][..], &["chat", "-m", "/history"]] {
        let found = too_wide(&world, &[words, &["--quiet"]].concat());
        let is_text = |line: &&String| line.contains(SAID) || line.contains(WORD);
        assert!(found.iter().all(|line| is_text(&line)), "{words:?}: {found:#?}");
        assert!(!found.is_empty(), "{words:?}");
    }
}
