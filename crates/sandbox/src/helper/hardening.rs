//! Small calls that close or limit something of the process.

use std::fs::{self, DirEntry};
use std::io;
use std::os::fd::{AsFd, RawFd};
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit};

use super::{Failure, Step};
use crate::level::Level;
use crate::walls::Limits;

/// Threads that a process may have, on the average.
const THREADS: u64 = 16;
/// Threads that there may be however few processes are allowed. The kernel keeps the first 300 numbers of a namespace.
const LEAST_THREADS: u64 = 400;

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
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut version = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    if (version.next(), version.next()) < (Some(6), Some(14)) {
        return Ok(());
    }
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let setting = openat(processes, c"sys/kernel/pid_max", flags, Mode::empty())?;
    let most = LEAST_THREADS + limits.processes.saturating_mul(THREADS);
    // The machine may allow fewer already.
    match rustix::io::write(&setting, most.min(1 << 22).to_string().as_bytes()) {
        Ok(_) | Err(Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sets the limits that the kernel keeps for each process. What it counts together is counted by `watch`.
pub(super) fn limit(limits: &Limits, level: Level) -> Result<(), Failure> {
    let threads = limits.processes.saturating_mul(THREADS).saturating_add(LEAST_THREADS);
    let threads = match level {
        Level::Full => threads,
        // Without a user namespace the kernel counts all threads of the user, the owner's own among them.
        Level::Partial | Level::None => threads.saturating_add(threads_of_the_user()),
    };
    let wished = [
        // Nothing is written, and one byte is how the kernel is told not to call the machine's handler of crashes, which
        // runs outside.
        (Resource::Core, 1),
        (Resource::Fsize, limits.file_size),
        (Resource::Data, limits.memory),
        // Only holds a flood up until it is counted. Of no effect for the machine's administrator.
        (Resource::Nproc, threads),
        (Resource::Memlock, 64 << 20),
        (Resource::Msgqueue, 1 << 20),
    ];
    for (resource, value) in wished {
        let value = getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value));
        setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) }).step("limits")?;
    }
    Ok(())
}

/// Threads of this user on the machine.
fn threads_of_the_user() -> u64 {
    let user = getuid().as_raw();
    let is_number = |entry: &DirEntry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().filter(is_number);
    let processes = processes.filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.uid() == user));
    processes
        .map(|entry| fs::read_dir(entry.path().join("task")).map_or(0, |tasks| tasks.count() as u64))
        .sum()
}

/// Marks this process and all it starts. Behind other walls that hold a mark already there is no other one.
pub(super) fn set_mark(mark: u64) {
    let limit = Rlimit { current: Some(mark), maximum: Some(mark) };
    if getrlimit(Resource::Locks).maximum.is_none_or(|maximum| maximum > mark) {
        let _ = setrlimit(Resource::Locks, limit);
    }
}
