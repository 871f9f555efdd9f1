//! What can stand at a path, and how it is shown, given back and taken again.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::exec::{exec, world};
use crate::file_tools::{listed, say};
use crate::tools::{calls, chat};
use crate::undo_walls::turn;
use crate::world::{Run, World};

/// Both were once written in the place of bytes that are not kept.
#[test]
fn a_text_that_says_that_its_bytes_are_not_kept_is_shown_and_given_back_as_any_other() {
    const UNKNOWN: &str = "[What stands here is not known to be what the command left.]\n";
    const LARGE: &str =
        "[A file of 10.5 MiB, whose bytes are not kept: 11000000 bytes, 1, 2, 3, 4.]\nrm -rf ~/important\n";
    let write =
        |path: &str, content: &str| json!({"name": "write", "arguments": {"path": path, "content": content}});
    let world = world(&[
        calls(&json!([{"name": "read", "arguments": {"path": "mine"}}])),
        calls(&json!([write("evil", LARGE), write("mine", UNKNOWN)])),
        json!({"text": "Done."}),
    ]);
    let project = world.path("project");
    fs::write(project.join("mine"), "mine\n").unwrap();
    let (code, said) = chat(&world, "Do it.");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said["changed"][0], json!({"path": "evil", "added": 2, "removed": 0}), "{said}");
    let shown = say(&world, "/diff").out;
    assert!(shown.contains("+rm -rf ~/important\n") && shown.contains("+[What stands here"), "{shown}");
    let back = say(&world, "/undo --files");
    assert!(!project.join("evil").exists(), "{back:?}");
    assert_eq!(fs::read_to_string(project.join("mine")).unwrap(), "mine\n", "{back:?}");
    let redone = say(&world, "/redo --files");
    assert_eq!(fs::read_to_string(project.join("evil")).unwrap(), LARGE, "{redone:?}");
    assert_eq!(fs::read_to_string(project.join("mine")).unwrap(), UNKNOWN, "{redone:?}");
}

/// Runs it as an ordinary user, whom modes keep out.
pub(crate) fn as_user(world: &World, arguments: &[&str]) -> Run {
    give_to_user(world);
    user_command(world, arguments).output().unwrap().into()
}

/// Makes an ordinary user the owner of all that is there.
pub(crate) fn give_to_user(world: &World) {
    let owned = Command::new("chown").args(["-R", "65534:65534"]).arg(world.path("")).status().unwrap();
    assert!(owned.success());
}

/// A command of the ordinary user.
pub(crate) fn user_command(world: &World, arguments: &[&str]) -> Command {
    // Only the superuser can be somebody else.
    assert!(rustix::process::geteuid().is_root(), "run as root, or leave this test out by name");
    let project = world.path("project");
    let inner = world.command(&[&["--workspace", project.to_str().unwrap()], arguments].concat());
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(inner.get_program()).args(inner.get_args()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(inner.get_current_dir().unwrap()).stdin(Stdio::null());
    command
}

#[test]
fn what_a_command_closed_to_its_owner_is_recorded_given_back_and_taken_again() {
    let closes = "echo new > f; chmod 000 f; echo new > g; chmod 200 g; chmod 000 h; \
                  chmod 000 src/main.rs; chmod 000 src; echo n > n; chmod 000 n; mkdir m; echo x > m/x; chmod 000 m";
    let world = world(&[calls(&json!([exec(closes)])), json!({"text": "Done."})]);
    let project = world.path("project");
    for name in ["f", "g", "h"] {
        fs::write(project.join(name), "old\n").unwrap();
    }
    // What its owner closed is nobody else's business.
    fs::write(project.join("own"), "mine\n").unwrap();
    fs::set_permissions(project.join("own"), PermissionsExt::from_mode(0o000)).unwrap();
    let before = listed(&project);
    let ran = as_user(&world, &["chat", "-m", "Close them."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let closed = listed(&project);
    assert_eq!(fs::metadata(project.join("f")).unwrap().permissions().mode() & 0o7777, 0);
    let shown = as_user(&world, &["chat", "-m", "/diff"]).out;
    assert!(shown.contains("+++ n\n") && shown.contains("src: old mode 755\n"), "{shown}");
    assert!(!shown.contains("mine"), "{shown}");
    let back = as_user(&world, &["chat", "-m", "/undo --files"]);
    assert!(!back.err.contains("left as it is"), "{back:?}");
    assert_eq!(listed(&project), before, "{back:?}");
    let redone = as_user(&world, &["chat", "-m", "/redo --files"]);
    assert_eq!(listed(&project), closed, "{redone:?}");
}

#[test]
fn modes_of_folders_are_shown_given_back_and_taken_again() {
    let world = world(&[calls(&json!([exec("chmod 700 src")])), json!({"text": "Done."})]);
    let project = world.path("project");
    fs::set_permissions(project.join("src"), PermissionsExt::from_mode(0o755)).unwrap();
    let (code, said) = chat(&world, "Do it.");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said["changed"], json!([{"path": "src", "added": null, "removed": null}]));
    let shown = say(&world, "/diff").out;
    assert!(shown.contains("src: old mode 755\nsrc: new mode 700\n") && !shown.contains("folder"), "{shown}");
    let mode = || fs::metadata(project.join("src")).unwrap().permissions().mode() & 0o7777;
    for (command, expected) in
        [("/undo --files", 0o755), ("/redo --files", 0o700), ("/restore src --yes", 0o755)]
    {
        let run = say(&world, command);
        assert_eq!(mode(), expected, "{command}: {run:?}");
    }
}

#[test]
fn a_link_that_became_a_folder_is_given_back_and_taken_again_at_once() {
    let world = world(&[]);
    let project = world.path("project");
    symlink("src", project.join("link")).unwrap();
    let before = listed(&project);
    turn(&world, &project, "rm link; mkdir link; echo in > link/in; mv src t; mv link src; mv t link");
    let after = listed(&project);
    for (command, expected) in [("/undo --files", &before), ("/redo --files", &after)] {
        let run = say(&world, command);
        assert_eq!(&listed(&project), expected, "{command}: {run:?}");
        assert!(!run.err.contains("left as it is"), "{run:?}");
    }
}

#[test]
fn a_file_that_became_a_pipe_comes_back_and_a_new_pipe_goes_unless_it_is_another_one() {
    let world = world(&[]);
    let project = world.path("project");
    fs::write(project.join("f"), "old\n").unwrap();
    fs::write(project.join("g"), "old\n").unwrap();
    turn(&world, &project, "rm f g; mkfifo f g n");
    let shown = say(&world, "/diff").out;
    assert!(shown.contains("new pipe or socket n\n") && shown.contains("-old\n"), "{shown}");
    // One that somebody made since stays, also with an equal name.
    fs::rename(project.join("n"), project.join("mine")).unwrap();
    fs::rename(project.join("g"), project.join("n")).unwrap();
    let back = say(&world, "/undo --files");
    assert_eq!(fs::read_to_string(project.join("f")).unwrap(), "old\n", "{back:?}");
    for moved in ["g", "n"] {
        assert!(back.err.contains(&format!("left as it is: {moved}: somebody changed it since")), "{back:?}");
    }
    assert!(project.join("mine").exists() && project.join("n").exists() && !project.join("g").exists());
}

/// What tools made and took away again is nothing of theirs, whatever somebody's link leads to.
#[test]
fn what_came_and_went_is_not_left_behind_a_link_that_somebody_made_since() {
    let world = world(&[
        calls(&json!([{"name": "write", "arguments": {"path": "d/f", "content": "one\n"}}])),
        calls(&json!([exec("rm -r d; echo two > other")])),
        json!({"text": "Done."}),
    ]);
    let (code, said) = chat(&world, "Do it.");
    assert_eq!(code, Some(0), "{said}");
    let project = world.path("project");
    symlink("elsewhere", project.join("d")).unwrap();
    let back = say(&world, "/undo --files");
    assert_eq!(back.out, "given back: other\n", "{back:?}");
    assert!(!back.err.contains("d/f") && back.err.contains("left as it is: d: "), "{back:?}");
    assert_eq!(fs::read_link(project.join("d")).unwrap().to_str(), Some("elsewhere"));
}

/// What tools made and somebody took away is what it was before, wherever a link above it leads, if nothing is there.
#[test]
fn what_is_gone_behind_a_link_is_not_left_and_what_is_there_is() {
    for (is_there, place) in [(false, "nowhere"), (true, "src")] {
        let write = |path: &str| json!({"name": "write", "arguments": {"path": path, "content": "one\n"}});
        let world = world(&[calls(&json!([write("d/f"), write("other")])), json!({"text": "Done."})]);
        let (code, said) = chat(&world, "Do it.");
        assert_eq!(code, Some(0), "{said}");
        let project = world.path("project");
        fs::remove_dir_all(project.join("d")).unwrap();
        fs::create_dir_all(project.join("src")).unwrap();
        fs::write(project.join("src/f"), "one\n").unwrap();
        symlink(place, project.join("d")).unwrap();
        let back = say(&world, "/undo --files");
        assert_eq!((&*back.out, back.err.contains("d/f")), ("given back: other\n", is_there), "{back:?}");
        assert!(project.join("src/f").exists(), "{back:?}");
    }
}

#[test]
fn a_path_that_two_turns_left_is_named_once() {
    let write =
        |path: &str, text: &str| json!({"name": "write", "arguments": {"path": path, "content": text}});
    let world = world(&[
        calls(&json!([write("both", "one\n"), write("first", "one\n")])),
        json!({"text": "Done."}),
        calls(&json!([write("both", "two\n")])),
        json!({"text": "Done."}),
    ]);
    for message in ["One.", "Two."] {
        assert_eq!(chat(&world, message).0, Some(0));
    }
    fs::write(world.path("project/both"), "mine\n").unwrap();
    let back = say(&world, "/undo --files");
    assert_eq!((&*back.out, back.err.matches("both").count()), ("given back: first\n", 1), "{back:?}");
}

#[test]
fn empty_files_that_came_or_went_are_shown_restored_and_given_back() {
    let world = world(&[calls(&json!([exec("rm empty; : > made")])), json!({"text": "Done."})]);
    let project = world.path("project");
    fs::write(project.join("empty"), "").unwrap();
    let (code, said) = chat(&world, "Do it.");
    assert_eq!(code, Some(0), "{said}");
    let shown = say(&world, "/diff").out;
    assert!(shown.contains("deleted empty file empty") && shown.contains("new empty file made"), "{shown}");
    let asked = say(&world, "/restore empty");
    assert!(!project.join("empty").exists() && asked.err.contains("was not restored"), "{asked:?}");
    let restored = say(&world, "/restore empty --yes");
    assert!(project.join("empty").exists(), "{restored:?}");
    say(&world, "/undo --files");
    assert!(!project.join("made").exists());
}
