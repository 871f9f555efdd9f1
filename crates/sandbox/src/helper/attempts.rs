//! Attempts to leave the walls, which a probe makes from inside.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;

use rustix::process::{Pid, getpid, test_kill_process};

use crate::request::ProbeTargets;

/// Calls that seccomp refuses, with arguments that the kernel would refuse otherwise: all zero.
const CALLS: [(&str, libc::c_long); 5] = [
    ("io_uring", libc::SYS_io_uring_setup),
    ("moving into a namespace", libc::SYS_setns),
    ("mounting", libc::SYS_move_mount),
    ("performance counters", libc::SYS_perf_event_open),
    ("tracing", libc::SYS_ptrace),
];

/// What Landlock holds from Linux 6.12 on, and nothing before it without a process namespace: level *partial* is named
/// so without it, and says that it is missing.
pub(crate) const SIGNALS: &str = "signals to other processes";

/// Names of the attempts that succeeded.
pub(super) fn escapes(targets: &ProbeTargets) -> Vec<String> {
    let mut escapes: Vec<&str> = Vec::new();
    let mut attempt = |name, succeeded: bool| {
        if succeeded {
            escapes.push(name);
        }
    };
    attempt("reading outside of the walls", File::open(&targets.outside).is_ok());
    attempt("writing outside of the walls", OpenOptions::new().append(true).open(&targets.outside).is_ok());
    attempt("writing the protected set", OpenOptions::new().append(true).open(&targets.protected).is_ok());
    attempt("connecting to a socket in a folder", UnixStream::connect(&targets.socket).is_ok());
    attempt("TCP to the machine", TcpStream::connect(("127.0.0.1", targets.tcp_port)).is_ok());
    // Whether it arrives, the supervisor sees.
    if let Ok(socket) = UdpSocket::bind(("127.0.0.1", 0)) {
        let _ = socket.send_to(b"escaped", ("127.0.0.1", targets.udp_port));
    }
    let supervisor = Pid::from_raw(targets.process).filter(|process| *process != getpid());
    attempt(SIGNALS, supervisor.is_some_and(|process| test_kill_process(process).is_ok()));
    for (name, call) in CALLS {
        attempt(name, !is_refused(call));
    }
    escapes.into_iter().map(str::to_owned).collect()
}

fn is_refused(call: libc::c_long) -> bool {
    #[allow(unsafe_code, reason = "the calls are made as a command could make them, without a library")]
    // SAFETY: every argument is zero, so that no call reads or writes memory; `ptrace` then names this process's own
    // parent as tracer, which ends with this process a moment later.
    let result = unsafe { libc::syscall(call, 0, 0, 0, 0, 0, 0) };
    result == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}
