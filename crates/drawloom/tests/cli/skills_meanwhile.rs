//! Skills that came, changed or went while a conversation was open: what counts by then is followed (docs/skills.md).

use std::fs;
use std::io::{BufReader, Read as _};

use serde_json::{Value, json};

use crate::exec::world;
use crate::mid_turn::{WAITS, events_until, says};
use crate::running_commands::wait_until;
use crate::skills::skill;
use crate::terminal::Terminal;
use crate::tools::{calls, nodes};
use crate::world::text;

const WRITE: &str = "note.md";

fn write() -> Value {
    calls(&json!([{"name": "write", "arguments": {"path": WRITE, "content": "x"}}]))
}

/// What a conversation wrote in a turn with this message, and when that was asked again. The skill has the first text when
/// the conversation begins, and the second one when the message is said.
fn wrote(skills: [Option<&str>; 2], message: &str, first: Option<Value>) -> ([bool; 2], String) {
    let lines = [Some(json!({"text": "One."})), first, Some(write()), Some(json!({"text": "Two."}))];
    let again = [write(), json!({"text": "Three."})];
    let world = world(&lines.into_iter().flatten().chain(again).collect::<Vec<_>>());
    let project = world.path("project");
    let becomes = |more: Option<&str>| match more {
        Some(more) => skill(&world, "project/skills/paint", more),
        None => fs::remove_dir_all(project.join("skills")).unwrap_or_default(),
    };
    becomes(skills[0]);
    let mut terminal = Terminal::start(world.command(&["--workspace", &text(&project), "chat"]));
    terminal.at_prompt();
    terminal.types("Go.\r");
    terminal.shows("One.");
    terminal.at_prompt();
    becomes(skills[1]);
    let wrote = [(message, "Two."), ("/retry", "Three.")].map(|(says, answer)| {
        terminal.types(&format!("{says}\r"));
        terminal.shows(answer);
        terminal.at_prompt();
        let wrote = project.join(WRITE).exists();
        let _ = fs::remove_file(project.join(WRITE));
        wrote
    });
    let contents = terminal.contents();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    (wrote, contents)
}

#[test]
fn a_skill_that_is_named_narrows_by_the_text_that_goes_along() {
    let (narrow, free) = ("allowed-tools: Read\n", "");
    for (skills, allows) in [
        ([None, Some(narrow)], false),
        ([Some(free), Some(narrow)], false),
        ([None, Some(free)], true),
        ([Some(narrow), Some(free)], true),
    ] {
        let (wrote, contents) = wrote(skills, "Do $paint now.", None);
        assert!(contents.contains("the text of the skill paint goes with the message"), "{contents}");
        assert_eq!(wrote, [allows; 2], "{skills:?}: {contents}");
    }
}

#[test]
fn a_skill_whose_file_is_read_narrows_as_it_counts_by_then() {
    let read = calls(&json!([{"name": "read", "arguments": {"path": "skills/paint/SKILL.md"}}]));
    let (narrow, free) = ("allowed-tools: Read\n", "");
    for (skills, allows) in [
        ([None, Some(narrow)], false),
        ([Some(free), Some(narrow)], false),
        ([Some(narrow), Some(free)], true),
    ] {
        let (wrote, contents) = wrote(skills, "Paint.", Some(read.clone()));
        assert_eq!(wrote, [allows; 2], "{skills:?}: {contents}");
    }
}

/// A text that takes the place of another brings no skill, and says so; what stands above it is followed as before.
#[test]
fn a_text_that_is_edited_says_which_skills_it_does_not_follow() {
    let told = "the skill paint is not followed: a text that takes the place of another one brings none";
    let lines = ["One.", "Two.", "Three.", "Four."].map(|text| json!({"text": text}));
    let world = world(&lines);
    skill(&world, "project/skills/paint", "allowed-tools: Read\n");
    let project = text(&world.path("project"));
    for (message, is_told) in [
        ("Go.", false),
        ("/edit Do $paint.", true),
        ("Do $paint.", false),
        ("/edit Do $paint, and more.", false),
    ] {
        let run = world.run(&["--workspace", &project, "chat", "-m", message]);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(run.err.contains(told), is_told, "{message}: {run:?}");
    }
}

#[test]
fn a_message_of_another_process_that_names_a_skill_waits_for_a_turn_of_its_own() {
    let world = world(&[
        calls(&json!([{"name": "exec", "arguments": {"command": WAITS}}])),
        json!({"text": "Done."}),
    ]);
    // One of the workspace is not offered while a command runs there.
    skill(&world, "home/skills/paint", "allowed-tools: Read\n");
    let first = says(&world, &["chat", "-m", "Do it.", "--events"]);
    wait_until("the command does not run", || world.path("project/begun").exists());
    let mut second = says(&world, &["chat", "-m", "Use $paint.", "--events"]);
    let mut reader = BufReader::new(second.stdout.take().unwrap());
    events_until(&mut reader, "waiting for ");
    fs::write(world.path("project/over"), "").unwrap();
    let events = String::from_utf8(first.wait_with_output().unwrap().stdout).unwrap();
    assert!(!events.contains("queued") && !events.contains("paint"), "{events}");
    let mut events = String::new();
    reader.read_to_string(&mut events).unwrap();
    assert!(second.wait().unwrap().success(), "{events}");
    // Its own turn is asked as the first one was, and the command is denied.
    let said: Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    let denied = said["denied"].as_array().map(Vec::len);
    assert_eq!((&said["text"], denied), (&json!("Done."), Some(1)), "{events}");
}

fn list(query: &str) -> Value {
    calls(&json!([{"name": "list_skills", "arguments": {"query": query}}]))
}

/// Where there is no list, none of the skills is said to be missing in it.
#[test]
fn a_skill_for_which_no_list_has_room_is_found_and_not_said_to_be_missing_in_it() {
    let world = world(&[list("brand"), json!({"text": "One."})]);
    let config = fs::read_to_string(world.home().join("config.toml")).unwrap();
    world.write("config.toml", &config.replace("\"write\"]", "\"write\", \"list_skills\"]"));
    for number in 0..300 {
        skill(&world, &format!("home/skills/{number:0>64}"), "");
    }
    skill(&world, "home/skills/brand-new", "");
    let run = world.run(&["--workspace", &text(&world.path("project")), "chat", "--new", "-m", "Go."]);
    assert!(run.err.contains("the list of skills is left out: there is no room"), "{run:?}");
    let result = nodes(&world).into_iter().find(|node| node["author"] == "list_skills").unwrap();
    let said = result["text"].as_str().unwrap();
    assert!(said.starts_with("- brand-new (") && !said.contains("not in your list"), "{said}");
}

/// What the list has no room for is found by a tool.
#[test]
fn a_skill_that_came_since_is_found_by_the_tool_that_lists_skills() {
    let world = world(&[list("brand"), json!({"text": "One."}), list("brand"), json!({"text": "Two."})]);
    let config = fs::read_to_string(world.home().join("config.toml")).unwrap();
    world.write("config.toml", &config.replace("\"write\"]", "\"write\", \"list_skills\"]"));
    let project = text(&world.path("project"));
    let mut terminal = Terminal::start(world.command(&["--workspace", &project, "chat"]));
    terminal.at_prompt();
    terminal.types("Go.\r");
    terminal.shows("One.");
    terminal.at_prompt();
    skill(&world, "project/skills/brand-new", "");
    skill(&world, "project/skills/brand-hidden", "disable-model-invocation: true\n");
    skill(&world, "project/skills/brand-off", "");
    world.ok(&["--workspace", &project, "skills", "disable", "brand-off"]);
    terminal.types("Go on.\r");
    terminal.shows("Two.");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    let results: Vec<Value> =
        nodes(&world).into_iter().filter(|node| node["author"] == "list_skills").collect();
    let said: Vec<&str> = results.iter().map(|node| node["text"].as_str().unwrap()).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("no skill of 2 has these words"), "{said:?}");
    let new = "- brand-new (skills/brand-new/SKILL.md) [not in your list]: When brand-new is to be done";
    assert!(said[1].contains(new) && !said[1].contains("brand-hidden"), "{said:?}");
}
