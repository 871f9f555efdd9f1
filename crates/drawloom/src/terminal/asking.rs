//! Lines that are asked for at a terminal, and what they answer.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};

use agent::questions::Decision;
use commands::looks_like_id;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush};
use text::terminal::explicit;

use super::TerminalMode;

/// How often it is looked whether a question was answered elsewhere.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Asks at a terminal. Returns the line that is the answer: only what is typed after the question counts; none when
/// the terminal went away, or once `is_over` says that it need not be asked any more.
pub(super) fn ask(
    mut terminal: &File,
    question: &str,
    is_over: &dyn Fn() -> bool,
) -> io::Result<Option<String>> {
    let _modes = TerminalMode::lines(terminal);
    terminal.write_all(format!("{} [y/N] ", explicit(question)).as_bytes())?;
    tcflush(terminal, QueueSelector::IFlush)?;
    typed(terminal, is_over)
}

/// The next line of a terminal, as [`ask`] takes it.
pub(super) fn typed(terminal: &File, is_over: &dyn Fn() -> bool) -> io::Result<Option<String>> {
    // A terminal can be read once a whole line was typed.
    loop {
        match poll(&mut [PollFd::new(&terminal, PollFlags::IN)], Some(&LOOK)) {
            // What is typed from then on is for others.
            Ok(_) | Err(Errno::INTR) if is_over() => return Ok(None),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let mut answer = String::new();
    let read = BufReader::new(terminal.take(1024)).read_line(&mut answer)?;
    Ok((read > 0).then_some(answer))
}

/// Whether a line is a yes.
pub(super) fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes" | "/approve")
}

/// What a line answers to a question of work; none where it is neither yes nor no. `names` says whether a word names
/// a question.
pub(super) fn decision_of(line: &str, names: &dyn Fn(&str) -> bool) -> Option<Decision> {
    let line = line.trim();
    match line.to_ascii_lowercase().as_str() {
        "" | "n" | "no" | "/deny" => Some(Decision::Denied),
        // A reason is for whoever asked, who reads it here. What may be the id of another question decides nothing.
        _ => match line.strip_prefix("/deny ").map(|reason| reason.split_whitespace().next()) {
            Some(Some(first)) => (!looks_like_id(first) && !names(first)).then_some(Decision::Denied),
            _ => is_yes(line).then_some(Decision::Approved),
        },
    }
}
