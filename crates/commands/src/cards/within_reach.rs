//! Folders of cards within reach of a call, and which of them are read (spec: capabilities §2, security §4).

use std::path::{Path, PathBuf};

use capabilities::{
    CARD_FOLDER, CardFolder, CardSource, CardText, LoadingRules, RefusedPlace, Registry, card_files,
};
use workspace::discovery::{OnDisk, git_top};
use workspace::trust::{Accepted, WorkspaceOrigin};
use workspace::{RelativePath, Root, RootAccess};

use crate::app::App;
use crate::error::CommandError;
use crate::judged_workspace::{JudgedWorkspace, why_not_taken};
use crate::rights::Asker;
use crate::walls::{placed, user_home};
use crate::workspaces::InspectedFolder;

/// Folder of the user's cards below the home.
const USER_FOLDER: &str = "capabilities";

/// A folder of cards that is open.
pub(super) struct ReachedFolder {
    pub(super) source: CardSource,
    root: Root,
    folder: RelativePath,
    accepted: Accepted,
    /// Why its cards are not read; none where they are.
    pub(super) why_not: Option<String>,
}

impl ReachedFolder {
    fn as_folder(&self) -> CardFolder<'_> {
        CardFolder { source: self.source, root: &self.root, folder: self.folder.clone() }
    }

    /// The folder by its whole path.
    pub(super) fn path(&self) -> PathBuf {
        self.root.path().join(self.folder.as_path())
    }

    /// Files of cards as they are shown, none of which is read, and places that are not looked at.
    pub(super) fn files(&self) -> (Vec<PathBuf>, Vec<RefusedPlace>) {
        match card_files(&self.as_folder()) {
            Ok((files, places)) => (files.iter().map(|path| self.root.shown(path)).collect(), places),
            Err(refused) => (Vec::new(), vec![refused]),
        }
    }

    /// All cards of it, whoever accepted them.
    pub(super) fn checked(&self) -> Registry {
        Registry::read(&[self.as_folder()], &LoadingRules { refuses: &|_| None })
    }
}

/// Folders of cards, whether or not they are read.
pub(super) struct CardFolders {
    pub(super) folders: Vec<ReachedFolder>,
    /// Folders that are named and cannot be opened.
    pub(super) unopened: Vec<RefusedPlace>,
}

impl CardFolders {
    /// # Errors
    /// As the store says.
    pub(super) async fn of(app: &App, asker: &Asker) -> Result<Self, CommandError> {
        let mut found = Self { folders: Vec::new(), unopened: Vec::new() };
        if let Some(judged) = JudgedWorkspace::now(app, asker).await? {
            found.repo(app, &judged);
            found.of_workspace(app, &judged);
        }
        found.of_user(app);
        Ok(found)
    }

    /// All cards that are read.
    pub(super) fn registry(&self, app: &App) -> Registry {
        let read: Vec<&ReachedFolder> =
            self.folders.iter().filter(|folder| folder.why_not.is_none()).collect();
        let refuses = |text: CardText<'_>| {
            let of_text = |folder: &&&ReachedFolder| std::ptr::eq(&folder.root, text.root);
            let folder = read.iter().find(of_text)?;
            let home = app.runtime.home.root();
            why_not_taken(home, &folder.root, &folder.accepted, (text.below_root.as_path(), text.digest))
        };
        let folders: Vec<CardFolder<'_>> = read.iter().map(|folder| folder.as_folder()).collect();
        Registry::read(&folders, &LoadingRules { refuses: &refuses })
    }

    fn repo(&mut self, app: &App, judged: &JudgedWorkspace) {
        let JudgedWorkspace { looked: InspectedFolder { root: workspace, .. }, arrival, accepted, .. } =
            judged;
        let place = repo_of(app, workspace.path());
        let is_workspace = place == workspace.path();
        let accepted = if is_workspace { accepted.clone() } else { Accepted::All };
        let is_named = app.settings.cards.repo.is_some();
        let is_around = !is_named && !is_workspace && *arrival == WorkspaceOrigin::Discovered;
        let of_repo = || {
            is_around.then(|| {
                "you trusted the workspace, and not the repository around it: capabilities.repo names it"
                    .to_owned()
            })
        };
        let why_not = not_loaded(judged).or_else(of_repo);
        self.open(app, (CardSource::Repo, &place, CARD_FOLDER), (accepted, why_not), is_workspace);
    }

    fn of_workspace(&mut self, app: &App, judged: &JudgedWorkspace) {
        let settings = &app.settings.cards;
        let JudgedWorkspace { looked: InspectedFolder { root, .. }, arrival, .. } = judged;
        for folder in &settings.folders {
            let not_allowed = || {
                let why = "`drawloom config set capabilities.allow_workspace_cards true` has them read";
                (!settings.allow_workspace_cards).then(|| why.to_owned())
            };
            // What such a workspace would load is shown to its owner without these folders.
            let not_shown = || {
                let why =
                    "cards outside of docs/capabilities are read where the workspace is named by --workspace";
                (*arrival == WorkspaceOrigin::Discovered).then(|| why.to_owned())
            };
            let why_not = not_loaded(judged).or_else(not_allowed).or_else(not_shown);
            let place = (CardSource::Workspace, root.path(), folder.as_str());
            self.open(app, place, (Accepted::All, why_not), true);
        }
    }

    fn of_user(&mut self, app: &App) {
        let why = "`drawloom config set capabilities.allow_user_capabilities true` has them read";
        let why_not = (!app.settings.cards.allow_user_capabilities).then(|| why.to_owned());
        let place = (CardSource::User, app.runtime.home.root(), USER_FOLDER);
        self.open(app, place, (Accepted::All, why_not), false);
    }

    fn open(
        &mut self,
        app: &App,
        (source, place, folder): (CardSource, &Path, &str),
        (accepted, why_not): (Accepted, Option<String>),
        is_workspace: bool,
    ) {
        let opened = Root::open(place, &app.guard).map_err(|error| error.problem.to_string());
        let folder = RelativePath::parse(folder).map_err(|problem| problem.to_string());
        match opened.and_then(|root| Ok((root, folder?))) {
            Ok((root, folder)) => {
                let root = if is_workspace { root } else { root.as_further(RootAccess::ReadOnly) };
                let reached = ReachedFolder { source, root, folder, accepted, why_not };
                // A folder that is named twice is read once.
                if self.folders.iter().all(|other| other.path() != reached.path()) {
                    self.folders.push(reached);
                }
            }
            Err(why) => self.unopened.push(RefusedPlace { path: place.to_owned(), why }),
        }
    }
}

/// Top of the repository that holds a workspace, as its owner named it or as git has it; the workspace where none does.
pub(super) fn repo_of(app: &App, workspace: &Path) -> PathBuf {
    if let Some(named) = &app.settings.cards.repo {
        return placed(named, user_home().as_deref());
    }
    let surroundings = app.workspace.surroundings.as_ref();
    let top = surroundings.and_then(|surroundings| git_top(workspace, surroundings, &OnDisk));
    top.unwrap_or_else(|| workspace.to_owned())
}

/// Why nothing of a workspace is read.
fn not_loaded(judged: &JudgedWorkspace) -> Option<String> {
    let decision = judged.decision;
    (!decision.loads())
        .then(|| format!("the workspace is {decision}: `drawloom workspace trust` has them read"))
}
