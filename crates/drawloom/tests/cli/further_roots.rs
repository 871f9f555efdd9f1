//! `--allow`: folders that tools and commands reach beside the workspace.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::exec::{exec, world as exec_world};
use crate::file_tools::say;
use crate::tools::{calls, nodes};
use crate::world::{Run, World};

/// A world whose model calls these tools in one turn, with a folder `lib` beside the workspace.
fn world(called: &Value, expect: &[&str]) -> World {
    let world = exec_world(&[calls(called), json!({"text": "Done.", "expect": expect})]);
    fs::create_dir_all(world.path("lib/d")).unwrap();
    fs::write(world.path("lib/d/lib.rs"), "fn thread() {}\n").unwrap();
    world
}

fn canonical(world: &World, path: &str) -> String {
    world.path(path).canonicalize().unwrap().to_str().unwrap().to_owned()
}

/// A world needs its folder before a call can name it: the calls by the canonical path of `lib`.
fn world_in_lib(called: impl Fn(&str) -> Value, expect: &[&str]) -> World {
    let world = world(&json!([]), &[]);
    let lib = canonical(&world, "lib");
    let lines = [calls(&called(&lib)), json!({"text": "Done.", "expect": expect})];
    world.write("lines.jsonl", &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    world
}

fn chat_with(world: &World, allow: &[&str], text: &str) -> Run {
    let project = world.path("project");
    let mut arguments = vec!["--workspace", project.to_str().unwrap(), "chat"];
    arguments.extend(allow.iter().flat_map(|allow| ["--allow", allow]));
    arguments.extend(["-m", text]);
    world.run(&arguments)
}

fn results(world: &World) -> Vec<String> {
    let tools = nodes(world).into_iter().filter(|node| node["role"] == "tool");
    tools.map(|node| node["text"].as_str().unwrap().to_owned()).collect()
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[test]
fn a_folder_for_reading_is_read_by_tools_and_commands_and_written_by_none() {
    let called = |lib: &str| {
        json!([
            {"name": "read", "arguments": {"path": format!("{lib}/d/lib.rs")}},
            {"name": "write", "arguments": {"path": format!("{lib}/new"), "content": "x"}},
            {"name": "exec", "arguments": {"command": "cat lib.rs; echo x > new; echo y > ../f", "directory": format!("{lib}/d")}},
            {"name": "exec", "arguments": {"command": format!("cp {lib}/d/lib.rs copied.rs")}},
        ])
    };
    let world = world_in_lib(
        called,
        &["fn thread", "open for reading only", "Read-only file system", "made copied.rs"],
    );
    let lib = canonical(&world, "lib");
    let run = chat_with(&world, &[&lib], "Look there.");
    assert_eq!((run.code, run.out.trim()), (Some(0), "Done."), "{run:?}");
    assert!(!world.path("lib/new").exists() && !world.path("lib/d/new").exists());
    assert_eq!(read(&world.path("project/copied.rs")).as_deref(), Some("fn thread() {}\n"));
    // The control: without the flag none of it is reached, and the session says that it was.
    let lines = [calls(&called(&lib)), json!({"text": "Done.", "expect": ["outside the allowed workspace"]})];
    world.write("lines.jsonl", &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    let run = say(&world, "Again.");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains(&format!("tools of this session reached {lib} (read only)")), "{run:?}");
    assert!(
        results(&world).last().unwrap().contains("cannot stat")
            || results(&world).last().unwrap().contains("No such file")
    );
    // It is said once.
    world.write("lines.jsonl", "{\"text\": \"Done.\"}\n");
    assert!(!say(&world, "Again.").err.contains("tools of this session"));
}

#[test]
fn a_writable_folder_is_written_shown_and_given_back() {
    let world = world_in_lib(
        |lib| {
            json!([
                {"name": "write", "arguments": {"path": format!("{lib}/by-tool"), "content": "tool\n"}},
                {"name": "exec", "arguments": {"command": format!("echo '// x' >> {lib}/d/lib.rs; echo here > here")}},
                {"name": "exec", "arguments": {"command": "rm lib.rs", "directory": format!("{lib}/d")}},
            ])
        },
        &["lib/d/lib.rs (+1 −0)", "made here (+1 −0)", "deleted "],
    );
    let lib = canonical(&world, "lib");
    let run = chat_with(&world, &[&format!("{lib}:rw")], "Change it.");
    assert_eq!((run.code, run.out.trim()), (Some(0), "Done."), "{run:?}");
    assert_eq!(read(&world.path("lib/by-tool")).as_deref(), Some("tool\n"));
    assert!(!world.path("lib/d/lib.rs").exists());
    let diff = say(&world, "/diff").out;
    for shown in [format!("{lib}/by-tool"), format!("{lib}/d/lib.rs"), "here".to_owned()] {
        assert!(diff.contains(&shown), "{shown}: {diff}");
    }
    let back = say(&world, &format!("/restore {lib}/d/lib.rs --yes"));
    assert_eq!(back.code, Some(0), "{back:?}");
    assert_eq!(read(&world.path("lib/d/lib.rs")).as_deref(), Some("fn thread() {}\n// x\n"));
    let back = say(&world, "/undo --files");
    assert_eq!(back.code, Some(0), "{back:?}");
    assert_eq!(read(&world.path("lib/d/lib.rs")).as_deref(), Some("fn thread() {}\n"));
    assert!(!world.path("lib/by-tool").exists() && !world.path("project/here").exists());
}

#[test]
fn the_model_is_told_which_folders_there_are_and_so_is_the_person() {
    let world = world(&json!([exec("true")]), &[]);
    let lib = canonical(&world, "lib");
    chat_with(&world, &[&lib], "Look.");
    let shown = chat_with(&world, &[&lib], "/status").out;
    assert!(shown.contains(&format!("{lib} (read only)")), "{shown}");
    let (_, shown) = world.json(&[
        "--workspace",
        world.path("project").to_str().unwrap(),
        "chat",
        "--allow",
        &lib,
        "-m",
        "/status",
    ]);
    assert_eq!(shown["folders"], json!([{"path": lib, "access": "read_only"}]), "{shown}");
    let answer = nodes(&world).into_iter().rfind(|node| node["author"] == "assistant").unwrap();
    let sent = world.run(&["context", "show", answer["short_id"].as_str().unwrap(), "--text"]);
    assert!(sent.out.contains(&format!("{lib} (read only)")), "{sent:?}");
}

#[test]
fn a_folder_that_cannot_be_one_is_refused_before_anything_is_said() {
    let world = world(&json!([]), &[]);
    fs::write(world.path("file"), "text").unwrap();
    let at = |path: &str| world.path(path).to_str().unwrap().to_owned();
    for (folder, code, why) in [
        (at("missing"), 3, "no such"),
        (at("file"), 2, "it is not a folder"),
        ("/".to_owned(), 2, "the root of the file system"),
        (world.home().to_str().unwrap().to_owned(), 2, "Drawloom's home"),
        (at("project"), 2, "it is the folder of the workspace"),
        (at("project/src"), 2, "lies in"),
        ("/proc".to_owned(), 2, "/proc is closed to tools"),
    ] {
        for folder in [folder.clone(), format!("{folder}:rw")] {
            let run = chat_with(&world, &[&folder], "Look.");
            assert_eq!(run.code, Some(code), "{folder}: {run:?}");
            assert!(run.err.to_lowercase().contains(&why.to_lowercase()), "{folder}: {run:?}");
        }
    }
    assert!(world.json(&["tree", "list"]).1["trees"].as_array().is_none_or(Vec::is_empty));
}

#[test]
fn without_a_workspace_no_folder_is_opened_and_nothing_is_sent() {
    let world = world(&json!([]), &[]);
    let lib = canonical(&world, "lib");
    world.write("lines.jsonl", "{\"text\": \"Said.\"}\n");
    let run = world.run(&["chat", "--allow", &lib, "-m", "Look."]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("--allow needs a workspace") && run.err.contains("--workspace DIR"), "{run:?}");
    assert!(world.json(&["tree", "list"]).1["trees"].as_array().is_none_or(Vec::is_empty));
    let run = chat_with(&world, &[&lib], "Look.");
    assert_eq!((run.code, run.out.trim()), (Some(0), "Said."), "the control: {run:?}");
}

#[test]
fn a_command_of_the_owner_reaches_a_folder_that_is_named() {
    let world = World::new();
    fs::create_dir(world.path("lib")).unwrap();
    fs::write(world.path("lib/text"), "there").unwrap();
    let lib = canonical(&world, "lib");
    let line = format!("cat {lib}/text; echo x > {lib}/new");
    let run = |allow: &str| world.run(&["sandbox", "--allow", allow, "--", "sh", "-c", &line]);
    let read_only = run(&lib);
    assert_eq!(read_only.out, "there", "{read_only:?}");
    assert_ne!(read_only.code, Some(0));
    assert!(!world.path("lib/new").exists());
    let written = run(&format!("{lib}:rw"));
    assert_eq!((written.code, written.out.as_str()), (Some(0), "there"), "{written:?}");
    assert!(world.path("lib/new").exists());
    // The control.
    assert_eq!(world.run(&["sandbox", "--", "sh", "-c", &line]).out, "");
}

#[test]
fn a_decision_is_tried_out_as_with_a_further_folder() {
    let world = world(&json!([]), &[]);
    let (lib, project) = (canonical(&world, "lib"), canonical(&world, "project"));
    let call = json!({"path": format!("{lib}/new"), "content": "x"}).to_string();
    let tested = |allow: &str| {
        let arguments = ["--workspace", &project, "policy", "test", "write", &call, "--allow", allow];
        world.json(&arguments).1["decision"].as_str().unwrap().to_owned()
    };
    assert_eq!((tested(&lib), tested(&format!("{lib}:rw"))), ("deny".to_owned(), "allow".to_owned()));
}
