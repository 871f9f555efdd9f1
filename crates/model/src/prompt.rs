//! What a caller wants to say, free of any provider's form.
//!
//! A prompt is an ordered list of parts; every part has an id, so that the context layer can map
//! bytes of the request back to their source. The types rule out what no provider accepts: raw
//! document text and chat messages never mix, and a tool call travels with its result.

pub use loom::ToolStatus;

use bytes::Bytes;

use crate::encoded::EncodeError;
use crate::reply::ToolCall;

/// Names a part of one prompt. The caller chooses it; it is unique in that prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartId(pub u32);

/// A piece of text with its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPart {
    pub id: PartId,
    /// The text, sent byte for byte.
    pub text: String,
}

impl TextPart {
    pub fn new(id: PartId, text: impl Into<String>) -> Self {
        Self { id, text: text.into() }
    }
}

/// Everything that is sent in one request, before a dialect gives it its form.
#[derive(Debug, Clone, PartialEq)]
pub enum Prompt {
    /// Document text to be continued as it is (spec: context §7, *raw*). The parts are concatenated
    /// with nothing between them; trailing white space is the caller's business.
    Raw(Vec<TextPart>),
    /// Messages of a conversation (also the *prefill* and *instructed* ways of buffer mode).
    Chat(Chat),
}

impl Prompt {
    /// Texts of the prompt, each with its part, in the order they stand; not those of tools, pictures and opaque
    /// parts.
    pub fn texts_mut(&mut self) -> Vec<(PartId, &mut String)> {
        fn text(TextPart { id, text }: &mut TextPart) -> (PartId, &mut String) {
            (*id, text)
        }
        match self {
            Self::Raw(parts) => parts.iter_mut().map(text).collect(),
            Self::Chat(Chat { messages, prefill, .. }) => {
                let mut texts = Vec::new();
                for message in messages {
                    match message {
                        ChatPart::System(part)
                        | ChatPart::User(part)
                        | ChatPart::Injected(part)
                        | ChatPart::Assistant(part) => texts.push(text(part)),
                        ChatPart::ToolRound(round) => texts.extend(round.iter_mut().flat_map(|exchange| {
                            [
                                (exchange.call_part, &mut exchange.call.arguments),
                                (exchange.result_part, &mut exchange.result.text),
                            ]
                        })),
                        ChatPart::Media(_) | ChatPart::Opaque(_) => {}
                    }
                }
                texts.extend(prefill.iter_mut().map(text));
                texts
            }
        }
    }
}

/// A conversation: tools, messages, and the beginning of the answer where one is set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chat {
    /// Tool schemas, in the order they are sent.
    pub tools: Vec<ToolSchema>,
    /// Messages, oldest first. Neighbours of one role share a message, a blank line between them:
    /// many chat templates insist that roles alternate.
    pub messages: Vec<ChatPart>,
    /// The assistant's beginning, which the answer continues.
    pub prefill: Option<TextPart>,
    /// How many messages, from the first, stand above the cache boundary: they do not change from turn to turn
    /// (spec: context §2). Tools always stand above it.
    pub stable: usize,
}

/// One step of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatPart {
    /// Instructions of the owner or the product.
    System(TextPart),
    User(TextPart),
    /// Text sent in the user's place that the user did not say: cards, notices, time.
    Injected(TextPart),
    /// A picture or a sound in the user's place.
    Media(MediaPart),
    Assistant(TextPart),
    /// What a provider wants back unchanged, where it stood in the assistant's answer. It is given only to the
    /// dialect and the model it came from (spec: loom §5).
    Opaque(OpaquePart),
    /// One round of tool use: all calls of one answer, each with its result.
    ToolRound(Vec<ToolExchange>),
}

/// A picture or a sound with its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaPart {
    pub id: PartId,
    pub media: Media,
}

/// A picture or a sound, as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// Media type, as `image/png`.
    pub mime: String,
    pub data: Bytes,
}

/// What a provider wants back unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpaquePart {
    pub id: PartId,
    /// The thinking it came with, if it came with any.
    pub thinking: Option<String>,
    /// The dialect's own form, as it was given in [`crate::ModelEvent::Opaque`].
    pub json: serde_json::Value,
}

/// A tool call and its result; neither is ever sent without the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolExchange {
    /// What the provider wants back in front of the call.
    pub before: Vec<OpaquePart>,
    /// The part id of the call.
    pub call_part: PartId,
    pub call: ToolCall,
    /// The part id of the result.
    pub result_part: PartId,
    pub result: ToolResult,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// How it ended. Dialects with a field for it set it; in the others the text says it.
    pub status: ToolStatus,
    /// The text the model reads.
    pub text: String,
    /// Pictures that belong to it. A dialect that has no place for them in a result sends them behind it.
    pub media: Vec<Media>,
}

/// A tool as the model is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSchema {
    pub id: PartId,
    pub name: String,
    pub description: String,
    /// JSON schema of its arguments, sent with its keys in this order.
    pub parameters: serde_json::Value,
}

/// Sampling and form of the answer. What is `None` is left to the server and not sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    pub temperature: Option<f64>,
    /// Nucleus share, 0 to 1.
    pub top_p: Option<f64>,
    /// Least probability relative to the likeliest token, 0 to 1. Not every server knows it.
    pub min_p: Option<f64>,
    /// Limit of the answer in tokens.
    pub max_tokens: Option<u32>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// Where the answer is cut as it arrives. Never sent: servers take away the text they stop at.
    pub ends_at: Option<text::cut::Boundary>,
    pub seed: Option<i64>,
    /// Log-probabilities of the chosen tokens, with this many alternatives each.
    pub logprobs: Option<u8>,
    /// Number of choices, at least 1.
    pub n: u32,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Whether and which tools may be called. Not sent where there are no tools.
    pub tool_choice: ToolChoice,
    /// The form the answer must have.
    pub schema: Option<OutputSchema>,
    /// How much the model thinks before it answers; the model's own way, if none.
    pub thinking: Option<Thinking>,
    /// Names the conversation to a provider that routes by it, so that its cache is met. No text, at most 64 bytes.
    pub cache_key: Option<String>,
    /// Further members of the body, as [`crate::read_members`] takes them. An embedded model is told none.
    pub provider: serde_json::Map<String, serde_json::Value>,
    /// Name of the preset that these come from. Never sent.
    pub preset: Option<String>,
}

impl Params {
    /// Refuses numbers that no server could take.
    pub(crate) fn check(&self) -> Result<(), EncodeError> {
        if self.n == 0 {
            return Err(EncodeError::Parameter { name: "n" });
        }
        let shares = [("temperature", self.temperature), ("top_p", self.top_p), ("min_p", self.min_p)];
        let wrong = |value: f64| !value.is_finite() || value < 0.0;
        match shares.into_iter().find(|(_, value)| value.is_some_and(wrong)) {
            Some((name, _)) => Err(EncodeError::Parameter { name }),
            None => Ok(()),
        }
    }
}

/// Whether and which tools may be called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model chooses. Nothing is sent.
    #[default]
    Auto,
    None,
    /// At least one must be.
    Required,
    Tool(String),
}

/// A form the answer must have: structured output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputSchema {
    /// A name for it: letters, digits, `_` and `-`.
    pub name: String,
    /// JSON schema, sent with its keys in this order.
    pub schema: serde_json::Value,
}

/// How much a model thinks before it answers (`/think off|low|high`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// Not at all, or as little as the model can.
    Off,
    Low,
    High,
}

impl Thinking {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Low => "low",
            Self::High => "high",
        }
    }
}

impl Default for Params {
    /// One streamed answer; everything else is the server's choice.
    fn default() -> Self {
        Self {
            temperature: None,
            top_p: None,
            min_p: None,
            max_tokens: None,
            stop: Vec::new(),
            ends_at: None,
            seed: None,
            logprobs: None,
            n: 1,
            stream: true,
            tool_choice: ToolChoice::Auto,
            schema: None,
            thinking: None,
            cache_key: None,
            provider: serde_json::Map::new(),
            preset: None,
        }
    }
}
