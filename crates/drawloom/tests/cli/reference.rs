//! The reference of commands: what `--help` says, all of it in one place for review.

use crate::world::World;

/// The commands a help text lists.
fn commands(help: &str) -> Vec<String> {
    let list = help.split_once("Commands:\n").map(|(_, rest)| rest).unwrap_or_default();
    // A description that is wrapped goes on further to the right.
    let lines = list.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    lines
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

fn collect(world: &World, path: &[String], out: &mut String) {
    let mut arguments = path.to_vec();
    arguments.push("--help".to_owned());
    let run = world.run(&arguments);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{path:?}");
    let help = run.out.trim_end();
    // The flags of every command stand once, at the top.
    let own = match help.split_once("\n\nEverywhere:") {
        Some((own, rest)) if !path.is_empty() => {
            let example = rest.rsplit_once("\n\nExample: ").map(|(_, line)| format!("\n\nExample: {line}"));
            own.to_owned() + &example.unwrap_or_default()
        }
        _ => help.to_owned(),
    };
    *out += &format!("──── drawloom {}\n\n{own}\n\n", path.join(" "));
    for command in commands(help) {
        collect(world, &[path, &[command]].concat(), out);
    }
}

#[test]
fn the_reference_of_commands() {
    let mut reference = String::new();
    collect(&World::new(), &[], &mut reference);
    insta::assert_snapshot!(reference);
}

#[test]
fn the_version_needs_nothing() {
    let world = World::new();
    assert_eq!(world.ok(&["--version"]), format!("drawloom {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(world.ok(&["-V"]), world.ok(&["--json", "--version"]));
    assert!(!world.home().exists());
}

#[test]
fn shells_get_completions() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(world.ok(&["completions", shell]).contains("DRAWLOOM_COMPLETE"), "{shell}");
    }
    assert_eq!(completed(&world, "fish", &["tree", "show", "T"]), "", "no home is made for it");
    assert!(!world.home().exists());
}

#[test]
fn a_shell_is_offered_what_is_archived_where_that_comes_back_and_weights_where_they_are_fetched() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Gone", "--text", "It rained."]);
    world.ok(&["tree", "delete", "Gone"]);
    for name in ["plans", "pages"] {
        world.ok(&["--model", "script:echo", "chat", "--session", name, "-m", "Hello."]);
    }
    world.ok(&["sessions", "archive", "plans"]);
    let fish = |words: &[&str]| completed(&world, "fish", words);
    assert!(
        fish(&["tree", "undelete", "Go"]).contains("Gone") && !fish(&["tree", "show", "Go"]).contains("Gone")
    );
    let restored = fish(&["sessions", "restore", "p"]);
    assert!(restored.contains("plans") && !restored.contains("pages"), "{restored}");
    for words in [&["model", "pull", "sm"][..], &["model", "use", "sm"], &["--model", "sm"]] {
        assert!(fish(words).contains("smollm2"), "{words:?}");
    }
    assert!(!fish(&["model", "pull", "an"]).contains("anthropic/"));
}

/// What a shell is offered behind these words.
fn completed(world: &World, shell: &str, words: &[&str]) -> String {
    let mut command = world.command(&[&["--", "drawloom"], words].concat());
    let index = words.len().to_string();
    command.env("DRAWLOOM_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", index).env("_CLAP_IFS", "\n");
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn a_shell_is_offered_titles_short_ids_sessions_and_models() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Two words", "--text", "It rained."]);
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let id = world.ok(&["tree", "append", "Tale", " Then it\nstopped."]).trim().to_owned();
    world.ok(&["--model", "script:echo", "chat", "--session", "plans", "-m", "Hello."]);
    let fish = |words: &[&str]| completed(&world, "fish", words);
    assert!(fish(&["tree", "ge"]).contains("generate\t"), "commands too");
    assert!(
        fish(&["tree", "show", "T"]).starts_with("Tale\t")
            && fish(&["tree", "show", "Tw"]).contains("Two words")
    );
    let bash = completed(&world, "bash", &["tree", "show", "T"]);
    assert_eq!(bash, "Tale", "nobody quotes a title with a blank there");
    let powershell = completed(&world, "powershell", &["tree", "show", "T"]);
    assert!(powershell.contains("Tale") && !powershell.contains("Two"), "{powershell}");
    world.ok(&["tree", "new", "--title", "$(touch x)", "--text", "It rained."]);
    for shell in ["bash", "powershell"] {
        let offered = completed(&world, shell, &["tree", "show", "$"]);
        assert!(!offered.contains("touch"), "it would be run at the next Tab of {shell}: {offered}");
    }
    assert!(fish(&["tree", "show", "$"]).contains("$(touch x)"), "control");
    let trees = world.json(&["tree", "list"]).1;
    let short = trees["trees"][0]["short_id"].as_str().unwrap().to_owned();
    assert!(fish(&["tree", "text", &short[..2]]).contains(&short));
    assert_eq!(fish(&["tree", "switch", "Tale", &id]), format!("{id}\tThen it stopped.\n"));
    assert_eq!(
        fish(&["tree", "switch", "--view", "main", "Tale", &id]),
        format!("{id}\tThen it stopped.\n"),
        "the value of a flag is no tree"
    );
    world.ok(&["tree", "undo", "Tale"]);
    let aside = format!("{id}\tThen it stopped.\n");
    for words in [
        &["tree", "switch", "Tale", &id[..2]][..],
        &["tree", "siblings", "Tale", &id[..2]],
        &["tree", "generate", "Tale", "--from", &id[..2]],
        &["tree", "compare", "Tale", &id, &id[..2]],
        &["context", "show", &id[..2]],
        &["context", "diff", &id, &id[..2]],
        &["context", "replay", &id[..2]],
        &["forget", &id[..2]],
    ] {
        assert!(fish(words).contains(&aside), "beside the path, too: {words:?}: {}", fish(words));
    }
    assert!(completed(&world, "bash", &["tree", "switch", "Tale", ""]).contains(&id));
    let quoted = completed(&world, "bash", &["tree", "switch", "\"Two words\"", ""]);
    let unquoted = fish(&["tree", "switch", "Two words", ""]);
    let first = unquoted.split('\t').next().unwrap();
    assert!(unquoted.starts_with(&format!("{first}\tIt rained.")) && quoted.starts_with(first), "{quoted}");
    world.ok(&["tree", "new", "--title", "Don't go", "--text", "It poured."]);
    assert!(
        fish(&["tree", "switch", "Don't go", ""]).contains("\tIt poured."),
        "fish takes quotes away itself"
    );
    world.ok(&["tree", "new", "--title", "\"b\"", "--text", "It hailed."]);
    assert!(fish(&["tree", "switch", "\"b\"", ""]).contains("\tIt hailed."), "these are its own");
    let short = fish(&["tree", "switch", "Don't go", ""]);
    let short = short.split('\t').next().unwrap();
    for quoted in ["\"Don't go\"", "Don\\'t\\ go"] {
        assert!(completed(&world, "bash", &["tree", "switch", quoted, ""]).starts_with(short), "{quoted}");
    }
    assert_eq!(fish(&["tree", "generate", "--from", ""]), "", "no tree is named");
    assert!(fish(&["context", "show", "Ta"]).starts_with("Tale\t"), "a tree as well");
    assert!(!fish(&["forget", "Ta"]).contains("Tale"), "control");
    assert!(fish(&["chat", "--session", "pl"]).contains("plans"));
    assert!(fish(&["sessions", "archive", ""]).contains("plans"));
    let turned = world.json(&["tree", "new", "--title", "Turned \u{202e}elat", "--text", "It rained."]).1;
    let turned = turned["short_id"].as_str().unwrap();
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let offered = completed(&world, shell, &["tree", "show", "T"]);
        assert!(offered.contains("Tale") && !offered.contains("Turned"), "{shell}: {offered:?}");
        let offered = completed(&world, shell, &["tree", "show", turned]);
        assert!(offered.contains(turned) && !offered.contains('\u{202e}'), "{shell}: {offered:?}");
    }
    let models = fish(&["--model", "anthropic/"]);
    assert!(
        models.lines().count() > 1 && models.lines().all(|line| line.starts_with("anthropic/")),
        "{models}"
    );
    let elsewhere = world.path("none");
    assert_eq!(fish(&["--home", elsewhere.to_str().unwrap(), "tree", "show", "T"]), "");
    assert!(!elsewhere.exists());
    let joined = format!("--home={}", elsewhere.display());
    assert_eq!(fish(&[&joined, "tree", "show", "T"]), "");
}
