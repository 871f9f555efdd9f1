//! Small calls that close or limit something of the process.

use std::io;
use std::os::fd::{AsFd, RawFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
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

/// Sets the greatest number of a process in this namespace, where the kernel keeps one for each (6.14): no flood of forks
/// outruns the count then. `processes` is its `/proc`, not yet read-only.
pub(super) fn limit_processes(processes: impl AsFd, limits: &Limits) -> io::Result<()> {
    // The kernel keeps the first 300 numbers, and threads have numbers, too.
    const LEAST: u64 = 400;
    const THREADS: u64 = 16;
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut version = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    if (version.next(), version.next()) < (Some(6), Some(14)) {
        return Ok(());
    }
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let setting = openat(processes, c"sys/kernel/pid_max", flags, Mode::empty())?;
    let most = LEAST + limits.processes.saturating_mul(THREADS);
    // The machine may allow fewer already.
    match rustix::io::write(&setting, most.min(1 << 22).to_string().as_bytes()) {
        Ok(_) | Err(Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sets the limits that the kernel keeps for each process. What it counts together is counted by `watch`.
pub(super) fn limit(limits: &Limits) -> Result<(), Failure> {
    let wished = [
        // Nothing is written, and one byte is how the kernel is told not to call the machine's handler of crashes, which
        // runs outside.
        (Resource::Core, 1),
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
