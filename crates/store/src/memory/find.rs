//! Finding: trees and nodes by name, nodes by text, events by cursor, bytes by digest.

use std::collections::BTreeSet;

use loom::rows::StoredResponse;
use loom::{Block, Digest, NodeId, NodeRow, TreeId, short_id};
use text::bigrams::Query;

use crate::error::StoreError;
use crate::event::{Cursor, Events};

use crate::listing::{NodeName, TreeEntry, TreeFilter, split_name};
use crate::memory::state::State;
use crate::memory::tree::Tree;
use crate::principal::Principal;
use crate::search::{Hit, Hits, Occurrences, SearchScope, scores};

impl State {
    pub(super) fn trees(&self, who: &Principal, filter: TreeFilter) -> Vec<TreeEntry> {
        let is_left = |tree: &&Tree| filter.holds_tombstones() || !tree.is_tombstones();
        let entries = self.seen(who).filter(is_left).map(Self::entry);
        let mut entries: Vec<_> = entries.filter(|entry| filter.holds(entry.archived)).collect();
        entries.sort_by_key(|entry| std::cmp::Reverse((entry.updated_at, entry.id)));
        entries
    }

    pub(super) fn resolve(&self, who: &Principal, name: &str) -> Result<TreeId, StoreError> {
        let entries: Vec<_> = self.seen(who).map(Self::entry).collect();
        let short = short_id::normalise(name);
        let id: Option<TreeId> = name.parse().ok();
        let by_id = |entry: &&TreeEntry| Some(entry.id) == id || entry.short_id == short;
        let named: Vec<_> = match entries.iter().find(by_id) {
            Some(entry) => vec![entry],
            None => entries.iter().filter(|entry| entry.title == name && !name.is_empty()).collect(),
        };
        one(&named, "tree", |entry| format!("{} {}", entry.short_id, entry.title)).map(|entry| entry.id)
    }

    pub(super) fn resolve_node(
        &self,
        who: &Principal,
        tree: Option<TreeId>,
        name: &str,
    ) -> Result<NodeName, StoreError> {
        let (of, node) = split_name(name);
        let tree = match of {
            Some(of) => Some(self.resolve(who, of)?),
            None => tree,
        };
        let id: Option<NodeId> = node.parse().ok();
        let short = short_id::normalise(node);
        let mut found = Vec::new();
        for candidate in self.seen(who).filter(|candidate| tree.is_none_or(|tree| candidate.row.id == tree)) {
            let rows =
                candidate.nodes.values().filter(|row| Some(row.node.id) == id || row.short_id == short);
            found.extend(rows.map(|row| (candidate, row)));
        }
        let candidate = |found: &(&Tree, &NodeRow)| format!("{}:{}", found.0.short_id, found.1.short_id);
        let found: Vec<_> = found.iter().collect();
        one(&found, "node", |found| candidate(found)).map(|(tree, row)| NodeName {
            tree: tree.row.id,
            node: row.node.id,
            position: row.node.position,
            short_id: row.short_id.clone(),
        })
    }

    pub(super) fn search(
        &self,
        who: &Principal,
        text: &str,
        scope: SearchScope,
        limit: usize,
    ) -> Result<Hits, StoreError> {
        if let SearchScope::Tree(tree) = scope {
            self.tree(who, tree)?;
        }
        let query = Query::parse(text);
        let mut hits = Hits { truncated: query.truncated, ..Hits::default() };
        let mut found = Vec::new();
        for tree in
            self.seen(who).filter(|tree| scope == SearchScope::All || scope == SearchScope::Tree(tree.row.id))
        {
            for row in tree.nodes.values() {
                if let Some(occurrences) = Occurrences::count(&query, &row.node.content) {
                    hits.hits.push(hit(tree.row.id, row));
                    found.push(occurrences);
                }
            }
        }
        for (hit, score) in hits.hits.iter_mut().zip(scores(&found)) {
            hit.score = score;
        }
        hits.hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.node.cmp(&a.node)));
        hits.hits.truncate(limit);
        Ok(hits)
    }

    pub(super) fn events_after(&self, who: &Principal, after: Cursor, limit: usize) -> Events {
        let later = self.events.iter().filter(|event| event.cursor > after && self.sees(who, event.tree));
        let events: Vec<_> = later.take(limit).cloned().collect();
        let end = self.identity().cursor;
        let next = events.last().filter(|_| events.len() == limit).map_or(end, |last| last.cursor);
        Events { events, next: next.max(after), missed: false }
    }

    pub(super) fn response(&self, who: &Principal, node: NodeId) -> Result<StoredResponse, StoreError> {
        let unknown = || StoreError::NotFound("response");
        let found = self.seen(who).find_map(|tree| tree.nodes.get(&node)).filter(|_| who.sees_context());
        let generation = found.and_then(|row| row.node.generation).ok_or_else(unknown)?;
        self.responses.get(&generation).cloned().ok_or_else(unknown)
    }

    /// The digests of the manifests a principal may read.
    fn manifests_seen(&self, who: &Principal) -> BTreeSet<Digest> {
        let seen = self.generations.values().filter(|generation| self.sees(who, generation.row.tree));
        seen.filter(|_| who.sees_context()).map(|generation| generation.row.manifest).collect()
    }

    pub(super) fn manifest(&self, who: &Principal, digest: Digest) -> Result<Vec<u8>, StoreError> {
        let seen = self.manifests_seen(who).contains(&digest);
        let manifest = self.manifests.get(&digest).filter(|_| seen);
        manifest.map(|manifest| manifest.bytes.clone()).ok_or(StoreError::NotFound("manifest"))
    }

    pub(super) fn body(&self, who: &Principal, digest: Digest) -> Result<Vec<u8>, StoreError> {
        let seen = self.manifests_seen(who);
        let mut citing = self.manifests.iter().filter(|(_, manifest)| manifest.bodies.contains(&digest));
        let cited = citing.any(|(manifest, _)| seen.contains(manifest));
        self.bodies.get(&digest).filter(|_| cited).cloned().ok_or(StoreError::NotFound("body"))
    }

    pub(super) fn shows_blob(&self, who: &Principal, digest: Digest) -> bool {
        let mut rows = self.seen(who).flat_map(|tree| tree.nodes.values());
        rows.any(|row| blobs(&row.node.content).contains(&digest))
    }

    pub(super) fn all_blobs(&self) -> Vec<Digest> {
        let rows = self.trees.values().flat_map(|tree| tree.nodes.values());
        let found: BTreeSet<Digest> = rows.flat_map(|row| blobs(&row.node.content)).collect();
        found.into_iter().collect()
    }

    pub(super) fn check(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for tree in self.trees.values() {
            let gap = tree.operations.iter().zip(1..).find(|(record, seq)| record.seq.0 != *seq);
            if let Some((record, _)) = gap {
                problems.push(format!("tree {}: a gap before operation {}", tree.row.id, record.seq));
            }
            for row in tree.nodes.values() {
                if !tree.positions.contains_key(&row.node.position) {
                    problems.push(format!("tree {}: node {} has no position", tree.row.id, row.node.id));
                }
            }
        }
        problems
    }
}

/// The one found; else what to say.
fn one<'a, T>(found: &[&'a T], what: &'static str, name: impl Fn(&T) -> String) -> Result<&'a T, StoreError> {
    match found {
        [] => Err(StoreError::NotFound(what)),
        [one] => Ok(one),
        several => Err(StoreError::Ambiguous(several.iter().map(|found| name(found)).collect())),
    }
}

fn hit(tree: TreeId, row: &NodeRow) -> Hit {
    Hit {
        tree,
        node: row.node.id,
        position: row.node.position,
        short_id: row.short_id.clone(),
        seq: row.seq,
        score: 0.0,
    }
}

/// The blobs a content shows, those within tool results included.
pub(crate) fn blobs(content: &[Block]) -> BTreeSet<Digest> {
    let mut found = BTreeSet::new();
    for block in content {
        match block {
            Block::Image { blob, .. } | Block::Audio { blob, .. } => drop(found.insert(*blob)),
            Block::ToolResult { blocks, .. } => found.extend(blobs(blocks)),
            _ => {}
        }
    }
    found
}
