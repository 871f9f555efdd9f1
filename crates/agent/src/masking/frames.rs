//! The JSON of a response body, frame by frame: a line of a stream, or the whole of one that is none.

use std::collections::BTreeMap;
use std::ops::Range;

use model::{DialectName, ModelEvent};
use serde_json::Value;
use text::mask::{Masked, Masker};

/// What precedes the JSON of a streamed event.
const DATA: &[u8] = b"data:";
/// Keys of token probabilities, which spell the text once more.
const LOGPROBS: &str = "logprobs";

/// A text that arrives in deltas: which choice, what it is, and which tool call.
type Stream = (u32, Kind, u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Text,
    Thinking,
    Refusal,
    Arguments,
}

/// `body` with secrets masked in each string of its JSON and across the deltas of each text.
pub(super) fn masked(masker: &Masker, dialect: DialectName, body: &[u8], streamed: bool) -> Vec<u8> {
    let frames: Vec<&[u8]> =
        if streamed { body.split_inclusive(|byte| *byte == b'\n').collect() } else { vec![body] };
    let mut edits = edits(masker, &deltas(dialect, &frames, streamed));
    let mut out = Vec::with_capacity(body.len());
    for (at, frame) in frames.iter().enumerate() {
        let edits = edits.remove(&at).unwrap_or_default();
        match rewritten(masker, frame, streamed, &edits) {
            Some(json) if streamed => {
                out.extend_from_slice(b"data: ");
                out.extend_from_slice(json.as_bytes());
                out.extend_from_slice(&frame[frame.trim_ascii_end().len()..]);
            }
            Some(json) => out.extend_from_slice(json.as_bytes()),
            None => out.extend_from_slice(frame),
        }
    }
    out
}

/// The deltas of each text, each with the number of its frame.
fn deltas(dialect: DialectName, frames: &[&[u8]], streamed: bool) -> BTreeMap<Stream, Vec<(usize, String)>> {
    let mut parser = dialect.parser(streamed);
    let mut streams = BTreeMap::<Stream, Vec<(usize, String)>>::new();
    // An event is given at the empty line behind its frame.
    let mut last = 0;
    for (at, frame) in frames.iter().enumerate() {
        if !streamed || frame.starts_with(DATA) {
            last = at;
        }
        let mut events = Vec::new();
        let mut fed = parser.feed(frame, &mut events);
        if at + 1 == frames.len() && fed.is_ok() {
            fed = parser.finish(&mut events);
        }
        for event in events {
            let (stream, text) = match event {
                ModelEvent::Text { choice, text } => ((choice, Kind::Text, 0), text),
                ModelEvent::Thinking { choice, text } => ((choice, Kind::Thinking, 0), text),
                ModelEvent::Refusal { choice, text } => ((choice, Kind::Refusal, 0), text),
                ModelEvent::ToolCall { choice, index, arguments, .. } => {
                    ((choice, Kind::Arguments, index), arguments)
                }
                _ => continue,
            };
            streams.entry(stream).or_default().push((last, text));
        }
        if fed.is_err() {
            break;
        }
    }
    streams
}

/// What each delta that holds part of a secret becomes, by frame: the mark stands in the first of them.
fn edits(
    masker: &Masker,
    streams: &BTreeMap<Stream, Vec<(usize, String)>>,
) -> BTreeMap<usize, Vec<(String, String)>> {
    let mut edits = BTreeMap::<usize, Vec<(String, String)>>::new();
    for deltas in streams.values() {
        let whole: String = deltas.iter().map(|(_, text)| text.as_str()).collect();
        let masked = masker.mask(&whole);
        let mut start = 0;
        for (frame, text) in deltas {
            let range = start..start + text.len();
            start = range.end;
            let new = without(&whole, &masked, range);
            if new != *text {
                edits.entry(*frame).or_default().push((text.clone(), new));
            }
        }
    }
    edits
}

/// A part of a text without what is masked of it.
fn without(whole: &str, masked: &Masked<'_>, part: Range<usize>) -> String {
    let mut out = String::new();
    let mut at = part.start;
    for span in &masked.spans {
        let (start, end) = (span.input.start.max(part.start), span.input.end.min(part.end));
        if start >= end {
            continue;
        }
        out.push_str(&whole[at..start]);
        if span.input.start >= part.start {
            out.push_str(&masked.text[span.output.clone()]);
        }
        at = end;
    }
    out.push_str(&whole[at..part.end]);
    out
}

/// The JSON of a frame, if anything in it is masked.
fn rewritten(masker: &Masker, frame: &[u8], streamed: bool, edits: &[(String, String)]) -> Option<String> {
    let payload = if streamed { frame.strip_prefix(DATA)? } else { frame };
    let mut json: Value = serde_json::from_str(&String::from_utf8_lossy(payload)).ok()?;
    let mut changed = false;
    for (old, new) in edits {
        changed |= replace_first(&mut json, old, new);
    }
    changed |= mask_strings(masker, &mut json);
    if !changed {
        return None;
    }
    remove_logprobs(&mut json);
    Some(json.to_string())
}

/// Fields that never hold a delta, although one may read the same.
fn is_label(key: &str) -> bool {
    key.ends_with("id")
        || ["type", "role", "model", "object", "status", "finish_reason", "stop_reason", "name"]
            .contains(&key)
}

/// Replaces the first string that is `old`, labels apart.
fn replace_first(json: &mut Value, old: &str, new: &str) -> bool {
    match json {
        Value::String(text) if text == old => {
            new.clone_into(text);
            true
        }
        Value::Array(items) => items.iter_mut().any(|item| replace_first(item, old, new)),
        Value::Object(fields) => {
            fields.iter_mut().any(|(key, item)| !is_label(key) && replace_first(item, old, new))
        }
        _ => false,
    }
}

fn mask_strings(masker: &Masker, json: &mut Value) -> bool {
    match json {
        Value::String(text) => {
            let masked = masker.mask(text);
            if masked.spans.is_empty() {
                return false;
            }
            *text = masked.text.into_owned();
            true
        }
        Value::Array(items) => items.iter_mut().fold(false, |any, item| mask_strings(masker, item) | any),
        Value::Object(fields) => {
            fields.values_mut().fold(false, |any, item| mask_strings(masker, item) | any)
        }
        _ => false,
    }
}

fn remove_logprobs(json: &mut Value) {
    match json {
        Value::Array(items) => items.iter_mut().for_each(remove_logprobs),
        Value::Object(fields) => {
            fields.retain(|key, _| !key.starts_with(LOGPROBS));
            fields.values_mut().for_each(remove_logprobs);
        }
        _ => {}
    }
}
