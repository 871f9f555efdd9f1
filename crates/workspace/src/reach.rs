//! Which folders a session's file tools may touch.

use std::io;
use std::path::Path;

use crate::error::FileError;
use crate::guard::StoreGuard;
use crate::path::{PathProblem, RelativePath, check_text};
use crate::root::Root;

/// The roots of a session: its workspace first, further folders by name after it, or, where the
/// owner lifted the restriction, everything (spec: agent §4).
#[derive(Debug)]
pub struct Reach {
    roots: Vec<Root>,
    everywhere: Option<Root>,
}

/// A path and the root it lies beneath.
#[derive(Debug)]
pub struct RootedPath<'a> {
    /// The root to open it through.
    pub root: &'a Root,
    /// The path below that root.
    pub path: RelativePath,
}

/// Why a path has no place.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// Tools are restricted, and there is no workspace to restrict them to.
    #[error("no workspace is configured: name one with --workspace DIR")]
    NotConfigured,
    /// The path is refused.
    #[error(transparent)]
    Path(#[from] PathProblem),
}

/// "Not configured" is of the not-found kind, so that callers of `std::io` see what they expect.
impl From<ReachError> for io::Error {
    fn from(error: ReachError) -> Self {
        let kind = match error {
            ReachError::NotConfigured => io::ErrorKind::NotFound,
            ReachError::Path(_) => io::ErrorKind::PermissionDenied,
        };
        Self::new(kind, error)
    }
}

impl Reach {
    /// Tools work beneath these roots alone. Relative paths are taken in the first.
    pub fn within(roots: Vec<Root>) -> Self {
        Self { roots, everywhere: None }
    }

    /// The owner lifted the restriction: absolute paths lead anywhere but to the store's files,
    /// relative ones stay in the first of `roots`.
    ///
    /// # Errors
    /// If `/` cannot be opened.
    pub fn unrestricted(roots: Vec<Root>, guard: &StoreGuard) -> Result<Self, FileError> {
        Ok(Self { roots, everywhere: Some(Root::open(Path::new("/"), guard)?) })
    }

    /// Finds the root of a path as a tool was given it.
    ///
    /// # Errors
    /// [`ReachError::NotConfigured`] without any root; otherwise the named refusal of the path.
    pub fn place(&self, text: &str) -> Result<RootedPath<'_>, ReachError> {
        check_text(text)?;
        if !text.starts_with('/') {
            let root = self.roots.first().ok_or(ReachError::NotConfigured)?;
            return Ok(RootedPath { root, path: RelativePath::parse(text)? });
        }
        let inside = self.roots.iter().chain(&self.everywhere).find_map(|root| {
            let path = root.relative(Path::new(text)).ok()?;
            Some(RootedPath { root, path })
        });
        match inside {
            Some(place) => Ok(place),
            None if self.roots.is_empty() => Err(ReachError::NotConfigured),
            None => Err(PathProblem::Outside.into()),
        }
    }
}
