//! Any model behind HTTP, whatever dialect its server speaks.
//!
//! One type serves all of them: what differs is which dialect writes a conversation, how the key is sent
//! ([`crate::connection`]), and what the server wants beyond its dialect ([`Quirks`]). All three are data.

use std::sync::Arc;

use async_trait::async_trait;

use crate::anthropic::Anthropic;
use crate::capture::RawResponse;
use crate::connection::{Connection, SetupError};
use crate::dialect::{Dialect, DialectName};
use crate::encoded::{EncodeError, EncodedRequest};
use crate::error::ModelError;
use crate::gemini::Gemini;
use crate::http_client::{Body, Client};
use crate::library_counter::LibraryCounter;
use crate::model::{CallOrigin, Exchange, Model, ModelInfo, SourceKind};
use crate::openai_chat::OpenAiChat;
use crate::openai_completions::OpenAiCompletions;
use crate::openai_responses::OpenAiResponses;
use crate::prompt::{Chat, ChatPart, Params, Prompt};
use crate::quirks::{Quirks, ThinkingControl};
use crate::receive::{Io, receive};
use crate::retry::{self, Attempt};
use crate::server_counter::ServerCounter;
use crate::token_counter::TokenCounter;

/// A model behind a server.
#[derive(Debug)]
pub struct HttpModel {
    info: ModelInfo,
    quirks: Quirks,
    client: Client,
    counter: Option<Arc<dyn TokenCounter>>,
}

impl HttpModel {
    /// A model on a server that speaks `info.dialect`. Opens no connection. `info.place` may declare a server to be
    /// local that is not on a loopback address; see [`crate::connection::place_of`].
    ///
    /// # Errors
    /// When the base URL or the key cannot be used.
    pub fn new(info: ModelInfo, quirks: Quirks, connection: Connection) -> Result<Self, SetupError> {
        let mut client = Client::new(info.dialect, connection)?;
        client.credential = client.credential.binding(info.dialect, quirks.thinking_bound);
        Ok(Self { info, quirks, client, counter: None })
    }

    /// The model with tokens counted by its server. Text goes there before it is sent, so this is for a server on
    /// this machine.
    ///
    /// # Errors
    /// As [`HttpModel::new`].
    pub fn counting(self) -> Result<Self, SetupError> {
        let client = Client::new(self.info.dialect, self.client.connection.clone())?;
        let counter = ServerCounter::new(client, &self.info.name);
        Ok(Self { counter: Some(Arc::new(counter)), ..self })
    }

    /// The model with tokens counted by the vocabulary that OpenAI has published for a model of this name; without a
    /// counter, if none is known.
    #[must_use]
    pub fn counting_by_name(self) -> Self {
        let counter = LibraryCounter::of(&self.info.name);
        Self { counter: counter.map(|counter| Arc::new(counter) as Arc<dyn TokenCounter>), ..self }
    }
}

impl HttpModel {
    /// The dialect a conversation is written in. Responses know no text that ends an answer; chat completions do, and
    /// a model that is told nothing of its thinking loses nothing there.
    fn spoken(&self, chat: &Chat, params: &Params) -> DialectName {
        let opaque = |part: &ChatPart| match part {
            ChatPart::Opaque(_) => true,
            ChatPart::ToolRound(round) => round.iter().any(|exchange| !exchange.before.is_empty()),
            _ => false,
        };
        let beside = self.quirks.chat_beside && self.info.dialect == DialectName::OpenAiResponses;
        let ends = !params.stop.is_empty() && self.info.thinks == ThinkingControl::Untold;
        if beside && ends && !chat.messages.iter().any(opaque) {
            return DialectName::OpenAiChat;
        }
        self.info.dialect
    }
}

/// Writes a conversation in the dialect of a server.
fn encode_chat(
    dialect: DialectName,
    quirks: Quirks,
    prompt: &Prompt,
    params: &Params,
    model: &str,
) -> Result<EncodedRequest, EncodeError> {
    match dialect {
        DialectName::OpenAiChat => OpenAiChat { quirks }.encode(prompt, params, model),
        DialectName::OpenAiResponses => OpenAiResponses { quirks }.encode(prompt, params, model),
        DialectName::AnthropicMessages => Anthropic { quirks }.encode(prompt, params, model),
        DialectName::Gemini => Gemini { quirks }.encode(prompt, params, model),
        DialectName::OpenAiCompletions | DialectName::Embedded => {
            Err(EncodeError::Unsupported { what: "a conversation" })
        }
    }
}

#[async_trait]
impl Model for HttpModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn header_names(&self) -> Vec<&str> {
        self.client.credential.header_names()
    }

    fn counter(&self) -> Option<Arc<dyn TokenCounter>> {
        self.counter.clone()
    }

    fn encode(&self, prompt: &Prompt, params: &Params) -> Result<EncodedRequest, EncodeError> {
        self.info.admit(prompt, params)?;
        let (quirks, model) = (self.quirks, self.info.name.as_str());
        let encoded = match prompt {
            Prompt::Raw(_) => OpenAiCompletions { quirks }.encode(prompt, params, model),
            Prompt::Chat(chat) => {
                // Messages demand a limit: the model's own, where the caller has none.
                let own =
                    (self.info.dialect == DialectName::AnthropicMessages).then_some(self.info.output_limit);
                let params = Params { max_tokens: params.max_tokens.or(own), ..params.clone() };
                encode_chat(self.spoken(chat, &params), quirks, prompt, &params, model)
            }
        };
        encoded?.with_members(&params.provider)
    }

    async fn send(
        &self,
        request: &EncodedRequest,
        _call: &CallOrigin,
        exchange: Exchange<'_>,
    ) -> Result<RawResponse, ModelError> {
        let post = Post { client: &self.client, request, source: self.info.kind };
        retry::send(&self.client.connection.retry, &post, &mut Io::new(exchange)).await
    }
}

struct Post<'a> {
    client: &'a Client,
    request: &'a EncodedRequest,
    source: SourceKind,
}

#[async_trait]
impl Attempt for Post<'_> {
    async fn attempt(&self, number: u32, io: &mut Io<'_>) -> Result<RawResponse, ModelError> {
        let (client, request) = (self.client, self.request);
        let timeouts = client.connection.timeouts;
        let url = client.endpoint.join(request.path()).ok_or(EncodeError::Path)?;
        let post = client.post(url, request.body().clone(), request.stream());
        let sent = client.sent(number, request.dialect(), self.source);
        let opened = tokio::select! {
            biased;
            () = io.cancel.cancelled() => return Err(ModelError::Cancelled { response: None, refused: false }),
            opened = tokio::time::timeout_at(sent.since + timeouts.first_byte, post) => opened,
        };
        let response = match opened {
            Ok(response) => response?,
            Err(_) => {
                return Err(ModelError::FirstByteTimeout { after: timeouts.first_byte, response: None });
            }
        };
        let head = client.head(&response, request.stream());
        receive(head, &mut Body(response), sent, timeouts, io)
            .await
            .map_err(|error| client.without_key(error))
    }
}
