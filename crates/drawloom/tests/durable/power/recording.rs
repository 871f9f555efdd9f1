//! What a program did to the files of a folder, in order, from a recording of its system calls by `strace`.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Calls that change files or name what is changed; some kernels lack those with a question mark.
const CALLS: &str = "openat,?open,?creat,write,pwrite64,writev,pwritev,ftruncate,truncate,fallocate,fsync,fdatasync,\
    ?rename,?renameat,renameat2,?link,linkat,?unlink,unlinkat,?mkdir,mkdirat,?rmdir,sync_file_range,copy_file_range,\
    sendfile,splice,close,dup,?dup2,dup3,fcntl,lseek";

/// One call that succeeded. Descriptors are those of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Call {
    Open {
        path: PathBuf,
        flags: String,
        fd: u64,
    },
    Close {
        fd: u64,
    },
    Duplicate {
        fd: u64,
        as_fd: u64,
    },
    /// At a place, or where the descriptor stands.
    Write {
        fd: u64,
        at: Option<u64>,
        bytes: Vec<u8>,
    },
    Seek {
        fd: u64,
        to: u64,
    },
    Length {
        fd: u64,
        bytes: u64,
    },
    Allocate {
        fd: u64,
        end: u64,
    },
    /// Brings what was written before call `began` to the disk.
    Sync {
        fd: u64,
        began: usize,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
        exchange: bool,
    },
    Link {
        from: PathBuf,
        to: PathBuf,
    },
    Unlink {
        path: PathBuf,
    },
    MakeFolder {
        path: PathBuf,
    },
}

/// Runs a program to its end, which must be a good one, and returns its calls and what it said. `log` is a file to
/// be made.
pub(super) fn record(command: &Command, log: &Path) -> (Vec<Call>, String) {
    let mut strace = Command::new("strace");
    strace.args(["-f", "--seccomp-bpf", "-y", "-xx", "-s", "100000000", "-e"]).arg(format!("trace={CALLS}"));
    strace.arg("-o").arg(log).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        strace.current_dir(folder);
    }
    strace.env_clear();
    strace.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = strace.output().unwrap_or_else(|error| {
        panic!("strace cannot be run, and without it nothing is known of power loss: install it ({error})")
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (parse(&std::fs::read_to_string(log).unwrap()), String::from_utf8(output.stdout).unwrap())
}

/// Reads a log: calls in the order they ended, except that a descriptor is free as soon as its closing begins.
fn parse(log: &str) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut begun: HashMap<&str, (String, usize)> = HashMap::new();
    for line in log.lines() {
        let (process, rest) = line.split_once(' ').unwrap();
        let rest = rest.trim_start();
        if rest.starts_with("+++") || rest.starts_with("---") {
            continue;
        }
        if let Some(half) = rest.strip_suffix(" <unfinished ...>") {
            if half.starts_with("close(") {
                calls.extend(call(&format!("{half}) = 0"), calls.len()));
            } else {
                begun.insert(process, (half.to_owned(), calls.len()));
            }
        } else if let Some(resumed) = rest.strip_prefix("<... ") {
            let (_, end) = resumed.split_once(" resumed>").unwrap();
            if let Some((half, began)) = begun.remove(process) {
                calls.extend(call(&format!("{half}{end}"), began));
            }
        } else {
            calls.extend(call(rest, calls.len()));
        }
    }
    calls
}

/// A call by its line; none for one that failed or changes nothing.
fn call(line: &str, began: usize) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let arguments: Vec<&str> = arguments.trim_end().strip_suffix(')')?.split(", ").collect();
    let result = number(result)?;
    let fd = || number(arguments[0]).unwrap();
    let length = |index: usize| number(arguments[index]).unwrap();
    // Without a folder's descriptor, a path is from the working directory, which all commands name in full.
    let path = |index: usize| PathBuf::from(String::from_utf8(quoted(arguments[index])).unwrap());
    let below = |index: usize| plain(&named(arguments[index]).join(path(index + 1)));
    let whole = |bytes: Vec<u8>| {
        assert!(bytes.len() as u64 >= result, "a write was cut by the recorder");
        bytes[..usize::try_from(result).unwrap()].to_vec()
    };
    Some(match name {
        "open" => Call::Open { path: path(0), flags: arguments[1].to_owned(), fd: result },
        "openat" => Call::Open { path: below(0), flags: arguments[2].to_owned(), fd: result },
        "close" => Call::Close { fd: fd() },
        "dup" | "dup2" | "dup3" => Call::Duplicate { fd: fd(), as_fd: result },
        "fcntl" if arguments[1].starts_with("F_DUPFD") => Call::Duplicate { fd: fd(), as_fd: result },
        "write" => Call::Write { fd: fd(), at: None, bytes: whole(quoted(arguments[1])) },
        "writev" => Call::Write { fd: fd(), at: None, bytes: whole(quoted(&arguments[1..].join(", "))) },
        "pwrite64" => Call::Write { fd: fd(), at: Some(length(3)), bytes: whole(quoted(arguments[1])) },
        "lseek" => Call::Seek { fd: fd(), to: result },
        "ftruncate" => Call::Length { fd: fd(), bytes: length(1) },
        "fallocate" => {
            assert_eq!(arguments[1], "0", "{line}");
            Call::Allocate { fd: fd(), end: length(2) + length(3) }
        }
        "fsync" | "fdatasync" => Call::Sync { fd: fd(), began },
        "rename" => Call::Rename { from: path(0), to: path(1), exchange: false },
        "renameat" => Call::Rename { from: below(0), to: below(2), exchange: false },
        "renameat2" => {
            Call::Rename { from: below(0), to: below(2), exchange: arguments[4].contains("RENAME_EXCHANGE") }
        }
        "link" => Call::Link { from: path(0), to: path(1) },
        "linkat" => Call::Link { from: below(0), to: below(2) },
        "unlink" | "rmdir" => Call::Unlink { path: path(0) },
        "unlinkat" => Call::Unlink { path: below(0) },
        "mkdir" => Call::MakeFolder { path: path(0) },
        "mkdirat" => Call::MakeFolder { path: below(0) },
        "fcntl" => return None,
        other => panic!("the model does not know {other}: {line}"),
    })
}

/// A path without `.` and `..`; no link is on the way in the folders recorded.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// The number an argument or result begins with; none for an error.
fn number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// The path the recorder knows a descriptor by: `9</home>`, `AT_FDCWD</folder>`.
fn named(text: &str) -> PathBuf {
    let inside = text.split_once('<').map_or("", |(_, rest)| rest.trim_end_matches('>'));
    PathBuf::from(String::from_utf8(bytes(inside)).unwrap())
}

/// All that stands in quotes, in order.
fn quoted(text: &str) -> Vec<u8> {
    assert!(!text.contains("\"..."), "a string was cut by the recorder");
    text.split('"').skip(1).step_by(2).flat_map(bytes).collect()
}

/// Bytes written as `\x41\x42`.
fn bytes(hex: &str) -> Vec<u8> {
    hex.split("\\x").skip(1).map(|byte| u8::from_str_radix(&byte[..2], 16).unwrap()).collect()
}

#[test]
fn a_log_of_two_threads_is_read_in_order() {
    let log = r#"7 openat(AT_FDCWD<\x2f\x77>, "\x61", O_RDWR|O_CREAT, 0600) = 3<\x2f\x77\x2f\x61>
7 fsync(3<\x2f\x77\x2f\x61> <unfinished ...>
8 pwrite64(3<\x2f\x77\x2f\x61>, "\x00\x22", 2, 5) = 2
7 <... fsync resumed>) = 0
8 unlink("\x62") = -1 ENOENT (No such file or directory)
7 +++ exited with 0 +++
"#;
    let expected = [
        Call::Open { path: "/w/a".into(), flags: "O_RDWR|O_CREAT".to_owned(), fd: 3 },
        Call::Write { fd: 3, at: Some(5), bytes: vec![0, 0x22] },
        Call::Sync { fd: 3, began: 1 },
    ];
    assert_eq!(parse(log), expected);
}
