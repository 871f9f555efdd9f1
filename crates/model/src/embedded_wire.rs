//! The engine's answer as wire bytes: OpenAI completions, streamed or whole.
//!
//! The engine's thread writes each piece as soon as it is certain and hands it over through a bounded channel
//! (`wire`); a reader that is slow slows the engine, one that is gone stops it.

use async_trait::async_trait;
use bytes::Bytes;
use gguf::{
    Engine, EngineJob, JobEvent, JobHandle, JobListener, JobResult, PromptUsage, RunError, StopReason, Token,
};
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::embedded_body::{TokenLogprob, TopLogprob};
use crate::headers::KeptHeaders;
use crate::receive::{Head, Wire};

/// Pieces that may wait for the reader.
const WIRE: usize = 64;

/// The frame of an answer.
pub(crate) struct CompletionFrame {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) seed: u64,
}

enum WireItem {
    Refused(u16, Bytes),
    Bytes(Bytes),
    Broken(String),
}

/// The wire of an answer. Dropping it stops the job.
pub(crate) struct EngineWire {
    first: Option<Bytes>,
    items: Receiver<WireItem>,
    _job: Option<JobHandle>,
}

#[async_trait]
impl Wire for EngineWire {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        match self.items.recv().await {
            Some(WireItem::Bytes(bytes) | WireItem::Refused(_, bytes)) => Ok(Some(bytes)),
            Some(WireItem::Broken(why)) => Err(why),
            None => Ok(None),
        }
    }
}

/// Begins a job and waits until it is under way or refused. Cancel-safe: dropping it stops the job.
pub(crate) async fn begin(engine: &Engine, job: EngineJob, frame: CompletionFrame) -> (Head, EngineWire) {
    let (sender, items) = channel(WIRE);
    let stream = frame.stream;
    let logprobs = job.logprobs.is_some();
    let written =
        CompletionWriter { frame, sender, logprobs, begun: None, text: String::new(), tokens: Vec::new() };
    let job = match engine.run(job, written.listener()) {
        Ok(handle) => handle,
        Err(error) => {
            let (status, body) = refusal(&error);
            return (head(status, false), EngineWire { first: Some(body), items, _job: None });
        }
    };
    let mut wire = EngineWire { first: None, items, _job: Some(job) };
    let status = match wire.items.recv().await {
        Some(WireItem::Refused(status, body)) => {
            wire.first = Some(body);
            status
        }
        Some(WireItem::Bytes(bytes)) => {
            wire.first = Some(bytes);
            200
        }
        Some(WireItem::Broken(_)) | None => 200,
    };
    (head(status, stream && status == 200), wire)
}

fn head(status: u16, stream: bool) -> Head {
    let kind: &[u8] = if stream { b"text/event-stream" } else { b"application/json" };
    Head { status, headers: KeptHeaders::of([("content-type", kind)]), stream, retry_after: None }
}

/// The refusals of a server that mean the same.
fn refusal(error: &RunError) -> (u16, Bytes) {
    let (status, kind, code) = match error {
        RunError::TooLong { .. } => (400, "invalid_request_error", "context_length_exceeded"),
        RunError::Busy(_) => (429, "rate_limit_error", "rate_limit_exceeded"),
        RunError::Empty | RunError::Parameter(_) | RunError::Tokens(_) => {
            (400, "invalid_request_error", "invalid_request")
        }
        RunError::Cancelled | RunError::Compute(_) | RunError::Ended => (500, "server_error", "server_error"),
    };
    let body = json!({ "error": { "message": error.to_string(), "type": kind, "code": code } });
    (status, Bytes::from(body.to_string()))
}

/// Writes what the engine tells.
struct CompletionWriter {
    frame: CompletionFrame,
    sender: Sender<WireItem>,
    logprobs: bool,
    begun: Option<PromptUsage>,
    /// Of an answer that is not streamed: what came so far.
    text: String,
    tokens: Vec<TokenLogprob>,
}

impl CompletionWriter {
    fn listener(mut self) -> JobListener {
        Box::new(move |update| self.update(update))
    }

    fn update(&mut self, update: JobEvent) {
        match update {
            JobEvent::Started(begun) => {
                self.begun = Some(begun);
                if self.frame.stream {
                    let mut body = self.frame();
                    body["seed"] = self.frame.seed.into();
                    body["choices"] = json!([{ "index": 0, "text": "", "finish_reason": null }]);
                    self.event(&body);
                }
            }
            JobEvent::Read(tokens) => {
                if let (true, Some(begun)) = (self.frame.stream, self.begun) {
                    let mut body = self.frame();
                    body["prompt_progress"] = json!({ "processed": tokens, "total": begun.prompt_tokens });
                    self.event(&body);
                }
            }
            JobEvent::Text { text, tokens } if self.frame.stream => {
                let mut choice = json!({ "index": 0, "text": text, "finish_reason": null });
                if self.logprobs {
                    let content: Vec<TokenLogprob> = tokens.into_iter().map(written).collect();
                    choice["logprobs"] = json!({ "content": content });
                }
                let mut body = self.frame();
                body["choices"] = json!([choice]);
                self.event(&body);
            }
            JobEvent::Text { text, tokens } => {
                self.text.push_str(&text);
                self.tokens.extend(tokens.into_iter().map(written));
            }
            JobEvent::Ended(Ok(finished)) => self.finish(finished),
            JobEvent::Ended(Err(error)) if self.begun.is_none() || !self.frame.stream => {
                let (status, body) = refusal(&error);
                self.send(WireItem::Refused(status, body));
            }
            JobEvent::Ended(Err(error)) => self.send(WireItem::Broken(error.to_string())),
        }
    }

    fn finish(&mut self, finished: JobResult) {
        let reason = match finished.reason {
            StopReason::End | StopReason::Stop => "stop",
            StopReason::Length => "length",
        };
        let prompt = self.begun.map_or(0, |begun| begun.prompt_tokens);
        let usage = json!({
            "prompt_tokens": prompt,
            "completion_tokens": finished.tokens,
            "total_tokens": prompt.saturating_add(finished.tokens),
            "prompt_tokens_details": { "cached_tokens": self.begun.map_or(0, |begun| begun.cached_tokens) },
        });
        let mut body = self.frame();
        if self.frame.stream {
            body["choices"] = json!([{ "index": 0, "text": "", "finish_reason": reason }]);
            body["usage"] = usage;
            self.event(&body);
            self.send(WireItem::Bytes(Bytes::from_static(b"data: [DONE]\n\n")));
            return;
        }
        let mut choice = json!({ "index": 0, "text": self.text, "finish_reason": reason });
        if self.logprobs {
            choice["logprobs"] = json!({ "content": self.tokens });
        }
        body["seed"] = self.frame.seed.into();
        body["choices"] = json!([choice]);
        body["usage"] = usage;
        self.send(WireItem::Bytes(Bytes::from(body.to_string())));
    }

    fn frame(&self) -> Value {
        json!({ "id": self.frame.id, "object": "text_completion", "model": self.frame.model })
    }

    fn event(&self, body: &Value) {
        self.send(WireItem::Bytes(Bytes::from(format!("data: {body}\n\n"))));
    }

    /// A reader that is gone has stopped the job already.
    fn send(&self, sending: WireItem) {
        let _ = self.sender.blocking_send(sending);
    }
}

fn written(token: Token) -> TokenLogprob {
    let spelled = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let top = token.top.into_iter().map(|top| TopLogprob {
        token: spelled(&top.bytes),
        bytes: top.bytes,
        logprob: top.logprob,
    });
    TokenLogprob {
        token: spelled(&token.bytes),
        logprob: token.logprob.unwrap_or_default(),
        top_logprobs: top.collect(),
        bytes: token.bytes,
    }
}
