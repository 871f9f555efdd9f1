//! Steering: what is said to a session that another process holds (spec: security §7, agent §1 *Two processes*).
//!
//! Each process that may hold a turn listens on `<home>/run/INSTANCE.sock` ([`Listener`]). One that finds the session
//! busy sends its message there ([`hand_over`]), and hears in lines of JSON what becomes of it: that it was taken in,
//! that it is about to be a node and which, and then the events of the session, which it passes on as its own. The
//! message names the turn it may be a part of: its tree, model, place and settings. A turn of another kind does not
//! take it in; whoever sent it takes the lease itself once that is free. Pictures and sounds are blobs of the home,
//! which a message names by their digests.
//!
//! Whoever comes later asks for the events from a number on ([`attach`]), and so does one whose connection broke. An
//! answer to a question takes no part in this: it is written to the question's row ([`crate::questions`]).
//!
//! Until it is about to be written, a message can be withdrawn by whoever sent it, on the same connection. A connection
//! that ends withdraws nothing: its process may have been killed, and what it had said is dealt with all the same.
//!
//! What is handed over is said once, whoever dies or sleeps and when:
//!
//! - Nothing is sent to a process that does not greet first: one that stands still hears nothing it could act on when
//!   it wakes.
//! - A message names the fence of the turn it is for. Another turn does not take it in.
//! - The id of the node is told, and in the other's hands, before the node is written. When the end of it was not
//!   heard, the message counts as not taken only once that turn's fence is past, so that it can write nothing more,
//!   and none of the nodes it told of is there.

mod attached;
mod link;
mod listener;
mod remote;

use std::time::Duration;

use loom::plan::NewText;
use loom::{Author, Block, NodeId, PositionId, Role, Trust, ViewName};
use serde::{Deserialize, Serialize};
use store::SessionId;

use crate::event::{SayId, SessionEvent};
use crate::failure::Failure;
use crate::session::{TurnIdentity, WaitingFile};

pub use attached::{AttachedEvents, attach, stop};
pub use link::{HandedOver, OutgoingSay, WaitNotice, hand_over};
pub use listener::{Listener, MAX_PEERS};
pub(crate) use remote::RemoteInput;

/// Version of the protocol. A process of another one is not spoken to, and waited for like one that does not listen.
const VERSION: u32 = 6;
/// Texts of one message at most: what is said, and what is sent along.
const MAX_TEXTS: usize = 256;

/// What a process asks of the one that holds a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
enum SteeringRequest {
    Say(Box<Message>),
    Follow(Follow),
    /// Stops the turn under way.
    Stop {
        session: SessionId,
    },
    /// The message that was sent on this connection is not to be said. A process that does not know of it goes on.
    Withdraw,
}

/// A wish for the events of a session, until nothing is under way there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Follow {
    session: SessionId,
    /// Task whose events they are; whichever runs, if none.
    #[serde(default)]
    task: Option<u64>,
    /// Number of the first one.
    from: u64,
}

/// Something said, for the turn under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Message {
    session: SessionId,
    /// View of its tree in which it is said.
    view: ViewName,
    /// Number of the lease of the turn it is for.
    fence: u64,
    key: SayId,
    /// Turns it may be a part of.
    identity: TurnIdentity,
    /// The position under which it is said; the tip, if none.
    #[serde(default)]
    reply_to: Option<PositionId>,
    /// The last is what is said, those before it are sent along. They are text, whatever they look like: commands
    /// are no message (spec: security §5).
    texts: Vec<HandedText>,
    /// Files among the texts that wait in the session's settings.
    #[serde(default)]
    waiting: Vec<WaitingFile>,
    /// Author of what is written for it.
    author: Author,
    /// Trust of what is written for it.
    trust: Trust,
    /// How long somebody may take to answer a question; none where nobody answers.
    #[serde(default)]
    answer_within: Option<Duration>,
}

/// A text of a message, whose author is the message's. One that names skills is not handed over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct HandedText {
    content: Vec<Block>,
    trust: Trust,
}

impl From<&NewText> for HandedText {
    fn from(text: &NewText) -> Self {
        Self { content: text.content.clone(), trust: text.trust }
    }
}

impl From<HandedText> for NewText {
    fn from(HandedText { content, trust }: HandedText) -> Self {
        Self { content, author: Author::owner(), role: Some(Role::User), trust }
    }
}

impl Message {
    /// Why it is none that a person says, if it is not.
    fn problem(&self) -> Option<String> {
        let is_said =
            |block: &Block| matches!(block, Block::Text { .. } | Block::Image { .. } | Block::Audio { .. });
        if self.texts.is_empty() {
            Some("it says nothing".to_owned())
        } else if self.texts.len() > MAX_TEXTS {
            Some(format!("it has more than {MAX_TEXTS} texts"))
        } else if !self.texts.iter().flat_map(|text| &text.content).all(is_said) {
            Some("it holds what nobody says".to_owned())
        } else {
            None
        }
    }
}

/// Replies to a steering request, a line each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reply")]
pub(crate) enum Reply {
    /// Somebody is there: the message may be sent.
    Ready {
        #[serde(default)]
        version: u32,
    },
    /// Which task has the session, and the number of the first event that is told.
    Attached { task: u64, from: u64 },
    /// That task has ended: there are no such events any more.
    Gone,
    /// No turn takes it in here: it was not said.
    Closed,
    /// The turn under way is of another tree, model, place or settings: it was not said.
    Differs,
    /// The message is not taken in, and would not be elsewhere.
    Refused { error: Failure },
    /// The turn under way is told to stop.
    Stops,
    /// The message was taken in and waits.
    Waits,
    /// Withdrawn before it was said.
    Withdrawn,
    /// What is said is about to be written as this node.
    Keeping { node: NodeId },
    /// Something happened in the session since it was said.
    Happened {
        n: u64,
        #[serde(flatten)]
        event: SessionEvent,
    },
}
