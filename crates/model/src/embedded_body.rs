//! The request to the embedded engine, written and read.

use std::io;

use gguf::{ChatMessage, ChatRole, Engine, EngineJob, PromptPiece, SamplingParams};
use serde::{Deserialize, Serialize};
use serde_json::ser::{Formatter, Serializer};

use crate::dialect::DialectName;
use crate::encoded::{EncodeError, EncodedRequest, PartKind};
use crate::model::ModelInfo;
use crate::parts::Parts;
use crate::prompt::{Chat, ChatPart, Params, Prompt, TextPart};

/// Where nothing is asked for, llama.cpp's choices: lively, yet without the unlikely.
const TEMPERATURE: f64 = 0.8;
const TOP_P: f64 = 0.95;
const MIN_P: f64 = 0.05;

/// A request as it is stored.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Body {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    logprobs: Option<u8>,
    max_tokens: u32,
    min_p: f64,
    #[serde(default)]
    model: String,
    prompt: Vec<StoredPiece>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stop: Vec<String>,
    temperature: f64,
    top_p: f64,
}

#[derive(Debug, Serialize, Deserialize)]
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

    /// The prompt as the engine reads it.
    pub(crate) fn into_prompt(self) -> Vec<PromptPiece> {
        self.prompt.into_iter().map(PromptPiece::from).collect()
    }

    pub(crate) fn job(self, seed: u64) -> EngineJob {
        let Self { logprobs, max_tokens, min_p, prompt, stop, temperature, top_p, .. } = self;
        EngineJob {
            prompt: prompt.into_iter().map(PromptPiece::from).collect(),
            sampling: SamplingParams { temperature, top_p, min_p, seed },
            max_tokens,
            stop,
            logprobs,
        }
    }
}

impl From<StoredPiece> for PromptPiece {
    fn from(piece: StoredPiece) -> Self {
        match piece {
            StoredPiece::Template(template) => Self::Template(template),
            StoredPiece::Text(text) => Self::Text(text),
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
) -> Result<EncodedRequest, EncodeError> {
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
    let mut parts = Parts::new()?;
    let body = Body {
        logprobs: params.logprobs,
        max_tokens: params.max_tokens.unwrap_or(info.output_limit).max(1),
        min_p: number("min_p", params.min_p.unwrap_or(MIN_P), 1.0)?,
        model: info.name.clone(),
        prompt: entries.iter().map(|entry| entry.piece(&mut parts)).collect(),
        seed: params.seed,
        stop: params.stop.clone(),
        temperature: number("temperature", params.temperature.unwrap_or(TEMPERATURE), 100.0)?,
        top_p: number("top_p", params.top_p.unwrap_or(TOP_P), 1.0)?,
    };
    let mut form = Vec::new();
    // Writing strings and checked numbers to memory cannot fail.
    let _ = body.serialize(&mut Serializer::with_formatter(&mut form, CanonicalNumbers));
    parts.fill(DialectName::Embedded, path, params.stream, &String::from_utf8_lossy(&form))
}

/// Fractions as canonical JSON writes them; whole numbers keep every digit.
struct CanonicalNumbers;

impl Formatter for CanonicalNumbers {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let text = serde_json_canonicalizer::to_string(&value).map_err(io::Error::other)?;
        writer.write_all(text.as_bytes())
    }
}

impl<'a> PromptEntry<'a> {
    fn piece(&self, parts: &mut Parts<'a>) -> StoredPiece {
        match self {
            Self::Template(template) => StoredPiece::Template(template.clone()),
            Self::Separator => StoredPiece::Text("\n\n".to_owned()),
            Self::Part(kind, part) => StoredPiece::Text(parts.text(*kind, part)),
        }
    }
}

fn number(name: &'static str, value: f64, most: f64) -> Result<f64, EncodeError> {
    if (0.0..=most).contains(&value) { Ok(value) } else { Err(EncodeError::Parameter { name }) }
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
            PromptPiece::Template(template) => entries.push(PromptEntry::Template(template)),
            PromptPiece::Text(_) => {
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
