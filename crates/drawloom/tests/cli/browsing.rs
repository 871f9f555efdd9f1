//! Siblings, versions and bookmarks, listed and gone to; the last exchanges; one question by itself.

use serde_json::Value;

use crate::terminal::Terminal;
use crate::world::World;

/// A document with three continuations of which the first is shown: its tree is called Tale.
fn tale() -> (World, Vec<String>) {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let mut ids = vec![world.ok(&["tree", "append", "Tale", " echo 1"]).trim().to_owned()];
    for text in [" echo 2", " echo 3"] {
        let made = world.ok(&["tree", "edit", "Tale", &ids[0], "--text", text, "--as", "branch"]);
        ids.push(made.trim().to_owned());
    }
    world.ok(&["tree", "switch", "Tale", &ids[0]]);
    (world, ids)
}

fn shown(world: &World) -> String {
    world.ok(&["tree", "text", "Tale", "--committed"])
}

#[test]
fn siblings_are_listed_with_numbers_and_stepped_through() {
    let (world, ids) = tale();
    let listed = world.ok(&["tree", "siblings", "Tale"]);
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 3, "{listed}");
    assert!(lines[0].starts_with(&format!("1 *  {}", ids[0])), "{listed}");
    assert!(lines[2].starts_with(&format!("3    {}", ids[2])) && lines[2].ends_with("echo 3"), "{listed}");

    let next = world.run(&["tree", "switch", "Tale", "--next"]);
    assert_eq!((next.code, next.out.trim()), (Some(0), ids[1].as_str()));
    assert!(next.err.contains(&format!("2 of 3: {} “echo 2”", ids[1])), "{}", next.err);
    assert_eq!(shown(&world), "It rained. echo 2");
    assert!(world.ok(&["tree", "siblings", "Tale"]).contains(&format!("2 *  {}", ids[1])));
    world.ok(&["tree", "switch", "Tale", "3"]);
    assert_eq!(shown(&world), "It rained. echo 3");
    world.ok(&["tree", "switch", "Tale", "--prev"]);
    world.ok(&["tree", "switch", "Tale", "--prev"]);
    assert_eq!(shown(&world), "It rained. echo 1");

    for (step, why) in [
        (&["--prev"][..], "this is the first of 3 siblings"),
        (&["4"], "there are 3 siblings, and no number 4"),
        (&["0"], "no number 0"),
    ] {
        let run = world.run(&[&["tree", "switch", "Tale"], step].concat());
        assert_eq!(run.code, Some(3));
        assert!(run.err.contains(why) && run.err.contains("`drawloom tree siblings TREE`"), "{}", run.err);
    }
    assert_eq!(shown(&world), "It rained. echo 1");
}

#[test]
fn the_last_passage_with_visible_siblings_is_meant_and_pruned_ones_are_passed_over() {
    let (world, ids) = tale();
    world.ok(&["tree", "append", "Tale", " It stopped."]);
    world.ok(&["tree", "prune", "Tale", &ids[1]]);
    world.ok(&["tree", "switch", "Tale", "--next"]);
    assert_eq!(shown(&world), "It rained. echo 3", "the second one is hidden");
    world.ok(&["tree", "switch", "Tale", "--prev"]);
    assert_eq!(shown(&world), "It rained. echo 1 It stopped.", "where it was left");
    let refused = world.run(&["tree", "switch", "Tale", "2"]);
    assert!(refused.code != Some(0) && refused.err.contains("is pruned"), "{}", refused.err);
    world.ok(&["tree", "prune", "Tale", &ids[2]]);
    let none = world.run(&["tree", "siblings", "Tale"]);
    assert_eq!(none.code, Some(3));
    assert!(none.err.contains("tree regenerate"), "{}", none.err);
    let (_, listed) = world.json(&["tree", "siblings", "Tale", &ids[1]]);
    assert_eq!((listed["nodes"].as_array().unwrap().len(), &listed["current"]), (3, &Value::from(1)));
}

#[test]
fn versions_and_bookmarks_are_listed() {
    let (world, ids) = tale();
    world.ok(&["tree", "edit", "Tale", &ids[0], "--text", " It snowed.", "--as", "version"]);
    let versions = world.ok(&["tree", "versions", "Tale"]);
    let lines: Vec<&str> = versions.lines().collect();
    assert_eq!(lines.len(), 2, "{versions}");
    assert!(lines[0].starts_with("1  ") && lines[0].ends_with("echo 1"), "{versions}");
    assert!(lines[1].starts_with("2 *") && lines[1].ends_with("It snowed."), "{versions}");
    world.ok(&["tree", "select", "Tale", &ids[0]]);
    assert!(world.ok(&["tree", "versions", "Tale"]).starts_with("1 *"));

    assert_eq!(world.ok(&["tree", "bookmarks", "Tale"]), "");
    world.ok(&["tree", "bookmark", "Tale", &ids[2], "the third"]);
    let marked = world.ok(&["tree", "bookmarks", "Tale"]);
    assert!(marked.starts_with(&ids[2]) && marked.contains("★ the third"), "{marked}");
    assert_eq!(world.ok(&["tree", "bookmarks", "Tale", &ids[0]]), "", "it stands beside this one");
}

#[test]
fn a_bookmark_needs_no_text() {
    let (world, ids) = tale();
    world.ok(&["tree", "bookmark", "Tale", &ids[1]]);
    let (_, listed) = world.json(&["tree", "bookmarks", "Tale"]);
    assert!(listed.to_string().contains(&ids[1]), "{listed}");
    world.ok(&["tree", "bookmark", "Tale", &ids[1], "--remove"]);
    assert_eq!(world.ok(&["tree", "bookmarks", "Tale"]), "");
}

/// Three answers of a script, of which the second has code.
fn script(world: &World) -> String {
    let lines =
        [r#"{"text": "One."}"#, r#"{"text": "See:\n```sh\nls\n```\nDone."}"#, r#"{"text": "Three."}"#];
    std::fs::write(world.path("answers.jsonl"), lines.join("\n")).unwrap();
    format!("script:{}", world.path("answers.jsonl").display())
}

#[test]
fn a_question_stands_for_itself_and_is_found_again() {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    world.ok(&["chat", "-m", "In the conversation."]);
    let (code, first) = world.json(&["ask", "What is a heddle?"]);
    assert_eq!((code, &first["text"]), (Some(0), &Value::from("What is a heddle?")));
    let (_, sent) = world.json(&["context", "show", first["node"].as_str().unwrap()]);
    assert!(!sent.to_string().contains("In the conversation."), "{sent}");
    assert!(world.ok(&["search", "heddle"]).contains("heddle"));

    let (_, second) = world.json(&["ask", "-c", "And a reed?"]);
    assert_eq!(second["session"], first["session"]);
    let (_, third) = world.json(&["ask", "And a shuttle?"]);
    assert_ne!(third["session"], first["session"]);

    let names = |words: &[&str]| -> Vec<String> {
        let (_, found) = world.json(words);
        let sessions = found["sessions"].as_array().unwrap().iter();
        sessions.map(|session| session["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&["sessions", "list"]), ["main"]);
    assert_eq!(names(&["sessions", "list", "--all"]).len(), 3);

    let asked = |words: &[&str]| -> Vec<String> {
        let (_, found) = world.json(words);
        let exchanges = found["exchanges"].as_array().unwrap().iter();
        exchanges.map(|exchange| exchange["question"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(asked(&["log"]), ["What is a heddle?", "And a reed?", "And a shuttle?"]);
    assert_eq!(asked(&["log", "-n", "1"]), ["And a shuttle?"]);
    assert_eq!(asked(&["log", "--session", "main"]), ["In the conversation."]);
    let told = world.ok(&["log", "-n", "1"]);
    assert!(told.contains("> And a shuttle?\n\nAnd a shuttle?\n"), "{told}");
}

#[test]
fn a_question_takes_a_pipe_and_gives_its_code_alone() {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    let (_, nothing) = world.json(&["ask", "-c", "More?"]);
    assert_eq!(nothing["error"]["code"], "not_found");
    let piped = world.fed(&["--json", "ask", "Review this."], b"let x = 1;");
    let answer: Value = serde_json::from_str(&piped.out).unwrap();
    let (_, sent) = world.json(&["context", "show", answer["node"].as_str().unwrap()]);
    assert!(sent["tainted_by"].is_string(), "the pipe went along, as text from outside: {sent}");
    assert!(world.ok(&["search", "let x"]).contains("let x = 1;"));
    let whole = world.fed(&["ask", "-"], b"Only this?\n");
    assert_eq!(whole.out.trim(), "Only this?");

    let code = world.run(&["ask", "-x", "Give:\n```\nls -l\n```\n"]);
    assert_eq!((code.code, code.out.as_str()), (Some(0), "ls -l\n"));
    world.write("cut.jsonl", "{\"text\": \"```\\nls\\n\", \"finish\": \"length\"}\n");
    let file = format!("script:{}", world.home().join("cut.jsonl").display());
    let cut = world.run(&["--model", &file, "ask", "-x", "Give all."]);
    assert_eq!((cut.code, cut.out.as_str()), (Some(0), "ls\n"));
    assert!(cut.err.contains("the answer was cut at its length limit"), "{cut:?}");
    let none = world.run(&["ask", "-x", "Give nothing."]);
    assert_eq!((none.code, none.out.as_str()), (Some(1), ""));
    assert!(none.err.contains("no code block") && none.err.contains("Give nothing."), "{}", none.err);
}

#[test]
fn at_a_terminal_only_the_code_of_an_answer_is_shown() {
    let world = World::new();
    let ask = |arguments: &[&str]| {
        let all = [&["--model", "script:echo", "ask"], arguments].concat();
        Terminal::start(world.command(&all)).seen().1
    };
    let code = ask(&["-x", "Give it:\n```\nls -l\n```\n"]);
    assert!(code.contains("ls -l") && !code.contains("Give it"), "{code}");
    let none = ask(&["-x", "Nothing to run."]);
    assert_eq!(none.matches("Nothing to run.").count(), 1, "{none}");
    let whole = ask(&["Give it:\n```\nls -l\n```\n"]);
    assert!(whole.contains("Give it"), "the control: {whole}");
}

#[test]
fn a_conversation_is_gone_through_at_the_terminal() {
    let world = World::new();
    let model = script(&world);
    let mut terminal = Terminal::start(world.command(&["--model", &model, "chat"]));
    terminal.says("/history\r");
    terminal.says("Go on?\r");
    terminal.shows("One.");
    terminal.says("/retry\r");
    terminal.shows("Done.");
    terminal.says("/siblings\r");
    terminal.shows("2 *");
    terminal.says("/prev\r");
    terminal.shows("1 of 2");
    terminal.says("/prev\r");
    terminal.shows("this is the first of 2 siblings");
    terminal.says("/copy code\r");
    terminal.shows("no code block");
    terminal.says("/next\r");
    terminal.shows("2 of 2");
    assert!(terminal.obeyed().0.is_empty());
    terminal.says("/copy code\r");
    terminal.shows("3 characters went to the clipboard");
    assert_eq!(terminal.obeyed().0, ["copy"]);
    terminal.says("And then?\r");
    terminal.shows("Three.");
    terminal.says("/history 1\r");
    terminal.shows("> And then?");
    terminal.types("/exit\r");
    assert_eq!(terminal.ended(), Some(0));

    let run = world.run(&["--model", &model, "chat", "-m", "/copy"]);
    assert_eq!(run.out, "Three.", "without a terminal the text itself");
}

#[test]
fn a_session_comes_back_from_the_archive() {
    let world = World::new();
    world.ok(&["--model", "script:echo", "chat", "-m", "Keep."]);
    world.ok(&["sessions", "archive", "main"]);
    assert!(!world.ok(&["sessions", "list"]).contains("main"));
    world.ok(&["sessions", "restore", "main"]);
    assert!(world.ok(&["sessions", "list"]).contains("main"));
}

#[test]
fn a_model_is_named_where_its_text_is_shown() {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n[agents.poet]\nn = 1\n");
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let made = world.json(&["tree", "generate", "Tale"]).1["nodes"][0]["id"].as_str().unwrap().to_owned();
    let shown = world.ok(&["tree", "show", "Tale"]);
    assert!(shown.contains("  script/echo") && !shown.contains("main"), "{shown}");
    let replayed = world.json(&["context", "replay", &made, "--model", "script:echo"]).1;
    let (_, listed) = world.json(&["tree", "siblings", "Tale", &made]);
    let models = listed["nodes"].as_array().unwrap().iter().map(|node| node["model"].clone());
    assert_eq!(models.collect::<Vec<_>>(), ["script/echo", "script/echo"], "{replayed}");

    // One changed word leaves the rest the model's.
    world.ok(&["tree", "edit", "Tale", &made, "--text", " echo one"]);
    let shown = world.ok(&["tree", "show", "Tale"]);
    assert!(shown.contains("edits script/echo"), "{shown}");
    let (_, told) = world.json(&["tree", "text", "Tale"]);
    assert_eq!(told, world.json(&["tree", "text", "Tale", "--spans"]).1, "JSON has them always");
    let spans = told["spans"].as_array().unwrap().iter();
    let by: Vec<(Value, Value)> = spans.map(|span| (span["kind"].clone(), span["model"].clone())).collect();
    let (human, model) =
        ((Value::from("human"), Value::Null), (Value::from("model"), Value::from("script/echo")));
    assert_eq!(by, [human.clone(), model, human]);
    assert!(world.ok(&["tree", "text", "Tale", "--spans"]).contains("script/echo"));
    world.ok(&[
        "--quiet",
        "tree",
        "export",
        "Tale",
        "--format",
        "html",
        "-o",
        &crate::world::text(&world.path("t.html")),
    ]);
    assert!(std::fs::read_to_string(world.path("t.html")).unwrap().contains("script/echo · model"));

    world.ok(&["tree", "generate", "Tale", "--agent", "poet"]);
    assert!(world.ok(&["tree", "show", "Tale"]).contains("poet (script/echo)"));
}

/// Of several agents the one whose request leaves this machine is reckoned with, whichever is named first.
#[test]
fn an_estimate_speaks_of_the_model_that_is_elsewhere() {
    let world = World::new();
    world.write(
        "config.toml",
        "[providers.far]\nbase_url = \"http://127.0.0.1:9\"\nplace = \"remote\"\nkind = \"openai\"\nwindow = 128000\n\
         [models.\"far/m\"]\nprice_input = 1.0\nprice_output = 1.0\n\
         [agents.near]\nmodel = \"script:echo\"\n[agents.cloud]\nmodel = \"far/m\"\n",
    );
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    for agents in [["near", "cloud"], ["cloud", "near"]] {
        let words = ["tree", "generate", "Tale", "--dry-run", "--agent", agents[0], "--agent", agents[1]];
        let (code, found) = world.json(&words);
        assert_eq!(
            (code, &found["place"], &found["model"]),
            (Some(0), &Value::from("remote"), &Value::from("far/m")),
            "{agents:?}: {found}"
        );
    }
}

#[test]
fn what_holds_nothing_says_so_and_what_is_cut_too() {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    world.ok(&["tree", "new", "--title", "Empty"]);
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let (_, made) = world.json(&["tree", "generate", "Tale", "-n", "1"]);
    let node = made["nodes"][0]["id"].as_str().unwrap().to_owned();
    world.ok(&["ask", "Wet?"]);
    for (words, said) in [
        (vec!["tree", "show", "Empty"], "the path holds no text"),
        (vec!["tree", "bookmarks", "Tale"], "none is set"),
        (vec!["context", "diff", &node, &node], "the two requests are equal"),
        (vec!["sessions", "list"], "no sessions"),
    ] {
        let seen = Terminal::start(world.command(&words)).written();
        assert!(seen.contains(said), "{words:?}: {seen}");
        let run = world.run(&words);
        assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (Some(0), "", ""), "{words:?}");
    }
    for all in [&[][..], &["--all"]] {
        let cut = world.run(&[&["tree", "show", "Tale", "--depth", "1"], all].concat());
        assert!(cut.out.contains("It rained.") && cut.err.contains("what is deeper is left out"), "{cut:?}");
        let whole = world.run(&[&["tree", "show", "Tale", "--depth", "2"], all].concat());
        assert_eq!(whole.err, "", "the control");
    }
}

#[test]
fn a_place_in_a_passage_is_asked_for_in_both_ways() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let node = world.json(&["tree", "show", "Tale"]).1["nodes"][1]["short_id"].as_str().unwrap().to_owned();
    for command in ["branch", "split"] {
        let run = world.run(&["tree", command, "Tale", &node]);
        assert!(run.err.contains("--at <OFFSET>") && run.err.contains("--after <WORDS>"), "{run:?}");
    }
}
