//! Lines that are asked for at a terminal, and what they answer.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::time::{Duration, Instant};

use agent::questions::{ALWAYS, SESSION};
use commands::frontend::TypedAnswer;
use commands::looks_like_id;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush};
use text::terminal::explicit;

use super::mode::{PASTE_BEGINS, PASTE_ENDS, send_signal};
use super::{TerminalMode, can_redraw};

/// What may be typed at a question of yes or no.
pub(super) const YES_OR_NO: &str = "[y/N] ";

/// How often it is looked whether a question was answered elsewhere.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Most bytes of a line in a terminal's line mode, with its end: it cuts off what is typed beyond.
pub(crate) const LINE_BYTES: usize = 4096;

/// What stands behind a line that was cut.
const TOO_LONG: &str =
    "this terminal takes no more than 4095 bytes in a line, and the rest was cut; once more > ";

/// What stands behind a paste that is no answer.
const NO_ANSWER: &str = "\nwhat is pasted is no answer where it has several lines, more than 4095 bytes, or its end was erased; once more > ";

/// Time without keys behind which whoever typed has come to rest.
pub(super) const REST: Duration = Duration::from_secs(1);

/// Time behind a line in which nobody types on, and the rest of a paste comes.
const BEHIND: Duration = Duration::from_millis(100);

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
    skip_line(terminal)?;
    let begins = Instant::now();
    terminal.write_all(asks.as_bytes())?;
    // The terminal was stopped, or is slow: who typed meanwhile had not read it.
    if begins.elapsed() > AT_ONCE && skip_line(terminal)? {
        terminal.write_all(format!("\n{asks}").as_bytes())?;
    }
    typed(terminal, is_over)
}

/// The next line of a terminal, as [`ask`] takes it. A terminal that edits lines itself hands on keys such as Ctrl-L as
/// control characters: they are no text, and left out. A line that the terminal may have cut is asked for once more, and so
/// is one of a paste that did not end in it.
pub(super) fn typed(terminal: &File, is_over: &dyn Fn() -> bool) -> io::Result<Option<String>> {
    line(terminal, is_over, can_redraw())
}

/// As [`typed`], of lines of which several may be typed at once.
pub(super) fn typed_ahead(terminal: &File, is_over: &dyn Fn() -> bool) -> io::Result<Option<String>> {
    line(terminal, is_over, false)
}

/// A line, behind which nothing may come at once where it `is_last`.
fn line(mut terminal: &File, is_over: &dyn Fn() -> bool, is_last: bool) -> io::Result<Option<String>> {
    let mut bytes = [0; LINE_BYTES];
    // A terminal can be read once a whole line was typed.
    let mut answer = loop {
        let is_there = is_there(terminal, &LOOK)?;
        // What is typed from then on is for others.
        if is_over() {
            return Ok(None);
        }
        let read = match is_there.then(|| terminal.read(&mut bytes)) {
            Some(Ok(0)) => return Ok(None),
            Some(Ok(read)) => read,
            Some(Err(error)) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            Some(Err(_)) | None => continue,
        };
        let line = String::from_utf8_lossy(&bytes[..read]);
        match without_marks(&line) {
            None => {
                if line.rfind(PASTE_BEGINS) > line.rfind(PASTE_ENDS) {
                    skip(terminal, REST, |skipped| contains(skipped, PASTE_ENDS))?;
                }
                terminal.write_all(NO_ANSWER.as_bytes())?;
            }
            Some(_) if read == LINE_BYTES => terminal.write_all(TOO_LONG.as_bytes())?,
            // A key within a paste may have taken its mark away, or it holds that of an end: nobody types on at once.
            Some(_) if is_last && skip(terminal, BEHIND, |skipped| contains(skipped, PASTE_ENDS))? => {
                terminal.write_all(NO_ANSWER.as_bytes())?;
            }
            Some(line) => break line,
        }
    };
    answer.retain(|c| !c.is_control() || matches!(c, '\n' | '\t'));
    Ok(Some(answer))
}

/// A line without the marks of the pastes in it; none where one of them does not begin and end there.
fn without_marks(line: &str) -> Option<String> {
    let (mut text, mut rest) = (String::new(), line);
    while let Some((before, pasted)) = rest.split_once(PASTE_BEGINS) {
        let (pasted, behind) = pasted.split_once(PASTE_ENDS)?;
        text.extend([before, pasted]);
        rest = behind;
    }
    text += rest;
    (!text.contains(PASTE_ENDS)).then_some(text)
}

/// Throws away a line that is being typed at a terminal, with what goes on to be typed of it: up to its Enter, or until
/// no key has come for [`REST`]. Returns whether there was one.
pub(super) fn skip_line(terminal: &File) -> io::Result<bool> {
    skip(terminal, Duration::ZERO, |skipped| skipped.ends_with(b"\n") || skipped.ends_with(b"\r"))
}

/// Throws away what is typed at a terminal, where it begins in this time, up to an end that is looked for in each part of
/// it with the few bytes before, or until no key has come for [`REST`]. A key that sends a signal ends it, too. Returns
/// whether there was any.
fn skip(mut terminal: &File, begins: Duration, is_end: impl Fn(&[u8]) -> bool) -> io::Result<bool> {
    let modes = TerminalMode::keys(terminal);
    let signal_keys = modes.as_ref().map(TerminalMode::signal_keys).unwrap_or_default();
    let (mut bytes, mut skipped, mut within) = ([0; LINE_BYTES], Vec::new(), begins);
    let mut pressed = None;
    while is_there(terminal, &Timespec::try_from(within).unwrap_or(LOOK))? {
        let read = match terminal.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => &bytes[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        skipped.drain(..skipped.len().saturating_sub(PASTE_ENDS.len()));
        skipped.extend_from_slice(read);
        within = REST;
        pressed = read.iter().find_map(|byte| signal_keys.signal(*byte));
        if pressed.is_some() || is_end(&skipped) {
            break;
        }
    }
    drop(modes);
    // The terminal takes what lay there while it gave keys for a line.
    tcflush(terminal, QueueSelector::IFlush)?;
    if let Some(signal) = pressed {
        send_signal(terminal, signal);
    }
    Ok(!skipped.is_empty())
}

/// Whether a terminal can be read in this time.
fn is_there(terminal: &File, within: &Timespec) -> io::Result<bool> {
    loop {
        match poll(&mut [PollFd::new(terminal, PollFlags::IN)], Some(within)) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Whether a line is a yes.
pub(super) fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes" | "/approve")
}

/// Asks for a yes or a no at a terminal, once more where a line is neither. None as of [`ask`].
pub(super) fn yes_or_no(
    mut terminal: &File,
    question: &str,
    is_over: &dyn Fn() -> bool,
) -> io::Result<Option<bool>> {
    let mut line = ask(terminal, (question, YES_OR_NO), is_over)?;
    while let Some(said) = line {
        if is_yes(&said) {
            return Ok(Some(true));
        }
        if matches!(said.trim().to_ascii_lowercase().as_str(), "" | "n" | "no" | "/deny") {
            return Ok(Some(false));
        }
        terminal.write_all(format!("answer {YES_OR_NO}").as_bytes())?;
        line = typed(terminal, is_over)?;
    }
    Ok(None)
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
