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
        let text = Path::new(text);
        let inside = self.all().find_map(|root| {
            let path = root.relative(text).ok()?;
            Some(RootedPath { root, path })
        });
        match inside.or_else(|| self.entered(text)) {
            Some(place) => Ok(place),
            None if self.0.is_empty() => Err(RootLookupError::NotConfigured),
            None => Err(PathProblem::Outside.into()),
        }
    }

    /// The place of an absolute path that comes to a root through links above it, as in a shell that entered it by one.
    fn entered(&self, path: &Path) -> Option<RootedPath<'_>> {
        path.ancestors().find_map(|above| {
            let top = above.canonicalize().ok()?;
            let root = self.all().find(|root| root.path() == top && top != Path::new("/"))?;
            let path = RelativePath::from_components(path.strip_prefix(above).ok()?).ok()?;
            Some(RootedPath { root, path })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_that_enters_a_root_by_a_link_above_it_lies_in_it() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        for folder in ["real/ws/src", "real/other"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        symlink("real", top.join("link")).unwrap();
        symlink("real/ws", top.join("direct")).unwrap();
        symlink("../other", top.join("real/ws/out")).unwrap();
        let guard = StoreGuard::new();
        let roots = AllowedRoots::within(vec![Root::open(&top.join("real/ws"), &guard).unwrap()]);
        let place = |path: &str| {
            let path = top.join(path).to_str().unwrap().to_owned();
            roots.place(&path).ok().map(|place| place.path.as_path().to_owned())
        };
        assert_eq!(place("link/ws/src/new.rs"), Some(PathBuf::from("src/new.rs")));
        assert_eq!(place("direct"), Some(PathBuf::new()));
        assert_eq!(
            place("direct/out/file"),
            Some(PathBuf::from("out/file")),
            "a link below is judged as it is opened"
        );
        for outside in
            ["link/other/file", "link/ws/../other", "link", "real/ws2", "direct/../ws/src/../../other"]
        {
            assert_eq!(place(outside), None, "{outside}");
        }
    }
}
