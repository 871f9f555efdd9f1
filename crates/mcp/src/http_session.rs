//! A session with a server at an address, over streamable HTTP: each answer is bounded and told as what it is.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use egress::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use egress::{RequestBuilder, Response, StatusCode};
use futures_util::stream::BoxStream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::common::http_header::{EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;
use text::terminal::one_line;
use tokio::time::{Instant, sleep_until};

use crate::address::{ACCEPTED, ServerAddress};
use crate::http_body::{bounded, events};
use crate::oauth::parameter;
use crate::request_params::as_read;
use crate::streams::LONGEST_MESSAGE;

/// Bytes of the body of a refusal that are read, and characters of it that are told.
const REFUSAL: usize = 16 << 10;
const TOLD: usize = 200;
/// Time between two requests for a stream of events, at least: it doubles where they end again at once.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// How long it is waited before a stream that fails is asked for again, at most.
const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// Why a request got no answer that is one. It holds nothing of what was sent.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{why}")]
pub(crate) struct Failure {
    pub(crate) why: String,
    /// Whether no word of it is the server's.
    pub(crate) is_own: bool,
}

impl Failure {
    pub(crate) fn told(why: impl Into<String>) -> Self {
        Self { why: why.into(), is_own: false }
    }
}

type Answer<T> = Result<T, StreamableHttpError<Failure>>;

fn failed(why: impl Into<String>) -> StreamableHttpError<Failure> {
    StreamableHttpError::Client(Failure::told(why))
}

/// One session with a server. Clones are the same one.
#[derive(Clone)]
pub(crate) struct HttpSession(Arc<State>);

struct State {
    address: Arc<ServerAddress>,
    /// Whether the server forgot it.
    is_expired: AtomicBool,
    /// Why the events that answer a request broke off, for who waits for what they would have brought.
    failure: Arc<Mutex<Option<String>>>,
    /// The server's own events, and those that go on with a stream that ended before its answer.
    own: Mutex<Streams>,
    resumed: Mutex<Streams>,
    /// Whether the server wanted to know who asks, and a login may tell it.
    wants_login: AtomicBool,
}

/// Requests for streams of events of one kind.
#[derive(Default)]
struct Streams {
    last: Option<Instant>,
    pause: Duration,
}

impl HttpSession {
    pub(crate) fn of(address: &Arc<ServerAddress>) -> Self {
        Self(Arc::new(State {
            address: Arc::clone(address),
            is_expired: AtomicBool::default(),
            failure: Arc::default(),
            own: Mutex::default(),
            resumed: Mutex::default(),
            wants_login: AtomicBool::default(),
        }))
    }

    pub(crate) fn config(&self) -> StreamableHttpClientTransportConfig {
        let mut retry = ExponentialBackoff::default();
        retry.max_delay = Some(LONGEST_RETRY);
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.0.address.url().as_str());
        config.retry_config = Arc::new(retry);
        // A new session may have other tools: they are asked for before anything is called.
        config.reinit_on_expired_session = false;
        config
    }

    /// Whether the server forgot the session.
    pub(crate) fn is_expired(&self) -> bool {
        self.0.is_expired.load(Ordering::SeqCst)
    }

    /// Whether a login is what it lacks.
    pub(crate) fn wants_login(&self) -> bool {
        self.0.wants_login.load(Ordering::SeqCst)
    }

    /// Why nothing came.
    pub(crate) fn why_silent(&self) -> String {
        let failure = self.0.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        failure.unwrap_or_else(|| "its answer ended before it was whole".to_owned())
    }

    /// Why a request failed.
    pub(crate) fn told(&self, error: &(dyn std::error::Error + Send + Sync + 'static)) -> Failure {
        match error.downcast_ref::<StreamableHttpError<Failure>>() {
            Some(StreamableHttpError::Client(failure)) => failure.clone(),
            Some(StreamableHttpError::SessionExpired) => Failure::told("it ended the session (HTTP 404)"),
            _ => Failure::told(self.why_silent()),
        }
    }

    /// Sends a request with the headers of its owner. Those of the protocol go before them.
    async fn send(
        &self,
        (request, renews): (RequestBuilder, bool),
        session: Option<&str>,
        more: HashMap<HeaderName, HeaderValue>,
    ) -> Answer<Response> {
        let mut headers = self.0.address.headers.clone();
        for (name, value) in more {
            headers.insert(name, value);
        }
        if let Some(session) = session {
            let session = HeaderValue::from_str(session).map_err(|_| failed("its session has no name"))?;
            headers.insert(HeaderName::from_static(SESSION), session);
        }
        let sent = self.0.address.send(request.headers(headers), renews, &self.0.wants_login).await;
        sent.map_err(StreamableHttpError::Client)
    }

    /// What an answer says that is none.
    async fn refusal(&self, response: Response, is_begun: bool) -> StreamableHttpError<Failure> {
        let status = response.status();
        let code = status.as_u16();
        if status.is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let to = to.and_then(|to| self.0.address.url().join(to).ok()).map(|mut to| {
                to.set_query(None);
                to.to_string()
            });
            let to = to.unwrap_or_else(|| "another address".to_owned());
            if to == self.0.address.url().as_str() {
                return failed("it redirects to itself, again and again".to_owned());
            }
            return failed(format!(
                "it redirects to {}, where nothing is sent: if that is its address, write it into its entry",
                shortened(&to)
            ));
        }
        let wanted = response.headers().get(WWW_AUTHENTICATE).and_then(|wanted| wanted.to_str().ok());
        let scopes =
            wanted.filter(|wanted| parameter(wanted, "error").as_deref() == Some("insufficient_scope"));
        let scopes = scopes.and_then(|wanted| parameter(wanted, "scope"));
        if let (StatusCode::FORBIDDEN, Some(scopes), Some(way_in)) = (status, scopes, self.0.address.way_in())
        {
            let scopes = shortened(&scopes);
            return failed(format!(
                "the login is too narrow for this (HTTP 403): write the scopes `{scopes}` into its entry, and then {way_in} \
                 asks for them"
            ));
        }
        let is_json = has_type(&response, JSON_MIME_TYPE);
        let body = bounded(response, REFUSAL).await.unwrap_or_default();
        let said = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(ServerJsonRpcMessage::Error(error)) => error.error.message.into_owned(),
            _ if is_json || !body.starts_with(b"<") => String::from_utf8_lossy(&body).into_owned(),
            _ => String::new(),
        };
        let said = match shortened(&said) {
            said if said.is_empty() => String::new(),
            said => format!(": {said}"),
        };
        failed(match status {
            StatusCode::UNAUTHORIZED => {
                let way_in = self.0.address.way_in().map(|way_in| format!("; {way_in} tells it"));
                format!("it wants to know who asks (HTTP 401){said}{}", way_in.unwrap_or_default())
            }
            StatusCode::FORBIDDEN => format!("it refuses this (HTTP 403){said}"),
            StatusCode::TOO_MANY_REQUESTS => format!("it was asked too often (HTTP 429){said}"),
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED if !is_begun => format!(
                "there is no server of the streamable HTTP kind at this address (HTTP {code}); those of the older SSE kind are \
                 not spoken with{said}"
            ),
            _ if status.is_server_error() => format!("it failed (HTTP {code}){said}"),
            _ => format!("it answered with HTTP {code}{said}"),
        })
    }

    async fn post(
        &self,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        more: HashMap<HeaderName, HeaderValue>,
    ) -> Answer<StreamableHttpPostResponse> {
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        if is_request {
            *self.0.failure.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        let body = serde_json::to_vec(message)?;
        let request = self.0.address.http.post(self.0.address.url().clone());
        let request = request.header(CONTENT_TYPE, JSON_MIME_TYPE).header(ACCEPT, ACCEPTED);
        let response = self.send((request.body(body), is_request), session, more).await?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && session.is_some() && is_request {
            self.0.is_expired.store(true, Ordering::SeqCst);
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return Err(self.refusal(response, session.is_some()).await);
        }
        // What is no request awaits nothing, and a request may be answered among the server's own events.
        if !is_request || matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let named = response.headers().get(SESSION).and_then(|session| session.to_str().ok());
        let named = named.map(str::to_owned);
        if has_type(&response, EVENT_STREAM_MIME_TYPE) {
            return Ok(StreamableHttpPostResponse::Sse(events(response, Arc::clone(&self.0.failure)), named));
        }
        if !has_type(&response, JSON_MIME_TYPE) {
            let kind = response
                .headers()
                .get(CONTENT_TYPE)
                .map_or("nothing named", |kind| kind.to_str().unwrap_or("something unreadable"));
            return Err(failed(format!("it answered with {}, which is no message of MCP", shortened(kind))));
        }
        let body = bounded(response, LONGEST_MESSAGE).await.map_err(failed)?;
        let body = as_read(&body).map_or(body, String::into_bytes);
        let message = serde_json::from_slice(&body)
            .map_err(|_| failed("it answered with JSON that is no message of MCP"))?;
        Ok(StreamableHttpPostResponse::Json(message, named))
    }

    /// Waits until a stream of events may be asked for again. What was waited meanwhile, as the server wants it to be, counts.
    async fn pause(&self, streams: &Mutex<Streams>) {
        let until = {
            let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let last = streams.last.map(|last| now.saturating_duration_since(last));
            streams.pause = match last {
                None => Duration::ZERO,
                Some(lasted) if lasted > LONGEST_RETRY => SHORTEST_PAUSE,
                Some(_) => (streams.pause * 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE),
            };
            let until = streams.last.map_or(now, |last| now.max(last + streams.pause));
            streams.last = Some(until);
            until
        };
        sleep_until(until).await;
    }
}

/// Header of a session, as names of headers are kept.
pub(crate) const SESSION: &str = "mcp-session-id";

/// One short line of what a stranger says.
pub(crate) fn shortened(said: &str) -> String {
    one_line(said.trim()).chars().take(TOLD).collect()
}

fn has_type(response: &Response, wanted: &str) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case(wanted)
}

impl StreamableHttpClient for HttpSession {
    type Error = Failure;

    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Answer<StreamableHttpPostResponse> {
        self.post(&message, session.as_deref(), headers).await
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Answer<()> {
        if self.is_expired() {
            return Ok(());
        }
        let request = self.0.address.http.delete(self.0.address.url().clone());
        self.send((request, false), Some(&session), headers).await.map(drop)
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        mut headers: HashMap<HeaderName, HeaderValue>,
    ) -> Answer<BoxStream<'static, Result<Sse, SseError>>> {
        self.pause(if last_event.is_some() { &self.0.resumed } else { &self.0.own }).await;
        if self.is_expired() {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if let Some(last) = last_event.and_then(|last| HeaderValue::from_str(&last).ok()) {
            headers.insert(HeaderName::from_static(LAST_EVENT), last);
        }
        let request = self.0.address.http.get(self.0.address.url().clone());
        let request = request.header(ACCEPT, EVENT_STREAM_MIME_TYPE);
        let response = self.send((request, false), session.as_deref(), headers).await?;
        match response.status() {
            // A login that a call renews meanwhile lets it in.
            StatusCode::UNAUTHORIZED if self.0.address.way_in().is_some() => {
                Err(self.refusal(response, true).await)
            }
            // Asked again, it would say the same.
            status if status.is_client_error() => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if status.is_success() && has_type(&response, EVENT_STREAM_MIME_TYPE) => {
                Ok(events(response, Arc::default()))
            }
            _ => Err(self.refusal(response, true).await),
        }
    }
}

/// Header of the event that a stream goes on after.
const LAST_EVENT: &str = "last-event-id";

#[cfg(test)]
mod tests {
    use egress::header::HeaderMap;
    use egress::{Gate, Url};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn streams_that_end_at_once_are_asked_for_ever_more_slowly_whatever_their_server_wants() {
        let url = Url::parse("http://localhost/mcp").unwrap();
        let address = ServerAddress::new(&Gate::default(), url, HeaderMap::new()).unwrap();
        let session = HttpSession::of(&Arc::new(address));
        let mut waited = Vec::new();
        for _ in 0..6 {
            let before = Instant::now();
            session.pause(&session.0.resumed).await;
            waited.push(before.elapsed().as_secs());
        }
        assert_eq!(waited, [0, 1, 2, 4, 8, 8]);
        let waits = async || {
            let before = Instant::now();
            session.pause(&session.0.resumed).await;
            before.elapsed()
        };
        tokio::time::advance(LONGEST_RETRY * 2).await;
        assert_eq!(waits().await, Duration::ZERO, "those before lasted");
        tokio::time::advance(SHORTEST_PAUSE / 2).await;
        assert_eq!(waits().await, SHORTEST_PAUSE * 3 / 2, "what was waited meanwhile counts");
        let before = Instant::now();
        session.pause(&session.0.own).await;
        assert_eq!(before.elapsed(), Duration::ZERO, "each kind by itself");
    }
}
