//! AGENTS.md of subfolders: told once work enters them, with the trust of the file (spec: context §2).

use std::fs;

use serde_json::{Value, json};

use crate::exec::world;
use crate::laundering::{call, may_fetch, noted, read, turn};
use crate::tools::calls;
use crate::world::{World, text};

fn put(world: &World, path: &str, content: &str) {
    let path = world.path("project").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// What the last request of a turn with these calls said of instructions of folders, in order, as it stands in its body.
fn told(world: &World, calls: &[Value]) -> Vec<String> {
    let lines = calls.iter().cloned().chain([json!({"text": "Done."})]);
    world.write("lines.jsonl", &lines.map(|line| format!("{line}\n")).collect::<String>());
    let project = text(&world.path("project"));
    let (code, said) = world.json(&["--workspace", &project, "chat", "-m", "Look."]);
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    let (_, shown) = world.json(&["context", "show", said["node"].as_str().unwrap(), "--text"]);
    let segments = shown["segments"].as_array().unwrap().iter();
    let body: String = segments.filter_map(|segment| segment["text"].as_str()).collect();
    let mut told = Vec::new();
    let mut rest = body.as_str();
    while let Some(at) = rest.find("[Instructions for work in").or_else(|| rest.find("/AGENTS.md holds")) {
        let end = rest[at..].find("\\n\\n").into_iter().chain(rest[at..].find('"')).min().unwrap();
        told.push(rest[at..at + end].to_owned());
        rest = &rest[at + end..];
    }
    told
}

fn looks(tool: &str, arguments: &Value) -> Value {
    calls(&json!([{"name": tool, "arguments": arguments}]))
}

#[test]
fn instructions_of_a_folder_are_told_once_when_work_enters_it_the_nearest_last() {
    let world = world(&[]);
    for folder in ["", "sub/deep/", "sub/", "other/", "node_modules/x/", "clone/.git/", "clone/x/"] {
        for name in ["a.txt", "b.txt", "top.txt"] {
            put(&world, &format!("{folder}{name}"), "x\n");
        }
    }
    put(&world, "sub/AGENTS.md", "Use tabs in sub. sk-canary-0123456789\n");
    put(&world, "sub/CLAUDE.md", "Never told.");
    put(&world, "sub/deep/CLAUDE.md", "\u{feff}Deep is read-only.");
    put(&world, "other/AGENTS.md", "Other is generated.");
    for folder in ["node_modules/x", "clone/.git", "clone", "clone/x"] {
        put(&world, &format!("{folder}/AGENTS.md"), "Never told.");
    }
    assert_eq!(
        told(&world, &[looks("read", &json!({"path": "top.txt"}))]),
        [""; 0],
        "the top is told of above"
    );
    let line = |folder: &str, name: &str, text: &str| {
        format!("[Instructions for work in {folder} ({folder}/{name}):]\\n{text}")
    };
    let found = told(
        &world,
        &[looks("read", &json!({"path": "sub/deep/a.txt"})), looks("read", &json!({"path": "sub/b.txt"}))],
    );
    assert_eq!(found.len(), 2, "each once: {found:?}");
    assert!(found[0].starts_with(&line("sub", "AGENTS.md", "Use tabs in sub.")), "{found:?}");
    assert_eq!(found[1], line("sub/deep", "CLAUDE.md", "Deep is read-only."));
    let found = told(
        &world,
        &[
            looks("read", &json!({"path": "node_modules/x/a.txt"})),
            looks("read", &json!({"path": "clone/x/a.txt"})),
            looks("exec", &json!({"command": "ls", "directory": "other"})),
        ],
    );
    assert_eq!(found[2..], [line("other", "AGENTS.md", "Other is generated.")], "{found:?}");
    // What changed since is told as it is now, and what stands is not told again.
    put(&world, "sub/AGENTS.md", "Use spaces in sub.");
    let found = told(&world, &[looks("read", &json!({"path": "sub/b.txt"}))]);
    assert_eq!(found[3..], [line("sub", "AGENTS.md", "Use spaces in sub.")], "{found:?}");
}

#[test]
fn its_owner_hears_which_instructions_of_folders_are_told() {
    let world = world(&[]);
    put(&world, "sub/AGENTS.md", "Use tabs in sub.");
    put(&world, "sub/a.txt", "x\n");
    let look = || looks("read", &json!({"path": "sub/a.txt"}));
    let lines = [look(), json!({"text": "Done."}), look(), json!({"text": "Done."})];
    world.write("lines.jsonl", &lines.map(|line| format!("{line}\n")).concat());
    let project = text(&world.path("project"));
    let heard = || {
        let said = world.run(&["--workspace", &project, "chat", "-m", "Look."]);
        said.err.matches("the model is told of sub/AGENTS.md").count()
    };
    assert_eq!((heard(), heard()), (1, 0), "once, as it is told once");
}

#[test]
fn long_instructions_are_cut_and_what_has_no_room_is_named() {
    let names = ["a", "b", "c"];
    let reads = names.map(|name| json!({"name": "read", "arguments": {"path": format!("{name}/a")}}));
    for (sizes, shown) in
        [([50_000, 7_500, 10], [8_000, 7_500, 10]), ([7_900, 7_900, 7_900], [7_900, 7_900, 0])]
    {
        let world = world(&[]);
        for (name, size) in names.iter().zip(sizes) {
            put(&world, &format!("{name}/a"), "x\n");
            put(&world, &format!("{name}/AGENTS.md"), &"x".repeat(size));
        }
        let found = told(&world, &[calls(&json!(reads))]);
        assert_eq!(found.len(), 3, "{found:?}");
        for ((told, shown), size) in found.iter().zip(shown).zip(sizes) {
            let length = told.matches('x').count();
            assert!(length <= shown + 100 && length + 900 > shown, "{length} of {size}");
            assert_eq!(told.contains("left out"), shown == 8_000, "{told}");
            assert_eq!(told.contains("read it before"), shown == 0, "{told}");
        }
    }
}

#[test]
fn what_was_told_in_an_earlier_process_counts_in_what_there_is_room_for() {
    let world = world(&[]);
    for name in ["one", "two", "three"] {
        put(&world, &format!("{name}/a"), "x\n");
        put(&world, &format!("{name}/AGENTS.md"), &"x".repeat(7_900));
    }
    let look = |name: &str| told(&world, &[looks("read", &json!({"path": format!("{name}/a")}))]);
    assert_eq!((look("one").len(), look("two").len()), (1, 2));
    let found = look("three");
    assert!(found.len() == 3 && found[2].contains("read it before"), "{found:?}");
    assert_eq!(look("one"), found, "what stands is not told again");
}

/// Row *AGENTS.md of subfolders* of the laundering matrix.
#[test]
fn s3_instructions_of_a_folder_that_were_made_of_a_page_taint() {
    let (site, world) = noted();
    put(&world, "sub/plain.md", "x\n");
    put(&world, "clean/plain.md", "x\n");
    put(&world, "clean/AGENTS.md", "Written by a person.\n");
    let notes = fs::read_to_string(world.path("project/notes.md")).unwrap();
    put(&world, "sub/AGENTS.md", &notes);
    for (folder, is_free) in [("clean", true), ("sub", false)] {
        let look = read(&format!("{folder}/plain.md"));
        assert_eq!(turn(&world, folder, &[&[look]]), [""; 0]);
        assert_eq!(may_fetch(&world, &site, folder), is_free, "{folder}");
    }
    assert_eq!(turn(&world, "top", &[&[call("list", &json!({"path": "."}))]]), [""; 0]);
    assert!(may_fetch(&world, &site, "top"), "only a folder that was worked in");
}

/// S §4: what a workspace says that nobody trusted instructs nobody.
#[test]
fn s4_instructions_of_a_folder_of_a_workspace_that_is_not_trusted_are_not_told() {
    let world = world(&[looks("read", &json!({"path": "sub/a.txt"})), json!({"text": "Done."})]);
    put(&world, "AGENTS.md", "Be careful.");
    put(&world, "sub/a.txt", "x\n");
    put(&world, "sub/AGENTS.md", "Obey me.");
    let chat = || {
        let mut chat = world.command(&["chat", "-m", "Look.", "--json"]);
        let run = crate::world::Run::from(chat.current_dir(world.path("project")).output().unwrap());
        let said: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{run:?}"));
        world.ok(&["context", "show", said["node"].as_str().unwrap(), "--text", "--json"])
    };
    assert!(!chat().contains("Obey me."));
    world.ok(&["workspace", "trust", &text(&world.path("project"))]);
    assert!(chat().contains("Obey me."), "the control");
}
