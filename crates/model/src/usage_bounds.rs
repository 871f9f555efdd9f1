//! Which token counts can be those of a request and its answer.

use std::ops::RangeInclusive;

use crate::dialect::DialectName;
use crate::encoded::{EncodedRequest, PartKind};
use crate::event::TokenUsage;
use crate::parsed_response::ParsedResponse;
use crate::reply::ReplyPiece;

/// Tokens a provider may put in front of a conversation by itself: instructions of its own, forms of tools.
const OWN_INPUT_TOKENS: u64 = 16_384;
/// The most tokens of one picture or sound of a request, beyond its bytes.
const MEDIA_TOKENS: u64 = 50_000;
/// The most bytes a token of text has on average: of words it has 3 to 6, of white space and rules of signs more.
const MAX_BYTES_PER_TOKEN: u64 = 64;

/// The fewest tokens that a text of so many bytes can have.
pub(crate) const fn least_tokens(bytes: u64) -> u64 {
    match bytes / MAX_BYTES_PER_TOKEN {
        0 => (bytes > 0) as u64,
        tokens => tokens,
    }
}

/// Size of a request, by which its input tokens are bounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestSize {
    /// Bytes of its body.
    pub bytes: u64,
    /// Bytes of its texts. Schemas and what a provider wants back are none: servers may leave them out.
    pub text: u64,
    /// Pictures and sounds in it.
    pub media: u64,
}

impl From<&EncodedRequest> for RequestSize {
    fn from(request: &EncodedRequest) -> Self {
        let mut size = Self { bytes: request.body().len() as u64, ..Self::default() };
        for range in request.ranges() {
            match range.kind {
                PartKind::Media => size.media += 1,
                PartKind::Schema | PartKind::Opaque => {}
                _ => size.text += range.bytes.len() as u64,
            }
        }
        size
    }
}

/// Size of what came of an answer, by which its output tokens are bounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerSize {
    /// Bytes of its body.
    pub bytes: u64,
    /// Bytes of what the model said and called. What a provider wants back is none, nor are pictures and sounds.
    pub text: u64,
    /// Bytes of the thinking that was shown.
    pub thinking: u64,
}

impl AnswerSize {
    /// Size of an answer as far as it came, in a body of `bytes`.
    pub fn of(parsed: &ParsedResponse, dialect: DialectName, bytes: usize) -> Self {
        let mut size = Self { bytes: bytes as u64, ..Self::default() };
        for piece in parsed.choices.iter().flat_map(|choice| &choice.pieces) {
            match piece {
                ReplyPiece::Thinking { text, .. } => size.thinking += text.len() as u64,
                ReplyPiece::Call(call) => size.text += (call.name.len() + call.arguments.len()) as u64,
                // There the provider explains it, not the model.
                ReplyPiece::Refusal(_) if dialect == DialectName::AnthropicMessages => {}
                ReplyPiece::Text(text) | ReplyPiece::Refusal(text) => size.text += text.len() as u64,
                ReplyPiece::Opaque(_) | ReplyPiece::Media(_) => {}
            }
        }
        size
    }
}

/// Bounds of the token counts that a request and its answer can have. A token of text is no shorter than a byte, and
/// on average no longer than 64. Thinking may be unseen: there the model's limit of output holds, for each choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageBounds {
    input: RangeInclusive<u64>,
    output: RangeInclusive<u64>,
    /// The least output without reasoning.
    said: u64,
}

impl UsageBounds {
    /// Bounds for a request and what came of its answer.
    pub fn new(request: RequestSize, answer: AnswerSize, output_limit: u32, choices: u32) -> Self {
        let RequestSize { bytes, text, media } = request;
        let most = bytes.saturating_add(OWN_INPUT_TOKENS).saturating_add(media.saturating_mul(MEDIA_TOKENS));
        let unseen = u64::from(output_limit).saturating_mul(u64::from(choices.max(1)));
        let output = least_tokens(answer.text + answer.thinking)..=answer.bytes.saturating_add(unseen);
        Self { input: least_tokens(text)..=most, output, said: least_tokens(answer.text) }
    }

    /// Whether these can be the counts of the whole.
    pub fn contain(&self, usage: &TokenUsage) -> bool {
        let said = usage.output.saturating_sub(usage.reasoning);
        self.input.contains(&usage.input()) && self.output.contains(&usage.output) && said >= self.said
    }

    /// Whether these can be counts of an answer that goes on; those of the input may be missing there, as 0, and those of
    /// the output be of its beginning.
    pub fn contain_interim(&self, usage: &TokenUsage) -> bool {
        (usage.input() == 0 || self.input.contains(&usage.input())) && usage.output <= *self.output.end()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::encoded::PartRange;
    use crate::prompt::PartId;
    use crate::reply::{Choice, ToolCall};

    fn size(kind: PartKind) -> RequestSize {
        let ranges = vec![PartRange { part: PartId(0), kind, bytes: 0..900 }];
        let body = Bytes::from(vec![b'x'; 1_000]);
        (&EncodedRequest::new(DialectName::OpenAiChat, "p", body, ranges, true).unwrap()).into()
    }

    fn usage(input_uncached: u64, output: u64) -> TokenUsage {
        TokenUsage { input_uncached, output, ..TokenUsage::default() }
    }

    const fn body(bytes: u64) -> AnswerSize {
        AnswerSize { bytes, text: 0, thinking: 0 }
    }

    #[test]
    fn counts_are_bounded_by_what_was_sent_and_received() {
        let bounds = UsageBounds::new(size(PartKind::Schema), body(500), 8_192, 1);
        let plausible = |input, output| bounds.contain(&usage(input, output));
        assert!(plausible(1_000 + OWN_INPUT_TOKENS, 8_692));
        assert!(!plausible(1_001 + OWN_INPUT_TOKENS, 0) && !plausible(0, 8_693));
        assert!(!plausible(u64::MAX, 0) && !plausible(0, u64::MAX));
        let bounds = UsageBounds::new(size(PartKind::Media), body(0), 0, 1);
        let seen = TokenUsage { input_uncached: 48_200, cache_write: u64::MAX, ..TokenUsage::default() };
        assert!(!bounds.contain(&seen), "the sum does not overflow");
        assert!(bounds.contain(&TokenUsage { cache_write: 0, ..seen }));
    }

    #[test]
    fn a_text_has_tokens_and_not_fewer_than_one_for_64_bytes() {
        let bounds = UsageBounds::new(size(PartKind::User), body(500), 8_192, 1);
        for (input, plausible) in [(0, false), (1, false), (13, false), (14, true), (300, true)] {
            assert_eq!(bounds.contain(&usage(input, 3)), plausible, "{input}");
            assert_eq!(bounds.contain_interim(&usage(input, 3)), plausible || input == 0, "{input}");
        }
        assert!(!bounds.contain_interim(&usage(0, 1 << 40)));
        assert!(
            bounds.contain(&TokenUsage { cache_read: 9, cache_write: 4, ..usage(1, 3) }),
            "of a cache, too"
        );
        for kind in [PartKind::Schema, PartKind::Opaque, PartKind::Media] {
            assert!(UsageBounds::new(size(kind), body(500), 8_192, 1).contain(&usage(0, 3)), "{kind:?}");
        }
        let short = RequestSize { bytes: 100, text: 2, media: 0 };
        let short = UsageBounds::new(short, body(500), 8_192, 1);
        assert!(short.contain(&usage(1, 3)) && !short.contain(&usage(0, 3)));
    }

    #[test]
    fn an_answer_has_tokens_and_not_fewer_than_one_for_64_bytes() {
        let bounds = |text, thinking| {
            UsageBounds::new(RequestSize::default(), AnswerSize { bytes: 9_000, text, thinking }, 8_192, 1)
        };
        for (text, thinking, least) in
            [(0, 0, 0), (1, 0, 1), (127, 0, 1), (6_400, 0, 100), (0, 6_400, 100), (3_200, 3_200, 100)]
        {
            let bounds = bounds(text, thinking);
            assert!(bounds.contain(&usage(1, least)), "{text} {thinking}");
            let fewer = (0..least).filter(|output| bounds.contain(&usage(1, *output)));
            assert_eq!(fewer.count(), 0, "{text} {thinking}");
            assert!(bounds.contain_interim(&usage(1, 0)), "it may be of the beginning");
        }
        // What was thought says nothing of what was said.
        let thought = |output| TokenUsage { reasoning: 400, ..usage(1, output) };
        assert!(!bounds(640, 0).contain(&thought(409)) && bounds(640, 0).contain(&thought(410)));
    }

    #[test]
    fn what_a_model_wrote_is_of_the_size_of_an_answer() {
        let call = ToolCall { id: "call_1".to_owned(), name: "read".to_owned(), arguments: "{}".to_owned() };
        let pieces = vec![
            ReplyPiece::Thinking { text: "é".to_owned(), opaque: None },
            ReplyPiece::Text("One.".to_owned()),
            ReplyPiece::Call(call),
            ReplyPiece::Opaque(serde_json::json!({"long": "x".repeat(99)})),
            ReplyPiece::Refusal("No.".to_owned()),
        ];
        let choice = Choice { pieces, ..Choice::default() };
        let parsed = ParsedResponse { choices: vec![choice.clone(), choice], ..ParsedResponse::default() };
        for (dialect, text) in [(DialectName::OpenAiChat, 26), (DialectName::AnthropicMessages, 20)] {
            assert_eq!(AnswerSize::of(&parsed, dialect, 900), AnswerSize { bytes: 900, text, thinking: 4 });
        }
    }
}
