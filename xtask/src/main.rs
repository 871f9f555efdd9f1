//! The repository's own tasks.
//!
//! `cargo xtask test` runs every test of the repository; it needs nothing but Rust and a C toolchain, and takes
//! nextest where it is installed. `fuzz` and `instructions` are steps of `.ci/run`; `soak` takes hours. `docs` runs the
//! commands of the documentation, and `pictures` makes its pictures. `catalogue` brings the catalogue of models up to
//! date.

mod catalogue;
mod compare;
mod day;
mod docs;
mod fuzz;
mod instructions;
mod mock;
mod places;
mod say;
mod soak;

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use places::cargo;
use say::say;

/// How much each test repeats.
#[derive(Clone, Copy)]
struct Repeats {
    /// Cases of a property.
    cases: u32,
    /// How often a test that kills the program does so.
    kills: u32,
}

/// Repeats of the daily tier and of the soak.
const DAILY: Repeats = Repeats { cases: 64, kills: 50 };
const SOAK: Repeats = Repeats { cases: 10_000, kills: 200 };
/// Names programs without which tests are left out; where it is empty, none is.
const LEFT_OUT: &str = "DRAWLOOM_TESTS_WITHOUT";
/// Programs that commands of tests run; `.ci/run` installs them.
const OF_COMMANDS: [&str; 8] = ["curl", "git", "make", "nc", "npm", "perl", "python3", "wget"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest = arguments.get(1..).unwrap_or_default();
    let done = match arguments.first().map(String::as_str) {
        Some("test") => test(DAILY, rest),
        Some("fuzz") => fuzz::run(rest, None),
        Some("instructions") => match rest {
            [] => instructions::run(false),
            [bless] if bless == "--bless" => instructions::run(true),
            _ => Err(anyhow::anyhow!("cargo xtask instructions takes --bless or nothing")),
        },
        Some("soak") => soak::run(rest),
        Some("catalogue") => catalogue::run(rest),
        Some("compare") => compare::run(rest),
        Some("day") => day::run(rest),
        // Run in the place of an editor by `day`.
        Some("edit-chapter") => day::edit_chapter(rest),
        Some("docs") => docs::run(rest),
        Some("pictures") => pictures(),
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
    say("cargo xtask test [--postgres URL] [ARGUMENTS]");
    say(
        "                                      every test of the repository; the store's on that server, too",
    );
    say(
        "cargo xtask fuzz [TARGET...]          every fuzz target for DRAWLOOM_FUZZ_SECONDS (60), two at a time",
    );
    say("                                      (--no-run builds them)");
    say("cargo xtask instructions [--bless]    instructions of core paths against their baseline");
    say("cargo xtask catalogue [URL | --file FILE] [--month YYYY-MM] [--add]");
    say("                                      the catalogue of models against a public list");
    say(
        "cargo xtask compare PROGRAM LLM       the tasks of docs/compare.md with both, and the words they take",
    );
    say("cargo xtask day PROGRAM [MODEL OTHER]");
    say("                                      a writer's day, with the script model or these");
    say("cargo xtask docs PROGRAM [--terminal] FILE...");
    say("                                      the commands of documents, in an empty home");
    say("cargo xtask pictures                  the pictures of the documentation, anew from the program");
    say("cargo xtask soak [--minutes N] [--load-only]");
    say(
        "                                      hostile load, all escapes, long fuzzing, 10,000 cases a property",
    );
}

/// Makes the pictures of the documentation anew: the tests that compare them write them.
fn pictures() -> Result<()> {
    let mut command = cargo();
    command.args(["test", "--quiet", "-p", "drawloom", "--features", "postgres", "--test", "cli"]);
    command.args(["illustrations::"]).env("DRAWLOOM_WRITE_DOCS", "1");
    if !command.status().context("cannot start cargo")?.success() {
        bail!("the pictures could not be made");
    }
    Ok(())
}

/// How many tests nextest runs at once.
const TEST_THREADS: &str = "NEXTEST_TEST_THREADS";

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Runs all tests, with these repeats unless `PROPTEST_CASES` and `DRAWLOOM_KILLS` say otherwise.
fn test(repeats: Repeats, rest: &[String]) -> Result<()> {
    let (server, rest) = match rest {
        [flag, url, rest @ ..] if flag == "--postgres" => (Some(url), rest),
        [flag] if flag == "--postgres" => bail!("--postgres takes the URL of a database"),
        rest => (None, rest),
    };
    let nextest = Command::new(cargo().get_program())
        .args(["nextest", "--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    let mut command = cargo();
    if nextest {
        command.args(["nextest", "run", "--workspace", "--no-fail-fast"]);
        if std::env::var_os(TEST_THREADS).is_none() {
            // Most of a test's time is waiting: for a terminal, a server, a process.
            let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            command.env(TEST_THREADS, (2 * cores).to_string());
        }
    } else {
        command.args(["test", "--workspace", "--no-fail-fast"]);
    }
    // Built in either way, so that the flag builds nothing anew.
    command.args(["--features", "drawloom/postgres"]);
    match server {
        Some(url) => drop(command.env("DRAWLOOM_TEST_POSTGRES", url)),
        None => {
            command.env_remove("DRAWLOOM_TEST_POSTGRES");
            say("PostgreSQL is not tested: `cargo xtask test --postgres URL` tests it, as .ci/run does");
        }
    }
    let missing: Vec<&str> = OF_COMMANDS.into_iter().filter(|program| !is_on_path(program)).collect();
    // Whoever sets it, also to nothing, says which may be left out.
    if !missing.is_empty() && std::env::var_os(LEFT_OUT).is_none() {
        let missing = missing.join(" ");
        say(&format!(
            "not run are tests whose commands run {missing}: these programs are not there ({LEFT_OUT}= makes them fail)"
        ));
        command.env(LEFT_OUT, missing);
    }
    if std::env::var_os("PROPTEST_CASES").is_none() {
        command.env("PROPTEST_CASES", repeats.cases.to_string());
    }
    if std::env::var_os("DRAWLOOM_KILLS").is_none() {
        command.env("DRAWLOOM_KILLS", repeats.kills.to_string());
    }
    let status = command.args(rest).status().context("cannot start cargo")?;
    if !status.success() {
        bail!("tests failed");
    }
    Ok(())
}
