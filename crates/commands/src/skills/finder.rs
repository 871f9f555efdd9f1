//! Finding the skills that count: from the folders that they stand in, by what is accepted of the workspace at that moment
//! (spec: agent §6, security §25).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use agent::Runtime;
use loom::Digest;
use policy::AllowedTools;
use skills::{Catalog, Skill, SkillText};
use store::Principal;
use tokio::runtime::Handle;
use tools::{SessionSkill, SkillsInReach};
use workspace::trust::Accepted;
use workspace::{Root, StoreGuard};

use super::accepted_texts::{accepted_text, stand_in};
use super::built_in;
use super::within_reach::{SkillSources, refusal, why_outside};
use crate::app::App;
use crate::frontend::Frontend;
use crate::settings::SkillSettings;
use crate::workspaces;

/// Where the skills of a session are found, at any moment of it.
#[derive(Clone)]
pub(crate) struct SkillFinder {
    pub(super) runtime: Runtime,
    guard: StoreGuard,
    settings: SkillSettings,
    frontend: Arc<dyn Frontend>,
    /// Root of the workspace, where what it brings may be loaded.
    root: Option<Arc<Root>>,
    /// Name of the workspace in the store.
    pub(super) workspace_key: String,
    /// Which of its texts were loaded when the invocation began.
    accepted: Accepted,
}

impl SkillFinder {
    pub(crate) fn of(app: &App) -> Self {
        let root = app.workspace.root.as_ref();
        Self {
            runtime: app.runtime.clone(),
            guard: app.guard.clone(),
            settings: app.settings.skills.clone(),
            frontend: Arc::clone(&app.frontend),
            root: root.and_then(|root| Root::open(root.path(), &app.guard).ok()).map(Arc::new),
            workspace_key: app.workspace.key.clone(),
            accepted: app.workspace.accepted.clone(),
        }
    }

    /// Skills within reach of a session, as they are at this moment.
    pub(super) async fn of_session(&self) -> Catalog {
        self.catalog(self.root.as_deref(), &self.accepted().await).await
    }

    /// Which texts of the workspace count at this moment.
    pub(super) async fn accepted(&self) -> Accepted {
        workspaces::accepted_by_now(&self.runtime.store, self.root.as_deref(), &self.accepted).await
    }

    /// Skills that a session may follow at this moment. It blocks.
    pub(crate) fn in_reach(&self) -> SkillsInReach {
        let skills = Handle::current().block_on(self.of_session()).skills;
        SkillsInReach {
            disabled: skills.iter().filter(|skill| skill.is_disabled).map(|skill| self.name(skill)).collect(),
            followable: self.followable(&skills),
        }
    }

    /// Skills, of these, that may be followed.
    pub(super) fn followable(&self, skills: &[Skill]) -> Vec<SessionSkill> {
        let offered = skills.iter().filter(|skill| skill.is_eligible());
        offered.map(|skill| self.followed(skill)).collect()
    }

    /// A skill as it is followed.
    pub(super) fn followed(&self, skill: &Skill) -> SessionSkill {
        let (variables, missing_variables) = self.variables(skill);
        SessionSkill {
            name: self.name(skill),
            file: skill.path.to_string_lossy().into_owned(),
            other_file: self.other_file(skill),
            description: self.runtime.masker.mask_entering(&skill.file.description).text.into_owned(),
            is_of_workspace: skill.source.is_of_workspace(),
            for_model: skill.file.for_model,
            allowed: skill.file.allowed_tools.clone().map(AllowedTools::new),
            variables,
            missing_variables,
        }
    }

    /// The file that a skill has another text than, or that had this one in an earlier list.
    pub(super) fn other_file(&self, skill: &Skill) -> Option<String> {
        let path = match (&skill.stands_in_for, &skill.refusal) {
            (Some(path), _) => path.clone(),
            (None, Some(_)) => skill.path.clone(),
            // A list of the time when its accepted text stood in for it names that.
            (None, None) if skill.path.is_relative() => stand_in(self, &skill.path)?,
            (None, None) => return None,
        };
        Some(self.masked(&path.to_string_lossy()))
    }

    fn name(&self, skill: &Skill) -> String {
        self.masked(&skill.file.name)
    }

    fn masked(&self, text: &str) -> String {
        self.runtime.masker.mask(text).text.into_owned()
    }

    /// Variables that its commands get: those that the owner lists, where the skill is theirs and their values are masked;
    /// and the others, each with the reason.
    fn variables(&self, skill: &Skill) -> (BTreeMap<String, String>, Vec<String>) {
        let (mut found, mut missing) = (BTreeMap::new(), Vec::new());
        for name in self.settings.variables.get(&skill.file.name).into_iter().flatten() {
            let mut left_out = |why: &str| missing.push(format!("{name}: {why}"));
            match std::env::var(name) {
                _ if skill.source.is_of_workspace() => {
                    left_out("it is a skill of the workspace; `drawloom skills add` makes it yours");
                }
                Ok(value) if !value.is_empty() && self.masked(&value) != value => {
                    found.insert(name.clone(), value);
                }
                Ok(value) if !value.is_empty() => left_out("its value is too short to be masked"),
                _ => left_out("it is not set"),
            }
        }
        (found, missing)
    }

    /// All skills within reach. A text of the workspace counts where it is accepted; one that is known to come from outside
    /// counts where the owner was shown it.
    pub(super) async fn catalog(&self, workspace: Option<&Root>, accepted: &Accepted) -> Catalog {
        let (found, unjudged) = self.taken_in(workspace, accepted);
        if unjudged.is_empty() {
            return found;
        }
        let outside = self.outside(&unjudged).await;
        if outside.is_empty() {
            return found;
        }
        let home = self.runtime.home.root();
        self.read((workspace, accepted), &|text| {
            if was_shown(accepted, text) {
                return refusal(home, workspace, accepted, text);
            }
            let is_outside = outside.contains(&text.digest) || !unjudged.contains(&text.digest);
            is_outside.then(|| why_outside(text)).or_else(|| refusal(home, workspace, accepted, text))
        })
    }

    /// Digests of the texts among some that are known to come from outside, and that the owner was not shown.
    pub(super) async fn outside_texts(&self, accepted: &Accepted, texts: &[SkillText<'_>]) -> Vec<Digest> {
        let unjudged = texts.iter().filter(|text| !was_shown(accepted, **text)).map(|text| text.digest);
        self.outside(&unjudged.collect::<Vec<_>>()).await
    }

    /// Digests among some that are known to come from outside; all, where that cannot be said.
    async fn outside(&self, digests: &[Digest]) -> Vec<Digest> {
        if digests.is_empty() {
            return Vec::new();
        }
        let outside = self.runtime.store.outside_files(&Principal::Owner, digests.to_vec()).await;
        outside.unwrap_or_else(|error| {
            tracing::warn!(%error, "where texts come from is not known");
            digests.to_vec()
        })
    }

    /// Skills whose texts are accepted, and the digests of those that may be from outside.
    fn taken_in(&self, workspace: Option<&Root>, accepted: &Accepted) -> (Catalog, Vec<Digest>) {
        let home = self.runtime.home.root();
        let unjudged = RefCell::new(Vec::new());
        let found = self.read((workspace, accepted), &|text| {
            if !was_shown(accepted, text) {
                unjudged.borrow_mut().push(text.digest);
            }
            refusal(home, workspace, accepted, text)
        });
        (found, unjudged.into_inner())
    }

    fn read(
        &self,
        (workspace, accepted): (Option<&Root>, &Accepted),
        refuses: &dyn Fn(SkillText<'_>) -> Option<String>,
    ) -> Catalog {
        let home = &self.runtime.home;
        if home.scratch().is_none() {
            built_in::write_below(home.root(), &|line| self.frontend.note(line));
        }
        let sources = SkillSources {
            home: home.root(),
            settings: &self.settings,
            guard: &self.guard,
            masker: &self.runtime.masker,
            accepted: &|text| accepted_text(self, accepted, text),
        };
        sources.read(workspace, refuses)
    }
}

/// Whether the owner was shown a text of the workspace.
fn was_shown(accepted: &Accepted, text: SkillText<'_>) -> bool {
    text.is_of_workspace && *accepted != Accepted::All && accepted.takes(text.path, text.digest)
}
