//! Errors: one line or one object, with the exit codes that scripts rely on (spec: cli §1).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;

use crate::world::{Run, World, text};

fn one_line(err: &str) -> &str {
    let line = err.strip_suffix('\n').unwrap();
    assert!(line.starts_with("error: ") && !line.contains('\n'), "{err:?}");
    line
}

#[test]
fn each_kind_of_error_has_its_exit_code() {
    let world = World::new();
    world.ok(&["tree", "list"]);
    for (arguments, code) in [
        (&["tree"][..], 2),
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
    let run = World::new().run(&["nosuch"]);
    assert_eq!(one_line(&run.err), "error: unrecognized subcommand 'nosuch': see `drawloom --help`");
}

#[test]
fn a_hint_names_the_help_of_its_own_command() {
    let world = World::new();
    for (arguments, said) in [
        (&["tree"][..], "a command is missing: `drawloom tree --help` lists the commands"),
        (&["sessions"], "a command is missing: `drawloom sessions --help` lists the commands"),
        (&["chat", "hello"], "did you mean -m \"hello\"?"),
        (&["tree", "prune", "x"], "see `drawloom tree prune --help`"),
        (&["forget"], "not provided: <NODE or --text <TEXT>>"),
        (&["--home", "h", "tree", "generate", "x", "-n", "65"], "see `drawloom tree generate --help`"),
        (&["log", "-n", "0"], "takes a whole number from 1: see `drawloom log --help`"),
        (
            &["tree", "branch", "x", "y", "--at", "-1"],
            "--at takes a whole number: see `drawloom tree branch --help`",
        ),
        (
            &["tree", "export", "x", "-q"],
            "see `drawloom tree export --help`; a text that begins with - comes after `--`",
        ),
    ] {
        let run = world.run(arguments);
        assert!(run.code == Some(2) && one_line(&run.err).contains(said), "{arguments:?}: {run:?}");
    }
}

#[test]
fn a_form_that_people_guess_is_met_with_what_to_type() {
    let world = World::new();
    for (words, meant) in [
        (&["models"][..], "`drawloom model list`"),
        (&["logs"], "`drawloom log`"),
        (&["keys", "set", "openai"], "`drawloom config set providers.NAME.key`"),
        (&["ask", "hi", "-s", "one"], "`drawloom chat --session NAME -m TEXT`"),
        (&["ask", "hi", "--session", "one"], "`drawloom chat --session NAME -m TEXT`"),
        (&["ask", "hi", "-f", "x"], "write --file FILE"),
        (&["chat", "-f", "x"], "write --file FILE"),
        (&["tree", "head", "x", "It rains."], "`drawloom tree head TREE --text TEXT`"),
        (&["tree", "note", "x", "It rains."], "`drawloom tree note TREE --text TEXT`"),
        (&["tree", "draft", "x", "--text", "It"], "`drawloom tree draft TREE TEXT`"),
        (&["tree", "draft", "x", "It", "rains."], "one argument, in quotes"),
    ] {
        let run = world.run(words);
        assert!(run.code == Some(2) && one_line(&run.err).contains(meant), "{words:?}: {run:?}");
    }
    let run = world.run(&["tree", "head", "x", "--at", "y"]);
    assert!(one_line(&run.err).contains("see `drawloom tree head --help`"), "control: {run:?}");
}

#[test]
fn sampling_is_bounded_as_in_the_configuration() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "x", "--text", "Once"]);
    for (flag, value, said) in [
        ("--temperature", "900", "--temperature takes a number from 0 to 5"),
        ("--temperature", "-1", "--temperature takes a number from 0 to 5"),
        ("--temperature", "NaN", "--temperature takes a number from 0 to 5"),
        ("--top-p", "7", "--top-p takes a number from 0 to 1"),
        ("--min-p", "1.5", "--min-p takes a number from 0 to 1"),
        ("--max-tokens", "0", "--max-tokens takes a whole number from 1"),
        ("--logprobs", "99", "--logprobs takes a whole number from 0 to 20"),
        ("--count", "65", "--count takes a whole number from 1 to 64"),
    ] {
        let run = world.run(&["--model", "script:echo", "tree", "generate", "x", flag, value]);
        assert!(run.code == Some(2) && run.err.contains(said), "{flag}: {run:?}");
    }
    let fits = ["--temperature", "5", "--top-p", "1", "--min-p", "0", "--max-tokens", "1", "--logprobs", "0"];
    let run = world.run(&[&["--model", "script:echo", "tree", "generate", "x"][..], &fits].concat());
    assert!(!run.err.contains("takes a"), "the control: {run:?}");
}

#[test]
fn a_working_directory_that_went_is_named() {
    let world = World::new();
    for words in [&["--model", "script:echo", "chat", "-m", "x"][..], &["sandbox", "--", "true"]] {
        let inner = world.command(words);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", r#"mkdir gone && cd gone && rmdir ../gone && exec "$0" "$@""#]);
        shell.arg(inner.get_program()).args(inner.get_args()).env_clear();
        shell.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let run: Run = shell.current_dir(world.path("")).output().unwrap().into();
        assert_eq!(run.code, Some(3), "{run:?}");
        assert!(
            run.err.contains("the working directory cannot be used: it is not there any more"),
            "{run:?}"
        );
    }
}

#[test]
fn what_is_not_there_is_named_plainly() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Story", "--text", "Once"]);
    for (arguments, code, said) in [
        (&["tree", "new", "--file", "no.txt"][..], 3, "there is no file no.txt"),
        (&["tree", "export", "Story", "-o", "/no/where/a"], 3, "the folder /no/where does not exist"),
        (&["tree", "show", "story"], 3, "did you mean \"Story\"?"),
        (
            &["--model", "mine/m", "tree", "generate", "Story"],
            3,
            "`drawloom config set providers.mine.base_url http://",
        ),
        (&["chat", "-m", "hi"], 2, "no model is chosen"),
        (&["context", "show", "Story"], 3, "no request at the end of Story"),
    ] {
        let run = world.run(arguments);
        assert!(run.code == Some(code) && one_line(&run.err).contains(said), "{arguments:?}: {run:?}");
    }
    let found = world.run(&["search", "zebra"]);
    assert_eq!((found.code, found.out.as_str(), found.err.as_str()), (Some(0), "", "nothing found\n"));
    let (code, found) = world.json(&["search", "zebra"]);
    assert_eq!((code, &found["hits"]), (Some(0), &serde_json::json!([])));
    world.ok(&["tree", "new", "--title", "Story"]);
    let two = world.run(&["context", "show", "Story"]);
    assert!(
        two.code == Some(2) && two.err.contains("Story") && two.err.contains("use one of them"),
        "{two:?}"
    );
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

#[test]
fn who_begins_nothing_is_told_of_a_home_that_was_made() {
    let world = World::new();
    let said = format!("a new home was made at {}\n", text(&world.home()));
    assert_eq!(world.run(&["tree", "list"]).err, said);
    assert_eq!(world.run(&["tree", "list"]).err, "", "the control: it is there now");
    for arguments in
        [&["tree", "show", "Tale"][..], &["tree", "append", "Tale", "x"], &["context", "replay", "x"]]
    {
        let run = World::new().run(&[&["--home", "typo"], arguments].concat());
        assert_eq!(run.code, Some(3), "{run:?}");
        assert!(run.err.starts_with("a new home was made at ") && run.err.contains("error: no "), "{run:?}");
    }
    let begun = World::new().run(&["tree", "new", "--title", "Tale"]);
    assert!(!begun.err.contains("a new home"), "what begins there: {begun:?}");
}

#[test]
fn who_gives_out_a_home_or_cannot_open_its_store_is_told_that_it_is_new() {
    for (arguments, code) in [(&["backup", "-o", "b"][..], 0), (&["tree", "export", "Tale"], 3)] {
        let run = World::new().run(arguments);
        assert_eq!(run.code, Some(code), "{run:?}");
        assert!(run.err.starts_with("a new home was made at "), "{run:?}");
    }
    let run = World::new().run(&["tree", "new", "--title", "Tale"]);
    assert!(run.code == Some(0) && !run.err.contains("new home"), "the control: it makes one: {run:?}");
    let world = World::new();
    // Nobody answers there.
    let nowhere = "postgres://nobody@127.0.0.1:1/none";
    let run =
        Run::from(world.command(&["tree", "list"]).env("DRAWLOOM_STORE__URL", nowhere).output().unwrap());
    assert_eq!(run.code, Some(6), "{run:?}");
    assert!(run.err.starts_with("a new home was made at "), "{run:?}");
}

#[test]
fn a_script_that_is_no_json_is_named_by_its_line_alone() {
    let world = World::new();
    std::fs::write(world.path("here/s.jsonl"), "{\"text\":\"a\"}\nnot json\n").unwrap();
    let run = world.run(&["--model", "script:s.jsonl", "chat", "-m", "hi"]);
    assert!(run.err.starts_with("error: s.jsonl:2: it is not JSON: "), "{run:?}");
}

#[test]
fn standard_input_is_read_by_one_argument() {
    let world = World::new();
    for arguments in [
        &["chat", "-m", "-", "--file", "-"][..],
        &["chat", "-m", "x", "--file", "-", "--file", "-"],
        &["chat", "-m", "-", "--file", "/dev/stdin"],
        &["chat", "-m", "x", "--file", "-", "--file", "/proc/self/fd/0"],
    ] {
        let run = world.fed(&[&["--model", "script:echo"], arguments].concat(), b"hi");
        assert!(run.code == Some(2) && run.err.contains("named more than once"), "{run:?}");
        assert!(!world.home().exists(), "before anything is made");
    }
    let alone = world.fed(&["--model", "script:echo", "chat", "-m", "x", "--file", "/dev/stdin"], b"hi");
    assert_eq!(alone.code, Some(0), "the control: {alone:?}");
}

#[test]
fn what_is_forgotten_already_is_said_to_be() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let (_, shown) = world.json(&["tree", "show", "Tale"]);
    let node = shown["nodes"][1]["id"].as_str().unwrap();
    world.ok(&["forget", node, "--yes", "--yes"]);
    let run = world.run(&["forget", node, "--yes", "--yes"]);
    assert!(run.code == Some(3) && run.err.contains("is already forgotten"), "{run:?}");
}

#[test]
fn a_home_whose_store_is_gone_gets_no_new_one() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    world.ok(&["backup", "-o", "bk"]);
    std::fs::rename(world.home().join("loom.db"), world.path("moved")).unwrap();
    // What `doctor` says is what every command says.
    let agrees = |error: &Run| {
        let (code, found) = world.json(&["doctor", "--quick"]);
        let checks = found["checks"].as_array().unwrap();
        let store = checks.iter().find(|check| check["name"] == "store").unwrap();
        assert_eq!((code, store["state"].as_str().unwrap()), (Some(1), "fail"), "{found}");
        let said = format!("{}: {}", store["why"].as_str().unwrap(), store["fix"].as_str().unwrap());
        assert!(error.err.contains(&said), "{said} / {error:?}");
    };
    for arguments in [&["tree", "list"][..], &["--model", "script:echo", "chat", "-m", "hi"]] {
        let run = world.run(arguments);
        assert_eq!(run.code, Some(6), "{run:?}");
        assert!(run.err.contains("here/bk") && run.err.contains("`drawloom restore FILE`"), "{run:?}");
        agrees(&run);
    }
    assert!(!world.home().join("loom.db").exists());
    world.ok(&["restore", "bk"]);
    assert_eq!(world.ok(&["tree", "text", "Tale"]), "It rained.");

    std::fs::remove_file(world.home().join("loom.db")).unwrap();
    world.write("store.id", &"0".repeat(32));
    let run = world.run(&["tree", "list"]);
    assert!(run.code == Some(6) && run.err.contains("set store.url"), "{run:?}");
    agrees(&run);
    std::fs::remove_file(world.home().join("backups.json")).unwrap();
    agrees(&world.run(&["tree", "list"]));
    std::fs::remove_file(world.home().join("store.id")).unwrap();
    world.write("backups.json", "half a li");
    let run = world.run(&["tree", "list"]);
    assert!(run.code == Some(6) && run.err.contains("backups.json cannot be read"), "{run:?}");
    agrees(&run);
    std::fs::write(world.home().join("loom.db-wal"), "a log").unwrap();
    let fix = || world.json(&["doctor", "--quick"]).1["checks"].to_string();
    assert!(fix().contains("restore FILE --to DIR") && !fix().contains("begins anew"), "{}", fix());
    for name in ["backups.json", "loom.db-wal"] {
        std::fs::remove_file(world.home().join(name)).unwrap();
    }
    for _ in 0..2 {
        let run = world.run(&["tree", "list"]);
        assert!(run.code == Some(6) && run.err.contains("remove spool from the home"), "{run:?}");
        agrees(&run);
    }
    std::fs::remove_dir(world.home().join("spool")).unwrap();
    std::fs::write(world.home().join("loom.db-wal"), "a log").unwrap();
    assert!(fix().contains("begins anew"), "the control: nothing else tells of a store");
    std::fs::remove_file(world.home().join("loom.db-wal")).unwrap();
    assert_eq!(world.ok(&["tree", "list"]), "", "the control: one begins anew");
}

#[test]
fn what_is_advised_can_be_typed() {
    let world = World::new();
    let said = |arguments: &[&str]| {
        let run = world.run(arguments);
        assert!(run.code != Some(0), "{arguments:?}: {run:?}");
        run.err
    };
    let asked = said(&["ask", "What", "is", "this"]);
    assert!(asked.contains("a question of several words needs quotes: `drawloom ask \"TEXT\"`"), "{asked}");
    let made = world.json(&["tree", "new", "--title", "Tale", "--text", "It rained."]).1;
    let unnamed = said(&["tree", "bookmark", "Tale", "--title", "x"]);
    assert!(!unnamed.contains("`tree "), "{unnamed}");

    let short = made["short_id"].as_str().unwrap();
    let mut letters: Vec<char> = short.chars().collect();
    letters[0] = if letters[0] == '7' { '8' } else { '7' };
    let near: String = letters.into_iter().collect();
    let told = said(&["tree", "show", &near]);
    assert!(told.contains(&format!("did you mean {short} (\"Tale\")?")), "{told}");
    assert!(!said(&["tree", "show", "nosuchtree"]).contains("did you mean"), "the control");
}

/// A short id with its first letter mistyped.
fn mistyped(id: &str) -> String {
    let first = if id.starts_with('7') { '8' } else { '7' };
    format!("{first}{}", &id[1..])
}

#[test]
fn the_nearest_node_or_tree_is_named_wherever_one_is_typed() {
    let world = World::new();
    let tree = world.ok(&["tree", "new", "--title", "Weather", "--text", "It rained."]).trim().to_owned();
    let id = world.ok(&["tree", "append", "Weather", " On."]).trim().to_owned();
    let (near, meant) = (mistyped(&id), format!("did you mean {id}"));
    let (near_in, meant_in) = (format!("Weather:{near}"), format!("did you mean Weather:{id}"));
    let no_tree = "no tree Wether: did you mean \"Weather\"? `drawloom tree list` shows the trees";
    let in_none = format!("Wether:{id}");
    for (words, said) in [
        (&["context", "show", &near][..], &*meant),
        (&["context", "show", &near_in], &meant_in),
        (&["context", "replay", &near], &meant),
        (&["context", "diff", &near, &id], &meant),
        (&["forget", &near, "--dry-run"], &meant),
        (&["tree", "switch", "Weather", &near_in], &meant_in),
        (&["context", "show", "Wether"], "no node Wether: did you mean \"Weather\"?"),
        (&["context", "diff", "Wether", "Weather"], "no node Wether: did you mean \"Weather\"?"),
        (&["context", "show", &mistyped(&tree)], &format!("{tree} (\"Weather\")")),
        (&["context", "show", &in_none], no_tree),
        (&["tree", "show", "Wether"], no_tree),
    ] {
        let run = world.run(words);
        assert!(run.code == Some(3) && one_line(&run.err).contains(said), "{words:?}: {run:?}");
    }
    world.ok(&["tree", "delete", "Weather"]);
    let run = world.run(&["tree", "undelete", "Wether"]);
    let said = "did you mean \"Weather\"? `drawloom tree list --archived` shows the trees";
    assert!(run.code == Some(3) && one_line(&run.err).contains(said), "{run:?}");
    let run = world.run(&["tree", "show", "Wether"]);
    assert!(!run.err.contains("did you mean"), "control: the archive is not offered to others: {run:?}");
    for words in [&["context", "show", "snowfall"][..], &["tree", "undelete", "snowfall"]] {
        let run = world.run(words);
        assert!(run.code == Some(3) && !run.err.contains("did you mean"), "control: {words:?}: {run:?}");
    }
}

#[test]
fn a_section_is_unset_as_a_whole() {
    let world = World::new();
    world.write(
        "config.toml",
        "# mine\n[providers.box]\nbase_url = \"http://localhost:1\"\nwindow = 9000\n\n[log]\nlevel = \"info\"\n",
    );
    world.write("keys.toml", "[providers.box]\nkey = \"canary-0123456789\"\n");
    let run = world.run(&["config", "unset", "providers.box"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!world.read("config.toml").contains("box") && world.read("config.toml").contains("[log]"));
    assert!(!world.read("keys.toml").contains("canary"));
    let again = world.run(&["config", "unset", "providers.box"]);
    assert_eq!(again.code, Some(3), "{again:?}");
    assert_eq!(
        world.run(&["config", "unset", "log"]).code,
        Some(2),
        "the control: it has no name of its own"
    );
}
