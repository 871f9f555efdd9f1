//! `cargo xtask instructions [--bless]`: the instructions of core paths against a checked-in baseline.
//!
//! Counted under callgrind, so that a busy machine does not decide. A path that takes more than 3 % more *or
//! fewer* instructions fails: what moves the baseline is committed with it and says why.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use crate::places::{cargo, root, target};
use crate::say::say;

/// How far a path may be from its baseline, in percent.
const TOLERANCE: u64 = 3;

/// The plainest functions of the C library for copies and comparisons: which it takes else depends on the processor.
const PLAIN: &str = "glibc.cpu.hwcaps=-AVX2,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM";

/// Functions that are shown of a path that is too far from its baseline.
const SHOWN: usize = 20;

/// The paths, as `xtask/paths` names them.
const PATHS: [&str; 6] = ["append", "render", "context", "verify", "stream", "attribution"];

/// Counts all paths and compares them, or makes the counts the new baseline.
pub(crate) fn run(bless: bool) -> Result<()> {
    let valgrind = Command::new("valgrind").arg("--version").output();
    if !valgrind.is_ok_and(|output| output.status.success()) {
        bail!("valgrind is not installed: `apt-get install valgrind` (its callgrind counts instructions)");
    }
    // With the program, so that both have the same features and nothing is built twice.
    let built = cargo()
        .args(["build", "--release", "--quiet", "--package", "drawloom", "--package", "drawloom-paths"])
        .status()?;
    if !built.success() {
        bail!("the paths do not build");
    }
    let program = target().join("release/drawloom-paths");
    let profiles = target().join("instructions");
    fs::create_dir_all(&profiles).with_context(|| format!("cannot make {}", profiles.display()))?;
    let profile = |path: &str| profiles.join(path);
    let counts = thread::scope(|scope| {
        let halves = [&PATHS[..3], &PATHS[3..]];
        let running = halves.map(|half| {
            scope.spawn(|| half.iter().map(|path| count(&program, path, &profile(path))).collect())
        });
        let mut counts = Vec::new();
        for half in running {
            let half: Result<Vec<u64>> = half.join().unwrap_or_else(|_| bail!("a count broke off"));
            counts.extend(half?);
        }
        Ok::<_, anyhow::Error>(counts)
    })?;
    let baseline = root().join("xtask/instructions.json");
    let compiler = compiler()?;
    if bless {
        let paths: Map<String, Value> =
            PATHS.iter().zip(&counts).map(|(path, count)| ((*path).to_owned(), json!(count))).collect();
        let text = serde_json::to_string_pretty(&json!({"compiler": compiler, "paths": paths}))?;
        fs::write(&baseline, text + "\n").with_context(|| format!("cannot write {}", baseline.display()))?;
        say("xtask/instructions.json has the counts of now: commit it, and say why they moved");
        return Ok(());
    }
    let text =
        fs::read_to_string(&baseline).with_context(|| format!("cannot read {}", baseline.display()))?;
    let held: Value = serde_json::from_str(&text).context("xtask/instructions.json is no JSON")?;
    if held["compiler"] != compiler.as_str() {
        say(&format!(
            "the baseline is of {}, this is {compiler}: what only the compiler moved may be blessed",
            held["compiler"]
        ));
    }
    let rows: Vec<Row> = PATHS
        .iter()
        .zip(counts)
        .map(|(path, now)| Row { path, baseline: held["paths"][path].as_u64(), now })
        .collect();
    for path in off(&rows) {
        show_functions(path, &profile(path));
    }
    compare(&rows)
}

/// The paths that are too far from their baseline.
fn off(rows: &[Row]) -> Vec<&'static str> {
    rows.iter().filter(|row| !row.fits()).map(|row| row.path).collect()
}

/// Prints the functions that took most of a path: where it differs may only be seen on this machine.
fn show_functions(path: &str, profile: &Path) {
    let shown = Command::new("callgrind_annotate").arg(profile).output();
    let text = shown.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let functions = text.lines().skip_while(|line| !line.contains("file:function")).skip(2).take(SHOWN);
    say(&format!("most of {path}:"));
    functions.for_each(say);
}

/// One path and its counts.
struct Row {
    path: &'static str,
    baseline: Option<u64>,
    now: u64,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        let baseline = self.baseline.filter(|count| *count > 0)?;
        Some(self.now as f64 / baseline as f64)
    }

    fn fits(&self) -> bool {
        let Some(baseline) = self.baseline.filter(|count| *count > 0) else { return false };
        let off = self.now.abs_diff(baseline);
        off.saturating_mul(100) <= baseline.saturating_mul(TOLERANCE)
    }
}

/// Prints the table.
///
/// # Errors
/// When a path is too far from its baseline, or has none.
fn compare(rows: &[Row]) -> Result<()> {
    say(&format!("{:<12} {:>14} {:>14} {:>7}", "path", "baseline", "now", "ratio"));
    for row in rows {
        let baseline = row.baseline.map_or_else(|| "-".to_owned(), |count| count.to_string());
        let ratio = row.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
        let mark = if row.fits() { "" } else { "  !" };
        say(&format!("{:<12} {baseline:>14} {:>14} {ratio:>7}{mark}", row.path, row.now));
    }
    let off = off(rows);
    if off.is_empty() {
        return Ok(());
    }
    bail!(
        "more than 3 % from the baseline: {}. If that is meant, `cargo xtask instructions --bless` and say why in the commit",
        off.join(", ")
    )
}

/// The instructions of one path.
fn count(program: &Path, path: &str, profile: &Path) -> Result<u64> {
    let output = Command::new("valgrind")
        .env("GLIBC_TUNABLES", PLAIN)
        .args(["--tool=callgrind", "--toggle-collect=drawloom_paths::measured*"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(program)
        .arg(path)
        .output()
        .context("cannot start valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("the path {path} failed:\n{said}");
    }
    collected(&said).with_context(|| format!("callgrind counted nothing in {path}:\n{said}"))
}

/// The sum out of callgrind's last lines.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find_map(|line| line.split("Collected :").nth(1))?;
    line.trim().parse().ok().filter(|count| *count > 0)
}

fn compiler() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().context("cannot start rustc")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(baseline: Option<u64>, now: u64) -> Row {
        Row { path: "append", baseline, now }
    }

    #[test]
    fn a_path_may_move_by_three_percent_in_either_direction() {
        assert!(compare(&[row(Some(1000), 1000), row(Some(1000), 1030), row(Some(1000), 970)]).is_ok());
        for now in [1031, 969, 2000] {
            assert!(compare(&[row(Some(1000), now)]).is_err(), "{now}");
        }
        assert!(
            compare(&[row(None, 1000)]).is_err(),
            "a path without a baseline is not compared with nothing"
        );
    }

    #[test]
    fn the_count_is_read_from_what_callgrind_says() {
        assert_eq!(collected("==1== Events    : Ir\n==1== Collected : 51234\n"), Some(51_234));
        assert_eq!(collected("==1== Collected : 0"), None, "nothing was found to count");
    }
}
