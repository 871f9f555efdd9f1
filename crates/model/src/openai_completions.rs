//! OpenAI completions: text in, its continuation out, with log-probabilities.
//!
//! The way of a loom (spec: context §7, *raw*): no template, no system prompt, nothing between the
//! document and the model.

use serde::Serialize;

use crate::dialect::{Dialect, DialectName, Parse};
use crate::encoded::{EncodeError, EncodedRequest, PartKind};
use crate::openai_parse::parser;
use crate::openai_request::Parameters;
use crate::parts::Parts;
use crate::prompt::{Params, Prompt};
use crate::quirks::{LimitField, Quirks};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenAiCompletions {
    pub quirks: Quirks,
}

#[derive(Serialize)]
struct Request<'a> {
    #[serde(flatten)]
    parameters: Parameters<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<u8>,
    prompt: String,
}

impl Dialect for OpenAiCompletions {
    fn name(&self) -> DialectName {
        DialectName::OpenAiCompletions
    }

    fn encode(&self, prompt: &Prompt, params: &Params, model: &str) -> Result<EncodedRequest, EncodeError> {
        let Prompt::Raw(texts) = prompt else {
            return Err(EncodeError::Unsupported { what: "a conversation in a completion request" });
        };
        // An empty document is a fair beginning; a request without any part is a slip.
        if texts.is_empty() {
            return Err(EncodeError::Empty);
        }
        let mut parts = Parts::new()?;
        let request = Request {
            parameters: Parameters::new(model, params, LimitField::MaxTokens, &self.quirks)?,
            logprobs: params.logprobs,
            prompt: texts.iter().map(|text| parts.text(PartKind::Document, text)).collect(),
        };
        parts.request(DialectName::OpenAiCompletions, "completions", params.stream, &request)
    }

    fn parser(&self, streamed: bool) -> Box<dyn Parse> {
        parser(DialectName::OpenAiCompletions, streamed)
    }
}
