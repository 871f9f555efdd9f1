//! Counting while a request is prepared: who is asked, and how long it is waited for.
//!
//! After a question that a server did not answer in time it is asked no more for the same request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::{CountEnd, EncodedRequest, ModelInfo, Prompt, TokenCounter};
use tokio::time::Instant;

use crate::call::Call;
use crate::counter_silence::{CountedWhat, CounterSilence};
use crate::event::SessionEvent;
use crate::runtime::Runtime;

/// How long the preparation of a request waits for a server that counts.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who is asked for the tokens of a request.
#[derive(Clone, Copy)]
pub(crate) enum CountingScope<'a> {
    /// What counts in this process.
    Process,
    /// The model's server as well, which reads the texts then; of this call, which is told.
    Server(&'a Call),
}

/// The counter of a preparation, asked within its scope and until its deadline.
pub(crate) struct ScopedCounter<'a> {
    counter: Arc<dyn TokenCounter>,
    /// The call that asks the model's server, if it may be asked.
    call: Option<&'a Call>,
    /// Provider and name of the model.
    model: String,
    texts: CounterSilence,
    requests: CounterSilence,
    deadline: Instant,
    /// Whether the server had too little time for a question.
    is_late: AtomicBool,
    /// Whether the call was told that the server is asked.
    is_told: AtomicBool,
}

impl<'a> ScopedCounter<'a> {
    /// The counter of a model. It asks no server whose silence lasts.
    pub(crate) fn new(
        counter: Arc<dyn TokenCounter>,
        scope: CountingScope<'a>,
        runtime: &Runtime,
        info: &ModelInfo,
    ) -> Self {
        let silence = |what| CounterSilence::of(&runtime.home, info, what, runtime.now());
        let (texts, requests) = (silence(CountedWhat::Texts), silence(CountedWhat::Requests));
        let call = match scope {
            CountingScope::Server(call) if !counter.is_here() && !texts.lasts() => Some(call),
            CountingScope::Server(_) | CountingScope::Process => None,
        };
        Self {
            counter,
            call,
            model: info.full_name(),
            texts,
            requests,
            deadline: Instant::now() + PATIENCE,
            is_late: AtomicBool::new(false),
            is_told: AtomicBool::new(false),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.counter.name()
    }

    pub(crate) fn asks_server(&self) -> bool {
        self.call.is_some() && self.counter.may_count() && !self.is_late.load(Ordering::Relaxed)
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
        } else if !texts.is_empty() && self.asks_server() {
            self.within_deadline(&self.texts, self.counter.learn(texts)).await;
        }
    }

    /// Tokens of a whole request; none where they cannot be had.
    pub(crate) async fn request(&self, request: &EncodedRequest) -> Option<u64> {
        let known = self.counter.request(request);
        if known.is_some() || !self.asks_server() || self.requests.lasts() {
            return known;
        }
        self.within_deadline(&self.requests, self.counter.learn_request(request)).await;
        self.counter.request(request)
    }

    /// What is not counted until then stays estimated.
    async fn within_deadline(&self, silence: &CounterSilence, counting: impl Future<Output = CountEnd>) {
        if let Some(call) = self.call
            && !self.is_told.swap(true, Ordering::Relaxed)
        {
            call.events.emit(SessionEvent::Counting { model: self.model.clone() });
        }
        let end = tokio::time::timeout_at(self.deadline, counting).await.unwrap_or(CountEnd::OutOfTime);
        if end == CountEnd::InTime {
            return;
        }
        self.is_late.store(true, Ordering::Relaxed);
        tracing::debug!("a server took too long to count a request: the rest of it is estimated");
        if end == CountEnd::Silent {
            silence.keep();
        }
    }
}
