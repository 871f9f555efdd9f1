//! Namespaces of a session: made once, and entered by the helper of each of its commands.
//!
//! No process keeps them. The helper that makes them hands their descriptors to the supervisor and ends; they last while
//! that holds them, or a command is in them, and are gone with it however it ends.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{fchdir, pivot_root};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::mount_calls::{attach, copy_of, memory_folder, open_place};
use super::{Failure, Step, loopback, namespaces};
use crate::descriptors::SessionNamespaces;

/// Makes a network with nothing but its loopback, and a `/tmp` of a size in bytes.
pub(super) fn make(temp_bytes: u64) -> Result<SessionNamespaces, Failure> {
    namespaces::make(UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWNS)?;
    loopback::bring_up()?;
    let [user, network, temp] = ["user", "net", "mnt"].map(namespace);
    let made = SessionNamespaces { user: user?, network: network?, temp: temp? };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).step("private mounts")?;
    let folder = memory_folder(temp_bytes, "1777").step("/tmp")?;
    let place = ["/tmp", "/run", "/usr"].into_iter().find(|place| Path::new(place).is_dir());
    attach(&folder, open_place(Path::new(place.unwrap_or("/"))).step("/tmp")?).step("/tmp")?;
    let root = openat(&folder, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    fchdir(root.step("/tmp")?.as_fd()).step("/tmp")?;
    pivot_root(c".", c".").step("/tmp")?;
    rustix::mount::unmount(c".", rustix::mount::UnmountFlags::DETACH).step("old root")?;
    Ok(made)
}

fn namespace(name: &str) -> Result<OwnedFd, Failure> {
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

/// A copy of the session's `/tmp`, not yet mounted. This process is in mounts of its own, and is so again afterwards.
pub(super) fn temp(session: &SessionNamespaces) -> Result<OwnedFd, Failure> {
    let own = namespace("mnt")?;
    move_into(&session.temp, LinkNameSpaceType::Mount)?;
    let root = open_place(Path::new("/")).and_then(copy_of);
    move_into(&own, LinkNameSpaceType::Mount)?;
    root.step("/tmp of the session")
}

fn move_into(namespace: &OwnedFd, kind: LinkNameSpaceType) -> Result<(), Failure> {
    move_into_link_name_space(namespace.as_fd(), Some(kind)).step("session")
}
