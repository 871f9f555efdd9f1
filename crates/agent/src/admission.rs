//! Admission: whether a request may be sent beside what the home has spent and reserved, and with whose yes.

use context::elicitation::QuestionEnd;
use futures_util::future::BoxFuture;
use model::{ModelPlace, Money, Params};
use store::{Principal, Reservation};

use crate::call::Call;
use crate::error::AgentError;
use crate::event::QuestionKind;
use crate::prepared_request::PreparedRequest;
use crate::questions::{Decision, Question, QuestionContext};
use crate::request::GenerationRequest;
use crate::runtime::Runtime;
use crate::session::SubagentTerms;
use crate::spend::{EXPECTED_OUTPUT, NANOS};

impl Runtime {
    /// What is to be reserved for a request, if it fits beside what the home has spent and reserved; none where it
    /// costs nothing. The store looks once more when it reserves it.
    ///
    /// # Errors
    /// [`AgentError::Budget`] when it does not fit and nobody says to go on.
    pub(crate) fn admit<'a>(
        &'a self,
        call: &'a Call,
        ask: &'a GenerationRequest,
        prepared: &'a PreparedRequest,
        turn: &'a str,
    ) -> BoxFuture<'a, Result<Option<Reservation>, AgentError>> {
        Box::pin(async move {
            let (info, manifest) = (ask.model.info(), &prepared.manifest);
            let reserved = manifest.budget.reserved_output;
            let output = u64::from(ask.choices()) * expected_output(&ask.params, reserved);
            let (money, tokens) = match (info.place, info.prices) {
                (ModelPlace::Local, None) => (Money::ZERO, 0),
                (_, Some(prices)) => (prices.estimate(manifest.tokens, output), 0),
                (ModelPlace::Remote, None) => (Money::ZERO, manifest.tokens + output),
            };
            if (money, tokens) == (Money::ZERO, 0) {
                return Ok(None);
            }
            if let Some(subagent) = &call.subagent {
                self.require_budget(subagent, money).await?;
            }
            let micro_dollars = money.0.div_ceil(NANOS);
            let mut is_recovered = false;
            loop {
                let reservation =
                    self.spend.reservation((ask.tree, turn), (micro_dollars, tokens), self.now());
                let spending = self.store.spending(&Principal::Owner, ask.tree, &reservation).await?;
                let (over, most_spent) = self.spend.look(&reservation, &spending);
                for limit in most_spent {
                    call.note(format!("80 % of {limit} is spent or reserved ({} sets it)", limit.key()));
                }
                let Some(over) = over else { return Ok(Some(reservation)) };
                if !std::mem::replace(&mut is_recovered, true) {
                    // What a process that died had reserved is free again.
                    Box::pin(self.recover(call.events.as_ref())).await?;
                    continue;
                }
                let place = prepared.parent();
                let asker = QuestionContext {
                    call,
                    tree: ask.tree,
                    guards: &ask.guards,
                    place,
                    end: QuestionEnd::never(),
                };
                if self
                    .ask(&asker, Question::yes_or_no(QuestionKind::Budget, over.question()))
                    .await?
                    .decision
                    == Decision::Denied
                {
                    return Err(AgentError::Budget { limit: over.limit, message: over.refusal() });
                }
                self.spend.raise(ask.tree, &reservation, &over);
            }
        })
    }

    /// Refuses a request of a subagent that does not fit in what is left of its budget, or of one that it works for.
    async fn require_budget(&self, subagent: &SubagentTerms, asked: Money) -> Result<(), AgentError> {
        for terms in subagent.and_above() {
            let Some(most) = terms.budget else { continue };
            let mut spent = Money::ZERO;
            for tree in terms.trees() {
                let in_tree = self.store.spent_in(&Principal::Owner, tree).await?.micro_dollars;
                spent += Money(in_tree.saturating_mul(NANOS));
            }
            if spent + asked > most {
                let what = format!(
                    "its next request may cost up to {asked}; its budget is {most}, of which {spent} is spent"
                );
                return Err(AgentError::Limit(what));
            }
        }
        Ok(())
    }
}

/// Tokens of an answer that are reckoned with, of those its request reserves: all, where their number was asked for.
pub fn expected_output(params: &Params, reserved: u64) -> u64 {
    if params.max_tokens.is_some() { reserved } else { reserved.min(EXPECTED_OUTPUT) }
}
