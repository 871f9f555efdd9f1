//! Answers that hold for more than one call: for the session, in every process, and never beyond what was shown (spec:
//! agent §4, security §14).

use std::fs;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::terminal::Terminal;
use crate::world::{World, text};

/// A world where writing below `docs` is asked about.
fn world() -> World {
    let world = World::new();
    let file = text(&world.home().join("lines.jsonl"));
    world.write(
        "config.toml",
        &format!(
            "[model]\ndefault = \"script:{file}\"\n[agents.assistant]\ntools = [\"read\", \"write\"]\n\
             [[policy.rules]]\ndecision = \"ask\"\ntool = [\"write path=docs/**\"]\n"
        ),
    );
    fs::create_dir_all(world.path("project/docs")).unwrap();
    world
}

fn write(path: &str, content: &str) -> Value {
    json!({"name": "write", "arguments": {"path": path, "content": content}})
}

/// The model makes these calls in its next turn, one after another.
fn script(world: &World, calls: &[Value]) {
    let calls = calls.iter().map(|call| format!("{}\n", json!({"tool_calls": [call]})));
    let done = format!("{}\n", json!({"text": "Done."}));
    world.write("lines.jsonl", &calls.chain([done]).collect::<String>());
}

fn words(world: &World, more: &[&str]) -> Vec<String> {
    let project = text(&world.path("project"));
    ["--workspace", &project, "chat"].iter().chain(more).map(|&word| word.to_owned()).collect()
}

/// A turn that waits for no answer: what was refused in it.
fn refused(world: &World, session: &str, calls: &[Value]) -> usize {
    script(world, calls);
    let words = words(world, &["--session", session, "--json", "-m", "Write."]);
    let run = world.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let said: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{run:?}"));
    said["denied"].as_array().map_or(0, Vec::len)
}

/// A turn whose questions wait, once the first of them does.
fn asked(world: &World, calls: &[Value]) -> (Child, Value) {
    script(world, calls);
    let words = words(world, &["--wait", "60", "--json", "-m", "Write."]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = world.command(&words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    loop {
        let (_, found) = world.json(&["approvals", "list"]);
        if let Some(question) = found["approvals"].as_array().and_then(|all| all.first()) {
            return (child, question.clone());
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended without a question");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn ended(child: Child) -> Value {
    let done = child.wait_with_output().unwrap();
    serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"))
}

#[test]
fn an_answer_for_the_session_holds_in_its_later_processes_for_that_path_alone() {
    let world = world();
    let (child, question) = asked(&world, &[write("docs/a.md", "1\n"), write("docs/a.md", "2\n")]);
    assert_eq!(
        question["answers"],
        json!(["once", "session"]),
        "a rule that asks is not overruled by another"
    );
    let about = question["about"].as_str().unwrap();
    assert!(about.ends_with("\nsession: allows write path=docs/a.md"), "{about}");
    let id = question["short_id"].as_str().unwrap();
    assert!(world.ok(&["approvals", "list"]).contains("--for once|session"));
    let wrong = world.run(&["approve", id, "--for", "always"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("it takes once, session"), "{wrong:?}");
    world.ok(&["approve", id, "--for", "session"]);
    assert_eq!(ended(child)["denied"], json!([]), "the second call is not asked about");
    assert_eq!(fs::read_to_string(world.path("project/docs/a.md")).unwrap(), "2\n");

    assert_eq!(refused(&world, "main", &[write("docs/a.md", "3\n")]), 0, "in another process");
    assert_eq!(refused(&world, "main", &[write("docs/b.md", "x\n")]), 1, "another path");
    assert_eq!(refused(&world, "other", &[write("docs/a.md", "4\n")]), 1, "another session");
    let chat = |line: &str| {
        let words = words(&world, &["-m", line]);
        world.ok(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert!(chat("/policy").contains("in this session: allow write path=docs/a.md"));
    // Deny wins.
    world.ok(&["policy", "deny", "write path=docs/a.md"]);
    assert_eq!(refused(&world, "main", &[write("docs/a.md", "5\n")]), 1);
    world.ok(&["policy", "remove", "write path=docs/a.md"]);
    assert_eq!(refused(&world, "main", &[write("docs/a.md", "6\n")]), 0, "control");
    assert!(!chat("/policy reset").contains("in this session"));
    assert_eq!(refused(&world, "main", &[write("docs/a.md", "7\n")]), 1, "it was taken back");
}

#[test]
fn an_answer_that_one_agent_got_for_the_session_is_none_for_another_one() {
    let world = world();
    let config = world.read("config.toml");
    let reviewer = "[agents.reviewer]\ntools = [\"write\"]\n[[agents.reviewer.policy]]\ndecision = \"ask\"\n\
                    tool = [\"write\"]\n";
    world.write("config.toml", &format!("{config}{reviewer}"));
    let (child, question) = asked(&world, &[write("docs/a.md", "1\n")]);
    world.ok(&["approve", question["short_id"].as_str().unwrap(), "--for", "session"]);
    assert_eq!(ended(child)["denied"], json!([]));
    assert_eq!(refused(&world, "main", &[write("docs/a.md", "2\n")]), 0, "the control");
    script(&world, &[write("docs/a.md", "3\n")]);
    let words = words(&world, &["--agent", "reviewer", "-m", "Write."]);
    let (_, said) = world.json(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(said["denied"].as_array().map(Vec::len), Some(1), "{said}");
}

/// The reason of a no says what would be right: that is asked about, and what was denied is not.
#[test]
fn another_change_of_a_file_is_asked_about_after_a_no_and_the_same_one_is_not() {
    let world = world();
    let calls =
        [write("docs/a.md", "rude\n"), write("docs/./a.md", "rude\n"), write("docs/a.md", "polite\n")];
    let (child, question) = asked(&world, &calls);
    let first = question["short_id"].as_str().unwrap().to_owned();
    world.ok(&["deny", &first, "--reason", "be polite"]);
    crate::running_commands::wait_until("the other change is not asked about", || {
        let (_, found) = world.json(&["approvals", "list"]);
        let next = found["approvals"].as_array().and_then(|all| all.first()).cloned();
        next.is_some_and(|next| {
            assert!(next["about"].as_str().unwrap().contains("polite"), "{next}");
            world.run(&["approve", next["short_id"].as_str().unwrap()]).code == Some(0)
        })
    });
    let denied = ended(child)["denied"].clone();
    let whys: Vec<&str> = denied.as_array().unwrap().iter().map(|one| one["why"].as_str().unwrap()).collect();
    assert_eq!(whys.len(), 2, "{denied}");
    assert!(whys[0].contains("be polite") && whys[1].contains("denied before in this turn"), "{denied}");
    assert_eq!(fs::read_to_string(world.path("project/docs/a.md")).unwrap(), "polite\n");
}

/// A model does not wear its owner out with ever other changes of one file.
#[test]
fn after_three_denials_no_further_change_of_a_file_is_asked_about() {
    let world = world();
    let (child, _) = asked(&world, &["1\n", "2\n", "3\n", "4\n"].map(|text| write("docs/a.md", text)));
    for _ in 0..3 {
        crate::running_commands::wait_until("a change is not asked about", || {
            let (_, found) = world.json(&["approvals", "list"]);
            let next = found["approvals"].as_array().and_then(|all| all.first()).cloned();
            next.is_some_and(|next| {
                let id = next["short_id"].as_str().unwrap();
                world.run(&["deny", id, "--reason", "not this"]).code == Some(0)
            })
        });
    }
    // A fourth question would wait for its answer.
    let denied = ended(child)["denied"].clone();
    let whys: Vec<&str> = denied.as_array().unwrap().iter().map(|one| one["why"].as_str().unwrap()).collect();
    assert!(whys.len() == 4 && whys[..3].iter().all(|why| why.contains("not this")), "{denied}");
    assert!(whys[3].contains("denied before in this turn"), "{denied}");
}

#[test]
fn an_answer_for_once_and_one_about_a_protected_file_hold_for_nothing_else() {
    let world = world();
    let (child, question) = asked(&world, &[write("docs/a.md", "1\n")]);
    world.ok(&["approve", question["short_id"].as_str().unwrap()]);
    assert_eq!(ended(child)["denied"], json!([]));
    assert_eq!(refused(&world, "main", &[write("docs/a.md", "2\n")]), 1);
    let (child, question) = asked(&world, &[write("AGENTS.md", "Obey.\n")]);
    assert_eq!(question["answers"], json!(["once"]));
    let id = question["short_id"].as_str().unwrap();
    assert_eq!(world.run(&["approve", id, "--for", "session"]).code, Some(2));
    world.ok(&["approve", id, "--for", "once"]);
    assert_eq!(ended(child)["denied"], json!([]));
    assert_eq!(refused(&world, "main", &[write("AGENTS.md", "Obey me.\n")]), 1);
}

#[test]
fn a_question_at_a_terminal_shows_its_answers_and_a_reason_reaches_the_model() {
    let world = world();
    let calls = [write("docs/a.md", "1\n"), write("docs/a.md", "2\n"), write("docs/b.md", "1\n")];
    let lines = calls.iter().map(|call| format!("{}\n", json!({"tool_calls": [call]})));
    let done = json!({"text": "I see.", "expect": ["and it was denied: write it in German"]});
    world.write("lines.jsonl", &lines.chain([format!("{done}\n")]).collect::<String>());
    let words = words(&world, &["--color", "never"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut terminal = Terminal::start(crate::trust::with_terminal(&world.command(&words)));
    terminal.at_prompt();
    terminal.types("Write.\r");
    terminal.shows("session: allows write path=docs/a.md");
    terminal.shows("[y once, s session, N no, or n and why]");
    terminal.types("always\n");
    terminal.shows("answer [y once, s session");
    terminal.types("s\n");
    terminal.shows("session: allows write path=docs/b.md");
    terminal.until("its second question", |terminal| terminal.contents().matches("[y once").count() == 3);
    assert_eq!(fs::read_to_string(world.path("project/docs/a.md")).unwrap(), "2\n");
    terminal.types("n write it in German\n");
    terminal.shows("denied");
    terminal.shows("I see.");
    terminal.at_prompt();
    assert!(!world.path("project/docs/b.md").exists());
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn commands_that_do_not_wait_for_the_turn_are_done_at_its_question_and_it_is_asked_again() {
    for term in ["xterm-256color", "dumb"] {
        let world = world();
        let said =
            json!({"text": "I see.", "expect": ["what it may do was changed while it was asked about"]});
        let lines = [json!({"tool_calls": [write("AGENTS.md", "Obey.\n")]}), said];
        world.write("lines.jsonl", &lines.map(|line| format!("{line}\n")).concat());
        let words = words(&world, &["--color", "never"]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = crate::trust::with_terminal(&world.command(&words));
        command.env("TERM", term);
        let mut terminal = Terminal::sized(command, 60, 200);
        terminal.at_prompt();
        terminal.types("Write.\r");
        let asked = |terminal: &mut Terminal, times: usize| {
            terminal.until("its question", |terminal| {
                let screen = terminal.contents();
                screen.matches("Allow it? (or `drawloom approve").count() == times
                    && screen.trim_end().ends_with("[y/N, or n and why]")
            });
        };
        asked(&mut terminal, 1);
        terminal.types("hmm\n");
        terminal.shows("answer [y/N, or n and why]");
        for (times, (line, shown)) in [
            ("/policy", "1  ask write path='docs/**'"),
            ("/stpo", "did you mean /stop?"),
            ("/approve zzzz", "error: "),
            ("/plan on", "plan mode: on, in this session"),
        ]
        .into_iter()
        .enumerate()
        {
            terminal.types(&format!("{line}\n"));
            terminal.shows(shown);
            asked(&mut terminal, times + 2);
        }
        // It wants the turn's end.
        terminal.types("/undo\n");
        terminal.until("its answers", |terminal| {
            terminal.contents().matches("answer [y/N, or n and why]").count() == 2
        });
        terminal.types("y\n");
        terminal.shows("I see.");
        terminal.at_prompt();
        assert!(!world.path("project/AGENTS.md").exists(), "{term}");
        terminal.types("\u{4}");
        assert_eq!(terminal.ended(), Some(0));
    }
}

#[test]
fn stop_at_a_question_ends_the_turn_and_the_call_is_not_run() {
    for term in ["xterm-256color", "dumb"] {
        let world = world();
        script(&world, &[write("docs/a.md", "1\n")]);
        let words = words(&world, &["--color", "never"]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = crate::trust::with_terminal(&world.command(&words));
        command.env("TERM", term);
        let mut terminal = Terminal::sized(command, 60, 200);
        terminal.at_prompt();
        terminal.types("Write.\r");
        terminal.shows("[y once, s session, N no, or n and why]");
        terminal.types("/stop\n");
        terminal.shows("cancelled by you");
        terminal.at_prompt();
        assert_eq!(world.json(&["approvals", "list"]).1["approvals"], json!([]));
        assert!(
            !world.path("project/docs/a.md").exists() && !terminal.contents().contains("Done."),
            "{term}"
        );
        terminal.types("\u{4}");
        assert_eq!(terminal.ended(), Some(0));
    }
}

/// Killed while its question waits: the call never began, and no answer begins it.
#[test]
fn a_call_whose_process_died_at_its_question_was_not_run_and_a_late_yes_starts_nothing() {
    let world = world();
    let (mut child, question) = asked(&world, &[write("docs/a.md", "1\n")]);
    let project = text(&world.path("project"));
    let log = || world.json(&["--workspace", &project, "log"]).1["exchanges"][0].clone();
    let waiting = log();
    assert_eq!((&waiting["cut"], waiting.get("not_run")), (&json!(false), None), "it goes on: {waiting}");
    child.kill().unwrap();
    child.wait().unwrap();
    let killed = log();
    assert_eq!((&killed["cut"], &killed["not_run"]), (&json!(true), &json!(["write"])), "{killed}");
    let shown = world.ok(&["--workspace", &project, "log"]);
    assert!(shown.contains("(cut off; 1 call was not run: write)"), "{shown}");
    let id = question["short_id"].as_str().unwrap();
    let late = world.run(&["approve", id, "--for", "session"]);
    assert!(late.code == Some(2) && late.err.contains("it was denied by the end of its process"), "{late:?}");
    assert_eq!(world.json(&["approvals", "list"]).1["approvals"], json!([]));
    let expects =
        json!({"text": "I see.", "expect": "This call was not run: its turn ended before it began"});
    world.write("lines.jsonl", &format!("{expects}\n"));
    let words = words(&world, &["-m", "Go on."]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(world.ok(&words), "I see.\n");
    assert!(!world.path("project/docs/a.md").exists());
    assert_eq!((&log()["cut"], &log()["not_run"]), (&json!(true), &json!(["write"])), "it stays so");
    assert_eq!(refused(&world, "main", &[write("docs/a.md", "2\n")]), 1, "the answer allows nothing");
    // It is not taken for one that began.
    let tree = world.json(&["tree", "list"]).1["trees"][0]["tree"].as_str().unwrap().to_owned();
    let (_, shown) = world.json(&["tree", "show", &tree]);
    let unknown = shown["nodes"].to_string().matches("outcome of this call is unknown").count();
    assert_eq!(unknown, 0, "{shown}");
}
