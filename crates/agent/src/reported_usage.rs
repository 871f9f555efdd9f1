//! Token counts that a server reported, as far as they can be those of its request and answer.

use model::{ParsedResponse, TokenUsage, UsageBounds};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReportedUsage {
    /// Counts of the whole answer.
    pub(crate) whole: Option<TokenUsage>,
    /// Counts of which the input holds: they came while the answer went on, or count too little of its output.
    pub(crate) interim: Option<TokenUsage>,
    /// Counts as they came, if they cannot all be true.
    pub(crate) implausible: Option<TokenUsage>,
}

impl ReportedUsage {
    /// Counts of a response, believed within `bounds`; of a script, which has none, all of them.
    pub(crate) fn of(parsed: &ParsedResponse, bounds: Option<&UsageBounds>) -> Self {
        let (whole, interim) = (parsed.usage, parsed.interim_usage);
        let Some(bounds) = bounds else { return Self { whole, interim, implausible: None } };
        let holds = |usage: &TokenUsage| bounds.contain(usage);
        if whole.as_ref().is_some_and(holds) {
            return Self { whole, ..Self::default() };
        }
        let came = whole.or(interim);
        let interim = came.filter(|usage| bounds.contain_interim(usage));
        let is_implausible = whole.is_some() || interim.is_none();
        Self { whole: None, interim, implausible: came.filter(|_| is_implausible) }
    }
}
