//! What a turn comes to: the answer that it ends with, or why it has none.

use loom::{NodeId, TreeId};
use model::{Money, TokenUsage};

use crate::commit::GenerationOutcome;
use crate::error::AgentError;
use crate::event::{SayId, TurnOutcome};

/// An answer behind which its turn went on.
pub(super) struct EarlierAnswer {
    pub(super) generated: GenerationOutcome,
    /// How many of the texts of the turn it answers: those that joined later are behind it.
    pub(super) says: usize,
    /// Node of the last of them.
    pub(super) said: NodeId,
}

/// What a turn comes to, for the texts it answers: `cost` is that of all its requests, as far as it is known. One whose last
/// request brought nothing ends with the answer before it, if there is one, since what was done until then is kept; a
/// budget that is met behind an answer is a limit of the turn. Texts that joined behind that answer have none.
pub(super) fn outcomes(
    (mut says, said, tree): (Vec<SayId>, NodeId, TreeId),
    (ended, earlier): (Result<GenerationOutcome, AgentError>, Option<EarlierAnswer>),
    cost: Option<Money>,
) -> Vec<(Vec<SayId>, TurnOutcome)> {
    let costing = |generated| GenerationOutcome { cost, ..generated };
    let is_failed = ended.as_ref().map_or(true, |ended| ended.error.is_some() && ended.nodes.is_empty());
    let Some(earlier) = earlier.filter(|_| is_failed) else {
        return vec![(says, outcome(said, tree, ended.map(costing)))];
    };
    let failed = outcome(said, tree, ended);
    let error = failed.error.clone().map(|error| match error.0.as_ref() {
        AgentError::Budget { limit, message } => {
            AgentError::Limit(format!("{message} ({} sets it)", limit.key())).into()
        }
        _ => error,
    });
    let unanswered = says.split_off(earlier.says.min(says.len()));
    let answered = outcome(earlier.said, tree, Ok(costing(earlier.generated)));
    let mut outcomes = vec![(says, TurnOutcome { error, ..answered })];
    if !unanswered.is_empty() {
        outcomes.push((unanswered, failed));
    }
    outcomes
}

fn outcome(said: NodeId, tree: TreeId, generated: Result<GenerationOutcome, AgentError>) -> TurnOutcome {
    let nothing = TurnOutcome {
        said,
        tree,
        answer: None,
        manifest: None,
        usage: None,
        estimated_usage: TokenUsage::default(),
        model: String::new(),
        cost: None,
        reusable: None,
        share: 0.0,
        measured: false,
        error: None,
        elsewhere: false,
    };
    match generated {
        Err(error) => TurnOutcome { error: Some(error.into()), ..nothing },
        Ok(generated) => {
            let usage = generated.usage.unwrap_or(generated.estimated_usage);
            // Of a script nothing is estimated.
            let input = if usage.input() == 0 { generated.tokens } else { usage.input() };
            let used = input.saturating_add(usage.output);
            TurnOutcome {
                answer: generated.nodes.into_iter().next(),
                manifest: Some(generated.manifest),
                usage: generated.usage,
                estimated_usage: generated.estimated_usage,
                model: generated.model,
                cost: generated.cost,
                reusable: generated.reusable,
                share: used as f64 / generated.window.max(1) as f64,
                measured: generated.usage.is_some(),
                error: generated.error.map(Into::into),
                ..nothing
            }
        }
    }
}
