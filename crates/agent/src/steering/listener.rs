//! The socket on which this process takes in what others say to its sessions.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use store::home::{Home, HomeDir};
use store::instance::InstanceId;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Message, RemoteInput, Reply, VERSION};
use crate::error::AgentError;
use crate::event::SessionEvent;
use crate::session::{Handle, Numbered, Sessions};

/// Processes that are listened to at once; others wait to be greeted.
pub const MAX_PEERS: usize = 128;
/// Longest line that is read, in bytes: a message of 16 MiB, escaped.
const MAX_LINE: u64 = 64 * 1024 * 1024;
/// How long a process that connected may take to say what it wants.
const TO_SAY: Duration = Duration::from_secs(10);
/// How long it may take to read one reply.
const TO_READ: Duration = Duration::from_secs(5);
/// How long to wait when the system has no descriptor left for one more.
const TO_RECOVER: Duration = Duration::from_millis(100);

/// Listens for messages to the sessions of this process until it is dropped.
#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    accepting: JoinHandle<()>,
}

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
        let accepting = tokio::spawn(accept(listener, sessions.clone()));
        Ok(Self { path, accepting })
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
async fn accept(listener: UnixListener, sessions: Sessions) {
    let places = Arc::new(Semaphore::new(MAX_PEERS));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let sessions = sessions.clone();
                tokio::spawn(async move {
                    serve(stream, &sessions).await;
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
    let name = format!("{instance}.sock");
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

/// Takes in one message, and tells what becomes of it.
async fn serve(stream: UnixStream, sessions: &Sessions) {
    if !is_own(&stream) {
        return;
    }
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    let said = async {
        send(&mut write, &Reply::Ready { version: VERSION }).await?;
        BufReader::new(read.take(MAX_LINE)).read_line(&mut line).await
    };
    // Whoever connects and says nothing, or goes away, takes nobody's place.
    // A line without its end is half a message: whoever sent it counts it as not sent.
    if !matches!(timeout(TO_SAY, said).await, Ok(Ok(1..))) || !line.ends_with('\n') {
        return;
    }
    let refused = match serde_json::from_str::<Message>(&line) {
        Ok(message) => {
            drop(line);
            match sessions.get(&message.session) {
                Some(session) => return follow(write, &session, message).await,
                None => Reply::Closed,
            }
        }
        Err(error) => Reply::Refused { why: format!("not a message: {error}") },
    };
    let _ = timeout(TO_READ, send(&mut write, &refused)).await;
}

/// Says a message in its session, and passes on what happens there until it is answered. Whoever said it may be gone
/// meanwhile: the message is dealt with all the same.
async fn follow(mut write: OwnedWriteHalf, session: &Handle, message: Message) {
    let (key, mut events) = (message.key.clone(), session.events(session.next_event()));
    let (remote, mut replies) = RemoteInput::new(message);
    if !session.take_remote(remote) {
        let _ = timeout(TO_READ, send(&mut write, &Reply::Closed)).await;
        return;
    }
    let (mut accepted, mut replying) = (false, true);
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
                    accepted |= matches!(&event, SessionEvent::Accepted { say, .. } if *say == key);
                    if !accepted {
                        continue;
                    }
                    (Reply::Happened { n, event }, None)
                }
                None => return,
            },
        };
        let last = match &reply {
            Reply::Happened { event: SessionEvent::Finished { says, .. }, .. } => says.contains(&key),
            Reply::Closed | Reply::Differs | Reply::Refused { .. } => true,
            _ => false,
        };
        if !matches!(timeout(TO_READ, send(&mut write, &reply)).await, Ok(Ok(()))) {
            return;
        }
        if let Some(written) = written {
            let _ = written.send(());
        }
        if last {
            return;
        }
    }
}

pub(super) async fn send(
    to: &mut (impl tokio::io::AsyncWrite + Unpin),
    value: &impl Serialize,
) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    to.write_all(&line).await?;
    to.flush().await
}

#[cfg(test)]
mod tests;
