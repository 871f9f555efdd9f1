//! Which token counts can be those of a request and its answer.

use std::ops::RangeInclusive;

use crate::encoded::{EncodedRequest, PartKind};
use crate::event::TokenUsage;

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

/// Bounds of the token counts that a request and its answer can have. A token of text is no shorter than a byte, and
/// on average no longer than 64. Thinking may be unseen: there the model's limit of output holds, for each choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageBounds {
    input: RangeInclusive<u64>,
    output: u64,
}

impl UsageBounds {
    /// Bounds for a request and this many bytes of its answer.
    pub fn new(request: RequestSize, received: usize, output_limit: u32, choices: u32) -> Self {
        let RequestSize { bytes, text, media } = request;
        let most = bytes.saturating_add(OWN_INPUT_TOKENS).saturating_add(media.saturating_mul(MEDIA_TOKENS));
        let unseen = u64::from(output_limit).saturating_mul(u64::from(choices.max(1)));
        Self { input: least_tokens(text)..=most, output: (received as u64).saturating_add(unseen) }
    }

    /// Whether these can be the counts of the whole.
    pub fn contain(&self, usage: &TokenUsage) -> bool {
        self.input.contains(&usage.input()) && usage.output <= self.output
    }

    /// Whether these can be counts of an answer that goes on; those of the input may be missing there, as 0.
    pub fn contain_interim(&self, usage: &TokenUsage) -> bool {
        (usage.input() == 0 || self.input.contains(&usage.input())) && usage.output <= self.output
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::dialect::DialectName;
    use crate::encoded::PartRange;
    use crate::prompt::PartId;

    fn size(kind: PartKind) -> RequestSize {
        let ranges = vec![PartRange { part: PartId(0), kind, bytes: 0..900 }];
        let body = Bytes::from(vec![b'x'; 1_000]);
        (&EncodedRequest::new(DialectName::OpenAiChat, "p", body, ranges, true).unwrap()).into()
    }

    fn usage(input_uncached: u64, output: u64) -> TokenUsage {
        TokenUsage { input_uncached, output, ..TokenUsage::default() }
    }

    #[test]
    fn counts_are_bounded_by_what_was_sent_and_received() {
        let bounds = UsageBounds::new(size(PartKind::Schema), 500, 8_192, 1);
        let plausible = |input, output| bounds.contain(&usage(input, output));
        assert!(plausible(1_000 + OWN_INPUT_TOKENS, 8_692));
        assert!(!plausible(1_001 + OWN_INPUT_TOKENS, 0) && !plausible(0, 8_693));
        assert!(!plausible(u64::MAX, 0) && !plausible(0, u64::MAX));
        let bounds = UsageBounds::new(size(PartKind::Media), 0, 0, 1);
        let seen = TokenUsage { input_uncached: 48_200, cache_write: u64::MAX, ..TokenUsage::default() };
        assert!(!bounds.contain(&seen), "the sum does not overflow");
        assert!(bounds.contain(&TokenUsage { cache_write: 0, ..seen }));
    }

    #[test]
    fn a_text_has_tokens_and_not_fewer_than_one_for_64_bytes() {
        let bounds = UsageBounds::new(size(PartKind::User), 500, 8_192, 1);
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
            assert!(UsageBounds::new(size(kind), 500, 8_192, 1).contain(&usage(0, 3)), "{kind:?}");
        }
        let short = RequestSize { bytes: 100, text: 2, media: 0 };
        let short = UsageBounds::new(short, 500, 8_192, 1);
        assert!(short.contain(&usage(1, 3)) && !short.contain(&usage(0, 3)));
    }
}
