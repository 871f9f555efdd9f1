//! Questions: what work asks a person before it goes on (spec: agent §1, §4).
//!
//! A question is a row of the store. Asking blocks no thread: the work waits until the row has an answer, which any
//! client may give once, in whichever process it is. A question that nobody answered by its deadline is denied, one
//! whose asker is gone as soon as somebody notices, and one that nobody can answer at once. One too many of a session ends the
//! turn.

mod form;

use std::time::Duration;

use context::elicitation::QuestionEnd;
use loom::plan::NewText;
use loom::{Author, AuthorKind, Op, PositionId, TreeId, Trust, ViewName};
use model::Cancel;
use serde_json::{Map, Value};
use store::{
    AttachedWrites, Claim, Cursor, Fence, Guard, LIST_PAGE, LeaseOwner, NewAnswer, NewQuestion, Principal,
    QuestionAnswer, StoreError, all_pages,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::call::Call;
use crate::error::AgentError;
use crate::event::{AskedQuestion, QuestionKind, SessionEvent};
use crate::runtime::Runtime;

pub use form::{Choice, FieldKind, Form, FormField};
pub use store::{Decision, QuestionId};

/// Author of a remark that says what a person decided.
pub const DECISION: &str = "approval";

/// Reason of a question that was denied because its work was stopped.
pub const STOPPED: &str = "the work was stopped";
/// Reasons of a question of a server that was denied because its call was over, or because the server, which took it
/// back or ended, waits no longer.
pub const CALL_OVER: &str = "its call has ended";
pub const TAKEN_BACK: &str = "its server waits for no answer any more";

/// The word with which what a server asks is answered.
pub(crate) const ANSWER: &str = "answer";
/// The word of a question that takes yes or no.
const YES: &str = "yes";
/// Words with which a call of a tool is approved: for itself, for the rest of its session, for good.
pub const ONCE: &str = "once";
pub const SESSION: &str = "session";
pub const ALWAYS: &str = "always";

/// Lines and characters of a reason that whoever asked is told.
const REASON_LINES: usize = 20;
const REASON_CHARS: usize = 2_000;

/// How long a question stands, at most.
pub const DEADLINE: Duration = Duration::from_secs(10 * 60);
/// How often it is looked whether a question is past its deadline by the store's clock, once it is by this process's.
const LOOK: Duration = Duration::from_secs(1);

/// What a question asks, in one line, and the lines that it is about, as a difference; none where the line says it all.
pub fn parts(text: &str) -> (&str, Option<&str>) {
    text.split_once('\n').map_or((text, None), |(asks, about)| (asks, Some(about)))
}

/// What a line begins with that names a text from outside which led to a question; it is among the first of those that the
/// question is about.
pub const FROM_OUTSIDE: &str = "text from outside: ";

/// What a line begins with that names an address which a server of tools sends its person to.
pub const ADDRESS: &str = "address at ";

pub(crate) struct QuestionContext<'a> {
    pub(crate) call: &'a Call,
    pub(crate) tree: TreeId,
    pub(crate) guards: &'a [Guard],
    /// The answer that calls, or what is to be answered: what is decided becomes a remark there. None where there is no
    /// such place.
    pub(crate) place: Option<(&'a ViewName, PositionId)>,
    /// What ends the question besides the end of its work.
    pub(crate) end: QuestionEnd,
}

/// What is asked.
pub(crate) struct Question {
    pub(crate) kind: QuestionKind,
    /// A text of [`parts`].
    pub(crate) text: String,
    /// What is decided, as the remark about it begins.
    pub(crate) subject: String,
    /// Words that approve it; the first is meant where none is said.
    pub(crate) answers: Vec<String>,
    /// What a yes says besides.
    pub(crate) form: Option<Form>,
    /// Whose work asks, where that may not be the subagent of the call, as [`in_subagent`] names it.
    pub(crate) whose: Option<String>,
}

/// What is said with an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerText {
    /// One of the question's words; of a yes the first, if none.
    pub word: Option<String>,
    /// Why, for whoever asked.
    pub reason: Option<String>,
    /// Texts for the fields of its form, by their names.
    pub fields: Vec<(String, String)>,
}

impl Question {
    /// One that takes yes or no.
    pub(crate) fn yes_or_no(kind: QuestionKind, text: String) -> Self {
        Self { kind, subject: text.clone(), text, answers: vec![YES.to_owned()], form: None, whose: None }
    }
}

/// What was answered.
pub(crate) struct Answer {
    pub(crate) decision: Decision,
    /// One of the question's words; none where it was denied.
    pub(crate) word: Option<String>,
    /// Why; of what was filled into a form the names of its fields.
    pub(crate) reason: Option<String>,
    /// Who answered; none where nobody did.
    pub(crate) by: Option<String>,
    /// What was filled into a form.
    pub(crate) values: Map<String, Value>,
}

impl Answer {
    fn denied(reason: &str) -> Self {
        let (reason, values) = (Some(reason.to_owned()), Map::new());
        Self { decision: Decision::Denied, word: None, reason, by: None, values }
    }

    /// What was decided of a subject, and by whom; none where nobody did.
    fn decided(&self, subject: &str) -> Option<String> {
        let Self { decision, word, reason, by, .. } = self;
        let decision = match decision {
            Decision::Approved => "allowed",
            Decision::Denied => "denied",
        };
        let word = word.as_deref().filter(|word| *word != YES);
        let word = word.map_or_else(String::new, |word| format!(" ({word})"));
        let reason = reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
        Some(format!("{subject} {decision}{word} by {}{reason}", by.as_deref()?))
    }
}

/// Denies a question when whoever asked does not wait for it any more, and says so to whoever shows it.
struct Standing {
    runtime: Runtime,
    call: Call,
    id: QuestionId,
    is_answered: bool,
}

impl Drop for Standing {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        if let Ok(tasks) = tokio::runtime::Handle::try_current() {
            let (runtime, call, id) = (self.runtime.clone(), self.call.clone(), self.id);
            tasks.spawn(async move {
                let (answer, is_given) = runtime.withdraw(&call.who, id, STOPPED).await;
                let QuestionAnswer { decision, word, by, reason, .. } = answer;
                // A reason that was given may be what was filled into a form.
                let reason = reason.filter(|_| !is_given);
                call.events.emit(SessionEvent::Answered { question: id, decision, word, by, reason });
            });
        }
    }
}

/// Waits until nobody waits for a question any more. Returns why.
async fn over(mut work: Cancel, mut end: QuestionEnd) -> &'static str {
    let stop = work.clone();
    let why = tokio::select! {
        () = work.cancelled() => STOPPED,
        () = end.question.cancelled() => TAKEN_BACK,
        () = end.call.cancelled() => CALL_OVER,
    };
    // What stops the work ends its calls, and may be heard of behind that.
    if stop.is_cancelled() { STOPPED } else { why }
}

/// A subagent as what is said of it begins. A model chose its label: nothing within ends it.
pub fn in_subagent(label: &str) -> String {
    let plain: String = label.chars().filter(|c| !matches!(c, '"' | '“' | '”' | '„' | ':' | '：')).collect();
    format!("subagent \"{plain}\"")
}

/// A reason as a model and the tree have it: nothing in it is hidden, and what is over the bounds is left out.
fn bounded_reason(reason: &str) -> String {
    let shown = text::terminal::explicit(reason.trim());
    let lines: Vec<&str> = shown.lines().take(REASON_LINES).collect();
    let mut bounded: String = lines.join("\n").chars().take(REASON_CHARS).collect();
    if bounded.len() < shown.len() {
        bounded.push('…');
    }
    bounded
}

impl Runtime {
    /// The questions that stand, the oldest first. Those of processes that are gone are denied.
    ///
    /// # Errors
    /// As the store says.
    pub async fn open_questions(&self, who: &Principal) -> Result<Vec<store::Question>, AgentError> {
        let mut open = Vec::new();
        let place = |question: &store::Question| (question.created, question.id);
        for question in all_pages(place, |after| self.store.open_questions(who, after, LIST_PAGE)).await? {
            // Where the home is only read, nobody knows which processes live, and nothing is written.
            if !self.store.is_read_only() && self.is_gone(&question.claim.owner)? {
                self.deny_orphan(question.id).await?;
            } else {
                open.push(question);
            }
        }
        Ok(open)
    }

    /// Answers a question of any process of the home.
    ///
    /// # Errors
    /// [`AgentError::Answered`] says by whom and when it was answered already; [`AgentError::NoQuestion`];
    /// [`AgentError::Form`] says what does not fit into its form.
    pub async fn answer_question(
        &self,
        who: &Principal,
        id: QuestionId,
        decision: Decision,
        said: AnswerText,
    ) -> Result<(), AgentError> {
        let missing = |error| match error {
            StoreError::NotFound("question") => AgentError::NoQuestion(id.to_string()),
            other => other.into(),
        };
        let question = self.store.question(who, id).await.map_err(missing)?;
        let earlier = if question.answer.is_none() && self.is_gone(&question.claim.owner)? {
            self.deny_orphan(id).await?;
            self.store.question(who, id).await.map_err(missing)?.answer
        } else {
            let AnswerText { word, reason, fields } = said;
            let masked = |text: &str| self.masker.mask_entering(text).text.into_owned();
            let reason = match question.form.clone().map(Form::new).transpose().map_err(AgentError::Form)? {
                Some(form) if decision == Decision::Approved => {
                    let fields: Vec<_> =
                        fields.into_iter().map(|(name, text)| (name, masked(&text))).collect();
                    Some(Value::Object(form.values(&fields).map_err(AgentError::Form)?).to_string())
                }
                None if !fields.is_empty() => {
                    return Err(AgentError::Form("the question takes no fields".to_owned()));
                }
                _ => reason.map(|reason| bounded_reason(&masked(&reason))),
            };
            let answer = NewAnswer { decision, word, reason, by: self.name_for(who) };
            self.store.answer_question(who, id, answer).await.map_err(missing)?
        };
        match earlier {
            None => Ok(()),
            Some(QuestionAnswer { decision, by, at, .. }) => Err(AgentError::Answered { decision, by, at }),
        }
    }

    /// Asks, and waits for the answer. What stops the work denies it.
    pub(crate) async fn ask(
        &self,
        asker: &QuestionContext<'_>,
        question: Question,
    ) -> Result<Answer, AgentError> {
        let Question { kind, text, subject, answers, form, whose } = question;
        let QuestionContext { call, tree, guards, end, .. } = asker;
        let Some(within) = call.answer_within else {
            return Ok(Answer::denied("nobody is here to answer"));
        };
        let text = match &call.subagent {
            // The limits of a subagent end it, and whoever began it may go on.
            Some(_) if kind.is_of_limits() => return Ok(Answer::denied("a subagent ends there")),
            of_call => match whose.or(of_call.as_ref().map(|subagent| in_subagent(&subagent.label))) {
                Some(whose) => format!("{whose}: {text}"),
                None => text,
            },
        };
        let within = within.min(DEADLINE);
        let (newest, asks) = (self.store.newest()?, self.name_for(&call.who));
        let fence = guards.first().map_or(Fence(1), |guard| guard.fence);
        let question = NewQuestion {
            id: self.new_id()?,
            tree: *tree,
            kind: kind.name().to_owned(),
            asker: asks.clone(),
            payload: text.clone(),
            answers: answers.clone(),
            form: form.as_ref().map(Form::schema),
            ttl: within,
            claim: Claim { owner: LeaseOwner::new(self.instance.to_string()), fence },
            guards: guards.to_vec(),
            most: self.waiting.questions,
        };
        let asked = match self.store.ask(&call.who, question).await {
            Ok(asked) => asked,
            Err(error @ StoreError::TooManyQuestions { .. }) => {
                return Err(AgentError::Limit(format!("{error} (limits.questions)")));
            }
            Err(error) => return Err(error.into()),
        };
        let (id, expires) = (asked.id, asked.expires);
        let mut standing = Standing { runtime: self.clone(), call: (*call).clone(), id, is_answered: false };
        let is_form = form.is_some();
        let question = AskedQuestion { id, kind, asker: asks, text, answers, form, expires };
        call.events.emit(SessionEvent::Question { question });
        let waits = call.waited.begin();
        let answered = tokio::select! {
            answer = self.answered(&call.who, (id, within), newest) => Ok(answer?),
            why = over(call.cancel.clone(), end.clone()) => Err(why),
        };
        drop(waits);
        // The one that was given this moment stands, and the work stops all the same.
        let (answer, is_given) = match answered {
            Ok(answer) => (answer, true),
            Err(why) => self.withdraw(&call.who, id, why).await,
        };
        standing.is_answered = true;
        let answerer = (is_given && !answer.is_expiry()).then(|| answer.by.clone());
        let QuestionAnswer { decision, word, by, reason, .. } = answer;
        // What was filled in is for whoever asked alone: neither an event nor the tree has it.
        let (reason, values) = match (is_form && decision == Decision::Approved, reason) {
            (true, Some(filled)) => {
                let values: Map<String, Value> =
                    serde_json::from_str(&filled).map_err(|error| AgentError::Form(error.to_string()))?;
                let names: Vec<&str> = values.keys().map(String::as_str).collect();
                (Some(names.join(", ")).filter(|names| !names.is_empty()), values)
            }
            (_, reason) => (reason, Map::new()),
        };
        let (said, why) = (word.clone(), reason.clone());
        call.events.emit(SessionEvent::Answered { question: id, decision, word: said, by, reason: why });
        let answer = Answer { decision, word, reason, by: answerer, values };
        self.record_decision(asker, &subject, &answer).await;
        Ok(answer)
    }

    /// Writes down on the tree what a person decided, as a remark (spec: agent §4). What cannot be written down holds all
    /// the same: it is a row of its own.
    async fn record_decision(&self, asker: &QuestionContext<'_>, subject: &str, answer: &Answer) {
        let (Some((view, position)), Some(said)) = (asker.place, answer.decided(subject)) else { return };
        let said = self.masker.mask_entering(&said).text.into_owned();
        let author = Author { kind: AuthorKind::Tool, id: DECISION.to_owned(), profile: None };
        let text = NewText { author: author.clone(), ..NewText::owner(said, None) };
        let op = Op::Annotate { position, text };
        let with = AttachedWrites { guards: asker.guards.to_vec(), ..AttachedWrites::nothing() };
        let writer = (&Principal::Owner, &author, Trust::Owner);
        if let Err(error) = self.change_as(writer, asker.tree, view, op, with).await {
            tracing::warn!(%error, "what was decided is no remark");
        }
    }

    /// The answer of a question, once it has one: whoever answers, and wherever, it is an event of the store.
    async fn answered(
        &self,
        who: &Principal,
        (id, within): (QuestionId, Duration),
        mut newest: watch::Receiver<Cursor>,
    ) -> Result<QuestionAnswer, AgentError> {
        let mut deadline = Instant::now() + within;
        loop {
            // Seen before reading: what is answered meanwhile wakes.
            newest.borrow_and_update();
            let mut found = self.store.question(who, id).await?;
            if found.answer.is_none() && Instant::now() >= deadline {
                found = self.store.expire_question(who, id).await?;
                deadline = Instant::now() + LOOK;
            }
            if let Some(answer) = found.answer {
                return Ok(answer);
            }
            tokio::select! {
                changed = newest.changed() => changed.map_err(|_| StoreError::Closed)?,
                () = sleep_until(deadline) => {}
            }
        }
    }

    /// Denies a question that nobody waits for any more, for this reason. Returns the answer that stands, and whether
    /// somebody gave it before.
    async fn withdraw(&self, who: &Principal, id: QuestionId, why: &str) -> (QuestionAnswer, bool) {
        let (decision, word, reason, by) = (Decision::Denied, None, Some(why.to_owned()), self.name_for(who));
        let answer = NewAnswer { decision, word: word.clone(), reason: reason.clone(), by: by.clone() };
        let earlier = self.store.answer_question(who, id, answer).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "a question stands that nobody waits for");
            None
        });
        match earlier {
            Some(earlier) => (earlier, true),
            None => (QuestionAnswer { decision, word, reason, by, at: self.now() }, false),
        }
    }

    async fn deny_orphan(&self, id: QuestionId) -> Result<(), AgentError> {
        let answer = NewAnswer {
            decision: Decision::Denied,
            word: None,
            reason: Some("the process that asked is gone".to_owned()),
            by: "the end of its process".to_owned(),
        };
        self.store.answer_question(&Principal::Owner, id, answer).await?;
        Ok(())
    }

    /// Who asks or answers, for people: this process and its command, and the token if one was used.
    fn name_for(&self, who: &Principal) -> String {
        let own = LeaseOwner::new(self.instance.to_string());
        match who {
            Principal::Owner => self.name_of(&own),
            Principal::Token { name, .. } => format!("{} with token {name}", self.name_of(&own)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_ends_where_its_quotes_do() {
        assert_eq!(in_subagent("poll"), "subagent \"poll\"");
        assert_eq!(in_subagent("a\": the server of bank：pay"), "subagent \"a the server of bankpay\"");
    }

    #[test]
    fn a_reason_hides_nothing_and_is_bounded() {
        assert_eq!(bounded_reason(" not today\n"), "not today");
        assert_eq!(bounded_reason("no\r\u{1b}[2A\u{200b}"), "no␍␛[2A\\u{200b}");
        assert_eq!(bounded_reason("a\nb"), "a\nb");
        let long = bounded_reason(&"x\n".repeat(REASON_LINES + 1));
        assert_eq!(long.lines().count(), REASON_LINES);
        assert!(long.ends_with("x…"));
        assert_eq!(bounded_reason(&"x".repeat(REASON_CHARS + 1)).chars().count(), REASON_CHARS + 1);
    }
}
