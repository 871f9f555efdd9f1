//! What remembers the nodes that leave the window (spec: context §3 *Leaving the window*).

use loom::Seq;

use crate::manifest::PathRun;

/// What covers a run of the path that is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoveredBy {
    /// Observations, up to an entry of their ledger.
    Observed(Seq),
    /// The plain fallback, up to an entry of the ledger.
    Fallback(Seq),
    Nothing,
}

impl CoveredBy {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Observed(_) => "observed",
            Self::Fallback(_) => "fallback",
            Self::Nothing => "nothing",
        }
    }

    /// Why a run is not sent, for the manifest.
    pub fn reason(self) -> String {
        match self {
            Self::Observed(seq) => format!("covered by observations up to {seq}"),
            Self::Fallback(seq) => format!("covered by the fallback up to {seq}"),
            Self::Nothing => "not covered".to_owned(),
        }
    }
}

/// Answers what remembers the nodes of a run. It is asked while a request is put together and must answer at once,
/// from what is durable: whoever has to wait for an observation waits before the request is put together.
pub trait Coverage {
    /// What covers a run that leaves, or has left, the window.
    fn covered(&self, run: &PathRun) -> CoveredBy;
}

/// Nothing is remembered: nodes leave, and the manifest says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NothingRemembered;

impl Coverage for NothingRemembered {
    fn covered(&self, _: &PathRun) -> CoveredBy {
        CoveredBy::Nothing
    }
}
