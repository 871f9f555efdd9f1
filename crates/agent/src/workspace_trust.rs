//! Whether the owner withdrew the trust in the workspace that a conversation belongs to (spec: security §4).

use async_trait::async_trait;
use loom::TreeId;
use model::SendPermit;
use store::{Principal, SessionId, StoreError};

use crate::runtime::Runtime;

impl Runtime {
    /// Whether the owner said that nothing of the workspace of a tree's session is loaded.
    pub(crate) async fn distrusts_workspace(
        &self,
        who: &Principal,
        tree: TreeId,
    ) -> Result<bool, StoreError> {
        let Some(session) = self.store.tree(who, tree).await?.session else { return Ok(false) };
        let Some(session) = self.store.session(who, &SessionId(session)).await? else { return Ok(false) };
        self.store.distrusts_workspace(&Principal::Owner, &session.workspace).await
    }
}

/// Permit of a request that may hold texts of a workspace which the owner trusted when it was put together.
pub(crate) struct WorkspacePermit<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) who: &'a Principal,
    pub(crate) tree: TreeId,
}

#[async_trait]
impl SendPermit for WorkspacePermit<'_> {
    async fn is_granted(&self) -> bool {
        let is_distrusted = self.runtime.distrusts_workspace(self.who, self.tree).await;
        if let Err(error) = &is_distrusted {
            tracing::warn!(%error, "whether a workspace is still trusted cannot be read: its texts are not sent");
        }
        is_distrusted.is_ok_and(|is_distrusted| !is_distrusted)
    }
}
