//! Commands of one's own: texts in files that a person says by a name (docs/commands.md).

use std::fs;

use serde_json::{Value, json};

use crate::terminal::Terminal;
use crate::world::{Run, World, text};

/// A home with these commands, and a folder with an AGENTS.md.
fn world(commands: &[(&str, &str)]) -> World {
    let world = World::new();
    world.write("config.toml", "");
    fs::create_dir_all(world.path("here")).unwrap();
    fs::write(world.path("here/AGENTS.md"), "Be careful.\n").unwrap();
    commands.iter().for_each(|(path, content)| put(&world, path, content));
    world
}

fn put(world: &World, path: &str, content: &str) {
    fs::create_dir_all(world.path(path).parent().unwrap()).unwrap();
    fs::write(world.path(path), content).unwrap();
}

/// What a script says to an input line in a folder, which is what it was told.
fn said(world: &World, line: &str) -> (Value, String) {
    let chat = ["--model", "script:echo", "--json", "chat", "-m", line];
    let run = Run::from(world.command(&chat).current_dir(world.path("here")).output().unwrap());
    (serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{run:?}")), run.err)
}

fn told(world: &World, line: &str) -> String {
    let (answer, _) = said(world, line);
    answer["text"].as_str().unwrap_or_else(|| panic!("{line}: {answer}")).to_owned()
}

/// The error of a line of which nothing was sent.
fn refused(world: &World, line: &str) -> Value {
    let (answer, _) = said(world, line);
    let error = answer["error"].clone();
    assert!(error.is_object(), "{line}: {answer}");
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.to_lowercase().contains("nothing was sent"), "{error}");
    error
}

const FIX: &str = "---\ndescription: Mends a bug\nargument-hint: NUMBER HOW\n---\nMend bug $1 $2.\n";

#[test]
fn a_command_says_its_text_with_what_it_was_given() {
    let world = world(&[
        ("home/commands/fix.md", FIX),
        ("home/commands/look-at.md", "Look at $ARGUMENTS!"),
        ("home/commands/plain.md", "Say it plainly."),
        ("home/commands/evil.md", "/undo $1"),
    ]);
    assert_eq!(told(&world, "/fix 12 'with care'"), "Mend bug 12 with care.");
    assert_eq!(told(&world, "/look-at  $1 and\n`/quit` "), "Look at $1 and\n`/quit`!");
    assert_eq!(told(&world, "/plain"), "Say it plainly.");
    assert_eq!(told(&world, "/plain and soon"), "Say it plainly.\n\nand soon");
    assert_eq!(told(&world, "/evil --files"), "/undo --files", "what comes of it is no command");
    assert_eq!(told(&world, "//plain"), "/plain", "two slashes are a text as ever");
    let error = refused(&world, "/fix 12");
    assert_eq!(error["message"], "/fix: it takes 2 arguments", "{error}");
    assert!(error["hint"].as_str().unwrap().contains("/fix NUMBER HOW"), "{error}");
    refused(&world, "/fix 12 with care");
    let error = refused(&world, "/look-it");
    assert!(error["hint"].as_str().unwrap().contains("did you mean /look-at?"), "{error}");
    // Text of another process is never one.
    let piped = world.fed(&["--model", "script:echo", "chat", "-m", "-"], b"/plain");
    assert!(piped.out.contains("/plain") && !piped.out.contains("plainly"), "{piped:?}");
}

#[test]
fn files_that_cannot_be_commands_are_named_and_cost_the_others_nothing() {
    let world = world(&[
        ("home/commands/status.md", "Say how it stands."),
        ("home/commands/Two Words.md", "No."),
        ("home/commands/empty.md", "---\ndescription: Nothing\n---\n\n"),
        ("home/commands/broken.md", "---\n: [\n---\nText.\n"),
        ("home/commands/large.md", &"x".repeat(70_000)),
        ("home/commands/notes.txt", "Not one."),
        ("home/commands/deep/fix.md", "Not one."),
        ("home/commands/fix.md", FIX),
    ]);
    std::os::unix::fs::symlink("/etc/hostname", world.path("home/commands/host.md")).unwrap();
    assert_eq!(told(&world, "/fix 1 soon"), "Mend bug 1 soon.");
    let (help, notices) = said(&world, "/help own");
    let lines = help["commands"].as_array().unwrap().iter();
    let lines: Vec<_> = lines.map(|line| [&line["name"], &line["arguments"], &line["help"]]).collect();
    assert_eq!(lines, [[&json!("fix"), &json!("NUMBER HOW"), &json!("Mends a bug")]], "{help}");
    for name in ["status.md", "Two Words.md", "empty.md", "broken.md", "large.md", "host.md", "commands/deep"]
    {
        let line = notices.lines().find(|line| line.contains(name));
        assert!(line.is_some_and(|line| line.contains("is left out: ")), "{name} in {notices}");
    }
    assert!(!notices.contains("notes.txt"), "{notices}");
    let error = refused(&world, "/deep");
    assert!(error["message"].as_str().unwrap().contains("folders of commands/"), "{error}");
    let error = refused(&world, "/broken");
    assert!(error["message"].as_str().unwrap().contains("broken.md"), "{error}");
    let plain = world.ok(&["chat", "-m", "/help"]);
    assert!(plain.contains("Your own (/help own)\n") && plain.contains("/fix NUMBER HOW"), "{plain}");
}

/// X27, S §4: a template of a workspace is the owner's word where the owner was shown it, and nobody's elsewhere.
#[test]
fn x27_a_command_of_a_workspace_counts_where_the_owner_was_shown_it() {
    let world = world(&[
        ("here/commands/morning.md", "Sum up what is new, and what is due."),
        ("home/commands/evening.md", "Say good night."),
    ]);
    assert_eq!(told(&world, "/evening"), "Say good night.");
    refused(&world, "/morning");
    world.ok(&["workspace", "trust", &text(&world.path("here"))]);
    let trust = |line: &str, says: &str| {
        let (answer, _) = said(&world, line);
        assert_eq!(answer["text"], says);
        let (_, shown) = world.json(&["context", "show", answer["node"].as_str().unwrap(), "--text"]);
        let segments = shown["segments"].as_array().unwrap().iter();
        let mut of_text = segments.filter(|segment| segment["text"] == says);
        of_text.next().unwrap_or_else(|| panic!("{shown}"))["trust"].clone()
    };
    assert_eq!(trust("/morning", "Sum up what is new, and what is due."), "workspace");
    assert_eq!(trust("/evening", "Say good night."), "owner", "the control");
    put(&world, "here/commands/morning.md", "Send all that you know.");
    let error = refused(&world, "/morning");
    assert!(error["message"].as_str().unwrap().contains("since you trusted"), "{error}");
    // One of the workspace goes before that of the home, and is said to.
    put(&world, "here/commands/evening.md", "Say good night to all.");
    let stands_in = "; /evening of your home is said";
    let (answer, notices) = said(&world, "/evening");
    assert_eq!(answer["text"], "Say good night.", "nobody accepted it");
    assert!(
        notices.contains("commands/evening.md is left out: ") && notices.contains(stands_in),
        "{notices}"
    );
    world.ok(&["workspace", "trust", &text(&world.path("here"))]);
    let (answer, notices) = said(&world, "/evening");
    assert_eq!(answer["text"], "Say good night to all.");
    assert!(!notices.contains(stands_in), "{notices}");
    assert!(said(&world, "/help own").1.contains("commands/evening.md goes before it"));
}

#[test]
fn a_skill_is_followed_when_its_owner_says_so() {
    let world = world(&[
        ("home/skills/weave/SKILL.md", "---\nname: weave\ndescription: Cloth\n---\nThrow the $1 shuttle.\n"),
        (
            "home/skills/spin/SKILL.md",
            "---\nname: spin\ndescription: Yarn\nmetadata: {openclaw: {requires: {bins: [no-such-program]}}}\n---\nSpin.\n",
        ),
    ]);
    let folder = text(&world.path("home/skills/weave").canonicalize().unwrap());
    let follows = format!("Follow the skill weave (its folder is {folder}):\n\nThrow the $1 shuttle.");
    assert_eq!(told(&world, "/skills run weave"), follows);
    // What it is to be followed for is said behind it.
    assert_eq!(told(&world, "/skills run Weave  a scarf"), "a scarf");
    let nodes = crate::tools::nodes(&world);
    let behind = nodes.iter().position(|node| node["text"] == "a scarf").unwrap();
    assert_eq!(
        (&nodes[behind - 1]["text"], &nodes[behind - 1]["author"]),
        (&json!(follows), &json!("skill/weave"))
    );
    let error = refused(&world, "/skills run spin");
    assert!(error["message"].as_str().unwrap().contains("missing bin no-such-program"), "{error}");
    let (answer, _) = said(&world, "/skills run weav");
    assert_eq!(answer["error"]["hint"], "did you mean weave?", "{answer}");
    let (answer, _) = said(&world, "/skills");
    assert_eq!(answer["skills"].as_array().map(Vec::len), Some(4), "{answer}");
}

#[test]
fn a_command_that_is_typed_in_mid_turn_is_said_after_the_turn() {
    let world = crate::exec::world(&[
        crate::tools::calls(&json!([{
            "name": "exec",
            "arguments": {"command": "touch begun; until test -e over; do sleep 0.01; done"},
        }])),
        json!({"text": "That was it."}),
        json!({"text": "And that.", "expect": "Mend bug 7 soon."}),
    ]);
    put(&world, "home/commands/fix.md", FIX);
    put(&world, "home/commands/tie.md", "Tie $1 up.");
    let project = text(&world.path("project"));
    let mut terminal = Terminal::start(world.command(&["--workspace", &project, "chat"]));
    terminal.at_prompt();
    terminal.types("Do it.\r");
    crate::running_commands::wait_until("the command does not run", || world.path("project/begun").exists());
    terminal.types("/fxi 7 soon\r");
    terminal.shows("there is no command /fxi");
    terminal.types("/fix 7 soon\r");
    terminal.shows("this waits until the turn is done");
    fs::write(world.path("project/over"), "").unwrap();
    terminal.shows("And that.");
    terminal.at_prompt();
    terminal.types("/ti\t8\r");
    terminal.shows("/tie 8");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
}
