//! What a process that died in a change left beside files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use workspace::{Documents, RecoveredDocument, WorkspaceLock};

use super::{PATIENCE, stamp};
use crate::tool::ToolScope;

/// Clears away what was left beside files, by their absolute paths: working files that hold their texts are removed, an
/// old text whose name is free goes back. Returns what became of them, in words.
pub(crate) fn recover(scope: &ToolScope, paths: &[PathBuf]) -> Vec<String> {
    // A folder is looked through once, however many of its files were to change.
    let folders: BTreeSet<&Path> = paths.iter().filter_map(|path| path.parent()).collect();
    let told = folders.into_iter().map(|folder| recover_folder(scope, folder));
    let told = told.map(|told| told.unwrap_or_else(|why| vec![format!("a change that was cut off: {why}")]));
    told.flatten().collect()
}

fn recover_folder(scope: &ToolScope, folder: &Path) -> Result<Vec<String>, String> {
    let named = folder.to_str().ok_or("its name is no text")?;
    let place = scope.roots.place(named).map_err(|error| error.to_string())?;
    let lock =
        WorkspaceLock::acquire(&scope.locks, place.root.id(), PATIENCE).map_err(|error| error.to_string())?;
    let documents = Documents::new(place.root, &lock).map_err(|error| error.to_string())?;
    let found = documents.recover(&place.path, &stamp()).map_err(|error| error.to_string())?;
    let told = found.into_iter().filter_map(|found| match found {
        RecoveredDocument::Removed(_) => None,
        RecoveredDocument::Kept(path) => Some(format!("a text that was cut off is kept as {path}")),
        RecoveredDocument::Restored(path) => {
            Some(format!("{path} is back as it was before a change that was cut off"))
        }
    });
    Ok(told.collect())
}
