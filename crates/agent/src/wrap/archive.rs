//! Earlier handoffs, in files that are never loaded and never searched.

use std::path::PathBuf;

use loom::{Digest, Millis};
use ulid::Ulid;
use workspace::{
    DocumentText, Documents, Expected, FileError, FileProblem, LinkPolicy, RelativePath, ReplaceOutcome,
    Replacement, Root, Stamp, Unmerged,
};

/// Folder of earlier handoffs and of those that were not merged.
pub(super) const FOLDER: &str = ".drawloom/handoffs";

/// Earlier handoffs of a session that are kept.
const KEPT: usize = 20;

/// Entries of the folder that are looked at.
const MAX_ENTRIES: usize = 100_000;

/// Permission bits of a text that is kept aside.
const PRIVATE: u32 = 0o600;

/// A text that a wrap replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedHandoff {
    /// The wrap that replaced it.
    pub wrap: String,
    /// Name of the session, as it was then.
    pub session: String,
    pub at: Millis,
    pub bytes: u64,
    /// Path below the workspace.
    pub path: PathBuf,
}

/// Earlier handoffs of a workspace, the newest first. It blocks.
///
/// # Errors
/// Their folder cannot be read.
pub fn archived_handoffs(root: &Root) -> Result<Vec<ArchivedHandoff>, FileError> {
    let folder = folder().map_err(|problem| FileError { path: PathBuf::from(FOLDER), problem })?;
    let listing = match root.list(&folder, MAX_ENTRIES) {
        Err(FileError { problem: FileProblem::NotFound, .. }) => return Ok(Vec::new()),
        listing => listing?,
    };
    let mut found = Vec::new();
    for entry in listing.entries {
        let Some((session, wrap)) = entry.name.to_str().and_then(parts) else { continue };
        let Ok(path) = folder.join(&entry.name) else { continue };
        let Ok(stat) = root.stat(&path, LinkPolicy::Refuse) else { continue };
        let Ok(id) = Ulid::from_string(wrap) else { continue };
        found.push(ArchivedHandoff {
            wrap: wrap.to_owned(),
            session: session.to_owned(),
            at: Millis(i64::try_from(id.timestamp_ms()).unwrap_or(i64::MAX)),
            bytes: stat.bytes,
            path: path.as_path().to_owned(),
        });
    }
    found.sort_by(|one, other| other.wrap.cmp(&one.wrap));
    Ok(found)
}

/// Session and wrap of the name of an archived text.
fn parts(name: &str) -> Option<(&str, &str)> {
    name.strip_suffix(".md")?.rsplit_once('.')
}

fn folder() -> Result<RelativePath, FileProblem> {
    Ok(RelativePath::parse(FOLDER)?)
}

/// Path of the text that a wrap of a session replaced.
pub(super) fn path(session: &str, wrap: &str) -> Result<RelativePath, String> {
    RelativePath::parse(&format!("{FOLDER}/{session}.{wrap}.md")).map_err(|error| error.to_string())
}

/// Keeps a text under the id of the wrap that replaces it, once.
pub(super) fn keep(
    (root, documents): (&Root, &Documents<'_>),
    (session, wrap): (&str, &str),
    text: &[u8],
    stamp: &Stamp,
) -> Result<(), String> {
    let path = path(session, wrap)?;
    if let Some(there) = read(documents, &path)?
        && there.digest == Digest::of(text)
    {
        return Ok(());
    }
    make_folder(root)?;
    let replacement = Replacement {
        text,
        expected: Expected::Absent,
        stamp: stamp.clone(),
        unmerged: Unmerged::Beside,
        mode: Some(PRIVATE),
    };
    match documents.replace(&path, &replacement).map_err(|error| error.to_string())? {
        ReplaceOutcome::Saved(_) => Ok(()),
        ReplaceOutcome::Conflict { .. } => Err(format!("another text stands in {path}")),
    }
}

/// A text as it stands; none where it, or its folder, is not there.
pub(super) fn read(documents: &Documents<'_>, path: &RelativePath) -> Result<Option<DocumentText>, String> {
    match documents.read(path) {
        Err(FileError { problem: FileProblem::NotFound, .. }) => Ok(None),
        read => read.map_err(|error| error.to_string()),
    }
}

pub(super) fn make_folder(root: &Root) -> Result<(), String> {
    let folder = folder().map_err(|error| error.to_string())?;
    root.create_folder(&folder).map_err(|error| error.to_string())
}

/// Removes the oldest texts of a session that are too many.
pub(super) fn remove_oldest((root, documents): (&Root, &Documents<'_>), session: &str, stamp: &Stamp) {
    let kept = match archived_handoffs(root) {
        Ok(kept) => kept,
        Err(error) => return tracing::warn!(%error, "earlier handoffs cannot be listed"),
    };
    for old in kept.iter().filter(|one| one.session == session).skip(KEPT) {
        let removed =
            RelativePath::from_components(&old.path).map_err(|error| error.to_string()).and_then(|path| {
                let Some(text) = read(documents, &path)? else { return Ok(()) };
                documents.remove(&path, text.digest, stamp).map(drop).map_err(|error| error.to_string())
            });
        if let Err(error) = removed {
            tracing::warn!(%error, path = %old.path.display(), "an earlier handoff cannot be removed");
        }
    }
}
