//! Questions of work at the terminal, and the commands that are typed at them.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::sync::{MutexGuard, PoisonError};

use agent::event::AskedQuestion;
use agent::questions::{ALWAYS, Decision, FROM_OUTSIDE, Form, QuestionId, parts};
use commands::frontend::{TypedAnswer, approve_command};
use commands::slash::{Input, SlashCommand, parse};
use text::terminal::{explicit, one_line};
use tokio::sync::{mpsc, oneshot};

use super::asking::{answer_of, ask, choices, skip_line, typed, yes_or_no};
use super::mode::PasteMarks;
use super::{TERMINAL, Terminal, TerminalMode, columns};
use crate::render::foreign_in_columns;

/// Questions of work, as far as they are asked here.
#[derive(Default)]
pub(super) struct Questions {
    /// The one at the terminal.
    pub(super) open: Option<QuestionId>,
    /// The line that asks it, with what may be typed; empty while something that was typed at it is shown.
    line: String,
    answered: HashSet<QuestionId>,
}

impl Questions {
    /// A question is about to be asked, unless it has an answer.
    pub(super) fn begin(&mut self, question: QuestionId) -> bool {
        let is_open = !self.answered.contains(&question);
        self.open = is_open.then_some(question);
        is_open
    }

    /// End of asking; the question that was asked.
    pub(super) fn close(&mut self) -> Option<QuestionId> {
        self.line.clear();
        self.open.take()
    }

    /// A question has an answer. Whether it is being asked.
    pub(super) fn end(&mut self, question: QuestionId) -> bool {
        self.answered.insert(question);
        self.open.take_if(|open| *open == question).is_some()
    }
}

/// What came of asking for the fields of a form.
enum Filled {
    /// Texts of the fields, by name.
    Fields(Vec<(String, String)>),
    /// A command of the question, typed at a field.
    Command(String),
}

/// Whether a line at a field is a command of its question. Any other is text: a path begins with `/`, too.
fn is_way_out(line: &str) -> bool {
    matches!(line.split_whitespace().next(), Some("/stop" | "/deny"))
}

/// A command that was typed at a question, which stands until it is answered.
pub(crate) struct QuestionCommand {
    pub(crate) line: String,
    /// Dropped once all of the command is shown: the question is asked again.
    pub(crate) done: oneshot::Sender<()>,
}

/// What became of a line that answers no question.
enum QuestionLine {
    /// The turn is stopped, and its question with it.
    Stop,
    /// A command was done beside the question.
    Done,
    /// Nobody takes it.
    No,
}

impl Terminal {
    pub(super) fn questions(&self) -> MutexGuard<'_, Questions> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The line of the question that stands at the terminal.
    pub(super) fn question_line(&self) -> Option<String> {
        let questions = self.questions();
        questions.open.filter(|_| !questions.line.is_empty()).map(|_| questions.line.clone())
    }

    /// Takes the commands that are typed at questions from now on, as long as the receiver is there.
    pub(crate) fn question_commands(&self) -> mpsc::Receiver<QuestionCommand> {
        // A further one is typed only once the question is asked again.
        let (found, commands) = mpsc::channel(1);
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).replace(found);
        commands
    }

    /// What is answered to a question of work: what is neither yes nor no is asked again, a command behind what it shows.
    /// None where nobody answers, or once it need not be asked any more.
    pub(super) fn typed_answer(
        &self,
        question: &AskedQuestion,
        names: &dyn Fn(&str) -> bool,
        is_over: &dyn Fn() -> bool,
    ) -> Option<TypedAnswer> {
        self.end_line();
        let terminal = OpenOptions::new().read(true).write(true).open(TERMINAL).ok()?;
        let _marks = PasteMarks::at(&terminal);
        let _modes = TerminalMode::lines(&terminal);
        let answer = self.answer_at(&terminal, question, names, is_over);
        if is_over() {
            // It was for whoever asked: neither the next message nor the next answer begins with it. A terminal that is
            // gone needs nothing.
            let _ = skip_line(&terminal);
        }
        answer
    }

    fn answer_at(
        &self,
        mut terminal: &File,
        question: &AskedQuestion,
        names: &dyn Fn(&str) -> bool,
        is_over: &dyn Fn() -> bool,
    ) -> Option<TypedAnswer> {
        let (asks, about) = parts(&question.text);
        let asks = format!("{asks} (or `{}`)", approve_command(question));
        let choices = choices(&question.answers);
        // Once more behind what is shown: by then what it is about may be out of sight.
        let what = about.into_iter().flat_map(str::lines).find(|line| !line.starts_with(FROM_OUTSIDE));
        let what = what.map(|what| foreign_in_columns(&one_line(&explicit(what)), Some(columns())));
        let stands = format!("{}{} {choices}", what.unwrap_or_default(), explicit(&asks));
        self.questions().line.clone_from(&stands);
        let mut line = ask(terminal, (&asks, &choices), is_over).ok()??;
        loop {
            let again = match answer_of(&line, &question.answers, names) {
                // It stays, and slips more easily from a finger than a command.
                Some(answer @ TypedAnswer { word: Some(ALWAYS), .. }) => {
                    let sure = yes_or_no(terminal, "write that rule to the configuration?", is_over);
                    if sure.ok()?? {
                        return Some(answer);
                    }
                    format!("the rule is not written; answer {choices}")
                }
                Some(answer) => match (&question.form, answer.decision) {
                    (Some(form), Decision::Approved) => match self.filled(terminal, form, is_over).ok()?? {
                        Filled::Command(command) => {
                            line = command;
                            continue;
                        }
                        Filled::Fields(fields) => match form.values(&fields) {
                            Ok(_) => return Some(TypedAnswer { fields, ..answer }),
                            Err(why) => format!("{}; answer {choices}", explicit(&why)),
                        },
                    },
                    _ => return Some(answer),
                },
                None => match self.hear(line.trim_end_matches('\n')) {
                    QuestionLine::Stop => String::new(),
                    QuestionLine::Done if is_over() => return None,
                    QuestionLine::Done => {
                        self.end_line();
                        stands.clone()
                    }
                    QuestionLine::No => format!("answer {choices}"),
                },
            };
            self.questions().line.clone_from(&stands);
            terminal.write_all(again.as_bytes()).ok()?;
            line = typed(terminal, is_over).ok()??;
        }
    }

    /// Hands on a command that does not wait for the end of a turn, also one that is none, which is said; returns once it
    /// is shown.
    fn hear(&self, line: &str) -> QuestionLine {
        let command = parse(line);
        match &command {
            Input::Command(command) if !command.is_at_once() => return QuestionLine::No,
            Input::Say(_) => return QuestionLine::No,
            Input::Command(_) | Input::Unknown { .. } | Input::Misused { .. } => {}
        }
        self.questions().line.clear();
        let (done, shown) = oneshot::channel();
        let found = self.commands.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let sent = found.is_some_and(|found| {
            found.blocking_send(QuestionCommand { line: line.to_owned(), done }).is_ok()
        });
        if !sent {
            return QuestionLine::No;
        }
        // Nothing is sent: it ends.
        let _ = shown.blocking_recv();
        if command == Input::Command(SlashCommand::Stop) { QuestionLine::Stop } else { QuestionLine::Done }
    }

    /// Texts for the fields of a form, each asked for until it fits, unless a command is typed at one: with a further `/`
    /// before it that is text. None as of [`ask`].
    fn filled(&self, terminal: &File, form: &Form, is_over: &dyn Fn() -> bool) -> io::Result<Option<Filled>> {
        let mut fields = Vec::new();
        for field in form.fields() {
            // Not at the margin: a server named it.
            let line = format!("field {}", field.line());
            let takes = if field.is_required { "[/deny: no] > " } else { "> " };
            let mut asks = format!("  {line}");
            let text = loop {
                // A server says what it asks for.
                let shown = foreign_in_columns(&one_line(&asks), Some(columns()));
                let shown = shown.trim_end();
                self.questions().line = format!("{} {takes}", explicit(shown));
                let Some(text) = ask(terminal, (shown, takes), is_over)? else { return Ok(None) };
                if is_way_out(&text) {
                    return Ok(Some(Filled::Command(text)));
                }
                let text = text.trim();
                let text = text.strip_prefix('/').filter(|behind| is_way_out(behind)).unwrap_or(text);
                match form.problem(&field, text) {
                    Some(why) => asks = format!("  {why}; {line}"),
                    None => break text.to_owned(),
                }
            };
            fields.push((field.name, text));
        }
        // Further lines of a paste are for nobody, where the terminal marks none.
        skip_line(terminal)?;
        Ok(Some(Filled::Fields(fields)))
    }
}
