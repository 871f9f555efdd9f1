//! What one step of a forgetting removes.

use loom::{CellKey, Digest, GenerationId, NodeId, Seq, Slot, TreeId, ViewName};

use crate::forget::{ForgottenPlace, QuotedAs};
use crate::job::JobId;
use crate::outcome::OutcomeId;
use crate::session::SessionId;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::rows::forget) enum Removal {
    /// Stopped before anything else goes, so that nothing new comes of it.
    Running(GenerationId),
    Node {
        tree: TreeId,
        node: NodeId,
        key: i64,
        bytes: u64,
        quotes: Option<QuotedAs>,
    },
    Draft {
        tree: TreeId,
        view: ViewName,
        slot: Slot,
    },
    Label {
        tree: TreeId,
        key: CellKey,
    },
    Operation {
        tree: TreeId,
        seq: Seq,
    },
    Injection {
        tree: TreeId,
        node: NodeId,
        number: i64,
        ordinal: i64,
    },
    Response(GenerationId),
    Manifest(Digest),
    Body(Digest),
    /// In no place of what is searched for.
    UncitedBody(Digest),
    Job(JobId),
    Question([u8; 16]),
    Session(SessionId),
    Outcome(SessionId, OutcomeId),
}

impl Removal {
    pub(super) fn place(&self) -> ForgottenPlace {
        match self {
            Self::Running(generation) => ForgottenPlace::Running { generation: *generation },
            Self::Node { tree, node, quotes: None, .. } => ForgottenPlace::Node { tree: *tree, node: *node },
            Self::Node { tree, node, quotes: Some(how), .. } => {
                ForgottenPlace::Quote { tree: *tree, node: *node, how: *how }
            }
            Self::Draft { tree, view, slot } => {
                ForgottenPlace::Draft { tree: *tree, view: view.clone(), slot: *slot }
            }
            Self::Label { tree, .. } => ForgottenPlace::Label { tree: *tree },
            Self::Operation { tree, seq } => ForgottenPlace::Operation { tree: *tree, seq: *seq },
            Self::Injection { tree, node, .. } => ForgottenPlace::Shown { tree: *tree, node: *node },
            Self::Response(generation) => ForgottenPlace::Response { generation: *generation },
            Self::Manifest(digest) => ForgottenPlace::Manifest { digest: *digest },
            Self::Body(digest) | Self::UncitedBody(digest) => ForgottenPlace::Body { digest: *digest },
            Self::Job(job) => ForgottenPlace::Job { job: *job },
            Self::Question(question) => ForgottenPlace::Question { question: *question },
            Self::Session(session) => ForgottenPlace::Session { session: session.clone() },
            Self::Outcome(session, outcome) => {
                ForgottenPlace::Outcome { session: session.clone(), outcome: *outcome }
            }
        }
    }

    /// Bytes of text that are taken out of the search index.
    pub(super) const fn indexed(&self) -> u64 {
        match self {
            Self::Node { bytes, .. } => *bytes,
            _ => 0,
        }
    }
}
