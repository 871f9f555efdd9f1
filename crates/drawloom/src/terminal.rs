//! The person at the terminal: notices, text while it is written, and questions.
//!
//! A question is asked of the terminal itself, never of standard input: what was typed ahead, or piped in, is no
//! answer to a question nobody had seen (spec: security §26). Without a terminal the answer is no.

mod asking;
pub(crate) mod editor;
mod frontend;
mod hidden;
mod input;
mod mode;
pub(crate) mod owner_program;
mod questions;
mod size;
mod status_area;
mod thoughts;
mod wait_line;

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use asking::LINE_BYTES;
use asking::{typed_ahead, yes_or_no};
use commands::frontend::Frontend;
pub(crate) use hidden::hidden_line;
use loom::NodeId;
use mode::PasteMarks;
pub(crate) use mode::{
    PASTE_BEGINS, PASTE_ENDS, SignalKeys, TerminalMode, has_job_control, mark_pastes, send_signal,
    stop_process,
};
pub(crate) use questions::QuestionCommand;
use questions::Questions;
pub(crate) use size::{can_redraw, columns, is_dumb};
use status_area::{StatusArea, TakenLine};
use text::terminal::{VisibleStream, explicit, one_line};
use thoughts::ThinkingRenderer;
use tokio::sync::mpsc;
use wait_line::{WaitLine, WaitStage};

use crate::cells::cut_end;
use crate::interrupt::InputWait;
use crate::render::foreign_in_columns;

/// A row with the number it is chosen by.
type Numbered = (usize, String);

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
    /// How long a question may wait for an answer in another process.
    wait_for_answer: Option<Duration>,
    /// Whether events are printed on standard output.
    events: bool,
    /// Whether a person is told what they wait for.
    tells_progress: bool,
    /// Whether thinking is shown dimmed.
    dims: bool,
    /// Whether a model may be offered: not right behind questions about models.
    offers: bool,
    stream: Mutex<Streamed>,
    /// What is waited for.
    wait: WaitLine,
    /// Whether a line of progress stands open.
    is_progress_open: AtomicBool,
    /// What is typed while something is shown.
    below: Arc<Mutex<StatusArea>>,
    /// Held while a question is asked.
    asking: Mutex<()>,
    questions: Mutex<Questions>,
    /// Takes the commands that are typed at a question; nobody does between two turns.
    commands: Mutex<Option<mpsc::Sender<QuestionCommand>>>,
    pub(crate) input_wait: InputWait,
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
    /// The column the cursor is in.
    column: usize,
}

impl Terminal {
    /// Whoever started the program; `quiet` hides notices, `verbose` shows progress to others than terminals too.
    pub(crate) fn new(quiet: bool, verbose: bool) -> Self {
        let below = Arc::<Mutex<StatusArea>>::default();
        Self {
            quiet,
            verbose,
            answers: false,
            first: false,
            unattended: false,
            wait_for_answer: None,
            events: false,
            tells_progress: false,
            dims: false,
            offers: true,
            stream: Mutex::default(),
            wait: WaitLine::new(Arc::clone(&below)),
            is_progress_open: AtomicBool::new(false),
            below,
            asking: Mutex::default(),
            questions: Mutex::default(),
            commands: Mutex::default(),
            input_wait: InputWait::default(),
        }
    }

    /// Shows answers on standard output while they come: for a conversation at a terminal.
    pub(crate) fn showing_answers(mut self) -> Self {
        self.answers = true;
        self
    }

    /// Shows the first of several siblings on standard output while it comes, the others once all are there.
    pub(crate) fn showing_first(mut self) -> Self {
        (self.answers, self.first) = (true, true);
        self
    }

    /// Dims thinking, where colours are wanted.
    pub(crate) fn dimming(mut self, colours: bool) -> Self {
        self.dims = colours;
        self
    }

    /// Offers no model: for whoever was asked about models just now.
    pub(crate) fn without_offers(mut self) -> Self {
        self.offers = false;
        self
    }

    pub(crate) const fn takes_offers(&self) -> bool {
        self.offers
    }

    /// Counts as unattended, for a call that ends with its one answer: what it may cost is decided beforehand.
    pub(crate) fn unattended(mut self) -> Self {
        self.unattended = true;
        self
    }

    /// Lets questions of the call wait this long for an answer in another process.
    pub(crate) fn waiting_for_answer(mut self, within: Option<Duration>) -> Self {
        self.wait_for_answer = within;
        self
    }

    /// Tells a person what they wait for, if `tells`.
    pub(crate) fn telling_progress(mut self, tells: bool) -> Self {
        self.tells_progress = tells;
        self
    }

    /// Prints events as they come, if `events`.
    pub(crate) fn printing_events(mut self, events: bool) -> Self {
        self.events = events;
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
        can_redraw()
    }

    /// How far something is: at a terminal in place of what was said before, unless it was the last of it.
    pub(crate) fn progress(&self, line: &str, last: bool) {
        if self.quiet {
            return;
        }
        let line = one_line(line);
        // A terminal that went away does not end the work.
        let _ = if self.sees_progress() {
            // A line that wraps could not be taken away.
            let line = cut_end(&line, columns() - 1);
            self.is_progress_open.store(!last, Ordering::SeqCst);
            write!(io::stderr().lock(), "\r\x1b[K{line}{}", if last { "\n" } else { "" })
        } else {
            writeln!(io::stderr().lock(), "{line}")
        };
    }

    /// Takes away the line of progress, if one stands open: it is not where it says any more.
    pub(crate) fn end_progress(&self) {
        if self.is_progress_open.swap(false, Ordering::SeqCst) {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }

    /// Shows lines at the terminal and asks. None when nobody is there to answer: no terminal, none of the
    /// program's streams is one, or it went away.
    pub(crate) fn answer(&self, lines: &[String], question: &str) -> Option<bool> {
        if !(io::stdin().is_terminal() || io::stderr().is_terminal()) {
            return None;
        }
        self.end_line();
        let mut terminal = OpenOptions::new().read(true).write(true).open(TERMINAL).ok()?;
        for line in lines {
            terminal.write_all(foreign_in_columns(&explicit(line), Some(columns())).as_bytes()).ok()?;
        }
        let _marks = PasteMarks::at(&terminal);
        yes_or_no(&terminal, question, &|| false).ok()?
    }

    /// Shows rows with numbers and asks for one. Returns its index, the first if only Enter was pressed or the terminal
    /// went away, and a line that was no number: it is for whoever reads lines next.
    pub(crate) fn choose(&self, rows: &[Numbered], is_over: &dyn Fn() -> bool) -> (usize, Option<String>) {
        self.end_line();
        let (first, wide) = ((0, None), columns());
        let [(least, _), .., (most, _)] = rows else { return first };
        let Ok(terminal) = io::stdin().as_fd().try_clone_to_owned().map(File::from) else { return first };
        let row = |(number, row): &Numbered| cut_end(&format!("{number:>2}  {}", one_line(row)), wide);
        let mut shown: String = rows.iter().map(|found| row(found) + "\n").collect();
        // An answer has room behind it.
        let gap = if wide < NARROW { '\n' } else { ' ' };
        shown += &format!("which one, {least} to {most}?{gap}Enter takes {least}: ");
        let mut is_wrong = false;
        loop {
            let asked =
                io::stderr().write_all(shown.as_bytes()).and_then(|()| typed_ahead(&terminal, is_over));
            let Ok(Some(line)) = asked else { return first };
            let line = line.trim_end_matches('\n');
            let number = line.trim().parse::<usize>();
            match number.map(|number| rows.iter().position(|(of, _)| *of == number)) {
                Ok(Some(index)) => return (index, None),
                // Whoever mistypes a number, or types a word for one, means to answer.
                Err(_) if is_wrong && !line.trim().is_empty() => {}
                Err(_) if line.trim().is_empty() => return first,
                Err(_) if line.starts_with('/') || line.trim().contains(char::is_whitespace) => {
                    let _ = writeln!(io::stderr(), "{least} is taken, and what you typed is said next");
                    return (0, Some(line.to_owned()));
                }
                _ => {
                    (is_wrong, shown) =
                        (true, format!("a number from {least} to {most}, or Enter for {least}: "));
                }
            }
        }
    }

    /// A line was typed while text was shown: the cursor stands at the beginning of the next.
    pub(crate) fn typed(&self) {
        self.wait.moved();
        self.stream.lock().unwrap_or_else(PoisonError::into_inner).open = false;
    }

    /// This is being typed while something is shown.
    pub(crate) fn typing(&self, line: &str) {
        self.change_below(|below| below.typing = line.to_owned());
    }

    /// A key came while something is shown.
    pub(crate) fn key_came(&self) {
        self.below().key_came = Some(Instant::now());
    }

    /// A line was typed while something is shown, and this becomes of it.
    pub(crate) fn took(&self, line: &str, what: &str) {
        let taken = TakenLine { line: line.to_owned(), what: what.to_owned() };
        self.change_below(|below| below.taken.push(taken));
    }

    /// A line that was typed while something is shown is said now: it stands elsewhere.
    pub(crate) fn said(&self, line: &str) {
        self.change_below(|below| {
            if let Some(place) = below.taken.iter().position(|taken| taken.line == line) {
                below.taken.remove(place);
            }
        });
    }

    /// Nothing is under way any more: what was typed meanwhile stands elsewhere.
    pub(crate) fn nothing_below(&self) {
        self.change_below(|below| (below.taken, below.typing) = (Vec::new(), String::new()));
    }

    fn change_below(&self, change: impl FnOnce(&mut StatusArea)) {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let mut below = self.below();
        let erased = below.erase();
        change(&mut below);
        self.write(&(erased.to_owned() + &below.draw(&mut stream.column)));
    }

    fn below(&self) -> MutexGuard<'_, StatusArea> {
        self.below.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what is waited for and the line of text that was being shown, with what was held back of it.
    pub(crate) fn end_line(&self) {
        self.end_progress();
        self.wait.end();
        self.end_text();
    }

    /// Begins to wait for a model, where it can be told.
    fn begin_wait(&self, model: &str, stage: WaitStage) {
        if !self.quiet && io::stderr().is_terminal() && !is_asking() {
            self.wait.begin(model, stage, !can_redraw());
        }
    }

    /// Waits, and says so, while the server of a model is asked for the window it has given it.
    pub(crate) fn while_window_is_asked<T>(&self, model: &str, ask: impl FnOnce() -> T) -> T {
        self.while_stage(model, WaitStage::Window, ask)
    }

    /// Waits, and says so, while the weights of an embedded model are read.
    pub(crate) fn while_weights_are_read<T>(&self, model: &str, read: impl FnOnce() -> T) -> T {
        self.while_stage(model, WaitStage::Weights, read)
    }

    /// Nothing is waited for any more.
    pub(crate) fn end_wait(&self) {
        self.wait.end();
    }

    fn while_stage<T>(&self, model: &str, stage: WaitStage, work: impl FnOnce() -> T) -> T {
        self.begin_wait(model, stage);
        let done = work();
        self.wait.end_stage(stage);
        done
    }

    fn end_text(&self) {
        self.end_text_of(&mut self.stream.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Ends a line of text that is being written, but for the one of a question.
    fn end_open_line(&self) {
        if !is_asking() {
            self.apart(|| {});
        }
    }

    /// Shows something on lines of its own: what is being written ends its line before, and goes on only behind it.
    pub(crate) fn apart(&self, show: impl FnOnce()) {
        self.end_progress();
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let question = self.question_line();
        // Its line has no end yet.
        if question.is_some() && !stream.open {
            let _ = io::stderr().lock().write_all(b"\n");
        }
        self.end_text_of(&mut stream);
        self.wait.beside(show);
        if let Some(question) = question {
            // Whoever is asked still sees by what.
            let _ = io::stderr().lock().write_all(question.as_bytes());
            stream.column = status_area::column(0, &question);
        }
        let drawn = self.below().draw(&mut stream.column);
        self.write(&drawn);
    }

    fn end_text_of(&self, stream: &mut Streamed) {
        self.write(self.below().erase());
        self.write(&stream.thoughts.end(self.dims));
        stream.column = 0;
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
            *stream = Streamed { node: Some(node), column: stream.column, ..Streamed::default() };
        }
        if *stream.node.get_or_insert(node) == node {
            let is_behind_question = !stream.open && self.question_line().is_some();
            let shown = shown(&mut stream);
            if !shown.is_empty() {
                self.wait.end();
                stream.column = status_area::column(stream.column, &shown);
                let mut below = self.below();
                let erased = below.erase();
                let apart = if is_behind_question { "\n" } else { "" };
                self.write(&(erased.to_owned() + apart + &shown + &below.draw(&mut stream.column)));
            }
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

/// Whether a question has the terminal, until its answer is there and nothing more is being typed at it.
pub(crate) fn is_asking() -> bool {
    ASKING.load(Ordering::SeqCst)
}

/// Columns below which a question takes two lines.
const NARROW: usize = 50;

#[cfg(test)]
mod tests;
