//! Where this invocation works: the home, and the workspace with the reason it was chosen.
//!
//! Nothing here makes a folder. Paths are made canonical where they exist, because discovery and its refusals
//! compare paths (spec: cli §1, *Workspace discovery*).

use std::env;
use std::path::{Path, PathBuf};

use commands::CommandError;
use text::terminal::one_line;
use workspace::discovery::{
    Discovered, DiscoveryContext, DiscoveryReason, MARKERS, OnDisk, check_writable_root, discover,
};
use workspace::trust::WorkspaceOrigin;
use workspace::{StoreGuard, canonical};

/// The folders of an invocation.
#[derive(Debug, Clone)]
pub(crate) struct InvocationPaths {
    /// The home; it need not exist.
    pub(crate) home: PathBuf,
    given: Option<PathBuf>,
    /// The git work tree in which its owner chose to work, if it is the one around the working directory.
    chosen_git: Option<PathBuf>,
}

/// A workspace and how it came to be that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChosenWorkspace {
    pub(crate) folder: PathBuf,
    pub(crate) why: String,
    /// Whether something on the way looks like a workspace and was not taken.
    pub(crate) passed_over: bool,
    /// Top of the git work tree around the working directory, where that is no workspace.
    pub(crate) git_top: Option<PathBuf>,
}

impl InvocationPaths {
    /// From `--home` and `--workspace`, the environment and the working directory.
    ///
    /// # Errors
    /// When there is no way to tell where the home is.
    pub(crate) fn of(home: Option<PathBuf>, workspace: Option<PathBuf>) -> Result<Self, CommandError> {
        let named = home.or_else(|| env::var_os("DRAWLOOM_HOME").map(PathBuf::from));
        let home = match named {
            Some(home) if home.as_os_str().is_empty() => {
                return Err(crate::open::home_error(&store::home::HomeError::Empty));
            }
            Some(home) => home,
            None => user_home().map(|home| home.join(".drawloom")).ok_or_else(|| {
                CommandError::usage("there is no place for the home: HOME is not set", "give --home DIR")
            })?,
        };
        let home =
            std::path::absolute(&home).map_err(|error| CommandError::file("cannot find", &home, &error))?;
        Ok(Self { home: canonical(&home), given: workspace, chosen_git: None })
    }

    /// Paths of an invocation whose owner chose to work in this git work tree.
    pub(crate) fn choosing(&self, git_top: PathBuf) -> Self {
        Self { chosen_git: Some(git_top), ..self.clone() }
    }

    /// The files of the home's store, which nothing but the store may open.
    ///
    /// # Errors
    /// When the home is there and cannot be entered.
    pub(crate) fn guard(&self) -> Result<StoreGuard, CommandError> {
        StoreGuard::of(&self.home.join(store::home::DATABASE))
            .map_err(|error| CommandError::file("cannot look into", &self.home, &error))
    }

    /// Paths with the working directory as the workspace where there is none.
    pub(crate) fn or_here(self) -> Self {
        let has_none = self.given.is_none() && self.workspace().is_ok_and(|found| !found.folder.is_dir());
        if has_none { Self { given: Some(PathBuf::from(".")), ..self } } else { self }
    }

    /// The workspace: the one written out, or the one discovered from the working directory.
    ///
    /// # Errors
    /// When the folder given is none, or there is no working directory.
    pub(crate) fn workspace(&self) -> Result<ChosenWorkspace, CommandError> {
        let surroundings = self.surroundings();
        let Some(given) = &self.given else {
            let here = env::current_dir().and_then(|here| here.canonicalize());
            let here = here.map_err(|error| no_working_directory(&error))?;
            let found = discover(&here, &surroundings, &OnDisk);
            let is_chosen = found.git_top.is_some() && found.git_top == self.chosen_git;
            let found = if is_chosen { found.in_git_top() } else { found };
            let whole = found.to_string();
            let why = whole.strip_prefix(&format!("{}: ", found.folder.display())).unwrap_or(&whole);
            let passed_over = passed_over(&found);
            // What lies in the home's own workspace belongs to that.
            let own = self.home.join("workspace");
            let git_top = found.git_top.filter(|top| !top.starts_with(own));
            return Ok(ChosenWorkspace { why: why.to_owned(), folder: found.folder, passed_over, git_top });
        };
        let folder = given
            .canonicalize()
            .map_err(|error| CommandError::file("cannot open the workspace", given, &error))?;
        if !folder.is_dir() {
            let shown = one_line(&given.to_string_lossy()).into_owned();
            return Err(CommandError::usage(
                format!("{shown} is not a folder"),
                "give a folder with --workspace",
            ));
        }
        let mut why = "given with --workspace".to_owned();
        if let Err(refused) = check_writable_root(&folder, &surroundings) {
            why = format!("{why}; for reading only: {}", refused.stop);
        }
        Ok(ChosenWorkspace { folder, why, passed_over: false, git_top: None })
    }

    /// Name of a workspace in the store. That of the home's own stays when the home is moved or restored elsewhere.
    pub(crate) fn key(&self, chosen: &ChosenWorkspace) -> String {
        if chosen.folder == self.home.join("workspace") {
            store::OWN_WORKSPACE.to_owned()
        } else {
            chosen.folder.to_string_lossy().into_owned()
        }
    }

    /// How the workspace came to be chosen.
    pub(crate) fn arrival(&self, chosen: &ChosenWorkspace) -> WorkspaceOrigin {
        if self.given.is_some() {
            WorkspaceOrigin::Named
        } else if chosen.folder == self.home.join("workspace") {
            WorkspaceOrigin::HomesOwn
        } else {
            WorkspaceOrigin::Discovered
        }
    }

    /// Why files may not be written below it, if they may not.
    pub(crate) fn refused_as_root(&self, chosen: &ChosenWorkspace) -> Option<String> {
        let refused = check_writable_root(&chosen.folder, &self.surroundings()).err();
        refused.map(|refused| refused.stop.to_string())
    }

    /// By what it is judged which folders may be workspaces.
    pub(crate) fn surroundings(&self) -> DiscoveryContext {
        DiscoveryContext {
            home: self.home.clone(),
            user_home: user_home().map(|home| canonical(&home)),
            user: rustix::process::geteuid().as_raw(),
        }
    }
}

/// Whether discovery met a marker it did not take: in the folder where it ended, or of another user.
fn passed_over(found: &Discovered) -> bool {
    let marked = |folder: &Path| MARKERS.iter().any(|marker| folder.join(marker).symlink_metadata().is_ok());
    let ended = matches!(&found.because, DiscoveryReason::NothingBefore { folder, .. } if marked(folder));
    ended || !found.foreign_markers.is_empty()
}

/// The folder that the program was started in cannot be used.
pub(crate) fn no_working_directory(error: &std::io::Error) -> CommandError {
    let problem = match error.kind() {
        std::io::ErrorKind::NotFound => "it is not there any more".to_owned(),
        _ => error.to_string(),
    };
    let message = format!("the working directory cannot be used: {problem}");
    CommandError::new("not_found", 3, message, "go to a folder that is there, or name one with --workspace")
}

fn user_home() -> Option<PathBuf> {
    env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}
