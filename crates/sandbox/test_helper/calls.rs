//! Calls of the kernel that no command needs, each with arguments that no kernel takes: it is refused by a filter, or gets
//! to the kernel, which refuses the arguments.

#![allow(unsafe_code, reason = "an attacker is not bound to safe calls")]

use std::io::Error;

/// Number of a call by its name. `vhangup` is not among them: it takes no arguments that could be wrong.
fn number(name: &str) -> Option<libc::c_long> {
    Some(match name {
        "io_uring_setup" => libc::SYS_io_uring_setup,
        "io_uring_enter" => libc::SYS_io_uring_enter,
        "io_uring_register" => libc::SYS_io_uring_register,
        "ptrace" => libc::SYS_ptrace,
        "process_vm_readv" => libc::SYS_process_vm_readv,
        "process_vm_writev" => libc::SYS_process_vm_writev,
        "pidfd_getfd" => libc::SYS_pidfd_getfd,
        "kcmp" => libc::SYS_kcmp,
        "process_madvise" => libc::SYS_process_madvise,
        "bpf" => libc::SYS_bpf,
        "perf_event_open" => libc::SYS_perf_event_open,
        "userfaultfd" => libc::SYS_userfaultfd,
        "add_key" => libc::SYS_add_key,
        "request_key" => libc::SYS_request_key,
        "keyctl" => libc::SYS_keyctl,
        "fanotify_init" => libc::SYS_fanotify_init,
        "lookup_dcookie" => libc::SYS_lookup_dcookie,
        "move_pages" => libc::SYS_move_pages,
        "syslog" => libc::SYS_syslog,
        "setns" => libc::SYS_setns,
        "mount" => libc::SYS_mount,
        "umount2" => libc::SYS_umount2,
        "pivot_root" => libc::SYS_pivot_root,
        "chroot" => libc::SYS_chroot,
        "open_tree" => libc::SYS_open_tree,
        "move_mount" => libc::SYS_move_mount,
        "fsopen" => libc::SYS_fsopen,
        "fsconfig" => libc::SYS_fsconfig,
        "fsmount" => libc::SYS_fsmount,
        "fspick" => libc::SYS_fspick,
        "mount_setattr" => libc::SYS_mount_setattr,
        "open_tree_attr" => 467,
        "open_by_handle_at" => libc::SYS_open_by_handle_at,
        "sethostname" => libc::SYS_sethostname,
        "setdomainname" => libc::SYS_setdomainname,
        "kexec_load" => libc::SYS_kexec_load,
        "kexec_file_load" => libc::SYS_kexec_file_load,
        "init_module" => libc::SYS_init_module,
        "finit_module" => libc::SYS_finit_module,
        "delete_module" => libc::SYS_delete_module,
        "reboot" => libc::SYS_reboot,
        "swapon" => libc::SYS_swapon,
        "swapoff" => libc::SYS_swapoff,
        "acct" => libc::SYS_acct,
        "quotactl" => libc::SYS_quotactl,
        "quotactl_fd" => libc::SYS_quotactl_fd,
        "settimeofday" => libc::SYS_settimeofday,
        "clock_settime" => libc::SYS_clock_settime,
        "clock_adjtime" => libc::SYS_clock_adjtime,
        "adjtimex" => libc::SYS_adjtimex,
        "nfsservctl" => libc::SYS_nfsservctl,
        "clone3" => libc::SYS_clone3,
        #[cfg(target_arch = "x86_64")]
        "iopl" => libc::SYS_iopl,
        #[cfg(target_arch = "x86_64")]
        "ioperm" => libc::SYS_ioperm,
        #[cfg(target_arch = "x86_64")]
        "uselib" => libc::SYS_uselib,
        #[cfg(target_arch = "x86_64")]
        "_sysctl" => libc::SYS__sysctl,
        #[cfg(target_arch = "x86_64")]
        "modify_ldt" => libc::SYS_modify_ldt,
        _ => return None,
    })
}

/// Whether a call gets to the kernel. Filters refuse with `EPERM`, and `clone3` as if there were none, so that programs take
/// another one.
pub(crate) fn reaches_the_kernel(name: &str) -> bool {
    #[cfg(target_arch = "x86_64")]
    if name == "getpid by 32 bit" {
        return has_32_bit();
    }
    let number = number(name).unwrap_or_else(|| panic!("no call {name}"));
    let wrong: libc::c_long = -1;
    // SAFETY: no flags, no descriptor and no address are all ones, so that nothing is read, written or done.
    let result = unsafe { libc::syscall(number, wrong, wrong, wrong, wrong, wrong, wrong) };
    let refusal = if name == "clone3" { libc::ENOSYS } else { libc::EPERM };
    result != -1 || Error::last_os_error().raw_os_error() != Some(refusal)
}

/// Whether a call by the interface of 32 bit, whose numbers are others, is answered.
#[cfg(target_arch = "x86_64")]
fn has_32_bit() -> bool {
    const GETPID: u64 = 20;
    let mut result = GETPID;
    // SAFETY: the call reads and writes no memory; what it may change of registers is named.
    unsafe {
        std::arch::asm!("int 0x80", inout("rax") result, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    result == u64::from(std::process::id())
}
