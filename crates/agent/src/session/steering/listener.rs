//! The socket on which this process takes in what others say to its sessions.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use store::home::{Home, HomeDir};
use store::instance::InstanceId;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
    BufReader,
};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Follow, Message, RemoteInput, Reply, SteeringRequest, VERSION};
use crate::error::AgentError;
use crate::event::SessionEvent;
use crate::session::{Handle, Numbered, SessionOperation, Sessions};

/// Processes that are listened to at once; others wait to be greeted.
pub const MAX_PEERS: usize = 128;
/// Longest line that is read, in bytes: a message and what is sent along.
pub(super) const MAX_LINE: u64 = 64 * 1024 * 1024;
/// Most bytes that are read behind a message: that it is withdrawn.
const MAX_WORD: u64 = 4096;
/// How long a process that connected may take to say what it wants.
const TO_SAY: Duration = Duration::from_secs(10);
/// How long it may take to read a part of a reply.
const TO_READ: Duration = Duration::from_secs(5);
/// Bytes of such a part.
const PART: usize = 64 * 1024;
/// How long a process that ends waits for others to hear the last of what they asked for.
const TO_FINISH: Duration = Duration::from_secs(10);
/// How long to wait when the system has no descriptor left for one more.
const TO_RECOVER: Duration = Duration::from_millis(100);

/// Listens for messages to the sessions of this process until it is dropped.
#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    accepting: JoinHandle<()>,
    answering: Answering,
}

/// Permits, of [`MAX_PEERS`], of those who asked for something and did not hear the end of it.
type Answering = Arc<Semaphore>;

impl Listener {
    /// Starts listening as an instance. The socket can be reached by this user alone.
    ///
    /// # Errors
    /// [`AgentError::Socket`] when the home's folder takes no socket.
    pub fn start(home: &Home, instance: InstanceId, sessions: &Sessions) -> Result<Self, AgentError> {
        let (near, path) = socket(home, instance)?;
        let listener = UnixListener::bind(near.path()).map_err(|error| AgentError::socket(&error))?;
        // Its folder is open to this user alone; the socket says so once more (spec: security §7).
        std::fs::set_permissions(near.path(), std::fs::Permissions::from_mode(0o600))
            .map_err(|error| AgentError::socket(&error))?;
        let answering = Arc::new(Semaphore::new(MAX_PEERS));
        let accepting = tokio::spawn(accept(listener, sessions.clone(), Arc::clone(&answering)));
        Ok(Self { path, accepting, answering })
    }

    /// Takes nobody in any more, and waits until whoever is there has heard the last reply: the sessions are closed.
    pub async fn finish(self) {
        self.accepting.abort();
        let all = self.answering.acquire_many(MAX_PEERS as u32);
        if timeout(TO_FINISH, all).await.is_err() {
            tracing::warn!("a process that said something here did not hear the end of it");
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.accepting.abort();
        // What is left of a process that was killed goes with its other files, once it is known to be dead.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Takes in whoever connects, a bounded number of them at once.
async fn accept(listener: UnixListener, sessions: Sessions, answering: Answering) {
    let places = Arc::new(Semaphore::new(MAX_PEERS));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let (sessions, answering) = (sessions.clone(), Arc::clone(&answering));
                tokio::spawn(async move {
                    serve(stream, &sessions, &answering).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "nobody could be listened to; it is tried again");
                tokio::time::sleep(TO_RECOVER).await;
            }
        }
    }
}

/// A short name of a socket: a path through a descriptor, as sockets have names of 107 bytes at most.
pub(super) struct ShortSocketPath {
    folder: std::os::fd::OwnedFd,
    name: String,
}

impl ShortSocketPath {
    pub(super) fn path(&self) -> PathBuf {
        workspace::descriptor_path(&self.folder).join(&self.name)
    }
}

/// The socket of an instance: a name for now, and its path.
pub(super) fn socket(home: &Home, instance: InstanceId) -> Result<(ShortSocketPath, PathBuf), AgentError> {
    let dir = home.dir(HomeDir::Run).map_err(|error| AgentError::Socket(error.to_string()))?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(&dir, flags, Mode::empty())
        .map_err(|error| AgentError::socket(&std::io::Error::from(error)))?;
    let name = instance.socket_name();
    let path = dir.join(&name);
    Ok((ShortSocketPath { folder, name }, path))
}

/// Whether the process at the other end is this user's. One that cannot be asked about is not.
pub(super) fn is_own(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    is_of(stream.peer_cred().ok().map(|peer| peer.uid()), own)
}

fn is_of(peer: Option<u32>, own: u32) -> bool {
    peer == Some(own)
}

/// Does what one process asks: takes in a message, or tells events.
async fn serve(stream: UnixStream, sessions: &Sessions, answering: &Answering) {
    if !is_own(&stream) {
        return;
    }
    let (read, mut write) = stream.into_split();
    let (mut read, mut line) = (BufReader::new(read.take(MAX_LINE)), String::new());
    let said = async {
        send(&mut write, &Reply::Ready { version: VERSION }).await?;
        read.read_line(&mut line).await
    };
    // Whoever connects and says nothing, or goes away, takes nobody's place.
    // A line without its end is half a message: whoever sent it counts it as not sent.
    if !matches!(timeout(TO_SAY, said).await, Ok(Ok(1..))) || !line.ends_with('\n') {
        return;
    }
    let asked = serde_json::from_str::<SteeringRequest>(&line);
    drop(line);
    let _answering = answering.acquire().await;
    let refused = match asked {
        Ok(SteeringRequest::Say(message)) => match (message.problem(), sessions.get(&message.session)) {
            (Some(why), _) => Reply::Refused { error: AgentError::Refused(why).failure() },
            (None, Some(session)) => {
                read.get_mut().set_limit(MAX_WORD);
                take(read, write, &session, *message).await;
                return;
            }
            (None, None) => Reply::Closed,
        },
        Ok(SteeringRequest::Follow(Follow { session, task, from })) => {
            let found = sessions.get(&session);
            match found.filter(|found| task.is_none_or(|task| found.task_number() == task)) {
                Some(session) => {
                    tell(read, write, &session, from).await;
                    return;
                }
                None => Reply::Gone,
            }
        }
        Ok(SteeringRequest::Stop { session }) => {
            match sessions.get(&session).filter(|found| !found.is_idle()) {
                Some(session) if session.send(SessionOperation::Stop).await.is_ok() => Reply::Stops,
                _ => Reply::Gone,
            }
        }
        Ok(SteeringRequest::Withdraw) => Reply::Gone,
        Err(error) => {
            Reply::Refused { error: AgentError::Refused(format!("not a message: {error}")).failure() }
        }
    };
    let _ = write_reply(&mut write, &refused).await;
}

/// Tells events from a number on, until nothing is under way or whoever asked is gone. One that does not read is left;
/// it asks again where it was.
async fn tell(
    mut read: impl AsyncRead + Unpin,
    mut write: OwnedWriteHalf,
    session: &Handle,
    from: u64,
) -> Option<()> {
    let mut events = session.events(from);
    let attached = Reply::Attached { task: session.task_number(), from: events.next_number() };
    write_reply(&mut write, &attached).await?;
    loop {
        let Numbered { n, event } = match events.next_held() {
            Some(found) => found,
            None if session.is_idle() => return Some(()),
            None => tokio::select! {
                event = events.next() => event?,
                // Nothing more is said on this connection: it has ended.
                _ = read.read_u8() => return None,
            },
        };
        write_reply(&mut write, &Reply::Happened { n, event }).await?;
    }
}

/// None where it is not read: each part of it in time, however long it is.
async fn write_reply(write: &mut OwnedWriteHalf, reply: &Reply) -> Option<()> {
    let line = line_of(reply).ok()?;
    for part in line.chunks(PART) {
        timeout(TO_READ, send_line(write, part)).await.ok()?.ok()?;
    }
    Some(())
}

/// Says a message in its session, and passes on what happens there until it is answered. Whoever said it may withdraw
/// it, or be gone meanwhile: then the message is dealt with all the same.
async fn take(
    read: impl AsyncBufRead + Unpin,
    mut write: OwnedWriteHalf,
    session: &Handle,
    message: Message,
) -> Option<()> {
    let (key, mut events) = (message.key.clone(), session.events_of(message.key.clone()));
    let attached = Reply::Attached { task: session.task_number(), from: events.next_number() };
    write_reply(&mut write, &attached).await?;
    let (remote, mut replies) = RemoteInput::new(message);
    if !session.take_remote(remote) {
        return write_reply(&mut write, &Reply::Closed).await;
    }
    let (mut accepted, mut replying, mut reading) = (false, true, true);
    let mut more = read.lines();
    loop {
        let (reply, written) = tokio::select! {
            biased;
            receipt = replies.recv(), if replying => match receipt {
                Some(receipt) => (receipt.reply, receipt.written),
                None => {
                    replying = false;
                    continue;
                }
            },
            event = events.next() => match event {
                Some(Numbered { n, event }) => {
                    // Where it is left behind, the end is the first it hears of.
                    accepted |= match &event {
                        SessionEvent::Accepted { say, .. } => *say == key,
                        SessionEvent::Finished { says, .. } => says.contains(&key),
                        _ => false,
                    };
                    if !accepted {
                        continue;
                    }
                    (Reply::Happened { n, event }, None)
                }
                None => return None,
            },
            line = more.next_line(), if reading => {
                reading = matches!(line, Ok(Some(_)));
                let asked = line.ok().flatten().and_then(|line| serde_json::from_str(&line).ok());
                if let Some(SteeringRequest::Withdraw) = asked {
                    session.withdraw(key.clone()).await;
                }
                continue;
            }
        };
        let last = match &reply {
            Reply::Happened { event: SessionEvent::Finished { says, .. }, .. } => says.contains(&key),
            Reply::Closed | Reply::Differs | Reply::Withdrawn | Reply::Refused { .. } => true,
            _ => false,
        };
        write_reply(&mut write, &reply).await?;
        if let Some(written) = written {
            let _ = written.send(());
        }
        if last {
            return Some(());
        }
    }
}

pub(super) async fn send(to: &mut (impl AsyncWrite + Unpin), value: &impl Serialize) -> std::io::Result<()> {
    send_line(to, &line_of(value)?).await
}

/// A value as it is sent.
pub(super) fn line_of(value: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

pub(super) async fn send_line(to: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> std::io::Result<()> {
    to.write_all(line).await?;
    to.flush().await
}

#[cfg(test)]
mod tests;
