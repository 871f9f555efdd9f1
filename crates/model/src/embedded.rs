//! The embedded engine as a model like any other.
//!
//! The body of a request is the canonical JSON of the templated prompt and the parameters (spec: context §1).
//! The prompt is a list: `form` is what the chat template writes and may become control tokens, `text` is what
//! is said and never does. So a stored body says exactly what the engine read, and replays from its bytes.
//!
//! The answer is written as a server would write it and takes the way of every other answer: spool, parser,
//! listener. It can be read again and verified like one that came over a wire.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gguf::{Engine, EngineOptions, LoadError, PromptCounter};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::capture::{Clock, RawResponse};
use crate::catalogue::{self, Tokenizer};
use crate::dialect::DialectName;
use crate::embedded_body::{self, Body};
use crate::embedded_wire::{self, CompletionFrame};
use crate::encoded::{EncodeError, EncodedRequest};
use crate::error::ModelError;
use crate::model::{CallOrigin, Exchange, Model, ModelInfo, SourceKind};
use crate::prompt::{Params, Prompt};
use crate::receive::{Io, Sent, Timeouts, receive};
use crate::token_counter::{CountEnd, CountedChunks, TokenCounter, chunks};

/// The engine reads a long prompt in minutes where a machine is slow; it cannot fall silent as a server can.
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(3_600),
    first_byte: Duration::from_secs(3_600),
    idle: Duration::from_secs(3_600),
};

/// How an embedded model is loaded.
#[derive(Debug, Clone)]
pub struct EmbeddedOptions {
    pub engine: EngineOptions,
    pub clock: Clock,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self { engine: EngineOptions::default(), clock: Clock::system() }
    }
}

/// A model in this process.
#[derive(Debug)]
pub struct EmbeddedModel {
    info: ModelInfo,
    engine: Engine,
    counter: Arc<EmbeddedCounter>,
    clock: Clock,
}

/// Counts with the vocabulary of the file.
#[derive(Debug)]
struct EmbeddedCounter {
    engine: PromptCounter,
    counted: CountedChunks,
}

#[async_trait]
impl TokenCounter for EmbeddedCounter {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn known(&self, text: &str) -> Option<u64> {
        let count = |chunk| {
            self.counted.get(chunk).or_else(|| {
                let tokens = self.engine.text(chunk).ok()?;
                self.counted.keep(chunk, tokens);
                Some(tokens)
            })
        };
        chunks(text).map(count).sum()
    }

    /// There is nothing that is not known.
    async fn learn(&self, _: &[String]) -> CountEnd {
        CountEnd::InTime
    }

    fn request(&self, request: &EncodedRequest) -> Option<u64> {
        let body: Body = serde_json::from_slice(request.body()).ok()?;
        self.engine.prompt(&body.into_prompt()).ok()
    }
}

impl EmbeddedModel {
    /// Loads a model; `name` is what it is called in manifests. Blocks while the file is read.
    ///
    /// # Errors
    /// A [`LoadError`] that names what is wrong with the file.
    pub fn load(path: &Path, name: &str, options: EmbeddedOptions) -> Result<Self, LoadError> {
        let engine = Engine::load(path, &options.engine)?;
        let window = engine.info().window;
        let info = ModelInfo {
            dialect: DialectName::Embedded,
            logprobs: true,
            tokenizer: tokenizer(name),
            ..ModelInfo::local("embedded", name, window, window)
        };
        let counter = EmbeddedCounter { engine: engine.counter(), counted: CountedChunks::default() };
        Ok(Self { info, engine, counter: Arc::new(counter), clock: options.clock })
    }

    /// What the owner should know of the model's conversations, if they are not written as its file has it.
    pub fn chat_notice(&self) -> Option<String> {
        let info = self.engine.info();
        match info.template {
            None => Some(
                "no chat template is known for this model's family: conversations are continued as raw text. To \
                 converse with it, serve it with llama.cpp, set providers.local.base_url to that server and give \
                 --model local/NAME"
                    .to_owned(),
            ),
            Some(template) if info.template_differs => Some(format!(
                "the chat template in the file is not run: conversations are written as {}",
                template.name()
            )),
            Some(_) => None,
        }
    }
}

/// How the weights of this name cut text, as far as it can be told from it.
fn tokenizer(name: &str) -> Tokenizer {
    catalogue::find(catalogue::OPEN, name).map_or(Tokenizer::Unknown, |known| known.entry.tokenizer)
}

#[async_trait]
impl Model for EmbeddedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn encode(&self, prompt: &Prompt, params: &Params) -> Result<EncodedRequest, EncodeError> {
        self.info.admit(prompt, params)?;
        embedded_body::encode(&self.engine, &self.info, prompt, params)
    }

    fn counter(&self) -> Option<Arc<dyn TokenCounter>> {
        Some(Arc::clone(&self.counter) as Arc<dyn TokenCounter>)
    }

    async fn send(
        &self,
        request: &EncodedRequest,
        call: &CallOrigin,
        exchange: Exchange<'_>,
    ) -> Result<RawResponse, ModelError> {
        let mut io = Io::new(exchange);
        let body: Body = serde_json::from_slice(request.body()).map_err(|_| EncodeError::Unsupported {
            what: "a request that was not written for the embedded engine",
        })?;
        let digest = Sha256::digest(request.body());
        let index = call.sibling.as_ref().map_or(0, |slot| slot.index);
        let frame = CompletionFrame {
            id: format!("embedded-{}-{index}", data_encoding::HEXLOWER.encode(&digest[..6])),
            model: self.info.name.clone(),
            stream: request.stream(),
            seed: body.seed(),
        };
        let sent = Sent {
            started_at: self.clock.now(),
            since: Instant::now(),
            attempt: 1,
            dialect: DialectName::Embedded,
            source: SourceKind::Local,
        };
        let job = body.job(frame.seed);
        let begun = tokio::select! {
            biased;
            () = io.cancel.cancelled() => return Err(ModelError::Cancelled { response: None, refused: false }),
            begun = embedded_wire::begin(&self.engine, job, frame) => begun,
        };
        let (head, mut wire) = begun;
        receive(head, &mut wire, sent, TIMEOUTS, &mut io).await
    }
}
