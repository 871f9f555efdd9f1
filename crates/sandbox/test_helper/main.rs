//! Program of the escape suite: supervisor, helper, and what runs inside the walls.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a program of tests fails by panicking"
)]

mod attempts;
mod calls;
mod sessions;
mod small_home;
mod worker;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};

use drawloom_sandbox::{
    OlderKernel, Outcome, Protection, Run, RunningCommand, Sandbox, run_helper, run_helper_without,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [_, "__exec"] => return run_helper(),
        [_, "__exec-without", weaker @ ..] => return weaker_helper(weaker),
        [_, "__work", omitted @ ..] => return worker::answer(omitted),
        [_, "work", input, omitted @ ..] => print(&worker::ask(input, omitted)),
        [_, "probe", weaker @ ..] => print(&sandbox(weaker).probe()),
        [_, "supervise", run, weaker @ ..] => print(&supervise(run, weaker)),
        [_, "supervise-with-caches", run, caches, weaker @ ..] => {
            print(&sessions::run_with_caches(run, caches, weaker));
        }
        [_, "supervise-at-terminal", run, weaker @ ..] => {
            let _terminal = attempts::take_terminal();
            print(&supervise(run, weaker));
        }
        [_, "freely-at-terminal", line] => {
            let _terminal = attempts::take_terminal();
            let ended = std::process::Command::new("/bin/sh").args(["-c", line]).status();
            // Before the terminal is closed, which hangs up.
            std::process::exit(i32::from(!ended.unwrap().success()));
        }
        [_, "cancel", run] => print(&cancel_at_output(run)),
        [_, "cancel-at-once", run] => print(&cancel_at_once(run)),
        [_, "stall", run] => print(&stall(run, false)),
        [_, "stall-and-cancel", run] => print(&stall(run, true)),
        // Ends with its command still running.
        [_, "abandon", run] => {
            let (running, first) = started(run);
            first.recv().expect("output");
            std::mem::forget(running);
        }
        [_, "sessions", run, steps, caches] => print(&sessions::follow(run, steps, caches)),
        [_, "count", port] => sessions::count(port),
        [_, "serve", port] => sessions::serve(port),
        [_, "ask", port] => return sessions::ask(port),
        [_, "with-small-home", home, bytes, program, arguments @ ..] => {
            small_home::run(home, bytes, program, arguments)
        }
        [_, "attempt", name] if attempts::attempt(name) => {}
        [_, "call", name] if calls::reaches_the_kernel(name) => {}
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}

/// A helper without some protections, or as on a kernel with an older Landlock (`landlock=4`) or without overlays in user
/// namespaces (`no-overlay`).
fn weaker_helper(weaker: &[&str]) -> ExitCode {
    let landlock_at_most = weaker.iter().find_map(|name| name.strip_prefix("landlock=")?.parse().ok());
    let kernel = OlderKernel { landlock_at_most, lacks_overlay: weaker.contains(&"no-overlay") };
    let omitted = omitted(weaker);
    assert_eq!(
        omitted.len() + usize::from(landlock_at_most.is_some()) + usize::from(kernel.lacks_overlay),
        weaker.len(),
        "no such protection: {weaker:?}"
    );
    run_helper_without(&omitted, kernel)
}

fn omitted(weaker: &[&str]) -> Vec<Protection> {
    weaker.iter().filter_map(|name| Protection::parse(name)).collect()
}

/// A command runs in a session.
const IN_SESSION: &str = "in-session";

fn sandbox(weaker: &[&str]) -> Sandbox {
    let weaker: Vec<&str> = weaker.iter().copied().filter(|name| *name != IN_SESSION).collect();
    let sandbox = match weaker.as_slice() {
        [] => Sandbox::of_this_program(),
        weaker => Sandbox::of_this_program_without(
            &omitted(weaker),
            ["__exec-without"].iter().chain(weaker).map(OsString::from).collect(),
        ),
    };
    sandbox.expect("/proc")
}

fn print(value: &impl serde::Serialize) {
    println!("{}", serde_json::to_string(value).unwrap());
}

fn supervise(run: &str, weaker: &[&str]) -> Result<Outcome, String> {
    if weaker.contains(&IN_SESSION) {
        return sessions::run_with_caches(run, "[]", weaker);
    }
    let run: Run = serde_json::from_str(run).expect("a run");
    waiting(sandbox(weaker).run(run, None))
}

/// A command that runs, and what tells of its first output.
fn started(run: &str) -> (RunningCommand, Receiver<()>) {
    let run: Run = serde_json::from_str(run).expect("a run");
    let (sender, first) = channel();
    let sink = Box::new(move |_, _: &[u8]| _ = sender.send(()));
    (sandbox(&[]).start(run, Some(sink)).expect("a thread"), first)
}

fn cancel_at_output(run: &str) -> Result<Outcome, String> {
    let (mut running, first) = started(run);
    first.recv().expect("output");
    running.cancel();
    waiting(running.outcome())
}

fn cancel_at_once(run: &str) -> Result<Outcome, String> {
    let (mut running, _first) = started(run);
    running.cancel();
    waiting(running.outcome())
}

/// A command whose output is told to somebody who never listens to the end.
fn stall(run: &str, cancels: bool) -> Result<Outcome, String> {
    let run: Run = serde_json::from_str(run).expect("a run");
    let (sender, first) = channel();
    let sink = Box::new(move |_, _: &[u8]| {
        let _ = sender.send(());
        loop {
            std::thread::park();
        }
    });
    let mut running = sandbox(&[]).start(run, Some(sink)).expect("a thread");
    first.recv().expect("output");
    if cancels {
        running.cancel();
    }
    waiting(running.outcome())
}

pub(crate) fn waiting<E: ToString>(
    work: impl Future<Output = Result<Outcome, E>>,
) -> Result<Outcome, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(work).map_err(|error| error.to_string())
}
