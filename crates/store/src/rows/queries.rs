//! Lists of trees, names of trees and nodes, and the search index.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use loom::{Draft, Millis, NodeId, PositionId, Seq, TreeId, short_id};
use text::bigrams::Query;

use super::cell::kind;
use super::draft;
use super::node::read_content;
use super::reader::limit_of;
use super::trees::{ENTRY, TreeRef, entry, find, read_entry, seen};
use crate::db::{Db, TreeKey, get, id16, optional_id16, unsigned};
use crate::engine::{Row, params};
use crate::error::StoreError;
use crate::listing::{NodeName, TreeEntry, TreeFilter, split_name};
use crate::principal::Principal;
use crate::search::{DraftHit, Hit, Hits, Occurrences, RANKED, SearchScope, scores};

/// Candidates whose texts are read in one go.
const BATCH: usize = 256;

/// Where fewer than one node in so many is a candidate, each is looked up; else all between them are passed over.
const SPARSE: i64 = 4;

/// As [`crate::Store::trees`].
pub(crate) fn trees(
    db: &Db<'_>,
    who: &Principal,
    filter: TreeFilter,
    after: Option<(Millis, TreeId)>,
    limit: usize,
) -> Result<Vec<TreeEntry>, StoreError> {
    let (seen, param) = seen(who);
    let archived = match filter {
        TreeFilter::Current => 0,
        TreeFilter::Archived => 1,
        TreeFilter::All => -1,
    };
    let sql = format!(
        "SELECT {ENTRY} FROM trees t WHERE {seen} AND (?2 = 1 OR t.purged = 0 OR t.title <> ''
            OR EXISTS (SELECT 1 FROM nodes n WHERE n.pk > t.pk << 32 AND n.pk < (t.pk + 1) << 32
                AND octet_length(n.content) > 0)) AND (?3 < 0 OR t.archived = ?3)
            AND (t.updated, t.id) < (?4, ?5)
         ORDER BY t.updated DESC, t.id DESC LIMIT ?6"
    );
    let (updated, id) = after.map_or((i64::MAX, Vec::new()), |(at, id)| (at.0, id.to_bytes().to_vec()));
    let asked = (&param, filter.holds_tombstones(), archived, updated, id, limit_of(limit));
    db.all(&sql, asked, read_entry)
}

/// As [`crate::Store::tree`].
pub(crate) fn tree(db: &Db<'_>, who: &Principal, id: TreeId) -> Result<TreeEntry, StoreError> {
    let tree = find(db, who, id)?;
    entry(db, tree.key)?.ok_or(StoreError::NotFound("tree"))
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
    let columns = "SELECT t.id, n.id, p.id, n.short, t.short FROM nodes n JOIN trees t ON t.pk = n.pk >> 32
        LEFT JOIN nodes p ON p.pk = (n.pk & -4294967296) + n.position";
    let read = |row: &Row<'_>| {
        let node = NodeId::from_bytes(id16(row, 1)?);
        let position = optional_id16(row, 2)?.map_or(node.as_position(), PositionId::from_bytes);
        let name =
            NodeName { tree: TreeId::from_bytes(id16(row, 0)?), node, position, short_id: get(row, 3)? };
        Ok((name, get::<String>(row, 4)?))
    };
    let tree = tree.map(TreeId::to_bytes);
    let mut found = db.all(
        &format!("{columns} WHERE {seen} AND (t.id = ?2 OR ?2 IS NULL) AND n.short = ?3"),
        (&param, tree, short),
        read,
    )?;
    if let Some(id) = id {
        let sql = format!("{columns} WHERE n.id = ?3 AND {seen} AND (t.id = ?2 OR ?2 IS NULL)");
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
    if query.is_empty() {
        return Ok(hits);
    }
    let mut search = Search { db, query: &query, end: Instant::now() + time, found: Vec::new() };
    let all = match scope {
        SearchScope::Tree(tree) => {
            let tree = find(db, who, tree)?;
            search.within(tree.key)?
        }
        SearchScope::All => {
            let trees = seen_trees(db, who)?;
            match search.few(&trees)? {
                Some(keys) => search.look_at_each(&keys)?,
                // More than are ranked: the newest ones are those of the trees that changed last.
                None => search.in_each(&trees)?,
            }
        }
    };
    hits.newest_only = all == Progress::Full;
    hits.partial = all == Progress::OutOfTime;
    let labelled = search.add_labelled(who, scope)?;
    hits.drafts = search.drafts(who, scope, limit)?;
    let (keys, found): (Vec<i64>, Vec<Occurrences>) = search.found.into_iter().unzip();
    let mut ranked: Vec<(f64, i64)> = scores(&found).into_iter().zip(keys).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    for (score, key) in ranked.into_iter().take(limit) {
        let found = hit(db, key, score)?;
        hits.hits.extend(found.map(|hit| Hit { labelled: labelled.contains(&key), ..hit }));
    }
    Ok(hits)
}

/// The trees a principal sees, the one changed last first.
fn seen_trees(db: &Db<'_>, who: &Principal) -> Result<Vec<TreeKey>, StoreError> {
    let (seen, param) = seen(who);
    let sql = format!("SELECT t.pk FROM trees t WHERE {seen} ORDER BY t.updated DESC, t.id DESC");
    db.all(&sql, [&param], |row| Ok(TreeKey(get(row, 0)?)))
}

/// How far a search came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Done,
    /// Until as many were found as are ranked.
    Full,
    OutOfTime,
}

struct Search<'a, 'c> {
    db: &'a Db<'c>,
    query: &'a Query,
    end: Instant,
    /// Keys of nodes, and how often they hold what is searched for.
    found: Vec<(i64, Occurrences)>,
}

impl Search<'_, '_> {
    /// The candidates in some trees, unless they are more than are ranked.
    fn few(&self, trees: &[TreeKey]) -> Result<Option<Vec<i64>>, StoreError> {
        let seen: HashSet<TreeKey> = trees.iter().copied().collect();
        let (mut keys, mut last) = (Vec::new(), None);
        self.db.engine().candidates(self.query, 0, i64::MAX, &mut |row| {
            let key: i64 = get(row, 0)?;
            let tree = TreeKey::of(key);
            // What a tree holds stands together.
            let is_seen = match last {
                Some((of, is_seen)) if of == tree => is_seen,
                _ => seen.contains(&tree),
            };
            last = Some((tree, is_seen));
            keys.extend(is_seen.then_some(key));
            Ok(keys.len() <= RANKED)
        })?;
        Ok((keys.len() <= RANKED).then_some(keys))
    }

    fn in_each(&mut self, trees: &[TreeKey]) -> Result<Progress, StoreError> {
        for tree in trees {
            match self.within(*tree)? {
                Progress::Done => {}
                ended => return Ok(ended),
            }
        }
        Ok(Progress::Done)
    }

    /// Looks at the candidates in a tree, the newest first.
    fn within(&mut self, tree: TreeKey) -> Result<Progress, StoreError> {
        let mut progress = Progress::Done;
        let mut batch = Vec::new();
        self.db.engine().candidates(self.query, tree.first(), tree.last(), &mut |row| {
            batch.push(get(row, 0)?);
            if batch.len() == BATCH {
                progress = self.look_at(&batch)?;
                batch.clear();
            }
            Ok(progress == Progress::Done)
        })?;
        if progress == Progress::Done { self.look_at(&batch) } else { Ok(progress) }
    }

    /// Adds the originals of positions with a tag or a bookmark that meets the query, unless they were found by their
    /// text; returns their keys. Labels are few and short, and are read from the rows: no index holds them.
    fn add_labelled(&mut self, who: &Principal, scope: SearchScope) -> Result<HashSet<i64>, StoreError> {
        let (seen, param) = seen(who);
        let tree = match scope {
            SearchScope::Tree(tree) => find(self.db, who, tree)?.key.0,
            SearchScope::All => 0,
        };
        // `CROSS` keeps SQLite from reading every cell: each tree's stand together by their kinds.
        let sql = format!(
            "SELECT c.tree, c.target, c.tag, c.text FROM trees t CROSS JOIN cells c
             WHERE {seen} AND (t.pk = ?2 OR ?2 = 0) AND c.tree = t.pk AND c.kind IN ({}, {}) AND c.form <> 0",
            kind::BOOKMARK,
            kind::TAG
        );
        let known: HashSet<i64> = self.found.iter().map(|(key, _)| *key).collect();
        let labels = self.db.all(&sql, (&param, tree), |row| {
            let (tree, target): (i64, i64) = (get(row, 0)?, get(row, 1)?);
            let (tag, title): (String, Option<String>) = (get(row, 2)?, get(row, 3)?);
            let label = if tag.is_empty() { title.unwrap_or_default() } else { tag };
            let key = TreeKey(tree).node(target >> 1);
            Ok(Occurrences::count_in(self.query, &label).map(|occurrences| (key, occurrences)))
        })?;
        let mut added = HashSet::new();
        for (key, occurrences) in labels.into_iter().flatten() {
            if !known.contains(&key) && self.found.len() < RANKED && added.insert(key) {
                self.found.push((key, occurrences));
            }
        }
        Ok(added)
    }

    /// Drafts that meet the query.
    fn drafts(&self, who: &Principal, scope: SearchScope, limit: usize) -> Result<Vec<DraftHit>, StoreError> {
        let trees = match scope {
            SearchScope::Tree(tree) => vec![find(self.db, who, tree)?],
            SearchScope::All => {
                let (seen, param) = seen(who);
                let sql = format!(
                    "SELECT t.pk, t.id FROM trees t WHERE {seen} AND EXISTS (SELECT 1 FROM drafts d WHERE d.tree = t.pk)
                     ORDER BY t.pk"
                );
                self.db.all(&sql, [&param], |row| {
                    Ok(TreeRef { key: TreeKey(get(row, 0)?), id: TreeId::from_bytes(id16(row, 1)?) })
                })?
            }
        };
        let mut found = Vec::new();
        for tree in trees {
            if found.len() >= limit || Instant::now() >= self.end {
                break;
            }
            draft::each_of_tree(self.db, tree.key, |draft, _| {
                let (view, slot, Draft { text, .. }) = draft?;
                if found.len() < limit && Occurrences::count_in(self.query, &text).is_some() {
                    found.push(DraftHit { tree: tree.id, view, slot, text });
                }
                Ok(())
            })?;
        }
        Ok(found)
    }

    fn look_at_each(&mut self, keys: &[i64]) -> Result<Progress, StoreError> {
        for batch in keys.chunks(BATCH) {
            match self.look_at(batch)? {
                Progress::Done => {}
                ended => return Ok(ended),
            }
        }
        Ok(Progress::Done)
    }

    /// Reads the texts of keys, given newest first, and keeps the nodes that hold what is searched for.
    fn look_at(&mut self, keys: &[i64]) -> Result<Progress, StoreError> {
        if Instant::now() >= self.end {
            return Ok(Progress::OutOfTime);
        }
        let span = keys.first().zip(keys.last()).map(|(newest, oldest)| (*oldest, *newest));
        let is_dense = |(oldest, newest): &(i64, i64)| newest - oldest < SPARSE * keys.len() as i64;
        // A server's answer is held in memory, with the texts between.
        let dense = span.filter(is_dense).filter(|_| !self.db.engine().is_remote());
        let ranges: Vec<(i64, i64)> = match dense {
            Some(range) => vec![range],
            None => keys.iter().map(|key| (*key, *key)).collect(),
        };
        let sets = ranges.into_iter().map(|(oldest, newest)| params![oldest, newest]);
        let sql =
            "SELECT n.pk, n.content, n.flags FROM nodes n WHERE n.pk BETWEEN ?1 AND ?2 ORDER BY n.pk DESC";
        let mut wanted = keys.iter().peekable();
        let contents = self.db.all_of(sql, sets, |row| {
            let key = get(row, 0)?;
            while wanted.next_if(|next| **next > key).is_some() {}
            if wanted.next_if_eq(&&key).is_none() {
                return Ok(None);
            }
            let content = read_content(row, 1, get(row, 2)?)?;
            Ok(Occurrences::count(self.query, &content).map(|occurrences| (key, occurrences)))
        })?;
        for (key, occurrences) in contents.into_iter().flatten() {
            if self.found.len() == RANKED {
                return Ok(Progress::Full);
            }
            self.found.push((key, occurrences));
        }
        Ok(Progress::Done)
    }
}

fn hit(db: &Db<'_>, key: i64, score: f64) -> Result<Option<Hit>, StoreError> {
    let sql = "SELECT t.id, n.id, p.id, n.short, n.seq FROM nodes n JOIN trees t ON t.pk = n.pk >> 32
        LEFT JOIN nodes p ON p.pk = (n.pk & -4294967296) + n.position WHERE n.pk = ?1";
    db.one(sql, [key], |row| {
        let node = NodeId::from_bytes(id16(row, 1)?);
        Ok(Hit {
            tree: TreeId::from_bytes(id16(row, 0)?),
            node,
            position: optional_id16(row, 2)?.map_or(node.as_position(), PositionId::from_bytes),
            short_id: get(row, 3)?,
            seq: Seq(unsigned(row, 4)?),
            score,
            labelled: false,
        })
    })
}
