//! What was shown with nodes, as rows.

use crate::engine::{Row, params};
use loom::reader::Injection;
use loom::{NodeId, Trust};

use super::bytes::{pack, unpack};
use super::codes::Code;
use super::trees::TreeRef;
use crate::db::{Db, TreeKey, bytes_of, get, id16, unsigned};
use crate::error::StoreError;

/// Keeps what is shown with a node of the tree. One that is there stays as it is.
pub(crate) fn keep(db: &Db<'_>, tree: TreeRef, shown: &Injection) -> Result<(), StoreError> {
    let node = db.node_number(tree.key, shown.node)?.ok_or(StoreError::NotFound("node"))?;
    db.run(
        "INSERT INTO injections (tree, node, ordinal, source, trust, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT DO NOTHING",
        params![
            tree.key.0,
            node,
            shown.ordinal,
            &shown.source,
            shown.trust.code(),
            pack(shown.text.as_bytes(), None)?
        ],
    )?;
    Ok(())
}

/// Gives another trust to what is shown with the node of a number and has `from`.
pub(crate) fn set_trust(
    db: &Db<'_>,
    tree: TreeKey,
    node: i64,
    from: Trust,
    to: Trust,
) -> Result<(), StoreError> {
    db.run(
        "UPDATE injections SET trust = ?3 WHERE tree = ?1 AND node = ?2 AND trust = ?4",
        (tree.0, node, to.code(), from.code()),
    )
    .map(drop)
}

/// As [`loom::TreeReader::injections`]. Numbers of nodes grow in the order of the tree.
pub(crate) fn between(
    db: &Db<'_>,
    tree: TreeRef,
    from: NodeId,
    before: Option<NodeId>,
) -> Result<Vec<Injection>, StoreError> {
    let Some(from) = db.node_number(tree.key, from)? else { return Ok(Vec::new()) };
    let before = match before {
        Some(before) => db.node_number(tree.key, before)?,
        None => None,
    };
    db.all(
        "SELECT n.id, i.ordinal, i.source, i.trust, i.text FROM injections i JOIN nodes n ON n.pk = ?4 + i.node
         WHERE i.tree = ?1 AND i.node >= ?2 AND i.node < ?3 ORDER BY i.node, i.ordinal",
        (tree.key.0, from, before.unwrap_or(i64::from(u32::MAX)), tree.key.first()),
        read,
    )
}

fn read(row: &Row<'_>) -> Result<Injection, StoreError> {
    let text = String::from_utf8(unpack(bytes_of(row, 4)?)?);
    Ok(Injection {
        node: NodeId::from_bytes(id16(row, 0)?),
        ordinal: u32::try_from(unsigned(row, 1)?).unwrap_or(u32::MAX),
        source: get(row, 2)?,
        trust: Trust::from_code(get(row, 3)?)?,
        text: text.map_err(|_| StoreError::Damaged("what was shown with a node is no text".to_owned()))?,
    })
}
