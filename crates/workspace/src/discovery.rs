//! Discovery: finds the workspace of a folder, and says which folders may never be one.
//!
//! Taking the nearest `AGENTS.md` upward without end would let `/tmp/AGENTS.md` speak to everybody
//! below `/tmp`, and `~/AGENTS.md` make a whole home the writable root. So the walk ends at the
//! first folder that is not plainly one project of this user, and says where it ended and why
//! (spec: cli §1, security §4). A folder at which the walk ends is itself not taken.

use std::fmt;
use std::path::{Path, PathBuf};

mod disk;

pub use disk::OnDisk;

/// Marker files of a workspace, in order of precedence.
pub const MARKERS: [&str; 2] = [crate::settings::SETTINGS_PATH, "AGENTS.md"];

/// Context of a discovery: the user, and that user's home folders. All paths are canonical.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryContext {
    /// Drawloom's home, `~/.drawloom` unless named otherwise.
    pub home: PathBuf,
    /// The user's own home folder, if there is one.
    pub user_home: Option<PathBuf>,
    /// The user id the process acts as.
    pub user: u32,
}

/// Facts about one folder that discovery needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderFacts {
    /// User id of its owner.
    pub owner: u32,
    pub mode: u32,
    /// Whether another file system begins here.
    pub mount_point: bool,
    /// Whether it holds `.git`, as a folder or as the file of a work tree.
    pub git: bool,
    /// The markers it holds, each with the user id of its owner.
    pub markers: Vec<(&'static str, u32)>,
}

/// Source of facts about folders.
pub trait Facts {
    /// The facts of one folder.
    ///
    /// # Errors
    /// If it cannot be looked at; the walk then ends there.
    fn of(&self, folder: &Path) -> std::io::Result<FolderFacts>;
}

/// Reason why a walk ended without a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryStop {
    #[error("the root of the file system is never a workspace")]
    SystemRoot,
    #[error("your home folder is never a workspace")]
    UserHome,
    /// A folder that holds Drawloom's home.
    #[error("it contains Drawloom's home")]
    ContainsHome,
    /// Drawloom's home or something in it, other than `<home>/workspace`.
    #[error("it belongs to Drawloom's home")]
    InsideHome,
    /// `~/.agents/skills` or something in it, of which every workspace is told.
    #[error(
        "it holds skills of yours, of which every workspace is told: in ~/.agents they are written where you agree"
    )]
    OwnersSkills,
    /// The folder above a git work tree.
    #[error("it is above a git work tree")]
    AboveGit,
    /// Another file system begins here.
    #[error("it is a mount point")]
    MountPoint,
    #[error("it belongs to another user")]
    ForeignOwner,
    /// Anybody may put files here.
    #[error("anybody may write to it")]
    WorldWritable,
    /// The folder cannot be read.
    #[error("it cannot be read")]
    Unreadable,
}

/// Reason why a folder is the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoveryReason {
    Marker(&'static str),
    /// The folder is the top of a git work tree, and its owner chose to work in it.
    Chosen,
    /// No folder on the way held one; the walk ended at this folder for this reason.
    NothingBefore {
        /// The folder that was not taken.
        folder: PathBuf,
        stop: DiscoveryStop,
    },
}

/// The workspace of a folder, and why it is that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovered {
    pub folder: PathBuf,
    pub because: DiscoveryReason,
    /// Markers on the way that belong to other users and were therefore not taken.
    pub foreign_markers: Vec<PathBuf>,
    /// Top of the git work tree that was met, if no workspace was found.
    pub git_top: Option<PathBuf>,
}

impl Discovered {
    /// The result with the top of the git work tree that was met as the workspace, as its owner chose.
    #[must_use]
    pub fn in_git_top(self) -> Self {
        match self.git_top {
            Some(folder) => Self { folder, because: DiscoveryReason::Chosen, git_top: None, ..self },
            None => self,
        }
    }
}

/// For `config path`: the folder chosen and why, and what was passed over.
impl fmt::Display for Discovered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.because {
            DiscoveryReason::Marker(marker) => write!(out, "{}: holds {marker}", self.folder.display())?,
            DiscoveryReason::Chosen => {
                write!(out, "{}: a git repository in which you chose to work", self.folder.display())?;
            }
            DiscoveryReason::NothingBefore { folder, stop } => write!(
                out,
                "{}: no workspace was found before {} ({stop})",
                self.folder.display(),
                folder.display()
            )?,
        }
        for marker in &self.foreign_markers {
            write!(out, "; ignored {}: it belongs to another user", marker.display())?;
        }
        Ok(())
    }
}

/// Finds the workspace of `start` (canonical): the nearest folder upward with a marker, else
/// `<home>/workspace`.
pub fn discover(start: &Path, surroundings: &DiscoveryContext, facts: &impl Facts) -> Discovered {
    let mut foreign_markers = Vec::new();
    let mut git_top: Option<PathBuf> = None;
    for folder in start.ancestors() {
        let ended = |stop, foreign_markers, git_top| Discovered {
            folder: surroundings.home.join("workspace"),
            because: DiscoveryReason::NothingBefore { folder: folder.to_path_buf(), stop },
            foreign_markers,
            git_top,
        };
        if let Some(stop) = never(folder, surroundings) {
            return ended(stop, foreign_markers, git_top);
        }
        if git_top.is_some() {
            return ended(DiscoveryStop::AboveGit, foreign_markers, git_top);
        }
        let Ok(found) = facts.of(folder) else {
            return ended(DiscoveryStop::Unreadable, foreign_markers, None);
        };
        let foreign = |owner: u32| owner != surroundings.user;
        let strange = found.markers.iter().filter(|(_, owner)| foreign(*owner));
        foreign_markers.extend(strange.map(|(marker, _)| folder.join(marker)));
        let stop = match &found {
            found if foreign(found.owner) => Some(DiscoveryStop::ForeignOwner),
            found if found.mode & 0o002 != 0 => Some(DiscoveryStop::WorldWritable),
            found if found.mount_point => Some(DiscoveryStop::MountPoint),
            _ => None,
        };
        if let Some(stop) = stop {
            return ended(stop, foreign_markers, None);
        }
        if let Some((marker, _)) = found.markers.iter().find(|(_, owner)| !foreign(*owner)) {
            let because = DiscoveryReason::Marker(marker);
            return Discovered { folder: folder.to_path_buf(), because, foreign_markers, git_top: None };
        }
        git_top = found.git.then(|| folder.to_path_buf());
    }
    Discovered {
        folder: surroundings.home.join("workspace"),
        because: DiscoveryReason::NothingBefore {
            folder: start.to_path_buf(),
            stop: DiscoveryStop::SystemRoot,
        },
        foreign_markers,
        git_top: None,
    }
}

/// Top of the git work tree that holds a folder (canonical): the folder itself, or one above it that no rule of
/// [`discover`] keeps the walk from.
pub fn git_top(folder: &Path, surroundings: &DiscoveryContext, facts: &impl Facts) -> Option<PathBuf> {
    for (level, above) in folder.ancestors().enumerate() {
        let found = facts.of(above).ok()?;
        let is_strange = || {
            let is_open = found.owner != surroundings.user || found.mode & 0o002 != 0;
            is_open || never(above, surroundings).is_some()
        };
        // The folder itself was named, or judged before.
        if level > 0 && is_strange() {
            return None;
        }
        if found.git {
            return Some(above.to_path_buf());
        }
        if found.mount_point {
            return None;
        }
    }
    None
}

/// Whether a folder (canonical) may be a writable root, however it was named. Commands that only
/// read do not ask.
///
/// # Errors
/// `/`, the user's home, and folders that contain the user's or Drawloom's home; also folders in
/// Drawloom's home, where only `<home>/workspace` is one, and in `~/.agents/skills`.
pub fn check_writable_root(folder: &Path, surroundings: &DiscoveryContext) -> Result<(), RootRefused> {
    match never(folder, surroundings) {
        Some(stop) => Err(RootRefused { folder: folder.to_path_buf(), stop }),
        None => Ok(()),
    }
}

/// A folder that is refused as a writable root.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: not as a workspace that may be written: {stop}: name a folder of its own", folder.display())]
pub struct RootRefused {
    pub folder: PathBuf,
    pub stop: DiscoveryStop,
}

/// The rules that need no look at the disk.
fn never(folder: &Path, surroundings: &DiscoveryContext) -> Option<DiscoveryStop> {
    let DiscoveryContext { home, user_home, .. } = surroundings;
    let own_workspace = home.join("workspace");
    if folder.parent().is_none() {
        Some(DiscoveryStop::SystemRoot)
    } else if user_home.as_deref() == Some(folder) {
        Some(DiscoveryStop::UserHome)
    } else if folder.starts_with(home) && !folder.starts_with(&own_workspace) {
        Some(DiscoveryStop::InsideHome)
    } else if home.starts_with(folder) {
        Some(DiscoveryStop::ContainsHome)
    } else if user_home.as_ref().is_some_and(|user_home| user_home.starts_with(folder)) {
        Some(DiscoveryStop::UserHome)
    } else if user_home.as_ref().is_some_and(|user_home| folder.starts_with(user_home.join(".agents/skills")))
    {
        Some(DiscoveryStop::OwnersSkills)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
