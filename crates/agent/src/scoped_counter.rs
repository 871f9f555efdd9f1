//! Counting while a request is prepared: who is asked, and how long it is waited for.
//!
//! After a question that a server did not answer in time it is asked no more for the same request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::{CountEnd, EncodedRequest, Prompt, TokenCounter};
use tokio::time::Instant;

use crate::counter_silence::CounterSilence;

/// How long the preparation of a request waits for a server that counts.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who is asked for the tokens of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountingScope {
    /// What counts in this process.
    Process,
    /// The model's server as well, which reads the texts then.
    Server,
}

/// The counter of a preparation, asked within its scope and until its deadline.
pub(crate) struct ScopedCounter {
    counter: Arc<dyn TokenCounter>,
    scope: CountingScope,
    silence: CounterSilence,
    deadline: Instant,
    /// Whether the server had too little time for a question.
    is_late: AtomicBool,
}

impl ScopedCounter {
    /// One that asks no server whose silence lasts.
    pub(crate) fn new(counter: Arc<dyn TokenCounter>, scope: CountingScope, silence: CounterSilence) -> Self {
        let is_late =
            AtomicBool::new(scope == CountingScope::Server && !counter.is_here() && silence.lasts());
        Self { counter, scope, silence, deadline: Instant::now() + PATIENCE, is_late }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.counter.name()
    }

    pub(crate) fn asks_server(&self) -> bool {
        self.scope == CountingScope::Server
            && !self.counter.is_here()
            && !self.is_late.load(Ordering::Relaxed)
    }

    /// Texts of a prompt that are not counted yet.
    pub(crate) fn unknown(&self, prompt: &Prompt) -> Vec<String> {
        let mut prompt = prompt.clone();
        let texts = prompt.texts_mut().into_iter().map(|(_, text)| std::mem::take(text));
        texts.filter(|text| self.counter.known(text).is_none()).collect()
    }

    /// Counts texts, as far as the scope and the deadline let it.
    pub(crate) async fn learn(&self, texts: &[String]) {
        if self.counter.is_here() {
            self.counter.learn(texts).await;
        } else if self.asks_server() {
            self.within_deadline(self.counter.learn(texts)).await;
        }
    }

    /// Tokens of a whole request; none where they cannot be had.
    pub(crate) async fn request(&self, request: &EncodedRequest) -> Option<u64> {
        if self.asks_server() {
            self.within_deadline(self.counter.learn_request(request)).await;
        }
        self.counter.request(request)
    }

    /// What is not counted until then stays estimated.
    async fn within_deadline(&self, counting: impl Future<Output = CountEnd>) {
        let end = tokio::time::timeout_at(self.deadline, counting).await.unwrap_or(CountEnd::OutOfTime);
        if end == CountEnd::InTime {
            return;
        }
        self.is_late.store(true, Ordering::Relaxed);
        tracing::debug!("a server took too long to count a request: the rest of it is estimated");
        if end == CountEnd::Silent {
            self.silence.keep();
        }
    }
}
