//! Thread of the engine: one job after the other.
//!
//! All computation happens here, so that callers never wait for it and a job can be cancelled at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use crate::decoder::{Cancelled, Decoder};
use crate::engine::LoadedModel;
use crate::error::RunError;
use crate::job::{
    EngineJob, JobEvent, JobListener, JobResult, PromptUsage, StopReason, Token, TokenAlternative,
};
use crate::kv_cache::{KvCache, PrefixCache, Sequence};
use crate::sampler::{Sampler, log_probabilities};
use crate::stop_filter::{FilteredText, StopFilter};

/// Tokens read at a time.
const CHUNK: usize = 64;

/// Job in the engine's queue.
pub(crate) struct QueuedJob {
    pub(crate) job: EngineJob,
    pub(crate) listener: JobListener,
    pub(crate) cancelled: Arc<AtomicBool>,
}

/// Runs jobs until every sender of the queue is gone.
pub(crate) fn run_jobs(model: &LoadedModel, cache_bytes: usize, jobs: &Receiver<QueuedJob>) {
    let config = &model.decoder.config;
    let empty = KvCache::new(config.layers, config.kv_heads * config.head);
    let mut cache = PrefixCache::new(empty, config.token_bytes(), cache_bytes);
    while let Ok(QueuedJob { job, mut listener, cancelled }) = jobs.recv() {
        let mut run = JobRun {
            model,
            job: &job,
            cancelled: &cancelled,
            listener: &mut listener,
            stop_filter: StopFilter::new(&job.stop),
            waiting: Vec::new(),
            given: 0,
        };
        let end = run.answer(&mut cache);
        listener(JobEvent::Ended(end));
    }
}

struct JobRun<'a> {
    model: &'a LoadedModel,
    job: &'a EngineJob,
    cancelled: &'a AtomicBool,
    listener: &'a mut JobListener,
    stop_filter: StopFilter,
    /// Tokens whose text is held back, each with the place in the answer's bytes where it begins.
    waiting: Vec<(usize, Token)>,
    /// Bytes of the answer given to the listener.
    given: usize,
}

impl JobRun<'_> {
    fn answer(&mut self, cache: &mut PrefixCache) -> Result<JobResult, RunError> {
        if self.is_cancelled() {
            return Err(RunError::Cancelled);
        }
        let prompt = self.model.prompt_tokens(&self.job.prompt)?;
        let window = self.model.window as usize;
        let most = (self.job.max_tokens as usize).min(window - prompt.len());
        let mut sequence = cache.take_prefix(&prompt, prompt.len() + most);
        (self.listener)(JobEvent::Started(PromptUsage {
            prompt_tokens: count(prompt.len()),
            cached_tokens: count(sequence.kv.len()),
        }));
        let end = self.generate(&prompt, most, &mut sequence);
        cache.insert(sequence);
        end
    }

    fn generate(
        &mut self,
        prompt: &[u32],
        most: usize,
        sequence: &mut Sequence,
    ) -> Result<JobResult, RunError> {
        let mut logits = self.read(prompt.get(sequence.kv.len()..).unwrap_or_default(), sequence)?;
        let mut sampler = Sampler::new(self.job.sampling.clone());
        for number in 1..=most {
            let Some(token) = sampler.next(&logits) else {
                return Err(RunError::Compute("there is no token to choose".to_owned()));
            };
            let finished = |reason| JobResult { reason, tokens: count(number) };
            if self.model.vocabulary.ends(token) {
                self.flush();
                return Ok(finished(StopReason::End));
            }
            if self.say(token, &logits) {
                return Ok(finished(StopReason::Stop));
            }
            if number < most {
                logits = self.read(&[token], sequence)?;
            }
        }
        self.flush();
        Ok(JobResult { reason: StopReason::Length, tokens: count(most) })
    }

    /// Reads tokens chunk by chunk, and tells how far it is between two of them; gives the logits after the last one.
    fn read(&mut self, tokens: &[u32], sequence: &mut Sequence) -> Result<Vec<f32>, RunError> {
        let decoder: &Decoder = &self.model.decoder;
        let (mut logits, mut rest) = (Vec::new(), tokens);
        for chunk in tokens.chunks(CHUNK) {
            let read = decoder.read_on(chunk, &mut sequence.kv, &|| self.is_cancelled());
            logits = read.map_err(|Cancelled| RunError::Cancelled)?;
            sequence.tokens.extend_from_slice(chunk);
            if chunk.len() < rest.len() {
                (self.listener)(JobEvent::Read(count(sequence.tokens.len())));
            }
            rest = rest.get(chunk.len()..).unwrap_or_default();
        }
        if self.is_cancelled() { Err(RunError::Cancelled) } else { Ok(logits) }
    }

    /// Takes a token into the answer; whether a stop text is complete.
    fn say(&mut self, token: u32, logits: &[f32]) -> bool {
        let vocabulary = &self.model.vocabulary;
        let bytes = |token: u32| vocabulary.spelling(token).to_vec();
        let (mut logprob, mut top) = (None, Vec::new());
        if let Some(alternatives) = self.job.logprobs {
            let (chosen, likeliest) = log_probabilities(logits, token, usize::from(alternatives));
            logprob = Some(chosen.logprob);
            let alternative = |scored: crate::sampler::TokenScore| TokenAlternative {
                id: scored.token,
                bytes: bytes(scored.token),
                logprob: scored.logprob,
            };
            top = likeliest.into_iter().map(alternative).collect();
        }
        let begins = self.given + self.stop_filter.held();
        self.waiting.push((begins, Token { id: token, bytes: bytes(token), logprob, top }));
        let filtered = self.stop_filter.push(vocabulary.text_of(token));
        let stopped = filtered.stopped;
        self.give(filtered);
        stopped
    }

    /// The answer has ended: what was held back is certain now.
    fn flush(&mut self) {
        let filtered = self.stop_filter.finish();
        self.give(filtered);
        let left: Vec<Token> = self.waiting.drain(..).map(|(_, token)| token).collect();
        if !left.is_empty() {
            (self.listener)(JobEvent::Text { text: String::new(), tokens: left });
        }
    }

    fn give(&mut self, filtered: FilteredText) {
        self.given += filtered.bytes;
        let given = self.given;
        let ready = self.waiting.iter().take_while(|(begins, _)| *begins < given).count();
        let tokens: Vec<Token> = self.waiting.drain(..ready).map(|(_, token)| token).collect();
        if !filtered.text.is_empty() || !tokens.is_empty() {
            (self.listener)(JobEvent::Text { text: filtered.text, tokens });
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
