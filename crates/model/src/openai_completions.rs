//! OpenAI completions: text in, its continuation out, with log-probabilities.
//!
//! The way of a loom (spec: context §7, *raw*): no template, no system prompt, nothing between the
//! document and the model.

use crate::dialect::{Dialect, DialectName, Parse};
use crate::encoded::{BodyWriter, EncodeError, Encoded, PartKind};
use crate::openai_parse::parser;
use crate::openai_request::open_body;
use crate::prompt::{Params, Prompt};
use crate::quirks::Quirks;

/// The completions dialect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenAiCompletions {
    /// What the server wants.
    pub quirks: Quirks,
}

impl Dialect for OpenAiCompletions {
    fn name(&self) -> DialectName {
        DialectName::OpenAiCompletions
    }

    fn encode(&self, prompt: &Prompt, params: &Params, model: &str) -> Result<Encoded, EncodeError> {
        let Prompt::Raw(parts) = prompt else {
            return Err(EncodeError::Unsupported { what: "a conversation in a completion request" });
        };
        // An empty document is a fair beginning; a request without any part is a slip.
        if parts.is_empty() {
            return Err(EncodeError::Empty);
        }
        let mut body = BodyWriter::default();
        open_body(&mut body, model, params, "max_tokens", &self.quirks)?;
        if let Some(alternatives) = params.logprobs {
            body.frame(",\"logprobs\":");
            body.frame_value(&alternatives);
        }
        body.frame(",\"prompt\":\"");
        for part in parts {
            body.text(PartKind::Document, part);
        }
        body.frame("\"}");
        body.finish(DialectName::OpenAiCompletions, "completions", params.stream)
    }

    fn parser(&self, streamed: bool) -> Box<dyn Parse> {
        parser(DialectName::OpenAiCompletions, streamed)
    }
}
