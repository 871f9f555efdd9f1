//! Roots that a session's file tools may access.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::FileError;
use crate::guard::StoreGuard;
use crate::path::{PathProblem, RelativePath, check_text};
use crate::root::{Root, RootAccess};

/// The roots of a session: its workspace first, further folders by name after it, and last, where the owner lifted the
/// restriction, everything (spec: agent §4).
#[derive(Debug)]
pub struct AllowedRoots(Vec<Root>);

/// A folder that a session reaches beside its workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FurtherRoot {
    /// Canonical path of the folder.
    pub path: PathBuf,
    pub access: RootAccess,
}

/// A path and the root it lies beneath.
#[derive(Debug)]
pub struct RootedPath<'a> {
    /// The root to open it through.
    pub root: &'a Root,
    /// The path below that root.
    pub path: RelativePath,
}

/// Reason why a path lies beneath no root.
#[derive(Debug, thiserror::Error)]
pub enum RootLookupError {
    /// Tools are restricted, and there is no workspace to restrict them to.
    #[error("no workspace is configured: name one with --workspace DIR")]
    NotConfigured,
    #[error(transparent)]
    Path(#[from] PathProblem),
}

impl RootLookupError {
    /// Whether there are roots, and the path leads elsewhere.
    pub fn is_outside(&self) -> bool {
        matches!(self, Self::Path(PathProblem::Outside | PathProblem::Home))
    }
}

/// "Not configured" is of the not-found kind, so that callers of `std::io` see what they expect.
impl From<RootLookupError> for io::Error {
    fn from(error: RootLookupError) -> Self {
        let kind = match error {
            RootLookupError::NotConfigured => io::ErrorKind::NotFound,
            RootLookupError::Path(_) => io::ErrorKind::PermissionDenied,
        };
        Self::new(kind, error)
    }
}

impl FurtherRoot {
    /// Everything, where the owner lifted the restriction: file tools lead from it to each file that the user reaches.
    #[must_use]
    pub fn everything() -> Self {
        Self { path: PathBuf::from("/"), access: RootAccess::ReadWrite }
    }

    /// Whether it is everything.
    pub fn is_everything(&self) -> bool {
        self.path == Path::new("/")
    }

    /// Opens it. `closed` are folders that stay closed in everything, by canonical paths; of other folders none is within
    /// reach.
    ///
    /// # Errors
    /// If it does not exist or may not be entered.
    pub fn open(&self, guard: &StoreGuard, closed: &[PathBuf]) -> Result<Root, FileError> {
        let root = Root::open(&self.path, guard)?.as_further(self.access);
        Ok(if self.is_everything() { root.closing(closed.to_vec()) } else { root })
    }
}

impl AllowedRoots {
    /// Tools work beneath these roots alone. Relative paths are taken in the first; of two that hold an absolute one, the
    /// first counts.
    pub fn within(roots: Vec<Root>) -> Self {
        Self(roots)
    }

    /// All of them, the workspace first.
    pub fn all(&self) -> impl Iterator<Item = &Root> {
        self.0.iter()
    }

    /// Finds the root of a path as a tool was given it.
    ///
    /// # Errors
    /// [`RootLookupError::NotConfigured`] without any root; otherwise the named refusal of the path.
    pub fn place(&self, text: &str) -> Result<RootedPath<'_>, RootLookupError> {
        check_text(text)?;
        if !text.starts_with('/') {
            let workspace = self.0.first().filter(|root| !root.is_further());
            let root = workspace.ok_or(RootLookupError::NotConfigured)?;
            return Ok(RootedPath { root, path: RelativePath::parse(text)? });
        }
        let inside = self.all().find_map(|root| {
            let path = root.relative(Path::new(text)).ok()?;
            Some(RootedPath { root, path })
        });
        match inside {
            Some(place) => Ok(place),
            None if self.0.is_empty() => Err(RootLookupError::NotConfigured),
            None => Err(PathProblem::Outside.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// What a link above a root leads to may be another place once the call runs that was judged by it.
    #[test]
    fn a_name_by_a_link_above_a_root_is_none_of_it() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("real/ws")).unwrap();
        symlink("real", top.join("link")).unwrap();
        let roots = AllowedRoots::within(vec![Root::open(&top.join("real/ws"), &StoreGuard::new()).unwrap()]);
        let is_inside = |path: &str| roots.place(top.join(path).to_str().unwrap()).is_ok();
        assert!(is_inside("real/ws/file"), "the control");
        assert!(!is_inside("link/ws/file"));
    }
}
