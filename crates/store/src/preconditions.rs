//! What a plan was made from, so that two plans that are each right do not become wrong together.
//!
//! A plan is made outside of the transaction that applies it. The cells it sets are compared, but it may rest on
//! what it does not set: that another version is visible, that nothing above a position is hidden. So a plan goes
//! to the store with the answers it rests on; the store asks again within the transaction, and refuses the plan if
//! one is another by now.

use std::collections::BTreeSet;
use std::sync::Arc;

use loom::read_set::{Needs, ReadKey};
use loom::{ReadSet, RowError, TreeReader};

use crate::error::StaleRead;

/// Questions a plan asked, and the answers it was given.
#[derive(Debug, Clone, Default)]
pub struct Preconditions {
    asked: BTreeSet<ReadKey>,
    answers: Arc<ReadSet>,
}

impl Preconditions {
    /// The answers that can change; rows never do, but where they are forgotten.
    pub(crate) fn new(asked: BTreeSet<ReadKey>, answers: ReadSet) -> Self {
        Self { asked: asked.into_iter().filter(can_change).collect(), answers: Arc::new(answers) }
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

/// Whether an answer can change and matters to what was planned. Drafts meet by their revisions, and two versions
/// with one content do no harm.
const fn can_change(key: &ReadKey) -> bool {
    match key {
        ReadKey::Cell(_)
        | ReadKey::Views
        | ReadKey::Selections(_)
        | ReadKey::NewestVisible(_)
        | ReadKey::OtherVisible(..)
        | ReadKey::Hidden { .. }
        | ReadKey::NewestLeaf(_)
        | ReadKey::Timeline(_)
        | ReadKey::Node(_)
        | ReadKey::Operation(_) => true,
        ReadKey::Tree
        | ReadKey::Position(_)
        | ReadKey::VersionWithContent(..)
        | ReadKey::ChildToward(..)
        | ReadKey::CommonAncestor(..)
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
        ReadKey::Node(id) => {
            let purged = |slice: &ReadSet| slice.node(*id).map(|row| row.map(|row| row.purged));
            purged(before) == purged(now)
        }
        ReadKey::Operation(seq) => {
            let purged =
                |slice: &ReadSet| slice.operation(*seq).map(|record| record.map(|record| record.purged));
            purged(before) == purged(now)
        }
        _ => true,
    }
}
