//! A request that was made before, put together once more for another model (spec: context §1 *replay*).
//!
//! Its stored bytes are the first model's: their form is that of its dialect, and sealed material in them is its
//! own. Another model gets a request of the same sources instead, read from the tree: the same stretch of the path
//! from the same start, the same pinned texts, what stood above the cache boundary as it was frozen, what was shown
//! with the nodes then, the same tool results cut. Nothing new is shown in it. Where the tree shows something else
//! there by now, the request cannot be put together as it was, and is not.

use std::collections::BTreeSet;

use loom::path::{ViewOverrides, is_ancestor, position};
use loom::reader::Injection;
use loom::{NodeId, PositionId, TextOffset, TreeReader, ViewName};

use crate::estimate::Estimator;
use crate::manifest::Manifest;
use crate::piece::{Assembled, ContextError};
use crate::render_history::Spoken;
use crate::segment::{Segment, Source};
use crate::trim::Strategy;

/// What is held to of a request that is repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayConstraints {
    pub(crate) start: Option<TextOffset>,
    strategy: Strategy,
    /// What was shown in it: node and place among those of the node.
    shown: BTreeSet<(NodeId, u32)>,
    /// The nodes that were pinned or named.
    pinned: BTreeSet<NodeId>,
}

impl ReplayConstraints {
    /// What is held to of an earlier request, which continued the path that ends at `at`.
    ///
    /// # Errors
    /// [`ContextError::Changed`] when the tree shows something else on its runs of the path now.
    pub fn of(
        rows: &dyn TreeReader,
        view: &ViewName,
        at: PositionId,
        manifest: &Manifest,
    ) -> Result<Self, ContextError> {
        let path = ViewOverrides::read(rows, view, at)?;
        for run in &manifest.runs {
            let (from, to) = (position(rows, run.from)?, position(rows, run.to)?);
            let on_path = to.depth <= path.tip.depth && is_ancestor(rows, to.id, at)?;
            if !on_path || path.digest(&from, &to) != run.digest {
                return Err(ContextError::Changed);
            }
        }
        let first = match manifest.runs.as_slice() {
            // The first turn of all stands before a gap: the window is what is behind it.
            [_, last] => Some(last),
            runs => runs.first(),
        };
        Ok(Self {
            start: first.map(|run| TextOffset { position: run.from, at: run.cut }),
            strategy: if manifest.runs.len() > 1 { Strategy::TruncateMiddle } else { Strategy::Rolling },
            shown: shown(&manifest.segments),
            pinned: pinned(&manifest.segments),
        })
    }

    pub const fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Leaves out of nodes what was shown with them only later.
    pub(crate) fn unshow(&self, spoken: &mut [Spoken], estimator: &Estimator) {
        for said in spoken {
            let was_there = |shown: &Injection| self.shown.contains(&(shown.node, shown.ordinal));
            said.retain_injections(was_there, estimator);
        }
    }

    /// The request that was put together; nothing of it is to change the tree.
    ///
    /// # Errors
    /// [`ContextError::Changed`] when other texts are pinned now.
    pub fn checked(&self, assembled: Assembled) -> Result<Assembled, ContextError> {
        let pieces = assembled.pieces.iter().filter_map(|piece| node(&piece.source));
        if pieces.collect::<BTreeSet<_>>() != self.pinned {
            return Err(ContextError::Changed);
        }
        Ok(Assembled { new_start: None, injected: Vec::new(), ..assembled })
    }
}

fn node(source: &Source) -> Option<NodeId> {
    match source {
        Source::Node { node, .. } => Some(*node),
        _ => None,
    }
}

fn pinned(segments: &[Segment]) -> BTreeSet<NodeId> {
    segments.iter().filter_map(|segment| node(&segment.source)).collect()
}

fn shown(segments: &[Segment]) -> BTreeSet<(NodeId, u32)> {
    let shown = segments.iter().filter_map(|segment| match segment.source {
        Source::Injection { node, ordinal, .. } => Some((node, ordinal)),
        _ => None,
    });
    shown.collect()
}
