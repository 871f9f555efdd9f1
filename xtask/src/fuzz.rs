//! `cargo xtask fuzz [TARGET...]`: every fuzz target for `DRAWLOOM_FUZZ_SECONDS`, two at a time.
//!
//! A finding fails the task, and so does a missing tool: nothing is skipped unseen. The stable compiler serves,
//! with `RUSTC_BOOTSTRAP` for the instrumentation, so that no second toolchain is needed. New inputs go to the
//! build folder; `fuzz/corpus` holds only seeds that were written by hand, and regressions go to the tests of the
//! crate that had the defect.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::places::{as_from_outside, root, target};
use crate::say::say;

/// Targets that run at the same time.
const AT_ONCE: usize = 2;

/// Bytes of one input. Larger ones find nothing more in readers with bounds this small, and take longer.
const MOST_BYTES: u32 = 4096;

/// Fuzzes the targets named, or all of them, for so many seconds each; with `--no-run` they are built.
pub(crate) fn run(names: &[String], seconds: Option<u64>) -> Result<()> {
    if matches!(names, [only] if only == "--no-run") {
        return build().map(drop);
    }
    let known = targets()?;
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        bail!("there is no fuzz target `{unknown}`: name one of {}", known.join(", "));
    }
    let seconds = match (seconds, std::env::var("DRAWLOOM_FUZZ_SECONDS")) {
        (Some(seconds), _) => seconds,
        (None, Ok(text)) => text.parse().context("DRAWLOOM_FUZZ_SECONDS is no number of seconds")?,
        (None, Err(_)) => 60,
    };
    let programs = build()?;
    let queue = Mutex::new(if names.is_empty() { known } else { names.to_vec() });
    let found = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(name) = next(&queue) {
                    match fuzz(&programs, &name, seconds) {
                        Ok(line) => say(&format!("{name}: {line}")),
                        Err(error) => {
                            say(&format!("{name}: FAILED: {error:#}"));
                            found.lock().unwrap_or_else(PoisonError::into_inner).push(name);
                        }
                    }
                }
            });
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    if found.is_empty() { Ok(()) } else { bail!("fuzzing found something in {}", found.join(", ")) }
}

fn next(queue: &Mutex<Vec<String>>) -> Option<String> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

/// The targets there are, by their files.
fn targets() -> Result<Vec<String>> {
    let folder = root().join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Builds all targets; returns the folder they are in.
fn build() -> Result<PathBuf> {
    let own = target().join("ci-tools/bin/cargo-fuzz");
    let program = if own.exists() { own } else { PathBuf::from("cargo-fuzz") };
    let version = Command::new(&program).args(["fuzz", "--version"]).output();
    if !version.is_ok_and(|output| output.status.success()) {
        bail!("cargo-fuzz is not installed: run `cargo install cargo-fuzz --locked`");
    }
    let lock = root().join("fuzz/Cargo.lock");
    let before = fs::read(&lock).context("fuzz/Cargo.lock is missing")?;
    let folder = root().join("fuzz/target");
    let status = as_from_outside(&mut Command::new(&program))
        .args(["fuzz", "build", "--sanitizer", "address", "--target", TARGET, "--target-dir"])
        .arg(&folder)
        .current_dir(root())
        .env("RUSTC_BOOTSTRAP", "1")
        // What `cargo xtask` itself was started with concerns another workspace.
        .env_remove("CARGO_TARGET_DIR")
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    if !status.success() {
        bail!("the fuzz targets do not build");
    }
    if fs::read(&lock)? != before {
        bail!("fuzz/Cargo.lock was not up to date: commit it as it is now");
    }
    Ok(folder.join(TARGET).join("release"))
}

/// The platform of this machine, as cargo names it.
const TARGET: &str = if cfg!(all(target_arch = "aarch64", target_os = "macos")) {
    "aarch64-apple-darwin"
} else if cfg!(target_arch = "aarch64") {
    "aarch64-unknown-linux-gnu"
} else {
    "x86_64-unknown-linux-gnu"
};

/// Runs one target. Returns its last figures.
fn fuzz(programs: &Path, name: &str, seconds: u64) -> Result<String> {
    let folder = root().join("fuzz/target");
    let (grown, findings) = (folder.join("corpus").join(name), folder.join("findings").join(name));
    fs::create_dir_all(&grown)?;
    fs::create_dir_all(&findings)?;
    let log = folder.join(format!("{name}.log"));
    let out = File::create(&log)?;
    let status = Command::new(programs.join(name))
        .arg(&grown)
        .arg(root().join("fuzz/corpus").join(name))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={MOST_BYTES}"))
        .args([
            "-timeout=10",
            "-rss_limit_mb=2048",
            "-malloc_limit_mb=512",
            "-len_control=20",
            "-print_final_stats=1",
        ])
        .arg(format!("-artifact_prefix={}/", findings.display()))
        .env("ASAN_OPTIONS", "detect_odr_violation=0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(out)
        .status()
        .with_context(|| format!("cannot start the target {name}"))?;
    let said = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    if !status.success() {
        let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with('#')).collect();
        let tail = lines[lines.len().saturating_sub(40)..].join("\n");
        bail!("{tail}\nthe input lies in {}", findings.display());
    }
    Ok(figures(&said))
}

/// Runs and coverage, out of libFuzzer's last lines.
fn figures(log: &str) -> String {
    let runs = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units: "));
    let covered = log.lines().rev().find(|line| line.contains(" cov: "));
    let covered = covered.and_then(|line| line.split(" cov: ").nth(1)?.split(' ').next());
    let peak = log.lines().find_map(|line| line.strip_prefix("stat::peak_rss_mb: "));
    let of = |figure: Option<&str>| figure.unwrap_or("?").trim().to_owned();
    format!("{} runs, {} edges, {} MiB at most", of(runs), of(covered), of(peak))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_seeds_and_a_line_in_the_manifest() {
        let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
        let names = targets().unwrap();
        assert!(names.len() >= 10, "{names:?}");
        for name in names {
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
            let seeds = fs::read_dir(root().join("fuzz/corpus").join(&name));
            assert!(seeds.is_ok_and(|mut seeds| seeds.next().is_some()), "{name} has no seeds");
        }
    }

    #[test]
    fn figures_are_read_from_the_last_lines() {
        let log = "#2 INITED cov: 7 ft: 8\n#9 DONE   cov: 71 ft: 90\nstat::number_of_executed_units: 9\nstat::peak_rss_mb: 40\n";
        assert_eq!(figures(log), "9 runs, 71 edges, 40 MiB at most");
        assert_eq!(figures(""), "? runs, ? edges, ? MiB at most");
    }
}
