//! Events: what is heard of work while it is done, by whoever shows it.

use std::fmt;
use std::sync::Arc;

use loom::{Digest, Finish, GenerationId, Millis, NodeId, ToolStatus, TreeId};
use model::{ModelPlace, Money, TokenUsage};
use policy::Effect;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use store::{CallId, Decision, QuestionId};

use crate::error::AgentError;
use crate::failure::Failure;
use crate::questions::Form;

/// Idempotency key of something said: what comes twice under one key is said once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SayId(String);

impl From<ulid::Ulid> for SayId {
    fn from(id: ulid::Ulid) -> Self {
        Self(id.to_string())
    }
}

impl fmt::Display for SayId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One event (spec: agent §1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum SessionEvent {
    /// Something said is a node.
    Accepted {
        say: SayId,
        node: NodeId,
        text: String,
        /// Whether another process said it.
        remote: bool,
        /// Whether it is what a subagent came to, which nobody said.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        subagent: bool,
    },
    /// Something said waits behind this many others.
    Queued { say: SayId, place: usize },
    /// Something was not said: nothing of it was written.
    Rejected { say: SayId, error: TurnError },
    /// The model's server is asked for the tokens of a request that is prepared.
    Counting { model: String },
    /// A durable request is about to be sent.
    Started {
        generation: GenerationId,
        nodes: Vec<NodeId>,
        model: String,
        place: ModelPlace,
        manifest: Digest,
        /// Tokens of the request.
        #[serde(default)]
        tokens: u64,
        /// Whether they were counted, and not estimated.
        #[serde(default)]
        counted: bool,
    },
    /// A request brought no whole answer: what becomes of the part that came is another event.
    RequestFailed { generation: GenerationId, nodes: Vec<NodeId> },
    /// The model reads the request: so many of its tokens so far.
    Reading { done: u64, total: u64 },
    /// More text of a node that is being written; `offset` is in bytes of that text.
    Delta { node: NodeId, offset: u64, text: String },
    /// More of what the model thinks before it writes a node. Never part of the node's text.
    Thinking { node: NodeId, text: String },
    /// An answer calls a tool; `number` counts its calls from 0.
    Call {
        answer: NodeId,
        number: u32,
        tool: String,
        arguments: String,
        /// Effects of the tool; empty where there is no such tool or its arguments do not fit.
        #[serde(default)]
        effects: Vec<Effect>,
    },
    /// What came of a call is a node.
    Result {
        answer: NodeId,
        number: u32,
        status: ToolStatus,
        node: NodeId,
        /// What a person reads of it: its first line, the end of what a failed command printed, a difference.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lines: Vec<String>,
        /// Whether its server asked a person something that nobody answered.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unanswered: bool,
    },
    /// A question stands until it is answered or past its deadline.
    Question { question: AskedQuestion },
    /// A question was answered, by whom as people call them.
    Answered {
        question: QuestionId,
        decision: Decision,
        /// The word that approved it; none where it was denied.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        word: Option<String>,
        by: String,
        /// Why, where whoever answered said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// One line for whoever looks on.
    Notice { text: String },
    /// An answer is a node.
    Committed { node: CommittedNode, usage: Option<TokenUsage> },
    /// What was said is answered, or will not be.
    Finished { says: Vec<SayId>, outcome: Box<TurnOutcome> },
    /// Nothing is under way and nothing waits.
    Idle,
}

impl SessionEvent {
    pub fn notice(text: impl Into<String>) -> Self {
        Self::Notice { text: text.into() }
    }

    /// The call of a tool it is about.
    pub fn call(&self) -> Option<CallId> {
        match *self {
            Self::Call { answer, number, .. } | Self::Result { answer, number, .. } => {
                Some(CallId { answer, number })
            }
            _ => None,
        }
    }

    /// Bytes of the text in it.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::Accepted { text, .. }
            | Self::Delta { text, .. }
            | Self::Thinking { text, .. }
            | Self::Notice { text } => text.len(),
            Self::Call { arguments, .. } => arguments.len(),
            Self::Question { question } => question.text.len(),
            Self::Committed { node, .. } => node.text.len(),
            Self::Finished { outcome, .. } => outcome.answer.as_ref().map_or(0, |answer| answer.text.len()),
            _ => 0,
        }
    }

    /// Whether it is the end of something said: its answer, or that it was not said.
    pub(crate) fn ends(&self, key: &SayId) -> bool {
        match self {
            Self::Finished { says, .. } => says.contains(key),
            Self::Rejected { say, .. } => say == key,
            _ => false,
        }
    }
}

pub trait EventSink: Send + Sync {
    /// Takes one. It returns at once: a listener that is slow is not waited for.
    fn emit(&self, event: SessionEvent);
}

impl EventSink for () {
    fn emit(&self, _: SessionEvent) {}
}

/// A node a model made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedNode {
    pub id: NodeId,
    pub short_id: String,
    /// Shared: the log of events holds it too.
    #[serde(with = "loom::shared")]
    pub text: Arc<str>,
    /// The pictures and sounds it shows.
    pub media: Vec<Digest>,
    pub finish: Finish,
}

/// What a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// A request would go over a budget.
    Budget,
    /// A turn met one of its limits.
    Limit,
    /// A call of a tool needs a yes.
    Approval,
    /// A server of tools wants to know something of a person.
    Elicitation,
}

impl QuestionKind {
    /// The name in the store.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Limit => "limit",
            Self::Approval => "approval",
            Self::Elicitation => "elicitation",
        }
    }

    /// Whether a yes takes work beyond what it may spend.
    pub(crate) const fn is_of_limits(self) -> bool {
        matches!(self, Self::Budget | Self::Limit)
    }
}

/// A question that stands, as its listeners hear of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedQuestion {
    pub id: QuestionId,
    pub kind: QuestionKind,
    /// Process and command that ask, for people.
    #[serde(default)]
    pub asker: String,
    /// What is asked, in one line, and the lines it is about ([`crate::questions::parts`]).
    pub text: String,
    /// Words that approve it; the first is meant where none is said.
    #[serde(default)]
    pub answers: Vec<String>,
    /// What a yes says besides, as JSON Schema; none where a word says it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// When it is denied unless it was answered, in ms since 1970.
    pub expires: Millis,
}

/// What came of something said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnOutcome {
    /// Node of what was said; the last one, where several texts were answered together.
    pub said: NodeId,
    pub tree: TreeId,
    /// The answer; none if nothing came.
    pub answer: Option<CommittedNode>,
    /// Digest of the manifest; none where no request was sent.
    pub manifest: Option<Digest>,
    pub usage: Option<TokenUsage>,
    /// Tokens it came to, estimated where none were reported.
    #[serde(default)]
    pub estimated_usage: TokenUsage,
    /// The model that answered, `PROVIDER/NAME`; empty where none did.
    #[serde(default)]
    pub model: String,
    /// What it cost, all its model calls together; none where they run on this machine for nothing, or price or tokens are
    /// not known.
    #[serde(default)]
    pub cost: Option<Money>,
    /// Tokens of the request that a cache could reuse, estimated; none where no request was before it.
    pub reusable: Option<u64>,
    /// Used share of the window, 0 to 1: reported, else estimated.
    pub share: f64,
    /// Whether that share is what the model reported.
    pub measured: bool,
    /// Why it did not end well; what was received is in the answer.
    pub error: Option<TurnError>,
    #[serde(skip)]
    pub elsewhere: bool,
}

/// An error that several listeners hear of. It keeps its type in this process; to another one goes what a person
/// is told of it.
#[derive(Debug, Clone)]
pub struct TurnError(pub Arc<AgentError>);

impl From<AgentError> for TurnError {
    fn from(error: AgentError) -> Self {
        Self(Arc::new(error))
    }
}

impl PartialEq for TurnError {
    fn eq(&self, other: &Self) -> bool {
        self.0.failure() == other.0.failure()
    }
}

impl fmt::Display for TurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for TurnError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.failure().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TurnError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(AgentError::Remote(Failure::deserialize(deserializer)?).into())
    }
}
