//! How many tokens a request may have (spec: context §3).

use serde::{Deserialize, Serialize};

/// Tokens left free besides the reserved output.
pub const MARGIN: u64 = 1_024;

/// The tokens of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenBudget {
    pub window: u64,
    pub reserved_output: u64,
    /// What the request may have.
    pub budget: u64,
}

impl TokenBudget {
    /// For a model with this window and limit of output, both in tokens, and the output asked for, if it is
    /// less. A window too small for the margin gives it up before it gives up the text.
    pub fn new(window: u64, output_limit: u64, asked: Option<u64>) -> Self {
        let most = output_limit.min(window / 4).max(1);
        let reserved_output = asked.map_or(most, |asked| asked.clamp(1, most.max(1)));
        let margin = MARGIN.min(window / 8);
        Self { window, reserved_output, budget: window.saturating_sub(reserved_output + margin) }
    }

    /// The budget for a provider that found a request of `tokens` tokens, by estimate, too long: its tokens are
    /// larger than those of the estimate.
    #[must_use]
    pub fn without(self, tokens: u64) -> Self {
        Self { budget: self.budget.min(tokens * 9 / 10), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_margin_come_off_the_window() {
        assert_eq!(TokenBudget::new(32_768, 4_096, None).budget, 32_768 - 4_096 - 1_024);
        assert_eq!(TokenBudget::new(8_192, 100_000, None).reserved_output, 2_048);
        assert_eq!(TokenBudget::new(8_192, 4_096, Some(96)).reserved_output, 96);
    }

    #[test]
    fn a_tiny_window_still_leaves_room_for_text() {
        let tiny = TokenBudget::new(512, 512, None);
        assert!(tiny.budget > tiny.window / 2, "{tiny:?}");
    }
}
