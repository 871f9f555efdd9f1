//! A `HOME` that is small: a file system in memory over a folder, for one program and what it starts.

#![allow(unsafe_code, reason = "rustix marks all of unshare unsafe for the sake of the flag FILES")]

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::mount::{MountFlags, mount};
use rustix::process::{getegid, geteuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Becomes a program, in namespaces of its own, where a folder is of so many bytes.
pub(crate) fn run(folder: &str, bytes: &str, program: &str, arguments: &[&str]) -> ! {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    // SAFETY: the flag FILES is not among them.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS) }.expect("namespaces");
    for (name, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        std::fs::write(format!("/proc/self/{name}"), text).expect("users of the namespace");
    }
    let size = std::ffi::CString::new(format!("size={bytes}")).expect("a number");
    mount("tmpfs", folder, "tmpfs", MountFlags::empty(), size.as_c_str()).expect("a file system in memory");
    panic!("{}", Command::new(program).args(arguments).exec())
}
