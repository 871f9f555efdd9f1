//! `drawloom sandbox`: a command in the walls of the workspace.

use std::fs;
use std::io::Read as _;

use serde_json::Value;

use crate::web::{Site, answer, named};
use crate::world::{Run, World, lacks, text};

fn world() -> World {
    let world = World::new();
    fs::write(world.path("here/AGENTS.md"), "ours").unwrap();
    fs::write(world.path("here/text.txt"), "text").unwrap();
    world
}

fn instructions(world: &World) -> String {
    fs::read_to_string(world.path("here/AGENTS.md")).unwrap()
}

#[test]
fn a_command_runs_in_the_workspace_with_its_own_output_and_exit_code() {
    let world = world();
    let run = world.run(&["sandbox", "--", "sh", "-c", "cat text.txt; echo oh >&2; exit 7"]);
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (Some(7), "text", "oh\n"));
    assert_eq!(world.run(&["sandbox", "--", "sh", "-c", "kill -9 $$"]).code, Some(137));
    assert_eq!(world.run(&["sandbox", "--", "no-such-program"]).code, Some(3));
    assert_eq!(world.run(&["sandbox", "--timeout", "1", "--", "sleep", "60"]).code, Some(124));
}

#[test]
fn a_program_that_cannot_be_executed_is_told_from_one_that_is_not_there() {
    let world = world();
    for (program, code, said) in [
        ("./text.txt", 126, "it is there and not executable"),
        (".", 126, "it is there and not executable"),
        ("./no-such-program", 3, "no such command"),
    ] {
        let run = world.run(&["sandbox", "--", program]);
        assert!(run.code == Some(code) && run.err.contains(said), "{program}: {run:?}");
    }
}

#[test]
fn no_command_runs_in_the_home_folder_of_a_person() {
    let world = world();
    let (home, project) = (world.path("user"), world.path("user/project"));
    fs::create_dir_all(home.join(".ssh")).unwrap();
    fs::create_dir_all(&project).unwrap();
    fs::write(home.join(".ssh/id"), "a key\n").unwrap();
    let key = text(&home.join(".ssh/id"));
    let runs = |folder: &std::path::Path, more: &[&str]| -> Run {
        let words = [more, &["sandbox", "--", "cat", &key]].concat();
        world.command(&words).current_dir(folder).output().unwrap().into()
    };
    for (folder, more) in [(&home, &[][..]), (&project, &["--workspace", &text(&home)])] {
        let run = runs(folder, more);
        assert_eq!((run.code, run.out.as_str()), (Some(4), ""), "{run:?}");
        assert!(run.err.contains("your home folder is never a workspace"), "{run:?}");
    }
    let run = runs(&project, &[]);
    assert!(run.code == Some(1) && run.err.contains("No such file"), "the control: {run:?}");
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let world = world();
    for (line, code) in [("seq 100000", 6), ("true", 0), ("echo x >&2; exit 3", 3)] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = world.command(&["sandbox", "--", "sh", "-c", line]).stdout(full).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{line}: {told}");
        assert_eq!(told.contains("error: standard output could not be written"), code == 6, "{line}: {told}");
    }
}

#[test]
fn a_machine_without_namespaces_is_told_from_a_full_disk() {
    if lacks(&["unshare"]) {
        return;
    }
    let world = world();
    let program = world.command(&["doctor"]);
    let mut command = std::process::Command::new("unshare");
    let none = "echo 0 > /proc/sys/user/max_user_namespaces || exit 99; exec \"$0\" doctor";
    command.args(["--user", "--map-root-user", "sh", "-c", none]).arg(program.get_program());
    command.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(program.get_current_dir().unwrap());
    let told = command.output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let line = told.lines().find(|line| line.contains(" sandbox ")).unwrap_or_else(|| panic!("{told}"));
    assert!(line.contains("allows no more namespaces") && !line.contains("No space left"), "{line}");
}

#[test]
fn it_reaches_neither_the_home_nor_the_environment_nor_the_protected_set() {
    let world = world();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let store = world.home().join("loom.db");
    let reads = format!("cat {}", store.display());
    assert_ne!(world.run(&["sandbox", "--", "sh", "-c", &reads]).code, Some(0));
    let run = world.run(&["sandbox", "--", "sh", "-c", "env; echo x >> AGENTS.md"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(!run.out.contains("DRAWLOOM") && run.err.contains("Read-only"), "{run:?}");
    assert_eq!(instructions(&world), "ours");
    let run = world.run(&["sandbox", "--", "sh", "-c", "echo evil > .envrc"]);
    assert!(run.err.contains(".envrc, which is protected, to"), "{run:?}");
    assert!(!world.path("here/.envrc").exists());
    // It can be had back, as is said.
    let envrc = text(&fs::canonicalize(world.path("here")).unwrap().join(".envrc"));
    let makes = "echo evil > .envrc; mkdir .drawloom";
    let done = world.run(&["sandbox", "--json", "--", "sh", "-c", makes]);
    let done: Value = serde_json::from_str(&done.out).unwrap();
    let moved = done["protected"].as_array().unwrap();
    let moved = moved.iter().find(|moved| moved["path"] == *envrc).unwrap()["moved_to"].as_str().unwrap();
    assert_eq!(fs::read_to_string(moved).unwrap(), "evil\n");
    let back =
        format!("`mv {moved} {envrc}` brings it back, and with `--touches {envrc}` the command may make it");
    let notices: Vec<&str> = done["notices"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(notices.contains(&&*back), "{done}");
    let never = notices.iter().find(|notice| notice.contains("here/.drawloom`")).unwrap();
    assert!(never.ends_with("brings it back"), "{never}");
    assert!(run.err.contains("brings it back, and with `--touches "), "{run:?}");
    let made = world.run(&["sandbox", "--touches", &envrc, "--", "sh", "-c", "echo mine > .envrc"]);
    assert_eq!((made.code, made.err.as_str()), (Some(0), ""));
}

#[test]
fn what_is_allowed_by_name_is_written() {
    let world = world();
    let made = world.run(&["sandbox", "--touches", "CLAUDE.md", "--", "sh", "-c", "echo x > CLAUDE.md"]);
    assert_eq!((made.code, made.err.as_str()), (Some(0), ""));
    assert!(world.path("here/CLAUDE.md").exists());
    for (path, why) in [
        (".idea/new", "is not there: name in touches what protects it, .idea"),
        ("memory", "holds what no command may write"),
        (".git/hooks/x", "is written by no command"),
        ("README", "is not protected itself"),
    ] {
        let refused = world.run(&["sandbox", "--touches", path, "--", "true"]);
        assert!(refused.code == Some(2) && refused.err.contains(why), "{path}: {refused:?}");
    }
    let run = world.run(&["sandbox", "--touches", "AGENTS.md", "--", "sh", "-c", "echo x > AGENTS.md"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert_eq!(instructions(&world), "x\n");
}

#[test]
fn as_json_it_says_what_became_of_the_command() {
    let world = world();
    // All behind the two dashes is the command's.
    let run = world.run(&["--json", "sandbox", "--", "sh", "-c", "echo a; echo evil > .envrc; exit 3"]);
    let told: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((run.code, told["exit"].as_u64(), told["output"].as_str()), (Some(3), Some(3), Some("a\n")));
    assert_eq!(told["level"], "full");
    assert!(told["protected"][0]["path"].as_str().unwrap().ends_with("here/.envrc"), "{told}");
}

#[test]
fn a_host_that_is_named_is_reached_and_told() {
    if lacks(&["curl"]) {
        return;
    }
    let world = world();
    let (site, other) =
        (Site::start(|_| answer("text/plain", "there\n")), Site::start(|_| answer("text/plain", "sink")));
    world.write("config.toml", &named(&[&site, &other]));
    let line = format!("curl -sS {}; curl -sS {}", site.url("/"), other.url("/"));
    let run = world.run(&["sandbox", "--net", &site.place(), "--", "sh", "-c", &line]);
    assert_eq!((run.code, other.paths()), (Some(0), Vec::new()), "{run:?}");
    let told = [
        format!("reached {}: ", site.place()),
        format!("{} is not reached: it is none of the hosts that were named", other.place()),
    ];
    assert!(run.out.starts_with("there\n") && told.iter().all(|told| run.err.contains(told)), "{run:?}");
    let open = world.run(&["sandbox", "--net", "open", "--", "sh", "-c", &line]);
    assert_eq!(
        (open.code, open.out.as_str(), other.paths()),
        (Some(0), "there\nsink", vec!["/".to_owned()]),
        "{open:?}"
    );
    let mixed = world.run(&["sandbox", "--net", "open", "--net", "example.org", "--", "true"]);
    assert_eq!(mixed.code, Some(2), "{mixed:?}");
}

#[test]
fn git_commits_as_the_owner_and_as_a_repository_says_where_it_says_so() {
    if lacks(&["git"]) {
        return;
    }
    let world = world();
    let author = || {
        let line = "git commit -q --allow-empty -m one && git log -1 --format='%an <%ae>, %cn <%ce>'";
        world.run(&["sandbox", "--", "sh", "-c", line])
    };
    let here = world.path("here");
    crate::everyday::git(&here, &["init", "-q"]);
    assert_ne!(author().code, Some(0));
    let owner = "[user]\n\tname = Ada L.\n\temail = ada@example.org\n[core]\n\tpager = touch paged\n";
    fs::write(world.path("user/.gitconfig"), owner).unwrap();
    let run = author();
    assert_eq!(run.out, "Ada L. <ada@example.org>, Ada L. <ada@example.org>\n", "{run:?}");
    let settings = world.ok(&["sandbox", "--", "git", "config", "--global", "--list"]);
    assert_eq!(settings, "user.name=Ada L.\nuser.email=ada@example.org\n");
    crate::everyday::git(&here, &["config", "user.name", "Own"]);
    assert_eq!(author().out, "Own <ada@example.org>, Own <ada@example.org>\n");
}

/// As in a pipe without walls.
#[test]
fn a_command_that_nobody_reads_any_more_is_ended() {
    let world = World::new();
    let project = world.path("project");
    fs::create_dir(&project).unwrap();
    for (line, to) in [("yes", "1"), ("while echo x; do sleep 0.01; done", "1"), ("yes >&2", "2")] {
        let mut command = world.command(&["--workspace", &text(&project), "sandbox", "--", "sh", "-c", line]);
        let mut child = crate::world::piped(&mut command);
        // The end of the pipe goes with its first bytes read.
        let mut first = [0; 2];
        if to == "1" {
            child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        } else {
            child.stderr.take().unwrap().read_exact(&mut first).unwrap();
        }
        let done = child.wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(141), "{line}: {done:?}");
    }
}

/// Whoever made the pipe may have said that writes to it do not wait, and errors may have nowhere to go.
#[test]
fn a_reader_that_is_slow_gets_all_and_errors_that_nobody_can_keep_end_nothing() {
    let world = World::new();
    let project = world.path("project");
    fs::create_dir(&project).unwrap();
    let mut command = world.command(&[
        "--workspace",
        &text(&project),
        "sandbox",
        "--",
        "sh",
        "-c",
        "echo lost >&2; head -c 1000000 /dev/zero; echo more >&2",
    ]);
    let (mut out, end) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&end, true).unwrap();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    command.stdin(std::process::Stdio::null()).stdout(end).stderr(full);
    let mut child = command.spawn().unwrap();
    // The end of the pipe that this process has goes with what it started.
    drop(command);
    let mut first = [0; 1];
    out.read_exact(&mut first).unwrap();
    crate::running_commands::wait_until("the pipe is not full", || {
        rustix::io::ioctl_fionread(&out).unwrap() >= 32 << 10
    });
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).unwrap();
    assert_eq!((child.wait().unwrap().code(), 1 + rest.len()), (Some(0), 1_000_000));
}

#[test]
fn a_pipe_goes_into_the_command_and_what_it_changes_is_told_in_json() {
    let world = world();
    let run = world.fed(&["sandbox", "--net", "off", "--", "tr", "a-z", "A-Z"], b"warp\n");
    assert_eq!((run.code, run.out.as_str()), (Some(0), "WARP\n"), "{run:?}");
    // What it does not read it need not.
    let much = vec![b'x'; 1 << 20];
    assert_eq!(world.fed(&["sandbox", "--", "true"], &much).code, Some(0));
    // Nothing on standard input is an end at once.
    assert_eq!(world.run(&["sandbox", "--", "cat"]).out, "");

    let line = "echo one >> text.txt; mkdir made; echo 1 > made/new; cat > kept";
    let run = world.fed(&["--json", "sandbox", "--", "sh", "-c", line], b"kept\n");
    let told: Value = serde_json::from_str(&run.out).unwrap();
    let mut changed: Vec<_> = told["changed"].as_array().unwrap().iter().map(Value::to_string).collect();
    changed.sort();
    let expected = [
        r#"{"path":"kept","added":1,"removed":0}"#,
        r#"{"path":"made/new","added":1,"removed":0}"#,
        r#"{"path":"text.txt","added":1,"removed":1}"#,
    ];
    assert_eq!(changed, expected, "{run:?}");
    let run = world.run(&["--json", "sandbox", "--", "cat", "kept"]);
    let told: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&told["changed"], &told["output"]), (&serde_json::json!([]), &serde_json::json!("kept\n")));
}

#[test]
fn a_command_is_ended_where_less_space_is_free_than_its_owner_wants() {
    let world = world();
    world.write("config.toml", "[limits]\nfree_space = \"1000 TiB\"\n");
    let run = world.run(&["sandbox", "--", "sleep", "60"]);
    assert!(run.code != Some(0) && run.err.contains("(limits.free_space)"), "{run:?}");
}
