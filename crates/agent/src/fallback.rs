//! Another model when one does not answer (spec: agent §2, security §10).
//!
//! The models come from the owner's list, each named in full, and are tried in its order: when the one that was asked
//! cannot be reached, is overloaded, turns us away for now or has no quota left, and nothing of an answer came. Never
//! for a refusal, a bad request or a window that is too small. A remote model does not take over from a local one
//! unless the owner allowed that in so many words: a private conversation does not leave because a server is off.
//! Each try is a request of its own, with its manifest and generation row, and the person is told who answers.

use std::fmt;
use std::sync::Arc;

use model::{Model, ModelInfo, ModelPlace, SiblingSlot};
use tokio::task::JoinError;

use crate::call::Call;
use crate::commit::GenerationOutcome;
use crate::error::AgentError;
use crate::exchange::PassedGate;
use crate::request::GenerationRequest;
use crate::runtime::Runtime;

/// A model of the list as it was found: its name, and why it cannot be asked, if it cannot.
pub type FoundModel = (String, Result<Arc<dyn Model>, String>);

/// The owner's list, looked up only when it is needed.
#[derive(Clone)]
pub struct Fallbacks {
    find: Arc<dyn Fn() -> Vec<FoundModel> + Send + Sync>,
    /// Whether a remote model may take over from a local one.
    remote: bool,
}

impl Fallbacks {
    /// The list; `remote` says that a remote model of it may take over from a local one.
    pub fn new(find: impl Fn() -> Vec<FoundModel> + Send + Sync + 'static, remote: bool) -> Self {
        Self { find: Arc::new(find), remote }
    }

    /// The models of the list, looked up on a thread that may wait: one of them may have to be started.
    async fn found(&self) -> Vec<FoundModel> {
        let find = Arc::clone(&self.find);
        match tokio::task::spawn_blocking(move || find()).await.map_err(JoinError::try_into_panic) {
            Ok(found) => found,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The process ends.
            Err(Err(_)) => Vec::new(),
        }
    }

    /// Whether one model may take over from another.
    fn allows(&self, from: &ModelInfo, to: &ModelInfo) -> bool {
        from.place == ModelPlace::Remote || to.place == ModelPlace::Local || self.remote
    }
}

impl Default for Fallbacks {
    fn default() -> Self {
        Self::new(Vec::new, false)
    }
}

impl fmt::Debug for Fallbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fallbacks").field("remote", &self.remote).finish_non_exhaustive()
    }
}

/// Asks, and asks the next ones while nobody answers.
pub(crate) async fn send_with_fallback(
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
        let next = GenerationRequest { model: Arc::clone(&model), ..ask.clone() };
        match next.send_to_one(runtime, call, slot.clone(), &gate).await {
            Ok(answered) => match unanswered(&answered) {
                None => return Ok(answered),
                Some(problem) => problem.clone_into(&mut why),
            },
            // It cannot take the request at all, or has no budget left.
            Err(problem) => why = problem.to_string(),
        }
    }
    Ok(first)
}

/// Why another model may be asked: nothing came, for a reason that is this model's alone.
fn unanswered(answered: &GenerationOutcome) -> Option<&str> {
    match &answered.error {
        Some(AgentError::Model { elsewhere: true, message, .. }) if answered.is_empty() => Some(message),
        _ => None,
    }
}
