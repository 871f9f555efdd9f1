//! What a chat at a terminal offers: several answers to choose from, a recap, what is typed meanwhile, help.

use rustix::process::Signal;
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

use crate::seeing::without_colours;
use crate::server::{self, Server};
use crate::terminal::Terminal;
use crate::world::World;

/// A model that gives these answers in turn.
fn script(world: &World, answers: &[&str]) -> String {
    let lines: Vec<String> =
        answers.iter().map(|text| serde_json::json!({ "text": text }).to_string()).collect();
    std::fs::write(world.path("answers.jsonl"), lines.join("\n")).unwrap();
    format!("script:{}", world.path("answers.jsonl").display())
}

pub(crate) fn chat(world: &World, model: &str) -> Terminal {
    Terminal::start(world.command(&["--model", model, "chat"]))
}

#[test]
fn one_of_several_new_answers_is_chosen() {
    let world = World::new();
    let model = script(
        &world,
        &["One.", "Two.", "Three.\nAnd more.", "Four.", "Five.", "Six.", "Seven.", "Eight.", "Nine."],
    );
    let mut terminal = chat(&world, &model);
    terminal.says("/regenerate\r");
    terminal.shows("no answer to ask for again here");
    terminal.says("Go on?\r");
    terminal.at_prompt();
    terminal.types("/regenerate -n 3\r");
    terminal.shows("answer 3 of 3:");
    terminal.shows("which one, 2 to 4?");
    terminal.shows(" 3  Three. And more.");
    // Whoever mistypes a number means to answer.
    terminal.says_on("x\n9\nthe third\n3\n");
    terminal.shows("a number from 2 to 4, or Enter for 2:");
    terminal.shows("goes on from answer 3 of 4");
    terminal.says("/siblings\r");
    terminal.shows("3 *");
    // Enter takes the first, and a sentence is what is said next; a word alone is not.
    terminal.types("/regenerate -n 2\r");
    terminal.shows("which one, 5 to 6?");
    // Ctrl-L is no text.
    terminal.says_on("\x0cWhich was it?\n");
    terminal.shows("5 is taken, and what you typed is said next");
    terminal.shows("goes on from answer 5 of 6");
    terminal.shows("Seven.");
    // Ctrl-C chooses nothing, and ends nothing.
    terminal.at_prompt();
    terminal.types("/regenerate -n 2\r");
    terminal.shows("which one, 2 to 3?");
    terminal.signal(Signal::INT);
    terminal.shows("goes on from answer 2 of 3");
    terminal.at_prompt();
    terminal.types("/exit\r");
    assert_eq!(terminal.ended(), Some(0));
    let (_, log) = world.json(&["log"]);
    let told = log["exchanges"].as_array().unwrap();
    let told: Vec<_> = told.iter().map(|exchange| exchange["answer"].as_str().unwrap()).collect();
    assert_eq!(told, ["Five.", "Eight."]);
    let (_, log) = world.json(&["log"]);
    assert!(log.to_string().contains("\"Which was it?\""), "{log}");
}

#[test]
fn several_answers_of_a_call_stand_beside_the_first() {
    let world = World::new();
    let model = script(&world, &["One.", "Two.", "Three."]);
    let none = world.run(&["--model", &model, "chat", "-m", "/regenerate"]);
    assert!(none.code == Some(3) && none.err.contains("/retry asks"), "{none:?}");
    world.ok(&["--model", &model, "chat", "-m", "Go on?"]);
    let run = world.run(&["--model", &model, "chat", "-m", "/regenerate -n 2"]);
    let printed: Vec<&str> = run.out.lines().collect();
    assert!(printed[0].ends_with("  complete") && printed[3].ends_with("  complete"), "{run:?}");
    assert_eq!((run.code, printed[1], printed[2], printed[4]), (Some(0), "One.", "", "Two."), "{run:?}");
    assert!(run.err.contains("this is answer 2 of 3"), "{run:?}");
    let listed = world.ok(&["chat", "-m", "/siblings"]);
    assert!(listed.lines().nth(1).unwrap().starts_with("2 *"), "{listed}");
    for wrong in ["/regenerate -n 0", "/regenerate -n 65", "/regenerate 2"] {
        assert_eq!(world.run(&["--model", &model, "chat", "-m", wrong]).code, Some(2), "{wrong}");
    }
    // The second is not there.
    let run = world.run(&["--model", &model, "chat", "-m", "/regenerate -n 5"]);
    assert_eq!((run.code, run.out.lines().count()), (Some(0), 8), "{run:?}");
    assert!(
        run.err.contains("this is answer 4 of 6") && run.err.contains("one of the answers failed"),
        "{run:?}"
    );
    let again = world.command(&["--model", &model, "chat", "-m", "/regenerate -n 2"]);
    let shown = Terminal::start(again).written();
    let answers: Vec<&str> = shown.lines().filter(|line| line.ends_with('.')).collect();
    assert_eq!(answers, ["One.", "Two."], "each on lines of its own: {shown}");
}

#[test]
fn an_answer_fits_its_schema_or_the_place_is_named() {
    let world = World::new();
    let near = Server::start(|path, body| {
        let answer =
            if body.to_string().contains("price") { r#"{"price": "much"}"# } else { r#"{"price": 3}"# };
        path.ends_with("/chat/completions").then(|| server::chat("", answer, 10))
    });
    let config = format!(
        "[model]\ndefault = \"box/m\"\n[providers.box]\nbase_url = \"{}\"\nkind = \"ollama\"\nwindow = 32000\n",
        near.base()
    );
    world.write("config.toml", &config);
    let schema = r#"{"type": "object", "properties": {"cost": {"type": "number"}}}"#;
    std::fs::write(world.path("here/cost.json"), schema).unwrap();
    let fits = world.run(&["ask", "How much?", "--schema", "cost.json"]);
    assert_eq!((fits.code, fits.out.trim()), (Some(0), r#"{"price": 3}"#), "{fits:?}");
    let sent = near.bodies().pop().unwrap();
    assert_eq!(
        sent["response_format"]["json_schema"]["schema"],
        serde_json::from_str::<Value>(schema).unwrap()
    );

    std::fs::write(world.path("here/price.json"), r#"{"properties": {"price": {"type": "number"}}}"#)
        .unwrap();
    let run = world.run(&["ask", "How much?", "--schema", "price.json"]);
    assert_eq!((run.code, run.out.as_str()), (Some(5), ""), "{run:?}");
    assert!(run.err.contains("/price: want number, but got string"), "{run:?}");
    assert!(run.err.contains(r#"{"price": "much"}"#), "what was answered is shown: {run:?}");
    let (code, told) = world.json(&["ask", "How much?", "--schema", "price.json"]);
    assert_eq!((code, &told["text"]), (Some(5), &Value::from(r#"{"price": "much"}"#)));
    assert!(told["misfit"].as_str().unwrap().starts_with("/price"), "{told}");
    assert!(world.ok(&["search", "much"]).contains("much"), "it is kept");

    let asked = near.bodies().len();
    for (text, why) in [("{", "it is no JSON"), (r#"{"type": "objekt"}"#, "/type: ")] {
        std::fs::write(world.path("here/bad.json"), text).unwrap();
        let run = world.run(&["ask", "How much?", "--schema", "bad.json"]);
        assert!(run.code == Some(2) && run.err.contains(why) && run.err.contains("bad.json"), "{run:?}");
    }
    assert_eq!(world.run(&["ask", "How much?", "--schema", "none.json"]).code, Some(3));
    world.write("config.toml", &format!("{config}[models.\"box/m\"]\nstructured = false\n"));
    let run = world.run(&["ask", "How much?", "--schema", "cost.json"]);
    assert!(run.code == Some(2) && run.err.contains("box/m keeps to no schema"), "{run:?}");
    assert_eq!(near.bodies().len(), asked, "nothing was sent");
    let run = world.run(&["--model", "smollm2", "ask", "How much?", "--schema", "cost.json"]);
    assert!(run.code == Some(2) && run.err.starts_with("error: smollm2 keeps to no schema"), "{run:?}");
    assert!(!world.home().join("models").exists(), "no weights were fetched");
    let run = world.fed(&["ask", "-", "--schema", "-"], b"{}");
    assert!(run.code == Some(2) && run.err.contains("more than once"), "{run:?}");
}

/// A text with a word replaced; an id may be a part of other words too.
fn replaced(text: &str, word: &str, with: &str) -> String {
    let (mut out, mut rest) = (String::new(), 0);
    for (at, found) in text.match_indices(word) {
        let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let end = at + found.len();
        if !is_letter(text[..at].chars().next_back()) && !is_letter(text[end..].chars().next()) {
            out += &text[rest..at];
            out += with;
            rest = end;
        }
    }
    out + &text[rest..]
}

/// Whatever stands for itself in a snapshot: short ids and moments differ from run to run.
fn steady(world: &World, text: &str) -> String {
    let (_, log) = world.json(&["log", "-n", "100"]);
    let trees =
        log["exchanges"].as_array().unwrap().iter().map(|exchange| exchange["tree"].as_str().unwrap());
    let mut text = text.to_owned();
    for tree in trees.collect::<std::collections::BTreeSet<_>>() {
        let (_, tree) = world.json(&["tree", "show", tree, "--all"]);
        for node in tree["nodes"].as_array().unwrap() {
            text = replaced(&text, node["short_id"].as_str().unwrap(), "nnnn");
        }
    }
    let is_moment = |at: &str| {
        at.len() == 16
            && at
                .bytes()
                .zip(*b"dddd-dd-dd dd:dd")
                .all(|(is, asked)| if asked == b'd' { is.is_ascii_digit() } else { is == asked })
    };
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(next) = rest.chars().next() {
        if rest.get(..16).is_some_and(is_moment) {
            out += "YYYY-MM-DD HH:MM";
            rest = &rest[16..];
        } else {
            out.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    out.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

const QUESTION: &str = "What is a heddle, and how many of them does a loom need for a plain weave?";
const ANSWER: &str = "A heddle is a cord or wire with an eye.\n\nEach warp thread goes through one:\n\n\
                      1. for a plain weave, two shafts of heddles;\n2. for a twill, three or more;\n\
                      3. for damask, as many as the pattern asks for, which can be very many indeed.\n\n\
                      So: as many heddles as there are warp threads, shared out over two shafts.";

/// A world with a conversation of one question that has two answers.
fn asked() -> (World, String) {
    let world = World::new();
    let model = script(&world, &["Two.", ANSWER, "A reed keeps the threads apart."]);
    let mut terminal = chat(&world, &model);
    terminal.says(&format!("{QUESTION}\r"));
    terminal.says("/retry\r");
    terminal.types("/exit\r");
    assert_eq!(terminal.ended(), Some(0));
    (world, model)
}

/// Commands whose answers are snapshots, at a terminal and in a pipe.
const SHOWN: [&str; 11] = [
    "/history",
    "/siblings",
    "/help",
    "/help looking",
    "/help look",
    "And a reed?",
    "/copy",
    "/set temperature=0.5",
    "/set",
    "/system Be brief.",
    "/system",
];

/// Lines of ours are no wider than the terminal; texts, also typed ones, and notices in sentences are the terminal's to
/// break.
pub(crate) fn fits(screen: &str, columns: u16) {
    let is_text = |line: &&str| {
        let is_said = QUESTION.contains(line.trim_start_matches("> ")) || ANSWER.contains(*line);
        let is_notice = line.starts_with("error: ") || line.ends_with(" lets programs set it");
        is_said || is_notice || line.starts_with("main> ")
    };
    let wide = screen.lines().filter(|line| line.width() > columns.into() && !is_text(line));
    let wide: Vec<&str> = wide.collect();
    assert!(wide.is_empty(), "{columns}: {wide:#?}\n{screen}");
}

/// What a conversation that is gone on with shows at a terminal.
fn screens(columns: u16, environment: &[(&str, &str)]) -> String {
    let (world, model) = asked();
    let mut command = world.command(&["--model", &model, "chat"]);
    command.env("TERM", "xterm-256color").envs(environment.iter().copied());
    let mut terminal = Terminal::sized(command, 250, columns);
    for line in SHOWN {
        terminal.says(&format!("{line}\r"));
    }
    terminal.types("/regenerate -n 2\r");
    terminal.shows("which one, 2 to 3?");
    terminal.says_on("3\n");
    terminal.at_prompt();
    fits(&terminal.contents(), columns);
    let is_dim = terminal.wrote(b"\x1b[2m");
    assert_eq!(is_dim, environment.is_empty(), "{environment:?}");
    terminal.types("/exit\r");
    assert_eq!(terminal.ended(), Some(0));
    steady(&world, &terminal.contents())
}

#[test]
fn a_conversation_at_forty_columns() {
    insta::assert_snapshot!(screens(40, &[]));
}

#[test]
fn a_conversation_at_two_hundred_columns() {
    insta::assert_snapshot!(screens(200, &[]));
}

#[test]
fn a_conversation_without_colours_and_in_a_dumb_terminal() {
    let plain = screens(80, &[("NO_COLOR", "1")]);
    insta::assert_snapshot!(plain);
    // Where nothing can be drawn there is no clipboard either.
    let copied = "4 characters went to the clipboard, if this terminal lets programs set it\n";
    assert!(plain.contains(copied));
    let dumb = screens(80, &[("NO_COLOR", "1"), ("TERM", "dumb")]);
    assert_eq!(dumb, plain.replace(copied, "Two.\n"));
}

#[test]
fn commands_of_a_conversation_in_a_pipe() {
    let (world, model) = asked();
    let said = |line: &str| {
        let run = world.run(&["--model", &model, "chat", "-m", line]);
        assert!(!run.err.contains("of the window"), "the footer is for terminals: {run:?}");
        format!("$ {line}\n{}{}", run.out, run.err)
    };
    let more = ["/help moving", "/help redo", "/regenerate -n 2"];
    let all: Vec<String> = SHOWN.iter().chain(&more).map(|line| said(line)).collect();
    insta::assert_snapshot!(steady(&world, &all.concat()));
}

#[test]
fn questions_and_lists_of_sessions_at_every_width() {
    let (world, model) = asked();
    world.write("config.toml", &format!("[model]\ndefault = \"{model}\"\n"));
    world.ok(&["chat", "--session", "a-session-with-a-rather-long-name", "-m", QUESTION]);
    std::fs::create_dir(world.path("there")).unwrap();
    let there = crate::world::text(&world.path("there"));
    for (name, words) in [
        ("ask", vec!["ask", QUESTION]),
        ("log", vec!["log", "--session", "main"]),
        ("sessions", vec!["sessions", "list"]),
        ("sessions_elsewhere", vec!["sessions", "list", "--workspace", &there]),
    ] {
        let folder = world.path("").display().to_string();
        let steady = |text: &str| steady(&world, text).replace(&folder, "/somewhere/");
        let mut whole = String::new();
        for (how, columns, environment) in [
            ("40", 40, ("TERM", "xterm-256color")),
            ("200", 200, ("TERM", "xterm-256color")),
            ("NO_COLOR", 200, ("NO_COLOR", "1")),
            ("dumb", 200, ("TERM", "dumb")),
        ] {
            let mut command = world.command(&words);
            command.envs([environment]);
            let seen = Terminal::of_width(command, columns).written();
            fits(&without_colours(&seen), columns);
            assert!(columns == 40 || how == "200" || !seen.contains('\u{1b}'), "{name} {how}: {seen:?}");
            whole += &format!("──── {how}\n{}\n", steady(&seen.replace('\u{1b}', "␛")));
        }
        whole += &format!("──── pipe\n{}\n", steady(&world.ok(&words)));
        insta::assert_snapshot!(format!("screen_{name}"), whole);
    }
}

#[test]
fn help_fits_a_screen_of_twenty_four_lines() {
    let (world, model) = asked();
    for topic in ["", " saying", " moving", " looking", " settings", " session"] {
        let mut command = world.command(&["--model", &model, "chat", "--new"]);
        command.env("TERM", "xterm-256color");
        let mut terminal = Terminal::sized(command, 24, 80);
        terminal.says(&format!("/help{topic}\r"));
        let screen = terminal.contents();
        assert!(screen.contains(&format!("> /help{topic}")), "{screen}");
    }
}

#[test]
fn a_conversation_that_is_gone_on_with_begins_with_its_end() {
    let (world, model) = asked();
    let mut terminal = chat(&world, &model);
    terminal.at_prompt();
    let screen = terminal.contents();
    assert!(
        screen.contains("What is a heddle") && screen.contains("shared out over two shafts."),
        "{screen}"
    );
    assert!(!screen.contains("A heddle is a cord"), "the last lines: {screen}");
    terminal.says("/new other\r");
    terminal.says("Shorter?\r");
    terminal.says("/switch main\r");
    let screen = terminal.contents();
    assert_eq!(screen.matches("shared out over two shafts.").count(), 2, "{screen}");
    drop(terminal);
    for words in [&["chat", "--new"][..], &["chat", "--private"], &["chat", "--session", "third"]] {
        let mut terminal = Terminal::start(world.command(&[&["--model", &model], words].concat()));
        terminal.at_prompt();
        assert!(!terminal.contents().contains("heddle"), "{}", terminal.contents());
    }
    let run = world.run(&["--model", &model, "chat", "-m", "Again?"]);
    assert!(!(run.out + &run.err).contains("What is a heddle"));
}

#[test]
fn the_line_below_an_answer_says_model_cost_and_zone() {
    let world = World::new();
    let far = Server::start(|path, _| {
        path.ends_with("/chat/completions").then(|| server::chat("", "Said.", 10_000))
    });
    world.write(
        "config.toml",
        &format!(
            "[providers.far]\nbase_url = \"{}\"\nkind = \"openai\"\nplace = \"remote\"\nwindow = 32000\n\
             [models.\"far/m\"]\nprice_input = 2.0\nprice_output = 4.0\n",
            far.base()
        ),
    );
    let mut terminal = chat(&world, "far/m");
    terminal.says("One?\r");
    terminal.shows("far/m · 10000 tokens in");
    terminal.shows("· $0.02");
    terminal.shows("31 % of the window (yellow) ·");
    drop(terminal);
    let (_, said) = world.json(&["--model", "far/m", "chat", "-m", "Two?"]);
    assert_eq!(said["model"], "far/m");
    assert!(said["cost"].as_f64().unwrap() > 0.02, "{said}");
    let near = world.json(&["--model", "script:echo", "ask", "Three?"]).1;
    assert_eq!((&near["model"], &near["cost"]), (&Value::from("script/echo"), &Value::Null));
}

#[test]
fn what_is_not_there_is_answered_with_what_may_be_meant() {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    world.ok(&["chat", "--session", "plans", "-m", "Hello."]);
    let said = |words: &[&str]| {
        let run = world.run(words);
        assert_eq!(run.code, Some(3), "{words:?}: {run:?}");
        run.err
    };
    for words in [
        &["sessions", "show", "plnas"][..],
        &["sessions", "archive", "plan"],
        &["log", "--session", "Plans2"],
    ] {
        assert!(said(words).contains("did you mean plans?"), "{words:?}");
    }
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let id = world.ok(&["tree", "append", "Tale", " On."]).trim().to_owned();
    let mut letters: Vec<char> = id.chars().collect();
    letters[0] = if letters[0] == '7' { '8' } else { '7' };
    let near: String = letters.into_iter().collect();
    let told = said(&["tree", "switch", "Tale", &near]);
    assert!(told.contains("did you mean") && told.contains(&id), "{told}");

    world.ok(&["sessions", "archive", "plans"]);
    assert!(said(&["sessions", "show", "plans"]).contains("drawloom sessions restore plans"));
    world.ok(&["sessions", "restore", "plans"]);
    std::fs::create_dir(world.path("there")).unwrap();
    let there = crate::world::text(&world.path("there"));
    let listed = world.ok(&["sessions", "list", "--workspace", &there]);
    assert!(listed.contains("no session in this workspace") && listed.contains("\n  plans  "), "{listed}");
    let told = said(&["sessions", "show", "plans", "--workspace", &there]);
    assert!(told.contains("the home's own workspace has a session of that name"), "{told}");
    let told = said(&["sessions", "show", "other", "--workspace", &there]);
    assert!(told.contains("sessions list --all"), "{told}");
    world.ok(&["chat", "--session", "notes", "-m", "hi", "--model", "script:echo", "--workspace", &there]);
    let told = said(&["sessions", "show", "notes"]);
    assert!(
        told.contains(&format!("has a session of that name: `--workspace {there}` goes there")),
        "{told}"
    );
    world.ok(&["sessions", "show", "notes", "--workspace", &there]);
}

#[test]
fn a_terminal_on_which_no_line_can_be_edited_is_read_by_the_line() {
    for kind in [Some("dumb"), Some(""), None] {
        let world = World::new();
        let model = script(&world, &["Yes.", "No."]);
        let mut command = world.command(&["--model", &model, "chat"]);
        kind.map(|kind| command.env("TERM", kind));
        let mut terminal = Terminal::sized(command, 40, 80).mute();
        terminal.at_prompt();
        terminal.types("Is it\\\n wet?\n");
        terminal.shows("Yes.");
        terminal.at_prompt();
        terminal.types("/set\n");
        terminal.shows("temperature");
        terminal.at_prompt();
        terminal.types("\x04");
        assert_eq!(terminal.ended(), Some(0), "{kind:?}: {}", terminal.contents());
        while terminal.listen() {}
        assert!(!terminal.wrote(b"\x1b"), "{kind:?}: {:?}", terminal.contents());
        let log = world.ok(&["log"]);
        assert!(log.contains("> Is it\n>  wet?"), "{kind:?}: {log}");
    }
}

#[test]
fn a_terminal_that_does_not_say_where_its_cursor_is_goes_on_with_plain_lines() {
    let world = World::new();
    let model = script(&world, &["Yes.", "No."]);
    let mut terminal = chat(&world, &model).mute();
    // While it is asked: a whole line, and the beginning of the next.
    terminal.until("the question", |terminal| terminal.wrote(b"\x1b[6n"));
    terminal.types("A secret\x15Is it wt\x7fet?\rNo no\x17\x03Is it");
    terminal.shows("Yes.");
    terminal.shows("main> Is it");
    terminal
        .until("the beginning of a line", |terminal| terminal.contents().trim_end().ends_with("main> Is it"));
    // The answer comes now.
    terminal.types("\x1b[3;1R dry?\r");
    terminal.shows("No.");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0), "{}", terminal.contents());
    let screen = terminal.contents();
    assert_eq!(screen.matches("does not say where its cursor is").count(), 1, "{screen}");
    let log = world.ok(&["log"]);
    assert!(log.contains("> Is it wet?") && log.contains("> Is it dry?"), "{log}");
}
