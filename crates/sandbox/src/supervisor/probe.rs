//! Which level this machine allows.

use std::fs;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, pipe_with};

use super::Sandbox;
use super::conversation::Deadline;
use crate::helper::{SIGNALS, kernel_abi};
use crate::level::{Level, LevelReport};
use crate::outcome::{Ending, Notice, SandboxError};
use crate::process_list::mark;
use crate::request::{HelperRequest, HelperTask, ProbeTargets};
use crate::walls::Walls;

/// How long a probe may take: it has nothing to wait for.
const AT_MOST: Duration = Duration::from_secs(5);

pub(super) fn probe(sandbox: &Sandbox) -> LevelReport {
    let mut missing = Vec::new();
    for level in [Level::Full, Level::Partial] {
        match escapes(sandbox, level) {
            Ok(escapes) => {
                let is_level = escapes.iter().all(|escape| level == Level::Partial && escape == SIGNALS);
                missing.extend(escapes.into_iter().map(|escape| format!("{level}: {escape} is not held")));
                if is_level {
                    return LevelReport { level, missing, landlock: kernel_abi() };
                }
            }
            Err(problem) => missing.push(format!("{level}: {problem}")),
        }
    }
    LevelReport { level: Level::None, missing, landlock: kernel_abi() }
}

/// Folder of a probe, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    /// In `TMPDIR`; where that is not there, in `/tmp`.
    fn make() -> io::Result<Self> {
        Self::make_in(&std::env::temp_dir()).or_else(|_| Self::make_in(Path::new("/tmp")))
    }

    fn make_in(place: &Path) -> io::Result<Self> {
        for attempt in 0..100 {
            let folder = place.join(format!("drawloom-probe-{}-{attempt}", std::process::id()));
            match fs::create_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => return Ok(Self(folder.canonicalize()?)),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let folder = self.0.join(name);
        fs::create_dir(&folder)?;
        Ok(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Thread of this process. It can be signalled as if it were a process, and is not the one that every helper guards.
struct Bystander {
    id: i32,
    end: mpsc::Sender<()>,
}

impl Bystander {
    fn start() -> io::Result<Self> {
        let (begun, id) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let work = move || {
            let _ = begun.send(rustix::thread::gettid().as_raw_nonzero().get());
            let _ = ended.recv();
        };
        thread::Builder::new().name("sandbox-probe".into()).spawn(work)?;
        Ok(Self { id: id.recv().map_err(io::Error::other)?, end })
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.end.send(());
    }
}

/// Attempts that succeed at a level.
fn escapes(sandbox: &Sandbox, level: Level) -> Result<Vec<String>, String> {
    let scratch = Scratch::make().map_err(|error| format!("no folder to try in: {error}"))?;
    try_at(sandbox, level, &scratch)
}

fn try_at(sandbox: &Sandbox, level: Level, scratch: &Scratch) -> Result<Vec<String>, String> {
    let io = |error: io::Error| error.to_string();
    let (root, home) = (scratch.folder("root").map_err(io)?, scratch.folder("home").map_err(io)?);
    let outside = scratch.0.join("outside");
    fs::write(&outside, "outside").map_err(io)?;
    let protected = root.join("AGENTS.md");
    fs::write(&protected, "protected").map_err(io)?;
    let socket = scratch.0.join("socket");
    let _unix = UnixListener::bind(&socket).map_err(io)?;
    let tcp = TcpListener::bind(("127.0.0.1", 0)).map_err(io)?;
    let udp = UdpSocket::bind(("127.0.0.1", 0)).map_err(io)?;
    udp.set_nonblocking(true).map_err(io)?;
    let bystander = Bystander::start().map_err(io)?;
    let targets = ProbeTargets {
        outside,
        socket,
        tcp_port: tcp.local_addr().map_err(io)?.port(),
        udp_port: udp.local_addr().map_err(io)?.port(),
        process: bystander.id,
        // Without mounts it is written, and given back after a command.
        protected: if level == Level::Full { protected.clone() } else { Path::new("/").into() },
    };
    let request = HelperRequest {
        level,
        walls: Walls::around(&root, &home),
        protected: vec![protected],
        fleeting: Vec::new(),
        hidden: Vec::new(),
        veiled: Vec::new(),
        quarantine: None,
        signs_of_life: Vec::new(),
        mark: mark(),
        descriptors: 0,
        caches: Vec::new(),
        task: HelperTask::Probe(targets),
    };
    let (cancelled, _keep) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| error.to_string())?;
    let mut conversation = sandbox.converse(&request, &[], None).map_err(|error| error.to_string())?;
    let deadline = Deadline { deadline: Instant::now() + AT_MOST, cancelled: &[cancelled] };
    let end = conversation.until_its_end(deadline);
    if let Some(failure) = end.failure {
        return Err(format!("{}: {}", failure.step, failure.problem));
    }
    if end.ending != Ending::Exited(0) {
        return Err(SandboxError::Vanished.to_string());
    }
    let mut escapes: Vec<String> = end
        .notices
        .into_iter()
        .filter_map(|notice| match notice {
            Notice::Lacks(what) => Some(what),
            _ => None,
        })
        .collect();
    if udp.recv(&mut [0; 16]).is_ok() {
        escapes.push("UDP to the machine".into());
    }
    Ok(escapes)
}
