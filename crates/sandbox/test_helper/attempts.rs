//! Attempts that a shell has no words for. Each is an escape if it returns true.

#![allow(unsafe_code, reason = "an attacker is not bound to safe calls")]

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::ptr::null_mut;

fn target(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn number(name: &str) -> libc::c_long {
    target(name).parse().unwrap_or_default()
}

pub(crate) fn attempt(name: &str) -> bool {
    match name {
        "environ-of-all" => any_process(|process| fs::read(format!("/proc/{process}/environ")).ok()),
        "arguments-of-all" => any_process(|process| fs::read(format!("/proc/{process}/cmdline")).ok()),
        "xattr" => set_attribute(&target("OUTSIDE")),
        "truncate" => truncate(&target("OUTSIDE")),
        "tcp" => TcpStream::connect(("127.0.0.1", port("TCP"))).is_ok(),
        "udp" => send_datagram("127.0.0.1", port("UDP")),
        "udp6" => send_datagram("::1", port("UDP6")),
        "unix" => UnixStream::connect(format!("{}/socket", target("OUTSIDE"))).is_ok(),
        "answer-by-socket" => UnixStream::connect(format!("{}/run/socket", target("OWNER_HOME"))).is_ok(),
        "push-answer" => {
            OpenOptions::new().read(true).write(true).open("/dev/tty").is_ok_and(|terminal| types(&terminal))
        }
        "unix-in-cache" => UnixStream::connect(format!("{}/socket", target("CACHE"))).is_ok(),
        "unix-datagram" => unix_datagram(),
        "unix-raw" => unix_raw(&format!("{}/datagrams", target("OUTSIDE"))),
        "abstract" => {
            let address = SocketAddr::from_abstract_name(target("BASE").as_bytes());
            address.and_then(|address| UnixStream::connect_addr(&address)).is_ok()
        }
        "vsock" => call(libc::SYS_socket, [40, libc::SOCK_STREAM.into(), 0, 0, 0]) >= 0,
        "raw-socket" => call(libc::SYS_socket, [libc::AF_INET.into(), libc::SOCK_RAW.into(), 1, 0, 0]) >= 0,
        "io-uring" => {
            let mut parameters = [0_u8; 120];
            call(libc::SYS_io_uring_setup, [1, parameters.as_mut_ptr() as _, 0, 0, 0]) >= 0
        }
        "kill" => call(libc::SYS_kill, [number("VICTIM"), 0, 0, 0, 0]) == 0,
        "trace" => trace_victim(),
        "trace-child" => trace_child(),
        "read-memory" => read_memory(number("VICTIM")),
        "memory-file" => memory_file(&target("VICTIM")),
        "memory-of-parent" => memory_file(&std::os::unix::process::parent_id().to_string()),
        "process-descriptor" => call(libc::SYS_pidfd_open, [number("VICTIM"), 0, 0, 0, 0]) >= 0,
        "unshare-user" => call(libc::SYS_unshare, [libc::CLONE_NEWUSER.into(), 0, 0, 0, 0]) == 0,
        "clone-user" => clone_user(),
        "mount" => mount_in_new_namespace(),
        "setns" => join_namespace(),
        "chroot" => call(libc::SYS_chroot, [c"/".as_ptr() as _, 0, 0, 0, 0]) == 0,
        "handle" => open_by_handle(&target("OUTSIDE")),
        "keyring" => {
            let name = c"drawloom-escape";
            let arguments = [c"user".as_ptr() as _, name.as_ptr() as _, c"x".as_ptr() as _, 1, -1];
            call(libc::SYS_add_key, arguments) >= 0
        }
        "x32" => {
            call(0x4000_0000 | libc::SYS_getpid, [0; 5]);
            true
        }
        "attribute-in-cache" => set_attribute(&target("CACHE")),
        "forks" => forks(100),
        "memory" => memory(256 << 20),
        "memory-in-file" => memory_in_file(256 << 20),
        "shared-memory" => shared_memory(256 << 20),
        "memory-of-threads" => without_first_thread(|| memory(256 << 20)),
        "outlive-as-threads" => without_first_thread(outlive),
        "kernel-settings" => OpenOptions::new().write(true).open("/proc/sys/kernel/core_pattern").is_ok(),
        "capabilities" => {
            let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
            status.lines().any(|line| {
                line.strip_prefix("CapEff:").is_some_and(|set| set.trim().bytes().any(|digit| digit != b'0'))
            })
        }
        "privileges" => {
            let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
            status.lines().any(|line| line.trim() == "NoNewPrivs:\t0")
        }
        "terminal-request" => [libc::TIOCSTI, libc::TIOCLINUX].into_iter().any(|request| {
            // SAFETY: the byte lives as long as the call.
            let done = unsafe { libc::ioctl(0, request, [b'x'].as_ptr()) } == 0;
            // What is no terminal refuses it for that.
            done || std::io::Error::last_os_error().raw_os_error() != Some(libc::EPERM)
        }),
        "type-into-terminal" => type_into_terminal(),
        other => panic!("no attempt {other}"),
    }
}

fn port(name: &str) -> u16 {
    u16::try_from(number(name)).unwrap_or_default()
}

fn call(number: libc::c_long, arguments: [libc::c_long; 5]) -> libc::c_long {
    let [a, b, c, d, e] = arguments;
    // SAFETY: what is pointed to lives in the caller.
    unsafe { libc::syscall(number, a, b, c, d, e) }
}

fn any_process(read: impl Fn(&str) -> Option<Vec<u8>>) -> bool {
    let own = std::process::id().to_string();
    fs::read_dir("/proc").into_iter().flatten().flatten().any(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let secret = b"s3cret-of-the-owner";
        name != own
            && name.bytes().all(|byte| byte.is_ascii_digit())
            && read(&name).is_some_and(|text| text.windows(secret.len()).any(|part| part == secret))
    })
}

fn set_attribute(folder: &str) -> bool {
    let path = std::ffi::CString::new(format!("{folder}/file")).unwrap();
    let arguments = [path.as_ptr() as _, c"user.escape".as_ptr() as _, c"x".as_ptr() as _, 1, 0];
    call(libc::SYS_setxattr, arguments) == 0
}

/// By its name, and opened to read, or to neither read nor write.
fn truncate(folder: &str) -> bool {
    let path = std::ffi::CString::new(format!("{folder}/file")).unwrap();
    // SAFETY: the path lives as long as the calls.
    unsafe {
        let opened =
            [libc::O_RDONLY, libc::O_ACCMODE].map(|access| libc::open(path.as_ptr(), access | libc::O_TRUNC));
        libc::truncate(path.as_ptr(), 0) == 0 || opened.iter().any(|opened| *opened >= 0)
    }
}

fn send_datagram(host: &str, port: u16) -> bool {
    let own = if host.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
    UdpSocket::bind(own).and_then(|socket| socket.send_to(b"escaped", (host, port))).is_ok()
}

fn unix_datagram() -> bool {
    let socket = UnixDatagram::unbound();
    socket.and_then(|socket| socket.send_to(b"escaped", format!("{}/datagrams", target("OUTSIDE")))).is_ok()
}

/// The kernel makes a datagram socket of it.
fn unix_raw(path: &str) -> bool {
    let socket = call(libc::SYS_socket, [libc::AF_UNIX.into(), libc::SOCK_RAW.into(), 0, 0, 0]);
    let mut address = vec![1, 0];
    address.extend(path.as_bytes());
    address.push(0);
    let text = b"escaped";
    let arguments = (text.as_ptr(), text.len(), 0, address.as_ptr(), address.len());
    // SAFETY: text and address live as long as the call, and their lengths are given.
    socket >= 0
        && unsafe {
            libc::syscall(
                libc::SYS_sendto,
                socket,
                arguments.0,
                arguments.1,
                arguments.2,
                arguments.3,
                arguments.4,
            )
        } >= 0
}

/// Goes on in another thread, and ends the first one: the process then looks as if it had ended.
fn without_first_thread(work: fn() -> bool) -> ! {
    std::thread::spawn(move || std::process::exit(i32::from(!work())));
    // SAFETY: ends only this thread, which holds nothing.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!()
}

/// Holds the pipe of the working folder, and says so.
fn outlive() -> bool {
    let pipe = OpenOptions::new().read(true).write(true).open("pipe");
    std::thread::sleep(std::time::Duration::from_millis(50));
    fs::write("left", std::process::id().to_string()).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(60));
    pipe.is_ok()
}

fn trace_victim() -> bool {
    let victim = number("VICTIM");
    let attached = call(libc::SYS_ptrace, [libc::PTRACE_SEIZE.into(), victim, 0, 0, 0]) == 0;
    call(libc::SYS_ptrace, [libc::PTRACE_DETACH.into(), victim, 0, 0, 0]);
    attached
}

fn trace_child() -> bool {
    call(libc::SYS_ptrace, [libc::PTRACE_TRACEME.into(), 0, 0, 0, 0]) == 0
}

fn read_memory(process: libc::c_long) -> bool {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let start = maps.split('-').next().and_then(|start| usize::from_str_radix(start, 16).ok());
    let mut buffer = [0_u8; 16];
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: 16 };
    let remote = libc::iovec { iov_base: start.unwrap_or(0x40_0000) as _, iov_len: 16 };
    // SAFETY: both vectors live as long as the call.
    unsafe { libc::process_vm_readv(process as _, &raw const local, 1, &raw const remote, 1, 0) == 16 }
}

fn memory_file(process: &str) -> bool {
    File::open(format!("/proc/{process}/mem")).is_ok()
}

fn clone_user() -> bool {
    let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
    let process = call(libc::SYS_clone, [flags.into(), 0, 0, 0, 0]);
    if process == 0 {
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) }
    }
    process > 0
}

fn mount_in_new_namespace() -> bool {
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS;
    call(libc::SYS_unshare, [flags.into(), 0, 0, 0, 0]) == 0
        && call(libc::SYS_mount, [c"x".as_ptr() as _, c"/tmp".as_ptr() as _, c"tmpfs".as_ptr() as _, 0, 0])
            == 0
}

fn join_namespace() -> bool {
    File::open("/proc/self/ns/uts")
        .is_ok_and(|namespace| call(libc::SYS_setns, [namespace.as_raw_fd().into(), 0, 0, 0, 0]) == 0)
}

fn open_by_handle(folder: &str) -> bool {
    let Ok(path) = std::ffi::CString::new(if File::open(folder).is_ok() { folder } else { "/usr" }) else {
        return false;
    };
    let mut handle = [0_u32; 34];
    handle[0] = 128;
    let mut mount = 0_i32;
    // SAFETY: the handle has 128 bytes after its head of 8.
    unsafe {
        let given = libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            handle.as_mut_ptr(),
            &raw mut mount,
            0,
        );
        let place = libc::open(path.as_ptr(), libc::O_RDONLY);
        given == 0
            && libc::syscall(libc::SYS_open_by_handle_at, place, handle.as_mut_ptr(), libc::O_RDONLY) >= 0
    }
}

/// Whether so many children are there at a time.
fn forks(count: usize) -> bool {
    let mut children = Vec::new();
    let mut ends = [0; 2];
    // SAFETY: each child only waits for the pipe's end.
    unsafe {
        libc::pipe(ends.as_mut_ptr());
        for _ in 0..count {
            match libc::fork() {
                0 => {
                    libc::close(ends[1]);
                    libc::read(ends[0], [0_u8; 1].as_mut_ptr().cast(), 1);
                    libc::_exit(0)
                }
                -1 => break,
                child => children.push(child),
            }
        }
        let reached = children.len() == count && outlasts_a_count();
        libc::close(ends[1]);
        for child in children {
            libc::waitpid(child, null_mut(), 0);
        }
        reached
    }
}

/// Lives on for longer than processes and memory may go uncounted.
fn outlasts_a_count() -> bool {
    let until = std::time::Instant::now() + std::time::Duration::from_millis(250);
    while std::time::Instant::now() < until {
        std::hint::spin_loop();
    }
    true
}

fn memory(bytes: usize) -> bool {
    // In pieces by several calls, so that no single one is refused for its size.
    let mut pieces = Vec::new();
    for _ in 0..bytes >> 20 {
        // SAFETY: a new private mapping of a mebibyte, written below.
        let piece = unsafe {
            libc::mmap(
                null_mut(),
                1 << 20,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if piece == libc::MAP_FAILED {
            return false;
        }
        // SAFETY: it was just mapped.
        unsafe { piece.cast::<u8>().write_bytes(1, 1 << 20) };
        pieces.push(piece);
    }
    !pieces.is_empty() && outlasts_a_count()
}

fn memory_in_file(bytes: usize) -> bool {
    use std::io::Write as _;
    use std::os::fd::FromRawFd as _;
    // SAFETY: the name is a C string.
    let file = unsafe { libc::memfd_create(c"escape".as_ptr(), 0) };
    if file < 0 {
        return false;
    }
    // SAFETY: it was just made, and is nobody else's.
    let mut file = unsafe { File::from_raw_fd(file) };
    (0..bytes >> 20).all(|_| file.write_all(&[1; 1 << 20]).is_ok()) && outlasts_counts()
}

fn shared_memory(bytes: usize) -> bool {
    // SAFETY: the segment is new, has so many bytes, and is let go before it is removed.
    unsafe {
        let segment = libc::shmget(libc::IPC_PRIVATE, bytes, 0o600);
        let place = libc::shmat(segment, null_mut(), 0);
        if segment < 0 || place as isize == -1 {
            return false;
        }
        place.cast::<u8>().write_bytes(1, bytes);
        libc::shmdt(place);
        let outlasts = outlasts_counts();
        libc::shmctl(segment, libc::IPC_RMID, null_mut());
        outlasts
    }
}

/// Lives on for longer than memory that no process maps may go uncounted.
fn outlasts_counts() -> bool {
    std::thread::sleep(std::time::Duration::from_millis(1_000));
    true
}

/// Makes this process the leader of a session with a terminal, at which `y` was typed.
pub(crate) fn take_terminal() -> [File; 2] {
    let ours = OpenOptions::new().read(true).write(true).open("/dev/ptmx").expect("a terminal");
    let zero: libc::c_int = 0;
    // SAFETY: the terminal is open, and the number lives as long as the call.
    let theirs = unsafe {
        libc::setsid();
        libc::ioctl(ours.as_raw_fd(), libc::TIOCSPTLCK, &raw const zero);
        libc::ioctl(ours.as_raw_fd(), libc::TIOCGPTPEER, libc::O_RDWR | libc::O_CLOEXEC)
    };
    assert!(theirs >= 0, "the other end of the terminal");
    // SAFETY: it was just opened, and is nobody else's.
    let theirs = unsafe { <File as std::os::fd::FromRawFd>::from_raw_fd(theirs) };
    // SAFETY: the terminal is open.
    assert_eq!(unsafe { libc::ioctl(theirs.as_raw_fd(), libc::TIOCSCTTY, 0) }, 0, "a session of its own");
    (&ours).write_all(b"y\n").expect("an answer");
    [ours, theirs]
}

fn type_into_terminal() -> bool {
    let Ok(terminal) = OpenOptions::new().read(true).write(true).open("/dev/ptmx") else { return false };
    types(&terminal)
}

fn types(terminal: &File) -> bool {
    // SAFETY: the terminal is open, the byte lives as long as the call.
    unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSTI, [b'y'].as_ptr()) == 0 }
}
