//! Seccomp: calls of the kernel that no command needs, or that lead around the other walls.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

use rustix::process::Pid;

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

/// Calls that change a mode, with the argument that is it.
#[cfg(target_arch = "x86_64")]
const CHANGES_OF_MODE: &[(i64, u8)] =
    &[(libc::SYS_chmod, 1), (libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2)];
#[cfg(not(target_arch = "x86_64"))]
const CHANGES_OF_MODE: &[(i64, u8)] = &[(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2)];
/// `fchmodat2` of Linux 6.6.
const FCHMODAT2: i64 = 452;
/// `S_ISUID`. One that a new file has is taken away by the kernel with the first byte that is written.
const SET_USER: u64 = 0o4000;

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

/// What other walls hold.
pub(super) struct OtherWalls {
    /// Signals to everybody outside.
    pub(super) hold_signals: bool,
    /// Emptying a file without opening it to write.
    pub(super) hold_truncation: bool,
}

/// Installs the filters, for this process and all it starts. `guarded` are processes that must not be ended, for what is
/// done after a command.
pub(super) fn restrict(
    level: Level,
    network: Network,
    guarded: &[Pid],
    others: &OtherWalls,
) -> Result<(), Failure> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).step("seccomp")?;
    let mut denied = denied(level, network)?;
    // Its flags lie in memory, where no filter looks; programs then use `clone`.
    let mut unknown: Rules = [(libc::SYS_clone3, Vec::new())].into();
    if level != Level::Full {
        guard(&mut denied, guarded)?;
        if !others.hold_signals {
            no_indirect_signals(&mut denied, &mut unknown)?;
        }
    }
    if !others.hold_truncation {
        no_truncation(&mut denied, &mut unknown)?;
    }
    let denied = program(denied, libc::EPERM, architecture)?;
    let unknown = program(unknown, libc::ENOSYS, architecture)?;
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

/// Calls of a process that reads, computes, answers and ends.
const WORK: [i64; 25] = [
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_fstat,
    libc::SYS_ppoll,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Allows a process the calls of [`WORK`], memory that is not run, and signals to itself: no file is opened, nothing is
/// connected, run or ended. All other calls are refused with an error.
pub(super) fn allow_work() -> Result<(), Failure> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).step("seccomp")?;
    let mut allowed: Rules = WORK.iter().map(|call| (*call, Vec::new())).collect();
    let not_run = || rule(vec![condition(2, SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64), 0)?]);
    allowed.insert(libc::SYS_mmap, vec![not_run()?]);
    allowed.insert(libc::SYS_mprotect, vec![not_run()?]);
    // What `abort` does.
    let own = u64::from(rustix::process::getpid().as_raw_nonzero().get().cast_unsigned());
    allowed.insert(libc::SYS_tgkill, vec![rule(vec![condition(0, SeccompCmpOp::Eq, own)?])?]);
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(allowed, refused, SeccompAction::Allow, architecture).step("seccomp")?;
    let program: BpfProgram = filter.try_into().step("seccomp")?;
    apply_filter(&program).step("seccomp")
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
    // A program that runs as the owner, for other users of the machine; a mount without set-user-ID holds the command alone.
    for (call, mode) in CHANGES_OF_MODE {
        let sets_user = condition(*mode, SeccompCmpOp::MaskedEq(SET_USER), SET_USER)?;
        rules.insert(*call, vec![rule(vec![sets_user])?]);
    }
    // The mark of the command's processes.
    let mark = u64::from(libc::RLIMIT_LOCKS);
    let is_mark = |argument| condition(argument, SeccompCmpOp::Eq, mark);
    rules.insert(libc::SYS_setrlimit, vec![rule(vec![is_mark(0)?])?]);
    rules.insert(libc::SYS_prlimit64, vec![rule(vec![is_mark(1)?, sets_a_limit()?])?]);
    match (level, network) {
        (Level::Full, Network::Off | Network::Open) => {
            rules.insert(libc::SYS_socket, vec![other_families(&FAMILIES)?]);
        }
        (Level::Partial | Level::None, Network::Off) => no_network(&mut rules)?,
        (Level::Partial | Level::None, Network::Open) => no_unix_sockets(&mut rules)?,
    }
    Ok(rules)
}

/// Sockets of other families than these.
fn other_families(families: &[libc::c_int]) -> Result<SeccompRule, Failure> {
    let other =
        families.iter().map(|family| condition(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())));
    rule(other.collect::<Result<_, _>>()?)
}

/// Without a network namespace: no socket but those that begin and end in the command's own processes.
fn no_network(rules: &mut Rules) -> Result<(), Failure> {
    let datagrams = datagrams()?;
    let mut sockets = vec![other_families(&[libc::AF_UNIX])?];
    sockets.extend(datagrams.clone());
    rules.insert(libc::SYS_socket, sockets);
    rules.insert(libc::SYS_socketpair, datagrams);
    rules.insert(libc::SYS_connect, Vec::new());
    Ok(())
}

/// The network of the machine, without the sockets of other programs that lie in folders: a service of the owner's behind
/// one (D-Bus, Docker, an agent of keys) does whatever it is told, and nothing but the family tells them apart.
fn no_unix_sockets(rules: &mut Rules) -> Result<(), Failure> {
    rules.insert(libc::SYS_socket, vec![other_families(&[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK])?]);
    rules.insert(libc::SYS_socketpair, datagrams()?);
    Ok(())
}

/// Kinds of sockets of a machine that send to any address without connecting; the kernel makes one of a raw one.
fn datagrams() -> Result<Vec<SeccompRule>, Failure> {
    let kind = |kind: libc::c_int| {
        rule(vec![condition(1, SeccompCmpOp::MaskedEq(0xf), u64::from(kind.unsigned_abs()))?])
    };
    Ok(vec![kind(libc::SOCK_DGRAM)?, kind(libc::SOCK_RAW)?])
}

/// Without a process namespace: no signal to processes known by number, nor to their groups, nor to everybody, and no
/// limit for another process, which would end it as well.
fn guard(rules: &mut Rules, guarded: &[Pid]) -> Result<(), Failure> {
    let is = |argument, value: i32| {
        rule(vec![condition(argument, SeccompCmpOp::Eq, u64::from(value.cast_unsigned()))?])
    };
    let mut kill = vec![is(0, -1)?];
    let mut others = Vec::new();
    for process in guarded {
        let process = process.as_raw_nonzero().get();
        kill.extend([is(0, process)?, is(0, -process)?]);
        others.push(is(0, process)?);
    }
    rules.insert(libc::SYS_kill, kill);
    let calls = [libc::SYS_tkill, libc::SYS_tgkill, libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo];
    for call in calls.into_iter().chain([libc::SYS_pidfd_open]) {
        rules.insert(call, others.clone());
    }
    let foreign = rule(vec![condition(0, SeccompCmpOp::Ne, 0)?, sets_a_limit()?])?;
    rules.entry(libc::SYS_prlimit64).or_default().push(foreign);
    Ok(())
}

/// Of `prlimit64`: there is a new limit.
fn sets_a_limit() -> Result<SeccompCondition, Failure> {
    SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0).step("seccomp")
}

/// Ways by which a signal goes to a process that is not named by number: a descriptor of its folder in `/proc`, and the
/// owner of a descriptor.
fn no_indirect_signals(denied: &mut Rules, unknown: &mut Rules) -> Result<(), Failure> {
    unknown.insert(libc::SYS_pidfd_send_signal, Vec::new());
    let is = |value| rule(vec![condition(1, SeccompCmpOp::Eq, value)?]);
    denied.insert(libc::SYS_fcntl, vec![is(SET_OWNER)?, is(SET_OWNER_EX)?]);
    denied.entry(libc::SYS_ioctl).or_default().extend([is(FILE_SET_OWNER)?, is(SOCKET_SET_OWNER)?]);
    Ok(())
}

/// Ways to empty a file that is not opened to write: by its name, and by what is opened to read, or to neither read nor
/// write.
fn no_truncation(denied: &mut Rules, unknown: &mut Rules) -> Result<(), Failure> {
    denied.insert(libc::SYS_truncate, Vec::new());
    // Its flags lie in memory; programs then use `openat`.
    unknown.insert(libc::SYS_openat2, Vec::new());
    let emptied = u64::from(libc::O_TRUNC.unsigned_abs());
    let access = u64::from(libc::O_ACCMODE.unsigned_abs());
    for (call, flags) in OPENING {
        let is = |value| rule(vec![condition(*flags, SeccompCmpOp::MaskedEq(emptied | access), value)?]);
        denied.insert(*call, vec![is(emptied)?, is(emptied | access)?]);
    }
    Ok(())
}

/// Calls that open a file, with the argument that is their flags.
#[cfg(target_arch = "x86_64")]
const OPENING: &[(i64, u8)] = &[(libc::SYS_open, 1), (libc::SYS_openat, 2)];
#[cfg(not(target_arch = "x86_64"))]
const OPENING: &[(i64, u8)] = &[(libc::SYS_openat, 2)];

/// `F_SETOWN`, `F_SETOWN_EX`, `FIOSETOWN`, `SIOCSPGRP`.
const SET_OWNER: u64 = 8;
const SET_OWNER_EX: u64 = 15;
const FILE_SET_OWNER: u64 = 0x8901;
const SOCKET_SET_OWNER: u64 = 0x8902;

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
