//! Skills while they are followed: what they leave of the tools, and the variables that their commands get (docs/skills.md).

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::exec::exec;
use crate::skills::skill;
use crate::subagents::{chat, of, of_calls, say, spawn, world};
use crate::terminal::Terminal;
use crate::tools::{calls, nodes};
use crate::world::{Run, World, text};

const WRITE: &str = "note.md";

fn read(path: &str) -> Value {
    json!({"name": "read", "arguments": {"path": path}})
}

fn write() -> Value {
    json!({"name": "write", "arguments": {"path": WRITE, "content": "x"}})
}

fn done() -> Value {
    json!({"text": "Done."})
}

/// What was denied in the turn that this message begins, and why.
fn denied(world: &World, text: &str) -> Vec<String> {
    let (code, answer) = chat(world, &[], text);
    assert_eq!(code, Some(0), "{answer}");
    let denied = answer["denied"].as_array().unwrap().iter();
    denied.map(|denied| denied["why"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_skill_narrows_what_policy_allows_until_its_turn_ends() {
    let world = world(&[], "");
    skill(&world, "project/skills/paint", "allowed-tools: Read Bash(echo:*)\n");
    skill(&world, "project/skills/free", "");
    let lines = |first: Value| {
        say(
            &world,
            &[calls(&json!([first])), calls(&json!([exec("echo a"), exec("touch b"), write()])), done()],
        );
    };
    // By the tool that reads its file, or by its name.
    for (first, message) in
        [(read("skills/paint/SKILL.md"), "Paint."), (read("AGENTS.md"), "Paint by $paint.")]
    {
        lines(first);
        let denied = denied(&world, message);
        assert_eq!(denied.len(), 2, "{message}: {denied:?}");
        for why in &denied {
            let said = "the skill paint is followed until this turn ends, and it allows no such call";
            assert!(why.contains(said) && why.contains("Read, Bash(echo:*)"), "{why}");
        }
        assert!(!world.path("project").join(WRITE).exists());
    }
    // Asked again it is followed as before.
    lines(read("AGENTS.md"));
    assert_eq!(denied(&world, "/retry").len(), 2);
    lines(read("AGENTS.md"));
    let by_command = ["--workspace", &text(&world.path("project")), "skills", "run", "paint", "A tree."];
    let (code, answer) = world.json(&by_command);
    assert_eq!((code, answer["denied"].as_array().map(Vec::len)), (Some(0), Some(2)), "{answer}");
    // The controls: another file, a skill that narrows nothing, and the next turn.
    for (first, message) in [
        (read("AGENTS.md"), "Go on."),
        (read("skills/free/SKILL.md"), "Be free."),
        (read("AGENTS.md"), "Go on with $free."),
    ] {
        lines(first);
        assert_eq!(denied(&world, message), [""; 0], "{message}");
        fs::remove_file(world.path("project").join(WRITE)).unwrap();
    }
}

/// A file that a line writes by a name is judged by where that leads, as the tool `write` judges it.
#[test]
fn a_redirection_through_a_link_is_denied_while_a_skill_is_followed() {
    let world = world(&[], "");
    skill(&world, "project/skills/paint", "allowed-tools: Read Bash(echo:*) Write(docs/**)\n");
    let project = world.path("project");
    for folder in ["docs", "src"] {
        fs::create_dir_all(project.join(folder)).unwrap();
    }
    let keep = project.join("src/keep.md");
    fs::write(&keep, "keep").unwrap();
    symlink("../src", project.join("docs/link")).unwrap();
    symlink("../src/keep.md", project.join("docs/soft.md")).unwrap();
    fs::hard_link(&keep, project.join("docs/hard.md")).unwrap();
    let lines =
        ["docs/plain.md", "docs/link/a.md", "docs/soft.md", "docs/hard.md", "docs/link/../src/keep.md"];
    let lines = lines.map(|file| exec(&format!("echo a > {file}")));
    say(&world, &[calls(&json!([read("skills/paint/SKILL.md")])), calls(&json!(lines)), done()]);
    let denied = denied(&world, "Paint.");
    assert_eq!(denied.len(), 4, "{denied:?}");
    let elsewhere = ", which is a link, behind one, or a file with another name";
    for (why, (file, reason)) in denied.iter().zip([
        ("docs/link/a.md", elsewhere),
        ("docs/soft.md", elsewhere),
        ("docs/hard.md", elsewhere),
        (
            "docs/link/../src/keep.md",
            ", which goes up by `..` from a folder that may be a link: name the file without it",
        ),
    ]) {
        assert!(why.contains(&format!("(none allows writing {file}{reason})")), "{why}");
    }
    assert!(project.join("docs/plain.md").exists() && !project.join("src/a.md").exists());
    assert_eq!(fs::read_to_string(keep).unwrap(), "keep");
}

/// Nor does its command begin behind a link, however the directory is named, so that `..` is another folder than it seems.
#[test]
fn a_redirection_from_a_directory_behind_a_link_is_denied_while_a_skill_is_followed() {
    let world = world(&[], "");
    skill(&world, "project/skills/paint", "allowed-tools: Read Bash(echo:*) Write(docs/**)\n");
    let project = world.path("project");
    for folder in ["docs/in", "src/deep/er"] {
        fs::create_dir_all(project.join(folder)).unwrap();
    }
    symlink("../src/deep", project.join("docs/link")).unwrap();
    let absolute = |folder: &str| text(&project.canonicalize().unwrap().join(folder));
    for (directory, target, written) in [
        ("docs/in".to_owned(), "../a.md", Some("docs/a.md")),
        ("docs/in/../in/".to_owned(), "../b.md", Some("docs/b.md")),
        (absolute("docs/in"), "../c.md", Some("docs/c.md")),
        // The folder is left by its name, before any link is followed.
        ("docs/link/..".to_owned(), "d.md", Some("docs/d.md")),
        ("docs/link".to_owned(), "../e.md", None),
        ("docs/link".to_owned(), "e.md", None),
        ("docs/in/../link/".to_owned(), "../e.md", None),
        ("docs/link/er".to_owned(), "../../e.md", None),
        (absolute("docs/link"), "../e.md", None),
        (absolute("docs/in/../link/er"), "../../e.md", None),
    ] {
        let line = json!({"command": format!("echo a > {target}"), "directory": directory});
        let line = json!({"name": "exec", "arguments": line});
        say(&world, &[calls(&json!([read("skills/paint/SKILL.md")])), calls(&json!([line])), done()]);
        let denied = denied(&world, "Paint.");
        assert_eq!(denied.is_empty(), written.is_some(), "{directory} {target}: {denied:?}");
        assert!(written.is_none_or(|file| project.join(file).exists()), "{directory} {target}");
    }
    for folder in ["src", "src/deep", "src/deep/er"] {
        assert!(!project.join(folder).join("e.md").exists(), "{folder}");
    }
}

/// What is asked again follows what was followed, whichever process asks.
#[test]
fn a_turn_that_is_asked_again_follows_what_it_followed() {
    let world = world(&[], "");
    skill(&world, "project/skills/paint", "allowed-tools: [Read]\n");
    let write_alone = [calls(&json!([write()])), done()];
    let by_reading = |path: &str| vec![calls(&json!([read(path)])), done()];
    let by_result = |path: &str| {
        vec![
            calls(&json!([read(path)])),
            calls(&json!([spawn("docs", &json!({}))])),
            done(),
            of("docs", json!({"text": "I did what I could."})),
            done(),
        ]
    };
    let skill_file = "skills/paint/SKILL.md";
    for (lines, is_denied) in [
        (by_reading(skill_file), true),
        (by_result(skill_file), true),
        (by_reading("AGENTS.md"), false),
        (by_result("AGENTS.md"), false),
        // A read that failed.
        (by_reading("skills/paint/NONE.md"), false),
    ] {
        say(&world, &lines);
        let (code, answer) = chat(&world, &["--new"], "Paint.");
        assert_eq!(code, Some(0), "{answer}");
        // The second time its siblings have what it has not.
        for again in ["/regenerate", "/regenerate", "/retry"] {
            say(&world, &write_alone);
            assert_eq!(denied(&world, again).len(), usize::from(is_denied), "{again} {lines:?}");
            assert_eq!(world.path("project").join(WRITE).exists(), !is_denied);
            let _ = fs::remove_file(world.path("project").join(WRITE));
        }
        // The control: what is said next begins with nothing.
        say(&world, &write_alone);
        assert_eq!(denied(&world, "Go on."), [""; 0]);
        fs::remove_file(world.path("project").join(WRITE)).unwrap();
    }
    // What a skill allowed that is gone nobody knows.
    say(&world, &write_alone);
    assert_eq!(denied(&world, "Paint by $paint.").len(), 1);
    fs::remove_dir_all(world.path("project/skills/paint")).unwrap();
    say(&world, &write_alone);
    let told = denied(&world, "/retry");
    assert!(told.len() == 1 && told[0].contains("not known, as the skill is not there any more"), "{told:?}");
    // Nor is it taken for gone where its owner switched it off.
    skill(&world, "project/skills/paint", "allowed-tools: [Read]\n");
    world.ok(&["--workspace", &text(&world.path("project")), "skills", "disable", "paint"]);
    say(&world, &write_alone);
    let told = denied(&world, "/retry");
    assert!(
        told.len() == 1 && told[0].contains("not known, as the skill is switched off by now"),
        "{told:?}"
    );
    say(&world, &write_alone);
    assert_eq!(denied(&world, "Go on."), [""; 0]);
}

/// What was left out and is asked again is followed with it, before the first call.
#[test]
fn a_text_of_a_skill_that_is_taken_in_again_is_followed() {
    let world = world(&[], "");
    skill(&world, "project/skills/paint", "allowed-tools: [Read]\n");
    let write_alone = [calls(&json!([write()])), done()];
    say(&world, &write_alone);
    assert_eq!(denied(&world, "Paint by $paint.").len(), 1);
    let nodes = nodes(&world);
    let text = nodes.iter().find(|node| node["author"] == "skill/paint").unwrap();
    let trees = world.json(&["tree", "list"]).1;
    let tree = trees["trees"][0]["short_id"].as_str().unwrap();
    world.ok(&["tree", "exclude", tree, text["id"].as_str().unwrap()]);
    fs::remove_dir_all(world.path("project/skills/paint")).unwrap();
    for _ in 0..2 {
        say(&world, &write_alone);
        assert_eq!(denied(&world, "/retry").len(), 1);
    }
}

/// What policy denies stays denied, whatever a skill allows.
#[test]
fn a_skill_widens_nothing() {
    let world = world(&[], "[[policy.rules]]\ndecision = \"deny\"\ntool = [\"write\"]\nreason = \"mine\"\n");
    skill(&world, "project/skills/paint", "allowed-tools: Write Edit Bash\n");
    say(&world, &[calls(&json!([read("skills/paint/SKILL.md")])), calls(&json!([write()])), done()]);
    let denied = denied(&world, "Paint.");
    assert!(denied.len() == 1 && denied[0].contains("mine"), "{denied:?}");
}

#[test]
fn subagents_follow_what_their_parent_followed_when_it_began_them() {
    let world = world(&[], "");
    skill(&world, "project/skills/paint", "allowed-tools: [Read]\n");
    for (first, is_denied) in [(read("skills/paint/SKILL.md"), true), (read("AGENTS.md"), false)] {
        say(
            &world,
            &[
                calls(&json!([first])),
                calls(&json!([spawn("docs", &json!({}))])),
                done(),
                of_calls("docs", &json!([write()])),
                of("docs", json!({"text": "I did what I could."})),
                done(),
            ],
        );
        let (code, answer) = chat(&world, &["--new"], "Paint.");
        assert_eq!(code, Some(0), "{answer}");
        assert_eq!(world.path("project").join(WRITE).exists(), !is_denied, "{answer}");
    }
}

/// Whoever hands work to a subagent is narrowed by what it followed then, when that comes back.
#[test]
fn a_turn_that_a_result_begins_follows_what_began_the_subagent() {
    let world = world(&[], "");
    skill(&world, "project/skills/paint", "allowed-tools: [Read]\n");
    let lines = |first: Value| {
        say(
            &world,
            &[
                calls(&json!([first])),
                calls(&json!([spawn("docs", &json!({}))])),
                done(),
                of("docs", json!({"text": "I did what I could."})),
                calls(&json!([write()])),
                done(),
            ],
        );
    };
    lines(read("skills/paint/SKILL.md"));
    let (code, answer) = chat(&world, &["--new"], "Paint.");
    assert_eq!(code, Some(0), "{answer}");
    assert!(answer["text"] == "Done." && !world.path("project").join(WRITE).exists(), "{answer}");
    // The controls: a turn of the owner's goes on with nothing, and one that followed nothing begins none that does.
    say(&world, &[calls(&json!([write()])), done()]);
    assert_eq!(denied(&world, "Go on."), [""; 0]);
    fs::remove_file(world.path("project").join(WRITE)).unwrap();
    lines(read("AGENTS.md"));
    let (code, answer) = chat(&world, &["--new"], "Write.");
    assert_eq!(code, Some(0), "{answer}");
    assert!(world.path("project").join(WRITE).exists(), "{answer}");
}

/// What began a subagent is known from its tree, and once that is purged from the conversation.
#[test]
fn a_turn_is_asked_again_with_what_began_a_subagent_whose_tree_is_purged() {
    let world = world(&[], "");
    skill(&world, "project/skills/paint", "allowed-tools: [Read]\n");
    for (first, is_denied) in [(read("AGENTS.md"), false), (read("skills/paint/SKILL.md"), true)] {
        say(
            &world,
            &[
                calls(&json!([first])),
                calls(&json!([spawn("docs", &json!({}))])),
                done(),
                of("docs", json!({"text": "I did what I could."})),
                done(),
            ],
        );
        let (code, answer) = chat(&world, &["--new"], "Go.");
        assert_eq!(code, Some(0), "{answer}");
        let (_, listed) = chat(&world, &[], "/subagents");
        let tree = listed["subagents"][0]["tree"].as_str().unwrap();
        world.ok(&["tree", "purge", tree, "--yes", "--yes"]);
        say(&world, &[calls(&json!([write()])), done()]);
        let denied = denied(&world, "/retry");
        assert_eq!(denied.len(), usize::from(is_denied), "{denied:?}");
        assert!(denied.iter().all(|why| why.contains("the skill paint is followed")), "{denied:?}");
        assert_eq!(world.path("project").join(WRITE).exists(), !is_denied);
        let _ = fs::remove_file(world.path("project").join(WRITE));
    }
}

const VALUE: &str = "canary-of-aws-0123456789";

/// Runs it where the variable is set.
fn with_variable(world: &World, arguments: &[&str]) -> Run {
    let project = text(&world.path("project"));
    let mut command = world.command(&[&["--workspace", &project], arguments].concat());
    Run::from(command.env("AWS_SECRET_ACCESS_KEY", VALUE).output().unwrap())
}

/// S §25: of a variable that a skill needs only the presence is looked at, unless the owner lists it.
#[test]
fn s25_a_variable_reaches_commands_of_a_skill_where_its_owner_lists_it_alone() {
    let lines = |first: Value| {
        // The length of the value, and the value, which is masked.
        let line = "printf %s \"${#AWS_SECRET_ACCESS_KEY}:$AWS_SECRET_ACCESS_KEY\"";
        [calls(&json!([first])), calls(&json!([exec(line)])), done()]
    };
    let world = world(&[], "");
    let needs = "requires:\n  env: [AWS_SECRET_ACCESS_KEY]\n";
    skill(&world, "home/skills/deploy", needs);
    skill(&world, "project/skills/ship", needs);
    let home = text(&world.home().canonicalize().unwrap());
    let path = format!("{home}/skills/deploy/SKILL.md");
    let outputs = |first: Value| {
        say(&world, &lines(first));
        let run = with_variable(&world, &["--json", "chat", "--new", "-m", "Deploy."]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let answer: Value = serde_json::from_str(&run.out).unwrap();
        let tree = world.ok(&["tree", "show", answer["tree"].as_str().unwrap(), "--json"]);
        assert!(!format!("{run:?}{tree}").contains(VALUE), "{run:?} {tree}");
        tree
    };
    let length = format!("{}:", VALUE.len());
    assert!(outputs(read(&path)).contains("0:"), "nothing is passed that is not listed");
    let config = fs::read_to_string(world.home().join("config.toml")).unwrap();
    let listed = "[skills.env]\ndeploy = [\"AWS_SECRET_ACCESS_KEY\"]\nship = [\"AWS_SECRET_ACCESS_KEY\"]\n";
    world.write("config.toml", &format!("{config}\n{listed}"));
    let told = outputs(read(&path));
    assert!(told.contains(&length) && told.contains("⟦secret:AWS_SECRET_ACCESS_KEY"), "{told}");
    for other in ["AGENTS.md", "skills/ship/SKILL.md"] {
        let told = outputs(read(other));
        assert!(!told.contains(&length) && told.contains("0:"), "{other}: {told}");
    }
    // No byte of it is kept.
    let mut kept = vec![world.home()];
    while let Some(path) = kept.pop() {
        if path.is_dir() {
            kept.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            let found = bytes.windows(VALUE.len()).any(|window| window == VALUE.as_bytes());
            assert!(!found, "{}", path.display());
        }
    }
}

/// S §25: a skill that models are not told of brings its variables where its owner names it, whatever a model reads or
/// says.
#[test]
fn s25_variables_of_a_hidden_skill_need_its_name_by_its_owner() {
    let world = world(&[], "");
    let config = fs::read_to_string(world.home().join("config.toml")).unwrap();
    let listed = "[skills.env]\ndeploy = [\"AWS_SECRET_ACCESS_KEY\", \"UNSET_VARIABLE\"]\n";
    world.write("config.toml", &format!("{config}\n{listed}"));
    let file = world.path("project/length");
    let measure = || exec("printf %s \"${#AWS_SECRET_ACCESS_KEY}\" > length");
    let path = format!("{}/skills/deploy/SKILL.md", text(&world.home().canonicalize().unwrap()));
    let task = format!("Follow the skill deploy (its folder is {path}):\n\nDeploy.");
    let spawned = [
        calls(&json!([spawn("docs", &json!({"task": task}))])),
        done(),
        of_calls("docs", &json!([measure()])),
        of("docs", done()),
        done(),
    ];
    let by_reading = [calls(&json!([read(&path)])), calls(&json!([measure()])), done()];
    let by_name = [calls(&json!([measure()])), done()];
    let passed = VALUE.len().to_string();
    for (hides, lines, message, length) in [
        (true, &spawned[..], "Deploy.", "0"),
        (true, &by_reading[..], "Deploy.", "0"),
        (true, &by_name[..], "Use $deploy.", &*passed),
        (false, &by_reading[..], "Deploy.", &*passed),
        (false, &spawned[..], "Deploy.", "0"),
    ] {
        let hidden = if hides { "disable-model-invocation: true\n" } else { "" };
        skill(&world, "home/skills/deploy", hidden);
        say(&world, lines);
        let run = with_variable(&world, &["--json", "chat", "--new", "-m", message]);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), length, "{hides} {message}: {run:?}");
        fs::remove_file(&file).unwrap();
        // What a command does not get is said where it matters.
        let is_said =
            run.err.contains("commands of the skill deploy do not get UNSET_VARIABLE: it is not set");
        assert_eq!(is_said, length != "0", "{run:?}");
    }
    let (code, answer) = world.json(&["config", "set", "skills.env.deploy", "[\"A-B\"]"]);
    assert_eq!(code, Some(2), "{answer}");
    let why = answer["error"].to_string();
    assert!(why.contains("skills.env.deploy does not fit") && why.contains("as TRACKER_TOKEN"), "{why}");
    for name in ["PATH", "LD_PRELOAD", "NODE_OPTIONS", "GIT_EDITOR"] {
        let (code, answer) = world.json(&["config", "set", "skills.env.deploy", &format!("[\"{name}\"]")]);
        let said = format!("{name} says with what programs commands run");
        assert!(code == Some(2) && answer["error"].to_string().contains(&said), "{answer}");
    }
}

/// Which files earlier turns wrote is told to the tools as far as it can be read; which skills are followed rests on none of it.
#[test]
fn a_turn_begins_without_the_skills_of_the_one_before_where_the_store_is_damaged() {
    let written = |path: &str| json!({"name": "write", "arguments": {"path": path, "content": "x"}});
    let turn = |path: &str| [calls(&json!([written(path)])), done()];
    let world = world(&[turn("a.md"), turn("b.md"), turn("c.md")].concat(), "");
    skill(&world, "home/skills/paint", "allowed-tools: [Read]\n");
    let project = world.path("project");
    let mut terminal = Terminal::start(world.command(&["--workspace", &text(&project), "chat"]));
    terminal.says("Begin.\r");
    let rows = rusqlite::Connection::open(world.home().join("loom.db")).unwrap();
    assert_eq!(rows.execute("UPDATE file_changes SET after = 'none'", []).unwrap(), 1);
    terminal.says("Paint by $paint.\r");
    terminal.says("Go on.\r");
    let are_there = ["a.md", "b.md", "c.md"].map(|file| project.join(file).exists());
    assert_eq!(are_there, [true, false, true], "{}", terminal.contents());
}
