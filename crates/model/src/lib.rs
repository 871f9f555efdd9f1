//! Models behind one small trait.
//!
//! This part is pure: a [`Prompt`] of parts with ids is encoded to bytes together with the byte
//! range of every part, and the bytes of an answer become [`Event`]s, the same under any chunking.

pub mod dialect;
pub mod encoded;
pub mod event;
pub mod openai_chat;
pub mod openai_completions;
pub mod prompt;
pub mod reparse;
pub mod reply;
pub mod sse;
pub mod tool_arguments;

mod openai_calls;
mod openai_error;
mod openai_logprobs;
mod openai_parse;
mod openai_request;
mod openai_wire;
mod server_text;
mod text_joiner;

pub use dialect::{Dialect, DialectName, Parse, ParseError};
pub use encoded::{EncodeError, Encoded, PartKind, PartRange};
pub use event::{Event, FinishReason, Listen, TokenLogprob, TopToken, Usage};
pub use prompt::{Chat, ChatPart, Params, PartId, Prompt, TextPart, ToolExchange, ToolResult, ToolSchema};
pub use reparse::{PARSER_VERSION, Reparsed, reparse};
pub use reply::{Choice, Reply, ToolCall};
