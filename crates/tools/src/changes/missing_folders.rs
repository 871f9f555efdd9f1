//! Folders that something new needs above it.

use std::path::PathBuf;

use workspace::{FileProblem, LinkPolicy, RelativePath, Root};

use super::path::{NEW_FOLDER, make_folder};
use super::{BytesOrigin, FileContent, PlannedChange};

/// The folders that are not there, from the top.
pub(crate) struct MissingFolders<'s>(Vec<(&'s Root, RelativePath)>);

impl<'s> MissingFolders<'s> {
    /// Missing folders above these paths.
    ///
    /// # Errors
    /// A folder on the way cannot be looked at, or is a link.
    pub(crate) fn above<'p>(
        paths: impl Iterator<Item = (&'s Root, &'p RelativePath)>,
    ) -> Result<Self, String> {
        let mut missing: Vec<(&Root, RelativePath)> = Vec::new();
        for (root, path) in paths {
            let (folder, _) = path.split().map_err(|error| error.to_string())?;
            let mut so_far = RelativePath::root();
            for name in folder.as_path() {
                so_far = so_far.join(name).map_err(|error| error.to_string())?;
                let is_known = missing.iter().any(|(of, path)| of.id() == root.id() && *path == so_far);
                let is_missing = || match root.stat(&so_far, LinkPolicy::Refuse) {
                    Err(error) if matches!(error.problem, FileProblem::NotFound) => Ok(true),
                    Err(error) => Err(error.to_string()),
                    Ok(_) => Ok(false),
                };
                if !is_known && is_missing()? {
                    missing.push((root, so_far.clone()));
                }
            }
        }
        Ok(Self(missing))
    }

    /// Missing folders above a path, and a folder at the path itself if there is nothing.
    ///
    /// # Errors
    /// As [`above`](Self::above).
    pub(crate) fn down_to(root: &'s Root, path: &RelativePath) -> Result<Self, String> {
        let mut missing = Self::above([(root, path)].into_iter())?;
        missing.0.push((root, path.clone()));
        Ok(missing)
    }

    /// Paths of the folders as they are shown.
    pub(crate) fn shown(&self) -> impl Iterator<Item = PathBuf> {
        self.0.iter().map(|(root, path)| root.shown(path))
    }

    pub(crate) fn planned(&self, umask: u32) -> impl Iterator<Item = PlannedChange<'_>> {
        self.0.iter().map(move |(root, path)| PlannedChange {
            root: root.path(),
            path,
            before: FileContent::Absent,
            after: FileContent::Folder { mode: Some(NEW_FOLDER & !umask) },
            origin: BytesOrigin::Files,
        })
    }

    /// # Errors
    /// The first that could not be made.
    pub(crate) fn make(&self, umask: u32) -> Result<(), String> {
        self.0.iter().try_for_each(|(root, path)| make_folder(root, path, NEW_FOLDER & !umask))
    }

    /// Takes them back. One that somebody put something into stays.
    pub(crate) fn remove(&self) {
        self.0.iter().rev().for_each(|(root, path)| drop(root.remove_folder(path)));
    }
}
