//! What goes between the supervisor and the helper: one request, then lines of reports.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::caches::{CacheLayers, CachePlace, CacheState};
use crate::level::Level;
use crate::process_list::mark;
use crate::walls::Walls;

/// Longest message, in bytes: paths of a large workspace, far above any real one.
const LONGEST: u32 = 64 << 20;

/// Task of a helper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HelperRequest {
    pub(crate) level: Level,
    pub(crate) walls: Walls,
    /// Protected paths that exist, absolute.
    #[serde(with = "crate::path_form")]
    pub(crate) protected: Vec<PathBuf>,
    /// Protected paths that came while another command ran: that one may take them away again at any time.
    #[serde(with = "crate::path_form")]
    pub(crate) fleeting: Vec<PathBuf>,
    /// Files and folders of the system that not everybody may read.
    #[serde(with = "crate::path_form")]
    pub(crate) hidden: Vec<PathBuf>,
    /// Folders in which only some names are there, one within another before it.
    pub(crate) veiled: Vec<VeiledFolder>,
    /// Folder for what the look after the command takes away, if there is one.
    #[serde(with = "crate::path_form")]
    pub(crate) quarantine: Option<PathBuf>,
    /// Files whose time the helper marks while the command runs.
    #[serde(with = "crate::path_form")]
    pub(crate) signs_of_life: Vec<PathBuf>,
    /// Mark of the command's processes.
    pub(crate) mark: u64,
    /// Number of descriptors that come after the request: three of a session, one of an input.
    pub(crate) descriptors: usize,
    /// Package caches of the session.
    pub(crate) caches: Vec<CachePlace>,
    pub(crate) task: HelperTask,
}

/// A folder in which only some names are there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VeiledFolder {
    #[serde(with = "crate::path_form")]
    pub(crate) folder: PathBuf,
    #[serde(with = "crate::path_form")]
    pub(crate) names: Vec<PathBuf>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HelperTask {
    Command {
        arguments: Vec<OsString>,
        #[serde(with = "crate::path_form")]
        directory: PathBuf,
    },
    /// Making the namespaces of a session, which the helper hands over.
    Session { temp_bytes: u64, caches: Vec<CacheLayers> },
    /// Making a network of a command's own in a session, with a socket that listens in it; both are handed over.
    Network,
    /// Sockets of a session's network, which the helper hands over one by one.
    Sockets,
    /// Attempts to leave the walls, made by the helper's own code.
    Probe(ProbeTargets),
}

impl HelperRequest {
    /// A request for something that the helper makes and hands over, given so many descriptors.
    pub(crate) fn without_a_command(task: HelperTask, descriptors: usize) -> Self {
        Self {
            level: Level::Full,
            walls: Walls::around(Path::new("/"), Path::new("/")),
            protected: Vec::new(),
            fleeting: Vec::new(),
            hidden: Vec::new(),
            veiled: Vec::new(),
            quarantine: None,
            signs_of_life: Vec::new(),
            mark: mark(),
            descriptors,
            caches: Vec::new(),
            task,
        }
    }
}

/// What the attempts of a probe aim at, made by the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProbeTargets {
    /// File outside of the walls.
    #[serde(with = "crate::path_form")]
    pub(crate) outside: PathBuf,
    /// Listening Unix socket outside of the walls.
    #[serde(with = "crate::path_form")]
    pub(crate) socket: PathBuf,
    /// TCP port on the loopback of the machine that somebody listens on.
    pub(crate) tcp_port: u16,
    pub(crate) udp_port: u16,
    /// Process of the supervisor, by the number of a thread.
    pub(crate) process: i32,
    /// File of the protected set in a writable root.
    #[serde(with = "crate::path_form")]
    pub(crate) protected: PathBuf,
}

/// Line of a helper.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HelperReport {
    /// The walls stand and the command runs.
    Started,
    /// The command did not run.
    Failed {
        step: String,
        problem: String,
    },
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// Names of processes that still ran when the command ended, or was ended.
    Left(Vec<String>),
    /// The limit that the command went over; the tree is ended.
    OverLimit(String),
    /// What the command reaches less well than it should, but runs with.
    Lacks(String),
    /// Attempts of a probe that succeeded.
    Escapes(Vec<String>),
    /// What became of the package caches of a session, in order.
    Caches(Vec<CacheState>),
}

/// Writes one message: its length, then JSON.
pub(crate) fn send<T: Serialize>(message: &T, mut to: impl Write) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend(body);
    to.write_all(&bytes)
}

/// Reads one message; nothing at the end.
pub(crate) fn receive<T: DeserializeOwned>(mut from: impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = u32::from_le_bytes(length);
    if length > LONGEST {
        return Err(io::Error::other(format!("a message of {length} bytes")));
    }
    let mut body = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}
