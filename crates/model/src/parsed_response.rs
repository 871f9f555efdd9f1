//! What a response says.
//!
//! It is parsed once, while it arrives. A stored response is parsed again when it is read: `verify` compares what a node
//! says with what its stored response says (spec: loom §6). It uses the very parser that made the node; the version
//! tells a difference of parsers from a forgery.

use std::borrow::Cow;

use crate::dialect::{DialectName, ParseError};
use crate::event::TokenUsage;
use crate::reply::{Choice, Reply, ReplyPiece};

/// Version of all parsers; raised whenever the same bytes give another text, tool call or finish.
pub const PARSER_VERSION: u32 = 2;
/// Bytes of a stored body that are parsed at a time.
const PIECE: usize = 64 * 1024;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedResponse {
    /// The choices, by index; of an interrupted response as far as it came.
    pub choices: Vec<Choice>,
    /// Token counts of the whole answer, where the server gave them.
    pub usage: Option<TokenUsage>,
    /// The last token counts of an answer of which those of the whole did not come: only its input holds.
    pub interim_usage: Option<TokenUsage>,
    /// Why the body does not reach its end, if it does not.
    pub problem: Option<ParseError>,
}

impl ParsedResponse {
    /// Every text of the response, each as it stands once put together, over deltas and pieces: what is said, thought
    /// and refused, tool calls, and what the provider wants back, as JSON.
    pub fn texts(&self) -> Vec<Cow<'_, str>> {
        let mut texts = Vec::new();
        for choice in &self.choices {
            texts.extend([choice.text(), choice.thinking(), choice.refusal()]);
            for piece in &choice.pieces {
                match piece {
                    ReplyPiece::Call(call) => {
                        texts.extend([&call.id, &call.name, &call.arguments].map(Cow::from));
                    }
                    ReplyPiece::Opaque(json) | ReplyPiece::Thinking { opaque: Some(json), .. } => {
                        texts.push(json.to_string().into());
                    }
                    ReplyPiece::Text(_)
                    | ReplyPiece::Thinking { opaque: None, .. }
                    | ReplyPiece::Refusal(_)
                    | ReplyPiece::Media(_) => {}
                }
            }
        }
        texts.retain(|text| !text.is_empty());
        texts
    }

    pub(crate) fn new(reply: Reply, problem: Option<ParseError>) -> Self {
        let Reply { choices, usage, interim_usage, .. } = reply;
        Self { choices, usage, interim_usage, problem }
    }
}

/// Parses a stored body in its dialect. `streamed` as recorded with the response.
pub fn reparse(dialect: DialectName, body: &[u8], streamed: bool) -> ParsedResponse {
    let (mut parser, mut reply, mut events) = (dialect.parser(streamed), Reply::default(), Vec::new());
    // In pieces, so that the events of a long body do not stand beside what they say.
    let fed = body.chunks(PIECE).try_for_each(|piece| {
        let fed = parser.feed(piece, &mut events);
        events.drain(..).for_each(|event| reply.apply(&event));
        fed
    });
    let problem = fed.and_then(|()| parser.finish(&mut events)).err();
    events.iter().for_each(|event| reply.apply(event));
    ParsedResponse::new(reply, problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ModelEvent;

    /// A whole answer of each dialect whose provider counts a part of its input or output beside the whole, with
    /// 400 tokens of input and 3 of output, and the count of a part.
    fn answers(part: &str) -> Vec<(&'static str, DialectName, String)> {
        let chat = |counts: String| {
            format!(
                r#"{{"id":"c","choices":[{{"index":0,"message":{{"content":"A."}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":400,"completion_tokens":3,{counts}}}}}"#
            )
        };
        let responses = |counts: String| {
            format!(
                r#"{{"object":"response","status":"completed","output":[],"usage":{{"input_tokens":400,"output_tokens":3,{counts}}}}}"#
            )
        };
        let gemini = format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"A."}}]}},"finishReason":"STOP"}}],"usageMetadata":{{"promptTokenCount":400,"candidatesTokenCount":3,"cachedContentTokenCount":{part}}}}}"#
        );
        let (input, output) = ("prompt_tokens_details", "completion_tokens_details");
        vec![
            ("read", DialectName::OpenAiChat, chat(format!(r#""{input}":{{"cached_tokens":{part}}}"#))),
            ("read", DialectName::OpenAiChat, chat(format!(r#""prompt_cache_hit_tokens":{part}"#))),
            ("read", DialectName::OpenAiChat, chat(format!(r#""cached_tokens":{part}"#))),
            (
                "written",
                DialectName::OpenAiChat,
                chat(format!(r#""{input}":{{"cache_write_tokens":{part}}}"#)),
            ),
            (
                "reasoning",
                DialectName::OpenAiChat,
                chat(format!(r#""{output}":{{"reasoning_tokens":{part}}}"#)),
            ),
            (
                "read",
                DialectName::OpenAiResponses,
                responses(format!(r#""input_tokens_details":{{"cached_tokens":{part}}}"#)),
            ),
            (
                "reasoning",
                DialectName::OpenAiResponses,
                responses(format!(r#""output_tokens_details":{{"reasoning_tokens":{part}}}"#)),
            ),
            ("read", DialectName::Gemini, gemini),
        ]
    }

    #[test]
    fn a_part_of_a_count_that_cannot_be_is_none_of_it() {
        let whole = TokenUsage { input_uncached: 400, output: 3, ..TokenUsage::default() };
        for impossible in ["-1", "0.5", "\"many\"", "{\"a\":1}", "[2]", "true", "1099511627776", "401"] {
            for (part, dialect, body) in answers(impossible) {
                assert_eq!(reparse(dialect, body.as_bytes(), false).usage, Some(whole), "{part}: {body}");
            }
        }
        for (part, dialect, body) in answers("2") {
            let counted = match part {
                "read" => TokenUsage { input_uncached: 398, cache_read: 2, ..whole },
                "written" => TokenUsage { input_uncached: 398, cache_write: 2, ..whole },
                _ => TokenUsage { reasoning: 2, ..whole },
            };
            assert_eq!(reparse(dialect, body.as_bytes(), false).usage, Some(counted), "the control, {body}");
        }
    }

    #[test]
    fn a_part_of_a_count_that_cannot_be_is_none_of_an_answer_that_is_cut() {
        let counts =
            r#"{"prompt_tokens":400,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":-1}}"#;
        let body = format!(
            "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"A.\"}}}}],\"usage\":{counts}}}\n\n"
        );
        let cut = reparse(DialectName::OpenAiChat, body.as_bytes(), true);
        let usage = TokenUsage { input_uncached: 400, output: 1, ..TokenUsage::default() };
        assert_eq!((cut.usage, cut.interim_usage), (None, Some(usage)));
    }

    /// What a chat answer of these chunks reports, each with a text and its counts.
    fn chunks(chunks: &[(&str, &str)]) -> ParsedResponse {
        let chunks = chunks.iter().map(|(text, counts)| {
            let choice = format!(r#"{{"index":0,"delta":{{"content":"{text}"}}}}"#);
            format!("data: {{\"id\":\"c\",\"choices\":[{choice}],\"usage\":{counts}}}\n\n")
        });
        let body = chunks.collect::<String>() + "data: [DONE]\n\n";
        reparse(DialectName::OpenAiChat, body.as_bytes(), true)
    }

    #[test]
    fn counts_without_one_of_the_output_are_not_those_of_the_whole() {
        let input = TokenUsage { input_uncached: 400, ..TokenUsage::default() };
        for counts in [r#"{"prompt_tokens":400}"#, r#"{"prompt_tokens":400,"completion_tokens":null}"#] {
            let parsed = chunks(&[("A.", "null"), ("", counts)]);
            assert_eq!((parsed.usage, parsed.interim_usage), (None, Some(input)), "{counts}");
        }
        let body = r#"{"object":"response","status":"completed","output":[],"usage":{"input_tokens":400}}"#;
        let parsed = reparse(DialectName::OpenAiResponses, body.as_bytes(), false);
        assert_eq!((parsed.usage, parsed.interim_usage), (None, Some(input)));
        let body = r#"{"content":[],"stop_reason":"end_turn","usage":{"input_tokens":400}}"#;
        let parsed = reparse(DialectName::AnthropicMessages, body.as_bytes(), false);
        assert_eq!((parsed.usage, parsed.interim_usage), (None, Some(input)));
        let parsed = chunks(&[("A.", "null"), ("", r#"{"prompt_tokens":400,"completion_tokens":0}"#)]);
        assert_eq!(parsed.usage, Some(input), "the control");
    }

    #[test]
    fn what_a_later_chunk_leaves_out_of_the_counts_stays() {
        let input = r#"{"prompt_tokens":400,"prompt_tokens_details":{"cached_tokens":300}}"#;
        let output = r#"{"completion_tokens":30,"completion_tokens_details":{"reasoning_tokens":20}}"#;
        let null = r#"{"prompt_tokens":400,"completion_tokens":null,"prompt_tokens_details":{"cached_tokens":300},"completion_tokens_details":null}"#;
        let whole = TokenUsage {
            input_uncached: 100,
            cache_read: 300,
            output: 30,
            reasoning: 20,
            ..TokenUsage::default()
        };
        for (first, last) in [(input, output), (output, input), (output, null)] {
            assert_eq!(chunks(&[("A.", first), (" B.", last)]).usage, Some(whole), "{first}, {last}");
        }
        let later = r#"{"prompt_tokens":400,"completion_tokens":40}"#;
        let later_whole = TokenUsage { output: 40, ..whole };
        assert_eq!(chunks(&[("A.", input), (" B.", output), ("", later)]).usage, Some(later_whole));
    }

    #[test]
    fn progress_that_is_none_spoils_nothing() {
        let read = |progress: &str| {
            let choice = |text: &str| format!(r#""choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]"#);
            let body = format!(
                "data: {{{}}}\n\ndata: {{\"prompt_progress\":{progress},{}}}\n\ndata: [DONE]\n\n",
                choice("One"),
                choice(" two")
            );
            let (mut parser, mut events) = (DialectName::OpenAiChat.parser(true), Vec::new());
            assert_eq!(parser.feed(body.as_bytes(), &mut events), Ok(()), "{progress}");
            let parsed = reparse(DialectName::OpenAiChat, body.as_bytes(), true);
            assert_eq!((&*parsed.choices[0].text(), parsed.problem), ("One two", None), "{progress}");
            events.iter().any(|event| matches!(event, ModelEvent::PromptRead { .. }))
        };
        assert!(read(r#"{"processed":1,"total":2}"#), "the control");
        for none in ["null", "\"x\"", "-1", "0.5", "true", "[1,2]", "{}", "{\"processed\":1}"] {
            assert!(!read(none), "{none}");
        }
        for [done, total] in
            [["-1", "9"], ["-1", "-1"], ["1", "-1"], ["\"x\"", "9"], ["{}", "[]"], ["9", "8"]]
        {
            let none = format!(r#"{{"processed":{done},"total":{total}}}"#);
            assert!(!read(&none), "{none}");
        }
    }
}
