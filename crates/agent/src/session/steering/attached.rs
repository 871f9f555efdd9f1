//! Events of a session that another process holds, from any number on.

use std::time::Duration;

use store::home::Home;
use store::instance::InstanceId;
use store::{Principal, SessionId};
use tokio::io::{BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::listener::{is_own, send, socket};
use super::{Follow, Reply, SteeringRequest, VERSION};
use crate::error::AgentError;
use crate::lease::instance_of;
use crate::runtime::Runtime;
use crate::session::Numbered;

/// How long a process may take to greet. One that does not stands still, or has too much to do.
const TO_GREET: Duration = Duration::from_secs(2);

/// A connection to a process that showed that it listens.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) lines: Lines<BufReader<OwnedReadHalf>>,
    /// Open as long as something is waited for.
    pub(super) write: OwnedWriteHalf,
}

impl Connection {
    /// None where nobody listens.
    ///
    /// # Errors
    /// When the home's folder cannot be had.
    pub(super) async fn open(home: &Home, instance: InstanceId) -> Result<Option<Self>, AgentError> {
        let (near, _) = socket(home, instance)?;
        let greeted = async {
            let stream = UnixStream::connect(near.path()).await.ok()?;
            if !is_own(&stream) {
                return None;
            }
            let (read, write) = stream.into_split();
            let mut lines = tokio::io::AsyncBufReadExt::lines(BufReader::new(read));
            let line = lines.next_line().await.ok()??;
            let ready = matches!(serde_json::from_str(&line), Ok(Reply::Ready { version: VERSION }));
            ready.then_some(Self { lines, write })
        };
        Ok(timeout(TO_GREET, greeted).await.ok().flatten())
    }

    /// [`Self::open`] that follows the events of a session.
    pub(super) async fn following(
        home: &Home,
        instance: InstanceId,
        wish: Follow,
    ) -> Result<Option<Self>, AgentError> {
        let Some(mut connection) = Self::open(home, instance).await? else { return Ok(None) };
        let sent = timeout(TO_GREET, send(&mut connection.write, &SteeringRequest::Follow(wish))).await;
        Ok(matches!(sent, Ok(Ok(()))).then_some(connection))
    }
}

/// Events of a session that another process holds, in order, each once.
#[derive(Debug)]
pub struct AttachedEvents {
    connection: Connection,
    task: u64,
    from: u64,
}

impl AttachedEvents {
    /// Which task of its process tells them. Another one numbers its events anew.
    pub const fn task(&self) -> u64 {
        self.task
    }

    /// Number of the first event that is told: what is older stands in the tree.
    pub const fn from(&self) -> u64 {
        self.from
    }

    /// The next event; waits for it. None once nothing is under way there, or the process is gone: with the number
    /// behind the last one, [`attach`] goes on.
    pub async fn next(&mut self) -> Option<Numbered> {
        let line = self.connection.lines.next_line().await.ok()??;
        match serde_json::from_str(&line) {
            Ok(Reply::Happened { n, event }) => Some(Numbered { n, event }),
            _ => None,
        }
    }
}

/// Stops the turn of a session with its subagents, whichever process runs it; what came of it is kept. Whether there was one that could
/// be told.
///
/// # Errors
/// As the store says; when the home's folder cannot be had.
pub async fn stop(runtime: &Runtime, who: &Principal, session: &SessionId) -> Result<bool, AgentError> {
    let holder = runtime.store.lease(who, &session.lease()).await?.and_then(|lease| lease.holder);
    let holder = match holder {
        Some(holder) => Some(holder),
        // Between two turns, while subagents run.
        None => runtime.owner_of_subagents(session).await?,
    };
    let Some(instance) = holder.as_ref().and_then(instance_of) else { return Ok(false) };
    let Some(mut connection) = Connection::open(&runtime.home, instance).await? else { return Ok(false) };
    let wish = SteeringRequest::Stop { session: session.clone() };
    let told = timeout(TO_GREET, async {
        send(&mut connection.write, &wish).await.ok()?;
        connection.lines.next_line().await.ok()?
    });
    let told = told.await.ok().flatten();
    Ok(told.is_some_and(|line| matches!(serde_json::from_str(&line), Ok(Reply::Stops))))
}

/// Attaches to the turn of a session, whichever process runs it, to hear its events from a number on: those of this
/// `task`, if one is named. None where no turn runs, or that task has ended.
///
/// # Errors
/// As the store says; when the home's folder cannot be had.
pub async fn attach(
    runtime: &Runtime,
    who: &Principal,
    session: &SessionId,
    (task, from): (Option<u64>, u64),
) -> Result<Option<AttachedEvents>, AgentError> {
    let holder = runtime.store.lease(who, &session.lease()).await?.and_then(|lease| lease.holder);
    let Some(instance) = holder.as_ref().and_then(instance_of) else { return Ok(None) };
    let wish = Follow { session: session.clone(), task, from };
    let Some(mut connection) = Connection::following(&runtime.home, instance, wish).await? else {
        return Ok(None);
    };
    let line = timeout(TO_GREET, connection.lines.next_line()).await;
    let Ok(Ok(Some(line))) = line else { return Ok(None) };
    match serde_json::from_str(&line) {
        Ok(Reply::Attached { task, from }) => Ok(Some(AttachedEvents { connection, task, from })),
        _ => Ok(None),
    }
}
