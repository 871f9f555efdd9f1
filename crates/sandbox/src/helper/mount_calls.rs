//! Calls of the kernel's mount interface, by descriptors throughout: no path is looked up twice.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, fstatvfs, mkdirat, openat, openat2};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

/// Access through a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MountAccess {
    ReadOnly,
    ReadWrite,
    /// A device node, which the others are kept from being.
    Device,
}

const EMPTY: &CStr = c"";

/// A detached copy of what is mounted at and below a file or folder.
pub(super) fn copy_of(place: impl AsFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(place.as_fd(), EMPTY, flags)?)
}

/// Opens an absolute path that leads through no link.
pub(super) fn open_place(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS)?)
}

/// Opens a path below a folder that leads through no link; the last name may be one.
pub(super) fn open_below(folder: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    open_below_as(folder, path, OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW)
}

/// [`open_below`] with other flags for what is opened.
pub(super) fn open_below_as(folder: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let on_the_way = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let Some(name) = path.file_name() else {
        return Ok(openat(folder, c".", flags, Mode::empty())?);
    };
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => {
            openat2(&folder, parent, on_the_way, Mode::empty(), inside)?
        }
        _ => openat(&folder, c".", on_the_way, Mode::empty())?,
    };
    Ok(openat(&parent, name, flags, Mode::empty())?)
}

/// Restricts a mount, and with `deep` those below it.
pub(super) fn restrict(mount: impl AsFd, access: MountAccess, deep: bool) -> io::Result<()> {
    let mut set = MountAttrFlags::MOUNT_ATTR_NOSUID;
    let mut clear = MountAttrFlags::empty();
    if access != MountAccess::Device {
        set |= MountAttrFlags::MOUNT_ATTR_NODEV;
    }
    if access == MountAccess::ReadOnly {
        set |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    } else {
        clear |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    set_attributes(mount.as_fd(), set, clear, deep)
}

fn set_attributes(
    mount: BorrowedFd<'_>,
    set: MountAttrFlags,
    clear: MountAttrFlags,
    deep: bool,
) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: u64::from(set.bits()),
        attr_clr: u64::from(clear.bits()),
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    let flags = libc::AT_EMPTY_PATH | if deep { libc::AT_RECURSIVE } else { 0 };
    #[allow(unsafe_code, reason = "rustix offers no mount_setattr")]
    // SAFETY: the descriptor is open, the path is a C string, and the attributes live as long as the call, which gets
    // their size.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            EMPTY.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Mounts a detached mount at a place.
pub(super) fn attach(mount: impl AsFd, place: impl AsFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount.as_fd(), EMPTY, place.as_fd(), EMPTY, flags)?)
}

/// A new file system in memory.
pub(super) fn memory_folder(bytes: u64, mode: &str) -> io::Result<OwnedFd> {
    let context = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, c"size", bytes.to_string())?;
    fsconfig_set_string(&context, c"nr_inodes", (bytes / 4096).max(1024).to_string())?;
    fsconfig_set_string(&context, c"mode", mode)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// The processes of this namespace as files.
pub(super) fn process_folder() -> io::Result<OwnedFd> {
    let context = fsopen(c"proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Folders of an overlay.
pub(super) struct OverlayFolders {
    /// Folder that is read through it and never written.
    pub(super) lower: OwnedFd,
    /// Folder that takes what is written.
    pub(super) upper: OwnedFd,
    /// Folder of the kernel's, on the file system of `upper`.
    pub(super) work: OwnedFd,
}

/// A new overlay, whose upper folder must be in no other one. What is written to it does not last: it is not brought to the
/// disk, and the kernel refuses the upper folder a second time.
pub(super) fn overlay(folders: &OverlayFolders) -> io::Result<OwnedFd> {
    let context = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    // By descriptor: a path could hold what separates the folders of this option.
    let named = |folder: &OwnedFd| format!("/proc/self/fd/{}", folder.as_raw_fd());
    fsconfig_set_string(&context, c"lowerdir", named(&folders.lower))?;
    fsconfig_set_string(&context, c"upperdir", named(&folders.upper))?;
    fsconfig_set_string(&context, c"workdir", named(&folders.work))?;
    fsconfig_set_flag(&context, c"userxattr")?;
    fsconfig_set_flag(&context, c"volatile")?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    // The kernel makes it so where it cannot use the work folder.
    match fstatvfs(&mount)?.f_flag.contains(StatVfsMountFlags::RDONLY) {
        true => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
        false => Ok(mount),
    }
}

/// Kind of a place to mount on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceKind {
    Folder,
    File,
}

/// Opens a place below a folder, made with the folders on its way where they are missing. No link is followed: a
/// session's `/tmp` may hold links that an earlier command left. Another command of the session may make the same there at
/// the same time.
pub(super) fn make_place(folder: impl AsFd, path: &Path, kind: PlaceKind) -> io::Result<OwnedFd> {
    let names: Vec<&OsStr> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut here = openat(&folder, c".", flags, Mode::empty())?;
    for (index, name) in names.iter().enumerate() {
        let is_folder = index + 1 < names.len() || kind == PlaceKind::Folder;
        here = match openat(&here, *name, flags, Mode::empty()) {
            Err(Errno::NOENT) if is_folder => {
                unless_there(mkdirat(&here, *name, Mode::from_raw_mode(0o755)))?;
                openat(&here, *name, flags | OFlags::DIRECTORY, Mode::empty())?
            }
            Err(Errno::NOENT) => {
                let create = OFlags::CREATE | OFlags::EXCL | OFlags::RDONLY | OFlags::CLOEXEC;
                unless_there(openat(&here, *name, create, Mode::from_raw_mode(0o444)).map(drop))?;
                openat(&here, *name, flags, Mode::empty())?
            }
            other => other?,
        };
    }
    Ok(here)
}

/// Whether a place was made, or stands there by now, made by another command of the session.
fn unless_there(made: Result<(), Errno>) -> Result<(), Errno> {
    match made {
        Err(Errno::EXIST) => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::PathBuf;
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn a_place_that_others_make_at_the_same_time_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (top, together) = (File::open(folder.path()).unwrap(), Barrier::new(4));
        let make = |number: i32| {
            together.wait();
            let deep: PathBuf = (0..50).map(|_| number.to_string()).collect();
            make_place(&top, &deep, PlaceKind::Folder)?;
            make_place(&top, &deep.join("file"), PlaceKind::File)
        };
        let made: Vec<io::Result<()>> = thread::scope(|scope| {
            let each = || (0..10).map(|number| make(number).map(drop)).collect::<Vec<_>>();
            let makers: Vec<_> = (0..4).map(|_| scope.spawn(each)).collect();
            makers.into_iter().flat_map(|maker| maker.join().unwrap()).collect()
        });
        assert_eq!(made.len(), 40);
        made.into_iter().collect::<io::Result<()>>().unwrap();
    }

    #[test]
    fn no_link_is_followed_to_a_place() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", folder.path().join("link")).unwrap();
        let top = File::open(folder.path()).unwrap();
        assert!(make_place(&top, Path::new("link/a"), PlaceKind::Folder).is_err());
        assert_eq!(fs::read_dir(folder.path().join("elsewhere")).unwrap().count(), 0);
    }
}
