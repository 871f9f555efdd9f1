//! Tokens counted by the server a request is about to go to: llama.cpp and vLLM have `/tokenize` beside their API.
//!
//! It fails open: a server that does not count, or does not answer in time, is not asked again, and what it was asked is
//! left to the estimate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::encoded::EncodedRequest;
use crate::http_client::Client;
use crate::model_list::read;
use crate::token_counter::{CountedChunks, TokenCounter, chunks};

/// How long a server may take to count what is new in a request.
const PATIENCE: Duration = Duration::from_secs(5);

/// Counts by asking a server.
#[derive(Debug)]
pub(crate) struct ServerCounter {
    client: Client,
    model: String,
    counted: CountedChunks,
    /// Whether it has shown that it does not count, or not in time.
    refuses: AtomicBool,
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

#[derive(Deserialize)]
struct Answer {
    count: Option<u64>,
    tokens: Option<Vec<IgnoredAny>>,
}

impl ServerCounter {
    pub(crate) fn new(client: Client, model: &str) -> Self {
        let (counted, refuses) = (CountedChunks::default(), AtomicBool::new(false));
        Self { client, model: model.to_owned(), counted, refuses }
    }

    /// Whether the server answered, whatever it said.
    async fn ask(&self, chunk: &str) -> bool {
        let question = Question {
            model: &self.model,
            content: chunk,
            prompt: chunk,
            add_special: false,
            add_special_tokens: false,
        };
        let Some(url) = self.client.endpoint.beside("tokenize") else { return false };
        let Ok(body) = serde_json::to_vec(&question) else { return false };
        let Ok(response) = self.client.post(url, Bytes::from(body), false).await else { return false };
        let ok = response.status().as_u16() == 200;
        let Ok(said) = read(&self.client, response).await else { return false };
        let answer = serde_json::from_slice::<Answer>(&said).ok().filter(|_| ok);
        match answer.and_then(|said| said.count.or(said.tokens.map(|tokens| tokens.len() as u64))) {
            // No token is empty, and no byte more than a few.
            Some(tokens) if (1..=4 * chunk.len() as u64).contains(&tokens) => {
                self.counted.keep(chunk, tokens);
            }
            _ => self.refuses.store(true, Ordering::Relaxed),
        }
        true
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
        let asking = async {
            for chunk in texts.iter().flat_map(|text| chunks(text)) {
                if self.refuses.load(Ordering::Relaxed) {
                    return;
                }
                if self.counted.get(chunk).is_none() && !self.ask(chunk).await {
                    self.refuses.store(true, Ordering::Relaxed);
                }
            }
        };
        // What was counted until then is kept.
        if tokio::time::timeout(PATIENCE, asking).await.is_err() {
            self.refuses.store(true, Ordering::Relaxed);
        }
    }

    /// The template is the server's.
    fn request(&self, _: &EncodedRequest) -> Option<u64> {
        None
    }
}
