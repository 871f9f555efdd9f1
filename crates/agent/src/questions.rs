//! Questions: what work asks a person before it goes on (spec: agent §1, §4).
//!
//! Asking blocks no thread: the work waits for an answer, which any client may give once. A question that nobody
//! answered by its deadline is denied, and so is one, at once, where nobody can answer. Open questions are those of
//! this process; they end with it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loom::Millis;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::call::Call;
use crate::error::AgentError;
use crate::event::Event;
use crate::runtime::Runtime;

/// How long a question stands.
pub const DEADLINE: Duration = Duration::from_secs(10 * 60);

/// Id of a question.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionId(String);

impl From<ulid::Ulid> for QuestionId {
    fn from(id: ulid::Ulid) -> Self {
        Self(id.to_string())
    }
}

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// A request would go over a budget.
    Budget,
}

/// A question that stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub id: QuestionId,
    pub kind: QuestionKind,
    /// What is asked, in one line.
    pub text: String,
    /// When it is denied unless it was answered, in ms since 1970.
    pub expires: Millis,
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Approved,
    Denied,
}

/// The questions of a process that stand.
#[derive(Debug, Clone, Default)]
pub struct Questions(Arc<Mutex<BTreeMap<QuestionId, Open>>>);

#[derive(Debug)]
struct Open {
    question: Question,
    answer: oneshot::Sender<Decision>,
}

impl Questions {
    /// The questions that stand, the oldest first.
    pub fn open(&self) -> Vec<Question> {
        self.lock().values().map(|open| open.question.clone()).collect()
    }

    /// Answers a question.
    ///
    /// # Errors
    /// [`AgentError::NoQuestion`] when it does not stand any more, or never did.
    pub fn answer(&self, id: &QuestionId, decision: Decision) -> Result<(), AgentError> {
        let open = self.lock().remove(id);
        let answered = open.and_then(|open| open.answer.send(decision).ok());
        answered.ok_or_else(|| AgentError::NoQuestion(id.to_string()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<QuestionId, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a question back when whoever asked does not wait for it any more.
struct Standing<'a> {
    questions: &'a Questions,
    id: QuestionId,
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        self.questions.lock().remove(&self.id);
    }
}

impl Runtime {
    /// Asks, and waits for the answer. What stops the work denies it.
    pub(crate) async fn ask(
        &self,
        call: &Call,
        kind: QuestionKind,
        text: String,
    ) -> Result<Decision, AgentError> {
        if !call.attended {
            return Ok(Decision::Denied);
        }
        let id: QuestionId = self.new_id()?;
        let expires = Millis(self.now().0 + DEADLINE.as_millis() as i64);
        let question = Question { id: id.clone(), kind, text, expires };
        let (answer, answered) = oneshot::channel();
        self.questions.lock().insert(id.clone(), Open { question: question.clone(), answer });
        let standing = Standing { questions: &self.questions, id: id.clone() };
        call.events.emit(Event::Question { question });
        let mut cancel = call.cancel.clone();
        let decision = tokio::select! {
            answered = tokio::time::timeout(DEADLINE, answered) => match answered {
                Ok(Ok(decision)) => decision,
                Ok(Err(_)) | Err(_) => Decision::Denied,
            },
            () = cancel.cancelled() => Decision::Denied,
        };
        drop(standing);
        call.events.emit(Event::Answered { question: id, decision });
        Ok(decision)
    }
}
