//! The nodes of a tree that are removed.

use std::collections::{BTreeMap, BTreeSet};

use loom::content::plain_text;
use loom::{Block, GenerationId, NodeId, Seq, TreeId};

use super::{Part, id_or_number, none_if_damaged, raw_of, readable_content, whole};
use crate::db::{Db, TreeKey, get, optional_id16};
use crate::error::StoreError;
use crate::forget::{ForgottenPlace, QuotedAs, Target, share_words};
use crate::rows::node;
use crate::rows::trees::TreeRef;

/// A node that is removed.
pub(super) struct NodeToRemove {
    pub(super) id: NodeId,
    pub(super) key: i64,
    pub(super) generation: Option<GenerationId>,
    pub(super) has_content: bool,
    pub(super) bytes: u64,
}

/// The nodes of a tree that go: those that were named, those that hold what is searched for, those that quote one.
pub(super) fn nodes_to_remove(
    db: &Db<'_>,
    target: &mut Target,
    nodes: &BTreeSet<(TreeId, NodeId)>,
    tree: TreeRef,
    part: &Part,
    damaged: &mut Vec<ForgottenPlace>,
) -> Result<Vec<(NodeToRemove, Option<QuotedAs>)>, StoreError> {
    let is_whole = target.tree == Some(tree.id);
    let quotes_here = target.quoted.is_some() && target.named.iter().any(|(named, _)| *named == tree.id);
    let mut found = BTreeMap::new();
    let mut edited = Vec::new();
    let looks_through = is_whole || quotes_here || target.searches_nodes();
    if looks_through && part.after.0 < u64::MAX {
        each_node(db, tree, part.after, |row, content, raw, edited_from, has_extra| {
            let content = content.map(Some).or_else(none_if_damaged)?;
            if content.is_none() {
                // What its words were cannot be told, also where it goes.
                damaged.push(ForgottenPlace::Damaged { tree: tree.id, row: format!("node {}", row.id) });
            }
            let is_named = target.named.contains(&(tree.id, row.id));
            if is_whole {
                target.add_node(row.id, content.as_deref().unwrap_or_default());
            }
            if edited_from.is_some() || (has_extra && quotes_here) {
                edited.push((row.id, edited_from));
            }
            if is_named || is_whole {
                found.insert(row.id, (row, None));
            } else if content.map_or_else(|| target.is_in_bytes(raw), |content| target.is_in(&content)) {
                let quotes = target.quoted.is_some().then_some(QuotedAs::Copy);
                found.insert(row.id, (row, quotes));
            }
            Ok(())
        })?;
    }
    for (_, node) in target.named.iter().filter(|(named, _)| *named == tree.id) {
        if !found.contains_key(node)
            && let Some(row) = one_node(db, tree, *node)?
        {
            found.insert(*node, (row, None));
        }
    }
    if quotes_here {
        quoting(db, target, nodes, tree, &edited, &mut found)?;
    }
    let mut going = Vec::new();
    for (id, (row, quotes)) in found {
        if quotes.is_some()
            && row.has_content
            && let Some(content) = readable_content(db, tree, id)?
        {
            // What sent or answered a quote holds the words as well.
            target.add_node(id, &content);
        }
        going.push((row, quotes));
    }
    Ok(going)
}

/// Adds what was made of a node that goes and has words of it still. A version is made of what it was edited from, so
/// that the whole chain is followed; numbers grow, so that once through is enough.
fn quoting(
    db: &Db<'_>,
    target: &Target,
    nodes: &BTreeSet<(TreeId, NodeId)>,
    tree: TreeRef,
    made: &[(NodeId, Option<NodeId>)],
    found: &mut BTreeMap<NodeId, (NodeToRemove, Option<QuotedAs>)>,
) -> Result<(), StoreError> {
    let quoted = target.quoted.as_deref().unwrap_or_default();
    let mut chain: BTreeSet<NodeId> =
        nodes.iter().filter(|(of, _)| *of == tree.id).map(|(_, node)| *node).collect();
    chain.extend(found.keys());
    for (node, edited_from) in made {
        let Some(row) = whole(db, tree, *node).or_else(none_if_damaged)? else { continue };
        let how = match (&row.node.quote, edited_from) {
            (Some(quote), _) if chain.contains(&quote.node) => QuotedAs::Branch,
            (_, Some(from)) if chain.contains(from) => QuotedAs::Version,
            _ => continue,
        };
        chain.insert(*node);
        let text = plain_text(&row.node.content);
        let holds = match how {
            QuotedAs::Branch => !text.is_empty(),
            _ => share_words(quoted, &text),
        };
        if let (true, Some(going)) = (holds, one_node(db, tree, *node)?) {
            let entry = found.entry(*node).or_insert((going, Some(how)));
            if entry.1.is_some() {
                entry.1 = Some(how);
            }
        }
    }
    Ok(())
}

fn one_node(db: &Db<'_>, tree: TreeRef, node: NodeId) -> Result<Option<NodeToRemove>, StoreError> {
    let sql = "SELECT pk, generation, CASE WHEN content IS NULL THEN 0 ELSE 1 END, octet_length(content)
        FROM nodes WHERE id = ?1";
    let row = db.one(sql, [node.to_bytes()], |row| {
        Ok(NodeToRemove {
            id: node,
            key: get(row, 0)?,
            generation: optional_id16(row, 1)?.map(GenerationId::from_bytes),
            has_content: get(row, 2)?,
            bytes: get::<Option<i64>>(row, 3)?.unwrap_or_default().unsigned_abs(),
        })
    })?;
    Ok(row.filter(|row| TreeKey::of(row.key) == tree.key))
}

/// Calls `visit` with every node of the operations after one, its content as read and as stored, what it was edited
/// from, and whether there is more to say of it.
fn each_node(
    db: &Db<'_>,
    tree: TreeRef,
    after: Seq,
    mut visit: impl FnMut(
        NodeToRemove,
        Result<Vec<Block>, StoreError>,
        &[u8],
        Option<NodeId>,
        bool,
    ) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let seq = i64::try_from(after.0).unwrap_or(i64::MAX);
    let sql = "SELECT first FROM operations WHERE tree = ?1 AND seq > ?2 ORDER BY seq LIMIT 1";
    // From the beginning it takes no record, which may be damaged.
    let first = if seq == 0 { Some(0) } else { db.one(sql, (tree.key.0, seq), |row| get::<i64>(row, 0))? };
    let Some(first) = first else { return Ok(()) };
    let sql = "SELECT n.pk, n.id, n.generation, n.flags, n.content, e.id,
            CASE WHEN n.extra IS NULL THEN 0 ELSE 1 END
        FROM nodes n LEFT JOIN nodes e ON e.pk = (n.pk & -4294967296) + n.edited_from
        WHERE n.pk >= ?1 AND n.pk <= ?2 AND n.content IS NOT NULL ORDER BY n.pk";
    db.scan(sql, (tree.key.node(first), tree.key.last()), |row| {
        let content = get(row, 3).and_then(|flags| node::read_content(row, 4, flags));
        let raw = raw_of(row, 4..=4).next().unwrap_or_default();
        let key = get::<i64>(row, 0)?;
        let going = NodeToRemove {
            id: id_or_number(row, 1, key)?,
            key,
            generation: optional_id16(row, 2).or_else(none_if_damaged)?.map(GenerationId::from_bytes),
            has_content: true,
            bytes: raw.len() as u64,
        };
        let edited_from = optional_id16(row, 5).or_else(none_if_damaged)?.map(NodeId::from_bytes);
        visit(going, content, raw, edited_from, get(row, 6)?)?;
        Ok(true)
    })
}
