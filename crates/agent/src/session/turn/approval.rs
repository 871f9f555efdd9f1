//! Whether a call may run (spec: agent §4): policy decides, or a person does, who sees what it would change, and says
//! whether the answer holds for this call, for the session or for good.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use context::elicitation::QuestionEnd;
use loom::Trust;
use policy::{
    Attendance, Decision as PolicyDecision, Effect, LastingAnswers, Pattern, Permission, SessionFacts,
    SessionType,
};
use store::{CallId, Principal};
use text::terminal::one_line;
use tokio::sync::Semaphore;
use tools::{CheckedCall, ToolOutput};

use super::Turn;
use super::call_site::CallSite;
use crate::blocking::on_disk;
use crate::error::AgentError;
use crate::event::QuestionKind;
use crate::questions::{ALWAYS, Answer, Decision, ONCE, Question, QuestionContext, SESSION};
use crate::session::SessionSettings;

/// What is said of a call that nobody can be asked about.
const HOW_IT_IS_ASKED: &str = "`chat --wait SECONDS` asks about it";
/// Lines of a difference that a question shows, and bytes of it; one that is longer is not asked about.
const DIFF_LINES: usize = 400;
const DIFF_BYTES: usize = 64 << 10;

/// Calls that were denied in a turn, by tool and subject, with what was shown of them: none of them is asked about again (spec:
/// security §14). Another change of the same file is another call, up to [`MOST_DENIALS`]. Clones share them: the turn has
/// them with its subagents, and with the turns that go on with it.
#[derive(Debug, Clone, Default)]
pub(super) struct DeniedCalls(Arc<Mutex<DeniedSubjects>>);

/// Subjects of calls by their tools.
type DeniedSubjects = HashMap<(String, String), Arc<DeniedSubject>>;

/// Calls with one subject, as far as they were denied.
#[derive(Debug)]
struct DeniedSubject {
    /// One permit: of whoever is asking about them.
    asks: Semaphore,
    /// What was shown of each.
    shown: Mutex<Vec<Option<String>>>,
}

impl DeniedCalls {
    fn of(&self, tool: &str, subject: &str) -> Arc<DeniedSubject> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(DeniedSubject { asks: Semaphore::new(1), shown: Mutex::default() });
        Arc::clone(all.entry((tool.to_owned(), subject.to_owned())).or_insert_with(new))
    }
}

impl DeniedSubject {
    fn shown(&self) -> MutexGuard<'_, Vec<Option<String>>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call is asked about no more.
    fn has(&self, shown: &Option<String>) -> bool {
        let denied = self.shown();
        denied.len() >= MOST_DENIALS || denied.contains(shown)
    }
}

/// Denials of calls with one subject in a turn, at most: whoever said no so often is not asked about the next one.
const MOST_DENIALS: usize = 3;

/// A call that is about to run.
pub(super) struct ProposedCall<'a> {
    pub(super) id: CallId,
    pub(super) tool: &'a str,
    pub(super) checked: &'a Arc<CheckedCall>,
    /// The lowest trust its request sent.
    pub(super) trust: Trust,
    /// The texts from outside that it sent, as a person is told of them.
    pub(super) outside: &'a [String],
    pub(super) plan_mode: bool,
}

/// Whether a call runs.
pub(super) enum Permit {
    /// The call does not run: this is its result.
    Refused(ToolOutput),
    Allowed,
    /// A person saw what it would do, of a file tool the difference that it makes, and allowed it.
    Approved,
}

impl Turn<'_> {
    /// Whether a call may run.
    ///
    /// # Errors
    /// The question could not be asked.
    pub(super) async fn permit(
        &self,
        site: &CallSite<'_>,
        denied: &DeniedCalls,
        call: ProposedCall<'_>,
    ) -> Result<Permit, AgentError> {
        let ProposedCall { id, tool, checked, trust, outside, plan_mode } = call;
        let refused =
            |why: &str| Ok(Permit::Refused(ToolOutput::denied(format!("{tool} was not run: {why}"))));
        if let Some(why) = asked(checked, CheckedCall::plan_mode_refusal).await {
            return refused(&why);
        }
        let facts = SessionFacts {
            kind: checked.session(),
            attendance: if site.call.answer_within.is_some() {
                Attendance::Attended
            } else {
                Attendance::Unattended
            },
            sandbox: checked.sandbox(),
            tainted: trust == Trust::Outside,
            plan_mode,
            keeps_old_bytes: true,
        };
        let decide = |permissions: Vec<Permission>| {
            asked(checked, move |checked| checked.decide(&facts, &permissions))
        };
        let mut verdict = decide(Vec::new()).await;
        if verdict.decision != PolicyDecision::Allow {
            verdict = decide(self.permissions(checked.session()).await).await;
        }
        // It may name a part of a command.
        let because = self.runtime.masker.mask_entering(&verdict.to_string()).text.into_owned();
        match verdict.decision {
            PolicyDecision::Allow => return Ok(Permit::Allowed),
            PolicyDecision::Deny => {
                let attended = SessionFacts { attendance: Attendance::Attended, ..facts };
                let if_attended = asked(checked, move |checked| checked.decide(&attended, &[])).await;
                return match if_attended.decision {
                    PolicyDecision::Ask => refused(&format!("{because}. {HOW_IT_IS_ASKED}")),
                    _ => refused(&because),
                };
            }
            PolicyDecision::Ask => {}
        }
        // The same file by another name is the same call.
        let subject = asked(checked, CheckedCall::subject).await;
        let denied = denied.of(tool, &subject);
        // Where a subagent and its parent, or two of them, mean the same, the second hears what was answered to the first.
        let _asks = match denied.asks.try_acquire() {
            Ok(asks) => asks,
            Err(_) => {
                let _waits = site.call.waited.begin();
                let mut cancel = site.call.cancel.clone();
                let asks = tokio::select! {
                    biased;
                    () = cancel.cancelled() => return Err(AgentError::Stopped),
                    asks = denied.asks.acquire() => asks.map_err(|_| AgentError::Stopped)?,
                };
                let permissions = self.permissions(checked.session()).await;
                if decide(permissions).await.decision == PolicyDecision::Allow {
                    return Ok(Permit::Allowed);
                }
                asks
            }
        };
        let incomparable = |why: String| refused(&format!("a file it names could not be compared: {why}"));
        let rests_on = match asked(checked, CheckedCall::rests_on).await {
            Ok(files) => files,
            Err(why) => return incomparable(why),
        };
        let shown = match asked(checked, CheckedCall::preview).await {
            // It would do nothing.
            Some(Err(why)) => {
                let knows_outside = self.runtime.store.knows_outside_files(&Principal::Owner).await?;
                let output = checked.failed(why);
                return Ok(Permit::Refused(if knows_outside { output.from_outside() } else { output }));
            }
            Some(Ok(diff)) => Some(diff),
            None => None,
        };
        if denied.has(&shown) {
            return refused("it was denied before in this turn");
        }
        let lines: Vec<&str> = shown.iter().flat_map(|diff| diff.lines()).collect();
        let bytes = shown.as_ref().map_or(0, String::len);
        if lines.len() > DIFF_LINES || bytes > DIFF_BYTES {
            let size = format!("{} lines and {}", lines.len(), text::bytes::size(bytes as u64));
            return refused(&format!("its difference has {size}, more than a question shows"));
        }
        let mut lasting = asked(checked, move |checked| checked.lasting_answers(&facts)).await;
        lasting.always = lasting.always.filter(|_| self.runtime.rules.can_write());
        let asks = format!("{tool} asks to run: {because}. Allow it?");
        let (answers, remembers) = answers(&lasting);
        // Whoever is asked sees it whole, wherever that is.
        let about =
            outside.iter().map(String::as_str).chain(lines).chain(remembers.iter().map(String::as_str));
        let text = [asks.as_str()].into_iter().chain(about).collect::<Vec<_>>().join("\n");
        let place = Some((site.view, id.answer.as_position()));
        let asker = QuestionContext {
            call: site.call,
            tree: site.tree,
            guards: &[site.held.guard()],
            place,
            end: QuestionEnd::never(),
        };
        let decides = format!("{tool}, call {}:", id.number + 1);
        let kind = QuestionKind::Approval;
        let question = Question { kind, text, subject: decides, answers, form: None, whose: None };
        let Answer { decision, word, reason, .. } = self.runtime.ask(&asker, question).await?;
        if decision == Decision::Denied {
            denied.shown().push(shown);
            let why = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            return refused(&format!("{because}, and it was denied{why}"));
        }
        // What was shown is what is done.
        let again = (
            asked(checked, CheckedCall::preview).await.and_then(Result::ok),
            asked(checked, CheckedCall::subject).await,
            decide(Vec::new()).await,
        );
        // Whoever said yes hears that it was not run.
        let void = |why: &str| {
            self.tell_asked(format!("{tool} was not run: {why}"));
            refused(&format!("{why}: call it again"))
        };
        if again.2 != verdict || plan_mode != (site.config.plan || self.is_plan_mode_on().await) {
            return void("what it may do was changed while it was asked about");
        }
        if again != (shown, subject, verdict) {
            return void("what was shown of it became another text while it was asked about");
        }
        match asked(checked, CheckedCall::rests_on).await {
            Ok(files) if files == rests_on => {}
            Ok(_) => {
                return void("a file or program that its command names was changed while it was asked about");
            }
            Err(why) => return incomparable(why),
        }
        if let Some(word) = word {
            self.remember(checked.session(), &word, lasting).await;
        }
        Ok(Permit::Approved)
    }

    /// Whether plan mode is on in the session by now, whatever it was when the turn began. Settings that cannot be read say
    /// so.
    pub(super) async fn is_plan_mode_on(&self) -> bool {
        self.settings().await.map_or(true, |(_, settings)| settings.plan)
    }

    /// What was allowed before in this session, and for good since the configuration was read. What cannot be read
    /// allows nothing.
    async fn permissions(&self, session: SessionType) -> Vec<Permission> {
        let rules = self.runtime.rules.clone();
        let mut permissions = on_disk(move || rules.permissions(session)).await;
        match self.settings().await {
            Ok((_, settings)) => permissions.extend(settings.allowed),
            Err(error) => tracing::warn!(%error, "what this session allows is not known"),
        }
        permissions
    }

    /// Keeps what an answer allows beyond the one call. What cannot be kept is said, and the call runs all the same.
    async fn remember(&self, session: SessionType, word: &str, lasting: LastingAnswers) {
        let told = match (word, lasting) {
            (SESSION, LastingAnswers { session: Some(permission), .. }) => {
                let keep = |settings: &mut SessionSettings| {
                    if !settings.allowed.contains(&permission) {
                        settings.allowed.push(permission.clone());
                    }
                };
                let failed = |error| format!("it is not remembered for this session: {error}");
                self.change_settings(keep).await.err().map(failed)
            }
            (ALWAYS, LastingAnswers { session: Some(permission), always: Some(rule) }) => {
                let written = self.runtime.rules.write(session, permission, rule).await;
                Some(written.unwrap_or_else(|why| format!("the rule is not written: {why}")))
            }
            _ => None,
        };
        told.into_iter().for_each(|told| self.tell_asked(told));
    }
}

/// Words that a question takes, and a line of each that says what is remembered of it.
fn answers(lasting: &LastingAnswers) -> (Vec<String>, Vec<String>) {
    let session = lasting.session.as_ref().map(|given| {
        let reaches = |pattern: &Pattern| matches!(pattern, Pattern::Effect { effect: Effect::Net, .. });
        let until = if given.patterns().iter().any(reaches) {
            ", until the conversation holds text from outside (what it brings is)"
        } else {
            ""
        };
        (SESSION, format!("allows {given}{until}"))
    });
    let always = lasting.always.as_ref().map(|rule| (ALWAYS, format!("writes the rule: {}", rule.in_full())));
    let lasting: Vec<(&str, String)> = session.into_iter().chain(always).collect();
    let words = [ONCE].into_iter().chain(lasting.iter().map(|(word, _)| *word)).map(str::to_owned);
    (
        words.collect(),
        lasting.iter().map(|(word, does)| one_line(&format!("{word}: {does}")).into_owned()).collect(),
    )
}

/// What a call says of itself, on a thread that may wait for the disk.
async fn asked<T: Send + 'static>(
    checked: &Arc<CheckedCall>,
    ask: impl FnOnce(&CheckedCall) -> T + Send + 'static,
) -> T {
    let checked = Arc::clone(checked);
    on_disk(move || ask(&checked)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_for_the_session_says_until_when_where_it_reaches_a_network() {
        let told = |patterns: serde_json::Value| {
            let session = Some(serde_json::from_value(patterns).unwrap());
            answers(&LastingAnswers { session, always: None })
        };
        let (words, lines) = told(serde_json::json!(["write path=a.md"]));
        assert_eq!(
            (words, lines),
            (vec!["once".into(), "session".into()], vec!["session: allows write path=a.md".into()])
        );
        let (_, lines) = told(serde_json::json!(["exec curl", "effect:net host=example.org"]));
        assert!(
            lines[0].ends_with(", until the conversation holds text from outside (what it brings is)"),
            "{lines:?}"
        );
    }
}
