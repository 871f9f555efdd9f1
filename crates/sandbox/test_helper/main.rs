//! Program of the escape suite: supervisor, helper, and what runs inside the walls.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a program of tests fails by panicking"
)]

mod attempts;

use std::process::ExitCode;

use drawloom_sandbox::{Outcome, Protection, Run, RunningCommand, Sandbox, run_helper, run_helper_without};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [_, "__exec"] => run_helper(),
        [_, "__exec-without", omitted @ ..] => {
            let omitted: Vec<Protection> =
                omitted.iter().map(|name| Protection::parse(name).expect("a protection")).collect();
            run_helper_without(&omitted)
        }
        [_, "probe"] => {
            println!(
                "{}",
                serde_json::to_string(&Sandbox::of_this_program().expect("/proc").probe()).unwrap()
            );
            ExitCode::SUCCESS
        }
        [_, "supervise", run, omitted @ ..] => {
            println!("{}", serde_json::to_string(&supervise(run, omitted)).unwrap());
            ExitCode::SUCCESS
        }
        [_, "cancel", run] => {
            println!("{}", serde_json::to_string(&cancel_at_output(run)).unwrap());
            ExitCode::SUCCESS
        }
        // Ends with its command still running.
        [_, "abandon", run] => {
            let (running, first) = started(run);
            first.recv().expect("output");
            std::mem::forget(running);
            ExitCode::SUCCESS
        }
        [_, "attempt", name] if attempts::attempt(name) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// A command that runs, and what tells of its first output.
fn started(run: &str) -> (RunningCommand, std::sync::mpsc::Receiver<()>) {
    let run: Run = serde_json::from_str(run).expect("a run");
    let (sender, first) = std::sync::mpsc::channel();
    let sink = Box::new(move |_, _: &[u8]| _ = sender.send(()));
    let sandbox = Sandbox::of_this_program().expect("/proc");
    (sandbox.start(run, Some(sink)).expect("a thread"), first)
}

fn cancel_at_output(run: &str) -> Result<Outcome, String> {
    let (mut running, first) = started(run);
    first.recv().expect("output");
    running.cancel();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(running.outcome()).map_err(|error| error.to_string())
}

fn supervise(run: &str, omitted: &[&str]) -> Result<Outcome, String> {
    let run: Run = serde_json::from_str(run).expect("a run");
    let sandbox = match omitted {
        [] => Sandbox::of_this_program(),
        omitted => Sandbox::of_this_program_with(
            ["__exec-without"].iter().chain(omitted).map(std::ffi::OsString::from).collect(),
        ),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let outcome = runtime.block_on(sandbox.expect("/proc").run(run, None));
    outcome.map_err(|error| error.to_string())
}
