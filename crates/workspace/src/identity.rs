//! Identity of files: device and inode.
//!
//! Two paths may name one file (links, bind mounts, case folding) and one path may name two files
//! in a row. Device and inode are what the kernel goes by, so decisions are kept by them.

use std::fmt;

use rustix::fs::Stat;
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

/// `DEVICE-INODE` in decimal: the name of a workspace's lock file.
impl fmt::Display for FileId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.device, self.inode)
    }
}
