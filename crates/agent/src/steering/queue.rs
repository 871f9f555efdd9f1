//! The inputs of the sessions whose turns run in this process: what is said meanwhile is taken in while they are open,
//! by other processes ([`super::hand_over`]) and by whoever sits at this one ([`InputQueues::join`]).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loom::{NodeId, ViewName};
use store::{Fence, SessionId};
use tokio::sync::{mpsc, oneshot};

use super::{Answer, Message, Reply};
use crate::error::AgentError;
use crate::turn::Replied;

/// Messages that may wait for a session (spec: scale §4 `steering`).
pub const MAX_WAITING: usize = 64;
/// Replies that may wait to be written to whoever said something: the turn waits for each.
const MAX_REPLIES: usize = 1;
/// How long a turn waits until a reply is in the hands of whoever it is for.
const TO_TELL: Duration = Duration::from_secs(5);

/// A reply on its way, and who waits until it is written.
pub(super) struct Receipt {
    pub(super) reply: Reply,
    pub(super) written: oneshot::Sender<()>,
}

/// A message that was taken in.
pub(crate) struct RemoteInput {
    /// The view in which it is said.
    pub(crate) view: ViewName,
    /// What is said.
    pub(crate) text: String,
    /// Where another process hears what becomes of it; none for what was said in this one, which runs the turn.
    replies: Option<mpsc::Sender<Receipt>>,
}

impl RemoteInput {
    /// Whether it was said in this process.
    pub(crate) fn is_own(&self) -> bool {
        self.replies.is_none()
    }

    /// Tells what became of it. When this returns, the other has it, or is gone: what they said is dealt with all
    /// the same.
    async fn tell(&self, reply: Reply) {
        let Some(replies) = &self.replies else { return };
        let (written, heard) = oneshot::channel();
        let told = async {
            if replies.send(Receipt { reply, written }).await.is_ok() {
                // An error means that whoever it was for is gone.
                let _ = heard.await;
            }
        };
        if tokio::time::timeout(TO_TELL, told).await.is_err() {
            tracing::debug!("whoever handed something over does not read what became of it");
        }
    }

    /// It is about to be this node.
    pub(crate) async fn keeping(&self, node: NodeId) {
        self.tell(Reply::Keeping { node }).await;
    }

    /// It is this node.
    pub(crate) async fn kept(&self, node: NodeId) {
        self.tell(Reply::Kept { node }).await;
    }

    /// It was not said: whoever sent it says it themselves.
    pub(crate) async fn reject(self) {
        self.tell(Reply::Closed).await;
    }

    /// It cannot be said.
    pub(crate) async fn refuse(self, why: &str) {
        self.tell(Reply::Refused { why: why.to_owned() }).await;
    }

    /// It was said, and answered.
    pub(crate) async fn end(&self, said: NodeId, reply: &Result<Replied, AgentError>) {
        let answer = match reply {
            Ok(reply) => Answer {
                said,
                node: reply
                    .answer
                    .as_ref()
                    .map(|made| (made.id, made.short_id.clone(), made.text.clone(), made.finish.clone())),
                manifest: Some(reply.manifest),
                usage: reply.usage,
                share: reply.share,
                error: reply.error.as_ref().map(ToString::to_string),
            },
            Err(error) => Answer {
                said,
                node: None,
                manifest: None,
                usage: None,
                share: 0.0,
                error: Some(error.to_string()),
            },
        };
        self.tell(Reply::Answered(Box::new(answer))).await;
    }
}

/// The open door of a turn, as those see it who put messages behind it.
#[derive(Debug)]
struct Open {
    fence: Fence,
    messages: mpsc::Sender<RemoteInput>,
}

/// The inputs of the sessions whose turns run in this process.
#[derive(Debug, Clone, Default)]
pub struct InputQueues(Arc<Mutex<HashMap<SessionId, Open>>>);

impl InputQueues {
    /// Opens the door of a session, for the time of the turn with this fence.
    pub(crate) fn open(&self, session: &SessionId, fence: Fence) -> InputQueue {
        let (sender, messages) = mpsc::channel(MAX_WAITING);
        // The door of an earlier turn, whose lease was taken over, takes in nothing from now on.
        self.lock().insert(session.clone(), Open { fence, messages: sender });
        InputQueue { inputs: self.clone(), session: session.clone(), fence, messages, next: None, open: true }
    }

    /// Says something in the turn that a session has in this process, from beside it: it joins at the next model
    /// call. What became of it is seen by whoever runs the turn ([`crate::Turn`]).
    ///
    /// # Errors
    /// The text, when no turn takes it in now: none runs here, it is ending, or 64 messages wait for it.
    pub fn join(&self, session: &SessionId, view: &ViewName, text: String) -> Result<(), String> {
        let inputs = self.lock();
        let Some(door) = inputs.get(session) else { return Err(text) };
        let sent = door.messages.try_send(RemoteInput { view: view.clone(), text, replies: None });
        sent.map_err(|unsent| unsent.into_inner().text)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message behind the door of its session.
    pub(super) fn put(&self, message: Message) -> Result<mpsc::Receiver<Receipt>, Reply> {
        let (replies, heard) = mpsc::channel(MAX_REPLIES);
        let inputs = self.lock();
        let door = inputs.get(&message.session).filter(|door| door.fence == message.fence());
        let door = door.ok_or(Reply::Closed)?;
        let handed = RemoteInput { view: message.view, text: message.text, replies: Some(replies) };
        match door.messages.try_send(handed) {
            Ok(()) => Ok(heard),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Reply::Closed),
            Err(mpsc::error::TrySendError::Full(_)) => {
                let why = format!("{MAX_WAITING} messages wait for this session already");
                Err(Reply::Refused { why })
            }
        }
    }
}

/// The door of one session, while its turn runs.
pub(crate) struct InputQueue {
    inputs: InputQueues,
    session: SessionId,
    fence: Fence,
    messages: mpsc::Receiver<RemoteInput>,
    /// One that was looked at and left for later.
    next: Option<RemoteInput>,
    open: bool,
}

impl InputQueue {
    /// The next message. The door closes when none waits: whatever was taken in before comes out first.
    pub(crate) fn next(&mut self) -> Option<RemoteInput> {
        if let Some(handed) = self.next.take().or_else(|| self.messages.try_recv().ok()) {
            return Some(handed);
        }
        self.close();
        self.messages.try_recv().ok()
    }

    /// The next message, if it was said in this process and in this view.
    pub(crate) fn next_own(&mut self, view: &ViewName) -> Option<RemoteInput> {
        let handed = self.next.take().or_else(|| self.messages.try_recv().ok())?;
        if handed.is_own() && handed.view == *view {
            return Some(handed);
        }
        self.next = Some(handed);
        None
    }

    /// Nothing is taken in from now on.
    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            // Under the lock under which messages are put: none slips in behind it.
            let mut inputs = self.inputs.lock();
            if inputs.get(&self.session).is_some_and(|door| door.fence == self.fence) {
                inputs.remove(&self.session);
            }
        }
    }
}

impl Drop for InputQueue {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
