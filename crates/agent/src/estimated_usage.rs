//! Token counts of an answer whose server gave none of the whole of it, as where it was cut or broken off.

use loom::Block;
use model::TokenUsage;

use crate::commit::ReceivedResponse;

/// Characters of a token where nothing better is known.
const CHARS_OF_A_TOKEN: u64 = 3;

impl ReceivedResponse {
    /// Token counts after a request of `sent` tokens: input as it was reported while the answer went on, if it was;
    /// output by what came.
    pub(crate) fn estimated_usage(&self, sent: u64) -> TokenUsage {
        let blocks = self.choices.iter().flat_map(|(_, blocks, _)| blocks);
        let output = blocks.map(chars).sum::<u64>().div_ceil(CHARS_OF_A_TOKEN);
        match self.interim_usage {
            Some(interim) if interim.input() > 0 => {
                TokenUsage { output: output.max(interim.output), ..interim }
            }
            _ => TokenUsage { input_uncached: sent, output, ..TokenUsage::default() },
        }
    }
}

/// Characters that a model wrote of a block.
fn chars(block: &Block) -> u64 {
    let written = match block {
        Block::Text { text } | Block::Thinking { text, .. } => text.chars().count(),
        Block::ToolCall { name, arguments, .. } => {
            name.chars().count() + arguments.to_string().chars().count()
        }
        _ => 0,
    };
    written as u64
}

#[cfg(test)]
mod tests {
    use loom::Finish;

    use super::*;

    #[test]
    fn what_was_thought_and_called_counts_and_the_input_is_as_reported() {
        let arguments = serde_json::json!({"path": "notes.md"});
        let blocks = vec![
            Block::Thinking { text: "x".repeat(300), opaque: None },
            Block::Text { text: "y".repeat(30) },
            Block::ToolCall { id: "1".to_owned(), name: "read".to_owned(), arguments },
        ];
        let interim = TokenUsage { cache_read: 900, output: 1, ..TokenUsage::default() };
        let mut response = ReceivedResponse {
            body: Vec::new(),
            metadata: String::new(),
            usage: None,
            interim_usage: Some(interim),
            media: Vec::new(),
            choices: vec![(0, blocks, Finish::Interrupted("cancelled".to_owned()))],
        };
        assert_eq!(response.estimated_usage(5_000), TokenUsage { output: 118, ..interim });
        response.interim_usage = None;
        assert_eq!(response.estimated_usage(5_000).input_uncached, 5_000);
    }
}
