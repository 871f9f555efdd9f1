//! What the engine is asked, and what it tells while it works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::RunError;
use crate::sampler::SamplingParams;
use crate::vocabulary::Piece;

/// A prompt and how it is to be continued.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineJob {
    /// The prompt.
    pub prompt: Vec<Piece>,
    /// How tokens are chosen.
    pub sampling: SamplingParams,
    /// Most tokens of the answer; the window bounds it too.
    pub max_tokens: u32,
    /// Texts that end the answer and are not part of it.
    pub stop: Vec<String>,
    /// Whether log-probabilities are wanted, with this many alternatives for each token.
    pub logprobs: Option<u8>,
}

/// A token of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// Its number.
    pub id: u32,
    /// The bytes it is written with.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability before any choosing, where asked for.
    pub logprob: Option<f64>,
    /// The likeliest tokens at its place, likeliest first.
    pub top: Vec<TokenAlternative>,
}

/// A token that might have stood in another's place.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenAlternative {
    /// Its number.
    pub id: u32,
    /// The bytes it is written with.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability.
    pub logprob: f64,
}

/// What the engine tells of a job, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum JobEvent {
    /// The prompt is understood and will be read. Once, first.
    Started(PromptUsage),
    /// More of the answer is certain. Tokens come with the text that first needs them.
    Text {
        /// The new text; may be empty while a token's bytes are no character yet.
        text: String,
        /// The new tokens.
        tokens: Vec<Token>,
    },
    /// The job has ended. Once, last.
    Ended(Result<JobResult, RunError>),
}

/// How a job begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptUsage {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Those of them whose keys and values were kept from earlier jobs.
    pub cached_tokens: u32,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobResult {
    /// Why.
    pub reason: StopReason,
    /// Tokens generated, the one that ended the answer included.
    pub tokens: u32,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The model ended it.
    End,
    /// A stop text came.
    Stop,
    /// The limit of tokens, or the window, was met.
    Length,
}

/// Holds a job. Dropping it stops the job.
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

/// Hears what the engine tells. Called on the engine's thread, which waits for it to return.
pub type JobListener = Box<dyn FnMut(JobEvent) + Send>;
