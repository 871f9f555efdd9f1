//! What is typed while an answer comes.
//!
//! Between two input lines the terminal is in its own line mode: it shows what is typed, and gives it away by the
//! line. Whole lines are taken from it here, on a thread that waits for nothing else, so that `/stop` is heard; a
//! line that is not finished stays in the terminal and is found in the next input line.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, pipe};
use std::os::fd::AsFd as _;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;

/// Most bytes of a line in the terminal's line mode.
const LINE: usize = 4096;
/// Lines that may wait to be looked at (spec: scale §4 `steering`). Further ones wait in the terminal.
const WAITING: usize = 64;

/// How long lines are left alone before it is looked again whether a question still stands.
const ASKED: Duration = Duration::from_millis(50);

/// What the end of input says.
const QUIT: &str = "/quit";

/// The terminal, while nobody edits a line.
pub(super) struct Ahead {
    lines: mpsc::Receiver<String>,
    reader: Option<JoinHandle<Option<String>>>,
    /// Closed to end the reader.
    stop: Option<PipeWriter>,
}

impl Ahead {
    /// Standard input. Where it cannot be waited for, nothing is taken ahead, and everything stays in the terminal.
    pub(super) fn of_terminal() -> Self {
        let (found, lines) = mpsc::channel(WAITING);
        let (mut reader, mut stop) = (None, None);
        if let (Ok(own), Ok((stopped, held))) = (io::stdin().as_fd().try_clone_to_owned(), pipe()) {
            stop = Some(held);
            reader = Builder::new()
                .name("ahead".to_owned())
                .spawn(move || read(&File::from(own), &stopped, &found))
                .ok();
        }
        Self { lines, reader, stop }
    }

    /// The next whole line, without its end; waits for ever once there is none to come. Cancel-safe.
    pub(super) async fn line(&mut self) -> String {
        match self.lines.recv().await {
            Some(line) => line,
            None => std::future::pending().await,
        }
    }

    /// Takes no more lines, and gives those that were taken and not looked at.
    pub(super) fn finish(mut self) -> Vec<String> {
        let last = self.end();
        std::iter::from_fn(|| self.lines.try_recv().ok()).chain(last).collect()
    }

    fn end(&mut self) -> Option<String> {
        self.lines.close();
        drop(self.stop.take());
        // A reader that panicked has nothing to give.
        self.reader.take().and_then(|reader| reader.join().ok()).flatten()
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads lines until it is to end. Returns one that nobody took any more.
fn read(terminal: &File, stopped: &PipeReader, found: &mpsc::Sender<String>) -> Option<String> {
    loop {
        let mut both = [PollFd::new(terminal, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        match poll(&mut both, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(_) if both[1].revents().is_empty() && both[0].revents().contains(PollFlags::IN) => {}
            // It is to end, or the terminal is gone.
            Ok(_) | Err(_) => return None,
        }
        if crate::terminal::is_asking() {
            // The answer to a question is for whoever asked; it is a person's time until it is there.
            std::thread::sleep(ASKED);
            continue;
        }
        let line = read_line(terminal)?;
        let is_end = line == QUIT;
        match found.blocking_send(line) {
            Err(unsent) => return Some(unsent.0),
            Ok(()) if is_end => return None,
            Ok(()) => {}
        }
    }
}

/// One line, which must be there. None where the terminal is gone.
fn read_line(mut terminal: &File) -> Option<String> {
    let mut bytes = [0; LINE];
    loop {
        match terminal.read(&mut bytes) {
            // Ctrl-D: the terminal says it once, and not again at the input line.
            Ok(0) => return Some(QUIT.to_owned()),
            Ok(read) => {
                return Some(String::from_utf8_lossy(&bytes[..read]).trim_end_matches('\n').to_owned());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// The whole lines that lie in the terminal now. The input line reads keys, and would take several lines for one.
pub(super) fn lines_there() -> Vec<String> {
    let Ok(own) = io::stdin().as_fd().try_clone_to_owned() else { return Vec::new() };
    let terminal = File::from(own);
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut lines = Vec::new();
    while lines.last().is_none_or(|last| last != QUIT)
        && poll(&mut [PollFd::new(&terminal, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
        && let Some(line) = read_line(&terminal)
    {
        lines.push(line);
    }
    lines
}
