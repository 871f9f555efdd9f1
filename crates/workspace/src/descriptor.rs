//! Paths of open descriptors: the one place where another system's form would stand.

use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;

/// Path by which this process opens again what a descriptor refers to, whatever has its name by now.
///
/// There is no second lookup of a name, hence nothing to race. The path holds as long as the descriptor is open, and
/// needs a mounted `/proc`.
pub fn descriptor_path(descriptor: impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd()).into()
}
