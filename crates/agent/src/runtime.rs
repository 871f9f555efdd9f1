//! Services of an open home.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use loom::plan::Request;
use loom::{Author, GenerationId, Millis, NodeId, Op, Plan, RowError, TreeId, TreeReader, Trust, ViewName};
use model::Clock;
use store::home::{Home, Space, SpaceLimits};
use store::instance::InstanceId;
use store::{Applied, AttachedWrites, Fence, Ids, Principal, Store};
use text::mask::Masker;

use crate::call::Call;
use crate::error::AgentError;
use crate::fallback::ListedModels;
use crate::kept_files::FileRetention;
use crate::lasting_rules::LastingRules;
use crate::recent_requests::RecentRequests;
use crate::spend::{SpendLimiter, TurnSpending};
use crate::turn_bounds::{SubagentBounds, TurnBounds, WaitingBounds};

/// How long a lease lasts that is not renewed, unless the runtime says otherwise.
pub const LEASE: Duration = Duration::from_secs(30);

/// Reads the known secrets as they stand in the configuration now. It blocks.
///
/// # Errors
/// Why they cannot be read.
pub type ReadMasker = dyn Fn() -> Result<Masker, String> + Send + Sync;

/// Services of one open home, shared by every session of the process. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    pub store: Arc<Store>,
    pub ids: Arc<Ids>,
    pub home: Arc<Home>,
    /// This process, as an owner of running work.
    pub instance: InstanceId,
    pub clock: Clock,
    /// Known secrets, to be masked on entry.
    pub masker: Arc<Masker>,
    /// Reads the known secrets anew; none where no configuration is read.
    pub newest_masker: Option<Arc<ReadMasker>>,
    /// Free space below which no turn begins.
    pub space: SpaceLimits,
    /// How much a turn does until somebody says that it may go on.
    pub turn_bounds: TurnBounds,
    /// How much the subagents of a session do.
    pub subagents: SubagentBounds,
    /// What may wait for a session.
    pub waiting: WaitingBounds,
    /// How much is kept of what tools changed in files.
    pub kept_files: Arc<FileRetention>,
    /// How long a turn's lease lasts that is not renewed ([`LEASE`]).
    pub lease: Duration,
    /// Leases of turns that have ended which the store did not take back.
    pub unreleased: Arc<Mutex<Vec<(String, Fence)>>>,
    /// Notices of which one is enough for this process.
    pub noted: Arc<Mutex<HashSet<String>>>,
    pub spend: Arc<SpendLimiter>,
    /// Who is asked when a model does not answer.
    pub fallbacks: ListedModels,
    /// Models that an agent may give its subagents besides its own.
    pub subagent_models: ListedModels,
    /// Rules that answers give for good.
    pub rules: LastingRules,
    pub recent_requests: Arc<RecentRequests>,
}

impl Runtime {
    /// A home that is open, with defaults for what a configuration decides: what may be spent, who answers instead,
    /// how much space a turn needs.
    pub fn new(
        store: Arc<Store>,
        home: Arc<Home>,
        instance: InstanceId,
        clock: Clock,
        masker: Arc<Masker>,
    ) -> Self {
        Self {
            store,
            ids: Ids::new(),
            home,
            instance,
            clock,
            masker,
            newest_masker: None,
            space: SpaceLimits::default(),
            turn_bounds: TurnBounds::default(),
            subagents: SubagentBounds::default(),
            waiting: WaitingBounds::default(),
            kept_files: Arc::default(),
            lease: LEASE,
            unreleased: Arc::default(),
            noted: Arc::default(),
            spend: Arc::default(),
            fallbacks: ListedModels::default(),
            subagent_models: ListedModels::default(),
            rules: LastingRules::default(),
            recent_requests: Arc::default(),
        }
    }

    /// Masker of the secrets that are known now, where [`Self::masker`] has those of the beginning. It blocks.
    ///
    /// # Errors
    /// As of [`ReadMasker`].
    pub fn masker_of_now(&self) -> Result<Arc<Masker>, String> {
        match &self.newest_masker {
            Some(read) => read().map(Arc::new),
            None => Ok(Arc::clone(&self.masker)),
        }
    }

    /// Tells the owner what this process has not told yet.
    pub(crate) fn note_once(&self, call: &Call, notice: String) {
        let is_new = self.noted.lock().unwrap_or_else(PoisonError::into_inner).insert(notice.clone());
        if is_new {
            call.note(notice);
        }
    }

    /// Now, in ms since 1970.
    pub fn now(&self) -> Millis {
        Millis(self.clock.now())
    }

    /// A fresh id.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn new_id<I: From<ulid::Ulid>>(&self) -> Result<I, AgentError> {
        let now = self.now();
        Ok(self.ids.with(|entropy| entropy.next(now))?)
    }

    /// A turn, as far as spending goes: the model calls under its name share `budget.turn`.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn new_turn(&self) -> Result<TurnSpending, AgentError> {
        let name = self.new_id::<GenerationId>()?.to_string();
        Ok(TurnSpending::new(Arc::clone(&self.spend), name))
    }

    /// Makes a change of a tree, with rows that go with it, in the name of a principal.
    ///
    /// # Errors
    /// As the store and the plan say.
    pub async fn change(
        &self,
        who: &Principal,
        tree: TreeId,
        view: &ViewName,
        op: Op,
        with: AttachedWrites,
    ) -> Result<Applied, AgentError> {
        self.change_as((who, &who.author(), who.trust()), tree, view, op, with).await
    }

    /// Makes a change of a tree in the name of an author, whose trust what is written has.
    ///
    /// # Errors
    /// As the store and the plan say.
    pub fn change_as<'a>(
        &'a self,
        (who, author, trust): (&'a Principal, &'a Author, Trust),
        tree: TreeId,
        view: &'a ViewName,
        op: Op,
        with: AttachedWrites,
    ) -> BoxFuture<'a, Result<Applied, AgentError>> {
        Box::pin(async move {
            let request = self.request((author, trust), tree, view, op);
            Ok(store::change(self.store.as_ref(), who, request, with, &self.ids).await?)
        })
    }

    /// Makes a change of a tree, and announces before each try which node it is about to make last.
    ///
    /// # Errors
    /// As the store and the plan say.
    pub(crate) async fn change_announced<F: Future<Output = ()>>(
        &self,
        (who, author, trust): (&Principal, &Author, Trust),
        (tree, view): (TreeId, &ViewName),
        op: Op,
        with: AttachedWrites,
        announce: impl Fn(NodeId) -> F,
    ) -> Result<Applied, AgentError> {
        let request = self.request((author, trust), tree, view, op);
        Ok(store::change_announced(self.store.as_ref(), who, request, with, &self.ids, announce).await?)
    }

    /// Plans a change of a tree that is not made.
    ///
    /// # Errors
    /// As the store and the plan say.
    pub async fn plan_as(
        &self,
        (who, author, trust): (&Principal, &Author, Trust),
        tree: TreeId,
        view: &ViewName,
        op: Op,
    ) -> Result<Plan, AgentError> {
        let request = self.request((author, trust), tree, view, op);
        Ok(store::prepare(self.store.as_ref(), who, request, &self.ids).await?.plan)
    }

    fn request(&self, (author, trust): (&Author, Trust), tree: TreeId, view: &ViewName, op: Op) -> Request {
        Request { tree, view: view.clone(), author: author.clone(), trust, now: self.now(), op }
    }

    /// Reads rows of a tree in one snapshot.
    ///
    /// # Errors
    /// As the store says.
    pub async fn read<T: Send + 'static>(
        &self,
        who: &Principal,
        tree: TreeId,
        f: impl FnOnce(&dyn TreeReader) -> Result<T, RowError> + Send + 'static,
    ) -> Result<T, AgentError> {
        Ok(store::read(self.store.as_ref(), who, tree, f).await?)
    }

    /// Writes rows that come without a change of the tree.
    ///
    /// # Errors
    /// As the store says.
    pub async fn apply_rows(
        &self,
        who: &Principal,
        tree: TreeId,
        with: AttachedWrites,
    ) -> Result<(), AgentError> {
        self.store.apply(who, tree, Plan::default(), with).await?;
        Ok(())
    }

    /// Refuses new work when the disk is nearly full (spec: scale §4 `free_space`).
    ///
    /// # Errors
    /// [`AgentError::DiskFull`]. A disk that cannot be asked is not full.
    pub fn require_space(&self) -> Result<(), AgentError> {
        match self.home.space(self.space) {
            Ok(Space::Short { free, minimum }) => Err(AgentError::DiskFull { free, minimum }),
            _ => Ok(()),
        }
    }
}

/// Folder of a home in which it is kept what was there before commands.
pub fn command_records(home: &Path) -> PathBuf {
    // Beside those of the workspaces, whose names begin with a `%`, or are that of the home's own.
    home.join("sandbox").join("tracked")
}
