//! Skills within reach of a call: where they stand, which texts count, and what a session is told of them.

use std::path::{Path, PathBuf};

use context::{RefusedSkill, SkillEntry, SkillsIndex};
use loom::{Digest, Trust};
use skills::{AcceptedText, Catalog, CatalogRules, Machine, Skill, SkillSource, SkillSourceKind, SkillText};
use text::mask::Masker;
use text::terminal::one_line;
use tools::SessionSkill;
use workspace::trust::{Accepted, ItemKind};
use workspace::{FurtherRoot, Root, RootAccess, StoreGuard};

use super::accepted_texts::remove_unused;
use super::finder::SkillFinder;
use super::{masked, path_shown};
use crate::app::App;
use crate::error::CommandError;
use crate::judged_workspace::{JudgedWorkspace, why_not_taken};
use crate::rights::Asker;
use crate::settings::SkillSettings;
use crate::shell::quoted;
use crate::walls::{program_of_owner, user_home};
use crate::workspaces::InspectedFolder;

/// What a session has of skills, as they were when it was opened.
#[derive(Default)]
pub(crate) struct SkillsOfSession {
    /// What its model is told of; none where there is nothing.
    pub(crate) index: Option<SkillsIndex>,
    /// Folders of offered skills beside the workspace, which file tools read.
    pub(crate) folders: Vec<FurtherRoot>,
    /// Names of those that are offered.
    pub(crate) names: Vec<String>,
    /// Skills that may be followed.
    pub(crate) followable: Vec<SessionSkill>,
    /// Finds those of a later moment; none where the session has none.
    pub(crate) finder: Option<SkillFinder>,
    /// Files that are not taken, as an earlier list may name them.
    pub(crate) refused: Vec<RefusedSkill>,
}

impl SkillsOfSession {
    /// Looks at the skills within reach, and says what was not looked at or not taken.
    pub(crate) async fn read(app: &App) -> Self {
        let finder = SkillFinder::of(app);
        let accepted = finder.accepted().await;
        let Catalog { skills, refused } = finder.catalog(app.workspace.root.as_ref(), &accepted).await;
        // Of a workspace that was named all texts count, and what stands in for others is not known.
        if accepted != Accepted::All {
            let stand_ins = skills.iter().filter(|skill| skill.stands_in_for.is_some());
            remove_unused(&finder, &stand_ins.map(|skill| &*skill.path).collect::<Vec<_>>());
        }
        let beside = skills.iter().filter(|skill| skill.is_eligible() && skill.path.is_absolute());
        let folder = |skill: &Skill| FurtherRoot { path: skill.folder.clone(), access: RootAccess::ReadOnly };
        let refused_skills = skills.iter().filter_map(|skill| refused_skill(&finder, app, skill)).collect();
        let places = refused.iter().map(|place| (&place.path, &place.why));
        // That a copy for other programs is none of ours was wanted.
        let switched_on = skills.iter().filter(|skill| !skill.is_disabled && !skill.file.is_own_copy);
        let told = switched_on.filter_map(|skill| Some((&skill.path, skill.refusal.as_ref()?)));
        for (path, why) in places.chain(told) {
            app.frontend.note(&format!(
                "{} is left out: {}",
                one_line(&path_shown(app, path)),
                one_line(&masked(app, why))
            ));
        }
        for skill in skills.iter().filter(|skill| skill.is_eligible()) {
            if let Some(path) = &skill.stands_in_for {
                app.frontend.note(&changed_since(app, skill, path));
            }
        }
        Self {
            names: names(app, &skills),
            followable: finder.followable(&skills),
            finder: Some(finder),
            folders: beside.map(folder).collect(),
            index: index(&app.runtime.masker, &skills),
            refused: refused_skills,
        }
    }
}

/// A file that is not taken, with the one that stands in for it.
fn refused_skill(finder: &SkillFinder, app: &App, skill: &Skill) -> Option<RefusedSkill> {
    let accepted = skill.is_eligible().then(|| path_shown(app, &skill.path));
    Some(RefusedSkill { path: finder.other_file(skill)?, accepted })
}

/// What is said of a skill whose file has another text than the accepted one.
pub(super) fn changed_since(app: &App, skill: &Skill, path: &Path) -> String {
    format!(
        "{} changed since you trusted the workspace, and the text that you accepted is used: `drawloom skills show {}` shows \
         the difference, `drawloom workspace trust` accepts it",
        one_line(&path_shown(app, path)),
        quoted(&masked(app, &skill.file.name))
    )
}

/// Names of skills that a message may name.
pub(crate) async fn names_within_reach(app: &App) -> Vec<String> {
    names(app, &of_session(app).await.skills)
}

fn names(app: &App, skills: &[Skill]) -> Vec<String> {
    skills.iter().filter(|skill| skill.is_eligible()).map(|skill| masked(app, &skill.file.name)).collect()
}

/// What models are told of skills; none where there is none to tell of.
pub fn index(masker: &Masker, skills: &[Skill]) -> Option<SkillsIndex> {
    let told = skills.iter().filter(|skill| skill.is_eligible() && skill.file.for_model);
    let entry = |skill: &Skill| SkillEntry {
        name: masker.mask(&skill.file.name).text.into_owned(),
        description: masker.mask_entering(&skill.file.description).text.into_owned(),
        path: skill.path.to_string_lossy().into_owned(),
    };
    let is_of_workspace = told.clone().any(|skill| skill.source.is_of_workspace());
    let entries: Vec<SkillEntry> = told.map(entry).collect();
    let trust = if is_of_workspace { Trust::Workspace } else { Trust::Owner };
    (!entries.is_empty()).then_some(SkillsIndex { entries, trust })
}

/// Skills within reach of a session, as they are at this moment.
pub(super) async fn of_session(app: &App) -> Catalog {
    SkillFinder::of(app).of_session().await
}

/// Skills within reach where nothing of a workspace is loaded: by what the owner said of it before.
pub(super) async fn as_judged_now(app: &App, asker: &Asker) -> Result<Catalog, CommandError> {
    Ok(judged_now(app, asker).await?.0)
}

/// [`as_judged_now`], with the workspace that is loaded and its accepted texts.
pub(super) async fn judged_now(
    app: &App,
    asker: &Asker,
) -> Result<(Catalog, Option<(Root, Accepted)>), CommandError> {
    let Some(JudgedWorkspace { looked, decision, accepted, .. }) = JudgedWorkspace::now(app, asker).await?
    else {
        return Ok((SkillFinder::of(app).catalog(None, &Accepted::default()).await, None));
    };
    let InspectedFolder { root, id, inventory } = looked;
    let off = inventory.items.iter().filter(|item| item.kind == ItemKind::Skill).count();
    if !decision.loads() && off > 0 {
        let (skills, them) = if off == 1 { ("1 skill", "it") } else { (&*format!("{off} skills"), "them") };
        let folder = quoted(&id.path.to_string_lossy());
        app.frontend.note(&format!(
            "{skills} of the workspace not read ({decision}): `drawloom skills check` checks {them}, `drawloom workspace \
             trust {folder}` has {them} read from now on"
        ));
    }
    let root = decision.loads().then_some(root);
    let catalog = SkillFinder::of(app).catalog(root.as_ref(), &accepted).await;
    Ok((catalog, root.map(|root| (root, accepted))))
}

/// Digests of the texts among some that are known to come from outside, and that the owner was not shown.
pub(crate) async fn outside_texts(app: &App, accepted: &Accepted, texts: &[SkillText<'_>]) -> Vec<Digest> {
    SkillFinder::of(app).outside_texts(accepted, texts).await
}

/// Why a text from outside is not taken.
pub(crate) fn why_outside(text: SkillText<'_>) -> String {
    let path = quoted(&text.path.to_string_lossy());
    format!(
        "it was written in sight of text from outside; read it, and `workspace accept {path}` counts it as yours"
    )
}

/// Why a text is not taken that may be of the workspace. `home` is Drawloom's.
pub fn refusal(
    home: &Path,
    workspace: Option<&Root>,
    accepted: &Accepted,
    text: SkillText<'_>,
) -> Option<String> {
    let root = workspace.filter(|_| text.is_of_workspace)?;
    why_not_taken(home, root, accepted, (text.path, text.digest))
}

/// Where skills are looked for, and what decides about them.
pub struct SkillSources<'a> {
    /// Drawloom's home.
    pub home: &'a Path,
    pub settings: &'a SkillSettings,
    pub guard: &'a StoreGuard,
    pub masker: &'a Masker,
    /// The accepted text in place of one that is not taken.
    pub accepted: &'a dyn Fn(SkillText<'_>) -> Option<AcceptedText>,
}

impl SkillSources<'_> {
    /// All skills within reach, with a workspace those that stand there.
    pub fn read(
        &self,
        workspace: Option<&Root>,
        refuses: &dyn Fn(SkillText<'_>) -> Option<String>,
    ) -> Catalog {
        let opened = |folder: &Path| Root::open(folder, self.guard).ok();
        let user = user_home().and_then(|home| opened(&home));
        let home = opened(self.home);
        let sources = [
            (SkillSourceKind::Workspace, workspace),
            (SkillSourceKind::WorkspaceAgents, workspace),
            (SkillSourceKind::UserAgents, user.as_ref()),
            (SkillSourceKind::Home, home.as_ref()),
        ];
        let sources: Vec<SkillSource<'_>> =
            sources.into_iter().filter_map(|(kind, root)| Some(SkillSource { kind, root: root? })).collect();
        let rules = CatalogRules {
            machine: &OwnersMachine,
            disabled: &self.settings.disabled,
            link_targets: &link_targets(self.settings),
            guard: self.guard,
            accepted: self.accepted,
            refuses: &|text| {
                // The path is what a model opens: with a mark in it, it leads nowhere.
                let path = text.path.to_string_lossy();
                let holds_secret = !self.masker.mask(&path).spans.is_empty();
                holds_secret.then(|| "its path holds a secret".to_owned()).or_else(|| refuses(text))
            },
        };
        Catalog::read(&sources, &rules)
    }
}

/// Folders that skills stand in, whether or not they are there.
pub(super) fn source_folders(app: &App) -> Vec<PathBuf> {
    let workspace = app.workspace.folder.clone();
    let user = user_home().map(|home| home.join(".agents/skills"));
    let of_workspace =
        workspace.iter().flat_map(|folder| [folder.join("skills"), folder.join(".agents/skills")]);
    of_workspace.chain(user).chain([app.runtime.home.root().join("skills")]).collect()
}

/// Folders that links to skills may lead to.
pub(super) fn link_targets(settings: &SkillSettings) -> Vec<PathBuf> {
    let home = user_home();
    let whole = |folder: &PathBuf| match (folder.strip_prefix("~"), &home) {
        (Ok(below), Some(home)) => home.join(below),
        _ => folder.clone(),
    };
    settings.link_targets.iter().map(whole).collect()
}

/// The machine with the programs and variables of the owner.
struct OwnersMachine;

impl Machine for OwnersMachine {
    fn has_program(&self, name: &str) -> bool {
        !name.contains('/') && program_of_owner(name).is_some()
    }

    fn has_variable(&self, name: &str) -> bool {
        std::env::var_os(name).is_some_and(|value| !value.is_empty())
    }
}
