//! One request from its manifest to its nodes, sent to the model it names, or to another one where that does not answer.

use std::sync::Arc;

use context::ContextError;
use futures_util::future::BoxFuture;
use loom::{GenerationRow, NodeId, OriginRole};
use model::{EncodedRequest, Model, ModelPlace, Params, SiblingSlot};

use crate::call::Call;
use crate::commit::{self, GenerationOutcome};
use crate::error::AgentError;
use crate::exchange::{self, PassedGate, SiblingGate};
use crate::prepared_request::PreparedRequest;
use crate::replay::{self, RecordedRequest};
use crate::request::{GenerationRequest, PathRequest};
use crate::request_permit;
use crate::runtime::Runtime;

impl GenerationRequest {
    /// Asks, keeps what comes and makes its nodes. A sibling waits at its gate until the first has its first token.
    /// What the provider finds too long is shortened and sent once more.
    ///
    /// # Errors
    /// When nothing was sent. What went wrong afterwards is in the answer, beside what was received.
    pub async fn send_among(
        &self,
        runtime: &Runtime,
        call: &Call,
        slot: SiblingSlot,
        gate: SiblingGate<'_>,
    ) -> Result<GenerationOutcome, AgentError> {
        let (gate, committed) = gate.pass().await;
        let answered = send_with_fallback(self, runtime, call, slot, gate).await;
        drop(committed);
        answered
    }

    /// Asks this one model. What it finds too long is shortened and sent once more.
    pub(crate) async fn send_to_one(
        &self,
        runtime: &Runtime,
        call: &Call,
        slot: SiblingSlot,
        gate: &PassedGate<'_>,
    ) -> Result<GenerationOutcome, AgentError> {
        let first = self.send_permitted(runtime, call, slot.clone(), gate, None).await?;
        if !(first.is_empty() && first.is_too_long()) {
            return Ok(first);
        }
        match self.send_permitted(runtime, call, slot, gate, Some(first.tokens)).await {
            // Nothing is left that could leave: what the provider said stands.
            Err(AgentError::Context(ContextError::TooLong { .. } | ContextError::Empty)) => Ok(first),
            second => second,
        }
    }

    /// Sends it; where trust in what it holds was withdrawn while it waited, it is put together anew, once.
    async fn send_permitted(
        &self,
        runtime: &Runtime,
        call: &Call,
        slot: SiblingSlot,
        gate: &PassedGate<'_>,
        refused: Option<u64>,
    ) -> Result<GenerationOutcome, AgentError> {
        let first = self.try_send(runtime, call, slot.clone(), gate, refused).await?;
        if !(first.is_empty() && is_withdrawn(&first)) {
            return Ok(first);
        }
        call.note("a text of the request was withdrawn while it waited: it is put together anew");
        self.try_send(runtime, call, slot, gate, refused).await
    }

    fn try_send<'a>(
        &'a self,
        runtime: &'a Runtime,
        call: &'a Call,
        slot: SiblingSlot,
        gate: &'a PassedGate<'a>,
        refused: Option<u64>,
    ) -> BoxFuture<'a, Result<GenerationOutcome, AgentError>> {
        Box::pin(async move {
            let prepared = self.prepare_to_send(runtime, call, refused).await?;
            let begun = prepared.begin(runtime, call, self, &slot).await?;
            if let Some(tokens) = refused {
                call.note(format!(
                "the provider found the request too long, though it was estimated at {tokens} tokens: it is shortened \
                 and sent once more"
            ));
            }
            let heard = exchange::send((runtime, call), self, &prepared, &begun, slot, gate).await;
            gate.in_order().await;
            commit::commit(runtime, call, self, &prepared, begun, heard).await
        })
    }

    /// Asks alone, with no siblings, in a turn of its own.
    ///
    /// # Errors
    /// As [`GenerationRequest::send_among`].
    pub async fn send(&self, runtime: &Runtime, call: &Call) -> Result<GenerationOutcome, AgentError> {
        let spending = runtime.new_turn()?;
        self.send_in_turn(runtime, call, spending.turn().to_owned()).await
    }

    /// Asks alone, as one of the model calls of a turn.
    pub(crate) async fn send_in_turn(
        &self,
        runtime: &Runtime,
        call: &Call,
        turn: String,
    ) -> Result<GenerationOutcome, AgentError> {
        send_with_fallback(self, runtime, call, SiblingSlot::alone(turn), PassedGate::default()).await
    }
}

/// Asks, and asks the next ones while nobody answers.
async fn send_with_fallback(
    ask: &GenerationRequest,
    runtime: &Runtime,
    call: &Call,
    slot: SiblingSlot,
    gate: PassedGate<'_>,
) -> Result<GenerationOutcome, AgentError> {
    let first = ask.send_to_one(runtime, call, slot.clone(), &gate).await?;
    let Some(why) = unanswered(&first) else { return Ok(first) };
    let from = ask.model.info();
    let mut why = why.to_owned();
    let mut asked = vec![from.full_name()];
    for (name, found) in runtime.fallbacks.found().await {
        let model = match found {
            Ok(model) => model,
            Err(problem) => {
                call.note(format!("{name} is not asked instead: {problem}"));
                continue;
            }
        };
        let to = model.info();
        if asked.contains(&to.full_name()) {
            continue;
        }
        if !runtime.fallbacks.allows(from, to) {
            call.note(format!(
                "{name} is not asked instead: text would leave this machine (model.fallback_remote allows it)"
            ));
            continue;
        }
        let place = match (&to.place, &to.host) {
            (ModelPlace::Remote, Some(host)) => format!(", text goes to {host} ({})", to.provider),
            (ModelPlace::Remote, None) => format!(", text goes to {}", to.provider),
            (ModelPlace::Local, _) => String::new(),
        };
        let last = asked.last().map_or("", String::as_str);
        call.note(format!("{last} did not answer ({why}): {} is asked instead{place}", to.full_name()));
        asked.push(to.full_name());
        // Parameters of a provider are for the model that its agent names.
        let params = Params { provider: serde_json::Map::new(), ..ask.params.clone() };
        let next = GenerationRequest { model: Arc::clone(&model), params, ..ask.clone() };
        match next.send_to_one(runtime, call, slot.clone(), &gate).await {
            Ok(answered) => match unanswered(&answered) {
                None => return Ok(answered),
                Some(problem) => problem.clone_into(&mut why),
            },
            Err(stopped @ AgentError::Model { code: "cancelled", .. }) => return Err(stopped),
            // It cannot take the request at all, or has no budget left.
            Err(problem) => why = problem.to_string(),
        }
    }
    Ok(first)
}

/// Whether a request was not sent, or not repeated, as what it held was withdrawn.
fn is_withdrawn(answered: &GenerationOutcome) -> bool {
    matches!(answered.error, Some(AgentError::Model { code: "withdrawn", .. }))
}

/// Why another model may be asked: nothing came, for a reason that is this model's alone.
fn unanswered(answered: &GenerationOutcome) -> Option<&str> {
    match &answered.error {
        Some(AgentError::Model { elsewhere: true, message, .. }) if answered.is_empty() => Some(message),
        _ => None,
    }
}

/// Sends the bytes of an earlier request again, as a new sibling of what `agent` made of them.
///
/// # Errors
/// When nothing was sent, nothing came, or the answer was empty.
pub async fn resend(
    runtime: &Runtime,
    call: &Call,
    model: Arc<dyn Model>,
    encoded: EncodedRequest,
    RecordedRequest { generation, manifest, agent, inputs, .. }: RecordedRequest<'_>,
) -> Result<NodeId, AgentError> {
    runtime.require_space()?;
    require_visible(runtime, call, generation, inputs).await?;
    let earlier = generation.clone();
    let (ends_at, stop) = replay::recorded_end(runtime, &call.who, &earlier).await?;
    // What is assembled, of what, is decided: only whether a view follows is asked of the path.
    let ask = GenerationRequest {
        purpose: earlier.purpose,
        tree: earlier.tree,
        source: PathRequest::default().into(),
        model,
        agent: agent.to_owned(),
        profile: earlier.profile,
        params: Params { n: earlier.reserved.len() as u32, ends_at, stop, ..Params::default() },
        part_of: None,
        guards: Vec::new(),
    };
    let prepared =
        PreparedRequest::of_recorded(runtime, &call.who, encoded, &earlier, manifest, inputs).await?;
    let spending = runtime.new_turn()?;
    let slot = SiblingSlot::alone(spending.turn().to_owned());
    let begun = prepared.begin_like(runtime, call, &ask, &slot.turn, earlier).await?;
    let gate = PassedGate::default();
    let heard = exchange::send((runtime, call), &ask, &prepared, &begun, slot, &gate).await;
    commit::node_of(commit::commit(runtime, call, &ask, &prepared, begun, heard).await?)
}

/// Refuses to ask again where what a request stands below, or was given beside the path, was pruned since: its bytes hold
/// that text.
async fn require_visible(
    runtime: &Runtime,
    call: &Call,
    earlier: &GenerationRow,
    inputs: &[(OriginRole, NodeId)],
) -> Result<(), AgentError> {
    let Some(place) = &earlier.place else { return Ok(()) };
    let of = (earlier.tree, place);
    let withdrawn = request_permit::withdrawn(runtime, &call.who, of, &earlier.runs, inputs).await?;
    withdrawn.map_or(Ok(()), |refusal| Err(refusal.into()))
}
