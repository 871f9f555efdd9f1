//! Whether the owner withdrew the trust in the workspace that a conversation belongs to (spec: security §4).

use loom::TreeId;
use store::{LIST_PAGE, Principal, SessionId, StoreError, WorkspaceRecord, all_pages};

use crate::runtime::Runtime;

impl Runtime {
    /// Whether the owner said that nothing of the workspace of a tree's session is loaded: of the folder at its path, or of
    /// the one that stood there and is elsewhere now.
    pub(crate) async fn distrusts_workspace(
        &self,
        who: &Principal,
        tree: TreeId,
    ) -> Result<bool, StoreError> {
        let Some(session) = self.store.tree(who, tree).await?.session else { return Ok(false) };
        let Some(session) = self.store.session(who, &SessionId(session)).await? else { return Ok(false) };
        let place = |record: &WorkspaceRecord| record.path.clone();
        let page = |after| self.store.workspaces(&Principal::Owner, after, LIST_PAGE);
        let records = all_pages(place, page).await?;
        Ok(is_distrusted(&records, &session.workspace))
    }
}

/// `key` is the path of a workspace as sessions name it: what is not UTF-8 in it is replaced.
fn is_distrusted(records: &[WorkspaceRecord], key: &str) -> bool {
    let file = |record: &WorkspaceRecord| (record.device, record.inode);
    let named: Vec<_> = records.iter().filter(|record| record.path.to_string_lossy() == key).collect();
    let is_it = |record: &WorkspaceRecord| named.iter().any(|named| file(named) == file(record));
    named.iter().any(|record| !record.trusted)
        || records.iter().any(|record| !record.trusted && is_it(record))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use loom::Millis;

    use super::*;

    fn record(path: &[u8], inode: u64, trusted: bool) -> WorkspaceRecord {
        let path = OsStr::from_bytes(path).into();
        WorkspaceRecord { path, device: 1, inode, trusted, inventory: "{}".to_owned(), at: Millis(0) }
    }

    #[test]
    fn a_workspace_is_distrusted_by_its_path_and_as_the_folder_it_was() {
        let strange = b"/w\xe9s";
        for (records, key, expected) in [
            (vec![record(b"/w", 1, true)], "/w", false),
            (vec![record(b"/w", 1, false)], "/w", true),
            (vec![record(b"/w", 1, false)], "/v", false),
            (vec![record(strange, 1, false)], "/w\u{fffd}s", true),
            (vec![record(b"/w", 1, true), record(b"/moved", 1, false)], "/w", true),
            (vec![record(b"/w", 1, true), record(b"/other", 2, false)], "/w", false),
        ] {
            assert_eq!(is_distrusted(&records, key), expected, "{records:?} {key}");
        }
    }
}
