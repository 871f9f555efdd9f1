//! Steering: what is said to a session that another process holds (spec: security §7, agent §1 *Two processes*).
//!
//! Each process that may hold a turn listens on `<home>/run/INSTANCE.sock` ([`Listener`]). One that finds the session
//! busy sends its message there ([`hand_over`]), and hears in lines of JSON what becomes of it: that it was taken in,
//! that it is about to be a node and which, and then the events of the session, which it passes on as its own. The
//! message names the turn it may be a part of: its tree, model, place and settings. A turn of another kind does not
//! take it in; whoever sent it takes the lease itself once that is free.
//!
//! What is handed over is said once, whoever dies or sleeps and when:
//!
//! - Nothing is sent to a process that does not greet first: one that stands still hears nothing it could act on when
//!   it wakes.
//! - A message names the fence of the turn it is for. Another turn does not take it in.
//! - The id of the node is told, and in the other's hands, before the node is written. When the end of it was not
//!   heard, the message counts as not taken only once that turn's fence is past, so that it can write nothing more,
//!   and none of the nodes it told of is there.

mod link;
mod listener;
mod remote;

use loom::{Author, NodeId, Trust, ViewName};
use serde::{Deserialize, Serialize};
use store::SessionId;

use crate::event::{SayId, SessionEvent};
use crate::session::TurnIdentity;

pub use link::{HandedOver, hand_over};
pub use listener::{Listener, MAX_PEERS};
pub(crate) use remote::RemoteInput;

/// Version of the protocol. A process of another one is not spoken to, and waited for like one that does not listen.
const VERSION: u32 = 3;

/// What a process sends to the one that holds a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Message {
    session: SessionId,
    /// View of its tree in which it is said.
    view: ViewName,
    /// Number of the lease of the turn it is for.
    fence: u64,
    key: SayId,
    /// Turns it may be a part of.
    identity: TurnIdentity,
    /// What is said. It is text, whatever it looks like: commands are no message (spec: security §5).
    text: String,
    /// Author of what is written for it.
    author: Author,
    /// Trust of what is written for it.
    trust: Trust,
    /// Whether somebody there may answer a question.
    #[serde(default)]
    attended: bool,
}

/// What is said to a session that another process has.
#[derive(Debug, Clone, Copy)]
pub struct RemoteSay<'a> {
    pub key: &'a SayId,
    pub text: &'a str,
    pub author: &'a Author,
    pub trust: Trust,
    /// Whether somebody here may answer a question.
    pub attended: bool,
}

/// What it hears, a line each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reply")]
pub(crate) enum Reply {
    /// Somebody is there: the message may be sent.
    Ready {
        #[serde(default)]
        version: u32,
    },
    /// No turn takes it in here: it was not said.
    Closed,
    /// The turn under way is of another tree, model, place or settings: it was not said.
    Differs,
    /// It is not taken in, and would not be elsewhere.
    Refused { why: String },
    /// It was taken in and waits.
    Waits,
    /// It is about to be written as this node.
    Keeping { node: NodeId },
    /// Something happened in the session since it was said.
    Happened {
        n: u64,
        #[serde(flatten)]
        event: SessionEvent,
    },
}
