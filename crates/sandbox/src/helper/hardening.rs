//! Small calls that close or limit something of the process.

use std::io;
use std::os::fd::RawFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{Failure, Step};
use crate::walls::Limits;

/// Closes every descriptor from one on.
pub(super) fn close_from(first: RawFd) -> io::Result<()> {
    #[allow(unsafe_code, reason = "rustix offers no close_range")]
    // SAFETY: the helper has just begun; it owns no descriptor from this one on.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets the limits that the kernel keeps for each process. What it counts together is counted by `watch`.
pub(super) fn limit(limits: &Limits) -> Result<(), Failure> {
    let wished = [
        (Resource::Core, 0),
        (Resource::Fsize, limits.file_size),
        (Resource::Data, limits.memory),
        // Of no effect for the machine's administrator.
        (Resource::Nproc, limits.processes),
        (Resource::Memlock, 64 << 20),
        (Resource::Msgqueue, 1 << 20),
    ];
    for (resource, value) in wished {
        let value = getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value));
        setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) }).step("limits")?;
    }
    Ok(())
}
