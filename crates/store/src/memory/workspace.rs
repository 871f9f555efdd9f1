//! Answers about workspaces, in memory.

use crate::error::StoreError;
use crate::memory::state::State;
use crate::principal::Principal;
use crate::workspace::WorkspaceRecord;

impl State {
    pub(super) fn workspaces(&self, who: &Principal) -> Result<Vec<WorkspaceRecord>, StoreError> {
        if !who.sees_all() {
            return Err(StoreError::Denied("workspaces"));
        }
        Ok(self.workspaces.clone())
    }

    pub(super) fn keep_workspace(
        &mut self,
        who: &Principal,
        record: WorkspaceRecord,
    ) -> Result<(), StoreError> {
        if !who.sees_all() {
            return Err(StoreError::Denied("workspaces"));
        }
        self.workspaces.retain(|other| other.path != record.path);
        self.workspaces.push(record);
        self.workspaces.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(())
    }
}
