//! One run of a server's program, and the conversation with it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use context::elicitation::Elicit;
use model::Cancel;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CustomResult, ListToolsRequest, ListToolsResult,
    PaginatedRequestParams, PingRequest, ServerResult,
};
use rmcp::service::{ClientInitializeError, PeerRequestOptions, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::{ErrorData, RoleClient, serve_client};
use sandbox::{Ending, Notice, Outcome, SandboxError};
use serde_json::{Map, Value};
use text::terminal::{explicit, one_line};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::answer::ToolAnswer;
use crate::elicitation::RunningCalls;
use crate::handler::Handler;
use crate::http_session::{Failure, HttpSession, shortened};
use crate::life::Life;
use crate::offered::OfferedTool;
use crate::server::{ServerPlace, StartedServer};
use crate::streams::{ErrorsTail, LONGEST_MESSAGE, Reading, Streams, UNREAD};

/// How long a server may take until it is ready: `npx` and `uvx` may fetch it first.
pub const READY: Duration = Duration::from_secs(60);
/// How long it is waited for what a server is told besides, and for how it ended.
const SOON: Duration = Duration::from_secs(1);
/// Tools of a server at most, and pages that it tells them in.
const MOST_TOOLS: usize = 256;
const PAGES: usize = 32;
/// Error of a call before which a person has to be at an address (MCP 2025-11-25).
const URL_ELICITATION_REQUIRED: i32 = -32042;
/// Addresses of such an error that are named, and characters of one.
const MOST_ADDRESSES: usize = 3;
const LONGEST_ADDRESS: usize = 2_000;

/// A server that runs.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Handler>,
    is_changed: Arc<AtomicBool>,
    calls: RunningCalls,
    life: Life,
}

/// Why a call has no answer.
#[derive(Debug)]
pub(crate) struct NoAnswer {
    pub(crate) why: String,
    /// Whether the server did not read it, as it forgot the session.
    pub(crate) is_unread: bool,
    /// Whether a login is what it lacks.
    pub(crate) wants_login: bool,
    /// Whether no word of it is the server's.
    pub(crate) is_own: bool,
}

impl From<String> for NoAnswer {
    fn from(why: String) -> Self {
        Failure::told(why).into()
    }
}

impl From<Failure> for NoAnswer {
    fn from(Failure { why, is_own }: Failure) -> Self {
        Self { why, is_unread: false, wants_login: false, is_own }
    }
}

/// The run of a server's program. With it goes the program.
pub(crate) struct RunOfServer {
    errors: ErrorsTail,
    network: Option<Box<dyn Fn() -> Vec<String> + Send + Sync>>,
    is_too_long: Arc<AtomicBool>,
    reading: Reading,
    ended: watch::Receiver<Option<String>>,
    waiting: AbortHandle,
}

/// Tools that a server offers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offer {
    pub(crate) tools: Vec<OfferedTool>,
    /// Why others are none.
    pub(crate) refused: Vec<String>,
}

impl Drop for RunOfServer {
    fn drop(&mut self) {
        self.waiting.abort();
    }
}

impl RunOfServer {
    fn of(StartedServer { mut running, network, held }: StartedServer, streams: &Streams) -> Self {
        let (sender, ended) = watch::channel(None);
        let names_hosts = network.is_some();
        let waiting = tokio::spawn(async move {
            let outcome = running.outcome().await;
            drop(held);
            sender.send_replace(Some(told(&outcome, names_hosts)));
        });
        let (errors, is_too_long) = (streams.errors.clone(), Arc::clone(&streams.is_too_long));
        let reading = streams.reading.clone();
        Self { errors, network, is_too_long, reading, ended, waiting: waiting.abort_handle() }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Why it says nothing any more.
    pub(crate) async fn why_silent(&self) -> String {
        if self.is_too_long.load(Ordering::Relaxed) {
            return format!("it said more than {} MiB in one message, and was ended", LONGEST_MESSAGE >> 20);
        }
        if self.reading.has_stopped() {
            return format!("it read nothing of what it was told for {} s, and was ended", UNREAD.as_secs());
        }
        let how = self.end().await;
        self.with_errors(how.unwrap_or_else(|| "it closed its output".to_owned()))
    }

    /// How it ended, if it does soon. What it wrote to standard error is read by then.
    async fn end(&self) -> Option<String> {
        let mut ended = self.ended.clone();
        timeout(SOON, ended.wait_for(Option::is_some)).await.ok()?.ok()?.clone()
    }

    /// Something about it, with what it wrote to standard error and what its network did behind it.
    fn with_errors(&self, mut why: String) -> String {
        let errors = self.errors.text();
        if !errors.is_empty() {
            why += &format!("; the end of its errors:\n{errors}");
        }
        let network = self.network.as_ref().map(|lines| lines()).unwrap_or_default();
        if !network.is_empty() {
            why += &format!("\n[network]\n{}", network.join("\n"));
        }
        why
    }
}

/// How a program ended, in words; `names_hosts` says that its entry names hosts.
fn told(outcome: &Result<Outcome, SandboxError>, names_hosts: bool) -> String {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return error.to_string(),
    };
    let how = match &outcome.ending {
        Ending::Exited(code) => format!("it ended with exit {code}"),
        Ending::Signaled(signal) => format!("it was ended by signal {signal}"),
        Ending::TimedOut | Ending::Cancelled => "it was ended".to_owned(),
        Ending::OverLimit(limit) => format!("it was ended: over the limit of {limit}"),
    };
    match !names_hosts && outcome.notices.contains(&Notice::NetworkSeemsMissing) {
        true => format!(
            "{how}, and seems to need its network, which is off: `net` in its entry (`--net HOST`) names hosts"
        ),
        false => how,
    }
}

impl Connection {
    /// Starts a server, or a session with it, and waits until it is ready. One at an address is ready within a time that the
    /// owner chose.
    ///
    /// # Errors
    /// It does not start, ends, or says something else than a server does.
    pub(crate) async fn open(
        place: &ServerPlace,
        roots: Vec<PathBuf>,
        within: Duration,
    ) -> Result<Self, NoAnswer> {
        let is_changed = Arc::new(AtomicBool::default());
        let calls = RunningCalls::default();
        let handler = Handler { roots, calls: calls.clone(), is_changed: Arc::clone(&is_changed) };
        let (life, ready, within) = match place {
            ServerPlace::Program(start) => {
                let (streams, sink, its_input) = Streams::open().map_err(|error| error.to_string())?;
                let run = RunOfServer::of(start(sink, its_input)?, &streams);
                let transport = AsyncRwTransport::new_client(streams.output, streams.input)
                    .with_max_line_length(LONGEST_MESSAGE);
                (Life::Program(run), timeout(READY, serve_client(handler, transport)).await, READY)
            }
            ServerPlace::Address(address) => {
                let session = HttpSession::of(address);
                let transport = StreamableHttpClientTransport::with_client(session.clone(), session.config());
                (Life::Address(session), timeout(within, serve_client(handler, transport)).await, within)
            }
        };
        match ready {
            Ok(Ok(service)) => Ok(Self { service, is_changed, calls, life }),
            Ok(Err(error)) => {
                let failure = match (&life, &error) {
                    (Life::Address(session), ClientInitializeError::TransportError { error, .. }) => {
                        session.told(&*error.error)
                    }
                    (life, ClientInitializeError::JsonRpcError(error)) => {
                        let why =
                            format!("it answered with error {}: {}", error.code.0, shortened(&error.message));
                        Failure::told(match life {
                            Life::Program(run) => {
                                run.end().await;
                                run.with_errors(why)
                            }
                            Life::Address(_) => why,
                        })
                    }
                    _ => Failure::told(match life.why_silent().await {
                        why if why.is_empty() => error.to_string(),
                        why => why,
                    }),
                };
                Err(NoAnswer { wants_login: life.wants_login(), ..failure.into() })
            }
            Err(_) => {
                let why = format!("it was not ready within {} s", within.as_secs());
                Err(NoAnswer::from(match &life {
                    Life::Program(run) => run.with_errors(why),
                    Life::Address(_) => why,
                }))
            }
        }
    }

    /// Whether it can still be spoken with.
    pub(crate) fn is_open(&self) -> bool {
        !self.service.is_transport_closed() && !self.life.has_ended()
    }

    /// Whether a login is what it lacks.
    pub(crate) fn wants_login(&self) -> bool {
        self.life.wants_login()
    }

    /// Name and version that the server gives itself.
    pub(crate) fn about(&self) -> String {
        let info = self.service.peer_info();
        let about =
            info.and_then(|info| info.server_info.as_ref().map(|it| format!("{} {}", it.name, it.version)));
        one_line(&about.unwrap_or_default()).chars().take(100).collect()
    }

    /// Whether the server said since the last time that its tools are others.
    pub(crate) fn takes_change(&self) -> bool {
        self.is_changed.swap(false, Ordering::SeqCst)
    }

    /// Has the tools be asked for again.
    pub(crate) fn is_to_be_asked(&self) {
        self.is_changed.store(true, Ordering::SeqCst);
    }

    /// Tools as the server tells them now.
    ///
    /// # Errors
    /// It does not tell them in time.
    pub(crate) async fn offer(&self, within: Duration) -> Result<Offer, NoAnswer> {
        let listing = async {
            let (mut offer, mut cursor) = (Offer::default(), None);
            for _ in 0..PAGES {
                let asked = PaginatedRequestParams::default().with_cursor(cursor);
                let page = match self.service.list_tools(Some(asked.clone())).await {
                    Err(ServiceError::UnexpectedResponse) => {
                        let (page, malformed) = self.sound_tools(asked).await?;
                        offer.refused.extend(malformed);
                        page
                    }
                    page => page?,
                };
                for tool in &page.tools {
                    if offer.tools.len() + offer.refused.len() >= MOST_TOOLS {
                        offer.refused.push(format!("it has more than {MOST_TOOLS} tools"));
                        return Ok(offer);
                    }
                    match OfferedTool::of(tool) {
                        Ok(tool) if offer.tools.iter().any(|other| other.name == tool.name) => {
                            offer.refused.push(format!("{} is told twice", tool.name));
                        }
                        Ok(tool) => offer.tools.push(tool),
                        Err(why) => offer.refused.push(why),
                    }
                }
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            Ok::<_, ServiceError>(offer)
        };
        match timeout(within, listing).await {
            Ok(Ok(offer)) => Ok(offer),
            Ok(Err(error)) => Err(self.why(error).await.into()),
            Err(_) => Err(format!("it did not list its tools within {} s", within.as_secs()).into()),
        }
    }

    /// A page of tools of which some are malformed: the others, and why those are none.
    async fn sound_tools(
        &self,
        asked: PaginatedRequestParams,
    ) -> Result<(ListToolsResult, Vec<String>), ServiceError> {
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(asked));
        let ServerResult::CustomResult(CustomResult(told)) = self.service.send_request(request).await? else {
            return Err(ServiceError::UnexpectedResponse);
        };
        let told_tools = told["tools"].as_array().ok_or(ServiceError::UnexpectedResponse)?;
        let (mut tools, mut malformed) = (Vec::new(), Vec::new());
        for tool in told_tools.iter().take(MOST_TOOLS) {
            match serde_json::from_value(tool.clone()) {
                Ok(tool) => tools.push(tool),
                Err(error) => {
                    let name = shortened(tool["name"].as_str().unwrap_or_default());
                    malformed.push(format!("{name:?} is malformed: {}", shortened(&error.to_string())));
                }
            }
        }
        let mut page = ListToolsResult::with_all_items(tools);
        page.next_cursor = told["nextCursor"].as_str().map(str::to_owned);
        Ok((page, malformed))
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// It did not answer, or with an error.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        within: Duration,
        (cancel, person): (&Cancel, Option<Arc<dyn Elicit>>),
    ) -> Result<ToolAnswer, NoAnswer> {
        let running = self.calls.begin(person);
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.service.send_cancellable_request(request, PeerRequestOptions::no_options());
        let mut handle = match timeout(within, sent).await {
            Ok(Ok(handle)) => handle,
            Ok(Err(error)) => return Err(self.why(error).await.into()),
            Err(_) => return Err("it does not read what it is told".to_owned().into()),
        };
        let mut cancel = cancel.clone();
        let mut deadline = Instant::now() + within;
        let (answered, why) = loop {
            tokio::select! {
                answered = &mut handle.rx => break (Some(answered), ""),
                () = cancel.cancelled() => break (None, "it was stopped"),
                () = sleep_until(deadline) => match running.extended(within) {
                    Some(later) => deadline = later,
                    None => break (None, "timed out"),
                },
            }
        };
        let _ = timeout(SOON, running.end()).await;
        let Some(answered) = answered else {
            // A server that reads nothing is not told.
            let _ = timeout(SOON, handle.cancel(Some(why.to_owned()))).await;
            let why = match why {
                "timed out" => format!("it did not answer within {} s", within.as_secs()),
                stopped => stopped.to_owned(),
            };
            return Err(why.into());
        };
        match answered.unwrap_or(Err(ServiceError::TransportClosed)) {
            Ok(ServerResult::CallToolResult(result)) => Ok(ToolAnswer::of(result)),
            Ok(_) => Err("it answered with something that is no result of a tool".to_owned().into()),
            Err(error) => {
                let is_unread = is_unread(&error);
                Err(NoAnswer { is_unread, ..self.why(error).await.into() })
            }
        }
    }

    /// Whether it answers at all.
    pub(crate) async fn lives(&self) -> bool {
        if !self.is_open() {
            return false;
        }
        let ping = ClientRequest::PingRequest(PingRequest::default());
        matches!(timeout(SOON, self.service.send_request(ping)).await, Ok(Ok(_)))
    }

    async fn why(&self, error: ServiceError) -> Failure {
        match error {
            ServiceError::McpError(error) => Failure::told(format!(
                "it answered with error {}: {}{}",
                error.code.0,
                error.message,
                addresses(&error)
            )),
            ServiceError::TransportClosed => Failure::told(self.life.why_silent().await),
            ServiceError::TransportSend(error) => self.life.why_unsent(&*error.error).await,
            error => Failure::told(error.to_string()),
        }
    }
}

/// Addresses that a server wants a person to have been at before it answers, a line each, with what is done about them.
fn addresses(error: &ErrorData) -> String {
    let wanted = error.data.as_ref().filter(|_| error.code.0 == URL_ELICITATION_REQUIRED);
    let wanted = wanted.and_then(|data| data["elicitations"].as_array()).into_iter().flatten();
    let wanted =
        wanted.filter_map(|one| one["url"].as_str()).filter(|url| is_plain(url)).take(MOST_ADDRESSES);
    let lines: String = wanted
        .map(|url| {
            format!("\n{}", explicit(&one_line(url)).chars().take(LONGEST_ADDRESS).collect::<String>())
        })
        .collect();
    if lines.is_empty() {
        return lines;
    }
    format!(
        "\nIt wants a person to have been there first; nothing was opened. The call is made again afterwards:{lines}"
    )
}

/// Whether it is an address of the web that names no user, which would hide its host.
fn is_plain(url: &str) -> bool {
    let host = url.strip_prefix("https://").and_then(|rest| rest.split(['/', '?', '#', '\\']).next());
    host.is_some_and(|host| !host.contains('@'))
}

/// Whether a request was not read, as the server had forgotten the session.
fn is_unread(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else { return false };
    matches!(
        error.error.downcast_ref::<StreamableHttpError<Failure>>(),
        Some(StreamableHttpError::SessionExpired)
    )
}
