//! A helper from its start to its end: reports, output, time, cancelling.

use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr, ChildStdout};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::outcome::{Ending, Notice, SandboxError};
use crate::output::{BoundedOutput, OutputStream};
use crate::request::{HelperReport, HelperRequest, send};
use crate::supervisor::OutputSink;

/// How long a helper that was asked to end its command may take before it is ended itself.
const GRACE: Duration = Duration::from_secs(2);
/// How long a helper may take to read its request.
const READING: Duration = Duration::from_secs(5);

/// When a command is to be ended.
#[derive(Clone, Copy)]
pub(super) struct Deadline<'a> {
    pub(super) deadline: Instant,
    /// Readable, or hung up, once somebody cancels.
    pub(super) cancelled: &'a OwnedFd,
}

/// The helper's account of why a command did not run.
pub(super) struct HelperFailure {
    pub(super) step: String,
    pub(super) problem: String,
}

/// Conversation with one helper.
pub(super) struct Conversation {
    child: Child,
    control: UnixStream,
    received: Vec<u8>,
    standard: Pipe<ChildStdout>,
    error: Pipe<ChildStderr>,
    sink: Option<OutputSink>,
}

/// Pipe of a command's output; closed once its end was read.
struct Pipe<T> {
    pipe: Option<T>,
    kept: BoundedOutput,
}

impl Conversation {
    pub(super) fn begin(
        mut child: Child,
        control: UnixStream,
        request: &HelperRequest,
        sink: Option<OutputSink>,
    ) -> io::Result<Self> {
        let bound = request.walls.limits.output;
        let standard = Pipe { pipe: child.stdout.take(), kept: BoundedOutput::new(bound) };
        let error = Pipe { pipe: child.stderr.take(), kept: BoundedOutput::new(bound) };
        let conversation = Self { child, control, received: Vec::new(), standard, error, sink };
        conversation.control.set_write_timeout(Some(READING))?;
        send(request, &conversation.control)?;
        conversation.control.set_nonblocking(true)?;
        let pipes = [
            conversation.standard.pipe.as_ref().map(AsFd::as_fd),
            conversation.error.pipe.as_ref().map(AsFd::as_fd),
        ];
        for pipe in pipes.into_iter().flatten() {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(conversation)
    }

    /// Waits until the helper and all it started are gone.
    pub(super) fn until_its_end(
        &mut self,
        until: Deadline<'_>,
    ) -> Result<(Result<Ending, HelperFailure>, Vec<Notice>), SandboxError> {
        let mut reports = Vec::new();
        let mut asked: Option<(Instant, Ending)> = None;
        loop {
            let now = Instant::now();
            if asked.is_none() && now >= until.deadline {
                asked = Some((now, Ending::TimedOut));
                let _ = self.control.shutdown(Shutdown::Write);
            }
            let next = asked.as_ref().map_or(until.deadline, |(since, _)| *since + GRACE);
            if asked.is_some() && now >= next {
                // Its own tree dies with it.
                let _ = self.child.kill();
            }
            let cancelled = self.wait(next.saturating_duration_since(now), &until, asked.is_none());
            if cancelled.map_err(SandboxError::Start)? && asked.is_none() {
                asked = Some((Instant::now(), Ending::Cancelled));
                let _ = self.control.shutdown(Shutdown::Write);
            }
            self.read_output();
            if self.read_reports(&mut reports).map_err(SandboxError::Start)? {
                break;
            }
        }
        self.child.wait().map_err(SandboxError::Start)?;
        // All that wrote is gone: what the pipes still hold is the rest.
        self.read_output();
        conclude(reports, asked.map(|(_, ending)| ending))
    }

    /// Waits for anything; whether somebody cancelled.
    fn wait(&self, at_most: Duration, until: &Deadline<'_>, may_cancel: bool) -> io::Result<bool> {
        let mut events = vec![PollFd::new(&self.control, PollFlags::IN)];
        if may_cancel {
            events.push(PollFd::new(until.cancelled, PollFlags::IN));
        }
        let pipes = [self.standard.pipe.as_ref().map(AsFd::as_fd), self.error.pipe.as_ref().map(AsFd::as_fd)];
        let pipes: Vec<_> = pipes.into_iter().flatten().collect();
        events.extend(pipes.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        // A little longer, so that the time is over when it returns.
        let timeout = Timespec::try_from(at_most + Duration::from_millis(1)).map_err(io::Error::other)?;
        match poll(&mut events, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(may_cancel && !events[1].revents().is_empty()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what there is of the output, a bounded piece of each pipe, so that no flood keeps the time from being seen.
    fn read_output(&mut self) {
        let mut tell = |stream, bytes: &[u8]| {
            if let Some(sink) = &mut self.sink {
                sink(stream, bytes);
            }
        };
        self.standard.read(|bytes| tell(OutputStream::Standard, bytes));
        self.error.read(|bytes| tell(OutputStream::Error, bytes));
    }

    /// Reads what there is of reports; whether the helper is gone.
    fn read_reports(&mut self, reports: &mut Vec<HelperReport>) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        loop {
            match self.control.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                // It went without reading all it was sent.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
                Err(error) => return Err(error),
            }
        }
        let mut rest = self.received.as_slice();
        while let Ok(Some(report)) = crate::request::receive(&mut rest) {
            reports.push(report);
        }
        Ok(true)
    }

    pub(super) fn into_output(mut self) -> (BoundedOutput, BoundedOutput) {
        (std::mem::take(&mut self.standard.kept), std::mem::take(&mut self.error.kept))
    }
}

impl Drop for Conversation {
    /// A conversation that broke off leaves no helper behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl<T: Read> Pipe<T> {
    fn read(&mut self, mut tell: impl FnMut(&[u8])) {
        let mut buffer = vec![0; 64 << 10];
        // As much as a pipe holds at most, twice.
        for _ in 0..32 {
            let Some(pipe) = &mut self.pipe else { return };
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(length) => {
                    self.kept.push(&buffer[..length]);
                    tell(&buffer[..length]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

/// What the reports of a helper that is gone say.
fn conclude(
    reports: Vec<HelperReport>,
    asked: Option<Ending>,
) -> Result<(Result<Ending, HelperFailure>, Vec<Notice>), SandboxError> {
    let (mut ending, mut notices) = (None, Vec::new());
    for report in reports {
        match report {
            HelperReport::Started => {}
            HelperReport::Failed { step, problem } => {
                return Ok((Err(HelperFailure { step, problem }), notices));
            }
            HelperReport::Exited { code, signal } => {
                let exited = signal.map(Ending::Signaled).or(code.map(Ending::Exited));
                ending = ending.or(exited);
            }
            HelperReport::Left(names) => notices.push(Notice::Ended(names)),
            HelperReport::OverLimit(limit) => ending = Some(Ending::OverLimit(limit)),
            HelperReport::Lacks(what) => notices.push(Notice::Lacks(what)),
            HelperReport::Escapes(names) => {
                ending = Some(Ending::Exited(0));
                notices.extend(names.into_iter().map(Notice::Lacks));
            }
        }
    }
    // A command that ended by itself just when its time was over did end by itself.
    match ending.or(asked) {
        Some(ending) => Ok((Ok(ending), notices)),
        None => Err(SandboxError::Vanished),
    }
}
