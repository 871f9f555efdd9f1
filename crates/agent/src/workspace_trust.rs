//! Whether the owner withdrew the trust in the workspace that a conversation belongs to (spec: security §4).

use loom::TreeId;
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
