//! A server of the owner's: started when it is needed, and anew after it ended.

use std::any::Any;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use context::elicitation::Elicit;
use model::Cancel;
use sandbox::{OutputSink, RunningCommand};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use crate::accepted::SavedTools;
use crate::address::ServerAddress;
use crate::answer::ToolAnswer;
use crate::connection::{Connection, NoAnswer, Offer};
use crate::http_session::Failure;
use crate::offered::OfferedTool;

/// How long it is waited before a server that failed is started again, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Starts the program of a server, with what listens to its output and its input. It blocks, on a thread with a runtime.
pub type StartServer = dyn Fn(OutputSink, OwnedFd) -> Result<StartedServer, String> + Send + Sync;

/// A program that was started.
pub struct StartedServer {
    pub running: RunningCommand,
    /// What it reached by a network of named hosts, and what that refused, in lines; none where it has no such network.
    pub network: Option<Box<dyn Fn() -> Vec<String> + Send + Sync>>,
    /// Kept for as long as it runs.
    pub held: Box<dyn Any + Send>,
}

/// Where a server is.
pub enum ServerPlace {
    /// A program of this machine.
    Program(Box<StartServer>),
    Address(Arc<ServerAddress>),
}

/// A server, whether or not it runs. With it goes its program.
pub struct Server {
    name: String,
    /// How long a call may take.
    within: Duration,
    roots: Vec<PathBuf>,
    saved: SavedTools,
    place: ServerPlace,
    state: Mutex<Running>,
    /// What is known of it without waiting.
    known: StdMutex<ServerState>,
}

#[derive(Default)]
struct Running {
    open: Option<Arc<OpenServer>>,
    /// How often it failed since it last answered, and until when it is not tried again.
    failed: u32,
    pause: Option<(Instant, String)>,
}

struct OpenServer {
    connection: Connection,
    offer: StdMutex<Offer>,
    /// One permit: of whoever asks for the list again.
    lists: Semaphore,
}

impl OpenServer {
    fn new(connection: Connection, offer: Offer) -> Self {
        Self { connection, offer: StdMutex::new(offer), lists: Semaphore::new(1) }
    }

    fn offer(&self) -> MutexGuard<'_, Offer> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a server runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ServerState {
    /// Not needed yet.
    #[default]
    Idle,
    Connected,
    /// Why it does not run.
    Failed(String),
}

/// What came of a call.
#[derive(Debug)]
pub struct CalledTool {
    /// Why there is no answer, in its place.
    pub answer: Result<ToolAnswer, String>,
    /// Whether no word of it is the server's.
    pub is_own: bool,
    /// What the owner should know.
    pub notices: Vec<String>,
}

/// What a server says of itself, and offers.
#[derive(Debug, Clone)]
pub struct ServerOffer {
    /// Name and version that it gives itself.
    pub about: String,
    pub tools: Vec<OfferedTool>,
    /// Why others are none.
    pub refused: Vec<String>,
}

impl Server {
    pub fn new(
        name: &str,
        (within, roots): (Duration, Vec<PathBuf>),
        saved: SavedTools,
        place: ServerPlace,
    ) -> Self {
        let (state, known) = (Mutex::default(), StdMutex::default());
        Self { name: name.to_owned(), within, roots, saved, place, state, known }
    }

    /// Whether it runs, as far as is known without waiting.
    pub fn state(&self) -> ServerState {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was accepted of it.
    pub fn saved(&self) -> &SavedTools {
        &self.saved
    }

    /// Starts it if need be, and asks for its tools.
    ///
    /// # Errors
    /// It does not start, or does not tell them.
    pub async fn offer(&self) -> Result<ServerOffer, String> {
        let (open, _) = self.opened(&Cancel::never()).await.map_err(|none| none.why)?;
        let offer = self.told(open.connection.offer(self.within).await);
        let Offer { tools, refused } = offer.map_err(|none| none.why)?;
        Ok(ServerOffer { about: open.connection.about(), tools, refused })
    }

    /// Calls a tool that was accepted, and starts the server if need be. What it asks meanwhile is asked of `person`; without
    /// one nobody answers.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        (cancel, person): (&Cancel, Option<Arc<dyn Elicit>>),
    ) -> CalledTool {
        let mut notices = Vec::new();
        let answer = self.called((tool, arguments), (cancel, person), &mut notices).await;
        let notices = notices.iter().map(|tool| changed_notice(&self.name, tool)).collect();
        let is_own = answer.as_ref().is_err_and(|none| none.is_own);
        let answer = match answer {
            Ok(answer) => Ok(ToolAnswer { text: self.mask(answer.text), ..answer }),
            Err(none) => Err(format!("server {}: {}", self.name, self.mask(none.why))),
        };
        CalledTool { answer, is_own, notices }
    }

    /// A text without what lets this process in.
    fn mask(&self, text: String) -> String {
        match &self.place {
            ServerPlace::Program(_) => text,
            ServerPlace::Address(address) => address.mask(text),
        }
    }

    /// # Errors
    /// Why there is no answer.
    async fn called(
        &self,
        (tool, arguments): (&str, Map<String, Value>),
        (cancel, person): (&Cancel, Option<Arc<dyn Elicit>>),
        changed: &mut Vec<String>,
    ) -> Result<ToolAnswer, NoAnswer> {
        match self.called_once((tool, arguments.clone()), (cancel, person.clone()), changed).await {
            // It forgot the session: in a new one its tools are asked for again.
            Err(NoAnswer { is_unread: true, .. }) => {
                self.called_once((tool, arguments), (cancel, person), changed).await
            }
            answer => answer,
        }
    }

    async fn called_once(
        &self,
        (tool, arguments): (&str, Map<String, Value>),
        (cancel, person): (&Cancel, Option<Arc<dyn Elicit>>),
        changed: &mut Vec<String>,
    ) -> Result<ToolAnswer, NoAnswer> {
        let (open, marked) = self.opened(cancel).await?;
        changed.extend(marked);
        // Whoever comes while the list is asked for waits for it.
        let asks = open.lists.acquire().await.map_err(|error| error.to_string())?;
        if open.connection.takes_change() {
            let offer =
                open.connection.offer(self.within).await.inspect_err(|_| open.connection.is_to_be_asked());
            let offer = self.told(offer)?;
            let changes = told_otherwise(&open.offer().tools, &offer.tools);
            changed.extend(self.saved.mark(&changes)?);
            *open.offer() = offer;
        }
        drop(asks);
        self.require_as_accepted(&open, tool).map_err(|why| Failure { why, is_own: true })?;
        let answer = open.connection.call(tool, arguments, self.within, (cancel, person)).await;
        match &answer {
            Ok(_) => self.state.lock().await.failed = 0,
            Err(NoAnswer { why, .. }) if !cancel.is_cancelled() && !open.connection.lives().await => {
                self.close(&open, why).await;
            }
            Err(_) => {}
        }
        answer
    }

    /// Refuses a tool that the server tells otherwise than it was accepted.
    fn require_as_accepted(&self, open: &OpenServer, tool: &str) -> Result<(), String> {
        let accepted = self.saved.read()?;
        let again = format!("the owner looks at it with `drawloom mcp accept {}`", self.name);
        let Some(as_accepted) = accepted.usable().find(|accepted| accepted.name == tool) else {
            return Err(match (self.saved.is_there(), self.saved.has_others()) {
                (false, _) => format!("its owner removed the server, and {tool} was not called"),
                (true, true) => format!(
                    "its owner put another program or address in its place, which conversations have that are opened later: {tool} \
                     was not called"
                ),
                (true, false) => format!("{tool} is not accepted as it is now, and was not called: {again}"),
            });
        };
        let offer = open.offer();
        match offer.tools.iter().find(|offered| offered.name == tool) {
            Some(offered) if offered.hash == as_accepted.hash => Ok(()),
            Some(_) => {
                Err(format!("{tool} is told otherwise than it was accepted, and was not called: {again}"))
            }
            None => Err(format!("the server does not offer {tool} now")),
        }
    }

    /// The server as it runs, started if need be, with the names of tools that it tells otherwise for the first time.
    ///
    /// # Errors
    /// It does not start, or did not lately.
    async fn opened(&self, cancel: &Cancel) -> Result<(Arc<OpenServer>, Vec<String>), NoAnswer> {
        let mut cancel = cancel.clone();
        let mut state = tokio::select! {
            state = self.state.lock() => state,
            () = cancel.cancelled() => return Err(stopped()),
        };
        if let Some(open) = state.open.as_ref().filter(|open| open.connection.is_open()) {
            return Ok((Arc::clone(open), Vec::new()));
        }
        state.open = None;
        if let Some((until, why)) = &state.pause
            && let Some(rest) = until.checked_duration_since(Instant::now())
        {
            let seconds = rest.as_secs() + 1;
            return Err(format!("it is not started again for {seconds} s, as it failed: {why}").into());
        }
        let opening = async {
            let connection = Connection::open(&self.place, self.roots.clone(), self.within).await?;
            // Some greet whoever comes, and want to know who asks for their tools.
            let offer = connection.offer(self.within).await;
            let offer = offer.map_err(|none| NoAnswer { wants_login: connection.wants_login(), ..none })?;
            Ok::<_, NoAnswer>((connection, offer))
        };
        let opened = tokio::select! {
            opened = opening => opened,
            () = cancel.cancelled() => return Err(stopped()),
        };
        match opened {
            Ok((connection, offer)) => {
                let marked = self.saved.mark(&offer.tools)?;
                let open = Arc::new(OpenServer::new(connection, offer));
                (state.open, state.pause) = (Some(Arc::clone(&open)), None);
                self.set(ServerState::Connected);
                Ok((open, marked))
            }
            // A login counts at once.
            Err(none) if none.wants_login => self.told(Err(none)),
            Err(none) => {
                state.failed += 1;
                let pause =
                    LONGEST_PAUSE.min(Duration::from_secs(1) * 2_u32.saturating_pow(state.failed - 1));
                state.pause = Some((Instant::now() + pause, none.why.clone()));
                self.told(Err(none))
            }
        }
    }

    /// Ends it: it does not answer any more.
    async fn close(&self, open: &Arc<OpenServer>, why: &str) {
        let mut state = self.state.lock().await;
        if state.open.as_ref().is_some_and(|other| Arc::ptr_eq(other, open)) {
            state.open = None;
            self.set(ServerState::Failed(self.mask(why.to_owned())));
        }
    }

    /// Keeps why it fails, for whoever asks.
    fn told<T>(&self, result: Result<T, NoAnswer>) -> Result<T, NoAnswer> {
        let result = result.map_err(|none| NoAnswer { why: self.mask(none.why), ..none });
        if let Err(none) = &result {
            self.set(ServerState::Failed(none.why.clone()));
        }
        result
    }

    fn set(&self, state: ServerState) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

/// Why a server was not started that nobody waits for.
fn stopped() -> NoAnswer {
    Failure { why: "it was stopped while it started".to_owned(), is_own: true }.into()
}

/// Tools that a program tells otherwise than it did before. Of one that runs for long the others may have been accepted as a
/// newer one tells them.
fn told_otherwise(before: &[OfferedTool], now: &[OfferedTool]) -> Vec<OfferedTool> {
    now.iter().filter(|tool| !before.contains(tool)).cloned().collect()
}

/// What the owner is told of a tool that is told otherwise.
fn changed_notice(server: &str, tool: &str) -> String {
    format!(
        "{server}:{tool} is told otherwise by its server than you accepted it, and is switched off: `drawloom mcp accept \
         {server}` shows how"
    )
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use loom::Digest;

    use super::*;

    #[test]
    fn what_a_program_tells_as_before_is_no_change_of_it() {
        let tool = |name: &str, says: &str| OfferedTool {
            name: name.to_owned(),
            description: says.to_owned(),
            schema: Value::Null,
            hash: Digest::of(says.as_bytes()),
        };
        let before = [tool("add", "Adds."), tool("look", "Looks.")];
        let now = [tool("add", "Adds."), tool("look", "Looks and sends."), tool("page", "Reads.")];
        let names = told_otherwise(&before, &now).into_iter().map(|tool| tool.name).collect::<Vec<_>>();
        assert_eq!(names, ["look", "page"]);
        assert!(told_otherwise(&now, &now).is_empty());
    }
}
