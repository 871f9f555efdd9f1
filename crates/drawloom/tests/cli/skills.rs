//! Skills: which are listed, what is checked, and what a model is told of them (docs/skills.md).

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::exec::exec;
use crate::file_tools::say;
use crate::server::{self, Server};
use crate::tools::{calls, nodes};
use crate::world::{Run, World, text};

/// A skill in a folder of the world, with these further lines in its frontmatter.
pub(crate) fn skill(world: &World, folder: &str, more: &str) {
    let path = world.path(folder);
    let name = path.file_name().unwrap().to_str().unwrap();
    fs::create_dir_all(&path).unwrap();
    let file =
        format!("---\nname: {name}\ndescription: When {name} is to be done\n{more}---\nFirst do {name}.\n");
    fs::write(path.join("SKILL.md"), file).unwrap();
}

fn canonical(world: &World, path: &str) -> String {
    text(&world.path(path).canonicalize().unwrap())
}

/// A workspace with skills, and skills of the owner and of the home.
fn world() -> World {
    let world = World::new();
    world.write("config.toml", "");
    skill(&world, "project/skills/paint", "");
    skill(
        &world,
        "project/skills/deep/er/sing",
        "metadata: {openclaw: {requires: {bins: [no-such-program]}}}\n",
    );
    skill(&world, "project/.agents/skills/paint", "");
    skill(
        &world,
        "user/.agents/skills/dance",
        "metadata:\n  openclaw:\n    requires:\n      env: [SECRET_STEPS]\n",
    );
    skill(&world, "home/skills/cook", "disable-model-invocation: true\n");
    skill(&world, "home/skills/weave", "");
    assert_eq!(world.home(), world.path("home"), "where the skills of the home are");
    world
}

pub(crate) fn listed(world: &World, arguments: &[&str]) -> Value {
    let project = text(&world.path("project"));
    let (code, answer) = world.json(&[&["--workspace", &project, "skills", "list"], arguments].concat());
    assert_eq!(code, Some(0), "{answer}");
    answer
}

/// Of each skill that is not built in: its name, source, and whether it is offered.
fn brief(answer: &Value) -> Vec<(String, String, bool)> {
    let word = |skill: &Value, key: &str| skill[key].as_str().unwrap().to_owned();
    let skills = answer["skills"].as_array().unwrap().iter();
    skills
        .filter(|skill| skill["source"] != "built_in")
        .map(|skill| (word(skill, "name"), word(skill, "source"), skill["eligible"].as_bool().unwrap()))
        .collect()
}

fn rows(rows: &[(&str, &str, bool)]) -> Vec<(String, String, bool)> {
    rows.iter().map(|(name, source, offered)| ((*name).to_owned(), (*source).to_owned(), *offered)).collect()
}

#[test]
fn skills_are_listed_by_precedence_with_what_is_missing() {
    let world = world();
    let answer = listed(&world, &[]);
    let wanted = rows(&[
        ("sing", "workspace", false),
        ("paint", "workspace", true),
        ("paint", "workspace_agents", false),
        ("dance", "user_agents", false),
        ("cook", "home", true),
        ("weave", "home", true),
    ]);
    assert_eq!(brief(&answer), wanted, "{answer}");
    let skills = &answer["skills"];
    assert_eq!(skills[0]["missing"], json!(["bin no-such-program"]));
    assert_eq!(skills[1]["path"], "skills/paint/SKILL.md");
    assert_eq!(skills[2]["shadowed_by"], "skills/paint/SKILL.md");
    assert_eq!(skills[3]["missing"], json!(["env SECRET_STEPS"]));
    assert_eq!(skills[5]["path"], format!("{}/weave/SKILL.md", canonical(&world, "home/skills")));
    let project = text(&world.path("project"));
    let plain = world.ok(&["--workspace", &project, "skills", "list"]);
    for said in
        ["missing bin no-such-program", "skills/paint/SKILL.md goes before it", "offered to you alone"]
    {
        assert!(plain.contains(said), "no {said} in {plain}");
    }
    // A variable that is set is enough, and its value stands nowhere.
    let mut command = world.command(&["--workspace", &project, "skills", "list", "--json"]);
    let run = Run::from(command.env("SECRET_STEPS", "one-two-three-cha").output().unwrap());
    let answer: Value = serde_json::from_str(&run.out).unwrap();
    assert!(brief(&answer)[3].2, "{answer}");
    assert!(!format!("{run:?}").contains("cha-"), "{run:?}");
    assert!(!format!("{run:?}").contains("one-two-three"), "{run:?}");
}

#[test]
fn settings_switch_skills_off_and_let_links_lead_to_folders() {
    let world = world();
    skill(&world, "dotfiles/linked", "");
    symlink(world.path("dotfiles/linked"), world.path("home/skills/linked")).unwrap();
    let refused = listed(&world, &[]);
    assert!(refused["refused"][0]["why"].as_str().unwrap().contains("skills.link_targets"), "{refused}");
    let (code, answer) = world.json(&["config", "set", "skills.link_targets", "[\"dotfiles\"]"]);
    assert_eq!(code, Some(2), "a folder that is another one wherever it is asked: {answer}");
    let dotfiles = text(&world.path("dotfiles"));
    world.write("config.toml", &format!("[skills]\ndisabled = [\"weave\"]\nlink_targets = [{dotfiles:?}]\n"));
    let answer = listed(&world, &[]);
    assert_eq!(answer["refused"], json!([]));
    assert!(brief(&answer).contains(&("weave".to_owned(), "home".to_owned(), false)), "{answer}");
    assert!(brief(&answer).contains(&("linked".to_owned(), "home".to_owned(), true)), "{answer}");
}

/// The workspace is entered by `cd`: what nobody trusted is off, and so is what came or changed since.
#[test]
fn skills_of_a_workspace_count_where_the_owner_was_shown_them() {
    let world = World::new();
    world.write("config.toml", "");
    skill(&world, "here/skills/paint", "");
    skill(&world, "here/skills/buffer", "");
    skill(&world, "home/skills/paint", "");
    fs::write(world.path("here/AGENTS.md"), "Be careful.\n").unwrap();
    let list = || {
        let run = Run::from(
            world.command(&["skills", "list", "--json"]).current_dir(world.path("here")).output().unwrap(),
        );
        let answer: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{run:?}"));
        (answer, run.err)
    };
    let (answer, notice) = list();
    assert_eq!(brief(&answer), rows(&[("paint", "home", true)]));
    assert!(
        notice.contains("2 skills of the workspace not read") && notice.contains("workspace trust"),
        "{notice}"
    );
    world.ok(&["workspace", "trust", &text(&world.path("here"))]);
    let (answer, _) = list();
    let trusted =
        rows(&[("buffer", "workspace", false), ("paint", "workspace", true), ("paint", "home", false)]);
    assert_eq!(brief(&answer), trusted, "{answer}");
    assert!(answer["skills"][0]["why"].as_str().unwrap().contains("a skill of Drawloom's"), "{answer}");
    skill(&world, "here/skills/paint", "license: other\n");
    let (answer, _) = list();
    assert_eq!(brief(&answer), trusted, "{answer}");
    assert_eq!(answer["skills"][1]["stands_in_for"], "skills/paint/SKILL.md", "{answer}");
    // One that came since has no text that was accepted.
    skill(&world, "here/skills/sing", "");
    let (answer, _) = list();
    assert!(answer["skills"][2]["why"].as_str().unwrap().contains("since you trusted"), "{answer}");
    fs::remove_dir_all(world.path("here/skills/sing")).unwrap();
    // What is checked needs no trust.
    world.ok(&["workspace", "untrust", &text(&world.path("here"))]);
    let mut check = world.command(&["skills", "check", "--json"]);
    let run = Run::from(check.current_dir(world.path("here")).output().unwrap());
    assert_eq!(run.code, Some(1), "{run:?}");
    let answer: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(
        (&answer["skills"], &answer["problems"][0]["code"]),
        (&json!(5), &json!("reserved")),
        "{answer}"
    );
}

#[test]
fn skills_are_checked_by_either_profile() {
    let world = world();
    skill(&world, "loose/own", "homepage: https://example.org\nmetadata: {openclaw: {emoji: x}}\n");
    fs::create_dir_all(world.path("loose/mute")).unwrap();
    fs::write(world.path("loose/mute/SKILL.md"), "---\nname: mute\n---\n").unwrap();
    let path = |name: &str| text(&world.path(&format!("loose/{name}")));
    let (code, answer) = world.json(&["skills", "check", &path("own")]);
    assert_eq!((code, &answer), (Some(0), &json!({"ok": true, "skills": 1, "problems": []})));
    let (code, answer) = world.json(&["skills", "check", "--strict", &path("own/SKILL.md")]);
    let problems = answer["problems"].as_array().unwrap().iter();
    let codes: Vec<&str> = problems.map(|problem| problem["code"].as_str().unwrap()).collect();
    assert_eq!((code, codes), (Some(1), vec!["flow_style", "unknown_key", "wrong_kind"]), "{answer}");
    assert_eq!(answer["problems"][0]["line"], 5);
    skill(&world, "spelled/near", "Allowed-Tools: Bash\ndiscription: Which?\nversion: 1\n");
    let tools = "allowed-tools: Bash(git add:*) Frobnicate Read mcp__notes__add write effect:magic WebFetch(host:x)\n";
    skill(&world, "spelled/tools", tools);
    let (code, answer) = world.json(&["skills", "check", &text(&world.path("spelled"))]);
    let told: Vec<String> = answer["problems"].as_array().unwrap().iter().map(Value::to_string).collect();
    assert_eq!((code, told.len()), (Some(0), 5), "{answer}");
    for (place, (code, word)) in [
        ("misspelt_key", "`allowed-tools`"),
        ("misspelt_key", "`description`"),
        ("unknown_tool", "Frobnicate"),
        ("unknown_tool", "effect:magic"),
        ("unknown_tool", "WebFetch(host:x)"),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(told[place].contains(code) && told[place].contains(word), "{place}: {answer}");
    }
    let (_, strict) = world.json(&["skills", "check", "--strict", &text(&world.path("spelled/tools"))]);
    assert!(strict["problems"].to_string().contains("Frobnicate"), "{strict}");
    let all = world.run(&["skills", "check", &text(&world.path("loose"))]);
    assert_eq!(all.code, Some(1), "{all:?}");
    assert!(all.out.contains("it has no description") && all.out.ends_with("2 skills, 1 error\n"), "{all:?}");
    let (code, answer) = world.json(&["skills", "check", &text(&world.path("user/.agents"))]);
    assert_eq!((code, &answer["skills"]), (Some(0), &json!(1)), "{answer}");
    fs::create_dir(world.path("empty")).unwrap();
    assert_eq!(world.json(&["skills", "check", &text(&world.path("empty"))]).0, Some(3));
}

#[test]
fn a_skill_is_shown_with_its_text() {
    let world = world();
    let (code, answer) = world.json(&["skills", "show", "WEAVE"]);
    assert_eq!(code, Some(0), "{answer}");
    assert_eq!((&answer["name"], &answer["text"]), (&json!("weave"), &json!("First do weave.\n")));
    assert!(
        world.ok(&["skills", "show", "weave"]).ends_with("When weave is to be done\n\nFirst do weave.\n")
    );
    let (code, answer) = world.json(&["skills", "show", "weve"]);
    assert_eq!(code, Some(3), "{answer}");
    assert_eq!(answer["error"]["hint"], "did you mean weave?");
}

/// A model is told of what is offered, reads it with its tools, and changes none of it.
#[test]
fn a_model_is_told_of_skills_and_reads_them() {
    let world = world();
    let weave = format!("{}/weave", canonical(&world, "home/skills"));
    let calls = [
        json!({"path": format!("{weave}/SKILL.md")}),
        json!({"path": "skills/paint/SKILL.md"}),
        json!({"path": format!("{}/cook/../../config.toml", canonical(&world, "home/skills"))}),
    ];
    let near = Server::start(move |path, body| {
        if !path.ends_with("/chat/completions") {
            return None;
        }
        let asked =
            body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool").count();
        Some(match calls.get(asked) {
            Some(call) => server::call(&format!("c{asked}"), "", "read", call),
            None if asked == calls.len() => {
                let change = json!({"path": format!("{weave}/SKILL.md"), "content": "evil"});
                server::call("w", "", "write", &change)
            }
            None => server::chat("", "Done.", 10),
        })
    });
    let base = near.base();
    world.write(
        "config.toml",
        &format!(
            "[model]\ndefault = \"box/m\"\n[providers.box]\nbase_url = \"{base}\"\nwindow = 64000\nplace = \"local\"\n\
             [models.\"box/mute\"]\ntools = false\n"
        ),
    );
    let project = text(&world.path("project"));
    let (code, answer) = world.json(&["--workspace", &project, "chat", "-m", "Weave."]);
    assert_eq!((code, &answer["text"]), (Some(0), &json!("Done.")), "{answer}");
    let bodies = near.bodies();
    let system = bodies[0]["messages"].to_string();
    let home = canonical(&world, "home/skills");
    for told in [
        "- paint (skills/paint/SKILL.md): When paint is to be done".to_owned(),
        format!("In {home}/NAME/SKILL.md:"),
        "- weave: When weave is to be done".to_owned(),
    ] {
        assert!(system.contains(&told), "no {told} in {system}");
    }
    for untold in ["sing", "dance", "cook", "First do"] {
        assert!(!system.contains(untold), "{untold} in {system}");
    }
    let last = bodies.last().unwrap()["messages"].to_string();
    assert!(last.contains("First do weave.") && last.contains("First do paint."), "{last}");
    assert!(!last.contains("base_url"), "{last}");
    assert!(
        fs::read_to_string(world.path("home/skills/weave/SKILL.md")).unwrap().contains("First do weave.")
    );
    assert!(
        !last.contains("Tools reach these folders"),
        "a folder of a skill is named with the skill: {last}"
    );
    // The segment is named, and stands as it is for the rest of the session.
    let node = answer["node"].as_str().unwrap();
    let (_, shown) = world.json(&["context", "show", node]);
    let segments = shown["segments"].as_array().unwrap();
    let index = segments.iter().find(|segment| segment["kind"] == "skills_index").unwrap();
    assert_eq!((&index["stable"], &index["decision"]), (&json!(true), &json!("sent")), "{index}");
    skill(&world, "home/skills/new", "");
    world.ok(&["--workspace", &project, "chat", "-m", "Again."]);
    let body = near.bodies().pop().unwrap();
    assert!(!body["messages"].to_string().contains("- new: "), "{body}");
    world.ok(&["--workspace", &project, "chat", "--new", "-m", "Anew."]);
    let body = near.bodies().pop().unwrap();
    assert!(body["messages"].to_string().contains("- new: When new is to be done"), "{body}");
    // A model without tools could read none.
    world.ok(&["--workspace", &project, "--model", "box/mute", "chat", "--session", "mute", "-m", "Hi"]);
    let body = near.bodies().pop().unwrap();
    assert!(!body["messages"].to_string().contains("SKILL.md"), "{body}");
}

/// What a script is told at the beginning of a conversation in a folder, by the manifest of its request.
fn told_in(world: &World, folder: &str) -> String {
    told_at(world, folder, &["--new"]).0
}

/// What a script is told in a folder, by the manifest of its request, and the notices.
fn told_at(world: &World, folder: &str, arguments: &[&str]) -> (String, String) {
    let chat = ["--model", "script:echo", "--json", "chat", "-m", "Hi"];
    let mut chat = world.command(&[&chat, arguments].concat());
    let chat = chat.env("OPENAI_API_KEY", KNOWN_KEY).current_dir(world.path(folder));
    let run = Run::from(chat.output().unwrap());
    let answer: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{run:?}"));
    let node = answer["node"].as_str().unwrap();
    (world.ok(&["context", "show", node, "--text", "--json"]), run.err)
}

/// A key that Drawloom knows.
const KNOWN_KEY: &str = "sk-canary-0123456789";

/// S §4: no word of a stranger's skill is in a prompt, and the owner's own are told of all the same.
#[test]
fn s4_a_model_is_told_of_no_skill_that_the_owner_was_not_shown() {
    let world = World::new();
    world.write("config.toml", "");
    fs::create_dir_all(world.path("here")).unwrap();
    fs::write(world.path("here/AGENTS.md"), "Be careful.\n").unwrap();
    skill(&world, "here/skills/stranger", "");
    skill(&world, "user/.agents/skills/knit", "");
    let untrusted = told_in(&world, "here");
    assert!(untrusted.contains("When knit is to be done") && !untrusted.contains("stranger"), "{untrusted}");
    world.ok(&["workspace", "trust", &text(&world.path("here"))]);
    let trusted = told_in(&world, "here");
    assert!(trusted.contains("When stranger is to be done"), "{trusted}");
    let other = "---\nname: stranger\ndescription: EVIL\n---\n";
    fs::write(world.path("here/skills/stranger/SKILL.md"), other).unwrap();
    skill(&world, "here/skills/newer", "");
    let changed = told_in(&world, "here");
    assert!(changed.contains("When knit is to be done") && !changed.contains("newer"), "{changed}");
    assert!(changed.contains("When stranger is to be done") && !changed.contains("EVIL"), "{changed}");
    world.ok(&["workspace", "untrust", &text(&world.path("here"))]);
    assert!(!told_in(&world, "here").contains("stranger"));
}

#[test]
fn commands_read_the_folders_of_skills_and_nothing_beside_them() {
    let world = crate::exec::world(&[]);
    skill(&world, "home/skills/weave", "");
    skill(&world, "user/.agents/skills/knit", "");
    fs::write(world.path("user/.agents/skills/loose"), "beside").unwrap();
    let (weave, knit) =
        (canonical(&world, "home/skills/weave"), canonical(&world, "user/.agents/skills/knit"));
    let line = format!(
        "cat {weave}/SKILL.md; cat {knit}/SKILL.md; echo evil >> {knit}/SKILL.md; cat {knit}/../loose; cat \
         {weave}/../../config.toml"
    );
    let lines = [
        calls(&json!([exec(&line)])),
        json!({"text": "Done.", "expect": ["First do weave.", "First do knit."]}),
    ];
    world.write("lines.jsonl", &lines.map(|line| format!("{line}\n")).concat());
    let run = say(&world, "Weave.");
    assert_eq!((run.code, run.out.trim()), (Some(0), "Done."), "{run:?}");
    let result = nodes(&world).into_iter().find(|node| node["role"] == "tool").unwrap()["text"].to_string();
    assert!(!result.contains("beside") && !result.contains("[model]"), "{result}");
    assert!(!fs::read_to_string(world.path("user/.agents/skills/knit/SKILL.md")).unwrap().contains("evil"));
}

/// A name that is too long is not offered, so that none takes the list from the skills beside it.
#[test]
fn a_long_name_takes_no_room_in_the_list() {
    let world = World::new();
    world.write("config.toml", "");
    fs::create_dir_all(world.path("here")).unwrap();
    fs::write(world.path("here/AGENTS.md"), "Be careful.\n").unwrap();
    skill(&world, "home/skills/weave", "");
    for n in ["one", "two"] {
        let folder = world.path(&format!("home/skills/{n}"));
        fs::create_dir_all(&folder).unwrap();
        let name = n.repeat(3_000);
        fs::write(folder.join("SKILL.md"), format!("---\nname: {name}\ndescription: d\n---\n")).unwrap();
    }
    let told = told_in(&world, "here");
    assert!(told.contains("When weave is to be done") && !told.contains("oneone"), "{told}");
    let list = world.ok(&["skills", "list"]);
    assert!(list.contains("the name has 9000 characters, where 64 are allowed"), "{list}");
    assert!(!list.contains(&"one".repeat(30)), "{list}");
    let check = world.run(&["skills", "check", &text(&world.path("home/skills"))]);
    assert!(check.code == Some(1) && check.out.contains("(long_name)"), "{check:?}");
    assert!(!check.out.contains(&"one".repeat(30)), "{check:?}");
}

/// S §11: what is known to be a key stands in no name and no path that is told.
#[test]
fn s11_no_known_key_is_in_what_is_said_of_skills() {
    let world = World::new();
    world.write("config.toml", "");
    fs::create_dir_all(world.path("here")).unwrap();
    fs::write(world.path("here/AGENTS.md"), "Be careful.\n").unwrap();
    skill(&world, "home/skills/weave", "");
    let needs = format!("requires: {{bins: [{KNOWN_KEY}]}}\n");
    for (folder, name, more) in
        [("named", KNOWN_KEY, ""), (KNOWN_KEY, "placed", ""), ("poor", "poor", &needs)]
    {
        let folder = world.path(&format!("home/skills/{folder}"));
        fs::create_dir_all(&folder).unwrap();
        let file = format!("---\nname: {name}\ndescription: Do it\n{more}---\n");
        fs::write(folder.join("SKILL.md"), file).unwrap();
    }
    let (told, notices) = told_at(&world, "here", &["--new"]);
    assert!(told.contains("When weave is to be done") && told.contains("- ⟦secret:"), "{told}");
    assert!(!told.contains("placed") && notices.contains("its path holds a secret"), "{notices}");
    let said = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        let run = Run::from(command.env("OPENAI_API_KEY", KNOWN_KEY).output().unwrap());
        run.out + &run.err
    };
    let folder = text(&world.path("home/skills"));
    for said in [
        told,
        notices,
        said(&["skills", "list"]),
        said(&["skills", "list", "--json"]),
        said(&["skills", "show", "placed"]),
        said(&["skills", "check", &folder]),
        said(&["skills", "check", "--strict", &folder]),
    ] {
        assert!(said.contains("⟦secret:") && !said.contains(KNOWN_KEY), "{said}");
    }
}

/// The beginning of a request stays as it is, so that the end says which of its skills do not count.
#[test]
fn a_skill_that_changes_in_a_conversation_is_told_of_once_as_not_accepted() {
    let world = World::new();
    world.write("config.toml", "");
    fs::create_dir_all(world.path("here")).unwrap();
    fs::write(world.path("here/AGENTS.md"), "Be careful.\n").unwrap();
    skill(&world, "here/skills/paint", "");
    skill(&world, "here/skills/sing", "");
    world.ok(&["workspace", "trust", &text(&world.path("here"))]);
    let told = |arguments: &[&str]| told_at(&world, "here", arguments);
    assert!(!told(&[]).0.contains("Do not use these files"));
    skill(&world, "here/skills/paint", "license: other\n");
    let (second, notices) = told(&[]);
    let said = "Do not use these files of the list of skills: skills/paint/SKILL.md (read ";
    assert!(second.contains("- paint: When paint is to be done"), "{second}");
    assert_eq!(second.matches(said).count(), 1, "{second}");
    let stays = "skills/paint/SKILL.md stays in the list of this conversation: the model is told to read /";
    assert!(notices.contains("since you trusted") && notices.contains(stays), "{notices}");
    let (third, notices) = told(&[]);
    assert_eq!(third.matches(said).count(), 1, "{third}");
    assert!(!notices.contains(stays), "{notices}");
    skill(&world, "here/skills/paint", "");
    assert!(told(&[]).0.contains("Use all files of the list of skills again."));
    let (anew, notices) = told(&["--new"]);
    assert!(!anew.contains("skills again") && !notices.contains("stays"), "{anew} {notices}");
}

/// What is written there is told of in every workspace, so that no tool does it without a question.
#[test]
fn the_owners_folder_of_skills_is_opened_for_reading_only() {
    let world = world();
    let (skills, project) = (text(&world.path("user/.agents/skills")), text(&world.path("project")));
    let echo = ["--model", "script:echo"];
    let chat = |arguments: &[&str]| world.json(&[&echo, arguments, &["-m", "Hi"]].concat());
    for folder in [skills.clone(), format!("{skills}/dance")] {
        let (code, answer) = chat(&["--workspace", &folder, "chat"]);
        assert_eq!(answer["error"]["code"], "bad_workspace", "{code:?} {answer}");
        let (code, answer) = chat(&["--workspace", &project, "chat", "--allow", &format!("{folder}:rw")]);
        assert_eq!(code, Some(2), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("skills of yours"), "{answer}");
        let (code, answer) = chat(&["--workspace", &project, "chat", "--allow", &folder]);
        assert_eq!(code, Some(0), "{answer}");
    }
    // From above it is protected by its name.
    let agents = text(&world.path("user/.agents"));
    let (code, answer) = chat(&["--workspace", &project, "chat", "--allow", &format!("{agents}:rw")]);
    assert_eq!(code, Some(0), "{answer}");
}
