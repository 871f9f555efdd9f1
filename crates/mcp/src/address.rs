//! A server at an address: each request goes through the gate, with what its owner wrote into its headers, and with the login
//! there.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use egress::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use egress::{
    Client, ClientOptions, FetchError, Gate, HostPort, Purpose, Reach, Redirects, RequestBuilder, Response,
    Rule, SendError, StatusCode, Url,
};
use serde_json::Value;

use crate::http_session::{Failure, SESSION};
use crate::oauth::{Bearer, LoginEnded, SavedLogin};

/// How long it is waited for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Redirects that are followed, within the server.
const REDIRECTS: usize = 3;
/// What an answer may be.
pub(crate) const ACCEPTED: &str = "application/json, text/event-stream";

/// Where a server is, and what is sent with each request.
pub struct ServerAddress {
    url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) http: Client,
    /// The login there, where no header says who asks.
    bearer: Option<Arc<Bearer>>,
}

impl ServerAddress {
    /// An address that the owner wrote, so that it may lie on this machine or in its network. Opens no connection.
    ///
    /// # Errors
    /// The system has no certificates.
    pub fn new(gate: &Gate, url: Url, headers: HeaderMap) -> Result<Self, String> {
        let rule = Rule { purpose: Purpose::Server, reach: Reach::Anywhere };
        let options = ClientOptions {
            // Elsewhere the owner has sent nothing.
            redirects: Redirects::While(REDIRECTS, |from, to| from.origin() == to.origin()),
            connect_timeout: CONNECT,
            // Each call has a limit of its own, and events may be far apart.
            read_timeout: None,
            proxy: None,
        };
        let http = gate.client(rule, &options).map_err(|error| error.to_string())?;
        Ok(Self { url, headers, http, bearer: None })
    }

    /// With the login at the server of this name, if its headers do not say who asks. What is renewed is asked of the public
    /// network and these hosts.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_login(
        mut self,
        gate: &Gate,
        server: &str,
        (named, saved): (Vec<HostPort>, SavedLogin),
    ) -> Result<Self, String> {
        if !self.headers.contains_key(AUTHORIZATION) {
            self.bearer = Some(Arc::new(Bearer::new(gate, (server, self.url.clone()), named, saved)?));
        }
        Ok(self)
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// A text without the secrets of the login.
    pub(crate) fn mask(&self, text: String) -> String {
        match &self.bearer {
            Some(bearer) => bearer.mask(text),
            None => text,
        }
    }

    /// What a person does so that the server knows who asks.
    pub(crate) fn way_in(&self) -> Option<String> {
        self.bearer.as_ref().map(|bearer| bearer.way_in())
    }

    /// Sends a request with the login there, if there is one, and keeps whether one is what it lacks. The login is renewed for
    /// one that is waited for alone (`renews`): others may be in the way of a process that ends.
    ///
    /// # Errors
    /// It was not reached, or the login has ended.
    pub(crate) async fn send(
        &self,
        request: RequestBuilder,
        renews: bool,
        wants_login: &AtomicBool,
    ) -> Result<Response, Failure> {
        let Some(bearer) = &self.bearer else { return self.send_as(request, None).await };
        let ended = |LoginEnded { why, is_own }| {
            wants_login.store(true, Ordering::SeqCst);
            Failure { why, is_own }
        };
        let access = if renews { bearer.access().await } else { bearer.present() }.map_err(ended)?;
        let again = request.try_clone();
        let mut response = self.send_as(request, access.as_deref()).await?;
        let is_refused = |response: &Response| response.status() == StatusCode::UNAUTHORIZED;
        if let (Some(access), Some(again)) = (access, again)
            && is_refused(&response)
        {
            // The access ended before its time, or another process has a newer one.
            let newer = match renews {
                true => Some(bearer.renewed(&access).await.map_err(ended)?),
                false => bearer.present().map_err(ended)?.filter(|newer| *newer != access),
            };
            if let Some(newer) = newer {
                response = self.send_as(again, Some(&newer)).await?;
            }
        }
        wants_login.store(is_refused(&response), Ordering::SeqCst);
        Ok(response)
    }

    async fn send_as(&self, mut request: RequestBuilder, access: Option<&str>) -> Result<Response, Failure> {
        if let Some(access) = access {
            request = request.bearer_auth(access);
        }
        let sent = self.http.send(request).await;
        sent.map_err(|error| Failure::told(format!("it was not reached: {}", FetchError::from(error))))
    }

    /// Sends one message without a login.
    pub(crate) async fn ask(
        &self,
        message: &Value,
        session: Option<HeaderValue>,
    ) -> Result<Response, SendError> {
        let mut headers = self.headers.clone();
        headers.extend(session.map(|session| (HeaderName::from_static(SESSION), session)));
        let request = self.http.post(self.url.clone()).headers(headers);
        let request = request.header(CONTENT_TYPE, "application/json").header(ACCEPT, ACCEPTED);
        self.http.send(request.body(message.to_string())).await
    }
}

impl fmt::Debug for ServerAddress {
    /// Without the headers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerAddress").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}
