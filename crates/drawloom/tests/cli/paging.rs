//! Long answers go through a pager at a terminal, and nowhere else.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::terminal::Terminal;
use crate::world::{World, text};

/// Lines of the screen.
const ROWS: u16 = 20;

/// A world with a long text, and a pager that says what it was given and ends as the rest of its script says.
fn world(script: &str) -> World {
    let world = World::new();
    let lines: String = (1..=60).map(|number| format!("Line {number}.\n")).collect();
    std::fs::write(world.path("long.txt"), lines).unwrap();
    let file = text(&world.path("long.txt"));
    world.ok(&["tree", "new", "--title", "Long", "--file", &file, "--split", "none"]);
    world.ok(&["tree", "new", "--title", "Short", "--text", "Short."]);
    let pager = world.path("pager");
    std::fs::write(&pager, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&pager, std::fs::Permissions::from_mode(0o755)).unwrap();
    world
}

/// All it reads, between two lines of its own.
const READS: &str = "echo \"<$LESS|$*>\"; cat; echo '</pager>'";

fn seen(mut command: Command, environment: &[(&str, &str)]) -> (Option<i32>, String) {
    command.env("TERM", "xterm-256color").env("PATH", "/usr/bin:/bin").envs(environment.iter().copied());
    let mut terminal = Terminal::sized(command, ROWS, 80);
    let code = terminal.ended();
    while terminal.listen() {}
    (code, terminal.plain())
}

#[test]
fn what_is_longer_than_the_screen_goes_through_the_pager_that_is_named() {
    let world = world(READS);
    let pager = text(&world.path("pager"));
    let show = |words: &[&str], environment: &[(&str, &str)]| {
        let (code, seen) = seen(world.command(words), environment);
        assert_eq!(code, Some(0), "{seen}");
        seen
    };
    let text_of = ["tree", "text", "Long", "--quiet"];
    let paged = show(&text_of, &[("PAGER", &pager)]);
    assert!(paged.starts_with("<FRX|>\nLine 1.\n") && paged.ends_with("Line 60.\n</pager>\n"), "{paged}");
    let own = show(&text_of, &[("PAGER", "/nowhere/pager"), ("DRAWLOOM_PAGER", &pager), ("LESS", "x")]);
    assert!(own.starts_with("<x|>\nLine 1.\n"), "{own}");
    // With arguments, and as a line for the shell.
    let arguments = show(&text_of, &[("PAGER", &format!("{pager} -a  b"))]);
    assert!(arguments.starts_with("<FRX|-a b>\n"), "{arguments}");
    let line = show(&text_of, &[("PAGER", &format!("head -n 3 | \"{pager}\" 'a b'"))]);
    assert_eq!(line, "<FRX|a b>\nLine 1.\nLine 2.\nLine 3.\n</pager>\n");
    // Also of commands that open no store.
    assert!(show(&["config", "show", "--defaults"], &[("PAGER", &pager)]).starts_with("<FRX|>\n"));

    let whole: String = (1..=60).map(|number| format!("Line {number}.\n")).collect();
    assert_eq!(show(&["tree", "text", "Short", "--quiet"], &[("PAGER", &pager)]), "Short.\n", "it fits");
    for none in ["", "cat", " cat "] {
        assert_eq!(show(&text_of, &[("PAGER", none)]), whole, "{none:?}");
        assert_eq!(show(&text_of, &[("PAGER", &pager), ("DRAWLOOM_PAGER", none)]), whole, "{none:?}");
    }
    assert_eq!(show(&text_of, &[("PAGER", &pager), ("TERM", "dumb")]), whole);
    let json = show(&["tree", "text", "Long", "--json"], &[("PAGER", &pager)]);
    assert!(json.starts_with('{'), "{json}");
    // Neither side of a pipe is a place to turn pages.
    let mut piped = world.command(&text_of);
    let out = piped.env("PAGER", &pager).output().unwrap().stdout;
    assert_eq!(String::from_utf8(out).unwrap(), whole);
    // A conversation streams, and what was changed is said at once.
    world.ok(&["--model", "script:echo", "chat", "-m", &whole]);
    let history = show(&["chat", "-m", "/history"], &[("PAGER", &pager)]);
    assert!(!history.contains("</pager>"), "{history}");
}

#[test]
fn the_screen_is_counted_in_lines_of_its_width() {
    let world = world(READS);
    let pager = text(&world.path("pager"));
    for (characters, is_paged) in [(80 * 18, false), (80 * 19 + 1, true)] {
        let long = "x".repeat(characters);
        let title = format!("Of {characters}");
        world.ok(&["tree", "new", "--title", &title, "--text", &long]);
        let (_, seen) = seen(world.command(&["tree", "text", &title]), &[("PAGER", &pager)]);
        assert_eq!(seen.contains("</pager>"), is_paged, "{characters}: {seen}");
    }
}

#[test]
fn a_pager_that_is_left_early_has_shown_enough() {
    let world = world("read line; echo \"<$line>\"; exit 0");
    let pager = text(&world.path("pager"));
    let (code, shown) = seen(world.command(&["tree", "text", "Long", "--quiet"]), &[("PAGER", &pager)]);
    assert_eq!((code, shown.as_str()), (Some(0), "<Line 1.>\n"));
    // More than a pipe holds, so that writing it fails.
    let long = world.path("longer.txt");
    std::fs::write(&long, "A line of the text.\n".repeat(20_000)).unwrap();
    world.ok(&["tree", "new", "--title", "Longer", "--file", &text(&long), "--split", "none"]);
    let (code, shown) = seen(world.command(&["tree", "text", "Longer", "--quiet"]), &[("PAGER", &pager)]);
    assert_eq!((code, shown.as_str()), (Some(0), "<A line of the text.>\n"));
    let ended = "kill -INT $$";
    std::fs::write(world.path("pager"), format!("#!/bin/sh\n{ended}\n")).unwrap();
    let (code, shown) = seen(world.command(&["tree", "text", "Long", "--quiet"]), &[("PAGER", &pager)]);
    assert_eq!((code, shown.as_str()), (Some(0), ""), "it was ended by Ctrl-C");
}

#[test]
fn without_a_pager_that_works_the_answer_is_printed_as_it_is() {
    let world = world("exit 3");
    let whole: String = (1..=60).map(|number| format!("Line {number}.\n")).collect();
    let pager = text(&world.path("pager"));
    for named in ["/nowhere/pager", pager.as_str(), "'/nowhere/pager'"] {
        let (code, shown) = seen(world.command(&["tree", "text", "Long", "--quiet"]), &[("PAGER", named)]);
        assert_eq!(code, Some(0), "{named}: {shown}");
        assert!(shown.ends_with(&whole) && shown.matches("Line 1.\n").count() == 1, "{named}: {shown}");
    }
    // No `less` is there.
    let mut command = world.command(&["tree", "text", "Long", "--quiet"]);
    command.env_remove("PAGER");
    let (code, shown) = seen(command, &[("PATH", "/nowhere")]);
    assert_eq!((code, shown), (Some(0), whole));
}

#[test]
fn the_exit_code_is_the_commands_and_foreign_text_stays_harmless() {
    let world = world(READS);
    let pager = text(&world.path("pager"));
    let foreign = "\u{1b}]0;title\u{7}\n".repeat(30);
    world.ok(&["tree", "new", "--title", "Foreign", "--text", &foreign]);
    let mut command = world.command(&["tree", "text", "Foreign"]);
    command.env("TERM", "xterm-256color").env("PATH", "/usr/bin:/bin").env("PAGER", &pager);
    let mut terminal = Terminal::sized(command, ROWS, 80);
    assert_eq!(terminal.ended(), Some(0));
    while terminal.listen() {}
    assert!(terminal.obeyed().0.is_empty(), "{:?}", terminal.obeyed());
    assert!(terminal.plain().contains("</pager>"));

    world.write(
        "config.toml",
        "[log]\nlevel = \"error\"\n[providers.gone]\nbase_url = \"http://127.0.0.1:1/v1\"\n",
    );
    let doctor = ["doctor", "--quick"];
    let alone = world.run(&doctor).code;
    let mut command = world.command(&doctor);
    command.env("TERM", "xterm-256color").env("PATH", "/usr/bin:/bin").env("PAGER", &pager);
    let mut terminal = Terminal::sized(command, 3, 80);
    let code = terminal.ended();
    while terminal.listen() {}
    assert!(terminal.plain().contains("</pager>"), "{}", terminal.plain());
    assert_eq!(code, alone);
}

#[test]
fn a_pager_has_the_owners_environment_without_what_is_drawlooms_alone() {
    let world = world("env");
    let pager = text(&world.path("pager"));
    let secret = "canary-abcdefghij";
    let mut command = world.command(&["tree", "text", "Long", "--quiet"]);
    command.env("TERM", "xterm-256color").env("PATH", "here:/usr/bin:/bin").env("PAGER", pager);
    command.env("DRAWLOOM_PROVIDERS__BOX__KEY", secret).env("OWN", "kept");
    let mut terminal = Terminal::sized(command, ROWS, 200);
    assert_eq!(terminal.ended(), Some(0));
    while terminal.listen() {}
    let seen = terminal.plain();
    assert!(seen.contains("PATH=/usr/bin:/bin\n") && seen.contains("OWN=kept\n"), "{seen}");
    assert!(!seen.contains("BOX__KEY"), "{seen}");
}
