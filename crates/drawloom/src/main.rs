//! `drawloom`, the program: arguments in, answers out.
//!
//! This crate holds what only the outermost layer may know: the command line ([`cli`]), the configuration file
//! ([`config`]), which model a name means ([`models`]), how an answer looks ([`render`], [`json`]) and who is
//! asked ([`terminal`]). What commands do is in `commands`; nothing here decides it.
//!
//! Start-up does no more than a command needs: `--version` touches nothing, `config` and `doctor` make no home,
//! and threads exist only where something waits (spec: scale §1).

mod allocator;
mod bench;
mod cells;
mod cli;
mod completing;
mod config;
mod context_windows;
mod crash;
mod demo;
mod detect;
mod doctor;
mod embedded;
mod event_lines;
#[cfg(target_os = "linux")]
mod extracting;
mod file_limit;
mod init;
mod interrupt;
mod json;
mod log;
mod mcp_commands;
mod model_address;
mod model_commands;
mod model_names;
mod models;
mod open;
mod output;
mod pager;
mod paths;
mod provider;
mod render;
mod repl;
mod run;
mod sandboxed;
mod secrets;
mod skill_commands;
mod terminal;
mod usage;
mod variable;
mod workspaces;

use std::ffi::OsString;
use std::process::ExitCode;

use output::Output;

fn main() -> ExitCode {
    // Before anything else: the helper enters namespaces, which a process with threads cannot, and a worker restricts its one
    // thread.
    #[cfg(target_os = "linux")]
    match std::env::args_os().nth(1) {
        Some(argument) if argument == sandbox::HELPER_ARGUMENT => return sandbox::run_helper(),
        Some(argument) if argument == extract::WORKER_ARGUMENT => return extracting::run(),
        _ => {}
    }
    allocator::return_freed();
    store::home::restrict_umask();
    #[cfg(feature = "embedded-model")]
    embedded::use_one_thread();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let [_, only] = arguments.as_slice()
        && (only == "--version" || only == "-V")
    {
        let _ = output::bytes(concat!("drawloom ", env!("CARGO_PKG_VERSION"), "\n").as_bytes());
        return ExitCode::SUCCESS;
    }
    completing::answer();
    crash::remember_panics();
    // Errors in the arguments themselves have the form that was asked for, too.
    let asks = |flag: &str| {
        arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == flag)
    };
    let mut output = Output::before_arguments(asks("--json"), asks("--events"));
    file_limit::watch();
    let code = crash::guarded(|| run::run(&arguments, &mut output)).unwrap_or_else(|error| {
        let error = file_limit::explain(error);
        output.failure(&error);
        error.exit
    });
    ExitCode::from(code)
}
