//! Whether a workspace may be loaded (spec: security §4, cli §1).
//!
//! `cd cloned-repo && chat` must not hand a stranger's instructions, skills and reminders to the
//! agent. So there is an [`Inventory`] of what a folder would load, for the owner to look at, and
//! a pure [`decide`] over what the owner said before. The record of that is kept by the store; it
//! is for one folder by canonical path *and* device and inode, so that another folder put at a
//! trusted path, or a trusted one moved elsewhere, is asked about again.

mod accepted;
mod inventory;

use std::fmt;
use std::path::PathBuf;

use crate::identity::FileId;
use crate::root::Root;

pub use accepted::Accepted;
pub use inventory::{
    Inventory, InventoryChange, InventoryItem, ItemKind, KEPT_BYTES, Unread, is_instructions,
};

/// Identity of a workspace's folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspaceId {
    pub path: PathBuf,
    pub file: FileId,
}

impl WorkspaceId {
    /// The identity of an opened folder.
    pub fn of(workspace: &Root) -> Self {
        Self { path: workspace.path().to_path_buf(), file: workspace.id() }
    }
}

/// Origin of the workspace of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkspaceOrigin {
    /// Discovered from the current folder.
    Discovered,
    /// Written out as `--workspace DIR`.
    Named,
    /// `<home>/workspace`, which Drawloom made inside its own home.
    HomesOwn,
}

/// Trust decision of the owner about a workspace, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustRecord {
    /// The folder it was said about.
    pub id: WorkspaceId,
    pub answer: TrustAnswer,
    /// What the folder would have loaded then; later changes are shown as differences.
    pub inventory: Inventory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustAnswer {
    Trust,
    /// Do not (`workspace untrust`, or "no" when asked).
    Distrust,
}

/// Whether a workspace is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustDecision {
    /// The owner trusts this folder.
    Trusted,
    /// The workspace is not loaded: its files are content from outside, and its instructions, skills, commands,
    /// reminders, heartbeat, hooks and cards are off.
    Untrusted(UntrustedReason),
    /// There is nothing to load, so there is nothing to decide.
    NothingToLoad,
    /// Naming it is the decision, for this call alone.
    NamedForThisCall,
}

impl TrustDecision {
    /// Whether what the workspace brings is loaded.
    pub fn loads(self) -> bool {
        match self {
            Self::Trusted | Self::NamedForThisCall | Self::NothingToLoad => true,
            Self::Untrusted(_) => false,
        }
    }
}

/// Reason why a workspace is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UntrustedReason {
    /// Nobody said anything about it.
    #[error("it was never trusted")]
    NeverAsked,
    #[error("you said not to load it")]
    Distrusted,
    /// A folder of this path was trusted, and this is another one.
    #[error("another folder is where the trusted one was")]
    Replaced,
    /// This folder was trusted at another path.
    #[error("the trusted folder was moved here")]
    Moved,
}

impl fmt::Display for TrustDecision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trusted => out.write_str("trusted"),
            Self::Untrusted(reason) => {
                write!(out, "not loaded: {reason}")
            }
            Self::NothingToLoad => out.write_str("nothing to load"),
            Self::NamedForThisCall => out.write_str("named for this call"),
        }
    }
}

/// Decides from what the owner said before. `record` is the one for this path or this inode, if
/// the store has any.
///
/// An explicit "no" holds for a discovered workspace even when there is nothing to load now. An
/// inventory that could not be finished never counts as nothing.
pub fn decide(
    id: &WorkspaceId,
    inventory: &Inventory,
    arrival: WorkspaceOrigin,
    record: Option<&TrustRecord>,
) -> TrustDecision {
    let reason = match record {
        Some(record) if record.id == *id => match record.answer {
            TrustAnswer::Trust => return TrustDecision::Trusted,
            TrustAnswer::Distrust => UntrustedReason::Distrusted,
        },
        Some(record) if record.answer == TrustAnswer::Trust && record.id.path == id.path => {
            UntrustedReason::Replaced
        }
        Some(record) if record.answer == TrustAnswer::Trust && record.id.file == id.file => {
            UntrustedReason::Moved
        }
        _ => UntrustedReason::NeverAsked,
    };
    match arrival {
        WorkspaceOrigin::HomesOwn => TrustDecision::Trusted,
        WorkspaceOrigin::Named => TrustDecision::NamedForThisCall,
        WorkspaceOrigin::Discovered if reason != UntrustedReason::Distrusted && inventory.is_empty() => {
            TrustDecision::NothingToLoad
        }
        WorkspaceOrigin::Discovered => TrustDecision::Untrusted(reason),
    }
}

#[cfg(test)]
mod tests;
