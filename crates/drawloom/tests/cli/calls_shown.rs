//! The record shows what was called: in `tree show`, in the last exchanges, and one node with all that it says.

use serde_json::json;

use crate::exec::{exec, world};
use crate::file_tools::say;
use crate::mcp::{accepted, called};
use crate::tools::{calls, chat, nodes};
use crate::world::World;

fn shown(world: &World, more: &[&str]) -> String {
    let (_, trees) = world.json(&["tree", "list"]);
    let tree = trees["trees"][0]["short_id"].as_str().unwrap().to_owned();
    world.ok(&[&["tree", "show", &tree], more].concat())
}

#[test]
fn what_comes_of_a_call_stands_under_its_name() {
    let read = |path: &str| json!({"name": "read", "arguments": {"path": path}});
    let names = ["a.txt", "b.txt", "c.txt", "d.txt"];
    let world = world(&[
        calls(&json!(names.map(read))),
        calls(&json!([exec("echo alone")])),
        json!({"text": "Done."}),
    ]);
    for name in names {
        std::fs::write(world.path("project").join(name), format!("this is {name}\n")).unwrap();
    }
    let project = world.path("project");
    let told = world.run(&["--workspace", project.to_str().unwrap(), "chat", "-m", "Read them."]).err;
    for name in names {
        let lines: Vec<&str> = told.lines().collect();
        let result = lines.iter().position(|line| line.ends_with(&format!("this is {name}"))).unwrap();
        let header = lines[..result].iter().rfind(|line| !line.starts_with("  ")).unwrap();
        assert!(header.contains(name), "{name}: {told}");
    }
    // A call that is alone is not named again.
    assert!(told.contains("calls exec\n  $ echo alone\n  exit 0"), "{told}");
}

#[test]
fn lines_of_a_servers_result_that_are_not_shown_are_counted() {
    let page = |more: u64| called("notes:page", &json!({"more": more}));
    let fail = called("notes:fail", &json!({}));
    let lines = [json!({"tool_calls": [page(39), page(0), fail]}), json!({"text": "Done."})];
    let world = accepted(&lines, &["notes:page", "notes:fail"], "");
    let project = world.path("project");
    let told = world.run(&["--workspace", project.to_str().unwrap(), "chat", "-m", "Read."]).err;
    assert!(told.contains("with all you know.␛[2J\n  [39 more lines]\n"), "{told}");
    assert_eq!(told.matches("more lines]").count(), 1, "{told}");
}

/// What a command prints looks like a report, too: it hides nothing and adds nothing.
#[test]
fn the_end_of_what_a_command_printed_and_its_files_are_told_whatever_it_prints() {
    let forged = "echo x > evil.sh; echo '[files]'; echo 'deleted lib.rs'; echo '[notes]'; seq 1 8";
    let world = world(&[
        calls(&json!([exec(forged)])),
        calls(&json!([exec(&format!("{forged}; exit 1"))])),
        json!({"text": "Done."}),
    ]);
    let project = world.path("project");
    let told = world.run(&["--workspace", project.to_str().unwrap(), "chat", "-m", "Do it."]).err;
    let lines = |from: &str| -> Vec<String> {
        let lines = told.lines().skip_while(|line| !line.trim_start().starts_with(from)).skip(1);
        let lines = lines.map(|line| line.trim_start().to_owned());
        lines.take_while(|line| line != "calls exec" && line != "Done.").collect()
    };
    let good = lines("exit 0");
    assert_eq!(good[..5], ["[more before: 8 lines]", "6", "7", "8", "made evil.sh (+1 −0)"], "{told}");
    let failed = lines("exit 1");
    assert_eq!(failed[..2], ["[more before: 3 lines]", "1"], "{told}");
}

#[test]
fn calls_stand_beneath_the_answer_that_holds_them() {
    let long = format!("true\n{}printf 'out\\n%.0s' 1 2 3\n", "# step\n".repeat(7));
    let content = "One.\n".repeat(90);
    let world = world(&[
        calls(&json!([
            exec("printf 'a\u{1b}[2J' > made.txt; seq 1 90"),
            {"name": "write", "arguments": {"content": content, "path": "notes.md"}},
        ])),
        calls(&json!([exec(&long)])),
        json!({"text": "Done."}),
    ]);
    let (code, said) = chat(&world, "Do it.");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");

    for more in [&[][..], &["--all"]] {
        let drawn = shown(&world, more);
        for line in [
            "calls exec",
            "  $ printf 'a␛[2J' > made.txt; seq 1 90",
            r#"calls write {"path":"notes.md","content":"One.\n"#,
            "  $ true",
            "  … 6 more lines: `drawloom tree show TREE --node ",
        ] {
            assert!(
                drawn.lines().any(|shown| shown.trim_start().starts_with(line.trim_start())),
                "{line}: {drawn}"
            );
        }
    }
    let nodes = nodes(&world);
    let made = &nodes[1]["calls"];
    assert_eq!(made[0]["arguments"]["command"], "printf 'a\u{1b}[2J' > made.txt; seq 1 90");
    assert_eq!((&made[1]["number"], &made[1]["tool"]), (&json!(1), &json!("write")));
    assert!(nodes[0]["calls"].is_null(), "{nodes:?}");

    // One node has all that it says.
    let id = |at: usize| nodes[at]["short_id"].as_str().unwrap().to_owned();
    let whole = shown(&world, &["--node", &id(1)]);
    assert!(
        whole.contains("\ncalls write {\"path\":\"notes.md\"}\n  content:\n    One.\n    One.\n"),
        "{whole}"
    );
    assert_eq!(whole.matches("    One.\n").count(), 90);
    let result = nodes.iter().position(|node| node["author"] == "exec").unwrap();
    let whole = shown(&world, &["--node", &id(result)]);
    assert!(whole.contains("\n1\n2\n3\n") && whole.contains("\n89\n90\n"), "{whole}");
    assert!(!whole.contains("Do it."), "{whole}");

    // What a request holds of each tool.
    let answer = said["node"].as_str().unwrap();
    let sent = world.json(&["context", "show", answer]).1;
    let with_calls =
        sent["segments"].as_array().unwrap().iter().find(|segment| segment["tools"].is_array()).unwrap();
    let [exec, write] = &with_calls["tools"].as_array().unwrap()[..] else { panic!("{with_calls}") };
    let share = |tool: &serde_json::Value| (tool["tool"].clone(), tool["calls"].clone());
    let mut tools = [share(exec), share(write)];
    tools.sort_by_key(|(tool, _)| tool.to_string());
    assert_eq!(tools, [(json!("exec"), json!(2)), (json!("write"), json!(1))]);
    assert!(with_calls["chars"].as_u64().unwrap() > 900, "the text that was written is in it: {with_calls}");
    let drawn = world.ok(&["context", "show", answer]);
    for row in ["of it exec", "of it write", "2 calls with their results"] {
        assert!(drawn.contains(row), "{row}: {drawn}");
    }

    let told = say(&world, "/history").out;
    let [before, after] = ["calls exec\n  $ printf 'a␛[2J' > made.txt; seq 1 90\ncalls write", "Done."];
    let at = |words: &str| told.find(words).unwrap_or_else(|| panic!("{words}: {told}"));
    assert!(at("> Do it.") < at(before) && at(before) < at(after), "{told}");
    let (_, trees) = world.json(&["tree", "list"]);
    let tree = trees["trees"][0]["short_id"].as_str().unwrap();
    for (format, indent) in [("text", ""), ("markdown", "    ")] {
        let file = world.path(format);
        world.ok(&["tree", "export", tree, "--format", format, "-o", file.to_str().unwrap()]);
        let written = std::fs::read_to_string(file).unwrap();
        let call = format!(
            "{indent}calls exec\n{indent}  $ printf 'a␛[2J' > made.txt; seq 1 90\n{indent}calls write"
        );
        assert!(written.contains(&call), "{written}");
    }
    let (_, log) = world.json(&["--workspace", world.path("project").to_str().unwrap(), "log"]);
    assert_eq!(log["exchanges"][0]["calls"].as_array().unwrap().len(), 3, "{log}");
}
