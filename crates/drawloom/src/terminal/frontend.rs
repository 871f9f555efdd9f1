//! The terminal as what a command shows its work at, and asks its questions.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _, Read};
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use agent::SessionEvent;
use agent::event::AskedQuestion;
use agent::questions::{
    ADDRESS, ALWAYS, CALL_OVER, DEADLINE, Decision, QuestionId, SESSION, STOPPED, TAKEN_BACK, parts,
};
use commands::frontend::{
    Confirmation, EditorError, Frontend, GivenAnswer, ProtocolStreams, RequestTokens, TypedAnswer,
};
use loom::NodeId;
use text::terminal::{explicit, one_line};
use workspace::{FileArgument, FileError, StoreGuard};

use super::asking::{REST, yes_or_no};
use super::input::{self, ToldInput};
use super::mode::PasteMarks;
use super::wait_line::WaitStage;
use super::{ASKING, TERMINAL, Terminal, editor, is_asking};

/// What becomes of a line that was begun at a question which has ended.
const NOT_SENT: &str = "(what was being typed at it goes nowhere)";

/// What stands above a line that is being typed as a question comes up.
const WAITS: &str = "a question waits until you have sent this line, or type no more";

/// How often it is looked whether somebody still types.
const LOOK: Duration = Duration::from_millis(50);

impl Frontend for Terminal {
    fn is_attended(&self) -> bool {
        !self.unattended && (io::stdin().is_terminal() || io::stderr().is_terminal())
    }

    fn answer_within(&self) -> Option<Duration> {
        self.wait_for_answer.or_else(|| self.is_attended().then_some(DEADLINE))
    }

    fn event(&self, number: u64, event: &SessionEvent) {
        if self.events {
            crate::event_lines::print(number, event);
        }
    }

    fn decide(&self, question: &AskedQuestion, names: &dyn Fn(&str) -> bool) -> Option<TypedAnswer> {
        // One at a time: two could not be told apart.
        let _turn = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.questions().begin(question.id) {
            return None;
        }
        let is_over = || self.questions().open.is_none();
        self.let_finish(&is_over);
        if is_over() {
            return None;
        }
        // Whoever wants no notices is asked with the difference all the same.
        for line in parts(&question.text).1.iter().flat_map(|about| about.lines()) {
            let line = explicit(line);
            self.apart(|| match line.starts_with(ADDRESS) {
                true => crate::output::to_stderr(&one_line(&line)),
                false => crate::output::foreign_to_stderr(&one_line(&line), self.dims),
            });
        }
        ASKING.store(true, Ordering::SeqCst);
        let answer = self.typed_answer(question, names, &is_over);
        ASKING.store(false, Ordering::SeqCst);
        self.questions().close()?;
        let answer = answer.unwrap_or(TypedAnswer::no(None));
        if answer.decision == Decision::Denied {
            crate::output::to_stderr("denied");
        }
        Some(answer)
    }

    fn answered(&self, question: QuestionId, given: &GivenAnswer<'_>) {
        if !self.questions().end(question) {
            return;
        }
        let is_at_terminal = is_asking();
        let GivenAnswer { decision, word, by, reason } = *given;
        let own = format!("process {} ", std::process::id());
        let holds = match word {
            Some(SESSION) => " for this session",
            Some(ALWAYS) => " for good",
            _ => "",
        };
        let is_own_stop = reason == Some(STOPPED) && by.starts_with(&own);
        let said = match (decision, reason) {
            (Decision::Denied, _) if is_own_stop => "cancelled by you".to_owned(),
            (Decision::Denied, Some(why @ (CALL_OVER | TAKEN_BACK))) if by.starts_with(&own) => {
                format!("no longer asked: {why}")
            }
            (Decision::Approved, _) => format!("approved{holds} by {by}"),
            (Decision::Denied, None) => format!("denied by {by}"),
            (Decision::Denied, Some(reason)) => format!("denied by {by}: {reason}"),
        };
        if !is_at_terminal {
            return self.apart(|| crate::output::to_stderr(&one_line(&said)));
        }
        // The question's line has no end yet.
        crate::output::to_stderr(&format!("\n{}", one_line(&said)));
        if !is_own_stop {
            crate::output::to_stderr(NOT_SENT);
        }
    }

    fn note(&self, line: &str) {
        if !self.quiet {
            self.apart(|| crate::output::lines_to_stderr(line));
        }
    }

    fn quote(&self, line: &str) {
        if !self.quiet {
            self.apart(|| crate::output::foreign_to_stderr(&one_line(line), false));
        }
    }

    fn under_way(&self, line: &str) {
        if self.tells_progress {
            self.note(line);
        }
    }

    fn counts(&self, model: &str) {
        self.end_open_line();
        self.begin_wait(model, WaitStage::Counting);
    }

    fn sent(&self, model: &str, tokens: RequestTokens) {
        let is_writing = self.stream.lock().unwrap_or_else(PoisonError::into_inner).open;
        if !is_writing {
            self.begin_wait(model, WaitStage::Sent { tokens });
        }
    }

    fn awaits(&self, model: &str, tokens: RequestTokens) {
        self.end_open_line();
        self.begin_wait(model, WaitStage::Sent { tokens });
    }

    fn reading(&self, done: u64, total: u64) {
        self.wait.reading(done, total);
    }

    fn runs(&self, tool: &str) {
        self.begin_wait(tool, WaitStage::Call);
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

    fn confirm(&self, question: &str) -> Confirmation {
        self.let_finish(&|| false);
        self.end_line();
        let terminal = OpenOptions::new().read(true).write(true).open(TERMINAL);
        let was_asking = ASKING.swap(true, Ordering::SeqCst);
        let asked = terminal.and_then(|terminal| {
            let _marks = PasteMarks::at(&terminal);
            yes_or_no(&terminal, question, &|| false)
        });
        ASKING.store(was_asking, Ordering::SeqCst);
        match asked {
            Ok(Some(true)) => Confirmation::Yes,
            Ok(Some(false)) => Confirmation::No,
            // There is no terminal, or it went away.
            Ok(None) | Err(_) => Confirmation::Nobody,
        }
    }

    fn confirm_shown(&self, lines: &[String], question: &str) -> Confirmation {
        for line in lines {
            self.apart(|| crate::output::foreign_to_stderr(&one_line(line), self.dims));
        }
        self.confirm(question)
    }

    fn find_editor(&self) -> Result<(), EditorError> {
        editor::find()
    }

    fn edit(&self, file: &Path) -> Result<(), EditorError> {
        self.end_line();
        editor::edit(file)
    }

    fn input(&self, guard: &StoreGuard, timeout: Duration) -> Result<Box<dyn Read + Send>, FileError> {
        let input = FileArgument::standard_input(guard, timeout)?;
        Ok(Box::new(self.input_wait.watch(ToldInput::asked_for(input, timeout, self.quiet))))
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
        Ok(Some(Box::new(self.input_wait.watch(ToldInput::along(input, timeout, self.quiet)))))
    }

    fn protocol_streams(&self) -> Option<ProtocolStreams> {
        Some(ProtocolStreams { input: Box::new(tokio::io::stdin()), output: Box::new(tokio::io::stdout()) })
    }

    fn leaves_input(&self) -> bool {
        input::is_left()
    }
}

impl Terminal {
    /// Waits until whoever types has come to rest, as a key that was meant for their line would answer what they have not
    /// read: no key has come for [`REST`], where a line is begun since this was called.
    fn let_finish(&self, is_over: &dyn Fn() -> bool) {
        let begins = Instant::now();
        let mut is_told = false;
        while !is_over() {
            let (is_begun, key_came) = {
                let below = self.below();
                (!below.typing.is_empty(), below.key_came)
            };
            let since = if is_begun { key_came.max(Some(begins)) } else { key_came };
            if since.is_none_or(|since| since.elapsed() >= REST) {
                return;
            }
            if is_begun && !std::mem::replace(&mut is_told, true) {
                self.apart(|| crate::output::to_stderr(WAITS));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Whether what is being typed is still for a question that has ended.
    pub(crate) fn is_leaving_question(&self) -> bool {
        is_asking() && self.questions().open.is_none()
    }
}
