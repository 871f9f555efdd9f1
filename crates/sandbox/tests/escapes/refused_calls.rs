//! Calls of the kernel that no command needs (spec: security §9). Each gets to the kernel without walls, which refuses its
//! arguments, and to none within.

use drawloom_sandbox::Level;

use crate::rows::{NEEDS_CAPABILITIES, Row, row};
use crate::succeeds;
use crate::world::User;

macro_rules! call {
    ($name:literal) => {
        row($name, concat!("\"$ATTEMPT\" call '", $name, "'"))
    };
    // The kernel looks for capabilities first.
    ($name:literal, capable) => {
        call!($name).by_administrator(NEEDS_CAPABILITIES)
    };
}

pub(crate) const REFUSED_CALLS: &[Row] = &[
    // Around the filter itself, and other processes.
    call!("io_uring_setup"),
    call!("io_uring_enter"),
    call!("io_uring_register"),
    call!("clone3"),
    call!("ptrace"),
    call!("process_vm_readv"),
    call!("process_vm_writev"),
    call!("pidfd_getfd"),
    call!("kcmp"),
    call!("process_madvise"),
    call!("move_pages"),
    // Interfaces with a history.
    call!("bpf", capable),
    call!("perf_event_open"),
    call!("userfaultfd"),
    call!("add_key"),
    call!("request_key"),
    call!("keyctl"),
    call!("fanotify_init", capable),
    call!("lookup_dcookie", capable),
    call!("syslog", capable),
    // Namespaces, mounts, files by handle.
    call!("setns"),
    call!("mount", capable),
    call!("umount2", capable),
    call!("pivot_root", capable),
    call!("chroot"),
    call!("open_tree", capable),
    call!("move_mount", capable),
    call!("fsopen", capable),
    call!("fsconfig"),
    call!("fsmount", capable),
    call!("fspick", capable),
    call!("mount_setattr", capable),
    call!("open_tree_attr", capable),
    call!("open_by_handle_at", capable),
    call!("sethostname", capable),
    call!("setdomainname", capable),
    // The machine.
    call!("kexec_load", capable),
    call!("kexec_file_load", capable),
    call!("init_module", capable),
    call!("finit_module", capable),
    call!("delete_module", capable),
    call!("reboot", capable),
    call!("swapon", capable),
    call!("swapoff", capable),
    call!("acct", capable),
    call!("quotactl"),
    call!("quotactl_fd"),
    call!("settimeofday", capable),
    call!("clock_settime", capable),
    call!("clock_adjtime", capable),
    call!("adjtimex", capable),
    call!("nfsservctl"),
    #[cfg(target_arch = "x86_64")]
    call!("iopl", capable),
    #[cfg(target_arch = "x86_64")]
    call!("ioperm", capable),
    #[cfg(target_arch = "x86_64")]
    call!("uselib"),
    #[cfg(target_arch = "x86_64")]
    call!("_sysctl"),
    #[cfg(target_arch = "x86_64")]
    call!("modify_ldt"),
    // Numbers of another architecture.
    #[cfg(target_arch = "x86_64")]
    call!("getpid by 32 bit"),
];

/// To an administrator with all capabilities and no other wall, the filter alone refuses them: one that it lacks is seen.
#[test]
fn each_refused_call_is_refused_by_the_filter_alone() {
    if !User::Own.is_administrator() {
        return println!("not run: this is not the administrator");
    }
    let reaches_without = |row: &Row, omitted: &[&str]| succeeds(row, User::Own, Level::Partial, omitted).0;
    let mut wrong = Vec::new();
    for row in REFUSED_CALLS {
        if reaches_without(row, &["drop-capabilities", "landlock"]) {
            wrong.push(format!("{} is not refused", row.name));
        }
        if !reaches_without(row, &["drop-capabilities", "landlock", "seccomp"]) {
            wrong.push(format!("{} does not get to the kernel without the filter", row.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
