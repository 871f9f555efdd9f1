//! Seccomp: calls of the kernel that no command needs, or that lead around the other walls.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

use super::{Failure, Step};
use crate::level::Level;
use crate::walls::Network;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls that are refused whatever their arguments.
const REFUSED: &[i64] = &[
    // Around seccomp itself, and other processes.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_process_madvise,
    // Interfaces of the kernel with a history.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    libc::SYS_move_pages,
    libc::SYS_vhangup,
    libc::SYS_syslog,
    // Namespaces, mounts, files by handle.
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_open_by_handle_at,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_nfsservctl,
];

/// `open_tree_attr` of Linux 6.15, for which the library has no name yet; numbers this high are the same everywhere.
const OPEN_TREE_ATTR: i64 = 467;

/// Calls of this architecture alone.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] =
    &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_uselib, libc::SYS__sysctl, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// Flags of `clone` and `unshare` that make a namespace.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];
/// Of `unshare` alone: in `clone` it is a signal.
const NEW_TIME: u64 = 0x80;

/// Families of sockets that stay: within the machine, IP in a network namespace of its own, questions to the kernel.
const FAMILIES: [libc::c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Installs the filters, for this process and all it starts.
pub(super) fn restrict(level: Level, network: Network) -> Result<(), Failure> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).step("seccomp")?;
    let denied = program(denied(level, network)?, libc::EPERM, architecture)?;
    // Its flags lie in memory, where no filter looks; programs then use `clone`.
    let unknown = program([(libc::SYS_clone3, Vec::new())].into(), libc::ENOSYS, architecture)?;
    apply_filter(&other_numbers()).step("seccomp")?;
    apply_filter(&unknown).step("seccomp")?;
    apply_filter(&denied).step("seccomp")
}

/// A filter that refuses with an error. Calls of another architecture (32 bit) end the process.
fn program(rules: Rules, error: libc::c_int, architecture: TargetArch) -> Result<BpfProgram, Failure> {
    let refusal = SeccompAction::Errno(error.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, architecture).step("seccomp")?;
    filter.try_into().step("seccomp")
}

fn denied(level: Level, network: Network) -> Result<Rules, Failure> {
    let mut rules: Rules = REFUSED.iter().chain(REFUSED_HERE).map(|call| (*call, Vec::new())).collect();
    let masked = |flag: u64| condition(0, SeccompCmpOp::MaskedEq(flag), flag);
    let mut clone = Vec::new();
    let mut unshare = vec![rule(vec![masked(NEW_TIME)?])?];
    for flag in NAMESPACES {
        let flag = u64::from(flag.unsigned_abs());
        clone.push(rule(vec![masked(flag)?])?);
        unshare.push(rule(vec![masked(flag)?])?);
    }
    rules.insert(libc::SYS_clone, clone);
    rules.insert(libc::SYS_unshare, unshare);
    // Typing into a terminal.
    let requests = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| request & 0xffff_ffff);
    let requests = requests.map(|request| rule(vec![condition(1, SeccompCmpOp::Eq, request)?]));
    rules.insert(libc::SYS_ioctl, requests.into_iter().collect::<Result<_, _>>()?);
    match (level, network) {
        (Level::Full, Network::Off) => {
            let others =
                FAMILIES.map(|family| condition(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())));
            let others = others.into_iter().collect::<Result<Vec<_>, _>>()?;
            rules.insert(libc::SYS_socket, vec![rule(others)?]);
        }
        (Level::Partial | Level::None, Network::Off) => no_network(&mut rules)?,
    }
    Ok(rules)
}

/// Without a network namespace: no socket but those that begin and end in the command's own processes.
fn no_network(rules: &mut Rules) -> Result<(), Failure> {
    let unix = u64::from(libc::AF_UNIX.unsigned_abs());
    // A datagram socket sends to any address without connecting.
    let datagram = || condition(1, SeccompCmpOp::MaskedEq(0xf), u64::from(libc::SOCK_DGRAM.unsigned_abs()));
    let other = rule(vec![condition(0, SeccompCmpOp::Ne, unix)?])?;
    rules.insert(libc::SYS_socket, vec![other, rule(vec![datagram()?])?]);
    rules.insert(libc::SYS_socketpair, vec![rule(vec![datagram()?])?]);
    rules.insert(libc::SYS_connect, Vec::new());
    Ok(())
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, Failure> {
    // The kernel looks at 32 bits of flags, families and requests; those above would only hide them.
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value).step("seccomp")
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, Failure> {
    SeccompRule::new(conditions).step("seccomp")
}

/// Greatest number of a call that was known when the lists above were made, on every architecture that shares them.
const LAST_KNOWN: u32 = 470;

/// Calls that are in no list: those of newer kernels are unknown, as if the kernel were older; and those of x32, which
/// are those of 64 bit with a bit on top and so pass by the lists, end the process.
fn other_numbers() -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let unknown = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    vec![
        sock_filter { code: LOAD_NUMBER, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: X32 },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_KILL_PROCESS },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: LAST_KNOWN + 1 },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: unknown },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ]
}
