//! `files diff`, `history` and `restore`, `tree undo` and `redo` with `--files`, and `tools list`.

use std::fs;

use serde_json::{Value, json};

use crate::file_tools::say;
use crate::tools::{calls, chat, writing};
use crate::world::{Run, World};

fn write(path: &str, content: &str) -> Value {
    json!({"name": "write", "arguments": {"path": path, "content": content}})
}

/// A command in the workspace of the session, as JSON.
fn command(world: &World, arguments: &[&str]) -> (Option<i32>, Value) {
    let project = world.path("project");
    world.json(&[&["--workspace", project.to_str().unwrap()], arguments].concat())
}

fn plain(world: &World, arguments: &[&str]) -> String {
    let project = world.path("project");
    let ran = world.run(&[&["--workspace", project.to_str().unwrap()], arguments].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.out + &ran.err
}

#[test]
fn files_that_tools_changed_are_shown_listed_and_restored_from_the_command_line() {
    let world = writing(
        &[
            calls(&json!([
                write("notes.md", "one\n"),
                json!({"name": "move", "arguments": {"from": "src/main.rs", "to": "src/lib.rs"}})
            ])),
            json!({"text": "Made."}),
        ],
        "",
    );
    let project = world.path("project");
    let read = |name: &str| fs::read_to_string(project.join(name)).ok();
    assert_eq!(command(&world, &["files", "diff"]).0, Some(3), "nothing was said yet");
    assert_eq!(chat(&world, "Make it.").0, Some(0));
    world.write(
        "lines.jsonl",
        &format!("{}\n{}\n", calls(&json!([write("notes.md", "two\nthree\n")])), json!({"text": "Changed."})),
    );
    assert_eq!(chat(&world, "Change it.").0, Some(0));

    let (_, shown) = command(&world, &["files", "diff", "--session", "main"]);
    let change = |path: &str| {
        let changes = shown["changes"].as_array().unwrap();
        changes
            .iter()
            .find(|change| change["path"] == path)
            .unwrap_or_else(|| panic!("{path}: {shown}"))
            .clone()
    };
    let notes = change("notes.md");
    assert_eq!((&notes["kind"], &notes["added"], &notes["removed"]), (&json!("new"), &json!(2), &json!(0)));
    assert_eq!((notes["by"].as_array().unwrap().len(), &notes["kept"]), (2, &json!(true)));
    let moved = change("src/lib.rs");
    assert_eq!((&moved["kind"], &moved["moved_from"]), (&json!("moved"), &json!("src/main.rs")));

    let (_, history) = command(&world, &["files", "history", "notes.md"]);
    let versions = history["versions"].as_array().unwrap().clone();
    let told: Vec<_> =
        versions.iter().map(|version| (&version["was"], &version["bytes"], &version["kept"])).collect();
    assert_eq!(
        told,
        [(&json!("file"), &json!(4), &json!(true)), (&json!("nothing"), &Value::Null, &json!(true))]
    );
    let (newest, first) = (versions[0]["node"].as_str().unwrap(), versions[1]["node"].as_str().unwrap());
    let (_, turn) = command(&world, &["files", "diff", "--turn", newest]);
    assert_eq!(
        (turn["changes"].as_array().unwrap().len(), &turn["changes"][0]["kind"]),
        (1, &json!("changed"))
    );
    assert!(
        plain(&world, &["files", "history", "notes.md"]).contains(versions[0]["short_id"].as_str().unwrap())
    );
    assert_eq!(command(&world, &["files", "history", "nothing.md"]).0, Some(3));

    // Nobody can be asked, and no yes was given.
    assert_eq!(command(&world, &["files", "restore", "notes.md"]).0, Some(4));
    assert_eq!(read("notes.md").as_deref(), Some("two\nthree\n"));
    let told = plain(&world, &["files", "restore", "notes.md", "--yes"]);
    assert_eq!(read("notes.md").as_deref(), Some("one\n"));
    assert!(told.contains("`drawloom tree redo 'Make it.' --files` takes it again"), "{told}");
    plain(&world, &["tree", "redo", "Make it.", "--files"]);
    assert_eq!(read("notes.md").as_deref(), Some("two\nthree\n"));
    let (code, done) = command(&world, &["files", "restore", "notes.md", "--at", first, "--yes"]);
    assert_eq!((code, &done["given"]), (Some(0), &json!(["notes.md"])));
    assert_eq!(read("notes.md"), None);
    // From a folder in the workspace a file is named as it is there.
    let arguments = ["--workspace", project.to_str().unwrap(), "files", "restore", "main.rs", "--yes"];
    let done: Run = world.command(&arguments).current_dir(project.join("src")).output().unwrap().into();
    assert!(done.out.contains("src/main.rs"), "{done:?}");
    assert!(read("src/main.rs").is_some());
}

#[test]
fn a_tree_gives_back_files_and_takes_them_again_as_a_conversation_does() {
    let world = writing(&[calls(&json!([write("one.txt", "1\n")])), json!({"text": "Made."})], "");
    let one = world.path("project/one.txt");
    assert_eq!(chat(&world, "Make it.").0, Some(0));
    let (_, trees) = world.json(&["tree", "list"]);
    let tree = trees["trees"][0]["short_id"].as_str().unwrap().to_owned();
    let nodes = |world: &World| world.json(&["tree", "show", &tree]).1["nodes"].as_array().unwrap().len();
    let before = nodes(&world);
    let (code, done) = command(&world, &["tree", "undo", &tree, "--files"]);
    assert_eq!((code, &done["given"], one.exists()), (Some(0), &json!(["one.txt"]), false));
    assert_eq!(nodes(&world), before, "the tree is as it was");
    assert!(
        plain(&world, &["files", "diff"]).contains("`drawloom tree redo 'Make it.' --files` takes it again")
    );
    assert_eq!(command(&world, &["tree", "redo", &tree, "--files"]).1["given"], json!(["one.txt"]));
    assert!(one.exists());
    assert!(say(&world, "/undo --files").err.contains("/redo --files"));
}

#[test]
fn the_tools_of_a_session_are_listed_with_what_is_decided_on_them() {
    let policy = "[[policy.rules]]\ndecision = \"ask\"\ntool = [\"write\"]\n[tools.count]\ncommand = \"wc\"\n\
                  description = \"Counts.\"\neffects = [\"read\"]\nschema = '{\"type\": \"object\"}'\n";
    let world = writing(&[], policy);
    let config = fs::read_to_string(world.home().join("config.toml")).unwrap();
    world.write("config.toml", &config.replacen("\"write\"]", "\"write\", \"count\"]", 1));
    let (code, found) = command(&world, &["tools", "list"]);
    assert_eq!(code, Some(0), "{found}");
    let tool = |name: &str| {
        let tools = found["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name}: {found}")).clone()
    };
    assert_eq!((&tool("read")["source"], &tool("read")["policy"]), (&json!("built_in"), &json!("allow")));
    assert_eq!(
        (&tool("write")["effects"], &tool("write")["policy"]),
        (&json!(["read", "write"]), &json!("ask"))
    );
    assert_eq!(tool("count")["source"], "configuration");
    assert!(found["others"].as_array().unwrap().contains(&json!("exec")));
    assert!(plain(&world, &["tools", "list"]).contains("read, write · ask"));
}
