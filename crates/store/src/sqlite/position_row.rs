//! A position as a row, and back.

use std::collections::HashMap;

use loom::content::plain_text;
use loom::rows::OriginalText;
use loom::{Block, Counts, NodeId, PathDigest, Position, PositionId, PositionKind, Sums, TreeId};
use rusqlite::{Row, params};

use super::codes::Code;
use super::db::{Db, get, id16, optional_id16};
use super::node_row::{read_content, read_counts, read_role};
use crate::error::StoreError;

/// All but the ids of parent and jump, which a walk knows already.
const COLUMNS: &str = "p.pk, p.parent, p.jump, n.id, n.flags, p.kind, p.depth, p.bytes, p.chars, p.graphemes, \
    p.digest, coalesce(n.bytes, octet_length(n.content), 0), n.chars, n.graphemes, n.term";

/// Inserts a position, whose original has number `pk`.
pub(crate) fn insert(db: &Db<'_>, tree: i64, pk: i64, position: &Position) -> Result<(), StoreError> {
    let number = |id: PositionId| match id {
        id if id == position.id => Ok(pk),
        id => db.node_pk(tree, id.original())?.ok_or_else(|| {
            StoreError::Malformed(format!(
                "position {} names {id}, which this tree does not have",
                position.id
            ))
        }),
    };
    let above = position.above.counts;
    let spread = |more: u64, less: u64| more as i64 - less as i64;
    db.run(
        "INSERT INTO positions (pk, parent, kind, depth, jump, bytes, chars, graphemes, digest)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            pk,
            position.parent.map(number).transpose()?,
            position.kind.code(),
            position.depth,
            number(position.jump)?,
            above.bytes as i64,
            spread(above.bytes, above.chars),
            spread(above.chars, above.graphemes),
            position.above.digest.0.to_be_bytes(),
        ],
    )?;
    Ok(())
}

/// A position without the ids of its parent and jump, and their numbers.
struct Half {
    position: Position,
    pk: i64,
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
    Ok(Half { position, pk: get(row, 0)?, parent: get(row, 1)?, jump: get(row, 2)? })
}

fn term(row: &Row<'_>, index: usize) -> Result<PathDigest, StoreError> {
    Ok(PathDigest(u128::from_be_bytes(id16(row, index)?)))
}

/// The position with a number.
pub(crate) fn one(db: &Db<'_>, tree: TreeId, pk: i64) -> Result<Option<Position>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, up.id, j.id FROM positions p JOIN nodes n ON n.pk = p.pk
         LEFT JOIN nodes up ON up.pk = p.parent JOIN nodes j ON j.pk = p.jump WHERE p.pk = ?1"
    );
    db.one(&sql, [pk], |row| {
        let parent = optional_id16(row, 15)?.map(PositionId::from_bytes);
        let jump = PositionId::from_bytes(id16(row, 16)?);
        Ok(Position { parent, jump, ..read_half(tree, row)?.position })
    })
}

/// The position with a number and those above it, at most `limit`. Each row is read once; the ids of parents and
/// jumps are those of rows further up.
pub(crate) fn upwards(
    db: &Db<'_>,
    tree: TreeId,
    from: i64,
    limit: usize,
) -> Result<Vec<Position>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM positions p JOIN nodes n ON n.pk = p.pk WHERE p.pk = ?1");
    let mut statement = db.statement(&sql)?;
    let mut halves: Vec<Half> = Vec::new();
    let mut next = Some(from);
    while let Some(pk) = next.filter(|_| halves.len() < limit) {
        let half = statement.one([pk], |row| read_half(tree, row))?;
        let half = half.ok_or_else(|| StoreError::Damaged(format!("position number {pk} is missing")))?;
        next = half.parent;
        halves.push(half);
    }
    let ids: HashMap<i64, PositionId> = halves.iter().map(|half| (half.pk, half.position.id)).collect();
    let id = |pk: i64| match ids.get(&pk) {
        Some(id) => Ok(*id),
        None => db.node_id(pk).map(NodeId::as_position),
    };
    let whole = halves.into_iter().map(|half| {
        Ok(Position { parent: half.parent.map(id).transpose()?, jump: id(half.jump)?, ..half.position })
    });
    whole.collect()
}

/// The texts of the originals at the position with a number and those above it, at most `limit`.
pub(crate) fn texts(db: &Db<'_>, from: i64, limit: i64) -> Result<Vec<OriginalText>, StoreError> {
    // The walk is one statement: a step is a lookup by number, and nothing of the row is read but the text.
    let sql = "WITH RECURSIVE up (pk, parent, depth) AS (
            SELECT pk, parent, depth FROM positions WHERE pk = ?1
            UNION ALL SELECT p.pk, p.parent, p.depth FROM up JOIN positions p ON p.pk = up.parent LIMIT ?2)
        SELECT n.id, up.depth, n.flags, n.content FROM up CROSS JOIN nodes n ON n.pk = up.pk";
    db.all(sql, (from, limit), |row| {
        let mut content = read_content(get(row, 3)?, get(row, 2)?)?;
        let text = match content.pop() {
            // Nearly every content is one text, which is moved and not copied.
            Some(Block::Text { text }) if content.is_empty() => text,
            last => {
                content.extend(last);
                plain_text(&content).into_owned()
            }
        };
        Ok(OriginalText { position: PositionId::from_bytes(id16(row, 0)?), depth: get(row, 1)?, text })
    })
}
