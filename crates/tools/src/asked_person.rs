//! What a server of tools wants to know of a person while a tool of it is called (spec: agent §5 *Elicitation*).

use std::fmt;
use std::pin::Pin;

use serde_json::{Map, Value};

/// What a server asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerQuestion {
    pub message: String,
    pub kind: ServerQuestionKind,
}

/// What a person is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerQuestionKind {
    /// To fill in what this JSON Schema describes.
    Form(Value),
    /// To go to an address, and to do there what it says.
    Visit(String),
}

/// What a person answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonReply {
    Accepted(Map<String, Value>),
    Declined,
    /// Nobody answered.
    Cancelled,
    /// Refusal to ask, with the reason.
    Refused(String),
}

/// Asks the person of the conversation that a call is made in.
pub trait AskPerson: Send + Sync + fmt::Debug {
    fn ask(&self, question: ServerQuestion) -> Pin<Box<dyn Future<Output = PersonReply> + Send + '_>>;
}
