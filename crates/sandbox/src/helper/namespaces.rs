//! Namespaces, and the processes that enter them.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, getegid, geteuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::session::{self, SessionMounts};
use super::{Failure, Step};
use crate::caches::CachePlace;
use crate::descriptors::SessionNamespaces;
use crate::protection::{Protection, Protections};
use crate::walls::Network;

/// Enters new namespaces, but for those of a session, which are there, and the machine's where the network is open. The process namespace is that of children only.
/// Returns the session's mounts.
pub(super) fn enter(
    protections: &Protections,
    network: Network,
    session: Option<&SessionNamespaces>,
    caches: &[CachePlace],
) -> Result<Option<SessionMounts>, Failure> {
    let wished = [
        (Protection::MountNamespace, UnshareFlags::NEWNS),
        (Protection::PidNamespace, UnshareFlags::NEWPID),
        (Protection::IpcNamespace, UnshareFlags::NEWIPC),
        (Protection::UtsNamespace, UnshareFlags::NEWUTS),
    ];
    let flags = wished.iter().filter(|(protection, _)| protections.has(*protection));
    let mut flags = flags.fold(UnshareFlags::empty(), |flags, (_, flag)| flags | *flag);
    let holds_network = protections.holds_network(network);
    flags.set(UnshareFlags::NEWNET, holds_network);
    let Some(session) = session else {
        return make(flags | UnshareFlags::NEWUSER).map(|()| None);
    };
    session::enter(session, holds_network)?;
    unshare(flags & !UnshareFlags::NEWNET)?;
    match protections.has(Protection::MountNamespace) {
        true => session::mounts(session, caches).map(Some),
        false => Ok(None),
    }
}

/// Enters new namespaces, a user namespace among them.
pub(super) fn make(flags: UnshareFlags) -> Result<(), Failure> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(flags)?;
    // The user is itself inside too: files of the roots keep their owner, and no other user can be become.
    fs::write("/proc/self/setgroups", "deny").step("groups of the user namespace")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1")).step("user of the user namespace")?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1")).step("group of the user namespace")
}

pub(super) fn unshare(flags: UnshareFlags) -> Result<(), Failure> {
    #[allow(unsafe_code, reason = "rustix marks all of unshare unsafe for the sake of the flag FILES")]
    // SAFETY: the flag FILES is in no call of this function.
    let made = unsafe { unshare_unsafe(flags) };
    // `ENOSPC` of this call is no disk (unshare(2)).
    let why = |error| match error {
        Errno::NOSPC => {
            "this machine allows no more namespaces (sysctl user.max_user_namespaces and its like)".to_owned()
        }
        other => other.to_string(),
    };
    made.map_err(why).step("namespaces")
}

/// Forks; nothing in the child.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    #[allow(unsafe_code, reason = "neither std nor rustix offers a fork that goes on in the same program")]
    // SAFETY: the helper runs before any thread exists, so that no lock is held that the child would wait for.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Pid::from_raw(pid))
}

/// Ends the process without running what was registered for its end before the fork.
pub(super) fn end_now(code: i32) -> ! {
    #[allow(unsafe_code, reason = "std offers no exit without handlers")]
    // SAFETY: ends the process; it has no preconditions.
    unsafe {
        libc::_exit(code)
    }
}
