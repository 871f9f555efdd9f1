//! The face of every store.

use std::any::Any;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use loom::rows::StoredResponse;
use loom::seal::Seal;
use loom::{Digest, Draft, GenerationId, Millis, NodeId, Plan, RowError, Rows, Seq, TreeId, Trust};
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
use crate::principal::Principal;
use crate::search::{Hits, SearchScope};
use crate::session::{Session, SessionFilter, SessionId};
use crate::workspace::WorkspaceRecord;

/// A function over the rows of one tree; [`read`] wraps it.
pub type ReadFn = Box<dyn FnOnce(&dyn Rows) -> Result<Box<dyn Any + Send>, RowError> + Send>;

/// A store of trees and of what belongs to them.
///
/// Every method takes the principal that asks. What it may not see is [`StoreError::NotFound`], as if it were not
/// there. Writes are durable (power loss included) when they return, drafts excepted, which survive the death of
/// the process. Dropping a future abandons the answer, never half of the work: a write that was queued is done
/// whole or not at all.
#[async_trait]
pub trait Store: Send + Sync {
    /// The limits it was opened with.
    fn limits(&self) -> Limits;

    /// Applies a plan and the rows that go with it, in one transaction. An empty plan with rows is allowed.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] names cells and drafts that are not as the plan expects; [`StoreError::Fenced`]
    /// when a guard or an outcome's tenure no longer holds. Nothing is written then.
    async fn apply(
        &self,
        who: &Principal,
        tree: TreeId,
        plan: Plan,
        with: With,
    ) -> Result<Applied, StoreError>;

    /// Inserts a tree as it is, under its own ids and numbers, in one transaction; its log goes on behind its last
    /// operation. The cells are those the log leaves; no timeline, draft or running work comes along.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when the tree, or a node or generation of it, is here;
    /// [`StoreError::Malformed`] when its rows and its log do not fit together. Nothing is written then.
    async fn adopt(&self, who: &Principal, adopted: Adopted) -> Result<(), StoreError>;

    /// What was imported into a tree, oldest first.
    async fn imports(&self, who: &Principal, tree: TreeId) -> Result<Vec<Import>, StoreError>;

    /// Sets how far imported nodes are believed; those that are not `outside` any more stay as they are. Returns
    /// how many were changed.
    ///
    /// # Errors
    /// [`StoreError::Malformed`] names a node that no import brought in: nothing else is ever raised.
    async fn set_trust(
        &self,
        who: &Principal,
        tree: TreeId,
        nodes: Vec<(NodeId, Trust)>,
    ) -> Result<u64, StoreError>;

    /// Runs a function over the rows of a tree, within one snapshot, on a thread of the store.
    ///
    /// # Errors
    /// What the function returns; [`StoreError::TooLong`] after [`Limits::read`].
    async fn read_rows(
        &self,
        who: &Principal,
        tree: TreeId,
        f: ReadFn,
    ) -> Result<Box<dyn Any + Send>, StoreError>;

    /// As [`Store::read_rows`], however long it takes: for what has to read a whole tree as of one moment. The log
    /// of the store grows meanwhile.
    ///
    /// # Errors
    /// What the function returns.
    async fn read_whole(
        &self,
        who: &Principal,
        tree: TreeId,
        f: ReadFn,
    ) -> Result<Box<dyn Any + Send>, StoreError>;

    /// The trees, the one changed last first.
    async fn trees(&self, who: &Principal, filter: TreeFilter) -> Result<Vec<TreeEntry>, StoreError>;

    /// One tree.
    async fn tree(&self, who: &Principal, tree: TreeId) -> Result<TreeEntry, StoreError>;

    /// Sessions with their trees, the one something was last done in first. [`With::begins`] begins one.
    async fn sessions(&self, who: &Principal, filter: SessionFilter) -> Result<Vec<Session>, StoreError>;

    /// Gives a session another name.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when another one of its workspace has it.
    async fn rename_session(&self, who: &Principal, id: &SessionId, name: &str) -> Result<(), StoreError>;

    /// Archives a session, or takes it out of the archive. Its trees stay as they are.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when another one has its name by now.
    async fn archive_session(
        &self,
        who: &Principal,
        id: &SessionId,
        archived: bool,
    ) -> Result<(), StoreError>;

    /// Removes a session whose trees are all purged.
    ///
    /// # Errors
    /// [`StoreError::Exists`] while one of its trees is there.
    async fn remove_session(&self, who: &Principal, id: &SessionId) -> Result<(), StoreError>;

    /// What the owner said about workspaces, ordered by path.
    ///
    /// # Errors
    /// [`StoreError::Denied`] to whoever does not see everything.
    async fn workspaces(&self, who: &Principal) -> Result<Vec<WorkspaceRecord>, StoreError>;

    /// Keeps an answer about a workspace; one about the same path before it is gone.
    ///
    /// # Errors
    /// [`StoreError::Denied`] to whoever does not see everything.
    async fn keep_workspace(&self, who: &Principal, record: WorkspaceRecord) -> Result<(), StoreError>;

    /// The tree a person names by id, short id or exact title.
    ///
    /// # Errors
    /// [`StoreError::Ambiguous`] with the candidates' short ids and titles.
    async fn resolve(&self, who: &Principal, name: &str) -> Result<TreeId, StoreError>;

    /// The node a person names by id, by short id (in `tree`, if given), or as `TREE:SHORT`.
    ///
    /// # Errors
    /// [`StoreError::Ambiguous`] when the short id stands in several trees and none is named.
    async fn resolve_node(
        &self,
        who: &Principal,
        tree: Option<TreeId>,
        name: &str,
    ) -> Result<NodeName, StoreError>;

    /// Changes a draft that has revision `expected` (none: that does not exist). Nothing can be redone after it
    /// in that view. Returns the draft as it is now.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] with the revision there is; [`StoreError::Splice`] when the text to replace does
    /// not stand there.
    async fn edit_draft(
        &self,
        who: &Principal,
        name: DraftName,
        expected: Option<u64>,
        edit: DraftEdit,
    ) -> Result<Draft, StoreError>;

    /// Removes a draft that has revision `expected`.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] with the revision there is.
    async fn discard_draft(&self, who: &Principal, name: DraftName, expected: u64) -> Result<(), StoreError>;

    /// The response a node was made of.
    async fn response(&self, who: &Principal, node: NodeId) -> Result<StoredResponse, StoreError>;

    /// A manifest, by its digest.
    async fn manifest(&self, who: &Principal, digest: Digest) -> Result<Vec<u8>, StoreError>;

    /// A body that a manifest refers to, by its digest.
    async fn body(&self, who: &Principal, digest: Digest) -> Result<Vec<u8>, StoreError>;

    /// Whether a node this principal may read shows the blob: blobs are read through nodes, never by their hash
    /// alone.
    async fn shows_blob(&self, who: &Principal, digest: Digest) -> Result<bool, StoreError>;

    /// Every blob that a node shows, each once: the owner's knowledge alone.
    async fn blobs(&self, who: &Principal) -> Result<Vec<Digest>, StoreError>;

    /// Stores a seal of a tree.
    ///
    /// # Errors
    /// [`StoreError::Malformed`] when it covers operations the tree does not have, or is not signed by its key.
    async fn add_seal(&self, who: &Principal, tree: TreeId, seal: Seal) -> Result<(), StoreError>;

    /// Searches the text of nodes (see [`text::bigrams::Query`] for the syntax).
    async fn search(
        &self,
        who: &Principal,
        query: &str,
        scope: SearchScope,
        limit: usize,
    ) -> Result<Hits, StoreError>;

    /// Events after a cursor, at most `limit`.
    async fn events_after(&self, who: &Principal, after: Cursor, limit: usize) -> Result<Events, StoreError>;

    /// The newest event, as far as this store knows: at once when it wrote it itself, within 100 ms when another
    /// process did. [`crate::follow`] waits on it.
    ///
    /// # Errors
    /// What keeps the store from noticing other processes.
    fn newest(&self) -> Result<watch::Receiver<Cursor>, StoreError>;

    /// Takes a lease that is free, has ended, or is held by the same holder (whose older number then ends).
    ///
    /// # Errors
    /// [`StoreError::Held`] names who has it.
    async fn acquire_lease(
        &self,
        who: &Principal,
        name: &str,
        holder: &Holder,
        ttl: Duration,
        now: Millis,
    ) -> Result<Fence, StoreError>;

    /// Makes a lease last until `now + ttl`.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it was taken over or released.
    async fn renew_lease(
        &self,
        who: &Principal,
        name: &str,
        fence: Fence,
        ttl: Duration,
        now: Millis,
    ) -> Result<(), StoreError>;

    /// Lets a lease go.
    ///
    /// # Errors
    /// As [`Store::renew_lease`].
    async fn release_lease(&self, who: &Principal, name: &str, fence: Fence) -> Result<(), StoreError>;

    /// A lease as it stands; none if there never was one.
    async fn lease(&self, who: &Principal, name: &str) -> Result<Option<Lease>, StoreError>;

    /// Enqueues a job. One with the same key that was ever enqueued is returned instead, with `false`.
    async fn enqueue(&self, who: &Principal, job: NewJob) -> Result<(JobId, bool), StoreError>;

    /// Takes the oldest job that is due and waits, of one of these kinds.
    async fn claim(
        &self,
        who: &Principal,
        kinds: &[&str],
        owner: &Holder,
        now: Millis,
    ) -> Result<Option<Job>, StoreError>;

    /// Ends a claimed job.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it is no longer this tenure's.
    async fn finish(
        &self,
        who: &Principal,
        job: JobId,
        tenure: &Tenure,
        end: JobEnd,
    ) -> Result<(), StoreError>;

    /// Jobs in the order they came.
    async fn jobs(&self, who: &Principal, filter: JobFilter) -> Result<Vec<Job>, StoreError>;

    /// Generations, oldest first.
    async fn generations(
        &self,
        who: &Principal,
        filter: GenerationFilter,
    ) -> Result<Vec<Generation>, StoreError>;

    /// Takes over a running generation from an owner that is gone, for recovery: its results under the old number
    /// are refused from then on. The caller has made sure that the owner's lock is free.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it is no longer `from`'s, or has ended.
    async fn take_over(
        &self,
        who: &Principal,
        generation: GenerationId,
        from: &Tenure,
        to: &Holder,
    ) -> Result<Fence, StoreError>;

    /// Usage written down at or after `since`, of one tree or of all, oldest first.
    async fn usage(
        &self,
        who: &Principal,
        tree: Option<TreeId>,
        since: Millis,
    ) -> Result<Vec<UsageRow>, StoreError>;

    /// Usage written down at or after `since`, oldest first, behind `after`, at most `limit`: a home of many years is
    /// read a page at a time.
    async fn spent(
        &self,
        who: &Principal,
        since: Millis,
        after: Option<SpentAfter>,
        limit: usize,
    ) -> Result<Vec<SpentRow>, StoreError>;

    /// Every place [`Store::forget`] would remove something from.
    async fn forget_preview(&self, who: &Principal, what: &Forget) -> Result<Vec<Place>, StoreError>;

    /// Removes a node's content or every occurrence of a text, for good, then scrubs the file's pages. Nodes
    /// leave tombstones with their hashes.
    ///
    /// # Errors
    /// [`StoreError::Busy`] or [`StoreError::DiskFull`] when the rows are gone and the pages could not be scrubbed
    /// yet: asked again, it scrubs.
    async fn forget(&self, who: &Principal, what: &Forget, now: Millis) -> Result<Forgotten, StoreError>;

    /// Removes the content of a whole tree, and of what cites it, for good.
    ///
    /// # Errors
    /// As [`Store::forget`].
    async fn purge(&self, who: &Principal, tree: TreeId, now: Millis) -> Result<Forgotten, StoreError>;

    /// Tests the store's integrity. Each problem is one line; none is the good answer.
    async fn check(&self, who: &Principal) -> Result<Vec<String>, StoreError>;

    /// Writes a copy of the store, as of one moment, to a new file.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when the file exists.
    async fn backup(&self, who: &Principal, to: &Path) -> Result<Backup, StoreError>;

    /// Which store this is.
    async fn identity(&self, who: &Principal) -> Result<Identity, StoreError>;

    /// Makes this a new store, after a restore: it gets a new id, and everything that was running is fenced.
    async fn renew_identity(&self, who: &Principal) -> Result<StoreId, StoreError>;
}

/// Runs a function over the rows of a tree, within one snapshot, on a thread of the store.
///
/// # Errors
/// As [`Store::read_rows`].
pub async fn read<T, F>(store: &dyn Store, who: &Principal, tree: TreeId, f: F) -> Result<T, StoreError>
where
    T: Send + 'static,
    F: FnOnce(&dyn Rows) -> Result<T, RowError> + Send + 'static,
{
    let boxed: ReadFn = Box::new(move |rows| Ok(Box::new(f(rows)?)));
    let answer = store.read_rows(who, tree, boxed).await?;
    // The box holds what the closure above put there; a store that answers with another thing has lost it.
    answer.downcast::<T>().map(|answer| *answer).map_err(|_| StoreError::Closed)
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
    /// Its id.
    pub store: StoreId,
    /// The version of its schema.
    pub version: u32,
    /// Its newest event.
    pub cursor: Cursor,
}

/// A backup that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    /// What the copy holds.
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
