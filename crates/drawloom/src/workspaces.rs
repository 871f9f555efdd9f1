//! Which workspace a call is in, and whether what it brings is loaded (spec: security §4, cli §1).
//!
//! A folder that was discovered is loaded once the owner said so, as it was then. At a terminal that is one
//! question; elsewhere the answer is no, and a notice says what would change it.

use std::path::Path;

use commands::CommandError;
use commands::app::Workspace;
use commands::shell::quoted;
use commands::workspaces::{InspectedFolder, answer_about, answered, difference, keep, open_closed};
use loom::Millis;
use store::{Principal, Store, StoreError};
use text::bytes::size;
use text::mask::Masker;
use text::terminal::one_line;
use workspace::discovery::check_writable_root;
use workspace::trust::{
    Accepted, InventoryChange, KEPT_BYTES, TrustAnswer, TrustDecision, TrustRecord, UntrustedReason,
    WorkspaceId, WorkspaceOrigin, decide,
};
use workspace::{FileError, FileProblem, Root, StoreGuard, canonical};

use crate::paths::{ChosenWorkspace, InvocationPaths};
use crate::render::inventory;
use crate::terminal::{Terminal, columns};

/// The workspace of a call that loads nothing of it.
///
/// # Errors
/// When the folder that was written out is none.
pub(crate) fn locate(paths: &InvocationPaths) -> Result<Workspace, CommandError> {
    Ok(at(paths, &paths.workspace()?))
}

fn at(paths: &InvocationPaths, chosen: &ChosenWorkspace) -> Workspace {
    Workspace {
        key: paths.key(chosen),
        folder: Some(chosen.folder.clone()),
        arrival: Some(paths.arrival(chosen)),
        root: None,
        accepted: Accepted::default(),
        surroundings: Some(paths.surroundings()),
        advice: Some(match &chosen.git_top {
            Some(git_top) => in_repository(git_top),
            None => in_plain_folder(paths),
        }),
    }
}

/// How to work in a git repository that is no workspace; its top is named, as the working directory may be below it.
pub(crate) fn in_repository(git_top: &Path) -> String {
    let trust = format!("drawloom workspace trust {}", quoted(&git_top.to_string_lossy()));
    format!("`--workspace .` works in the folder you are in, and `{trust}` makes the repository found")
}

/// How to work where no git repository is; what may be no workspace is not recommended.
fn in_plain_folder(paths: &InvocationPaths) -> String {
    let here = std::env::current_dir().ok();
    let may_be =
        here.is_some_and(|here| check_writable_root(&canonical(&here), &paths.surroundings()).is_ok());
    let advice = match may_be {
        true => "`--workspace .` works in this folder, and an AGENTS.md in it makes it one",
        false => "`--workspace DIR` works in a folder of its own",
    };
    advice.to_owned()
}

/// What is done about a git work tree that is no workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RepositoryChoice {
    Works,
    /// Passed over: its owner said no, now or before, or it cannot be a workspace.
    Passed,
    /// A notice says how to work there.
    Told,
}

/// The paths of a call, with what its owner chose.
///
/// # Errors
/// As the store says.
pub(crate) async fn with_choice(
    paths: &InvocationPaths,
    store: &Store,
) -> Result<InvocationPaths, StoreError> {
    let chosen = paths.workspace().ok().and_then(|chosen| chosen.git_top);
    let Some(git_top) = chosen else { return Ok(paths.clone()) };
    let answer = answer_about(store, &Principal::Owner, &git_top).await?;
    Ok(if answer == Some(TrustAnswer::Trust) { paths.choosing(git_top) } else { paths.clone() })
}

/// By what a workspace is loaded.
pub(crate) struct WorkspaceLoading<'a> {
    pub(crate) home: &'a Path,
    pub(crate) guard: &'a StoreGuard,
    pub(crate) store: &'a Store,
    pub(crate) masker: &'a Masker,
    pub(crate) now: Millis,
    /// Who is asked where nothing was said yet.
    pub(crate) person: &'a Terminal,
}

impl WorkspaceLoading<'_> {
    /// The workspace of a call, loaded if it may be, and the paths with what its owner chose. With `offers` the git work tree
    /// around is offered where it is none.
    ///
    /// # Errors
    /// When the folder that was written out cannot be a workspace, or the store fails.
    pub(crate) async fn load(
        &self,
        paths: &InvocationPaths,
        offers: bool,
    ) -> Result<(Workspace, InvocationPaths), CommandError> {
        let git_top = paths.workspace()?.git_top;
        let choice = match &git_top {
            Some(git_top) => self.choice(git_top, offers).await?,
            None => RepositoryChoice::Passed,
        };
        let works = git_top.filter(|_| choice == RepositoryChoice::Works);
        let paths = works.map_or_else(|| paths.clone(), |git_top| paths.choosing(git_top));
        let mut workspace = self.load_chosen(&paths).await?;
        workspace.advice.take_if(|_| choice == RepositoryChoice::Told);
        Ok((workspace, paths))
    }

    /// What the owner chooses, asked now, about a git work tree that is no workspace.
    async fn choice(&self, git_top: &Path, offers: bool) -> Result<RepositoryChoice, CommandError> {
        let Ok(root) = Root::open(git_top, self.guard) else { return Ok(RepositoryChoice::Passed) };
        let id = WorkspaceId::of(&root);
        if answered(self.store, &Principal::Owner, &id).await?.is_some_and(|said| said.id == id) {
            return Ok(RepositoryChoice::Passed);
        }
        let shown = one_line(&git_top.to_string_lossy()).into_owned();
        let told = || {
            let advice = in_repository(git_top);
            self.person.notice(&format!("nothing is read from the git repository {shown}: {advice}"));
            Ok(RepositoryChoice::Told)
        };
        if !offers {
            return told();
        }
        let looked = InspectedFolder::of(root);
        let mut lines = vec![format!(
            "{shown} is a git repository and no workspace. Work in it? Tools may read and change its files then, as policy \
             says; no file is written by a yes."
        )];
        if !looked.inventory.is_empty() {
            lines.push("It would load:".to_owned());
            lines.extend(listed(&looked));
        }
        // Where nobody works yet, the two need to be told which folder is meant.
        let named = shlex::try_quote(&shown).unwrap_or_default().into_owned();
        lines.push(format!(
            "The answer is kept; `drawloom workspace trust {named}` and `untrust {named}` change it."
        ));
        let Some(yes) = self.person.answer(&lines, "Work there?") else { return told() };
        self.keep(&looked, if yes { TrustAnswer::Trust } else { TrustAnswer::Distrust }).await;
        Ok(if yes { RepositoryChoice::Works } else { RepositoryChoice::Passed })
    }

    async fn keep(&self, looked: &InspectedFolder, answer: TrustAnswer) {
        let keeping = (self.store, self.masker);
        if let Err(error) =
            keep(keeping, &Principal::Owner, (&looked.id, looked.inventory.clone()), answer, self.now).await
        {
            self.person.notice(&format!("the answer counts for this call; it could not be kept: {error}"));
        }
    }

    async fn load_chosen(&self, paths: &InvocationPaths) -> Result<Workspace, CommandError> {
        let chosen = paths.workspace()?;
        let (guard, store, person) = (self.guard, self.store, self.person);
        let arrival = paths.arrival(&chosen);
        if arrival == WorkspaceOrigin::Named
            && let Some(refused) = paths.refused_as_root(&chosen)
        {
            return Err(CommandError::refused(
                "bad_workspace",
                format!("{} cannot be a workspace: {refused}", shown(&chosen)),
                "name a folder of its own with --workspace",
            ));
        }
        let workspace = at(paths, &chosen);
        if arrival == WorkspaceOrigin::HomesOwn && chosen.passed_over {
            person.notice(&format!("no workspace is loaded from here: {}", one_line(&chosen.why)));
        }
        let mut looked = InspectedFolder::at(&chosen.folder, guard);
        if let Err(FileError { problem: FileProblem::PermissionDenied, .. }) = &looked
            && let Some(told) = open_closed(self.home, guard, &chosen.folder)
        {
            person.notice(&told);
            looked = InspectedFolder::at(&chosen.folder, guard);
        }
        let looked = match looked {
            Ok(looked) => looked,
            // The home's own workspace is made when something is put there.
            Err(_) if arrival == WorkspaceOrigin::HomesOwn => return Ok(workspace),
            Err(error) => {
                let hint = "check the folder, or name another one with --workspace";
                return Err(CommandError::new("workspace", 2, error.to_string(), hint));
            }
        };
        let record = answered(store, &Principal::Owner, &looked.id).await?;
        let prompt = TrustPrompt { chosen: &chosen, looked: &looked, masker: self.masker, person };
        let said = match decide(&looked.id, &looked.inventory, arrival, record.as_ref()) {
            TrustDecision::Untrusted(UntrustedReason::Distrusted) => TrustReply::Before(false),
            TrustDecision::Untrusted(reason) => prompt.first(reason),
            TrustDecision::Trusted if arrival == WorkspaceOrigin::Discovered => prompt.again(record.as_ref()),
            TrustDecision::Trusted | TrustDecision::NothingToLoad | TrustDecision::NamedForThisCall => {
                TrustReply::Before(true)
            }
        };
        if let TrustReply::Now(answer) = said {
            self.keep(&looked, answer).await;
        }
        match said {
            TrustReply::Now(TrustAnswer::Trust) => {
                let accepted = Accepted::Seen(looked.inventory);
                Ok(Workspace { root: Some(looked.root), accepted, ..workspace })
            }
            TrustReply::Before(true) => {
                let accepted = Accepted::of(&looked.id, arrival, record.as_ref());
                Ok(Workspace { root: Some(looked.root), accepted, ..workspace })
            }
            TrustReply::Now(TrustAnswer::Distrust) | TrustReply::Before(false) => Ok(workspace),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrustReply {
    /// Just now: to be kept.
    Now(TrustAnswer),
    /// Before, or nothing that is kept: whether it is loaded.
    Before(bool),
}

struct TrustPrompt<'a> {
    chosen: &'a ChosenWorkspace,
    looked: &'a InspectedFolder,
    masker: &'a Masker,
    person: &'a Terminal,
}

impl TrustPrompt<'_> {
    /// About a folder nothing was said of.
    fn first(&self, reason: UntrustedReason) -> TrustReply {
        let mut lines = vec![format!("{} is a workspace. It would load:", shown(self.chosen))];
        lines.extend(listed(self.looked));
        if reason != UntrustedReason::NeverAsked {
            lines.push(format!("You are asked because {reason}."));
        }
        lines.push("A no leaves all of it out; tools work in the folder with either answer.".to_owned());
        lines.push(KEPT.to_owned());
        match self.person.answer(&lines, "Load it?") {
            Some(true) => TrustReply::Now(TrustAnswer::Trust),
            Some(false) => TrustReply::Now(TrustAnswer::Distrust),
            None => {
                self.person.notice(&format!(
                    "{} is not loaded: {reason}; name it with --workspace to load it for this call, or trust it with \
                     `drawloom workspace trust`",
                    shown(self.chosen)
                ));
                TrustReply::Before(false)
            }
        }
    }

    /// About instructions and skills that came or changed since. Those that are not accepted are left out; the rest is loaded.
    fn again(&self, record: Option<&TrustRecord>) -> TrustReply {
        let Some(record) = record else { return TrustReply::Before(true) };
        let unseen = self.looked.inventory.unseen_texts(&record.inventory);
        if unseen.is_empty() {
            return TrustReply::Before(true);
        }
        let changes = self.looked.inventory.changes_since(&record.inventory);
        let mut lines = vec![format!("{} changed since you trusted it:", shown(self.chosen))];
        lines.extend(changes.iter().map(|change| format!("  {}", self.in_a_line(record, change))));
        for path in unseen.iter().map(InventoryChange::path) {
            match difference(self.looked, record, path, self.masker) {
                Some(difference) => lines.extend(difference.lines().map(str::to_owned)),
                None => lines.push(format!(
                    "The difference of {} cannot be shown: no text over {} is kept. Read the file before you answer.",
                    one_line(&path.to_string_lossy()),
                    size(KEPT_BYTES as u64)
                )),
            }
        }
        match self.person.answer(&lines, "Load it with these changes?") {
            Some(true) => TrustReply::Now(TrustAnswer::Trust),
            Some(false) | None => TrustReply::Before(true),
        }
    }

    /// A change in a line, with the sizes before and after.
    fn in_a_line(&self, record: &TrustRecord, change: &InventoryChange) -> String {
        let (word, path) = match change {
            InventoryChange::Added(path) => ("new", path),
            InventoryChange::Changed(path) => ("changed", path),
            InventoryChange::Removed(path) => ("gone", path),
        };
        let bytes = |items: &[workspace::trust::InventoryItem]| {
            items.iter().find(|item| item.path == *path).map(|item| size(item.bytes))
        };
        let (before, now) = (bytes(&record.inventory.items), bytes(&self.looked.inventory.items));
        let sizes = match (before, now) {
            (Some(before), Some(now)) => format!(", {before} before, {now} now"),
            (None, Some(only)) | (Some(only), None) => format!(", {only}"),
            (None, None) => String::new(),
        };
        format!("{}  {word}{sizes}", one_line(&path.to_string_lossy()))
    }
}

const KEPT: &str = "The answer is kept; `drawloom workspace trust` and `untrust` change it.";

/// What a folder would load, a line each.
fn listed(looked: &InspectedFolder) -> Vec<String> {
    inventory(&looked.inventory, &[], columns()).into_iter().map(|line| format!("  {line}")).collect()
}

fn shown(chosen: &ChosenWorkspace) -> String {
    one_line(&chosen.folder.to_string_lossy()).into_owned()
}
