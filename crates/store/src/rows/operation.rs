//! An operation record as a row, and back.
//!
//! The nodes it made are those with its `seq`, and stand in their own rows; only a list that differs from them is
//! written down. Nodes are named by how far their number is from the operation's first, mostly in one byte.

use loom::cell::TextOffset;
use loom::operation::TimelineEffect;
use loom::{
    CellChange, CellKey, CellValue, Digest, KeepScope, Millis, NodeId, OpKind, OpRecord, OpTarget, Operation,
    Seq,
};

use super::bytes::{In, Out};
use super::cell::{key, parts, view_name};
use super::codes::Code;
use super::reader::limit_of;
use super::trees::TreeRef;
use crate::db::{Db, TreeKey, bytes_of, digest, get, id16, unsigned};
use crate::engine::Row;
use crate::error::StoreError;

/// Writes and reads what an operation names, relative to its first node.
struct Names<'a, 'c> {
    db: &'a Db<'c>,
    tree: TreeKey,
    first: i64,
    /// Whether the nodes named are looked up. If not they all read as nil.
    nodes: bool,
}

impl Names<'_, '_> {
    fn write_node(&self, out: &mut Out, id: NodeId) -> Result<(), StoreError> {
        match self.db.node_number(self.tree, id)? {
            Some(number) => {
                out.byte(1);
                out.signed(self.first - number);
            }
            None => {
                out.byte(0);
                out.fixed(&id.to_bytes());
            }
        }
        Ok(())
    }

    fn read_node(&self, read: &mut In<'_>) -> Result<NodeId, StoreError> {
        match read.byte()? {
            0 => Ok(NodeId::from_bytes(read.fixed()?)),
            1 => {
                let number = self.first.wrapping_sub(read.signed()?);
                if self.nodes { self.db.node_id(self.tree, number) } else { Ok(NodeId::from_bytes([0; 16])) }
            }
            _ => Err(read.damaged()),
        }
    }

    fn write_key(&self, out: &mut Out, cell: &CellKey) -> Result<(), StoreError> {
        let parts = parts(cell);
        let target = match parts.target {
            None => 0,
            Some(OpTarget::Position(_)) => 1,
            Some(OpTarget::Version(_)) => 2,
        };
        out.byte(parts.kind << 3 | target << 1 | u8::from(parts.view.is_some()));
        if let Some(view) = parts.view {
            out.signed(self.db.intern(self.tree, view.as_str())?);
        }
        match parts.target {
            None => {}
            Some(OpTarget::Position(position)) => self.write_node(out, position.original())?,
            Some(OpTarget::Version(node)) => self.write_node(out, node)?,
        }
        if matches!(cell, CellKey::Tag { .. }) {
            out.text(parts.tag);
        }
        Ok(())
    }

    fn read_key(&self, read: &mut In<'_>) -> Result<CellKey, StoreError> {
        let first = read.byte()?;
        let view = if first & 1 == 0 { None } else { Some(view_name(self.db, self.tree, read.signed()?)?) };
        let target = match first >> 1 & 3 {
            0 => None,
            1 => Some(OpTarget::Position(self.read_node(read)?.as_position())),
            2 => Some(OpTarget::Version(self.read_node(read)?)),
            _ => return Err(read.damaged()),
        };
        let kind = first >> 3;
        let tag = if kind == super::cell::kind::TAG { read.text()? } else { String::new() };
        key(kind, view, target, tag)
    }

    fn write_value(&self, out: &mut Out, value: &CellValue) -> Result<(), StoreError> {
        match value {
            CellValue::None => out.byte(0),
            CellValue::Set => out.byte(1),
            CellValue::Position(position) => {
                out.byte(2);
                self.write_node(out, position.original())?;
            }
            CellValue::Node(node) => {
                out.byte(3);
                self.write_node(out, *node)?;
            }
            CellValue::Keep(scope) => {
                out.byte(4);
                out.byte(scope.code());
            }
            CellValue::Text(text) => {
                out.byte(5);
                out.text(text);
            }
            CellValue::Number(number) => {
                out.byte(6);
                out.number(*number);
            }
            CellValue::Place(place) => {
                out.byte(8);
                self.write_node(out, place.position.original())?;
                out.number(place.at);
            }
            CellValue::Draft { base, text_of } => {
                out.byte(7);
                out.byte(u8::from(base.is_some()));
                out.number(text_of.len() as u64);
                for node in base.iter().chain(text_of) {
                    self.write_node(out, *node)?;
                }
            }
        }
        Ok(())
    }

    fn read_value(&self, read: &mut In<'_>) -> Result<CellValue, StoreError> {
        Ok(match read.byte()? {
            0 => CellValue::None,
            1 => CellValue::Set,
            2 => CellValue::Position(self.read_node(read)?.as_position()),
            3 => CellValue::Node(self.read_node(read)?),
            4 => CellValue::Keep(KeepScope::from_code(read.byte()?)?),
            5 => CellValue::Text(read.text()?),
            6 => CellValue::Number(read.number()?),
            7 => {
                let based = read.byte()? != 0;
                let count = read.number()?;
                let base = if based { Some(self.read_node(read)?) } else { None };
                let text_of = (0..count).map(|_| self.read_node(read)).collect::<Result<_, _>>()?;
                CellValue::Draft { base, text_of }
            }
            8 => {
                let position = self.read_node(read)?.as_position();
                CellValue::Place(TextOffset { position, at: read.number()? })
            }
            _ => return Err(read.damaged()),
        })
    }
}

/// Inserts a record; `count` nodes from number `first` on are its own, and stored already.
pub(crate) fn insert(
    db: &Db<'_>,
    tree: TreeKey,
    record: &OpRecord,
    first: i64,
    count: usize,
) -> Result<(), StoreError> {
    let derived = nodes_of(db, tree, first, count)?;
    let body = body(&Names { db, tree, first, nodes: true }, record, derived == record.op.nodes)?;
    db.run(
        "INSERT INTO operations (tree, seq, first, count, hash, purged, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (tree.0, record.seq.0 as i64, first, count as i64, record.hash.0, record.purged, body),
    )?;
    Ok(())
}

/// Writes a record anew from which words were removed.
pub(crate) fn rewrite(db: &Db<'_>, tree: TreeKey, record: &OpRecord) -> Result<(), StoreError> {
    let seq = record.seq.0 as i64;
    let found =
        db.one("SELECT first, count FROM operations WHERE tree = ?1 AND seq = ?2", (tree.0, seq), |row| {
            Ok((get::<i64>(row, 0)?, get::<i64>(row, 1)?))
        })?;
    let (first, count) = found.ok_or(StoreError::NotFound("operation"))?;
    let derived = nodes_of(db, tree, first, count as usize)?;
    let body = body(&Names { db, tree, first, nodes: true }, record, derived == record.op.nodes)?;
    db.run("UPDATE operations SET purged = 1, body = ?3 WHERE tree = ?1 AND seq = ?2", (tree.0, seq, body))?;
    Ok(())
}

/// Empties a record that is damaged; its hash stays.
pub(crate) fn empty(db: &Db<'_>, tree: TreeKey, seq: Seq) -> Result<(), StoreError> {
    let sql = "UPDATE operations SET purged = 1, body = ?3 WHERE tree = ?1 AND seq = ?2";
    db.run(sql, (tree.0, seq.0 as i64, Vec::new())).map(drop)
}

fn body(names: &Names<'_, '_>, record: &OpRecord, derived: bool) -> Result<Vec<u8>, StoreError> {
    let op = &record.op;
    let mut out = Out::default();
    out.byte(op.kind.code() << 2 | u8::from(derived) << 1 | u8::from(op.view.is_some()));
    // Times are written as what has passed since the tree was made.
    out.signed(op.at.0.wrapping_sub(names.db.started(names.tree)?));
    out.signed(names.db.intern(names.tree, &op.agent)?);
    if let Some(view) = &op.view {
        out.signed(names.db.intern(names.tree, view.as_str())?);
    }
    // Mostly the operation before, or none.
    let back = |seq: Option<Seq>| seq.map(|seq| record.seq.0 - seq.0);
    out.optional(back(record.undo_prev));
    out.optional(back(record.redo_prev));
    match &op.timeline {
        TimelineEffect::None => out.byte(0),
        TimelineEffect::Push => out.byte(1),
        TimelineEffect::Join(with) => {
            out.byte(2);
            out.number(with.0);
        }
        TimelineEffect::Undo { of, then } => {
            out.byte(3);
            out.number(of.len() as u64);
            of.iter().for_each(|seq| out.number(seq.0));
            out.optional(then.map(|seq| seq.0));
        }
        TimelineEffect::Redo { of, then } => {
            out.byte(4);
            out.number(of.0);
            out.optional(then.map(|seq| seq.0));
        }
    }
    out.number(op.cells.len() as u64);
    for change in &op.cells {
        names.write_key(&mut out, &change.key)?;
        names.write_value(&mut out, &change.old)?;
        names.write_value(&mut out, &change.new)?;
    }
    out.number(op.skipped.len() as u64);
    for key in &op.skipped {
        names.write_key(&mut out, key)?;
    }
    if !derived {
        out.number(op.nodes.len() as u64);
        for (node, chain) in &op.nodes {
            out.fixed(&node.to_bytes());
            out.fixed(&chain.0);
        }
    }
    Ok(out.0)
}

/// The nodes with numbers from `first` on, with their chain hashes.
fn nodes_of(
    db: &Db<'_>,
    tree: TreeKey,
    first: i64,
    count: usize,
) -> Result<Vec<(NodeId, Digest)>, StoreError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    db.all(
        "SELECT id, chain_hash FROM nodes WHERE pk >= ?1 AND pk < ?2 ORDER BY pk",
        (tree.node(first), tree.node(first.saturating_add(count as i64))),
        |row| Ok((NodeId::from_bytes(id16(row, 0)?), digest(row, 1)?)),
    )
}

/// Records with numbers after `after`, oldest first.
pub(crate) fn after(
    db: &Db<'_>,
    tree: TreeRef,
    after: Seq,
    limit: usize,
) -> Result<Vec<OpRecord>, StoreError> {
    let mut prev = hash(db, tree.key, after)?;
    db.all(
        "SELECT seq, first, count, hash, purged, body FROM operations
         WHERE tree = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
        (tree.key.0, i64::try_from(after.0).unwrap_or(i64::MAX), limit_of(limit)),
        |row| {
            let record = read(db, tree, prev, row)?;
            prev = record.hash;
            Ok(record)
        },
    )
}

/// Calls `visit` with each operation after one, oldest first, without its nodes, and with the bytes of its record. Nodes
/// that its cells name are nil.
pub(crate) fn each_without_nodes(
    db: &Db<'_>,
    tree: TreeRef,
    after: Seq,
    mut visit: impl FnMut(Seq, Result<Operation, StoreError>, &[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let sql = "SELECT seq, body FROM operations WHERE tree = ?1 AND seq > ?2 ORDER BY seq";
    db.scan(sql, (tree.key.0, i64::try_from(after.0).unwrap_or(i64::MAX)), |row| {
        // What stands where bytes should is damage too, and may hold words.
        let text = get::<String>(row, 1).unwrap_or_default();
        let bytes = bytes_of(row, 1).unwrap_or(text.as_bytes());
        visit(Seq(unsigned(row, 0)?), without_nodes(db, tree, row), bytes)?;
        Ok(true)
    })
}

/// The titles that the making of a tree gave it, and the import that filled it. Where the record of one is damaged, it
/// may have been `now`.
pub(crate) fn first_titles(db: &Db<'_>, tree: TreeRef, now: &str) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT seq, body FROM operations WHERE tree = ?1 AND seq <= 2 ORDER BY seq";
    let mut titles = Vec::new();
    for op in db.all(sql, [tree.key.0], |row| Ok(without_nodes(db, tree, row)))? {
        match op {
            Ok(op) if matches!(op.kind, OpKind::Create | OpKind::Import) => {
                let set = op.cells.into_iter().filter(|change| change.key == CellKey::Title);
                titles.extend(set.filter_map(|change| match change.new {
                    CellValue::Text(title) => Some(title),
                    _ => None,
                }));
            }
            Err(error) if !error.is_damage() => return Err(error),
            Err(_) => titles.push(now.to_owned()),
            Ok(_) => {}
        }
    }
    titles.retain(|title| !title.is_empty());
    Ok(titles)
}

/// An operation of a row with its number and record, without its nodes.
fn without_nodes(db: &Db<'_>, tree: TreeRef, row: &Row<'_>) -> Result<Operation, StoreError> {
    let names = Names { db, tree: tree.key, first: 0, nodes: false };
    Ok(read_body(&names, tree, Seq(unsigned(row, 0)?), &mut body_of(row, 1)?)?.op)
}

/// The hash of a record; that of none is zero.
pub(crate) fn hash(db: &Db<'_>, tree: TreeKey, seq: Seq) -> Result<Digest, StoreError> {
    let seq = i64::try_from(seq.0).unwrap_or(i64::MAX);
    let found = db.one("SELECT hash FROM operations WHERE tree = ?1 AND seq = ?2", (tree.0, seq), |row| {
        digest(row, 0)
    })?;
    Ok(found.unwrap_or(Digest::ZERO))
}

/// The bytes of a record in a column.
fn body_of<'r>(row: &'r Row<'_>, index: usize) -> Result<In<'r>, StoreError> {
    Ok(In::new(bytes_of(row, index)?, "an operation"))
}

fn read(db: &Db<'_>, tree: TreeRef, prev: Digest, row: &Row<'_>) -> Result<OpRecord, StoreError> {
    let seq = Seq(unsigned(row, 0)?);
    let (first, count): (i64, i64) = (get(row, 1)?, get(row, 2)?);
    let names = Names { db, tree: tree.key, first, nodes: true };
    let mut body = body_of(row, 5)?;
    let Body { mut op, undo_prev, redo_prev, derived } = read_body(&names, tree, seq, &mut body)?;
    op.nodes = if derived {
        nodes_of(db, tree.key, first, usize::try_from(count).unwrap_or(0))?
    } else {
        let count = body.number()?;
        (0..count)
            .map(|_| Ok((NodeId::from_bytes(body.fixed()?), Digest(body.fixed()?))))
            .collect::<Result<_, StoreError>>()?
    };
    Ok(OpRecord { seq, prev, hash: digest(row, 3)?, undo_prev, redo_prev, op, purged: get(row, 4)? })
}

/// What the bytes of a record say.
struct Body {
    /// Without its nodes.
    op: Operation,
    undo_prev: Option<Seq>,
    redo_prev: Option<Seq>,
    /// Whether its nodes are those with its number; if not they follow.
    derived: bool,
}

fn read_body(names: &Names<'_, '_>, tree: TreeRef, seq: Seq, read: &mut In<'_>) -> Result<Body, StoreError> {
    let db = names.db;
    let flags = read.byte()?;
    let at = Millis(read.signed()?.wrapping_add(db.started(tree.key)?));
    let agent = db.name(tree.key, read.signed()?)?.to_string();
    let view = if flags & 1 == 0 { None } else { Some(view_name(db, tree.key, read.signed()?)?) };
    let mut back = || Ok::<_, StoreError>(read.optional()?.map(|back| Seq(seq.0.saturating_sub(back))));
    let (undo_prev, redo_prev) = (back()?, back()?);
    let timeline = match read.byte()? {
        0 => TimelineEffect::None,
        1 => TimelineEffect::Push,
        2 => TimelineEffect::Join(Seq(read.number()?)),
        3 => {
            let count = read.number()?;
            let of = (0..count).map(|_| Ok(Seq(read.number()?))).collect::<Result<_, StoreError>>()?;
            TimelineEffect::Undo { of, then: read.optional()?.map(Seq) }
        }
        4 => TimelineEffect::Redo { of: Seq(read.number()?), then: read.optional()?.map(Seq) },
        _ => return Err(read.damaged()),
    };
    let mut cells = Vec::new();
    for _ in 0..read.number()? {
        let key = names.read_key(read)?;
        let (old, new) = (names.read_value(read)?, names.read_value(read)?);
        cells.push(CellChange { key, old, new });
    }
    let count_skipped = read.number()?;
    let skipped = (0..count_skipped).map(|_| names.read_key(read)).collect::<Result<_, _>>()?;
    let kind = OpKind::from_code(flags >> 2)?;
    let op = Operation { tree: tree.id, agent, view, kind, at, cells, nodes: Vec::new(), skipped, timeline };
    Ok(Body { op, undo_prev, redo_prev, derived: flags & 2 != 0 })
}
