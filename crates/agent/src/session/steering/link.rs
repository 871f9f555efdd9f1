//! Saying something through the process that holds the session.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loom::plan::{MAX_NODE_BYTES, NewText};
use loom::{Author, NodeId, PositionId, TreeId, Trust, ViewName};
use model::Cancel;
use store::instance::InstanceId;
use store::{Lease, Principal, SessionId};
use tokio::time::{Instant, timeout};

use super::attached::Connection;
use super::listener::{MAX_LINE, line_of, send, send_line};
use super::{Follow, MAX_TEXTS, Message, Reply, SteeringRequest};
use crate::error::AgentError;
use crate::event::{SayId, SessionEvent};
use crate::lease::{SessionLease, instance_of};
use crate::runtime::Runtime;
use crate::session::{EventLog, TurnIdentity, WaitingFile};

/// How long a process may take to read a message.
const TO_READ: Duration = Duration::from_secs(5);
/// How often it is looked whether the turn still has its lease, while nothing is heard.
const LOOK: Duration = Duration::from_millis(250);
/// How long the rest of what was told before the fence was past is waited for: a long answer takes longer to be read
/// than its turn to end, and a process that lives closes the connection behind it.
const TO_DRAIN: Duration = Duration::from_secs(5);

/// How long a process may take to say whether a message could still be withdrawn.
const TO_WITHDRAW: Duration = Duration::from_secs(2);
/// How long a text waits before it is said for whom.
const TO_TELL: Duration = Duration::from_secs(1);

/// Says once for which process a text waits, if that takes longer than a moment.
#[derive(Debug)]
pub struct WaitNotice {
    since: Instant,
    is_told: AtomicBool,
}

impl Default for WaitNotice {
    fn default() -> Self {
        Self { since: Instant::now(), is_told: AtomicBool::new(false) }
    }
}

impl WaitNotice {
    /// Says it, once it is time.
    pub(crate) fn tell(&self, by: &str, log: &EventLog) {
        if self.since.elapsed() >= TO_TELL && !self.is_told.swap(true, Ordering::Relaxed) {
            log.push(SessionEvent::notice(format!("waiting for {by}")));
        }
    }
}

/// Something said that is handed over. Its pictures and sounds are in the home already.
#[derive(Debug, Clone)]
pub struct OutgoingSay<'a> {
    pub key: &'a SayId,
    /// The last is what is said, those before it are sent along.
    pub texts: &'a [NewText],
    /// Files among the texts that wait in the session's settings.
    pub waiting: &'a [WaitingFile],
    /// The position under which it is said; the tip, if none.
    pub reply_to: Option<PositionId>,
    /// Author of what is written for it.
    pub author: Author,
    /// Trust of what is written for it.
    pub trust: Trust,
    /// How long somebody may take to answer a question; none where nobody answers.
    pub answer_within: Option<Duration>,
    /// Withdraws it.
    pub stop: Cancel,
    /// What says that it waits, and for whom.
    pub notice: Option<(&'a WaitNotice, &'a str)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandedOver {
    /// The message was answered, and the events of that are in the log.
    Answered,
    /// Nobody listens there, or it is too much for a message: nothing was sent.
    NotHeard,
    /// The message was not said and will not be, as that turn has ended: take the lease.
    NotTaken,
    /// The message was not said: that turn is of another tree, model, place or settings.
    Differs,
    /// The turn ended after it had kept the message, and gave no answer to it.
    Cut {
        /// Node of what was said.
        said: NodeId,
    },
    /// Withdrawn before it was said.
    Withdrawn,
    /// The message was to be withdrawn, too late: it is answered there, and nobody here waits for that.
    Left {
        /// Node of what was said; none where the other process says nothing of it.
        said: Option<NodeId>,
    },
}

/// Hands what is said to the process that holds a session, and passes the events of its answer on.
///
/// # Errors
/// [`AgentError::Remote`] with the error of the other process; [`AgentError::Refused`] when it cannot be said at all; as
/// the store says.
pub async fn hand_over(
    runtime: &Runtime,
    who: &Principal,
    (session, view, identity): (&SessionId, &ViewName, TurnIdentity),
    say: OutgoingSay<'_>,
    log: &EventLog,
) -> Result<HandedOver, AgentError> {
    let bytes = |text: &NewText| loom::content::plain_text(&text.content).len() as u64;
    if say.texts.iter().any(|text| bytes(text) > MAX_NODE_BYTES) {
        let why = format!("it is longer than {} MiB", MAX_NODE_BYTES / 1024 / 1024);
        return Err(AgentError::Refused(why));
    }
    let Some(lease) = runtime.store.lease(who, &session.lease()).await? else {
        return Ok(HandedOver::NotTaken);
    };
    let Some(instance) = lease.holder.as_ref().and_then(instance_of) else {
        return Ok(HandedOver::NotTaken);
    };
    let tree = identity.tree;
    let message = Message {
        session: session.clone(),
        view: view.clone(),
        fence: lease.fence.0,
        key: say.key.clone(),
        identity,
        reply_to: say.reply_to,
        texts: say.texts.iter().map(Into::into).collect(),
        waiting: say.waiting.to_vec(),
        author: say.author,
        trust: say.trust,
        answer_within: say.answer_within,
    };
    let line =
        line_of(&SteeringRequest::Say(Box::new(message))).map_err(|error| AgentError::socket(&error))?;
    if say.texts.len() > MAX_TEXTS || line.len() as u64 > MAX_LINE {
        return Ok(HandedOver::NotHeard);
    }
    let Some(mut connection) = Connection::open(&runtime.home, instance).await? else {
        return Ok(HandedOver::NotHeard);
    };
    // Half a message is none: it has no end of line, and is not taken in.
    if !matches!(timeout(TO_READ, send_line(&mut connection.write, &line)).await, Ok(Ok(()))) {
        return Ok(HandedOver::NotHeard);
    }
    drop(line);
    let mut link = Link {
        connection,
        instance,
        key: say.key,
        log,
        place: None,
        is_accepted: false,
        announced: Vec::new(),
    };
    let (mut stop, mut stopped_at) = (say.stop, None::<Instant>);
    loop {
        let heard = tokio::select! {
            biased;
            () = stop.cancelled(), if stopped_at.is_none() => {
                stopped_at = Some(Instant::now());
                if !link.is_accepted {
                    // Where it is not read, nothing is withdrawn.
                    let word = send(&mut link.connection.write, &SteeringRequest::Withdraw);
                    let _ = timeout(LOOK, word).await;
                }
                continue;
            }
            heard = timeout(LOOK, link.connection.lines.next_line()) => heard,
        };
        // A line that was read is heard before anything is given up.
        let is_line = match &heard {
            Ok(Ok(Some(line))) => match link.heard(line)? {
                Some(ended) => return Ok(ended),
                None => true,
            },
            _ => false,
        };
        if let Some(at) = stopped_at
            && (link.is_accepted || at.elapsed() > TO_WITHDRAW)
        {
            return Ok(HandedOver::Left { said: link.announced.last().copied() });
        }
        if let Some((notice, by)) = say.notice
            && !link.is_accepted
        {
            notice.tell(by, log);
        }
        if is_line {
            continue;
        }
        // It ended, or it sleeps. What it still may do is decided by the lease.
        if heard.is_ok() {
            link.resume(runtime, session).await?;
            tokio::time::sleep(LOOK / 5).await;
        }
        if is_past(runtime, who, session, &lease).await? {
            return link.ended(runtime, who, tree, stop).await;
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
    connection: Connection,
    instance: InstanceId,
    key: &'a SayId,
    log: &'a EventLog,
    /// Task whose events are told, and the number of the next one.
    place: Option<(u64, u64)>,
    /// Whether the message is known to be a node.
    is_accepted: bool,
    /// Nodes the message was about to be, one a try.
    announced: Vec<NodeId>,
}

impl Link<'_> {
    /// Goes on hearing where a connection ended, if its process still listens.
    async fn resume(&mut self, runtime: &Runtime, session: &SessionId) -> Result<(), AgentError> {
        let Some((task, from)) = self.place else { return Ok(()) };
        let wish = Follow { session: session.clone(), task: Some(task), from };
        if let Some(connection) = Connection::following(&runtime.home, self.instance, wish).await? {
            self.connection = connection;
        }
        Ok(())
    }

    /// What a line says of the end, if it says that.
    fn heard(&mut self, line: &str) -> Result<Option<HandedOver>, AgentError> {
        match serde_json::from_str::<Reply>(line) {
            Ok(Reply::Ready { .. } | Reply::Waits | Reply::Stops) => Ok(None),
            Ok(Reply::Attached { task, from }) => {
                self.place.get_or_insert((task, from));
                Ok(None)
            }
            Ok(Reply::Gone) => {
                self.place = None;
                Ok(None)
            }
            Ok(Reply::Keeping { node }) => {
                self.announced.push(node);
                Ok(None)
            }
            Ok(Reply::Withdrawn) => Ok(Some(HandedOver::Withdrawn)),
            Ok(Reply::Closed) => Ok(Some(HandedOver::NotTaken)),
            Ok(Reply::Differs) => Ok(Some(HandedOver::Differs)),
            Ok(Reply::Refused { error }) => Err(AgentError::Remote(error)),
            Ok(Reply::Happened { n, event }) => {
                if let Some((_, next)) = &mut self.place {
                    *next = n + 1;
                }
                Ok(self.happened(event))
            }
            // Half a line is what is heard last of a process that died.
            Err(error) if error.is_eof() => Ok(None),
            Err(error) => Err(AgentError::Refused(format!("not a reply: {error}"))),
        }
    }

    /// Passes an event on as one of this process, in which the text is not another's. What is not of its answer is
    /// not for this process.
    fn happened(&mut self, event: SessionEvent) -> Option<HandedOver> {
        let (event, ended) = match event {
            SessionEvent::Accepted { say, node, text, .. } if say == *self.key => {
                self.is_accepted = true;
                self.announced.push(node);
                (SessionEvent::Accepted { say, node, text, remote: false, subagent: false }, None)
            }
            SessionEvent::Finished { says, mut outcome } if says.contains(self.key) => {
                outcome.elsewhere = true;
                (SessionEvent::Finished { says: vec![self.key.clone()], outcome }, Some(HandedOver::Answered))
            }
            SessionEvent::Accepted { .. }
            | SessionEvent::Finished { .. }
            | SessionEvent::Idle
            | SessionEvent::Queued { .. }
            | SessionEvent::Rejected { .. } => return None,
            _ if !self.is_accepted => return None,
            other => (other, None),
        };
        self.log.push(event);
        ended
    }

    /// What became of the message of a turn that can write nothing more. Whoever stops to wait takes what is there:
    /// the node is among it, if there is one.
    async fn ended(
        mut self,
        runtime: &Runtime,
        who: &Principal,
        tree: TreeId,
        mut stop: Cancel,
    ) -> Result<HandedOver, AgentError> {
        while let Some(line) = rest(&mut self.connection, &mut stop).await {
            if let Some(ended) = self.heard(&line)? {
                return Ok(ended);
            }
        }
        let announced = self.announced;
        let written = runtime.read(who, tree, move |rows| {
            for node in announced.into_iter().rev() {
                if rows.node(node)?.is_some() {
                    return Ok(Some(node));
                }
            }
            Ok(None)
        });
        Ok(written.await?.map_or(HandedOver::NotTaken, |said| HandedOver::Cut { said }))
    }
}

/// The next line of the rest that was told, which may take a while to come; whoever is told to stop takes what is there.
async fn rest(connection: &mut Connection, stop: &mut Cancel) -> Option<String> {
    let next = connection.lines.next_line();
    tokio::pin!(next);
    let heard = tokio::select! {
        biased;
        () = stop.cancelled() => timeout(LOOK, next).await,
        heard = timeout(TO_DRAIN, &mut next) => heard,
    };
    heard.ok()?.ok()?
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::UnixStream;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_is_told_to_stop_takes_what_was_told_and_waits_for_no_more() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let (read, write) = here.into_split();
        let mut connection = Connection { lines: BufReader::new(read).lines(), write };
        there.write_all(b"one\ntwo\n").await.unwrap();
        let (handle, mut stop) = Cancel::new();
        assert_eq!(rest(&mut connection, &mut stop).await.as_deref(), Some("one"));
        handle.cancel();
        assert_eq!(rest(&mut connection, &mut stop).await.as_deref(), Some("two"));
        for (mut stop, time) in [(stop, LOOK), (Cancel::never(), TO_DRAIN)] {
            let began = Instant::now();
            assert_eq!(rest(&mut connection, &mut stop).await, None);
            assert!(began.elapsed() >= time && began.elapsed() < 2 * time, "{:?}", began.elapsed());
        }
    }
}
