//! Sessions: conversations by name, each a chain of trees.
//!
//! A session has an id that never changes, to which its trees are bound, and a name that people use: unique among
//! the sessions of its workspace that are not archived. When a session is handed over, its next tree is bound to
//! the same id, so that the chain is one entry in every list.

use std::fmt;

use loom::{Millis, TreeId};
use serde::{Deserialize, Serialize};

use crate::listing::TreeEntry;

/// Name of the home's own workspace. Others are named by their paths, which are absolute.
pub const OWN_WORKSPACE: &str = "home";

/// A session's id. Trees, leases and tokens name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId(pub String);

impl SessionId {
    /// The name of the lease that a turn of this session is held by.
    pub fn lease(&self) -> String {
        format!("session/{}", self.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a session is (spec: agent §0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionKind {
    /// The owner's: boot files, memory, hand-over.
    Main,
    /// The owner's, forgotten when it is closed.
    Temporary,
    /// On its own: API clients without a session, subagents, jobs.
    Isolated,
}

/// A session that begins, in one transaction with its first tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    pub id: SessionId,
    /// Workspace of the session; empty for none.
    pub workspace: String,
    pub name: String,
    pub kind: SessionKind,
    pub at: Millis,
}

/// A session with its trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub id: SessionId,
    /// Workspace of the session; empty for none.
    pub workspace: String,
    pub name: String,
    pub kind: SessionKind,
    pub archived: bool,
    pub created_at: Millis,
    /// How it is gone on with, as its conversations write it; empty where nothing was set.
    pub settings: String,
    /// Trees that were not purged, the oldest first.
    pub trees: Vec<TreeEntry>,
    /// Tree that it was moved to; none of a session that goes on in its newest.
    pub moved_to: Option<TreeId>,
}

impl Session {
    /// The tree it goes on in; none once everything of it is purged.
    pub fn tree(&self) -> Option<TreeId> {
        self.entry().map(|tree| tree.id)
    }

    /// As [`Self::tree`]. One that it was moved to and that was purged or archived since counts as none.
    pub fn entry(&self) -> Option<&TreeEntry> {
        let moved_to = self.trees.iter().find(|tree| self.moved_to == Some(tree.id) && !tree.archived);
        moved_to.or(self.trees.last())
    }

    /// Place in a list of sessions: when the session was last changed, then its id.
    pub fn place(&self) -> (Millis, SessionId) {
        (self.updated_at(), self.id.clone())
    }

    /// When something was last done in it.
    pub fn updated_at(&self) -> Millis {
        self.trees.iter().map(|tree| tree.updated_at).max().unwrap_or(self.created_at)
    }
}

/// Which sessions a list holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionFilter {
    /// Of one workspace; of all, if none.
    pub workspace: Option<String>,
    pub name: Option<String>,
    pub archived: bool,
}
