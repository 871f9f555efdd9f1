//! The repository's own tasks.
//!
//! `cargo xtask test` runs every test of the repository; it needs nothing but Rust and a C toolchain, and takes
//! nextest where it is installed. `cargo xtask soak` runs the same tests with many more cases.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

/// Cases of each property test, by tier.
const CASES: u32 = 256;
const SOAK_CASES: u32 = 10_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest = arguments.get(1..).unwrap_or_default();
    let done = match arguments.first().map(String::as_str) {
        Some("test") => test(CASES, rest),
        Some("soak") => test(SOAK_CASES, rest),
        Some("help" | "--help" | "-h") | None => {
            usage();
            Ok(())
        }
        Some(other) => {
            usage();
            Err(anyhow::anyhow!("there is no task `{other}`"))
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn usage() {
    say("cargo xtask test [ARGUMENTS]   every test of the repository");
    say("cargo xtask soak [ARGUMENTS]   the same with 10,000 cases a property");
}

#[allow(clippy::print_stderr, reason = "a task speaks to the person who started it")]
fn say(line: &str) {
    eprintln!("{line}");
}

/// Runs all tests with this many cases a property, unless `PROPTEST_CASES` says otherwise.
fn test(cases: u32, rest: &[String]) -> Result<()> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let nextest = Command::new(&cargo)
        .args(["nextest", "--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    let mut command = Command::new(&cargo);
    if nextest {
        command.args(["nextest", "run", "--workspace", "--no-fail-fast"]);
    } else {
        command.args(["test", "--workspace", "--no-fail-fast"]);
    }
    if std::env::var_os("PROPTEST_CASES").is_none() {
        command.env("PROPTEST_CASES", cases.to_string());
    }
    let status = command.args(rest).status().with_context(|| format!("cannot start {cargo}"))?;
    if !status.success() {
        bail!("tests failed");
    }
    Ok(())
}
