//! The rows of one tree, as a reader of this store sees them.

use std::cell::RefCell;
use std::collections::HashMap;

use loom::cell::CellScope;
use loom::reader::{AnswerRow, Attribution, Injection, Order, OriginalText, StoredResponse};
use loom::seal::Seal;
use loom::{
    Cell, CellKey, Digest, Draft, GenerationId, GenerationRow, NodeId, NodeRow, OpRecord, Position,
    PositionId, RowError, Seq, Slot, Timeline, TreeId, TreeReader, TreeRow, ViewName,
};

use super::node::{COLUMNS, TABLES};
use super::position::WalkStart;
use super::prefetch::{Count, PrefetchCache};
use super::trees::TreeRef;
use super::{attributions, calls, cell, draft, generations, injections, node, operation, position, trees};
use crate::db::{Db, get, id16, number_of, unsigned};
use crate::engine::{Row, params};
use crate::error::StoreError;
use crate::principal::Principal;

/// One tree within a snapshot.
pub(crate) struct StoredTree<'a, 'c> {
    pub(crate) db: &'a Db<'c>,
    pub(crate) tree: TreeRef,
    /// Who reads: what was sent and received is shown to some only.
    pub(crate) who: &'a Principal,
    /// Numbers of the nodes that the last walk upwards met.
    walked: RefCell<HashMap<NodeId, i64>>,
    /// Where a question is a round trip.
    ahead: Option<PrefetchCache>,
}

/// Runs a function over the rows of a tree that `who` sees.
pub(crate) fn run<T>(
    db: &Db<'_>,
    who: &Principal,
    tree: TreeId,
    f: impl FnOnce(&dyn TreeReader) -> Result<T, RowError>,
) -> Result<T, StoreError> {
    let tree = trees::find(db, who, tree)?;
    Ok(f(&StoredTree::new(db, tree, who))?)
}

/// What is not there, or not for this reader, as nothing.
fn optional<T>(found: Result<T, StoreError>) -> Result<Option<T>, RowError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(StoreError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A number of rows as SQLite takes it.
pub(super) fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl<'a, 'c> StoredTree<'a, 'c> {
    pub(crate) fn new(db: &'a Db<'c>, tree: TreeRef, who: &'a Principal) -> Self {
        let ahead = db.engine().is_remote().then(PrefetchCache::default);
        Self { db, tree, who, walked: RefCell::default(), ahead }
    }
}

impl StoredTree<'_, '_> {
    /// Keeps positions that were read, with their numbers.
    fn keep_numbered(&self, ahead: &PrefetchCache, found: Vec<(Position, i64)>) {
        ahead.numbers.keep(found.iter().map(|(position, number)| (position.id, Some(*number))));
        ahead.keep_positions(found.into_iter().map(|(position, _)| position));
    }

    fn position_ahead(&self, ahead: &PrefetchCache, id: PositionId) -> Result<Option<Position>, StoreError> {
        if let Some(known) = ahead.positions.get(&id) {
            return Ok(known);
        }
        let beside = ahead.beside(id);
        let found = match beside.len() {
            1 => position::around(self.db, self.tree, id, ahead.next_run())?,
            _ => {
                let unknown: Vec<_> =
                    beside.into_iter().filter(|id| ahead.positions.get(id).is_none()).collect();
                position::many(self.db, self.tree, &unknown)?
            }
        };
        self.keep_numbered(ahead, found);
        // What was not found is not there.
        ahead.positions.ask(&id, || vec![id], &None, |_| Ok(Vec::new()))
    }

    /// The numbers of a position and of those beside it.
    fn numbers_ahead(
        &self,
        ahead: &PrefetchCache,
        id: PositionId,
    ) -> Result<Vec<(PositionId, i64)>, StoreError> {
        let beside = ahead.beside(id);
        let read = |ids: &[PositionId]| {
            let sql = "SELECT id, pk FROM nodes WHERE id = ?1 AND pk BETWEEN ?2 AND ?3";
            let key = self.tree.key;
            let sets = ids.iter().map(|id| params![id.to_bytes(), key.first(), key.last()]);
            self.db.all_of(sql, sets, |row| {
                Ok((PositionId::from_bytes(id16(row, 0)?), Some(number_of(get(row, 1)?))))
            })
        };
        for id in &beside {
            ahead.numbers.ask(id, || beside.clone(), &None, read)?;
        }
        Ok(beside.into_iter().filter_map(|id| Some((id, ahead.numbers.get(&id)??))).collect())
    }

    /// Counts the rows of one table that name a position, and those that name one beside it.
    fn count_ahead(
        &self,
        ahead: &PrefetchCache,
        count: Count,
        sql: &str,
        id: PositionId,
    ) -> Result<u64, StoreError> {
        if let Some(known) = ahead.counts.get(&(count, id)) {
            return Ok(known);
        }
        let (numbers, key) = (self.numbers_ahead(ahead, id)?, self.tree.key);
        let sets = numbers.iter().map(|(_, number)| params![*number, key.first(), key.last()]);
        // Each counts to one row.
        let counts = self.db.all_of(sql, sets, |row| unsigned(row, 0))?;
        ahead.counts.keep(numbers.iter().map(|(id, _)| (count, *id)).zip(counts));
        Ok(ahead.counts.get(&(count, id)).unwrap_or_default())
    }

    fn bookmark_ahead(&self, ahead: &PrefetchCache, position: PositionId) -> Result<Cell, StoreError> {
        let key = |position| CellKey::Bookmark { position };
        let beside = || ahead.beside(position).into_iter().map(key).collect();
        ahead.cells.ask(&key(position), beside, &Cell::default(), |_| {
            cell::bookmarks(self.db, self.tree.key, &self.numbers_ahead(ahead, position)?)
        })
    }

    fn node_ahead(&self, ahead: &PrefetchCache, id: NodeId) -> Result<Option<NodeRow>, StoreError> {
        ahead.nodes.ask(
            &id,
            || ahead.beside_node(id),
            &None,
            |ids| {
                let found = self.find_nodes(ids)?;
                Ok(found.into_iter().map(|row| (row.node.id, Some(row))).collect())
            },
        )
    }

    fn generation_ahead(
        &self,
        ahead: &PrefetchCache,
        id: GenerationId,
    ) -> Result<Option<GenerationRow>, StoreError> {
        ahead.generations.ask(
            &id,
            || ahead.beside_generation(id),
            &None,
            |ids| {
                let found = self.find_generations(ids)?;
                Ok(found.into_iter().map(|row| (row.id, Some(row))).collect())
            },
        )
    }

    fn node_at(&self, number: i64) -> Result<Option<NodeRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM {TABLES} WHERE n.pk = ?1");
        self.db.one(&sql, [self.tree.key.node(number)], |row| node::read(self.db, self.tree, row))
    }

    /// The number of the first node that is not older than `before`; a number above all if there is none.
    fn bound(&self, before: Option<Order>) -> Result<i64, StoreError> {
        let above_all = i64::from(u32::MAX);
        let Some((seq, place)) = before else { return Ok(above_all) };
        let found = self.db.one(
            "SELECT seq, first, count FROM operations WHERE tree = ?1 AND seq >= ?2 ORDER BY seq LIMIT 1",
            (self.tree.key.0, i64::try_from(seq.0).unwrap_or(i64::MAX)),
            |row| Ok((get::<i64>(row, 0)?, get::<i64>(row, 1)?, get::<i64>(row, 2)?)),
        )?;
        Ok(match found {
            None => above_all,
            Some((found, first, count)) if found as u64 == seq.0 => {
                first.saturating_add(count.min(i64::from(place)))
            }
            Some((_, first, _)) => first,
        })
    }

    fn number(&self, id: PositionId) -> Result<Option<i64>, StoreError> {
        self.db.node_number(self.tree.key, id.original())
    }

    /// Counts the rows of one table that name a position.
    fn count(&self, count: Count, sql: &str, position: PositionId) -> Result<u64, StoreError> {
        if let Some(ahead) = &self.ahead {
            return self.count_ahead(ahead, count, sql, position);
        }
        let (Some(number), key) = (self.number(position)?, self.tree.key) else { return Ok(0) };
        let found = self.db.one(sql, (number, key.first(), key.last()), |row| unsigned(row, 0))?;
        Ok(found.unwrap_or_default())
    }

    /// The nodes of the tree with these ids, in their order. Neighbours of the last walk are read in one go.
    fn find_nodes(&self, ids: &[NodeId]) -> Result<Vec<NodeRow>, StoreError> {
        let (walked, key) = (self.walked.borrow(), self.tree.key);
        let select = format!("SELECT {COLUMNS} FROM {TABLES} WHERE");
        let read = |row: &Row<'_>| node::read(self.db, self.tree, row);
        let keys: Vec<i64> =
            ids.iter().filter_map(|id| walked.get(id)).map(|number| key.node(*number)).collect();
        let sql = format!("{select} n.pk BETWEEN ?1 AND ?2 ORDER BY n.pk");
        let mut by_key = self.db.all_of(&sql, position::runs(&keys), read)?.into_iter().peekable();
        let others = ids.iter().filter(|id| !walked.contains_key(id));
        let others = others.map(|id| params![id.to_bytes(), key.first(), key.last()]);
        let sql = format!("{select} n.id = ?1 AND n.pk BETWEEN ?2 AND ?3");
        let mut by_id = self.db.all_of(&sql, others, read)?.into_iter().peekable();
        let next = |id: &NodeId| {
            by_key.next_if(|row| row.node.id == *id).or_else(|| by_id.next_if(|row| row.node.id == *id))
        };
        Ok(ids.iter().filter_map(next).collect())
    }

    /// The generations of the tree with these ids, in their order.
    fn find_generations(&self, ids: &[GenerationId]) -> Result<Vec<GenerationRow>, StoreError> {
        let sql = "SELECT row FROM generations WHERE id = ?1 AND tree = ?2";
        let sets = ids.iter().map(|id| params![id.to_bytes(), self.tree.key.0]);
        self.db.all_of(sql, sets, |row| trees::json(&get::<String>(row, 0)?))
    }
}

impl TreeReader for StoredTree<'_, '_> {
    fn attributions(&self, nodes: &[NodeId]) -> Result<Vec<Attribution>, RowError> {
        Ok(attributions::read(self.db, self.tree, nodes)?)
    }

    fn tree(&self) -> Result<TreeRow, RowError> {
        Ok(trees::read(self.db, self.tree.key)?)
    }

    fn tables(&self) -> Result<u32, RowError> {
        let sql = "SELECT tables FROM trees WHERE pk = ?1";
        let found = self.db.one(sql, [self.tree.key.0], |row| get(row, 0));
        Ok(found?.unwrap_or_default())
    }

    fn position(&self, id: PositionId) -> Result<Option<Position>, RowError> {
        if let Some(ahead) = &self.ahead {
            return Ok(self.position_ahead(ahead, id)?);
        }
        let Some(number) = self.number(id)? else { return Ok(None) };
        Ok(position::one(self.db, self.tree, number)?)
    }

    fn node(&self, id: NodeId) -> Result<Option<NodeRow>, RowError> {
        match &self.ahead {
            Some(ahead) => Ok(self.node_ahead(ahead, id)?),
            None => Ok(self.find_nodes(&[id])?.pop()),
        }
    }

    fn cell(&self, key: &CellKey) -> Result<Cell, RowError> {
        Ok(match (&self.ahead, key) {
            (Some(ahead), CellKey::Bookmark { position }) => self.bookmark_ahead(ahead, *position)?,
            _ => cell::one(self.db, self.tree.key, key)?,
        })
    }

    fn cells(&self, scope: &CellScope) -> Result<Vec<(CellKey, Cell)>, RowError> {
        let found = cell::all(self.db, self.tree.key, scope)?;
        if let Some(ahead) = &self.ahead {
            ahead.chosen(&found);
        }
        Ok(found)
    }

    fn choices(&self, view: Option<&ViewName>, end: PositionId) -> Result<Vec<(CellKey, Cell)>, RowError> {
        let number = self.number(end)?.ok_or_else(|| RowError::missing("position", end))?;
        let found = cell::choices(self.db, self.tree.key, view, number)?;
        if let Some(ahead) = &self.ahead {
            ahead.chosen(&found);
        }
        Ok(found)
    }

    fn versions(
        &self,
        position: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<NodeRow>, RowError> {
        let Some(original) = self.number(position)? else { return Ok(Vec::new()) };
        let (bound, key) = (self.bound(before)?, self.tree.key);
        let sql = format!(
            "SELECT {COLUMNS} FROM {TABLES} WHERE n.position = ?1 AND n.pk > ?2 AND n.pk < ?3 ORDER BY n.pk DESC LIMIT ?4"
        );
        let keys = (original, key.first(), key.node(bound), limit_of(limit));
        let mut found = self.db.all(&sql, keys, |row| node::read(self.db, self.tree, row))?;
        // The original is the oldest version, and names no position.
        if found.len() < limit && original < bound {
            found.extend(self.node_at(original)?);
        }
        Ok(found)
    }

    fn count_versions(&self, position: PositionId) -> Result<u64, RowError> {
        let sql = "SELECT 1 + count(*) FROM nodes WHERE position = ?1 AND pk > ?2 AND pk < ?3";
        Ok(self.count(Count::Versions, sql, position)?)
    }

    fn version_with_content(
        &self,
        position: PositionId,
        content: Digest,
    ) -> Result<Option<NodeId>, RowError> {
        let (Some(original), key) = (self.number(position)?, self.tree.key) else { return Ok(None) };
        let version = self.db.one(
            "SELECT id FROM nodes WHERE position = ?1 AND pk > ?2 AND pk < ?3 AND content_hash = ?4
             ORDER BY pk DESC LIMIT 1",
            (original, key.first(), key.last(), content.0),
            |row| Ok(NodeId::from_bytes(id16(row, 0)?)),
        )?;
        match version {
            Some(version) => Ok(Some(version)),
            None => {
                let original = self
                    .node_at(original)?
                    .filter(|row| row.node.content_hash().is_ok_and(|hash| hash == content));
                Ok(original.map(|row| row.node.id))
            }
        }
    }

    fn children(
        &self,
        position: PositionId,
        before: Option<Order>,
        limit: usize,
    ) -> Result<Vec<Position>, RowError> {
        let (Some(parent), key) = (self.number(position)?, self.tree.key) else { return Ok(Vec::new()) };
        let bound = key.node(self.bound(before)?);
        Ok(position::children(self.db, self.tree, parent, bound, limit)?)
    }

    fn annotations(&self, at: Option<&[PositionId]>) -> Result<Vec<Position>, RowError> {
        Ok(position::annotations(self.db, self.tree, at)?)
    }

    fn tags(&self, at: &[PositionId]) -> Result<Vec<(PositionId, String)>, RowError> {
        let found = cell::tags(self.db, self.tree.key, at)?.into_iter();
        Ok(found
            .filter_map(|(key, cell)| match key {
                CellKey::Tag { position, tag } if cell.value.is_set() => Some((position, tag)),
                _ => None,
            })
            .collect())
    }

    fn count_children(&self, position: PositionId) -> Result<u64, RowError> {
        let sql = "SELECT (SELECT count(*) FROM positions
                WHERE parent = ?1 AND parent <> (pk & 4294967295) - 1 AND pk > ?2 AND pk < ?3)
            + (SELECT count(*) FROM positions WHERE pk = ?2 + ?1 + 1 AND parent = ?1)
            - (SELECT count(*) FROM positions WHERE parent = ?1 AND kind <> 0 AND pk > ?2 AND pk < ?3)";
        Ok(self.count(Count::Children, sql, position)?)
    }

    fn upwards(&self, from: PositionId, limit: usize) -> Result<Vec<Position>, RowError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let start = WalkStart::find(self.db, self.tree, from)?;
        let start = start.ok_or_else(|| RowError::missing("position", from))?;
        let found = position::upwards(self.db, self.tree, start, limit)?;
        *self.walked.borrow_mut() =
            found.iter().map(|(position, number)| (position.id.original(), *number)).collect();
        let found: Vec<Position> = found.into_iter().map(|(position, _)| position).collect();
        if let Some(ahead) = &self.ahead {
            ahead.page(&found);
        }
        Ok(found)
    }

    fn original_texts(&self, from: PositionId) -> Result<Vec<OriginalText>, RowError> {
        let start = WalkStart::find(self.db, self.tree, from)?;
        let from = start.ok_or_else(|| RowError::missing("position", from))?;
        Ok(position::texts(self.db, self.tree, from)?)
    }

    fn nodes(&self, ids: &[NodeId]) -> Result<Vec<NodeRow>, RowError> {
        let found = self.find_nodes(ids)?;
        if let Some(ahead) = &self.ahead {
            ahead.keep_nodes(&found);
        }
        let missing = ids.iter().zip(&found).find(|(id, row)| row.node.id != **id).map(|(id, _)| *id);
        match missing.or_else(|| ids.get(found.len()).copied()) {
            Some(id) => Err(RowError::missing("node", id)),
            None => Ok(found),
        }
    }

    fn operation(&self, seq: Seq) -> Result<Option<OpRecord>, RowError> {
        let Some(before) = seq.0.checked_sub(1) else { return Ok(None) };
        let found = operation::after(self.db, self.tree, Seq(before), 1)?;
        Ok(found.into_iter().find(|record| record.seq == seq))
    }

    fn operations(&self, after: Seq, limit: usize) -> Result<Vec<OpRecord>, RowError> {
        Ok(operation::after(self.db, self.tree, after, limit)?)
    }

    fn nodes_in_order(&self, after: Option<Order>, limit: usize) -> Result<Vec<NodeRow>, RowError> {
        let bound = match after {
            None => 0,
            Some((seq, place)) => self.bound(Some((seq, place.saturating_add(1))))?,
        };
        let sql =
            format!("SELECT {COLUMNS} FROM {TABLES} WHERE n.pk >= ?1 AND n.pk <= ?2 ORDER BY n.pk LIMIT ?3");
        let keys = (self.tree.key.node(bound), self.tree.key.last(), limit_of(limit));
        Ok(self.db.all(&sql, keys, |row| node::read(self.db, self.tree, row))?)
    }

    fn answers(&self, before: Option<Order>, limit: usize) -> Result<Vec<AnswerRow>, RowError> {
        let keys = (self.tree.key.first(), self.tree.key.node(self.bound(before)?), limit_of(limit));
        Ok(node::answers(self.db, keys)?)
    }

    fn timeline(&self, view: &ViewName) -> Result<Timeline, RowError> {
        Ok(trees::timeline(self.db, self.tree.key, view)?)
    }

    fn draft(&self, view: &ViewName, slot: Slot) -> Result<Option<Draft>, RowError> {
        Ok(draft::one(self.db, self.tree.key, view, slot)?)
    }

    fn drafts(&self, view: &ViewName) -> Result<Vec<(Slot, Draft)>, RowError> {
        Ok(draft::all(self.db, self.tree.key, view)?)
    }

    fn seals(&self) -> Result<Vec<Seal>, RowError> {
        let sql = "SELECT seal FROM seals WHERE tree = ?1 ORDER BY n";
        Ok(self.db.all(sql, [self.tree.key.0], |row| trees::json(&get::<String>(row, 0)?))?)
    }

    fn generation(&self, id: GenerationId) -> Result<Option<GenerationRow>, RowError> {
        match &self.ahead {
            Some(ahead) => Ok(self.generation_ahead(ahead, id)?),
            None => Ok(self.find_generations(&[id])?.pop()),
        }
    }

    fn generations(
        &self,
        after: Option<GenerationId>,
        limit: usize,
    ) -> Result<Vec<(GenerationRow, Option<Digest>)>, RowError> {
        Ok(generations::of_tree(self.db, self.tree, after, limit_of(limit))?)
    }

    fn answer(&self, generation: GenerationId) -> Result<Option<StoredResponse>, RowError> {
        optional(generations::answer(self.db, self.who, self.tree, generation))
    }

    fn has_answer(&self, generation: GenerationId) -> Result<bool, RowError> {
        Ok(generations::has_answer(self.db, self.who, self.tree, generation)?)
    }

    fn injections(&self, from: NodeId, before: Option<NodeId>) -> Result<Vec<Injection>, RowError> {
        if !self.who.sees_context() {
            return Ok(Vec::new());
        }
        Ok(injections::between(self.db, self.tree, from, before)?)
    }

    fn started_calls(&self, answer: NodeId) -> Result<Vec<u32>, RowError> {
        Ok(calls::started(self.db, self.tree, answer)?)
    }

    fn manifest(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError> {
        optional(generations::manifest(self.db, self.who, digest))
    }

    fn body(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError> {
        optional(generations::body(self.db, self.who, digest))
    }

    fn has_body(&self, digest: Digest) -> Result<bool, RowError> {
        Ok(generations::has_body(self.db, self.who, digest)?)
    }

    fn response(&self, node: NodeId) -> Result<Option<StoredResponse>, RowError> {
        optional(generations::response(self.db, self.who, node))
    }
}
