//! The person at the terminal: notices, text while it is written, and questions.
//!
//! A question is asked of the terminal itself, never of standard input: what was typed ahead, or piped in, is no
//! answer to a question nobody had seen (spec: security §26). Without a terminal the answer is no.

pub(crate) mod editor;
mod hidden;
mod thoughts;
mod wait_line;

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent::event::AskedQuestion;
use agent::questions::{Decision, QuestionId, STOPPED};
use commands::frontend::{EditorError, Frontend};
use commands::looks_like_id;
pub(crate) use hidden::hidden_line;
use loom::NodeId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush};
use text::terminal::{VisibleStream, explicit, one_line};
use thoughts::ThinkingRenderer;
use wait_line::WaitLine;
use workspace::{FileArgument, FileError, StoreGuard};

use crate::interrupt::InputWait;

/// The terminal of the process, wherever its standard streams go.
const TERMINAL: &str = "/dev/tty";

pub(crate) struct Terminal {
    quiet: bool,
    verbose: bool,
    /// Whether answers are shown on standard output while they come.
    answers: bool,
    /// Whether of all answers only the first is shown while it comes.
    first: bool,
    /// Whether nobody is there to decide what it may cost, whatever terminal there is.
    unattended: bool,
    /// Whether thinking is shown dimmed.
    dims: bool,
    stream: Mutex<Streamed>,
    /// What is waited for.
    wait: WaitLine,
    /// Held while a question is asked.
    asking: Mutex<()>,
    questions: Mutex<Questions>,
    pub(crate) input_wait: InputWait,
}

/// Questions of work, as far as they are asked here.
#[derive(Default)]
struct Questions {
    /// The one at the terminal.
    open: Option<QuestionId>,
    answered: HashSet<QuestionId>,
}

impl Questions {
    /// A question is about to be asked, unless it has an answer.
    fn begin(&mut self, question: QuestionId) -> bool {
        let is_open = !self.answered.contains(&question);
        self.open = is_open.then_some(question);
        is_open
    }

    /// A question has an answer. Whether it is being asked.
    fn end(&mut self, question: QuestionId) -> bool {
        self.answered.insert(question);
        self.open.take_if(|open| *open == question).is_some()
    }
}

/// What is being shown while it is written.
#[derive(Default)]
struct Streamed {
    /// The node whose text is shown: of several siblings at once the first, as mixed they could not be read.
    node: Option<NodeId>,
    visible: VisibleStream,
    /// What the model thinks before it says something.
    thoughts: ThinkingRenderer,
    /// Whether the last line shown is open.
    open: bool,
    /// Whether text was shown, and not only thinking.
    said: bool,
}

impl Terminal {
    /// Whoever started the program; `quiet` hides notices, `verbose` shows progress to others than terminals too.
    pub(crate) fn new(quiet: bool, verbose: bool) -> Self {
        Self {
            quiet,
            verbose,
            answers: false,
            first: false,
            unattended: false,
            dims: false,
            stream: Mutex::default(),
            wait: WaitLine::default(),
            asking: Mutex::default(),
            questions: Mutex::default(),
            input_wait: InputWait::default(),
        }
    }

    /// The same, with answers shown on standard output while they come: for a conversation at a terminal.
    pub(crate) fn showing_answers(mut self) -> Self {
        self.answers = true;
        self
    }

    /// The same, for siblings: the first is shown on standard output while it comes, the others once all are there.
    pub(crate) fn showing_first(mut self) -> Self {
        (self.answers, self.first) = (true, true);
        self
    }

    /// The same, with thinking dimmed, where colours are wanted.
    pub(crate) fn dimming(mut self, colours: bool) -> Self {
        self.dims = colours;
        self
    }

    /// The same, for a call that ends with its one answer: what it may cost is decided beforehand.
    pub(crate) fn unattended(mut self) -> Self {
        self.unattended = true;
        self
    }

    /// A notice of the program itself.
    pub(crate) fn notice(&self, line: &str) {
        self.note(line);
    }

    /// A line of `--verbose` alone.
    pub(crate) fn detail(&self, line: &str) {
        if self.verbose {
            self.note(line);
        }
    }

    /// Whether progress is shown in place, on a line that changes.
    pub(crate) fn sees_progress(&self) -> bool {
        io::stderr().is_terminal()
    }

    /// How far something is: at a terminal in place of what was said before, unless it was the last of it.
    pub(crate) fn progress(&self, line: &str, last: bool) {
        if self.quiet {
            return;
        }
        let line = one_line(line);
        // A terminal that went away does not end the work.
        let _ = if self.sees_progress() {
            write!(io::stderr().lock(), "\r\x1b[K{line}{}", if last { "\n" } else { "" })
        } else {
            writeln!(io::stderr().lock(), "{line}")
        };
    }

    /// Shows lines at the terminal and asks. None when nobody is there to answer: no terminal, none of the
    /// program's streams is one, or it went away.
    pub(crate) fn answer(&self, lines: &[String], question: &str) -> Option<bool> {
        self.answer_unless(lines, question, &|| false)
    }

    /// The same; none as soon as it need not be asked any more.
    fn answer_unless(&self, lines: &[String], question: &str, is_over: &dyn Fn() -> bool) -> Option<bool> {
        if !(io::stdin().is_terminal() || io::stderr().is_terminal()) {
            return None;
        }
        self.end_line();
        let mut terminal = OpenOptions::new().read(true).write(true).open(TERMINAL).ok()?;
        for line in lines {
            writeln!(terminal, "{}", explicit(line)).ok()?;
        }
        Some(is_yes(&ask(&terminal, question, is_over).ok()??))
    }

    /// What is answered to a question of work: what is neither yes nor no is asked again. None where nobody answers,
    /// or once it need not be asked any more.
    fn decision(
        &self,
        question: &str,
        names: &dyn Fn(&str) -> bool,
        is_over: &dyn Fn() -> bool,
    ) -> Option<Decision> {
        self.end_line();
        let terminal = OpenOptions::new().read(true).write(true).open(TERMINAL).ok()?;
        let mut line = ask(&terminal, question, is_over).ok()??;
        loop {
            if let Some(decision) = decision_of(&line, names) {
                return Some(decision);
            }
            (&terminal).write_all(b"answer y or n [y/N] ").ok()?;
            line = typed(&terminal, is_over).ok()??;
        }
    }

    fn questions(&self) -> MutexGuard<'_, Questions> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A line was typed while text was shown: the cursor stands at the beginning of the next.
    pub(crate) fn typed(&self) {
        self.wait.moved();
        self.stream.lock().unwrap_or_else(PoisonError::into_inner).open = false;
    }

    /// Ends what is waited for and the line of text that was being shown, with what was held back of it.
    pub(crate) fn end_line(&self) {
        self.wait.end();
        self.end_text();
    }

    fn end_text(&self) {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        self.write(&stream.thoughts.end(self.dims));
        let held = stream.visible.finish();
        if std::mem::take(&mut stream.open) || !held.is_empty() {
            self.write(&format!("{held}\n"));
        }
    }

    /// Shows what is new of a node that is being written, if it is the one that is shown.
    fn stream(&self, node: NodeId, shown: impl FnOnce(&mut Streamed) -> String) {
        if !self.answers && (self.quiet || !(self.verbose || io::stderr().is_terminal())) {
            return;
        }
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        if self.answers && !self.first && stream.node != Some(node) {
            *stream = Streamed { node: Some(node), ..Streamed::default() };
        }
        if *stream.node.get_or_insert(node) == node {
            let shown = shown(&mut stream);
            if !shown.is_empty() {
                self.wait.end();
            }
            self.write(&shown);
        }
    }

    /// Writes where answers are shown. A terminal that went away does not end the work.
    fn write(&self, shown: &str) {
        if shown.is_empty() {
            return;
        }
        let _ = if self.answers {
            let mut out = io::stdout().lock();
            out.write_all(shown.as_bytes()).and_then(|()| out.flush())
        } else {
            let mut out = io::stderr().lock();
            out.write_all(shown.as_bytes()).and_then(|()| out.flush())
        };
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.end_line();
    }
}

/// Whether a question stands at the terminal: who else reads lines from it leaves the answer alone.
static ASKING: AtomicBool = AtomicBool::new(false);

/// Whether a question waits for its answer.
pub(crate) fn is_asking() -> bool {
    ASKING.load(Ordering::SeqCst)
}

impl Frontend for Terminal {
    fn is_attended(&self) -> bool {
        !self.unattended && (io::stdin().is_terminal() || io::stderr().is_terminal())
    }

    fn decide(&self, question: &AskedQuestion, names: &dyn Fn(&str) -> bool) -> Option<Decision> {
        // One at a time: two could not be told apart.
        let _turn = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.questions().begin(question.id) {
            return None;
        }
        let asks = format!("{} (or `drawloom approve {}`)", question.text, question.id.short());
        ASKING.store(true, Ordering::SeqCst);
        let decision = self.decision(&asks, names, &|| self.questions().open.is_none());
        ASKING.store(false, Ordering::SeqCst);
        self.questions().open.take()?;
        let decision = decision.unwrap_or(Decision::Denied);
        if decision == Decision::Denied {
            crate::output::to_stderr("denied");
        }
        Some(decision)
    }

    fn answered(&self, question: QuestionId, decision: Decision, by: &str, reason: Option<&str>) {
        if !self.questions().end(question) {
            return;
        }
        let own = format!("process {} ", std::process::id());
        let said = match (decision, reason) {
            (Decision::Denied, Some(STOPPED)) if by.starts_with(&own) => "cancelled by you".to_owned(),
            (Decision::Approved, _) => format!("approved by {by}"),
            (Decision::Denied, None) => format!("denied by {by}"),
            (Decision::Denied, Some(reason)) => format!("denied by {by}: {reason}"),
        };
        // The question's line has no end yet.
        crate::output::to_stderr(&format!("\n{}", one_line(&said)));
    }

    fn note(&self, line: &str) {
        if !self.quiet {
            self.end_text();
            self.wait.beside(|| crate::output::to_stderr(&one_line(line)));
        }
    }

    fn sent(&self, model: &str, tokens: u64) {
        let is_writing = || self.stream.lock().unwrap_or_else(PoisonError::into_inner).open;
        if !self.quiet && wait_line::is_possible() && !is_writing() {
            self.wait.begin(model, tokens);
        }
    }

    fn reading(&self, done: u64, total: u64) {
        self.wait.reading(done, total);
    }

    fn arrived(&self) {
        self.wait.end();
    }

    fn delta(&self, node: NodeId, text: &str) {
        self.stream(node, |stream| {
            let thought = stream.thoughts.end(self.dims);
            let shown = stream.visible.push(text.as_bytes());
            if let Some(last) = shown.chars().last() {
                stream.open = last != '\n';
                stream.said = true;
            }
            thought + &shown
        });
    }

    fn thinking(&self, node: NodeId, text: &str) {
        self.stream(node, |stream| {
            // It stands on lines of its own, also where it goes on behind something that was said.
            let end = if std::mem::take(&mut stream.open) { "\n" } else { "" };
            end.to_owned() + &stream.thoughts.more(text, self.dims)
        });
    }

    fn shows_answers(&self) -> bool {
        self.answers
    }

    fn has_shown(&self, node: NodeId) -> bool {
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        self.first && stream.said && stream.node == Some(node)
    }

    fn confirm(&self, question: &str) -> bool {
        self.end_line();
        let terminal = OpenOptions::new().read(true).write(true).open(TERMINAL);
        let asked = terminal.and_then(|terminal| ask(&terminal, question, &|| false));
        asked.is_ok_and(|line| line.is_some_and(|line| is_yes(&line)))
    }

    fn edit(&self, file: &Path) -> Result<(), EditorError> {
        self.end_line();
        editor::edit(file)
    }

    fn input(&self, guard: &StoreGuard, timeout: Duration) -> Result<Box<dyn Read + Send>, FileError> {
        Ok(Box::new(self.input_wait.watch(FileArgument::standard_input(guard, timeout)?)))
    }

    fn piped_input(
        &self,
        guard: &StoreGuard,
        timeout: Duration,
    ) -> Result<Option<Box<dyn Read + Send>>, FileError> {
        if !FileArgument::is_input_piped() {
            return Ok(None);
        }
        let input = FileArgument::standard_input(guard, timeout)?;
        // What cannot be waited for fails when it is read.
        if !input.is_ready(SILENCE.min(timeout)).unwrap_or(true) {
            self.note(
                "standard input is a pipe that has given nothing yet, and its text goes along: waiting for it \
                 (`</dev/null` sends the message without it)",
            );
        }
        Ok(Some(Box::new(self.input_wait.watch(input))))
    }
}

/// How long a pipe may give nothing before that is said.
const SILENCE: Duration = Duration::from_secs(1);
/// How often it is looked whether a question was answered elsewhere.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Asks at a terminal. Returns the line that is the answer: only what is typed after the question counts; none when
/// the terminal went away, or once `is_over` says that it need not be asked any more.
fn ask(mut terminal: &File, question: &str, is_over: &dyn Fn() -> bool) -> io::Result<Option<String>> {
    terminal.write_all(format!("{} [y/N] ", explicit(question)).as_bytes())?;
    tcflush(terminal, QueueSelector::IFlush)?;
    typed(terminal, is_over)
}

/// The next line of a terminal, as [`ask`] takes it.
fn typed(terminal: &File, is_over: &dyn Fn() -> bool) -> io::Result<Option<String>> {
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
fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes" | "/approve")
}

/// What a line answers to a question of work; none where it is neither yes nor no. `names` says whether a word names
/// a question.
fn decision_of(line: &str, names: &dyn Fn(&str) -> bool) -> Option<Decision> {
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

#[cfg(test)]
mod tests;
