//! What is typed while an answer comes.
//!
//! Where the terminal can be drawn on, it gives what is typed by the key and shows none of it: it stands below what is
//! shown ([`Terminal::typing`]), and a line that is not finished begins the next input line. It marks pastes from then
//! on, also between two lines, so that none is taken for lines that were typed. Keys that send signals are read like
//! all others, as in a paste they are text, and the signals are sent from here. Elsewhere the terminal shows what is
//! typed itself, gives it away by the line and sends the signals. Both are taken here, on a thread that waits for
//! nothing else, so that `/stop` is heard.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, pipe};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use commands::CommandError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;

use super::keys::{Keys, QUIT};
use super::lines::{is_open, joined, without_reports};
use crate::output::Output;
use crate::terminal::{
    LINE_BYTES, SignalKeys, Terminal, TerminalMode, can_redraw, is_asking, mark_pastes, send_signal,
    stop_process,
};

/// Lines that may wait to be looked at (spec: scale §4 `steering`). Further ones wait in the terminal.
const WAITING: usize = 64;

/// How long lines are left alone before it is looked again whether a question still stands.
pub(super) const ASKED: Duration = Duration::from_millis(50);

/// How long the rest of a key may take behind its ESC.
const KEY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Time without input behind which a signal key that comes by itself within a paste was pressed, and not pasted.
const PAUSE: Duration = Duration::from_millis(500);

/// How long the rest of a paste may take once nobody waits for keys any more.
const PASTE_REST: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// The terminal, while nobody edits a line.
pub(super) struct TypeAheadReader {
    lines: mpsc::Receiver<String>,
    reader: Option<JoinHandle<TypedAhead>>,
    /// Closed to end the reader.
    stop: Option<PipeWriter>,
    /// Whether the terminal gives what is typed by the key.
    by_key: Option<TerminalMode>,
}

/// What was typed, and nobody took.
#[derive(Debug, Default)]
pub(super) struct TypedAhead {
    pub(super) lines: Vec<String>,
    /// The line that is not finished.
    pub(super) begun: String,
}

impl TypeAheadReader {
    /// Standard input, with a line that was begun before. Where it cannot be waited for, nothing is taken ahead, and
    /// everything stays in the terminal. A paste may have `longest` bytes.
    pub(super) fn of_terminal(person: Arc<Terminal>, output: Output, begun: String, longest: usize) -> Self {
        let (found, lines) = mpsc::channel(WAITING);
        let (mut reader, mut stop, mut by_key) = (None, None, None);
        if let (Ok(own), Ok((stopped, held))) = (io::stdin().as_fd().try_clone_to_owned(), pipe()) {
            let own = File::from(own);
            by_key = if can_redraw() { TerminalMode::keys(&own) } else { None };
            let signal_keys = by_key.as_ref().map(TerminalMode::signal_keys);
            if signal_keys.is_some() {
                mark_pastes(true);
            }
            stop = Some(held);
            let reads = move || {
                if let Some(signal_keys) = signal_keys {
                    let keys = Keys::of(begun, longest, signal_keys);
                    read_keys(&own, &stopped, &found, (&person, output), keys)
                } else {
                    let tell_cut = || person.apart(|| output.failure(&cut()));
                    read_lines((&own, &stopped), &found, &tell_cut, begun)
                }
            };
            reader = Builder::new().name("typeahead".to_owned()).spawn(reads).ok();
            if reader.is_none() {
                // Nobody would send the signals of keys.
                by_key = None;
            }
        }
        Self { lines, reader, stop, by_key }
    }

    /// Whether the terminal shows what is typed itself, and the cursor moves with it.
    pub(super) const fn is_echoed(&self) -> bool {
        self.by_key.is_none()
    }

    /// The next whole line, without its end; waits for ever once there is none to come. Cancel-safe.
    pub(super) async fn line(&mut self) -> String {
        match self.lines.recv().await {
            Some(line) => line,
            None => std::future::pending().await,
        }
    }

    /// Takes no more lines, and gives those that were taken and not looked at.
    pub(super) fn finish(mut self) -> TypedAhead {
        let TypedAhead { lines, begun } = self.end();
        let lines = std::iter::from_fn(|| self.lines.try_recv().ok()).chain(lines).collect();
        TypedAhead { lines, begun }
    }

    /// Stops the process, as Ctrl-Z does, with the terminal as it was found; takes the terminal again once it goes on.
    pub(super) fn suspend(&mut self) {
        let by_key = self.by_key.take().inspect(|_| mark_pastes(false)).is_some();
        stop_process();
        if let (true, Ok(own)) = (by_key, io::stdin().as_fd().try_clone_to_owned()) {
            self.by_key = TerminalMode::keys(&File::from(own));
            mark_pastes(true);
        }
    }

    fn end(&mut self) -> TypedAhead {
        self.lines.close();
        drop(self.stop.take());
        // A reader that panicked has nothing to give.
        let left = self.reader.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        self.by_key = None;
        left
    }
}

impl Drop for TypeAheadReader {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits until something was typed; false once nobody is to wait any more, or the terminal is gone.
fn is_typed(terminal: &File, stopped: &PipeReader) -> bool {
    loop {
        let mut both = [PollFd::new(terminal, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        match poll(&mut both, None) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) if both[1].revents().is_empty() && both[0].revents().contains(PollFlags::IN) => {
                if !is_asking() {
                    return true;
                }
                // The answer to a question is for whoever asked; it is a person's time until it is there.
                std::thread::sleep(ASKED);
            }
            Ok(_) | Err(_) => return false,
        }
    }
}

/// Whether more of a key comes.
fn goes_on(terminal: &File, within: &Timespec) -> bool {
    poll(&mut [PollFd::new(terminal, PollFlags::IN)], Some(within)).is_ok_and(|ready| ready > 0)
}

/// Reads keys until it is to end, and shows them. Returns what nobody took any more.
fn read_keys(
    mut terminal: &File,
    stopped: &PipeReader,
    found: &mpsc::Sender<String>,
    (person, output): (&Terminal, Output),
    mut keys: Keys,
) -> TypedAhead {
    let mut bytes = [0; LINE_BYTES];
    let mut left = Vec::new();
    let mut is_ending = false;
    let mut came = Instant::now();
    if !keys.line().is_empty() {
        person.typing(keys.line());
    }
    while is_typed(terminal, stopped) || (keys.is_pasting() && goes_on(terminal, &PASTE_REST)) {
        let typed = match terminal.read(&mut bytes) {
            Ok(read @ 1..) => &bytes[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(_) | Err(_) => break,
        };
        let is_slow = came.elapsed() >= PAUSE;
        came = Instant::now();
        person.key_came();
        let alone = keys.signal_alone(typed).filter(|_| is_slow);
        let whole = if alone.is_some() { Vec::new() } else { keys.take(typed) };
        for signal in alone.into_iter().chain(keys.signals()) {
            send_signal(terminal, signal);
        }
        if !keys.is_pasting() {
            person.typing(keys.line());
        }
        if keys.left_paste_out() {
            person.apart(|| output.failure(&too_long()));
        }
        for line in whole {
            // Behind the end nothing is for this turn; a key that stops it still is.
            if is_ending {
                left.push(line);
                continue;
            }
            is_ending = line == QUIT;
            if let Err(unsent) = found.blocking_send(line) {
                left.push(unsent.0);
            }
        }
        if keys.ends_with_escape() && !goes_on(terminal, &KEY) {
            keys.end_escape();
        }
    }
    TypedAhead { lines: left, begun: keys.end() }
}

/// Reads lines until it is to end, the first behind what had begun of it. Returns what nobody took any more.
fn read_lines(
    (terminal, stopped): (&File, &PipeReader),
    found: &mpsc::Sender<String>,
    tell_cut: &dyn Fn(),
    mut begun: String,
) -> TypedAhead {
    let mut lines = Vec::new();
    let mut send = |line: String| found.blocking_send(line).map_err(|unsent| lines.push(unsent.0)).is_ok();
    while is_typed(terminal, stopped) {
        match read_line(terminal) {
            ReadLine::Line(line) => begun += &line,
            ReadLine::Cut => {
                tell_cut();
                continue;
            }
            ReadLine::End => {
                send(QUIT.to_owned());
                break;
            }
            ReadLine::Gone => break,
        }
        // Ctrl-D gives what is typed of a line.
        let Some(line) = begun.strip_suffix('\n') else { continue };
        if !is_open(line) {
            let line = joined(line);
            begun.clear();
            let is_end = line == QUIT;
            if !send(line) || is_end {
                break;
            }
        }
    }
    TypedAhead { lines, begun }
}

/// Whether the terminal may have cut a line in its line mode: with its end it is as long as one can be.
fn is_cut(line: &[u8]) -> bool {
    line.len() >= LINE_BYTES
}

/// The error of a line that was cut: nothing of it is sent.
pub(super) fn cut() -> CommandError {
    CommandError::usage(
        format!(
            "this terminal takes no more than {} bytes in a line: the rest was cut, and nothing of it was sent",
            LINE_BYTES - 1
        ),
        "give a longer text with `drawloom chat -m -` or `drawloom chat -m TEXT --file FILE`, or here with /file PATH",
    )
}

/// The error of a paste that is too long.
fn too_long() -> CommandError {
    CommandError::usage(
        "what was pasted is longer than limits.paste: nothing of it was taken",
        "attach it as a file with /file PATH, or raise limits.paste",
    )
}

/// What a terminal gives in its line mode.
pub(super) enum ReadLine {
    /// Without its end where Ctrl-D gave what was typed of it.
    Line(String),
    /// A line that the terminal may have cut: it is as long as one can be.
    Cut,
    /// Ctrl-D: the terminal says it once, and not again at the input line.
    End,
    /// The terminal is.
    Gone,
}

/// One line; waits for it.
pub(super) fn read_line(mut terminal: &File) -> ReadLine {
    let mut bytes = [0; LINE_BYTES];
    loop {
        match terminal.read(&mut bytes) {
            Ok(0) => return ReadLine::End,
            Ok(read) if is_cut(&bytes[..read]) => return ReadLine::Cut,
            Ok(read) => {
                let line = String::from_utf8_lossy(&bytes[..read]);
                return ReadLine::Line(without_reports(&line));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return ReadLine::Gone,
        }
    }
}

/// The lines that lie in the terminal now, the first behind what had begun of it. The input line reads keys, and would
/// take several lines for one.
pub(super) fn lines_there(output: Output, begun: String, longest: usize) -> TypedAhead {
    let mut keys = Keys::of(begun, longest, SignalKeys::default());
    let mut lines = Vec::new();
    if let Ok(own) = io::stdin().as_fd().try_clone_to_owned() {
        let terminal = File::from(own);
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        while lines.last().is_none_or(|last| last != QUIT) && goes_on(&terminal, &now) {
            match read_line(&terminal) {
                ReadLine::Line(line) => lines.extend(keys.take(line.as_bytes())),
                ReadLine::Cut => output.failure(&cut()),
                ReadLine::End => lines.push(QUIT.to_owned()),
                ReadLine::Gone => break,
            }
        }
    }
    if keys.left_paste_out() {
        output.failure(&too_long());
    }
    TypedAhead { lines, begun: keys.end() }
}
