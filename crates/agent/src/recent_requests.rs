//! The requests that this process made last: the next one of a tree goes on from it without reading it again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use context::{Manifest, Prefix, StoredBody};
use loom::{Digest, TreeId};
use store::{Cursor, Principal};

use crate::error::AgentError;
use crate::runtime::Runtime;

/// Requests kept: a conversation and its subagents.
const MOST: usize = 8;
/// Largest body that is kept, in bytes.
const LARGEST_BODY: usize = 8 << 20;

/// A request as it was made durable.
#[derive(Debug)]
pub(crate) struct RecentRequest {
    pub(crate) tree: TreeId,
    /// The newest event before it was put together.
    pub(crate) at: Cursor,
    /// That of its manifest.
    pub(crate) digest: Digest,
    pub(crate) manifest: Arc<Manifest>,
    /// How its body is stored, and those that rests on.
    pub(crate) chain: Vec<StoredBody>,
    pub(crate) body: Bytes,
    /// What stood above its cache boundary.
    pub(crate) prefix: Option<Prefix>,
}

/// The newest request of each of the trees that were asked last.
#[derive(Debug, Default)]
pub struct RecentRequests(Mutex<VecDeque<Arc<RecentRequest>>>);

impl RecentRequests {
    pub(crate) fn keep(&self, request: RecentRequest) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|other| other.tree != request.tree);
        if request.body.len() <= LARGEST_BODY {
            kept.push_front(Arc::new(request));
            kept.truncate(MOST);
        }
    }

    pub(crate) fn remove(&self, tree: TreeId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|kept| kept.tree != tree);
    }

    fn of(&self, tree: TreeId) -> Option<Arc<RecentRequest>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|kept| kept.tree == tree).cloned()
    }
}

impl Runtime {
    /// The newest request of a tree, if this process made it and nothing of the tree was forgotten since.
    pub(crate) async fn recent_request(
        &self,
        who: &Principal,
        tree: TreeId,
    ) -> Result<Option<Arc<RecentRequest>>, AgentError> {
        let Some(recent) = self.recent_requests.of(tree) else { return Ok(None) };
        if self.store.removed_since(who, tree, recent.at).await? {
            self.recent_requests.remove(tree);
            return Ok(None);
        }
        Ok(Some(recent))
    }
}
