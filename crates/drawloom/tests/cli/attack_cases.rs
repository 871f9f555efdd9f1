//! Cases of attacks by the program itself: its environment, its memory, and a mount and
//! programs in the workspace.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::everyday::{git, repository};
use crate::exec::{exec, world, world_with};
use crate::file_tools::listed;
use crate::program::program;
use crate::tools::{calls, nodes};
use crate::world::{World, lacks, text};

/// A turn in which the model runs a line; the process that takes it.
fn turn(world: &World, line: &str, environment: &[(&str, &str)]) -> Child {
    world.write("lines.jsonl", &format!("{}\n{}\n", calls(&json!([exec(line)])), json!({"text": "Done."})));
    let mut command =
        world.command(&["--workspace", &text(&world.path("project")), "--json", "chat", "-m", "Do it."]);
    command.envs(environment.iter().copied()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
}

/// The names of the case are forks of two sessions here; others look like them.
#[test]
fn x12_sessions_whose_names_look_alike_hold_what_was_said_in_each() {
    let world = World::new();
    let project = text(&world.path("here"));
    let chat = |name: &str, line: &str| {
        let words =
            ["--workspace", &project, "--model", "script:echo", "chat", "--session", name, "-m", line];
        let (code, said) = world.json(&words);
        assert_eq!(code, Some(0), "{name}: {said}");
        said
    };
    for (session, fork) in [("telegram", "1_2"), ("telegram_1", "2")] {
        chat(session, "Hello.");
        chat(session, &format!("/fork {fork}"));
    }
    let names = ["telegram:1_2", "telegram_1:2", "telegram_1_2", "telegram-1_2", "Telegram_1_2"];
    for name in names {
        chat(name, &format!("the first of {name}!"));
    }
    for name in names {
        let said = chat(name, &format!("the second of {name}!"));
        let sent = world.ok(&["context", "show", said["node"].as_str().unwrap(), "--text", "--json"]);
        for other in names {
            assert_eq!(sent.contains(&format!("the first of {other}!")), other == name, "{name}: {sent}");
        }
    }
}

#[test]
fn x7_what_the_program_has_in_its_environment_is_no_commands() {
    let world = world(&[]);
    // No key that is known by name or form: it is not masked, it is not there.
    let canary = "canary of the owner 7f3a";
    let line = "env; tr '\\0' '\\n' < /proc/1/environ; tr '\\0' '\\n' < /proc/$PPID/environ";
    let mut turn = turn(&world, line, &[("OWNERS_OWN", canary), ("OPENAI_API_KEY", canary)]);
    // The control: the process of the turn has it.
    let environment = format!("/proc/{}/environ", turn.id());
    while !String::from_utf8_lossy(&fs::read(&environment).unwrap()).contains(canary) {
        assert!(turn.try_wait().unwrap().is_none(), "the control");
        std::thread::yield_now();
    }
    let said = turn.wait_with_output().unwrap();
    assert!(said.status.success(), "{said:?}");
    let told = nodes(&world).into_iter().find(|node| node["author"] == "exec").unwrap()["text"].to_string();
    assert!(told.contains("PATH=") && told.contains("HOME="), "{told}");
    assert!(!told.contains("7f3a") && !told.contains("OWNERS_OWN"), "{told}");
}

/// The most memory that a process ever had, in bytes, once it has ended.
fn peak_of(mut child: Child) -> usize {
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let held = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
        peak = peak.max(held.unwrap_or(0) << 10);
        std::thread::yield_now();
    }
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    peak
}

#[test]
fn x9_a_flood_of_output_takes_no_memory_of_the_program() {
    let peak = |line: &str| {
        let world = world(&[]);
        (peak_of(turn(&world, line, &[])), world)
    };
    let (quiet, _) = peak("echo end");
    let (loud, world) = peak("yes | head -c 300000000; echo end");
    assert!(quiet > 1 << 20 && loud < quiet + (64 << 20), "{quiet} and {loud} bytes");
    let told = nodes(&world).into_iter().find(|node| node["author"] == "exec").unwrap()["text"].to_string();
    let ends = told.starts_with("\"exit 0 (") && told.ends_with("\\nend\"");
    assert!(ends && told.contains("characters left out"), "{} characters", told.len());
}

/// A mount beneath the root is another file system: nothing is renamed into it, and nothing is lost.
#[test]
fn files_3_11_a_mount_in_the_workspace_loses_nothing_of_what_tools_move_over_its_edge() {
    if !rustix::process::geteuid().is_root() {
        return println!("not run: only the administrator mounts without a user namespace");
    }
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let world = world_with(&[], "");
    world.write(
        "lines.jsonl",
        &[
            calls(&json!([
                call("move", json!({"from": "src", "to": "mounted/src"})),
                call("move", json!({"from": "mounted/there.txt", "to": "here.txt"})),
                call("write", json!({"path": "mounted/new.txt", "content": "new\n"})),
                exec("cat mounted/new.txt && echo more >> mounted/new.txt"),
            ])),
            json!({"text": "Done."}),
        ]
        .map(|line| format!("{line}\n"))
        .concat(),
    );
    let tools = r#"["exec", "move", "write"]"#;
    let config = world.read("config.toml").replace(r#"["exec", "process", "read", "write"]"#, tools);
    world.write("config.toml", &config);
    let project = world.path("project");
    fs::create_dir(project.join("mounted")).unwrap();
    let out = world.path("listed");
    fs::create_dir(&out).unwrap();
    let plain = world.command(&["--workspace", &text(&project)]);
    let line = r#"
        mount -t tmpfs tmpfs "$PROJECT/mounted"; echo there > "$PROJECT/mounted/there.txt"
        "$@" --json chat -m 'Do it.' > "$OUT/said"
        cp -a "$PROJECT" "$OUT/worked"
        "$@" chat -m '/undo --files'
        cp -a "$PROJECT" "$OUT/back"
    "#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-eu", "-c", line, "sh"]).arg(program()).args(plain.get_args());
    command.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("PROJECT", &project).env("OUT", &out);
    let done = command.current_dir(world.path("here")).stdin(Stdio::null()).output().unwrap();
    let said = fs::read_to_string(out.join("said")).unwrap_or_default();
    assert!(done.status.success(), "{said}{done:?}");
    let files = |name: &str| {
        let all = listed(&out.join(name)).into_iter();
        let files = all.filter(|(path, ..)| out.join(name).join(path).is_file());
        files.map(|(path, _, content)| (path, content)).collect::<Vec<_>>()
    };
    let file = |path: &str, content: &str| (path.to_owned(), content.to_owned());
    // A folder and a file are not moved over the edge, and stand where they stood.
    let worked = [
        file("mounted/new.txt", "new\nmore\n"),
        file("mounted/there.txt", "there\n"),
        file("src/main.rs", "fn weave() {}\n"),
    ];
    assert_eq!(files("worked"), worked, "{said}");
    assert_eq!(files("back"), worked[1..], "what was made in the mount is given back");
    let refused = nodes(&world).into_iter().filter(|node| node["author"] == "move");
    let told: Vec<String> = refused.map(|node| node["text"].to_string()).collect();
    assert!(told.len() == 2 && told.iter().all(|told| told.contains("file system")), "{told:?}");
}

/// What a workspace brings under the names of programs, and what its git would run: within the walls alone (spec: security
/// §15). The canary is written where no command can write.
#[test]
fn s15_programs_of_a_workspace_run_within_the_walls_alone() {
    if lacks(&["git"]) {
        return;
    }
    let world = world(&[
        calls(&json!([
            exec("git status; pip --version; node --version; ls"),
            exec("echo more >> src/main.rs")
        ])),
        json!({"text": "Done."}),
    ]);
    let project = repository(world.path("project"));
    let canary = world.path("canary");
    let program = format!("#!/bin/sh\necho \"$0\" >> '{}'\n", canary.display());
    for name in
        ["git", "pip", "node", "python3", "sh", "rg", "unshare", "drawloom", "bin/git", "hooks/pre-commit"]
    {
        let path = project.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &program).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(project.join("pip.py"), format!("open('{}', 'a').write('pip.py')\n", canary.display()))
        .unwrap();
    let server = json!({"mcpServers": {"one": {"command": "./git"}}});
    fs::write(project.join(".mcp.json"), server.to_string()).unwrap();
    for (key, value) in [("core.fsmonitor", "./git"), ("core.hooksPath", "hooks"), ("core.pager", "./git")] {
        git(&project, &["config", key, value]);
    }
    let workspace = text(&project);
    let free = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&project).stdin(Stdio::null());
        command.output().unwrap();
        fs::remove_file(&canary).is_ok()
    };
    assert!(free("/usr/bin/git", &["status"]), "the control: git runs what its configuration names");
    assert!(
        free("/bin/sh", &["-c", "PATH=.:$PATH; pip"]),
        "the control: the folder of the workspace is searched"
    );
    let day: [&[&str]; 13] = [
        &["doctor"],
        &["workspace", "trust", &workspace],
        &["chat", "-m", "Work."],
        &["chat", "-m", "/diff"],
        &["chat", "-m", "/undo --files"],
        &["chat", "-m", "/redo --files"],
        &["chat", "-m", "/status"],
        &["chat", "-m", "/tools"],
        &["sandbox", "--", "git", "status"],
        &["sandbox"],
        &["workspace", "list"],
        &["policy", "list"],
        &["workspace", "untrust", &workspace],
    ];
    for words in day {
        let mut command = world.command(words);
        command.current_dir(&project).env("PATH", ".:bin:/usr/local/bin:/usr/bin:/bin");
        let done = command.output().unwrap();
        let found = fs::read_to_string(&canary).unwrap_or_default();
        assert!(found.is_empty(), "{words:?}: {found}: {done:?}");
        if words[0] == "chat" {
            assert!(done.status.success(), "{words:?}: {done:?}");
        }
    }
    let told = nodes(&world).into_iter().find(|node| node["author"] == "exec").unwrap();
    assert!(told["text"].as_str().unwrap().contains("main"), "the commands of the day ran: {told}");
}
