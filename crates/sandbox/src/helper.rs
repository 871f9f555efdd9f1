//! The helper: makes the walls around itself, runs the command in them, and ends what it leaves.
//!
//! Two processes. The outer one never runs foreign code and stays outside of the walls: it waits for the inner one,
//! and ends it when the supervisor asks or is gone. In level *full* the inner one is the first process of its own
//! process namespace: it restricts itself in the order below, starts the command, and reaps; when it ends, the kernel
//! ends the whole tree. In the other levels the inner one becomes the command, and the outer one is the reaper of all
//! that the command leaves, which it ends until nobody is left.
//!
//! Order (spec: security §9): session, input, descriptors, namespaces, mounts, limits, capabilities, new privileges,
//! Landlock, seccomp. A step that fails ends the helper; nothing runs behind weaker walls than were asked for.

mod attempts;
mod caches;
mod capabilities;
mod covers;
mod hardening;
mod inner;
mod landlock;
mod loopback;
mod memory;
mod mount_calls;
mod mounts;
mod namespaces;
mod own_network;
mod seccomp;
mod session;
mod session_sockets;
mod signs_of_life;
mod watch;
mod worker;

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, getpid, getppid, kill_process, pidfd_open,
    set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal, setsid, waitpid,
};

use crate::accepted_changes;
use crate::descriptors::{PassedDescriptors, receive_descriptors, send_descriptors};
use crate::level::Level;
use crate::look::LookBefore;
use crate::protection::{OlderKernel, Protection, Protections};
use crate::request::{HelperReport, HelperRequest, HelperTask, receive, send};
pub(crate) use attempts::SIGNALS;
use covers::{Covers, Renewal};
pub(crate) use landlock::kernel_abi;
use signs_of_life::SignsOfLife;
pub use worker::{run_worker, run_worker_without};

/// Exit code of a helper that was not started by a supervisor, or could not build the walls.
const FAILED: u8 = 125;

/// Step that failed, and why.
#[derive(Debug)]
pub(crate) struct Failure {
    step: String,
    problem: String,
}

impl Failure {
    fn new(step: impl Into<String>, problem: &impl ToString) -> Self {
        Self { step: step.into(), problem: problem.to_string() }
    }
}

/// Names the step of an error.
trait Step<T> {
    fn step(self, step: &str) -> Result<T, Failure>;
}

impl<T, E: ToString> Step<T> for Result<T, E> {
    fn step(self, step: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(step, &error))
    }
}

/// Runs the helper of a [`Sandbox`](crate::Sandbox). `main` calls it before anything else when the first argument is
/// [`HELPER_ARGUMENT`](crate::HELPER_ARGUMENT): no thread may run yet, as a namespace is entered by a process of one thread.
pub fn run_helper() -> ExitCode {
    run(&Protections::all())
}

/// The helper of the tests, which lacks some protections, or takes the kernel for an older one.
#[doc(hidden)]
pub fn run_helper_without(omitted: &[Protection], kernel: OlderKernel) -> ExitCode {
    run(&Protections::without(omitted, kernel))
}

fn run(protections: &Protections) -> ExitCode {
    let control = match take_control(protections) {
        Ok(control) => control,
        Err(error) => {
            // Nobody listens who could be told otherwise.
            let _ = io::Write::write_all(
                &mut io::stderr(),
                format!("drawloom: this is started by Drawloom itself: {error}\n").as_bytes(),
            );
            return ExitCode::from(FAILED);
        }
    };
    let outcome = receive(&control)
        .and_then(|request| request.ok_or_else(|| io::ErrorKind::UnexpectedEof.into()))
        .step("request")
        .and_then(|request: HelperRequest| {
            let passed = match request.descriptors {
                0 => PassedDescriptors::default(),
                _ => PassedDescriptors::of(receive_descriptors(&control).step("request")?.1),
            };
            outer(&request, passed, &control, protections)
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&control, &HelperReport::Failed { step: failure.step, problem: failure.problem });
            ExitCode::from(FAILED)
        }
    }
}

/// Tells the supervisor. One that is gone needs no telling: its end of the socket is seen where the helper waits.
fn report(control: &UnixStream, report: &HelperReport) {
    let _ = send(report, control);
}

/// Takes the supervisor's socket from the standard input, and closes what else was inherited.
fn take_control(protections: &Protections) -> io::Result<UnixStream> {
    let input = rustix::stdio::stdin();
    if FileType::from_raw_mode(fstat(input)?.st_mode) != FileType::Socket {
        return Err(io::Error::other("the standard input is no supervisor"));
    }
    if protections.has(Protection::CloseDescriptors) {
        hardening::close_from(3)?;
    }
    let control = rustix::io::fcntl_dupfd_cloexec(input, 3)?;
    if protections.has(Protection::EmptyInput) {
        let null = std::fs::File::open("/dev/null")?;
        rustix::stdio::dup2_stdin(null)?;
    }
    Ok(UnixStream::from(control))
}

fn outer(
    request: &HelperRequest,
    passed: PassedDescriptors,
    control: &UnixStream,
    protections: &Protections,
) -> Result<(), Failure> {
    if protections.has(Protection::NewSession) {
        setsid().step("session")?;
    }
    if let HelperTask::Session { temp_bytes, caches } = &request.task {
        let (made, caches) = session::make(*temp_bytes, caches, protections)?;
        send_descriptors(control, &made.in_order()).step("session")?;
        report(control, &HelperReport::Caches(caches));
        return Ok(());
    }
    if let (HelperTask::Network, Some(session)) = (&request.task, &passed.session) {
        let (network, listener) = own_network::make(session)?;
        return send_descriptors(control, &[network.as_fd(), listener.as_fd()]).step("network");
    }
    if matches!(request.task, HelperTask::Sockets) {
        let session = passed.session.ok_or_else(|| Failure::new("session", &"it is not named"))?;
        return session_sockets::hand_out(control, &session);
    }
    let mut signs = SignsOfLife::open(&request.signs_of_life);
    let namespaced = request.level == Level::Full;
    let mut place = inner::CommandPlace { session: None, input: passed.input };
    if namespaced {
        place.session =
            namespaces::enter(protections, request.walls.network, passed.session.as_ref(), &request.caches)?;
    } else if protections.has(Protection::EndTree) {
        set_child_subreaper(Some(getpid())).step("reaper")?;
    }
    if namespaced {
        // After the namespaces, as a change of credentials takes it back. Elsewhere this process sees that the supervisor
        // is gone, and has a tree to end then.
        set_parent_process_death_signal(Some(Signal::KILL)).step("death of the supervisor")?;
    }
    // Nobody is told of it who could tell otherwise; what was taken away lies in quarantine.
    let quarantine =
        request.quarantine.as_ref().filter(|_| !namespaced && protections.has(Protection::LookAlone));
    let look = match quarantine {
        None => None,
        Some(quarantine) => {
            let began = SystemTime::now();
            let until = Instant::now() + Duration::from_millis(request.walls.limits.time_ms);
            let is_over = || Instant::now() > until;
            let look = LookBefore::new(request.level, &request.walls, quarantine, is_over);
            let mut look = look.map_err(|error| Failure::new("look", &error))?;
            look.set_running();
            Some((look, quarantine, began))
        }
    };
    let has_covers = [Protection::MountNamespace, Protection::ProtectedMounts, Protection::RenewedCovers];
    let mut covers = match namespaced && has_covers.into_iter().all(|protection| protections.has(protection))
    {
        true => Some(Covers::watch(request)?),
        false => None,
    };
    let guarded = [getpid(), getppid().unwrap_or_else(getpid)];
    let (alive, keep_alive) = pipe_with(PipeFlags::CLOEXEC).step("pipe")?;

    match namespaces::fork().step("fork")? {
        None => {
            drop((keep_alive, signs, covers));
            let end = inner::run(request, place, control, protections, alive.as_fd(), &guarded);
            if let Err(failure) = end {
                report(control, &HelperReport::Failed { step: failure.step, problem: failure.problem });
            }
            namespaces::end_now(0)
        }
        Some(inner) => {
            drop((alive, place, passed.session));
            if protections.has(Protection::NotDumpable) {
                set_dumpable_behavior(DumpableBehavior::NotDumpable).step("dumpable")?;
            }
            let ended = if namespaced {
                wait_for_namespace(control, inner, (&mut signs, covers.as_mut()))
            } else {
                watch::watch_tree(request, control, (inner, &mut signs), protections)
            };
            drop(keep_alive);
            if let Some((mut look, quarantine, began)) = look
                && is_alone(control)
            {
                look.open_folders();
                let _held = request.walls.tracked_records.as_deref().and_then(accepted_changes::hold);
                let accepted = look.running().accepted_since(began, &request.walls.touches);
                look.after(&request.walls, (quarantine, accepted), || None);
            }
            ended
        }
    }
}

/// Whether the supervisor is gone.
fn is_alone(control: &UnixStream) -> bool {
    let mut events = [PollFd::new(control, PollFlags::empty())];
    poll(&mut events, Some(&Timespec::default())).is_ok() && events[0].revents().contains(PollFlags::HUP)
}

/// Waits for the first process of the namespace, with whose end the kernel ends all others before it can be reaped.
fn wait_for_namespace(
    control: &UnixStream,
    inner: Pid,
    (signs, mut covers): (&mut SignsOfLife, Option<&mut Covers>),
) -> Result<(), Failure> {
    let ended = pidfd_open(inner, PidfdFlags::empty()).step("process descriptor")?;
    let (mut asked, mut is_lost) = (false, false);
    loop {
        signs.give();
        let mut events = vec![PollFd::new(&ended, PollFlags::IN)];
        events.extend(covers.as_ref().map(|covers| covers.event()));
        if !asked {
            events.push(PollFd::new(control, PollFlags::IN));
        }
        // Once asked, the inner one has this long to say what it leaves.
        let patience = if asked { watch::GRACE } else { signs_of_life::PAUSE };
        let happened = match poll(&mut events, Some(&patience)) {
            Err(Errno::INTR) => continue,
            other => other.step("wait")?,
        };
        let has_ended = !events[0].revents().is_empty();
        let is_asked = !asked && events.last().is_some_and(|event| !event.revents().is_empty());
        if let Some(covers) = &mut covers
            && !is_lost
            && !renew(covers, control)
        {
            is_lost = true;
            let _ = kill_process(inner, Signal::KILL);
        }
        if happened == 0 && asked {
            let _ = kill_process(inner, Signal::KILL);
        }
        if has_ended {
            break;
        }
        asked |= is_asked;
    }
    waitpid(Some(inner), WaitOptions::empty()).step("wait")?;
    for path in covers.iter().flat_map(|covers| covers.gone()) {
        let what = format!(
            "{} is gone: somebody else removed or replaced it while it ran, and for a moment then it could remove or move it, too",
            path.display()
        );
        report(control, &HelperReport::Lacks(what));
    }
    Ok(())
}

/// Covers anew what was replaced while the command ran, and says so; whether the command may go on.
fn renew(covers: &mut Covers, control: &UnixStream) -> bool {
    let (why, path) = match covers.renew() {
        Ok(Renewal::Covered(paths)) => {
            for path in paths {
                let what = format!(
                    "{} was replaced by somebody else while it ran: for a moment it could write to it, so look at it",
                    path.display()
                );
                report(control, &HelperReport::Lacks(what));
            }
            return true;
        }
        Ok(Renewal::Lost(path)) => ("it could go on writing to it".to_owned(), path.display().to_string()),
        Err(Failure { step, problem }) => (problem, step),
    };
    let what = format!("it was ended: {path} was replaced by somebody else while it ran, and {why}");
    report(control, &HelperReport::Lacks(what));
    report(control, &HelperReport::Exited { code: None, signal: Some(Signal::KILL.as_raw()) });
    false
}
