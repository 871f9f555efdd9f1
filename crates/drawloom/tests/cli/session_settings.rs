//! Settings of a session outlive the process they were said in (spec: gateway §1).

use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use serde_json::json;

use crate::server;
use crate::sharing::{Running, SOON};
use crate::terminal::Terminal;
use crate::world::{World, piped};

pub(crate) fn world() -> World {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    std::fs::write(world.path("here").join("note.txt"), "the tide table").unwrap();
    world
}

/// A model that answers in its own way, whatever is said.
pub(crate) fn other(world: &World) -> String {
    let file = world.path("other.jsonl");
    std::fs::write(&file, json!({"text": "from the other", "loop": true}).to_string()).unwrap();
    format!("script:{}", file.display())
}

/// A provider, as the configuration has it.
pub(crate) fn provider(name: &str, place: &str, server: &server::Server) -> String {
    format!("[providers.{name}]\nbase_url = \"{}\"\nplace = \"{place}\"\nwindow = 32000\n", server.base())
}

/// A configuration in which a model of a local server is asked.
fn at_box(server: &server::Server) -> String {
    format!("[model]\ndefault = \"box/m\"\n{}", provider("box", "local", server))
}

/// Everything that was said and answered in `main`.
fn told(world: &World) -> String {
    let (_, session) = world.json(&["sessions", "show", "main"]);
    world.ok(&["tree", "text", session["tree"].as_str().unwrap()])
}

#[test]
fn model_thinking_and_waiting_files_are_there_for_the_next_process() {
    let world = world();
    let model = other(&world);
    let mut terminal = Terminal::start(world.command(&["chat", "--color", "never"]));
    terminal.says("hello\r");
    terminal.says(&format!("/model {model}\r"));
    terminal.says("/think high\r");
    terminal.says("/file note.txt\r");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));

    let (_, think) = world.json(&["chat", "-m", "/think"]);
    assert_eq!(think["thinking"], "high");
    let run = world.run(&["chat", "-m", "what now?"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "from the other\n"), "{run:?}");
    assert!(run.err.contains("note.txt was attached before"), "{run:?}");
    assert_eq!(told(&world).matches("the tide table").count(), 1);
    // What went along waits no longer.
    let run = world.run(&["chat", "-m", "and now?"]);
    assert_eq!((run.out.as_str(), run.err.contains("note.txt")), ("from the other\n", false), "{run:?}");
    assert_eq!(told(&world).matches("the tide table").count(), 1);

    // A flag holds for its call alone, and another session has its own.
    assert_eq!(world.ok(&["--model", "script:echo", "chat", "-m", "a flag"]), "a flag\n");
    assert_eq!(world.ok(&["chat", "-m", "without"]), "from the other\n");
    assert_eq!(world.ok(&["chat", "--session", "beside", "-m", "beside"]), "beside\n");
}

#[test]
fn a_session_keeps_its_model_when_a_file_that_waits_in_it_is_forgotten() {
    let world = world();
    let model = other(&world);
    world.ok(&["chat", "-m", "hello"]);
    world.ok(&["chat", "-m", &format!("/model {model}")]);
    world.ok(&["chat", "-m", "/think high"]);
    world.ok(&["chat", "-m", "/file note.txt"]);
    world.ok(&["forget", "--text", "note.txt", "--yes", "--yes"]);
    let run = world.run(&["chat", "-m", "what now?"]);
    assert_eq!((run.out.as_str(), run.err.contains("note.txt")), ("from the other\n", false), "{run:?}");
    let (_, think) = world.json(&["chat", "-m", "/think"]);
    assert_eq!(think["thinking"], "high");
    assert!(!told(&world).contains("the tide table"));
}

#[test]
fn what_cannot_be_had_any_more_is_named_and_the_conversation_goes_on() {
    let world = world();
    let model = other(&world);
    world.ok(&["chat", "-m", "hello"]);
    world.ok(&["chat", "-m", &format!("/model {model}")]);
    world.ok(&["chat", "-m", "/file note.txt"]);
    std::fs::remove_file(world.path("other.jsonl")).unwrap();
    std::fs::remove_file(world.path("here").join("note.txt")).unwrap();
    let run = world.run(&["chat", "-m", "are you there?"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "are you there?\n"), "{run:?}");
    assert!(run.err.contains("the model of this session, is not available"), "{run:?}");
    assert!(run.err.contains("script/echo is asked instead"), "{run:?}");
    assert!(run.err.contains("note.txt waited from before and is left out"), "{run:?}");
}

#[test]
fn a_session_whose_local_model_is_gone_does_not_go_to_a_remote_one_by_itself() {
    let world = World::new();
    let here = server::Server::start(|_, _| Some(server::chat("", "from here", 10)));
    let far = server::Server::start(|_, _| Some(server::chat("", "from afar", 10)));
    let left = format!("[model]\ndefault = \"far/m\"\n{}", provider("far", "remote", &far));
    let others = [provider("box", "local", &here), provider("away", "remote", &here)].concat();
    world.write("config.toml", &format!("{left}{others}"));
    for (session, model) in [("main", "box/m"), ("open", "away/m")] {
        world.ok(&["--model", model, "chat", "--session", session, "-m", "private"]);
        world.ok(&["chat", "--session", session, "-m", &format!("/model {model}")]);
    }
    world.write("config.toml", &left);
    for line in ["and more of it", "/model"] {
        let run = world.run(&["chat", "-m", line]);
        assert_eq!(run.code, Some(5), "{run:?}");
        for said in ["box/m, the model of this session, is not available", "`/model far/m`", "`--model`"] {
            assert!(run.err.contains(said), "{said}: {run:?}");
        }
    }
    assert!(far.bodies().is_empty(), "{:?}", far.bodies());
    assert!(!told(&world).contains("and more of it"), "nothing of it is said");

    let run = world.run(&["chat", "--session", "open", "-m", "and more of it"]);
    assert_eq!(
        (run.code, run.out.as_str()),
        (Some(0), "from afar\n"),
        "the control, of a remote one: {run:?}"
    );
    assert!(run.err.contains("far/m is asked instead"), "{run:?}");
    assert_eq!(world.ok(&["--model", "far/m", "chat", "-m", "on purpose"]), "from afar\n");
    world.ok(&["chat", "-m", "/model far/m"]);
    assert_eq!(world.ok(&["chat", "-m", "from now on"]), "from afar\n");
}

#[test]
fn a_session_whose_local_model_has_moved_elsewhere_does_not_follow_it_by_itself() {
    let world = World::new();
    let here = server::Server::start(|_, _| Some(server::chat("", "from here", 10)));
    let far = server::Server::start(|_, _| Some(server::chat("", "from afar", 10)));
    let open = provider("away", "remote", &far);
    let (near, moved) = (provider("box", "local", &here), provider("box", "remote", &far));
    world.write("config.toml", &(near + &open));
    for (session, model) in [("main", "box/m"), ("open", "away/m")] {
        world.ok(&["--model", model, "chat", "--session", session, "-m", "private"]);
        world.ok(&["chat", "--session", session, "-m", &format!("/model {model}")]);
    }
    let asked = far.bodies().len();
    // Its place or its address was changed, or another provider has the name now.
    let placed = provider("box", "remote", &here);
    for config in [&moved, &placed] {
        world.write("config.toml", &format!("{config}{open}"));
        for line in ["and more of it", "/model"] {
            let run = world.run(&["chat", "-m", line]);
            assert_eq!(run.code, Some(5), "{run:?}");
            for said in ["box/m, the model of this session, is not on this machine", "`/model box/m`"] {
                assert!(run.err.contains(said), "{said}: {run:?}");
            }
        }
    }
    assert_eq!((here.bodies().len(), far.bodies().len()), (1, asked));
    assert!(!told(&world).contains("and more of it"), "nothing of it is said");

    world.write("config.toml", &(moved + &open));
    let control = ["chat", "--session", "open", "-m", "the control, of a remote one"];
    assert_eq!(world.ok(&control), "from afar\n");
    assert_eq!(world.ok(&["--model", "box/m", "chat", "-m", "on purpose"]), "from afar\n");
    world.ok(&["chat", "-m", "/model box/m"]);
    assert_eq!(world.ok(&["chat", "-m", "from now on"]), "from afar\n");
}

#[test]
fn a_session_whose_settings_are_damaged_does_not_go_to_a_remote_model_by_itself() {
    let world = World::new();
    let here = server::Server::start(|_, _| Some(server::chat("", "from here", 10)));
    let far = server::Server::start(|_, _| Some(server::chat("", "from afar", 10)));
    let providers = [provider("far", "remote", &far), provider("box", "local", &here)].concat();
    let with_default = |model: &str| {
        world.write("config.toml", &format!("[model]\ndefault = \"{model}\"\n{providers}"));
    };
    with_default("far/m");
    world.ok(&["--model", "box/m", "chat", "-m", "private"]);
    world.ok(&["chat", "-m", "/model box/m"]);
    for damaged in [
        r#"{"model":null,"place":null}"#,
        r#"{"modell":"box/m"}"#,
        "[]",
        r#"{"model":"box/m","place":"lan"}"#,
    ] {
        let database = rusqlite::Connection::open(world.home().join("loom.db")).unwrap();
        assert_eq!(database.execute("UPDATE sessions SET settings = ?1", [damaged]).unwrap(), 1);
        drop(database);
        for line in ["and more of it", "/think high", "/file note.txt", "and more of it"] {
            let run = world.run(&["chat", "-m", line]);
            assert_eq!(run.code, Some(if line.starts_with('/') { 6 } else { 5 }), "{damaged}: {run:?}");
            assert!(run.err.contains("the settings of this session cannot be read"), "{damaged}: {run:?}");
            assert!(run.err.contains("choose its model and its files again"), "{damaged}: {run:?}");
        }
    }
    assert!(far.bodies().is_empty(), "{:?}", far.bodies());
    with_default("box/m");
    assert_eq!(world.ok(&["chat", "-m", "the control, of a local one"]), "from here\n");
    with_default("far/m");
    world.ok(&["chat", "-m", "/model box/m"]);
    assert_eq!(world.ok(&["chat", "-m", "chosen again"]), "from here\n");
}

#[test]
fn a_file_that_waits_goes_along_once_whichever_of_those_who_wait_is_first() {
    for is_interactive in [false, true] {
        let world = World::new();
        std::fs::write(world.path("here").join("note.txt"), "the tide table").unwrap();
        let (release, released) = (Arc::new(Mutex::new(false)), Arc::new(Condvar::new()));
        let (gate, opened) = (Arc::clone(&release), Arc::clone(&released));
        let here = server::Server::start(move |path, _| {
            if path.ends_with("/chat/completions") {
                drop(opened.wait_while(gate.lock().unwrap(), |released| !*released).unwrap());
            }
            Some(server::chat("", "Said.", 10))
        });
        world.write("config.toml", &at_box(&here));
        let mut terminal = None;
        let mut first = None;
        if is_interactive {
            let terminal = terminal.insert(Terminal::start(world.command(&["chat", "--color", "never"])));
            terminal.at_prompt();
            terminal.types("tale\r");
        } else {
            first = Some(Running(piped(&mut world.command(&["chat", "-m", "tale"]))));
        }
        let began = Instant::now();
        while here.bodies().is_empty() {
            assert!(began.elapsed() < SOON, "nothing was asked");
            std::thread::yield_now();
        }
        world.ok(&["chat", "-m", "/file note.txt"]);
        let waiting = ["two", "three", "four"].map(|said| {
            let mut child = Running(piped(&mut world.command(&["chat", "-m", said])));
            let mut err = BufReader::new(child.0.stderr.take().unwrap());
            let mut told = String::new();
            while !told.contains("waiting for process") {
                assert!(err.read_line(&mut told).unwrap() > 0, "{told}");
            }
            (child, err, told)
        });
        *release.lock().unwrap() = true;
        released.notify_all();
        let told_of = waiting.map(|(mut child, mut err, mut told)| {
            err.read_to_string(&mut told).unwrap();
            assert_eq!(child.0.wait().unwrap().code(), Some(0), "{told}");
            assert!(told.contains("note.txt was attached before"), "{told}");
            told.contains("note.txt was sent with another message, or taken back: it is left out")
        });
        assert_eq!(told_of.iter().filter(|told| **told).count(), 2, "{told_of:?}");
        if let Some(mut first) = first {
            assert_eq!(first.0.wait().unwrap().code(), Some(0));
        }
        if let Some(mut terminal) = terminal {
            ["two", "three", "four"].into_iter().for_each(|said| terminal.shows(said));
            terminal.at_prompt();
            terminal.types("\u{4}");
            assert_eq!(terminal.ended(), Some(0));
        }
        let all = told(&world);
        assert_eq!(all.matches("the tide table").count(), 1, "{all}");
        for said in ["two", "three", "four"] {
            assert!(all.contains(said), "{all}");
        }
        let run = world.run(&["chat", "-m", "and now?"]);
        assert!(run.code == Some(0) && !run.err.contains("note.txt"), "it waits no longer: {run:?}");
    }
}

#[test]
fn a_file_waits_until_it_was_sent_and_can_wait_again() {
    let world = World::new();
    std::fs::write(world.path("here").join("note.txt"), "the tide table").unwrap();
    let here = server::Server::start(|_, _| Some(server::chat("", "Said.", 10)));
    world.write("config.toml", &at_box(&here));
    let file = "/file note.txt";
    for (flags, lines) in [
        (&[][..], &["hello", file, "/edit hello again", "and this?", file, "more"][..]),
        (&["--private"], &[file, "hello", file, "more"]),
    ] {
        let command = world.command(&[&["chat", "--color", "never"], flags].concat());
        let mut terminal = Terminal::start(command);
        for line in lines {
            terminal.says(&format!("{line}\r"));
        }
        terminal.types("\u{4}");
        assert_eq!(terminal.ended(), Some(0));
        let last = here.bodies().last().unwrap().to_string();
        assert_eq!(last.matches("the tide table").count(), 2, "{flags:?}: {last}");
    }
}

#[test]
fn what_is_set_before_anything_was_said_is_kept_once_something_is() {
    let world = world();
    let model = other(&world);
    let mut terminal = Terminal::start(world.command(&["chat", "--color", "never"]));
    terminal.says(&format!("/model {model}\r"));
    terminal.says("hello\r");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(world.ok(&["chat", "-m", "again"]), "from the other\n");
}

#[test]
fn what_was_chosen_in_a_session_holds_when_one_comes_back_to_it() {
    let world = World::new();
    let far = server::Server::start(|_, _| Some(server::chat("", "from afar", 10)));
    world.write(
        "config.toml",
        &format!("[providers.far]\nbase_url = \"{}\"\nplace = \"remote\"\nwindow = 32000\n", far.base()),
    );
    world.ok(&["--model", "script:echo", "chat", "--session", "third", "-m", "before"]);
    world.ok(&["--model", "script:echo", "chat", "--session", "third", "-m", "/model script:echo"]);
    let model = other(&world);
    let command = world.command(&["--model", "far/m", "chat", "--color", "never"]);
    let mut terminal = Terminal::start(command);
    terminal.says("hello\r");
    for line in [&format!("/model {model}"), "/new other", "beside", "/switch main", "private"] {
        terminal.says(&format!("{line}\r"));
    }
    let went: Vec<String> = far.bodies().iter().map(ToString::to_string).collect();
    assert!(!went.iter().any(|body| body.contains("private") || body.contains("beside")), "{went:?}");
    // The control: where nothing newer was chosen the flag holds.
    terminal.says("/switch third\r");
    terminal.says("elsewhere\r");
    assert!(far.bodies().last().unwrap().to_string().contains("elsewhere"));
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    // The new session began with what was in force, and has it stored.
    assert_eq!(world.ok(&["chat", "--session", "other", "-m", "again"]), "from the other\n");
}

#[test]
fn a_preset_names_a_model_only_where_it_has_one_and_then_its_own() {
    let world = World::new();
    let far = server::Server::start(|_, _| Some(server::chat("", "from afar", 10)));
    let model = other(&world);
    world.write(
        "config.toml",
        &format!(
            "[model]\ndefault = \"far/m\"\n[providers.far]\nbase_url = \"{}\"\nplace = \"remote\"\nwindow = 32000\n\
             [presets.cold]\ntemperature = 0.1\n[presets.here]\nmodel = \"script:echo\"\n[presets.there]\nmodel = \"far/m\"\n",
            far.base()
        ),
    );
    world.ok(&["--model", "script:echo", "chat", "-m", "private"]);
    world.ok(&["--model", "script:echo", "chat", "-m", &format!("/model {model}")]);
    assert_eq!(world.ok(&["chat", "--preset", "cold", "-m", "and more"]), "from the other\n");
    assert_eq!(world.ok(&["chat", "--preset", "here", "-m", "a preset"]), "a preset\n");
    world.ok(&["tree", "new", "--title", "Story", "--text", "private"]);
    assert!(world.ok(&["tree", "generate", "Story", "--preset", "here"]).contains("echo"));
    assert!(far.bodies().is_empty(), "{:?}", far.bodies());
    assert_eq!(world.ok(&["chat", "--preset", "there", "-m", "the control"]), "from afar\n");
}

#[test]
fn what_another_process_sets_in_a_session_is_followed_and_told() {
    let world = world();
    let model = other(&world);
    let mut terminal = Terminal::start(world.command(&["chat", "--color", "never"]));
    terminal.says("hello\r");
    world.ok(&["chat", "-m", &format!("/model {model}")]);
    terminal.types("which one?\r");
    terminal.shows("as another process set it");
    terminal.shows("from the other");
    terminal.at_prompt();

    world.ok(&["sessions", "rename", "main", "tides"]);
    terminal.types("and now?\r");
    terminal.shows("this session was renamed to tides");
    terminal.shows("tides>");
    terminal.at_prompt();
    let (_, session) = world.json(&["sessions", "show", "tides"]);
    let tree = session["tree"].as_str().unwrap();
    assert!(world.ok(&["tree", "text", tree]).contains("and now?"));
    assert_eq!(
        world.run(&["sessions", "show", "main"]).code,
        Some(3),
        "no session was begun under the old name"
    );

    world.ok(&["chat", "--session", "tides", "--new", "-m", "a new beginning"]);
    terminal.types("where am I?\r");
    terminal.shows("another process started a new conversation in this session");
    terminal.at_prompt();
    world.ok(&["sessions", "archive", "tides"]);
    terminal.types("still there?\r");
    terminal.shows("was archived by another process");
    terminal.at_prompt();
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn a_session_that_begins_elsewhere_is_met_with_its_settings() {
    let world = World::new();
    let far = server::Server::start(|_, _| Some(server::chat("", "from afar", 10)));
    world.write(
        "config.toml",
        &format!(
            "[model]\ndefault = \"far/m\"\n[providers.far]\nbase_url = \"{}\"\nplace = \"remote\"\nwindow = 32000\n",
            far.base()
        ),
    );
    std::fs::write(world.path("here").join("note.txt"), "the tide table").unwrap();
    let model = other(&world);
    let start = || Terminal::start(world.command(&["chat", "--color", "never"]));
    let (mut first, mut second) = (start(), start());
    second.at_prompt();
    first.says(&format!("/model {model}\r"));
    first.says("private words\r");
    first.says("/file note.txt\r");
    second.types("/think low\r");
    second.shows("as another process set it");
    second.at_prompt();
    second.types("and I continue\r");
    second.shows("from the other");
    second.at_prompt();
    assert!(far.bodies().is_empty(), "{:?}", far.bodies());
    assert!(told(&world).contains("the tide table"), "the file went along with it");
    let (_, think) = world.json(&["chat", "-m", "/think"]);
    assert_eq!(think["thinking"], "low");
    assert_eq!(world.ok(&["chat", "-m", "and now?"]), "from the other\n", "what each set is kept");

    // A session that took the place of an archived one.
    world.ok(&["sessions", "archive", "main"]);
    world.ok(&["--model", "script:echo", "chat", "-m", "anew"]);
    second.types("which one?\r");
    second.shows("your next message goes to the new session of that name");
    second.at_prompt();
    assert!(told(&world).contains("which one?"));
    for mut terminal in [first, second] {
        terminal.types("\u{4}");
        assert_eq!(terminal.ended(), Some(0));
    }
}

#[test]
fn a_command_for_a_conversation_is_refused_where_the_call_ends_with_it() {
    let world = world();
    for (line, hint) in [
        ("/new", "chat --new -m TEXT"),
        ("/new tides", "chat --new -m TEXT"),
        ("/switch tides", "--session NAME"),
        ("/rename tides", "send a message first"),
        ("/model script:echo", "send a message first, or give --model"),
        ("/think high", "send a message first"),
        ("/file note.txt", "send a message first"),
    ] {
        let run = world.run(&["chat", "-m", line]);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.err.contains(hint), "{line}: {run:?}");
    }
    for shows in ["/model", "/think", "/file"] {
        world.ok(&["chat", "-m", shows]);
    }
    world.ok(&["chat", "-m", "hello"]);
    world.ok(&["chat", "-m", "/think high"]);
    world.ok(&["chat", "-m", "/rename tides"]);
    world.ok(&["sessions", "show", "tides"]);
}

#[test]
fn a_system_prompt_that_is_forgotten_leaves_the_other_settings() {
    for (model, set) in [(false, false), (true, false), (false, true), (true, true)] {
        let world = world();
        let other = other(&world);
        world.ok(&["chat", "-m", "hi"]);
        world.ok(&["chat", "-m", "/system be QWORD"]);
        if model {
            world.ok(&["chat", "-m", &format!("/model {other}")]);
        }
        if set {
            world.ok(&["chat", "-m", "/set temperature=0.5"]);
        }
        world.ok(&["forget", "--text", "QWORD", "--yes", "--yes"]);
        let database = rusqlite::Connection::open(world.home().join("loom.db")).unwrap();
        let left: String = database.query_row("SELECT settings FROM sessions", [], |row| row.get(0)).unwrap();
        drop(database);
        assert!(!left.contains("QWORD") && left.contains("0.5") == set, "{left}");
        let run = world.run(&["chat", "-m", "x"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(run.out.contains("from the other"), model, "{run:?}");
        assert!(!run.err.contains("cannot be read"), "{run:?}");
        world.ok(&["chat", "-m", "/system be quick"]);
    }
}
