//! Planning an import: its changes of a store, as plain data (spec: loom §8 *Rules*, security §13).
//!
//! - A tree that is unknown here is taken whole, under its own ids: [`ImportChange::Whole`].
//! - Of a tree that is known, what is stored is compared record by record: equal ones are skipped, one that
//!   differs refuses the whole file, new ones are added by an ordinary [`loom::Plan`] that sets no cell a view
//!   reads: [`ImportChange::Added`].
//! - A copy gets new ids and a new log: [`plan_copy`].
//!
//! Operations, views, generations of a file are history. Nothing here resumes, runs or grants anything.

mod copy;
mod known;

use loom::{Author, Digest, Millis, NodeId, Plan, RowError, TreeReader, Trust};
use serde::Serialize;

use crate::own::ImportedFile;

pub use copy::{CopyPlan, plan_copy};

/// Provenance of imported text: kept beside the tree, never in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Provenance {
    pub file: Digest,
}

impl Provenance {
    /// Trust of imported text until `tree trust`.
    pub const TRUST: Trust = Trust::Outside;

    /// How an imported author is shown and treated: `import:<digest>/<name>`, with the first 16 digits. A file
    /// cannot speak as the owner.
    pub fn author(&self, author: &Author) -> String {
        let digest = self.file.to_string();
        format!("import:{}/{}", &digest[..16], text::terminal::one_line(&author.id))
    }
}

/// A time outside 2000-01-01 to now + 1 day. It is kept, shown as such, and orders nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ImplausibleTime {
    pub node: NodeId,
    pub at: Millis,
}

/// What has to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum ImportChange {
    /// Insert the file's tree as it is: rows, log and the cells the log sets.
    Whole,
    /// Apply this plan to the tree that is here, then keep the file's manifests, responses and blobs that its
    /// nodes name. Generations stay in the file.
    Added(Box<Plan>),
    /// Nothing: all of it is here.
    Nothing,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ImportPlan {
    pub change: ImportChange,
    /// Nodes that are here already.
    pub skipped: u64,
    /// Nodes that are here without the text that the file has: forgotten here, or left out of a shared file.
    pub missing_texts: u64,
    /// Manifests, responses and bodies that are not here, of nodes that are.
    pub missing_requests: u64,
    /// Operations of the file that are kept in no log: history of another copy of the tree.
    pub history: u64,
    pub provenance: Provenance,
    pub odd_times: Vec<ImplausibleTime>,
}

/// Refusal of an import. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ImportRefusal {
    /// The tree in the file does not stand.
    #[error("line {line} of the file: {why}; nothing was imported (`--copy` imports what is complete)")]
    Broken {
        /// The line; 0 for the whole file.
        line: u64,
        why: String,
    },
    /// A record differs from the stored one of the same id.
    #[error("the file has another {what} {id} than this home; nothing was imported (`--copy` gives new ids)")]
    Differs { what: &'static str, id: String },
    /// The copy could not be made.
    #[error("the copy could not be made: {0}")]
    Copy(String),
    /// The store could not be read.
    #[error(transparent)]
    Rows(#[from] RowError),
}

/// Plans an import. `here` is the tree of the same id, if this home has it; `agent` is who asks.
///
/// # Errors
/// [`ImportRefusal`] when the file does not stand or contradicts what is stored.
pub fn plan_import(
    file: &ImportedFile,
    here: Option<&dyn TreeReader>,
    agent: &str,
    now: Millis,
) -> Result<ImportPlan, ImportRefusal> {
    if let Some(problem) = file.broken() {
        return Err(ImportRefusal::Broken { line: problem.line, why: problem.why.clone() });
    }
    let mut plan = ImportPlan {
        change: ImportChange::Whole,
        skipped: 0,
        missing_texts: 0,
        missing_requests: 0,
        history: 0,
        provenance: Provenance { file: file.digest },
        odd_times: odd_times(file, now)?,
    };
    if let Some(rows) = here {
        known::add(file, rows, agent, now, &mut plan)?;
    }
    Ok(plan)
}

/// 2000-01-01 UTC.
const EARLIEST: Millis = Millis(946_684_800_000);

const DAY: i64 = 86_400_000;

fn odd_times(file: &ImportedFile, now: Millis) -> Result<Vec<ImplausibleTime>, RowError> {
    let latest = Millis(now.0.saturating_add(DAY));
    let mut odd = Vec::new();
    known::each_node(&file.tree, |row| {
        let at = row.node.created_at;
        if at < EARLIEST || at > latest {
            odd.push(ImplausibleTime { node: row.node.id, at });
        }
        Ok::<_, RowError>(())
    })?;
    Ok(odd)
}
