//! Pieces: what an assembled request is made of, before a dialect gives it bytes.

use loom::reader::Injection;
use loom::{NodeId, OriginRole, RowError, Run, TextOffset, Trust};
use model::{PartId, Prompt};

use crate::manifest::{ContinuationForm, PathRun};
use crate::prefix::Prefix;
use crate::segment::{Kind, SegmentOutcome, Source, ToolShare};
use crate::window_beginning::WindowBeginning;

/// One piece of a request: a segment without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPiece {
    /// The parts of the prompt it is made of, first to last; they stand next to one another.
    pub parts: Vec<PartId>,
    pub kind: Kind,
    pub source: Source,
    pub reason: String,
    pub chars: u64,
    /// Tokens, estimated.
    pub tokens: u64,
    /// Whether it stands above the cache boundary.
    pub stable: bool,
    /// How far it is believed.
    pub trust: Option<Trust>,
    pub decision: SegmentOutcome,
    /// What of it is calls of tools.
    pub tools: Vec<ToolShare>,
}

impl RequestPiece {
    /// A piece that is sent. Its size is counted where its parts are texts ([`crate::of_prompt`]).
    pub fn sent(parts: Vec<PartId>, kind: Kind, source: Source, reason: &str, trust: Trust) -> Self {
        Self {
            parts,
            kind,
            source,
            reason: reason.to_owned(),
            chars: 0,
            tokens: 0,
            stable: false,
            trust: Some(trust),
            decision: SegmentOutcome::Sent,
            tools: Vec::new(),
        }
    }

    /// Something that is not sent.
    pub(crate) fn left_out(kind: Kind, source: Source, why: &str) -> Self {
        Self {
            parts: Vec::new(),
            kind,
            source,
            reason: "considered".to_owned(),
            chars: 0,
            tokens: 0,
            stable: false,
            trust: None,
            decision: SegmentOutcome::LeftOut { why: why.to_owned() },
            tools: Vec::new(),
        }
    }
}

/// Which piece each part belongs to. Parts are numbered as they are made.
pub(crate) struct Owners(Vec<Option<usize>>);

impl Owners {
    pub(crate) fn of(pieces: &[RequestPiece]) -> Self {
        let parts = pieces.iter().flat_map(|piece| &piece.parts);
        let mut owners = vec![None; parts.map(|part| part.0 as usize + 1).max().unwrap_or(0)];
        for (index, piece) in pieces.iter().enumerate() {
            piece.parts.iter().for_each(|part| owners[part.0 as usize] = Some(index));
        }
        Self(owners)
    }

    /// The place of the piece a part belongs to.
    pub(crate) fn piece(&self, part: PartId) -> Option<usize> {
        self.0.get(part.0 as usize).copied().flatten()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Assembled {
    pub prompt: Prompt,
    /// Pieces of the prompt, in order, and those that were left out.
    pub pieces: Vec<RequestPiece>,
    /// The runs of the path in the window, for the manifest.
    pub runs: Vec<PathRun>,
    /// The runs of the path that are not sent.
    pub left: Vec<PathRun>,
    /// What stands above the cache boundary, to be frozen; none in a document.
    pub prefix: Option<Prefix>,
    /// What is shown for the first time, to be stored with its node.
    pub injected: Vec<Injection>,
    /// Lines for the owner: what gave way, what has changed.
    pub notices: Vec<String>,
    /// The way a document is continued; none in a dialogue.
    pub way: Option<ContinuationForm>,
    /// White space held back from the end.
    pub held: String,
    /// Where the view's window now starts, if it had to move.
    pub new_start: Option<TextOffset>,
    /// Where a document begins whose beginning is not sent. For the owner's eyes: a manifest keeps no text.
    pub begins: Option<WindowBeginning>,
    /// Extra inputs that were sent.
    pub inputs: Vec<(OriginRole, NodeId)>,
    /// Tokens of the whole request, estimated.
    pub tokens: u64,
    /// The lowest trust that is sent.
    pub trust: Trust,
    /// A node of trust `outside` that is sent, if there is one.
    pub tainted_by: Option<NodeId>,
}

impl Assembled {
    /// The runs as the generation row keeps them.
    pub fn loom_runs(&self) -> Vec<Run> {
        self.runs.iter().map(|run| Run { from: run.from, to: run.to, digest: run.digest }).collect()
    }
}

/// Why a request cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// The rows could not be read.
    #[error(transparent)]
    Rows(#[from] RowError),
    /// What must be sent does not fit.
    #[error("{what} needs about {needed} tokens and may have {budget}")]
    TooLong {
        what: String,
        /// Tokens it needs, estimated.
        needed: u64,
        budget: u64,
    },
    /// There is nothing to continue.
    #[error("there is no text to continue yet")]
    Empty,
    /// What an earlier request held is not what stands there now.
    #[error("what that request held has been changed since, so that it cannot be put together as it was")]
    Changed,
    /// The bytes of the request are not covered by its segments; nothing was sent.
    #[error("bytes {from} to {to} of the request have no segment")]
    Uncovered {
        from: u64,
        /// The byte behind the last.
        to: u64,
    },
}

impl ContextError {
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Rows(_) => "store",
            Self::TooLong { .. } => "context_too_long",
            Self::Empty => "empty_document",
            Self::Changed => "changed",
            Self::Uncovered { .. } => "uncovered_bytes",
        }
    }
    /// What to do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Rows(_) => "run `drawloom store check`",
            Self::TooLong { .. } => "shorten it, or use a model with a larger window",
            Self::Empty => "write something first",
            Self::Changed => "`drawloom tree regenerate` asks with what stands there now",
            Self::Uncovered { .. } => "this is a defect, please report it",
        }
    }
}
