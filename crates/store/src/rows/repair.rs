//! Derived numbers made anew: cluster counts, terms of the digest, and the sums of them that positions carry.
//!
//! They come of the tables of Unicode, which change. A tree says by which version it was counted; where that is another
//! one than this program's, its numbers are no fault, and are counted again here.

use std::collections::HashMap;

use loom::content::plain_text;
use loom::{Counts, PathDigest, PositionId, Sums};

use super::node::{is_purged, read_content, read_counts};
use super::reader::limit_of;
use crate::db::{Db, TreeKey, get, id16, number_of, optional_id16};
use crate::engine::{Row, Value, params};
use crate::error::StoreError;

/// Nodes read at a time.
const PAGE: usize = 1_024;

/// The trees that were counted by other tables.
pub(crate) fn outdated(db: &Db<'_>) -> Result<Vec<TreeKey>, StoreError> {
    let sql = "SELECT pk FROM trees WHERE tables <> ?1 ORDER BY pk";
    db.all(sql, [text::grapheme::TABLES], |row| Ok(TreeKey(get(row, 0)?)))
}

/// What is counted anew of a node.
struct Counted {
    key: i64,
    /// Of a position, that of its parent if it has one.
    parent: Option<i64>,
    is_position: bool,
    own: Sums,
}

pub(crate) fn recount(db: &Db<'_>, tree: TreeKey) -> Result<(), StoreError> {
    db.engine().lock(crate::engine::Lock::Tree(tree.0))?;
    let sql =
        "SELECT n.pk, n.id, o.id, n.flags, n.content, n.bytes, n.chars, n.graphemes, n.term, p.parent, p.pk
        FROM nodes n LEFT JOIN nodes o ON o.pk = ?3 + n.position LEFT JOIN positions p ON p.pk = n.pk
        WHERE n.pk > ?1 AND n.pk <= ?2 ORDER BY n.pk LIMIT ?4";
    // Sums over the originals down to a position, itself included. A parent stands before its children.
    let mut below: HashMap<i64, Sums> = HashMap::new();
    let mut last = tree.first();
    loop {
        let page = db.all(sql, (last, tree.last(), tree.first(), limit_of(PAGE)), read)?;
        let Some(end) = page.last() else { break };
        last = end.key;
        for node in &page {
            write(db, node, &mut below)?;
        }
    }
    db.run("UPDATE trees SET tables = ?2 WHERE pk = ?1", (tree.0, text::grapheme::TABLES))?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<Counted, StoreError> {
    let (key, id, flags) = (get(row, 0)?, PositionId::from_bytes(id16(row, 1)?), get::<u8>(row, 3)?);
    let position = optional_id16(row, 2)?.map_or(id, PositionId::from_bytes);
    // Of what was forgotten the numbers stay.
    let own = if is_purged(flags) {
        Sums { counts: read_counts(row, 5, 0)?, digest: PathDigest(u128::from_be_bytes(id16(row, 8)?)) }
    } else {
        let content = read_content(row, 4, flags)?;
        let text = plain_text(&content);
        Sums { counts: Counts::of(&text), digest: PathDigest::term(position, &text) }
    };
    Ok(Counted { key, parent: get(row, 9)?, is_position: get::<Option<i64>>(row, 10)?.is_some(), own })
}

fn write(db: &Db<'_>, node: &Counted, below: &mut HashMap<i64, Sums>) -> Result<(), StoreError> {
    let Sums { counts, digest } = node.own;
    let sql = "UPDATE nodes SET graphemes = ?2, chars = ?3, bytes = ?4, term = ?5 WHERE pk = ?1";
    let length = db.one("SELECT octet_length(content) FROM nodes WHERE pk = ?1", [node.key], |row| {
        get::<Option<i64>>(row, 0)
    })?;
    let differs = |number: u64, from: u64| (number != from).then_some(number as i64);
    let numbers: [Value<'_>; 5] = params![
        node.key,
        differs(counts.graphemes, counts.chars),
        differs(counts.chars, counts.bytes),
        differs(counts.bytes, length.flatten().unwrap_or_default() as u64),
        digest.0.to_be_bytes(),
    ];
    db.run(sql, numbers)?;
    if !node.is_position {
        return Ok(());
    }
    let above = match node.parent {
        None => Sums::default(),
        Some(parent) => *below.get(&parent).ok_or_else(|| {
            StoreError::Damaged(format!("position {} is before its parent", number_of(node.key)))
        })?,
    };
    below.insert(number_of(node.key), above.plus(node.own));
    let sql = "UPDATE positions SET chars = ?2, graphemes = ?3, digest = ?4 WHERE pk = ?1";
    let spread = |more: u64, less: u64| more.wrapping_sub(less) as i64;
    let counts = above.counts;
    db.run(
        sql,
        (
            node.key,
            spread(counts.bytes, counts.chars),
            spread(counts.chars, counts.graphemes),
            above.digest.0.to_be_bytes(),
        ),
    )?;
    Ok(())
}
