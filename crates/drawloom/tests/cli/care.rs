//! Backups and what becomes of them: a home comes back whole, into a place where none was.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};

use crate::world::{World, heeds_ctrl_c, piped, text};

/// A home with something in it, and a backup of it.
fn backed_up() -> (World, PathBuf) {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    world.ok(&["tree", "new", "--title", "Song"]);
    world.ok(&["config", "set", "log.level", "error"]);
    let file = world.path("kept.backup");
    let (code, made) = world.json(&["backup", "-o", &text(&file)]);
    assert_eq!(code, Some(0), "{made}");
    assert_eq!(made["bytes"], file.metadata().unwrap().len());
    assert!(made["seq"].as_u64().unwrap() > 0);
    (world, file)
}

fn store_id(home: &Path) -> Vec<u8> {
    let store = Connection::open(home.join("loom.db")).unwrap();
    store.query_row("SELECT value FROM meta WHERE key = 'store'", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_conversation_is_found_again_wherever_the_home_is_restored() {
    let from = World::new();
    from.ok(&["--model", "script:echo", "chat", "-m", "hello"]);
    let file = from.path("kept.backup");
    from.ok(&["backup", "-o", &text(&file)]);
    let there = from.path("elsewhere");
    from.ok(&["restore", &text(&file), "--to", &text(&there)]);
    let listed = from.ok(&["--home", &text(&there), "sessions", "list"]);
    assert!(listed.starts_with("main") && listed.contains("hello"), "{listed}");
    let other = from.path("other");
    std::fs::create_dir_all(&other).unwrap();
    let other = text(&other);
    let none = from.ok(&["sessions", "list", "--workspace", &other]);
    assert!(none.contains("`drawloom sessions list --all`") && none.ends_with("\n  main  home\n"), "{none}");
    let all = from.ok(&["sessions", "list", "--all", "--workspace", &other]);
    assert!(all.starts_with("main  home"), "{all}");
}

#[test]
fn a_backup_goes_into_the_home_if_nothing_is_stored_there() {
    let (from, file) = backed_up();
    let to = World::new();
    let (code, restored) = to.json(&["restore", &text(&file)]);
    assert_eq!((code, &restored["verified"], &restored["trees"]), (Some(0), &true.into(), &2.into()));
    assert_eq!(restored["home"], text(&to.home()));
    assert_eq!(to.ok(&["tree", "text", "Tale"]), "It rained.");
    assert!(to.ok(&["tree", "verify", "Tale"]).starts_with("valid"));
    assert_eq!(to.read("config.toml"), from.read("config.toml"));
    assert!(
        to.home()
            .join("run")
            .read_dir()
            .unwrap()
            .all(|entry| { !entry.unwrap().file_name().to_string_lossy().starts_with("restore") })
    );
    let (old, new) = (store_id(&from.home()), store_id(&to.home()));
    assert!(!old.is_empty() && old != new, "{old:?}");
}

#[test]
fn settings_that_are_there_stay() {
    let (_from, file) = backed_up();
    let to = World::new();
    to.write("config.toml", "# mine\n");
    let run = to.run(&["restore", &text(&file)]);
    assert!(run.code == Some(0) && run.err.contains("config.toml already"), "{run:?}");
    assert_eq!(to.read("config.toml"), "# mine\n");
    assert_eq!(to.ok(&["tree", "text", "Tale"]), "It rained.");
}

#[test]
fn a_home_with_a_store_is_refused_and_another_place_named() {
    let (world, file) = backed_up();
    world.ok(&["tree", "append", "Tale", " It poured."]);
    let (code, error) = world.json(&["restore", &text(&file)]);
    assert_eq!((code, &error["error"]["code"]), (Some(2), &"not_empty".into()));
    assert!(error["error"]["hint"].as_str().unwrap().contains("--to DIR"));
    assert_eq!(world.ok(&["tree", "text", "Tale"]), "It rained. It poured.");
    let there = world.path("there");
    world.ok(&["restore", &text(&file), "--to", &text(&there)]);
    assert_eq!(world.ok(&["--home", &text(&there), "tree", "text", "Tale"]), "It rained.");
    let full = world.path("full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("thesis.txt"), "mine").unwrap();
    let run = world.run(&["restore", &text(&file), "--to", &text(&full)]);
    assert_eq!((run.code, full.read_dir().unwrap().count()), (Some(2), 1), "{run:?}");
}

#[test]
fn a_damaged_backup_leaves_no_store() {
    let (_from, file) = backed_up();
    let bytes = std::fs::read(&file).unwrap();
    let to = World::new();
    for (broken, codes) in [(&bytes[..bytes.len() / 2], [2, 6]), (b"no backup".as_slice(), [2, 2])] {
        std::fs::write(&file, broken).unwrap();
        let run = to.run(&["restore", &text(&file)]);
        assert!(codes.contains(&run.code.unwrap()), "{run:?}");
        assert!(!to.home().join("loom.db").exists());
    }
    let nowhere = to.run(&["restore", "/nowhere"]);
    assert!(nowhere.code == Some(3) && nowhere.err.contains("there is no file /nowhere"), "{nowhere:?}");
    let there = to.path("there");
    for (broken, said) in [
        (&bytes[..bytes.len() / 2], "it is damaged or cut"),
        (b"no backup at all, but a text".as_slice(), "it is not a Drawloom backup"),
    ] {
        std::fs::write(&file, broken).unwrap();
        let run = to.run(&["restore", &text(&file), "--to", &text(&there)]);
        assert!(run.code != Some(0) && run.err.contains(said), "{run:?}");
        assert!(!there.exists(), "{:?}", there.read_dir().unwrap().collect::<Vec<_>>());
    }
    // And the place is as good as before.
    std::fs::write(&file, &bytes).unwrap();
    to.ok(&["restore", &text(&file)]);
}

#[test]
fn a_backup_with_something_behind_its_end_is_damaged() {
    let (_from, file) = backed_up();
    let bytes = std::fs::read(&file).unwrap();
    let to = World::new();
    for more in [b"garbage".as_slice(), &bytes, &[0]] {
        std::fs::write(&file, [&bytes, more].concat()).unwrap();
        let run = to.run(&["restore", &text(&file)]);
        assert_eq!(run.code, Some(6), "{run:?}");
        assert!(run.err.contains("something follows its end"), "{run:?}");
        assert!(!to.home().join("loom.db").exists());
    }
    std::fs::write(&file, &bytes).unwrap();
    to.ok(&["restore", &text(&file)]);
}

#[test]
fn restored_blobs_and_the_files_of_the_home_are_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_from, file) = backed_up();
    let to = World::new();
    to.ok(&["restore", &text(&file)]);
    for name in ["loom.db", "config.toml"] {
        assert_eq!(to.home().join(name).metadata().unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    let sound: String = Connection::open(to.home().join("loom.db"))
        .unwrap()
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(sound, "ok");
}

#[test]
fn a_backup_without_a_name_is_named_after_its_day() {
    let (world, _) = backed_up();
    let made = world.ok(&["backup"]);
    let name = made.split_whitespace().next().unwrap();
    let date = name.strip_prefix("drawloom-").and_then(|rest| rest.strip_suffix(".backup")).unwrap();
    assert!(date.starts_with("20") && date.len() == "2026-01-31-235959".len(), "{name}");
    assert!(world.path("here").join(name).exists());
}

#[test]
fn a_backup_that_repeats_is_refused_as_long_as_nothing_could_make_it() {
    let (world, _) = backed_up();
    let file = text(&world.path("daily.backup"));
    let run = world.run(&["backup", "-o", &file, "--every", "1d", "--keep", "7"]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("keeps running") && run.err.contains("cron"), "{run:?}");
    assert!(!world.path("daily.backup").exists());
    assert_eq!(world.run(&["backup", "--keep", "7"]).code, Some(2));
}

fn backup_check(world: &World) -> (String, String) {
    let (_, found) = world.json(&["doctor", "--quick"]);
    let checks = found["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == "backup").unwrap();
    (check["state"].as_str().unwrap().to_owned(), check["why"].as_str().unwrap().to_owned())
}

#[test]
fn doctor_says_when_the_newest_backup_is_too_old() {
    let world = World::new();
    world.ok(&["tree", "list"]);
    assert_eq!(backup_check(&world).0, "ok", "a home without content");
    world.ok(&["tree", "new", "--title", "Tale"]);
    assert_eq!(backup_check(&world), ("warn".to_owned(), "none was made".to_owned()));
    let file = world.path("kept.backup");
    world.ok(&["backup", "-o", &text(&file)]);
    let (state, why) = backup_check(&world);
    assert!(state == "ok" && why.contains(&text(&file)) && !why.contains("not there"), "{why}");
    std::fs::remove_file(&file).unwrap();
    assert!(backup_check(&world).1.contains("not there now"));
    let mut known: serde_json::Value = serde_json::from_str(&world.read("backups.json")).unwrap();
    assert_eq!(known["version"], 1);
    let fortnight = 14 * 86_400_000;
    known["backups"][0]["at"] = (known["backups"][0]["at"].as_i64().unwrap() - fortnight - 1).into();
    world.write("backups.json", &known.to_string());
    assert_eq!(backup_check(&world).0, "warn");
    world.ok(&["backup", "-o", &text(&file)]);
    assert_eq!(backup_check(&world).0, "ok");
}

#[test]
fn no_home_is_made_within_the_home() {
    let (world, file) = backed_up();
    let within = world.home().join("sub");
    for to in [within.clone(), within.join("deeper"), world.home().join("locks")] {
        let (code, error) = world.json(&["restore", &text(&file), "--to", &text(&to)]);
        assert_eq!((code, &error["error"]["code"]), (Some(4), &"in_home".into()), "{error}");
        assert!(!within.exists());
    }
    let beside = world.home().join("workspace/home");
    let around = text(&world.home().join("workspace/../blobs"));
    assert_eq!(world.run(&["restore", &text(&file), "--to", &around]).code, Some(4));
    world.ok(&["restore", &text(&file), "--to", &text(&beside)]);
}

#[test]
fn no_home_is_made_within_a_home_that_is_not_there_yet() {
    let (world, file) = backed_up();
    let file = text(&file);
    let none = text(&world.path("none"));
    let into = |place: &str| text(&world.path(place));
    let refused = |arguments: &[&str]| {
        let run = world.run(&[&["--home", &none], arguments].concat());
        assert!(run.code == Some(4) && run.err.contains("would be in the home"), "{arguments:?}: {run:?}");
        assert!(!world.path("none").exists(), "{arguments:?}");
    };
    for place in ["none/sub", "none/sub/deeper", "here/../none/sub", "none/workspace/../sub"] {
        refused(&["restore", &file, "--to", &into(place)]);
    }
    refused(&["demo", "--keep", &none]);
    // The home itself, under another name, and its folder for work are no such place.
    world.ok(&["--home", &none, "restore", &file, "--to", &into("none/workspace/sub")]);
    std::fs::remove_dir_all(world.path("none")).unwrap();
    world.ok(&["--home", &none, "restore", &file, "--to", &into("here/../none")]);
    assert_eq!(world.ok(&["--home", &none, "tree", "text", "Tale"]), "It rained.");
}

#[test]
fn no_pipe_is_recommended_where_none_is_taken() {
    let world = World::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, world.path("fifo"), rustix::fs::Mode::RUSR).unwrap();
    let run = world.run(&["restore", &text(&world.path("fifo"))]);
    assert!(
        run.code == Some(2) && run.err.ends_with("is a FIFO, not a plain file: name a plain file\n"),
        "{run:?}"
    );
}

#[test]
fn the_copy_of_a_damaged_file_says_how_much_it_lacks() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "The first words."]);
    for number in 0..9 {
        world.ok(&["tree", "append", "Tale", &format!(" Passage {number}.")]);
    }
    let file = world.path("tale.jsonl");
    world.ok(&["tree", "export", "Tale", "-o", &text(&file)]);
    let whole = std::fs::read_to_string(&file).unwrap();
    let control = world.json(&["import", &text(&file), "--copy"]);
    assert_eq!((control.0, &control.1["left_out"]), (Some(0), &serde_json::Value::Null));
    std::fs::write(&file, whole.replacen("The first words.", "The other words.", 1)).unwrap();

    let run = world.run(&["import", &text(&file), "--copy"]);
    assert_eq!((run.code, run.err.matches("skipped ").count()), (Some(1), 6), "{run:?}");
    assert!(run.err.contains("the copy is only a part; left out: "), "{run:?}");
    let (code, done) = world.json(&["import", &text(&file), "--copy"]);
    assert!(code == Some(1) && done["left_out"].as_u64().unwrap() > 9, "{done}");
    assert!(done["skipped"].as_array().unwrap().len() > 9, "{done}");

    let verified = world.run(&["tree", "verify", "--file", &text(&file)]);
    assert_eq!((verified.code, verified.out.lines().count()), (Some(1), 7), "{verified:?}");
    assert!(verified.out.contains(" more (--json lists them)"), "{verified:?}");
    let (_, all) = world.json(&["tree", "verify", "--file", &text(&file)]);
    assert!(!all.to_string().contains("line 0"), "{all}");
}

#[test]
fn an_export_has_the_format_of_its_ending() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let export = |name: &str, more: &[&str]| {
        let file = world.path(name);
        world.ok(&[&["tree", "export", "Tale", "-o", &text(&file)][..], more].concat());
        std::fs::read_to_string(file).unwrap()
    };
    assert!(export("a.html", &[]).contains("<html"));
    assert!(export("a.txt", &[]).starts_with("It rained."));
    let own = "{\"record\":\"header\"";
    assert!(export("b.html", &["--format", "jsonl"]).starts_with(own), "what is said goes before");
    for name in ["A.HTML", "a.htm"] {
        assert!(export(name, &[]).contains("<html"), "{name}");
    }
    assert_eq!(export("a.markdown", &[]), export("a.md", &[]));
    assert!(export("a.pdf", &["--format", "text"]).starts_with("It rained."));
    for (name, is_told) in [("a", false), ("Tale.v2", true), ("notes.2026-11-23", true)] {
        let run = world.run(&["tree", "export", "Tale", "-o", &text(&world.path(name))]);
        let told = format!("{name} names no format: it is written as jsonl; --format names another");
        assert_eq!((run.code, run.err.contains(&told)), (Some(0), is_told), "{run:?}");
        assert!(std::fs::read_to_string(world.path(name)).unwrap().starts_with(own), "{name}");
    }
    world.ok(&["import", &text(&world.path("b.html")), "--as", "jsonl"]);
}

#[test]
fn a_conversation_has_the_format_of_the_ending_of_its_file() {
    let world = World::new();
    world.ok(&["--model", "script:echo", "chat", "-m", "hello"]);
    let export = |name: &str| {
        let run = world.run(&["chat", "-m", &format!("/export {name}")]);
        assert_eq!(run.code, Some(0), "{run:?}");
        (std::fs::read_to_string(world.path("here").join(name)).unwrap(), run.err)
    };
    assert!(export("a.htm").0.contains("<html") && export("a.HTML").0.contains("<html"));
    let (markdown, silent) = export("a.markdown");
    assert!(!silent.contains("names no format"), "{silent}");
    let (unknown, told) = export("talk.v2");
    assert_eq!(unknown, markdown);
    assert!(told.contains("it is written as markdown; `/export FORMAT FILE` names another"), "{told}");
}

#[test]
fn a_cut_export_is_refused_and_copied_as_a_part() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "a b"]);
    world.ok(&["tree", "append", "Tale", " c"]);
    let file = world.path("tale.jsonl");
    world.ok(&["tree", "export", "Tale", "-o", &text(&file)]);
    let whole = std::fs::read_to_string(&file).unwrap();
    let cut: Vec<&str> = whole.lines().filter(|line| !line.starts_with("{\"record\":\"end\"")).collect();
    std::fs::write(&file, cut.join("\n") + "\n").unwrap();
    let to = World::new();
    let run = to.run(&["import", &text(&file)]);
    assert!(run.code == Some(2) && run.err.contains("the file was cut; nothing was imported"), "{run:?}");
    assert_eq!(to.run(&["import", &text(&file), "--copy"]).code, Some(1));
    assert_eq!(to.ok(&["tree", "text", "Tale"]), "a b c");
    std::fs::write(&file, whole.trim_end()).unwrap();
    World::new().ok(&["import", &text(&file)]);
}

#[test]
fn what_cannot_be_imported_says_what_can() {
    let world = World::new();
    let file = text(&world.path("talk.txt"));
    std::fs::write(&file, "It rained.").unwrap();
    for arguments in [&["import", &file][..], &["import", &file, "--as", "text"]] {
        let run = world.run(arguments);
        assert!(run.code == Some(2) && run.err.contains("`drawloom tree new --file FILE`"), "{run:?}");
    }
    assert!(world.run(&["import", &file, "--as", "text"]).err.contains("`--as jsonl`"));
}

#[test]
fn a_home_that_lost_its_store_names_the_backup_and_takes_it_back() {
    let (world, file) = backed_up();
    std::fs::remove_file(world.home().join("config.toml")).unwrap();
    for name in ["loom.db", "loom.db-wal", "loom.db-shm"] {
        let _ = std::fs::remove_file(world.home().join(name));
    }
    let (_, found) = world.json(&["doctor", "--quick"]);
    let check = |name: &str| {
        let checks = found["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap().clone()
    };
    assert_eq!(check("store")["state"], "fail", "{found}");
    let why = check("backup")["why"].as_str().unwrap().to_owned();
    assert!(why.contains(&text(&file)) && why.contains("`drawloom restore FILE` brings it back"), "{why}");
    world.ok(&["restore", &text(&file)]);
    assert_eq!(world.ok(&["tree", "text", "Tale"]), "It rained.");
}

#[test]
fn doctor_says_nothing_of_a_database_that_it_did_not_ask() {
    let world = World::new();
    world.ok(&["config", "set", "store.url", "postgres://u@127.0.0.1:1/d"]);
    let state = |arguments: &[&str], name: &str| {
        let (_, found) = world.json(arguments);
        let checks = found["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == name).unwrap();
        (check["state"].as_str().unwrap().to_owned(), check["why"].as_str().unwrap().to_owned())
    };
    let (quick, why) = state(&["doctor", "--quick"], "store");
    assert!(quick == "ok" && why.contains("does not ask"), "{why}");
    assert_eq!(state(&["doctor"], "store").0, "fail");
    assert!(state(&["doctor"], "backup").1.contains("pg_dump"));
    assert!(!world.home().join("store.id").exists(), "it looks and makes nothing");
}

#[test]
fn a_backup_has_its_name_when_it_is_whole() {
    let (world, _) = backed_up();
    // Hashing it takes longer than it takes to press Ctrl-C.
    std::fs::File::create(world.home().join("blobs/large")).unwrap().set_len(64 << 30).unwrap();
    let mut child = piped(&mut world.command(&["backup", "-o", "b"]));
    let names = || -> Vec<String> {
        let entries = world.path("here").read_dir().unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    while !(heeds_ctrl_c(&child)
        && names().iter().any(|name| name.starts_with(".b.") && name.ends_with(".part")))
    {
        assert_eq!(child.try_wait().unwrap(), None, "it is not done yet");
        std::thread::yield_now();
    }
    assert!(!world.path("here/b").exists());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(names(), Vec::<String>::new());
    std::fs::remove_file(world.home().join("blobs/large")).unwrap();
    world.ok(&["backup", "-o", "b"]);
    assert_eq!(names(), ["b"]);
}

#[test]
fn a_backup_goes_to_no_standard_output_and_comes_from_no_standard_input() {
    let (world, _) = backed_up();
    for arguments in [&["backup", "-o", "-"][..], &["restore", "-"]] {
        let run = world.run(arguments);
        assert!(run.code == Some(2) && run.err.contains("name a"), "{run:?}");
    }
    assert_eq!(world.path("here").read_dir().unwrap().count(), 0);
}
