//! Paths of open descriptors: the one place where another system's form would stand.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

/// Path by which this process opens again what a descriptor refers to, whatever has its name by now.
///
/// There is no second lookup of a name, hence nothing to race. The path holds as long as the descriptor is open, and
/// needs a mounted `/proc`.
pub fn descriptor_path(descriptor: impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd()).into()
}

/// Opens the folder of the descriptors of this process, each named by its number there.
///
/// # Errors
/// [`Errno::NOENT`] without a mounted `/proc`.
pub(crate) fn open_descriptors() -> Result<OwnedFd, Errno> {
    openat(CWD, "/proc/self/fd", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}
