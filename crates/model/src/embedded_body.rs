//! The request to the embedded engine, written and read.

use gguf::{ChatMessage, ChatRole, Engine, EngineJob, Piece, SamplingParams};
use serde::{Deserialize, Serialize};

use crate::dialect::DialectName;
use crate::encoded::{BodyWriter, EncodeError, Encoded, PartKind};
use crate::model::ModelInfo;
use crate::prompt::{Chat, ChatPart, Params, Prompt, TextPart};

/// Where nothing is asked for, llama.cpp's choices: lively, yet without the unlikely.
const TEMPERATURE: f64 = 0.8;
const TOP_P: f64 = 0.95;
const MIN_P: f64 = 0.05;

/// A request as it is stored.
#[derive(Debug, Deserialize)]
pub(crate) struct Body {
    #[serde(default)]
    logprobs: Option<u8>,
    max_tokens: u32,
    min_p: f64,
    prompt: Vec<StoredPiece>,
    #[serde(default)]
    seed: Option<i64>,
    #[serde(default)]
    stop: Vec<String>,
    temperature: f64,
    top_p: f64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredPiece {
    #[serde(rename = "form")]
    Template(String),
    Text(String),
}

impl Body {
    /// The seed asked for; else one that is drawn now and told in the answer.
    pub(crate) fn seed(&self) -> u64 {
        match self.seed {
            Some(seed) => seed.cast_unsigned(),
            // Below 2^53, so that every reader of JSON understands it.
            None => getrandom::u64().unwrap_or_default() >> 11,
        }
    }

    pub(crate) fn job(self, seed: u64) -> EngineJob {
        let Self { logprobs, max_tokens, min_p, prompt, stop, temperature, top_p, .. } = self;
        let piece = |item| match item {
            StoredPiece::Template(template) => Piece::Template(template),
            StoredPiece::Text(text) => Piece::Text(text),
        };
        EngineJob {
            prompt: prompt.into_iter().map(piece).collect(),
            sampling: SamplingParams { temperature, top_p, min_p, seed },
            max_tokens,
            stop,
            logprobs,
        }
    }
}

/// A part of the prompt's list.
enum PromptEntry<'a> {
    Template(String),
    /// Text between two parts of one message.
    Separator,
    Part(PartKind, &'a TextPart),
}

/// Writes the request: canonical JSON (RFC 8785), so keys stand in their order.
pub(crate) fn encode(
    engine: &Engine,
    info: &ModelInfo,
    prompt: &Prompt,
    params: &Params,
) -> Result<Encoded, EncodeError> {
    if params.n == 0 {
        return Err(EncodeError::Parameter { name: "n" });
    }
    let (path, entries) = match prompt {
        Prompt::Raw(parts) if parts.is_empty() => return Err(EncodeError::Empty),
        Prompt::Raw(parts) => {
            ("completions", parts.iter().map(|part| PromptEntry::Part(PartKind::Document, part)).collect())
        }
        Prompt::Chat(chat) if engine.info().template.is_none() => ("completions", untemplated(chat)?),
        Prompt::Chat(chat) => ("chat", templated(engine, chat)?),
    };
    let mut body = BodyWriter::default();
    body.frame("{");
    if let Some(alternatives) = params.logprobs {
        body.frame("\"logprobs\":");
        body.frame_value(&alternatives);
        body.frame(",");
    }
    body.frame("\"max_tokens\":");
    body.frame_value(&params.max_tokens.unwrap_or(info.output_limit).max(1));
    body.frame(",\"min_p\":");
    number(&mut body, "min_p", params.min_p.unwrap_or(MIN_P), 1.0)?;
    body.frame(",\"model\":");
    body.frame_value(&info.name);
    body.frame(",\"prompt\":[");
    list(&mut body, &entries);
    body.frame("]");
    if let Some(seed) = params.seed {
        body.frame(",\"seed\":");
        body.frame_value(&seed);
    }
    if !params.stop.is_empty() {
        body.frame(",\"stop\":");
        body.frame_value(&params.stop);
    }
    body.frame(",\"temperature\":");
    number(&mut body, "temperature", params.temperature.unwrap_or(TEMPERATURE), 100.0)?;
    body.frame(",\"top_p\":");
    number(&mut body, "top_p", params.top_p.unwrap_or(TOP_P), 1.0)?;
    body.frame("}");
    body.finish(DialectName::Embedded, path, params.stream)
}

fn list(body: &mut BodyWriter, entries: &[PromptEntry<'_>]) {
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            body.frame(",");
        }
        match entry {
            PromptEntry::Template(template) => {
                body.frame("{\"form\":");
                body.frame_value(template);
            }
            PromptEntry::Separator => body.frame("{\"text\":\"\\n\\n\""),
            PromptEntry::Part(kind, part) => {
                body.frame("{\"text\":\"");
                body.text(*kind, part);
                body.frame("\"");
            }
        }
        body.frame("}");
    }
}

/// A number as canonical JSON writes it.
fn number(body: &mut BodyWriter, name: &'static str, value: f64, most: f64) -> Result<(), EncodeError> {
    let wrong = EncodeError::Parameter { name };
    if !(0.0..=most).contains(&value) {
        return Err(wrong);
    }
    let text = serde_json_canonicalizer::to_string(&value).map_err(|_| wrong)?;
    body.frame(&text);
    Ok(())
}

/// A message and the parts it is made of; neighbours of one role share one.
struct MergedMessage<'a> {
    role: ChatRole,
    parts: Vec<(PartKind, &'a TextPart)>,
}

fn merged(chat: &Chat) -> Result<Vec<MergedMessage<'_>>, EncodeError> {
    let mut messages: Vec<MergedMessage<'_>> = Vec::new();
    for part in &chat.messages {
        let (role, kind, text) = match part {
            ChatPart::System(text) => (ChatRole::System, PartKind::System, text),
            ChatPart::User(text) => (ChatRole::User, PartKind::User, text),
            ChatPart::Injected(text) => (ChatRole::User, PartKind::Injected, text),
            ChatPart::Assistant(text) => (ChatRole::Assistant, PartKind::Assistant, text),
            // No model inside gives any to send back.
            ChatPart::Opaque(_) => continue,
            ChatPart::Media(_) => return Err(EncodeError::Unsupported { what: "a picture or a sound" }),
            ChatPart::ToolRound(_) => return Err(EncodeError::Unsupported { what: "tool use" }),
        };
        match messages.last_mut() {
            Some(message) if message.role == role => message.parts.push((kind, text)),
            _ => messages.push(MergedMessage { role, parts: vec![(kind, text)] }),
        }
    }
    Ok(messages)
}

/// The messages of a chat that has something to answer to.
fn messages(chat: &Chat) -> Result<Vec<MergedMessage<'_>>, EncodeError> {
    let messages = merged(chat)?;
    if messages.is_empty() && chat.prefill.is_none() { Err(EncodeError::Empty) } else { Ok(messages) }
}

/// A conversation for a model without a chat template: its text alone, each message and the answer a paragraph.
fn untemplated(chat: &Chat) -> Result<Vec<PromptEntry<'_>>, EncodeError> {
    let mut entries = Vec::new();
    for message in messages(chat)? {
        for (kind, part) in message.parts {
            entries.extend([PromptEntry::Part(kind, part), PromptEntry::Separator]);
        }
    }
    entries.extend(chat.prefill.as_ref().map(|prefill| PromptEntry::Part(PartKind::Prefill, prefill)));
    Ok(entries)
}

fn templated<'a>(engine: &Engine, chat: &'a Chat) -> Result<Vec<PromptEntry<'a>>, EncodeError> {
    let messages = messages(chat)?;
    // The template only places messages; what is in them is put there below.
    let places: Vec<ChatMessage> =
        messages.iter().map(|message| ChatMessage { role: message.role, text: String::new() }).collect();
    let pieces =
        engine.chat_prompt(&places).map_err(|error| EncodeError::Template { why: error.to_string() })?;
    let mut texts = messages.into_iter();
    let mut entries = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Template(template) => entries.push(PromptEntry::Template(template)),
            Piece::Text(_) => {
                let parts = texts.next().map(|message| message.parts).unwrap_or_default();
                for (index, (kind, part)) in parts.into_iter().enumerate() {
                    if index > 0 {
                        entries.push(PromptEntry::Separator);
                    }
                    entries.push(PromptEntry::Part(kind, part));
                }
            }
        }
    }
    entries.extend(chat.prefill.as_ref().map(|prefill| PromptEntry::Part(PartKind::Prefill, prefill)));
    Ok(entries)
}

/// Log-probabilities and texts as the answer carries them.
#[derive(Debug, Serialize)]
pub(crate) struct TokenLogprob {
    pub(crate) token: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) logprob: f64,
    pub(crate) top_logprobs: Vec<TopLogprob>,
}

/// An alternative as the answer carries it.
#[derive(Debug, Serialize)]
pub(crate) struct TopLogprob {
    pub(crate) token: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) logprob: f64,
}
