//! Everything a store in memory holds, and who may see it.

use std::collections::BTreeMap;

use loom::rows::StoredResponse;
use loom::{CellKey, Digest, GenerationId, TreeId};

use crate::error::StoreError;
use crate::event::{Cursor, Event, Happening};
use crate::fence::Lease;
use crate::generation::{Generation, UsageRow};
use crate::job::{Job, JobId};
use crate::listing::TreeEntry;
use crate::memory::tree::{Tree, View};
use crate::principal::Principal;
use crate::session::Session;
use crate::store::{Identity, StoreId};
use crate::workspace::WorkspaceRecord;

/// Manifest bytes, and the bodies they refer to.
#[derive(Debug, Clone, Default)]
pub(super) struct Manifest {
    pub(super) bytes: Vec<u8>,
    pub(super) bodies: Vec<Digest>,
}

/// The whole of a store.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) id: StoreId,
    pub(super) trees: BTreeMap<TreeId, Tree>,
    pub(super) generations: BTreeMap<GenerationId, Generation>,
    pub(super) manifests: BTreeMap<Digest, Manifest>,
    pub(super) bodies: BTreeMap<Digest, Vec<u8>>,
    pub(super) responses: BTreeMap<GenerationId, StoredResponse>,
    pub(super) usage: Vec<UsageRow>,
    pub(super) events: Vec<Event>,
    pub(super) sessions: Vec<Session>,
    pub(super) workspaces: Vec<WorkspaceRecord>,
    pub(super) leases: BTreeMap<String, Lease>,
    pub(super) jobs: BTreeMap<JobId, Job>,
}

impl State {
    pub(super) const fn new(id: StoreId) -> Self {
        Self {
            id,
            trees: BTreeMap::new(),
            generations: BTreeMap::new(),
            manifests: BTreeMap::new(),
            bodies: BTreeMap::new(),
            responses: BTreeMap::new(),
            usage: Vec::new(),
            events: Vec::new(),
            sessions: Vec::new(),
            workspaces: Vec::new(),
            leases: BTreeMap::new(),
            jobs: BTreeMap::new(),
        }
    }

    /// The trees a principal sees.
    pub(super) fn seen<'a>(&'a self, who: &Principal) -> impl Iterator<Item = &'a Tree> {
        self.trees.values().filter(move |tree| who.sees(tree.row.id, tree.session.as_deref()))
    }

    /// Whether a principal sees a tree.
    pub(super) fn sees(&self, who: &Principal, id: TreeId) -> bool {
        self.trees.get(&id).is_some_and(|tree| who.sees(id, tree.session.as_deref()))
    }

    /// A tree the principal sees.
    pub(super) fn tree(&self, who: &Principal, id: TreeId) -> Result<&Tree, StoreError> {
        let tree = self.trees.get(&id).filter(|tree| who.sees(id, tree.session.as_deref()));
        tree.ok_or(StoreError::NotFound("tree"))
    }

    /// A tree the principal may change.
    pub(super) fn tree_mut(&mut self, who: &Principal, id: TreeId) -> Result<&mut Tree, StoreError> {
        let tree = self.trees.get_mut(&id).filter(|tree| who.sees(id, tree.session.as_deref()));
        let tree = tree.ok_or(StoreError::NotFound("tree"))?;
        if !who.may_write() {
            return Err(StoreError::Denied("write"));
        }
        Ok(tree)
    }

    /// The rows of a tree.
    pub(super) fn view<'a>(&'a self, who: &'a Principal, tree: &'a Tree) -> View<'a> {
        View { state: self, who, tree }
    }

    pub(super) fn entry(tree: &Tree) -> TreeEntry {
        let last = tree.operations.last();
        TreeEntry {
            id: tree.row.id,
            short_id: tree.short_id.clone(),
            mode: tree.row.mode,
            title: tree.cell_now(&CellKey::Title).value.as_text().unwrap_or_default().to_owned(),
            archived: tree.cell_now(&CellKey::Archived).value.is_set(),
            purged: tree.purged,
            session: tree.session.clone(),
            nodes: tree.nodes.len() as u64,
            seq: last.map(|record| record.seq).unwrap_or_default(),
            created_at: tree.row.created_at,
            updated_at: last.map_or(tree.row.created_at, |record| record.op.at),
        }
    }

    pub(super) fn happened(&mut self, tree: TreeId, what: Happening) -> Cursor {
        let cursor = Cursor(self.events.len() as u64 + 1);
        self.events.push(Event { cursor, tree, what });
        cursor
    }

    pub(super) fn identity(&self) -> Identity {
        Identity { store: self.id, version: crate::sqlite::VERSION, cursor: Cursor(self.events.len() as u64) }
    }
}

/// Refuses whoever does not see everything: what follows reaches beyond single trees.
pub(crate) fn only_owner(who: &Principal, what: &'static str) -> Result<(), StoreError> {
    if who.sees_all() { Ok(()) } else { Err(StoreError::Denied(what)) }
}
