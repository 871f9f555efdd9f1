//! Lines that are asked for at a terminal, and what they answer.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use agent::questions::{ALWAYS, SESSION};
use commands::frontend::TypedAnswer;
use commands::looks_like_id;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use rustix::termios::{QueueSelector, tcflush};
use text::terminal::explicit;

use super::TerminalMode;

/// What may be typed at a question of yes or no.
pub(super) const YES_OR_NO: &str = "[y/N] ";

/// How often it is looked whether a question was answered elsewhere.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Most bytes of a line in a terminal's line mode, with its end: it cuts off what is typed beyond.
pub(crate) const LINE_BYTES: usize = 4096;

/// What stands behind a line that was cut.
const TOO_LONG: &str =
    "this terminal takes no more than 4095 bytes in a line, and the rest was cut; once more > ";

/// Held while a line that is there is read, or thrown away: who reads would wait for the next one.
static TAKING: Mutex<()> = Mutex::new(());

/// How long a question takes to be written at most where its terminal shows it at once.
pub(super) const AT_ONCE: Duration = Duration::from_millis(200);

/// Asks at a terminal. Returns the line that is the answer: what was typed before the question can be read does not count;
/// none when the terminal went away, or once `is_over` says that it need not be asked any more.
pub(super) fn ask(
    mut terminal: &File,
    (question, choices): (&str, &str),
    is_over: &dyn Fn() -> bool,
) -> io::Result<Option<String>> {
    let _modes = TerminalMode::lines(terminal);
    let asks = format!("{} {choices}", explicit(question));
    // Not once the question stands: an answer at once would be thrown away.
    tcflush(terminal, QueueSelector::IFlush)?;
    let begins = Instant::now();
    terminal.write_all(asks.as_bytes())?;
    // The terminal was stopped, or is slow: who typed meanwhile had not read it.
    if begins.elapsed() > AT_ONCE && ioctl_fionread(terminal)? > 0 {
        tcflush(terminal, QueueSelector::IFlush)?;
        terminal.write_all(format!("\n{asks}").as_bytes())?;
    }
    typed(terminal, is_over)
}

/// The next line of a terminal, as [`ask`] takes it. A terminal that edits lines itself hands on keys such as Ctrl-L as
/// control characters: they are no text, and left out. A line that the terminal may have cut is asked for once more.
pub(super) fn typed(mut terminal: &File, is_over: &dyn Fn() -> bool) -> io::Result<Option<String>> {
    let mut bytes = [0; LINE_BYTES];
    // A terminal can be read once a whole line was typed.
    let read = loop {
        let is_there = match poll(&mut [PollFd::new(&terminal, PollFlags::IN)], Some(&LOOK)) {
            Ok(ready) => ready > 0,
            Err(Errno::INTR) => false,
            Err(error) => return Err(error.into()),
        };
        let _taking = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
        // What is typed from then on is for others.
        if is_over() {
            return Ok(None);
        }
        match is_there.then(|| terminal.read(&mut bytes)) {
            Some(Ok(LINE_BYTES)) => terminal.write_all(TOO_LONG.as_bytes())?,
            Some(Ok(read)) => break read,
            Some(Err(error)) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            Some(Err(_)) | None => {}
        }
    };
    let mut answer = String::from_utf8_lossy(&bytes[..read]).into_owned();
    answer.retain(|c| !c.is_control() || matches!(c, '\n' | '\t'));
    Ok((read > 0).then_some(answer))
}

/// Throws away what was typed at a terminal and nobody has read, also of a line that has no end yet.
pub(super) fn throw_away_typed(terminal: &File) -> io::Result<()> {
    let _taking = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(tcflush(terminal, QueueSelector::IFlush)?)
}

/// Whether a line is a yes.
pub(super) fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes" | "/approve")
}

/// What may be typed at a question that takes these words.
pub(super) fn choices(answers: &[String]) -> String {
    let takes = |word: &&&str| answers.iter().any(|answer| answer == *word);
    let lasting: Vec<&str> = [SESSION, ALWAYS].iter().filter(takes).copied().collect();
    if lasting.is_empty() {
        return "[y/N, or n and why] ".to_owned();
    }
    format!(
        "[y once, {}, N no, or n and why] ",
        lasting.iter().map(|word| format!("{} {word}", &word[..1])).collect::<Vec<_>>().join(", ")
    )
}

/// What a line answers to a question of work that takes these words; none where it is neither yes nor no. `names` says
/// whether a word names a question.
pub(super) fn answer_of(line: &str, answers: &[String], names: &dyn Fn(&str) -> bool) -> Option<TypedAnswer> {
    let line = line.trim();
    let lower = line.to_ascii_lowercase();
    let lasting = [SESSION, ALWAYS].into_iter().filter(|word| answers.iter().any(|answer| answer == word));
    for word in lasting {
        if lower == word || lower == word[..1] || lower.strip_prefix("/approve ").map(str::trim) == Some(word)
        {
            return Some(TypedAnswer::yes(Some(word)));
        }
    }
    if matches!(lower.as_str(), "" | "n" | "no" | "/deny") {
        return Some(TypedAnswer::no(None));
    }
    if is_yes(line) {
        return Some(TypedAnswer::yes(None));
    }
    let (said, reason) = line.split_once(char::is_whitespace)?;
    let reason = reason.trim_start();
    match said.to_ascii_lowercase().as_str() {
        "n" | "no" => Some(TypedAnswer::no(Some(reason.to_owned()))),
        // What may be the id of another question decides nothing.
        "/deny" => {
            let first = reason.split_whitespace().next().unwrap_or_default();
            let is_reason = !looks_like_id(first) && !names(first);
            is_reason.then(|| TypedAnswer::no(Some(reason.to_owned())))
        }
        _ => None,
    }
}
