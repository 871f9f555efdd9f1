//! Namespaces of a session: made once, and entered by the helper of each of its commands.
//!
//! No process keeps them. The helper that makes them hands their descriptors to the supervisor and ends; they last while
//! that holds them, or a command is in them, and are gone with it however it ends.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{fchdir, pivot_root};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::mount_calls::{PlaceKind, attach, copy_of, make_place, memory_folder, open_below, open_place};
use super::{Failure, Step, caches, loopback, namespaces};
use crate::caches::{CacheLayers, CachePlace, CacheState};
use crate::descriptors::SessionNamespaces;
use crate::protection::Protections;

/// Size of what holds the places of the session's mounts.
const ROOT_BYTES: u64 = 4 << 20;

/// Copies of a session's mounts, not yet mounted.
pub(super) struct SessionMounts {
    pub(super) temp: OwnedFd,
    /// Package caches of the session, each with the place below `HOME`.
    pub(super) caches: Vec<(OwnedFd, PathBuf)>,
}

/// Makes a network with nothing but its loopback, and mounts: a `/tmp` of a size in bytes, and the package caches. Each
/// cache is mounted here once; what the commands have of it are copies of that mount, so that no upper folder is ever
/// part of two.
pub(super) fn make(
    temp_bytes: u64,
    layers: &[CacheLayers],
    protections: &Protections,
) -> Result<(SessionNamespaces, Vec<CacheState>), Failure> {
    namespaces::make(UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWNS)?;
    loopback::bring_up()?;
    let [user, network, mounts] = ["user", "net", "mnt"].map(namespace);
    let made = SessionNamespaces { user: user?, network: network?, mounts: mounts? };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).step("private mounts")?;
    // Before anything is mounted over the paths that lead to them.
    let opened: Vec<_> = layers.iter().map(|layers| caches::open(layers, protections)).collect();
    let root = memory_folder(ROOT_BYTES, "755").step("session")?;
    let base = ["/tmp", "/run", "/usr"].into_iter().find(|base| Path::new(base).is_dir());
    attach(&root, open_place(Path::new(base.unwrap_or("/"))).step("session")?).step("session")?;
    let temp = memory_folder(temp_bytes, "1777").step("/tmp")?;
    attach(temp, make_place(&root, Path::new("tmp"), PlaceKind::Folder).step("/tmp")?).step("/tmp")?;
    let mut states = Vec::new();
    for (number, cache) in opened.into_iter().enumerate() {
        let place = make_place(&root, &place_of(number), PlaceKind::Folder).step("caches")?;
        states.push(match cache {
            Ok(cache) => caches::mount(&cache, &place, protections),
            Err(problem) => CacheState::Absent(problem),
        });
    }
    let root = openat(&root, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    fchdir(root.step("session")?.as_fd()).step("session")?;
    pivot_root(c".", c".").step("session")?;
    rustix::mount::unmount(c".", rustix::mount::UnmountFlags::DETACH).step("old root")?;
    Ok((made, states))
}

/// Place of a cache in the mounts of a session.
fn place_of(number: usize) -> PathBuf {
    Path::new("caches").join(number.to_string())
}

pub(super) fn namespace(name: &str) -> Result<OwnedFd, Failure> {
    File::open(format!("/proc/self/ns/{name}")).map(OwnedFd::from).step("session")
}

/// Enters the user namespace of a session, and with `network` its network.
pub(super) fn enter(session: &SessionNamespaces, network: bool) -> Result<(), Failure> {
    move_into(&session.user, LinkNameSpaceType::User)?;
    if network {
        move_into(&session.network, LinkNameSpaceType::Network)?;
    }
    Ok(())
}

/// Copies of the session's mounts. This process is in mounts of its own, and is so again afterwards.
pub(super) fn mounts(session: &SessionNamespaces, caches: &[CachePlace]) -> Result<SessionMounts, Failure> {
    let own = namespace("mnt")?;
    move_into(&session.mounts, LinkNameSpaceType::Mount)?;
    let copies = copies(caches);
    move_into(&own, LinkNameSpaceType::Mount)?;
    copies.step("mounts of the session")
}

fn copies(caches: &[CachePlace]) -> io::Result<SessionMounts> {
    let root = open_place(Path::new("/"))?;
    let copy = |path: &Path| open_below(&root, path).and_then(copy_of);
    let of_cache = |cache: &CachePlace| Ok((copy(&place_of(cache.number))?, cache.place.clone()));
    Ok(SessionMounts {
        temp: copy(Path::new("tmp"))?,
        caches: caches.iter().map(of_cache).collect::<io::Result<_>>()?,
    })
}

fn move_into(namespace: &OwnedFd, kind: LinkNameSpaceType) -> Result<(), Failure> {
    move_into_link_name_space(namespace.as_fd(), Some(kind)).step("session")
}
