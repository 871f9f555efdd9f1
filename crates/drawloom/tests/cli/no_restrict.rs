//! `chat --no-restrict`: tools reach every file of the user's but Drawloom's own, and commands have no walls.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::exec::{exec, world as exec_world};
use crate::file_tools::say;
use crate::terminal::Terminal;
use crate::tools::{calls, nodes};
use crate::trust::with_terminal;
use crate::world::{Run, World};

fn tool(name: &str, arguments: &Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

/// A world whose model makes these calls in one turn, given the path of a folder beside the workspace.
fn world(called: impl Fn(&World, &str) -> Value) -> World {
    let world = exec_world(&[]);
    let tools = r#"["exec", "process", "read", "write"]"#;
    let config = fs::read_to_string(world.home().join("config.toml")).unwrap();
    let all = r#"["exec", "read", "write", "grep", "move", "copy", "delete"]"#;
    world.write("config.toml", &config.replace(tools, all));
    fs::create_dir_all(world.path("beside")).unwrap();
    fs::write(world.path("beside/note.txt"), "beside\n").unwrap();
    let beside = world.path("beside").canonicalize().unwrap();
    let lines = [calls(&called(&world, beside.to_str().unwrap())), json!({"text": "Done."})];
    world.write("lines.jsonl", &lines.map(|line| format!("{line}\n")).concat());
    world
}

fn unrestricted(world: &World, text: &str) -> Run {
    let project = world.path("project");
    world.run(&["--workspace", project.to_str().unwrap(), "chat", "--no-restrict", "-m", text])
}

/// What tools said, in order.
fn results(world: &World) -> Vec<String> {
    let tools = nodes(world).into_iter().filter(|node| node["role"] == "tool");
    tools.map(|node| node["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn files_outside_are_read_written_and_given_back_only_with_the_flag() {
    let world = world(|_, beside| {
        json!([
            tool("read", &json!({"path": format!("{beside}/note.txt")})),
            tool("write", &json!({"path": format!("{beside}/new.txt"), "content": "new\n"})),
        ])
    });
    // The control.
    let run = say(&world, "Do it.");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(results(&world).iter().all(|said| said.contains("outside the allowed workspace")), "{run:?}");
    let run = unrestricted(&world, "/retry");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("--no-restrict: tools reach every file"), "{run:?}");
    let said = results(&world);
    assert!(said.iter().any(|said| said.contains("1\tbeside")), "{said:?}");
    assert_eq!(fs::read_to_string(world.path("beside/new.txt")).unwrap(), "new\n");
    assert!(unrestricted(&world, "/status").out.contains("every file but Drawloom's own"));
    assert!(say(&world, "/diff").out.contains("+new"));
    let back = say(&world, "/undo --files");
    assert_eq!(back.code, Some(0), "{back:?}");
    assert!(!world.path("beside/new.txt").exists());
}

#[test]
fn the_home_and_the_kernels_folders_stay_closed_by_whatever_path() {
    let world = world(|world, beside| {
        let home = world.home().canonicalize().unwrap();
        let home = home.to_str().unwrap();
        symlink(home, world.path("beside/link")).unwrap();
        let above = world.home().canonicalize().unwrap().parent().unwrap().to_str().unwrap().to_owned();
        let elsewhere = format!("{above}-taken");
        json!([
            tool("read", &json!({"path": format!("{home}/config.toml")})),
            tool("read", &json!({"path": format!("{beside}/link/config.toml")})),
            tool("grep", &json!({"pattern": "model", "path": home})),
            tool("write", &json!({"path": format!("{home}/hooks.toml"), "content": "x"})),
            tool("move", &json!({"from": home, "to": format!("{beside}/taken")})),
            tool("move", &json!({"from": above, "to": elsewhere})),
            tool("delete", &json!({"path": home})),
            tool("read", &json!({"path": "/proc/self/environ"})),
            tool("read", &json!({"path": "/sys/kernel/uevent_seqnum"})),
        ])
    });
    let run = unrestricted(&world, "Do it.");
    assert_eq!(run.code, Some(0), "{run:?}");
    let said = results(&world);
    assert_eq!(said.len(), 9, "{said:?}");
    for said in &said {
        assert!(said.contains("closed to tools") || said.contains("symbolic link"), "{said}");
        assert!(!said.contains("script:"), "{said}");
    }
    assert!(world.home().join("config.toml").exists() && !world.home().join("hooks.toml").exists());
}

#[test]
fn what_runs_or_steers_programs_is_asked_about_in_each_folder() {
    let world = world(|_, beside| {
        let write = |path: &str| tool("write", &json!({"path": format!("{beside}/{path}"), "content": "x"}));
        let asked = [
            "AGENTS.md",
            "MEMORY.md",
            "d/skills/a.md",
            ".bashrc",
            ".ssh/authorized_keys",
            ".config/autostart/x",
        ];
        let etc = tool("write", &json!({"path": "/etc/cron.d/drawloom-test", "content": "x"}));
        asked.map(write).into_iter().chain([write(".git/hooks/x"), etc]).collect()
    });
    let run = unrestricted(&world, "Do it.");
    assert_eq!(run.code, Some(0), "{run:?}");
    let said = results(&world);
    assert!(said.len() == 8 && said.iter().all(|said| said.contains("not run")), "{said:?}");
    for name in ["AGENTS.md", "MEMORY.md", ".bashrc", ".ssh", ".config"] {
        assert!(!world.path("beside").join(name).exists(), "{name}");
    }
}

/// Keys that come with a folder are written as by name.
#[test]
fn a_folder_that_holds_what_steers_programs_is_asked_about_before_it_moves() {
    let world = world(|world, beside| {
        fs::create_dir_all(world.path("beside/keys/.ssh")).unwrap();
        fs::write(world.path("beside/keys/.ssh/authorized_keys"), "key\n").unwrap();
        fs::create_dir_all(world.path("beside/plain/sub")).unwrap();
        fs::write(world.path("beside/plain/sub/note.txt"), "note\n").unwrap();
        let moved = |from: &str, to: &str| {
            tool("move", &json!({"from": format!("{beside}/{from}"), "to": format!("{beside}/{to}")}))
        };
        let copied = json!({"from": format!("{beside}/keys"), "to": format!("{beside}/copied")});
        json!([moved("keys", "moved"), tool("copy", &copied), moved("plain", "other")])
    });
    let run = unrestricted(&world, "Do it.");
    assert_eq!(run.code, Some(0), "{run:?}");
    let said = results(&world);
    assert!(said.len() == 3 && said[..2].iter().all(|said| said.contains("not run")), "{said:?}");
    let there = |path: &str| world.path("beside").join(path).exists();
    assert!(there("keys/.ssh/authorized_keys") && !there("moved") && !there("copied"), "{said:?}");
    assert!(there("other/sub/note.txt"), "the control: {said:?}");
}

#[test]
fn a_command_is_asked_about_has_no_walls_and_says_so() {
    let world = world(|_, beside| json!([exec(&format!("cat {beside}/note.txt > {beside}/copied.txt"))]));
    // Where nobody is asked, it does not run.
    let run = unrestricted(&world, "Do it.");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!world.path("beside/copied.txt").exists(), "{run:?}");
    let project = world.path("project");
    let command = world.command(&[
        "--workspace",
        project.to_str().unwrap(),
        "chat",
        "--no-restrict",
        "--color",
        "never",
    ]);
    let mut terminal = Terminal::sized(with_terminal(&command), 100, 200);
    terminal.shows("(no restriction)");
    terminal.types("/retry\r");
    terminal.shows("[y/N, or n and why]");
    terminal.types("y\r");
    terminal.shows("Done.");
    terminal.types("/quit\r");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(fs::read_to_string(world.path("beside/copied.txt")).unwrap(), "beside\n");
    let said = results(&world).pop().unwrap();
    assert!(said.contains("the sandbox is none: --no-restrict lifts it"), "{said}");
}

#[test]
fn the_flag_holds_for_its_call_and_needs_a_workspace() {
    let world = world(|_, beside| json!([tool("read", &json!({"path": format!("{beside}/note.txt")}))]));
    assert_eq!(unrestricted(&world, "Do it.").code, Some(0));
    let run = say(&world, "/retry");
    assert!(run.err.contains("tools of this session reached every file"), "{run:?}");
    assert!(results(&world).last().unwrap().contains("outside the allowed workspace"));
    let run = world.run(&["chat", "--no-restrict", "-m", "Do it."]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("--no-restrict needs a workspace"), "{run:?}");
}

#[test]
fn what_a_hook_says_without_walls_is_from_outside() {
    let world = world(|_, _| json!([tool("read", &json!({"path": "src/main.rs"}))]));
    let hook = |on: &str| {
        format!(
            "[hooks.{on}]\ncommand = '''touch {on}; echo '{{\"text\": \"from anywhere\"}}' '''\non = [\"{on}\"]\n"
        )
    };
    let more = hook("after_call") + &hook("session_start");
    world.write("config.toml", &(world.read("config.toml") + &more));
    let project = world.path("project");
    let read = || nodes(&world).into_iter().rfind(|node| node["author"] == "read").unwrap();
    // The control.
    assert_eq!(say(&world, "Do it.").code, Some(0));
    assert!(
        read()["text"].to_string().contains("from anywhere") && read()["trust"] == "workspace",
        "{}",
        read()
    );
    let run = unrestricted(&world, "/retry");
    assert_eq!(
        (run.code, run.err.matches("hooks were not run: here hooks may only look").count()),
        (Some(0), 1),
        "{run:?}"
    );
    assert!(
        read()["text"].to_string().contains("from anywhere") && read()["trust"] == "outside",
        "{}",
        read()
    );
    assert!(project.join("after_call").exists() && !project.join("session_start").exists());
}
