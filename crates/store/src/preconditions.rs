//! What a plan was made from, so that two plans that are each right do not become wrong together.
//!
//! A plan is made outside of the transaction that applies it. The cells it sets are compared, but it may rest on
//! what it does not set: that another version is visible, that nothing above a position is hidden. So a plan goes
//! to the store with the answers it rests on; the store asks again within the transaction, and refuses the plan if
//! one is another by now.

use std::collections::BTreeSet;
use std::sync::Arc;

use loom::read_set::{Needs, ReadKey};
use loom::{Plan, ReadSet, RowError, TreeReader};

use crate::error::StaleRead;
use crate::event::Cursor;

/// Questions a plan asked, and the answers it was given.
#[derive(Debug, Clone, Default)]
pub struct Preconditions {
    asked: BTreeSet<ReadKey>,
    answers: Arc<ReadSet>,
    /// The newest event when it was made, if it rests on rows that change only where something is forgotten.
    pub(crate) read_at: Option<Cursor>,
}

impl Preconditions {
    /// The answers that can change. Cells that the plan sets are compared with what it expects in any case.
    pub(crate) fn new(mut asked: BTreeSet<ReadKey>, answers: ReadSet, plan: &Plan) -> Self {
        asked.retain(can_change);
        for change in plan.op.iter().flat_map(|op| &op.cells) {
            asked.remove(&ReadKey::Cell(change.key.clone()));
        }
        Self { asked, answers: Arc::new(answers), read_at: None }
    }

    /// What is answered differently now.
    pub(crate) fn changed(&self, rows: &dyn TreeReader) -> Result<Vec<StaleRead>, RowError> {
        let mut now = ReadSet::default();
        let needs = Needs(self.asked.clone());
        now.load(&needs, rows)?;
        let changed = needs.0.into_iter().filter(|key| !same(key, &self.answers, &now));
        Ok(changed.map(StaleRead::of).collect())
    }
}

/// Whether a question is for a row that changes only where it is forgotten.
pub(crate) const fn is_row(key: &ReadKey) -> bool {
    matches!(key, ReadKey::Node(_) | ReadKey::Operation(_))
}

/// Whether an answer can change and matters to what was planned. Drafts meet by their revisions, two versions with one
/// content do no harm, and rows are told by [`Preconditions::read_at`].
const fn can_change(key: &ReadKey) -> bool {
    match key {
        ReadKey::Cell(_)
        | ReadKey::Views
        | ReadKey::Selections(_)
        | ReadKey::NewestVisible(_)
        | ReadKey::OtherVisible(..)
        | ReadKey::Hidden { .. }
        | ReadKey::NewestLeaf(_)
        | ReadKey::Timeline(_) => true,
        ReadKey::Tree
        | ReadKey::Node(_)
        | ReadKey::Operation(_)
        | ReadKey::Position(_)
        | ReadKey::VersionWithContent(..)
        | ReadKey::ChildToward(..)
        | ReadKey::CommonAncestor(..)
        // Whether there is one is asked as well, and only a refusal names it.
        | ReadKey::PrunedAbove(_)
        | ReadKey::Drafts(_) => false,
    }
}

fn same(key: &ReadKey, before: &ReadSet, now: &ReadSet) -> bool {
    match key {
        ReadKey::Cell(cell) => {
            before.cell(cell).map(|cell| &cell.value) == now.cell(cell).map(|cell| &cell.value)
        }
        ReadKey::Views => before.views() == now.views(),
        ReadKey::Selections(view) => before.selections(view) == now.selections(view),
        ReadKey::NewestVisible(_) => before.found_node(key.clone()) == now.found_node(key.clone()),
        ReadKey::NewestLeaf(_) => before.found_position(key.clone()) == now.found_position(key.clone()),
        ReadKey::OtherVisible(..) | ReadKey::Hidden { .. } => {
            before.fact(key.clone()) == now.fact(key.clone())
        }
        // Keystrokes alone leave what can be undone as it is.
        ReadKey::Timeline(view) => {
            let place = |slice: &ReadSet| slice.timeline(view).map(|at| (at.undo, at.redo, at.depth));
            place(before) == place(now)
        }
        _ => true,
    }
}
