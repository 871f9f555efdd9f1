//! What another process says to a session that runs here, and the way back to it.

use std::fmt;
use std::time::Duration;

use loom::plan::NewText;
use loom::{Author, NodeId, PositionId, Trust, ViewName};
use tokio::sync::{mpsc, oneshot};

use super::{Message, Reply};
use crate::error::AgentError;
use crate::event::SayId;
use crate::session::{TurnIdentity, WaitingFile};

/// Replies that may wait to be written to whoever said something.
const MAX_REPLIES: usize = 2;
/// How long a turn waits until a reply is in the hands of whoever it is for.
const TO_TELL: Duration = Duration::from_secs(5);

/// A reply on its way, and who waits until it is written.
#[derive(Debug)]
pub(super) struct Receipt {
    pub(super) reply: Reply,
    pub(super) written: Option<oneshot::Sender<()>>,
}

/// A message of another process.
pub(crate) struct RemoteInput {
    pub(crate) key: SayId,
    /// View in which it is said.
    pub(crate) view: ViewName,
    /// Number of the lease of the turn it is for.
    pub(crate) fence: u64,
    /// Turns it may be a part of.
    pub(crate) identity: TurnIdentity,
    /// The position under which it is said; the tip, if none.
    pub(crate) reply_to: Option<PositionId>,
    /// The last is what is said, those before it are sent along.
    pub(crate) texts: Vec<NewText>,
    /// Files among the texts that wait in the session's settings.
    pub(crate) waiting: Vec<WaitingFile>,
    pub(crate) author: Author,
    pub(crate) trust: Trust,
    /// How long somebody may take to answer a question; none where nobody answers.
    pub(crate) answer_within: Option<Duration>,
    replies: mpsc::Sender<Receipt>,
}

impl RemoteInput {
    /// A message, and where what becomes of it is heard.
    pub(super) fn new(message: Message) -> (Self, mpsc::Receiver<Receipt>) {
        let (replies, heard) = mpsc::channel(MAX_REPLIES);
        let Message {
            key,
            view,
            fence,
            identity,
            reply_to,
            texts,
            waiting,
            author,
            trust,
            answer_within,
            ..
        } = message;
        let texts = texts.into_iter().map(Into::into).collect();
        (
            Self {
                key,
                view,
                fence,
                identity,
                reply_to,
                texts,
                waiting,
                author,
                trust,
                answer_within,
                replies,
            },
            heard,
        )
    }

    /// Replies without waiting for whoever it is for.
    pub(crate) fn reply_now(&self, reply: Reply) {
        if self.replies.try_send(Receipt { reply, written: None }).is_err() {
            tracing::debug!("whoever said something does not hear what becomes of it");
        }
    }

    /// Tells which node it is about to be. When this returns, the other process has that, or is gone: what it said
    /// is dealt with all the same.
    pub(crate) async fn announce(&self, node: NodeId) {
        let (written, heard) = oneshot::channel();
        let receipt = Receipt { reply: Reply::Keeping { node }, written: Some(written) };
        let told = async {
            if self.replies.send(receipt).await.is_ok() {
                // An error means that whoever it was for is gone.
                let _ = heard.await;
            }
        };
        if tokio::time::timeout(TO_TELL, told).await.is_err() {
            tracing::debug!("whoever handed something over does not read what became of it");
        }
    }

    /// Replies that the message was not said. Where this process lost the session, its sender asks who has it now.
    pub(crate) async fn reject(&self, why: &AgentError) {
        let reply = match why {
            AgentError::TakenOver { .. } => Reply::Closed,
            other => Reply::Refused { error: other.failure() },
        };
        self.reply_now(reply);
    }
}

impl fmt::Debug for RemoteInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteInput").field("key", &self.key).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use loom::{Digest, TreeId};
    use model::ModelPlace;
    use store::SessionId;

    use super::*;

    fn message() -> Message {
        let identity = TurnIdentity {
            tree: TreeId::from_bytes([1; 16]),
            model: "box/m".to_owned(),
            place: ModelPlace::Local,
            settings: Digest::of(b""),
        };
        Message {
            session: SessionId("s".to_owned()),
            view: ViewName::default(),
            fence: 1,
            key: ulid::Ulid::from_bytes([1; 16]).into(),
            identity,
            reply_to: None,
            texts: vec![(&NewText::owner("hello", None)).into()],
            waiting: Vec::new(),
            author: Author::owner(),
            trust: Trust::Owner,
            answer_within: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_does_not_wait_long_for_one_who_does_not_read() {
        let (remote, heard) = RemoteInput::new(message());
        let began = tokio::time::Instant::now();
        remote.announce(NodeId::from_bytes([1; 16])).await;
        assert!(began.elapsed() >= TO_TELL && began.elapsed() < 2 * TO_TELL, "{:?}", began.elapsed());
        drop(heard);
        // One who is gone is not waited for at all.
        let began = tokio::time::Instant::now();
        remote.announce(NodeId::from_bytes([1; 16])).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
