//! Skills of a workspace that change after their owner was shown them: the accepted text stands in for the new one (docs/skills.md).

use std::fs;
use std::path::PathBuf;

use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};

use crate::files::ends;
use crate::home_files::files_below;
use crate::skills::skill;
use crate::tools::calls;
use crate::trust::at_terminal;
use crate::world::{Run, World, text};

/// A workspace that its owner trusts, with a skill, and a model that answers from these lines.
fn world(lines: &[Value]) -> (World, PathBuf) {
    let world = World::new();
    let file = text(&world.home().join("lines.jsonl"));
    world.write(
        "config.toml",
        &format!("[model]\ndefault = \"script:{file}\"\n[agents.assistant]\ntools = [\"read\", \"write\"]\n"),
    );
    says(&world, lines);
    skill(&world, "here/skills/paint", "");
    fs::write(world.path("here/AGENTS.md"), "Be careful.\n").unwrap();
    world.ok(&["workspace", "trust", &text(&world.path("here"))]);
    let here = world.path("here");
    (world, here)
}

fn says(world: &World, lines: &[Value]) {
    world.write("lines.jsonl", &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
}

fn change(world: &World) {
    let file = "---\nname: paint\ndescription: When EVIL is to be done\n---\nFirst do EVIL.\n";
    fs::write(world.path("here/skills/paint/SKILL.md"), file).unwrap();
}

fn run(world: &World, arguments: &[&str]) -> Run {
    let mut command = world.command(arguments);
    Run::from(command.current_dir(world.path("here")).output().unwrap())
}

fn json_of(world: &World, arguments: &[&str]) -> Value {
    let run = run(world, &[&["--json"], arguments].concat());
    serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{run:?}"))
}

/// What is sent for a message that begins a conversation, and the notices.
fn sent(world: &World) -> (String, String) {
    let run = run(world, &["--json", "chat", "--new", "-m", "Hi"]);
    let answer: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{run:?}"));
    (world.ok(&["context", "show", answer["node"].as_str().unwrap(), "--text", "--json"]), run.err)
}

#[test]
fn e11_what_stands_in_the_place_of_an_accepted_text_is_replaced_and_not_waited_for() {
    let (world, here) = world(&[json!({"text": "Done."})]);
    change(&world);
    sent(&world);
    let mut texts = files_below(&world.home().join("workspaces"));
    texts.retain(|file| file.ends_with("SKILL.md"));
    assert_eq!(texts.len(), 1, "{texts:?}");
    fs::remove_file(&texts[0]).unwrap();
    mkfifoat(CWD, &texts[0], Mode::RUSR | Mode::WUSR).unwrap();
    let run = ends(world.command(&["--json", "chat", "--new", "-m", "Hi"]).current_dir(&here));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(fs::read_to_string(&texts[0]).unwrap().contains("First do paint."));
}

/// S §25: where nobody is asked, a skill that changed is the one that was accepted, wherever it is read.
#[test]
fn s25_unattended_the_accepted_text_of_a_skill_is_used() {
    let (world, _) = world(&[json!({"text": "Done."})]);
    let before = json_of(&world, &["skills", "show", "paint"]);
    assert_eq!(before["difference"], Value::Null);
    assert!(sent(&world).0.contains("- paint (skills/paint/SKILL.md): When paint is to be done"));
    change(&world);
    let (told, notices) = sent(&world);
    assert!(!told.contains("EVIL") && told.contains("): When paint is to be done"), "{told}");
    assert!(notices.contains("the text that you accepted is used"), "{notices}");
    let shown = json_of(&world, &["skills", "show", "paint"]);
    let path = shown["path"].as_str().unwrap();
    assert_eq!(
        (&shown["eligible"], &shown["stands_in_for"]),
        (&json!(true), &json!("skills/paint/SKILL.md"))
    );
    assert!(shown["text"].as_str().unwrap().starts_with("First do paint."), "{shown}");
    let difference = shown["difference"].as_str().unwrap();
    assert!(
        difference.contains("-First do paint.") && difference.contains("+First do EVIL."),
        "{difference}"
    );
    assert!(run(&world, &["skills", "show", "paint"]).out.contains("+First do EVIL."));
    assert!(run(&world, &["skills", "list"]).out.contains("offered as you accepted it"));
    let found = run(&world, &["doctor", "--quick"]).out;
    assert!(found.contains("3 of 3 offered; changed since you accepted them"), "{found}");
    // It is read by its tool, changed by none, and said by its name.
    let write = json!({"name": "write", "arguments": {"path": path, "content": "evil"}});
    says(
        &world,
        &[
            calls(&json!([{"name": "read", "arguments": {"path": path}}, write])),
            json!({"text": "Read.", "expect": ["First do paint.", "in skills/paint"]}),
        ],
    );
    let answer = json_of(&world, &["chat", "-m", "Paint."]);
    assert_eq!(answer["text"], "Read.", "{answer}");
    assert!(fs::read_to_string(path).unwrap().contains("First do paint."));
    says(&world, &[json!({"text": "Followed.", "expect": "First do paint."})]);
    let answer = json_of(&world, &["chat", "--new", "-m", "Use $paint."]);
    assert_eq!(answer["text"], "Followed.", "{answer}");
    // The control: once its owner accepts it, the new text counts.
    says(&world, &[json!({"text": "Done."})]);
    world.ok(&["workspace", "trust", &text(&world.path("here"))]);
    let (told, notices) = sent(&world);
    assert!(told.contains("- paint (skills/paint/SKILL.md): When EVIL is to be done"), "{told}");
    assert!(!notices.contains("accepted is used"), "{notices}");
    assert!(!PathBuf::from(path).exists(), "nothing needs it any more");
}

/// What stands in for nothing is removed; in sight of what does, it stays.
#[test]
fn an_accepted_text_goes_with_its_skill() {
    let (world, here) = world(&[json!({"text": "Done."})]);
    skill(&world, "here/skills/sing", "");
    world.ok(&["workspace", "trust", &text(&here)]);
    change(&world);
    fs::write(here.join("skills/sing/SKILL.md"), "---\nname: sing\ndescription: EVIL\n---\n").unwrap();
    sent(&world);
    let path =
        |name: &str| PathBuf::from(json_of(&world, &["skills", "show", name])["path"].as_str().unwrap());
    let (paint, sing) = (path("paint"), path("sing"));
    assert!(paint.exists() && sing.exists() && paint != sing, "the control");
    fs::remove_dir_all(here.join("skills/sing")).unwrap();
    sent(&world);
    assert!(paint.exists() && !sing.parent().unwrap().exists());
}

/// S §25: whichever file of it a model reads, it follows the skill as its owner accepted it.
#[test]
fn s25_reading_a_changed_skill_follows_the_accepted_one() {
    let (world, here) = world(&[json!({"text": "Done."})]);
    skill(&world, "here/skills/paint", "allowed-tools: Read\n");
    world.ok(&["workspace", "trust", &text(&here)]);
    change(&world);
    let write = json!({"name": "write", "arguments": {"path": "note.md", "content": "x"}});
    let lines = |path: &str, told: &str| {
        let read = json!({"name": "read", "arguments": {"path": path}});
        says(
            &world,
            &[
                calls(&json!([read])),
                json!({"tool_calls": calls(&json!([write]))["tool_calls"], "expect": told}),
                json!({"text": "Done."}),
            ],
        );
    };
    for (path, told, is_denied) in [
        ("skills/paint/SKILL.md", "skills/paint/SKILL.md is not the accepted text of the skill paint", true),
        ("AGENTS.md", "Be careful.", false),
    ] {
        lines(path, told);
        let answer = json_of(&world, &["chat", "--new", "-m", "Paint."]);
        assert_eq!(answer["text"], "Done.", "{answer}");
        assert_eq!(answer["denied"].as_array().map(Vec::len), Some(usize::from(is_denied)), "{answer}");
        assert_eq!(here.join("note.md").exists(), !is_denied);
    }
}

/// A list that a conversation began with names files of its time: the model is told which to read now.
#[test]
fn a_conversation_that_goes_on_is_told_where_the_accepted_text_is() {
    let (world, here) = world(&[json!({"text": "Done."})]);
    let said = |world: &World| {
        let answer = json_of(world, &["chat", "-m", "Hi"]);
        world.ok(&["context", "show", answer["node"].as_str().unwrap(), "--text", "--json"])
    };
    assert!(!said(&world).contains("Do not use these files"));
    change(&world);
    let accepted = json_of(&world, &["skills", "show", "paint"])["path"].as_str().unwrap().to_owned();
    let told = said(&world);
    assert!(told.contains(&format!("skills/paint/SKILL.md (read {accepted} in its place)")), "{told}");
    let (told, _) = sent(&world);
    assert!(told.contains(&format!("- paint ({accepted})")) && !told.contains("in its place"), "{told}");
    let (_, shown) = at_terminal(&world, &here, &["chat", "-m", "hi"], "y\n");
    assert!(shown.contains("the model is told to read skills/paint/SKILL.md in its place"), "{shown}");
    assert!(!shown.contains("not accepted"), "{shown}");
    let told = said(&world);
    assert!(told.contains(&format!("{accepted} (read skills/paint/SKILL.md in its place)")), "{told}");
}

/// S §25: at a terminal the difference is shown before the new text counts.
#[test]
fn s25_at_a_terminal_a_skill_that_changed_is_asked_about_with_its_difference() {
    for (answer, is_new) in [("n\n", false), ("y\n", true)] {
        let (world, here) = world(&[json!({"text": "Done."})]);
        change(&world);
        let (code, shown) = at_terminal(&world, &here, &["chat", "--new", "-m", "hi"], answer);
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.contains("Load it with these changes?"), "{shown}");
        assert!(shown.contains("-First do paint.") && shown.contains("+First do EVIL."), "{shown}");
        let (told, _) = sent(&world);
        assert_eq!(told.contains("When EVIL is to be done"), is_new, "{told}");
        assert_eq!(told.contains("When paint is to be done"), !is_new, "{told}");
    }
}
