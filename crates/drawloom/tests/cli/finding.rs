//! What is said earlier is found again, and what was meant is named.

use crate::terminal::Terminal;
use crate::world::World;

/// A home whose default model says again what it is sent.
fn home() -> World {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    world
}

/// What is refused, which must hold these words.
fn refused(world: &World, arguments: &[&str], words: &[&str]) {
    let run = world.run(arguments);
    assert!(run.code != Some(0), "{arguments:?}: {run:?}");
    words.iter().for_each(|word| assert!(run.err.contains(word), "{word}: {run:?}"));
}

fn questions(world: &World, arguments: &[&str]) -> Vec<String> {
    let (_, log) = world.json(arguments);
    let told = log["exchanges"].as_array().unwrap().iter();
    told.map(|exchange| exchange["question"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn exchanges_of_earlier_trees_of_a_session_are_found() {
    let world = home();
    for words in [&["one"][..], &["two", "--new"], &["three", "--session", "plans"], &["four", "--new"]] {
        world.ok(&[&["chat", "-m"], words].concat());
    }
    assert_eq!(questions(&world, &["log", "-n", "10"]), ["one", "two", "three", "four"]);
    assert_eq!(questions(&world, &["log", "-n", "2"]), ["three", "four"]);
    assert_eq!(questions(&world, &["log", "-n", "10", "--session", "main"]), ["one", "two", "four"]);
    assert_eq!(questions(&world, &["log", "-n", "1", "--session", "main"]), ["four"]);
    let shown = world.ok(&["sessions", "show", "main"]);
    assert!(["one", "two", "four"].iter().all(|title| shown.contains(title)), "{shown}");
    let seen = Terminal::start(world.command(&["sessions", "show", "main"])).written();
    assert!(seen.contains("drawloom tree show TREE"), "{seen}");
}

#[test]
fn a_session_that_begins_names_what_may_be_meant() {
    let world = home();
    world.ok(&["chat", "--session", "plans", "-m", "one"]);
    let near = world.run(&["chat", "--session", "plnas", "-m", "two"]);
    assert!(near.err.contains("a new session plnas begins; did you mean plans?"), "{near:?}");
    let (_, trees) = world.json(&["tree", "list"]);
    let short = trees["trees"][0]["short_id"].as_str().unwrap();
    let tree = world.run(&["chat", "--session", short, "-m", "three"]);
    assert!(tree.err.contains(&format!("`drawloom tree show {short}`")), "{tree:?}");
    let other = world.run(&["chat", "--session", "elsewhere", "-m", "four"]);
    assert!(!other.err.contains("a new session"), "{other:?}");
}

#[test]
fn a_session_with_another_short_name_begins_without_a_question() {
    let world = World::new();
    let begin = |name: &str| world.run(&["chat", "--session", name, "-m", "hi", "--model", "script:echo"]);
    for (name, is_near) in [("S1", false), ("S2", false), ("no", false), ("on", false), ("S1a", true)] {
        let run = begin(name);
        assert_eq!(run.err.contains("did you mean"), is_near, "{name}: {run:?}");
    }
}

#[test]
fn a_session_that_begins_may_be_named_with_its_main_line() {
    let world = home();
    world.ok(&["chat", "--session", "plans", "-m", "one"]);
    let begun = world.run(&["chat", "--session", "notes:main", "-m", "two"]);
    assert!(begun.code == Some(0) && begun.out.contains("two"), "{begun:?}");
    let near = world.run(&["chat", "--session", "plnas:main", "-m", "three"]);
    assert!(near.err.contains("a new session plnas begins; did you mean plans?"), "{near:?}");
}

#[test]
fn turns_that_are_left_behind_are_counted() {
    let world = home();
    let said = |text: &str| world.run(&["chat", "-m", text]);
    said("one");
    for line in ["/next", "/siblings"] {
        refused(&world, &["chat", "-m", line], &["nothing stands beside", "/regenerate"]);
    }
    for text in ["/retry", "two", "three"] {
        assert_eq!(said(text).code, Some(0), "{text}");
    }
    let listed = said("/siblings");
    assert!(listed.err.contains("answers to ") && listed.err.contains("“one”"), "{listed:?}");
    let back = said("/prev");
    assert!(back.out.contains("2 turns stay at the other answer; /next comes back to them"), "{back:?}");
    refused(&world, &["chat", "-m", "/next 3"], &["no number 3", "/siblings"]);
    refused(&world, &["chat", "-m", "/next 0"], &["a number from 1"]);
    let there = said("/next 2");
    assert!(there.out.contains("2 of 2") && !there.out.contains("stay"), "{there:?}");
    assert_eq!(questions(&world, &["log", "-n", "9"]), ["one", "two", "three"]);
}

#[test]
fn messages_stand_apart_in_the_text_of_a_conversation() {
    let world = home();
    world.ok(&["chat", "--session", "plans", "-m", "one"]);
    world.ok(&["chat", "--session", "plans", "-m", "two"]);
    let (_, json) = world.json(&["tree", "text", "one"]);
    let text = world.ok(&["tree", "text", "one"]);
    assert!(text.starts_with("one\n\n") && text.contains("\n\ntwo\n\n"), "{text}");
    assert_eq!(json["text"].as_str().unwrap(), text.replace("\n\n", ""), "a program gets the bytes");
}

#[test]
fn what_is_piped_is_the_text_where_there_is_none() {
    let world = home();
    let asked = world.fed(&["ask"], b"Is it so?");
    assert!(asked.code == Some(0) && asked.out.contains("Is it so?"), "{asked:?}");
    let named = world.run(&["ask", "-m", "And this?"]);
    assert!(named.code == Some(0) && named.out.contains("And this?"), "{named:?}");
    refused(&world, &["ask"], &["no question is given", "drawloom ask TEXT"]);
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    assert_eq!(world.fed(&["tree", "append", "Tale"], b" It poured.").code, Some(0));
    assert_eq!(world.ok(&["tree", "text", "Tale"]), "It rained. It poured.");
    refused(&world, &["tree", "append", "Tale"], &["no text is given"]);
}

#[test]
fn all_answers_are_given_to_a_program_and_cut_ones_marked() {
    let world = home();
    let lines = [r#"{"text": "One."}"#, r#"{"text": "Two", "finish": "length"}"#].join("\n");
    std::fs::write(world.path("answers.jsonl"), lines).unwrap();
    let model = format!("script:{}", world.path("answers.jsonl").display());
    world.ok(&["chat", "-m", "Go on?"]);
    let (_, done) = world.json(&["--model", &model, "chat", "-m", "/regenerate -n 2"]);
    let answers = done["answers"].as_array().unwrap();
    assert_eq!((answers.len(), &answers[1]["text"]), (2, &"Two".into()), "{done}");
    assert_eq!(done["text"], "One.");
    let whole = world.ok(&["log"]);
    world.ok(&["chat", "-m", "/next"]);
    let cut = world.ok(&["log"]);
    assert!(!whole.contains("(cut off)") && cut.contains("Two (cut off)"), "{whole}{cut}");
    assert_eq!(world.json(&["log"]).1["exchanges"][0]["cut"], true);
    assert!(world.ok(&["chat", "-m", "/history"]).contains("(cut off)"));
    std::fs::write(world.path("answers.jsonl"), r#"{"text": "Two", "finish": "length"}"#).unwrap();
    for words in [&["chat", "-m", "Go on?"][..], &["ask", "Go on?"]] {
        let run = world.run(&[&["--model", &model], words].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(0), "Two\n"), "{run:?}");
        assert!(run.err.ends_with("the answer was cut at its length limit\n"), "{run:?}");
    }
}

#[test]
fn what_is_nearly_right_is_named() {
    let world = home();
    world.ok(&["chat", "--session", "prose", "-m", "one"]);
    for (line, meant) in [
        ("/set temp=1", "did you mean temperature=NUMBER?"),
        ("/set temperatur=1", "did you mean temperature=NUMBER?"),
        ("/help seting", "did you mean /help settings?"),
        ("/export md", "did you mean markdown?"),
    ] {
        refused(&world, &["chat", "--session", "prose", "-m", line], &[meant]);
    }
    refused(&world, &["tree", "generte"], &["did you mean generate?"]);
    std::fs::write(world.path("here/x.gguf"), "x").unwrap();
    refused(&world, &["--model", "./x.gguf", "chat", "-m", "one"], &["--model-file ./x.gguf"]);
    std::fs::write(world.path("user/notes.txt"), "x").unwrap();
    let attached = world.run(&["chat", "--session", "prose", "-m", "/file ~/notes.txt"]);
    assert!(attached.err.contains("notes.txt will be sent"), "{attached:?}");
    world.ok(&["sessions", "archive", "prose"]);
    refused(&world, &["sessions", "restore", "prse"], &["did you mean prose?"]);
    world.ok(&["chat", "--session", "other", "-m", "two"]);
    let archived = world.ok(&["sessions", "list", "--archived"]);
    assert!(archived.contains("prose") && !archived.contains("other"), "{archived}");
}

#[test]
fn what_is_empty_says_so_at_a_terminal_alone() {
    let world = home();
    world.ok(&["tree", "new", "--title", "Tale"]);
    world.ok(&["tree", "delete", "Tale"]);
    for (arguments, said) in [
        (&["tree", "list"][..], "no trees"),
        (&["sessions", "list"], "no sessions"),
        (&["log"], "nothing was said"),
        (&["approvals", "list"], "no question waits"),
        (&["tree", "bookmarks", "Tale"], "none is set"),
    ] {
        let run = world.run(arguments);
        assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (Some(0), "", ""), "{arguments:?}");
        let seen = Terminal::start(world.command(arguments)).written();
        assert!(seen.contains(said), "{arguments:?}: {seen}");
    }
}

#[test]
fn a_conversation_without_exchanges_says_so() {
    let world = home();
    let history = ["chat", "--session", "fresh", "-m", "/history"];
    let run = world.run(&history);
    assert_eq!((run.code, run.out.as_str()), (Some(0), ""), "{run:?}");
    assert_eq!(run.err, "nothing was said here yet\n");
    assert_eq!(Terminal::start(world.command(&history)).written().matches("nothing was said").count(), 1);
    assert_eq!(world.json(&history).1, serde_json::json!({"exchanges": []}));
}

#[test]
fn a_file_names_the_tree_that_is_made_of_it() {
    let world = home();
    std::fs::write(world.path("here/draft.md"), "It begins.\n\n## The mill ##\n\nIt rained.").unwrap();
    std::fs::write(world.path("here/plain.txt"), "#no heading\n\nIt rained.").unwrap();
    for (file, title) in [("draft.md", "The mill"), ("plain.txt", "plain")] {
        let first = world.run(&["tree", "new", "--file", file]);
        assert!(first.err.contains(&format!("“{title}”")) && !first.err.contains("another"), "{first:?}");
        let second = world.run(&["tree", "new", "--file", file]);
        assert!(second.err.contains(&format!("another tree is called “{title}”")), "{second:?}");
        assert!(second.err.contains(&format!("{} means this one", second.out.trim())), "{second:?}");
    }
}

#[test]
fn the_last_of_siblings_below_the_path_has_its_branch() {
    let world = home();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let (_, shown) = world.json(&["tree", "show", "Tale"]);
    let first = shown["nodes"].as_array().unwrap().last().unwrap()["short_id"].as_str().unwrap().to_owned();
    let second = world.ok(&["tree", "append", "Tale", " one"]).trim().to_owned();
    world.ok(&["tree", "edit", "Tale", &second, "--text", " two", "--as", "branch"]);
    assert!(!world.ok(&["tree", "show", "Tale", "--all"]).contains("└─"), "the path goes on");
    world.ok(&["tree", "go", "Tale", &first]);
    let drawn = world.ok(&["tree", "show", "Tale", "--all"]);
    assert!(drawn.contains("├─H") && drawn.contains("└─H"), "{drawn}");
}

#[test]
fn undo_says_which_names_and_marks_stay() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "One."]);
    let node = world.ok(&["tree", "append", "Tale", " Two."]).trim().to_owned();
    let plain = world.run(&["tree", "undo", "Tale"]);
    assert!(!plain.err.contains("stays"), "{plain:?}");
    world.ok(&["tree", "redo", "Tale"]);
    world.ok(&["tree", "bookmark", "Tale", &node]);
    world.ok(&["tree", "rename", "Tale", "Story"]);
    let undone = world.run(&["tree", "undo", "Story"]);
    assert!(
        undone.err.contains("undo takes back no names and marks: the title stays, the bookmark stays"),
        "{undone:?}"
    );
    assert_eq!(world.ok(&["tree", "text", "Story"]).trim_end(), "One.");
}

#[test]
fn a_mark_that_was_not_there_is_not_said_to_be_taken_off() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "One."]);
    let node = world.ok(&["tree", "append", "Tale", " Two."]).trim().to_owned();
    world.ok(&["tree", "bookmark", "Tale", &node]);
    let said = |arguments: &[&str]| world.run(arguments).err;
    assert!(said(&["tree", "bookmark", "Tale", &node, "--remove"]).contains("took the bookmark off"));
    for again in [
        &["tree", "bookmark", "Tale", &node, "--remove"][..],
        &["tree", "tag", "Tale", &node, "x", "--remove"],
    ] {
        assert!(said(again).contains("nothing changed"), "{again:?}");
    }
}

#[test]
fn a_remark_that_is_found_names_its_passage() {
    let world = home();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained all night.\n\n"]);
    world.ok(&["tree", "append", "Tale", "The lamp went out."]);
    let (_, shown) = world.json(&["tree", "show", "Tale"]);
    let last = shown["nodes"].as_array().unwrap().last().unwrap();
    let short = last["short_id"].as_str().unwrap();
    world.ok(&["tree", "annotate", "Tale", short, "Which osprey?"]);
    let (_, found) = world.json(&["search", "osprey"]);
    let on = &found["hits"][0]["on"];
    assert_eq!((&on["node"], &on["short_id"]), (&last["id"], &last["short_id"]), "{found}");
    assert_eq!(on["text"], "The lamp went out.");
    let shown = world.ok(&["search", "osprey"]);
    assert!(shown.contains(&format!("on {short} “The lamp went out.”")), "{shown}");
    assert!(world.json(&["search", "lamp"]).1["hits"][0]["on"].is_null(), "the control");
}

#[test]
fn tags_and_titles_of_bookmarks_are_found() {
    let world = home();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained.\n\n"]);
    world.ok(&["tree", "append", "Tale", "The lamp went out."]);
    let (_, shown) = world.json(&["tree", "show", "Tale"]);
    let nodes = shown["nodes"].as_array().unwrap();
    let of = |text: &str| nodes.iter().find(|node| node["text"].as_str().unwrap().contains(text)).unwrap();
    let short = |text: &str| of(text)["short_id"].as_str().unwrap().to_owned();
    world.ok(&["tree", "tag", "Tale", &short("rained"), "wettag"]);
    world.ok(&["tree", "bookmark", "Tale", &short("lamp"), "the good end"]);
    world.ok(&["tree", "edit", "Tale", &short("rained"), "--text", "It poured."]);
    for query in ["wettag", "#wettag"] {
        let (_, found) = world.json(&["search", query]);
        let hits = found["hits"].as_array().unwrap();
        assert_eq!(hits.len(), 1, "{query}: {found}");
        assert_eq!((&hits[0]["snippet"], &hits[0]["old"]), (&"It poured.".into(), &false.into()), "{found}");
    }
    for arguments in [&["search", "\"good end\""][..], &["search", "good", "--tree", "Tale"]] {
        let shown = world.ok(arguments);
        assert!(shown.contains("★ the good end") && shown.contains("The lamp went out."), "{shown}");
    }
    assert_eq!(world.json(&["search", "lamp good"]).1["hits"], serde_json::json!([]), "each for itself");
    world.ok(&["tree", "tag", "Tale", &short("rained"), "wettag", "--remove"]);
    assert_eq!(world.json(&["search", "wettag"]).1["hits"], serde_json::json!([]), "what was taken off");
}

#[test]
fn a_draft_is_found_where_it_stands() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "A lamp."]);
    world.ok(&["tree", "append", "Tale", " A loom."]);
    let (_, shown) = world.json(&["tree", "show", "Tale"]);
    let id = |at: usize| shown["nodes"][at]["short_id"].as_str().unwrap().to_owned();
    world.ok(&["tree", "draft", "Tale", " A zebra at the end."]);
    world.ok(&["tree", "draft", "Tale", "A lamp of zebra skin.", "--at", &id(1)]);
    let (_, found) = world.json(&["search", "zebra"]);
    let hits = found["hits"].as_array().unwrap();
    let mut places: Vec<_> =
        hits.iter().map(|hit| (&hit["source"], hit["short_id"].as_str().unwrap())).collect();
    places.sort_by_key(|(_, at)| *at != id(1));
    let draft = serde_json::json!("draft");
    assert_eq!(places, [(&draft, id(1).as_str()), (&draft, id(2).as_str())]);
    let shown = world.ok(&["search", "zebra at", "--tree", "Tale"]);
    assert_eq!(shown, format!("{}  Tale · draft\n    A zebra at the end.\n", id(2)));
    world.ok(&["tree", "draft", "Tale", ""]);
    assert_eq!(world.json(&["search", "\"at the end\""]).1["hits"], serde_json::json!([]), "the control");
}
