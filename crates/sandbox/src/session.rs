//! Session: what the commands of one conversation share (spec: security §1).
//!
//! At level *full* it is one network, in which there is nothing but its loopback, and one `/tmp` in memory: a server that a
//! background command runs answers a later command, and a file in `/tmp` is found by it. Processes, mounts, message queues
//! and shared memory stay those of each command; of Unix sockets those in `/tmp` are reached by another command, abstract ones not. Below *full* it is a `/tmp` alone, a folder; a command has no network there,
//! also not to another one of its session.
//!
//! No process keeps a session: its namespaces are descriptors of this one. When the last [`Session`] is dropped or
//! [`Session::end`] is called, every command of it ends; when this process ends, also by `kill -9`, the kernel closes the
//! descriptors and ends the commands.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::background::{BackgroundCommand, OutputLog};
use crate::descriptors::SessionNamespaces;
use crate::level::Level;
use crate::outcome::{Outcome, SandboxError};
use crate::session_folder::SessionFolder;
use crate::supervisor::{OutputSink, Run, RunScope, RunningCommand, Sandbox};

/// Session of commands, by one or several owners.
#[derive(Clone, Debug)]
pub struct Session(Arc<SessionState>);

#[derive(Debug)]
struct SessionState {
    sandbox: Sandbox,
    level: Level,
    namespaces: Option<Arc<SessionNamespaces>>,
    folder: Option<Arc<SessionFolder>>,
    accepted: Arc<Mutex<Vec<PathBuf>>>,
    ended: OwnedFd,
    /// The other end of it. Commands hold only the first, so that this one is closed with the last owner.
    end: Mutex<Option<OwnedFd>>,
}

impl Sandbox {
    /// Opens a session at a level, not above what the probe found. Below level *full* its `/tmp` is a folder below `place`,
    /// which lies outside of every root; in *full* it is in memory and holds `temp_bytes` at most. Blocks for some 10 ms.
    ///
    /// # Errors
    /// If its namespaces or its folder cannot be made.
    pub fn open_session(&self, level: Level, place: &Path, temp_bytes: u64) -> Result<Session, SandboxError> {
        let (namespaces, folder) = match level {
            Level::Full => (Some(Arc::new(self.make_namespaces(temp_bytes)?)), None),
            Level::Partial | Level::None => {
                let folder = SessionFolder::make(place).map_err(|error| SandboxError::Path {
                    path: place.to_owned(),
                    problem: error.to_string(),
                })?;
                (None, Some(Arc::new(folder)))
            }
        };
        let (ended, end) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|error| SandboxError::Start(error.into()))?;
        Ok(Session(Arc::new(SessionState {
            sandbox: self.clone(),
            level,
            namespaces,
            folder,
            accepted: Arc::default(),
            ended,
            end: Mutex::new(Some(end)),
        })))
    }
}

impl Session {
    pub fn level(&self) -> Level {
        self.0.level
    }

    /// Runs a command to its end, as [`Sandbox::run`] does, in the session and at its level. A folder that the walls name
    /// as `/tmp` is shown in place of the session's.
    ///
    /// # Errors
    /// As [`Sandbox::run`], and [`SandboxError::SessionEnded`].
    pub async fn run(&self, run: Run, sink: Option<OutputSink>) -> Result<Outcome, SandboxError> {
        self.start(run, sink)?.outcome().await
    }

    /// Starts a command in the session and at its level.
    ///
    /// # Errors
    /// As [`Sandbox::start`], and [`SandboxError::SessionEnded`].
    pub fn start(&self, run: Run, sink: Option<OutputSink>) -> Result<RunningCommand, SandboxError> {
        let scope = self.scope(&run)?;
        self.0.sandbox.start_in(self.placed(run), sink, scope)
    }

    /// Starts a command in the background: with an input that is written to, and output that is kept, of the last
    /// `log_bytes`, until somebody asks for it. Its time is that of its walls; it ends with the session.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_background(&self, run: Run, log_bytes: usize) -> Result<BackgroundCommand, SandboxError> {
        let mut scope = self.scope(&run)?;
        let (theirs, input) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|error| SandboxError::Start(error.into()))?;
        scope.input = Some(theirs);
        let log = Arc::new(OutputLog::new(log_bytes));
        let running = self.0.sandbox.start_in(self.placed(run), Some(log.sink()), scope)?;
        BackgroundCommand::new(running, input, log).map_err(SandboxError::Start)
    }

    /// Says that a person accepted changes of protected paths while commands run: these do not undo them. What a command
    /// may write by its `touches` is accepted by itself. Absolute paths.
    pub fn accept(&self, paths: impl IntoIterator<Item = PathBuf>) {
        self.0.accepted.lock().unwrap_or_else(PoisonError::into_inner).extend(paths);
    }

    /// Ends all commands of the session; no other one begins. Their outcomes come as always.
    pub fn end(&self) {
        self.0.end.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn placed(&self, run: Run) -> Run {
        let mut run = Run { level: self.0.level, ..run };
        if let Some(folder) = &self.0.folder {
            run.walls.temp.get_or_insert_with(|| folder.path().to_owned());
        }
        run
    }

    fn scope(&self, run: &Run) -> Result<RunScope, SandboxError> {
        let state = &self.0;
        if state.end.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            return Err(SandboxError::SessionEnded);
        }
        let mut accepted = state.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        accepted.extend(run.walls.touches.iter().cloned());
        Ok(RunScope {
            namespaces: state.namespaces.clone(),
            input: None,
            cancelled: vec![state.ended.try_clone().map_err(SandboxError::Start)?],
            accepted: Arc::clone(&state.accepted),
            accepted_before: accepted.len(),
            _folder: state.folder.clone(),
        })
    }
}
