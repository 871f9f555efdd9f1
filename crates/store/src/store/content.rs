//! Trees: what is written, read, listed and found.

use std::path::PathBuf;

use loom::reader::{Attribution, StoredResponse};
use loom::seal::Seal;
use loom::{Digest, Draft, Millis, NodeId, Plan, RowError, TreeId, TreeReader, Trust};
use tokio::sync::watch;

use super::{Engine, Store};
use crate::apply::{Applied, AttachedWrites};
use crate::draft::{DraftEdit, DraftName};
use crate::engine::Time;
use crate::error::StoreError;
use crate::event::{Cursor, Events};
use crate::fence::Guard;
use crate::import_tree::{Import, ImportedTree};
use crate::listing::{NodeName, TreeEntry, TreeFilter};
use crate::outcome::{NewOutcome, Outcome, OutcomeId};
use crate::principal::{Principal, only_owner};
use crate::rows::{
    attributions, commit, events, generations, import, outcomes, queries, reader, sessions, trees, workspaces,
};
use crate::search::{Hits, SearchScope};
use crate::session::{Session, SessionFilter, SessionId};
use crate::workspace::WorkspaceRecord;

/// Nodes whose authors are kept in one transaction.
const ATTRIBUTIONS: usize = 512;

forward! {
    /// Sets how far imported nodes are believed; those that are not `outside` any more stay as they are. Returns
    /// how many were changed.
    ///
    /// # Errors
    /// [`StoreError::Malformed`] names a node that no import brought in: nothing else is ever raised.
    write fn set_trust(tree: TreeId, nodes: Vec<(NodeId, Trust)>) -> u64 = import::set_trust(tree, &nodes);

    /// The trees behind a place ([`TreeEntry::place`]), at most `limit`, the one changed last first.
    read fn trees(filter: TreeFilter, after: Option<(Millis, TreeId)>, limit: usize) -> Vec<TreeEntry>
        = queries::trees(filter, after, limit);

    read fn tree(tree: TreeId) -> TreeEntry = queries::tree(tree);

    /// Sessions behind a place ([`Session::place`]) with their trees, at most `limit`, the one something was last done
    /// in first. [`AttachedWrites::begins`] begins one.
    read fn sessions(filter: SessionFilter, after: Option<(Millis, SessionId)>, limit: usize) -> Vec<Session>
        = sessions::list(&filter, after, limit);

    /// A session with its trees, archived or not; none where there is none for this principal.
    read fn session(id: &SessionId) -> Option<Session> = sessions::one(&id);

    /// Gives a session another name.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when another one of its workspace has it.
    write fn rename_session(id: &SessionId, name: &str) -> () = sessions::rename(&id, &name);

    /// Has a session go on in one of its trees that is neither purged nor archived.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where it is none; [`StoreError::Fenced`] when a guard no longer holds.
    write fn move_session(id: &SessionId, tree: TreeId, guards: Vec<Guard>) -> ()
        = sessions::move_to(&id, tree, &guards);

    /// Archives a session, or takes it out of the archive. Its trees stay as they are.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when another one has its name by now.
    write fn archive_session(id: &SessionId, archived: bool) -> () = sessions::archive(&id, archived);

    /// Writes how a session is gone on with, if that is still as it was seen. The store looks into it only where
    /// something is forgotten. Returns what another process wrote meanwhile, where nothing was written.
    write fn set_session_settings(id: &SessionId, seen: &str, settings: &str) -> Option<String>
        = sessions::set_settings(&id, &seen, &settings);

    /// Removes a session whose trees are all purged.
    ///
    /// # Errors
    /// [`StoreError::Exists`] while one of its trees is there.
    write fn remove_session(id: &SessionId) -> () = sessions::remove(&id);

    /// Appends an entry to the ledger of a session. It is durable, and struck what it corrects, when this returns.
    ///
    /// # Errors
    /// [`StoreError::Outcome`] says why it is refused; [`StoreError::NotFound`] when the tree is none of the session's;
    /// [`StoreError::Fenced`] when a guard no longer holds.
    write fn note_outcome(new: NewOutcome) -> OutcomeId = outcomes::append(&new);

    /// Ledger of a session behind an entry, at most `limit`, in the order of commits; without what was forgotten.
    read fn outcomes(session: &SessionId, after: Option<OutcomeId>, limit: usize) -> Vec<Outcome>
        = outcomes::list(&session, after, limit);

    /// What the owner said about workspaces behind a path, at most `limit`, ordered by the bytes of their paths.
    ///
    /// # Errors
    /// [`StoreError::Denied`] to whoever does not see everything.
    read fn workspaces(after: Option<PathBuf>, limit: usize) -> Vec<WorkspaceRecord>
        = workspaces::list(after.as_deref(), limit);

    /// What the owner said about whatever stood at a path.
    ///
    /// # Errors
    /// [`StoreError::Denied`] to whoever does not see everything.
    read fn workspace(path: PathBuf) -> Option<WorkspaceRecord> = workspaces::at(&path);

    /// What the owner said about whatever stood at a path, and about a folder wherever it was, ordered by the bytes of paths.
    ///
    /// # Errors
    /// [`StoreError::Denied`] to whoever does not see everything.
    read fn workspaces_about(path: PathBuf, device: u64, inode: u64) -> Vec<WorkspaceRecord>
        = workspaces::about(&path, device, inode);

    /// Keeps an answer about a workspace; one about the same path before it is gone.
    ///
    /// # Errors
    /// [`StoreError::Denied`] to whoever does not see everything.
    write fn keep_workspace(record: WorkspaceRecord) -> () = workspaces::keep(&record);

    /// Whether the owner said that nothing of the workspace of this name in sessions is loaded: of the folder at its path, or,
    /// not before they trusted that, of the same one elsewhere.
    ///
    /// # Errors
    /// [`StoreError::Denied`] to whoever does not see everything.
    read fn distrusts_workspace(name: &str) -> bool = workspaces::distrusts(&name);

    /// The tree a person names by id, short id or exact title.
    ///
    /// # Errors
    /// [`StoreError::Ambiguous`] with the candidates' short ids and titles.
    read fn resolve(name: &str) -> TreeId = queries::resolve(&name);

    /// The node a person names by id, by short id (in `tree`, if given), or as `TREE:SHORT`.
    ///
    /// # Errors
    /// [`StoreError::Ambiguous`] when the short id stands in several trees and none is named.
    read fn resolve_node(tree: Option<TreeId>, name: &str) -> NodeName = queries::resolve_node(tree, &name);

    /// Changes a draft that has revision `expected` (none: that does not exist). Nothing can be redone after it
    /// in that view. Returns the draft as it is now.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] with the revision there is; [`StoreError::Splice`] when the text to replace does
    /// not stand there.
    write fn edit_draft(name: DraftName, expected: Option<u64>, edit: DraftEdit) -> Draft
        = commit::edit_draft(&name, expected, &edit);

    /// Removes a draft that has revision `expected`.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] with the revision there is.
    write fn discard_draft(name: DraftName, expected: u64) -> () = commit::discard_draft(&name, expected);

    /// The response a node was made of.
    read fn response(node: NodeId) -> StoredResponse = generations::response(node);

    /// A manifest, by its digest.
    read fn manifest(digest: Digest) -> Vec<u8> = generations::manifest(digest);

    /// A body that a manifest refers to, by its digest.
    read fn body(digest: Digest) -> Vec<u8> = generations::body(digest);

    /// Whether a node this principal may read shows the blob: blobs are read through nodes, never by their hash
    /// alone.
    read fn shows_blob(digest: Digest) -> bool = generations::shows_blob(digest);

    /// Stores a seal of a tree.
    ///
    /// # Errors
    /// [`StoreError::Malformed`] when it covers operations the tree does not have, or is not signed by its key.
    write fn add_seal(tree: TreeId, seal: Seal) -> () = trees::add_seal(tree, &seal);

    /// Whether something of a tree was removed for good after an event, or may have been.
    read fn removed_since(tree: TreeId, cursor: Cursor) -> bool = events::removed_from(tree, cursor);

    /// Events after a cursor, at most `limit`.
    read fn events_after(after: Cursor, limit: usize) -> Events = events::after(after, limit);
}

impl Store {
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
        // Before the transaction, so that nobody who writes waits for it.
        let check = move || imported.check().map(|()| imported);
        let imported = tokio::task::spawn_blocking(check).await.map_err(|_| StoreError::Panicked)??;
        self.write(move |db| import::import_tree(db, &who, &imported)).await
    }

    /// What was imported into a tree, oldest first.
    pub async fn imports(&self, who: &Principal, tree: TreeId) -> Result<Vec<Import>, StoreError> {
        let who = who.clone();
        self.read(move |db| import::imports(db, trees::find(db, &who, tree)?)).await
    }

    /// As [`super::read`], however long it takes: for what has to read a whole tree as of one moment. The log
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
