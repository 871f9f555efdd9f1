//! `cargo xtask soak [--minutes N] [--load-only]`: hours of what a day does to a home.
//!
//! First a hostile load for N minutes (60): processes that stay and processes that come, stand still and are
//! killed, all in one home, with models that fail in every way a script can, and some that call tools in one workspace.
//! At the end every tree verifies, the store is whole, no command is left running, and the processes that stayed hold no
//! more than after their beginning. Then the whole matrix of
//! escapes with each protection taken away in turn, every fuzz target for ten minutes, and every property with 10,000
//! cases.

mod load;
mod sample;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::places::{cargo, target};
use crate::say::say;
use load::{Place, Tally, ended};
use sample::{Growth, Sample};

/// Processes that stay, and workers that start processes.
const RESIDENTS: usize = 2;
const WORKERS: u64 = 3;

/// Seconds a fuzz target has in a soak.
const FUZZ_SECONDS: u64 = 600;

/// Runs the soak.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (mut minutes, mut load_only) = (60, false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--minutes" => {
                let text = rest.next().context("--minutes needs a number")?;
                minutes = text.parse().with_context(|| format!("{text} is no number of minutes"))?;
            }
            "--load-only" => load_only = true,
            other => bail!("the soak takes --minutes N and --load-only, not {other}"),
        }
    }
    hostile(Duration::from_secs(minutes * 60))?;
    if load_only {
        return Ok(());
    }
    escapes()?;
    crate::fuzz::run(&[], Some(FUZZ_SECONDS))?;
    crate::test(crate::SOAK, &[])
}

/// The matrix of escapes, which prints its tables: as the administrator with the rows of a plain user, too.
fn escapes() -> Result<()> {
    let mut tests = cargo();
    tests.args(["test", "--quiet", "--package", "drawloom-sandbox", "--test", "escapes", "--"]);
    if !tests.args(["--ignored", "--nocapture", "matrix::"]).status()?.success() {
        bail!("the matrix of escapes failed");
    }
    Ok(())
}

/// The hostile load, and what must be true after it.
fn hostile(time: Duration) -> Result<()> {
    let built = cargo()
        .args(["build", "--quiet", "--package", "drawloom", "--bin", "drawloom", "--example", "resident"])
        .status()?;
    if !built.success() {
        bail!("the programs do not build");
    }
    let folder = target().join("soak");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    let programs = target().canonicalize()?.join("debug");
    let place =
        Place { folder, program: programs.join("drawloom"), resident: programs.join("examples/resident") };
    for number in 0..3 {
        place.json(&["tree", "new", "--title", &format!("Shared {number}"), "--text", "It rained."])?;
    }

    say(&format!("hostile load for {} min in {}", time.as_secs() / 60, place.folder.display()));
    let mut residents = Vec::new();
    for number in 0..RESIDENTS {
        residents.push(place.stay(&format!("Resident {number}"))?);
    }
    let (end, tally) = (Instant::now() + time, Tally::default());
    let mut lives = vec![Vec::new(); RESIDENTS];
    let worked = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|seed| {
                scope.spawn({
                    let (place, tally) = (&place, &tally);
                    move || place.work(seed, end, tally)
                })
            })
            .collect();
        while Instant::now() < end {
            for (resident, life) in residents.iter_mut().zip(&mut lives) {
                if resident.try_wait()?.is_none() {
                    life.extend(Sample::of(resident.id()));
                }
            }
            thread::sleep(Duration::from_millis(500));
        }
        for worker in workers {
            worker.join().unwrap_or_else(|_| bail!("a worker broke off"))?;
        }
        Ok::<_, anyhow::Error>(())
    });
    let mut wrong = Vec::new();
    wrong.extend(worked.err().map(|error| format!("{error:#}")));
    for (number, resident) in residents.iter_mut().enumerate() {
        drop(resident.stdin.take());
        let code = ended(resident)?;
        if code != Some(0) {
            wrong.push(format!("resident {number} ended with {code:?}"));
        }
    }
    let [ran, killed, stopped] =
        [&tally.ran, &tally.killed, &tally.stopped].map(|count| count.load(Ordering::Relaxed));
    say(&format!("{ran} commands, {killed} of them killed, {stopped} stopped for a while"));
    wrong.extend(grown(&lives));
    wrong.extend(unsound(&place)?);
    if wrong.is_empty() { Ok(()) } else { bail!("the soak found: {}", wrong.join("; ")) }
}

/// Prints what the processes that stayed held; returns what grew.
fn grown(lives: &[Vec<Sample>]) -> Vec<String> {
    let mut wrong = Vec::new();
    say(&format!("{:<12} {:>22} {:>20} {:>20}", "process", "resident KiB", "descriptors", "threads"));
    for (number, life) in lives.iter().enumerate() {
        let Some(growth) = Growth::of(life) else {
            wrong.push(format!("resident {number} has {} samples, too few to compare", life.len()));
            continue;
        };
        let Growth { before, after } = growth;
        let shown = |from: u64, to: u64| format!("{from} -> {to}");
        say(&format!(
            "resident {number:<3} {:>22} {:>20} {:>20}",
            shown(before.memory, after.memory),
            shown(before.descriptors, after.descriptors),
            shown(before.threads, after.threads)
        ));
        wrong.extend(growth.beyond().into_iter().map(|what| format!("resident {number}: {what} grew")));
    }
    wrong
}

/// What is wrong with the home after the load.
fn unsound(place: &Place) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let trees = place.json(&["tree", "list"])?;
    let trees = trees["trees"].as_array().context("tree list has no trees")?;
    if trees.len() < 3 + RESIDENTS {
        wrong.push(format!("{} trees are left", trees.len()));
    }
    let mut nodes = 0;
    for tree in trees {
        let id = tree["tree"].as_str().context("a tree has no id")?;
        let report = place.json(&["tree", "verify", id])?;
        nodes += report["nodes"].as_u64().unwrap_or(0);
        if report["status"] != "valid" && !only_masked(&report) {
            wrong.push(format!("tree {id} does not verify: {report}"));
        }
    }
    let check = place.json(&["store", "check"])?;
    if check["ok"] != true {
        wrong.push(format!("the store is not whole: {check}"));
    }
    for name in ["spool", "run"] {
        let left = std::fs::read_dir(place.home().join(name))
            .map_or(0, |entries| entries.flatten().filter(|entry| leftover(&entry.path())).count());
        // The command that looked was an instance of its own, and is gone.
        if left > 0 {
            wrong.push(format!("{left} files of dead processes are left in {name}"));
        }
    }
    let left = running_in(&place.workspace()?)?;
    if left > 0 {
        wrong.push(format!("{left} processes of commands are left"));
    }
    let size = std::fs::metadata(place.home().join("loom.db"))?.len();
    say(&format!("{} trees of {nodes} nodes verify, store {} KiB", trees.len(), size / 1024));
    Ok(wrong)
}

/// How many processes work in a folder.
fn running_in(folder: &Path) -> Result<usize> {
    let processes = std::fs::read_dir("/proc")?.flatten();
    let works_there = processes.filter(|process| {
        std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    });
    Ok(works_there.count())
}

/// A masked secret is the one gap a load with secrets in its answers may leave.
fn only_masked(report: &serde_json::Value) -> bool {
    let problems = report["problems"].as_array();
    report["status"] == "incomplete"
        && problems.is_some_and(|problems| problems.iter().all(|problem| problem["gap"] == "masked"))
}

fn leftover(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "lock")
        || (path.extension().is_none()
            && path.is_file()
            && !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')))
}
