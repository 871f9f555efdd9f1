//! The facts of real folders.

use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxAttributes, StatxFlags, fstat, openat, statat, statx};
use rustix::io::Errno;

use super::{Facts, FolderFacts, MARKERS};

/// Asks the file system, of a descriptor of the folder.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnDisk;

impl Facts for OnDisk {
    fn of(&self, folder: &Path) -> io::Result<FolderFacts> {
        let opened = openat(CWD, folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let stat = fstat(&opened)?;
        let owner_of = |name: &str| match statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat.st_uid)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(other) => Err(other),
        };
        let mut markers = Vec::new();
        for marker in MARKERS {
            markers.extend(owner_of(marker)?.map(|owner| (marker, owner)));
        }
        // Bind mounts keep the device number: only `statx` sees those.
        let attributes = statx(&opened, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)
            .map_or(StatxAttributes::empty(), |found| found.stx_attributes);
        let above = statat(&opened, "..", AtFlags::empty())?;
        Ok(FolderFacts {
            owner: stat.st_uid,
            mode: stat.st_mode & 0o7777,
            mount_point: attributes.contains(StatxAttributes::MOUNT_ROOT) || above.st_dev != stat.st_dev,
            git: owner_of(".git")?.is_some(),
            markers,
        })
    }
}
