//! The engine's thread: one job after the other.
//!
//! Everything that takes long happens here, so that whoever asks is never held up and can be let go at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use crate::decoder::{Decoder, Stopped};
use crate::engine::Model;
use crate::error::RunError;
use crate::job::{Alternative, Begun, Finished, Job, Listener, Reason, Token, Update};
use crate::kv::{Kept, Kv, Sequence};
use crate::release::{Release, Released};
use crate::sampler::{Sampler, scored};

/// Tokens read at a time.
const CHUNK: usize = 64;

/// A job on its way.
pub(crate) struct Order {
    pub(crate) job: Job,
    pub(crate) listener: Listener,
    pub(crate) cancelled: Arc<AtomicBool>,
}

/// Works until there is no one left to ask.
pub(crate) fn work(model: &Model, kept_bytes: usize, orders: &Receiver<Order>) {
    let config = &model.decoder.config;
    let empty = Kv::new(config.layers, config.kv_heads * config.head);
    let mut kept = Kept::new(empty, config.token_bytes(), kept_bytes);
    while let Ok(Order { job, mut listener, cancelled }) = orders.recv() {
        let mut run = Run {
            model,
            job: &job,
            cancelled: &cancelled,
            listener: &mut listener,
            release: Release::new(&job.stop),
            waiting: Vec::new(),
            given: 0,
        };
        let end = run.answer(&mut kept);
        listener(Update::Ended(end));
    }
}

struct Run<'a> {
    model: &'a Model,
    job: &'a Job,
    cancelled: &'a AtomicBool,
    listener: &'a mut Listener,
    release: Release,
    /// Tokens whose text is held back, each with the place in the answer's bytes where it begins.
    waiting: Vec<(usize, Token)>,
    /// Bytes of the answer given to the listener.
    given: usize,
}

impl Run<'_> {
    fn answer(&mut self, kept: &mut Kept) -> Result<Finished, RunError> {
        if self.is_cancelled() {
            return Err(RunError::Cancelled);
        }
        let prompt = self.model.prompt_tokens(&self.job.prompt)?;
        let window = self.model.window as usize;
        let most = (self.job.max_tokens as usize).min(window - prompt.len());
        let mut sequence = kept.begin(&prompt, prompt.len() + most);
        (self.listener)(Update::Begun(Begun {
            prompt_tokens: count(prompt.len()),
            cached_tokens: count(sequence.kv.len()),
        }));
        let end = self.generate(&prompt, most, &mut sequence);
        kept.keep(sequence);
        end
    }

    fn generate(
        &mut self,
        prompt: &[u32],
        most: usize,
        sequence: &mut Sequence,
    ) -> Result<Finished, RunError> {
        let mut logits = self.read(prompt.get(sequence.kv.len()..).unwrap_or_default(), sequence)?;
        let mut sampler = Sampler::new(self.job.sampling.clone());
        for number in 1..=most {
            let Some(token) = sampler.next(&logits) else {
                return Err(RunError::Compute("there is no token to choose".to_owned()));
            };
            let finished = |reason| Finished { reason, tokens: count(number) };
            if self.model.vocabulary.ends(token) {
                self.flush();
                return Ok(finished(Reason::End));
            }
            if self.say(token, &logits) {
                return Ok(finished(Reason::Stop));
            }
            if number < most {
                logits = self.read(&[token], sequence)?;
            }
        }
        self.flush();
        Ok(Finished { reason: Reason::Length, tokens: count(most) })
    }

    /// Reads tokens chunk by chunk; gives the logits after the last one.
    fn read(&self, tokens: &[u32], sequence: &mut Sequence) -> Result<Vec<f32>, RunError> {
        let decoder: &Decoder = &self.model.decoder;
        let mut logits = Vec::new();
        for chunk in tokens.chunks(CHUNK) {
            let read = decoder.read_on(chunk, &mut sequence.kv, &|| self.is_cancelled());
            logits = read.map_err(|stopped| match stopped {
                Stopped::Cancelled => RunError::Cancelled,
                Stopped::Failed(error) => error,
            })?;
            sequence.tokens.extend_from_slice(chunk);
        }
        if self.is_cancelled() { Err(RunError::Cancelled) } else { Ok(logits) }
    }

    /// Takes a token into the answer; whether a stop text is complete.
    fn say(&mut self, token: u32, logits: &[f32]) -> bool {
        let vocabulary = &self.model.vocabulary;
        let bytes = |token: u32| vocabulary.spelling(token).to_vec();
        let (mut logprob, mut top) = (None, Vec::new());
        if let Some(alternatives) = self.job.logprobs {
            let (chosen, likeliest) = scored(logits, token, usize::from(alternatives));
            logprob = Some(chosen.logprob);
            let alternative = |scored: crate::sampler::Scored| Alternative {
                id: scored.token,
                bytes: bytes(scored.token),
                logprob: scored.logprob,
            };
            top = likeliest.into_iter().map(alternative).collect();
        }
        let begins = self.given + self.release.held();
        self.waiting.push((begins, Token { id: token, bytes: bytes(token), logprob, top }));
        let released = self.release.push(vocabulary.text_of(token));
        let stopped = released.stopped;
        self.give(released);
        stopped
    }

    /// The answer has ended: what was held back is certain now.
    fn flush(&mut self) {
        let released = self.release.finish();
        self.give(released);
        let left: Vec<Token> = self.waiting.drain(..).map(|(_, token)| token).collect();
        if !left.is_empty() {
            (self.listener)(Update::Text { text: String::new(), tokens: left });
        }
    }

    fn give(&mut self, released: Released) {
        self.given += released.bytes;
        let given = self.given;
        let ready = self.waiting.iter().take_while(|(begins, _)| *begins < given).count();
        let tokens: Vec<Token> = self.waiting.drain(..ready).map(|(_, token)| token).collect();
        if !released.text.is_empty() || !tokens.is_empty() {
            (self.listener)(Update::Text { text: released.text, tokens });
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
