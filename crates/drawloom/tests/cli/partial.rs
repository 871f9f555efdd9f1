//! A machine that makes no namespaces, as in some containers: the level is *partial*, `doctor` and each result say so, a
//! command is asked about once a session and denied where nobody is asked, and what it did to protected files is undone and
//! named (spec: security §1).

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::exec::{exec, world, world_with};
use crate::tools::{calls, nodes};
use crate::undo_states::user_command;
use crate::world::{Run, World, text};

/// Who runs the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    Super,
    /// Uid 65534.
    Nobody,
}

const USERS: [User; 2] = [User::Super, User::Nobody];

/// A namespace of users with all of them in it, which the superuser alone makes.
const ALL: &str = r#"
    mkfifo "$GATE"
    unshare --user sh -eu -c 'read -r go < "$GATE"; rm "$GATE"; exec "$@"' sh "$@" <&0 &
    inside=$!
    exec 3> "$GATE"
    echo "0 0 65536" > "/proc/$inside/uid_map"
    echo "0 0 65536" > "/proc/$inside/gid_map"
    echo go >&3
    wait "$inside"
"#;
/// No further one can be made from here.
const NONE: &str = r#"echo 0 > /proc/sys/user/max_user_namespaces; exec "$@""#;

fn owned_by(world: &World, user: &str) {
    assert!(Command::new("chown").args(["-R", user]).arg(world.path("")).status().unwrap().success());
}

/// The program on a machine without namespaces.
fn without_namespaces(world: &World, user: User, arguments: &[&str]) -> Command {
    let program = world.command(arguments);
    assert!(rustix::process::geteuid().is_root(), "run as root, or leave these tests out by name");
    let mut command = Command::new("sh");
    command.args(["-eu", "-c", ALL, "sh", "sh", "-eu", "-c", NONE, "sh"]);
    if user == User::Nobody {
        owned_by(world, "65534:65534");
        command.args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
    }
    command.arg(program.get_program()).args(program.get_args());
    command.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("GATE", world.path("gate"));
    command.current_dir(program.get_current_dir().unwrap()).stdin(Stdio::null());
    command
}

fn sandbox(run: &Run) -> (Value, Value) {
    let mut told: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{run:?}"));
    let checks = told["checks"].as_array().unwrap().clone();
    let check = checks.into_iter().find(|check| check["name"] == "sandbox").unwrap();
    (told["sandbox"].take(), check)
}

#[test]
fn doctor_names_the_level_and_what_is_missing() {
    let world = World::new();
    let (full, check) = sandbox(&world.run(&["doctor", "--quick", "--json"]));
    let abi = full["abi"].as_u64().unwrap();
    assert!(abi >= 6, "{full}");
    assert_eq!(full, json!({"level": "full", "abi": abi, "missing": []}), "the control");
    assert_eq!(check["state"], "ok");
    for user in USERS {
        let run = without_namespaces(&world, user, &["doctor", "--quick", "--json"]).output().unwrap().into();
        let (partial, check) = sandbox(&run);
        assert_eq!(
            (&partial["level"], &partial["abi"]),
            (&json!("partial"), &json!(abi)),
            "{user:?}: {partial}"
        );
        let [missing] = &partial["missing"].as_array().unwrap()[..] else { panic!("{user:?}: {partial}") };
        let missing = missing.as_str().unwrap();
        assert!(missing.starts_with("full: namespaces: "), "{user:?}: {missing}");
        assert_eq!((&check["state"], &check["why"]), (&json!("warn"), &json!(format!("partial: {missing}"))));
    }
}

/// Commands that reach for what is protected, and for what lies outside.
fn reaching() -> World {
    const FIRST: &str = "echo evil >> AGENTS.md; echo evil > .envrc; echo one > one; cat ../outside";
    let world = world(&[
        calls(&json!([exec("sh first.sh")])),
        calls(&json!([exec("sh second.sh")])),
        json!({"text": "Done."}),
    ]);
    fs::write(world.path("project/AGENTS.md"), "Be kind.\n").unwrap();
    for (script, lines) in [("first.sh", FIRST), ("second.sh", "echo two > two")] {
        fs::write(world.path("project").join(script), lines).unwrap();
    }
    fs::write(world.path("outside"), "what lies outside\n").unwrap();
    world
}

fn chat(world: &World, user: User, more: &[&str]) -> Child {
    let project = text(&world.path("project"));
    let words = [&["--workspace", &project, "--json", "chat", "-m", "Do it."], more].concat();
    let mut command = without_namespaces(world, user, &words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(child: Child) -> Value {
    let done = child.wait_with_output().unwrap();
    serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"))
}

/// Another process of the same user's, where namespaces are made. All that is there was given to the user before the first.
fn beside(world: &World, user: User, arguments: &[&str]) -> Run {
    match user {
        User::Nobody => user_command(world, arguments).output().unwrap().into(),
        _ => world.run(arguments),
    }
}

/// The one question that waits, once it does.
fn question(world: &World, user: User, child: &mut Child) -> Value {
    loop {
        let open = beside(world, user, &["approvals", "list", "--json"]);
        let open: Value = serde_json::from_str(&open.out).unwrap_or_else(|_| panic!("{open:?}"));
        if let Some(question) = open["approvals"].as_array().and_then(|all| all.first()) {
            return question.clone();
        }
        assert!(child.try_wait().unwrap().is_none(), "{user:?}: it ended without a question");
    }
}

fn is_there(world: &World, name: &str) -> bool {
    world.path("project").join(name).exists()
}

#[test]
fn a_command_that_nobody_is_asked_about_is_denied_also_where_a_rule_allows_it() {
    const RULE: &str = "[[policy.rules]]\ndecision = \"allow\"\ntool = [\"exec\"]\n";
    for user in USERS {
        for rule in ["", RULE] {
            let world = reaching();
            world.write("config.toml", &(world.read("config.toml") + rule));
            let said = ended(chat(&world, user, &[]));
            let denied = said["denied"].as_array().unwrap();
            assert_eq!(denied.len(), 2, "{user:?}: {said}");
            for denied in denied {
                let why = denied["why"].as_str().unwrap();
                assert!(
                    denied["tool"] == "exec" && why.contains("the sandbox of this machine is partial"),
                    "{why}"
                );
            }
            assert!(!is_there(&world, "one") && !is_there(&world, "two"), "{user:?}: {said}");
        }
    }
    // The control: the same runs where the level is full.
    let world = reaching();
    let project = text(&world.path("project"));
    let (_, said) = world.json(&["--workspace", &project, "chat", "-m", "Do it."]);
    assert!(said["denied"] == json!([]) && is_there(&world, "one") && is_there(&world, "two"), "{said}");
}

#[test]
fn one_that_was_approved_for_the_session_runs_and_what_it_did_to_protected_files_is_undone_and_named() {
    for user in USERS {
        let world = reaching();
        let mut child = chat(&world, user, &["--wait", "60"]);
        let asked = question(&world, user, &mut child);
        let about = asked["about"].as_str().unwrap();
        assert!(asked["text"].to_string().contains("is partial") || about.contains("is partial"), "{asked}");
        assert_eq!(asked["answers"], json!(["once", "session"]), "{asked}");
        assert!(!is_there(&world, "one"), "nothing before the answer");
        let id = asked["short_id"].as_str().unwrap();
        let approved = beside(&world, user, &["approve", id, "--for", "session"]);
        assert_eq!(approved.code, Some(0), "{user:?}: {approved:?}");
        let said = ended(child);
        assert_eq!((&said["text"], &said["denied"]), (&json!("Done."), &json!([])), "{user:?}: {said}");
        assert!(is_there(&world, "one") && is_there(&world, "two"), "the second is not asked about: {said}");

        if user == User::Nobody {
            owned_by(&world, "0:0");
        }
        let told: Vec<String> = nodes(&world)
            .into_iter()
            .filter(|node| node["author"] == "exec")
            .map(|node| node["text"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(told.len(), 2, "{told:?}");
        for told in &told {
            assert!(told.contains("sandbox partial"), "{user:?}: {told}");
        }
        assert!(!told[0].contains("what lies outside"), "{user:?}: {}", told[0]);
        assert!(told[0].contains(".envrc is protected: what it made there was moved to"), "{}", told[0]);
        let restored = told[0].lines().find(|line| line.contains("AGENTS.md"));
        assert!(restored.is_some_and(|line| line.contains("protected")), "{user:?}: {}", told[0]);
        assert_eq!(fs::read_to_string(world.path("project/AGENTS.md")).unwrap(), "Be kind.\n", "{told:?}");
        assert!(!is_there(&world, ".envrc"));
    }
}

#[test]
fn hooks_that_may_only_look_are_not_run_and_that_is_said_once() {
    const WHY: &str =
        "here hooks may only look, and at the sandbox's level partial nothing keeps them from writing";
    let hook = |on: &str| format!("[hooks.{on}]\ncommand = \"touch {on}\"\non = [\"{on}\"]\n");
    let hooks = ["before_call", "turn_end", "session_start"].map(hook).concat();
    let reads =
        [calls(&json!([{"name": "read", "arguments": {"path": "src/main.rs"}}])), json!({"text": "Done."})];
    let read = |world: &World| {
        nodes(world).iter().filter(|node| node["author"] == "read").cloned().collect::<Vec<_>>()
    };
    let world = world_with(&[json!({"text": "Hello."})], &hooks);
    let project = text(&world.path("project"));
    let chat = |more: &[&str]| -> Run {
        let words = [&["--workspace", &project, "chat", "-m", "Do it."], more].concat();
        without_namespaces(&world, User::Super, &words).output().unwrap().into()
    };
    // Nothing is called: those of the session's start and of the turn's end may only look.
    let run = chat(&[]);
    assert!(run.code == Some(0) && run.out.contains("Hello."), "{run:?}");
    assert_eq!(run.err.matches(&format!("hooks were not run: {WHY}")).count(), 1, "{run:?}");
    world.write("lines.jsonl", &reads.map(|line| format!("{line}\n")).concat());
    let run = chat(&["--plan"]);
    assert_eq!((run.code, run.err.matches("hooks were not run").count()), (Some(0), 1), "{run:?}");
    let denied = read(&world)[0]["text"].to_string();
    assert!(denied.contains(&format!("the hook before_call has to allow it, and failed: {WHY}")), "{denied}");
    assert!(!["before_call", "turn_end", "session_start"].iter().any(|name| is_there(&world, name)));
    // The control: those that may write run, behind walls that hold where they write.
    let run = chat(&[]);
    assert!(run.code == Some(0) && read(&world)[1]["text"].to_string().contains("weave"), "{run:?}");
    assert!(
        is_there(&world, "before_call") && is_there(&world, "turn_end") && !is_there(&world, "session_start")
    );
}
