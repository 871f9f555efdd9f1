//! Texts of instructions that the owner approved with their difference: they count from the write on (spec: security §4).

use std::path::Path;

use loom::Digest;
use store::{AcceptedInventory, AcceptedTexts, LIST_PAGE, Principal, StoreError, WorkspaceRecord, all_pages};
use workspace::trust::Inventory;

use crate::runtime::Runtime;

/// A text of instructions: the canonical path of its workspace, its path below it, its bytes.
pub(super) type ApprovedText<'a> = (&'a Path, &'a Path, &'a [u8]);

/// What is stored of them with their writes.
///
/// # Errors
/// As the store says.
pub(super) async fn accepted(
    runtime: &Runtime,
    texts: &[ApprovedText<'_>],
) -> Result<AcceptedTexts, StoreError> {
    let digests = texts.iter().map(|(_, _, bytes)| Digest::of(bytes)).collect();
    let mut inventories = Vec::new();
    if !texts.is_empty() {
        let page = |after| runtime.store.workspaces(&Principal::Owner, after, LIST_PAGE);
        for record in all_pages(|record: &WorkspaceRecord| record.path.clone(), page).await? {
            inventories.extend(with_texts(record, texts));
        }
    }
    Ok(AcceptedTexts { digests, inventories })
}

/// None where nothing of it is accepted, or nobody trusts it.
fn with_texts(record: WorkspaceRecord, texts: &[ApprovedText<'_>]) -> Option<AcceptedInventory> {
    // One that cannot be read is damaged, and says so where it is needed: the owner is asked again.
    let mut inventory: Inventory = serde_json::from_str(&record.inventory).ok().filter(|_| record.trusted)?;
    let before = inventory.items.len();
    let of_it = texts.iter().filter(|(workspace, _, _)| *workspace == record.path);
    of_it.for_each(|(_, path, bytes)| inventory.accept_instructions(path, bytes));
    let after = serde_json::to_string(&inventory).ok().filter(|_| inventory.items.len() > before)?;
    Some(AcceptedInventory { workspace: record.path, before: record.inventory, after })
}
