//! Lists of folders that a command may have closed.
//!
//! Git enters a folder that nobody may list (mode 0311), and goes by the names it knows: what is protected in one is there,
//! though no look sees it.

use std::fs::{self, ReadDir};
use std::io;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, ResolveFlags, accessat, fstat, openat2};
use rustix::io::Errno;
use rustix::process::geteuid;
use workspace::descriptor_path;

use crate::root_folders::give_rights;

const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Lists a folder by its path without links. One of this user that it may not list or enter is opened up for its owner.
/// Nothing is listed where no folder is (any more), nor in another user's that no command can write in.
///
/// # Errors
/// If it cannot be listed.
pub(crate) fn list(folder: &Path) -> io::Result<Option<ReadDir>> {
    let place = match openat2(CWD, folder, PLACE, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        place => place?,
    };
    let may = |access| accessat(&place, ".", access, AtFlags::empty()).is_ok();
    if !may(Access::READ_OK | Access::EXEC_OK) {
        if fstat(&place)?.st_uid == geteuid().as_raw() {
            give_rights(&place, 0o500)?;
        } else if !may(Access::WRITE_OK | Access::EXEC_OK) {
            return Ok(None);
        }
    }
    fs::read_dir(descriptor_path(&place)).map(Some)
}

/// Whether a file or folder is closed to everybody: what could not be moved to quarantine is left so.
pub(crate) fn is_closed(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    path.symlink_metadata().is_ok_and(|metadata| metadata.mode() & 0o777 == 0 && !metadata.is_symlink())
}
