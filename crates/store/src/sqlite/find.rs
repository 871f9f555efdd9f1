//! Lists of trees, names of trees and nodes, and the search index.

use std::time::{Duration, Instant};

use loom::{NodeId, PositionId, Seq, TreeId, short_id};
use rusqlite::Row;
use text::bigrams::{Query, Term};

use super::db::{Db, get, id16, optional_id16, unsigned};
use super::node_row::read_content;
use super::tree_row::{ENTRY, find, read_entry, seen};
use crate::error::StoreError;
use crate::listing::{NodeName, TreeEntry, TreeFilter, split_name};
use crate::principal::Principal;
use crate::search::{Hit, Hits, Occurrences, RANKED, SearchScope, scores};

/// As [`crate::Store::trees`].
pub(crate) fn trees(db: &Db<'_>, who: &Principal, filter: TreeFilter) -> Result<Vec<TreeEntry>, StoreError> {
    let (seen, param) = seen(who);
    let sql = format!(
        "SELECT {ENTRY} FROM trees t WHERE {seen} AND (?2 OR t.purged = 0 OR t.title <> ''
            OR EXISTS (SELECT 1 FROM nodes n WHERE n.tree = t.pk AND n.content <> ''))
         ORDER BY t.updated DESC, t.id DESC"
    );
    let mut entries = db.all(&sql, (&param, filter.holds_tombstones()), read_entry)?;
    entries.retain(|entry| filter.holds(entry.archived));
    Ok(entries)
}

/// As [`crate::Store::tree`].
pub(crate) fn tree(db: &Db<'_>, who: &Principal, id: TreeId) -> Result<TreeEntry, StoreError> {
    let tree = find(db, who, id)?;
    let found = db.one(&format!("SELECT {ENTRY} FROM trees t WHERE t.pk = ?1"), [tree.pk], read_entry)?;
    found.ok_or(StoreError::NotFound("tree"))
}

/// As [`crate::Store::resolve`].
pub(crate) fn resolve(db: &Db<'_>, who: &Principal, name: &str) -> Result<TreeId, StoreError> {
    let (seen, param) = seen(who);
    let id: Option<TreeId> = name.parse().ok();
    let sql = format!("SELECT {ENTRY} FROM trees t WHERE {seen} AND (t.id = ?2 OR t.short = ?3)");
    let by_id = db.one(&sql, (&param, id.map(TreeId::to_bytes), short_id::normalise(name)), read_entry)?;
    if let Some(entry) = by_id {
        return Ok(entry.id);
    }
    let sql = format!("SELECT {ENTRY} FROM trees t WHERE {seen} AND t.title = ?2 AND t.title <> ''");
    let named = db.all(&sql, (&param, name), read_entry)?;
    let shown = named.iter().map(|entry| format!("{} {}", entry.short_id, entry.title));
    one(&named, "tree", shown).map(|entry| entry.id)
}

/// As [`crate::Store::resolve_node`].
pub(crate) fn resolve_node(
    db: &Db<'_>,
    who: &Principal,
    tree: Option<TreeId>,
    name: &str,
) -> Result<NodeName, StoreError> {
    let (of, node) = split_name(name);
    let tree = match of {
        Some(of) => Some(resolve(db, who, of)?),
        None => tree,
    };
    let (seen, param) = seen(who);
    let id: Option<NodeId> = node.parse().ok();
    let short = short_id::normalise(node);
    let columns = "SELECT t.id, n.id, p.id, n.short, t.short FROM trees t JOIN nodes n ON n.tree = t.pk
        LEFT JOIN nodes p ON p.pk = n.position";
    let read = |row: &Row<'_>| {
        let node = NodeId::from_bytes(id16(row, 1)?);
        let position = optional_id16(row, 2)?.map_or(node.as_position(), PositionId::from_bytes);
        let name =
            NodeName { tree: TreeId::from_bytes(id16(row, 0)?), node, position, short_id: get(row, 3)? };
        Ok((name, get::<String>(row, 4)?))
    };
    let tree = tree.map(TreeId::to_bytes);
    let mut found = db.all(
        &format!("{columns} WHERE {seen} AND (?2 IS NULL OR t.id = ?2) AND n.tree = t.pk AND n.short = ?3"),
        (&param, tree, short),
        read,
    )?;
    if let Some(id) = id {
        let sql = format!("{columns} WHERE n.id = ?3 AND {seen} AND (?2 IS NULL OR t.id = ?2)");
        found.extend(db.all(&sql, (&param, tree, id.to_bytes()), read)?);
    }
    let shown = found.iter().map(|(name, tree)| format!("{tree}:{}", name.short_id));
    one(&found, "node", shown).map(|(name, _)| name.clone())
}

/// The one found; else what to say.
fn one<'a, T>(
    found: &'a [T],
    what: &'static str,
    shown: impl Iterator<Item = String>,
) -> Result<&'a T, StoreError> {
    match found {
        [] => Err(StoreError::NotFound(what)),
        [one] => Ok(one),
        _ => Err(StoreError::Ambiguous(shown.collect())),
    }
}

/// As [`crate::Store::search`]. The index says which nodes have all the tokens, newest first; it keeps no places,
/// which would double its size. So phrases are looked up in the text itself, in the pass that ranks.
pub(crate) fn search(
    db: &Db<'_>,
    who: &Principal,
    text: &str,
    scope: SearchScope,
    limit: usize,
    time: Duration,
) -> Result<Hits, StoreError> {
    let query = Query::parse(text);
    let mut hits = Hits { truncated: query.truncated, ..Hits::default() };
    let tree = match scope {
        SearchScope::All => None,
        SearchScope::Tree(tree) => Some(find(db, who, tree)?.pk),
    };
    if query.is_empty() {
        return Ok(hits);
    }
    let end = Instant::now() + time;
    let (seen, param) = seen(who);
    let sql = format!(
        "SELECT n.pk, n.content, n.flags FROM search s CROSS JOIN nodes n ON n.pk = s.rowid
         CROSS JOIN trees t ON t.pk = n.tree
         WHERE s.search MATCH ?2 AND {seen} AND (?3 IS NULL OR n.tree = ?3) ORDER BY s.rowid DESC"
    );
    let mut found: Vec<(i64, Occurrences)> = Vec::new();
    let mut looked_at = 0_usize;
    db.each(&sql, (&param, expression(&query), tree), |row| {
        if found.len() == RANKED {
            hits.newest_only = true;
            return Ok(false);
        }
        if looked_at.is_multiple_of(256) && Instant::now() >= end {
            hits.partial = true;
            return Ok(false);
        }
        let content = read_content(get(row, 1)?, get(row, 2)?)?;
        if let Some(occurrences) = Occurrences::count(&query, &content) {
            found.push((get(row, 0)?, occurrences));
        }
        looked_at += 1;
        Ok(true)
    })?;
    let (pks, found): (Vec<i64>, Vec<Occurrences>) = found.into_iter().unzip();
    let mut ranked: Vec<(f64, i64)> = scores(&found).into_iter().zip(pks).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    for (score, pk) in ranked.into_iter().take(limit) {
        hits.hits.extend(hit(db, pk, score)?);
    }
    Ok(hits)
}

/// What the index is asked: that every token stands in the text, in any order.
fn expression(query: &Query) -> String {
    let mut terms = Vec::new();
    for term in &query.terms {
        match term {
            Term::Word(word) => terms.push(format!("\"{word}\"")),
            Term::Prefix(beginning) => terms.push(format!("\"{beginning}\" *")),
            Term::Phrase { tokens, prefix } => {
                terms.extend(tokens.iter().map(|token| format!("\"{token}\"")));
                if let Some(last) = terms.last_mut().filter(|_| *prefix) {
                    last.push_str(" *");
                }
            }
        }
    }
    terms.join(" AND ")
}

fn hit(db: &Db<'_>, pk: i64, score: f64) -> Result<Option<Hit>, StoreError> {
    let sql = "SELECT t.id, n.id, p.id, n.short, n.seq FROM nodes n JOIN trees t ON t.pk = n.tree
        LEFT JOIN nodes p ON p.pk = n.position WHERE n.pk = ?1";
    db.one(sql, [pk], |row| {
        let node = NodeId::from_bytes(id16(row, 1)?);
        Ok(Hit {
            tree: TreeId::from_bytes(id16(row, 0)?),
            node,
            position: optional_id16(row, 2)?.map_or(node.as_position(), PositionId::from_bytes),
            short_id: get(row, 3)?,
            seq: Seq(unsigned(row, 4)?),
            score,
        })
    })
}
