//! The side of a worker: walls around itself, then the work.

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, getrlimit, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};

use super::{Failure, Step, capabilities, hardening, landlock, seccomp};
use crate::protection::{OlderKernel, Protection, Protections};
use crate::worker::{NO_WALLS, WorkerLimits};

/// Answers what stands on the standard input, as a worker of [`Sandbox::work`](crate::Sandbox::work). `main` calls it before
/// anything else: the filter of calls holds for the thread that sets it, so that there may be no other one.
pub fn run_worker(limits: &WorkerLimits, work: impl FnOnce(&[u8]) -> Vec<u8>) -> ExitCode {
    run(limits, &Protections::all(), work)
}

/// The worker of the tests, which lacks some protections.
#[doc(hidden)]
pub fn run_worker_without(
    omitted: &[Protection],
    limits: &WorkerLimits,
    work: impl FnOnce(&[u8]) -> Vec<u8>,
) -> ExitCode {
    run(limits, &Protections::without(omitted, OlderKernel::default()), work)
}

fn run(limits: &WorkerLimits, protections: &Protections, work: impl FnOnce(&[u8]) -> Vec<u8>) -> ExitCode {
    if let Err(Failure { step, problem }) = restrict(limits, protections) {
        let _ = io::stdout().write_all(format!("{step}: {problem}").as_bytes());
        return ExitCode::from(NO_WALLS);
    }
    let mut input = Vec::new();
    let answered = io::stdin().read_to_end(&mut input).and_then(|_| {
        let mut out = io::stdout();
        out.write_all(&work(&input))?;
        out.flush()
    });
    if answered.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn restrict(limits: &WorkerLimits, protections: &Protections) -> Result<(), Failure> {
    hardening::close_from(3).step("descriptors")?;
    set_parent_process_death_signal(Some(Signal::KILL)).step("death of the parent")?;
    if protections.has(Protection::Limits) {
        limit(limits)?;
    }
    capabilities::drop_all()?;
    capabilities::refuse_new()?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step("dumpable")?;
    if protections.has(Protection::Landlock) {
        landlock::refuse_all()?;
    }
    if protections.has(Protection::Seccomp) {
        seccomp::allow_work()?;
    }
    Ok(())
}

fn limit(limits: &WorkerLimits) -> Result<(), Failure> {
    let wished = [
        (Resource::As, limits.memory, limits.memory),
        (Resource::Stack, limits.stack, limits.stack),
        // At the first it is told so, at the second ended.
        (Resource::Cpu, limits.processor_s, limits.processor_s + 1),
        // No file is written, and one byte keeps the machine's handler of crashes from being called.
        (Resource::Core, 1, 1),
        (Resource::Fsize, 0, 0),
    ];
    for (resource, current, maximum) in wished {
        let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = Rlimit { current: Some(current.min(most)), maximum: Some(maximum.min(most)) };
        setrlimit(resource, limit).step("limits")?;
    }
    Ok(())
}
