//! Limits of one turn (spec: agent §1 *Limits*).

use std::collections::HashMap;

use super::approval::DeniedCalls;
use crate::error::AgentError;
use crate::event::QuestionKind;
use crate::questions::{Decision, Question, QuestionContext};
use crate::runtime::Runtime;

/// Model calls of a turn, until somebody says that it may go on.
const MODEL_CALLS: u32 = 40;
/// Calls of one tool with the same arguments, likewise.
const SAME_CALLS: u32 = 3;

/// Characters of arguments in a question.
const SHOWN: usize = 200;

/// What a turn did so far.
#[derive(Debug, Default)]
pub(super) struct TurnLimits {
    model_calls: u32,
    /// Model calls that were allowed beyond [`MODEL_CALLS`].
    more: u32,
    /// Calls by tool and arguments.
    same: HashMap<(String, String), u32>,
    is_met: bool,
    denied: DeniedCalls,
}

impl TurnLimits {
    pub(super) const fn count_model_call(&mut self) {
        self.model_calls += 1;
    }

    pub(super) const fn denied(&mut self) -> &mut DeniedCalls {
        &mut self.denied
    }

    /// Counts a call of a tool.
    pub(super) fn count(&mut self, tool: &str, arguments: &serde_json::Value) {
        *self.same.entry((tool.to_owned(), arguments.to_string())).or_default() += 1;
    }

    /// Whether the turn has to end at its next answer.
    pub(super) const fn are_met(&self) -> bool {
        self.is_met || self.model_calls >= MODEL_CALLS + self.more
    }

    /// Asks whether the turn goes on where a limit is met.
    ///
    /// # Errors
    /// [`AgentError::Limit`]: nobody said that it may.
    pub(super) async fn require(
        &mut self,
        runtime: &Runtime,
        asker: &QuestionContext<'_>,
    ) -> Result<(), AgentError> {
        if self.model_calls >= MODEL_CALLS + self.more {
            let what = format!("the model was asked {} times in this turn", self.model_calls);
            self.ask(runtime, asker, (what, format!("{MODEL_CALLS} more?"))).await?;
            self.more += MODEL_CALLS;
        }
        let repeated = self.same.iter().find(|(_, number)| **number >= SAME_CALLS);
        if let Some(((tool, arguments), number)) = repeated.map(|(call, number)| (call.clone(), *number)) {
            let shown: String = text::terminal::one_line(&arguments).chars().take(SHOWN).collect();
            let what = format!("{tool} was called {number} times with {shown}");
            self.ask(runtime, asker, (what, "go on?".to_owned())).await?;
            self.same.remove(&(tool, arguments));
        }
        Ok(())
    }

    async fn ask(
        &mut self,
        runtime: &Runtime,
        asker: &QuestionContext<'_>,
        (what, question): (String, String),
    ) -> Result<(), AgentError> {
        let question = Question::yes_or_no(QuestionKind::Limit, format!("{what}: {question}"));
        let asked = runtime.ask(asker, question).await?;
        if asked.decision == Decision::Denied {
            self.is_met = true;
            return Err(AgentError::Limit(what));
        }
        Ok(())
    }
}
