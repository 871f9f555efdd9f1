//! The frontend of an invocation: what a person sees while a command works, and what they are asked.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent::event::AskedQuestion;
use agent::questions::{AnswerText, DEADLINE, Decision, QuestionId, parts};
use agent::{AgentError, EventSink, Runtime, SessionEvent};
use context::Plan;
use loom::NodeId;
use loom::call_lines::call_lines;
use serde_json::Value;
use store::Principal;
use text::terminal::explicit;
use tokio::io::{AsyncRead, AsyncWrite};
use workspace::{FileError, StoreGuard};

use crate::approvals::is_named;
use crate::error::CommandError;

/// Tokens of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTokens {
    pub tokens: u64,
    /// Whether they were counted, and not estimated.
    pub is_counted: bool,
}

impl fmt::Display for RequestTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = if self.is_counted { "" } else { "≈ " };
        write!(f, "{about}{} tokens", self.tokens)
    }
}

/// Streams that carry a protocol and nothing else.
pub struct ProtocolStreams {
    pub input: Box<dyn AsyncRead + Send + Unpin>,
    pub output: Box<dyn AsyncWrite + Send + Unpin>,
}

/// Whoever shows what a command does.
pub trait Frontend: Send + Sync {
    /// One line of progress or notice.
    fn note(&self, line: &str);
    /// A line that tells what is not the program's own: a call of a tool, or what came of it.
    fn quote(&self, line: &str) {
        self.note(line);
    }
    /// A line of what a person waits for, where they may wait long.
    fn under_way(&self, _line: &str) {}
    /// The server of a model is waited for, which counts the tokens of a request; nothing is being written.
    fn counts(&self, _model: &str) {}
    /// A request of so many tokens went to a model, while the answer to another one may be written.
    fn sent(&self, _model: &str, _tokens: RequestTokens) {}
    /// A request of so many tokens is waited for, and nothing is being written.
    fn awaits(&self, _model: &str, _tokens: RequestTokens) {}
    /// The model has read so many tokens of the request.
    fn reading(&self, _done: u64, _total: u64) {}
    /// A tool runs.
    fn runs(&self, _tool: &str) {}
    /// An answer is there, or the tokens of a request that is not sent.
    fn arrived(&self) {}
    /// New text of a node that is being written.
    fn delta(&self, node: NodeId, text: &str);
    /// New thinking of a node that is being written: for whoever looks on, and never part of its text.
    fn thinking(&self, _node: NodeId, _text: &str) {}
    /// Whether deltas are the answer as the person reads it, so that it need not be printed again.
    fn shows_answers(&self) -> bool {
        false
    }
    /// Whether the text of this node was shown while it came, where the person reads answers.
    fn has_shown(&self, _node: NodeId) -> bool {
        false
    }
    /// Whether somebody is there to answer a question of the work itself.
    fn is_attended(&self) -> bool {
        false
    }
    /// How long somebody, here or elsewhere, may take to answer a question of the work itself; none where nobody does.
    fn answer_within(&self) -> Option<Duration> {
        self.is_attended().then_some(DEADLINE)
    }
    /// An event of the session with its number, as it comes.
    fn event(&self, _number: u64, _event: &SessionEvent) {}
    /// The person's answer to a question of the work itself; none where it was answered elsewhere meanwhile. It is
    /// waited for on a thread of its own. `names` says whether a word names a question, this one or another.
    fn decide(&self, _question: &AskedQuestion, _names: &dyn Fn(&str) -> bool) -> Option<TypedAnswer> {
        Some(TypedAnswer::no(None))
    }
    /// A question has an answer, from whomever: nobody need be asked any more.
    fn answered(&self, _question: QuestionId, _given: &GivenAnswer<'_>) {}
    /// What the person says to a question of yes or no.
    fn confirm(&self, _question: &str) -> Confirmation {
        Confirmation::Nobody
    }
    /// As [`Self::confirm`], with lines that the question is about: they are shown where no notices are wanted, too.
    fn confirm_shown(&self, lines: &[String], question: &str) -> Confirmation {
        lines.iter().for_each(|line| self.note(line));
        self.confirm(question)
    }
    /// Opens a file in the person's editor, and waits until it is closed, on a thread of its own.
    ///
    /// # Errors
    /// When there is no editor, or it failed: what the file holds by then stays.
    fn edit(&self, _file: &Path) -> Result<(), EditorError> {
        Err(EditorError::Missing)
    }
    /// Looks whether [`Self::edit`] finds its program.
    ///
    /// # Errors
    /// When there is no editor, or it is not found.
    fn find_editor(&self) -> Result<(), EditorError> {
        Ok(())
    }
    /// Standard input, for an argument `-`; `timeout` is how long it may stay silent where nobody types it.
    ///
    /// # Errors
    /// When it is one of the files of `guard`, or cannot be read.
    fn input(&self, guard: &StoreGuard, timeout: Duration) -> Result<Box<dyn Read + Send>, FileError>;
    /// Standard input where it was handed over with the call: a pipe or a regular file. None where it was not.
    ///
    /// # Errors
    /// As [`Self::input`].
    fn piped_input(
        &self,
        _guard: &StoreGuard,
        _timeout: Duration,
    ) -> Result<Option<Box<dyn Read + Send>>, FileError> {
        Ok(None)
    }
    /// Streams of a program that a protocol is spoken with; none where there is none.
    fn protocol_streams(&self) -> Option<ProtocolStreams> {
        None
    }
    /// Whether something was handed over at standard input and is not read.
    fn leaves_input(&self) -> bool {
        false
    }
}

/// What a person says to a question of yes or no before something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    Yes,
    No,
    /// Nobody was there to be asked.
    Nobody,
}

impl Confirmation {
    pub const fn is_yes(self) -> bool {
        matches!(self, Self::Yes)
    }

    /// # Errors
    /// There was no yes: `message` says what was not done, `hint` how it is done where nobody was asked.
    pub(crate) fn require(
        self,
        code: &'static str,
        message: impl fmt::Display,
        hint: impl Into<String>,
    ) -> Result<(), CommandError> {
        match self {
            Self::Yes => Ok(()),
            Self::No => Err(CommandError::refused(code, format!("you said no: {message}"), "")),
            Self::Nobody => Err(CommandError::refused(code, message.to_string(), hint)),
        }
    }
}

/// What a person answers to a question of the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedAnswer {
    pub decision: Decision,
    /// One of the question's words; of a yes the first, if none.
    pub word: Option<&'static str>,
    /// Why not, for whoever asked.
    pub reason: Option<String>,
    /// Texts for the fields of its form.
    pub fields: Vec<(String, String)>,
}

impl TypedAnswer {
    pub const fn yes(word: Option<&'static str>) -> Self {
        Self { decision: Decision::Approved, word, reason: None, fields: Vec::new() }
    }

    pub const fn no(reason: Option<String>) -> Self {
        Self { decision: Decision::Denied, word: None, reason, fields: Vec::new() }
    }
}

/// An answer that was given, from whomever.
#[derive(Debug, Clone, Copy)]
pub struct GivenAnswer<'a> {
    pub decision: Decision,
    pub word: Option<&'a str>,
    /// Who gave it, as people call them.
    pub by: &'a str,
    pub reason: Option<&'a str>,
}

/// Why a file was not edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditorError {
    #[error("no editor is named, and there is no terminal")]
    Missing,
    #[error("the editor `{editor}` {why}")]
    Failed { editor: String, why: String },
}

/// Events of work as a frontend shows them.
pub(crate) struct Shown {
    pub(crate) frontend: Arc<dyn Frontend>,
    /// Where an answer to a question goes.
    pub(crate) runtime: Runtime,
    pub(crate) progress: Mutex<Progress>,
    /// Whether text is shown while it comes; not where only a part of it is wanted.
    pub(crate) streams: bool,
}

/// How far answers have come.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Bytes of each node.
    bytes: HashMap<NodeId, u64>,
    /// Requests without an answer: the nodes it becomes, the model, and the tokens that were sent.
    awaited: Vec<(Vec<NodeId>, String, RequestTokens)>,
    /// Calls without a result.
    calls: Vec<ShownCall>,
    /// The call that was shown last, or whose result was.
    last: Option<(NodeId, u32)>,
}

/// A call whose result is to come.
#[derive(Debug)]
struct ShownCall {
    /// The answer that holds it, and which of its calls it is.
    id: (NodeId, u32),
    tool: String,
    /// The call in one line.
    name: String,
}

impl Progress {
    /// The request of these nodes is waited for no more. Returns the model and the tokens of one that still is.
    fn arrived(&mut self, nodes: &[NodeId]) -> Option<(String, RequestTokens)> {
        self.awaited.retain(|(awaited, ..)| !nodes.iter().any(|node| awaited.contains(node)));
        let (_, model, tokens) = self.awaited.first()?;
        Some((model.clone(), *tokens))
    }

    /// A call has its result. Returns the line that names it where another call or its result was shown last.
    fn named_result(&mut self, id: (NodeId, u32)) -> Option<String> {
        let at = self.calls.iter().position(|call| call.id == id)?;
        let call = self.calls.remove(at);
        (self.last.replace(id) != Some(id)).then(|| format!("{}:", call.name))
    }

    /// Takes a delta in. Returns how many bytes before it never came: who reads too slowly is left behind
    /// ([`agent::session::EventLog`]).
    fn advance(&mut self, node: NodeId, offset: u64, text: &str) -> u64 {
        let before = self.bytes.insert(node, offset + text.len() as u64).unwrap_or_default();
        offset.saturating_sub(before)
    }
}

impl EventSink for Shown {
    fn emit(&self, event: SessionEvent) {
        self.show(&event);
    }
}

impl Shown {
    /// Shows that one request is waited for no more. Returns the model and the tokens of one that still is.
    fn arrived(&self, nodes: &[NodeId]) -> Option<(String, RequestTokens)> {
        self.frontend.arrived();
        self.progress().arrived(nodes)
    }

    /// Shows an event that is of the moment: text as it comes, notices, questions.
    pub(crate) fn show(&self, event: &SessionEvent) {
        match event {
            SessionEvent::Counting { model } => {
                let is_alone = self.progress().awaited.is_empty();
                if is_alone {
                    self.frontend.counts(model);
                }
            }
            SessionEvent::Started { nodes, model, tokens, counted, .. } => {
                let tokens = RequestTokens { tokens: *tokens, is_counted: *counted };
                let is_alone = {
                    let mut progress = self.progress();
                    progress.awaited.push((nodes.clone(), model.clone(), tokens));
                    progress.awaited.len() == 1
                };
                // Nothing is being written then.
                if is_alone {
                    self.frontend.awaits(model, tokens);
                } else {
                    self.frontend.sent(model, tokens);
                }
            }
            SessionEvent::Reading { done, total } => self.frontend.reading(*done, *total),
            SessionEvent::Committed { node, .. } => {
                if let Some((model, tokens)) = self.arrived(&[node.id]) {
                    self.frontend.awaits(&model, tokens);
                }
            }
            SessionEvent::RequestFailed { nodes, .. } => {
                // The other may be the one that is being written.
                if let Some((model, tokens)) = self.arrived(nodes) {
                    self.frontend.sent(&model, tokens);
                }
            }
            SessionEvent::Finished { .. } => {
                {
                    let mut progress = self.progress();
                    progress.awaited.clear();
                    progress.calls.clear();
                }
                self.frontend.arrived();
            }
            SessionEvent::Notice { text } => self.frontend.note(text),
            SessionEvent::Call { answer, number, tool, arguments, .. } => {
                let given: Value =
                    serde_json::from_str(arguments).unwrap_or_else(|_| arguments.clone().into());
                let lines = call_lines(tool, &given);
                {
                    let (id, name) = ((*answer, *number), name_of(&lines));
                    let mut progress = self.progress();
                    progress.last = Some(id);
                    progress.calls.push(ShownCall { id, tool: tool.clone(), name });
                }
                if let Some(plan) = Plan::of_call(tool, &given) {
                    return self.frontend.note(&format!("plan: {}", plan.in_short()));
                }
                lines.iter().for_each(|line| self.frontend.quote(line));
                self.runs();
            }
            SessionEvent::Result { answer, number, lines, .. } => {
                let name = self.progress().named_result((*answer, *number));
                self.frontend.arrived();
                name.filter(|_| !lines.is_empty()).iter().for_each(|name| self.frontend.quote(name));
                lines.iter().for_each(|line| self.frontend.quote(&format!("  {}", explicit(line))));
                self.runs();
            }
            SessionEvent::Delta { .. } | SessionEvent::Thinking { .. } if !self.streams => {}
            SessionEvent::Delta { node, offset, text } => {
                let lost = self.progress().advance(*node, *offset, text);
                if lost > 0 {
                    self.frontend.note(&format!(
                        "{lost} bytes of this answer came too fast to be shown here; the tree has it whole"
                    ));
                }
                self.frontend.delta(*node, text);
            }
            SessionEvent::Thinking { node, text } => self.frontend.thinking(*node, text),
            SessionEvent::Question { question } => self.ask(question.clone()),
            SessionEvent::Answered { question, decision, word, by, reason } => {
                let (word, reason) = (word.as_deref(), reason.as_deref());
                self.frontend.answered(*question, &GivenAnswer { decision: *decision, word, by, reason });
                self.runs();
            }
            _ => {}
        }
    }

    /// Shows which tool runs, if one does.
    fn runs(&self) {
        let running = self.progress().calls.first().map(|call| call.tool.clone());
        if let Some(tool) = running {
            self.frontend.runs(&tool);
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks whoever is there, where somebody is.
    fn ask(&self, question: AskedQuestion) {
        if !self.frontend.is_attended() {
            let (asks, about) = parts(&question.text);
            for line in about.iter().flat_map(|about| about.lines()) {
                self.frontend.quote(&explicit(line));
            }
            return self.frontend.note(&format!("{asks} (`{}`)", approve_command(&question)));
        }
        let (frontend, runtime, id) = (Arc::clone(&self.frontend), self.runtime.clone(), question.id);
        let (asked, tasks) = (runtime.clone(), tokio::runtime::Handle::current());
        let decided = tokio::task::spawn_blocking(move || {
            // Where the store does not say, nothing is decided by the word.
            let names =
                |word: &str| tasks.block_on(is_named(&asked.store, &Principal::Owner, word)).unwrap_or(true);
            frontend.decide(&question, &names)
        });
        tokio::spawn(async move {
            let Ok(Some(TypedAnswer { decision, word, reason, fields })) = decided.await else { return };
            let (who, word) = (&Principal::Owner, word.map(str::to_owned));
            let said = AnswerText { word, reason, fields };
            match runtime.answer_question(who, id, decision, said).await {
                Ok(()) | Err(AgentError::Answered { .. }) => {}
                Err(error) => tracing::warn!(%error, "an answer was not taken"),
            }
        });
    }
}

/// A call in one line, of the lines that show it: of a command its first line, too.
fn name_of(lines: &[String]) -> String {
    let mut lines = lines.iter();
    let first = lines.next().map_or("", |line| line.strip_prefix("calls ").unwrap_or(line));
    lines.next().map_or_else(|| first.to_owned(), |line| format!("{first} {}", line.trim_start()))
}

/// The command that answers a question in another process, with how long its answer may hold.
pub fn approve_command(question: &AskedQuestion) -> String {
    let lasting: Vec<&str> = question.answers.iter().skip(1).map(String::as_str).collect();
    let holds = if lasting.is_empty() { String::new() } else { format!(" [--for {}]", lasting.join("|")) };
    let fields = if question.form.is_some() { " --field NAME=VALUE" } else { "" };
    format!("drawloom approve {}{holds}{fields}", question.id.short())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_never_came_are_counted_by_node() {
        let [first, second] = [NodeId::from_bytes([1; 16]), NodeId::from_bytes([2; 16])];
        let mut progress = Progress::default();
        assert_eq!(progress.advance(first, 0, "one"), 0);
        assert_eq!(progress.advance(second, 0, "two"), 0);
        assert_eq!(progress.advance(first, 3, "on"), 0);
        assert_eq!(progress.advance(first, 9, "late"), 4);
        assert_eq!(progress.advance(first, 13, "on"), 0);
    }
}
