//! What tools of a session wrote in files, told to its tools of this process: whoever wrote a file in an earlier turn, in
//! whichever process, may write over it as one that was read (spec: agent §3 *Edits*).

use std::collections::{BTreeMap, BTreeSet};

use loom::{Block, NodeId, RowError, TreeId, TreeReader};
use store::{CallId, Cursor, FileChange, FileChangeId, FileState, LIST_PAGE, Principal, all_pages};
use tools::{ToolRegistry, WrittenFile};

use super::Turn;
use crate::error::AgentError;

/// Tools whose changes their model wrote itself: those of commands it did not see.
const WRITING: [&str; 3] = ["edit", "patch", "write"];

impl Turn<'_> {
    /// Tells tools what was written in a tree since they were told last. What cannot be found out is as if nobody had.
    pub(super) async fn tell_written(&self, registry: &ToolRegistry, tree: TreeId) {
        if let Err(error) = self.tell_written_since(registry, tree).await {
            tracing::warn!(%error, "which files earlier turns wrote is not known");
        }
    }

    async fn tell_written_since(&self, registry: &ToolRegistry, tree: TreeId) -> Result<(), AgentError> {
        let (store, who) = (&self.runtime.store, &Principal::Owner);
        let before = registry.newest_before(store.cursor().await?.0);
        // What cannot be found out is as if something was.
        if let Some(before) = before
            && store.removed_anywhere_since(Cursor(before)).await.unwrap_or(true)
        {
            registry.forget_files();
        }
        let told = registry
            .told_written(tree)
            .map(|(answer, call, number)| FileChangeId { call: CallId { answer, number: call }, number });
        let page = |after: Option<FileChangeId>| store.file_changes(who, tree, after.or(told), LIST_PAGE);
        let changes = all_pages(|change: &FileChange| change.id, page).await?;
        let Some(last) = changes.last().map(|change| change.id) else { return Ok(()) };
        let answers: BTreeSet<NodeId> = changes.iter().map(|change| change.id.call.answer).collect();
        let calls = self.runtime.read(who, tree, move |rows| tools_of(rows, answers)).await?;
        let is_written = |change: &FileChange| {
            let tool = calls.get(&change.id.call);
            change.standing.stands() && tool.is_some_and(|tool| WRITING.contains(&tool.as_str()))
        };
        let written = changes.into_iter().filter(is_written).filter_map(|change| match change.after {
            FileState::File { blob, .. } => {
                Some(WrittenFile { root: change.root, path: change.path, digest: blob, at: change.at.0 })
            }
            _ => None,
        });
        let last = (last.call.answer, last.call.number, last.number);
        registry.tell_written(tree, last, written.collect());
        Ok(())
    }
}

/// The tools that answers called.
fn tools_of(rows: &dyn TreeReader, answers: BTreeSet<NodeId>) -> Result<BTreeMap<CallId, String>, RowError> {
    let mut found = BTreeMap::new();
    for answer in answers {
        let Some(row) = rows.node(answer)? else { continue };
        let calls = row.node.content.iter().filter_map(|block| match block {
            Block::ToolCall { name, arguments, .. } => Some(context::tools::unwrapped(name, arguments).0),
            _ => None,
        });
        found.extend((0..).zip(calls).map(|(number, tool)| (CallId { answer, number }, tool.to_owned())));
    }
    Ok(found)
}
