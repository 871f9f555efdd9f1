//! The rows of one tree, as a reader of this store sees them.

use loom::cell::CellScope;
use loom::rows::{Injection, Order, OriginalText, StoredResponse};
use loom::seal::Seal;
use loom::{
    Cell, CellKey, Digest, Draft, GenerationId, GenerationRow, NodeId, NodeRow, OpRecord, Position,
    PositionId, RowError, Rows, Seq, Slot, Timeline, TreeId, TreeRow, ViewName,
};

use super::db::{Db, get};
use super::tree_row::TreeRef;
use super::{cell_row, draft_row, node_row, op_row, position_row, sent, shown, tree_row};
use crate::error::StoreError;
use crate::principal::Principal;

/// One tree within a snapshot.
pub(crate) struct SqliteRows<'a, 'c> {
    pub(crate) db: &'a Db<'c>,
    pub(crate) tree: TreeRef,
    /// Who reads: what was sent and received is shown to some only.
    pub(crate) who: &'a Principal,
}

/// Runs a function over the rows of a tree that `who` sees.
pub(crate) fn run<T>(
    db: &Db<'_>,
    who: &Principal,
    tree: TreeId,
    f: impl FnOnce(&dyn Rows) -> Result<T, RowError>,
) -> Result<T, StoreError> {
    let tree = tree_row::find(db, who, tree)?;
    f(&SqliteRows { db, tree, who }).map_err(StoreError::from_row_error)
}

/// What is not there, or not for this reader, as nothing.
fn optional<T>(found: Result<T, StoreError>) -> Result<Option<T>, RowError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(StoreError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into_row_error()),
    }
}

/// A number of rows as SQLite takes it.
fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl SqliteRows<'_, '_> {
    fn node_at(&self, pk: i64) -> Result<Option<NodeRow>, StoreError> {
        let sql = format!("SELECT {} FROM {} WHERE n.pk = ?1", node_row::COLUMNS, node_row::TABLES);
        self.db.one(&sql, [pk], |row| node_row::read(self.db, self.tree.id, row))
    }

    /// The node numbers before which lies what is older than `before`.
    fn bound(&self, before: Option<Order>) -> Result<i64, StoreError> {
        let Some((seq, place)) = before else { return Ok(i64::MAX) };
        let found = self.db.one(
            "SELECT seq, first, count FROM operations WHERE tree = ?1 AND seq >= ?2 ORDER BY seq LIMIT 1",
            (self.tree.pk, i64::try_from(seq.0).unwrap_or(i64::MAX)),
            |row| Ok((get::<i64>(row, 0)?, get::<i64>(row, 1)?, get::<i64>(row, 2)?)),
        )?;
        Ok(match found {
            None => i64::MAX,
            Some((found, first, count)) if found as u64 == seq.0 => first + count.min(i64::from(place)),
            Some((_, first, _)) => first,
        })
    }

    /// The numbers of the versions at a position before a bound, newest first. The original is the oldest.
    fn version_pks(&self, position: i64, bound: i64, limit: usize) -> Result<Vec<i64>, StoreError> {
        let mut found = self.db.all(
            "SELECT pk FROM nodes WHERE position = ?1 AND pk < ?2 ORDER BY pk DESC LIMIT ?3",
            (position, bound, limit_of(limit)),
            |row| get(row, 0),
        )?;
        if found.len() < limit && position < bound {
            found.push(position);
        }
        Ok(found)
    }

    fn position_pk(&self, id: PositionId) -> Result<Option<i64>, StoreError> {
        self.db.node_pk(self.tree.pk, id.original())
    }

    fn read_versions(
        &self,
        position: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<NodeRow>, StoreError> {
        let Some(position) = self.position_pk(position)? else { return Ok(Vec::new()) };
        let pks = self.version_pks(position, self.bound(before)?, limit)?;
        let rows = pks.into_iter().map(|pk| self.node_at(pk));
        rows.filter_map(Result::transpose).collect()
    }

    fn read_version_with_content(
        &self,
        position: PositionId,
        content: Digest,
    ) -> Result<Option<NodeId>, StoreError> {
        let Some(position) = self.position_pk(position)? else { return Ok(None) };
        let id = |row: &rusqlite::Row<'_>| Ok(NodeId::from_bytes(super::db::id16(row, 0)?));
        let version = self.db.one(
            "SELECT id FROM nodes WHERE position = ?1 AND content_hash = ?2 ORDER BY pk DESC LIMIT 1",
            (position, content.0),
            id,
        )?;
        match version {
            Some(version) => Ok(Some(version)),
            None => self.db.one(
                "SELECT id FROM nodes WHERE pk = ?1 AND content_hash = ?2",
                (position, content.0),
                id,
            ),
        }
    }

    fn read_children(
        &self,
        position: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<Position>, StoreError> {
        let Some(position) = self.position_pk(position)? else { return Ok(Vec::new()) };
        let pks: Vec<i64> = self.db.all(
            "SELECT pk FROM positions WHERE parent = ?1 AND pk < ?2 ORDER BY pk DESC LIMIT ?3",
            (position, self.bound(before)?, limit_of(limit)),
            |row| get(row, 0),
        )?;
        let rows = pks.into_iter().map(|pk| position_row::one(self.db, self.tree.id, pk));
        rows.filter_map(Result::transpose).collect()
    }

    fn count(&self, sql: &str, position: PositionId) -> Result<u64, StoreError> {
        let Some(position) = self.position_pk(position)? else { return Ok(0) };
        Ok(self.db.one(sql, [position], |row| super::db::unsigned(row, 0))?.unwrap_or_default())
    }

    fn read_upwards(&self, from: PositionId, limit: usize) -> Result<Vec<Position>, StoreError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let pk = self.position_pk(from)?.ok_or_else(|| RowError::missing("position", from))?;
        position_row::upwards(self.db, self.tree.id, pk, limit)
    }

    fn read_nodes(&self, ids: &[NodeId]) -> Result<Vec<NodeRow>, StoreError> {
        let sql =
            format!("SELECT {} FROM {} WHERE n.id = ?1 AND n.tree = ?2", node_row::COLUMNS, node_row::TABLES);
        let mut statement = self.db.statement(&sql)?;
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let row = statement
                .one((id.to_bytes(), self.tree.pk), |row| node_row::read(self.db, self.tree.id, row))?;
            found.push(row.ok_or_else(|| RowError::missing("node", id))?);
        }
        Ok(found)
    }

    fn read_node(&self, id: NodeId) -> Result<Option<NodeRow>, StoreError> {
        let sql =
            format!("SELECT {} FROM {} WHERE n.id = ?1 AND n.tree = ?2", node_row::COLUMNS, node_row::TABLES);
        self.db.one(&sql, (id.to_bytes(), self.tree.pk), |row| node_row::read(self.db, self.tree.id, row))
    }

    fn read_in_order(&self, after: Option<Order>, limit: usize) -> Result<Vec<NodeRow>, StoreError> {
        // The first number after `after`: numbers of other trees lie between, so operations lead the way.
        let (seq, bound) = match after {
            None => (0, 0),
            Some((seq, place)) => {
                (i64::try_from(seq.0).unwrap_or(i64::MAX), self.bound(Some((seq, place.saturating_add(1))))?)
            }
        };
        let sql = format!(
            "SELECT {} FROM operations x JOIN {} WHERE x.tree = ?1 AND x.seq >= ?2 AND x.count > 0
             AND n.pk >= x.first AND n.pk < x.first + x.count AND n.pk >= ?3 ORDER BY x.seq, n.pk LIMIT ?4",
            node_row::COLUMNS,
            node_row::TABLES
        );
        self.db.all(&sql, (self.tree.pk, seq, bound, limit_of(limit)), |row| {
            node_row::read(self.db, self.tree.id, row)
        })
    }

    fn read_generation(&self, id: GenerationId) -> Result<Option<GenerationRow>, StoreError> {
        let sql = "SELECT row FROM generations WHERE id = ?1 AND tree = ?2";
        self.db.one(sql, (id.to_bytes(), self.tree.pk), |row| tree_row::json(&get::<String>(row, 0)?))
    }
}

impl Rows for SqliteRows<'_, '_> {
    fn tree(&self) -> Result<TreeRow, RowError> {
        tree_row::read(self.db, self.tree.pk).map_err(StoreError::into_row_error)
    }

    fn position(&self, id: PositionId) -> Result<Option<Position>, RowError> {
        let read = || match self.position_pk(id)? {
            Some(pk) => position_row::one(self.db, self.tree.id, pk),
            None => Ok(None),
        };
        read().map_err(StoreError::into_row_error)
    }

    fn node(&self, id: NodeId) -> Result<Option<NodeRow>, RowError> {
        self.read_node(id).map_err(StoreError::into_row_error)
    }

    fn cell(&self, key: &CellKey) -> Result<Cell, RowError> {
        cell_row::one(self.db, self.tree.pk, key).map_err(StoreError::into_row_error)
    }

    fn cells(&self, scope: &CellScope) -> Result<Vec<(CellKey, Cell)>, RowError> {
        cell_row::all(self.db, self.tree.pk, scope).map_err(StoreError::into_row_error)
    }

    fn versions(
        &self,
        position: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<NodeRow>, RowError> {
        self.read_versions(position, before, limit).map_err(StoreError::into_row_error)
    }

    fn count_versions(&self, position: PositionId) -> Result<u64, RowError> {
        self.count("SELECT 1 + count(*) FROM nodes WHERE position = ?1", position)
            .map_err(StoreError::into_row_error)
    }

    fn version_with_content(
        &self,
        position: PositionId,
        content: Digest,
    ) -> Result<Option<NodeId>, RowError> {
        self.read_version_with_content(position, content).map_err(StoreError::into_row_error)
    }

    fn children(
        &self,
        position: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<Position>, RowError> {
        self.read_children(position, before, limit).map_err(StoreError::into_row_error)
    }

    fn count_children(&self, position: PositionId) -> Result<u64, RowError> {
        let sql = "SELECT (SELECT count(*) FROM positions WHERE parent = ?1)
            - (SELECT count(*) FROM positions WHERE parent = ?1 AND kind <> 0)";
        self.count(sql, position).map_err(StoreError::into_row_error)
    }

    fn upwards(&self, from: PositionId, limit: usize) -> Result<Vec<Position>, RowError> {
        self.read_upwards(from, limit).map_err(StoreError::into_row_error)
    }

    fn original_texts(&self, from: PositionId, limit: usize) -> Result<Vec<OriginalText>, RowError> {
        let read = || {
            let Some(from) = self.position_pk(from)? else { return Ok(Vec::new()) };
            position_row::texts(self.db, from, limit_of(limit))
        };
        read().map_err(StoreError::into_row_error)
    }

    fn nodes(&self, ids: &[NodeId]) -> Result<Vec<NodeRow>, RowError> {
        self.read_nodes(ids).map_err(StoreError::into_row_error)
    }

    fn operation(&self, seq: Seq) -> Result<Option<OpRecord>, RowError> {
        let Some(before) = seq.0.checked_sub(1) else { return Ok(None) };
        let found = op_row::after(self.db, self.tree.pk, self.tree.id, Seq(before), 1);
        let found = found.map_err(StoreError::into_row_error)?;
        Ok(found.into_iter().find(|record| record.seq == seq))
    }

    fn operations(&self, after: Seq, limit: usize) -> Result<Vec<OpRecord>, RowError> {
        op_row::after(self.db, self.tree.pk, self.tree.id, after, limit).map_err(StoreError::into_row_error)
    }

    fn nodes_in_order(&self, after: Option<Order>, limit: usize) -> Result<Vec<NodeRow>, RowError> {
        self.read_in_order(after, limit).map_err(StoreError::into_row_error)
    }

    fn timeline(&self, view: &ViewName) -> Result<Timeline, RowError> {
        tree_row::timeline(self.db, self.tree.pk, view).map_err(StoreError::into_row_error)
    }

    fn draft(&self, view: &ViewName, slot: Slot) -> Result<Option<Draft>, RowError> {
        draft_row::one(self.db, self.tree.pk, view, slot).map_err(StoreError::into_row_error)
    }

    fn drafts(&self, view: &ViewName) -> Result<Vec<(Slot, Draft)>, RowError> {
        draft_row::all(self.db, self.tree.pk, view).map_err(StoreError::into_row_error)
    }

    fn seals(&self) -> Result<Vec<Seal>, RowError> {
        let sql = "SELECT seal FROM seals WHERE tree = ?1 ORDER BY pk";
        let read = self.db.all(sql, [self.tree.pk], |row| tree_row::json(&get::<String>(row, 0)?));
        read.map_err(StoreError::into_row_error)
    }

    fn generation(&self, id: GenerationId) -> Result<Option<GenerationRow>, RowError> {
        self.read_generation(id).map_err(StoreError::into_row_error)
    }

    fn generations(
        &self,
        after: Option<GenerationId>,
        limit: usize,
    ) -> Result<Vec<(GenerationRow, Option<Digest>)>, RowError> {
        sent::of_tree(self.db, self.tree, after, limit_of(limit)).map_err(StoreError::into_row_error)
    }

    fn answer(&self, generation: GenerationId) -> Result<Option<StoredResponse>, RowError> {
        optional(sent::answer(self.db, self.who, self.tree, generation))
    }

    fn injections(&self, from: NodeId, before: Option<NodeId>) -> Result<Vec<Injection>, RowError> {
        if !self.who.sees_context() {
            return Ok(Vec::new());
        }
        shown::between(self.db, self.tree, from, before).map_err(StoreError::into_row_error)
    }

    fn manifest(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError> {
        optional(sent::manifest(self.db, self.who, digest))
    }

    fn body(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError> {
        optional(sent::body(self.db, self.who, digest))
    }

    fn response(&self, node: NodeId) -> Result<Option<StoredResponse>, RowError> {
        optional(sent::response(self.db, self.who, node))
    }
}
