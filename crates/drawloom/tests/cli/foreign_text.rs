//! Text that is not ours at a terminal, in a pipe and as JSON (spec: cli §1, security §26).

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::world::World;

/// A title that writes the clipboard, moves the cursor, and turns text around.
const HOSTILE: &str = "a\u{1b}]52;c;eA==\u{7}\u{1b}[2A\u{9b}31m\u{202e}z\rEVIL";

/// A title holds no controls, but may turn text around.
const TITLE: &str = "a\u{202e}z";

/// What a terminal gets of both streams.
fn at_a_terminal(world: &World, arguments: &[&str]) -> String {
    let terminal: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let side =
        || -> File { rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap().into() };
    let mut command = world.command(arguments);
    let mut child = command.stdout(side()).stderr(side()).spawn().unwrap();
    // The last program side must be gone for the terminal to end.
    drop(command);
    let mut seen = Vec::new();
    let mut terminal = File::from(terminal);
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = terminal.read(&mut piece) {
        seen.extend_from_slice(&piece[..read]);
    }
    child.wait().unwrap();
    String::from_utf8(seen).unwrap().replace("\r\n", "\n")
}

fn harmless(seen: &str) {
    let wild = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!seen.contains(wild), "{seen:?}");
}

#[test]
fn s26_a_terminal_shows_what_it_would_have_obeyed() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", TITLE, "--text", HOSTILE]);
    for arguments in [
        &["tree", "list"][..],
        &["tree", "show", TITLE],
        &["tree", "show", TITLE, "--all"],
        &["tree", "text", TITLE, "--spans"],
        &["tree", "text", TITLE, "--authors"],
        &["search", "EVIL"],
        &["tree", "show", "\u{1b}]0;nothing\u{7}"],
        &["config", "get", "\u{1b}[2J"],
        &["\u{1b}[2J"],
        &["--model", "\u{1b}[2J/x", "tree", "generate", TITLE],
        &["--model", "script:echo", "tree", "generate", TITLE],
    ] {
        let arguments = [arguments, &["--color", "never"]].concat();
        let seen = at_a_terminal(&world, &arguments);
        harmless(&seen);
        assert!(!seen.is_empty(), "{arguments:?}");
    }
    assert!(at_a_terminal(&world, &["tree", "list"]).contains("a\\u{202e}z"));
    let seen = at_a_terminal(&world, &["tree", "text", TITLE]);
    assert!(seen.contains("a␛]52;c;eA==␇␛[2A\\u{9b}31m\\u{202e}z␍EVIL"), "{seen:?}");
}

#[test]
fn colours_are_ours_alone() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "x", "--text", HOSTILE]);
    world.ok(&["--model", "script:echo", "tree", "generate", "x"]);
    let seen = at_a_terminal(&world, &["tree", "text", "x", "--color", "always"]);
    assert!(seen.contains("\x1b[34m echo 1\x1b[0m"), "{seen:?}");
    harmless(&seen.replace("\x1b[34m", "").replace("\x1b[0m", ""));
}

#[test]
fn a_pipe_gets_bytes_as_they_are() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "x", "--text", HOSTILE]);
    assert_eq!(world.ok(&["tree", "text", "x"]), HOSTILE);
}

#[test]
fn json_escapes_and_reads_back_the_same() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", TITLE, "--text", HOSTILE]);
    let raw = world.ok(&["tree", "text", TITLE, "--json"]);
    harmless(&raw);
    let found: serde_json::Value = serde_json::from_str(&raw).unwrap();
    assert_eq!(found["text"], HOSTILE);
    let error = world.run(&["--json", "tree", "show", "\u{1b}[2J\u{202e}"]);
    harmless(&error.out);
}
