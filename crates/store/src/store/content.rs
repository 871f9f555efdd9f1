//! Trees: what is written, read, listed and found.

use std::path::PathBuf;

use loom::attribution::Attribution;
use loom::reader::StoredResponse;
use loom::seal::Seal;
use loom::{Digest, Draft, Millis, NodeId, Plan, RowError, TreeId, TreeReader, Trust};
use tokio::sync::watch;

use super::{Engine, Store, Time};
use crate::apply::{Applied, AttachedWrites};
use crate::draft::{DraftEdit, DraftName};
use crate::error::StoreError;
use crate::event::{Cursor, Events};
use crate::import_tree::{Import, ImportedTree};
use crate::limits::StoreLimits;
use crate::listing::{NodeName, TreeEntry, TreeFilter};
use crate::principal::{Principal, only_owner};
use crate::rows::{
    attributions, commit, events, generations, import, queries, reader, sessions, trees, workspaces,
};
use crate::search::{Hits, SearchScope};
use crate::session::{Session, SessionFilter, SessionId};
use crate::workspace::WorkspaceRecord;

/// Nodes whose authors are kept in one transaction.
const ATTRIBUTIONS: usize = 512;

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
    pub async fn import_tree(&self, who: &Principal, imported: ImportedTree) -> Result<(), StoreError> {
        self.limits.check(imported.nodes.iter().map(|row| &row.node))?;
        let who = who.clone();
        self.write(move |db| import::import_tree(db, &who, &imported)).await
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
}
