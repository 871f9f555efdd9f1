//! From a root and a path to an `O_PATH` descriptor that is provably beneath the root.
//!
//! `openat2` does it in the kernel. Where that call is missing (before Linux 5.6, or a container
//! that hides it), the same walk is made one component at a time from descriptor to descriptor;
//! `..` then means the descriptor one came from, not whatever `..` is by now, so a folder that is
//! moved in mid-walk leads nowhere new.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat};
use rustix::io::Errno;

use super::rules::LinkPolicy;
use crate::error::FileProblem;
use crate::path::RelativePath;

/// Links followed in one walk before it counts as a loop: the kernel's own number.
const MAX_LINKS: usize = 40;

/// Most retries of a walk that lost a race against a rename (`EAGAIN`).
const MAX_RACES: usize = 64;

const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Method of resolving a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolver {
    /// `openat2`; component by component where the kernel lacks it.
    Kernel,
    /// Always component by component: what `ENOSYS` leads to, made reachable for tests.
    #[cfg(test)]
    Components,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct WalkRules {
    pub(super) links: LinkPolicy,
    pub(super) one_device: bool,
    /// The root is `/`: absolute links are inside.
    pub(super) whole_system: bool,
}

impl Resolver {
    pub(super) fn walk(
        self,
        root: BorrowedFd<'_>,
        path: &RelativePath,
        rules: WalkRules,
    ) -> Result<OwnedFd, FileProblem> {
        match self {
            Self::Kernel => match by_kernel(root, path, rules) {
                // Some containers answer EPERM for calls they do not know.
                Err(Errno::NOSYS | Errno::PERM) => by_components(root, path, rules),
                Err(Errno::XDEV) if rules.one_device && rules.links == LinkPolicy::Refuse => {
                    Err(FileProblem::OtherDevice)
                }
                Err(errno) => Err(errno.into()),
                Ok(file) => Ok(file),
            },
            #[cfg(test)]
            Self::Components => by_components(root, path, rules),
        }
    }
}

fn by_kernel(root: BorrowedFd<'_>, path: &RelativePath, rules: WalkRules) -> Result<OwnedFd, Errno> {
    let mut resolve = ResolveFlags::NO_MAGICLINKS;
    resolve |= if rules.whole_system { ResolveFlags::IN_ROOT } else { ResolveFlags::BENEATH };
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    match rules.links {
        // A link at the end is then opened as itself, and its kind says so to the caller.
        LinkPolicy::Refuse => {
            resolve |= ResolveFlags::NO_SYMLINKS;
            flags |= OFlags::NOFOLLOW;
        }
        LinkPolicy::Follow => {}
    }
    if rules.one_device {
        resolve |= ResolveFlags::NO_XDEV;
    }
    let mut races = 0;
    loop {
        match openat2(root, path.for_open(), flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN) if races < MAX_RACES => races += 1,
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

fn by_components(
    root: BorrowedFd<'_>,
    path: &RelativePath,
    rules: WalkRules,
) -> Result<OwnedFd, FileProblem> {
    let mut ahead: VecDeque<OsString> = path.as_path().iter().map(OsStr::to_os_string).collect();
    // The folders behind us; the root itself is not on the stack, so popping past it is leaving.
    let mut behind: Vec<OwnedFd> = Vec::new();
    let device = fstat(root)?.st_dev;
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            if behind.pop().is_none() && !rules.whole_system {
                return Err(FileProblem::Outside);
            }
            continue;
        }
        let here = behind.last().map_or(root, AsFd::as_fd);
        let next = openat(here, &name, PATH_ONLY, Mode::empty())?;
        let stat = fstat(&next)?;
        if rules.one_device && stat.st_dev != device {
            return Err(FileProblem::OtherDevice);
        }
        let kind = FileType::from_raw_mode(stat.st_mode);
        let last = ahead.is_empty();
        match kind {
            FileType::Symlink if rules.links == LinkPolicy::Follow => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(FileProblem::Symlink);
                }
                let target =
                    PathBuf::from(OsString::from_vec(readlinkat(&next, "", Vec::new())?.into_bytes()));
                if target.is_absolute() {
                    if !rules.whole_system {
                        return Err(FileProblem::Outside);
                    }
                    behind.clear();
                }
                for name in link_names(&target).into_iter().rev() {
                    ahead.push_front(name);
                }
            }
            FileType::Symlink if !last => return Err(FileProblem::Symlink),
            FileType::Directory => behind.push(next),
            _ if last => return Ok(next),
            _ => return Err(FileProblem::NotAFolder),
        }
    }
    match behind.pop() {
        Some(folder) => Ok(folder),
        None => Ok(openat(root, ".", PATH_ONLY, Mode::empty())?),
    }
}

fn link_names(target: &Path) -> Vec<OsString> {
    target
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_os_string()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        })
        .collect()
}
