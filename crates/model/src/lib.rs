//! Models behind one small trait.
//!
//! A caller builds a [`Prompt`] of parts with ids, a [`Model`] encodes it to the exact bytes that
//! will be sent together with the byte range of every part, and sends those bytes. What comes back
//! is handed to a [`ResponseSink`] byte for byte *before* anything is parsed, becomes [`ModelEvent`]s while it
//! arrives, and is returned whole as a [`RawResponse`]. So the three promises of the layers above
//! rest on one path: every byte sent has a source, every byte received is kept, and a stored
//! response can be read again later ([`reparse()`]) and compared with what was made of it.
//!
//! Libraries for providers hide raw bytes, cache marks and usage, so the dialects are our own. The
//! script model produces real wire bytes and takes the same path as a server, which is what makes
//! it fit for tests of everything above.
//!
//! Invariants: parts and framing cover a request body without gap or overlap; a parser gives the
//! same events under any chunking; keys travel in headers only and never appear in a message;
//! cancelling answers at once with what was received.

pub mod anthropic;
pub mod cancel;
pub mod capture;
pub mod catalogue;
pub mod connection;
pub mod dialect;
#[cfg(feature = "embedded-model")]
pub mod embedded;
pub mod encoded;
pub mod endpoint;
pub mod error;
pub mod event;
pub mod gemini;
pub mod http_model;
pub mod model_list;
pub mod openai_chat;
pub mod openai_completions;
pub mod openai_responses;
pub mod parsed_response;
pub mod prices;
pub mod prompt;
pub mod providers;
pub mod quirks;
pub mod reply;
pub mod retry;
pub mod script;
pub mod sse;
pub mod tool_arguments;

mod anthropic_blocks;
mod anthropic_body;
mod anthropic_error;
mod anthropic_parse;
mod anthropic_request;
mod anthropic_turns;
mod anthropic_wire;
mod body_members;
mod body_reader;
mod counter_failures;
mod credential;
#[cfg(feature = "embedded-model")]
mod embedded_body;
#[cfg(feature = "embedded-model")]
mod embedded_wire;
mod expectation;
mod gemini_contents;
mod gemini_error;
mod gemini_parse;
mod gemini_request;
mod gemini_wire;
mod headers;
mod http_client;
mod library_counter;
mod model;
mod openai_calls;
mod openai_error;

mod openai_logprobs;
mod openai_media;
mod openai_messages;
mod openai_parse;
mod openai_request;
mod openai_responses_input;
mod openai_responses_items;
mod openai_responses_output;
mod openai_responses_parse;
mod openai_responses_wire;
mod openai_thinking;
mod openai_wire;
mod parts;
mod receive;
mod retry_hint;
mod script_lines;
mod script_wire;
mod sent_sampling;
mod server_counter;
mod server_text;
mod text_joiner;
mod token_count;
mod token_counter;
mod usage_bounds;

pub use body_members::read_members;
pub use cancel::{Cancel, CancelHandle};
pub use capture::{Clock, RawResponse, ResponseSink, Timings};
pub use catalogue::Tokenizer;
pub use connection::{ApiKey, Connection, SetupError, Timeouts};
pub use dialect::{Dialect, DialectName, Parse, ParseError};
#[cfg(feature = "embedded-model")]
pub use embedded::{EmbeddedModel, EmbeddedOptions};
pub use encoded::{EncodeError, EncodedRequest, PartKind, PartRange};
pub use error::ModelError;
pub use event::{EventListener, FinishReason, ModelEvent, TokenLogprob, TokenUsage, TopToken};
pub use http_model::HttpModel;
pub use model::{
    CallOrigin, Exchange, Model, ModelInfo, ModelPlace, Purpose, SendPermit, SiblingSlot, SourceKind,
};
pub use model_list::{ListError, ListedModel, list_models};
pub use parsed_response::{PARSER_VERSION, ParsedResponse, reparse};
pub use prices::{Money, Prices, Rates};
pub use prompt::{
    Chat, ChatPart, Media, MediaPart, OpaquePart, OutputSchema, Params, PartId, Prompt, TextPart, Thinking,
    ToolChoice, ToolExchange, ToolResult, ToolSchema,
};
pub use providers::{Abilities, Probe, ProviderRow, provider, providers};
pub use quirks::{Quirks, ThinkingControl};
pub use reply::{Choice, Reply, ReplyPiece, ToolCall};
pub use script::ScriptModel;
pub use sent_sampling::SentSampling;
pub use token_counter::{CountEnd, TokenCounter};
pub use usage_bounds::{AnswerSize, RequestSize, UsageBounds};
