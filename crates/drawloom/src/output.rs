//! What leaves on standard output and standard error, in plain form or as JSON.
//!
//! Standard output carries the answer and nothing else. Text that is not ours is made visible when it goes to a
//! terminal and kept byte for byte when it goes to a pipe; JSON escapes it (spec: cli §1, security §26).

use std::io::{self, ErrorKind, IsTerminal, Write};

use commands::results::chat::UnfinishedTurn;
use commands::{CommandError, CommandOutcome};
use rustix::termios::tcgetwinsize;
use text::terminal::one_line;

use crate::cells;
use crate::cli::{Color, Global};
use crate::render::{self, OutputStyle, RenderedOutcome};
use crate::terminal::is_dumb;
use crate::{event_lines, json, pager};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) json: bool,
    /// Whether JSON is the last of the lines of [`event_lines`].
    pub(crate) events: bool,
    pub(crate) quiet: bool,
    plain: OutputStyle,
    /// Lines of a screen that turns pages: a terminal that is read and typed at.
    rows: Option<usize>,
}

impl Output {
    /// By the flags and by what standard output is.
    pub(crate) fn new(global: &Global) -> Self {
        let terminal = io::stdout().is_terminal();
        let is_dumb = is_dumb();
        let color = match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                terminal && !is_dumb && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
            }
        };
        // A terminal that does not say how wide it is has no columns to fit.
        let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col > 0);
        let size = size.filter(|_| terminal);
        let columns = size.map(|size| usize::from(size.ws_col));
        let plain = OutputStyle { terminal, color, columns };
        let rows = size.filter(|size| size.ws_row > 0 && !is_dumb && io::stdin().is_terminal());
        let rows = rows.map(|size| usize::from(size.ws_row));
        Self { json: global.json, events: false, quiet: global.quiet, plain, rows }
    }

    /// Before the arguments are understood.
    pub(crate) fn before_arguments(json: bool, events: bool) -> Self {
        Self::new(&Global { json, ..Global::default() }).with_events(events)
    }

    /// Output of a command that prints its events, if `events`.
    pub(crate) const fn with_events(self, events: bool) -> Self {
        Self { json: self.json || events, events, ..self }
    }

    fn line(&self, value: &impl serde::Serialize) -> Result<Vec<u8>, CommandError> {
        if self.events { event_lines::finished(value) } else { json::line(value) }
    }

    /// Prints what a command gave back.
    ///
    /// # Errors
    /// When standard output takes it not, but for a reader that went away.
    pub(crate) fn outcome(&self, outcome: &CommandOutcome) -> Result<(), CommandError> {
        if self.json {
            return bytes(&self.line(outcome)?);
        }
        self.rendered(&render::plain(outcome, self.plain))
    }

    /// Prints what a command gave back at its end: what is longer than the screen goes through a pager. It is printed
    /// after everything else is done, as it may stand there for hours.
    ///
    /// # Errors
    /// As [`Self::outcome`].
    pub(crate) fn last(&self, outcome: &CommandOutcome) -> Result<(), CommandError> {
        if !self.may_page(outcome) {
            return self.outcome(outcome);
        }
        let shown = render::plain(outcome, self.plain);
        if !self.is_long(&shown.body) || !pager::show(&shown.body) {
            return self.rendered(&shown);
        }
        shown.notices.iter().for_each(|notice| self.note(notice));
        Ok(())
    }

    /// Whether an answer goes through a pager if it is long.
    pub(crate) const fn may_page(&self, outcome: &CommandOutcome) -> bool {
        !self.json && self.rows.is_some() && pager::may_show(outcome)
    }

    /// Whether a text takes more lines than the screen has beside the next prompt.
    fn is_long(&self, body: &[u8]) -> bool {
        let (Some(rows), Some(columns)) = (self.rows, self.plain.columns) else { return false };
        let text = String::from_utf8_lossy(body);
        let lines = text.lines().map(|line| cells::width(line).div_ceil(columns).max(1));
        lines.sum::<usize>() >= rows
    }

    fn rendered(&self, shown: &RenderedOutcome) -> Result<(), CommandError> {
        let tell = || shown.notices.iter().for_each(|notice| self.note(notice));
        if shown.are_behind {
            return bytes(&shown.body).map(|()| tell());
        }
        tell();
        bytes(&shown.body)
    }

    /// Prints an error: one line, or one object (spec: cli §1).
    pub(crate) fn failure(&self, error: &CommandError) {
        if self.json {
            #[derive(serde::Serialize)]
            struct Failure<'a> {
                error: &'a CommandError,
                #[serde(flatten)]
                turn: Option<&'a UnfinishedTurn>,
            }
            let failure = Failure { error, turn: error.turn.as_deref() };
            if self.line(&failure).is_ok_and(|line| bytes(&line).is_ok()) {
                return;
            }
            // Where standard output takes nothing, the other one says so.
        }
        let mut text = format!("error: {}", error.message.trim_end());
        let is_long = text.contains('\n');
        if !error.hint.is_empty() && !is_long {
            text += &format!(": {}", one_line(&error.hint));
        }
        lines_to_stderr(&text);
        if !error.hint.is_empty() && is_long {
            to_stderr(&one_line(&error.hint));
        }
    }

    pub(crate) const fn color(&self) -> bool {
        self.plain.color
    }

    /// Prints a notice that is less loud than what it goes with, if notices are wanted.
    pub(crate) fn aside(&self, line: &str) {
        if !self.quiet {
            to_stderr(&self.plain.dim(&one_line(line)));
        }
    }

    /// Prints a notice, if notices are wanted.
    pub(crate) fn note(&self, line: &str) {
        if !self.quiet {
            to_stderr(&one_line(line));
        }
    }
}

/// One line of ours to standard error, broken between words where that is a terminal. A standard error that is gone is no
/// reason to stop.
pub(crate) fn to_stderr(line: &str) {
    write_lines(render::in_columns(line, stderr_columns()));
}

/// A text to standard error. Its first line is of the program; what follows is seldom so, and stands behind an indent.
pub(crate) fn lines_to_stderr(text: &str) {
    let mut lines = text.trim_end().split('\n').map(|line| one_line(line.trim_end_matches('\r')));
    to_stderr(&lines.next().unwrap_or_default());
    lines.for_each(|line| foreign_to_stderr(&format!("  {line}"), false));
}

/// A line that is not ours to standard error, as `render::foreign_in_columns` breaks it; one of a difference in its colour where
/// that is a terminal and colours are wanted.
pub(crate) fn foreign_to_stderr(line: &str, colours: bool) {
    let color = if colours && io::stderr().is_terminal() { render::difference_color(line) } else { "" };
    let mut lines = render::foreign_in_columns(line, stderr_columns());
    if !color.is_empty() {
        lines = lines.lines().map(|line| format!("\x1b[{color}m{line}\x1b[0m\n")).collect();
    }
    write_lines(lines);
}

fn stderr_columns() -> Option<usize> {
    let size = tcgetwinsize(io::stderr()).ok().filter(|size| size.ws_col > 0);
    size.map(|size| usize::from(size.ws_col))
}

fn write_lines(mut lines: String) {
    if lines.is_empty() {
        lines.push('\n');
    }
    let _ = io::stderr().lock().write_all(lines.as_bytes());
}

/// Bytes to standard output. Whoever reads may have read enough.
///
/// # Errors
/// When they could not be written for any other reason: a full disk must not look like success.
pub(crate) fn bytes(body: &[u8]) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    unless_read_enough(out.write_all(body).and_then(|()| out.flush()))
}

/// What came of writing to standard output.
///
/// # Errors
/// As of [`bytes`].
pub(crate) fn unless_read_enough(written: io::Result<()>) -> Result<(), CommandError> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(CommandError::new(
            "output",
            6,
            format!("standard output could not be written: {error}"),
            "check the disk or program it is sent to",
        )),
        _ => Ok(()),
    }
}
