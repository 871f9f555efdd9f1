//! The workspace of a call that loads nothing of it by itself, as the owner's answer stands.

use std::path::Path;

use loom::Digest;
use store::StoreError;
use workspace::Root;
use workspace::trust::{Accepted, TrustDecision, TrustRecord, WorkspaceOrigin, decide};

use crate::app::{App, Workspace};
use crate::command_changes::made_by_command;
use crate::rights::Asker;
use crate::workspaces::{InspectedFolder, answered};

/// The workspace of a call that loads nothing, as it is judged by what the owner said of it by now.
pub(crate) struct JudgedWorkspace {
    pub(crate) looked: InspectedFolder,
    pub(crate) arrival: WorkspaceOrigin,
    pub(crate) decision: TrustDecision,
    /// Which of its texts count.
    pub(crate) accepted: Accepted,
    pub(crate) record: Option<TrustRecord>,
}

impl JudgedWorkspace {
    /// None where there is no workspace, or its folder cannot be opened.
    ///
    /// # Errors
    /// As the store says.
    pub(crate) async fn now(app: &App, asker: &Asker) -> Result<Option<Self>, StoreError> {
        let Workspace { folder, arrival, .. } = &app.workspace;
        let looked = folder.as_deref().and_then(|folder| InspectedFolder::at(folder, &app.guard).ok());
        let Some((looked, arrival)) = looked.zip(*arrival) else { return Ok(None) };
        let record = answered(&app.runtime.store, &asker.principal, &looked.id).await?;
        let decision = decide(&looked.id, &looked.inventory, arrival, record.as_ref());
        let accepted = Accepted::of(&looked.id, arrival, record.as_ref());
        Ok(Some(Self { looked, arrival, decision, accepted, record }))
    }
}

/// Why a text below a root is not taken: its owner was not shown it, or a command made it. None where it is.
pub(crate) fn why_not_taken(
    home: &Path,
    root: &Root,
    accepted: &Accepted,
    (path, digest): (&Path, Digest),
) -> Option<String> {
    if !accepted.takes(path, digest) {
        let why = "it came or changed since you trusted the workspace; `drawloom workspace trust` accepts it";
        return Some(why.to_owned());
    }
    made_by_command(&agent::command_records(home), root, path, digest)
}
