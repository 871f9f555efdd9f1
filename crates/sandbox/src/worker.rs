//! Work on the bytes of strangers, in a process of its own.
//!
//! A parser may run out of stack or memory, never end, or be led to do what its file wants. A worker is this program executed
//! again with an argument of its own: it gets bytes on its standard input and answers with bytes, and from before the first of
//! them it can do nothing else ([`run_worker`]). Unlike a command it needs no files, no network and no further process, so
//! that a short list of what it *may* ask of the kernel is all its walls need. They are the same at every sandbox level, and
//! where they cannot be made nothing is parsed.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use crate::supervisor::Sandbox;

/// Exit code of a worker that could not make its walls.
pub(crate) const NO_WALLS: u8 = 125;

/// How often it is looked whether the work is still wanted.
const LOOK: Duration = Duration::from_millis(50);
/// How long a worker may stay once it has answered.
const LEAVING: Duration = Duration::from_secs(1);

/// What a worker may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerLimits {
    /// Bytes of its address space.
    pub memory: u64,
    /// Bytes of its stack.
    pub stack: u64,
    /// Seconds of a processor.
    pub processor_s: u64,
    /// Seconds in all.
    pub time_s: u64,
    /// Bytes of its answer.
    pub output: usize,
}

impl Default for WorkerLimits {
    fn default() -> Self {
        Self { memory: 512 << 20, stack: 64 << 20, processor_s: 10, time_s: 60, output: 64 << 20 }
    }
}

/// Why a worker has no answer.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("no process can be started for it: {0}")]
    Start(#[source] io::Error),
    #[error("its process cannot be walled in, and without walls it is not run: {0}")]
    Walls(String),
    #[error("it took more than {0} s")]
    Time(u64),
    #[error("its answer is longer than {0} MiB")]
    Output(usize),
    #[error("its process broke down ({ended}); it may use {} MiB of memory and {} MiB of stack", .limits.memory >> 20, .limits.stack >> 20)]
    Broken { ended: String, limits: WorkerLimits },
    #[error("it was stopped")]
    Cancelled,
}

impl Sandbox {
    /// Has a worker answer some bytes: the one that this program becomes with `argument`. It blocks, and asks now and then
    /// whether the work is no longer wanted.
    ///
    /// # Errors
    /// It gave no answer, whatever its input did to it.
    pub fn work(
        &self,
        argument: &[&str],
        input: &[u8],
        limits: &WorkerLimits,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, WorkerError> {
        let deadline = Instant::now() + Duration::from_secs(limits.time_s);
        let mut worker = Worker(self.worker(argument).map_err(WorkerError::Start)?);
        let output = worker.converse(input, limits, &|| match is_cancelled() {
            true => Some(WorkerError::Cancelled),
            false => (Instant::now() > deadline).then_some(WorkerError::Time(limits.time_s)),
        })?;
        let status = worker.end().map_err(WorkerError::Start)?;
        const XCPU: i32 = Signal::XCPU.as_raw();
        const KILL: i32 = Signal::KILL.as_raw();
        match (status.code(), status.signal()) {
            (Some(0), _) => Ok(output),
            (Some(code), _) if code == i32::from(NO_WALLS) => {
                Err(WorkerError::Walls(String::from_utf8_lossy(&output).into_owned()))
            }
            (_, Some(XCPU | KILL)) => Err(WorkerError::Time(limits.processor_s)),
            _ => Err(WorkerError::Broken { ended: status.to_string(), limits: *limits }),
        }
    }

    fn worker(&self, argument: &[&str]) -> io::Result<Child> {
        // Looked up by the child, whose descriptors are still those of this process then.
        let mut command = Command::new(format!("/proc/self/fd/{}", self.program.as_raw_fd()));
        command.arg0("drawloom").args(argument).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn()
    }
}

/// Process of a worker, ended when dropped.
struct Worker(Child);

impl Worker {
    /// Hands over the input and reads the answer to its end.
    fn converse(
        &mut self,
        mut input: &[u8],
        limits: &WorkerLimits,
        is_over: &dyn Fn() -> Option<WorkerError>,
    ) -> Result<Vec<u8>, WorkerError> {
        let (mut to, from) = (self.0.stdin.take(), self.0.stdout.take());
        let mut from = from.ok_or_else(|| WorkerError::Start(io::ErrorKind::BrokenPipe.into()))?;
        without_waiting(to.as_ref(), &from).map_err(WorkerError::Start)?;
        let (mut output, mut piece) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            if let Some(why) = is_over() {
                return Err(why);
            }
            let mut events = vec![PollFd::new(&from, PollFlags::IN)];
            events.extend(to.as_ref().map(|to| PollFd::new(to, PollFlags::OUT)));
            match poll(&mut events, Some(&timespec(LOOK))) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(WorkerError::Start(error.into())),
            }
            if let Some(pipe) = &mut to {
                match pipe.write(input) {
                    Ok(written) => input = input.get(written..).unwrap_or_default(),
                    Err(error) if is_passing(&error) => {}
                    // Who reads no more of it answers all the same.
                    Err(_) => input = &[],
                }
                if input.is_empty() {
                    to = None;
                }
            }
            match from.read(&mut piece) {
                Ok(0) => return Ok(output),
                Ok(read) => output.extend_from_slice(piece.get(..read).unwrap_or_default()),
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(WorkerError::Start(error)),
            }
            if output.len() > limits.output {
                return Err(WorkerError::Output(limits.output >> 20));
            }
        }
    }

    /// How it ended, once it has closed its output.
    fn end(&mut self) -> io::Result<ExitStatus> {
        let process = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        if let Some(process) = process {
            let ended = pidfd_open(process, PidfdFlags::empty())?;
            poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&timespec(LEAVING)))?;
        }
        if let Some(status) = self.0.try_wait()? {
            return Ok(status);
        }
        self.0.kill()?;
        self.0.wait()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // One that was waited for is not there any more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn without_waiting(to: Option<&ChildStdin>, from: &ChildStdout) -> io::Result<()> {
    let set = |pipe: std::os::fd::BorrowedFd<'_>| -> io::Result<()> {
        Ok(fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?)
    };
    to.map_or(Ok(()), |to| set(to.as_fd()))?;
    set(from.as_fd())
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: i64::from(time.subsec_nanos()) }
}
