//! Texts of instructions that the owner approved with their difference: they count from the write on (spec: security §4).

use std::path::Path;

use loom::Digest;
use store::{AcceptedInventory, LIST_PAGE, Principal, StoreError, WorkspaceRecord, all_pages};
use text::mask::Masker;
use workspace::trust::Inventory;

use crate::runtime::Runtime;

/// A text of instructions of which the owner saw the difference.
pub(crate) struct ApprovedText<'a> {
    /// Canonical path of its workspace.
    pub(crate) workspace: &'a Path,
    /// The path below it.
    pub(crate) path: &'a Path,
    /// What stood there; none where nothing did.
    pub(crate) before: Option<&'a [u8]>,
    pub(crate) after: &'a [u8],
}

/// What is stored of them with their writes.
///
/// # Errors
/// As the store says.
pub(crate) async fn accepted(
    runtime: &Runtime,
    texts: &[ApprovedText<'_>],
) -> Result<Vec<AcceptedInventory>, StoreError> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let page = |after| runtime.store.workspaces(&Principal::Owner, after, LIST_PAGE);
    let records = all_pages(|record: &WorkspaceRecord| record.path.clone(), page).await?;
    Ok(records.into_iter().filter_map(|record| with_texts(record, texts, &runtime.masker)).collect())
}

/// None where nothing of it is accepted, or nobody trusts it. A difference shows some lines around what changes: the
/// others were seen only where the text before was accepted.
fn with_texts(
    record: WorkspaceRecord,
    texts: &[ApprovedText<'_>],
    masker: &Masker,
) -> Option<AcceptedInventory> {
    // One that cannot be read is damaged, and says so where it is needed: the owner is asked again.
    let mut inventory: Inventory = serde_json::from_str(&record.inventory).ok().filter(|_| record.trusted)?;
    let number = inventory.items.len();
    for ApprovedText { path, before, after, .. } in texts.iter().filter(|text| text.workspace == record.path)
    {
        if before.is_none_or(|before| inventory.holds(path, Digest::of(before))) {
            inventory.accept_instructions(path, after);
        }
    }
    if inventory.items.len() == number {
        return None;
    }
    let after = serde_json::to_string(
        &inventory.with_texts_masked(|text| masker.mask_entering(text).text.into_owned()),
    )
    .ok()?;
    Some(AcceptedInventory { workspace: record.path, before: record.inventory, after })
}
