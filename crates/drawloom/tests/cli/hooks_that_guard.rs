//! Hooks that keep the agent from paths, and what it tries to get around them.

use std::fs;

use serde_json::{Value, json};

use crate::hooks::{call, hook, made, results};
use crate::tools::{calls, chat};
use crate::world::{World, text};

const NO: &str = r#"printf '{"deny": "no"}'"#;

/// A world with hooks, whose model has all tools.
fn world(lines: &[Value], hooks: &str) -> World {
    let world = crate::hooks::world(lines, "");
    let config = fs::read_to_string(world.home().join("config.toml")).unwrap();
    let tools = r#"["read", "write", "exec", "process", "grep", "glob", "list", "delete", "move", "copy"]"#;
    let line = config.lines().find(|line| line.starts_with("tools = ")).unwrap().to_owned();
    world.write("config.toml", &format!("{}{hooks}", config.replace(&line, &format!("tools = {tools}"))));
    fs::create_dir_all(world.path("project/db/sec")).unwrap();
    fs::write(world.path("project/db/sec/k"), "TOPSECRET").unwrap();
    world
}

fn denied(said: &Value) -> Vec<&str> {
    said["denied"].as_array().unwrap().iter().map(|call| call["tool"].as_str().unwrap()).collect()
}

#[test]
fn a_guard_of_a_path_sees_calls_on_the_folders_above_it() {
    let writes = hook("writes", NO, r#"tools = ["effect:write path=db/sec/**"]"#);
    let reads = hook("reads", NO, r#"tools = ["effect:read path=db/sec/**"]"#);
    for (hooks, tool, arguments) in [
        (&writes, "delete", json!({"path": "db"})),
        (&writes, "move", json!({"from": "db", "to": "other"})),
        (&reads, "copy", json!({"from": "db", "to": "other"})),
        (&reads, "grep", json!({"pattern": "TOP"})),
        (&reads, "grep", json!({"pattern": "TOP", "path": "db"})),
        (&reads, "glob", json!({"pattern": "**"})),
        (&reads, "list", json!({"path": "db/sec"})),
    ] {
        let world = world(&made(&json!([call(tool, &arguments)])), hooks);
        let (code, said) = chat(&world, "Do it.");
        assert_eq!((code, denied(&said)), (Some(0), vec![tool]), "{arguments}: {said}");
        assert!(world.path("project/db/sec/k").exists() && !world.path("project/other").exists());
    }
    // Controls: what lies beside it is none of its business.
    let beside = json!([
        call("grep", &json!({"pattern": "weave", "path": "src"})),
        call("grep", &json!({"pattern": "weave", "path": "src/main.rs"})),
        call("copy", &json!({"from": "src", "to": "db/src"})),
        call("delete", &json!({"path": "src"})),
    ]);
    let world = world(&made(&beside), &format!("{writes}{reads}"));
    let (code, said) = chat(&world, "Do it.");
    assert_eq!((code, denied(&said).len()), (Some(0), 0), "{said}");
    assert!(results(&world, "grep").iter().all(|found| found.contains("weave")));
    assert!(world.path("project/db/src/main.rs").exists() && !world.path("project/src").exists());
}

#[test]
fn what_commands_leave_in_their_home_and_tmp_no_hook_finds() {
    let guard = r#"if test -e ~/mark || test -e /tmp/mark; then printf '{"deny": "marked"}'; fi; touch ~/mark /tmp/mark"#;
    let tried = json!([
        call("write", &json!({"path": "a", "content": "x"})),
        call("exec", &json!({"command": "ls ~/mark /tmp/mark; touch ~/mark /tmp/mark"})),
        call("write", &json!({"path": "b", "content": "x"})),
    ]);
    let world = world(&made(&tried), &hook("guard", guard, r#"tools = ["write"]"#));
    for plan in [false, true] {
        let project = text(&world.path("project"));
        let plan = plan.then_some("--plan");
        let arguments = ["--workspace", &project, "chat", "-m", "Do it."].into_iter().chain(plan);
        let (code, said) = world.json(&arguments.collect::<Vec<_>>());
        assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
        let why = said["denied"].to_string() + &results(&world, "write").concat();
        assert!(!why.contains("marked") && !why.contains("failed"), "{why}");
    }
    assert!(world.path("project/a").exists() && world.path("project/b").exists());
    assert!(results(&world, "exec")[0].contains("cannot access '/tmp/mark'"), "nor do these find its own");
    let own = world.home().join("sandbox/tmp");
    assert!(own.read_dir().unwrap().next().is_none(), "a hook's folders go with it");
}

#[test]
fn a_guard_of_the_tool_that_steers_processes_sees_what_it_writes_to_them() {
    let lines = [
        calls(&json!([call("exec", &json!({"command": "sh", "background": true}))])),
        calls(&json!([call("process", &json!({"process": 1, "input": "echo p > pw\n"}))])),
        json!({"text": "Done."}),
    ];
    for (pattern, expected) in [("process", vec!["process"]), ("exec echo *", vec!["process"])] {
        let world = world(&lines, &hook("guard", NO, &format!("tools = [\"{pattern}\"]")));
        let (code, said) = chat(&world, "Do it.");
        assert_eq!((code, denied(&said)), (Some(0), expected), "{said}");
        assert!(!world.path("project/pw").exists());
    }
}

#[test]
fn a_limit_that_no_call_meets_is_refused() {
    let write = || made(&json!([call("write", &json!({"path": "a", "content": "x"}))]));
    for (pattern, why) in [
        ("write host=example.org", "no call is meant by write host=example.org: write reaches no host"),
        ("effect:write host=a.org", "effect:write host=a.org: hosts go with effect:net and effect:message"),
        ("write path=/no-such-folder/**", ": there is no /no-such-folder, and paths of the workspace begin"),
    ] {
        let world = world(&write(), &hook("guard", NO, &format!("tools = [\"{pattern}\"]")));
        let checked = world.run(&["config", "check"]);
        assert!(checked.code == Some(1) && checked.out.contains(why), "{pattern}: {checked:?}");
        let project = text(&world.path("project"));
        let refused = world.run(&["--workspace", &project, "chat", "-m", "Do it."]);
        assert!(refused.code == Some(2) && !world.path("project/a").exists(), "{pattern}: {refused:?}");
    }
    // Which folder is the workspace is known in it alone.
    let world = world(&write(), "");
    let project = text(&fs::canonicalize(world.path("project")).unwrap());
    let config = fs::read_to_string(world.home().join("config.toml")).unwrap();
    let guard =
        |path: &str| hook("guard", NO, &format!("tools = [\"write path={path}\", \"web_fetch host=a.org\"]"));
    world.write("config.toml", &(config.clone() + &guard(&format!("{project}/db/**"))));
    assert_eq!(world.run(&["config", "check"]).code, Some(0));
    let refused = world.run(&["--workspace", &project, "chat", "-m", "Do it."]);
    let why = "write paths of the workspace without it, as path=db/**";
    assert!(refused.code == Some(2) && refused.err.contains(why), "{refused:?}");
    world.write("config.toml", &(config + &guard("/usr/**")));
    let taken = world.run(&["--workspace", &project, "chat", "-m", "Do it."]);
    assert!(taken.code == Some(0) && world.path("project/a").exists(), "{taken:?}");
}
