//! Calls of tools that were started (spec: agent §1): what the store knows of them beside their results, which are nodes.

use std::fmt;

use loom::{NodeId, TreeId};

use crate::fence::{Claim, Guard};

/// A call of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    /// The first node of the position it stands at.
    pub answer: NodeId,
    /// Which of its calls, from 0.
    pub number: u32,
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.answer, self.number)
    }
}

/// A call about to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCall {
    pub id: CallId,
    pub claim: Claim,
    /// Leases that must still be held.
    pub guards: Vec<Guard>,
}

/// The end of a call, stored with the node of its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEnd {
    pub id: CallId,
    /// Who reports it; refused unless it still is theirs.
    pub claim: Claim,
}

/// A call that runs, or was cut off and waits to be recovered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningCall {
    pub tree: TreeId,
    pub id: CallId,
    pub claim: Claim,
}
