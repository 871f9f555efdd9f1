//! Gemini: `generateContent` of Google's Generative Language API.
//!
//! In four things it differs from the other dialects. The model and the way of answering stand in the path, so a
//! model's name is written into it like a word of a stranger. Messages are *contents* of parts, only of the roles
//! `user` and `model`, and results of tools are the user's. Arguments are JSON objects, never their text. And
//! the model signs parts of its answers: a signature has to come back on the very part it came with, and newer
//! models refuse a conversation whose calls have lost theirs. So a signature is an opaque block in front of its
//! part, a signature of nothing is a whole part of its own, and the texts of two signed parts are never joined.
//! Summaries of thoughts need not come back; those that are signed do, as they came.
//!
//! The key belongs into the header `x-goog-api-key`, never into the URL.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Value, json};

use crate::dialect::{Dialect, DialectName, Parse, ServerFailure};
use crate::encoded::{EncodeError, EncodedRequest, PartKind};
use crate::gemini_contents::{Content, contents, system_instruction};
use crate::gemini_request::{GenerationConfig, generation_config, tool_config};
use crate::parts::Parts;
use crate::prompt::{ChatPart, Params, Prompt};
use crate::quirks::Quirks;
use crate::{gemini_error, gemini_parse};

/// What is not written as it is in a segment of a path (RFC 3986).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The Gemini dialect with what differs between servers and models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gemini {
    pub quirks: Quirks,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerationConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Value>,
    contents: Vec<Content>,
}

impl Dialect for Gemini {
    fn name(&self) -> DialectName {
        DialectName::Gemini
    }

    fn encode(&self, prompt: &Prompt, params: &Params, model: &str) -> Result<EncodedRequest, EncodeError> {
        let Prompt::Chat(chat) = prompt else {
            return Err(EncodeError::Unsupported { what: "raw document text in a Gemini request" });
        };
        let leading = chat.messages.iter().take_while(|part| matches!(part, ChatPart::System(_))).count();
        let (system, rest) = chat.messages.split_at(leading);
        // Instructions alone are nothing to answer to: the server wants contents.
        if rest.is_empty() && chat.prefill.is_none() {
            return Err(EncodeError::Empty);
        }
        let mut parts = Parts::new()?;
        let functions = chat.tools.iter().map(|tool| {
            // `parameters` takes a part of OpenAPI's schemas only; this one takes JSON schemas as they are.
            let function = json!({
                "name": tool.name,
                "description": tool.description,
                "parametersJsonSchema": tool.parameters,
            });
            parts.value(PartKind::Schema, tool.id, &function)
        });
        let functions: Vec<String> = functions.collect();
        let any = !functions.is_empty();
        let request = Request {
            generation_config: generation_config(params, self.quirks)?,
            tool_config: if any { tool_config(&params.tool_choice) } else { None },
            tools: any.then(|| json!([{"functionDeclarations": functions}])),
            system_instruction: system_instruction(&mut parts, system),
            contents: contents(&mut parts, rest, chat.prefill.as_ref(), self.quirks)?,
        };
        parts.request(DialectName::Gemini, &path(model, params.stream), params.stream, &request)
    }

    fn parser(&self, streamed: bool) -> Box<dyn Parse> {
        parser(streamed)
    }
}

/// A parser for one answer.
pub(crate) fn parser(streamed: bool) -> Box<dyn Parse> {
    gemini_parse::parser(streamed)
}

/// What an error response says.
pub(crate) fn failure(status: u16, body: &[u8]) -> ServerFailure {
    gemini_error::from_response(status, body)
}

/// Where a request goes. Only the two collections the API has may stand before the name, as its lists of models
/// write them; everything else of the name is one segment, whatever it holds.
fn path(model: &str, stream: bool) -> String {
    let (collection, name) = match model.split_once('/') {
        Some((collection @ ("models" | "tunedModels"), name)) => (collection, name),
        _ => ("models", model),
    };
    let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    format!("{collection}/{}:{method}", utf8_percent_encode(name, RESERVED))
}
