//! Any server that speaks OpenAI's HTTP, by base URL.
//!
//! The connection is kept narrow on purpose: no proxy and no redirect to another host unless asked,
//! no cookies, no content encoding (the body is kept as received), one TLS provider. The key goes
//! into a header and nowhere else.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::redirect::Policy;
use tokio::time::Instant;

use crate::capture::{Clock, RawResponse};
use crate::dialect::{Dialect, DialectName};
use crate::encoded::{EncodeError, Encoded};
use crate::endpoint::{Endpoint, EndpointError};
use crate::error::ModelError;
use crate::headers::KeptHeaders;
use crate::http_date;
use crate::model::{Call, Exchange, Model, ModelInfo, Place, SourceKind};
use crate::openai_chat::OpenAiChat;
use crate::openai_completions::OpenAiCompletions;
use crate::prompt::{Params, Prompt};
use crate::receive::{Head, Io, Sent, Wire, receive};
use crate::retry::{self, Attempt, RetryPolicy};
use crate::server_text::sanitised;

pub use crate::receive::Timeouts;

/// The most of a model list that is read, in bytes.
const MAX_LIST_BYTES: usize = 4 * 1024 * 1024;
/// How long a model list may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// A key for a provider. It is shown nowhere, not even in debug output.
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    /// A key as it stands in the configuration.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// How to reach a server.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Base URL, with or without `/v1`.
    pub base_url: String,
    /// The key, where the server wants one.
    pub key: Option<ApiKey>,
    /// Allows plain `http` to a public host.
    pub insecure_http: bool,
    /// A proxy to go through; the environment's proxies are never used.
    pub proxy: Option<String>,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// How to repeat failed requests.
    pub retry: RetryPolicy,
    /// The wall clock.
    pub clock: Clock,
}

impl Connection {
    /// A connection with the usual limits.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            key: None,
            insecure_http: false,
            proxy: None,
            timeouts: Timeouts::default(),
            retry: RetryPolicy::patient(),
            clock: Clock::system(),
        }
    }
}

/// Why a server cannot even be addressed.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Its base URL must not be used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The key cannot stand in a header.
    #[error("the API key holds characters that no header may hold")]
    Key,
    /// The HTTP client cannot be made.
    #[error("no HTTP client: {0}")]
    Client(#[source] reqwest::Error),
}

impl SetupError {
    /// A stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Endpoint(error) => error.code(),
            Self::Key => "bad_key",
            Self::Client(_) => "no_http_client",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Endpoint(error) => error.hint(),
            Self::Key => "enter the key again, without line ends",
            Self::Client(_) => "check the proxy setting and the system's certificates",
        }
    }
}

/// A model behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct OpenAiCompatible {
    info: ModelInfo,
    chat: OpenAiChat,
    server: Server,
}

impl OpenAiCompatible {
    /// A model on a server. Opens no connection. `info.place` may declare a server to be local that
    /// is not on a loopback address; see [`place_of`].
    ///
    /// # Errors
    /// When the base URL or the key cannot be used.
    pub fn new(info: ModelInfo, chat: OpenAiChat, connection: Connection) -> Result<Self, SetupError> {
        Ok(Self { info, chat, server: Server::new(connection)? })
    }
}

#[async_trait]
impl Model for OpenAiCompatible {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn header_names(&self) -> &'static [&'static str] {
        match self.server.authorization {
            Some(_) => &["accept", "authorization", "content-length", "content-type", "host", "user-agent"],
            None => &["accept", "content-length", "content-type", "host", "user-agent"],
        }
    }

    fn encode(&self, prompt: &Prompt, params: &Params) -> Result<Encoded, EncodeError> {
        self.info.admit(prompt, params)?;
        match prompt {
            Prompt::Raw(_) => OpenAiCompletions.encode(prompt, params, &self.info.name),
            Prompt::Chat(_) => self.chat.encode(prompt, params, &self.info.name),
        }
    }

    async fn send(
        &self,
        request: &Encoded,
        _call: &Call,
        exchange: Exchange<'_>,
    ) -> Result<RawResponse, ModelError> {
        let post = Post { server: &self.server, request, source: self.info.kind };
        retry::send(&self.server.connection.retry, &post, &mut Io::new(exchange)).await
    }
}

/// Where text sent to a base URL goes, if the owner has said nothing of it.
///
/// # Errors
/// When the base URL cannot be used.
pub fn place_of(base_url: &str) -> Result<Place, EndpointError> {
    // Whether plain http is allowed there is not the question here.
    Ok(Endpoint::parse(base_url, true)?.place())
}

/// A model a server says it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    /// Its name.
    pub id: String,
    /// Its window in tokens, where the server says so.
    pub window: Option<u32>,
}

/// Asks a server for its models, as detection does. Reads no more than 4 MB, waits no longer than
/// five seconds and repeats nothing.
///
/// # Errors
/// [`ListError::Setup`] when the connection's settings are unusable, else [`ListError::Model`].
pub async fn list_models(connection: Connection) -> Result<Vec<ListedModel>, ListError> {
    let server = Server::new(connection)?;
    let asked = tokio::time::timeout(LIST_TIMEOUT, server.models()).await;
    Ok(asked.unwrap_or(Err(ModelError::FirstByteTimeout { after: LIST_TIMEOUT, response: None }))?)
}

/// Why a server's models could not be listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The connection's settings are unusable.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The server could not be asked.
    #[error(transparent)]
    Model(#[from] ModelError),
}

#[derive(Debug)]
struct Server {
    endpoint: Endpoint,
    connection: Connection,
    authorization: Option<HeaderValue>,
    client: reqwest::Client,
}

impl Server {
    fn new(connection: Connection) -> Result<Self, SetupError> {
        let endpoint = Endpoint::parse(&connection.base_url, connection.insecure_http)?;
        let authorization = match &connection.key {
            None => None,
            Some(key) => {
                let mut value =
                    HeaderValue::try_from(format!("Bearer {}", key.0)).map_err(|_| SetupError::Key)?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        // Fails only if a provider is installed already, which is as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .referer(false)
            .redirect(same_origin())
            .connect_timeout(connection.timeouts.connect)
            .user_agent(concat!("drawloom/", env!("CARGO_PKG_VERSION")));
        if let Some(proxy) = &connection.proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(SetupError::Client)?);
        }
        let client = builder.build().map_err(SetupError::Client)?;
        Ok(Self { endpoint, connection, authorization, client })
    }

    /// Sends a request and waits for the head of its response.
    async fn open(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, ModelError> {
        let request = match &self.authorization {
            Some(value) => request.header(AUTHORIZATION, value.clone()),
            None => request,
        };
        request.send().await.map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &reqwest::Error) -> ModelError {
        let why = reason(error);
        if error.is_connect() || error.is_timeout() {
            let refused = causes(error).any(|cause| {
                cause
                    .downcast_ref::<std::io::Error>()
                    .is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused)
            });
            return ModelError::Connect { host: self.endpoint.host(), why, refused };
        }
        ModelError::Cut { why, response: None }
    }

    async fn models(&self) -> Result<Vec<ListedModel>, ModelError> {
        let sent = self.sent(1, DialectName::OpenAiChat, SourceKind::Remote);
        let mut response = self.open(self.client.get(self.endpoint.join("models"))).await?;
        let head = self.head(&response, false);
        if head.status != 200 {
            let (cancel, mut nothing) = (crate::Cancel::never(), Vec::new());
            let mut listener = |_| {};
            let mut io = Io::new(Exchange { spool: &mut nothing, listener: &mut listener, cancel });
            return match receive(head, &mut Body(response), sent, self.connection.timeouts, &mut io).await {
                Err(error) => Err(self.without_key(error)),
                Ok(_) => Ok(Vec::new()),
            };
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.failure(&error))? {
            body.extend_from_slice(&piece);
            if body.len() > MAX_LIST_BYTES {
                break;
            }
        }
        listed(&body).ok_or_else(|| ModelError::Cut {
            why: "the list of models is not readable".to_owned(),
            response: None,
        })
    }

    fn sent(&self, attempt: u32, dialect: DialectName, source: SourceKind) -> Sent {
        let started_at = self.connection.clock.now();
        Sent { started_at, since: Instant::now(), attempt, dialect, source }
    }

    fn head(&self, response: &reqwest::Response, stream: bool) -> Head {
        let headers = response.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let headers = KeptHeaders::of(headers);
        let retry_after = retry_after(&headers, self.connection.clock.now());
        Head { status: response.status().as_u16(), headers, stream, retry_after }
    }

    /// Servers like to repeat a wrong key in their message.
    fn without_key(&self, mut error: ModelError) -> ModelError {
        if let (ModelError::Server { failure, .. }, Some(key)) = (&mut error, &self.connection.key)
            && !key.0.is_empty()
        {
            failure.message = failure.message.replace(&key.0, "⟦secret:api_key⟧");
        }
        error
    }
}

struct Post<'a> {
    server: &'a Server,
    request: &'a Encoded,
    source: SourceKind,
}

#[async_trait]
impl Attempt for Post<'_> {
    async fn attempt(&self, number: u32, io: &mut Io<'_>) -> Result<RawResponse, ModelError> {
        let server = self.server;
        let timeouts = server.connection.timeouts;
        let accept = if self.request.stream() { "text/event-stream" } else { "application/json" };
        let post = server
            .client
            .post(server.endpoint.join(self.request.path()))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, accept)
            .body(self.request.body().clone());
        let sent = server.sent(number, self.request.dialect(), self.source);
        let opened = tokio::select! {
            biased;
            () = io.cancel.cancelled() => return Err(ModelError::Cancelled { response: None }),
            opened = tokio::time::timeout_at(sent.since + timeouts.first_byte, server.open(post)) => opened,
        };
        let response = match opened {
            Ok(response) => response?,
            Err(_) => {
                return Err(ModelError::FirstByteTimeout { after: timeouts.first_byte, response: None });
            }
        };
        let head = server.head(&response, self.request.stream());
        receive(head, &mut Body(response), sent, timeouts, io)
            .await
            .map_err(|error| server.without_key(error))
    }
}

struct Body(reqwest::Response);

#[async_trait]
impl Wire for Body {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        self.0.chunk().await.map_err(|error| reason(&error))
    }
}

/// Redirects stay with scheme, host and port: elsewhere the owner has sent nothing.
fn same_origin() -> Policy {
    Policy::custom(|attempt| {
        let stays = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
        if stays && attempt.previous().len() <= 3 { attempt.follow() } else { attempt.stop() }
    })
}

/// What the innermost cause says; the URL is left out.
fn reason(error: &reqwest::Error) -> String {
    let innermost = causes(error).last().map(ToString::to_string);
    sanitised(&innermost.unwrap_or_else(|| "the connection failed".to_owned()))
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(std::error::Error::source(error), |cause| cause.source())
}

fn retry_after(headers: &KeptHeaders, now: i64) -> Option<Duration> {
    if let Some(ms) = headers.get("retry-after-ms").and_then(|value| value.trim().parse().ok()) {
        return Some(Duration::from_millis(ms));
    }
    let value = headers.get("retry-after")?.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let wait = http_date::parse(value)?.saturating_sub(now);
    Some(Duration::from_millis(u64::try_from(wait).unwrap_or(0)))
}

fn listed(body: &[u8]) -> Option<Vec<ListedModel>> {
    let list: serde_json::Value = serde_json::from_slice(body).ok()?;
    let models = list.get("data")?.as_array()?.iter().filter_map(|model| {
        let window = ["max_model_len", "context_length", "context_window"];
        let window = window.iter().find_map(|name| model.get(name)?.as_u64());
        let id = model.get("id")?.as_str()?.to_owned();
        Some(ListedModel { id, window: window.and_then(|tokens| u32::try_from(tokens).ok()) })
    });
    Some(models.collect())
}
