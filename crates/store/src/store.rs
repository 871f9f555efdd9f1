//! The store: trees and what belongs to them, in the tables of an engine.
//!
//! Several processes may use it at once. Each write is one transaction in which numbers are given and cells
//! compared, so that the order of a tree is one for all of them. A commit is durable before it is acknowledged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use loom::attribution::Attribution;
use loom::reader::StoredResponse;
use loom::seal::Seal;
use loom::{Digest, Draft, GenerationId, Millis, NodeId, Plan, RowError, Seq, TreeId, TreeReader, Trust};
use tokio::sync::watch;

use crate::apply::{Applied, AttachedWrites};
use crate::db::Db;
use crate::draft::{DraftEdit, DraftName};
use crate::engine::StatementCounts;
use crate::error::{ServerError, StoreError};
use crate::event::{Cursor, Events};
use crate::fence::{Claim, Fence, Lease, LeaseOwner};
use crate::follow::{SharedEvents, SharedPage};
use crate::forget::{Forget, Forgotten, ForgottenBlob, ForgottenPlace, UnfinishedRemoval};
use crate::generation::{Generation, GenerationFilter, Reservation, Spending, SpentAfter, SpentRow};
use crate::import_tree::{Import, ImportedTree};
use crate::job::{Job, JobEnd, JobFilter, JobId, NewJob};
use crate::limits::StoreLimits;
use crate::listing::{NodeName, TreeEntry, TreeFilter};
use crate::principal::{Principal, only_owner};
use crate::question::{NewAnswer, NewQuestion, Question, QuestionId};
use crate::rows::forget::Forgetting;
use crate::rows::{
    attributions, commit, events, forget, generations, import, jobs, leases, maintenance, queries, questions,
    reader, repair, sessions, trees, workspaces,
};
use crate::search::{Hits, SearchScope};
use crate::server::ServerOptions;
use crate::session::{Session, SessionFilter, SessionId};
use crate::sqlite::{self, Options};
use crate::workspace::WorkspaceRecord;

/// A store in one SQLite file, in memory, or in a PostgreSQL database.
///
/// Every method takes the principal that asks. What it may not see is [`StoreError::NotFound`], as if it were not
/// there. Writes are durable (power loss included) when they return, drafts excepted, which survive the death of
/// the process. Dropping a future abandons the answer, never half of the work: a write that was queued is done
/// whole or not at all.
pub struct Store {
    engine: Engine,
    limits: StoreLimits,
    /// How far the store's clock goes ahead of the engine's, in ms: not at all, but in tests.
    ahead: AtomicI64,
    events: SharedEvents,
}

enum Engine {
    Sqlite(Box<sqlite::Database>),
    #[cfg(feature = "postgres")]
    Postgres(crate::postgres::Database),
}

/// Nodes whose authors are kept in one transaction.
const ATTRIBUTIONS: usize = 512;

/// An answer of the store to come, on the heap: plans and imports are large, and futures hold futures.
pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Whether a read may take as long as it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    /// It ends within [`StoreLimits::read`].
    Bounded,
    /// An integrity check or a copy of everything: where others are not waited for.
    Unbounded,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match &self.engine {
            Engine::Sqlite(database) => database.path().display().to_string(),
            #[cfg(feature = "postgres")]
            Engine::Postgres(database) => database.server().to_owned(),
        };
        f.debug_struct("Store").field("at", &name).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens a file, or makes it.
    ///
    /// # Errors
    /// As [`Store::open_with`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, &Options::default())
    }

    /// Opens a file, or makes it. Opening takes the same time however large the file is.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] for another program's file, [`StoreError::SchemaTooNew`] for a newer program's,
    /// [`StoreError::MigrationNeeded`] for an older one's unless `may_migrate` is set, [`StoreError::Damaged`].
    pub fn open_with(path: &Path, options: &Options) -> Result<Self, StoreError> {
        let engine = Engine::Sqlite(Box::new(sqlite::Database::open(path, options)?));
        Ok(Self::new(engine, options.limits))
    }

    /// An empty store in memory, for previews and tests. It ends with the value, has no threads, and does its work on
    /// the thread that asks.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] when it cannot be made.
    pub fn in_memory() -> Result<Self, StoreError> {
        Self::in_memory_with(StoreLimits::default())
    }

    /// As [`Store::in_memory`], with limits.
    ///
    /// # Errors
    /// As [`Store::in_memory`].
    pub fn in_memory_with(limits: StoreLimits) -> Result<Self, StoreError> {
        let options = Options { limits, ..Options::default() };
        let engine = Engine::Sqlite(Box::new(sqlite::Database::in_memory(&options)?));
        Ok(Self::new(engine, limits))
    }

    /// Connects to a PostgreSQL database, and makes the tables in one that has none.
    ///
    /// # Errors
    /// [`StoreError::Server`] names a server that is absent, too old or does not let us in, another home's database,
    /// and a program built without the feature `postgres`; [`StoreError::Foreign`] another program's tables.
    pub fn connect(options: &ServerOptions) -> Result<Self, StoreError> {
        #[cfg(feature = "postgres")]
        {
            let engine = Engine::Postgres(crate::postgres::Database::connect(options)?);
            Ok(Self::new(engine, options.limits))
        }
        #[cfg(not(feature = "postgres"))]
        {
            let _ = options;
            Err(ServerError::NotBuilt.into())
        }
    }

    fn new(engine: Engine, limits: StoreLimits) -> Self {
        Self { engine, limits, ahead: AtomicI64::new(0), events: SharedEvents::new() }
    }

    /// Sets the clock that leases and jobs go by ahead of the engine's own, for tests.
    pub fn advance_clock(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.ahead.fetch_add(by, Ordering::Relaxed);
    }

    /// The bytes of the write-ahead log, if they are more than [`StoreLimits::wal`]: a read that does not end holds it.
    /// A server looks after its own.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the log cannot be looked at.
    pub fn long_log(&self) -> Result<Option<u64>, StoreError> {
        match &self.engine {
            Engine::Sqlite(database) => database.long_log(self.limits.wal),
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => Ok(None),
        }
    }

    pub fn is_read_only(&self) -> bool {
        match &self.engine {
            Engine::Sqlite(database) => database.is_read_only(),
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => false,
        }
    }

    /// What may still hold what was forgotten, and is beyond the reach of this program.
    pub const fn beyond_reach(&self) -> Option<&'static str> {
        match &self.engine {
            Engine::Sqlite(_) => None,
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => Some(crate::postgres::BEYOND_REACH),
        }
    }

    /// Round trips to a server since the store was opened; none where there is no server.
    pub fn round_trips(&self) -> Option<u64> {
        match &self.engine {
            Engine::Sqlite(_) => None,
            #[cfg(feature = "postgres")]
            Engine::Postgres(database) => Some(database.round_trips()),
        }
    }

    /// What the engine was asked since the store was opened.
    pub fn statement_counts(&self) -> StatementCounts {
        match &self.engine {
            Engine::Sqlite(database) => database.statement_counts(),
            #[cfg(feature = "postgres")]
            Engine::Postgres(database) => StatementCounts { statements: database.round_trips(), steps: 0 },
        }
    }

    /// Events that were read for all followers of the process.
    pub(crate) const fn shared_events(&self) -> &SharedEvents {
        &self.events
    }

    /// Events behind a cursor with the sessions of their trees, whoever may see them; none: only how far they go.
    pub(crate) fn read_events(&self, after: Option<Cursor>, limit: usize) -> Answer<'_, SharedPage> {
        self.read(move |db| events::shared(db, after, limit))
    }

    pub(crate) fn read<T, F>(&self, work: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        self.read_within(Time::Bounded, work)
    }

    /// Runs a read in a snapshot of its own.
    fn read_within<T, F>(&self, time: Time, work: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let ahead = self.ahead.load(Ordering::Relaxed);
        let work = move |db: &Db<'_>| {
            db.set_ahead(ahead);
            work(db)
        };
        match &self.engine {
            Engine::Sqlite(database) => database.read(time, work),
            #[cfg(feature = "postgres")]
            Engine::Postgres(database) => database.read(time, work),
        }
    }

    /// Runs a write in a transaction of its own, whose events are numbered last. It may be done again.
    pub(crate) fn write<T, F>(&self, mut work: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnMut(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let ahead = self.ahead.load(Ordering::Relaxed);
        let work = move |db: &Db<'_>| {
            db.set_ahead(ahead);
            let done = work(db)?;
            events::number(db)?;
            Ok(done)
        };
        match &self.engine {
            Engine::Sqlite(database) => database.write(work),
            #[cfg(feature = "postgres")]
            Engine::Postgres(database) => database.write(work),
        }
    }

    /// Removes what a forget or purge left behind its rows.
    async fn scrub(&self) -> Result<(), StoreError> {
        match &self.engine {
            Engine::Sqlite(database) => database.scrub().await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(database) => database.vacuum().await,
        }
    }
}

impl Store {
    /// The limits it was opened with.
    pub fn limits(&self) -> StoreLimits {
        self.limits
    }

    /// Applies a plan and the rows that go with it, in one transaction. An empty plan with rows is allowed.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] names cells and drafts that are not as the plan expects; [`StoreError::Fenced`]
    /// when a guard or an outcome's claim no longer holds. Nothing is written then.
    pub async fn apply(
        &self,
        who: &Principal,
        tree: TreeId,
        plan: Plan,
        with: AttachedWrites,
    ) -> Result<Applied, StoreError> {
        self.limits.check(&plan.nodes)?;
        let who = who.clone();
        self.write(move |db| commit::apply(db, &who, tree, &plan, &with)).await
    }

    /// Inserts a tree as it is, under its own ids and numbers, in one transaction; its log goes on behind its last
    /// operation. The cells are those the log leaves; no timeline, draft or running work comes along.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when the tree, or a node or generation of it, is here;
    /// [`StoreError::Malformed`] when its rows and its log do not fit together. Nothing is written then.
    pub async fn import_tree(&self, who: &Principal, adopted: ImportedTree) -> Result<(), StoreError> {
        self.limits.check(adopted.nodes.iter().map(|row| &row.node))?;
        let who = who.clone();
        self.write(move |db| import::import_tree(db, &who, &adopted)).await
    }

    /// What was imported into a tree, oldest first.
    pub async fn imports(&self, who: &Principal, tree: TreeId) -> Result<Vec<Import>, StoreError> {
        let who = who.clone();
        self.read(move |db| import::imports(db, trees::find(db, &who, tree)?)).await
    }

    /// Sets how far imported nodes are believed; those that are not `outside` any more stay as they are. Returns
    /// how many were changed.
    ///
    /// # Errors
    /// [`StoreError::Malformed`] names a node that no import brought in: nothing else is ever raised.
    pub async fn set_trust(
        &self,
        who: &Principal,
        tree: TreeId,
        nodes: Vec<(NodeId, Trust)>,
    ) -> Result<u64, StoreError> {
        let who = who.clone();
        self.write(move |db| import::set_trust(db, &who, tree, &nodes)).await
    }

    /// Runs a function over the rows of a tree, within one snapshot, on a thread of the store.
    ///
    /// # Errors
    /// What the function returns; [`StoreError::TooLong`] after [`StoreLimits::read`].
    pub async fn read_rows<T, F>(&self, who: &Principal, tree: TreeId, f: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&dyn TreeReader) -> Result<T, RowError> + Send + 'static,
    {
        let who = who.clone();
        self.read(move |db| reader::run(db, &who, tree, f)).await
    }

    /// As [`Store::read_rows`], however long it takes: for what has to read a whole tree as of one moment. The log
    /// of the store grows meanwhile.
    ///
    /// # Errors
    /// What the function returns.
    pub async fn read_whole<T, F>(&self, who: &Principal, tree: TreeId, f: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&dyn TreeReader) -> Result<T, RowError> + Send + 'static,
    {
        let who = who.clone();
        self.read_within(Time::Unbounded, move |db| reader::run(db, &who, tree, f)).await
    }

    /// The trees behind a place ([`TreeEntry::place`]), at most `limit`, the one changed last first.
    pub async fn trees(
        &self,
        who: &Principal,
        filter: TreeFilter,
        after: Option<(Millis, TreeId)>,
        limit: usize,
    ) -> Result<Vec<TreeEntry>, StoreError> {
        let who = who.clone();
        self.read(move |db| queries::trees(db, &who, filter, after, limit)).await
    }

    pub async fn tree(&self, who: &Principal, tree: TreeId) -> Result<TreeEntry, StoreError> {
        let who = who.clone();
        self.read(move |db| queries::tree(db, &who, tree)).await
    }

    /// Sessions behind a place ([`Session::place`]) with their trees, at most `limit`, the one something was last done
    /// in first. [`AttachedWrites::begins`] begins one.
    pub async fn sessions(
        &self,
        who: &Principal,
        filter: SessionFilter,
        after: Option<(Millis, SessionId)>,
        limit: usize,
    ) -> Result<Vec<Session>, StoreError> {
        let who = who.clone();
        self.read(move |db| sessions::list(db, &who, &filter, after.clone(), limit)).await
    }

    /// A session with its trees, archived or not; none where there is none for this principal.
    pub async fn session(&self, who: &Principal, id: &SessionId) -> Result<Option<Session>, StoreError> {
        let (who, id) = (who.clone(), id.clone());
        self.read(move |db| sessions::one(db, &who, &id)).await
    }

    /// Gives a session another name.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when another one of its workspace has it.
    pub async fn rename_session(
        &self,
        who: &Principal,
        id: &SessionId,
        name: &str,
    ) -> Result<(), StoreError> {
        let (who, id, name) = (who.clone(), id.clone(), name.to_owned());
        self.write(move |db| sessions::rename(db, &who, &id, &name)).await
    }

    /// Archives a session, or takes it out of the archive. Its trees stay as they are.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when another one has its name by now.
    pub async fn archive_session(
        &self,
        who: &Principal,
        id: &SessionId,
        archived: bool,
    ) -> Result<(), StoreError> {
        let (who, id) = (who.clone(), id.clone());
        self.write(move |db| sessions::archive(db, &who, &id, archived)).await
    }

    /// Writes how a session is gone on with. The store does not look into it.
    pub async fn set_session_settings(
        &self,
        who: &Principal,
        id: &SessionId,
        settings: &str,
    ) -> Result<(), StoreError> {
        let (who, id, settings) = (who.clone(), id.clone(), settings.to_owned());
        self.write(move |db| sessions::set_settings(db, &who, &id, &settings)).await
    }

    /// Removes a session whose trees are all purged.
    ///
    /// # Errors
    /// [`StoreError::Exists`] while one of its trees is there.
    pub async fn remove_session(&self, who: &Principal, id: &SessionId) -> Result<(), StoreError> {
        let (who, id) = (who.clone(), id.clone());
        self.write(move |db| sessions::remove(db, &who, &id)).await
    }

    /// What the owner said about workspaces behind a path, at most `limit`, ordered by the bytes of their paths.
    ///
    /// # Errors
    /// [`StoreError::Denied`] to whoever does not see everything.
    pub async fn workspaces(
        &self,
        who: &Principal,
        after: Option<PathBuf>,
        limit: usize,
    ) -> Result<Vec<WorkspaceRecord>, StoreError> {
        let who = who.clone();
        self.read(move |db| workspaces::list(db, &who, after.as_deref(), limit)).await
    }

    /// Keeps an answer about a workspace; one about the same path before it is gone.
    ///
    /// # Errors
    /// [`StoreError::Denied`] to whoever does not see everything.
    pub async fn keep_workspace(&self, who: &Principal, record: WorkspaceRecord) -> Result<(), StoreError> {
        let who = who.clone();
        self.write(move |db| workspaces::keep(db, &who, &record)).await
    }

    /// The tree a person names by id, short id or exact title.
    ///
    /// # Errors
    /// [`StoreError::Ambiguous`] with the candidates' short ids and titles.
    pub async fn resolve(&self, who: &Principal, name: &str) -> Result<TreeId, StoreError> {
        let (who, name) = (who.clone(), name.to_owned());
        self.read(move |db| queries::resolve(db, &who, &name)).await
    }

    /// The node a person names by id, by short id (in `tree`, if given), or as `TREE:SHORT`.
    ///
    /// # Errors
    /// [`StoreError::Ambiguous`] when the short id stands in several trees and none is named.
    pub async fn resolve_node(
        &self,
        who: &Principal,
        tree: Option<TreeId>,
        name: &str,
    ) -> Result<NodeName, StoreError> {
        let (who, name) = (who.clone(), name.to_owned());
        self.read(move |db| queries::resolve_node(db, &who, tree, &name)).await
    }

    /// Changes a draft that has revision `expected` (none: that does not exist). Nothing can be redone after it
    /// in that view. Returns the draft as it is now.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] with the revision there is; [`StoreError::Splice`] when the text to replace does
    /// not stand there.
    pub async fn edit_draft(
        &self,
        who: &Principal,
        name: DraftName,
        expected: Option<u64>,
        edit: DraftEdit,
    ) -> Result<Draft, StoreError> {
        let who = who.clone();
        self.write(move |db| commit::edit_draft(db, &who, &name, expected, &edit)).await
    }

    /// Removes a draft that has revision `expected`.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] with the revision there is.
    pub async fn discard_draft(
        &self,
        who: &Principal,
        name: DraftName,
        expected: u64,
    ) -> Result<(), StoreError> {
        let who = who.clone();
        self.write(move |db| commit::discard_draft(db, &who, &name, expected)).await
    }

    /// The response a node was made of.
    pub async fn response(&self, who: &Principal, node: NodeId) -> Result<StoredResponse, StoreError> {
        let who = who.clone();
        self.read(move |db| generations::response(db, &who, node)).await
    }

    /// A manifest, by its digest.
    pub async fn manifest(&self, who: &Principal, digest: Digest) -> Result<Vec<u8>, StoreError> {
        let who = who.clone();
        self.read(move |db| generations::manifest(db, &who, digest)).await
    }

    /// A body that a manifest refers to, by its digest.
    pub async fn body(&self, who: &Principal, digest: Digest) -> Result<Vec<u8>, StoreError> {
        let who = who.clone();
        self.read(move |db| generations::body(db, &who, digest)).await
    }

    /// Blobs that a node shows behind a digest, at most `limit`, each once: the owner's knowledge alone.
    pub async fn blobs(
        &self,
        who: &Principal,
        after: Option<Digest>,
        limit: usize,
    ) -> Result<Vec<Digest>, StoreError> {
        only_owner(who, "blobs")?;
        self.read(move |db| generations::all_blobs(db, after, limit)).await
    }

    /// Whether a node this principal may read shows the blob: blobs are read through nodes, never by their hash
    /// alone.
    pub async fn shows_blob(&self, who: &Principal, digest: Digest) -> Result<bool, StoreError> {
        let who = who.clone();
        self.read(move |db| generations::shows_blob(db, &who, digest)).await
    }

    /// Stores a seal of a tree.
    ///
    /// # Errors
    /// [`StoreError::Malformed`] when it covers operations the tree does not have, or is not signed by its key.
    pub async fn add_seal(&self, who: &Principal, tree: TreeId, seal: Seal) -> Result<(), StoreError> {
        let who = who.clone();
        self.write(move |db| trees::add_seal(db, &who, tree, &seal)).await
    }

    /// Keeps the authors of nodes as they were told from rows read after `told`. Nothing is kept where something of the
    /// tree was removed since: it may be told from that.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] for a node of another tree; [`StoreError::Denied`] to who may not write.
    pub async fn keep_attributions(
        &self,
        who: &Principal,
        tree: TreeId,
        found: Vec<Attribution>,
        told: Cursor,
    ) -> Result<(), StoreError> {
        let mut found = found.into_iter().peekable();
        while found.peek().is_some() {
            let (who, some): (_, Vec<_>) = (who.clone(), found.by_ref().take(ATTRIBUTIONS).collect());
            self.write(move |db| attributions::keep(db, &who, tree, &some, told)).await?;
        }
        Ok(())
    }

    /// Searches the text of nodes (see [`text::bigrams::Query`] for the syntax).
    pub async fn search(
        &self,
        who: &Principal,
        query: &str,
        scope: SearchScope,
        limit: usize,
    ) -> Result<Hits, StoreError> {
        let (who, query, time) = (who.clone(), query.to_owned(), self.limits.search);
        self.read(move |db| queries::search(db, &who, &query, scope, limit, time)).await
    }

    /// Events after a cursor, at most `limit`.
    pub async fn events_after(
        &self,
        who: &Principal,
        after: Cursor,
        limit: usize,
    ) -> Result<Events, StoreError> {
        let who = who.clone();
        self.read(move |db| events::after(db, &who, after, limit)).await
    }

    /// The newest event, as far as this store knows: at once when it wrote it itself, within 100 ms when another
    /// process did. [`crate::follow`] waits on it.
    ///
    /// # Errors
    /// What keeps the store from noticing other processes.
    pub fn newest(&self) -> Result<watch::Receiver<Cursor>, StoreError> {
        match &self.engine {
            Engine::Sqlite(database) => database.newest(),
            #[cfg(feature = "postgres")]
            Engine::Postgres(database) => database.newest(),
        }
    }

    /// Takes a lease that is free, has ended by the engine's clock, or is held by the same holder (whose older
    /// number then ends).
    ///
    /// # Errors
    /// [`StoreError::Held`] names who has it.
    pub async fn acquire_lease(
        &self,
        who: &Principal,
        name: &str,
        holder: &LeaseOwner,
        ttl: Duration,
    ) -> Result<Fence, StoreError> {
        let (who, name, holder) = (who.clone(), name.to_owned(), holder.clone());
        self.write(move |db| leases::acquire(db, &who, &name, &holder, ttl)).await
    }

    /// Makes a lease last for `ttl` from now, by the engine's clock.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it was taken over or released.
    pub async fn renew_lease(
        &self,
        who: &Principal,
        name: &str,
        fence: Fence,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        let (who, name) = (who.clone(), name.to_owned());
        self.write(move |db| leases::renew(db, &who, &name, fence, ttl)).await
    }

    /// Lets a lease go.
    ///
    /// # Errors
    /// As [`Store::renew_lease`].
    pub async fn release_lease(&self, who: &Principal, name: &str, fence: Fence) -> Result<(), StoreError> {
        let (who, name) = (who.clone(), name.to_owned());
        self.write(move |db| leases::release(db, &who, &name, fence)).await
    }

    /// A lease as it stands; none if there never was one.
    pub async fn lease(&self, who: &Principal, name: &str) -> Result<Option<Lease>, StoreError> {
        let (who, name) = (who.clone(), name.to_owned());
        self.read(move |db| leases::lease(db, &who, &name)).await
    }

    /// Enqueues a job. One with the same key that was ever enqueued is returned instead, with `false`.
    pub async fn enqueue(&self, who: &Principal, job: NewJob) -> Result<(JobId, bool), StoreError> {
        let who = who.clone();
        self.write(move |db| jobs::enqueue(db, &who, &job)).await
    }

    /// Takes the oldest job that is due and waits, of one of these kinds.
    pub async fn claim(
        &self,
        who: &Principal,
        kinds: &[&str],
        owner: &LeaseOwner,
    ) -> Result<Option<Job>, StoreError> {
        let (who, owner) = (who.clone(), owner.clone());
        let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        self.write(move |db| jobs::claim(db, &who, &kinds, &owner)).await
    }

    /// Takes over a claimed job from an owner that is gone, under the next number: its result under the old one is
    /// refused from then on. The caller has made sure that the owner's lock is free.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it is no longer `from`'s.
    pub async fn take_over_job(
        &self,
        who: &Principal,
        job: JobId,
        from: &Claim,
        to: &LeaseOwner,
    ) -> Result<Fence, StoreError> {
        let (who, from, to) = (who.clone(), from.clone(), to.clone());
        self.write(move |db| jobs::take_over(db, &who, job, &from, &to)).await
    }

    /// Ends a claimed job.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it is no longer this claim's.
    pub async fn finish(
        &self,
        who: &Principal,
        job: JobId,
        claim: &Claim,
        end: JobEnd,
    ) -> Result<(), StoreError> {
        let (who, claim) = (who.clone(), claim.clone());
        self.write(move |db| jobs::finish(db, &who, job, &claim, &end)).await
    }

    /// Jobs behind one, at most `limit`, in the order they came.
    pub async fn jobs(
        &self,
        who: &Principal,
        filter: JobFilter,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<Job>, StoreError> {
        let who = who.clone();
        self.read(move |db| jobs::jobs(db, &who, filter, after, limit)).await
    }

    /// Asks a question, which stands from now on by the engine's clock.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when a guard no longer holds.
    pub async fn ask(&self, who: &Principal, question: NewQuestion) -> Result<Question, StoreError> {
        let who = who.clone();
        self.write(move |db| questions::ask(db, &who, &question)).await
    }

    /// A question, answered or not.
    pub async fn question(&self, who: &Principal, id: QuestionId) -> Result<Question, StoreError> {
        let who = who.clone();
        self.read(move |db| questions::question(db, &who, id)).await
    }

    /// The questions that stand behind one, by when they were asked, at most `limit`, the oldest first.
    pub async fn open_questions(
        &self,
        who: &Principal,
        after: Option<(Millis, QuestionId)>,
        limit: usize,
    ) -> Result<Vec<Question>, StoreError> {
        let who = who.clone();
        self.read(move |db| questions::open(db, &who, after, limit)).await
    }

    /// The question a person names by its id or the beginning of its short id. Those that stand come first.
    ///
    /// # Errors
    /// [`StoreError::Ambiguous`] with the candidates' short ids.
    pub async fn resolve_question(&self, who: &Principal, name: &str) -> Result<QuestionId, StoreError> {
        let (who, name) = (who.clone(), name.to_owned());
        self.read(move |db| questions::resolve(db, &who, &name)).await
    }

    /// Answers a question. The answer that stood already, if it had one: that of the first counts. One past its time
    /// is denied.
    ///
    /// # Errors
    /// [`StoreError::NotAnAnswer`] names the words the question takes.
    pub async fn answer_question(
        &self,
        who: &Principal,
        id: QuestionId,
        answer: NewAnswer,
    ) -> Result<Option<crate::question::QuestionAnswer>, StoreError> {
        let who = who.clone();
        self.write(move |db| questions::answer(db, &who, id, &answer)).await
    }

    /// Denies a question if it is past its time by the engine's clock, and returns it as it is then.
    pub async fn expire_question(&self, who: &Principal, id: QuestionId) -> Result<Question, StoreError> {
        let who = who.clone();
        self.write(move |db| questions::expire(db, &who, id)).await
    }

    /// Generations behind one, at most `limit`, oldest first.
    pub async fn generations(
        &self,
        who: &Principal,
        filter: GenerationFilter,
        after: Option<GenerationId>,
        limit: usize,
    ) -> Result<Vec<Generation>, StoreError> {
        let who = who.clone();
        self.read(move |db| generations::generations(db, &who, &filter, after, limit)).await
    }

    pub async fn generation(&self, who: &Principal, id: GenerationId) -> Result<Generation, StoreError> {
        let who = who.clone();
        self.read(move |db| generations::generation(db, &who, id)).await
    }

    /// Takes over a running generation from an owner that is gone, for recovery: its results under the old number
    /// are refused from then on. The caller has made sure that the owner's lock is free.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it is no longer `from`'s, or has ended.
    pub async fn take_over(
        &self,
        who: &Principal,
        generation: GenerationId,
        from: &Claim,
        to: &LeaseOwner,
    ) -> Result<Fence, StoreError> {
        let (who, from, to) = (who.clone(), from.clone(), to.clone());
        self.write(move |db| generations::take_over(db, &who, generation, &from, &to)).await
    }

    /// What is spent of the limits a request in a tree counts against, with what generations that run may come to.
    pub async fn spending(
        &self,
        who: &Principal,
        tree: TreeId,
        reservation: &Reservation,
    ) -> Result<Spending, StoreError> {
        let (who, reservation) = (who.clone(), reservation.clone());
        self.read(move |db| generations::spending(db, trees::find(db, &who, tree)?, &reservation)).await
    }

    /// Usage written down at or after `since`, oldest first, behind `after`, at most `limit`: a home of many years is
    /// read a page at a time.
    pub async fn spent(
        &self,
        who: &Principal,
        since: Millis,
        after: Option<SpentAfter>,
        limit: usize,
    ) -> Result<Vec<SpentRow>, StoreError> {
        let who = who.clone();
        self.read(move |db| generations::spent(db, &who, since, after, limit)).await
    }

    /// Every place [`Store::forget`] would remove something from. Nothing is written, and nobody waits.
    pub async fn forget_preview(
        &self,
        who: &Principal,
        what: &Forget,
    ) -> Result<Vec<ForgottenPlace>, StoreError> {
        Ok(self.begin_forgetting(who, what).await?.places())
    }

    /// Every place [`Store::purge`] would remove something from.
    pub async fn purge_preview(
        &self,
        who: &Principal,
        tree: TreeId,
    ) -> Result<Vec<ForgottenPlace>, StoreError> {
        Ok(self.begin_purge(who, tree).await?.places())
    }

    /// Removes a node's content with what quotes it, or every occurrence of a text, for good, in small transactions,
    /// then takes it out of the engine's files. Nodes leave tombstones with their hashes. Answers under way whose
    /// requests held it are stopped; a plan made before is refused from then on.
    ///
    /// # Errors
    /// What ends it before all rows are gone; asked again, it goes on.
    pub async fn forget(&self, who: &Principal, what: &Forget, now: Millis) -> Result<Forgotten, StoreError> {
        let found = self.begin_forgetting(who, what).await?;
        let done = Box::pin(self.remove_forgotten(found, now)).await?;
        Ok(self.finish_forgetting(done).await)
    }

    /// Removes the content of a whole tree, and of what cites it, for good.
    ///
    /// # Errors
    /// As [`Store::forget`].
    pub async fn purge(&self, who: &Principal, tree: TreeId, now: Millis) -> Result<Forgotten, StoreError> {
        let found = self.begin_purge(who, tree).await?;
        let done = Box::pin(self.remove_forgotten(found, now)).await?;
        Ok(self.finish_forgetting(done).await)
    }

    /// Finds what [`Store::forget`] removes.
    pub async fn begin_forgetting(&self, who: &Principal, what: &Forget) -> Result<Forgetting, StoreError> {
        let (who, what) = (who.clone(), what.clone());
        let find = move |db: &Db<'_>| forget::begin(db, &who, &what);
        self.read_within(Time::Unbounded, find).await
    }

    /// Finds what [`Store::purge`] removes.
    pub async fn begin_purge(&self, who: &Principal, tree: TreeId) -> Result<Forgetting, StoreError> {
        let who = who.clone();
        let find = move |db: &Db<'_>| forget::begin_purge(db, &who, tree);
        self.read_within(Time::Unbounded, find).await
    }

    /// Removes the rows of what was found, and of what was written since, until there is nothing of it as of one
    /// moment. Done again, it removes what was written since that moment.
    ///
    /// # Errors
    /// As [`Store::forget`].
    pub async fn remove_forgotten(
        &self,
        mut forgetting: Forgetting,
        now: Millis,
    ) -> Result<Forgetting, StoreError> {
        forgetting.go_on();
        loop {
            while let Some(portion) = forgetting.next_portion() {
                let done = self.write(move |db| forget::remove(db, &portion, now)).await?;
                forgetting.removed(done);
                // Whoever waits to write has a turn.
                tokio::task::yield_now().await;
            }
            let again = move |db: &Db<'_>| forget::look_again(db, forgetting);
            forgetting = self.read_within(Time::Unbounded, again).await?;
            if !forgetting.has_more() {
                forgetting = self.write(move |db| forget::end(db, forgetting.clone(), now)).await?;
                if !forgetting.has_more() {
                    return Ok(forgetting);
                }
            }
        }
    }

    /// Takes what was removed out of the engine's files. Where that fails, as with a full disk, it is left to
    /// [`Store::end_forgetting`], and the outcome says so.
    pub async fn finish_forgetting(&self, done: Forgetting) -> Forgotten {
        let scrubbed = Box::pin(self.end_forgetting()).await;
        if let Err(error) = &scrubbed {
            tracing::warn!(%error, "what was forgotten is not taken out of the store's files yet");
        }
        done.forgotten(scrubbed.is_ok())
    }

    /// What is left to be done where rows were removed.
    pub async fn unfinished_removal(&self, who: &Principal) -> Result<UnfinishedRemoval, StoreError> {
        only_owner(who, "forget")?;
        self.read(forget::unfinished).await
    }

    /// Notes that the files of blobs are gone, or that a node shows them again.
    pub async fn blobs_removed(&self, who: &Principal, blobs: Vec<ForgottenBlob>) -> Result<(), StoreError> {
        only_owner(who, "forget")?;
        self.write(move |db| blobs.iter().try_for_each(|blob| forget::blob_removed(db, blob))).await
    }

    /// Takes what was forgotten out of the engine's files, if that was not done to its end. Whether there was anything.
    pub async fn end_forgetting(&self) -> Result<bool, StoreError> {
        let Some(note) = self.read(forget::unfinished).await?.scrub else { return Ok(false) };
        self.scrub().await?;
        self.write(move |db| forget::end_scrub(db, &note)).await?;
        Ok(true)
    }

    pub async fn cursor(&self) -> Result<Cursor, StoreError> {
        self.read(events::last).await
    }

    /// Stops answers under way: what their owners report of them is refused from then on.
    pub async fn stop(&self, who: &Principal, generations: BTreeSet<GenerationId>) -> Result<(), StoreError> {
        let who = who.clone();
        self.write(move |db| forget::stop_all(db, &who, &generations)).await
    }

    /// Tests the store's integrity. Each problem is one line; none is the good answer.
    pub async fn check(&self, who: &Principal) -> Result<Vec<String>, StoreError> {
        only_owner(who, "check")?;
        self.read_within(Time::Unbounded, maintenance::check).await
    }

    /// Counts anew what was counted by other Unicode tables than this program's, a tree at a time, and drops what is kept
    /// of authors that is damaged or of another version; the number of trees.
    pub async fn repair(&self, who: &Principal) -> Result<u64, StoreError> {
        only_owner(who, "repair")?;
        self.write(attributions::repair).await?;
        let trees = self.read_within(Time::Unbounded, repair::outdated).await?;
        for tree in &trees {
            let tree = *tree;
            self.write(move |db| repair::recount(db, tree)).await?;
        }
        Ok(trees.len() as u64)
    }

    /// Writes a copy of the store, as of one moment, to a new file.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when the file exists; [`StoreError::Server`] on PostgreSQL, naming `pg_dump`.
    pub async fn backup(&self, who: &Principal, to: &Path) -> Result<Backup, StoreError> {
        only_owner(who, "back up")?;
        match &self.engine {
            Engine::Sqlite(database) => database.copy(to).await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => Err(ServerError::Unsupported("back up").into()),
        }
    }

    pub async fn identity(&self, _who: &Principal) -> Result<Identity, StoreError> {
        self.read(maintenance::identity).await
    }

    /// Makes this a new store, after a restore: it gets a new id, and everything that was running is fenced.
    pub async fn renew_identity(&self, who: &Principal) -> Result<StoreId, StoreError> {
        only_owner(who, "renew the identity")?;
        let id = StoreId::random()?;
        self.write(move |db| maintenance::renew(db, id)).await?;
        Ok(id)
    }
}

/// Runs a function over the rows of a tree, within one snapshot, on a thread of the store.
///
/// # Errors
/// As [`Store::read_rows`].
pub async fn read<T, F>(store: &Store, who: &Principal, tree: TreeId, f: F) -> Result<T, StoreError>
where
    T: Send + 'static,
    F: FnOnce(&dyn TreeReader) -> Result<T, RowError> + Send + 'static,
{
    store.read_rows(who, tree, f).await
}

/// The id of a store: another one after each restore.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub [u8; 16]);

impl StoreId {
    /// A new one, at random.
    pub(crate) fn random() -> Result<Self, StoreError> {
        random().map(Self)
    }
}

impl std::fmt::Display for StoreId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl std::fmt::Debug for StoreId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoreId({self})")
    }
}

/// Which store this is, and how far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub store: StoreId,
    /// The version of its schema.
    pub version: u32,
    pub cursor: Cursor,
}

/// A backup that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    pub identity: Identity,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Refuses a seal that does not fit its tree, whose newest operation is `last`.
pub(crate) fn check_seal(tree: TreeId, last: Seq, seal: &Seal) -> Result<(), StoreError> {
    if seal.seq > last || !loom::seal::is_signed(seal, tree) {
        return Err(StoreError::Malformed(
            "a seal of other operations or without its key's signature".to_owned(),
        ));
    }
    Ok(())
}

/// 16 random bytes.
pub(crate) fn random() -> Result<[u8; 16], StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::io("random bytes", std::io::Error::other(error.to_string())))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_write_that_panics_is_refused_alone() {
        let folder = tempfile::tempdir().unwrap();
        for store in [Store::open(&folder.path().join("loom.db")).unwrap(), Store::in_memory().unwrap()] {
            let insert = "INSERT INTO leases (name, fence, expires) VALUES (?1, 1, 0)";
            let broken = store.write(move |db| {
                db.run(insert, ["lost"])?;
                panic!("as a test wants it")
            });
            let kept = store.write(move |db| db.run(insert, ["kept"]));
            let (broken, kept): (Result<(), _>, _) = tokio::join!(broken, kept);
            assert!(matches!(broken, Err(StoreError::Panicked)));
            assert_eq!(kept.unwrap(), 1);
            assert!(store.lease(&Principal::Owner, "lost").await.unwrap().is_none());
            assert!(store.lease(&Principal::Owner, "kept").await.unwrap().is_some());
        }
    }

    #[tokio::test]
    async fn numbers_of_other_tables_are_counted_anew() {
        let (store, ids, who) = (Store::in_memory().unwrap(), crate::Ids::new(), &Principal::Owner);
        let tree: TreeId = ids.with(|entropy| entropy.next(Millis(1_700_000_000_000))).unwrap();
        for op in [
            loom::Op::Create(loom::plan::NewTree {
                mode: loom::Mode::Buffer,
                title: String::new(),
                origin: None,
            }),
            loom::Op::Append(loom::plan::NewText::owner("e\u{301}n", None)),
            loom::Op::Append(loom::plan::NewText::owner("d", None)),
        ] {
            let (view, author) = (loom::ViewName::default(), loom::Author::owner());
            let now = Millis(1_700_000_000_000);
            let request = loom::plan::Request { tree, view, author, trust: Trust::Owner, now, op };
            crate::change(&store, who, request, AttachedWrites::nothing(), &ids).await.unwrap();
        }
        // As tables would have it to which the accent is a cluster of its own.
        let old = |db: &Db<'_>| {
            db.run("UPDATE nodes SET graphemes = 3 WHERE chars = 3", crate::engine::NONE)?;
            db.run("UPDATE positions SET graphemes = 0 WHERE depth = 2", crate::engine::NONE)
        };
        store.write(old).await.unwrap();
        let status = async || {
            let found =
                store.read_rows(who, tree, |rows| loom::verify::verify(rows, &Nothing)).await.unwrap();
            found.status
        };
        assert_eq!(status().await, loom::verify::Status::Invalid, "by the same tables it is damage");
        store.write(|db| db.run("UPDATE trees SET tables = 1", crate::engine::NONE)).await.unwrap();
        assert_eq!(status().await, loom::verify::Status::Incomplete);
        assert_eq!(store.repair(who).await.unwrap(), 1);
        assert_eq!(status().await, loom::verify::Status::Valid);
        assert_eq!(store.repair(who).await.unwrap(), 0);
    }

    struct Nothing;

    impl loom::verify::Evidence for Nothing {
        fn manifest(&self, _: Digest) -> Result<Result<Digest, loom::verify::Gap>, RowError> {
            Ok(Err(loom::verify::Gap::Missing))
        }

        fn reread(&self, _: &loom::NodeRow, _: &loom::ModelSource) -> Result<loom::verify::Reread, RowError> {
            Ok(loom::verify::Reread::Gap { digest: None, gap: loom::verify::Gap::Missing })
        }
    }

    #[tokio::test]
    async fn long_reads_hold_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { readers: 1, ..Options::default() };
        let store = Store::open_with(&folder.path().join("loom.db"), &options).unwrap();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let long = store.read_within(Time::Unbounded, move |_| Ok(released.recv().is_ok()));
        let short = async {
            let identity = store.identity(&Principal::Owner).await;
            release.send(()).unwrap();
            identity
        };
        let (long, short) = tokio::join!(long, short);
        assert!(long.unwrap());
        short.unwrap();
    }

    #[tokio::test]
    async fn ended_jobs_go_after_30_days() {
        let store = Store::in_memory().unwrap();
        let (who, owner, kinds) = (&Principal::Owner, LeaseOwner::new("worker"), ["observe"]);
        for _ in 0..3 {
            let (kind, payload) = ("observe".to_owned(), String::new());
            let job = NewJob { kind, key: None, tree: None, payload, due: Millis(0) };
            store.enqueue(who, job).await.unwrap();
            let job = store.claim(who, &kinds, &owner).await.unwrap().unwrap();
            store.finish(who, job.id, &job.claim().unwrap(), JobEnd::Done(String::new())).await.unwrap();
            store.advance_clock(Duration::from_secs(16 * 24 * 60 * 60));
        }
        let left = store.jobs(who, JobFilter::All, None, 99).await.unwrap();
        assert_eq!(left.iter().map(|job| job.id).collect::<Vec<_>>(), [JobId(2), JobId(3)]);
    }
}
