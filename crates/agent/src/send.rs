//! One request from its manifest to its nodes.

use std::sync::Arc;

use context::{ContextError, Manifest};
use loom::{GenerationId, GenerationRow, NodeId};
use model::{Cancel, Encoded, Model, Params, SiblingSlot};
use store::Principal;
use tokio::sync::watch;

use crate::commit::{self, GenerationOutcome};
use crate::error::AgentError;
use crate::exchange::{self, Gate, Passed};
use crate::fallback;
use crate::replay::node_of;
use crate::request::{GenerationRequest, Prepared};
use crate::runtime::Runtime;
use crate::variant::RequestVariant;

impl GenerationRequest {
    /// Asks, keeps what comes and makes its nodes. A sibling waits at its gate until the first has its first token.
    /// What the provider finds too long is shortened and sent once more.
    ///
    /// # Errors
    /// When nothing was sent. What went wrong afterwards is in the answer, beside what was received.
    pub async fn send_among(
        &self,
        runtime: &Runtime,
        who: &Principal,
        slot: SiblingSlot,
        gate: Gate<'_>,
    ) -> Result<GenerationOutcome, AgentError> {
        let gate = gate.pass().await;
        fallback::send_with_fallback(self, runtime, who, slot, gate).await
    }

    /// Asks this one model. What it finds too long is shortened and sent once more.
    pub(crate) async fn send_to_one(
        &self,
        runtime: &Runtime,
        who: &Principal,
        slot: SiblingSlot,
        gate: &Passed<'_>,
    ) -> Result<GenerationOutcome, AgentError> {
        let first = self.try_send(runtime, who, slot.clone(), gate, None).await?;
        if !(first.nodes.is_empty() && first.is_too_long()) {
            return Ok(first);
        }
        match self.try_send(runtime, who, slot, gate, Some(first.tokens)).await {
            // Nothing is left that could leave: what the provider said stands.
            Err(AgentError::Context(ContextError::TooLong { .. } | ContextError::Empty)) => Ok(first),
            second => second,
        }
    }

    async fn try_send(
        &self,
        runtime: &Runtime,
        who: &Principal,
        slot: SiblingSlot,
        gate: &Passed<'_>,
        refused: Option<u64>,
    ) -> Result<GenerationOutcome, AgentError> {
        let prepared = self.prepare_within(runtime, who, refused).await?;
        let reserved = runtime.spend.admit(runtime, self, &prepared).await?;
        if let Some(tokens) = refused {
            runtime.client.note(&format!(
                "the provider found the request too long, though it was estimated at {tokens} tokens: it is shortened \
                 and sent once more"
            ));
        }
        let begun = prepared.begin(runtime, who, self).await?;
        let heard = exchange::send(runtime, self, &prepared, &begun, slot, gate).await;
        let answered = commit::settle(runtime, who, self, &prepared, begun, heard).await?;
        reserved.spent(answered.cost);
        Ok(answered)
    }

    /// Asks alone, with no siblings.
    ///
    /// # Errors
    /// As [`GenerationRequest::send_among`].
    pub async fn send(&self, runtime: &Runtime, who: &Principal) -> Result<GenerationOutcome, AgentError> {
        let group = runtime.new_id::<GenerationId>()?.to_string();
        let (warm, _) = watch::channel(false);
        self.send_among(runtime, who, SiblingSlot { group, index: 0, count: 1 }, Gate::Opens(&warm)).await
    }
}

/// Sends the bytes of an earlier request again, as a new sibling of what was made of them.
///
/// # Errors
/// When nothing was sent, nothing came, or the answer was empty.
pub async fn resend(
    runtime: &Runtime,
    who: &Principal,
    model: Arc<dyn Model>,
    encoded: Encoded,
    earlier: GenerationRow,
    manifest: Manifest,
    cancel: Cancel,
) -> Result<NodeId, AgentError> {
    runtime.require_space()?;
    let ask = GenerationRequest {
        tree: earlier.tree,
        view: earlier.view.clone(),
        from: Some(earlier.parent),
        follow: false,
        drafts: false,
        model,
        agent: "main".to_owned(),
        params: Params { n: earlier.reserved.len() as u32, ..Params::default() },
        bootstrap: Arc::default(),
        context: Vec::new(),
        instruction: Vec::new(),
        variant: RequestVariant::default(),
        part_of: None,
        guards: Vec::new(),
        cancel,
    };
    let (prepared, begun) = Prepared::of_recorded(runtime, who, encoded, earlier, manifest).await?;
    let (warm, _) = watch::channel(false);
    let gate = Gate::Opens(&warm).pass().await;
    let slot = SiblingSlot { group: begun.row.id.to_string(), index: 0, count: 1 };
    let reserved = runtime.spend.admit(runtime, &ask, &prepared).await;
    let reserved = match reserved {
        Ok(reserved) => reserved,
        Err(error) => return commit::unsent(runtime, who, &ask, &begun, error).await,
    };
    let heard = exchange::send(runtime, &ask, &prepared, &begun, slot, &gate).await;
    let answered = commit::settle(runtime, who, &ask, &prepared, begun, heard).await?;
    reserved.spent(answered.cost);
    node_of(answered)
}
