//! How long this program takes to start.

use std::process::{Command, Stdio};
use std::time::Instant;

use super::metrics::Times;
use super::report::Report;
use super::scratch::Scratch;

const STARTS: usize = 20;

/// Measures starts of the running program's own file, in a home of their own. One that fails is a row that says
/// so.
pub(super) fn measure(report: &mut Report<'_>, scratch: &Scratch) {
    report.note("starting the program");
    if let Ok(found) = std::env::current_exe().and_then(std::fs::metadata) {
        let mebibytes = found.len() as f64 / f64::from(1 << 20);
        report.row("this program on the disk, as it was built", mebibytes, "MiB", Some(40.0));
    }
    for (arguments, budget) in [(&["--version"][..], 3.0), (&["doctor", "--quick"][..], 5.0)] {
        let name = format!("start, `drawloom {}`", arguments.join(" "));
        match starts(arguments, scratch) {
            Ok(times) => {
                report.row(&name, times.median(), "ms, median", Some(budget));
                report.row(&name, times.percentile(1.0), "ms, longest", None);
            }
            Err(why) => report.row(&name, 0.0, &format!("not measured: {why}"), None),
        }
    }
}

fn starts(arguments: &[&str], scratch: &Scratch) -> Result<Times, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut times = Vec::with_capacity(STARTS);
    for at in 0..=STARTS {
        let start = Instant::now();
        let status = Command::new(&program)
            .args(arguments)
            .env("DRAWLOOM_HOME", scratch.at("start"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let taken = start.elapsed();
        let status = status.map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(status.to_string());
        }
        // The first one makes the home and reads the file from the disk.
        if at > 0 {
            times.push(taken);
        }
    }
    Ok(times.into_iter().collect())
}
