//! A script's line as the wire bytes a server would have sent.
//!
//! The answer is not handed over as text: it is written as OpenAI writes it and goes through the
//! same spool, parser and capture as every other answer, faults included.

use std::collections::VecDeque;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::dialect::DialectName;
use crate::event::FinishReason;
use crate::headers::KeptHeaders;
use crate::receive::{Head, Wire};
use crate::script_lines::{Fault, Line};

/// The frame of an answer: what does not stand in the line.
#[derive(Debug, Clone)]
pub(crate) struct Form<'a> {
    pub(crate) dialect: DialectName,
    pub(crate) stream: bool,
    pub(crate) response: &'a str,
    pub(crate) model: &'a str,
}

/// One step of an answer.
enum Step {
    Wait(Duration),
    Bytes(Bytes),
    Break,
    Hang,
}

/// The wire of a scripted answer.
pub(crate) struct ScriptWire(VecDeque<Step>);

#[async_trait]
impl Wire for ScriptWire {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            match self.0.front() {
                None => return Ok(None),
                Some(Step::Wait(time)) => tokio::time::sleep(*time).await,
                Some(Step::Hang) => std::future::pending::<()>().await,
                Some(Step::Break) => return Err("the script breaks it off".to_owned()),
                Some(Step::Bytes(_)) => {}
            }
            if let Some(Step::Bytes(bytes)) = self.0.pop_front() {
                return Ok(Some(bytes));
            }
        }
    }
}

/// Head and wire of a line's answer.
pub(crate) fn answer(line: &Line, form: &Form<'_>) -> (Head, ScriptWire) {
    let mut steps = VecDeque::new();
    if line.delay_ms > 0 {
        steps.push_back(Step::Wait(Duration::from_millis(line.delay_ms)));
    }
    if let Some((status, error)) = refusal(line.fault) {
        steps.push_back(Step::Bytes(Bytes::from(json!({ "error": error }).to_string())));
        return (head(status, false), ScriptWire(steps));
    }
    if form.stream {
        stream(line, form, &mut steps);
    } else {
        whole(line, form, &mut steps);
    }
    (head(200, form.stream), ScriptWire(steps))
}

fn head(status: u16, stream: bool) -> Head {
    let kind: &[u8] = if stream { b"text/event-stream" } else { b"application/json" };
    Head { status, headers: KeptHeaders::of([("content-type", kind)]), stream, retry_after: None }
}

fn refusal(fault: Option<Fault>) -> Option<(u16, Value)> {
    let error = |status, message: &str, kind: &str, code: &str| {
        Some((status, json!({ "message": message, "type": kind, "code": code })))
    };
    match fault? {
        Fault::RateLimited => {
            error(429, "the script limits the rate", "rate_limit_error", "rate_limit_exceeded")
        }
        Fault::Unavailable => error(500, "the script fails", "server_error", "server_error"),
        Fault::ContextTooLong => error(
            400,
            "the script says that the context is too long",
            "invalid_request_error",
            "context_length_exceeded",
        ),
        Fault::Cut | Fault::Hang | Fault::Garbage => None,
    }
}

fn stream(line: &Line, form: &Form<'_>, steps: &mut VecDeque<Step>) {
    let mut events = VecDeque::from(chunks(line, form));
    let gap = Duration::from_millis(line.delta_delay_ms);
    let mut first = true;
    while let Some(chunk) = events.pop_front() {
        if !std::mem::take(&mut first) && !gap.is_zero() {
            steps.push_back(Step::Wait(gap));
        }
        steps.push_back(event(&chunk.to_string()));
    }
    match line.fault {
        Some(Fault::Cut) => steps.push_back(Step::Break),
        Some(Fault::Hang) => steps.push_back(Step::Hang),
        Some(Fault::Garbage) => steps.push_back(event("this is no JSON")),
        _ => {
            let mut last = if form.dialect == DialectName::OpenAiChat {
                json!({ "delta": {} })
            } else {
                json!({ "text": "" })
            };
            last["finish_reason"] = finish(line).into();
            steps.push_back(event(&chunk(form, last).to_string()));
            if let Some(usage) = usage(line) {
                let mut body = frame(form, "chunk");
                body["choices"] = json!([]);
                body["usage"] = usage;
                steps.push_back(event(&body.to_string()));
            }
            steps.push_back(event("[DONE]"));
        }
    }
}

fn event(data: &str) -> Step {
    Step::Bytes(Bytes::from(format!("data: {data}\n\n")))
}

/// The chunks with content, in the order thinking, text, tool calls.
fn chunks(line: &Line, form: &Form<'_>) -> Vec<Value> {
    if form.dialect == DialectName::OpenAiCompletions {
        return line.deltas.iter().map(|text| chunk(form, json!({ "text": text }))).collect();
    }
    let delta = |delta: Value| chunk(form, json!({ "delta": delta }));
    let mut chunks = vec![delta(json!({ "role": "assistant", "content": "" }))];
    if !line.thinking.is_empty() {
        chunks.push(delta(json!({ "reasoning_content": line.thinking })));
    }
    chunks.extend(line.deltas.iter().map(|text| delta(json!({ "content": text }))));
    for (index, call) in tool_calls(line, form).into_iter().enumerate() {
        let mut begin = call.clone();
        begin["index"] = index.into();
        begin["function"]["arguments"] = "".into();
        chunks.push(delta(json!({ "tool_calls": [begin] })));
        let arguments = &call["function"]["arguments"];
        let rest = json!({ "index": index, "function": { "arguments": arguments } });
        chunks.push(delta(json!({ "tool_calls": [rest] })));
    }
    chunks
}

fn chunk(form: &Form<'_>, choice: Value) -> Value {
    let mut body = frame(form, "chunk");
    let mut whole = json!({ "index": 0 });
    if let (Value::Object(whole), Value::Object(choice)) = (&mut whole, choice) {
        whole.extend(choice);
    }
    body["choices"] = json!([whole]);
    body
}

fn whole(line: &Line, form: &Form<'_>, steps: &mut VecDeque<Step>) {
    let text = line.deltas.concat();
    let mut choice = json!({ "index": 0, "finish_reason": finish(line) });
    if form.dialect == DialectName::OpenAiChat {
        choice["message"] = json!({ "role": "assistant", "content": text });
        if !line.thinking.is_empty() {
            choice["message"]["reasoning_content"] = line.thinking.as_str().into();
        }
        let calls = tool_calls(line, form);
        if !calls.is_empty() {
            choice["message"]["tool_calls"] = calls.into();
        }
    } else {
        choice["text"] = text.into();
    }
    let mut body = frame(form, "whole");
    body["choices"] = json!([choice]);
    if let Some(usage) = usage(line) {
        body["usage"] = usage;
    }
    let body = Bytes::from(body.to_string());
    let half = body.slice(..body.len() / 2);
    match line.fault {
        Some(Fault::Cut) => steps.extend([Step::Bytes(half), Step::Break]),
        Some(Fault::Hang) => steps.extend([Step::Bytes(half), Step::Hang]),
        Some(Fault::Garbage) => steps.push_back(Step::Bytes(Bytes::from_static(b"this is no JSON"))),
        _ => steps.push_back(Step::Bytes(body)),
    }
}

fn frame(form: &Form<'_>, kind: &str) -> Value {
    let object = match (form.dialect, kind) {
        (DialectName::OpenAiCompletions | DialectName::Embedded, _) => "text_completion",
        (_, "chunk") => "chat.completion.chunk",
        _ => "chat.completion",
    };
    json!({ "id": form.response, "object": object, "model": form.model })
}

fn tool_calls(line: &Line, form: &Form<'_>) -> Vec<Value> {
    let calls = line.tool_calls.iter().enumerate().map(|(index, call)| {
        json!({
            "id": format!("call_{}_{index}", form.response),
            "type": "function",
            "function": { "name": call.name, "arguments": call.arguments },
        })
    });
    calls.collect()
}

fn finish(line: &Line) -> &'static str {
    match &line.finish {
        Some(FinishReason::Length) => "length",
        Some(FinishReason::ToolUse) => "tool_calls",
        Some(_) => "stop",
        None if line.tool_calls.is_empty() => "stop",
        None => "tool_calls",
    }
}

/// OpenAI counts cached tokens among the prompt's; the script does not.
fn usage(line: &Line) -> Option<Value> {
    let usage = line.usage?;
    let input = usage.input.saturating_add(usage.cached);
    Some(json!({
        "prompt_tokens": input,
        "completion_tokens": usage.output,
        "total_tokens": input.saturating_add(usage.output),
        "prompt_tokens_details": { "cached_tokens": usage.cached },
    }))
}
