//! Skills that a session follows: what one leaves of the tools, and which variables its commands get, until the turn ends
//! (spec: agent §6, security §25).
//!
//! A skill is followed once the file of it was read by the tool `read`, or a text of the turn says to follow it. Subagents
//! follow the skills that their parent followed when it began them, to their end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use policy::{AllowedTools, CallFacts, PathAccess, PathUse, Verdict};

use crate::tool::ToolScope;

/// A skill that a session may follow.
#[derive(Debug, Clone)]
pub struct SessionSkill {
    pub name: String,
    /// The file, as a model is told of it.
    pub file: String,
    /// Calls that it allows; none where it narrows nothing.
    pub allowed: Option<AllowedTools>,
    /// Variables that commands get.
    pub variables: BTreeMap<String, String>,
}

impl SessionSkill {
    /// The text that says to follow a skill.
    pub fn instruction(name: &str, folder: &str, body: &str) -> String {
        format!("{}{folder}):\n\n{}", begins(name), body.trim())
    }

    fn is_meant_by(&self, text: &str) -> bool {
        // Its folder may be another one by now, as that of a text that was accepted is.
        text.starts_with(&begins(&self.name))
    }
}

/// How the text begins that says to follow a skill.
fn begins(name: &str) -> String {
    format!("Follow the skill {name} (its folder is ")
}

/// Skills of a session, with those that are followed, by their places.
#[derive(Debug, Default)]
pub(crate) struct SessionSkills {
    all: Vec<SessionSkill>,
    of_parent: BTreeSet<usize>,
    of_turn: Mutex<BTreeSet<usize>>,
}

impl SessionSkills {
    pub(crate) fn new(all: Vec<SessionSkill>) -> Self {
        Self { all, ..Self::default() }
    }

    /// Skills of a subagent that is begun now.
    pub(crate) fn of_subagent(&self) -> Self {
        Self { all: self.all.clone(), of_parent: self.places(), of_turn: Mutex::default() }
    }

    pub(crate) fn begin_turn(&self) {
        self.of_turn.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Follows the skills that a text says to follow.
    pub(crate) fn hear(&self, text: &str) {
        self.follow(|skill| skill.is_meant_by(text));
    }

    /// Follows the skill whose file was read.
    pub(crate) fn has_read(&self, scope: &ToolScope, paths: &[PathUse]) {
        self.follow(|skill| {
            scope.path_use(&skill.file, PathAccess::Read).is_some_and(|file| paths.contains(&file))
        });
    }

    fn follow(&self, is_meant: impl Fn(&SessionSkill) -> bool) {
        let meant = (0..).zip(&self.all).filter(|(_, skill)| is_meant(skill)).map(|(place, _)| place);
        self.of_turn.lock().unwrap_or_else(PoisonError::into_inner).extend(meant);
    }

    fn places(&self) -> BTreeSet<usize> {
        &self.of_parent | &*self.of_turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn followed(&self) -> impl Iterator<Item = &SessionSkill> {
        self.places().into_iter().filter_map(|place| self.all.get(place))
    }

    /// The refusal of a call that a skill which is followed does not allow.
    pub(crate) fn refusal(&self, call: &CallFacts) -> Option<Verdict> {
        self.followed().find_map(|skill| skill.allowed.as_ref()?.refusal(&skill.name, call))
    }

    /// Variables that commands get for the skills that are followed.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        self.followed().flat_map(|skill| skill.variables.clone()).collect()
    }

    /// What a question about a command says of its variables.
    pub(crate) fn told_variables(&self) -> Option<String> {
        let told = self.followed().filter(|skill| !skill.variables.is_empty()).map(|skill| {
            let names: Vec<&str> = skill.variables.keys().map(String::as_str).collect();
            format!("with {} for the skill {}", names.join(", "), skill.name)
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| told.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use policy::{Attendance, Decision, SandboxLevel, SessionFacts, SessionType};
    use serde_json::json;

    use super::*;
    use crate::ToolRegistry;
    use crate::files::fixture::Fixture;

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
            allowed: allowed.map(|allowed| AllowedTools::new(entries(allowed))),
            variables: BTreeMap::new(),
        }
    }

    /// A fixture whose session may follow these.
    fn following(skills: Vec<SessionSkill>) -> Fixture {
        let Fixture { temp, registry, recorded } = Fixture::new();
        let registry = Arc::into_inner(registry).unwrap().with_skills(skills);
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
        subagent.begin_turn(1);
        registry.begin_turn(2);
        assert!(!is_narrowed());
        assert_eq!(decided(&subagent, "note.md").0, Decision::Deny);
        assert_eq!(decided(&registry.of_subagent(None, false).unwrap(), "note.md").0, Decision::Allow);
        for (text, narrows) in [
            ("Please paint.", false),
            ("I said: Follow the skill paint (its folder is skills/paint):\n\nPaint.", false),
            (&*SessionSkill::instruction("paint", "elsewhere", "Paint."), true),
            (&*SessionSkill::instruction("painting", "skills/paint", "Paint."), false),
            (&*SessionSkill::instruction("free", "skills/free", "Be free."), false),
            (&*SessionSkill::instruction("paint", "skills/paint", "Paint."), true),
        ] {
            registry.begin_turn(3);
            registry.hear(text);
            assert_eq!(is_narrowed(), narrows, "{text}");
        }
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
        registry.hear(&SessionSkill::instruction("deploy", "skills/deploy", "Deploy."));
        let call = call();
        assert_eq!(call.preview().unwrap().unwrap(), "$ ls\nwith TOKEN for the skill deploy");
        assert_eq!(call.lasting_answers(&facts), policy::LastingAnswers::default());
        assert_eq!(call.decide(&facts, &allowed).decision, Decision::Ask, "what was allowed without them");
        let other = registry.check("write", &json!({"path": "a", "content": "b"})).unwrap();
        assert!(!other.preview().unwrap().unwrap().contains("TOKEN"));
    }
}
