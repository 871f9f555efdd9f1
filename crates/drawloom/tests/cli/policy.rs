//! Rules on calls of tools: written by commands, numbered, and tried out (spec: cli §2 `policy`, agent §4).

use std::fs;

use serde_json::{Value, json};

use crate::world::World;

fn world() -> World {
    let world = World::new();
    world.write("config.toml", "# mine\n[log]\nlevel = \"warn\" # quiet\n");
    fs::create_dir_all(world.path("project")).unwrap();
    world
}

/// What is decided on a call in the project.
fn tested(world: &World, arguments: &[&str]) -> (Option<i32>, Value) {
    let project = world.path("project");
    let mut all = vec!["--workspace", project.to_str().unwrap(), "policy", "test"];
    all.extend(arguments);
    world.json(&all)
}

const WRITE: &str = r#"{"path":"docs/a.md","content":"x"}"#;

#[test]
fn rules_are_written_and_hold_from_the_next_command_on() {
    let world = world();
    assert_eq!(tested(&world, &["write", WRITE]).1["decision"], "allow");
    let said = world.ok(&["policy", "ask", "write path=docs/**", "--reason", "these are published"]);
    assert!(said.starts_with("ask write path='docs/**': written to"), "{said}");
    world.ok(&["policy", "deny", "effect:write", "--session", "isolated", "--unless", "write path=notes.md"]);
    let config = fs::read_to_string(world.home().join("config.toml")).unwrap();
    assert!(config.starts_with("# mine\n[log]\nlevel = \"warn\" # quiet\n"), "{config}");
    insta::assert_snapshot!(world.ok(&["policy", "list"]), @r"
     1  ask write path='docs/**'
        these are published
     2  deny effect:write
        unless write path=notes.md
        in sessions of type isolated
    ");
    let (_, shown) = world.json(&["policy", "list"]);
    assert_eq!(
        shown["rules"][1],
        json!({"number": 2, "decision": "deny", "tool": ["effect:write"], "unless": ["write path=notes.md"],
            "sessions": ["isolated"]})
    );
    let (code, asked) = tested(&world, &["write", WRITE]);
    assert_eq!(code, Some(0));
    assert_eq!(
        asked,
        json!({"decision": "ask", "rule": 1, "why": "rule 1 (ask write path='docs/**'): these are published"})
    );
    let (_, denied) = tested(&world, &["write", WRITE, "--session", "isolated"]);
    assert_eq!((&denied["decision"], &denied["rule"]), (&json!("deny"), &json!(2)));
    let (_, denied) = tested(&world, &["write", WRITE, "--unattended"]);
    assert_eq!(
        denied["why"],
        "nobody is here to answer the question of rule 1 (ask write path='docs/**'): these are published"
    );
    let note = r#"{"path":"notes.md","content":"x"}"#;
    assert_eq!(tested(&world, &["write", note, "--session", "isolated"]).1["decision"], "allow");

    let said = world.ok(&["policy", "remove", "write path='docs/**'"]);
    assert!(said.starts_with("ask write path='docs/**': removed from"), "{said}");
    assert_eq!(tested(&world, &["write", WRITE]).1["decision"], "allow");
    world.ok(&["policy", "remove", "effect:write"]);
    let config = fs::read_to_string(world.home().join("config.toml")).unwrap();
    assert_eq!(config, "# mine\n[log]\nlevel = \"warn\" # quiet\n");
    assert_eq!(world.json(&["policy", "list"]), (Some(0), json!({"rules": []})));
}

#[test]
fn the_table_says_why_and_plan_mode_and_taint_count() {
    let world = world();
    let guide = r#"{"path":"AGENTS.md","content":"x"}"#;
    let (_, asked) = tested(&world, &["write", guide]);
    assert_eq!((&asked["decision"], &asked["rule"]), (&json!("ask"), &Value::Null));
    assert!(asked["why"].as_str().unwrap().contains("so a person sees its difference first"), "{asked}");
    let (_, planned) = tested(&world, &["write", WRITE, "--plan"]);
    assert_eq!(planned["decision"], "deny");
    assert!(planned["why"].as_str().unwrap().starts_with("plan mode is on"), "{planned}");
    let within = format!(r#"{{"name":"write","arguments":{guide}}}"#);
    assert_eq!(tested(&world, &["call_tool", &within]).1["why"], asked["why"], "by its own name");
    // An allow rule loosens neither.
    world.ok(&["policy", "allow", "write"]);
    assert_eq!(tested(&world, &["write", guide]).1["decision"], "ask");
    assert_eq!(tested(&world, &["write", WRITE, "--plan"]).1["decision"], "deny");
}

#[test]
fn what_would_be_about_nothing_is_refused_and_nothing_is_written() {
    let world = world();
    let before = fs::read_to_string(world.home().join("config.toml")).unwrap();
    for (arguments, message) in [
        (&["deny", "wirte"][..], "no such tool"),
        (&["deny", "write path="], "pattern `write path=`, character 7"),
        (&["allow", "exce ls"], "there is no tool exce: did you mean exec?"),
        (&["allow", "exec bash *"], "allows nothing"),
        (&["allow", "py:* path=x"], "`py:* path=x` is about nothing"),
        (&["deny", "py:hello host=a.test"], "`py:hello host=a.test` is about nothing"),
        (
            &["deny", "mcp__py__hello"],
            "there is no such tool as mcp__py__hello (write `py:hello`): nothing was written",
        ),
        (&["deny", "mcp__py"], "there is no such tool as mcp__py (write `py:*`): nothing was written"),
        (&["test", "wirte"], "did you mean write?"),
        (&["test", "write", "{"], "no JSON"),
        (&["test", "write", "{}"], "missing required path"),
    ] {
        let mut all = vec!["policy"];
        all.extend(arguments);
        let out = world.run(&all);
        assert_eq!(out.code, Some(2), "{arguments:?}: {}", out.err);
        assert!(out.err.contains(message), "{arguments:?}: {}", out.err);
    }
    let out = world.run(&["policy", "remove", "write"]);
    assert!(out.code == Some(3) && out.err.contains("no rule about write"), "{out:?}");
    assert_eq!(fs::read_to_string(world.home().join("config.toml")).unwrap(), before);
}

#[test]
fn nothing_is_decided_on_a_path_that_lies_in_no_folder_of_the_tools() {
    let world = world();
    let project = world.path("project");
    let run = |tool: &str, arguments: &Value, more: &[&str]| {
        let (project, arguments) = (project.to_str().unwrap(), arguments.to_string());
        world.run(&[&["--workspace", project, "policy", "test", tool, &arguments][..], more].concat())
    };
    let added = "*** Begin Patch\n*** Add File: /etc/x\n+a\n*** End Patch\n";
    for (tool, arguments, path) in [
        ("write", json!({"path": "/etc/x", "content": "a"}), "/etc/x"),
        ("read", json!({"path": "~/.ssh/id_rsa"}), "~/.ssh/id_rsa"),
        ("read", json!({"path": "../a"}), "../a"),
        ("move", json!({"from": "a", "to": "/etc/x"}), "/etc/x"),
        ("patch", json!({"patch": added}), "/etc/x"),
    ] {
        let refused = run(tool, &arguments, &[]);
        let told = format!("not decided: {path} lies in no folder that tools reach");
        assert!(refused.code == Some(4) && refused.err.contains(&told), "{tool}: {refused:?}");
    }
    let further = world.path("further");
    fs::create_dir_all(&further).unwrap();
    let there = json!({"path": further.join("x"), "content": "a"});
    assert_eq!(run("write", &there, &[]).code, Some(4));
    let allowed = run("write", &there, &["--allow", &format!("{}:rw", further.display())]);
    assert!(allowed.out.starts_with("allow"), "{allowed:?}");
    assert!(run("write", &json!({"path": project.join("x"), "content": "a"}), &[]).out.starts_with("allow"));
}

#[test]
fn an_allow_rule_that_allows_nothing_is_a_notice_and_breaks_no_command() {
    let world = world();
    let rule = "[[policy.rules]]\ndecision = \"allow\"\ntool = [\"exec xvfb-run *\"]\n";
    fs::write(world.home().join("config.toml"), rule).unwrap();
    let told = "policy.rules, rule 1: `exec xvfb-run *` allows nothing";
    for arguments in [&["policy", "list"][..], &["policy", "test", "exec", r#"{"command":"ls"}"#]] {
        let out = world.run(arguments);
        assert!(!out.err.contains("does not fit") && out.err.contains(told), "{arguments:?}: {out:?}");
        assert_eq!(out.err.matches("allows nothing").count(), 1, "{arguments:?}: {out:?}");
    }
}

#[test]
fn a_rule_about_a_tool_that_is_gone_is_named_with_the_command_that_takes_it_out() {
    let world = world();
    let (config, tool) =
        (world.home().join("config.toml"), "[tools.words]\ncommand = \"wc -w\"\ndescription = \"Counts.\"\n");
    fs::write(&config, tool).unwrap();
    world.ok(&["policy", "ask", "write"]);
    world.ok(&["policy", "deny", "words"]);
    world.ok(&["config", "unset", "tools.words"]);
    let told = "policy.rules, rule 2: there is no such tool as words; \
                `drawloom policy remove words` takes it out";
    for arguments in [
        &["policy", "list"][..],
        &["policy", "test", "write", WRITE],
        &["--model", "script:echo", "chat", "-m", "Hi."],
    ] {
        let out = world.run(arguments);
        assert_eq!((out.code, out.err.matches(told).count()), (Some(0), 1), "{arguments:?}: {out:?}");
    }
    assert!(world.ok(&["policy", "list"]).contains("2  deny words"));
    let refused = world.run(&["policy", "deny", "wrods"]);
    let why = "deny wrods: there is no such tool as wrods; there are ";
    assert!(refused.code == Some(2) && refused.err.contains(why), "{refused:?}");
    let removed = world.run(&["policy", "remove", "words"]);
    assert!(removed.out.starts_with("deny words: removed from"), "{removed:?}");
    assert!(!world.run(&["policy", "list"]).err.contains("words"));
}

#[test]
fn a_rule_about_a_server_that_is_not_configured_is_named_and_refuses_nothing() {
    let world = world();
    let rule = |pattern: &str| {
        format!(
            "[mcp.notes]\ncommand = \"true\"\n[[policy.rules]]\ndecision = \"deny\"\ntool = [{pattern:?}]\n"
        )
    };
    for (pattern, told) in [
        (
            "Notes:add",
            "rule 1: there is no server Notes (did you mean notes?); `drawloom policy remove Notes:add` takes it out",
        ),
        ("other:*", ""),
        ("notes:add", ""),
    ] {
        fs::write(world.home().join("config.toml"), rule(pattern)).unwrap();
        let out = world.run(&["--model", "script:echo", "chat", "-m", "Hi."]);
        let said = out.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            (out.code, said.contains("there is no server")),
            (Some(0), !told.is_empty()),
            "{pattern}: {out:?}"
        );
        assert!(said.contains(told), "{pattern}: {out:?}");
        assert_eq!(world.run(&["config", "check"]).code, Some(0), "{pattern}");
    }
    fs::write(world.home().join("config.toml"), rule("mcp__notes")).unwrap();
    let out = world.run(&["--model", "script:echo", "chat", "-m", "Hi."]);
    assert!(out.code == Some(2) && out.err.contains("(write `notes:*`)"), "{out:?}");
}

#[test]
fn a_stronger_rule_is_named_and_one_that_is_there_is_not_written_twice() {
    let world = world();
    world.ok(&["policy", "deny", "write"]);
    let out = world.run(&["policy", "allow", "write"]);
    assert!(out.err.contains("rule 1 (deny write) goes before it"), "{out:?}");
    let said = world.ok(&["policy", "deny", "write"]);
    assert!(said.starts_with("deny write: it stands already in"), "{said}");
    let said = world.ok(&["policy", "remove", "write"]);
    assert!(said.starts_with("deny write, allow write: removed from"), "{said}");
}

#[test]
fn where_there_is_no_workspace_the_folder_one_stands_in_is_meant() {
    let world = World::new();
    let plain = world.path("plain");
    fs::create_dir_all(&plain).unwrap();
    let tested = |words: &[&str]| {
        let out = world.command(words).current_dir(&plain).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    let guide = r#"{"path":"AGENTS.md","content":"x"}"#;
    assert!(tested(&["policy", "test", "write", guide]).starts_with("ask: this file runs"));
    assert_eq!(tested(&["sandbox", "--", "pwd"]), format!("{}\n", plain.canonicalize().unwrap().display()));
}

#[test]
fn a_tool_that_there_is_not_is_named_when_an_agent_is_given_it() {
    let world = world();
    let set = |tools: &str| world.run(&["config", "set", "agents.assistant.tools", tools]);
    let refused = set("[\"read\", \"bash\"]");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.err.contains("names bash: there is no such tool; there are") && refused.err.contains("exec")
    );
    assert_eq!(set("[\"read\", \"exec\"]").code, Some(0));
}
