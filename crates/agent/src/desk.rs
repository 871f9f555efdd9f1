//! What work is done with: the store, this process's name in it, and who hears of it.

use std::sync::Arc;

use loom::plan::Request;
use loom::{Author, Millis, NodeId, Op, RowError, Rows, TreeId, Trust, ViewName};
use model::Clock;
use store::home::{Home, Space, SpaceLimits};
use store::instance::InstanceId;
use store::{Applied, Ids, Principal, Store, With};
use text::mask::Masker;

use crate::error::AgentError;

/// Who hears of work while it is done.
pub trait Client: Send + Sync {
    /// One line of progress or notice.
    fn note(&self, line: &str);
    /// New text of a node that is being written.
    fn delta(&self, node: NodeId, text: &str);
}

/// A home that is open, with everything work in it needs. Cheap to clone.
#[derive(Clone)]
pub struct Desk {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Ids of this process.
    pub ids: Arc<Ids>,
    /// The home.
    pub home: Arc<Home>,
    /// This process, as an owner of running work.
    pub instance: InstanceId,
    /// The wall clock.
    pub clock: Clock,
    /// Known secrets, to be masked on entry.
    pub masker: Arc<Masker>,
    /// Free space below which no turn begins.
    pub space: SpaceLimits,
    /// Who hears of it.
    pub client: Arc<dyn Client>,
}

impl Desk {
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

    /// Makes a change of a tree, with rows that go with it, as the owner's.
    ///
    /// # Errors
    /// As the store and the plan say.
    pub async fn change(
        &self,
        who: &Principal,
        tree: TreeId,
        view: &ViewName,
        op: Op,
        with: With,
    ) -> Result<Applied, AgentError> {
        let request = Request {
            tree,
            view: view.clone(),
            author: Author::owner(),
            trust: Trust::Owner,
            now: self.now(),
            op,
        };
        Ok(store::change(self.store.as_ref(), who, request, with, &self.ids).await?)
    }

    /// Reads rows of a tree in one snapshot.
    ///
    /// # Errors
    /// As the store says.
    pub async fn read<T: Send + 'static>(
        &self,
        who: &Principal,
        tree: TreeId,
        f: impl FnOnce(&dyn Rows) -> Result<T, RowError> + Send + 'static,
    ) -> Result<T, AgentError> {
        Ok(store::read(self.store.as_ref(), who, tree, f).await?)
    }

    /// Writes rows that come without a change of the tree.
    ///
    /// # Errors
    /// As the store says.
    pub async fn apply_rows(&self, who: &Principal, tree: TreeId, with: With) -> Result<(), AgentError> {
        self.store.apply(who, tree, loom::Plan::default(), with).await?;
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
