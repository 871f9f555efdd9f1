//! Session ledger: what a session notes while it goes on, for the one after it (spec: continuity §3). Entries are appended
//! and never changed; one that corrects another strikes it.

use std::fmt;

use loom::{Millis, NodeId, TreeId, Trust};
use serde::{Deserialize, Serialize};

use crate::fence::Guard;
use crate::session::SessionId;

/// Characters of an entry at most.
pub const OUTCOME_CHARS: usize = 300;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    Decision,
    Outcome,
    Correction,
    Question,
    /// A next step.
    Step,
}

impl OutcomeKind {
    pub const ALL: [Self; 5] = [Self::Decision, Self::Outcome, Self::Correction, Self::Question, Self::Step];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Outcome => "outcome",
            Self::Correction => "correction",
            Self::Question => "question",
            Self::Step => "step",
        }
    }
}

/// Number of an entry, in the order of commits of the store. None is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OutcomeId(pub i64);

impl fmt::Display for OutcomeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An entry about to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOutcome {
    pub session: SessionId,
    /// A tree of the session.
    pub tree: TreeId,
    /// Node it was said in; none where there is none.
    pub node: Option<NodeId>,
    pub kind: OutcomeKind,
    pub trust: Trust,
    /// At most [`OUTCOME_CHARS`], secrets masked.
    pub text: String,
    /// Entry of the same session that it strikes.
    pub corrects: Option<OutcomeId>,
    /// Leases that must still be held.
    pub guards: Vec<Guard>,
}

/// An entry of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub id: OutcomeId,
    pub tree: TreeId,
    pub node: Option<NodeId>,
    pub kind: OutcomeKind,
    pub trust: Trust,
    pub text: String,
    pub corrects: Option<OutcomeId>,
    /// When it was appended, by the engine's clock.
    pub at: Millis,
    /// Whether an entry corrects it.
    pub is_struck: bool,
}

/// Why an entry is not appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OutcomeError {
    #[error("a note needs a text")]
    Empty,
    #[error("a note has at most {OUTCOME_CHARS} characters, and this one has {chars}")]
    TooLong { chars: usize },
    #[error("nothing that this session noted has the number {0}")]
    Unknown(OutcomeId),
    /// What is written in sight of text from outside strikes nothing that is believed further (spec: security §3).
    #[error("text from outside is in view: what is noted now cannot correct {0}, which is believed further")]
    Outranked(OutcomeId),
}

impl OutcomeError {
    /// What to do about it.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Empty => "say in a sentence what is to be known later",
            Self::TooLong { .. } => "say it shorter, or in two notes",
            Self::Unknown(_) => "/note lists what is noted here, with its numbers",
            Self::Outranked(_) => "note it without correcting; the owner corrects with /note",
        }
    }
}
