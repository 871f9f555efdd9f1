//! What is given back leads around no wall: not out of a root by a link that stands where it was, and not to a protected file that the walls took
//! away.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Child, Command};

use serde_json::json;

use crate::exec::{exec, world};
use crate::file_tools::say;
use crate::tools::{calls, nodes};
use crate::world::{Run, World, lacks, piped, text};

/// A turn in which the model runs a command.
pub(crate) fn turn(world: &World, workspace: &Path, command: &str) {
    let lines = [calls(&json!([exec(command)])), json!({"text": "Done."})];
    world.write("lines.jsonl", &lines.map(|line| format!("{line}\n")).concat());
    let run = world.run(&["--workspace", workspace.to_str().unwrap(), "chat", "-m", command]);
    assert_eq!(run.code, Some(0), "{run:?}");
}

/// Which the model cannot open: no command of it begins.
#[test]
fn a_folder_that_a_command_closed_is_named_with_ways_on_that_work() {
    for way in ["chmod", "delete", "undo"] {
        let world = world(&[]);
        world.ok(&["config", "set", "agents.assistant.tools", "[\"exec\", \"delete\"]"]);
        let project = world.path("project");
        turn(&world, &project, "mkdir a; chmod 000 a");
        let sandboxed =
            || world.run(&["--workspace", project.to_str().unwrap(), "sandbox", "--", "echo", "runs"]);
        let refused = sandboxed();
        let told =
            "`chmod u+rwx` on it at a terminal opens it, `delete` removes it, `/undo --files` takes back";
        assert!(refused.code != Some(0) && refused.err.contains(told), "{refused:?}");
        match way {
            "chmod" => fs::set_permissions(project.join("a"), fs::Permissions::from_mode(0o700)).unwrap(),
            "delete" => {
                let lines = [
                    calls(&json!([{"name": "delete", "arguments": {"path": "a"}}])),
                    json!({"text": "Done."}),
                ];
                world.write("lines.jsonl", &lines.map(|line| format!("{line}\n")).concat());
                say(&world, "Delete it.");
            }
            _ => drop(say(&world, "/undo --files")),
        }
        let run = sandboxed();
        assert_eq!(run.out, "runs\n", "{way}: {run:?}");
    }
}

#[test]
fn a_link_where_the_folder_was_leads_nowhere() {
    let world = world(&[]);
    let (project, other) = (world.path("project"), world.path("user"));
    let sub = project.join("src");
    turn(&world, &sub, "echo evil > keys");
    turn(&world, &sub, "rm keys");
    let (_, trees) = world.json(&["tree", "list"]);
    let tree = trees["trees"][0]["tree"].as_str().unwrap().to_owned();
    fs::rename(&sub, project.join("moved")).unwrap();
    symlink(&other, &sub).unwrap();
    for arguments in [
        &["tree", "undo", &tree, "--files"][..],
        &["--workspace", sub.to_str().unwrap(), "files", "restore", "keys", "--yes"],
        &["--workspace", sub.to_str().unwrap(), "chat", "-m", "/undo --files"],
    ] {
        let run = world.run(arguments);
        assert!(!other.join("keys").exists(), "{arguments:?}: {run:?}");
    }
    let run = world.run(&["tree", "undo", &tree, "--files"]);
    assert!(format!("{}{}", run.out, run.err).contains("a link stands where"), "{run:?}");
    // The control: the folder itself is given back to.
    fs::remove_file(&sub).unwrap();
    fs::rename(project.join("moved"), &sub).unwrap();
    let run = world.run(&["tree", "undo", &tree, "--files"]);
    assert!(sub.join("keys").exists(), "{run:?}");
}

/// A conversation of its own that goes on beside others.
fn begins(world: &World, session: &str, command: &str) -> Child {
    let lines = world.home().join(format!("{session}.jsonl"));
    world.write(
        &format!("{session}.jsonl"),
        &format!("{}\n{}\n", calls(&json!([exec(command)])), json!({"text": "Done."})),
    );
    let model = format!("script:{}", lines.to_str().unwrap());
    let project = text(&world.path("project"));
    let arguments =
        ["--workspace", &project, "--model", &model, "chat", "--session", session, "-m", "Do it."];
    piped(&mut world.command(&arguments))
}

#[test]
fn what_the_walls_took_away_beside_another_command_stays_away() {
    let world = world(&[]);
    let project = world.path("project");
    // The first makes a protected file, the second sees it, and sees it go.
    let one = begins(&world, "one", "echo evil > .envrc; touch made; until [ -e seen ]; do :; done");
    let two = begins(
        &world,
        "two",
        "until [ -e made ]; do :; done; ls -A; touch seen; until [ ! -e .envrc ]; do :; done; echo two > two",
    );
    let one: Run = one.wait_with_output().unwrap().into();
    let two: Run = two.wait_with_output().unwrap().into();
    assert_eq!((one.code, two.code), (Some(0), Some(0)), "{one:?} {two:?}");
    assert!(!project.join(".envrc").exists() && project.join("two").exists(), "{one:?} {two:?}");
    for session in ["two", "one", "two", "one"] {
        let project = text(&world.path("project"));
        world.run(&["--workspace", &project, "chat", "--session", session, "-m", "/undo --files"]);
        assert!(!world.path("project/.envrc").exists(), "{session}");
    }
    assert!(!project.join("two").exists());
}

#[test]
fn a_hook_that_a_configuration_leads_to_is_given_back_only_where_it_is_seen() {
    let world = world(&[]);
    turn(&world, &world.path("project"), "mkdir tools; echo evil > tools/pre-commit; echo x > x");
    turn(&world, &world.path("project"), "rm -r tools x");
    // By now the owner's git takes the folder for its hooks.
    fs::create_dir_all(world.path("project/.git")).unwrap();
    fs::write(world.path("project/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::create_dir_all(world.path("project/.git/objects")).unwrap();
    fs::create_dir_all(world.path("project/.git/refs")).unwrap();
    fs::write(world.path("project/.git/config"), "[core]\nhooksPath = tools\n").unwrap();
    let run = say(&world, "/undo --files");
    assert!(world.path("project/x").exists() && !world.path("project/tools/pre-commit").exists(), "{run:?}");
    assert!(format!("{}{}", run.out, run.err).contains("given back at a terminal"), "{run:?}");
}

#[test]
fn a_command_that_closes_its_workspace_leaves_it_open() {
    let world = world(&[]);
    let project = world.path("project");
    fs::set_permissions(&project, fs::Permissions::from_mode(0o750)).unwrap();
    turn(&world, &project, "echo n > n; chmod 000 .");
    assert_eq!(fs::metadata(&project).unwrap().mode() & 0o7777, 0o750);
    let told = nodes(&world).into_iter().find(|node| node["author"] == "exec").unwrap()["text"].to_string();
    assert!(told.contains("has its mode again: a command set it to 000"), "{told}");
    turn(&world, &project, "cat n");
    say(&world, "/undo --files");
    assert!(!project.join("n").exists());
    let git = project.join(".git");
    for folder in ["objects", "refs"] {
        fs::create_dir_all(git.join(folder)).unwrap();
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    turn(&world, &project, "chmod 000 .git");
    assert_eq!(fs::metadata(&git).unwrap().mode() & 0o7777, 0o755);
    let told = nodes(&world).into_iter().rfind(|node| node["author"] == "exec").unwrap()["text"].to_string();
    assert!(told.contains(".git has its mode again: a command set it to 000"), "{told}");
    // Of one that was killed, the next one says what to do.
    fs::set_permissions(&project, fs::Permissions::from_mode(0o000)).unwrap();
    let closed = world.run(&["--workspace", &text(&project), "sandbox", "--", "true"]);
    fs::set_permissions(&project, fs::Permissions::from_mode(0o750)).unwrap();
    assert!(closed.err.contains("chmod u+rwx") && !closed.err.contains("remove it"), "{closed:?}");
}

#[test]
fn folders_that_hold_more_than_is_recorded_are_named_once() {
    let world = world(&[]);
    let project = world.path("project");
    turn(&world, &project, &format!("mkdir -p {}", "d/".repeat(100)));
    let back = say(&world, "/undo --files");
    assert_eq!(back.err.matches("left as it is: d").count(), 1, "{back:?}");
    assert!(project.join("d").exists());
}

#[test]
fn a_hook_of_a_git_folder_is_not_said_to_be_written_otherwise() {
    let world = world(&[]);
    let shape =
        "mkdir -p r/objects r/refs r/hooks; echo 'ref: refs/heads/m' > r/HEAD; echo x > r/hooks/post-commit";
    turn(&world, &world.path("project"), &format!("{shape}; echo x > AGENTS.md"));
    let told = nodes(&world).into_iter().find(|node| node["author"] == "exec").unwrap()["text"].to_string();
    let moved: Vec<&str> = told.split("\\n").filter(|line| line.contains(" was moved to ")).collect();
    assert_eq!(moved.len(), 2, "{told}");
    for line in moved {
        assert_eq!(line.contains("use write"), line.contains("AGENTS.md"), "{line}");
    }
}

#[test]
fn what_is_held_by_a_configuration_of_git_is_named() {
    if lacks(&["git"]) {
        return;
    }
    let world = world(&[]);
    let project = world.path("project");
    for words in [&["init", "-q"][..], &["config", "core.hooksPath", ".gh"]] {
        assert!(Command::new("git").args(words).current_dir(&project).status().unwrap().success());
    }
    fs::create_dir(project.join(".gh")).unwrap();
    turn(&world, &project, "echo x > .gh/post-commit");
    let told = nodes(&world).into_iter().find(|node| node["author"] == "exec").unwrap()["text"].to_string();
    assert!(told.contains(".gh/post-commit is closed to commands"), "{told}");
}

#[test]
fn what_is_told_of_another_name_of_a_protected_file_is_one_thing() {
    let world = world(&[]);
    let project = world.path("project");
    fs::write(project.join("AGENTS.md"), "good\n").unwrap();
    fs::hard_link(project.join("AGENTS.md"), project.join("notes.md")).unwrap();
    turn(&world, &project, "echo evil >> notes.md");
    assert_eq!(fs::read_to_string(project.join("AGENTS.md")).unwrap(), "good\n");
    let told = nodes(&world).into_iter().find(|node| node["author"] == "exec").unwrap()["text"].to_string();
    let of_it: Vec<&str> = told.split("\\n").filter(|line| line.contains("AGENTS.md is protected")).collect();
    let [line] = of_it.as_slice() else { panic!("{told}") };
    assert!(line.contains("it is back as it was") && line.contains("what it became was moved to"), "{line}");
}
