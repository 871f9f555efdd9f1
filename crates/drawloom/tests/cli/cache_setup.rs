//! How package caches are configured: what `doctor`, `config check` and `init` say of them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::world::{World, text};

fn checks(world: &World) -> Vec<(String, String)> {
    let (_, told) = world.json(&["doctor", "--quick"]);
    let caches = told["checks"].as_array().unwrap().iter().filter(|check| check["name"] == "cache");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    caches.map(|check| (text(&check["state"]), text(&check["why"]))).collect()
}

#[test]
fn doctor_shows_each_cache_and_one_that_is_none_stops_a_command() {
    let world = World::new();
    fs::create_dir_all(world.path("user/.cargo/registry")).unwrap();
    world.write("config.toml", "[exec]\ncaches = [\"~/.cargo/registry\", \"~/.npm/_cacache\"]\n");
    let told = checks(&world);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0].0, "ok", "{told:?}");
    assert!(told[0].1.starts_with("~/.cargo/registry: commands read it"), "{told:?}");
    assert_eq!(told[1], ("ok".into(), "~/.npm/_cacache: missing, and passed over until it is there".into()));
    world.write("config.toml", "[exec]\ncaches = [\"~/.cargo\"]\n");
    let told = checks(&world);
    assert_eq!((told.len(), told[0].0.as_str()), (1, "fail"), "{told:?}");
    let part = "name the part that is meant (~/.cargo/registry, ~/.cargo/git)";
    assert!(told[0].1.contains(part), "{told:?}");
    let (_, checked) = world.json(&["config", "check"]);
    assert!(checked["problems"][0].as_str().unwrap().contains(part), "{checked}");
    fs::create_dir(world.path("project")).unwrap();
    let project = text(&world.path("project"));
    let refused = world.run(&["--workspace", &project, "sandbox", "--", "true"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains(part), "{refused:?}");
    world.write("config.toml", "[exec]\ncaches = [\"~/.cargo/registry\"]\n");
    let line =
        ["--workspace", &project, "sandbox", "--", "sh", "-c", "cd ~/.cargo/registry && touch new && ls"];
    assert_eq!(world.ok(&line), "new\n");
    assert_eq!(fs::read_dir(world.path("user/.cargo/registry")).unwrap().count(), 0);
}

#[test]
fn a_folder_that_may_be_no_cache_is_refused_where_it_is_set() {
    let world = World::new();
    fs::create_dir_all(world.path("user/.cargo/registry/index")).unwrap();
    world.ok(&["config", "set", "exec.caches", r#"["~/.cargo/registry"]"#]);
    let before = fs::read(world.path("home/config.toml")).unwrap();
    for written in [r#"["~/.ssh"]"#, r#"["~/.cargo"]"#, r#"["~/.cargo/registry", "~/.cargo/registry/index"]"#]
    {
        let refused = world.run(&["config", "set", "exec.caches", written]);
        assert_eq!(refused.code, Some(2), "{written}: {refused:?}");
        assert!(refused.err.contains("exec.caches"), "{written}: {refused:?}");
        assert_eq!(fs::read(world.path("home/config.toml")).unwrap(), before, "{written}");
    }
}

#[test]
fn a_folder_of_a_toolchain_has_a_whole_path_and_is_not_the_home_of_a_person_nor_of_drawloom() {
    let world = World::new();
    fs::create_dir_all(world.path("user/.tools")).unwrap();
    world.ok(&["config", "set", "exec.toolchains", r#"["~/.tools"]"#]);
    let (user, spool) = (text(&world.path("user")), text(&world.path("home/spool")));
    for folder in ["~", "/", "rel", "", &user, &spool] {
        let refused = world.run(&["config", "set", "exec.toolchains", &format!("[{folder:?}]")]);
        assert_eq!(refused.code, Some(2), "{folder}: {refused:?}");
        assert!(refused.err.contains("exec.toolchains"), "{folder}: {refused:?}");
    }
    // Written by hand it opens nothing, either.
    world.write("config.toml", "[exec]\ntoolchains = [\"~\"]\n");
    fs::create_dir(world.path("project")).unwrap();
    let refused = world.run(&["--workspace", &text(&world.path("project")), "sandbox", "--", "true"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("exec.toolchains"), "{refused:?}");
}

#[test]
fn a_toolchain_outside_the_home_of_a_person_works_once_it_is_named() {
    let world = World::new();
    let (project, tools) = (text(&world.path("project")), text(&world.path("tools")));
    fs::create_dir(&project).unwrap();
    fs::create_dir_all(world.path("tools/bin")).unwrap();
    fs::write(world.path("tools/bin/weaver"), "#!/bin/sh\necho $RUSTUP_HOME $GOROOT $JAVA_HOME\n").unwrap();
    fs::set_permissions(world.path("tools/bin/weaver"), fs::Permissions::from_mode(0o755)).unwrap();
    let run = || {
        let mut command = world.command(&["--workspace", &project, "sandbox", "--", "weaver"]);
        command.env("PATH", format!("{tools}/bin:/usr/bin:/bin")).env("RUSTUP_HOME", format!("{tools}/home"));
        command.env("GOROOT", &tools).env("JAVA_HOME", "/elsewhere").output().unwrap()
    };
    let unseen = run();
    let told = String::from_utf8(unseen.stderr).unwrap();
    assert_eq!(unseen.status.code(), Some(3), "{told}");
    assert!(
        told.contains(&format!("it is {tools}/bin/weaver for you")) && told.contains("exec.toolchains"),
        "{told}"
    );
    world.ok(&["config", "set", "exec.toolchains", &format!("[{tools:?}]")]);
    let seen = run();
    assert_eq!(
        String::from_utf8(seen.stdout).unwrap(),
        format!("{tools}/home {tools}\n"),
        "{:?}",
        seen.status
    );
}

#[test]
fn init_says_that_a_configured_folder_may_be_no_cache() {
    let world = World::new();
    fs::create_dir_all(world.path("user/.cargo")).unwrap();
    for (folder, is_one) in [("~/.cargo", false), ("~/.cargo/registry", true)] {
        world.write("config.toml", &format!("[exec]\ncaches = [\"{folder}\"]\n"));
        let (_, done) = world.json(&["init"]);
        let steps = done["steps"].as_array().unwrap();
        let step = steps.iter().find(|step| step["name"] == "caches").unwrap();
        assert_eq!(step["state"] == "done", is_one, "{folder}: {step}");
        assert_eq!(step["what"].as_str().unwrap().contains("name the part that is meant"), !is_one, "{step}");
    }
}

fn found(world: &World) -> PathBuf {
    for name in [".cargo/registry", ".npm/_cacache", ".ssh", "go"] {
        fs::create_dir_all(world.path("user").join(name)).unwrap();
    }
    world.home().join("config.toml")
}

const TAKEN: &str = "caches = [\"~/.cargo/registry\", \"~/.npm/_cacache\"]";

#[test]
fn init_names_the_caches_it_finds_and_takes_them_only_where_that_is_said() {
    let world = World::new();
    let config = found(&world);
    let step = |arguments: &[&str]| {
        let (_, told) = world.json(arguments);
        let steps = told["steps"].as_array().unwrap();
        steps.iter().find(|step| step["name"] == "caches").cloned().unwrap()
    };
    let open = step(&["init"]);
    assert_eq!(open["state"], "open", "{open}");
    assert!(open["what"].as_str().unwrap().contains("~/.cargo/registry, ~/.npm/_cacache."), "{open}");
    assert!(!config.exists(), "nothing is decided");
    let done = step(&["init", "--caches"]);
    assert_eq!(done["state"], "done", "{done}");
    assert!(fs::read_to_string(&config).unwrap().contains(TAKEN));
    assert_eq!(step(&["init"])["state"], "done");
}

#[test]
fn init_asks_at_a_terminal_whether_commands_may_read_the_caches() {
    for (answer, is_taken) in [("y\r", true), ("n\r", false)] {
        let world = World::new();
        let config = found(&world);
        let mut terminal = Terminal::of_width(with_terminal(&world.command(&["init"])), 120);
        terminal.shows("as the default model? [y/N]");
        terminal.types("n\r");
        terminal.shows("Let them read these folders? [y/N]");
        terminal.types(answer);
        assert_eq!(terminal.ended(), Some(0), "{}", terminal.contents());
        let written = fs::read_to_string(config).unwrap_or_default();
        assert_eq!(written.contains(TAKEN), is_taken, "{written}");
    }
}
