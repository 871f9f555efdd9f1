//! A root as it is known again later, with the mode it had.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{Mode, chmod, fstat};
use serde::{Deserialize, Serialize};

use super::Root;
use crate::descriptor::descriptor_path;
use crate::error::{FileError, FileProblem};
use crate::guard::StoreGuard;
use crate::identity::FolderIdentity;
use crate::root::FileStamp;

/// Rights of the owner of a folder.
const OWNERS: u32 = 0o700;

/// The folder of a root at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootStamp {
    pub(super) identity: FolderIdentity,
    mode: u32,
}

impl RootStamp {
    pub(super) fn of(folder: impl AsFd) -> Result<Self, FileProblem> {
        let stat = fstat(&folder)?;
        Ok(Self { identity: FolderIdentity::of(&folder, &stat), mode: stat.st_mode & 0o7777 })
    }

    /// Gives the folder at a path the mode of this stamp where it is the same one, its owner lost a right to it since, and it
    /// was changed no later than `until`, in ns since 1970. Returns the mode it had; none where nothing was given.
    ///
    /// # Errors
    /// It cannot be reached, or its mode is not this user's to set.
    pub fn give_mode_back(
        &self,
        path: &Path,
        guard: &StoreGuard,
        until: i64,
    ) -> Result<Option<u32>, FileError> {
        let give = || -> Result<Option<u32>, FileProblem> {
            let found = Root::found_again(path, guard)?;
            let stat = fstat(&found)?;
            let (now, rights) = (stat.st_mode & 0o7777, self.mode & OWNERS);
            let is_ours = FolderIdentity::of(&found, &stat).is_same(&self.identity)
                && FileStamp::of(&stat).changed <= until;
            if now & rights == rights || !is_ours {
                return Ok(None);
            }
            chmod(descriptor_path(found.as_fd()), Mode::from_raw_mode(self.mode))?;
            Ok(Some(now))
        };
        give().map_err(|problem| FileError::new(path, problem))
    }
}
