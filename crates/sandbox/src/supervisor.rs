//! The side of this process: starts a helper, reads its command's output, ends it in time, and looks afterwards at the
//! protected set.
//!
//! Each command has a thread of its own, which only waits in `poll`. The helper dies with the thread that started it, so
//! that the thread stays until the helper is gone; and what is to be done after a command is done also when nobody
//! waits for its outcome any more.

mod blob_comparison;
mod conversation;
mod file_hash;
mod git_head;
mod git_index;
mod git_query;
mod hidden_files;
mod index_check;
mod index_file;
mod larger_tree;
mod offline;
mod own_network;
mod probe;
mod relay;
mod session_sockets;
mod tracked_record;

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use std::{io, thread};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use workspace::protected::{NotTouchable, check_touch};
use workspace::{RelativePath, never_touched};

use crate::HELPER_ARGUMENT;
use crate::accepted_changes::{self, AcceptedChanges, AcceptedState};
use crate::caches::{CacheLayers, CachePlace, CacheState};
use crate::descriptors::{PassedDescriptors, SessionNamespaces, receive_descriptors, send_descriptors};
use crate::level::{Level, LevelReport};
use crate::look::LookBefore;
use crate::outcome::{Ending, Notice, Outcome, SandboxError};
use crate::output::{BoundedOutput, OutputStream};
use crate::process_list::mark;
use crate::protection::{OlderKernel, Protection, Protections};
use crate::request::{HelperReport, HelperRequest, HelperTask, receive, send};
use crate::walls::{Network, RootAccess, Walls};
use conversation::{Conversation, Deadline, HelperFailure};
use index_check::IndexStamps;
pub(crate) use session_sockets::SessionSockets;

/// How long a helper may take to make the namespaces of a session.
const MAKING: Duration = Duration::from_secs(5);

/// Listener of output, as it comes. It is called on a thread of its own. While it waits the command cannot print for long,
/// but its time goes on; the outcome waits for the listener no longer than the command's time, or until it is cancelled.
pub type OutputSink = Box<dyn FnMut(OutputStream, &[u8]) + Send>;

/// Command to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandLine {
    /// Program and arguments.
    Program(Vec<OsString>),
    /// Line of a shell.
    Shell(String),
}

impl CommandLine {
    fn arguments(&self) -> Vec<OsString> {
        match self {
            Self::Program(arguments) => arguments.clone(),
            Self::Shell(line) => ["/bin/sh", "-c", line].map(OsString::from).into(),
        }
    }
}

/// One command in its walls.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    pub walls: Walls,
    pub command: CommandLine,
    /// Working directory, in a root.
    #[serde(with = "crate::path_form")]
    pub directory: PathBuf,
    /// Level to run at: not above what the probe found.
    pub level: Level,
    /// Folder of this run, made when it is needed, for protected names that the command made.
    #[serde(with = "crate::path_form")]
    pub quarantine: PathBuf,
    /// Files whose time is marked each second while it runs, also where this process was stopped. One that cannot be marked
    /// stays as it is.
    #[serde(with = "crate::path_form")]
    pub signs_of_life: Vec<PathBuf>,
}

/// What a command has of the session it runs in, and its input.
#[derive(Default)]
pub(crate) struct RunScope {
    pub(crate) namespaces: Option<Arc<SessionNamespaces>>,
    pub(crate) input: Option<OwnedFd>,
    /// Ends of pipes that hang up when the command is to end.
    pub(crate) cancelled: Vec<OwnedFd>,
    /// Package caches of the session.
    pub(crate) caches: Vec<CachePlace>,
    /// What the first command of the session that ends tells of it.
    pub(crate) told_once: Arc<Mutex<Vec<Notice>>>,
    /// Dropped when the command has ended: the folder of its session, what leads to it and what serves it.
    pub(crate) held: Vec<Box<dyn Send>>,
}

impl RunScope {
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let session = self.namespaces.iter().flat_map(|namespaces| namespaces.in_order());
        session.chain(self.input.iter().map(AsFd::as_fd)).collect()
    }
}

/// Sandbox of this program, which is its own helper.
#[derive(Clone, Debug)]
pub struct Sandbox {
    pub(crate) program: Arc<File>,
    arguments: Vec<OsString>,
    /// Protections of the supervisor, not of its helpers.
    protections: Protections,
}

/// Command that runs. Dropping it ends the command; what is done after a command is done all the same.
#[derive(Debug)]
pub struct RunningCommand {
    cancel: Option<OwnedFd>,
    outcome: oneshot::Receiver<Result<Outcome, SandboxError>>,
}

impl RunningCommand {
    /// Ends the command with all it started. Its outcome comes as always.
    pub fn cancel(&mut self) {
        self.cancel = None;
    }

    /// Outcome, if the command is over; once it was given, there is none any more.
    pub(crate) fn outcome_now(&mut self) -> Option<Result<Outcome, SandboxError>> {
        match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(oneshot::error::TryRecvError::Empty) => None,
            Err(oneshot::error::TryRecvError::Closed) => Some(Err(SandboxError::Vanished)),
        }
    }

    /// Waits for the outcome. Cancel-safe only in that dropping it ends the command.
    ///
    /// # Errors
    /// If the command could not be run in its walls.
    pub async fn outcome(&mut self) -> Result<Outcome, SandboxError> {
        (&mut self.outcome).await.unwrap_or(Err(SandboxError::Vanished))
    }
}

impl Sandbox {
    /// The sandbox whose helper is this very program, whatever is at its path by now.
    ///
    /// # Errors
    /// If `/proc` is not mounted.
    pub fn of_this_program() -> io::Result<Self> {
        let program = Arc::new(File::open("/proc/self/exe")?);
        Ok(Self { program, arguments: vec![HELPER_ARGUMENT.into()], protections: Protections::all() })
    }

    /// A sandbox that lacks some protections, with a helper of other arguments, for tests.
    #[doc(hidden)]
    pub fn of_this_program_without(omitted: &[Protection], arguments: Vec<OsString>) -> io::Result<Self> {
        let protections = Protections::without(omitted, OlderKernel::default());
        Ok(Self { arguments, protections, ..Self::of_this_program()? })
    }

    /// Finds out which level this machine allows, by a child that tries the escapes. Blocks for some 20 ms; the answer
    /// holds for the life of the process.
    pub fn probe(&self) -> LevelReport {
        probe::probe(self)
    }

    /// Runs a command to its end, and tells a listener of its output meanwhile. Dropping the future ends the command with
    /// all it started.
    ///
    /// # Errors
    /// If the command could not be run in its walls. What it does itself is an outcome.
    pub async fn run(&self, run: Run, sink: Option<OutputSink>) -> Result<Outcome, SandboxError> {
        self.start(run, sink)?.outcome().await
    }

    /// Starts a command.
    ///
    /// # Errors
    /// If there can be no thread for it.
    pub fn start(&self, run: Run, sink: Option<OutputSink>) -> Result<RunningCommand, SandboxError> {
        self.start_in(run, sink, RunScope::default())
    }

    /// Starts a command in a session, or with an input.
    pub(crate) fn start_in(
        &self,
        run: Run,
        sink: Option<OutputSink>,
        mut scope: RunScope,
    ) -> Result<RunningCommand, SandboxError> {
        let (cancelled, cancel) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|error| SandboxError::Start(error.into()))?;
        scope.cancelled.push(cancelled);
        let (sender, outcome) = oneshot::channel();
        let sandbox = self.clone();
        let work = move || {
            let outcome = sandbox.supervise(&run, scope, sink);
            if let Err(outcome) = sender.send(outcome) {
                tracing::debug!(?outcome, "nobody waits for the outcome of a command");
            }
        };
        thread::Builder::new().name("sandbox".into()).spawn(work).map_err(SandboxError::Start)?;
        Ok(RunningCommand { cancel: Some(cancel), outcome })
    }

    fn supervise(
        &self,
        run: &Run,
        mut scope: RunScope,
        sink: Option<OutputSink>,
    ) -> Result<Outcome, SandboxError> {
        let (started, began) = (Instant::now(), SystemTime::now());
        let mut walls = resolved(&run.walls)?;
        if !self.protections.has(Protection::Limits) {
            walls.limits.output = usize::MAX;
        }
        let read_only = only_read(&mut walls);
        let directory = directory(&run.directory, &walls)?;
        let deadline = started + Duration::from_millis(walls.limits.time_ms);
        let until = Deadline { deadline, cancelled: &scope.cancelled };
        let without_a_start = || Ok(Outcome::without_a_start(until.ending(), started.elapsed(), run.level));
        let touched = touched(&walls)?;
        let look = LookBefore::new(run.level, &walls, &run.quarantine, || until.is_over());
        let mut look = match look {
            Err(_) if until.is_over() => return without_a_start(),
            look => look?,
        };
        let indexes = IndexStamps::of(&look.paths, &walls);
        let mut request = HelperRequest {
            level: run.level,
            walls,
            protected: look.mounted.paths.iter().cloned().collect(),
            fleeting: look.mounted.paths.difference(&look.held.paths).cloned().collect(),
            hidden: hidden_files::of_the_system().to_vec(),
            veiled: Vec::new(),
            quarantine: Some(run.quarantine.clone()),
            signs_of_life: look.running().locks().chain(run.signs_of_life.iter().cloned()).collect(),
            mark: mark(),
            descriptors: scope.descriptors().len(),
            caches: scope.caches.clone(),
            task: HelperTask::Command { arguments: run.command.arguments(), directory },
        };
        let records = larger_tree::record(self, &request, &look.paths, until);
        let locks = records.map_err(|error| record_failed(&request.walls, &error))?;
        let unseen = match run.level {
            Level::Full => larger_tree::show(self, &mut request, &look.paths, until),
            Level::Partial | Level::None => None,
        };
        let Some(_locks) = locks.filter(|_| !until.is_over()) else {
            return without_a_start();
        };
        look.set_running();
        let mut conversation = self.converse(&request, &scope.descriptors(), sink)?;
        // The other end is the command's alone now: whoever writes to it learns when nobody reads.
        scope.input = None;
        let end = conversation.until_its_end(until);
        let duration = started.elapsed();
        // Whatever became of the helper, what the command did is looked at.
        look.open_folders();
        let held = request.walls.tracked_records.as_deref().and_then(accepted_changes::hold);
        let accepted = look.running().accepted_since(began, &request.walls.touches);
        let written: Vec<PathBuf> =
            request.walls.touches.iter().chain(&accepted.meanwhile).cloned().collect();
        request.walls.touches.extend(accepted.paths.iter().cloned());
        let between = || {
            let differing = index_check::differing(self, &request, &indexes, &written);
            (!differing.is_empty()).then_some(Notice::DiffersFromIndex(differing))
        };
        let looked = match self.protections.has(Protection::LookAfter) {
            true => look.after(&request.walls, (&run.quarantine, accepted), between),
            false => Vec::new(),
        };
        if let Some(Err(error)) = touched.map(AcceptedChanges::finish) {
            tracing::warn!(%error, "what a command made by its touches may be taken for that of another one");
        }
        drop(held);
        let stalled = conversation.finish_telling(until);
        let ending = end.ending;
        let mut notices = end.notices;
        match end.failure {
            Some(HelperFailure { step, problem }) if step == "run" || step == "find" => {
                let (program, is_there) = (request_program(&request), step == "run");
                return Err(SandboxError::Program { program, problem, is_there });
            }
            Some(HelperFailure { step, problem }) if !end.began => {
                return Err(SandboxError::Walls { step, problem });
            }
            Some(HelperFailure { step, problem }) => {
                notices.push(Notice::Lacks(format!("its supervisor failed ({step}): {problem}")));
            }
            None => {}
        }
        notices.append(&mut scope.told_once.lock().unwrap_or_else(PoisonError::into_inner));
        notices.extend(read_only);
        notices.extend(unseen);
        notices.extend(looked);
        notices.extend(stalled);
        let (standard, error) = conversation.into_output();
        let has_failed = matches!(ending, Ending::Signaled(_) | Ending::Exited(1..));
        let seems_offline = |output: &BoundedOutput| offline::seems_offline(&output.text(), has_failed);
        if request.walls.network == Network::Off && [&standard, &error].into_iter().any(seems_offline) {
            notices.push(Notice::NetworkSeemsMissing);
        }
        Ok(Outcome { ending, standard, error, duration, level: run.level, notices })
    }

    /// Starts a helper and hands it its request.
    fn converse(
        &self,
        request: &HelperRequest,
        descriptors: &[BorrowedFd<'_>],
        sink: Option<OutputSink>,
    ) -> Result<Conversation, SandboxError> {
        let (control, theirs) = UnixStream::pair().map_err(SandboxError::Start)?;
        let child = self.helper(theirs.into()).map_err(SandboxError::Start)?;
        let conversation = Conversation::begin(child, control, request, descriptors, sink);
        conversation.map_err(SandboxError::Start)
    }

    /// Makes the namespaces of a session, and says what became of its package caches. Blocks for some 10 ms.
    pub(crate) fn make_namespaces(
        &self,
        temp_bytes: u64,
        caches: Vec<CacheLayers>,
    ) -> Result<(SessionNamespaces, Vec<CacheState>), SandboxError> {
        let request = HelperRequest::without_a_command(HelperTask::Session { temp_bytes, caches }, 0);
        self.ask_helper(&request, &[], |control, descriptors| {
            let made = PassedDescriptors::of(descriptors).session;
            match (made, receive(control)?) {
                (Some(made), Some(HelperReport::Caches(states))) => Ok((made, states)),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        })
    }

    /// Has a helper make something that is handed over as descriptors, and `read` it. Blocks for some 10 ms.
    fn ask_helper<T>(
        &self,
        request: &HelperRequest,
        descriptors: &[BorrowedFd<'_>],
        read: impl FnOnce(&UnixStream, Vec<OwnedFd>) -> io::Result<T>,
    ) -> Result<T, SandboxError> {
        let (control, theirs) = UnixStream::pair().map_err(SandboxError::Start)?;
        let mut child = self.helper(theirs.into()).map_err(SandboxError::Start)?;
        let answer = || -> io::Result<Result<T, HelperReport>> {
            control.set_read_timeout(Some(MAKING))?;
            send(request, &control)?;
            if !descriptors.is_empty() {
                send_descriptors(&control, descriptors)?;
            }
            let (byte, made) = receive_descriptors(&control)?;
            if !made.is_empty() {
                return read(&control, made).map(Ok);
            }
            let report = receive(io::Read::chain(byte.as_slice(), &control))?;
            report.map(Err).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
        };
        let answer = answer();
        let _ = child.kill();
        let _ = child.wait();
        match answer.map_err(SandboxError::Start)? {
            Ok(made) => Ok(made),
            Err(HelperReport::Failed { step, problem }) => Err(SandboxError::Walls { step, problem }),
            Err(_) => Err(SandboxError::Vanished),
        }
    }

    fn helper(&self, control: OwnedFd) -> io::Result<Child> {
        // Looked up by the child, whose descriptors are still those of this process then.
        let program = format!("/proc/self/fd/{}", self.program.as_raw_fd());
        let mut command = Command::new(program);
        std::os::unix::process::CommandExt::arg0(&mut command, "drawloom");
        command.args(&self.arguments).env_clear().current_dir("/");
        command.stdin(Stdio::from(control)).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn()
    }
}

/// Says that what a command may write by its `touches` is accepted by those that run beside it.
fn touched(walls: &Walls) -> Result<Option<AcceptedChanges>, SandboxError> {
    let Some(records) = walls.tracked_records.as_ref().filter(|_| !walls.touches.is_empty()) else {
        return Ok(None);
    };
    let any = walls.touches.iter().map(|path| (path.clone(), AcceptedState::Any));
    let begun = AcceptedChanges::begin(records, any);
    begun.map(Some).map_err(|problem| SandboxError::Unrecorded { folder: records.clone(), problem })
}

fn record_failed(walls: &Walls, error: &io::Error) -> SandboxError {
    let path = walls.tracked_records.clone().unwrap_or_default();
    SandboxError::Path { path, problem: error.to_string() }
}

fn request_program(request: &HelperRequest) -> String {
    match &request.task {
        HelperTask::Command { arguments, .. } => {
            arguments.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default()
        }
        HelperTask::Probe(_) | HelperTask::Session { .. } | HelperTask::Network | HelperTask::Sockets => {
            String::new()
        }
    }
}

/// Walls with every path as the kernel knows it, without links. A root that is not there ends the run.
fn resolved(walls: &Walls) -> Result<Walls, SandboxError> {
    let mut walls = walls.clone();
    let resolve = |path: &mut PathBuf| {
        *path = path
            .canonicalize()
            .map_err(|error| SandboxError::Path { path: path.clone(), problem: error.to_string() })?;
        Ok(())
    };
    walls.roots.iter_mut().map(|root| &mut root.path).try_for_each(resolve)?;
    walls.git_folders.iter_mut().chain(&mut walls.private).try_for_each(resolve)?;
    walls.temp.iter_mut().chain([&mut walls.home]).try_for_each(resolve)?;
    for path in &mut walls.touches {
        *path = place_of_new(path)
            .map_err(|error| SandboxError::Path { path: path.clone(), problem: error.to_string() })?;
    }
    if walls.network == Network::Open {
        own_network::show_name_servers(&mut walls);
    }
    if let Some(home) = walls.owner_home.as_mut().filter(|home| home.exists()) {
        resolve(home)?;
    }
    for path in &walls.touches {
        let judge = || {
            let root = walls.roots.iter().find(|root| path.starts_with(&root.path));
            let root = root.ok_or(NotTouchable::Outside)?.path.as_path();
            let below = path.strip_prefix(root).ok().and_then(Path::to_str);
            let named = below.and_then(|below| RelativePath::parse(&format!("./{below}")).ok());
            check_touch(&named.ok_or(NotTouchable::Never)?, path.exists())?;
            let is_open = !path.is_dir() || never_touched(root, path).is_ok_and(|never| never.is_empty());
            if is_open { Ok(()) } else { Err(NotTouchable::HoldsNever) }
        };
        judge().map_err(|problem| SandboxError::Touches { path: path.clone(), problem })?;
    }
    Ok(walls)
}

/// A path as the kernel knows it, without links; what is not there yet below the last folder that is.
///
/// # Errors
/// It cannot be looked up, or leads to what is not there by a link.
fn place_of_new(path: &Path) -> io::Result<PathBuf> {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Err(error), Some(folder), Some(name))
            if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() =>
        {
            Ok(place_of_new(folder)?.join(name))
        }
        (found, ..) => found,
    }
}

/// Takes roots on a file system that is mounted read-only for ones that are read, and says so: nobody writes there.
fn only_read(walls: &mut Walls) -> Option<Notice> {
    let is_read_only =
        |path: &Path| statvfs(path).is_ok_and(|space| space.f_flag.contains(StatVfsMountFlags::RDONLY));
    let mut found = Vec::new();
    for root in walls.roots.iter_mut().filter(|root| root.access == RootAccess::ReadWrite) {
        if is_read_only(&root.path) {
            root.access = RootAccess::ReadOnly;
            found.push(root.path.display().to_string());
        }
    }
    let told =
        format!("{} is mounted read-only on this machine: nothing can be written there", found.join(", "));
    (!found.is_empty()).then_some(Notice::Lacks(told))
}

fn directory(directory: &Path, walls: &Walls) -> Result<PathBuf, SandboxError> {
    let outside = || SandboxError::Directory(directory.to_owned());
    let resolved = directory.canonicalize().map_err(|_| outside())?;
    let inside = walls.roots.iter().any(|root| resolved.starts_with(&root.path));
    if inside { Ok(resolved) } else { Err(outside()) }
}
