//! Watching a command: its end, its limits, the supervisor's wish, and what it leaves.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::statvfs;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open, wait,
};

use super::signs_of_life::SignsOfLife;
use super::{Failure, Step, memory, report};
use crate::process_list::{ProcessScope, processes};
use crate::protection::{Protection, Protections};
use crate::request::{HelperReport, HelperRequest};
use crate::walls::Walls;

/// How often what the kernel does not limit is counted.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Each how many counts what no process maps is counted, which takes longer.
const UNMAPPED_EVERY: u32 = 4;
/// How long an inner process may take to say what it leaves.
pub(super) const GRACE: Timespec = Timespec { tv_sec: 0, tv_nsec: 30_000_000 };
/// How often, and how far apart, it is looked whether what a command left ends by itself.
const LAST_LOOKS: usize = 10;
const LAST_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
/// How long the outer process looks for processes that it ended and that are still there.
const PATIENCE: Duration = Duration::from_secs(5);

/// Waits until the command ends, is to be ended, or goes over a limit; says what it left.
pub(super) fn watch(
    request: &HelperRequest,
    control: &UnixStream,
    command: Pid,
    scope: ProcessScope,
    (protections, mut signs): (&Protections, Option<&mut SignsOfLife>),
) -> Result<(), Failure> {
    let ended = pidfd_open(command, PidfdFlags::empty()).step("process descriptor")?;
    let mut status = None;
    let mut next_count = Instant::now();
    let mut counts = 0_u32;
    loop {
        if let Some(signs) = &mut signs {
            signs.give();
        }
        let mut events = [PollFd::new(&ended, PollFlags::IN), PollFd::new(control, PollFlags::IN)];
        match poll(&mut events, Some(&TICK)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(Failure::new("wait", &error)),
        }
        let asked = !events[1].revents().is_empty();
        while let Ok(Some((process, ended))) = wait(WaitOptions::NOHANG) {
            if process == command {
                status = Some(ended);
            }
        }
        let over = match protections.has(Protection::Limits) && Instant::now() >= next_count {
            true => {
                next_count = Instant::now() + Duration::from_millis(50);
                counts += 1;
                over_limit(&request.walls, scope, counts.is_multiple_of(UNMAPPED_EVERY))
            }
            false => None,
        };
        if asked || status.is_some() || over.is_some() {
            if !asked && over.is_none() {
                let_others_end(control, scope, command);
            }
            say_what_is_left(control, scope, command);
            if let Some(limit) = over {
                report(control, &HelperReport::OverLimit(limit));
            }
            if let Some(status) = status {
                report(control, &exited(status));
            }
            return Ok(());
        }
    }
}

/// Waits a moment for processes that are about to end, so that only what goes on is named.
fn let_others_end(control: &UnixStream, scope: ProcessScope, command: Pid) {
    let command = command.as_raw_nonzero().get();
    for _ in 0..LAST_LOOKS {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        if processes(scope).iter().all(|process| process.id == command) {
            return;
        }
        // Whoever wishes the end gets it at once.
        let mut events = [PollFd::new(control, PollFlags::IN)];
        if poll(&mut events, Some(&LAST_LOOK)).is_ok_and(|happened| happened > 0) {
            return;
        }
    }
}

fn exited(status: WaitStatus) -> HelperReport {
    HelperReport::Exited { code: status.exit_status(), signal: status.terminating_signal() }
}

fn say_what_is_left(control: &UnixStream, scope: ProcessScope, command: Pid) {
    let command = command.as_raw_nonzero().get();
    let left = processes(scope).into_iter().filter(|process| process.id != command);
    let mut names: Vec<String> = left.map(|process| process.name).take(MOST_NAMES).collect();
    names.sort();
    if !names.is_empty() {
        report(control, &HelperReport::Left(names));
    }
}

/// Names of processes that are told.
const MOST_NAMES: usize = 32;

fn over_limit(walls: &Walls, scope: ProcessScope, with_unmapped: bool) -> Option<String> {
    let running = processes(scope);
    let limits = &walls.limits;
    if running.len() as u64 > limits.processes {
        return Some(format!("{} processes", limits.processes));
    }
    let page = rustix::param::page_size() as u64;
    let mapped = running.iter().map(|process| process.pages * page).sum::<u64>();
    let unmapped = if with_unmapped { memory::unmapped(&running, scope) } else { 0 };
    if mapped.saturating_add(unmapped) > limits.memory {
        return Some(format!("{} MiB of memory", limits.memory >> 20));
    }
    let is_full =
        |root: &&Path| statvfs(*root).is_ok_and(|space| space.f_bavail * space.f_frsize < limits.free_space);
    if let Some(full) = walls.writable_roots().chain([walls.home.as_path()]).find(is_full) {
        let mib = limits.free_space >> 20;
        return Some(format!(
            "less than {mib} MiB of free space where {} lies (limits.free_space)",
            full.display()
        ));
    }
    None
}

/// Watches a command without a process namespace, and ends all that descends from this process.
pub(super) fn watch_tree(
    request: &HelperRequest,
    control: &UnixStream,
    (command, signs): (Pid, &mut SignsOfLife),
    protections: &Protections,
) -> Result<(), Failure> {
    let own = getpid().as_raw_nonzero().get();
    let scope = ProcessScope::DescendantsOf(own);
    let watched = watch(request, control, command, scope, (protections, Some(signs)));
    if protections.has(Protection::EndTree) {
        end_tree(control, scope);
    }
    watched
}

/// Ends processes until nobody is left. A process with a signal to die pending cannot fork, so each round leaves
/// fewer; orphans come to this process, their reaper.
fn end_tree(control: &UnixStream, scope: ProcessScope) {
    let until = Instant::now() + PATIENCE;
    loop {
        for process in processes(scope) {
            if let Some(id) = Pid::from_raw(process.id) {
                let _ = kill_process(id, Signal::KILL);
            }
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                // Nobody is left to wait for.
                Err(Errno::CHILD) => return,
                Ok(None) => break,
                _ => {}
            }
        }
        if Instant::now() > until {
            report(control, &HelperReport::Lacks("some processes could not be ended".into()));
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
