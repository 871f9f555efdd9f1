//! Limits of one turn (spec: agent §1 *Limits*).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tools::WaitedTime;

use super::approval::DeniedCalls;
use super::calls::LastCall;
use crate::error::AgentError;
use crate::event::QuestionKind;
use crate::questions::{Decision, Question, QuestionContext};
use crate::runtime::Runtime;
use crate::session::inbox::Pending;
use crate::turn_bounds::TurnBounds;

/// Characters of arguments in a question.
const SHOWN: usize = 200;

/// What a turn has used and was denied, for one that goes on with it.
#[derive(Debug, Clone)]
pub(in crate::session) struct UsedByTurn {
    model_calls: u32,
    tokens: UsedTokens,
    allowed: TurnBounds,
    denied: DeniedCalls,
}

/// Tokens that a turn used, with its subagents. Clones share the number.
#[derive(Debug, Clone, Default)]
struct UsedTokens(Arc<AtomicU64>);

impl UsedTokens {
    fn number(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a turn did so far.
#[derive(Debug)]
pub(super) struct TurnLimits {
    bounds: TurnBounds,
    /// What it may do by now; of calls with the same arguments each begins anew instead.
    allowed: TurnBounds,
    began: Instant,
    /// How long people were waited for.
    pub(super) waited: WaitedTime,
    /// How long somebody may take to answer a question: the longest of all whose text it answers; none where nobody answers.
    pub(super) answer_within: Option<Duration>,
    model_calls: u32,
    tokens: UsedTokens,
    /// Calls by tool and arguments, since a file changed.
    same: HashMap<(String, String), u32>,
    is_met: bool,
    denied: DeniedCalls,
    pub(super) last_call: Option<LastCall>,
    /// How often hooks went on with it.
    pub(super) continued: u32,
}

impl TurnLimits {
    pub(super) fn new(bounds: TurnBounds) -> Self {
        let (tokens, denied) = (UsedTokens::default(), DeniedCalls::default());
        Self::after(bounds, UsedByTurn { model_calls: 0, tokens, allowed: bounds, denied })
    }

    /// Limits of a turn that goes on with one before it.
    pub(super) fn after(
        bounds: TurnBounds,
        UsedByTurn { model_calls, tokens, allowed, denied }: UsedByTurn,
    ) -> Self {
        Self {
            bounds,
            allowed,
            began: Instant::now(),
            waited: WaitedTime::default(),
            answer_within: None,
            model_calls,
            tokens,
            same: HashMap::new(),
            is_met: false,
            denied,
            last_call: None,
            continued: 0,
        }
    }

    /// The turn answers these as well, whose senders may be asked from now on.
    pub(super) fn hear(&mut self, said: &[Pending]) {
        let longest = said.iter().filter_map(|pending| pending.answer_within).max();
        self.answer_within = self.answer_within.max(longest);
    }

    pub(super) const fn count_model_call(&mut self) {
        self.model_calls += 1;
    }

    pub(super) fn count_tokens(&self, tokens: u64) {
        self.tokens.0.fetch_add(tokens, Ordering::Relaxed);
    }

    pub(super) fn used(&self) -> UsedByTurn {
        let Self { model_calls, allowed, .. } = *self;
        UsedByTurn { model_calls, tokens: self.tokens.clone(), allowed, denied: self.denied.clone() }
    }

    /// What a turn of a subagent begins with: its own number of model calls, and what is left of everything else.
    pub(super) fn of_subagent(&self, model_calls: u32) -> UsedByTurn {
        let allowed = TurnBounds { model_calls, tokens: self.allowed.tokens, ..self.bounds };
        UsedByTurn { model_calls: 0, allowed, ..self.used() }
    }

    /// The turn ends, also with what was said meanwhile, where a limit is met elsewhere.
    pub(super) const fn end_by(&mut self, error: &AgentError) {
        self.is_met |= matches!(error, AgentError::Limit(_));
    }

    pub(super) const fn denied(&self) -> &DeniedCalls {
        &self.denied
    }

    /// Counts a call of a tool. The order of keys makes no other call.
    pub(super) fn count(&mut self, tool: &str, arguments: &serde_json::Value) {
        let canonical =
            loom::content::canonical(arguments).ok().and_then(|json| String::from_utf8(json).ok());
        let arguments = canonical.unwrap_or_else(|| arguments.to_string());
        *self.same.entry((tool.to_owned(), arguments)).or_default() += 1;
    }

    /// A file changed: calls that were made before may say something else now.
    pub(super) fn begin_same_calls_anew(&mut self) {
        self.same.clear();
    }

    /// Whether the turn has to end at its next answer.
    pub(super) fn are_met(&self) -> bool {
        self.is_met || self.met(self.time()).is_some()
    }

    /// How long it has taken, without the time in which people were waited for.
    fn time(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.waited.total())
    }

    /// Whether no further call of an answer may begin before somebody says so: an answer can hold any number of them.
    pub(super) fn end_calls(&self) -> bool {
        self.time() >= self.allowed.time || self.repeated().is_some()
    }

    /// A call that was made with the same arguments too often, and how often.
    fn repeated(&self) -> Option<(&(String, String), u32)> {
        let most = self.bounds.same_calls;
        self.same.iter().find(|(_, number)| **number >= most).map(|(call, number)| (call, *number))
    }

    /// What of the whole turn, which has taken so long, has come to its limit, with the question whether it may go on.
    fn met(&self, time: Duration) -> Option<(String, String)> {
        let (bounds, allowed) = (self.bounds, self.allowed);
        if self.model_calls >= allowed.model_calls {
            let what = format!("the model was asked {} times in this turn", self.model_calls);
            return Some((what, format!("{} more?", bounds.model_calls)));
        }
        if time >= allowed.time {
            return Some((
                format!("the turn takes {}", spoken(time)),
                format!("{} more?", spoken(bounds.time)),
            ));
        }
        if self.tokens.number() >= allowed.tokens {
            let grouped = text::number::grouped;
            let what =
                format!("{} tokens were sent and received in this turn", grouped(self.tokens.number()));
            return Some((what, format!("{} more?", grouped(bounds.tokens))));
        }
        None
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
        if let Some(question) = self.met(self.time()) {
            self.ask(runtime, asker, question).await?;
            let (bounds, time) = (self.bounds, self.time());
            let allowed = &mut self.allowed;
            allowed.model_calls = self.model_calls.saturating_add(bounds.model_calls);
            allowed.time = time.saturating_add(bounds.time);
            allowed.tokens = self.tokens.number().saturating_add(bounds.tokens);
        }
        if let Some(((tool, arguments), number)) =
            self.repeated().map(|(call, number)| (call.clone(), number))
        {
            let shown: String = text::terminal::one_line(&arguments).chars().take(SHOWN).collect();
            let what = format!("{tool} was called {number} times with {shown}, and no file changed between");
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

/// As a person says it: whole seconds of less than two minutes, else minutes, begun ones included.
fn spoken(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} minutes", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(limits: &TurnLimits, minutes: u64) -> String {
        limits
            .met(Duration::from_secs(60 * minutes))
            .map_or_else(String::new, |(what, question)| format!("{what}: {question}"))
    }

    #[test]
    fn a_turn_comes_to_each_of_its_limits() {
        let bounds = TurnBounds { model_calls: 2, tokens: 3_000, ..TurnBounds::default() };
        let mut limits = TurnLimits::new(bounds);
        limits.count_model_call();
        limits.count_tokens(2_999);
        assert!(!limits.are_met(), "{limits:?}");
        limits.count_tokens(1);
        assert_eq!(met(&limits, 0), "3,000 tokens were sent and received in this turn: 3,000 more?");
        limits.count_model_call();
        assert_eq!(met(&limits, 0), "the model was asked 2 times in this turn: 2 more?");
        assert!(limits.are_met());
    }

    #[test]
    fn time_in_which_people_are_waited_for_does_not_count() {
        let mut limits = TurnLimits::new(TurnBounds { time: Duration::ZERO, ..TurnBounds::default() });
        assert_eq!(met(&limits, 0), "the turn takes 0 s: 0 s more?");
        limits.bounds.time = Duration::from_secs(90 * 60);
        limits.allowed = limits.bounds;
        assert_eq!(met(&limits, 89), "");
        assert_eq!(met(&limits, 90), "the turn takes 90 minutes: 90 minutes more?");
        let waits = limits.waited.begin();
        let before = limits.time();
        while limits.began.elapsed() < before + Duration::from_millis(2) {}
        drop(waits);
        assert!(limits.time() < limits.began.elapsed(), "{limits:?}");
    }
}
