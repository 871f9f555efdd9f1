//! Keeps: where a view's owner accepted what stands above, so that it does not count as drift.

use std::collections::BTreeMap;

use super::ViewOverrides;
use crate::cell::{Cell, CellKey, CellValue, KeepScope};
use crate::id::{PositionId, Seq};
use crate::reader::{RowError, TreeReader};

/// Where a view's owner accepted what stands above.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keeps(BTreeMap<PositionId, (KeepScope, Seq)>);

impl Keeps {
    /// Keeps among the choices on a path.
    pub(crate) fn of(choices: &[(CellKey, Cell)]) -> Self {
        let keeps = choices.iter().filter_map(|(key, cell)| match (key, &cell.value) {
            (CellKey::Keep { position, .. }, CellValue::Keep(scope)) => Some((*position, (*scope, cell.seq))),
            _ => None,
        });
        Self(keeps.collect())
    }

    /// The newest keep that covers a position.
    pub(crate) fn covering(
        &self,
        rows: &dyn TreeReader,
        path: &ViewOverrides,
        at: PositionId,
    ) -> Result<Option<Seq>, RowError> {
        let mut newest = None;
        for (kept, (scope, seq)) in &self.0 {
            let covers = *kept == at || *scope == KeepScope::Below && path.is_above(rows, *kept, at)?;
            if covers {
                newest = newest.max(Some(*seq));
            }
        }
        Ok(newest)
    }
}
