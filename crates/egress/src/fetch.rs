//! A fetch of what a model chose: bounded, with each redirect judged as the first address was.

use std::time::Duration;

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{StatusCode, Url};

use crate::client::{Client, Response, SendError};
use crate::gate::Refusal;

/// Limits of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Bytes of the body.
    pub bytes: u64,
    pub redirects: usize,
    /// Time for all of it, redirects included.
    pub time: Duration,
}

/// What was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The address that answered.
    pub url: Url,
    /// The addresses that led there, the first one that was asked for; none where it answered itself.
    pub redirected_from: Vec<Url>,
    pub status: StatusCode,
    pub content_type: Option<String>,
    /// What the body is packed with; none where it is not.
    pub encoding: Option<String>,
    pub body: Vec<u8>,
}

/// Why nothing was fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A redirect that the caller does not follow.
    #[error("it redirects to {to}, which was not followed: {why}")]
    NotFollowed { to: Url, why: String },
    #[error("it redirects to no address: {0:?}")]
    BadRedirect(String),
    #[error("it redirects more than {0} times")]
    TooManyRedirects(usize),
    #[error("it has more than {limit} bytes{}", said.map_or_else(String::new, |said| format!(": {said}")))]
    TooLong { limit: u64, said: Option<u64> },
    #[error("it took more than {} s", .0.as_secs())]
    TooSlow(Duration),
    #[error("{0}")]
    Failed(String),
}

/// Gets what lies at an address. `admits` says of the address of each redirect whether it is followed; it is asked before
/// the address is judged and its name is looked up. Cancel-safe: nothing is left of it.
///
/// # Errors
/// The gate or the caller refused, a limit was met, or nobody answered.
pub async fn fetch(
    client: &Client,
    url: Url,
    limits: FetchLimits,
    admits: &(dyn Fn(&Url) -> Result<(), String> + Sync),
) -> Result<Fetched, FetchError> {
    let fetched = tokio::time::timeout(limits.time, within(client, url, limits, admits));
    fetched.await.unwrap_or(Err(FetchError::TooSlow(limits.time)))
}

async fn within(
    client: &Client,
    mut url: Url,
    limits: FetchLimits,
    admits: &(dyn Fn(&Url) -> Result<(), String> + Sync),
) -> Result<Fetched, FetchError> {
    let mut redirected_from = Vec::new();
    loop {
        let accepted = "text/html,application/xhtml+xml,text/plain,application/json,text/*;q=0.9,*/*;q=0.5";
        // A request puts a user and a password into a header and out of its address.
        client.judge(&url)?;
        let request = client.get(url.clone()).header(ACCEPT, accepted).header(ACCEPT_ENCODING, "identity");
        let response = client.send(request).await?;
        let Some(next) = redirect(&response, &url)? else {
            return read(response, url, redirected_from, limits).await;
        };
        if redirected_from.len() == limits.redirects {
            return Err(FetchError::TooManyRedirects(limits.redirects));
        }
        admits(&next).map_err(|why| FetchError::NotFollowed { to: next.clone(), why })?;
        redirected_from.push(std::mem::replace(&mut url, next));
    }
}

/// The address that an answer sends on to.
fn redirect(response: &Response, from: &Url) -> Result<Option<Url>, FetchError> {
    let moved = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(to) = response.headers().get(LOCATION).filter(|_| moved) else { return Ok(None) };
    let to = String::from_utf8_lossy(to.as_bytes());
    let next = from.join(&to).map_err(|_| FetchError::BadRedirect(to.into_owned()))?;
    if from.scheme() == "https" && next.scheme() == "http" {
        let why = "it leads from https to http".to_owned();
        return Err(FetchError::NotFollowed { to: next, why });
    }
    Ok(Some(next))
}

async fn read(
    mut response: Response,
    url: Url,
    redirected_from: Vec<Url>,
    limits: FetchLimits,
) -> Result<Fetched, FetchError> {
    let limit = limits.bytes;
    if let Some(said) = response.content_length().filter(|said| *said > limit) {
        return Err(FetchError::TooLong { limit, said: Some(said) });
    }
    let header = |name| {
        let value: Option<&HeaderValue> = response.headers().get(name);
        value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let content_type = header(CONTENT_TYPE);
    let encoding = header(CONTENT_ENCODING).filter(|encoding| !encoding.eq_ignore_ascii_case("identity"));
    let status = response.status();
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(SendError::from)? {
        if (body.len() + piece.len()) as u64 > limit {
            return Err(FetchError::TooLong { limit, said: None });
        }
        body.extend_from_slice(&piece);
    }
    Ok(Fetched { url, redirected_from, status, content_type, encoding, body })
}

impl From<SendError> for FetchError {
    /// What the gate refused as such, and of all else the innermost cause, without the address.
    fn from(error: SendError) -> Self {
        let error = match error {
            SendError::Refused(refusal) => return Self::Refused(refusal),
            SendError::Http(error) => error,
        };
        let mut cause: &(dyn std::error::Error + 'static) = &error;
        while let Some(inner) = cause.source() {
            cause = inner;
            if let Some(refusal) = cause.downcast_ref::<Refusal>() {
                return Self::Refused(refusal.clone());
            }
        }
        Self::Failed(cause.to_string())
    }
}
