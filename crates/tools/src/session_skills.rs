//! Skills that a session follows: what one leaves of the tools, and which variables its commands get, until the turn ends
//! (spec: agent §6, security §25).
//!
//! A skill is followed once the file of it was read by the tool `read`, or its text was said in the turn. Whoever says a text
//! hands the skill along as it was read with it; where that is not at hand, as where a turn is asked again, the author of the
//! text tells its name, and what counts of it by now is followed. A turn that the result of a subagent begins goes on with the skills of the turn that began that one; subagents
//! follow the skills that their parent followed when it began them, to their end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loom::{Author, AuthorKind};
use policy::{AllowedTools, CallFacts, PathAccess, PathUse, Verdict};

use crate::path_uses;
use crate::tool::ToolScope;

/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";

/// What names of the authors of skills' texts begin with.
const AUTHOR: &str = "skill/";

/// A skill that a session may follow.
#[derive(Clone, Default, PartialEq)]
pub struct SessionSkill {
    pub name: String,
    /// The file, as a model is told of it.
    pub file: String,
    /// A file of it with a text that is not the accepted one, or that had this one in an earlier list.
    pub other_file: Option<String>,
    /// When it is of use, in one line.
    pub description: String,
    pub is_of_workspace: bool,
    /// Whether models are told of it; variables of another one go with it only where its owner names it.
    pub for_model: bool,
    /// Calls that it allows; none where it narrows nothing.
    pub allowed: Option<AllowedTools>,
    /// Variables that commands get.
    pub variables: BTreeMap<String, String>,
    /// Variables that the owner lists and commands do not get, each with the reason.
    pub missing_variables: Vec<String>,
}

impl SessionSkill {
    /// A skill of which nobody knows what it allowed, for a reason: it leaves reading alone.
    fn unknown(name: &str, why: &str) -> Self {
        let allowed = Some(AllowedTools::unknown(why));
        Self { name: name.to_owned(), file: name.to_owned(), allowed, ..Self::default() }
    }

    /// The text that says to follow a skill.
    pub fn instruction(name: &str, folder: &str, body: &str) -> String {
        format!("Follow the skill {name} (its folder is {folder}):\n\n{}", body.trim())
    }

    /// The author of the text that says to follow a skill.
    pub fn author(name: &str) -> Author {
        Author { kind: AuthorKind::Tool, id: format!("{AUTHOR}{name}"), profile: None }
    }

    /// The name of the skill whose text an author's is.
    pub fn named_by(author: &Author) -> Option<&str> {
        author.id.strip_prefix(AUTHOR).filter(|_| author.kind == AuthorKind::Tool)
    }
}

/// Without the values of variables.
impl fmt::Debug for SessionSkill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionSkill").field(&self.name).field(&self.file).finish()
    }
}

/// Skills within reach of a session at one moment.
#[derive(Debug, Clone, Default)]
pub struct SkillsInReach {
    /// Skills that may be followed.
    pub followable: Vec<SessionSkill>,
    /// Names of those that their owner switched off.
    pub disabled: Vec<String>,
}

/// Looks which skills are within reach by now. It blocks.
pub type LookForSkills = dyn Fn() -> SkillsInReach + Send + Sync;

/// Skills that are followed. One whose file changed meanwhile stands here as it was and as it is.
#[derive(Clone, Default)]
pub(crate) struct FollowedSkills(Vec<FollowedSkill>);

#[derive(Clone)]
struct FollowedSkill {
    skill: Arc<SessionSkill>,
    /// Whether its owner named it.
    is_named: bool,
}

impl FollowedSkills {
    fn follow(&mut self, skill: &Arc<SessionSkill>, is_named: bool) {
        match self.0.iter_mut().find(|followed| followed.skill == *skill) {
            Some(followed) => followed.is_named |= is_named,
            None => self.0.push(FollowedSkill { skill: Arc::clone(skill), is_named }),
        }
    }

    fn extend(&mut self, others: &Self) {
        others.0.iter().for_each(|other| self.follow(&other.skill, other.is_named));
    }

    /// Whether a skill with this file is among them.
    pub(crate) fn holds(&self, file: &str) -> bool {
        self.0.iter().any(|followed| followed.skill.file == file)
    }

    /// Whether the owner named a skill of this name.
    fn is_named(&self, name: &str) -> bool {
        self.0.iter().any(|followed| followed.is_named && followed.skill.name == name)
    }

    /// The refusal of a call that one of them does not allow. It blocks.
    pub(crate) fn refusal(&self, scope: &ToolScope, call: &CallFacts) -> Option<Verdict> {
        let narrowing = || self.0.iter().filter_map(|it| Some((&it.skill.name, it.skill.allowed.as_ref()?)));
        narrowing().next()?;
        let mut indirect = policy::redirected_files(call);
        indirect.retain(|path| !path_uses::is_direct(&scope.roots, path));
        narrowing().find_map(|(name, allowed)| allowed.refusal(name, call, &indirect))
    }

    /// Skills whose variables commands get.
    fn with_variables(&self) -> impl Iterator<Item = &SessionSkill> {
        let gives = |followed: &&FollowedSkill| followed.is_named || followed.skill.for_model;
        self.0.iter().filter(gives).map(|followed| &*followed.skill)
    }

    /// Variables that commands get for them.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        self.with_variables().flat_map(|skill| skill.variables.clone()).collect()
    }

    /// What a question about a command says of its variables.
    pub(crate) fn told_variables(&self) -> Option<String> {
        let told = self.with_variables().filter(|skill| !skill.variables.is_empty()).map(|skill| {
            let names: Vec<&str> = skill.variables.keys().map(String::as_str).collect();
            format!("with {} for the skill {}", names.join(", "), skill.name)
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| told.join("\n"))
    }
}

impl fmt::Debug for FollowedSkills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|followed| &followed.skill)).finish()
    }
}

/// Skills that a turn follows by now. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct TurnSkills(Arc<Mutex<FollowedSkills>>);

impl TurnSkills {
    /// Skills that the owner names in what a turn begins with.
    pub fn named(skills: impl IntoIterator<Item = SessionSkill>) -> Self {
        let mut named = FollowedSkills::default();
        skills.into_iter().for_each(|skill| named.follow(&Arc::new(skill), true));
        Self(Arc::new(Mutex::new(named)))
    }

    pub fn is_empty(&self) -> bool {
        self.lock().0.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, FollowedSkills> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Skills of a session, with those that are followed.
#[derive(Default)]
pub(crate) struct SessionSkills {
    /// As they were when the session was opened.
    first: Vec<Arc<SessionSkill>>,
    look: Option<Arc<LookForSkills>>,
    /// What its parent followed when it began the session.
    of_parent: FollowedSkills,
    /// The turn that began the session.
    began_in: TurnSkills,
    of_turn: Mutex<TurnSkills>,
    /// What was said of variables that commands do not get.
    told: Mutex<BTreeSet<String>>,
}

impl SessionSkills {
    /// Skills of a session that is opened with these, and a way to look for those of a later moment.
    pub(crate) fn new(first: Vec<SessionSkill>, look: Arc<LookForSkills>) -> Self {
        Self { first: first.into_iter().map(Arc::new).collect(), look: Some(look), ..Self::default() }
    }

    /// Skills of a subagent that is begun now.
    pub(crate) fn of_subagent(&self) -> Self {
        let (of_parent, began_in) = (self.followed(), self.of_turn());
        let (first, look) = (self.first.clone(), self.look.clone());
        Self { first, look, of_parent, began_in, ..Self::default() }
    }

    /// Skills of the turn that began the session.
    pub(crate) fn of_turn_before(&self) -> TurnSkills {
        self.began_in.clone()
    }

    /// A turn begins, which goes on with those of an earlier one.
    pub(crate) fn begin_turn(&self, before: &TurnSkills) {
        let skills = TurnSkills(Arc::new(Mutex::new(before.lock().clone())));
        *self.of_turn.lock().unwrap_or_else(PoisonError::into_inner) = skills;
    }

    pub(crate) fn in_reach(&self) -> SkillsInReach {
        self.look.as_ref().map(|look| look()).unwrap_or_default()
    }

    /// Follows the skills of these names, whose texts their owner said in the turn, as they count by now where they were not
    /// handed along. What one that is out of reach allowed nobody knows: it leaves reading alone. It blocks.
    pub(crate) fn follow_named(&self, names: &[String]) {
        let turn = self.of_turn();
        let missing: Vec<&String> = names.iter().filter(|name| !turn.lock().is_named(name)).collect();
        if missing.is_empty() {
            return;
        }
        let SkillsInReach { followable, disabled } = self.in_reach();
        for name in missing {
            // Of two with one name it is the first that is offered, as its text is.
            let skill = followable.iter().find(|skill| skill.name == *name).cloned();
            let skill = skill.unwrap_or_else(|| {
                let why = match disabled.contains(name) {
                    true => "not known, as the skill is switched off by now",
                    false => "not known, as the skill is not there any more",
                };
                SessionSkill::unknown(name, why)
            });
            turn.lock().follow(&Arc::new(skill), true);
        }
    }

    /// Leaves reading alone in a turn of which is not known which skills it follows.
    pub(crate) fn follow_unknown(&self) {
        let skill = SessionSkill::unknown("of the turn before", "not known, as that turn cannot be read");
        self.of_turn().lock().follow(&Arc::new(skill), true);
    }

    /// Skills that a read of these paths is about, as they count by now. It blocks.
    pub(crate) fn of_read(&self, scope: &ToolScope, paths: &[PathUse]) -> Vec<SessionSkill> {
        if !paths.iter().any(is_of_skill) {
            return Vec::new();
        }
        let mut skills = self.in_reach().followable;
        skills.retain(|skill| is_read(scope, paths, &skill.file) || is_other_read(scope, paths, skill));
        skills
    }

    /// Follows the skills whose files were read, as they count by now, and as they did `before`, where their files changed
    /// meanwhile: which text was read is not known. One that is out of reach is followed as it was when the session was opened.
    /// Returns what the model is told of those with another text than the accepted one. It blocks.
    pub(crate) fn has_read(
        &self,
        scope: &ToolScope,
        paths: &[PathUse],
        before: Vec<SessionSkill>,
    ) -> Vec<String> {
        if !paths.iter().any(is_of_skill) {
            return Vec::new();
        }
        let is_other_read = |skill: &SessionSkill| is_other_read(scope, paths, skill);
        let was_read = |skill: &SessionSkill| is_other_read(skill) || is_read(scope, paths, &skill.file);
        let read = self.of_read(scope, paths).into_iter().chain(before);
        let mut read: Vec<Arc<SessionSkill>> = read.map(Arc::new).collect();
        for skill in self.first.iter().filter(|skill| was_read(skill)) {
            if !read.iter().any(|other| other.name == skill.name) {
                read.push(Arc::clone(skill));
            }
        }
        let mut told = Vec::new();
        for skill in read {
            self.of_turn().lock().follow(&skill, false);
            let SessionSkill { name, file, other_file, .. } = &*skill;
            if let Some(other) = other_file.as_ref().filter(|_| is_other_read(&skill)) {
                told.push(format!(
                    "[{other} is not the accepted text of the skill {name}: {file} is, and is followed. Read that.]"
                ));
            }
        }
        told.dedup();
        told
    }

    fn of_turn(&self) -> TurnSkills {
        self.of_turn.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn followed(&self) -> FollowedSkills {
        let mut followed = self.of_parent.clone();
        followed.extend(&self.of_turn().lock());
        followed
    }

    /// What commands for the skills that are followed do not get, of what was not told before.
    pub(crate) fn untold_missing_variables(&self) -> Vec<String> {
        let followed = self.followed();
        let missing = followed.with_variables().flat_map(|skill| {
            let line =
                |missing: &String| format!("commands of the skill {} do not get {missing}", skill.name);
            skill.missing_variables.iter().map(line)
        });
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        missing.filter(|line| told.insert(line.clone())).collect()
    }
}

fn is_of_skill(path: &PathUse) -> bool {
    path.path.as_path().file_name().is_some_and(|name| name.eq_ignore_ascii_case(FILE))
}

fn is_read(scope: &ToolScope, paths: &[PathUse], file: &str) -> bool {
    scope.path_use(file, PathAccess::Read).is_some_and(|file| paths.contains(&file))
}

/// Whether the file of a skill that has not the accepted text was read.
fn is_other_read(scope: &ToolScope, paths: &[PathUse], skill: &SessionSkill) -> bool {
    skill.other_file.as_deref().is_some_and(|file| is_read(scope, paths, file))
}

#[cfg(test)]
mod tests;
