//! Whether a call may run (spec: agent §4): policy decides, or a person does, who sees what it would change.

use std::collections::HashSet;
use std::sync::Arc;

use loom::Trust;
use policy::{Attendance, Decision as PolicyDecision, SessionFacts};
use tools::{CheckedCall, ToolOutput};

use super::Turn;
use super::calls::CallSite;
use crate::error::AgentError;
use crate::event::QuestionKind;
use crate::questions::{Answer, Decision, QuestionContext};

/// Lines of a difference that a question shows, and bytes of it; one that is longer is not asked about.
const DIFF_LINES: usize = 400;
const DIFF_BYTES: usize = 64 << 10;

/// Calls that were denied in a turn, by tool and subject: none of them is asked about again (spec: security §14).
#[derive(Debug, Default)]
pub(super) struct DeniedCalls(HashSet<(String, String)>);

/// A call that is about to run.
pub(super) struct ProposedCall<'a> {
    pub(super) tool: &'a str,
    pub(super) checked: &'a Arc<CheckedCall>,
    /// The lowest trust its request sent.
    pub(super) trust: Trust,
}

impl Turn<'_> {
    /// The result that a call has instead of running; none of one that may run.
    ///
    /// # Errors
    /// The question could not be asked.
    pub(super) async fn refusal(
        &self,
        site: &CallSite<'_>,
        denied: &mut DeniedCalls,
        call: ProposedCall<'_>,
    ) -> Result<Option<ToolOutput>, AgentError> {
        let ProposedCall { tool, checked, trust } = call;
        let facts = SessionFacts {
            kind: checked.session(),
            attendance: if site.call.answer_within.is_some() {
                Attendance::Attended
            } else {
                Attendance::Unattended
            },
            sandbox: checked.sandbox(),
            tainted: trust == Trust::Outside,
            plan_mode: site.plan,
            keeps_old_bytes: true,
        };
        let verdict = on_disk(checked, move |checked| checked.decide(&facts)).await;
        let refused = |why: &str| ToolOutput::denied(format!("{tool} was not run: {why}"));
        match verdict.decision {
            PolicyDecision::Allow => return Ok(None),
            PolicyDecision::Deny => return Ok(Some(refused(&verdict.reason.to_string()))),
            PolicyDecision::Ask => {}
        }
        // The same file by another name is the same call.
        let key = (tool.to_owned(), on_disk(checked, CheckedCall::subject).await);
        if denied.0.contains(&key) {
            return Ok(Some(refused("it was denied before in this turn")));
        }
        let rests_on = on_disk(checked, CheckedCall::rests_on).await;
        let shown = match on_disk(checked, CheckedCall::preview).await {
            // It would do nothing.
            Some(Err(why)) => return Ok(Some(checked.failed(why))),
            Some(Ok(diff)) => Some(diff),
            None => None,
        };
        let lines: Vec<&str> = shown.iter().flat_map(|diff| diff.lines()).collect();
        let bytes = shown.as_ref().map_or(0, String::len);
        if lines.len() > DIFF_LINES || bytes > DIFF_BYTES {
            let size = format!("{} lines and {}", lines.len(), text::bytes::size(bytes as u64));
            return Ok(Some(refused(&format!("its difference has {size}, more than a question shows"))));
        }
        let asker = QuestionContext { call: site.call, tree: site.tree, guards: &[site.held.guard()] };
        let asks = format!("{tool} asks to run: {}: allow it once?", verdict.reason);
        // Whoever is asked sees it whole, wherever that is.
        let text = [asks.as_str()].into_iter().chain(lines).collect::<Vec<_>>().join("\n");
        let Answer { decision, reason } = self.runtime.ask(&asker, QuestionKind::Approval, text).await?;
        if decision == Decision::Denied {
            denied.0.insert(key);
            let why = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            return Ok(Some(refused(&format!("{}, and it was denied{why}", verdict.reason))));
        }
        // What was shown is what is done.
        if on_disk(checked, CheckedCall::preview).await.and_then(Result::ok) != shown {
            return Ok(Some(refused(
                "what it changes became another text while it was asked about: call it again",
            )));
        }
        if on_disk(checked, CheckedCall::rests_on).await != rests_on {
            return Ok(Some(refused("a file it names was changed while it was asked about: call it again")));
        }
        Ok(None)
    }
}

/// What a call says of itself, on a thread that may wait for the disk.
async fn on_disk<T: Send + 'static>(
    checked: &Arc<CheckedCall>,
    ask: impl FnOnce(&CheckedCall) -> T + Send + 'static,
) -> T {
    let checked = Arc::clone(checked);
    let said = tokio::task::spawn_blocking(move || ask(&checked)).await;
    said.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()))
}
