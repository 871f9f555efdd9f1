//! Access to what its mode keeps its own owner out of.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{FileType, Mode, chmod, fstat};

use super::{LinkPolicy, Root};
use crate::descriptor::descriptor_path;
use crate::error::{FileError, FileKind, FileProblem};
use crate::identity::FileId;
use crate::path::RelativePath;

/// Right of the owner to read a file, and to do anything in a folder.
const READ: u32 = 0o400;
const ALL: u32 = 0o700;

/// Permission bits that a file or folder of this user has for a while beside its own. Dropped, it takes them away again,
/// unless somebody gave it other ones meanwhile.
#[derive(Debug)]
pub struct OwnerAccess {
    found: OwnedFd,
    own: u32,
    given: u32,
}

impl OwnerAccess {
    /// Leaves the permission bits as they are: what it was for has its own by now.
    pub fn leave(mut self) {
        self.own = self.given;
    }
}

impl Drop for OwnerAccess {
    fn drop(&mut self) {
        let is_given = fstat(&self.found).is_ok_and(|stat| stat.st_mode & 0o7777 == self.given);
        if is_given && self.own != self.given {
            // Where that fails, it stays the owner's alone.
            let _ = chmod(descriptor_path(self.found.as_fd()), Mode::from_raw_mode(self.own));
        }
    }
}

impl Root {
    /// Lets this user read a file, or work in a folder, that is theirs and whose mode keeps them out; none of anything
    /// else, of a file with a second name, which may lie elsewhere, and of what they may read. What is judged is what is
    /// changed: no link is followed, and no name looked up twice.
    ///
    /// # Errors
    /// As [`Root::set_mode`].
    pub fn owner_access(&self, path: &RelativePath) -> Result<Option<OwnerAccess>, FileError> {
        let give = || -> Result<Option<OwnerAccess>, FileProblem> {
            self.require_writable()?;
            let found = self.walk(path, LinkPolicy::Refuse, false)?;
            let stat = fstat(&found)?;
            let needed = match FileKind::of(FileType::from_raw_mode(stat.st_mode)) {
                FileKind::Folder => ALL,
                FileKind::Regular if stat.st_nlink == 1 => READ,
                _ => return Ok(None),
            };
            let own = stat.st_mode & 0o7777;
            if own & needed == needed || stat.st_uid != rustix::process::geteuid().as_raw() {
                return Ok(None);
            }
            if self.guard().covers(FileId::of(&stat)) {
                return Err(FileProblem::StoreFile);
            }
            let given = own | needed;
            chmod(descriptor_path(found.as_fd()), Mode::from_raw_mode(given))?;
            Ok(Some(OwnerAccess { found, own, given }))
        };
        give().map_err(|problem| self.failed(path, problem))
    }

    /// [`Self::owner_access`] for the folders above a path, below the root.
    pub fn owner_access_above(&self, path: &RelativePath) -> Vec<OwnerAccess> {
        path.split().map_or_else(|_| Vec::new(), |(above, _)| self.owner_access_within(&above))
    }

    /// [`Self::owner_access`] for a folder and those above it, below the root, as far as they are there. Each has its
    /// own bits again, in whichever order they are dropped.
    pub fn owner_access_within(&self, folder: &RelativePath) -> Vec<OwnerAccess> {
        let mut given = Vec::new();
        let mut so_far = RelativePath::root();
        for name in folder.as_path() {
            let Ok(next) = so_far.join(name) else { break };
            so_far = next;
            match self.owner_access(&so_far) {
                Ok(access) => given.extend(access),
                Err(_) => break,
            }
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::guard::StoreGuard;

    #[test]
    fn what_is_closed_is_open_for_a_while_and_keeps_other_bits_that_it_got() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("d/f");
        fs::create_dir(temp.path().join("d")).unwrap();
        fs::write(&file, "text").unwrap();
        let set = |mode| fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        let mode = || file.symlink_metadata().unwrap().permissions().mode() & 0o7777;
        let root = Root::open(temp.path(), &StoreGuard::new()).unwrap();
        let path = RelativePath::parse("d/f").unwrap();
        let give = || root.owner_access(&path).unwrap();

        set(0o020);
        let given = give();
        assert_eq!((given.is_some(), mode()), (true, 0o420));
        drop(given);
        assert_eq!(mode(), 0o020);
        let given = give().unwrap();
        set(0o644);
        drop(given);
        assert_eq!(mode(), 0o644);
        assert!(give().is_none() && root.owner_access_above(&path).is_empty());

        set(0);
        give().unwrap().leave();
        assert_eq!(mode(), 0o400);
        set(0);
        fs::hard_link(&file, temp.path().join("second")).unwrap();
        assert!(give().is_none());
        let read_only = Root::open(temp.path(), &StoreGuard::new()).unwrap();
        let read_only = read_only.as_further(crate::RootAccess::ReadOnly);
        assert!(read_only.owner_access(&path).is_err());
    }
}
