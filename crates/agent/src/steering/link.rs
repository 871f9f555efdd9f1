//! Saying something through the process that holds the session.

use std::time::Duration;

use loom::plan::MAX_NODE_BYTES;
use loom::{NodeId, TreeId, ViewName};
use model::Cancel;
use store::{Lease, Principal, SessionId};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::listener::{is_own, send, socket};
use super::{Message, RemoteSay, Reply, VERSION};
use crate::error::AgentError;
use crate::event::{SayId, SessionEvent};
use crate::lease::{SessionLease, instance_of};
use crate::runtime::Runtime;
use crate::session::{EventLog, TurnIdentity};

/// How long a process may take to greet. One that does not stands still, or has too much to do.
const TO_GREET: Duration = Duration::from_secs(2);
/// How long it may take to read a message.
const TO_READ: Duration = Duration::from_secs(5);
/// How often it is looked whether the turn still has its lease, while nothing is heard.
const LOOK: Duration = Duration::from_millis(250);
/// How long what was told before the fence was past takes to be read: it is here already.
const TO_DRAIN: Duration = Duration::from_millis(250);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandedOver {
    /// It was answered, and its events are in the log.
    Answered,
    /// Nobody listens there: nothing was sent. Whoever has the lease stands still, or takes in nothing.
    NotHeard,
    /// It was not said and will not be, as that turn has ended: take the lease.
    NotTaken,
    /// It was not said: that turn is of another tree, model, place or settings.
    Differs,
    /// The turn ended after it had kept the message, and gave no answer to it.
    Cut {
        /// Node of what was said.
        said: NodeId,
    },
}

/// Hands a text to the process that holds a session, and passes the events of its answer on.
///
/// # Errors
/// [`AgentError::Refused`] with the other process's reason; as the store says.
pub async fn hand_over(
    runtime: &Runtime,
    who: &Principal,
    (session, view, identity): (&SessionId, &ViewName, TurnIdentity),
    RemoteSay { key, text, author, trust, attended }: RemoteSay<'_>,
    log: &EventLog,
) -> Result<HandedOver, AgentError> {
    if text.len() as u64 > MAX_NODE_BYTES {
        let why = format!("it is longer than {} MiB", MAX_NODE_BYTES / 1024 / 1024);
        return Err(AgentError::Refused(why));
    }
    let Some(lease) = runtime.store.lease(who, &session.lease()).await? else {
        return Ok(HandedOver::NotTaken);
    };
    let Some(instance) = lease.holder.as_ref().and_then(instance_of) else {
        return Ok(HandedOver::NotTaken);
    };
    let (near, _) = socket(&runtime.home, instance)?;
    let greeted =
        timeout(TO_GREET, async { Link::greeted(UnixStream::connect(near.path()).await.ok()?).await });
    let Ok(Some((lines, mut write))) = greeted.await else { return Ok(HandedOver::NotHeard) };
    let tree = identity.tree;
    let message = Message {
        session: session.clone(),
        view: view.clone(),
        fence: lease.fence.0,
        key: key.clone(),
        identity,
        text: text.to_owned(),
        author: author.clone(),
        trust,
        attended,
    };
    // Half a message is none: it has no end of line, and is not taken in.
    if !matches!(timeout(TO_READ, send(&mut write, &message)).await, Ok(Ok(()))) {
        return Ok(HandedOver::NotHeard);
    }
    let mut link = Link { lines, _write: write, key, log, announced: Vec::new() };
    loop {
        match timeout(LOOK, link.lines.next_line()).await {
            Ok(Ok(Some(line))) => match link.heard(&line)? {
                Some(ended) => return Ok(ended),
                None => continue,
            },
            // It ended, or it sleeps. What it still may do is decided by the lease.
            Ok(Ok(None) | Err(_)) => tokio::time::sleep(LOOK / 5).await,
            Err(_) => {}
        }
        if is_past(runtime, who, session, &lease).await? {
            return link.ended(runtime, who, tree).await;
        }
    }
}

/// Whether a turn can write nothing more. A lease that ran out, or whose process is dead, is taken for that.
async fn is_past(
    runtime: &Runtime,
    who: &Principal,
    session: &SessionId,
    then: &Lease,
) -> Result<bool, AgentError> {
    let now = runtime.store.lease(who, &then.name).await?;
    let Some(lease) = now.filter(|lease| lease.holder.is_some() && lease.fence == then.fence) else {
        return Ok(true);
    };
    if !lease.has_ended && runtime.lives(&lease)? {
        return Ok(false);
    }
    match SessionLease::take(runtime, who, session, Cancel::never()).await {
        Ok(held) => {
            held.release().await;
            Ok(true)
        }
        Err(AgentError::Busy { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A connection on which a message went.
struct Link<'a> {
    lines: Lines<BufReader<OwnedReadHalf>>,
    /// Open as long as the answer is waited for.
    _write: OwnedWriteHalf,
    key: &'a SayId,
    log: &'a EventLog,
    /// Nodes the message was about to be, one a try.
    announced: Vec<NodeId>,
}

impl Link<'_> {
    /// The two halves of a connection, once the process at its other end has shown that it listens.
    async fn greeted(stream: UnixStream) -> Option<(Lines<BufReader<OwnedReadHalf>>, OwnedWriteHalf)> {
        if !is_own(&stream) {
            return None;
        }
        let (read, write) = stream.into_split();
        let mut lines = BufReader::new(read).lines();
        let line = lines.next_line().await.ok()??;
        let ready = matches!(serde_json::from_str(&line), Ok(Reply::Ready { version: VERSION }));
        ready.then_some((lines, write))
    }

    /// What a line says of the end, if it says that.
    fn heard(&mut self, line: &str) -> Result<Option<HandedOver>, AgentError> {
        match serde_json::from_str::<Reply>(line) {
            Ok(Reply::Ready { .. } | Reply::Waits) => Ok(None),
            Ok(Reply::Keeping { node }) => {
                self.announced.push(node);
                Ok(None)
            }
            Ok(Reply::Closed) => Ok(Some(HandedOver::NotTaken)),
            Ok(Reply::Differs) => Ok(Some(HandedOver::Differs)),
            Ok(Reply::Refused { why }) => Err(AgentError::Refused(why)),
            Ok(Reply::Happened { event, .. }) => Ok(self.happened(event)),
            Err(error) => Err(AgentError::Refused(format!("not a reply: {error}"))),
        }
    }

    /// Passes an event on as one of this process, in which the text is not another's.
    fn happened(&mut self, event: SessionEvent) -> Option<HandedOver> {
        let (event, ended) = match event {
            SessionEvent::Accepted { node, text, .. } => {
                self.announced.push(node);
                (SessionEvent::Accepted { say: self.key.clone(), node, text, remote: false }, None)
            }
            SessionEvent::Finished { mut outcome, .. } => {
                outcome.elsewhere = true;
                (SessionEvent::Finished { says: vec![self.key.clone()], outcome }, Some(HandedOver::Answered))
            }
            SessionEvent::Idle | SessionEvent::Queued { .. } | SessionEvent::Rejected { .. } => {
                return None;
            }
            other => (other, None),
        };
        self.log.push(event);
        ended
    }

    /// What became of the message of a turn that can write nothing more.
    async fn ended(
        mut self,
        runtime: &Runtime,
        who: &Principal,
        tree: TreeId,
    ) -> Result<HandedOver, AgentError> {
        while let Ok(Ok(Some(line))) = timeout(TO_DRAIN, self.lines.next_line()).await {
            if let Some(ended) = self.heard(&line)? {
                return Ok(ended);
            }
        }
        let announced = self.announced;
        let written = runtime.read(who, tree, move |rows| {
            for node in announced {
                if rows.node(node)?.is_some() {
                    return Ok(Some(node));
                }
            }
            Ok(None)
        });
        Ok(written.await?.map_or(HandedOver::NotTaken, |said| HandedOver::Cut { said }))
    }
}
