//! Jobs of the engine, and the events of a job.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::RunError;
use crate::sampler::SamplingParams;
use crate::vocabulary::PromptPiece;

/// A prompt and how it is to be continued.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineJob {
    pub prompt: Vec<PromptPiece>,
    pub sampling: SamplingParams,
    /// Most tokens of the answer, which the window limits too.
    pub max_tokens: u32,
    /// Texts that end the answer and are not part of it.
    pub stop: Vec<String>,
    /// Number of alternatives for each token, if log-probabilities are wanted.
    pub logprobs: Option<u8>,
}

/// A token of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    pub id: u32,
    /// The bytes it is written with.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability before any choosing, where asked for.
    pub logprob: Option<f64>,
    /// The likeliest tokens at its place, likeliest first.
    pub top: Vec<TokenAlternative>,
}

/// Token that might have stood in another's place.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenAlternative {
    pub id: u32,
    /// The bytes it is written with.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability.
    pub logprob: f64,
}

/// Events of a job, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum JobEvent {
    /// The prompt was tokenized and will be read. Once, first.
    Started(PromptUsage),
    /// So many tokens of the prompt are read, the cached ones included. None for a prompt that is read in one piece.
    Read(u32),
    /// More of the answer. A token comes with the text that holds its first byte.
    Text {
        /// The new text; may be empty while a token's bytes are no character yet.
        text: String,
        tokens: Vec<Token>,
    },
    /// End of the job. Once, last.
    Ended(Result<JobResult, RunError>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptUsage {
    pub prompt_tokens: u32,
    /// Tokens of the prompt whose keys and values were cached.
    pub cached_tokens: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobResult {
    pub reason: StopReason,
    /// Tokens generated, the one that ended the answer included.
    pub tokens: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    End,
    Stop,
    /// The limit of tokens, or the window, was met.
    Length,
}

/// Handle of a job. Dropping it stops the job.
#[derive(Debug)]
pub struct JobHandle(pub(crate) Arc<AtomicBool>);

impl JobHandle {
    /// Stops the job. Returns at once; the engine's thread ends the job before the next layer it computes.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for JobHandle {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Callback for the events of a job, on the engine's thread, which waits for it to return.
pub type JobListener = Box<dyn FnMut(JobEvent) + Send>;
