//! What a server of tools asks of the person while a tool of it is called (spec: agent §5): a question like any other, which
//! no rule answers, and no model hears of.

use std::fmt;
use std::pin::Pin;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use context::elicitation::{
    Elicit, Elicitation, ElicitationCaller, ElicitationMode, ElicitationReply, QuestionEnd,
};
use egress::{Gate, Purpose, Reach, Rule, Url};
use loom::{TreeId, ViewName};
use serde_json::Value;
use store::{CallId, Guard};

use super::Turn;
use super::call_site::CallSite;
use super::calls::AskedCall;
use crate::call::Call;
use crate::event::QuestionKind;
use crate::questions::{ADDRESS, ANSWER, Answer, Decision, Form, Question, QuestionContext, in_subagent};
use crate::runtime::Runtime;

/// Characters of what a server says, lines of it that are shown, bytes of its form, and of an address that it sends a person to.
const MESSAGE_CHARS: usize = 2_000;
const MESSAGE_LINES: usize = 40;
const FORM_BYTES: usize = 32 << 10;
const ADDRESS_BYTES: usize = 2_000;

/// The conversation itself, where its subagents are named by their labels.
const CONVERSATION: &str = "this conversation";

/// The person of a conversation, while a tool of a server is called in it.
pub(super) struct PersonOfCall {
    runtime: Runtime,
    call: Call,
    tree: TreeId,
    view: ViewName,
    id: CallId,
    guard: Guard,
    /// The tool, with its server.
    tool: String,
    /// Set where nobody answered.
    unanswered: Arc<AtomicBool>,
}

impl Turn<'_> {
    pub(super) fn person(&self, site: &CallSite<'_>, id: CallId, asked: &AskedCall) -> PersonOfCall {
        PersonOfCall {
            runtime: self.runtime.clone(),
            call: site.call.clone(),
            tree: site.tree,
            view: site.view.clone(),
            id,
            guard: site.held.guard(),
            tool: asked.tool.clone(),
            unanswered: Arc::clone(&asked.unanswered),
        }
    }
}

impl PersonOfCall {
    /// The question, of which whoever reads it sees that a server asks.
    ///
    /// # Errors
    /// Why nobody is asked.
    fn question(&self, Elicitation { message, mode, callers }: Elicitation) -> Result<Question, String> {
        let message = message.trim();
        if message.chars().count() > MESSAGE_CHARS {
            return Err(format!("its message is longer than {MESSAGE_CHARS} characters"));
        }
        let mut about = shown_lines(message);
        let (asks, form) = match mode {
            ElicitationMode::Form(schema) => {
                let form = Form::new(self.masked(&schema)?)?;
                about.extend(form.fields().iter().map(|field| format!("  field {}", field.line())));
                ("Answer it? It is told to that server", Some(form))
            }
            ElicitationMode::Url(address) => {
                about.push(format!("{ADDRESS}{}: {address}", host(&address)?));
                ("Say y once you have been there, if you trust that address", None)
            }
        };
        let (tools, beside) = match &callers[..] {
            [] | [_] => (self.tool.clone(), ""),
            _ => (
                any_of(callers.iter().map(|caller| &*caller.tool)),
                " Several of its calls run, and it does not say for which it asks.",
            ),
        };
        let is_of_subagents = callers.iter().any(|caller| caller.label.is_some());
        let whose: Vec<String> = callers
            .iter()
            .map(|caller| caller.label.as_deref().map_or_else(|| CONVERSATION.to_owned(), in_subagent))
            .collect();
        let whose = is_of_subagents.then(|| any_of(whose.iter().map(String::as_str)));
        let text = [format!("the server of {tools} asks you.{beside} {asks}")];
        let text = text.into_iter().chain(about).collect::<Vec<_>>().join("\n");
        Ok(Question {
            kind: QuestionKind::Elicitation,
            // What it says may be a secret that it was told.
            text: self.runtime.masker.mask_entering(&text).text.into_owned(),
            subject: format!("what the server of {tools} asked:"),
            whose,
            answers: vec![ANSWER.to_owned()],
            form,
        })
    }

    /// A form without secrets that its server knows.
    ///
    /// # Errors
    /// It is too long, or none without them.
    fn masked(&self, schema: &Value) -> Result<Value, String> {
        let told = schema.to_string();
        if told.len() > FORM_BYTES {
            return Err(format!("its form is longer than {FORM_BYTES} bytes"));
        }
        serde_json::from_str(&self.runtime.masker.mask_entering(&told).text)
            .map_err(|error| error.to_string())
    }

    async fn reply(&self, asked: Elicitation, end: QuestionEnd) -> ElicitationReply {
        let question = match self.question(asked) {
            Ok(question) => question,
            Err(why) => return ElicitationReply::Refused(why),
        };
        let place = Some((&self.view, self.id.answer.as_position()));
        let asker = QuestionContext {
            call: &self.call,
            tree: self.tree,
            guards: slice::from_ref(&self.guard),
            place,
            end: end.clone(),
        };
        match self.runtime.ask(&asker, question).await {
            Ok(Answer { decision: Decision::Approved, values, .. }) => ElicitationReply::Accepted(values),
            Ok(Answer { by: Some(_), .. }) => ElicitationReply::Declined,
            Ok(_) if end.is_there() || self.call.cancel.is_cancelled() => ElicitationReply::Cancelled,
            Ok(_) => {
                self.unanswered.store(true, Ordering::Relaxed);
                self.call.note(format!("the server of {} asked something, and nobody answered", self.tool));
                ElicitationReply::Cancelled
            }
            Err(error) => ElicitationReply::Refused(error.to_string()),
        }
    }
}

impl Elicit for PersonOfCall {
    fn caller(&self) -> ElicitationCaller {
        let label = self.call.subagent.as_ref().map(|subagent| subagent.label.clone());
        ElicitationCaller { label, tool: self.tool.clone() }
    }

    fn elicit(
        &self,
        asked: Elicitation,
        end: QuestionEnd,
    ) -> Pin<Box<dyn Future<Output = ElicitationReply> + Send + '_>> {
        Box::pin(self.reply(asked, end))
    }
}

impl fmt::Debug for PersonOfCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersonOfCall").field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// Each of these once, of which one is meant.
fn any_of<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut all: Vec<&str> = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all.join(" or ")
}

/// Lines of what a server says, each behind an indent. Many of them, or of blank ones, would take the rest off the screen.
fn shown_lines(message: &str) -> Vec<String> {
    // The blank of Braille, and that of Hangul, are letters by their classes.
    let is_blank =
        |line: &str| line.chars().all(|c| c.is_whitespace() || matches!(c, '\u{2800}' | '\u{3164}'));
    let mut lines: Vec<String> = message.lines().map(|line| format!("  {}", line.trim_end())).collect();
    lines.dedup_by(|next, line| is_blank(next) && is_blank(line));
    let more = lines.len().saturating_sub(MESSAGE_LINES);
    lines.truncate(MESSAGE_LINES);
    lines.extend((more > 0).then(|| format!("  … (lines not shown: {more})")));
    lines
}

/// The host of an address that a person is sent to. Readers differ on addresses that are written in odd ways: one is taken that
/// each reads as the same.
///
/// # Errors
/// It is no public one of the web, or hides where it leads.
fn host(address: &str) -> Result<String, String> {
    let url = Url::parse(address).map_err(|error| format!("its address is none: {error}"))?;
    if address.len() > ADDRESS_BYTES {
        return Err(format!("its address is longer than {ADDRESS_BYTES} bytes"));
    }
    if url.scheme() != "https" {
        return Err("its address does not begin with https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("its address names a user, which hides its host".to_owned());
    }
    // One of another script is written in ASCII by its parser, and one of a host alone with a `/`.
    if url.as_str() != address && url.as_str().strip_suffix('/') != Some(address) {
        return Err(format!("its address is not written as it is read, which is {url}"));
    }
    let public = Rule { purpose: Purpose::Server, reach: Reach::Public { named: Vec::new() } };
    match (Gate::default().judge(&public, &url), url.host_str()) {
        (Ok(_), Some(host)) => Ok(host.to_owned()),
        _ => Err("its address leads to no host of the public network".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_lines_the_first_are_shown_and_the_rest_is_counted() {
        assert_eq!(shown_lines("a\n\n\u{2800}\n \u{3164}\nb "), ["  a", "  ", "  b"]);
        let whole = shown_lines(&".\n".repeat(MESSAGE_LINES));
        assert_eq!((whole.len(), whole.last().unwrap().as_str()), (MESSAGE_LINES, "  ."));
        let cut = shown_lines(&".\n".repeat(MESSAGE_LINES + 7));
        assert_eq!(
            (cut.len(), cut.last().unwrap().as_str()),
            (MESSAGE_LINES + 1, "  … (lines not shown: 7)")
        );
    }
}
