//! The naive model: plain maps behind one lock, as simple as can be.
//!
//! It is what SQLite is compared with, so it must be right by looking at it, not fast. A write works on a copy of
//! everything and puts it in place when it has succeeded.

mod adopt;
mod apply;
pub(crate) mod find;
mod forget;
mod session;
pub(crate) mod state;
mod tree;
pub(crate) mod work;
mod workspace;

use std::any::Any;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use loom::rows::StoredResponse;
use loom::seal::Seal;
use loom::{Digest, Draft, GenerationId, Millis, NodeId, Plan, TreeId, Trust};
use tokio::sync::watch;

use crate::adopt::{Adopted, Import};
use crate::apply::{Applied, With};
use crate::draft::{self, DraftEdit, DraftName};
use crate::error::{Changed, StoreError};
use crate::event::{Cursor, Events, Happening};
use crate::fence::{Fence, Holder, Lease, Tenure};
use crate::forget::{Forget, Forgotten, Place};
use crate::generation::{Generation, GenerationFilter, SpentAfter, SpentRow, UsageRow};
use crate::job::{Job, JobEnd, JobFilter, JobId, NewJob};
use crate::limits::Limits;
use crate::listing::{NodeName, TreeEntry, TreeFilter};
use crate::principal::Principal;
use crate::search::{Hits, SearchScope};
use crate::session::{Session, SessionFilter, SessionId};
use crate::store::{Backup, Identity, ReadFn, Store, StoreId};
use crate::workspace::WorkspaceRecord;
use state::{State, only_owner};

/// A store in memory, which ends with the process.
#[derive(Debug)]
pub struct MemoryStore {
    state: Mutex<State>,
    limits: Limits,
    newest: watch::Sender<Cursor>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// An empty store with limits of its own. What is read here takes no time, so that those of time do not matter.
    pub fn with_limits(limits: Limits) -> Self {
        // Nobody else has this store, so that an id that is not random is as good.
        let id = StoreId::random().unwrap_or(StoreId([0; 16]));
        Self { state: Mutex::new(State::new(id)), limits, newest: watch::Sender::new(Cursor::default()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of a write or nothing.
    fn write<T>(&self, work: impl FnOnce(&mut State) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut state = self.state();
        let mut next = state.clone();
        let answer = work(&mut next)?;
        *state = next;
        let last = state.identity().cursor;
        drop(state);
        self.newest.send_if_modified(|known| {
            let later = last > *known;
            *known = last.max(*known);
            later
        });
        Ok(answer)
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn limits(&self) -> Limits {
        self.limits
    }

    async fn apply(
        &self,
        who: &Principal,
        tree: TreeId,
        plan: Plan,
        with: With,
    ) -> Result<Applied, StoreError> {
        self.limits.check(&plan.nodes)?;
        self.write(|state| state.apply(who, tree, plan, with))
    }

    async fn adopt(&self, who: &Principal, adopted: Adopted) -> Result<(), StoreError> {
        self.limits.check(adopted.nodes.iter().map(|row| &row.node))?;
        self.write(|state| state.adopt(who, adopted))
    }

    async fn imports(&self, who: &Principal, tree: TreeId) -> Result<Vec<Import>, StoreError> {
        Ok(self.state().tree(who, tree)?.imports.clone())
    }

    async fn set_trust(
        &self,
        who: &Principal,
        tree: TreeId,
        nodes: Vec<(NodeId, Trust)>,
    ) -> Result<u64, StoreError> {
        self.write(|state| state.set_trust(who, tree, &nodes))
    }

    async fn read_whole(
        &self,
        who: &Principal,
        tree: TreeId,
        f: ReadFn,
    ) -> Result<Box<dyn Any + Send>, StoreError> {
        self.read_rows(who, tree, f).await
    }

    async fn read_rows(
        &self,
        who: &Principal,
        tree: TreeId,
        f: ReadFn,
    ) -> Result<Box<dyn Any + Send>, StoreError> {
        let state = self.state();
        let tree = state.tree(who, tree)?;
        f(&state.view(who, tree)).map_err(StoreError::from_row_error)
    }

    async fn trees(&self, who: &Principal, filter: TreeFilter) -> Result<Vec<TreeEntry>, StoreError> {
        Ok(self.state().trees(who, filter))
    }

    async fn tree(&self, who: &Principal, tree: TreeId) -> Result<TreeEntry, StoreError> {
        self.state().tree(who, tree).map(State::entry)
    }

    async fn sessions(&self, who: &Principal, filter: SessionFilter) -> Result<Vec<Session>, StoreError> {
        Ok(self.state().sessions(who, &filter))
    }

    async fn rename_session(&self, who: &Principal, id: &SessionId, name: &str) -> Result<(), StoreError> {
        self.write(|state| state.rename_session(who, id, name.to_owned()))
    }

    async fn archive_session(
        &self,
        who: &Principal,
        id: &SessionId,
        archived: bool,
    ) -> Result<(), StoreError> {
        self.write(|state| state.archive_session(who, id, archived))
    }

    async fn remove_session(&self, who: &Principal, id: &SessionId) -> Result<(), StoreError> {
        self.write(|state| state.remove_session(who, id))
    }

    async fn workspaces(&self, who: &Principal) -> Result<Vec<WorkspaceRecord>, StoreError> {
        self.state().workspaces(who)
    }

    async fn keep_workspace(&self, who: &Principal, record: WorkspaceRecord) -> Result<(), StoreError> {
        self.write(|state| state.keep_workspace(who, record))
    }

    async fn resolve(&self, who: &Principal, name: &str) -> Result<TreeId, StoreError> {
        self.state().resolve(who, name)
    }

    async fn resolve_node(
        &self,
        who: &Principal,
        tree: Option<TreeId>,
        name: &str,
    ) -> Result<NodeName, StoreError> {
        self.state().resolve_node(who, tree, name)
    }

    async fn edit_draft(
        &self,
        who: &Principal,
        name: DraftName,
        expected: Option<u64>,
        edit: DraftEdit,
    ) -> Result<Draft, StoreError> {
        self.write(|state| {
            let tree = state.tree_mut(who, name.tree)?;
            let base = match &edit {
                DraftEdit::Set { base: Some(base), .. } => {
                    let row = tree.nodes.get(base).ok_or(StoreError::NotFound("node"))?;
                    Some((*base, row.node.text().into_owned()))
                }
                _ => None,
            };
            let now = tree.drafts.get(&(name.view.clone(), name.slot)).cloned();
            let timeline = tree.timeline_of(&name.view);
            let Some(draft) = draft::edited(&name, now.clone(), expected, base, edit, timeline)? else {
                return now.ok_or(StoreError::NotFound("draft"));
            };
            tree.drafts.insert((name.view.clone(), name.slot), draft.clone());
            tree.forget_undone(&name.view, name.slot);
            tree.timelines.insert(name.view.clone(), draft::after_keystroke(timeline, Some(&draft)));
            let revision = Some(draft.revision);
            state.happened(name.tree, Happening::Draft { view: name.view, slot: name.slot, revision });
            Ok(draft)
        })
    }

    async fn discard_draft(&self, who: &Principal, name: DraftName, expected: u64) -> Result<(), StoreError> {
        self.write(|state| {
            let tree = state.tree_mut(who, name.tree)?;
            let key = (name.view.clone(), name.slot);
            let revision = tree.drafts.get(&key).map(|draft| draft.revision);
            if revision != Some(expected) {
                let changed = Changed::Draft { view: name.view, slot: name.slot, revision };
                return Err(StoreError::Conflict(vec![changed]));
            }
            tree.drafts.remove(&key);
            tree.forget_undone(&name.view, name.slot);
            let timeline = draft::after_keystroke(tree.timeline_of(&name.view), None);
            tree.timelines.insert(name.view.clone(), timeline);
            state.happened(name.tree, Happening::Draft { view: name.view, slot: name.slot, revision: None });
            Ok(())
        })
    }

    async fn response(&self, who: &Principal, node: NodeId) -> Result<StoredResponse, StoreError> {
        self.state().response(who, node)
    }

    async fn manifest(&self, who: &Principal, digest: Digest) -> Result<Vec<u8>, StoreError> {
        self.state().manifest(who, digest)
    }

    async fn body(&self, who: &Principal, digest: Digest) -> Result<Vec<u8>, StoreError> {
        self.state().body(who, digest)
    }

    async fn blobs(&self, who: &Principal) -> Result<Vec<Digest>, StoreError> {
        only_owner(who, "blobs")?;
        Ok(self.state().all_blobs())
    }

    async fn shows_blob(&self, who: &Principal, digest: Digest) -> Result<bool, StoreError> {
        Ok(self.state().shows_blob(who, digest))
    }

    async fn add_seal(&self, who: &Principal, tree: TreeId, seal: Seal) -> Result<(), StoreError> {
        self.write(|state| {
            let tree = state.tree_mut(who, tree)?;
            let last = tree.operations.last().map(|record| record.seq).unwrap_or_default();
            crate::store::check_seal(tree.row.id, last, &seal)?;
            tree.seals.push(seal);
            Ok(())
        })
    }

    async fn search(
        &self,
        who: &Principal,
        query: &str,
        scope: SearchScope,
        limit: usize,
    ) -> Result<Hits, StoreError> {
        self.state().search(who, query, scope, limit)
    }

    async fn events_after(&self, who: &Principal, after: Cursor, limit: usize) -> Result<Events, StoreError> {
        Ok(self.state().events_after(who, after, limit))
    }

    fn newest(&self) -> Result<watch::Receiver<Cursor>, StoreError> {
        Ok(self.newest.subscribe())
    }

    async fn acquire_lease(
        &self,
        who: &Principal,
        name: &str,
        holder: &Holder,
        ttl: Duration,
        now: Millis,
    ) -> Result<Fence, StoreError> {
        self.write(|state| state.acquire(who, name, holder, ttl, now))
    }

    async fn renew_lease(
        &self,
        who: &Principal,
        name: &str,
        fence: Fence,
        ttl: Duration,
        now: Millis,
    ) -> Result<(), StoreError> {
        self.write(|state| {
            state.current_lease(who, name, fence)?.expires = work::end_of(now, ttl);
            Ok(())
        })
    }

    async fn release_lease(&self, who: &Principal, name: &str, fence: Fence) -> Result<(), StoreError> {
        self.write(|state| {
            state.current_lease(who, name, fence)?.holder = None;
            Ok(())
        })
    }

    async fn lease(&self, who: &Principal, name: &str) -> Result<Option<Lease>, StoreError> {
        Ok(self.state().leases.get(name).filter(|_| who.may_lease(name)).cloned())
    }

    async fn enqueue(&self, who: &Principal, job: NewJob) -> Result<(JobId, bool), StoreError> {
        self.write(|state| state.enqueue(who, job))
    }

    async fn claim(
        &self,
        who: &Principal,
        kinds: &[&str],
        owner: &Holder,
        now: Millis,
    ) -> Result<Option<Job>, StoreError> {
        self.write(|state| state.claim(who, kinds, owner, now))
    }

    async fn finish(
        &self,
        who: &Principal,
        job: JobId,
        tenure: &Tenure,
        end: JobEnd,
    ) -> Result<(), StoreError> {
        self.write(|state| state.finish(who, job, tenure, end))
    }

    async fn jobs(&self, who: &Principal, filter: JobFilter) -> Result<Vec<Job>, StoreError> {
        Ok(self.state().jobs(who, filter))
    }

    async fn generations(
        &self,
        who: &Principal,
        filter: GenerationFilter,
    ) -> Result<Vec<Generation>, StoreError> {
        Ok(self.state().generations(who, &filter))
    }

    async fn take_over(
        &self,
        who: &Principal,
        generation: GenerationId,
        from: &Tenure,
        to: &Holder,
    ) -> Result<Fence, StoreError> {
        self.write(|state| state.take_over(who, generation, from, to))
    }

    async fn usage(
        &self,
        who: &Principal,
        tree: Option<TreeId>,
        since: Millis,
    ) -> Result<Vec<UsageRow>, StoreError> {
        Ok(self.state().usage(who, tree, since))
    }

    async fn spent(
        &self,
        who: &Principal,
        since: Millis,
        after: Option<SpentAfter>,
        limit: usize,
    ) -> Result<Vec<SpentRow>, StoreError> {
        Ok(self.state().spent(who, since, after, limit))
    }

    async fn forget_preview(&self, who: &Principal, what: &Forget) -> Result<Vec<Place>, StoreError> {
        let mut copy = self.state().clone();
        copy.forget(who, what, Millis(0)).map(|forgotten| forgotten.places)
    }

    async fn forget(&self, who: &Principal, what: &Forget, now: Millis) -> Result<Forgotten, StoreError> {
        self.write(|state| state.forget(who, what, now))
    }

    async fn purge(&self, who: &Principal, tree: TreeId, now: Millis) -> Result<Forgotten, StoreError> {
        self.write(|state| state.purge(who, tree, now))
    }

    async fn check(&self, who: &Principal) -> Result<Vec<String>, StoreError> {
        only_owner(who, "check")?;
        Ok(self.state().check())
    }

    async fn backup(&self, _who: &Principal, _to: &Path) -> Result<Backup, StoreError> {
        Err(StoreError::Denied("back up a store in memory"))
    }

    async fn identity(&self, _who: &Principal) -> Result<Identity, StoreError> {
        Ok(self.state().identity())
    }

    async fn renew_identity(&self, who: &Principal) -> Result<StoreId, StoreError> {
        only_owner(who, "renew the identity")?;
        let id = StoreId::random()?;
        self.write(|state| {
            state.id = id;
            state.fence_everything();
            Ok(id)
        })
    }
}
