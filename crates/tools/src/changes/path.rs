//! The change of one path from what it is expected to hold to something else.

use std::path::Path;

use loom::Digest;
use workspace::{
    Documents, Expected, FileStamp, LinkPolicy, RelativePath, RemoveOutcome, ReplaceOutcome, Replacement,
    Root, Unmerged, WorkspaceLock,
};

use super::{FileContent, PATIENCE, stamp};

/// Permission bits of new files and folders, before the owner's umask.
pub(super) const NEW_FILE: u32 = 0o666;
pub(super) const NEW_FOLDER: u32 = 0o777;

pub(super) fn make_folder(root: &Root, path: &RelativePath, mode: u32) -> Result<(), String> {
    let made = root.create_folder_as(path, mode).and_then(|()| root.set_mode(path, mode));
    made.map_err(|error| error.to_string())
}

/// Brings one path from what it is expected to hold to something else, with these permission bits.
///
/// # Errors
/// It holds another text, which stays; it is a file with further names; or the system refused.
pub(super) fn change_file(
    locks: &Path,
    (root, path): (&Root, &RelativePath),
    expected: Option<Digest>,
    to: (Option<&[u8]>, u32),
) -> Result<(), String> {
    change_named(locks, (root, path, 1), expected, to)
}

/// [`change_file`] of a file that has at most `names` names.
fn change_named(
    locks: &Path,
    (root, path, names): (&Root, &RelativePath, u64),
    expected: Option<Digest>,
    (to, bits): (Option<&[u8]>, u32),
) -> Result<(), String> {
    let lock = WorkspaceLock::acquire(locks, root.id(), PATIENCE).map_err(|error| error.to_string())?;
    let documents = Documents::new(root, &lock).map_err(|error| error.to_string())?;
    let documents = documents.refuse_links().with_names(names);
    let stamp = stamp();
    let changed = |kept: &str| {
        format!("{} was changed by somebody else meanwhile, and stays so{kept}", root.shown(path).display())
    };
    match (expected, to) {
        (Some(expected), None) => match documents.remove(path, expected, &stamp) {
            Ok(RemoveOutcome::Removed) => Ok(()),
            Ok(RemoveOutcome::Conflict { .. }) => Err(changed("")),
            Err(error) => Err(error.to_string()),
        },
        (_, Some(text)) => {
            let expected = expected.map_or(Expected::Absent, Expected::Text);
            let (unmerged, mode) = (Unmerged::Beside, Some(bits));
            let replacement = Replacement { text, expected, stamp, unmerged, mode };
            match documents.replace(path, &replacement) {
                Ok(ReplaceOutcome::Saved(saved)) if saved.changed => Ok(()),
                Ok(ReplaceOutcome::Saved(_)) => root.set_mode(path, bits).map_err(|error| error.to_string()),
                Ok(ReplaceOutcome::Conflict { ours, .. }) => {
                    Err(changed(&format!("; the new text lies in {ours}")))
                }
                Err(error) => Err(error.to_string()),
            }
        }
        (None, None) => Ok(()),
    }
}

/// Removes a link that leads where it is expected to.
///
/// # Errors
/// It is another thing by now, which stays; or the system refused.
pub(super) fn remove_link(
    locks: &Path,
    root: &Root,
    path: &RelativePath,
    target: &[u8],
) -> Result<(), String> {
    let lock = WorkspaceLock::acquire(locks, root.id(), PATIENCE).map_err(|error| error.to_string())?;
    let documents = Documents::new(root, &lock).map_err(|error| error.to_string())?;
    match documents.remove_link(path, target, &stamp()) {
        Ok(RemoveOutcome::Removed) => Ok(()),
        Ok(RemoveOutcome::Conflict { .. }) => {
            let path = root.shown(path);
            Err(format!("{} was changed by somebody else meanwhile, and stays so", path.display()))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The digest of the stamp of a file that is too large to be kept, by which it is known.
pub fn unkept_digest(stamp: &FileStamp) -> Digest {
    let FileStamp { id, bytes, modified, changed, .. } = stamp;
    Digest::of(format!("{bytes} {} {} {modified} {changed}", id.device, id.inode).as_bytes())
}

/// Removes a file that is too large to be kept, if it has this stamp.
///
/// # Errors
/// It is another file by now, which stays; or the system refused.
pub fn remove_unkept(
    locks: &Path,
    root: &Root,
    path: &RelativePath,
    expected: FileStamp,
) -> Result<(), String> {
    let lock = WorkspaceLock::acquire(locks, root.id(), PATIENCE).map_err(|error| error.to_string())?;
    let documents = Documents::new(root, &lock).map_err(|error| error.to_string())?;
    let known = unkept_digest(&expected);
    match documents.remove_stamped(path, (expected, known), &stamp()) {
        Ok(RemoveOutcome::Removed) => Ok(()),
        Ok(RemoveOutcome::Conflict { .. }) => {
            let path = root.shown(path);
            Err(format!("{} was changed by somebody else meanwhile, and stays so", path.display()))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Brings a path back from what a change made of it to what stood there before. A file may have as many `names` that all are
/// brought back.
///
/// # Errors
/// Somebody changed it since: it is left; or the system refused.
pub fn give_back(
    locks: &Path,
    (root, path, names): (&Root, &RelativePath, u64),
    (before, after): (FileContent<'_>, FileContent<'_>),
    umask: u32,
) -> Result<(), String> {
    let failed = |error: workspace::FileError| error.to_string();
    let mode_of = |mode: Option<u32>, new: u32| mode.unwrap_or(new & !umask);
    let is_known = |content| !matches!(content, FileContent::Unknown | FileContent::Large { .. });
    if !(is_known(before) && is_known(after)) {
        return Err("its bytes are not kept".to_owned());
    }
    if matches!(before, FileContent::Special(_)) {
        return Err("no pipe or socket is made again".to_owned());
    }
    match (after, before) {
        (FileContent::File { bytes: now, .. }, FileContent::File { mode, bytes }) => {
            let mode = mode_of(mode, NEW_FILE);
            return change_named(locks, (root, path, names), Some(Digest::of(now)), (Some(bytes), mode));
        }
        (FileContent::Folder { .. }, FileContent::Folder { mode }) => {
            return root.set_mode(path, mode_of(mode, NEW_FOLDER)).map_err(failed);
        }
        (FileContent::File { bytes: now, .. }, _) => {
            change_named(locks, (root, path, names), Some(Digest::of(now)), (None, NEW_FILE))?;
        }
        (FileContent::Folder { .. }, _) => root.remove_folder(path).map_err(failed)?,
        (FileContent::Link { target }, _) => remove_link(locks, root, path, target)?,
        (FileContent::Special(id), _) => root.remove_special(path, id).map_err(failed)?,
        (FileContent::Absent | FileContent::Unknown | FileContent::Large { .. }, _) => {}
    }
    if before == FileContent::Absent {
        return Ok(());
    }
    make_folders_above(root, path, umask)?;
    match before {
        FileContent::Absent | FileContent::Unknown | FileContent::Large { .. } | FileContent::Special(_) => {
            Ok(())
        }
        FileContent::File { mode, bytes } => {
            change_file(locks, (root, path), None, (Some(bytes), mode_of(mode, NEW_FILE)))
        }
        FileContent::Folder { mode } => make_folder(root, path, mode_of(mode, NEW_FOLDER)),
        FileContent::Link { target } => root.create_link(path, target).map_err(failed),
    }
}

/// The folder a path was in may have gone with it.
fn make_folders_above(root: &Root, path: &RelativePath, umask: u32) -> Result<(), String> {
    let (folder, _) = path.split().map_err(|error| error.to_string())?;
    let mut so_far = RelativePath::root();
    for name in folder.as_path() {
        so_far = so_far.join(name).map_err(|error| error.to_string())?;
        if root.stat(&so_far, LinkPolicy::Refuse).is_err() {
            make_folder(root, &so_far, NEW_FOLDER & !umask)?;
        }
    }
    Ok(())
}
