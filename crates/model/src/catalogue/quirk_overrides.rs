//! What a model wants otherwise than other models of its provider: each field overrides one of [`Quirks`], and what is
//! `None` is as the provider's row says. A gateway has ways of its own, so that it hears nothing of these.

use serde::Deserialize;

use crate::quirks::{InstructionRole, LeastEffort, Quirks, ThinkingForm, ThinkingOff};

/// Overrides of [`Quirks`], field by field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QuirkOverrides {
    pub instructions: Option<InstructionRole>,
    /// How it is told how much to think.
    pub thinking: Option<ThinkingForm>,
    /// How it is told not to think.
    pub thinking_off: Option<ThinkingOff>,
    pub thinking_always: Option<bool>,
    /// Whether thinking goes back only into the conversation it came from.
    pub thinking_bound: Option<bool>,
    /// The least effort it knows.
    pub least_effort: Option<LeastEffort>,
    /// Whether it takes `temperature` and `top_p`. What its provider does not take at all, no model of it takes.
    pub sampling: Option<bool>,
    /// Whether it takes instructions inside a conversation.
    pub instructions_inside: Option<bool>,
    /// Whether calls without a signature are sent with the one that stands for it.
    pub signature_stand_in: Option<bool>,
    /// Whether pictures may stand inside a tool's result.
    pub media_in_results: Option<bool>,
}

impl QuirkOverrides {
    /// What its provider wants, with these in their places.
    #[must_use]
    pub fn over(&self, provider: Quirks) -> Quirks {
        Quirks {
            instructions: self.instructions.unwrap_or(provider.instructions),
            thinking: self.thinking.unwrap_or(provider.thinking),
            thinking_off: self.thinking_off.unwrap_or(provider.thinking_off),
            thinking_always: self.thinking_always.unwrap_or(provider.thinking_always),
            thinking_bound: self.thinking_bound.unwrap_or(provider.thinking_bound),
            least_effort: self.least_effort.unwrap_or(provider.least_effort),
            sampling: provider.sampling && self.sampling.unwrap_or(true),
            instructions_inside: self.instructions_inside.unwrap_or(provider.instructions_inside),
            signature_stand_in: self.signature_stand_in.unwrap_or(provider.signature_stand_in),
            media_in_results: self.media_in_results.unwrap_or(provider.media_in_results),
            ..provider
        }
    }
}
