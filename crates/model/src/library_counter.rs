//! Tokens of OpenAI's models, counted in this process with the vocabularies OpenAI has published.
//!
//! Which of them a model has, the library's own table says by the model's name. A vocabulary is read when it is first
//! counted with, once a process (a tenth of a second), and not on the threads that answer others.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use tiktoken_rs::tokenizer::{self, Tokenizer};
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton};

use crate::dialect::DialectName;
use crate::encoded::EncodedRequest;
use crate::token_counter::{CountEnd, CountedChunks, TokenCounter, chunks};

/// Tokens of a message besides its text and the name of its role, and of a request besides its messages: OpenAI
/// Cookbook, *How to count tokens with tiktoken*.
const FRAME: (u64, u64) = (3, 3);
/// Tokens of a role's name.
const ROLE: u64 = 1;

/// Counts with one of OpenAI's vocabularies.
#[derive(Debug)]
pub(crate) struct LibraryCounter {
    vocabulary: Vocabulary,
    counted: Arc<CountedChunks>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vocabulary {
    O200k,
    Cl100k,
}

impl Vocabulary {
    /// The vocabulary of a model, which a router calls `openai/gpt-5`.
    fn of(model: &str) -> Option<Self> {
        let name = model.strip_prefix("openai/").unwrap_or(model);
        // A variant of a router: `openai/gpt-5:nitro`. What is fine-tuned begins with `ft:`.
        let name = if name.starts_with("ft:") { name } else { name.split(':').next()? };
        match tokenizer::get_tokenizer(name)? {
            Tokenizer::O200kBase => Some(Self::O200k),
            Tokenizer::Cl100kBase => Some(Self::Cl100k),
            // The open models write templates of their own; the oldest models are gone.
            Tokenizer::O200kHarmony
            | Tokenizer::P50kBase
            | Tokenizer::R50kBase
            | Tokenizer::P50kEdit
            | Tokenizer::Gpt2 => None,
        }
    }

    fn read(self) -> &'static CoreBPE {
        match self {
            Self::O200k => o200k_base_singleton(),
            Self::Cl100k => cl100k_base_singleton(),
        }
    }
}

/// What is counted of a body: chat completions have messages, responses have an input.
#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    input: Vec<Message>,
    tools: Option<Value>,
    response_format: Option<Value>,
    text: Option<Value>,
}

/// A message of text alone; of any other the tokens are not known.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    #[serde(rename = "role")]
    _role: String,
    content: Content,
    #[serde(rename = "type")]
    _kind: Option<IsMessage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum IsMessage {
    Message,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    #[serde(rename = "type")]
    _kind: TextBlock,
    text: String,
    #[serde(rename = "annotations")]
    _annotations: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum TextBlock {
    Text,
    InputText,
    OutputText,
}

impl LibraryCounter {
    /// A counter for a model of OpenAI's, if the library knows it by its name.
    pub(crate) fn of(model: &str) -> Option<Self> {
        Some(Self { vocabulary: Vocabulary::of(model)?, counted: Arc::default() })
    }

    /// Tokens of a text. What was learned of it is not counted again: this is for what a dialect puts between texts.
    fn count(&self, text: &str) -> u64 {
        chunks(text).map(|chunk| count(self.vocabulary, &self.counted, chunk)).sum()
    }
}

fn count(vocabulary: Vocabulary, counted: &CountedChunks, chunk: &str) -> u64 {
    counted.get(chunk).unwrap_or_else(|| {
        let tokens = vocabulary.read().encode_ordinary(chunk).len() as u64;
        counted.keep(chunk, tokens);
        tokens
    })
}

#[async_trait]
impl TokenCounter for LibraryCounter {
    fn name(&self) -> &'static str {
        "library"
    }

    fn known(&self, text: &str) -> Option<u64> {
        self.counted.sum(text)
    }

    fn is_here(&self) -> bool {
        true
    }

    async fn learn(&self, texts: &[String]) -> CountEnd {
        let (vocabulary, counted, texts) = (self.vocabulary, Arc::clone(&self.counted), texts.to_vec());
        let counting = tokio::task::spawn_blocking(move || {
            for chunk in texts.iter().flat_map(|text| chunks(text)) {
                count(vocabulary, &counted, chunk);
            }
        });
        if let Err(error) = counting.await {
            tracing::warn!(%error, "tokens could not be counted, and are estimated");
        }
        CountEnd::InTime
    }

    fn request(&self, request: &EncodedRequest) -> Option<u64> {
        if !matches!(request.dialect(), DialectName::OpenAiChat | DialectName::OpenAiResponses) {
            return None;
        }
        let body: Body = serde_json::from_slice(request.body()).ok()?;
        let formed = body.text.is_some_and(|text| text.get("format").is_some());
        // How schemas are written into the prompt is not documented.
        if body.tools.is_some() || body.response_format.is_some() || formed {
            return None;
        }
        let mut sum = FRAME.1;
        for message in body.messages.iter().chain(&body.input) {
            sum += FRAME.0 + ROLE;
            match &message.content {
                Content::Text(text) => sum += self.count(text),
                Content::Blocks(blocks) => {
                    for block in blocks {
                        sum += self.count(&block.text);
                    }
                }
            }
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;

    /// The conversation of OpenAI's Cookbook, *How to count tokens with tiktoken*.
    const RECORDED: [&str; 6] = [
        "You are a helpful, pattern-following assistant that translates corporate jargon into plain English.",
        "New synergies will help drive top-line growth.",
        "Things working well together will increase revenue.",
        "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
        "Let's talk later when we're less busy about how to do better.",
        "This late pivot means we don't have time to boil the ocean for the client deliverable.",
    ];

    fn request(dialect: DialectName, body: &Value) -> EncodedRequest {
        EncodedRequest::new(dialect, "p", Bytes::from(body.to_string()), Vec::new(), false).unwrap()
    }

    fn chat(content: impl Fn(&str) -> Value) -> Value {
        let role = |at| if at < 5 { "system" } else { "user" };
        let messages = RECORDED.iter().enumerate();
        messages.map(|(at, text)| json!({"role": role(at), "content": content(text)})).collect()
    }

    #[test]
    fn a_conversation_has_the_tokens_that_openai_reported_for_it() {
        // As the API counted them, less three or four for each of the four names that this program does not send.
        for (model, reported) in
            [("gpt-4o", 124 - 14), ("gpt-4-0613", 129 - 14), ("openai/gpt-3.5-turbo", 129 - 14)]
        {
            let counter = LibraryCounter::of(model).unwrap();
            let body = json!({"model": model, "messages": chat(|text| json!(text))});
            assert_eq!(counter.request(&request(DialectName::OpenAiChat, &body)), Some(reported), "{model}");
            let blocks = chat(|text| json!([{"type": "input_text", "text": text}]));
            let body = json!({"model": model, "text": {"verbosity": "low"}, "input": blocks});
            assert_eq!(
                counter.request(&request(DialectName::OpenAiResponses, &body)),
                Some(reported),
                "{model}"
            );
        }
    }

    #[test]
    fn what_the_library_does_not_know_is_not_counted() {
        for unknown in ["gpt-9", "llama-3", "gpt-oss-120b", "davinci", ""] {
            assert!(LibraryCounter::of(unknown).is_none(), "{unknown}");
        }
        for known in ["gpt-5.1", "openai/gpt-5-mini:nitro", "ft:gpt-4o:of:mine", "o3", "chatgpt-4o-latest"] {
            assert_eq!(
                LibraryCounter::of(known).map(|counter| counter.vocabulary),
                Some(Vocabulary::O200k),
                "{known}"
            );
        }
    }

    #[test]
    fn pictures_calls_and_schemas_are_left_to_the_estimate() {
        let counter = LibraryCounter::of("gpt-4o").unwrap();
        let plain = chat(|text| json!(text));
        let picture =
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]);
        let call = json!([{"role": "assistant", "content": null, "tool_calls": []}]);
        for body in [
            json!({"messages": picture}),
            json!({"messages": call}),
            json!({"messages": plain, "tools": [{}]}),
            json!({"messages": plain, "response_format": {}}),
            json!({"input": [{"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}]}),
            json!({"input": plain, "text": {"format": {}}}),
        ] {
            assert_eq!(counter.request(&request(DialectName::OpenAiChat, &body)), None, "{body}");
        }
    }

    #[tokio::test]
    async fn long_texts_are_counted_once_and_within_a_hundredth() {
        let counter = LibraryCounter::of("gpt-4o").unwrap();
        let text = "The rain had not stopped for three days, and the shuttle lay still.\n".repeat(3_000);
        assert_eq!(counter.known(&text), None, "nothing is counted on the thread that asks");
        counter.learn(std::slice::from_ref(&text)).await;
        let whole = o200k_base_singleton().encode_ordinary(&text).len() as u64;
        let counted = counter.known(&text).unwrap();
        assert!(counted.abs_diff(whole) * 100 <= whole, "{counted} of {whole}");
    }
}
