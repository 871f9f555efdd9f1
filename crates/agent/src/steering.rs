//! Handing what was said to the process that holds the session (spec: security §7, agent §1 *Two processes*).
//!
//! Each process that may hold a turn listens on `<home>/run/INSTANCE.sock` ([`Listener`]). One that finds the
//! session busy sends its message there ([`hand_over`]), and hears in lines of JSON what becomes of it: that it was
//! taken in, that it is about to be a node and which, that it is one, and the answer. A message is taken in only
//! while the door of its session is open ([`InputQueues`]); whoever finds it closed takes the lease itself.
//!
//! What is handed over is said once, whoever dies or sleeps and when:
//!
//! - Nothing is sent to a process that does not greet first: one that stands still hears nothing it could act on
//!   when it wakes.
//! - A message names the fence of the turn it is for. A door of another turn does not take it in.
//! - The id of the node is told, and in the other's hands, before the node is written. When the end of it was not
//!   heard, the message counts as not taken only once that turn's fence is past, so that it can write nothing more,
//!   and none of the nodes it told of is there.

mod link;
mod listener;
mod queue;

use loom::{Digest, NodeId, ViewName};
use serde::{Deserialize, Serialize};
use store::{Fence, SessionId};

pub use link::{HandedOver, hand_over};
pub use listener::{Listener, MAX_PEERS};
pub(crate) use queue::{InputQueue, RemoteInput};
pub use queue::{InputQueues, MAX_WAITING};

/// What a process sends to the one that holds a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Message {
    /// The session.
    session: SessionId,
    /// The view of its tree in which it is said.
    #[serde(default)]
    view: ViewName,
    /// The turn it is for, by the number of its lease.
    fence: u64,
    /// What is said. It is text, whatever it looks like: commands are no message (spec: security §5).
    text: String,
}

impl Message {
    fn fence(&self) -> Fence {
        Fence(self.fence)
    }
}

/// What it hears, a line each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reply")]
pub(crate) enum Reply {
    /// Somebody is there: the message may be sent.
    Ready,
    /// No turn takes it in here: it was not said.
    Closed,
    /// It is not taken in, and would not be elsewhere.
    Refused {
        /// Why.
        why: String,
    },
    /// It was taken in and waits.
    Waits,
    /// It is about to be written as this node.
    Keeping {
        /// The node.
        node: NodeId,
    },
    /// It is a node.
    Kept {
        /// The node.
        node: NodeId,
    },
    /// It was answered.
    Answered(Box<Answer>),
}

/// The answer to a message that was handed over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The node of what was said.
    pub said: NodeId,
    /// The node of the answer, its short id and text, and how it ended.
    pub node: Option<(NodeId, String, String, loom::Finish)>,
    /// Digest of the manifest of the request.
    pub manifest: Option<Digest>,
    /// Tokens as reported.
    pub usage: Option<model::Usage>,
    /// The used share of the window.
    pub share: f64,
    /// What went wrong.
    pub error: Option<String>,
}
