//! What `store check` looks for in rows that no hash of a tree binds: each reader that can meet damage has its question
//! here.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use loom::{Digest, NodeId, Slot, TreeReader as _};
use text::bigrams::{Query, Term, tokenize};

use super::bytes::unpack;
use super::node::read_content;
use super::reader::{StoredTree, limit_of};
use super::trees::{self, TreeRef};
use super::{cell, draft, import, injections};
use crate::db::{Db, bytes_of, digest, get, id16};
use crate::error::StoreError;
use crate::principal::Principal;

/// Rows read at a time.
const PAGE: usize = 128;

/// Manifests and bodies that are not what their digests say.
pub(crate) fn sent(db: &Db<'_>) -> Result<Vec<String>, StoreError> {
    let mut wrong = Vec::new();
    for (what, table) in [("manifest", "manifests"), ("body", "bodies")] {
        let sql = format!("SELECT digest, bytes FROM {table} WHERE digest > ?1 ORDER BY digest LIMIT ?2");
        let mut after = Vec::new();
        loop {
            let page = db.all(&sql, (&after, limit_of(PAGE)), |row| {
                let key = bytes_of(row, 0)?.to_vec();
                let bytes = unpack(bytes_of(row, 1)?);
                let is_whole = digest(row, 0)
                    .is_ok_and(|named| bytes.as_ref().is_ok_and(|bytes| Digest::of(bytes) == named));
                Ok((key, is_whole))
            })?;
            let named = |key: &[u8]| data_encoding::HEXLOWER.encode(key);
            let damaged = page.iter().filter(|(_, is_whole)| !is_whole);
            wrong.extend(damaged.map(|(key, _)| format!("the {what} {} is damaged", named(key))));
            match page.into_iter().next_back() {
                Some((last, _)) => after = last,
                None => break,
            }
        }
    }
    Ok(wrong)
}

/// What stands beside the nodes of a tree and cannot be read, or does not fit together.
pub(crate) fn beside(db: &Db<'_>, tree: TreeRef) -> Result<Vec<String>, StoreError> {
    let mut wrong = Vec::new();
    draft::each_of_tree(db, tree.key, |found, _| {
        let (view, slot, draft) = found?;
        if !draft.is_whole() {
            let of = match slot {
                Slot::Buffer => "the working buffer".to_owned(),
                Slot::Edit(position) => format!("the pending edit of {position}"),
            };
            wrong.push(format!("tree {}: {of} in view {view} is not what its keystrokes made", tree.id));
        }
        Ok(())
    })?;
    let rows = StoredTree::new(db, tree, &Principal::Owner);
    let root = rows.tree()?.root;
    injections::between(db, tree, root.original(), None)?;
    // What every list and change of the tree reads.
    trees::entry(db, tree.key)?;
    import::imports(db, tree)?;
    let sql = "SELECT view FROM timelines WHERE tree = ?1";
    for view in db.all(sql, [tree.key.0], |row| get::<i64>(row, 0))? {
        trees::timeline(db, tree.key, &cell::view_name(db, tree.key, view)?)?;
    }
    Ok(wrong)
}

/// Nodes that are not found by their own words.
pub(crate) fn unfound(db: &Db<'_>, most: usize) -> Result<Vec<String>, StoreError> {
    let mut expected = 0_u64;
    let indexed = db.engine().index_sum()?;
    if indexed.is_some() {
        each_text(db, |key, words| {
            for word in words {
                expected = expected.wrapping_add(pair_hash(&word, key));
            }
            Ok(true)
        })?;
    }
    // The engine may cut words in another way, which is no damage as long as each node is found.
    let mut wrong = Vec::new();
    if indexed == Some(expected) {
        return Ok(wrong);
    }
    each_text(db, |key, words| {
        let words: Vec<_> = words.iter().collect();
        for some in words.chunks(WORDS) {
            let terms = some.iter().map(|word| Term::Word((*word).clone())).collect();
            let mut is_found = false;
            db.engine().candidates(&Query { terms, truncated: false }, key, key, &mut |_| {
                is_found = true;
                Ok(false)
            })?;
            if !is_found {
                let sql = "SELECT id FROM nodes WHERE pk = ?1";
                let id = db.one(sql, [key], |row| Ok(NodeId::from_bytes(id16(row, 0)?)))?;
                let id = id.map_or_else(String::new, |id| id.to_string());
                wrong.push(format!("the search index does not hold all words of node {id}"));
                break;
            }
        }
        Ok(wrong.len() < most)
    })?;
    Ok(wrong)
}

/// Words that are looked for at once.
const WORDS: usize = 32;

/// A number of a word in a node, to be added to those of others.
pub(crate) fn pair_hash(word: &str, node: i64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (word, node).hash(&mut hasher);
    hasher.finish()
}

/// Calls `visit` with every node that has a text, and its words, until it says no.
fn each_text(
    db: &Db<'_>,
    mut visit: impl FnMut(i64, BTreeSet<String>) -> Result<bool, StoreError>,
) -> Result<(), StoreError> {
    let sql =
        "SELECT pk, content, flags FROM nodes WHERE pk > ?1 AND content IS NOT NULL ORDER BY pk LIMIT ?2";
    let mut after = i64::MIN;
    loop {
        let page = db.all(sql, (after, limit_of(PAGE)), |row| {
            let content = read_content(row, 1, get(row, 2)?)?;
            Ok((get(row, 0)?, crate::search::searched_text(&content).into_owned()))
        })?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = *last;
        for (key, text) in page {
            let words: BTreeSet<String> = tokenize(&text).into_iter().collect();
            if !visit(key, words)? {
                return Ok(());
            }
        }
    }
}
