//! Token counts of an answer whose server gave none of the whole of it, as where it was cut or broken off.

use context::Estimator;
use loom::SourceKind;
use model::{Choice, ReplyPiece, TokenUsage};

use crate::commit::ReceivedResponse;

impl ReceivedResponse {
    /// Token counts of a request of `sent` tokens as they were reported, else estimated; none where nothing came, or where
    /// a script reported nothing.
    pub(crate) fn usage_or_estimate(&self, kind: SourceKind, sent: u64) -> Option<TokenUsage> {
        let came = !self.choices.is_empty() || self.is_input_reported();
        let is_estimated = came && kind != SourceKind::Script;
        self.usage.or_else(|| is_estimated.then(|| self.estimated_usage(sent)))
    }

    /// Token counts with the input as reported, be the output reported or estimated; none where no input was.
    pub(crate) fn usage_of_reported_input(&self) -> Option<TokenUsage> {
        self.usage.or_else(|| self.is_input_reported().then(|| self.estimated_usage(0)))
    }

    /// Whether the input was counted while the answer went on; a count of 0 says nothing.
    fn is_input_reported(&self) -> bool {
        self.interim_usage.is_some_and(|interim| interim.input() > 0)
    }

    /// Token counts after a request of `sent` tokens: input as it was reported while the answer went on, if it was;
    /// output by what came, or as reported until then, if that is more.
    fn estimated_usage(&self, sent: u64) -> TokenUsage {
        let interim = self.interim_usage.unwrap_or_default();
        let input_uncached = if interim.input() == 0 { sent } else { interim.input_uncached };
        TokenUsage { input_uncached, output: self.written.max(interim.output), ..interim }
    }
}

/// Characters of a token at most, in the mean of a text.
const CHARS_OF_A_TOKEN: u64 = 3;

/// Estimated tokens of what a model wrote, wherever its answer is cut: what is left out is paid for, too.
pub(crate) fn written_tokens(choices: &[Choice]) -> u64 {
    let estimator = Estimator::default();
    let of = |text: &str| estimator.of(text).max((text.chars().count() as u64).div_ceil(CHARS_OF_A_TOKEN));
    let pieces = choices.iter().flat_map(|choice| &choice.pieces);
    let written = pieces.map(|piece| match piece {
        ReplyPiece::Text(text) | ReplyPiece::Refusal(text) | ReplyPiece::Thinking { text, .. } => of(text),
        ReplyPiece::Call(call) => of(&call.name) + of(&call.arguments),
        ReplyPiece::Opaque(_) | ReplyPiece::Media(_) => 0,
    });
    written.sum()
}

#[cfg(test)]
mod tests {
    use loom::{Block, Finish};
    use model::ToolCall;

    use super::*;

    #[test]
    fn what_was_thought_and_called_counts_and_the_input_is_as_reported() {
        let arguments = r#"{"path":"notes.md"}"#.to_owned();
        let thought = "The rain is in the hand of the weaver. ".repeat(9);
        let of = |text: &str| {
            written_tokens(&[Choice { pieces: vec![ReplyPiece::Text(text.to_owned())], ..Choice::default() }])
        };
        let output = [&*thought, "It rains.", "read", &arguments].map(of).iter().sum();
        assert!(output > 118, "{output}");
        let pieces = vec![
            ReplyPiece::Thinking { text: thought, opaque: None },
            ReplyPiece::Text("It rains.".to_owned()),
            ReplyPiece::Call(ToolCall { id: "1".to_owned(), name: "read".to_owned(), arguments }),
        ];
        let interim = TokenUsage { cache_read: 900, output: 1, ..TokenUsage::default() };
        let mut response = ReceivedResponse {
            body: Vec::new(),
            metadata: String::new(),
            usage: None,
            interim_usage: Some(interim),
            media: Vec::new(),
            written: written_tokens(&[Choice { pieces, ..Choice::default() }]),
            choices: Vec::new(),
        };
        assert_eq!(response.estimated_usage(5_000), TokenUsage { output, ..interim });
        assert_eq!(response.usage_of_reported_input(), Some(TokenUsage { output, ..interim }));
        // Nothing is said of the input, and more of the output than came.
        let interim = TokenUsage { output: 400, reasoning: 300, ..TokenUsage::default() };
        response.interim_usage = Some(interim);
        assert_eq!(response.estimated_usage(5_000), TokenUsage { input_uncached: 5_000, ..interim });
        assert_eq!(response.usage_of_reported_input(), None);
        response.interim_usage = None;
        let estimated = TokenUsage { input_uncached: 5_000, output, ..TokenUsage::default() };
        assert_eq!(response.estimated_usage(5_000), estimated);
    }

    #[test]
    fn what_was_written_in_another_script_is_not_taken_for_less() {
        // 27 characters; 24.3 tokens in the vocabulary of GPT-4o on average.
        let text = "织机立在大厅里，雨一直下着，直到傍晚再也没有人提起它。".repeat(150);
        let pieces = vec![ReplyPiece::Text(text)];
        assert!(written_tokens(&[Choice { pieces, ..Choice::default() }]) >= 3_642);
    }

    #[test]
    fn a_request_is_estimated_where_anything_came_of_a_model() {
        let interim = TokenUsage { input_uncached: 900, ..TokenUsage::default() };
        let text = vec![Block::Text { text: "x".repeat(30) }];
        let of = |usage, interim_usage, choices: &[Vec<Block>]| {
            let finish = Finish::Interrupted("cancelled".to_owned());
            let choices = choices.iter().map(|blocks| (0, blocks.clone(), finish.clone())).collect();
            let (body, media) = (Vec::new(), Vec::new());
            ReceivedResponse {
                body,
                metadata: String::new(),
                usage,
                interim_usage,
                media,
                written: 30,
                choices,
            }
        };
        let input = |response: ReceivedResponse, kind| {
            response.usage_or_estimate(kind, 700).map(|usage| usage.input())
        };
        let texts = std::slice::from_ref(&text);
        for kind in [SourceKind::Local, SourceKind::Remote] {
            assert_eq!(input(of(None, None, &[]), kind), None, "an error");
            assert_eq!(input(of(None, None, texts), kind), Some(700));
            assert_eq!(input(of(None, Some(interim), &[]), kind), Some(900), "it was read, and is paid for");
            assert_eq!(input(of(None, Some(TokenUsage::default()), &[]), kind), None, "nothing is said");
        }
        assert_eq!(input(of(None, None, texts), SourceKind::Script), None);
        assert_eq!(input(of(Some(interim), None, texts), SourceKind::Script), Some(900));
    }
}
