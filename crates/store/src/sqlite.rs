//! The store on disk: one SQLite file with a write-ahead log, one thread that writes, a few that read.
//!
//! Several processes may have the file open. Each write is an immediate transaction in which numbers are given
//! and cells compared, so that the order of a tree is one for all of them. A commit is synced before it is
//! acknowledged.

mod adopt;
mod apply;
mod bytes;
mod cell_row;
mod closing;
mod codes;
mod db;
mod draft_row;
mod events;
mod faults;
mod find;
mod forget;
mod migrate;
mod node_row;
mod op_row;
mod open;
mod position_row;
mod readers;
mod rows;
mod schema;
mod sent;
mod session_row;
mod shown;
mod tree_row;
mod upkeep;
mod watcher;
mod work;
mod workspace_row;
mod writer;

pub(crate) use schema::VERSION as SCHEMA;

use std::any::Any;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use loom::rows::StoredResponse;
use loom::seal::Seal;
use loom::{Digest, Draft, GenerationId, Millis, NodeId, Plan, TreeId, Trust};
use tokio::sync::watch;

use crate::adopt::{Adopted, Import};
use crate::apply::{Applied, With};
use crate::draft::{DraftEdit, DraftName};
use crate::error::StoreError;
use crate::event::{Cursor, Events};
use crate::fence::{Fence, Holder, Lease, Tenure};
use crate::forget::{Forget, Forgotten, Place};
use crate::generation::{Generation, GenerationFilter, SpentAfter, SpentRow, UsageRow};
use crate::job::{Job, JobEnd, JobFilter, JobId, NewJob};
use crate::limits::Limits;
use crate::listing::{NodeName, TreeEntry, TreeFilter};
use crate::memory::state::only_owner;
use crate::principal::Principal;
use crate::search::{Hits, SearchScope};
use crate::session::{Session, SessionFilter, SessionId};
use crate::store::{Backup, Identity, ReadFn, Store, StoreId};
use crate::workspace::WorkspaceRecord;
use db::Db;
use readers::{Readers, Time};
use watcher::Watcher;
use writer::Writer;

pub use faults::Faults;
pub use open::Options;
pub(crate) use schema::VERSION;

/// A store in one SQLite file.
pub struct SqliteStore {
    found: open::Found,
    limits: Limits,
    newest: watch::Sender<Cursor>,
    /// From the first follower on.
    watcher: Mutex<Option<Watcher>>,
    /// None once the store is being dropped.
    readers: Option<Readers>,
    /// None for reading only.
    writer: Option<Writer>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("found", &self.found).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens a file, or makes it.
    ///
    /// # Errors
    /// As [`SqliteStore::open_with`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, &Options::default())
    }

    /// Opens a file, or makes it. Opening takes the same time however large the file is.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] for another program's file, [`StoreError::SchemaTooNew`] for a newer program's,
    /// [`StoreError::MigrationNeeded`] for an older one's unless `may_migrate` is set, [`StoreError::Damaged`].
    pub fn open_with(path: &Path, options: &Options) -> Result<Self, StoreError> {
        let found = open::prepare(path, options)?;
        let newest = watch::Sender::new(Cursor::default());
        let writer =
            if found.read_only { None } else { Some(Writer::start(&found, options, newest.clone())?) };
        let readers = Some(Readers::start(&found, options.readers, options.limits.read)?);
        Ok(Self { found, limits: options.limits, newest, watcher: Mutex::new(None), readers, writer })
    }

    /// The bytes of the write-ahead log, if they are more than [`Limits::wal`]: a read that does not end holds it.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the log cannot be looked at.
    pub fn long_log(&self) -> Result<Option<u64>, StoreError> {
        let mut name = self.found.path.clone().into_os_string();
        name.push("-wal");
        match std::fs::symlink_metadata(&name) {
            Ok(metadata) => Ok(Some(metadata.len()).filter(|bytes| *bytes > self.limits.wal)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io("look at the store's log", error)),
        }
    }

    /// Whether writes are refused.
    pub const fn is_read_only(&self) -> bool {
        self.found.read_only
    }

    async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        self.readers()?.run(Time::Bounded, work).await
    }

    fn readers(&self) -> Result<&Readers, StoreError> {
        self.readers.as_ref().ok_or(StoreError::Closed)
    }

    async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        self.writer()?.run(work).await
    }

    fn writer(&self) -> Result<&Writer, StoreError> {
        self.writer.as_ref().ok_or(StoreError::ReadOnly)
    }

    /// Removes what a forget or purge left in the file's pages.
    async fn scrub(&self) -> Result<(), StoreError> {
        self.writer()?.run_alone(forget::scrub).await
    }
}

#[async_trait]
impl Store for SqliteStore {
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
        let who = who.clone();
        self.write(move |db| apply::apply(db, &who, tree, &plan, &with)).await
    }

    async fn adopt(&self, who: &Principal, adopted: Adopted) -> Result<(), StoreError> {
        self.limits.check(adopted.nodes.iter().map(|row| &row.node))?;
        let who = who.clone();
        self.write(move |db| adopt::adopt(db, &who, &adopted)).await
    }

    async fn imports(&self, who: &Principal, tree: TreeId) -> Result<Vec<Import>, StoreError> {
        let who = who.clone();
        self.read(move |db| adopt::imports(db, tree_row::find(db, &who, tree)?)).await
    }

    async fn set_trust(
        &self,
        who: &Principal,
        tree: TreeId,
        nodes: Vec<(NodeId, Trust)>,
    ) -> Result<u64, StoreError> {
        let who = who.clone();
        self.write(move |db| adopt::set_trust(db, &who, tree, &nodes)).await
    }

    async fn read_rows(
        &self,
        who: &Principal,
        tree: TreeId,
        f: ReadFn,
    ) -> Result<Box<dyn Any + Send>, StoreError> {
        let who = who.clone();
        self.read(move |db| rows::run(db, &who, tree, f)).await
    }

    async fn read_whole(
        &self,
        who: &Principal,
        tree: TreeId,
        f: ReadFn,
    ) -> Result<Box<dyn Any + Send>, StoreError> {
        let who = who.clone();
        self.readers()?.run(Time::Unbounded, move |db| rows::run(db, &who, tree, f)).await
    }

    async fn trees(&self, who: &Principal, filter: TreeFilter) -> Result<Vec<TreeEntry>, StoreError> {
        let who = who.clone();
        self.read(move |db| find::trees(db, &who, filter)).await
    }

    async fn tree(&self, who: &Principal, tree: TreeId) -> Result<TreeEntry, StoreError> {
        let who = who.clone();
        self.read(move |db| find::tree(db, &who, tree)).await
    }

    async fn sessions(&self, who: &Principal, filter: SessionFilter) -> Result<Vec<Session>, StoreError> {
        let who = who.clone();
        self.read(move |db| session_row::list(db, &who, &filter)).await
    }

    async fn rename_session(&self, who: &Principal, id: &SessionId, name: &str) -> Result<(), StoreError> {
        let (who, id, name) = (who.clone(), id.clone(), name.to_owned());
        self.write(move |db| session_row::rename(db, &who, &id, &name)).await
    }

    async fn archive_session(
        &self,
        who: &Principal,
        id: &SessionId,
        archived: bool,
    ) -> Result<(), StoreError> {
        let (who, id) = (who.clone(), id.clone());
        self.write(move |db| session_row::archive(db, &who, &id, archived)).await
    }

    async fn remove_session(&self, who: &Principal, id: &SessionId) -> Result<(), StoreError> {
        let (who, id) = (who.clone(), id.clone());
        self.write(move |db| session_row::remove(db, &who, &id)).await
    }

    async fn workspaces(&self, who: &Principal) -> Result<Vec<WorkspaceRecord>, StoreError> {
        let who = who.clone();
        self.read(move |db| workspace_row::list(db, &who)).await
    }

    async fn keep_workspace(&self, who: &Principal, record: WorkspaceRecord) -> Result<(), StoreError> {
        let who = who.clone();
        self.write(move |db| workspace_row::keep(db, &who, &record)).await
    }

    async fn resolve(&self, who: &Principal, name: &str) -> Result<TreeId, StoreError> {
        let (who, name) = (who.clone(), name.to_owned());
        self.read(move |db| find::resolve(db, &who, &name)).await
    }

    async fn resolve_node(
        &self,
        who: &Principal,
        tree: Option<TreeId>,
        name: &str,
    ) -> Result<NodeName, StoreError> {
        let (who, name) = (who.clone(), name.to_owned());
        self.read(move |db| find::resolve_node(db, &who, tree, &name)).await
    }

    async fn edit_draft(
        &self,
        who: &Principal,
        name: DraftName,
        expected: Option<u64>,
        edit: DraftEdit,
    ) -> Result<Draft, StoreError> {
        let who = who.clone();
        self.write(move |db| apply::edit_draft(db, &who, &name, expected, &edit)).await
    }

    async fn discard_draft(&self, who: &Principal, name: DraftName, expected: u64) -> Result<(), StoreError> {
        let who = who.clone();
        self.write(move |db| apply::discard_draft(db, &who, &name, expected)).await
    }

    async fn response(&self, who: &Principal, node: NodeId) -> Result<StoredResponse, StoreError> {
        let who = who.clone();
        self.read(move |db| sent::response(db, &who, node)).await
    }

    async fn manifest(&self, who: &Principal, digest: Digest) -> Result<Vec<u8>, StoreError> {
        let who = who.clone();
        self.read(move |db| sent::manifest(db, &who, digest)).await
    }

    async fn body(&self, who: &Principal, digest: Digest) -> Result<Vec<u8>, StoreError> {
        let who = who.clone();
        self.read(move |db| sent::body(db, &who, digest)).await
    }

    async fn blobs(&self, who: &Principal) -> Result<Vec<Digest>, StoreError> {
        only_owner(who, "blobs")?;
        self.read(sent::all_blobs).await
    }

    async fn shows_blob(&self, who: &Principal, digest: Digest) -> Result<bool, StoreError> {
        let who = who.clone();
        self.read(move |db| sent::shows_blob(db, &who, digest)).await
    }

    async fn add_seal(&self, who: &Principal, tree: TreeId, seal: Seal) -> Result<(), StoreError> {
        let who = who.clone();
        self.write(move |db| tree_row::add_seal(db, &who, tree, &seal)).await
    }

    async fn search(
        &self,
        who: &Principal,
        query: &str,
        scope: SearchScope,
        limit: usize,
    ) -> Result<Hits, StoreError> {
        let (who, query, time) = (who.clone(), query.to_owned(), self.limits.search);
        self.read(move |db| find::search(db, &who, &query, scope, limit, time)).await
    }

    async fn events_after(&self, who: &Principal, after: Cursor, limit: usize) -> Result<Events, StoreError> {
        let who = who.clone();
        self.read(move |db| events::after(db, &who, after, limit)).await
    }

    fn newest(&self) -> Result<watch::Receiver<Cursor>, StoreError> {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if watcher.is_none() {
            *watcher = Some(Watcher::start(&self.found, self.newest.clone())?);
        }
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
        let (who, name, holder) = (who.clone(), name.to_owned(), holder.clone());
        self.write(move |db| work::acquire(db, &who, &name, &holder, ttl, now)).await
    }

    async fn renew_lease(
        &self,
        who: &Principal,
        name: &str,
        fence: Fence,
        ttl: Duration,
        now: Millis,
    ) -> Result<(), StoreError> {
        let (who, name) = (who.clone(), name.to_owned());
        self.write(move |db| work::renew(db, &who, &name, fence, ttl, now)).await
    }

    async fn release_lease(&self, who: &Principal, name: &str, fence: Fence) -> Result<(), StoreError> {
        let (who, name) = (who.clone(), name.to_owned());
        self.write(move |db| work::release(db, &who, &name, fence)).await
    }

    async fn lease(&self, who: &Principal, name: &str) -> Result<Option<Lease>, StoreError> {
        let (who, name) = (who.clone(), name.to_owned());
        self.read(move |db| work::lease(db, &who, &name)).await
    }

    async fn enqueue(&self, who: &Principal, job: NewJob) -> Result<(JobId, bool), StoreError> {
        let who = who.clone();
        self.write(move |db| work::enqueue(db, &who, &job)).await
    }

    async fn claim(
        &self,
        who: &Principal,
        kinds: &[&str],
        owner: &Holder,
        now: Millis,
    ) -> Result<Option<Job>, StoreError> {
        let (who, owner) = (who.clone(), owner.clone());
        let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        self.write(move |db| work::claim(db, &who, &kinds, &owner, now)).await
    }

    async fn finish(
        &self,
        who: &Principal,
        job: JobId,
        tenure: &Tenure,
        end: JobEnd,
    ) -> Result<(), StoreError> {
        let (who, tenure) = (who.clone(), tenure.clone());
        self.write(move |db| work::finish(db, &who, job, &tenure, &end)).await
    }

    async fn jobs(&self, who: &Principal, filter: JobFilter) -> Result<Vec<Job>, StoreError> {
        let who = who.clone();
        self.read(move |db| work::jobs(db, &who, filter)).await
    }

    async fn generations(
        &self,
        who: &Principal,
        filter: GenerationFilter,
    ) -> Result<Vec<Generation>, StoreError> {
        let who = who.clone();
        self.read(move |db| sent::generations(db, &who, &filter)).await
    }

    async fn take_over(
        &self,
        who: &Principal,
        generation: GenerationId,
        from: &Tenure,
        to: &Holder,
    ) -> Result<Fence, StoreError> {
        let (who, from, to) = (who.clone(), from.clone(), to.clone());
        self.write(move |db| sent::take_over(db, &who, generation, &from, &to)).await
    }

    async fn usage(
        &self,
        who: &Principal,
        tree: Option<TreeId>,
        since: Millis,
    ) -> Result<Vec<UsageRow>, StoreError> {
        let who = who.clone();
        self.read(move |db| sent::usage(db, &who, tree, since)).await
    }

    async fn spent(
        &self,
        who: &Principal,
        since: Millis,
        after: Option<SpentAfter>,
        limit: usize,
    ) -> Result<Vec<SpentRow>, StoreError> {
        let who = who.clone();
        self.read(move |db| sent::spent(db, &who, since, after, limit)).await
    }

    async fn forget_preview(&self, who: &Principal, what: &Forget) -> Result<Vec<Place>, StoreError> {
        let (who, what) = (who.clone(), what.clone());
        let preview = move |conn: &rusqlite::Connection| {
            let caches = db::Caches::default();
            let faults = Faults::default();
            conn.execute_batch("BEGIN IMMEDIATE").map_err(db::failure)?;
            // What would go is found by letting it go, and taking that back.
            let gone = forget::forget(&Db::writing(conn, &caches, &faults), &who, &what, Millis(0));
            conn.execute_batch("ROLLBACK").map_err(db::failure)?;
            gone.map(|forgotten| forgotten.places)
        };
        self.writer()?.run_alone(preview).await
    }

    async fn forget(&self, who: &Principal, what: &Forget, now: Millis) -> Result<Forgotten, StoreError> {
        let (who, what) = (who.clone(), what.clone());
        let forgotten = self.write(move |db| forget::forget(db, &who, &what, now)).await?;
        self.scrub().await?;
        Ok(forgotten)
    }

    async fn purge(&self, who: &Principal, tree: TreeId, now: Millis) -> Result<Forgotten, StoreError> {
        let who = who.clone();
        let forgotten = self.write(move |db| forget::purge(db, &who, tree, now)).await?;
        self.scrub().await?;
        Ok(forgotten)
    }

    async fn check(&self, who: &Principal) -> Result<Vec<String>, StoreError> {
        only_owner(who, "check")?;
        self.readers()?.run(Time::Unbounded, upkeep::check).await
    }

    async fn backup(&self, who: &Principal, to: &Path) -> Result<Backup, StoreError> {
        only_owner(who, "back up")?;
        let (found, to) = (self.found.clone(), to.to_owned());
        self.readers()?.run(Time::Unbounded, move |_| upkeep::copy(&found, &to)).await
    }

    async fn identity(&self, _who: &Principal) -> Result<Identity, StoreError> {
        self.read(upkeep::identity).await
    }

    async fn renew_identity(&self, who: &Principal) -> Result<StoreId, StoreError> {
        only_owner(who, "renew the identity")?;
        let id = StoreId::random()?;
        self.write(move |db| upkeep::renew(db, id)).await?;
        Ok(id)
    }
}
