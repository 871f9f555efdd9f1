//! Handing what was said to the process that holds the session (spec: security §7, agent §1 *Two processes*).
//!
//! Each process that may hold a turn listens on `<home>/run/INSTANCE.sock`. One that finds the session busy sends
//! its message there as one line of JSON, and hears in lines what becomes of it: that it was taken in, that it is a
//! node, and the answer. A message is taken in only while the door of its session is open; whoever finds it closed
//! takes the lease itself.

use std::collections::HashMap;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use loom::{Digest, NodeId, ViewName};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use store::SessionId;
use store::home::{Home, HomeDir};
use store::instance::InstanceId;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::AgentError;
use crate::turn::Replied;

/// Messages that may wait for a session (spec: scale §4 `steering`).
pub const MAX_WAITING: usize = 64;
/// Longest line that is read, in bytes: a message of 16 MiB, escaped.
const MAX_LINE: u64 = 64 * 1024 * 1024;

/// What a process sends to the one that holds a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Message {
    /// The session.
    session: SessionId,
    /// The view of its tree in which it is said.
    #[serde(default)]
    view: ViewName,
    /// What is said. It is text, whatever it looks like: commands are no message (spec: security §5).
    text: String,
}

/// What it hears, a line each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reply")]
pub enum Reply {
    /// No turn of the session is under way here.
    Closed,
    /// Too many wait already, or it cannot be taken in.
    Refused {
        /// Why.
        why: String,
    },
    /// It was taken in and waits.
    Waits,
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

/// A message that was taken in.
#[derive(Debug)]
pub(crate) struct Handed {
    /// The view in which it is said.
    pub(crate) view: ViewName,
    /// What is said.
    pub(crate) text: String,
    replies: mpsc::UnboundedSender<Reply>,
}

impl Handed {
    pub(crate) fn tell(&self, reply: &Reply) {
        // Whoever sent it may have gone; what they said is kept all the same.
        let _ = self.replies.send(reply.clone());
    }

    pub(crate) fn refuse(&self, why: &str) {
        self.tell(&Reply::Refused { why: why.to_owned() });
    }

    pub(crate) fn end(&self, said: NodeId, reply: Result<Replied, AgentError>) {
        let answer = match reply {
            Ok(reply) => Answer {
                said,
                node: reply.answer.map(|made| (made.id, made.short_id, made.text, made.finish)),
                manifest: Some(reply.manifest),
                usage: reply.usage,
                share: reply.share,
                error: reply.error.map(|error| error.to_string()),
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
        self.tell(&Reply::Answered(Box::new(answer)));
    }
}

type Open = HashMap<SessionId, mpsc::Sender<Handed>>;

/// The doors of the sessions whose turns run in this process.
#[derive(Debug, Clone, Default)]
pub struct Doors(Arc<Mutex<Open>>);

impl Doors {
    /// Opens the door of a session, for the time of a turn.
    pub(crate) fn open(&self, session: &SessionId) -> Door {
        let (sender, messages) = mpsc::channel(MAX_WAITING);
        self.lock().insert(session.clone(), sender);
        Door { doors: self.clone(), session: session.clone(), messages, open: true }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message behind the door of its session.
    fn put(&self, message: Message) -> Result<mpsc::UnboundedReceiver<Reply>, Reply> {
        let (replies, heard) = mpsc::unbounded_channel();
        let doors = self.lock();
        let door = doors.get(&message.session).ok_or(Reply::Closed)?;
        let handed = Handed { view: message.view, text: message.text, replies };
        match door.try_send(handed) {
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
pub(crate) struct Door {
    doors: Doors,
    session: SessionId,
    messages: mpsc::Receiver<Handed>,
    open: bool,
}

impl Door {
    /// The next message. The door closes when none waits: whatever was taken in before comes out first.
    pub(crate) fn next(&mut self) -> Option<Handed> {
        if let Ok(handed) = self.messages.try_recv() {
            return Some(handed);
        }
        self.close();
        self.messages.try_recv().ok()
    }

    /// Nothing is taken in from now on.
    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            // Under the lock under which messages are put: none slips in behind it.
            self.doors.lock().remove(&self.session);
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.close();
    }
}

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
    pub fn start(home: &Home, instance: InstanceId, doors: &Doors) -> Result<Self, AgentError> {
        let (near, path) = socket(home, instance)?;
        let listener = UnixListener::bind(near.path()).map_err(|error| AgentError::socket(&error))?;
        let doors = doors.clone();
        let accepting = tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        tokio::spawn(serve(stream, doors.clone()));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "nothing can be handed over to this process any more");
                        return;
                    }
                }
            }
        });
        Ok(Self { path, accepting })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.accepting.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A short name of a socket: a path through a descriptor, as sockets have names of 107 bytes at most.
struct Near {
    folder: std::os::fd::OwnedFd,
    name: String,
}

impl Near {
    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{}", self.folder.as_raw_fd(), self.name))
    }
}

fn socket(home: &Home, instance: InstanceId) -> Result<(Near, PathBuf), AgentError> {
    let dir = home.dir(HomeDir::Run).map_err(|error| AgentError::Socket(error.to_string()))?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(&dir, flags, Mode::empty())
        .map_err(|error| AgentError::socket(&std::io::Error::from(error)))?;
    let name = format!("{instance}.sock");
    let path = dir.join(&name);
    Ok((Near { folder, name }, path))
}

/// Takes in one message and tells what becomes of it.
async fn serve(stream: UnixStream, doors: Doors) {
    let own = rustix::process::geteuid().as_raw();
    if !stream.peer_cred().is_ok_and(|peer| peer.uid() == own) {
        return;
    }
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    let mut reader = BufReader::new(read.take(MAX_LINE));
    if reader.read_line(&mut line).await.is_err() {
        return;
    }
    let put = match serde_json::from_str::<Message>(&line) {
        Ok(message) => doors.put(message),
        Err(error) => Err(Reply::Refused { why: format!("not a message: {error}") }),
    };
    let mut heard = match put {
        Ok(heard) => heard,
        Err(reply) => {
            let _ = send(&mut write, &reply).await;
            return;
        }
    };
    let mut told = send(&mut write, &Reply::Waits).await;
    // Whoever sent it may go away; the message is dealt with all the same.
    while let Some(reply) = heard.recv().await {
        if told.is_ok() {
            told = send(&mut write, &reply).await;
        }
    }
}

async fn send(to: &mut (impl tokio::io::AsyncWrite + Unpin), value: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    to.write_all(&line).await?;
    to.flush().await
}

/// How handing over ended.
#[derive(Debug, Clone, PartialEq)]
pub enum HandedOver {
    /// It was answered.
    Answered(Box<Answer>),
    /// The session is not held there any more, and the message was not kept: take the lease.
    NotTaken,
    /// The process ended after it had kept the message.
    Cut {
        /// The node of what was said.
        said: NodeId,
    },
}

/// Hands a message to the process that holds a session, and waits for the answer.
///
/// # Errors
/// [`AgentError::Refused`] with the other process's reason.
pub async fn hand_over(
    home: &Home,
    instance: InstanceId,
    session: &SessionId,
    view: &ViewName,
    text: &str,
) -> Result<HandedOver, AgentError> {
    let (near, _) = socket(home, instance)?;
    let Ok(stream) = UnixStream::connect(near.path()).await else { return Ok(HandedOver::NotTaken) };
    let own = rustix::process::geteuid().as_raw();
    if !stream.peer_cred().is_ok_and(|peer| peer.uid() == own) {
        return Ok(HandedOver::NotTaken);
    }
    let (read, mut write) = stream.into_split();
    let message = Message { session: session.clone(), view: view.clone(), text: text.to_owned() };
    if send(&mut write, &message).await.is_err() {
        return Ok(HandedOver::NotTaken);
    }
    let mut lines = BufReader::new(read).lines();
    let mut kept = None;
    while let Ok(Some(line)) = lines.next_line().await {
        match serde_json::from_str::<Reply>(&line) {
            Ok(Reply::Waits) => {}
            Ok(Reply::Closed) => return Ok(HandedOver::NotTaken),
            Ok(Reply::Refused { why }) => return Err(AgentError::Refused(why)),
            Ok(Reply::Kept { node }) => kept = Some(node),
            Ok(Reply::Answered(answer)) => return Ok(HandedOver::Answered(answer)),
            Err(error) => return Err(AgentError::Refused(format!("not a reply: {error}"))),
        }
    }
    Ok(kept.map_or(HandedOver::NotTaken, |said| HandedOver::Cut { said }))
}
