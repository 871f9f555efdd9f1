//! Promises that were once broken from outside, each as it was.

use serde_json::Value;

use crate::terminal::Terminal;
use crate::world::World;

fn operations(world: &World) -> usize {
    let (_, log) = world.json(&["tree", "log", "Rain"]);
    log["operations"].as_array().map_or_else(|| panic!("{log}"), Vec::len)
}

#[test]
fn a_branch_at_the_very_end_of_the_tip_is_no_step_to_undo() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained."]);
    let (_, shown) = world.json(&["tree", "show", "Rain"]);
    let tip = shown["nodes"].as_array().and_then(|nodes| nodes.last()).map(|node| node["short_id"].clone());
    let Some(Value::String(tip)) = tip else { panic!("{shown}") };
    let before = operations(&world);
    world.ok(&["tree", "branch", "Rain", &tip, "--at", "10"]);
    assert_eq!(operations(&world), before);
    assert_eq!(world.ok(&["tree", "text", "Rain"]), "It rained.");
    // At the very beginning there is no passage to name.
    let run = world.run(&["tree", "branch", "Rain", &tip, "--at", "0"]);
    assert!(run.err.contains("main goes on behind the beginning; 2 words went"), "{run:?}");
}

#[test]
fn a_text_of_4_mb_is_forgotten_without_a_word_of_others() {
    let world = World::new();
    let text = "A secret that goes on and on. ".repeat(140_000);
    let draft = world.path("draft.txt");
    std::fs::write(&draft, &text).unwrap();
    world.ok(&["tree", "new", "--title", "Rain", "--file", draft.to_str().unwrap()]);
    let run = world.run(&["forget", "--text", "A secret that goes on and on.", "--yes", "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!world.ok(&["tree", "text", "Rain"]).contains("secret"));
    let database = std::fs::read(world.home().join("loom.db")).unwrap();
    assert!(!database.windows(20).any(|window| window == b"A secret that goes o"));
}

#[test]
fn a_preview_of_forgetting_waits_for_nobody_and_writes_nothing() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained a secret."]);
    let database = world.home().join("loom.db");
    let writer = rusqlite::Connection::open(&database).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let run = world.run(&["forget", "--text", "secret", "--dry-run"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("nodes"), "{run:?}");
    writer.execute_batch("ROLLBACK").unwrap();
}

#[test]
fn a_damaged_record_of_another_tree_keeps_no_text_from_being_forgotten() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained a secret."]);
    world.ok(&["tree", "new", "--title", "Snow and a riddle", "--text", "It snowed."]);
    let store = rusqlite::Connection::open(world.home().join("loom.db")).unwrap();
    let cut = "UPDATE operations SET body = substr(body, 1, length(body) - 1)
        WHERE seq = 1 AND tree = (SELECT pk FROM trees WHERE title LIKE 'Snow%')";
    assert_eq!(store.execute(cut, ()).unwrap(), 1);
    let damaged =
        |place: &Value| place.as_str().is_some_and(|place| place.starts_with("operation 1 of the tree"));
    let (_, forgotten) = world.json(&["forget", "--text", "secret", "--yes", "--yes"]);
    assert_eq!(forgotten["unreachable"].as_array().unwrap().iter().filter(|place| damaged(place)).count(), 1);
    assert!(!world.ok(&["tree", "text", "Rain"]).contains("secret"));
    let run = world.run(&["forget", "--text", "riddle", "--yes", "--yes"]);
    assert_eq!(run.code, Some(6), "its bytes hold it: {run:?}");
    assert!(world.ok(&["tree", "list"]).contains("riddle"));
}

#[test]
fn a_short_text_goes_with_its_requests_its_title_and_its_record() {
    let world = World::new();
    world.ok(&["--model", "script:echo", "chat", "-m", "PIN 47119"]);
    let (_, session) = world.json(&["sessions", "show", "main"]);
    let (tree, title) = (session["tree"].as_str().unwrap(), session["title"].as_str().unwrap());
    assert_eq!(title, "PIN 47119");
    let (_, shown) = world.json(&["tree", "show", tree, "--all"]);
    let nodes = shown["nodes"].as_array().unwrap();
    // What the model answered says it too, and is a node of its own.
    for node in nodes.iter().filter(|node| node["text"] == "PIN 47119") {
        world.ok(&["forget", node["id"].as_str().unwrap(), "--yes", "--yes"]);
    }
    let told = world.ok(&["sessions", "list"]) + &world.ok(&["tree", "log", tree]);
    assert!(!told.contains("47119"), "{told}");
    let left = world.run(&["forget", "--text", "47119", "--dry-run"]);
    assert_eq!(left.code, Some(3), "nothing holds it: {left:?}");
    assert_ne!(world.json(&["tree", "verify", tree]).1["status"], "invalid");
    world.ok(&["store", "check"]);
}

#[test]
fn the_title_of_a_copy_goes_with_the_text_it_was_made_of() {
    let world = World::new();
    let said = "The spare key lies under the third stone from the left, as long as nobody takes it away";
    world.ok(&["--model", "script:echo", "chat", "-m", said]);
    world.ok(&["--model", "script:echo", "chat", "-m", "and another thing"]);
    let (_, session) = world.json(&["sessions", "show", "main"]);
    world.ok(&["tree", "export", session["tree"].as_str().unwrap(), "-o", "tale.jsonl"]);
    let (_, copied) = world.json(&["tree", "import", "tale.jsonl", "--copy"]);
    let copy = copied["tree"].as_str().unwrap();
    let (_, shown) = world.json(&["tree", "show", copy, "--all"]);
    assert_eq!(world.ok(&["tree", "list"]).matches("spare key").count(), 2, "the control");
    let nodes = shown["nodes"].as_array().unwrap();
    let said = nodes.iter().find(|node| node["text"].as_str().unwrap().starts_with("The spare key")).unwrap();
    world.ok(&["forget", said["id"].as_str().unwrap(), "--yes", "--yes"]);
    assert!(!world.ok(&["tree", "log", copy]).contains("spare key"));
    assert!(!world.ok(&["tree", "list"]).contains("spare key"));
}

#[test]
fn what_is_forgotten_goes_from_the_input_history_too() {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    let mut terminal = Terminal::start(world.command(&["chat", "--color", "never"]));
    terminal.says("the blue heron\r");
    terminal.says("something else\r");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    let history = || std::fs::read_to_string(world.home().join("cache/history")).unwrap();
    assert!(history().contains("the blue heron"));
    let (_, dry) = world.json(&["forget", "--text", "blue heron", "--dry-run"]);
    assert!(dry.to_string().contains("lines of the input history"), "{dry}");
    assert!(history().contains("the blue heron"));
    world.ok(&["forget", "--text", "blue heron", "--yes", "--yes"]);
    assert_eq!(history(), "something else\n");
    assert_eq!(world.run(&["forget", "--text", "blue heron", "--yes", "--yes"]).code, Some(3));
}
