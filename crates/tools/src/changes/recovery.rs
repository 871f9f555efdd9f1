//! What a process that died in a change left beside files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use workspace::{Documents, RecoveredDocument, RelativePath, Root, StoreGuard, WorkspaceLock};

use super::{PATIENCE, stamp};

/// Clears away what was left beside files, each given by its root and its path in it: working files that hold their texts
/// are removed, an old text whose name is free goes back. `locks` is the home's folder of locks. Returns what became of
/// them, in words. It blocks.
pub fn recover_files(
    locks: &Path,
    guard: &StoreGuard,
    files: impl IntoIterator<Item = (PathBuf, PathBuf)>,
) -> Vec<String> {
    // A folder is looked through once, however many of its files were to change.
    let folder = |(root, mut path): (PathBuf, PathBuf)| path.pop().then_some((root, path));
    let folders: BTreeSet<(PathBuf, PathBuf)> = files.into_iter().filter_map(folder).collect();
    let told = folders.iter().map(|(root, folder)| recover_folder((locks, guard), root, folder));
    let told = told.map(|told| told.unwrap_or_else(|why| vec![format!("a change that was cut off: {why}")]));
    told.flatten().collect()
}

fn recover_folder(
    (locks, guard): (&Path, &StoreGuard),
    root: &Path,
    folder: &Path,
) -> Result<Vec<String>, String> {
    let root = Root::open(root, guard).map_err(|error| error.to_string())?;
    let mut path = RelativePath::root();
    for name in folder {
        path = path.join(name).map_err(|error| error.to_string())?;
    }
    let lock = WorkspaceLock::acquire(locks, root.id(), PATIENCE).map_err(|error| error.to_string())?;
    let documents = Documents::new(&root, &lock).map_err(|error| error.to_string())?;
    let found = documents.recover(&path, &stamp()).map_err(|error| error.to_string())?;
    let told = found.into_iter().filter_map(|found| match found {
        RecoveredDocument::Removed(_) => None,
        RecoveredDocument::Kept(path) => Some(format!("a text that was cut off is kept as {path}")),
        RecoveredDocument::Restored(path) => {
            Some(format!("{path} is back as it was before a change that was cut off"))
        }
    });
    Ok(told.collect())
}
