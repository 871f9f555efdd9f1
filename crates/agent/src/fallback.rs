//! Another model when one does not answer (spec: agent §2, security §10).
//!
//! The models come from the owner's list, each named in full, and are tried in its order: when the one that was asked
//! cannot be reached, is overloaded, turns us away for now or has no quota left, and nothing of an answer came. Never
//! for a refusal, a bad request or a window that is too small. A remote model does not take over from a local one
//! unless the owner allowed that in so many words: a private conversation does not leave because a server is off.
//! Each try is a request of its own, with its manifest and generation row, and the person is told who answers.

use std::fmt;
use std::sync::Arc;

use model::{Model, ModelInfo, ModelPlace};
use tokio::task::JoinError;

/// A model of the list as it was found: its name, and why it cannot be asked, if it cannot.
pub type FoundModel = (String, Result<Arc<dyn Model>, String>);

/// A list of the owner's, looked up only when it is needed: the models that are asked instead, or those that subagents may have.
#[derive(Clone)]
pub struct ListedModels {
    find: Arc<dyn Fn() -> Vec<FoundModel> + Send + Sync>,
    /// Whether a remote model of it may have what is a local one's.
    remote: bool,
}

impl ListedModels {
    /// The list; `remote` says that a remote model of it may take over from a local one.
    pub fn new(find: impl Fn() -> Vec<FoundModel> + Send + Sync + 'static, remote: bool) -> Self {
        Self { find: Arc::new(find), remote }
    }

    /// The models of the list, looked up on a thread that may wait: one of them may have to be started.
    pub(crate) async fn found(&self) -> Vec<FoundModel> {
        let find = Arc::clone(&self.find);
        match tokio::task::spawn_blocking(move || find()).await.map_err(JoinError::try_into_panic) {
            Ok(found) => found,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The process ends.
            Err(Err(_)) => Vec::new(),
        }
    }

    /// Whether one model may take over from another.
    pub(crate) fn allows(&self, from: &ModelInfo, to: &ModelInfo) -> bool {
        from.place == ModelPlace::Remote || to.place == ModelPlace::Local || self.remote
    }
}

impl Default for ListedModels {
    fn default() -> Self {
        Self::new(Vec::new, false)
    }
}

impl fmt::Debug for ListedModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListedModels").field("remote", &self.remote).finish_non_exhaustive()
    }
}
