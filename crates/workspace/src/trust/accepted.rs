//! Accepted texts of a workspace: those the owner was shown.
//!
//! Trust in a folder is trust in what it held when the owner looked. A text that came or changed since, by `git
//! pull` or by a build script, is one nobody agreed to; it is compared by hash when it is loaded, so that nothing
//! can be exchanged between the look and the load.

use std::path::Path;

use loom::Digest;

use super::{Inventory, InventoryChange, ItemKind, TrustAnswer, TrustRecord, WorkspaceId, WorkspaceOrigin};

/// Accepted texts of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// All: it was named for this call, or is the home's own.
    All,
    /// Texts of this inventory, by digest.
    Seen(Inventory),
}

impl Default for Accepted {
    fn default() -> Self {
        Self::Seen(Inventory::default())
    }
}

impl Accepted {
    /// Accepted texts by the owner's answer.
    pub fn of(id: &WorkspaceId, arrival: WorkspaceOrigin, record: Option<&TrustRecord>) -> Self {
        match arrival {
            WorkspaceOrigin::Named | WorkspaceOrigin::HomesOwn => Self::All,
            WorkspaceOrigin::Discovered => record
                .filter(|record| record.id == *id && record.answer == TrustAnswer::Trust)
                .map_or_else(Self::default, |record| Self::Seen(record.inventory.clone())),
        }
    }

    /// The text at a path that was accepted, with secrets masked, where another one stands there and it is kept.
    pub fn before(&self, path: &Path, sha256: Digest) -> Option<&str> {
        match self {
            Self::Seen(seen) if !seen.holds(path, sha256) => seen.texts.get(path).map(String::as_str),
            Self::Seen(_) | Self::All => None,
        }
    }

    /// Whether a text is loaded: the one at this path below the workspace, with this hash.
    pub fn takes(&self, path: &Path, sha256: Digest) -> bool {
        match self {
            Self::All => true,
            Self::Seen(seen) => seen.holds(path, sha256),
        }
    }

    /// Texts accepted here or among others.
    pub fn with(&self, others: &Self) -> Self {
        match (self, others) {
            (Self::All, _) | (_, Self::All) => Self::All,
            (Self::Seen(some), Self::Seen(more)) => {
                let items = some.items.iter().chain(&more.items).cloned().collect();
                let texts = some.texts.iter().chain(&more.texts);
                let texts = texts.map(|(path, text)| (path.clone(), text.clone())).collect();
                Self::Seen(Inventory { items, texts, ..Inventory::default() })
            }
        }
    }
}

impl Inventory {
    /// The files of instructions and of skills that came or changed since an earlier inventory: what the owner is asked
    /// about again. What is gone needs no answer.
    pub fn unseen_texts(&self, earlier: &Self) -> Vec<InventoryChange> {
        let mut changes = self.changes_since(earlier);
        changes.retain(|change| match change {
            InventoryChange::Removed(_) => false,
            InventoryChange::Added(path) | InventoryChange::Changed(path) => {
                let is_text = |kind| matches!(kind, ItemKind::Instructions | ItemKind::Skill);
                self.items.iter().any(|item| item.path == *path && is_text(item.kind))
            }
        });
        changes
    }
}
