//! What a process that died in a change left beside files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loom::Digest;
use workspace::{
    Documents, FileProblem, KnownTexts, RecoveredDocument, RelativePath, Root, StoreGuard, WorkspaceLock,
};

use super::path::unkept_digest;
use super::{PATIENCE, stamp};

/// A file that was about to change.
#[derive(Debug)]
pub struct LeftFile {
    /// The folder its path lies beneath.
    pub root: PathBuf,
    /// The path below it.
    pub path: PathBuf,
    /// Digests of what stood and was to stand there; of a link that of where it leads.
    pub known: Vec<Digest>,
}

/// Clears away what was left beside files: working files that hold their texts are removed, an old text whose name is
/// free goes back, and a file whose removal by its stamp was cut off goes. `locks` is the home's folder of locks. Returns what became of them, in words. It blocks.
pub fn recover_files(
    locks: &Path,
    guard: &StoreGuard,
    files: impl IntoIterator<Item = LeftFile>,
) -> Vec<String> {
    let mut roots: BTreeMap<PathBuf, BTreeMap<PathBuf, KnownTexts>> = BTreeMap::new();
    for LeftFile { root, path, known } in files {
        if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
            let texts = roots.entry(root).or_default().entry(folder.to_owned()).or_default();
            texts.entry(name.to_owned()).or_default().extend(known);
        }
    }
    let mut told = Vec::new();
    for (root, folders) in roots {
        if let Err(why) = recover_root((locks, guard), &root, &folders, &mut told) {
            told.push(format!("a change that was cut off: {why}"));
        }
    }
    told
}

fn is_closed(root: &Root, folder: &RelativePath) -> bool {
    root.list(folder, 1).is_err_and(|error| matches!(error.problem, FileProblem::PermissionDenied))
}

fn recover_root(
    (locks, guard): (&Path, &StoreGuard),
    root: &Path,
    folders: &BTreeMap<PathBuf, KnownTexts>,
    told: &mut Vec<String>,
) -> Result<(), String> {
    let root = Root::open_again(root, guard).map_err(|error| error.to_string())?;
    let lock = WorkspaceLock::acquire(locks, root.id(), PATIENCE).map_err(|error| error.to_string())?;
    let documents = Documents::new(&root, &lock).map_err(|error| error.to_string())?;
    for (folder, known) in folders {
        let folder = RelativePath::from_components(folder).map_err(|error| error.to_string())?;
        // A command may have closed it.
        let _open = is_closed(&root, &folder).then(|| root.owner_access_within(&folder));
        let finished = documents.finish_removals(&folder, known, &stamp(), unkept_digest);
        let mut found = finished.map_err(|error| error.to_string())?;
        found.extend(documents.recover(&folder, known, &stamp()).map_err(|error| error.to_string())?);
        told.extend(found.into_iter().filter_map(|found| match found {
            RecoveredDocument::Removed(_) => None,
            RecoveredDocument::Kept(path) => Some(format!("a text that was cut off is kept as {path}")),
            RecoveredDocument::Restored(path) => {
                Some(format!("{path} is back as it was before a change that was cut off"))
            }
        }));
    }
    Ok(())
}
