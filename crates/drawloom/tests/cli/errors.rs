//! Errors: one line or one object, with the exit codes that scripts rely on (spec: cli §1).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;

use crate::world::{World, text};

fn one_line(err: &str) -> &str {
    let line = err.strip_suffix('\n').unwrap();
    assert!(line.starts_with("error: ") && !line.contains('\n'), "{err:?}");
    line
}

#[test]
fn each_kind_of_error_has_its_exit_code() {
    let world = World::new();
    for (arguments, code) in [
        (&[][..], 2),
        (&["tree"], 2),
        (&["nonsense"], 2),
        (&["tree", "new", "--mode", "poem"], 2),
        (&["tree", "show", "nothing"], 3),
        (&["--model", "script:/nowhere.jsonl", "tree", "generate", "x"], 3),
        (&["--model-file", "x.gguf", "chat", "-m", "hi"], 3),
        (&["config", "get", "log.levle"], 2),
        (&["--home", "", "tree", "list"], 2),
        (&["--quiet", "--verbose", "tree", "list"], 2),
    ] {
        let run = world.run(arguments);
        assert_eq!((run.code, run.out.as_str()), (Some(code), ""), "{arguments:?}: {run:?}");
        one_line(&run.err);
        let (failed, found) = world.json(arguments);
        assert_eq!(failed, Some(code), "{arguments:?}");
        let error = found["error"].as_object().unwrap();
        assert_eq!(error.keys().collect::<Vec<_>>(), ["code", "message", "hint"]);
        assert!(!error["message"].as_str().unwrap().is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_misspelt_command_is_met_with_the_right_one() {
    let run = World::new().run(&["tree", "lst"]);
    assert_eq!(one_line(&run.err), "error: unrecognized subcommand 'lst': did you mean list?");
}

#[test]
fn arguments_that_are_no_text_are_refused_and_paths_may_be_any_bytes() {
    let world = World::new();
    let raw = || OsString::from_vec(b"\xff\x1b[2J".to_vec());
    let run = world.run(&["tree".into(), "show".into(), raw()]);
    assert_eq!(run.code, Some(2));
    assert!(!one_line(&run.err).contains('\x1b'));
    let run = world.run(&["config".into(), "path".into(), OsString::from("--workspace"), raw()]);
    assert_eq!(run.code, Some(3), "{run:?}");
}

#[test]
fn a_home_that_is_no_home_is_left_alone() {
    let world = World::new();
    let documents = world.path("documents");
    std::fs::create_dir(&documents).unwrap();
    std::fs::write(documents.join("thesis.txt"), "mine").unwrap();
    std::fs::set_permissions(&documents, PermissionsExt::from_mode(0o755)).unwrap();
    let run = world.run(&["--home", &text(&documents), "tree", "list"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert_eq!(documents.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    let file = documents.join("thesis.txt");
    assert_eq!(world.run(&["--home", &text(&file), "tree", "list"]).code, Some(6));
}

#[test]
fn a_damaged_store_is_named() {
    let world = World::new();
    world.ok(&["tree", "new"]);
    world.write("loom.db", &"no store ".repeat(1000));
    let run = world.run(&["tree", "list"]);
    assert_eq!(run.code, Some(6), "{run:?}");
    one_line(&run.err);
    let (code, found) = world.json(&["doctor", "--quick"]);
    assert_eq!(code, Some(1));
    let failed = found["checks"].as_array().unwrap().iter().filter(|check| check["state"] == "fail");
    assert_eq!(failed.map(|check| check["name"].as_str().unwrap()).collect::<Vec<_>>(), ["store"]);
}

#[test]
fn without_a_home_folder_the_flag_is_named() {
    let run = World::new()
        .command(&["tree", "list"])
        .env_remove("HOME")
        .env_remove("DRAWLOOM_HOME")
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8(run.stderr).unwrap().contains("--home"));
}
