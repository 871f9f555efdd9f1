//! What every request to a server has in common.
//!
//! The connection is that of the gate (`egress`): no proxy and no redirect to another host unless asked, no cookies, no
//! content encoding (the body is kept as received). The owner named the server, so it may lie on this machine or in its
//! network. The key goes into a header and nowhere else.

use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use egress::header::{ACCEPT, CONTENT_TYPE};
use egress::{ClientOptions, Gate, Purpose, Reach, Redirects, Response, Rule, SendError, Url};
use tokio::time::Instant;

use crate::connection::{Connection, SetupError};
use crate::credential::Credential;
use crate::dialect::DialectName;
use crate::endpoint::Endpoint;
use crate::error::ModelError;
use crate::headers::KeptHeaders;
use crate::model::SourceKind;
use crate::receive::{Head, Sent, Wire};
use crate::server_text::sanitised;

/// A server, and the client that speaks to it.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) endpoint: Endpoint,
    pub(crate) connection: Connection,
    pub(crate) credential: Credential,
    http: egress::Client,
}

impl Client {
    /// A client for servers of a dialect. Opens no connection.
    pub(crate) fn new(dialect: DialectName, connection: Connection) -> Result<Self, SetupError> {
        let endpoint = Endpoint::parse(&connection.base_url, connection.insecure_http)?;
        let credential = Credential::new(dialect, connection.key.as_ref())?;
        let rule = Rule { purpose: Purpose::Model, reach: Reach::Anywhere };
        let options = ClientOptions {
            // Redirects stay with scheme, host and port: elsewhere the owner has sent nothing.
            redirects: Redirects::While(3, |from, to| from.origin() == to.origin()),
            connect_timeout: connection.timeouts.connect,
            read_timeout: None,
            proxy: connection.proxy.as_deref(),
        };
        let http = Gate::default().client(rule, &options).map_err(SetupError::Client)?;
        Ok(Self { endpoint, connection, credential, http })
    }

    /// Asks a server what it has.
    pub(crate) async fn get(&self, url: Url) -> Result<Response, ModelError> {
        let http = self.http.with_purpose(Purpose::ServerLook);
        self.open(&http, http.get(url)).await
    }

    /// Sends a body to an address and waits for the head of the response.
    pub(crate) async fn post(&self, url: Url, body: Bytes, stream: bool) -> Result<Response, ModelError> {
        let accept = if stream { "text/event-stream" } else { "application/json" };
        let post = self.http.post(url).header(CONTENT_TYPE, "application/json").header(ACCEPT, accept);
        self.open(&self.http, post.body(body)).await
    }

    async fn open(
        &self,
        http: &egress::Client,
        request: egress::RequestBuilder,
    ) -> Result<Response, ModelError> {
        http.send(self.credential.put_on(request)).await.map_err(|error| match error {
            SendError::Http(error) => self.failure(&error),
            SendError::Refused(refusal) => {
                ModelError::Connect { host: self.endpoint.host(), why: refusal.to_string(), refused: false }
            }
        })
    }

    pub(crate) fn failure(&self, error: &egress::Error) -> ModelError {
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

    pub(crate) fn sent(&self, attempt: u32, dialect: DialectName, source: SourceKind) -> Sent {
        let started_at = self.connection.clock.now();
        Sent { started_at, since: Instant::now(), attempt, dialect, source }
    }

    pub(crate) fn head(&self, response: &Response, stream: bool) -> Head {
        let headers = response.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let headers = KeptHeaders::of(headers);
        let retry_after = retry_after(&headers, self.connection.clock.now());
        Head { status: response.status().as_u16(), headers, stream, retry_after }
    }

    /// Servers like to repeat a wrong key in their message.
    pub(crate) fn without_key(&self, mut error: ModelError) -> ModelError {
        if let (ModelError::Server { failure, .. }, Some(key)) = (&mut error, &self.connection.key)
            && !key.0.is_empty()
        {
            failure.message = failure.message.replace(&key.0, "⟦secret:api_key⟧");
        }
        error
    }
}

/// The body of a response.
pub(crate) struct Body(pub(crate) Response);

#[async_trait]
impl Wire for Body {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        self.0.chunk().await.map_err(|error| reason(&error))
    }
}

/// What the innermost cause says; the URL is left out.
fn reason(error: &egress::Error) -> String {
    let innermost = causes(error).last().map(ToString::to_string);
    sanitised(&innermost.unwrap_or_else(|| "the connection failed".to_owned()))
}

fn causes(error: &egress::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
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
    let at = httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(at.saturating_sub(Duration::from_millis(u64::try_from(now).unwrap_or(0))))
}
