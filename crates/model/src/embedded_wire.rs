//! The engine's answer as wire bytes: OpenAI completions, streamed or whole.
//!
//! The engine's thread writes each piece as soon as it is certain and hands it over through a bounded channel
//! (`wire`); a reader that is slow slows the engine, one that is gone stops it.

use async_trait::async_trait;
use bytes::Bytes;
use gguf::{Begun, Engine, Finished, Handle, Job, Listener, Reason, RunError, Token, Update};
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::embedded_body::{WrittenToken, WrittenTop};
use crate::headers::KeptHeaders;
use crate::receive::{Head, Wire};

/// Pieces that may wait for the reader.
const WIRE: usize = 64;

/// The frame of an answer.
pub(crate) struct Form {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) stream: bool,
    /// The seed in use.
    pub(crate) seed: u64,
}

enum Sending {
    Refused(u16, Bytes),
    Bytes(Bytes),
    Broken(String),
}

/// The wire of an answer. Dropping it stops the job.
pub(crate) struct EngineWire {
    first: Option<Bytes>,
    sendings: Receiver<Sending>,
    _job: Option<Handle>,
}

#[async_trait]
impl Wire for EngineWire {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        match self.sendings.recv().await {
            Some(Sending::Bytes(bytes) | Sending::Refused(_, bytes)) => Ok(Some(bytes)),
            Some(Sending::Broken(why)) => Err(why),
            None => Ok(None),
        }
    }
}

/// Begins a job and waits until it is under way or refused. Cancel-safe: dropping it stops the job.
pub(crate) async fn begin(engine: &Engine, job: Job, form: Form) -> (Head, EngineWire) {
    let (sender, sendings) = channel(WIRE);
    let stream = form.stream;
    let logprobs = job.logprobs.is_some();
    let written = Written { form, sender, logprobs, begun: None, text: String::new(), tokens: Vec::new() };
    let job = match engine.run(job, written.listener()) {
        Ok(handle) => handle,
        Err(error) => {
            let (status, body) = refusal(&error);
            return (head(status, false), EngineWire { first: Some(body), sendings, _job: None });
        }
    };
    let mut wire = EngineWire { first: None, sendings, _job: Some(job) };
    let status = match wire.sendings.recv().await {
        Some(Sending::Refused(status, body)) => {
            wire.first = Some(body);
            status
        }
        Some(Sending::Bytes(bytes)) => {
            wire.first = Some(bytes);
            200
        }
        Some(Sending::Broken(_)) | None => 200,
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
struct Written {
    form: Form,
    sender: Sender<Sending>,
    logprobs: bool,
    begun: Option<Begun>,
    /// Of an answer that is not streamed: what came so far.
    text: String,
    tokens: Vec<WrittenToken>,
}

impl Written {
    fn listener(mut self) -> Listener {
        Box::new(move |update| self.update(update))
    }

    fn update(&mut self, update: Update) {
        match update {
            Update::Begun(begun) => {
                self.begun = Some(begun);
                if self.form.stream {
                    let mut body = self.frame();
                    body["seed"] = self.form.seed.into();
                    body["choices"] = json!([{ "index": 0, "text": "", "finish_reason": null }]);
                    self.event(&body);
                }
            }
            Update::Text { text, tokens } if self.form.stream => {
                let mut choice = json!({ "index": 0, "text": text, "finish_reason": null });
                if self.logprobs {
                    let content: Vec<WrittenToken> = tokens.into_iter().map(written).collect();
                    choice["logprobs"] = json!({ "content": content });
                }
                let mut body = self.frame();
                body["choices"] = json!([choice]);
                self.event(&body);
            }
            Update::Text { text, tokens } => {
                self.text.push_str(&text);
                self.tokens.extend(tokens.into_iter().map(written));
            }
            Update::Ended(Ok(finished)) => self.finish(finished),
            Update::Ended(Err(error)) if self.begun.is_none() || !self.form.stream => {
                let (status, body) = refusal(&error);
                self.send(Sending::Refused(status, body));
            }
            Update::Ended(Err(error)) => self.send(Sending::Broken(error.to_string())),
        }
    }

    fn finish(&mut self, finished: Finished) {
        let reason = match finished.reason {
            Reason::End | Reason::Stop => "stop",
            Reason::Length => "length",
        };
        let prompt = self.begun.map_or(0, |begun| begun.prompt_tokens);
        let usage = json!({
            "prompt_tokens": prompt,
            "completion_tokens": finished.tokens,
            "total_tokens": prompt.saturating_add(finished.tokens),
            "prompt_tokens_details": { "cached_tokens": self.begun.map_or(0, |begun| begun.cached_tokens) },
        });
        let mut body = self.frame();
        if self.form.stream {
            body["choices"] = json!([{ "index": 0, "text": "", "finish_reason": reason }]);
            body["usage"] = usage;
            self.event(&body);
            self.send(Sending::Bytes(Bytes::from_static(b"data: [DONE]\n\n")));
            return;
        }
        let mut choice = json!({ "index": 0, "text": self.text, "finish_reason": reason });
        if self.logprobs {
            choice["logprobs"] = json!({ "content": self.tokens });
        }
        body["seed"] = self.form.seed.into();
        body["choices"] = json!([choice]);
        body["usage"] = usage;
        self.send(Sending::Bytes(Bytes::from(body.to_string())));
    }

    fn frame(&self) -> Value {
        json!({ "id": self.form.id, "object": "text_completion", "model": self.form.model })
    }

    fn event(&self, body: &Value) {
        self.send(Sending::Bytes(Bytes::from(format!("data: {body}\n\n"))));
    }

    /// A reader that is gone has stopped the job already.
    fn send(&self, sending: Sending) {
        let _ = self.sender.blocking_send(sending);
    }
}

fn written(token: Token) -> WrittenToken {
    let spelled = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let top = token.top.into_iter().map(|top| WrittenTop {
        token: spelled(&top.bytes),
        bytes: top.bytes,
        logprob: top.logprob,
    });
    WrittenToken {
        token: spelled(&token.bytes),
        logprob: token.logprob.unwrap_or_default(),
        top_logprobs: top.collect(),
        bytes: token.bytes,
    }
}
