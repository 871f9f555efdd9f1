//! Session: what the commands of one conversation share (spec: security §1).
//!
//! At level *full* it is one network, in which there is nothing but its loopback, and one `/tmp` in memory: a server that a
//! background command runs answers a later command, and a file in `/tmp` is found by it. Processes, mounts, message queues
//! and shared memory stay those of each command; of Unix sockets those in `/tmp` are reached by another command, abstract ones not. Below *full* it is a `/tmp` alone, a folder; a command has no network there,
//! also not to another one of its session.
//!
//! At level *full* they share the owner's package caches, too, as the session was opened with; see [`PackageCache`].
//!
//! No process keeps a session: its namespaces are descriptors of this one. When the last [`Session`] is dropped or
//! [`Session::end`] is called, every command of it ends; when this process ends, also by `kill -9`, the kernel closes the
//! descriptors and ends the commands.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::background::{BackgroundCommand, OutputLog};
use crate::caches::{CacheLayers, CachePlace, CacheState, PackageCache};
use crate::covered_files::covered_in;
use crate::descriptors::SessionNamespaces;
use crate::level::Level;
use crate::outcome::{Notice, Outcome, SandboxError};
use crate::published_ports::PublishedPorts;
use crate::session_folder::SessionFolder;
use crate::supervisor::{OutputSink, Run, RunScope, RunningCommand, Sandbox};

/// Session of commands, by one or several owners; with the namespaces of these commands where their network is not the
/// session's.
#[derive(Clone, Debug)]
pub struct Session(Arc<SessionState>, Option<Arc<SessionNamespaces>>);

#[derive(Debug)]
struct SessionState {
    sandbox: Sandbox,
    level: Level,
    namespaces: Option<Arc<SessionNamespaces>>,
    /// Below level *full* its `/tmp`, at that level what is written to package caches.
    folder: Option<Arc<SessionFolder>>,
    caches: Vec<CacheState>,
    cache_places: Vec<CachePlace>,
    told_once: Arc<Mutex<Vec<Notice>>>,
    /// Whether somebody of the machine connected to one of its published ports.
    reached: Arc<AtomicBool>,
    ended: OwnedFd,
    /// The other end of it. Commands hold only the first, so that this one is closed with the last owner.
    end: Mutex<Option<OwnedFd>>,
}

impl Sandbox {
    /// Opens a session at a level, not above what the probe found. `place` lies outside of every root, and no two sessions
    /// are opened in it for different users: below level *full* the session's `/tmp` is a folder in it, in *full* what
    /// commands write to package caches, while `/tmp` is in memory and holds `temp_bytes` at most. Blocks for some 10 ms, and
    /// for as long as it takes to list the caches.
    ///
    /// # Errors
    /// If its namespaces or its folder cannot be made. A cache that cannot be shown is no error: [`Session::caches`] says so.
    pub fn open_session(
        &self,
        level: Level,
        place: &Path,
        temp_bytes: u64,
        caches: &[PackageCache],
    ) -> Result<Session, SandboxError> {
        let folder = match level == Level::Full && caches.is_empty() {
            true => {
                SessionFolder::sweep(place);
                None
            }
            false => Some(SessionFolder::make(place).map_err(|error| SandboxError::Path {
                path: place.to_owned(),
                problem: error.to_string(),
            })?),
        };
        let (namespaces, states) = match level {
            Level::Full => {
                let own = folder.as_ref().map_or(place, SessionFolder::path);
                let layers = caches.iter().enumerate();
                let layers = layers.map(|(number, cache)| layers_of(cache, own.join(number.to_string())));
                let (made, states) = self.make_namespaces(temp_bytes, layers.collect())?;
                (Some(Arc::new(made)), states)
            }
            Level::Partial | Level::None => {
                let absent = || CacheState::Absent("there are none below level full".into());
                (None, caches.iter().map(|_| absent()).collect())
            }
        };
        let (ended, end) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|error| SandboxError::Start(error.into()))?;
        let state = SessionState {
            sandbox: self.clone(),
            level,
            namespaces,
            folder: folder.map(Arc::new),
            cache_places: places(caches, &states),
            told_once: Arc::new(Mutex::new(notices(caches, &states))),
            caches: states,
            reached: Arc::default(),
            ended,
            end: Mutex::new(Some(end)),
        };
        Ok(Session(Arc::new(state), None))
    }
}

impl Session {
    pub fn level(&self) -> Level {
        self.0.level
    }

    /// How the session's commands have the package caches it was opened with, in the same order.
    pub fn caches(&self) -> &[CacheState] {
        &self.0.caches
    }

    /// The session for commands whose network is their own: nothing is in it but a loopback, and on that a socket
    /// which listens at [`PROXY_PORT`](crate::PROXY_PORT). Whoever holds it serves a proxy there; no other command
    /// has a way to it, nor these to a server of the session. Blocks for some 10 ms.
    ///
    /// # Errors
    /// Below level *full*, where no network can be made.
    pub fn with_own_network(&self) -> Result<(Self, TcpListener), SandboxError> {
        let state = &self.0;
        let Some(shared) = &state.namespaces else {
            let problem = format!("a network of its own needs level full, and the level is {}", state.level);
            return Err(SandboxError::Walls { step: "network".into(), problem });
        };
        let (network, listener) = state.sandbox.make_network(shared)?;
        let same = |of: &OwnedFd| of.try_clone().map_err(SandboxError::Start);
        let own = SessionNamespaces { user: same(&shared.user)?, network, mounts: same(&shared.mounts)? };
        Ok((Self(Arc::clone(state), Some(Arc::new(own))), listener))
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
        let scope = self.scope()?;
        self.0.sandbox.start_in(self.placed(run), sink, scope)
    }

    /// Starts a command in the session and at its level, with an input.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with_input(
        &self,
        run: Run,
        sink: Option<OutputSink>,
        input: OwnedFd,
    ) -> Result<RunningCommand, SandboxError> {
        let scope = RunScope { input: Some(input), ..self.scope()? };
        self.0.sandbox.start_in(self.placed(run), sink, scope)
    }

    /// Listens on ports of this machine, at 127.0.0.1, for servers that commands of the session run on the same ports. They
    /// are closed when what is returned is dropped, or the background command ends that it is given to. Blocks for some 10 ms.
    ///
    /// # Errors
    /// If a port is taken or may not be published, the session has no network of its own, or is over.
    pub fn publish(&self, ports: &[u16]) -> Result<PublishedPorts, SandboxError> {
        self.require_open()?;
        let namespaces = self.namespaces().ok_or(SandboxError::NoNetwork(self.0.level))?;
        PublishedPorts::open(&self.0.sandbox, namespaces, ports, Arc::clone(&self.0.reached))
    }

    /// Whether somebody connected to a port that was published: since then its commands may have text of anybody.
    pub fn was_reached(&self) -> bool {
        self.0.reached.load(Ordering::SeqCst)
    }

    /// Starts a command in the background: with an input that is written to, and output that is kept, of the last
    /// `log_bytes`, until somebody asks for it. Its time is that of its walls; it ends with the session. `held` is dropped when
    /// it has ended: ports that were published for it, and its proxy.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_background(
        &self,
        run: Run,
        log_bytes: usize,
        held: impl Send + 'static,
    ) -> Result<BackgroundCommand, SandboxError> {
        let mut scope = self.scope()?;
        scope.held.push(Box::new(held));
        let (theirs, input) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|error| SandboxError::Start(error.into()))?;
        scope.input = Some(theirs);
        let log = Arc::new(OutputLog::new(log_bytes));
        let running = self.0.sandbox.start_in(self.placed(run), Some(log.sink()), scope)?;
        BackgroundCommand::new(running, input, log).map_err(SandboxError::Start)
    }

    /// Ends all commands of the session; no other one begins. Their outcomes come as always.
    pub fn end(&self) {
        self.0.end.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn placed(&self, run: Run) -> Run {
        let mut run = Run { level: self.0.level, ..run };
        if let Some(folder) = self.0.folder.as_ref().filter(|_| self.0.level < Level::Full) {
            run.walls.temp.get_or_insert_with(|| folder.path().to_owned());
        }
        run
    }

    /// Namespaces of the session's commands, with the network of their own that they may have.
    fn namespaces(&self) -> Option<&Arc<SessionNamespaces>> {
        self.1.as_ref().or(self.0.namespaces.as_ref())
    }

    fn require_open(&self) -> Result<(), SandboxError> {
        match *self.0.end.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(_) => Ok(()),
            None => Err(SandboxError::SessionEnded),
        }
    }

    fn scope(&self) -> Result<RunScope, SandboxError> {
        let state = &self.0;
        self.require_open()?;
        Ok(RunScope {
            namespaces: self.namespaces().cloned(),
            input: None,
            cancelled: vec![state.ended.try_clone().map_err(SandboxError::Start)?],
            caches: state.cache_places.clone(),
            told_once: Arc::clone(&state.told_once),
            held: vec![Box::new(state.folder.clone())],
        })
    }
}

/// What the mount of a cache is made from, with an own folder made for it.
fn layers_of(cache: &PackageCache, own: PathBuf) -> CacheLayers {
    let covered = std::fs::create_dir(&own).and_then(|()| covered_in(&cache.folder));
    let covered = covered.map_err(|error| error.to_string());
    CacheLayers { folder: cache.folder.clone(), own, covered }
}

fn places(caches: &[PackageCache], states: &[CacheState]) -> Vec<CachePlace> {
    let shown = caches.iter().zip(states).enumerate();
    let shown = shown.filter(|(_, (_, state))| !matches!(state, CacheState::Absent(_)));
    shown.map(|(number, (cache, _))| CachePlace { number, place: cache.place.clone() }).collect()
}

fn notices(caches: &[PackageCache], states: &[CacheState]) -> Vec<Notice> {
    let told = caches.iter().zip(states).filter_map(|(cache, state)| {
        let cache = cache.place.display();
        match state {
            CacheState::Layered => None,
            CacheState::ReadOnly(why) => Some(format!("the package cache ~/{cache} is read-only: {why}")),
            CacheState::Absent(why) => Some(format!("the package cache ~/{cache} is not shown: {why}")),
        }
    });
    told.map(Notice::Lacks).collect()
}
