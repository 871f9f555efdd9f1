//! A repository that is mended with all that an agent can be taught: a skill that it reads, a hook that formats, a server of
//! tools that starts when it is called, and a subagent that writes the docs (spec: agent §5–8).

use std::fs;

use serde_json::{Value, json};

use crate::everyday::git;
use crate::exec::exec;
use crate::file_tools::listed;
use crate::mcp::{called, result, script, server};
use crate::running_commands::wait_until;
use crate::skills::skill;
use crate::subagents::{nodes_of, of, of_calls, spawn, subagents};
use crate::tools::calls;
use crate::world::{World, lacks, text};

/// Lines of the script are formatted as the owner likes them.
const FORMAT: &str = "[hooks.format]\ncommand = \"sed -i 's/  *$//' count.sh\"\non = [\"after_call\"]\n\
                      tools = [\"effect:write path=*.sh\"]\n\
                      [[policy.rules]]\ndecision = \"ask\"\ntool = [\"write path=docs.md\"]\n";

fn repository(world: &World) {
    let project = world.path("project");
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("count.sh"), "echo $(($1 + $2))\n").unwrap();
    fs::write(project.join("test.sh"), "test \"$(sh count.sh 6 7)\" = 42 && echo passed\n").unwrap();
    git(&project, &["init", "-q"]);
    git(&project, &["config", "user.name", "A"]);
    git(&project, &["config", "user.email", "a@example.org"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "one"]);
}

#[test]
fn a_skill_a_hook_a_server_and_a_subagent_mend_a_repository_with_two_questions() {
    if lacks(&["git", "sed"]) {
        return;
    }
    let world = World::new();
    let file = text(&world.home().join("lines.jsonl"));
    let config = format!("[model]\ndefault = \"script:{file}\"\n{FORMAT}{}", server("notes", ""));
    world.write("config.toml", &config);
    skill(&world, "home/skills/counting", "");
    repository(&world);
    let project = world.path("project");
    let before = listed(&project);
    world.ok(&["mcp", "accept", "notes", "--yes"]);
    let skill = text(&world.home().canonicalize().unwrap().join("skills/counting/SKILL.md"));
    let read = |path: &str| json!({"name": "read", "arguments": {"path": path}});
    let edit = json!({
        "name": "edit",
        "arguments": {"path": "count.sh", "old": "echo $(($1 + $2))", "new": "echo $(($1 * $2))   "},
    });
    let commit = exec("git add -A && git commit -q -m 'Count by area' && git status --porcelain");
    script(
        &world,
        &[
            calls(&json!([read(&skill), read("count.sh"), exec("sh test.sh")])),
            json!({
                "tool_calls": [spawn("docs", &json!({})), edit],
                "expect": ["First do counting.", "echo $(($1 + $2))", "exit 1"],
            }),
            json!({"tool_calls": [exec("sh test.sh"), called("notes:add", &json!({"a": 40, "b": 2}))]}),
            json!({"text": "It is mended.", "expect": ["passed", "42"]}),
            json!({"tool_calls": [commit], "expect": ["I wrote docs.md."]}),
            json!({"text": "Done.", "expect": ["exit 0"]}),
            of_calls(
                "docs",
                &json!([{"name": "write", "arguments": {"path": "docs.md", "content": "It counts.\n"}}]),
            ),
            of("docs", json!({"text": "I wrote docs.md."})),
        ],
    );
    let workspace = text(&project);
    let mut chat =
        world.command(&["--workspace", &workspace, "--json", "chat", "--wait", "60", "-m", "Mend it."]);
    let chat = crate::world::piped(&mut chat);
    // The subagent's waits until its parent's turn is over, so that its result begins another one.
    let answer = |tool: &str, is_time: &dyn Fn() -> bool| {
        wait_until("nobody is asked", || {
            let (_, found) = world.json(&["approvals", "list"]);
            let questions = found["approvals"].as_array().cloned().unwrap_or_default();
            let asked = questions.into_iter().find(|asked| asked["text"].as_str().unwrap().contains(tool));
            let id = asked.map(|asked| asked["short_id"].as_str().unwrap().to_owned());
            id.is_some_and(|id| is_time() && world.run(&["approve", &id]).code == Some(0))
        });
    };
    answer("notes:add asks", &|| true);
    answer("write asks", &|| {
        let (_, found) = world.json(&["tree", "list"]);
        let trees = found["trees"].as_array().unwrap().iter();
        let mut nodes = trees.flat_map(|tree| nodes_of(&world, tree["short_id"].as_str().unwrap()));
        nodes.any(|node| node["text"] == "It is mended.")
    });
    let done = chat.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    assert_eq!((done.status.code(), &answer["text"]), (Some(0), &json!("Done.")), "{answer}");

    // What each of them did.
    assert_eq!(fs::read_to_string(project.join("count.sh")).unwrap(), "echo $(($1 * $2))\n");
    assert_eq!(result(&world, "notes:add"), "42");
    assert_eq!((subagents(&world)[0]["state"].as_str(), subagents(&world).len()), (Some("done"), 1));
    assert_eq!(git(&project, &["log", "--format=%s"]), "Count by area\none\n");
    assert_eq!(git(&project, &["status", "--porcelain"]), "");
    assert!(git(&project, &["show", "--stat", "--format=", "HEAD"]).contains("docs.md"));

    // Each step is told, and all of it comes back: the subagent's part from its own conversation.
    let tree = answer["tree"].as_str().unwrap();
    let authors: Vec<String> =
        nodes_of(&world, tree).iter().map(|node| node["author"].as_str().unwrap().to_owned()).collect();
    for author in ["read", "exec", "spawn", "edit", "notes:add", "subagent/sub-"] {
        assert!(authors.iter().any(|other| other.starts_with(author)), "{author}: {authors:?}");
    }
    for tree in [tree, subagents(&world)[0]["tree"].as_str().unwrap()] {
        assert!(world.ok(&["tree", "verify", tree]).starts_with("valid"));
        for _ in 0..2 {
            world.ok(&["--workspace", &workspace, "tree", "undo", tree, "--files"]);
        }
    }
    let is_ours = |path: &str| path != ".git" && !path.starts_with(".git/");
    let ours = |all: Vec<(String, u32, String)>| -> Vec<_> {
        all.into_iter().filter(|(path, ..)| is_ours(path)).collect()
    };
    assert_eq!(ours(listed(&project)), ours(before));
}
