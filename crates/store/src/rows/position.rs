//! A position as a row, and back.

use std::collections::HashMap;

use crate::engine::{Row, Value, params};
use loom::content::plain_text;
use loom::reader::OriginalText;
use loom::{Block, Counts, PathDigest, Position, PositionId, PositionKind, Sums, TreeId};

use super::codes::Code;
use super::lane;
use super::node::{read_content, read_counts, read_role};
use super::reader::limit_of;
use super::trees::TreeRef;
use crate::db::{Db, TreeKey, get, id16, number_of, optional_id16};
use crate::error::StoreError;

/// All but the ids of parent and jump, which a walk knows already.
const COLUMNS: &str = "p.pk, p.parent, p.jump, n.id, n.flags, p.kind, p.depth, p.bytes, p.chars, p.graphemes, \
    p.digest, coalesce(n.bytes, octet_length(n.content), 0), n.chars, n.graphemes, n.term";

/// Inserts a position, by the number of its original.
pub(crate) fn insert(
    db: &Db<'_>,
    tree: TreeKey,
    original: i64,
    position: &Position,
) -> Result<(), StoreError> {
    let number = |id: PositionId| match id {
        id if id == position.id => Ok(original),
        id => db.node_number(tree, id.original())?.ok_or_else(|| {
            StoreError::Malformed(format!(
                "position {} names {id}, which this tree does not have",
                position.id
            ))
        }),
    };
    let parent = position.parent.map(number).transpose()?;
    let lane = match parent {
        Some(parent) if position.kind == PositionKind::Path => {
            lane::below(db, tree, (parent, position.depth.saturating_sub(1)), original)?
        }
        _ => original,
    };
    let above = position.above.counts;
    let spread = |more: u64, less: u64| more as i64 - less as i64;
    db.run(
        "INSERT INTO positions (pk, parent, kind, depth, jump, bytes, chars, graphemes, digest, lane)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            tree.node(original),
            parent,
            position.kind.code(),
            position.depth,
            number(position.jump)?,
            above.bytes as i64,
            spread(above.bytes, above.chars),
            spread(above.chars, above.graphemes),
            position.above.digest.0.to_be_bytes(),
            lane,
        ],
    )?;
    Ok(())
}

/// A position without the ids of its parent and jump, and their numbers.
struct Half {
    position: Position,
    number: i64,
    parent: Option<i64>,
    jump: i64,
}

fn read_half(tree: TreeId, row: &Row<'_>) -> Result<Half, StoreError> {
    let id = PositionId::from_bytes(id16(row, 3)?);
    let column = |index| Ok::<_, StoreError>(get::<i64>(row, index)? as u64);
    let bytes = column(7)?;
    let chars = bytes.wrapping_sub(column(8)?);
    let above = Counts { bytes, chars, graphemes: chars.wrapping_sub(column(9)?) };
    let own = read_counts(row, 11, 0)?;
    let position = Position {
        id,
        tree,
        parent: None,
        kind: PositionKind::from_code(get(row, 5)?)?,
        role: read_role(get(row, 4)?)?,
        depth: get(row, 6)?,
        jump: id,
        above: Sums { counts: above, digest: term(row, 10)? },
        own: Sums { counts: own, digest: term(row, 14)? },
    };
    Ok(Half { position, number: number_of(get(row, 0)?), parent: get(row, 1)?, jump: get(row, 2)? })
}

fn term(row: &Row<'_>, index: usize) -> Result<PathDigest, StoreError> {
    Ok(PathDigest(u128::from_be_bytes(id16(row, index)?)))
}

/// The position whose original has a number.
pub(crate) fn one(db: &Db<'_>, tree: TreeRef, original: i64) -> Result<Option<Position>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, up.id, j.id FROM positions p JOIN nodes n ON n.pk = p.pk
         LEFT JOIN nodes up ON up.pk = ?2 + p.parent JOIN nodes j ON j.pk = ?2 + p.jump WHERE p.pk = ?1"
    );
    db.one(&sql, (tree.key.node(original), tree.key.first()), |row| read_whole(tree, row))
}

/// A position, with the ids of its parent and jump behind its own columns.
fn read_whole(tree: TreeRef, row: &Row<'_>) -> Result<Position, StoreError> {
    let parent = optional_id16(row, 15)?.map(PositionId::from_bytes);
    let jump = PositionId::from_bytes(id16(row, 16)?);
    Ok(Position { parent, jump, ..read_half(tree.id, row)?.position })
}

/// The positions whose originals have these ids, with their numbers; a tree's own only.
pub(crate) fn many(
    db: &Db<'_>,
    tree: TreeRef,
    ids: &[PositionId],
) -> Result<Vec<(Position, i64)>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, up.id, j.id FROM nodes n JOIN positions p ON p.pk = n.pk
         LEFT JOIN nodes up ON up.pk = ?2 + p.parent JOIN nodes j ON j.pk = ?2 + p.jump
         WHERE n.id = ?1 AND n.pk BETWEEN ?2 AND ?3"
    );
    let sets = ids.iter().map(|id| params![id.to_bytes(), tree.key.first(), tree.key.last()]);
    db.all_of(&sql, sets, |row| Ok((read_whole(tree, row)?, number_of(get(row, 0)?))))
}

/// A position, at most `limit` from it upwards, and all that their jump pointers lead to; with their numbers.
pub(crate) fn around(
    db: &Db<'_>,
    tree: TreeRef,
    from: PositionId,
    limit: usize,
) -> Result<Vec<(Position, i64)>, StoreError> {
    let sql = format!(
        "WITH RECURSIVE run (pk, parent, jump, step) AS (
            SELECT p.pk, p.parent, p.jump, 1 FROM nodes n JOIN positions p ON p.pk = n.pk
                WHERE n.id = ?1 AND n.pk BETWEEN ?2 AND ?4
            UNION ALL SELECT p.pk, p.parent, p.jump, run.step + 1 FROM run
                JOIN positions p ON p.pk = ?2 + run.parent WHERE run.step < ?3),
         near (pk, jump) AS (
            SELECT pk, jump FROM run
            UNION SELECT p.pk, p.jump FROM near JOIN positions p ON p.pk = ?2 + near.jump)
         SELECT {COLUMNS}, up.id, j.id FROM near JOIN positions p ON p.pk = near.pk JOIN nodes n ON n.pk = p.pk
         LEFT JOIN nodes up ON up.pk = ?2 + p.parent JOIN nodes j ON j.pk = ?2 + p.jump"
    );
    let keys = (from.to_bytes(), tree.key.first(), limit_of(limit), tree.key.last());
    db.all(&sql, keys, |row| Ok((read_whole(tree, row)?, number_of(get(row, 0)?))))
}

/// Positions below the one with number `parent`, newest first, whose keys are less than `bound`.
pub(crate) fn children(
    db: &Db<'_>,
    tree: TreeRef,
    parent: i64,
    bound: i64,
    limit: usize,
) -> Result<Vec<Position>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, up.id, j.id FROM positions p JOIN nodes n ON n.pk = p.pk
         LEFT JOIN nodes up ON up.pk = ?2 + p.parent JOIN nodes j ON j.pk = ?2 + p.jump
         WHERE p.parent = ?1 AND p.parent <> (p.pk & 4294967295) - 1 AND p.pk > ?2 AND p.pk < ?3
         ORDER BY p.pk DESC LIMIT ?4"
    );
    let mut found =
        db.all(&sql, (parent, tree.key.first(), bound, limit_of(limit)), |row| read_whole(tree, row))?;
    // The oldest may come right behind its parent, where the index does not name it.
    if found.len() < limit && tree.key.node(parent + 1) < bound {
        let sql = format!(
            "SELECT {COLUMNS}, up.id, j.id FROM positions p JOIN nodes n ON n.pk = p.pk
             LEFT JOIN nodes up ON up.pk = ?2 + p.parent JOIN nodes j ON j.pk = ?2 + p.jump
             WHERE p.pk = ?1 AND p.parent = ?3"
        );
        let keys = (tree.key.node(parent + 1), tree.key.first(), parent);
        found.extend(db.one(&sql, keys, |row| read_whole(tree, row))?);
    }
    Ok(found)
}

/// The remarks on these positions, or on any of the tree, in the order they were made.
pub(crate) fn annotations(
    db: &Db<'_>,
    tree: TreeRef,
    at: Option<&[PositionId]>,
) -> Result<Vec<Position>, StoreError> {
    let first = tree.key.first();
    let select = format!("SELECT {COLUMNS}, up.id, j.id FROM");
    let joins = "JOIN nodes n ON n.pk = p.pk
         LEFT JOIN nodes up ON up.pk = ?1 + p.parent JOIN nodes j ON j.pk = ?1 + p.jump";
    let read = |row: &Row<'_>| Ok((get::<i64>(row, 0)?, read_whole(tree, row)?));
    // `kind <> 0` is the condition of their index, which is read whole rather than the tree.
    let mut found = match at {
        Some(at) => {
            let sql = format!(
                "{select} nodes a JOIN positions p ON p.parent = a.pk - ?1 AND p.kind <> 0 AND p.pk BETWEEN ?1 AND ?2
                 {joins} WHERE a.id = ?3 AND a.pk BETWEEN ?1 AND ?2"
            );
            let sets = at.iter().map(|id| params![first, tree.key.last(), id.to_bytes()]);
            db.all_of(&sql, sets, read)?
        }
        None => {
            let sql = format!("{select} positions p {joins} WHERE p.kind <> 0 AND +p.pk BETWEEN ?1 AND ?2");
            db.all(&sql, (first, tree.key.last()), read)?
        }
    };
    found.retain(|(_, position)| position.kind == PositionKind::Annotation);
    found.sort_by_key(|(number, _)| *number);
    Ok(found.into_iter().map(|(_, position)| position).collect())
}

/// Where a walk upwards begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkStart {
    number: i64,
    depth: u32,
    /// Of the originals above it.
    above: PathDigest,
}

impl WalkStart {
    /// The position with an id.
    pub(crate) fn find(db: &Db<'_>, tree: TreeRef, id: PositionId) -> Result<Option<Self>, StoreError> {
        let sql = "SELECT n.pk, p.depth, p.digest FROM nodes n JOIN positions p ON p.pk = n.pk
            WHERE n.id = ?1 AND n.pk BETWEEN ?2 AND ?3";
        db.one(sql, (id.to_bytes(), tree.key.first(), tree.key.last()), |row| {
            Ok(Self { number: number_of(get(row, 0)?), depth: get(row, 1)?, above: term(row, 2)? })
        })
    }

    /// The depth of the uppermost of `limit` positions.
    fn top(self, limit: usize) -> u32 {
        self.depth.saturating_sub(u32::try_from(limit.saturating_sub(1)).unwrap_or(u32::MAX))
    }
}

/// Walks from the position with key ?1 in the tree that begins with key ?2 up to depth ?3; ends early where a row is
/// not one step above the one that names it.
const UPWARDS: &str = "WITH RECURSIVE up (pk, parent, depth) AS (
        SELECT pk, parent, depth FROM positions WHERE pk = ?1
        UNION ALL SELECT p.pk, p.parent, p.depth FROM up JOIN positions p ON p.pk = ?2 + up.parent
            WHERE up.depth > ?3 AND p.depth = up.depth - 1)
    SELECT depth, pk FROM up";

/// A position and those above it, from the top.
struct StoredPath {
    /// Of the uppermost.
    depth: u32,
    keys: Vec<i64>,
}

impl StoredPath {
    /// Reads at most `limit` positions.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when one is missing or does not stand one step below its parent.
    fn read(db: &Db<'_>, tree: TreeRef, from: WalkStart, limit: usize) -> Result<Self, StoreError> {
        let depth = from.top(limit);
        let ends = (tree.key.node(from.number), tree.key.first(), depth);
        let mut found: Vec<(u32, i64)> = db.all(UPWARDS, ends, |row| Ok((get(row, 0)?, get(row, 1)?)))?;
        found.sort_unstable();
        if found.first().is_none_or(|(top, _)| *top != depth) {
            return Err(broken(tree.id, from));
        }
        Ok(Self { depth, keys: found.into_iter().map(|(_, key)| key).collect() })
    }
}

/// First and last key of each run of neighbours. Rows that were made one after the other are read in one go.
pub(crate) fn runs(keys: &[i64]) -> impl Iterator<Item = [Value<'static>; 2]> {
    keys.chunk_by(|above, below| *below == above + 1).map(|run| params![run[0], run[run.len() - 1]])
}

fn broken(tree: TreeId, from: WalkStart) -> StoreError {
    StoreError::Damaged(format!("the path to position {} of tree {tree} is broken", from.number))
}

/// A position and those above it, at most `limit`, with their numbers. The ids of parents and jumps are those of rows further up.
pub(crate) fn upwards(
    db: &Db<'_>,
    tree: TreeRef,
    from: WalkStart,
    limit: usize,
) -> Result<Vec<(Position, i64)>, StoreError> {
    let path = StoredPath::read(db, tree, from, limit)?;
    let sql = format!(
        "SELECT {COLUMNS} FROM positions p JOIN nodes n ON n.pk = p.pk WHERE p.pk BETWEEN ?1 AND ?2 ORDER BY p.pk"
    );
    let mut halves = db.all_of(&sql, runs(&path.keys), |row| read_half(tree.id, row))?;
    let follows = |pair: &[Half]| pair[0].position.below().digest == pair[1].position.above.digest;
    let is_end = |top: &Half| top.parent.is_none() == (top.position.depth == 0);
    if halves.len() != path.keys.len()
        || !halves.windows(2).all(follows)
        || !halves.first().is_some_and(is_end)
    {
        return Err(broken(tree.id, from));
    }
    halves.reverse();
    let mut ids: HashMap<i64, PositionId> =
        halves.iter().map(|half| (half.number, half.position.id)).collect();
    let mut further: Vec<i64> = halves.iter().map(|half| half.jump).collect();
    further.extend(halves.last().and_then(|half| half.parent));
    further.retain(|number| !ids.contains_key(number));
    further.dedup();
    let sets = further.iter().map(|number| params![tree.key.node(*number)]);
    ids.extend(db.all_of("SELECT pk, id FROM nodes WHERE pk = ?1", sets, |row| {
        Ok((number_of(get(row, 0)?), PositionId::from_bytes(id16(row, 1)?)))
    })?);
    let id = |number: i64| ids.get(&number).copied().ok_or_else(|| broken(tree.id, from));
    let whole = halves.into_iter().map(|half| {
        let (parent, jump) = (half.parent.map(id).transpose()?, id(half.jump)?);
        Ok((Position { parent, jump, ..half.position }, half.number))
    });
    whole.collect()
}

/// The texts of the originals at a position and at all above it, from the top.
pub(crate) fn texts(db: &Db<'_>, tree: TreeRef, from: WalkStart) -> Result<Vec<OriginalText>, StoreError> {
    let path = StoredPath::read(db, tree, from, usize::MAX)?;
    // Nothing of the rows is read but the text, and what tells that it is of this path.
    let sql = "SELECT id, flags, content, term FROM nodes WHERE pk BETWEEN ?1 AND ?2 ORDER BY pk";
    let (mut depth, mut above, mut last) = (path.depth, PathDigest::default(), PathDigest::default());
    let texts = db.all_of(sql, runs(&path.keys), |row| {
        let mut content = read_content(row, 2, get(row, 1)?)?;
        let text = match content.pop() {
            // Nearly every content is one text, which is moved and not copied.
            Some(Block::Text { text }) if content.is_empty() => text,
            last => {
                content.extend(last);
                plain_text(&content).into_owned()
            }
        };
        let original = OriginalText { position: PositionId::from_bytes(id16(row, 0)?), depth, text };
        depth += 1;
        above = above.plus(last);
        last = term(row, 3)?;
        Ok(original)
    })?;
    if texts.len() == path.keys.len() && above == from.above { Ok(texts) } else { Err(broken(tree.id, from)) }
}
