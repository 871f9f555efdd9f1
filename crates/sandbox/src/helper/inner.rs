//! The inner process: restricts itself and runs the command.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::process::{
    DumpableBehavior, Pid, Signal, set_dumpable_behavior, set_parent_process_death_signal, setpgid, umask,
};

use super::session::SessionMounts;
use super::{
    Failure, Step, attempts, capabilities, hardening, landlock, loopback, mounts, report, seccomp, watch,
};
use crate::level::Level;
use crate::process_list::ProcessScope;
use crate::protection::{Protection, Protections};
use crate::request::{HelperReport, HelperRequest, HelperTask};

/// What a command has beside its walls.
pub(super) struct CommandPlace {
    pub(super) session: Option<SessionMounts>,
    /// Standard input; without one it is empty.
    pub(super) input: Option<OwnedFd>,
}

pub(super) fn run(
    request: &HelperRequest,
    place: CommandPlace,
    control: &UnixStream,
    protections: &Protections,
    alive: BorrowedFd<'_>,
    guarded: &[Pid],
) -> Result<(), Failure> {
    follow(alive)?;
    let full = request.level == Level::Full;
    if !full && protections.has(Protection::NewSession) {
        // A signal to its own group is none to the outer process. No session: its leader could take a terminal.
        setpgid(None, None).step("group")?;
    }
    let own_root = full && protections.has(Protection::MountNamespace);
    if own_root {
        for lacking in mounts::build(request, place.session, protections)? {
            report(control, &HelperReport::Lacks(lacking));
        }
    }
    if full && protections.holds_network(request.walls.network) {
        loopback::bring_up()?;
    }
    if full && protections.has(Protection::UtsNamespace) {
        rustix::system::sethostname(b"sandbox").step("host name")?;
    }
    umask(Mode::from_raw_mode(request.walls.umask));
    if protections.has(Protection::Limits) {
        hardening::limit(&request.walls.limits, request.level)?;
    }
    if protections.has(Protection::EndTree) {
        hardening::set_mark(request.mark);
    }
    if request.level != Level::None {
        restrict(request, protections, own_root, guarded)?;
    }
    match &request.task {
        HelperTask::Probe(targets) => {
            report(control, &HelperReport::Escapes(attempts::escapes(targets)));
            Ok(())
        }
        HelperTask::Session { .. } | HelperTask::Network | HelperTask::Sockets => {
            Err(Failure::new("session", &"it has no command"))
        }
        HelperTask::Command { arguments, directory } => {
            let mut command = command(request, arguments, directory)?;
            command.stdin(place.input.map_or_else(Stdio::inherit, Stdio::from));
            if full {
                start_and_watch(request, control, protections, &mut command)
            } else {
                report(control, &HelperReport::Started);
                Err(not_run(&command.exec()))
            }
        }
    }
}

/// Dies with the outer process.
fn follow(alive: BorrowedFd<'_>) -> Result<(), Failure> {
    set_parent_process_death_signal(Some(Signal::KILL)).step("death of the helper")?;
    let mut gone = [PollFd::new(&alive, PollFlags::empty())];
    poll(&mut gone, Some(&Timespec::default())).step("death of the helper")?;
    if gone[0].revents().contains(PollFlags::HUP) {
        return Err(Failure::new("death of the helper", &"it is gone"));
    }
    Ok(())
}

/// The last steps: from here on this process is bound as the command is.
fn restrict(
    request: &HelperRequest,
    protections: &Protections,
    own_root: bool,
    guarded: &[Pid],
) -> Result<(), Failure> {
    if protections.has(Protection::DropCapabilities) {
        capabilities::drop_all()?;
    }
    if protections.has(Protection::NoNewPrivileges) {
        capabilities::refuse_new()?;
    }
    let version = match protections.has(Protection::Landlock) {
        true => protections.landlock_version(landlock::kernel_abi()),
        false => 0,
    };
    if protections.has(Protection::Landlock) {
        landlock::restrict(request, own_root, version)?;
    }
    if protections.has(Protection::NotDumpable) {
        // The command is of the same user, and is to see nothing of this process.
        set_dumpable_behavior(DumpableBehavior::NotDumpable).step("dumpable")?;
    }
    if protections.has(Protection::Seccomp) {
        let hold = |since| request.level == Level::Full || version >= since;
        let others = seccomp::OtherWalls {
            hold_signals: hold(landlock::SIGNALS),
            hold_truncation: hold(landlock::TRUNCATION),
        };
        seccomp::restrict(request.level, request.walls.network, guarded, &others)?;
    }
    Ok(())
}

fn command(
    request: &HelperRequest,
    arguments: &[std::ffi::OsString],
    directory: &Path,
) -> Result<Command, Failure> {
    let [program, arguments @ ..] = arguments else {
        return Err(Failure::new("run", &"no program is named"));
    };
    let walls = &request.walls;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).env_clear().envs(&walls.environment);
    command.env("HOME", &walls.home);
    let temp = match (&walls.temp, request.level) {
        (_, Level::Full) => Path::new("/tmp"),
        (temp, Level::Partial | Level::None) => temp.as_ref().unwrap_or(&walls.home),
    };
    command.env("TMPDIR", temp);
    Ok(command)
}

fn not_run(error: &io::Error) -> Failure {
    Failure::new(if error.kind() == io::ErrorKind::NotFound { "find" } else { "run" }, error)
}

fn start_and_watch(
    request: &HelperRequest,
    control: &UnixStream,
    protections: &Protections,
    command: &mut Command,
) -> Result<(), Failure> {
    let child = command.spawn().map_err(|error| not_run(&error))?;
    report(control, &HelperReport::Started);
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let id = id.ok_or_else(|| Failure::new("run", &"a process without a number"))?;
    let scope = match protections.has(Protection::PidNamespace) {
        true => ProcessScope::Namespace,
        false => ProcessScope::DescendantsOf(rustix::process::getpid().as_raw_nonzero().get()),
    };
    watch::watch(request, control, id, scope, (protections, None))
}
