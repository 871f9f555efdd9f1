//! Files of the home: what stands in the place of one, and folders that an owner makes by hand (spec: security §8).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::json;

use crate::exec;
use crate::files::ends;
use crate::mcp::{there, world};
use crate::tools::calls;
use crate::world::{Run, World, lacks, text};

/// Puts a pipe, and then an endless link, in the place of a file, and has a command come to its end each time.
fn ends_beside(world: &World, name: &str, arguments: &[&str], check: impl Fn(&Run, &str)) {
    let (path, project) = (world.home().join(name), text(&world.path("project")));
    // Outside the home, where commands remove what they do not know.
    let kept = world.path("kept");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let had = fs::rename(&path, &kept).is_ok();
    for kind in ["pipe", "link"] {
        match kind {
            "pipe" => mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap(),
            _ => symlink("/dev/zero", &path).unwrap(),
        }
        let run = ends(&mut world.command(&[&["--workspace", &project][..], arguments].concat()));
        check(&run, kind);
        if path.symlink_metadata().is_ok() {
            fs::remove_file(&path).unwrap();
        }
    }
    if had {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::rename(&kept, &path).unwrap();
    }
}

#[test]
fn e11_a_pipe_or_an_endless_link_in_the_place_of_a_login_accepted_tools_or_a_lock_is_named() {
    let entry = "[mcp.issues]\nurl = \"http://127.0.0.1:1/mcp\"\n";
    let world = world(&vec![json!({"text": "Hello."}); 32], entry);
    world.ok(&["tree", "new", "--title", "Tale"]);
    let chat = &["chat", "-m", "hi", "--new"][..];
    world.ok(chat);
    let goes_on = |run: &Run, _: &str| assert_eq!(run.code, Some(0), "{run:?}");
    for (file, needs, need_none) in [
        ("oauth/issues.json", &["mcp", "test", "issues"][..], &[&["tree", "list"][..], chat][..]),
        ("mcp/issues.json", &["mcp", "list"], &[&["tree", "list"]]),
        ("locks/blobs.lock", &["doctor"], &[&["tree", "list"], &["mcp", "list"], chat]),
        (
            "locks/forget.lock",
            &["forget", "--text", "Hello.", "--yes", "--yes"],
            &[&["tree", "list"], &["mcp", "list"], chat],
        ),
    ] {
        ends_beside(&world, file, needs, named(file));
        ends_beside(&world, file, &["doctor", "--quick"], named(file));
        for arguments in need_none {
            ends_beside(&world, file, arguments, goes_on);
        }
    }
    assert!(!world.ok(&["doctor", "--quick"]).contains("move it away"), "the control");
}

/// Checks that a command names what stands in the place of a file.
fn named(file: &str) -> impl Fn(&Run, &str) + '_ {
    move |run, kind| {
        let said = run.out.clone() + &run.err;
        let what = if kind == "pipe" { "is no plain file" } else { "is a link" };
        let named = format!("{file} {what}: move it away");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(&named), "{kind}: {run:?}");
    }
}

/// Files below a folder.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files_below(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

#[test]
fn e11_no_file_that_a_command_leaves_in_the_home_is_waited_for_by_the_next_one() {
    if lacks(&["git"]) {
        return;
    }
    let lines = [calls(&json!([exec::exec("echo a >> notes")])), json!({"text": "Done."})];
    let world = exec::world_with(&lines, "[[policy.rules]]\ndecision = \"allow\"\ntool = [\"exec\"]\n");
    let mut git = Command::new("git");
    assert!(git.arg("init").arg("-q").arg(world.path("project")).status().unwrap().success());
    let chat = ["chat", "-m", "Do it.", "--new"];
    there(&world, &chat);
    let folders = ["sandbox/tracked", "cache/checkpoints", "locks"];
    let files: Vec<PathBuf> =
        folders.iter().flat_map(|folder| files_below(&world.home().join(folder))).collect();
    let has = |part: &str| files.iter().any(|file| text(file).contains(part));
    for part in ["tracked/running/", "index.json", "checkpoints", "changing.lock", "blobs.lock"] {
        assert!(has(part), "{part}: {files:?}");
    }
    for file in &files {
        if !file.exists() {
            continue;
        }
        let name = text(file.strip_prefix(world.home()).unwrap());
        ends_beside(&world, &name, &chat, |_, _| ());
        ends_beside(&world, &name, &["doctor", "--quick"], named(&name));
    }
}

#[test]
fn a_home_begins_with_what_its_owner_made_by_hand_and_names_what_is_in_the_way() {
    for (file, text) in [
        ("skills/paint/SKILL.md", "---\nname: paint\ndescription: Paints.\n---\nPaint it.\n"),
        ("commands/review.md", "Review it.\n"),
        ("agents/poet.md", "---\nname: poet\ndescription: Writes.\n---\nWrite.\n"),
    ] {
        let world = World::new();
        let path = world.home().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        world.ok(&["tree", "list"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        if file.starts_with("skills") {
            assert!(world.ok(&["skills", "list"]).contains("paint"));
        }
    }
    let world = World::new();
    for file in ["skills/paint/SKILL.md", "thesis.tex"] {
        let path = world.home().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
    }
    let refused = world.run(&["tree", "list"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("holds other files (thesis.tex) and is no Drawloom home"), "{refused:?}");
}
