//! The system's allocator: what is freed goes back.

/// Bytes from which on a block is mapped, and unmapped when it is freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED: i32 = 1 << 20;

/// Has glibc keep to one size from which on a block is given back as soon as it is freed. By itself it raises that size
/// to the largest block freed so far, up to 32 MiB: a process that received one long answer would hold several times
/// its bytes, freed, to its end.
pub(crate) fn return_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code, reason = "no crate offers it safely")]
    // SAFETY: it sets a number, and no other thread is there.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
    }
}
