//! What a plan was made from, so that two plans that are each right do not become wrong together.
//!
//! A plan is made outside of the transaction that applies it. The cells it sets are compared, but it may rest on
//! what it does not set: that another version is visible, that nothing above a position is hidden. So a plan goes
//! to the store with the answers it rests on; the store asks again within the transaction, and refuses the plan if
//! one is another by now.

use std::collections::BTreeSet;
use std::sync::Arc;

use loom::slice::{Key, Needs};
use loom::{RowError, Rows, Slice};

use crate::error::Changed;

/// Questions a plan asked, and the answers it was given.
#[derive(Debug, Clone, Default)]
pub struct Basis {
    asked: BTreeSet<Key>,
    answers: Arc<Slice>,
}

impl Basis {
    /// The answers that can change; rows never do, but where they are forgotten.
    pub(crate) fn new(asked: BTreeSet<Key>, answers: Slice) -> Self {
        Self { asked: asked.into_iter().filter(can_change).collect(), answers: Arc::new(answers) }
    }

    /// What is answered differently now.
    pub(crate) fn changed(&self, rows: &dyn Rows) -> Result<Vec<Changed>, RowError> {
        let mut now = Slice::default();
        let needs = Needs(self.asked.clone());
        now.load(&needs, rows)?;
        let changed = needs.0.into_iter().filter(|key| !same(key, &self.answers, &now));
        Ok(changed.map(Changed::of).collect())
    }
}

/// Whether an answer can change and matters to what was planned. Drafts meet by their revisions, and two versions
/// with one content do no harm.
const fn can_change(key: &Key) -> bool {
    match key {
        Key::Cell(_)
        | Key::Views
        | Key::Selections(_)
        | Key::NewestVisible(_)
        | Key::OtherVisible(..)
        | Key::Hidden { .. }
        | Key::NewestLeaf(_)
        | Key::Timeline(_)
        | Key::Node(_)
        | Key::Operation(_) => true,
        Key::Tree
        | Key::Position(_)
        | Key::VersionWithContent(..)
        | Key::ChildToward(..)
        | Key::CommonAncestor(..)
        | Key::Drafts(_) => false,
    }
}

fn same(key: &Key, before: &Slice, now: &Slice) -> bool {
    match key {
        Key::Cell(cell) => {
            before.cell(cell).map(|cell| &cell.value) == now.cell(cell).map(|cell| &cell.value)
        }
        Key::Views => before.views() == now.views(),
        Key::Selections(view) => before.selections(view) == now.selections(view),
        Key::NewestVisible(_) => before.found_node(key.clone()) == now.found_node(key.clone()),
        Key::NewestLeaf(_) => before.found_position(key.clone()) == now.found_position(key.clone()),
        Key::OtherVisible(..) | Key::Hidden { .. } => before.fact(key.clone()) == now.fact(key.clone()),
        // Keystrokes alone leave what can be undone as it is.
        Key::Timeline(view) => {
            let place = |slice: &Slice| slice.timeline(view).map(|at| (at.undo, at.redo, at.depth));
            place(before) == place(now)
        }
        Key::Node(id) => {
            let purged = |slice: &Slice| slice.node(*id).map(|row| row.map(|row| row.purged));
            purged(before) == purged(now)
        }
        Key::Operation(seq) => {
            let purged =
                |slice: &Slice| slice.operation(*seq).map(|record| record.map(|record| record.purged));
            purged(before) == purged(now)
        }
        _ => true,
    }
}
