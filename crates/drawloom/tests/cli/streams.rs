//! Standard streams that are closed, full, or hold no text.

use std::fs::OpenOptions;
use std::process::Stdio;

use crate::world::World;

#[test]
fn a_reader_that_has_read_enough_is_no_error() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "x", "--text", "hello"]);
    for arguments in [&["tree", "text", "x"][..], &["--help"], &["--version"], &["completions", "bash"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = world.command(arguments).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{arguments:?}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let world = World::new();
    for arguments in [&["config", "get", "log.level"][..], &["--json", "config", "get", "log.level"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = world.command(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(6));
        assert!(output.stderr.starts_with(b"error: standard output could not be written"), "{arguments:?}");
    }
}

#[test]
fn a_standard_error_that_is_gone_stops_nothing() {
    let world = World::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let run =
        world.command(&["tree", "show", "nothing"]).stderr(writer).stdout(Stdio::null()).status().unwrap();
    assert_eq!(run.code(), Some(3));
}

#[test]
fn standard_input_is_taken_for_a_dash_and_must_be_text() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "x"]);
    let run = world.fed(&["tree", "append", "x", "-"], "föö\n".as_bytes());
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.ok(&["tree", "text", "x"]), "föö\n");
    let run = world.fed(&["tree", "append", "x", "-"], b"ok\xff");
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("not UTF-8"), "{run:?}");
}

#[test]
fn notices_can_be_silenced_and_never_enter_the_answer() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "x", "--text", "Once"]);
    let run = world.run(&["--model", "script:echo", "tree", "generate", "x"]);
    assert!(run.err.starts_with('[') && run.out.trim() == "echo 1", "{run:?}");
    let run = world.run(&["--quiet", "--model", "script:echo", "tree", "generate", "x"]);
    assert_eq!((run.err.as_str(), run.out.trim()), ("", "echo 1"));
}

#[test]
fn what_the_program_makes_is_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    world.ok(&["tree", "new"]);
    let mut folders = vec![world.home()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", entry.path().display());
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
        }
    }
}
