//! The one HTTP client: no proxy and no redirect unless asked, no cookies, no referrer, no content encoding, one TLS
//! provider; its names are looked up by the gate, and it connects to what the gate gave it.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Url};

use crate::gate::{Gate, Refusal, Rule};
use crate::name::HostPort;
use crate::record::{Purpose, Transfer};

/// Redirects that a client follows by itself.
#[derive(Clone, Copy)]
pub enum Redirects {
    No,
    /// At most so many, each of which a function of the address before and the next one allows; another ends the
    /// request with its answer.
    While(usize, fn(&Url, &Url) -> bool),
    /// [`Self::While`], where another redirect is an error.
    Only(usize, fn(&Url, &Url) -> bool),
}

/// How a client connects.
#[derive(Clone)]
pub struct ClientOptions<'a> {
    pub redirects: Redirects,
    pub connect_timeout: Duration,
    /// Limit of time in which nothing arrives; none where the caller keeps one.
    pub read_timeout: Option<Duration>,
    /// Proxy that the owner named; those of the environment are never used. It looks names up itself, so that only names
    /// are judged here, and its own address is the owner's.
    pub proxy: Option<&'a str>,
}

/// A client for one purpose. Opens no connection before it is asked to. Clones share connections.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    gate: Gate,
    rule: Arc<Rule>,
}

impl Gate {
    /// A client by a rule.
    ///
    /// # Errors
    /// The proxy is none, or the system has no certificates.
    pub fn client(&self, rule: Rule, options: &ClientOptions<'_>) -> Result<Client, reqwest::Error> {
        // Fails only if a provider is installed already, which is as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let rule = Arc::new(rule);
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .referer(false)
            .redirect(policy(self, &rule, options.redirects))
            .dns_resolver(Lookup { gate: self.clone(), rule: Arc::clone(&rule) })
            .connect_timeout(options.connect_timeout)
            .user_agent(concat!("drawloom/", env!("CARGO_PKG_VERSION")));
        if let Some(timeout) = options.read_timeout {
            builder = builder.read_timeout(timeout);
        }
        if let Some(proxy) = options.proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy)?);
        }
        Ok(Client { http: builder.build()?, gate: self.clone(), rule })
    }
}

/// What the client asks for the addresses of a name.
struct Lookup {
    gate: Gate,
    rule: Arc<Rule>,
}

impl reqwest::dns::Resolve for Lookup {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let (gate, rule) = (self.gate.clone(), Arc::clone(&self.rule));
        Box::pin(async move {
            let found = gate.look_up(&rule, name.as_str()).await.map_err(|refusal| match refusal {
                // As the system says it, without the host that whoever asked knows.
                Refusal::NotFound { why, .. } => Box::<dyn std::error::Error + Send + Sync>::from(why),
                refusal => refusal.into(),
            })?;
            // The client fills in the port of the address it was asked for.
            let found = found.into_iter().map(|address| (address, 0u16).into());
            Ok(Box::new(found) as reqwest::dns::Addrs)
        })
    }
}

fn policy(gate: &Gate, rule: &Arc<Rule>, redirects: Redirects) -> Policy {
    let (most, allowed, or_error) = match redirects {
        Redirects::No => return Policy::none(),
        Redirects::While(most, allowed) => (most, allowed, false),
        Redirects::Only(most, allowed) => (most, allowed, true),
    };
    let (gate, rule) = (gate.clone(), Arc::clone(rule));
    Policy::custom(move |attempt| {
        let allowed = attempt.previous().last().is_some_and(|from| allowed(from, attempt.url()));
        match (allowed, attempt.previous().len() <= most) {
            (true, true) => match gate.judge(&rule, attempt.url()) {
                Ok(_) => attempt.follow(),
                Err(refusal) => attempt.error(refusal),
            },
            (_, _) if !or_error => attempt.stop(),
            (false, _) => attempt.error("it redirects to a place that is not as safe"),
            (true, false) => attempt.error("it redirects too often"),
        }
    })
}

impl Client {
    /// A client for another purpose, with the same connections.
    #[must_use]
    pub fn with_purpose(&self, purpose: Purpose) -> Self {
        let rule = Rule { purpose, ..Rule::clone(&self.rule) };
        Self { rule: Arc::new(rule), ..self.clone() }
    }

    /// Judges an address as [`Gate::judge`] does.
    ///
    /// # Errors
    /// Why nothing goes there.
    pub fn judge(&self, url: &Url) -> Result<HostPort, Refusal> {
        self.gate.judge(&self.rule, url)
    }

    /// A request for what lies at an address.
    pub fn get(&self, url: Url) -> RequestBuilder {
        self.http.get(url)
    }

    /// A request that sends something to an address.
    pub fn post(&self, url: Url) -> RequestBuilder {
        self.http.post(url)
    }

    /// A request that takes away what lies at an address.
    pub fn delete(&self, url: Url) -> RequestBuilder {
        self.http.delete(url)
    }

    /// Sends a request that was made here, and waits for the head of its answer.
    ///
    /// # Errors
    /// The gate refused it ([`Refusal`] is among the causes), or nobody answered.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, SendError> {
        let request = request.build()?;
        let place = self.judge(request.url()).map_err(SendError::Refused)?;
        let sent = request.body().map_or(Some(0), |body| body.as_bytes().map(|bytes| bytes.len() as u64));
        let host = place.to_string();
        // From here on something may have left, whether it is answered or not.
        let mut transfer = Transfer { host, purpose: self.rule.purpose, sent, received: 0 };
        let response = self.http.execute(request).await.inspect_err(|error| {
            if error.is_connect() {
                transfer.sent = Some(0);
            }
        })?;
        Ok(Response { response, transfer })
    }
}

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error(transparent)]
    Refused(Refusal),
    #[error(transparent)]
    Http(#[from] reqwest::Error),
}

/// An answer whose bytes are counted.
#[derive(Debug)]
pub struct Response {
    response: reqwest::Response,
    transfer: Transfer,
}

impl Response {
    /// The next piece of the body; none after the last. Cancel-safe.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, reqwest::Error> {
        let piece = self.response.chunk().await?;
        self.transfer.received += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Ok(piece)
    }
}

impl Deref for Response {
    type Target = reqwest::Response;

    fn deref(&self) -> &reqwest::Response {
        &self.response
    }
}
