//! Models by name and by file, and what is done without being asked: nothing (spec: agent §2, cli *First run*).

use std::time::{Duration, Instant};

use crate::files::ends;
use crate::server::Server;
use crate::terminal::Terminal;
use crate::tiny::TINY;
use crate::trust::with_terminal;
use crate::world::{World, text};

pub(crate) fn tiny(world: &World) -> String {
    let path = world.path("tiny.gguf");
    std::fs::write(&path, TINY.file().bytes()).unwrap();
    text(&path)
}

#[test]
fn a_file_of_weights_answers_and_says_once_what_it_is() {
    let world = World::new();
    let file = tiny(&world);
    let chat = ["chat", "-m", "hi", "--preset", "short", "--json", "--model-file", &file];
    world.write("config.toml", "[presets.short]\nmax_tokens = 8\n");
    let run = world.run(&chat);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("a model inside this program; it cannot act"), "{}", run.err);
    assert!(!world.run(&chat).err.contains("cannot act"), "the session has begun");
    let (_, found) = world.json(&["model", "test", "--model-file", &file]);
    assert_eq!((&found["name"], &found["place"]), (&"embedded/tiny".into(), &"local".into()));
    assert!(found["usage_reported"].as_bool().unwrap() && found["output"].as_u64().unwrap() > 0, "{found}");
}

/// A template that never ends, in a model of a family whose markers nobody knows.
const ENDLESS: &str = "{% for i in range(90000) %}{% if -1 in range(99999) %}{% endif %}{% endfor %}";

#[test]
fn s24_a_file_of_another_family_is_continued_as_raw_text_and_its_template_is_never_run() {
    let world = World::new();
    world.write("config.toml", "[presets.short]\nmax_tokens = 8\n");
    let path = world.path("other.gguf");
    let file = TINY.file().with_markers(["<s>", "[INST]", "[/INST]"]);
    std::fs::write(&path, file.with("tokenizer.chat_template", ENDLESS).bytes()).unwrap();
    for said in ["hi", "and then"] {
        let begun = Instant::now();
        let say = ["chat", "-m", said, "--preset", "short", "--json", "--model-file", &text(&path)];
        let run = ends(&mut world.command(&say));
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert_eq!(run.err.matches("continued as raw text").count(), 1, "{}", run.err);
        for way in ["llama.cpp", "providers.local.base_url", "--model local/NAME"] {
            assert!(run.err.contains(way), "{way}: {}", run.err);
        }
    }
    assert!(
        !world
            .run(&["chat", "-m", "hi", "--preset", "short", "--model-file", &tiny(&world)])
            .err
            .contains("template")
    );
}

#[test]
fn a_script_is_named_as_its_answers_show_it() {
    let world = World::new();
    let (_, said) = world.json(&["chat", "-m", "hi", "--model", "script:echo"]);
    let (_, kept) = world.json(&["log"]);
    let shown = &kept["exchanges"][0]["model"];
    assert_eq!((&said["text"], shown), (&"hi".into(), &"script/echo".into()), "{kept}");
    let (code, said) = world.json(&["chat", "-m", "and now", "--model", "script/echo"]);
    assert_eq!((code, &said["text"]), (Some(0), &"and now".into()), "{said}");
    world.write("config.toml", "[providers.script]\nbase_url = \"http://127.0.0.1:9\"\n");
    assert_ne!(world.json(&["ask", "hi", "--model", "script/echo"]).0, Some(0), "a provider of that name");
}

#[test]
fn a_name_without_its_provider_is_met_with_the_full_names_that_end_so() {
    let world = World::new();
    let list = r#"{"data": [{"id": "mock-1"}, {"id": "team/mock-2"}]}"#;
    let server = Server::start(move |path, _| (path == "/v1/models").then(|| list.to_owned()));
    world.write(
        "config.toml",
        &format!("[providers.box]\nbase_url = \"{}\"\n[presets.a]\nmodel = \"far/mock-3\"\n", server.base()),
    );
    for (words, meant) in [
        (&["model", "use", "mock-1"][..], "box/mock-1"),
        (&["ask", "hi", "--model", "mock-1"], "box/mock-1"),
        (&["ask", "hi", "--model", "mock-2"], "box/team/mock-2"),
        (&["ask", "hi", "--model", "mock-3"], "far/mock-3"),
    ] {
        let run = world.run(words);
        assert!(
            run.code == Some(3) && run.err.contains(&format!("did you mean {meant}?")),
            "{words:?}: {run:?}"
        );
    }
    let run = world.run(&["ask", "hi", "--model", "mock-4"]);
    assert!(!run.err.contains("did you mean"), "control: {run:?}");
}

#[test]
fn a_file_that_is_no_weights_is_named() {
    let world = World::new();
    std::fs::write(world.path("here/x.gguf"), "no").unwrap();
    let (code, error) = world.json(&["chat", "-m", "hi", "--model-file", "x.gguf"]);
    assert_eq!((code, &error["error"]["code"]), (Some(2), &"bad_model_file".into()));
    let (code, error) = world.json(&["chat", "-m", "hi", "--model-file", "nowhere.gguf"]);
    assert_eq!((code, &error["error"]["code"]), (Some(3), &"not_found".into()));
}

#[test]
fn s24_unattended_nothing_is_downloaded_and_the_error_names_the_ways() {
    let world = World::new();
    let run = world.run(&["chat", "-m", "hi"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    for way in ["--model PROVIDER/NAME", "model use", "--model smollm2"] {
        assert!(run.err.contains(way), "{way}: {}", run.err);
    }
    world.ok(&["model", "use", "smollm2"]);
    let (code, error) = world.json(&["chat", "-m", "hi"]);
    assert_eq!((code, &error["error"]["code"]), (Some(4), &"download_not_asked".into()));
    let hint = error["error"]["hint"].as_str().unwrap();
    for way in ["--model smollm2", "model pull smollm2", "model.auto_pull = true"] {
        assert!(hint.contains(way), "{way}: {hint}");
    }
    assert!(!world.home().join("cache/weights").exists());
}

#[test]
fn models_are_listed_chosen_and_tried() {
    let world = World::new();
    world.write("config.toml", "[providers.box]\nbase_url = \"http://127.0.0.1:9\"\nwindow = 4096\n");
    let shown = |name: &str| {
        let (_, found) = world.json(&["model", "list"]);
        found["models"].as_array().unwrap().iter().find(|model| model["name"] == name).cloned()
    };
    let demo = shown("smollm2").unwrap();
    assert_eq!((&demo["embedded"], &demo["installed"]), (&true.into(), &false.into()));
    assert!(demo["about"].as_str().unwrap().contains("continues prose and cannot act"));
    assert_eq!(shown("box/…").unwrap()["window"], 4096);
    world.ok(&["model", "use", "box/small"]);
    let chosen = shown("box/small").unwrap();
    assert_eq!((&chosen["default"], &chosen["place"]), (&true.into(), &"local".into()));
    assert!(world.read("config.toml").contains("default = \"box/small\""));
    assert_eq!(world.run(&["model", "use", "nobody/small"]).code, Some(3));
    assert_eq!(world.run(&["model", "pull", "gpt-9"]).code, Some(3));
    let (code, error) = world.json(&["model", "test"]);
    assert_eq!((code, error["error"]["code"].as_str().is_some()), (Some(5), true), "{error}");
    let (_, tried) = world.json(&["model", "test", "script:echo"]);
    assert!(tried["text"].as_str().unwrap().contains("sky"), "{tried}");
    assert!(tried["total_ms"].is_u64());
}

#[test]
fn unattended_init_decides_nothing_and_says_what_it_found() {
    let world = World::new();
    let output = world.command(&["init", "--json"]).env("OPENAI_API_KEY", "sk-canary-0123456789").output();
    let output = output.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("canary"), "{text}");
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["model"], serde_json::Value::Null);
    let step = |name: &str| {
        let steps = found["steps"].as_array().unwrap();
        steps.iter().find(|step| step["name"] == name).cloned().unwrap()
    };
    assert_eq!(step("key")["state"], "open");
    assert!(step("key")["what"].as_str().unwrap().contains("OPENAI_API_KEY"));
    assert!(step("embedded")["next"].as_str().unwrap().contains("model pull smollm2"));
    assert_eq!(step("workspace")["state"], "done");
    assert!(world.home().exists() && !world.home().join("config.toml").exists());
    assert!(!world.home().join("cache/weights").exists());
}

#[test]
fn the_catalogue_is_listed_with_window_price_place_and_abilities() {
    let world = World::new();
    let (_, found) = world.json(&["model", "list", "--all"]);
    let shown = |name: &str| {
        let models = found["models"].as_array().unwrap();
        models.iter().find(|model| model["name"] == name).cloned().unwrap_or_else(|| panic!("no {name}"))
    };
    let gpt = shown("openai/gpt-5.1");
    assert_eq!((&gpt["window"], &gpt["place"]), (&400_000.into(), &"remote".into()));
    assert_eq!(gpt["price"], "$1.25 in, $10.00 out per million tokens");
    assert_eq!(gpt["host"], "api.openai.com");
    assert!(gpt["abilities"].as_array().unwrap().contains(&"tools".into()));
    assert_eq!(shown("openai/gpt-5.4-pro")["price"], serde_json::Value::Null, "unknown is not nothing");
    assert!(world.ok(&["model", "list", "--all"]).contains("price not known"));
    let (_, few) = world.json(&["model", "list"]);
    assert!(few["models"].as_array().unwrap().len() < 5, "control: {few}");
}

#[test]
fn a_bare_name_is_kept_in_full_and_the_owner_may_know_better() {
    let world = World::new();
    let key = "models.\"anthropic/claude-opus-4-5\".window";
    world.ok(&["config", "set", key, "9000"]);
    world.ok(&["config", "set", "providers.anthropic.key_env", "SOME_KEY"]);
    let output =
        world.command(&["model", "use", "claude-opus-4-5"]).env("SOME_KEY", "sk-canary-0123456789").output();
    let run: crate::world::Run = output.unwrap().into();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(world.read("config.toml").contains("default = \"anthropic/claude-opus-4-5\""));
    let (_, found) = world.json(&["model", "list"]);
    let default =
        found["models"].as_array().unwrap().iter().find(|model| model["default"] == true).cloned().unwrap();
    assert_eq!((&default["window"], &default["place"]), (&9_000.into(), &"remote".into()));
    let (_, got) = world.json(&["config", "get", key]);
    assert_eq!(got["value"], 9_000);
}

#[test]
fn unattended_init_names_every_key_with_model_price_and_place() {
    let world = World::new();
    let mut command = world.command(&["init", "--json"]);
    let keys = [("ANTHROPIC_API_KEY", "sk-canary-a-0123456789"), ("GROQ_API_KEY", "sk-canary-g-0123456789")];
    let output = command.envs(keys).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("canary"), "{text}");
    for said in
        ["ANTHROPIC_API_KEY", "api.anthropic.com", "per million tokens", "GROQ_API_KEY", "api.groq.com"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("OPENAI_API_KEY"), "control: {text}");
}

#[test]
fn a_spent_budget_refuses_what_is_sent_elsewhere_and_nothing_else() {
    let world = World::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // A server of the owner's that is called remote, and is never reached.
    world.write(
        "config.toml",
        &format!(
            "[providers.far]\nbase_url = \"http://127.0.0.1:{port}\"\nplace = \"remote\"\n\
             [models.\"far/m\"]\nprice_input = 1000\nprice_output = 1000\n[budget]\nturn = 0.5\n"
        ),
    );
    let (code, error) = world.json(&["chat", "-m", "hi", "--model", "far/m"]);
    assert_eq!((code, &error["error"]["code"]), (Some(4), &"budget_spent".into()), "{error}");
    assert!(error["error"]["hint"].as_str().unwrap().contains("budget.turn"), "{error}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody came");
    assert_eq!(world.run(&["chat", "-m", "hi", "--model", "script:echo"]).code, Some(0), "control");
    let (_, spent) = world.json(&["cost", "all"]);
    assert_eq!((&spent["total"], &spent["limits"]["turn"]), (&0.0.into(), &0.5.into()), "{spent}");
}

#[test]
fn a_name_that_looks_misspelt_is_asked_and_said() {
    let world = World::new();
    world.write(
        "config.toml",
        "[providers.openai]\nbase_url = \"http://127.0.0.1:1\"\n[providers.anthropic]\nbase_url = \"http://127.0.0.1:1\"\n",
    );
    let ask = |name: &str| world.run(&["chat", "-m", "hi", "--model", name]);
    let run = ask("openai/gpt-5.1x");
    let said = "unknown model openai/gpt-5.1x: did you mean openai/gpt-5.1? Its window is assumed";
    assert_eq!((run.code, run.err.matches(said).count()), (Some(5), 1), "asked all the same: {run:?}");
    let run = ask("claude-sonet-4-5");
    assert!(run.err.contains("did you mean anthropic/claude-sonnet-4-5?"), "{run:?}");
    for right in ["openai/gpt-5.1", "openai/gpt-5.1-2025-11-13", "openai/a-model-of-tomorrow"] {
        let run = ask(right);
        assert_eq!((run.code, run.err.contains("did you mean")), (Some(5), false), "control: {run:?}");
    }

    let used = world.run(&["model", "use", "openai/gpt-5.1x"]);
    assert_eq!((used.code, used.err.contains(said)), (Some(0), true), "{used:?}");
    let list = world.ok(&["model", "list"]);
    assert!(list.contains(said) && list.contains("8192 tokens assumed"), "{list}");
    world.ok(&["config", "set", "models.\"openai/gpt-5.1x\".window", "100000"]);
    let known = world.run(&["model", "list"]);
    assert!(!known.out.contains("did you mean") && known.out.contains("100000 tokens"), "{known:?}");
}

#[test]
fn weights_on_this_machine_are_named_where_no_model_is_chosen() {
    let world = World::new();
    let absent = world.run(&["chat", "-m", "hi"]);
    assert!(absent.err.contains("download the small demo model"), "the control: {absent:?}");
    let models = world.home().join("models");
    std::fs::create_dir_all(&models).unwrap();
    std::fs::write(models.join("smollm2-q8_0.gguf"), "looked at when it is loaded").unwrap();
    let run = world.run(&["chat", "-m", "hi"]);
    let said = "no model is chosen. On this machine: smollm2: choose it with `drawloom model use smollm2`";
    assert!(run.code == Some(2) && run.err.contains(said), "{run:?}");
    let init = world.ok(&["init"]);
    assert!(init.contains("`drawloom model use smollm2` makes it the default"), "{init}");
    assert!(!init.contains("model pull"), "{init}");
}

/// What pip says where no index is reached.
const PIP: &str = r#"#!/bin/sh
case "$*" in *download*)
    for time in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        echo "WARNING: Retrying (Retry(total=$time)) after connection broken by 'NewConnectionError'" >&2
    done
    echo "ERROR: No matching distribution found" >&2
    exit 1
esac
"#;

#[test]
#[ignore = "needs strace: .ci/run runs it"]
fn weights_that_cannot_be_fetched_take_three_lines_and_the_rest_is_verbose() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let python = world.path("bin/python3");
    std::fs::create_dir(world.path("bin")).unwrap();
    std::fs::write(&python, PIP).unwrap();
    std::fs::set_permissions(&python, PermissionsExt::from_mode(0o755)).unwrap();
    let pull = |more: &[&str]| {
        // Nothing leaves this machine: no socket can be made.
        let mut command = std::process::Command::new("strace");
        command.args(["-f", "-o", "/dev/null", "-e", "trace=socket"]);
        command.args(["-e", "inject=socket:error=EAFNOSUPPORT"]);
        // Only the program sees the stand-in.
        command.arg("-E").arg(format!("PATH={}", text(&world.path("bin"))));
        command.arg(crate::program::program()).args(["model", "pull", "smollm2"]).args(more);
        command.env("DRAWLOOM_HOME", world.home()).env("HOME", world.path("user"));
        command.current_dir(world.path("here")).stdin(std::process::Stdio::null());
        crate::world::Run::from(command.output().unwrap())
    };
    let run = pull(&[]);
    assert_eq!(run.code, Some(5), "{run:?}");
    // Progress aside.
    let told: Vec<&str> = run.err.lines().filter(|line| !line.starts_with("downloaded ")).collect();
    assert!(told.len() <= 3 && told.iter().all(|line| line.len() < 200), "{told:#?}");
    assert!(told[2].contains("pip failed") && told[2].contains("--verbose"), "{told:#?}");
    // Nothing came, so there is no progress.
    assert!(!run.err.contains("downloaded "), "{run:?}");
    assert!(!run.err.contains("Retrying"), "{run:?}");
    let run = pull(&["--verbose"]);
    assert!(run.code == Some(5) && run.err.matches("Retrying").count() > 5, "{run:?}");
    assert!(run.err.contains("No matching distribution"), "{run:?}");
}

#[test]
fn whoever_was_asked_for_a_default_model_is_not_offered_the_same_again() {
    let world = World::new();
    let mut terminal = Terminal::of_width(with_terminal(&world.command(&["ask", "What is a heddle?"])), 120);
    terminal.shows("Look for models and set up the home first? [y/N]");
    terminal.types("y\r");
    terminal.shows("as the default model? [y/N]");
    terminal.types("n\r");
    assert_eq!(terminal.ended(), Some(2), "{}", terminal.contents());
    while terminal.listen() {}
    let shown = terminal.plain();
    assert!(shown.contains("no model is chosen") && !shown.contains("from now on?"), "{shown}");
    // The control: the home is there, and nothing was asked in this call.
    let mut terminal = Terminal::of_width(with_terminal(&world.command(&["ask", "What is a heddle?"])), 120);
    terminal.shows("Use it, also from now on? [y/N]");
    terminal.types("n\r");
    assert_eq!(terminal.ended(), Some(2));
}
