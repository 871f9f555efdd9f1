//! Calls that cannot be run as they are, and what is shown of what they made.

use std::fs;

use serde_json::{Value, json};

use crate::exec::{exec, world, world_with};
use crate::file_tools::say;
use crate::tools::{calls, chat, nodes};
use crate::world::{World, text};

/// What a command is told whose arguments are these.
fn told(arguments: &Value) -> String {
    let call = json!({"name": "exec", "arguments": arguments});
    let world = world(&[calls(&json!([call])), json!({"text": "Done."})]);
    let (code, said) = chat(&world, "Do it.");
    assert_eq!(code, Some(0), "{said}");
    let node = nodes(&world).into_iter().find(|node| node["author"] == "exec").unwrap();
    node["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_command_that_no_shell_can_be_started_with_is_refused_in_words() {
    for (arguments, why) in [
        (json!({"command": format!("true {}", "x".repeat(200_000))}), "a line has 131071 at most"),
        (json!({"command": "echo a\u{0}b"}), "a NUL character"),
        (json!({"command": "true", "directory": "nope"}), "the directory \"nope\" is not there"),
        (
            json!({"command": "true", "directory": "src/main.rs"}),
            "the directory \"src/main.rs\" is no folder",
        ),
        (json!({"command": "true", "net": ["*"]}), "`*`, which is no host"),
        (json!({"command": "true", "net": [""]}), "``, which is no host"),
        (json!({"command": "true", "net": ["http://x"]}), "`http://x`, which is no host"),
        (json!({"command": "true", "net": ["x:99999"]}), "`x:99999`, which is no host"),
        (json!({"command": "true", "net": ["a\nb"]}), "which is no host"),
    ] {
        let told = told(&arguments);
        assert!(told.contains(why), "{why}: {told}");
    }
    assert!(told(&json!({"command": format!("true {}", "x".repeat(100_000))})).starts_with("exit 0"));
}

#[test]
fn what_was_moved_away_comes_with_advice_that_helps() {
    let line = "mkdir -p skills/x .drawloom; echo x > skills/x/y; echo x > .envrc";
    let told = told(&json!({"command": line}));
    let moved = |name: &str| {
        let found = told.lines().find(|line| line.contains(&format!("{name} is protected")));
        found.unwrap_or_else(|| panic!("{name}: {told}"))
    };
    assert!(!moved("/.drawloom").contains("touches"), "{told}");
    assert!(moved("/skills").ends_with("name it in touches to make it"), "{told}");
    assert!(moved("/.envrc").ends_with("name it in touches to make it, or use write"), "{told}");
}

#[test]
fn a_key_in_the_name_of_a_changed_file_is_masked() {
    let key = format!("sk-KNOWN{}", "keyvalue9f8e7d6c5b4a39281706");
    let world = world(&[calls(&json!([exec(&format!("echo x > {key}.txt"))])), json!({"text": "Done."})]);
    world.write("keys.toml", &format!("[providers.openai]\nkey = \"{key}\"\n"));
    let (code, said) = chat(&world, "Do it.");
    assert_eq!((code, said["changed"].as_array().map(Vec::len)), (Some(0), Some(1)), "{said}");
    assert!(!said["changed"].to_string().contains(&key), "{said}");
}

#[test]
fn an_answer_that_only_calls_is_shown_as_one() {
    let world = world(&[calls(&json!([exec("true")])), json!({"text": "Done."})]);
    assert_eq!(chat(&world, "Do it.").0, Some(0));
    let (_, trees) = world.json(&["tree", "list"]);
    let tree = trees["trees"][0]["short_id"].as_str().unwrap();
    let shown = world.ok(&["tree", "show", tree]);
    assert_eq!(shown.matches("  (only calls)\n").count(), 1, "{shown}");
    let project = text(&world.path("project"));
    let context = world.ok(&["--workspace", &project, "context", "show", "--next"]);
    assert!(!context.contains("format of the request ≈ 0 tokens"), "{context}");
}

#[test]
fn a_restoration_of_nothing_is_no_success() {
    let world = world_with(&[calls(&json!([exec("echo two > o")])), json!({"text": "Done."})], "");
    let file = world.path("project/o");
    fs::write(&file, "one\n").unwrap();
    assert_eq!(chat(&world, "Do it.").0, Some(0));
    fs::hard_link(&file, world.path("user/o")).unwrap();
    let run = say(&world, "/restore o --yes");
    assert!(run.code == Some(4) && run.err.contains("o: it has 2 hard links"), "{run:?}");
    fs::remove_file(world.path("user/o")).unwrap();
    assert_eq!(say(&world, "/restore o --yes").code, Some(0), "the control");
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n");
}

#[test]
fn verify_alone_is_told_where_it_stands() {
    let run = World::new().run(&["verify"]);
    assert!(
        run.code == Some(2) && run.err.contains("drawloom tree verify") && run.err.contains("/verify"),
        "{run:?}"
    );
}
