//! What one `chat -m` costs against a server on this machine that answers at once: what a person waits for besides
//! the model, and what the process takes while it does (spec: scale §1).

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use commands::CommandError;

use super::harness::failed;
use super::metrics::{self, Times};
use super::model_server::{ModelServer, says};
use super::report::Report;
use super::scratch::Scratch;

const TURNS: usize = 100;
/// Turns whose memory is looked at: looking takes time, so that these are not timed.
const LOOKED_AT: usize = 10;
/// How long a turn may take before it is given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Measures turns of the running program's own file, one after the other in one conversation.
///
/// # Errors
/// When no server can be started, or a turn fails.
pub(super) fn measure(report: &mut Report<'_>, scratch: &Scratch) -> Result<(), CommandError> {
    report.note("saying something to a model that answers at once");
    let server =
        ModelServer::start(|_| says("It is high.")).map_err(|error| failed("start a server", error))?;
    let model = format!("{}/bench", server.base_url());
    let said = |error: String| failed("say something to a model", error);
    // The first one makes the home and reads the program from the disk.
    turn(&model, scratch).and_then(finished).map_err(said)?;
    let mut times = Vec::with_capacity(TURNS);
    for _ in 0..TURNS {
        let start = Instant::now();
        turn(&model, scratch).and_then(finished).map_err(said)?;
        times.push(start.elapsed());
    }
    let times: Times = times.into_iter().collect();
    report.row("one-shot turn, `drawloom chat -m`", times.median(), "ms, median", Some(20.0));
    report.row("one-shot turn, `drawloom chat -m`", times.percentile(0.99), "ms, p99", None);
    let mut peak = 0.0_f64;
    for _ in 0..LOOKED_AT {
        peak = peak.max(turn(&model, scratch).and_then(watched).map_err(said)?);
    }
    if peak > 0.0 {
        report.row(
            "one-shot turn, resident memory at its peak",
            peak,
            "MiB",
            Some(24e6 / f64::from(1 << 20)),
        );
    }
    Ok(())
}

/// A turn that has begun.
fn turn(model: &str, scratch: &Scratch) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["--model", model, "chat", "-m", "How is the tide?"]);
    command.env("DRAWLOOM_HOME", scratch.at("turns"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().map_err(|error| error.to_string())
}

/// Waits for its end, which must be a good one.
fn finished(child: Child) -> Result<(), String> {
    let done = child.wait_with_output().map_err(|error| error.to_string())?;
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()) }
}

/// Looks at the peak of its memory, in MiB, until it ends; 0 where there is no telling.
fn watched(mut child: Child) -> Result<f64, String> {
    let process = child.id().to_string();
    let (start, mut peak) = (Instant::now(), 0.0);
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        // A process that has just ended has no memory to tell of.
        peak = metrics::memory_of(&process, "VmHWM").unwrap_or(peak);
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            return Err(format!("no answer within {} s", PATIENCE.as_secs()));
        }
        std::thread::yield_now();
    }
    finished(child).map(|()| peak)
}
