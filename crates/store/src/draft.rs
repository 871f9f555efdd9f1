//! Typing: splices of a draft, compared by revision (spec: loom §1 *Draft*).

use loom::plan::DraftChange;
use loom::{Draft, NodeId, Slot, Splice, Timeline, TreeId, ViewName};

use crate::error::{StaleRead, StoreError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftName {
    pub tree: TreeId,
    pub view: ViewName,
    pub slot: Slot,
}

/// A change of a draft's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftEdit {
    /// The whole text as it should be; the splice is found.
    Set {
        /// The version it edits: needed when a pending edit begins.
        base: Option<NodeId>,
        text: String,
    },
    Splice {
        at: u64,
        /// What stands there and goes.
        deleted: String,
        inserted: String,
    },
}

/// Bytes a draft holds at most (spec: scale §4 *draft paste*).
pub(crate) const MAX_DRAFT_BYTES: usize = 64 * 1024 * 1024;

/// The draft after an edit, or none when the text is the same already. `base` is the version a pending edit
/// starts from and its text.
pub(crate) fn edited(
    name: &DraftName,
    now: Option<Draft>,
    expected: Option<u64>,
    base: Option<(NodeId, String)>,
    edit: DraftEdit,
    timeline: Timeline,
) -> Result<Option<Draft>, StoreError> {
    let revision = now.as_ref().map(|draft| draft.revision);
    if revision != expected {
        let changed = StaleRead::Draft { view: name.view.clone(), slot: name.slot, revision };
        return Err(StoreError::Conflict(vec![changed]));
    }
    let fresh = now.is_none();
    let mut draft = match (now, base, name.slot) {
        (Some(draft), _, _) => draft,
        (None, Some((node, text)), Slot::Edit(_)) => Draft::new(Some(node), text),
        (None, _, Slot::Buffer) => Draft::new(None, ""),
        (None, None, Slot::Edit(_)) => {
            return Err(StoreError::Malformed("a pending edit begins at a version".to_owned()));
        }
    };
    if fresh {
        draft.revision = first_revision(timeline);
    }
    let (depth, tick) = (timeline.depth, timeline.tick + 1);
    let splice = match edit {
        DraftEdit::Set { text, .. } => draft.splice_to(&text, depth, tick),
        DraftEdit::Splice { at, deleted, inserted } => Some(Splice { at, deleted, inserted, depth, tick }),
    };
    match splice {
        Some(splice) => draft.splice(splice)?,
        None if !fresh => return Ok(None),
        None => {}
    }
    let len = draft.text.len();
    if len > MAX_DRAFT_BYTES {
        let limit = MAX_DRAFT_BYTES as u64;
        return Err(loom::Refusal::TooLarge { len: len as u64, limit }.into());
    }
    Ok(Some(draft))
}

/// The timeline after a keystroke that left a draft, or removed it: nothing can be redone, and it counts a tick.
pub(crate) fn after_keystroke(timeline: Timeline, draft: Option<&Draft>) -> Timeline {
    let revision = draft.map_or(0, |draft| draft.revision);
    Timeline { redo: None, tick: revision.max(timeline.tick + 1), ..timeline }
}

/// The revision that a draft begins with: no draft that was at its place had it or a later one, so that nobody's
/// old revision fits. The ticks of a view never fall behind the revisions of its drafts, and whatever removes a
/// draft counts one.
const fn first_revision(timeline: Timeline) -> u64 {
    timeline.tick
}

/// A draft as a plan leaves it, with its revision and the timeline that goes with it.
pub(crate) fn planned(change: &DraftChange, timeline: Timeline) -> (Option<Draft>, Timeline) {
    let mut new = change.new.clone();
    if let (Some(draft), None) = (&mut new, change.expected) {
        draft.revision = draft.revision.max(first_revision(timeline));
    }
    let reached = match &new {
        Some(draft) => draft.revision,
        None => change.expected.map_or(0, |last| last + 1),
    };
    (new, Timeline { tick: timeline.tick.max(reached), ..timeline })
}
