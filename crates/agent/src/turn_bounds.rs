//! How much one turn may do (spec: agent §1 *Limits*).

use std::time::Duration;

/// How much a turn does until somebody says that it may go on; then as much again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnBounds {
    pub model_calls: u32,
    /// Time without that in which people are waited for.
    pub time: Duration,
    /// Tokens that were sent and received, estimated where nobody reported them.
    pub tokens: u64,
    /// Calls of one tool with the same arguments, as long as no file changes.
    pub same_calls: u32,
}

impl Default for TurnBounds {
    fn default() -> Self {
        Self { model_calls: 40, time: Duration::from_secs(2 * 3_600), tokens: 2_000_000, same_calls: 3 }
    }
}

/// What the subagents of a session may do (spec: agent §8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubagentBounds {
    /// How often a model is asked by one of them.
    pub model_calls: u32,
    /// How many run at one time; further ones wait.
    pub at_once: usize,
    /// How many may stand one below the other.
    pub depth: u32,
}

impl Default for SubagentBounds {
    fn default() -> Self {
        Self { model_calls: 15, at_once: 4, depth: 1 }
    }
}

/// What may wait for a session at one time (spec: scale §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingBounds {
    /// Messages: one more is refused.
    pub messages: usize,
    /// Questions of its work: one more ends the turn.
    pub questions: u64,
}

impl Default for WaitingBounds {
    fn default() -> Self {
        Self { messages: 64, questions: store::MAX_OPEN_QUESTIONS }
    }
}
