//! Tokens counted by the server a request is about to go to: llama.cpp and vLLM have `/tokenize` beside their API.
//! llama.cpp writes a conversation in its model's template besides (`/apply-template`), so that all of it is counted.
//!
//! It fails open: what a server does not count, or not in time, is left to the estimate. One that says that it does not
//! count is not asked again, nor is one that failed three times in a row; a text it does not take is passed over.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::dialect::DialectName;
use crate::encoded::{EncodedRequest, PartKind};
use crate::http_client::Client;
use crate::model_list::read;
use crate::token_counter::{CountedChunks, TokenCounter, chunks};

/// How long a server may take to count what is new in a request.
const PATIENCE: Duration = Duration::from_secs(5);

/// Failures in a row after which a server is not asked again.
const FAILURES: u32 = 3;

/// More tokens than a vocabulary puts around a request.
const MOST_SPECIAL: u64 = 4;

/// Counts by asking a server.
#[derive(Debug)]
pub(crate) struct ServerCounter {
    client: Client,
    model: String,
    counted: CountedChunks,
    /// Tokens of whole requests, by their bodies.
    requests: CountedChunks,
    /// Tokens around each request.
    special: OnceLock<u64>,
    /// Whether the server writes no templates.
    has_no_template: AtomicBool,
    /// Failures in a row.
    failures: AtomicU32,
}

/// The question, for llama.cpp (`content`) and vLLM (`model`, `prompt`) alike; both pass over what is the other's.
#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    content: &'a str,
    prompt: &'a str,
    add_special: bool,
    add_special_tokens: bool,
}

/// What became of a question.
enum Asked {
    Counted,
    /// It does not take this text.
    PassedOver,
    /// It may count later: it is loading, or was not reached.
    Failed,
    /// It does not count.
    Refused,
}

/// A request for raw text, or a conversation in its model's template.
#[derive(Deserialize)]
struct Prompted {
    prompt: String,
}

#[derive(Deserialize)]
struct Answer {
    count: Option<u64>,
    tokens: Option<Vec<IgnoredAny>>,
}

impl ServerCounter {
    pub(crate) fn new(client: Client, model: &str) -> Self {
        Self {
            client,
            model: model.to_owned(),
            counted: CountedChunks::default(),
            requests: CountedChunks::default(),
            special: OnceLock::new(),
            has_no_template: AtomicBool::new(false),
            failures: AtomicU32::new(0),
        }
    }

    async fn ask(&self, chunk: &str) -> Asked {
        match self.count(chunk, false).await {
            // No token is empty, and no byte more than a few.
            Ok(tokens) if (1..=4 * chunk.len() as u64).contains(&tokens) => {
                self.counted.keep(chunk, tokens);
                Asked::Counted
            }
            Ok(_) => Asked::Refused,
            Err(why) => why,
        }
    }

    /// Tokens of a text, `with_special` with those that the vocabulary puts around a request.
    async fn count(&self, text: &str, with_special: bool) -> Result<u64, Asked> {
        let question = Question {
            model: &self.model,
            content: text,
            prompt: text,
            add_special: with_special,
            add_special_tokens: with_special,
        };
        let Some(url) = self.client.endpoint.beside("tokenize") else { return Err(Asked::Refused) };
        let Ok(body) = serde_json::to_vec(&question) else { return Err(Asked::Refused) };
        let Ok(response) = self.client.post(url, Bytes::from(body), false).await else {
            return Err(Asked::Failed);
        };
        let status = response.status().as_u16();
        let Ok(said) = read(&self.client, response).await else { return Err(Asked::Failed) };
        match status {
            200 => {}
            // Not now; 501 is for good.
            408 | 429 | 500 | 502..=599 => return Err(Asked::Failed),
            400 | 413 | 422 => return Err(Asked::PassedOver),
            _ => return Err(Asked::Refused),
        }
        let answer = serde_json::from_slice::<Answer>(&said).ok();
        let counted = answer.and_then(|said| said.count.or(said.tokens.map(|tokens| tokens.len() as u64)));
        counted.ok_or(Asked::Refused)
    }

    /// Tokens that the vocabulary puts around a request, as that of its beginning; 0 where the server does not say.
    async fn special(&self) -> u64 {
        if let Some(known) = self.special.get() {
            return *known;
        }
        match self.count("", true).await {
            Ok(tokens) if tokens <= MOST_SPECIAL => *self.special.get_or_init(|| tokens),
            _ => 0,
        }
    }

    /// The text of a request as its model reads it: raw, or a conversation as the server writes it in the template.
    async fn prompt(&self, request: &EncodedRequest) -> Option<String> {
        match request.dialect() {
            DialectName::OpenAiCompletions => {
                serde_json::from_slice::<Prompted>(request.body()).ok().map(|body| body.prompt)
            }
            DialectName::OpenAiChat if !self.has_no_template.load(Ordering::Relaxed) => {
                self.templated(request).await
            }
            _ => None,
        }
    }

    async fn templated(&self, request: &EncodedRequest) -> Option<String> {
        let url = self.client.endpoint.beside("apply-template")?;
        let response = self.client.post(url, request.body().clone(), false).await.ok()?;
        let status = response.status().as_u16();
        let said = read(&self.client, response).await.ok()?;
        let templated = serde_json::from_slice::<Prompted>(&said).ok().filter(|_| status == 200);
        let is_later = matches!(status, 408 | 429 | 500 | 502..=599);
        if templated.is_none() && !is_later {
            self.has_no_template.store(true, Ordering::Relaxed);
        }
        Some(templated?.prompt)
    }

    fn is_given_up(&self) -> bool {
        self.failures.load(Ordering::Relaxed) >= FAILURES
    }
}

#[async_trait]
impl TokenCounter for ServerCounter {
    fn name(&self) -> &'static str {
        "server"
    }

    fn known(&self, text: &str) -> Option<u64> {
        self.counted.sum(text)
    }

    async fn learn(&self, texts: &[String]) {
        if self.is_given_up() {
            return;
        }
        let asking = async {
            for chunk in texts.iter().flat_map(|text| chunks(text)) {
                if self.counted.get(chunk).is_some() {
                    continue;
                }
                match self.ask(chunk).await {
                    Asked::Counted => self.failures.store(0, Ordering::Relaxed),
                    Asked::PassedOver => {
                        self.failures.fetch_add(1, Ordering::Relaxed);
                        if self.is_given_up() {
                            return;
                        }
                    }
                    Asked::Refused => return self.failures.store(FAILURES, Ordering::Relaxed),
                    Asked::Failed => {
                        self.failures.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                }
            }
        };
        // What was counted until then is kept.
        if tokio::time::timeout(PATIENCE, asking).await.is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Pictures and sounds are no text, and stay estimated.
    async fn learn_request(&self, request: &EncodedRequest) {
        let has_media = request.ranges().iter().any(|range| range.kind == PartKind::Media);
        // A server that counted nothing is not asked about templates either: it might answer the request.
        let counts_none = self.is_given_up() || self.counted.is_empty();
        if has_media || counts_none || self.request(request).is_some() {
            return;
        }
        let asking = async { Some((self.prompt(request).await?, self.special().await)) };
        let Ok(Some((prompt, special))) = tokio::time::timeout(PATIENCE, asking).await else { return };
        let texts = [prompt];
        self.learn(&texts).await;
        if let Some(tokens) = texts.iter().map(|text| self.known(text)).sum::<Option<u64>>() {
            self.requests.keep(request.body(), tokens + special);
        }
    }

    fn request(&self, request: &EncodedRequest) -> Option<u64> {
        self.requests.get(request.body())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use axum::http::StatusCode;

    use super::*;
    use crate::{Connection, DialectName};

    /// What is known of three texts after a server answered the questions with these statuses, and how often it was
    /// asked in all, the texts being learned `times` times.
    async fn learned(statuses: &'static [u16], times: usize) -> ([bool; 3], usize) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let answer = move || {
            let status = statuses.get(count.fetch_add(1, Ordering::SeqCst)).copied().unwrap_or(200);
            let status = StatusCode::from_u16(status).unwrap();
            async move { (status, r#"{"tokens":[1]}"#) }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = axum::Router::new().fallback(answer);
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await });
        let client =
            Client::new(DialectName::OpenAiChat, Connection::new(format!("http://{address}/v1"))).unwrap();
        let counter = ServerCounter::new(client, "m");
        let texts = ["one", "two", "three"].map(str::to_owned);
        for _ in 0..times {
            counter.learn(&texts).await;
        }
        serving.abort();
        (texts.map(|text| counter.known(&text).is_some()), asked.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn a_text_that_is_not_taken_is_passed_over_and_a_server_that_refuses_is_left_alone() {
        assert_eq!(learned(&[400, 200, 200], 1).await, ([false, true, true], 3));
        assert_eq!(learned(&[413, 422, 200], 1).await, ([false, false, true], 3));
        // Asked again the next time.
        assert_eq!(learned(&[400], 2).await, ([true; 3], 4));
        assert_eq!(learned(&[400; 9], 3).await, ([false; 3], 3), "three in a row");
        for refused in [&[401], &[403], &[404], &[501]] {
            assert_eq!(learned(refused, 2).await, ([false; 3], 1), "{refused:?}");
        }
        // One that fails is asked once a time.
        assert_eq!(learned(&[503, 503], 3).await, ([true; 3], 5));
        assert_eq!(learned(&[503; 9], 5).await, ([false; 3], 3));
    }
}
