//! The trait behind which every model stands.

use std::sync::Arc;

use async_trait::async_trait;
pub use loom::{Purpose, SourceKind};
use serde::{Deserialize, Serialize};

use crate::cancel::Cancel;
use crate::capture::{RawResponse, ResponseSink};
use crate::catalogue::Tokenizer;
use crate::dialect::DialectName;
use crate::encoded::{EncodeError, EncodedRequest};
use crate::error::ModelError;
use crate::event::EventListener;
use crate::prices::Prices;
use crate::prompt::{Chat, ChatPart, Media, Params, Prompt};
use crate::quirks::ThinkingControl;
use crate::token_counter::TokenCounter;

/// A model that can be asked.
#[async_trait]
pub trait Model: Send + Sync {
    /// What is known of it.
    fn info(&self) -> &ModelInfo;

    /// The exact request for a prompt. A [`Prompt::Raw`] goes to the completion endpoint, a
    /// [`Prompt::Chat`] to the chat endpoint.
    ///
    /// # Errors
    /// When the model cannot take what the prompt holds.
    fn encode(&self, prompt: &Prompt, params: &Params) -> Result<EncodedRequest, EncodeError>;

    /// Names of the headers a request is sent with, in lower case; their values are kept nowhere. None for a
    /// model that is not reached over HTTP.
    fn header_names(&self) -> Vec<&str> {
        Vec::new()
    }

    /// What counts its tokens; none where they can only be estimated.
    fn counter(&self) -> Option<Arc<dyn TokenCounter>> {
        None
    }

    /// Sends a request, freshly encoded or read back from a manifest, and returns the response when
    /// it is complete. Every byte reaches the spool before its events reach the listener.
    /// Cancelling gives [`ModelError::Cancelled`] with what was received. Not cancel-safe: a
    /// dropped future leaves the spool where it stands.
    ///
    /// # Errors
    /// Any [`ModelError`]; those after the first byte carry the response as far as it came.
    async fn send(
        &self,
        request: &EncodedRequest,
        call: &CallOrigin,
        exchange: Exchange<'_>,
    ) -> Result<RawResponse, ModelError>;
}

/// Where the bytes and events of one answer go, and what may stop it.
pub struct Exchange<'a> {
    /// Keeps the wire bytes.
    pub spool: &'a mut dyn ResponseSink,
    pub listener: &'a mut dyn EventListener,
    pub cancel: Cancel,
    /// Asked before each repetition, by whoever sends also before the first; none where nothing can forbid one.
    pub permit: Option<&'a dyn SendPermit>,
}

/// Whether a request may still be sent as it was put together: what it holds may be withdrawn while it waits.
#[async_trait]
pub trait SendPermit: Send + Sync {
    async fn is_granted(&self) -> bool;
}

/// Why a model is called. It is no part of the request; the script model answers by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallOrigin {
    /// The session (or tree) the call belongs to.
    pub session: String,
    pub purpose: Purpose,
    /// The label of the subagent that makes it.
    pub label: Option<String>,
    /// The call's place among sibling calls.
    pub sibling: Option<SiblingSlot>,
}

impl CallOrigin {
    /// A call that stands alone.
    pub fn new(session: impl Into<String>, purpose: Purpose) -> Self {
        Self { session: session.into(), purpose, label: None, sibling: None }
    }
}

/// A call's place among the sibling calls of one turn, which may run in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiblingSlot {
    /// Names the turn; the same for all its calls.
    pub turn: String,
    /// Index of this call: 0, 1, …
    pub index: u32,
    /// Number of sibling calls, this one among them.
    pub count: u32,
}

impl SiblingSlot {
    /// The slot of a call without siblings.
    pub const fn alone(turn: String) -> Self {
        Self { turn, index: 0, count: 1 }
    }
}

/// Where text goes when it is sent to a model (spec: security §10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelPlace {
    /// On this machine, or on one that the owner has declared to be theirs.
    Local,
    Remote,
}

/// What is known of a model before it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model's name as the provider knows it.
    pub name: String,
    pub dialect: DialectName,
    pub place: ModelPlace,
    /// What kind of source it is.
    pub kind: SourceKind,
    /// Window in tokens.
    pub window: u32,
    /// Most tokens of one answer.
    pub output_limit: u32,
    /// Whether one request gives `n` choices.
    pub honours_n: bool,
    /// Whether it continues a given beginning of its answer.
    pub prefill: bool,
    pub logprobs: bool,
    /// Whether it continues raw text.
    pub completion_endpoint: bool,
    /// Whether it can call tools.
    pub tools: bool,
    pub images: bool,
    pub audio: bool,
    /// Whether it keeps to a schema.
    pub structured: bool,
    /// The cheap model of the same provider that is used for small work.
    pub fast: Option<String>,
    /// What it costs; `None` where that is not known, nothing for a local one.
    pub prices: Option<Prices>,
    /// How it cuts text into tokens.
    pub tokenizer: Tokenizer,
    /// Whether nobody said how large the window is.
    pub window_assumed: bool,
    /// The host text goes to; none for a model inside this program.
    pub host: Option<String>,
    /// What can be said to it about its thinking.
    pub thinks: ThinkingControl,
}

impl ModelInfo {
    /// A local model that continues raw text and conversations alike and can nothing else, for servers and tests to
    /// go on from.
    pub fn local(
        provider: impl Into<String>,
        name: impl Into<String>,
        window: u32,
        output_limit: u32,
    ) -> Self {
        Self {
            provider: provider.into(),
            name: name.into(),
            dialect: DialectName::OpenAiChat,
            place: ModelPlace::Local,
            kind: SourceKind::Local,
            window,
            output_limit,
            honours_n: false,
            prefill: true,
            logprobs: false,
            completion_endpoint: true,
            tools: false,
            images: false,
            audio: false,
            structured: false,
            fast: None,
            prices: Some(Prices::FREE),
            tokenizer: Tokenizer::Unknown,
            window_assumed: false,
            host: None,
            thinks: ThinkingControl::Untold,
        }
    }

    /// `PROVIDER/NAME`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.provider, self.name)
    }

    /// Refuses what the model is known not to take.
    pub(crate) fn admit(&self, prompt: &Prompt, params: &Params) -> Result<(), EncodeError> {
        let (prefill, tools, raw) = match prompt {
            Prompt::Raw(_) => (false, false, true),
            Prompt::Chat(chat) => (chat.prefill.is_some(), !chat.tools.is_empty(), false),
        };
        let (images, audio) = match prompt {
            Prompt::Raw(_) => (false, false),
            Prompt::Chat(chat) => (sends(chat, "image/"), sends(chat, "audio/")),
        };
        let refused = [
            (raw && !(self.completion_endpoint && self.dialect.has_completions()), "raw continuation"),
            (prefill && !self.prefill, "a given beginning of the answer"),
            (tools && !self.tools, "tool use"),
            (images && !self.images, "pictures"),
            (audio && !self.audio, "sound"),
            (params.schema.is_some() && !self.structured, "a schema for the answer"),
            (params.n > 1 && !self.honours_n, "more than one choice in a request"),
            (params.logprobs.is_some() && !self.logprobs, "log-probabilities"),
        ];
        match refused.into_iter().find(|(refused, _)| *refused) {
            Some((_, what)) => Err(EncodeError::Unsupported { what }),
            None => Ok(()),
        }
    }
}

/// Whether a conversation holds media of a kind, in its messages or in results of tools.
fn sends(chat: &Chat, kind: &str) -> bool {
    let is_kind = |media: &Media| media.mime.starts_with(kind);
    chat.messages.iter().any(|part| match part {
        ChatPart::Media(part) => is_kind(&part.media),
        ChatPart::ToolRound(round) => round.iter().any(|exchange| exchange.result.media.iter().any(is_kind)),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::{MediaPart, PartId};

    #[test]
    fn media_go_only_to_models_that_take_them() {
        let model = ModelInfo { images: true, ..ModelInfo::local("box", "m", 4_096, 512) };
        let prompt = |mime: &str| {
            let media = Media { mime: mime.to_owned(), data: bytes::Bytes::from_static(b"x") };
            let part = ChatPart::Media(MediaPart { id: PartId(0), media });
            Prompt::Chat(Chat { messages: vec![part], ..Chat::default() })
        };
        assert!(model.admit(&prompt("image/png"), &Params::default()).is_ok());
        assert!(model.admit(&prompt("audio/wav"), &Params::default()).is_err());
        let blind = ModelInfo { images: false, audio: true, ..model };
        assert!(blind.admit(&prompt("image/png"), &Params::default()).is_err());
        assert!(blind.admit(&prompt("audio/wav"), &Params::default()).is_ok());
    }
}
