//! A helper from its start to its end: reports, output, time, cancelling.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStderr, ChildStdout, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::descriptors::send_descriptors;
use crate::level::Level;
use crate::outcome::{Ending, Notice, SandboxError};
use crate::output::{BoundedOutput, OutputStream};
use crate::process_list::{ProcessScope, has_mark, processes};
use crate::request::{HelperReport, HelperRequest, send};
use crate::supervisor::OutputSink;
use crate::supervisor::relay::{LOOK, OutputRelay};

/// How long a helper that was asked to end its command may take before it is ended itself.
const GRACE: Duration = Duration::from_secs(2);
/// How long a helper may take to read its request.
const READING: Duration = Duration::from_secs(5);

/// When a command is to be ended.
#[derive(Clone, Copy)]
pub(super) struct Deadline<'a> {
    pub(super) deadline: Instant,
    /// Each readable, or hung up, once somebody cancels.
    pub(super) cancelled: &'a [OwnedFd],
}

impl Deadline<'_> {
    pub(super) fn is_cancelled(&self) -> bool {
        let mut events: Vec<_> = self.cancelled.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
        poll(&mut events, Some(&Timespec::default())).is_ok_and(|happened| happened > 0)
    }

    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.deadline || self.is_cancelled()
    }

    /// How a command ends that did not begin before it was over.
    pub(super) fn ending(&self) -> Ending {
        if self.is_cancelled() { Ending::Cancelled } else { Ending::TimedOut }
    }
}

/// The helper's account of why a command did not run, or not to its end.
pub(super) struct HelperFailure {
    pub(super) step: String,
    pub(super) problem: String,
}

/// What is known of a command once its helper is gone.
pub(super) struct HelperEnd {
    /// Whether the command began. At levels below *full* it may still be that its program could not be run.
    pub(super) began: bool,
    /// How the command ended, or else the helper: a command may have ended that.
    pub(super) ending: Ending,
    pub(super) failure: Option<HelperFailure>,
    pub(super) notices: Vec<Notice>,
}

/// Conversation with one helper.
pub(super) struct Conversation {
    child: Child,
    control: UnixStream,
    received: Vec<u8>,
    standard: Pipe<ChildStdout>,
    error: Pipe<ChildStderr>,
    relay: Option<OutputRelay>,
    /// Mark of the command's processes, where no namespace holds them.
    mark: Option<u64>,
    /// Whether the helper and what it started are gone.
    is_over: bool,
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
        descriptors: &[BorrowedFd<'_>],
        sink: Option<OutputSink>,
    ) -> io::Result<Self> {
        let bound = request.walls.limits.output;
        let standard = Pipe { pipe: child.stdout.take(), kept: BoundedOutput::new(bound) };
        let error = Pipe { pipe: child.stderr.take(), kept: BoundedOutput::new(bound) };
        let mark = (request.level != Level::Full).then_some(request.mark);
        let relay = sink.map(OutputRelay::new).transpose();
        let mut conversation =
            Self { child, control, received: Vec::new(), standard, error, relay: None, mark, is_over: false };
        conversation.relay = relay?;
        conversation.control.set_write_timeout(Some(READING))?;
        send(request, &conversation.control)?;
        if !descriptors.is_empty() {
            send_descriptors(&conversation.control, descriptors)?;
        }
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

    /// Waits until the helper and all it started are gone. What goes wrong ends them, and is told.
    pub(super) fn until_its_end(&mut self, until: Deadline<'_>) -> HelperEnd {
        let mut reports = Vec::new();
        let mut asked: Option<(Instant, Ending)> = None;
        let mut problem = None;
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
            let behind = self.relay.as_mut().is_some_and(OutputRelay::is_behind);
            let waited = self
                .wait(next.saturating_duration_since(now), &until, asked.is_none(), behind)
                .and_then(|cancelled| Ok((cancelled, self.read_reports(&mut reports)?)));
            match waited {
                Ok((cancelled, gone)) => {
                    if cancelled && asked.is_none() {
                        asked = Some((Instant::now(), Ending::Cancelled));
                        let _ = self.control.shutdown(Shutdown::Write);
                    }
                    if gone {
                        break;
                    }
                    if !behind {
                        self.read_output();
                    }
                }
                Err(error) => {
                    problem = Some(error.to_string());
                    let _ = self.child.kill();
                    break;
                }
            }
        }
        let status = self.child.wait();
        self.is_over = true;
        // One that ended well left nobody.
        let left = match &status {
            Ok(status) if status.success() => Vec::new(),
            _ => self.mark.map(end_marked).unwrap_or_default(),
        };
        // All that wrote is gone: what the pipes still hold is the rest.
        self.read_output();
        let mut end = conclude(reports, asked.map(|(_, ending)| ending), status.ok(), problem);
        if !end.began && end.failure.is_none() {
            end.failure = before_the_command(&end, &self.error.kept.text());
        }
        // Usually the helper ended and named them.
        end.notices.extend((!left.is_empty()).then_some(Notice::Ended(left)));
        end
    }

    /// Waits until the listener of the output was told everything; a notice if it stalls for longer than the command may
    /// take, or after somebody cancelled.
    pub(super) fn finish_telling(&mut self, until: Deadline<'_>) -> Option<Notice> {
        let relay = self.relay.as_mut()?;
        let latest = until.deadline.max(Instant::now() + GRACE);
        let patience = Instant::now() + GRACE / 4;
        let is_told = relay.finish(|now| now >= latest || (now >= patience && until.is_cancelled()));
        (!is_told)
            .then(|| Notice::Lacks("whoever reads its output stalled, and was not told all of it".into()))
    }

    /// Waits for anything; whether somebody cancelled.
    fn wait(
        &self,
        mut at_most: Duration,
        until: &Deadline<'_>,
        may_cancel: bool,
        behind: bool,
    ) -> io::Result<bool> {
        let mut events = vec![PollFd::new(&self.control, PollFlags::IN)];
        let cancelling = if may_cancel { until.cancelled } else { &[] };
        events.extend(cancelling.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        let pipes = [self.standard.pipe.as_ref().map(AsFd::as_fd), self.error.pipe.as_ref().map(AsFd::as_fd)];
        let pipes: Vec<_> = pipes.into_iter().flatten().filter(|_| !behind).collect();
        if behind {
            at_most = at_most.min(LOOK);
        }
        events.extend(pipes.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        // A little longer, so that the time is over when it returns.
        let timeout = Timespec::try_from(at_most + Duration::from_millis(1)).map_err(io::Error::other)?;
        match poll(&mut events, Some(&timeout)) {
            Ok(_) => Ok(events[1..=cancelling.len()].iter().any(|event| !event.revents().is_empty())),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what there is of the output, a bounded piece of each pipe, so that no flood keeps the time from being seen.
    fn read_output(&mut self) {
        let mut tell = |stream, bytes: &[u8]| {
            if let Some(relay) = &mut self.relay {
                relay.push(stream, bytes);
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
        if self.is_over {
            return;
        }
        self.mark.map(end_marked);
    }
}

/// Ends what a helper left that was ended itself; the names. Signals go by descriptor, so that none hits whoever has the
/// number next.
fn end_marked(mark: u64) -> Vec<String> {
    let mut names = BTreeMap::new();
    let until = Instant::now() + GRACE;
    loop {
        let left = processes(ProcessScope::Marked(mark));
        if left.is_empty() || Instant::now() > until {
            return names.into_values().collect();
        }
        for process in left {
            let Some(id) = Pid::from_raw(process.id) else { continue };
            let Ok(descriptor) = pidfd_open(id, PidfdFlags::empty()) else { continue };
            if has_mark(process.id, mark) && pidfd_send_signal(&descriptor, Signal::KILL).is_ok() {
                names.insert(process.id, process.name);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
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

/// Failure of a helper that ended of itself before its command began, with what is lacking and what it wrote last.
fn before_the_command(end: &HelperEnd, written: &str) -> Option<HelperFailure> {
    let how = match &end.ending {
        Ending::TimedOut | Ending::Cancelled => return None,
        Ending::Signaled(signal) => format!("signal {signal}"),
        Ending::Exited(code) => format!("exit code {code}"),
        Ending::OverLimit(limit) => limit.clone(),
    };
    let lacking = end.notices.iter().filter_map(|notice| match notice {
        Notice::Lacks(what) => Some(what.as_str()),
        _ => None,
    });
    let why: Vec<&str> = lacking.chain(written.lines().next_back()).collect();
    Some(HelperFailure {
        step: "helper".to_owned(),
        problem: format!("it ended before the command ({how}): {}", why.join("; ")),
    })
}

/// What the reports of a helper that is gone say.
fn conclude(
    reports: Vec<HelperReport>,
    asked: Option<Ending>,
    status: Option<ExitStatus>,
    problem: Option<String>,
) -> HelperEnd {
    let (mut began, mut ending, mut failure, mut notices) = (false, None, None, Vec::new());
    for report in reports {
        match report {
            HelperReport::Started => began = true,
            HelperReport::Failed { step, problem } => failure = Some(HelperFailure { step, problem }),
            HelperReport::Exited { code, signal } => {
                // Its watch may end a command before its start was told.
                began = true;
                let exited = signal.map(Ending::Signaled).or(code.map(Ending::Exited));
                ending = ending.or(exited);
            }
            HelperReport::Left(names) => notices.push(Notice::Ended(names)),
            HelperReport::OverLimit(limit) => ending = Some(Ending::OverLimit(limit)),
            HelperReport::Lacks(what) => notices.push(Notice::Lacks(what)),
            // Of sessions alone, which have no command.
            HelperReport::Caches(_) => {}
            HelperReport::Escapes(names) => {
                began = true;
                ending = Some(Ending::Exited(0));
                notices.extend(names.into_iter().map(Notice::Lacks));
            }
        }
    }
    if let Some(problem) = problem {
        notices.push(Notice::Lacks(format!("the command was ended, as its supervisor failed: {problem}")));
    }
    // A command that ended by itself just when its time was over did end by itself.
    let ending = ending.or(asked).unwrap_or_else(|| {
        if failure.is_none() && began {
            notices.push(Notice::Lacks(SandboxError::Vanished.to_string()));
        }
        let signal = status.and_then(|status| status.signal());
        signal.map_or_else(
            || Ending::Exited(status.and_then(|status| status.code()).unwrap_or(-1)),
            Ending::Signaled,
        )
    });
    HelperEnd { began, ending, failure, notices }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::request::HelperTask;

    #[test]
    fn a_helper_that_ends_before_its_command_says_how_and_what_it_wrote_last() {
        for (line, expected) in [
            ("head -c 10 >/dev/null; echo first >&2; echo last >&2; kill -9 $$", "(signal 9): last"),
            ("head -c 10 >/dev/null; exit 3", "(exit code 3): "),
        ] {
            let (control, theirs) = UnixStream::pair().unwrap();
            let mut command = Command::new("/bin/sh");
            command.args(["-c", line]).stdin(Stdio::from(OwnedFd::from(theirs)));
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            drop(command);
            let request = HelperRequest::without_a_command(HelperTask::Sockets, 0);
            let mut conversation = Conversation::begin(child, control, &request, &[], None).unwrap();
            let deadline = Instant::now() + Duration::from_secs(60);
            let end = conversation.until_its_end(Deadline { deadline, cancelled: &[] });
            let failure = end.failure.unwrap();
            assert_eq!((failure.step.as_str(), end.began), ("helper", false));
            assert_eq!(failure.problem, format!("it ended before the command {expected}"));
        }
    }
}
