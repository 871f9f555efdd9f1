//! Settings from the outside: what is set is got, what is broken stays, what is secret is not shown.

use std::os::unix::fs::{PermissionsExt, symlink};

use crate::trust::PersonAtTerminal;
use crate::world::{Run, World};

#[test]
fn what_is_set_is_got_and_comments_stay() {
    let world = World::new();
    let written =
        "# my settings\n[log]\nlevel = \"warn\" # enough\n\n[model]\n# the good one\ndefault = \"a/b\"\n";
    world.write("config.toml", written);
    world.ok(&["config", "set", "model.default", "box/other"]);
    assert_eq!(world.read("config.toml"), written.replace("a/b", "box/other"));
    let (_, found) = world.json(&["config", "get", "model.default"]);
    assert_eq!(found, serde_json::json!({"key": "model.default", "value": "box/other", "source": "file"}));
    let mode = world.home().join("config.toml").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn get_says_which_layer_it_was() {
    let world = World::new();
    let source = |arguments: &[&str], variable: bool| {
        let mut command = world.command(&[arguments, &["config", "get", "model.default", "--json"]].concat());
        if variable {
            command.env("DRAWLOOM_MODEL__DEFAULT", "variable");
        }
        let out = command.output().unwrap().stdout;
        serde_json::from_slice::<serde_json::Value>(&out).unwrap()["source"].as_str().unwrap().to_owned()
    };
    assert_eq!(source(&[], false), "default");
    world.write("config.toml", "[model]\ndefault = \"file\"");
    assert_eq!(source(&[], false), "file");
    assert_eq!(source(&[], true), "environment");
    assert_eq!(source(&["--model", "flag"], true), "flag");
}

#[test]
fn looking_makes_no_home_and_setting_makes_one() {
    let world = World::new();
    for arguments in [
        &["config", "show"][..],
        &["config", "check"],
        &["config", "path"],
        &["config", "get", "log.level"],
        &["doctor"],
    ] {
        world.ok(arguments);
    }
    assert!(!world.home().exists());
    world.ok(&["config", "set", "log.level", "info"]);
    assert_eq!(world.home().metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_broken_file_is_named_and_never_written() {
    let world = World::new();
    let broken = "[model\ndefault = \"precious\"\n";
    world.write("config.toml", broken);
    let run = world.run(&["config", "set", "log.level", "info"]);
    assert_eq!((run.code, world.read("config.toml").as_str()), (Some(2), broken), "{run:?}");
    assert!(run.err.contains("config.toml: line 1"), "{run:?}");
    assert_eq!(world.run(&["tree", "new", "--title", "x"]).code, Some(2));
    assert_eq!(world.run(&["config", "check"]).code, Some(1));
    assert_eq!(world.run(&["doctor", "--quick"]).code, Some(1));
}

#[test]
fn an_unknown_key_stops_work_and_names_its_neighbour() {
    let world = World::new();
    world.write("config.toml", "[model]\ndefalt = \"x\"\n");
    let run = world.run(&["tree", "new", "--title", "x"]);
    assert_eq!(run.code, Some(2));
    assert_eq!(run.err, "error: config.toml: unknown key model.defalt: did you mean model.default?\n");
    let (code, found) = world.json(&["config", "check"]);
    assert_eq!((code, found["ok"].as_bool()), (Some(1), Some(false)));
    let run = world.run(&["config", "set", "model.defalt", "y"]);
    assert_eq!(run.code, Some(2));
    assert!(world.read("config.toml").contains("defalt = \"x\""));
}

#[test]
fn nothing_is_written_through_a_link_or_beside_a_second_name() {
    let world = World::new();
    world.write("keys.toml", "");
    let (there, name) = (world.path("dotfiles.toml"), world.home().join("config.toml"));
    let mine = "# mine\n[log]\nlevel = \"info\"\n";
    std::fs::write(&there, mine).unwrap();
    let links: [fn(&std::path::Path, &std::path::Path) -> std::io::Result<()>; 2] =
        [|there, name| symlink(there, name), |there, name| std::fs::hard_link(there, name)];
    for (link, said) in links.into_iter().zip(["is a link to", "hard links"]) {
        link(&there, &name).unwrap();
        let run = world.run(&["config", "set", "model.default", "box/m"]);
        assert_eq!(run.code, Some(4), "{run:?}");
        assert!(run.err.contains(said) && run.err.contains("nothing was written"), "{run:?}");
        assert_eq!(std::fs::read_to_string(&there).unwrap(), mine);
        assert_eq!(
            world.ok(&["config", "get", "log.level"]).trim(),
            "info  (file)",
            "it is read all the same"
        );
        std::fs::remove_file(&name).unwrap();
    }
    std::fs::create_dir(&name).unwrap();
    let run = world.run(&["config", "set", "model.default", "box/m"]);
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(
        run.err.contains("config.toml is not a file") && run.err.contains("nothing was written"),
        "{run:?}"
    );
    std::fs::remove_dir(&name).unwrap();
    world.ok(&["config", "set", "model.default", "box/m"]);
}

#[test]
fn x19_x20_a_file_with_a_value_of_the_wrong_type_is_kept_whatever_is_set() {
    for wrong in ["level = 5", "level = { deep = true }"] {
        let world = World::new();
        let written = format!(
            "[log]\n{wrong} # mine\n[providers.box]\nkey_env = \"GITHUB_TOKEN\"\nbase_url = \"http://localhost:1\"\n"
        );
        world.write("config.toml", &written);
        let run = world.run(&["config", "set", "model.default", "box/m"]);
        let held = world.read("config.toml");
        if run.code == Some(0) {
            assert!(held.starts_with(&written) && held.contains("box/m"), "{held}");
        } else {
            assert_eq!(held, written, "{run:?}");
            assert!(run.err.contains("log.level"), "{run:?}");
        }
    }
}

#[test]
fn a_value_that_does_not_fit_is_not_written() {
    let world = World::new();
    for (key, value) in [
        ("log.level", "loud"),
        ("limits.free_space", "a lot"),
        ("providers.box.base_url", "ftp://host"),
        ("providers.box.window", "0"),
        ("store.allow_network_fs", "yes"),
    ] {
        let run = world.run(&["config", "set", key, value]);
        assert_eq!(run.code, Some(2), "{key}: {run:?}");
    }
    assert!(!world.home().join("config.toml").exists());
}

#[test]
fn a_secret_is_kept_apart_and_shown_nowhere() {
    let world = World::new();
    let canary = "canary-0123456789";
    let set = world.fed(&["config", "set", "providers.box.key", "-"], format!("{canary}\n").as_bytes());
    assert_eq!(set.code, Some(0), "{set:?}");
    world.ok(&["config", "set", "providers.box.base_url", "http://localhost:1"]);
    assert!(world.read("keys.toml").contains(canary) && !world.read("config.toml").contains(canary));
    assert_eq!(world.home().join("keys.toml").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    for arguments in [
        &["config", "show"][..],
        &["config", "show", "--defaults"],
        &["config", "get", "providers.box.key"],
        &["doctor"],
        &["--verbose", "--model", "box/m", "tree", "generate", "x"],
    ] {
        let run = world.run(arguments);
        assert!(!run.out.contains(canary) && !run.err.contains(canary), "{arguments:?}: {run:?}");
    }
    assert!(world.ok(&["config", "show"]).contains("present"));
    std::fs::set_permissions(world.home().join("keys.toml"), PermissionsExt::from_mode(0o644)).unwrap();
    let (code, found) = world.json(&["config", "check"]);
    assert_eq!(code, Some(1));
    assert!(found["problems"][0].as_str().unwrap().starts_with("keys.toml: others may read it"));
}

#[test]
fn a_known_secret_never_enters_a_tree() {
    let world = World::new();
    world.write("keys.toml", "[providers.box]\nkey = \"canary-0123456789\"\n");
    world.write(
        "config.toml",
        "[providers.box]\nbase_url = \"http://localhost:1\"\nkey_env = \"ELSEWHERE\"\n",
    );
    world.ok(&["tree", "new", "--title", "x", "--text", "a canary-0123456789 b"]);
    let append = world
        .command(&["tree", "append", "x", " c another-0123456789 d"])
        .env("ELSEWHERE", "another-0123456789")
        .output()
        .unwrap();
    assert!(append.status.success());
    assert_eq!(world.ok(&["tree", "text", "x"]), "a ⟦secret:providers.box.key⟧ b c ⟦secret:ELSEWHERE⟧ d");
}

/// What `doctor` says of the provider `box`.
fn key_of_box(world: &World, variables: &[(&str, &str)]) -> String {
    let mut command = world.command(&["doctor", "--quick", "--json"]);
    let run: Run = command.envs(variables.iter().copied()).output().unwrap().into();
    assert!(!run.out.contains("canary"), "{run:?}");
    let found: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let checks = found["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == "provider box").unwrap();
    check["why"].as_str().unwrap().rsplit(", ").next().unwrap().to_owned()
}

#[test]
fn doctor_says_where_a_key_is_found_and_the_environment_is_first() {
    let world = World::new();
    world.write(
        "config.toml",
        "[providers.box]\nbase_url = \"http://localhost:1\"\nkey_env = \"ELSEWHERE\"\n",
    );
    assert_eq!(key_of_box(&world, &[]), "no key in ELSEWHERE");
    world.write("keys.toml", "[providers.box]\nkey = \"canary-0123456789\"\n");
    assert_eq!(key_of_box(&world, &[]), "key in keys.toml");
    let own = ("DRAWLOOM_PROVIDERS__BOX__KEY", "canary-abcdefghij");
    assert!(key_of_box(&world, &[own]).starts_with("key in the environment"));
    assert_eq!(key_of_box(&world, &[own, ("ELSEWHERE", "canary-ABCDEFGHIJ")]), "key in ELSEWHERE");
}

#[test]
fn a_default_model_of_no_provider_is_found() {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"nosuch/x\"\n");
    let (code, found) = world.json(&["config", "check"]);
    assert_eq!(code, Some(1), "{found}");
    assert!(found["problems"][0].as_str().unwrap().starts_with("model.default names nosuch/x: "), "{found}");
    assert_eq!(world.run(&["doctor", "--quick"]).code, Some(1));
    for name in ["openai/gpt-9", "script:no.jsonl", "smollm2", "http://localhost:1/m"] {
        world.write("config.toml", &format!("[model]\ndefault = \"{name}\"\n"));
        assert_eq!(world.ok(&["config", "check"]), "ok\n", "the control: {name}");
    }
}

#[cfg(feature = "postgres")]
#[test]
fn an_address_of_the_store_that_cannot_be_used_is_refused_and_not_shown() {
    let world = World::new();
    for (url, why) in [
        ("postgres://u:canary@localhost/d", "contains a password"),
        ("mysql://localhost/canary", "must begin with postgres://"),
    ] {
        let run = world.run(&["config", "set", "store.url", url]);
        assert!(run.code == Some(2) && run.err.contains(why) && !run.err.contains("canary"), "{run:?}");
        world.write("config.toml", &format!("[store]\nurl = \"{url}\"\n"));
        let run = world.run(&["config", "check"]);
        assert!(run.code == Some(1) && run.out.contains(why), "{run:?}");
        for arguments in
            [&["config", "show"][..], &["config", "check"], &["doctor", "--quick"], &["tree", "list"]]
        {
            let run = world.run(arguments);
            assert!(!run.out.contains("canary") && !run.err.contains("canary"), "{run:?}");
        }
        world.write("config.toml", "");
    }
    world.ok(&["config", "set", "store.url", "postgres://u@localhost/d"]);
}

#[test]
fn an_empty_name_of_a_model_is_called_empty() {
    let world = World::new();
    world.ok(&["config", "set", "model.default", " "]);
    let run = world.run(&["config", "check"]);
    assert!(run.code == Some(1) && run.out.contains("model.default is empty"), "{run:?}");
}

#[test]
fn a_wrong_value_is_named_where_it_is_asked_for() {
    let world = World::new();
    let get = |key: &str| {
        let mut command = world.command(&["config", "get", key]);
        Run::from(command.env("DRAWLOOM_BUDGET__DAY", "foo").output().unwrap())
    };
    let run = get("budget.day");
    assert!(
        run.code == Some(2) && run.err.contains("DRAWLOOM_BUDGET__DAY: budget.day does not fit"),
        "{run:?}"
    );
    assert_eq!(get("log.level").code, Some(0), "elsewhere it does not matter");
    let run = world.run(&["config", "set", "providers.box.base_url", "notaurl"]);
    assert!(run.err.contains("https://host/v1: write http:// or https:// before it"), "{run:?}");
}

#[test]
fn a_key_that_is_typed_is_not_shown() {
    let world = World::new();
    let canary = "sk-canary-0123456789";
    let typed = format!("{canary}x\u{7f}\n");
    let person =
        PersonAtTerminal { echo: true, stdout: true, question: "providers.box.key: ", answer: &typed };
    for value in [&["config", "set", "providers.box.key"][..], &["config", "set", "providers.box.key", "-"]] {
        world.write("keys.toml", "");
        let (code, shown) = person.run(&world, &world.path("here"), value);
        assert_eq!(code, Some(0), "{shown}");
        assert!(!shown.contains("canary"), "{shown}");
        assert!(world.read("keys.toml").contains(&format!("\"{canary}\"")), "{}", world.read("keys.toml"));
    }
    world.write("keys.toml", "");
    let blank = format!(" {canary} \n");
    let padded = PersonAtTerminal { answer: &blank, ..person };
    padded.run(&world, &world.path("here"), &["config", "set", "providers.box.key"]);
    assert!(world.read("keys.toml").contains(&format!("\"{canary}\"")), "{}", world.read("keys.toml"));
    for answer in ["sk\u{3}", "sk\u{1b}[D-canary\n"] {
        let stopped = PersonAtTerminal { answer, ..person };
        world.write("keys.toml", "");
        let (code, shown) = stopped.run(&world, &world.path("here"), &["config", "set", "providers.box.key"]);
        assert_eq!((code, world.read("keys.toml").as_str()), (Some(130), ""), "{shown}");
    }
    let run = world.run(&["config", "set", "log.level"]);
    assert!(run.code == Some(2) && run.err.contains("no value for log.level"), "{run:?}");
}

#[test]
fn a_key_is_taken_out_and_an_empty_one_is_absent() {
    let world = World::new();
    world.write(
        "config.toml",
        "# mine\n[log]\nlevel = \"info\"\n\n[model]\ndefault = \"a/b\" # the good one\n",
    );
    let (_, done) = world.json(&["config", "unset", "log.level"]);
    assert_eq!(done, serde_json::json!({"key": "log.level", "value": "warn", "source": "default"}));
    assert_eq!(world.read("config.toml"), "# mine\n[log]\n\n[model]\ndefault = \"a/b\" # the good one\n");
    world.ok(&["config", "unset", "log.level"]);
    world.ok(&["config", "set", "providers.box.key", "sk-canary-0123456789"]);
    world.ok(&["config", "set", "providers.box.key", ""]);
    assert!(!world.read("keys.toml").contains("key"), "{}", world.read("keys.toml"));
    world.write("keys.toml", "[providers.box]\nkey = \"\"\n");
    let (_, found) = world.json(&["config", "get", "providers.box.key"]);
    assert_eq!(found["source"], "default", "{found}");
    for empty in
        ["[providers.box]\nkey_env = \"\"\nbase_url = \"\"\nwindow = \"\"\n", "[log]\nlevel = \"\"\n"]
    {
        world.write("config.toml", empty);
        let run = world.run(&["config", "check"]);
        assert!(run.code == Some(0), "{run:?}");
        world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    }
    let run = world.run(&["config", "unset", "log.levl"]);
    assert!(run.code == Some(2) && run.err.contains("log.level"), "{run:?}");
}

#[test]
fn a_key_that_there_is_not_can_be_taken_out() {
    let world = World::new();
    world.write(
        "config.toml",
        "# mine\n[model]\ndefault = \"script:echo\"\nbogus = 1\n[weather]\nrain = true\n",
    );
    let run = world.run(&["tree", "new", "--text", "x"]);
    assert!(run.code == Some(2) && run.err.contains("model.bogus"), "the control: {run:?}");
    let (code, done) = world.json(&["config", "unset", "model.bogus"]);
    assert_eq!(
        (code, done),
        (Some(0), serde_json::json!({"key": "model.bogus", "value": null, "source": "default"}))
    );
    let said = world.ok(&["config", "unset", "weather.rain"]);
    assert!(said.contains("weather.rain is not in"), "{said}");
    assert_eq!(world.read("config.toml"), "# mine\n[model]\ndefault = \"script:echo\"\n");
    world.ok(&["tree", "new", "--text", "x"]);
    for absent in ["model.bogus", "weather", "model"] {
        assert_eq!(world.run(&["config", "unset", absent]).code, Some(2), "{absent}");
    }
}

#[test]
fn an_address_needs_no_scheme() {
    let world = World::new();
    world.ok(&["config", "set", "providers.box.base_url", "127.0.0.1:8080"]);
    assert!(world.read("config.toml").contains("\"http://127.0.0.1:8080\""), "{}", world.read("config.toml"));
}

#[test]
fn a_key_is_one_line_and_is_not_taken_out_by_a_line_end() {
    let world = World::new();
    world.ok(&["config", "set", "providers.box.key", " canary-0123456789 "]);
    let wrong = world.run(&["config", "set", "providers.box.key", "canary\n0123"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("line break"), "{wrong:?}");
    let person =
        PersonAtTerminal { echo: false, stdout: true, question: "providers.box.key: ", answer: "\n" };
    let (code, said) = person.run(&world, &world.path(""), &["config", "set", "providers.box.key"]);
    assert!(code == Some(2) && said.contains("nothing was typed"), "{said}");
    assert!(world.read("keys.toml").contains("\"canary-0123456789\""), "{}", world.read("keys.toml"));
    world.ok(&["config", "set", "providers.box.key", "  "]);
    assert!(!world.read("keys.toml").contains("canary"), "blanks are no key");
}

#[test]
fn what_was_changed_is_said_in_a_sentence_with_its_file() {
    let world = World::new();
    let at = |name: &str| world.home().join(name).display().to_string();
    let said = |arguments: &[&str]| world.ok(arguments);
    let file = at("config.toml");
    assert_eq!(
        said(&["config", "set", "log.level", "info"]),
        format!("log.level is info now, kept in {file}\n")
    );
    assert_eq!(
        said(&["config", "unset", "log.level"]),
        format!("log.level is warn now, its default: it is not in {file} any more\n")
    );
    let key = said(&["config", "set", "providers.box.key", "canary-0123456789"]);
    assert_eq!(key, format!("providers.box.key is set now, kept in {}\n", at("keys.toml")));
    let chosen = said(&["model", "use", "script:echo"]);
    let wanted = "script:echo (on your machine) is asked from now on where no model is named, kept in ";
    assert_eq!(chosen, format!("{wanted}{file}\n"));
    assert_eq!(
        said(&["config", "unset", "model.default"]),
        format!("model.default is not set any more: it is not in {file}\n")
    );
    let (_, set) = world.json(&["config", "set", "log.level", "info"]);
    assert_eq!(set, serde_json::json!({"key": "log.level", "value": "info", "source": "file"}));
}

#[test]
fn a_file_that_says_nothing_is_named_when_a_key_is_asked_for() {
    let world = World::new();
    world.write("config.toml", "[model\n");
    let run = world.run(&["config", "get", "model.default"]);
    assert!(run.code == Some(0) && run.err.contains("config.toml"), "{run:?}");
    world.write("config.toml", "[log]\nlevel = \"info\"\n");
    let run = world.run(&["config", "get", "model.default"]);
    assert!(run.code == Some(0) && run.err.is_empty(), "{run:?}");
}

#[test]
fn doctor_looks_at_the_model_that_conversations_ask() {
    let world = World::new();
    let model = |agent: &str| {
        world.write(
            "config.toml",
            &format!("[model]\ndefault = \"script:echo\"\n[agents.assistant]\nmodel = \"{agent}\"\n"),
        );
        let (_, found) = world.json(&["doctor", "--quick"]);
        let mut checks = found["checks"].as_array().unwrap().iter();
        let check = checks.find(|check| check["name"] == "model").unwrap().clone();
        (check["state"].as_str().unwrap().to_owned(), check["why"].as_str().unwrap().to_owned())
    };
    let (state, why) = model("nobody/m");
    assert!(state == "fail" && why.contains("agents.assistant.model names nobody/m"), "{why}");
    let (state, why) = model("script:echo");
    assert!(state == "ok" && why.contains("script:echo in conversations"), "{why}");
}

#[test]
fn a_slash_command_that_reads_goes_on_with_an_unknown_key_as_other_commands_that_read_do() {
    let world = World::new();
    world.ok(&["chat", "-m", "hello", "--model", "script:echo"]);
    world.write("config.toml", "zz = 1\n[model]\ndefault = \"script:echo\"\n");
    for line in ["/history", "/status"] {
        let run = world.run(&["chat", "-m", line]);
        assert_eq!(run.code, Some(0), "{line}: {run:?}");
        assert!(run.err.contains("unknown key zz"), "{line}: {run:?}");
    }
    for line in ["hello", "/rename other"] {
        let run = world.run(&["chat", "-m", line]);
        assert_eq!(run.code, Some(2), "the control: {line}: {run:?}");
    }
}

#[test]
fn a_known_secret_that_was_typed_as_an_argument_is_in_no_error() {
    let world = World::new();
    const SECRET: &str = "sk-typed-0123456789abcdef";
    let set = world.fed(&["config", "set", "providers.box.key"], format!("{SECRET}\n").as_bytes());
    assert_eq!(set.code, Some(0), "{set:?}");
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    for words in [
        &["tree", "show", SECRET][..],
        &["tree", "tag", "Tale", SECRET, "x"],
        &["tree", "edit", "Tale", "--replace", SECRET, "x"],
        &["sessions", "show", SECRET],
    ] {
        for json in [&[][..], &["--json"]] {
            let run = world.run(&[json, words].concat());
            assert_ne!(run.code, Some(0), "{words:?}");
            assert!(!(run.err + &run.out).contains(SECRET), "{words:?}");
        }
    }
}

#[test]
fn the_earlier_name_of_the_default_agent_reads_on() {
    for (sections, model) in [
        ("[agents.main]\nmodel = \"script:echo\"\n", "script/echo"),
        ("[agents.main]\nmodel = \"nobody/m\"\n[agents.assistant]\nmodel = \"script:echo\"\n", "script/echo"),
    ] {
        let world = World::new();
        world.write("config.toml", sections);
        let (_, answer) = world.json(&["chat", "-m", "hi"]);
        assert_eq!(answer["model"], model, "{sections}");
    }
    // The default agent is there without a section.
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    world.ok(&["tree", "generate", "Tale", "--agent", "assistant"]);
}
