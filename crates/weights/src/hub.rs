//! Download of the pinned file from the Hugging Face hub over HTTPS, continued where an earlier one stopped.
//!
//! The connection is that of the gate (`egress`): no proxy but a given one, no cookies, no referrer, no content encoding.
//! The hub hands files out by redirects to other hosts, so those are followed: from https to https only, and from the hub
//! itself to public addresses only; a mirror is the owner's, who may have it in their network. A server that lies about
//! ranges, lengths or content gets no further than the part file.

use std::fs::File;
use std::net::IpAddr;
use std::time::Duration;

use egress::header::{CONTENT_RANGE, ETAG, HeaderMap, IF_RANGE, RANGE};
use egress::{ClientOptions, Gate, Purpose, Reach, Redirects, Response, Rule, SendError, StatusCode, Url};

use crate::error::{FetchFailure, SourceError, WeightsSource};
use crate::fetch_event::{FetchEvent, FetchListener, FetchNotice, FetchPhase, ProgressMeter};
use crate::part_file::{PartFile, PartialFile};
use crate::table::{Fingerprint, HubFile};

const HUB: &str = "https://huggingface.co";

const MAX_REDIRECTS: usize = 5;

/// Address and limits of the hub, or of a mirror.
#[derive(Debug, Clone)]
pub struct Hub {
    /// Base URL: https, or plain http to this machine.
    pub base_url: String,
    /// Proxy; those of the environment are never used.
    pub proxy: Option<String>,
    /// Limit of time for a connection.
    pub connect_timeout: Duration,
    /// Limit of time in which nothing arrives.
    pub idle_timeout: Duration,
    /// Most times a download is continued at once after it broke off and had brought something.
    pub continuations: u32,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            base_url: HUB.to_owned(),
            proxy: None,
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
            continuations: 4,
        }
    }
}

impl Hub {
    fn url(&self, file: &HubFile) -> Result<Url, SourceError> {
        let HubFile { repository, revision, path } = file;
        let text = format!("{}/{repository}/resolve/{revision}/{path}", self.base_url.trim_end_matches('/'));
        let url = Url::parse(&text).map_err(|error| SourceError::Address { why: error.to_string() })?;
        match (is_allowed_url(&url), url.username().is_empty() && url.password().is_none()) {
            (true, true) => Ok(url),
            (false, _) => Err(SourceError::Address { why: "it is not https".to_owned() }),
            (_, false) => Err(SourceError::Address { why: "it holds a user name or a password".to_owned() }),
        }
    }

    fn client(&self) -> Result<egress::Client, SourceError> {
        // A proxy looks names up itself.
        let is_public = self.base_url == HUB && self.proxy.is_none();
        let reach = if is_public { Reach::Public { named: Vec::new() } } else { Reach::Anywhere };
        let options = ClientOptions {
            redirects: Redirects::Only(MAX_REDIRECTS, is_allowed_redirect),
            connect_timeout: self.connect_timeout,
            read_timeout: Some(self.idle_timeout),
            proxy: self.proxy.as_deref(),
        };
        let client = Gate::default().client(Rule { purpose: Purpose::Weights, reach }, &options);
        client.map_err(|error| SourceError::Address { why: reason(&error) })
    }

    pub(crate) fn part(
        &self,
        path: std::path::PathBuf,
        hub: &HubFile,
        file: Fingerprint,
    ) -> Result<PartFile, SourceError> {
        Ok(PartFile::new(path, self.url(hub)?.into(), file))
    }

    /// Fills the part file to the pinned size; gives whether it held something before this call. Its content is not
    /// verified. Cancel-safe: what has arrived stays.
    pub(crate) async fn fill(
        &self,
        hub: &HubFile,
        part: &PartFile,
        file: Fingerprint,
        listener: &mut FetchListener<'_>,
    ) -> Result<bool, FetchFailure> {
        let fetch = HubDownload { hub: self, client: self.client()?, url: self.url(hub)?, part, file };
        let mut resumed = false;
        let mut continuations = self.continuations;
        loop {
            let before = part.beginning();
            resumed |= before.is_some();
            let had = before.as_ref().map_or(0, |beginning| beginning.bytes);
            match fetch.once(before, listener).await {
                Err(FetchFailure::Source(SourceError::Cut { .. } | SourceError::Stalled { .. }))
                    if continuations > 0 && part.beginning().is_some_and(|now| now.bytes > had) =>
                {
                    continuations -= 1;
                }
                ended => return ended.map(|()| resumed),
            }
        }
    }
}

struct HubDownload<'a> {
    hub: &'a Hub,
    client: egress::Client,
    url: Url,
    part: &'a PartFile,
    file: Fingerprint,
}

impl HubDownload<'_> {
    /// One connection: as much as it brings.
    async fn once(
        &self,
        had: Option<PartialFile>,
        listener: &mut FetchListener<'_>,
    ) -> Result<(), FetchFailure> {
        let had = match had {
            Some(beginning) if beginning.bytes == self.file.bytes => return Ok(()),
            had => had,
        };
        let mut response = self.ask(had.as_ref()).await?;
        let (mut file, mut at) = match had {
            Some(beginning) => match self.is_continuation(&response, &beginning) {
                Ok(()) => {
                    listener(FetchEvent::Notice(FetchNotice::Resumed { from: beginning.bytes }));
                    (self.part.open_at_end()?, beginning.bytes)
                }
                Err(why) => {
                    listener(FetchEvent::Notice(FetchNotice::Restarted { why }));
                    if response.status() != StatusCode::OK {
                        response = self.ask(None).await?;
                    }
                    (self.begin(&response)?, 0)
                }
            },
            None => (self.begin(&response)?, 0),
        };
        let mut meter =
            ProgressMeter::new(listener, FetchPhase::Download(WeightsSource::Hub), at, self.file.bytes);
        meter.at(at);
        let ended = self.receive(&mut response, &mut file, &mut at, &mut meter).await;
        meter.finish(at);
        ended
    }

    async fn ask(&self, had: Option<&PartialFile>) -> Result<Response, SourceError> {
        let mut request = self.client.get(self.url.clone());
        if let Some(PartialFile { bytes, etag: Some(etag) }) = had {
            request = request.header(RANGE, format!("bytes={bytes}-")).header(IF_RANGE, etag);
        }
        let response = self.client.send(request).await.map_err(|error| match error {
            SendError::Http(error) => self.failure(&error),
            SendError::Refused(refusal) => SourceError::Address { why: refusal.to_string() },
        })?;
        match response.status() {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => Ok(response),
            _ => Err(refused(&response)),
        }
    }

    /// Checks that the response continues the part file; the error says why not.
    fn is_continuation(&self, response: &Response, had: &PartialFile) -> Result<(), &'static str> {
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {}
            StatusCode::OK => return Err("the server sends the whole file"),
            _ => return Err("the server does not go on where it was"),
        }
        if strong_etag(response.headers()).is_some_and(|etag| Some(etag) != had.etag) {
            return Err("the server has another file now");
        }
        let last = self.file.bytes - 1;
        let range = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
        if range == Some(&format!("bytes {}-{last}/{}", had.bytes, self.file.bytes)) {
            Ok(())
        } else {
            Err("the server sends another range than asked for")
        }
    }

    /// Checks the headers of a whole file and starts its part file.
    fn begin(&self, response: &Response) -> Result<File, FetchFailure> {
        if response.status() != StatusCode::OK {
            return Err(refused(response).into());
        }
        match response.content_length() {
            Some(length) if length != self.file.bytes => Err(self.wrong_size(length).into()),
            _ => Ok(self.part.start(strong_etag(response.headers()))?),
        }
    }

    async fn receive(
        &self,
        response: &mut Response,
        file: &mut File,
        at: &mut u64,
        meter: &mut ProgressMeter<'_, '_>,
    ) -> Result<(), FetchFailure> {
        while let Some(piece) = response.chunk().await.map_err(|error| self.broken(&error))? {
            if *at + piece.len() as u64 > self.file.bytes {
                self.part.discard()?;
                return Err(self.wrong_size(*at + piece.len() as u64).into());
            }
            self.part.write(file, &piece)?;
            *at += piece.len() as u64;
            meter.at(*at);
        }
        if *at < self.file.bytes {
            return Err(SourceError::Cut { why: "it ended before it was complete".to_owned() }.into());
        }
        Ok(())
    }

    fn wrong_size(&self, found: u64) -> SourceError {
        SourceError::WrongSize { what: "the hub's file".to_owned(), expected: self.file.bytes, found }
    }

    fn failure(&self, error: &egress::Error) -> SourceError {
        if error.is_redirect() {
            return SourceError::Address { why: reason(error) };
        }
        if error.is_timeout() && !error.is_connect() {
            return SourceError::Stalled { after: self.hub.idle_timeout };
        }
        SourceError::Unreachable { host: host(&self.url), why: reason(error) }
    }

    fn broken(&self, error: &egress::Error) -> FetchFailure {
        let error = if error.is_timeout() {
            SourceError::Stalled { after: self.hub.idle_timeout }
        } else {
            SourceError::Cut { why: reason(error) }
        };
        error.into()
    }
}

/// Strong validator of a response: a weak one does not stand for the same bytes.
fn strong_etag(headers: &HeaderMap) -> Option<String> {
    let etag = headers.get(ETAG)?.to_str().ok()?;
    (etag.starts_with('"') && etag.ends_with('"') && etag.len() > 2).then(|| etag.to_owned())
}

/// https anywhere, plain http on this machine only.
fn is_allowed_url(url: &Url) -> bool {
    match url.scheme() {
        "https" => url.has_host(),
        "http" => is_loopback(url),
        _ => false,
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// From https to https only; on this machine, in plain, to this machine only.
fn is_allowed_redirect(from: &Url, to: &Url) -> bool {
    match (from.scheme(), to.scheme()) {
        ("https", "https") => true,
        ("http", "http") => is_loopback(from) && is_loopback(to),
        _ => false,
    }
}

fn refused(response: &Response) -> SourceError {
    SourceError::Refused { host: host(response.url()), status: response.status().as_u16() }
}

fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or("?");
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Message of the innermost cause, fit for a terminal and without the URL.
fn reason(error: &egress::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    let innermost = causes.last().map_or_else(|| "the connection failed".to_owned(), ToString::to_string);
    text::terminal::one_line(&innermost).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn redirects_keep_https_and_plain_http_stays_on_this_machine() {
        assert!(is_allowed_redirect(&url("https://a/x"), &url("https://b/y")));
        assert!(is_allowed_redirect(&url("http://127.0.0.1:1/x"), &url("http://[::1]:2/y")));
        for (from, to) in [
            ("https://a/x", "http://a/x"),
            ("https://a/x", "http://127.0.0.1/x"),
            ("http://127.0.0.1/x", "http://a/x"),
            ("http://127.0.0.1/x", "https://a/x"),
            ("https://a/x", "ftp://a/x"),
        ] {
            assert!(!is_allowed_redirect(&url(from), &url(to)), "{from} to {to}");
        }
    }

    #[test]
    fn plain_http_and_credentials_are_no_address() {
        let file = HubFile { repository: "o/r", revision: "c", path: "f" };
        for base in ["http://hub.example", "https://me:canary@hub.example", "ftp://hub.example", "hub"] {
            let hub = Hub { base_url: base.to_owned(), ..Hub::default() };
            let error = hub.url(&file).unwrap_err();
            assert_eq!(error.code(), "bad_address", "{base}");
            assert!(!error.to_string().contains("canary"));
        }
        let hub = Hub { base_url: "https://hub.example/".to_owned(), ..Hub::default() };
        assert_eq!(hub.url(&file).unwrap().as_str(), "https://hub.example/o/r/resolve/c/f");
    }

    #[test]
    fn weak_validators_do_not_count() {
        let etag = |value: &str| strong_etag(&HeaderMap::from_iter([(ETAG, value.parse().unwrap())]));
        assert_eq!(etag("\"abc\""), Some("\"abc\"".to_owned()));
        assert_eq!((etag("W/\"abc\""), etag("\"\""), etag("abc")), (None, None, None));
    }
}
