//! Skills that the owner begins, adds and switches, and those that a message names (docs/skills.md).

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};

use crate::mcp::{server, world as server_world};
use crate::skills::{listed, skill};
use crate::terminal::Terminal;
use crate::tools::nodes;
use crate::trust::with_terminal;
use crate::world::{World, text};

/// A world with an empty workspace and a model that echoes.
fn world() -> World {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    fs::create_dir_all(world.path("project")).unwrap();
    world
}

fn project(world: &World) -> String {
    text(&world.path("project"))
}

/// Folders of the owner's own skills in the home.
fn in_home(world: &World) -> Vec<String> {
    let Ok(entries) = fs::read_dir(world.home().join("skills")) else { return Vec::new() };
    let folders = entries.map(Result::unwrap).filter(|entry| entry.path().is_dir());
    let names = folders.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| !matches!(name.as_str(), "skill-creator" | "summarize")).collect()
}

#[test]
fn a_skill_that_is_begun_keeps_to_the_letter_and_replaces_none() {
    let world = world();
    let said = "Weave: a \"scarf\" \\ more. Use when it is cold.";
    let (code, begun) = world.json(&["skills", "new", "weave-scarf", "--description", said]);
    assert_eq!((code, &begun["name"]), (Some(0), &json!("weave-scarf")), "{begun}");
    assert_eq!((&begun["eligible"], &begun["description"]), (&json!(true), &json!(said)), "{begun}");
    let folder = world.home().join("skills/weave-scarf");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    world.ok(&["skills", "check", "--strict", &text(&folder)]);
    let (code, checked) = world.json(&["skills", "check", &text(&folder)]);
    assert_eq!((code, &checked["problems"][0]["code"]), (Some(0), &json!("placeholder")), "{checked}");
    fs::write(folder.join("SKILL.md"), "---\nname: weave-scarf\ndescription: mine\n---\nMine.\n").unwrap();
    let (code, refused) = world.json(&["skills", "new", "weave-scarf"]);
    assert_eq!((code, &refused["error"]["code"]), (Some(4), &json!("exists")), "{refused}");
    assert!(world.ok(&["skills", "show", "weave-scarf"]).contains("Mine."));
    for bad in ["Weave", "../weave", "a/b", ".weave", "summarize", "", "-a", &"a".repeat(65)] {
        let run = world.run(&["skills", "new", "--", bad]);
        assert_eq!(run.code, Some(2), "{bad}: {run:?}");
    }
    // Nobody is told of one that says nothing yet.
    let (_, begun) = world.json(&["skills", "new", "unsaid"]);
    assert!(begun["why"].as_str().unwrap().contains("still the one it was begun with"), "{begun}");
    let (code, refused) = world.json(&["skills", "new", "unsaid"]);
    assert_eq!((code, &refused["error"]["code"]), (Some(4), &json!("exists")), "{refused}");
    let shown = listed(&world, &[]);
    let unsaid = shown["skills"].as_array().unwrap().iter().find(|skill| skill["name"] == "unsaid").unwrap();
    assert_eq!(unsaid["eligible"], json!(false));
    let unsaid = world.home().join("skills/unsaid/SKILL.md");
    let text = fs::read_to_string(&unsaid).unwrap();
    fs::write(&unsaid, text.replace("Say here what it does, and when", "Unsay it when")).unwrap();
    let (_, shown) = world.json(&["skills", "show", "unsaid"]);
    assert_eq!(shown["eligible"], json!(true), "{shown}");
    fs::remove_dir_all(world.home().join("skills/unsaid")).unwrap();
    let long = "x".repeat(1_025);
    assert_eq!(world.run(&["skills", "new", "long", "--description", &long]).code, Some(2));
    assert_eq!(in_home(&world), ["weave-scarf"]);
}

/// A path is one from the folder in which the command was typed, also where a folder of that name is below it.
#[test]
fn a_skill_of_a_folder_beside_the_one_worked_in_is_the_one_that_is_added() {
    let world = world();
    skill(&world, "from/paint", "metadata: meant\n");
    skill(&world, "work/from/paint", "");
    let mut add = world.command(&["skills", "add", "--yes", "../from/paint"]);
    let added = add.current_dir(world.path("work")).output().unwrap();
    assert_eq!(added.status.code(), Some(0), "{added:?}");
    let text = fs::read_to_string(world.home().join("skills/paint/SKILL.md")).unwrap();
    assert!(text.contains("metadata: meant"), "{text}");
    let mut check = world.command(&["skills", "check", "--strict", "../from/paint/SKILL.md"]);
    let checked = check.current_dir(world.path("work")).output().unwrap();
    assert!(!String::from_utf8_lossy(&checked.stdout).contains("other_name"), "{checked:?}");
}

#[test]
fn a_skill_is_added_whole_or_not_at_all() {
    let world = world();
    skill(&world, "from/paint", "");
    let from = world.path("from/paint");
    fs::create_dir(from.join("scripts")).unwrap();
    fs::write(from.join("scripts/mix"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(from.join("scripts/mix"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(from.join(".git")).unwrap();
    fs::write(from.join(".git/config"), "x").unwrap();
    let home = world.home().join("skills");
    // Where nobody is asked, nothing is added.
    let (code, refused) = world.json(&["skills", "add", &text(&from)]);
    assert_eq!((code, &refused["error"]["code"]), (Some(4), &json!("not_accepted")), "{refused}");
    assert_eq!(in_home(&world), [""; 0]);
    let (code, added) = world.json(&["skills", "add", "--yes", &text(&from.join("SKILL.md"))]);
    assert_eq!(
        (code, &added["name"], &added["source"]),
        (Some(0), &json!("paint"), &json!("home")),
        "{added}"
    );
    let mode = |path: &str| fs::metadata(home.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("paint/scripts/mix"), mode("paint/SKILL.md")), (0o700, 0o600));
    assert!(!home.join("paint/.git").exists());
    assert_eq!(world.json(&["skills", "add", "--yes", &text(&from)]).1["error"]["code"], "exists");

    // What is no file, and what would not be offered.
    skill(&world, "from/linked", "");
    symlink("/etc/passwd", world.path("from/linked/accounts")).unwrap();
    fs::create_dir_all(world.path("from/silent")).unwrap();
    fs::write(world.path("from/silent/SKILL.md"), "No words.\n").unwrap();
    skill(&world, "from/loom", "");
    for (name, code) in [("linked", 4), ("silent", 4), ("loom", 4), ("nowhere", 3)] {
        let run = world.run(&["skills", "add", "--yes", &text(&world.path("from").join(name))]);
        assert_eq!(run.code, Some(code), "{name}: {run:?}");
    }
    assert_eq!(
        world.run(&["skills", "add", "--yes", &text(&world.path("from"))]).code,
        Some(4),
        "a link below"
    );
    fs::remove_file(world.path("from/linked/accounts")).unwrap();
    assert_eq!(
        world.run(&["skills", "add", "--yes", &text(&world.path("from"))]).code,
        Some(3),
        "no skill itself"
    );
    assert_eq!(in_home(&world), ["paint"]);
    let left = fs::read_dir(world.home().join("cache")).unwrap().filter_map(Result::ok);
    assert_eq!(left.filter(|left| left.file_name().to_string_lossy().starts_with("skill-")).count(), 0);
}

#[test]
fn a_skill_is_switched_off_and_on_by_its_name() {
    let world = world();
    skill(&world, "home/skills/weave", "");
    skill(&world, "project/skills/paint", "");
    let project = project(&world);
    let is_on = |name: &str| {
        let answer = listed(&world, &[]);
        let all = answer["skills"].as_array().unwrap();
        all.iter().find(|skill| skill["name"] == name).unwrap()["eligible"] == json!(true)
    };
    let switch = |how: &str, name: &str| world.run(&["--workspace", &project, "skills", how, name]);
    assert!(is_on("weave") && is_on("paint"));
    assert_eq!(switch("disable", "WEAVE").code, Some(0));
    let disabled = switch("disable", "paint");
    assert!(
        disabled.code == Some(0) && disabled.err.contains("conversations that are open keep it"),
        "{disabled:?}"
    );
    assert!(!is_on("weave") && !is_on("paint"));
    assert_eq!((switch("disable", "weave").code, switch("disable", "weav").code), (Some(4), Some(3)));
    assert_eq!(switch("enable", "weave").code, Some(0));
    assert!(is_on("weave") && !is_on("paint"));
    assert_eq!(switch("enable", "weave").code, Some(4));
    let (code, unknown) = world.json(&["--workspace", &project, "skills", "enable", "weav"]);
    assert_eq!((code, &unknown["error"]["hint"]), (Some(3), &json!("did you mean weave?")), "{unknown}");
    // One that is gone is switched on again by its name.
    fs::remove_dir_all(world.path("project/skills/paint")).unwrap();
    assert_eq!(switch("enable", "paint").code, Some(0));
    assert_eq!((switch("enable", "paint").code, switch("disable", "summarize").code), (Some(3), Some(0)));
    assert!(!is_on("summarize"));
    assert!(world.ok(&["config", "get", "skills.disabled"]).contains("summarize"));
}

#[test]
fn doctor_says_which_skills_are_left_out_and_whether_descriptions_are_shortened() {
    let world = world();
    let check = |world: &World| -> Option<Value> {
        let (_, found) = world.json(&["--workspace", &project(world), "doctor", "--quick"]);
        let checks = found["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == "skills").cloned()
    };
    assert_eq!(check(&world), None);
    skill(&world, "home/skills/weave", "");
    skill(&world, "project/skills/paint", "");
    let found = check(&world).unwrap();
    assert_eq!((&found["state"], &found["why"]), (&json!("ok"), &json!("2 of 2 offered")));
    skill(&world, "project/skills/summarize", "");
    let found = check(&world).unwrap();
    assert_eq!(found["state"], "warn");
    assert_eq!(found["why"], "2 of 3 offered; left out: summarize");
    for number in 0..60 {
        let folder = world.home().join(format!("skills/s{number}"));
        fs::create_dir(&folder).unwrap();
        let described = format!("---\nname: s{number}\ndescription: {}\n---\nDo.\n", "long ".repeat(150));
        fs::write(folder.join("SKILL.md"), described).unwrap();
    }
    let shortened = listed(&world, &[])["shortened_to"].as_u64().unwrap();
    let why = check(&world).unwrap()["why"].as_str().unwrap().to_owned();
    let said = format!("descriptions of more than {shortened} characters are shortened");
    assert!(why.contains(&said), "{why}");
}

/// Where not even the names fit, whoever looks hears what a conversation does.
#[test]
fn skills_too_many_for_their_names_are_said_to_be_left_out() {
    let world = world();
    let write = |number: usize| {
        let (name, description) = (format!("{number:0>64}"), "long ".repeat(10));
        let folder = world.home().join("skills").join(&name);
        fs::create_dir_all(&folder).unwrap();
        let text = format!("---\nname: {name}\ndescription: {description}\n---\nDo.\n");
        fs::write(folder.join("SKILL.md"), text).unwrap();
    };
    let told = "there is no room even for the names";
    for (numbers, is_left_out) in [(0..250, false), (250..300, true)] {
        numbers.for_each(&write);
        let project = project(&world);
        let found = listed(&world, &[]);
        assert_eq!((&found["left_out"], &found["shortened_to"]), (&json!(is_left_out), &json!(0)), "{found}");
        let shown = world.run(&["--workspace", &project, "skills", "list"]);
        let doctor = world.run(&["--workspace", &project, "doctor", "--quick"]);
        for run in [shown, doctor] {
            let said = format!("{}{}", run.out, run.err).split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(said.contains(told), is_left_out, "{said}");
            assert!(!is_left_out || said.contains("skills disable NAME"), "{said}");
        }
        let run = world.run(&["--workspace", &project, "chat", "--new", "-m", "Hello."]);
        assert_eq!(
            run.err.contains("the list of skills is left out: there is no room"),
            is_left_out,
            "{run:?}"
        );
    }
}

#[test]
fn a_message_that_names_a_skill_takes_its_text_along() {
    let world = world();
    skill(&world, "home/skills/weave", "disable-model-invocation: true\n");
    skill(&world, "project/skills/paint", "");
    skill(&world, "home/skills/sing", "metadata: {openclaw: {requires: {bins: [no-such-program]}}}\n");
    let project = project(&world);
    let say = |text: &str| world.run(&["--workspace", &project, "chat", "--new", "-m", text]);
    let said = |world: &World| -> Vec<(String, String)> {
        let nodes = nodes(world).into_iter().filter(|node| node["role"] == "user");
        let word = |node: &Value, key: &str| node[key].as_str().unwrap().to_owned();
        nodes.map(|node| (word(&node, "text"), word(&node, "trust"))).collect()
    };
    let run = say("Use $weave and $paint, not $sing, $HOME or $$paint: it costs 5$.");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("the text of the skill weave goes with the message"), "{run:?}");
    assert!(run.err.contains("the skill sing is not offered") && !run.err.contains("HOME"), "{run:?}");
    let said = said(&world);
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(
        said[0].0.starts_with("Follow the skill weave") && said[0].0.ends_with("First do weave."),
        "{said:?}"
    );
    assert!(said[1].0.contains("First do paint.") && said[2].0.starts_with("Use $weave"), "{said:?}");
    let trust: Vec<&str> = said.iter().map(|(_, trust)| trust.as_str()).collect();
    assert_eq!(trust, ["owner", "workspace", "owner"]);

    // What a command of one's own says names none, nor what a skill is run for.
    fs::create_dir_all(world.path("project/commands")).unwrap();
    fs::write(world.path("project/commands/do.md"), "Use $weave.\n").unwrap();
    let run = say("/do");
    assert!(run.code == Some(0) && !run.err.contains("goes with"), "{run:?}");
    let run = world.run(&["--workspace", &project, "skills", "run", "weave", "A", "scarf of", "$paint."]);
    assert!(run.out == "A scarf of $paint.\n" && !run.err.contains("goes with"), "{run:?}");
    let followed = nodes(&world).into_iter().rfind(|node| node["author"] == "skill/weave");
    assert!(followed.unwrap()["text"].as_str().unwrap().ends_with("First do weave."));
}

#[test]
fn a_skill_is_removed_from_the_home_alone_and_as_it_was_shown() {
    let world = world();
    let project = project(&world);
    for path in ["home/skills/weave", "project/skills/paint", "project/skills/weave", "elsewhere/dance"] {
        skill(&world, path, "");
    }
    symlink(world.path("elsewhere/dance"), world.home().join("skills/dance")).unwrap();
    let targets = format!(
        "[skills]\nlink_targets = [{:?}]\n[skills.env]\nweave = [\"TOKEN\"]\n",
        world.path("elsewhere")
    );
    world.write("config.toml", &targets);
    let remove = ["--workspace", &project, "skills", "remove"];
    for (name, exit, code, hint) in [
        ("weave", 4, "not_accepted", "--yes"),
        ("paint", 4, "not_in_home", "skills disable paint"),
        ("dance", 4, "not_in_home", "skills disable dance"),
        ("summarize", 4, "built_in", "skills disable summarize"),
        ("weav", 3, "not_found", "did you mean weave?"),
    ] {
        let (found, refused) = world.json(&[&remove[..], &[name]].concat());
        assert_eq!((found, &refused["error"]["code"]), (Some(exit), &json!(code)), "{name}: {refused}");
        assert!(refused["error"]["hint"].as_str().unwrap().contains(hint), "{name}: {refused}");
    }
    assert_eq!(in_home(&world).len(), 2, "nothing went");
    let mine = world.home().join("skills/weave");
    let asked = || Terminal::start(with_terminal(&world.command(&[&remove[..], &["weave"]].concat())));
    let mut terminal = asked();
    terminal.shows("Remove the skill weave");
    fs::write(mine.join("notes.md"), "mine").unwrap();
    terminal.types("y\r");
    terminal.shows("was changed while it was asked about");
    assert_eq!(
        (terminal.ended(), fs::read_to_string(mine.join("notes.md")).unwrap()),
        (Some(4), "mine".to_owned())
    );
    let mut terminal = asked();
    terminal.shows("notes.md");
    terminal.shows("Remove the skill weave");
    terminal.types("y\r");
    terminal.shows("drawloom config unset skills.env.weave");
    assert_eq!(terminal.ended(), Some(0), "the control");
    assert!(!mine.exists() && world.path("project/skills/weave/SKILL.md").exists());
    // Links and pipes go with it unread, and of what cannot be shown whole nothing goes.
    skill(&world, "home/skills/sing", "");
    symlink(world.path("elsewhere/dance"), world.home().join("skills/sing/more")).unwrap();
    mkfifoat(CWD, world.home().join("skills/sing/pipe"), Mode::from_raw_mode(0o600)).unwrap();
    let deep = world.home().join("skills/sing/1/2/3/4/5/6/7");
    fs::create_dir_all(&deep).unwrap();
    let (code, refused) = world.json(&[&remove[..], &["sing", "--yes"]].concat());
    assert_eq!((code, &refused["error"]["code"]), (Some(4), &json!("too_much")), "{refused}");
    assert!(deep.exists() && !refused.to_string().contains("added"), "{refused}");
    fs::remove_dir_all(world.home().join("skills/sing/1")).unwrap();
    let mut terminal = Terminal::start(with_terminal(&world.command(&[&remove[..], &["sing"]].concat())));
    terminal.shows("pipe  no file: it goes unread");
    terminal.shows("Remove the skill sing");
    terminal.types("n\r");
    assert_eq!(terminal.ended(), Some(4));
    let (code, removed) = world.json(&[&remove[..], &["sing", "--yes"]].concat());
    assert_eq!((code, &removed["name"]), (Some(0), &json!("sing")), "{removed}");
    assert!(removed["path"].as_str().unwrap().ends_with("/skills/sing") && in_home(&world) == ["dance"]);
    assert!(world.path("elsewhere/dance/SKILL.md").exists());
}

#[test]
fn nothing_is_said_twice_of_a_skill_that_is_refused_or_changed() {
    let world = world();
    for (name, message) in [
        ("summarize", "summarize cannot be added: that is the name of a skill of Drawloom's"),
        ("Bad Name", "no skill Bad Name can be written: a name has lowercase letters"),
    ] {
        let (code, refused) = world.json(&["skills", "new", name]);
        assert_eq!(code, Some(2), "{refused}");
        let error = &refused["error"];
        assert!(error["message"].as_str().unwrap().starts_with(message), "{error}");
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.contains("another") && !hint.contains("letters"), "{error}");
    }
    for address in ["https://example.org/skills/pdf", "git@example.org:skills/pdf"] {
        let (code, refused) = world.json(&["skills", "add", address]);
        let error = refused["error"].to_string();
        assert!(
            code == Some(2) && error.contains("takes a folder") && error.contains("git clone"),
            "{error}"
        );
    }
}

#[test]
fn a_no_at_a_terminal_is_told_as_one_and_without_the_way_round_the_question() {
    let world = server_world(&[], &server("notes", ""));
    skill(&world, "home/skills/weave", "");
    skill(&world, "elsewhere/dance", "");
    let dance = text(&world.path("elsewhere/dance"));
    let project = project(&world);
    for (words, refused) in [
        (&["skills", "remove", "weave"][..], "weave was not removed"),
        (&["skills", "add", &dance], "dance was not added"),
        (&["mcp", "accept", "notes"], "nothing was accepted of notes"),
    ] {
        let command = world.command(&[&["--workspace", &project], words].concat());
        let mut terminal = Terminal::start(with_terminal(&command));
        terminal.shows("[y/N]");
        // What is neither decides nothing, and neither does a paste.
        terminal.types("maybe\r");
        terminal.shows("answer [y/N]");
        terminal.types("\x1b[200~# plan\rn\ry\x1b[201~");
        terminal.shows("what is pasted is no answer");
        terminal.types("n\r");
        terminal.shows(&format!("error: you said no: {refused}"));
        let (code, shown) = terminal.seen();
        assert_eq!(code, Some(4), "{shown}");
        assert!(!shown.contains("--yes"), "{shown}");
        let nobody = world.run(&[&["--workspace", &project], words].concat());
        assert!(nobody.err.contains("--yes") && !nobody.err.contains("you said no"), "{nobody:?}");
    }
}
