//! Elicitation: what a server of tools asks of a person while a tool of it is called (spec: agent §5).

use std::fmt;
use std::pin::Pin;

use model::Cancel;
use serde_json::{Map, Value};

/// Question of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elicitation {
    pub message: String,
    pub mode: ElicitationMode,
    /// Calls of the server that run, the oldest first: it does not say for which one it asks.
    pub callers: Vec<ElicitationCaller>,
}

/// Call that a server may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElicitationCaller {
    /// Label of the subagent that calls; none of the conversation itself.
    pub label: Option<String>,
    /// The tool, with its server.
    pub tool: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitationMode {
    /// JSON Schema of the form that a person fills in.
    Form(Value),
    /// Address that a person goes to, to do there what it says.
    Url(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitationReply {
    Accepted(Map<String, Value>),
    Declined,
    /// Nobody answered.
    Cancelled,
    /// Refusal to ask, with the reason.
    Refused(String),
}

/// What ends a question that nobody has answered.
#[derive(Debug, Clone)]
pub struct QuestionEnd {
    /// The end of the call.
    pub call: Cancel,
    /// Whoever asked takes it back.
    pub question: Cancel,
}

impl QuestionEnd {
    /// One that never comes.
    pub fn never() -> Self {
        Self { call: Cancel::never(), question: Cancel::never() }
    }

    /// Whether it has come.
    pub fn is_there(&self) -> bool {
        self.call.is_cancelled() || self.question.is_cancelled()
    }
}

/// The person of the conversation that a tool is called in.
pub trait Elicit: Send + Sync + fmt::Debug {
    fn caller(&self) -> ElicitationCaller;

    /// Asks, and waits until somebody answered, or its end has come: then nothing stands any more.
    fn elicit(
        &self,
        asked: Elicitation,
        end: QuestionEnd,
    ) -> Pin<Box<dyn Future<Output = ElicitationReply> + Send + '_>>;
}
