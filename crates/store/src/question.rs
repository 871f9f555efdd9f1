//! Questions: what running work asks a person before it goes on (spec: agent §1, §4).
//!
//! A question stands until somebody who may answers it, once, or until it expires by the engine's clock; then it is
//! denied. One whose asker is gone is closed by whoever notices.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use loom::id::NotAnId;
use loom::{Millis, TreeId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use ulid::Ulid;

use crate::fence::{Claim, Guard};
use crate::session::SessionId;

/// Questions of one session that may stand at once, unless who asks says otherwise (spec: security §14).
pub const MAX_OPEN_QUESTIONS: u64 = 20;

/// Characters of an id as people write it.
const SHORT: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuestionId(Ulid);

impl QuestionId {
    pub(crate) const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Ulid::from_bytes(bytes))
    }

    pub(crate) const fn to_bytes(self) -> [u8; 16] {
        self.0.to_bytes()
    }

    /// The id as people write it.
    pub fn short(self) -> String {
        loom::short_id::candidates(self.to_bytes()).find(|short| short.len() == SHORT).unwrap_or_default()
    }
}

impl From<Ulid> for QuestionId {
    fn from(id: Ulid) -> Self {
        Self(id)
    }
}

impl FromStr for QuestionId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ulid::from_string(text).map(Self).map_err(|_| NotAnId)
    }
}

impl Serialize for QuestionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for QuestionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl QuestionAnswer {
    /// Whether nobody answered in time.
    pub fn is_expiry(&self) -> bool {
        self.by == DEADLINE
    }
}

/// Who answers what nobody answered in time.
pub(crate) const DEADLINE: &str = "the deadline";

/// Column of what approves a question: its words alone, or with a form.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum StoredAnswers {
    Words(Vec<String>),
    Form { words: Vec<String>, form: Value },
}

impl StoredAnswers {
    pub(crate) fn new(words: &[String], form: Option<&Value>) -> Self {
        let words = words.to_vec();
        match form {
            None => Self::Words(words),
            Some(form) => Self::Form { words, form: form.clone() },
        }
    }

    pub(crate) fn into_parts(self) -> (Vec<String>, Option<Value>) {
        match self {
            Self::Words(words) => (words, None),
            Self::Form { words, form } => (words, Some(form)),
        }
    }
}

/// A question about to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewQuestion {
    pub id: QuestionId,
    /// Tree of the work that asks.
    pub tree: TreeId,
    /// What it is about, as `budget`.
    pub kind: String,
    /// Who asks, for people.
    pub asker: String,
    /// What is asked, in one line, and the lines it is about.
    pub payload: String,
    /// Words with which it can be approved; the first is meant where none is said.
    pub answers: Vec<String>,
    /// JSON Schema of what a yes says besides; none where a word says it all.
    pub form: Option<Value>,
    pub ttl: Duration,
    /// The process that asks, and in which claim.
    pub claim: Claim,
    /// Leases the work depends on: nothing is asked once one is lost.
    pub guards: Vec<Guard>,
    /// Questions of its session that may stand at once.
    pub most: u64,
}

/// Whether the work may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Approved,
    Denied,
}

/// An answer about to be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAnswer {
    pub decision: Decision,
    /// One of the question's words; of an approval the first, if none.
    pub word: Option<String>,
    pub reason: Option<String>,
    /// Who answers, for people.
    pub by: String,
}

/// The answer of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionAnswer {
    pub decision: Decision,
    /// One of the question's words; none where it was denied.
    pub word: Option<String>,
    pub reason: Option<String>,
    pub by: String,
    /// When, by the engine's clock.
    pub at: Millis,
}

/// A question as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub id: QuestionId,
    pub tree: TreeId,
    /// Session of the tree, if it is one of a session.
    pub session: Option<SessionId>,
    pub kind: String,
    pub asker: String,
    pub payload: String,
    pub answers: Vec<String>,
    /// JSON Schema of what a yes says besides; none where a word says it all.
    pub form: Option<Value>,
    /// When it was asked, by the engine's clock.
    pub created: Millis,
    /// When it is denied unless it was answered, by the engine's clock.
    pub expires: Millis,
    pub claim: Claim,
    pub answer: Option<QuestionAnswer>,
}
