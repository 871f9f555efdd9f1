//! Identity of files: device and inode.
//!
//! Two paths may name one file (links, bind mounts, case folding) and one path may name two files
//! in a row. Device and inode are what the kernel goes by, so decisions are kept by them.

use std::fmt;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Stat, StatxFlags, statx};
use serde::{Deserialize, Serialize};

/// Device and inode of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileId {
    /// Device number, as the kernel packs it.
    pub device: u64,
    /// Inode number on that device.
    pub inode: u64,
}

impl FileId {
    /// The identity a `stat` call reported.
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// A folder as it is known again after a time, in which what it lies on may have been mounted anew under another device
/// number, and another folder may have got its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FolderIdentity {
    id: FileId,
    /// When it was made, in ns since 1970, where the file system tells that.
    made: Option<i64>,
}

impl FolderIdentity {
    /// The identity of a folder that is open, if only as a place.
    pub(crate) fn of(folder: impl AsFd, stat: &Stat) -> Self {
        let found = statx(folder, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok();
        let told = found.filter(|found| found.stx_mask & StatxFlags::BTIME.bits() != 0);
        let made = told.and_then(|found| {
            let seconds = found.stx_btime.tv_sec.checked_mul(1_000_000_000)?;
            seconds.checked_add(found.stx_btime.tv_nsec.into())
        });
        // Some say that all was made at the beginning of time.
        Self { id: FileId::of(stat), made: made.filter(|made| *made > 0) }
    }

    /// Whether both are of one folder: its inode and when it was made say so, and its device where the latter is not known.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_same_birth = match (self.made, other.made) {
            (Some(made), Some(other)) => made == other,
            _ => self.id.device == other.id.device,
        };
        self.id.inode == other.id.inode && is_same_birth
    }
}

/// `DEVICE-INODE` in decimal: the name of a workspace's lock file.
impl fmt::Display for FileId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.device, self.inode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_known_again_by_its_inode_and_birth_and_else_by_its_device() {
        let folder = |device, inode, made| FolderIdentity { id: FileId { device, inode }, made };
        let known = folder(1, 2, Some(3));
        assert!(known.is_same(&known) && known.is_same(&folder(9, 2, Some(3))), "it was mounted anew");
        assert!(!known.is_same(&folder(1, 2, Some(4))), "another one that got its inode");
        assert!(!known.is_same(&folder(1, 3, Some(3))));
        assert!(known.is_same(&folder(1, 2, None)) && !known.is_same(&folder(9, 2, None)));
    }
}
