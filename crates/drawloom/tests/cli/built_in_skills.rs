//! Skills that come with Drawloom: offered, kept where their owner changes them, and written for other programs
//! (docs/skills.md).

use std::fs;

use serde_json::{Value, json};

use crate::skills::{listed, skill};
use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::world::{World, text};

fn world() -> World {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    fs::create_dir_all(world.path("project")).unwrap();
    world
}

/// Of the skills of a name: source and whether it is offered.
fn of_name(world: &World, name: &str) -> Vec<(String, bool)> {
    let answer = listed(world, &[]);
    let all = answer["skills"].as_array().unwrap().iter().filter(|skill| skill["name"] == name);
    let row =
        |skill: &Value| (skill["source"].as_str().unwrap().to_owned(), skill["eligible"] == json!(true));
    all.map(row).collect()
}

/// The request of a first message, by its manifest.
fn request(world: &World) -> Value {
    let (_, answer) =
        world.json(&["--workspace", &text(&world.path("project")), "chat", "--new", "-m", "hello"]);
    world.json(&["context", "show", answer["node"].as_str().unwrap(), "--text"]).1
}

/// Spec: context, the size of a bare `hello` in a fresh workspace.
#[test]
fn built_in_skills_are_told_of_in_few_words_and_a_bare_hello_stays_small() {
    let world = world();
    let shown = request(&world);
    let told = shown.to_string();
    let home = world.home().canonicalize().unwrap();
    for line in
        [&*format!("In {}/skills/NAME/SKILL.md:", home.display()), "- skill-creator: ", "- summarize: "]
    {
        assert!(told.contains(line), "no {line} in {told}");
    }
    assert!(!told.contains("buffer-optimizer"), "{told}");
    let segments = shown["segments"].as_array().unwrap();
    let index = segments.iter().find(|segment| segment["kind"] == "skills_index").unwrap();
    let length = |text: &Value| text.as_str().unwrap().len();
    let paths = text(&home).len();
    assert!(length(&index["text"]) - paths <= 512, "{index}");
    let sent: usize = segments.iter().map(|segment| length(&segment["text"])).sum();
    assert!(sent - length(&index["text"]) <= 12 << 10, "{sent} bytes: {shown}");
    let strict = ["skill-creator", "summarize"].map(|name| text(&world.home().join("skills").join(name)));
    strict.iter().for_each(|path| drop(world.ok(&["skills", "check", "--strict", path])));
    drop(world.ok(&["skills", "check", &text(&world.home().join("skills"))]));
}

/// S §25: a skill of a workspace has the name of none that is built in, unless its owner accepted its text.
#[test]
fn s25_a_built_in_skill_is_shadowed_by_a_text_that_its_owner_accepted_alone() {
    let world = world();
    skill(&world, "project/skills/summarize", "");
    let before = [("workspace".to_owned(), false), ("built_in".to_owned(), true)];
    assert_eq!(of_name(&world, "summarize"), before);
    let (code, refused) = world.json(&["skills", "add", &text(&world.path("project/skills/summarize"))]);
    assert_eq!((code, &refused["error"]["code"]), (Some(4), &json!("not_accepted")), "{refused}");
    let add = ["skills", "add", "--yes", &text(&world.path("project/skills/summarize"))];
    let (code, added) = world.json(&add);
    assert_eq!((code, &added["source"]), (Some(0), &json!("built_in")), "{added}");
    assert_eq!(of_name(&world, "summarize"), before);
    let shown = || world.json(&["skills", "show", "summarize"]).1["text"].as_str().unwrap().to_owned();
    assert_eq!(shown(), "First do summarize.\n");
    drop(world.ok(&["skills", "check", &text(&world.home().join("skills"))]));
    // It is theirs from then on; without the folder the built-in text comes back, which is not removed.
    assert_eq!(world.json(&add).1["error"]["code"], "exists");
    for removes in [false, true] {
        if removes {
            let (code, removed) = world.json(&["skills", "remove", "summarize", "--yes"]);
            assert_eq!((code, &removed["name"]), (Some(0), &json!("summarize")), "{removed}");
        } else {
            fs::remove_dir_all(world.home().join("skills/summarize")).unwrap();
        }
        assert!(shown().contains("Settle three things"), "{}", shown());
        assert_eq!(world.json(&["skills", "remove", "summarize", "--yes"]).0, Some(4));
        assert_eq!(world.json(&add).0, Some(0));
    }
}

/// What its owner changes while they are asked stays theirs.
#[test]
fn a_built_in_skill_that_is_changed_while_it_is_asked_about_is_not_replaced() {
    let world = world();
    skill(&world, "project/skills/summarize", "");
    listed(&world, &[]);
    let mine = world.home().join("skills/summarize");
    let add = ["skills", "add", &text(&world.path("project/skills/summarize"))];
    let mut terminal = Terminal::start(with_terminal(&world.command(&add)));
    terminal.shows("in the place of Drawloom's own?");
    fs::write(mine.join("notes.md"), "mine").unwrap();
    terminal.types("y\r");
    terminal.shows("was changed while it was asked about");
    assert_eq!(terminal.ended(), Some(4));
    assert_eq!(fs::read_to_string(mine.join("notes.md")).unwrap(), "mine");
    assert!(fs::read_to_string(mine.join("SKILL.md")).unwrap().contains("Settle three things"));
    fs::remove_file(mine.join("notes.md")).unwrap();
    let mut terminal = Terminal::start(with_terminal(&world.command(&add)));
    terminal.shows("in the place of Drawloom's own?");
    terminal.types("y\r");
    assert_eq!(terminal.ended(), Some(0), "the control");
    assert!(fs::read_to_string(mine.join("SKILL.md")).unwrap().contains("First do summarize."));
}

#[test]
fn skills_for_other_programs_are_written_and_replace_nothing_unasked() {
    let world = world();
    let out = text(&world.path("out/skills"));
    let (code, written) = world.json(&["skills", "export", &out]);
    assert_eq!((code, written["written"].as_array().unwrap().len()), (Some(0), 5), "{written}");
    for name in ["buffer", "buffer-optimizer", "loom", "skill-creator", "summarize"] {
        drop(world.ok(&["skills", "check", "--strict", &format!("{out}/{name}")]));
    }
    let (code, again) = world.json(&["skills", "export", &out]);
    assert_eq!((code, again["unchanged"].as_array().unwrap().len()), (Some(0), 5), "{again}");
    assert_eq!(again["written"], json!([]));
    let mine = world.path("out/skills/loom/SKILL.md");
    fs::write(&mine, "mine").unwrap();
    fs::remove_dir_all(world.path("out/skills/buffer")).unwrap();
    let (code, refused) = world.json(&["skills", "export", &out]);
    assert_eq!((code, &refused["error"]["code"]), (Some(2), &json!("exists")), "{refused}");
    assert!(!world.path("out/skills/buffer").exists(), "all or none");
    assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
    let (code, forced) = world.json(&["skills", "export", "--force", &out]);
    assert_eq!((code, forced["written"].as_array().unwrap().len()), (Some(0), 2), "{forced}");
    assert!(fs::read_to_string(&mine).unwrap().contains("name: loom"));
    let (code, refused) = world.json(&["skills", "export", &text(&world.home().join("skills"))]);
    assert_eq!((code, &refused["error"]["code"]), (Some(4), &json!("in_home")), "{refused}");
    let linked = world.path("linked");
    fs::create_dir_all(&linked).unwrap();
    std::os::unix::fs::symlink(world.home().join("skills"), linked.join("buffer")).unwrap();
    let (code, refused) = world.json(&["skills", "export", "--force", &text(&linked)]);
    assert_eq!((code, &refused["error"]["code"]), (Some(2), &json!("exists")), "{refused}");
    assert!(!world.home().join("skills/SKILL.md").exists());
    // Where other programs read them, they are told of by none of ours, and without a word.
    drop(world.ok(&["skills", "export", &text(&world.path("user/.agents/skills"))]));
    assert_eq!(of_name(&world, "loom"), [("user_agents".to_owned(), false)]);
    let run = world.run(&["--workspace", &text(&world.path("project")), "chat", "-m", "hello"]);
    assert!(run.code == Some(0) && !run.err.contains("left out"), "{run:?}");
    assert!(!request(&world).to_string().contains("- loom ("));
}
