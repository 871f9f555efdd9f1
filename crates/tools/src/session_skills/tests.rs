use loom::Trust;
use model::Cancel;
use policy::{Attendance, Decision, SandboxLevel, SessionFacts, SessionType};
use serde_json::json;

use super::*;
use crate::files::fixture::{Fixture, place};
use crate::{CallPlace, ToolRegistry};

const CHAT: SessionFacts = SessionFacts {
    kind: SessionType::Main,
    attendance: Attendance::Attended,
    sandbox: SandboxLevel::Full,
    tainted: false,
    plan_mode: false,
    keeps_old_bytes: true,
};

fn skill(name: &str, allowed: Option<&[&str]>) -> SessionSkill {
    let entries = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect();
    SessionSkill {
        name: name.to_owned(),
        file: format!("skills/{name}/SKILL.md"),
        for_model: true,
        allowed: allowed.map(|allowed| AllowedTools::new(entries(allowed))),
        ..SessionSkill::default()
    }
}

/// A fixture whose session may follow these.
fn following(skills: Vec<SessionSkill>) -> Fixture {
    let Fixture { temp, registry, recorded } = Fixture::new();
    let in_reach = SkillsInReach { followable: skills.clone(), disabled: Vec::new() };
    let registry = Arc::into_inner(registry).unwrap().with_skills(skills, Arc::new(move || in_reach.clone()));
    Fixture { temp, registry: Arc::new(registry), recorded }
}

fn decided(registry: &ToolRegistry, path: &str) -> (Decision, String) {
    let call = registry.check("write", &json!({"path": path, "content": "x"})).unwrap();
    let verdict = call.decide(&CHAT, &[]);
    (verdict.decision, verdict.to_string())
}

#[test]
fn a_skill_narrows_the_calls_of_the_turn_in_which_its_file_was_read() {
    let fixture = following(vec![skill("paint", Some(&["Write(art/**)"])), skill("free", None)]);
    std::fs::create_dir_all(fixture.path("skills/paint")).unwrap();
    fixture.put("skills/paint/SKILL.md", "---\nname: paint\n---\nPaint.\n");
    fixture.put("other.md", "x\n");
    let registry = Arc::clone(&fixture.registry);
    let is_narrowed = || decided(&registry, "note.md").0 == Decision::Deny;
    fixture.call("read", &json!({"path": "other.md"})).unwrap();
    assert!(!is_narrowed(), "control: another file");
    fixture.call("read", &json!({"path": "skills/paint/SKILL.md"})).unwrap();
    let (decision, why) = decided(&registry, "note.md");
    assert_eq!(decision, Decision::Deny);
    assert!(why.contains("the skill paint is followed") && why.contains("Write(art/**)"), "{why}");
    assert_eq!(decided(&registry, "art/note.md").0, Decision::Allow);
    // What it begins is narrowed to its end, whatever turn it is.
    let subagent = registry.of_subagent(None, false).unwrap();
    subagent.begin_turn(&TurnSkills::default());
    registry.begin_turn(&TurnSkills::default());
    assert!(!is_narrowed());
    assert_eq!(decided(&subagent, "note.md").0, Decision::Deny);
    assert_eq!(decided(&registry.of_subagent(None, false).unwrap(), "note.md").0, Decision::Allow);
    // So is the turn that its result begins, and what that begins.
    registry.begin_turn(&subagent.skills_of_turn_before());
    assert!(is_narrowed());
    assert_eq!(decided(&registry.of_subagent(None, false).unwrap(), "note.md").0, Decision::Deny);
    // What that turn follows only later counts for the turn of a result as well.
    registry.begin_turn(&TurnSkills::default());
    let early = registry.of_subagent(None, false).unwrap();
    fixture.call("read", &json!({"path": "skills/paint/SKILL.md"})).unwrap();
    assert_eq!(decided(&early, "note.md").0, Decision::Allow, "it began before");
    registry.begin_turn(&TurnSkills::default());
    assert!(!is_narrowed(), "control");
    registry.begin_turn(&early.skills_of_turn_before());
    assert!(is_narrowed());
    for (name, narrows) in [("paint", true), ("painting", true), ("free", false)] {
        registry.begin_turn(&TurnSkills::default());
        registry.follow_named(&[name.to_owned()]);
        assert_eq!(is_narrowed(), narrows, "{name}");
    }
}

#[test]
fn a_skill_whose_file_changes_while_it_is_read_narrows_as_before_and_behind() {
    let Fixture { temp, registry, recorded } = Fixture::new();
    let (narrow, free) = (skill("paint", Some(&[])), skill("paint", None));
    let looks = Arc::new(Mutex::new(Vec::new()));
    let looked = Arc::clone(&looks);
    let look = move || SkillsInReach {
        followable: looked.lock().unwrap().pop().into_iter().collect(),
        disabled: Vec::new(),
    };
    let registry = Arc::into_inner(registry).unwrap().with_skills(vec![free.clone()], Arc::new(look));
    let fixture = Fixture { temp, registry: Arc::new(registry), recorded };
    std::fs::create_dir_all(fixture.path("skills/paint")).unwrap();
    fixture.put("skills/paint/SKILL.md", "---\nname: paint\n---\nPaint.\n");
    for (before, behind, narrows) in [(&narrow, &free, true), (&free, &narrow, true), (&free, &free, false)] {
        *looks.lock().unwrap() = vec![behind.clone(), before.clone()];
        fixture.registry.begin_turn(&TurnSkills::default());
        fixture.call("read", &json!({"path": "skills/paint/SKILL.md"})).unwrap();
        assert!(looks.lock().unwrap().is_empty(), "it looked before and behind");
        assert_eq!(decided(&fixture.registry, "note.md").0 == Decision::Deny, narrows);
    }
}

#[test]
fn a_skill_that_is_handed_along_narrows_whatever_is_in_reach() {
    let registry = following(vec![skill("paint", None)]).registry;
    for (handed, narrows) in [(skill("paint", Some(&[])), true), (skill("paint", None), false)] {
        registry.begin_turn(&TurnSkills::named([handed]));
        // Its name in the tree changes nothing, nor does the file as it is in reach.
        registry.follow_named(&["paint".to_owned()]);
        assert_eq!(decided(&registry, "note.md").0 == Decision::Deny, narrows);
    }
    registry.begin_turn(&TurnSkills::default());
    assert_eq!(decided(&registry, "note.md").0, Decision::Allow, "control");
    registry.follow_unknown();
    let (decision, why) = decided(&registry, "note.md");
    assert!(decision == Decision::Deny && why.contains("not known"), "{why}");
    assert_eq!(
        registry.check("read", &json!({"path": "a"})).unwrap().decide(&CHAT, &[]).decision,
        Decision::Allow
    );
}

#[test]
fn a_skill_is_named_by_the_author_of_its_text() {
    assert_eq!(SessionSkill::named_by(&SessionSkill::author("paint")), Some("paint"));
    let typed = Author { id: "skill/paint".to_owned(), ..Author::owner() };
    let spawned = Author { id: "spawn".to_owned(), ..SessionSkill::author("paint") };
    let imported = Author { id: "import:0123/skill/paint".to_owned(), ..SessionSkill::author("paint") };
    for other in [Author::owner(), typed, spawned, imported] {
        assert_eq!(SessionSkill::named_by(&other), None, "{other:?}");
    }
}

/// S §25: the accepted text of a skill is used, whichever file of it a model reads.
#[test]
fn s25_a_changed_file_follows_the_accepted_text() {
    let file = "accepted/skills/paint/SKILL.md";
    let changed = SessionSkill {
        file: file.to_owned(),
        other_file: Some("skills/paint/SKILL.md".to_owned()),
        ..skill("paint", Some(&[]))
    };
    let fixture = following(vec![changed]);
    for path in [file, "skills/paint/SKILL.md"] {
        std::fs::create_dir_all(fixture.path(path).parent().unwrap()).unwrap();
        fixture.put(path, "---\nname: paint\nallowed-tools: Write\n---\nPaint.\n");
    }
    for path in [file, "skills/paint/SKILL.md"] {
        fixture.registry.begin_turn(&TurnSkills::default());
        assert_eq!(decided(&fixture.registry, "note.md").0, Decision::Allow, "control");
        fixture.call("read", &json!({"path": path})).unwrap();
        assert_eq!(decided(&fixture.registry, "note.md").0, Decision::Deny, "{path}");
    }
}

/// S §25: variables of a skill that models are not told of go along only where its owner names it.
#[test]
fn s25_variables_of_a_hidden_skill_are_passed_where_its_owner_names_it_alone() {
    let variables = BTreeMap::from([("TOKEN".to_owned(), "canary".to_owned())]);
    let scope = following(Vec::new()).registry.check("read", &json!({"path": "a"})).unwrap().scope;
    for for_model in [true, false] {
        let variables = variables.clone();
        let skill = Arc::new(SessionSkill { variables, for_model, ..skill("deploy", Some(&[])) });
        let mut followed = FollowedSkills::default();
        followed.follow(&skill, false);
        assert_eq!(followed.variables().len(), usize::from(for_model));
        assert_eq!(followed.told_variables().is_some(), for_model);
        let write = CallFacts {
            tool: "write".to_owned(),
            effects: [policy::Effect::Write].into(),
            ..CallFacts::default()
        };
        assert!(followed.refusal(&scope, &write).is_some(), "it narrows all the same");
        followed.follow(&skill, true);
        followed.follow(&skill, false);
        assert_eq!(followed.variables(), skill.variables);
    }
}

#[test]
fn what_commands_do_not_get_is_told_once_and_of_a_skill_that_is_followed_alone() {
    let missing_variables = vec!["OTHER: it is not set".to_owned()];
    let skills = SessionSkills::default();
    assert_eq!(skills.untold_missing_variables(), [""; 0]);
    skills.begin_turn(&TurnSkills::named([SessionSkill { missing_variables, ..skill("deploy", None) }]));
    assert_eq!(
        skills.untold_missing_variables(),
        ["commands of the skill deploy do not get OTHER: it is not set"]
    );
    assert_eq!(skills.untold_missing_variables(), [""; 0]);
}

/// S §25: whoever is asked about a command hears what it gets, and no answer is kept for another one.
#[test]
fn s25_a_question_names_the_variables_that_a_command_gets() {
    let variables = BTreeMap::from([("TOKEN".to_owned(), "canary".to_owned())]);
    let registry = following(vec![SessionSkill { variables, ..skill("deploy", None) }]).registry;
    let call = || registry.check("exec", &json!({"command": "ls"})).unwrap();
    let facts = SessionFacts { sandbox: SandboxLevel::Partial, ..CHAT };
    let before = call();
    assert_eq!(before.preview().unwrap().unwrap(), "$ ls");
    let allowed = [before.lasting_answers(&facts).session.unwrap()];
    assert_eq!(before.decide(&facts, &allowed).decision, Decision::Allow, "control");
    registry.follow_named(&["deploy".to_owned()]);
    let call = call();
    assert_eq!(call.preview().unwrap().unwrap(), "$ ls\nwith TOKEN for the skill deploy");
    assert_eq!(call.lasting_answers(&facts), policy::LastingAnswers::default());
    assert_eq!(call.decide(&facts, &allowed).decision, Decision::Ask, "what was allowed without them");
    let other = registry.check("write", &json!({"path": "a", "content": "b"})).unwrap();
    assert!(!other.preview().unwrap().unwrap().contains("TOKEN"));
}

#[test]
fn skills_in_reach_are_listed_whole_with_whether_they_are_followed() {
    let described = |name: &str, is_of_workspace| SessionSkill {
        description: format!("Use {name} for blue walls, and for nothing else."),
        is_of_workspace,
        ..skill(name, None)
    };
    let hidden = SessionSkill { for_model: false, ..described("secret", false) };
    let fixture = following(vec![described("paint", true), described("weave", false), hidden]);
    fixture.registry.follow_named(&["weave".to_owned()]);
    let listed_beside = |arguments, skills_list| {
        let place = CallPlace { skills_list, ..place() };
        let output = match fixture.registry.check("list_skills", &arguments) {
            Ok(call) => call.run(&Cancel::never(), &fixture.recorded, &place),
            Err(refused) => refused,
        };
        (output.text, output.trust)
    };
    let list = |arguments| listed_beside(arguments, None);
    let weave = "- weave (skills/weave/SKILL.md) [followed]: Use weave for blue walls, and for nothing else.";
    let all =
        format!("- paint (skills/paint/SKILL.md): Use paint for blue walls, and for nothing else.\n{weave}");
    assert_eq!(list(json!({})), (all.clone(), Trust::Workspace));
    assert_eq!(list(json!({"query": "WALLS  blue"})), (all, Trust::Workspace));
    assert_eq!(list(json!({"query": "weave"})), (weave.to_owned(), Trust::Owner));
    let nothing = ("no skill of 2 has these words".to_owned(), Trust::Owner);
    assert_eq!(list(json!({"query": "secret"})), nothing);
    assert!(list(json!({"words": "weave"})).0.contains("unknown words"));
    let sent = "- paint (skills/paint/SKILL.md): Use paint".to_owned();
    let beside_a_list = listed_beside(json!({}), Some(sent)).0;
    let marked: Vec<bool> = beside_a_list.lines().map(|line| line.contains("[not in your list]")).collect();
    assert_eq!(marked, [false, true], "{beside_a_list}");
}
