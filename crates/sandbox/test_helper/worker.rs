//! A worker that is told by its input what to try.

use std::fs::File;
use std::hint::black_box;
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode};

use drawloom_sandbox::{Protection, Sandbox, WorkerLimits, run_worker_without};

/// Small enough to be met within a test.
const LIMITS: WorkerLimits =
    WorkerLimits { memory: 256 << 20, stack: 16 << 20, processor_s: 1, time_s: 20, output: 1 << 20 };

/// The worker, without some protections.
pub(crate) fn answer(omitted: &[&str]) -> ExitCode {
    let omitted: Vec<Protection> = omitted.iter().filter_map(|name| Protection::parse(name)).collect();
    run_worker_without(&omitted, &LIMITS, |input| {
        let line = String::from_utf8_lossy(input).into_owned();
        let (what, target) = line.split_once(' ').unwrap_or((&line, ""));
        let succeeded = match what {
            "echo" => return target.as_bytes().to_vec(),
            "flood" => return vec![0; LIMITS.output + 1],
            "memory" => return vec![1; 1 << 30],
            "stack" => return vec![deeper(1)],
            "spin" => loop {
                black_box(());
            },
            "panic" => panic!("as it was told"),
            "file" => File::open(target).is_ok(),
            "new-file" => File::create(target).is_ok(),
            "folder" => std::fs::read_dir(target).is_ok(),
            "tcp" => TcpStream::connect(("127.0.0.1", target.parse().unwrap())).is_ok(),
            "udp" => UdpSocket::bind(("127.0.0.1", 0)).is_ok(),
            "unix" => UnixStream::connect(target).is_ok(),
            "program" => Command::new(target).status().is_ok(),
            "thread" => std::thread::Builder::new().spawn(|| ()).is_ok(),
            _ => return b"there is no such attempt".to_vec(),
        };
        succeeded.to_string().into_bytes()
    })
}

fn deeper(depth: u64) -> u8 {
    let frame = black_box([depth; 64]);
    if frame[0] == 0 { 0 } else { deeper(depth + 1).wrapping_add(black_box(frame)[1] as u8) }
}

/// What a worker without some protections answers to an input, or why it does not.
pub(crate) fn ask(input: &str, omitted: &[&str]) -> Result<String, String> {
    let argument = [&["__work"], omitted].concat();
    let sandbox = Sandbox::of_this_program().expect("/proc");
    let answer = sandbox.work(&argument, input.as_bytes(), &LIMITS, &|| input == "stop");
    answer.map(|bytes| String::from_utf8(bytes).unwrap()).map_err(|error| error.to_string())
}
