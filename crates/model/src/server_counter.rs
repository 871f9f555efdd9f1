//! Tokens counted by the server a request is about to go to: llama.cpp and vLLM have `/tokenize` beside their API.
//! llama.cpp writes a conversation in its model's template besides (`/apply-template`), so that all of it is counted.
//!
//! It fails open: what a server does not count, or not in time, is left to the estimate. One that says that it does not
//! count is not asked again by this process, nor is one that failed or took too long three times in a row; a text it does
//! not take is passed over. The same holds for templates, and for the tokens around a request, each by itself.

use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::counter_failures::{AskError, Failures};
use crate::dialect::DialectName;
use crate::encoded::{EncodedRequest, PartKind};
use crate::http_client::Client;
use crate::model_list::read;
use crate::token_counter::{CountEnd, CountedChunks, TokenCounter, chunks};
use crate::usage_bounds::least_tokens;

/// How long a server may take to count what is new in a request.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most tokens a vocabulary puts around a request.
const MAX_SPECIAL_TOKENS: u64 = 4;

/// The most bytes a template has of its own.
const MAX_TEMPLATE_BYTES: usize = 16 * 1024;

/// Times that a request in its template may be as long as its body: schemas of tools are written with indents there.
const TEMPLATE_GROWTH: usize = 4;

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
    text_failures: Failures,
    /// Of all texts of a request together: none fails where a server is slow.
    timeouts: Failures,
    template_failures: Failures,
    special_failures: Failures,
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

/// The body of a request for raw text, or a conversation in its model's template.
#[derive(Deserialize)]
struct PromptBody {
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
            text_failures: Failures::default(),
            timeouts: Failures::default(),
            template_failures: Failures::default(),
            special_failures: Failures::default(),
        }
    }

    /// Posts a question to a path beside the API.
    async fn ask<T: DeserializeOwned>(&self, path: &str, body: Bytes) -> Result<T, AskError> {
        let url = self.client.endpoint.beside(path).ok_or(AskError::Unsupported)?;
        let response = self.client.post(url, body, false).await.map_err(|_| AskError::Unavailable)?;
        let status = response.status().as_u16();
        let said = read(&self.client, response).await.map_err(|_| AskError::Unavailable)?;
        match status {
            200 => serde_json::from_slice(&said).map_err(|_| AskError::Unsupported),
            // Not now; 501 is for good.
            408 | 429 | 500 | 502..=599 => Err(AskError::Unavailable),
            400 | 413 | 422 => Err(AskError::Rejected),
            _ => Err(AskError::Unsupported),
        }
    }

    /// Tokens of a text, `with_special` with those that the vocabulary puts around a request.
    async fn count(&self, text: &str, with_special: bool) -> Result<u64, AskError> {
        let question = Question {
            model: &self.model,
            content: text,
            prompt: text,
            add_special: with_special,
            add_special_tokens: with_special,
        };
        let body = serde_json::to_vec(&question).map_err(|_| AskError::Unsupported)?;
        let said: Answer = self.ask("tokenize", Bytes::from(body)).await?;
        said.count.or(said.tokens.map(|tokens| tokens.len() as u64)).ok_or(AskError::Unsupported)
    }

    fn gives_no_counts(&self) -> bool {
        self.text_failures.is_given_up() || self.timeouts.is_given_up()
    }

    async fn count_chunk(&self, chunk: &str) -> Result<(), AskError> {
        let tokens = self.count(chunk, false).await?;
        // No token is empty, and no byte more than a few.
        let bytes = chunk.len() as u64;
        if !(1..=4 * bytes).contains(&tokens) {
            return Err(AskError::Unsupported);
        }
        // Of a rule of signs alone it may be true.
        if tokens < least_tokens(bytes) {
            return Err(AskError::Rejected);
        }
        self.counted.keep(chunk, tokens);
        Ok(())
    }

    /// Tokens that the vocabulary puts around a request, as that of its beginning; 0 where the server does not say.
    async fn special(&self) -> Result<u64, CountEnd> {
        if let Some(known) = self.special.get() {
            return Ok(*known);
        }
        if self.special_failures.is_given_up() {
            return Ok(0);
        }
        let counted = tokio::time::timeout(PATIENCE, self.count("", true)).await.ok();
        self.special_failures.note(counted.as_ref());
        match counted {
            Some(Ok(tokens)) if tokens <= MAX_SPECIAL_TOKENS => Ok(*self.special.get_or_init(|| tokens)),
            // What a server says of no text, it says every time.
            Some(Ok(_) | Err(AskError::Rejected | AskError::Unsupported)) => {
                Ok(*self.special.get_or_init(|| 0))
            }
            Some(Err(AskError::Unavailable)) => Ok(0),
            None => Err(CountEnd::OutOfTime),
        }
    }

    /// The text of a request as its model reads it: raw, or a conversation as the server writes it in the template.
    async fn prompt(&self, request: &EncodedRequest) -> Result<Option<String>, CountEnd> {
        match request.dialect() {
            DialectName::OpenAiCompletions => {
                Ok(serde_json::from_slice::<PromptBody>(request.body()).ok().map(|body| body.prompt))
            }
            DialectName::OpenAiChat if !self.template_failures.is_given_up() => self.templated(request).await,
            _ => Ok(None),
        }
    }

    async fn templated(&self, request: &EncodedRequest) -> Result<Option<String>, CountEnd> {
        let asking = async {
            let PromptBody { prompt } = self.ask("apply-template", request.body().clone()).await?;
            if is_plausible(&prompt, request) { Ok(prompt) } else { Err(AskError::Unsupported) }
        };
        let answer = tokio::time::timeout(PATIENCE, asking).await.ok();
        self.template_failures.note(answer.as_ref());
        answer.map(Result::ok).ok_or(CountEnd::Silent)
    }

    /// Counts a request as its model reads it. After a question that had too little time, no other one is asked.
    async fn count_request(&self, request: &EncodedRequest) -> Result<(), CountEnd> {
        let Some(prompt) = self.prompt(request).await? else { return Ok(()) };
        let special = self.special().await?;
        let texts = [prompt];
        let end = self.learn(&texts).await;
        if let Some(tokens) = texts.iter().map(|text| self.known(text)).sum::<Option<u64>>() {
            self.requests.keep(request.body(), tokens + special);
        }
        if end == CountEnd::InTime { Ok(()) } else { Err(CountEnd::OutOfTime) }
    }
}

/// Whether a text can be a request in its template, by its length: it holds what was said, which templates trim at most, and
/// not much more than the body.
fn is_plausible(prompt: &str, request: &EncodedRequest) -> bool {
    let kinds =
        [PartKind::System, PartKind::User, PartKind::Injected, PartKind::Assistant, PartKind::ToolResult];
    let said = request.ranges().iter().filter(|range| kinds.contains(&range.kind));
    let least = said.map(|range| request.plain_text(range).trim().len()).sum::<usize>().max(1);
    let most = request.body().len().saturating_mul(TEMPLATE_GROWTH).saturating_add(MAX_TEMPLATE_BYTES);
    (least..=most).contains(&prompt.len())
}

#[async_trait]
impl TokenCounter for ServerCounter {
    fn name(&self) -> &'static str {
        "server"
    }

    fn known(&self, text: &str) -> Option<u64> {
        self.counted.sum(text)
    }

    fn may_count(&self) -> bool {
        !self.gives_no_counts()
    }

    async fn learn(&self, texts: &[String]) -> CountEnd {
        if self.gives_no_counts() {
            return CountEnd::InTime;
        }
        let mut is_answered = false;
        let asking = async {
            for chunk in texts.iter().flat_map(|text| chunks(text)) {
                if self.text_failures.is_given_up() {
                    return;
                }
                if self.counted.get(chunk).is_some() {
                    continue;
                }
                let counted = self.count_chunk(chunk).await;
                is_answered = true;
                self.text_failures.note(Some(&counted));
                if matches!(counted, Err(AskError::Unavailable)) {
                    return;
                }
            }
        };
        // What was counted until then is kept.
        let ended = tokio::time::timeout(PATIENCE, asking).await;
        self.timeouts.note(ended.as_ref().ok().map(|()| Ok::<(), AskError>(())).as_ref());
        match ended {
            Ok(()) => CountEnd::InTime,
            Err(_) if is_answered => CountEnd::OutOfTime,
            Err(_) => CountEnd::Silent,
        }
    }

    /// Pictures and sounds are no text, and stay estimated.
    async fn learn_request(&self, request: &EncodedRequest) -> CountEnd {
        let has_media = request.ranges().iter().any(|range| range.kind == PartKind::Media);
        // A server that counted nothing is not asked about templates either: it might answer the request.
        let counts_none = self.gives_no_counts() || self.counted.is_empty();
        if has_media || counts_none || self.request(request).is_some() {
            return CountEnd::InTime;
        }
        self.count_request(request).await.err().unwrap_or(CountEnd::InTime)
    }

    fn request(&self, request: &EncodedRequest) -> Option<u64> {
        self.requests.get(request.body())
    }
}

#[cfg(test)]
mod tests;
