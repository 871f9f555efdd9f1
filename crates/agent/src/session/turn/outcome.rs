//! What a turn comes to: the answer that it ends with, or why it has none.

use loom::{NodeId, TreeId};
use model::TokenUsage;

use crate::commit::GenerationOutcome;
use crate::error::AgentError;
use crate::event::TurnOutcome;

/// How a turn ends whose last request brought nothing: with the answer before it, if there is one, since what was done until
/// then is kept. A budget that is met behind an answer is a limit of the turn.
pub(super) fn with_earlier(
    failed: Result<GenerationOutcome, AgentError>,
    earlier: Option<GenerationOutcome>,
) -> Result<GenerationOutcome, AgentError> {
    let (error, earlier) = match (failed, earlier) {
        (Err(error), Some(earlier)) => (Some(error), earlier),
        (Ok(failed), Some(earlier)) if failed.nodes.is_empty() => (failed.error, earlier),
        (failed, _) => return failed,
    };
    let error = error.map(|error| match error {
        AgentError::Budget { limit, message } => {
            AgentError::Limit(format!("{message} ({} sets it)", limit.key()))
        }
        error => error,
    });
    Ok(GenerationOutcome { error, ..earlier })
}

pub(super) fn outcome(
    said: NodeId,
    tree: TreeId,
    generated: Result<GenerationOutcome, AgentError>,
) -> TurnOutcome {
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
