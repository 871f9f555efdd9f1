//! What its owner says in another process while a turn runs: rules, plan mode and a purge reach its next call (spec: agent §4).

use std::fs;
use std::io::{BufRead, BufReader, Read as _};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::exec::world;
use crate::running_commands::wait_until;
use crate::terminal::Terminal;
use crate::tools::calls;
use crate::world::{World, text};

/// A turn, in a process of its own.
fn turn(world: &World) -> Child {
    says(world, &["--json", "chat", "-m", "Do it.", "--wait", "60"])
}

/// Drawloom in the project, in a process of its own.
pub(crate) fn says(world: &World, arguments: &[&str]) -> Child {
    let project = text(&world.path("project"));
    let mut command = world.command(&[&["--workspace", &project], arguments].concat());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The first command of a turn, which waits until it is told that it is over.
pub(crate) const WAITS: &str = "touch begun; until test -e over; do sleep 0.01; done";

/// A conversation at a terminal, whose turn runs that command, and then writes a file.
fn conversing_over_a_command() -> (World, Terminal) {
    let world = world(&[
        calls(&json!([{"name": "exec", "arguments": {"command": WAITS}}])),
        calls(&json!([{"name": "write", "arguments": {"path": "a.md", "content": "A.\n"}}])),
        json!({"text": "That was it."}),
    ]);
    let project = text(&world.path("project"));
    let mut terminal = Terminal::start(world.command(&["--workspace", &project, "chat"]));
    terminal.at_prompt();
    terminal.types("Do it.\r");
    wait_until("the command does not run", || world.path("project/begun").exists());
    (world, terminal)
}

/// Who said a text is not read off the text: what subagents came to begins so too.
#[test]
fn what_a_person_types_in_mid_turn_is_shown_as_theirs_whatever_it_looks_like() {
    let (world, mut terminal) = conversing_over_a_command();
    terminal.types("[subagent x, sub-1: done] hello\r");
    terminal.shows("this joins the turn");
    fs::write(world.path("project/over"), "").unwrap();
    terminal.shows("main> [subagent x, sub-1: done] hello");
    terminal.shows("That was it.");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn plan_mode_that_is_typed_in_the_conversation_holds_for_the_next_call_of_its_turn() {
    for plan in ["/plan on", "/plan off"] {
        let (world, mut terminal) = conversing_over_a_command();
        // What waits is not before it.
        terminal.types(&format!("/redo\r{plan}\r"));
        terminal.shows(&format!("plan mode: {}", &plan[6..]));
        fs::write(world.path("project/over"), "").unwrap();
        terminal.shows("That was it.");
        terminal.at_prompt();
        terminal.types("/plan\r");
        terminal
            .until("plan mode is shown", |terminal| terminal.contents().matches("plan mode: o").count() > 1);
        terminal.at_prompt();
        terminal.types("\x04");
        assert_eq!(terminal.ended(), Some(0));
        assert_eq!(world.path("project/a.md").exists(), plan == "/plan off", "{}", terminal.contents());
        assert!(!terminal.contents().contains("another process"), "{}", terminal.contents());
    }
}

/// What another process sets behind what was typed in mid-turn holds, and is told once.
#[test]
fn plan_mode_that_another_process_sets_after_the_conversation_did_is_not_overwritten() {
    let (world, mut terminal) = conversing_over_a_command();
    let count = |terminal: &Terminal, text: &str| terminal.contents().matches(text).count();
    terminal.types("/plan on\r");
    terminal.shows("plan mode: on");
    let project = text(&world.path("project"));
    world.ok(&["--workspace", &project, "chat", "-m", "/plan off"]);
    for shown in [1, 2] {
        terminal.types("/plan\r");
        terminal.until("plan mode is shown", |terminal| count(terminal, "plan mode: off") == shown);
    }
    fs::write(world.path("project/over"), "").unwrap();
    terminal.shows("That was it.");
    terminal.at_prompt();
    terminal.types("/plan\r");
    terminal.until("plan mode is shown", |terminal| count(terminal, "plan mode: off") == 3);
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(count(&terminal, "as another process set it"), 1, "{}", terminal.contents());
    assert!(world.path("project/a.md").exists(), "{}", terminal.contents());
    let plan = world.run(&["--workspace", &project, "chat", "-m", "/plan"]).out;
    assert!(plan.starts_with("plan mode: off"), "{plan}");
}

#[test]
fn a_turn_that_began_in_plan_mode_keeps_it_and_says_so() {
    let world = world(&[
        calls(&json!([{"name": "exec", "arguments": {"command": WAITS}}])),
        calls(&json!([{"name": "write", "arguments": {"path": "a.md", "content": "A.\n"}}])),
        json!({"text": "That was it."}),
    ]);
    let project = text(&world.path("project"));
    let mut terminal = Terminal::start(world.command(&["--workspace", &project, "chat", "--plan"]));
    terminal.at_prompt();
    terminal.types("Do it.\r");
    terminal.shows("touch begun");
    for (plan, told) in [("off", 1), ("on", 1), ("off", 2)] {
        terminal.types(&format!("/plan {plan}\r"));
        terminal.until("it is said", |terminal| {
            let contents = terminal.contents();
            let is_set = contents
                .rfind("plan mode: ")
                .is_some_and(|at| contents[at..].starts_with(&format!("plan mode: {plan}")));
            is_set && contents.matches("keeps it to its end").count() == told
        });
    }
    fs::write(world.path("project/over"), "").unwrap();
    terminal.shows("That was it.");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert!(!world.path("project/a.md").exists(), "{}", terminal.contents());
}

#[test]
fn what_only_shows_answers_beside_the_turn_and_what_changes_waits() {
    let (world, mut terminal) = conversing_over_a_command();
    terminal.types("/redo\r");
    terminal.shows("this waits until the turn is done");
    for (command, shown) in [
        ("/help stop", "stop the turn"),
        ("/status", "window"),
        ("/history", "Do it."),
        ("/tools", "exec"),
        ("/diff", "no tool changed a file here"),
        ("/cost", "$0.00 this month"),
        ("/context", "sent next:"),
        ("/doctor", "full: commands run behind all walls"),
    ] {
        terminal.types(&format!("{command}\r"));
        terminal.shows(&format!("> {command}"));
        terminal.shows(shown);
    }
    assert!(!terminal.contents().contains("That was it."), "{}", terminal.contents());
    fs::write(world.path("project/over"), "").unwrap();
    terminal.shows("That was it.");
    terminal.shows("main> /redo");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn what_names_a_skill_waits_for_a_turn_of_its_own() {
    let (world, mut terminal) = conversing_over_a_command();
    fs::create_dir_all(world.path("home/skills/paint")).unwrap();
    let skill = "---\nname: paint\ndescription: Paints.\n---\nPaint it blue.\n";
    fs::write(world.path("home/skills/paint/SKILL.md"), skill).unwrap();
    terminal.types("It costs $5, and $nothing.\r");
    terminal.shows("this joins the turn");
    for says in ["Use $paint.\r", "/queue Use $paint again.\r"] {
        terminal.types(says);
        terminal.until(says, |terminal| {
            terminal.contents().matches("this waits until the turn is done").count()
                > usize::from(says.starts_with('/'))
        });
    }
    fs::write(world.path("project/over"), "").unwrap();
    terminal.shows("the text of the skill paint goes with the message");
    terminal.types("\x04");
    terminal.ended();
}

/// Reads events of a process until one has this text, which it returns with those before it.
pub(crate) fn events_until(events: &mut impl BufRead, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        assert!(events.read_line(&mut read).unwrap() > 0, "{read}");
    }
    read
}

/// What came of the two: all lines of the first's events, the result of the second, and what the first told its reader.
struct Joined {
    world: World,
    events: String,
    second: Value,
    told: String,
}

impl Joined {
    /// A turn whose model says this, and another client whose message joins it while its first command runs. `does` is
    /// done when the command goes on.
    fn new(lines: &[Value], second: &[&str], does: impl FnOnce(&World)) -> Self {
        let command = calls(&json!([{"name": "exec", "arguments": {"command": WAITS}}]));
        let world = world(&[&[command], lines].concat());
        let mut first = says(&world, &["chat", "-m", "Do it.", "--events"]);
        wait_until("the command does not run", || world.path("project/begun").exists());
        let second = says(&world, &[&["--json", "chat", "-m", "Use tabs."], second].concat());
        let mut reader = BufReader::new(first.stdout.take().unwrap());
        let mut events = events_until(&mut reader, r#""event":"queued""#);
        fs::write(world.path("project/over"), "").unwrap();
        does(&world);
        let second = second.wait_with_output().unwrap();
        let second = serde_json::from_slice(&second.stdout).unwrap_or_else(|_| panic!("{second:?}"));
        reader.read_to_string(&mut events).unwrap();
        let told = String::from_utf8(first.wait_with_output().unwrap().stderr).unwrap();
        Self { world, events, second, told }
    }

    /// The nodes of what was said by the first and by the second: each is told its own.
    fn said(&self) -> (Value, Value) {
        let nodes = crate::tools::nodes(&self.world);
        let said = |text: &str| nodes.iter().find(|node| node["text"] == text).unwrap()["id"].clone();
        (said("Do it."), said("Use tabs."))
    }

    /// The result of the first.
    fn first(&self) -> Value {
        serde_json::from_str(self.events.lines().last().unwrap()).unwrap()
    }
}

#[test]
fn what_another_client_says_joins_a_turn_that_hands_back_at_its_next_model_call() {
    let answer = json!({"text": "With tabs.", "expect": "Use tabs."});
    let joined = Joined::new(&[answer], &[], |_| {});
    assert_eq!(joined.second["text"], "With tabs.", "{}", joined.second);
    assert_eq!(joined.first()["text"], "With tabs.", "{}", joined.events);
    assert_eq!((joined.first()["said"].clone(), joined.second["said"].clone()), joined.said());
    assert!(joined.told.contains("main> (another process) Use tabs."), "{}", joined.told);
}

#[test]
fn what_joined_behind_an_answer_has_no_answer_where_its_request_fails() {
    let joined = Joined::new(&[json!({"fault": "500"})], &[], |_| {});
    let (first, second) = (joined.first(), &joined.second);
    assert_eq!(second["error"]["code"], "server_unavailable", "{second}");
    assert_eq!((&second["node"], &second["text"]), (&Value::Null, &Value::Null), "{second}");
    assert_eq!(first["error"]["code"], "server_unavailable", "{first}");
    assert!(first["node"].is_string() && first["calls"][0]["status"] == "ok", "{first}");
    assert_eq!((first["said"].clone(), second["said"].clone()), joined.said(), "{first} {second}");
}

#[test]
fn who_waits_for_answers_and_joins_a_turn_is_asked_by_it() {
    let lines = [
        calls(&json!([{"name": "write", "arguments": {"path": "AGENTS.md", "content": "Use tabs.\n"}}])),
        json!({"text": "Done."}),
    ];
    let joined = Joined::new(&lines, &["--wait", "60"], |world| {
        let asked = || world.json(&["approvals", "list"]).1["approvals"][0]["id"].clone();
        wait_until("nothing is asked", || asked().is_string());
        world.ok(&["approve", asked().as_str().unwrap()]);
    });
    assert_eq!(joined.second["text"], "Done.", "{}", joined.second);
    assert!(joined.world.path("project/AGENTS.md").exists(), "{}", joined.events);
}

#[test]
fn what_is_said_with_other_folders_waits_for_a_turn_of_its_own() {
    for folders in [&["--allow", "lib"][..], &["--no-restrict"]] {
        let world = world(&[
            calls(&json!([{"name": "exec", "arguments": {"command": WAITS}}])),
            json!({"text": "Done."}),
        ]);
        let lib = text(&world.path("lib"));
        fs::create_dir(&lib).unwrap();
        let folders: Vec<&str> =
            folders.iter().map(|word| if *word == "lib" { lib.as_str() } else { word }).collect();
        let first = says(&world, &["chat", "-m", "Do it.", "--events"]);
        wait_until("the command does not run", || world.path("project/begun").exists());
        let second = [&["chat", "-m", "Use tabs.", "--events"], &folders[..]].concat();
        let mut second = says(&world, &second);
        let mut reader = BufReader::new(second.stdout.take().unwrap());
        events_until(&mut reader, "waiting for ");
        fs::write(world.path("project/over"), "").unwrap();
        let events = String::from_utf8(first.wait_with_output().unwrap().stdout).unwrap();
        assert!(!events.contains("queued") && !events.contains("Use tabs."), "{events}");
        let mut events = String::new();
        reader.read_to_string(&mut events).unwrap();
        assert!(second.wait().unwrap().success(), "{events}");
        let said: Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
        assert_eq!((&said["text"], &said["calls"][0]["tool"]), (&json!("Done."), &json!("exec")), "{events}");
    }
}

/// What a turn said, in the middle of whose first command something is done.
fn said_over_a_command(does: &[&str]) -> (World, Value) {
    let world = world(&[
        calls(&json!([{"name": "exec", "arguments": {"command": WAITS}}])),
        calls(&json!([{"name": "write", "arguments": {"path": "a.md", "content": "A.\n"}}])),
        json!({"text": "Done."}),
    ]);
    let child = turn(&world);
    wait_until("the command does not run", || world.path("project/begun").exists());
    let project = text(&world.path("project"));
    world.ok(&[&["--workspace", &project], does].concat());
    fs::write(world.path("project/over"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (world, said)
}

/// A turn that waits for the answer to a question about a protected file, and goes on with a command.
fn asking() -> (World, Child, String) {
    let world = world(&[
        calls(&json!([{"name": "write", "arguments": {"path": "AGENTS.md", "content": "Be bold.\n"}}])),
        calls(&json!([{"name": "exec", "arguments": {"command": "touch more"}}])),
        json!({"text": "Done."}),
    ]);
    let child = turn(&world);
    let asked = || world.json(&["approvals", "list"]).1["approvals"][0]["id"].clone();
    wait_until("nothing is asked", || asked().is_string());
    let id = asked().as_str().unwrap().to_owned();
    (world, child, id)
}

fn results(world: &World) -> String {
    crate::tools::nodes(world).iter().map(|node| format!("{}\n", node["text"])).collect()
}

#[test]
fn a_rule_that_denies_holds_for_the_next_call_of_a_turn_that_runs() {
    let (world, said) = said_over_a_command(&["policy", "deny", "write"]);
    assert_eq!(said["text"], "Done.", "{said}");
    assert!(!world.path("project/a.md").exists());
    assert!(results(&world).contains("write was not run: rule 1 (deny write)"), "{}", results(&world));
}

#[test]
fn plan_mode_holds_for_the_next_call_of_a_turn_that_runs() {
    let (world, said) = said_over_a_command(&["chat", "-m", "/plan on"]);
    assert_eq!(said["text"], "Done.", "{said}");
    assert!(!world.path("project/a.md").exists());
    assert!(results(&world).contains("write was not run: plan mode is on"), "{}", results(&world));
}

#[test]
fn no_command_runs_in_a_folder_that_was_put_in_the_place_of_the_workspace() {
    let world = world(&[
        calls(&json!([{"name": "exec", "arguments": {"command": WAITS}}])),
        calls(&json!([{"name": "exec", "arguments": {"command": "touch b"}}])),
        json!({"text": "Done."}),
    ]);
    let (project, moved) = (world.path("project"), world.path("moved"));
    let child = turn(&world);
    wait_until("the command does not run", || project.join("begun").exists());
    fs::rename(&project, &moved).unwrap();
    fs::create_dir(&project).unwrap();
    fs::write(moved.join("over"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(!project.join("b").exists() && !moved.join("b").exists(), "{output:?}");
    assert!(results(&world).contains("is not the folder that was opened"), "{}", results(&world));
}

#[test]
fn what_else_is_said_meanwhile_stops_no_call() {
    let (world, said) = said_over_a_command(&["policy", "deny", "delete"]);
    assert_eq!(said["text"], "Done.", "{said}");
    assert!(world.path("project/a.md").exists(), "{}", results(&world));
}

#[test]
fn a_yes_after_a_rule_or_plan_mode_runs_nothing() {
    for does in [&["policy", "deny", "write"][..], &["chat", "-m", "/plan on"], &["policy", "deny", "delete"]]
    {
        let (world, child, id) = asking();
        let project = text(&world.path("project"));
        world.ok(&[&["--workspace", &project], does].concat());
        world.ok(&["approve", &id]);
        let output = child.wait_with_output().unwrap();
        let is_control = does.contains(&"delete");
        assert_eq!(world.path("project/AGENTS.md").exists(), is_control, "{does:?} {output:?}");
        let void = "what it may do was changed while it was asked about";
        assert_eq!(results(&world).contains(void), !is_control, "{}", results(&world));
    }
}

#[test]
fn a_turn_that_waits_for_an_answer_ends_with_its_tree_when_that_is_purged() {
    let (world, child, _) = asking();
    let (_, trees) = world.json(&["tree", "list"]);
    let tree = trees["trees"][0]["short_id"].as_str().unwrap().to_owned();
    world.ok(&["tree", "purge", &tree, "--yes", "--yes"]);
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    assert!(!world.path("project/AGENTS.md").exists() && !world.path("project/more").exists(), "{output:?}");
    assert_eq!(world.json(&["tree", "list"]).1["trees"], json!([]));
}
