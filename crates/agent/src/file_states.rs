//! What stands at paths that tools changed, told from what they left there.

use std::path::Path;

use loom::Digest;
use store::FileState;
use tools::FileContent;
use workspace::protected::is_held;
use workspace::{FileError, FileId, FileKind, FileProblem, LinkPolicy, ReadRules, RelativePath, Root};

use crate::accepted_changes::{accept, finish};

/// Bytes of a file that is compared.
const MAX_BYTES: u64 = 10 << 20;
/// Right of an owner to read a file.
const READABLE: u32 = 0o400;
/// Permission bits of a file that its owner may not read, before it gets its own.
const PRIVATE: u32 = 0o600;
/// Why a path is left.
pub const CHANGED_SINCE: &str = "somebody changed it since";

/// The bytes of a blob.
pub type ReadBlob<'a> = &'a dyn Fn(Digest) -> Result<Vec<u8>, String>;

/// Whether what stands there is what a change left.
pub fn is_same(left: FileState, found: FileState) -> bool {
    match (left, found) {
        (FileState::File { blob, mode }, FileState::File { blob: other, mode: found }) if blob == other => {
            // A process that died in between had not closed it yet.
            let is_unclosed = |mode: u32| mode & READABLE == 0 && found == Some(PRIVATE);
            mode == found || mode.is_none_or(is_unclosed)
        }
        // What a folder holds is told path by path.
        (FileState::Folder { .. }, FileState::Folder { .. }) => true,
        (left, found) => left == found,
    }
}

/// What stands at a path now, with its bytes, unless they are too many to be kept; also where a command closed it to its owner.
///
/// # Errors
/// It cannot be looked at, or is a device.
pub fn state_at(root: &Root, path: &RelativePath) -> Result<(FileState, Vec<u8>), FileError> {
    let mut opened = Vec::new();
    let mut stat = root.stat(path, LinkPolicy::Refuse);
    if is_closed(&stat) {
        opened = root.owner_access_above(path);
        stat = root.stat(path, LinkPolicy::Refuse);
    }
    let found = match stat {
        Ok(found) => found,
        // A file on the way has nothing below it.
        Err(error) if matches!(error.problem, FileProblem::NotFound | FileProblem::NotAFolder) => {
            return Ok((FileState::Absent, Vec::new()));
        }
        Err(error) => return Err(error),
    };
    match found.kind {
        FileKind::Folder => Ok((FileState::Folder { mode: Some(found.mode) }, Vec::new())),
        FileKind::Symlink => {
            let target = root.link_target(path)?;
            Ok((FileState::Link { target: Digest::of(&target) }, target))
        }
        FileKind::Fifo | FileKind::Socket => {
            let FileId { device, inode } = root.stamp(path)?.1.id;
            Ok((FileState::Special { device, inode }, Vec::new()))
        }
        _ => {
            let stamp = root.stamp(path)?.1;
            if stamp.bytes > MAX_BYTES {
                let known = tools::unkept_digest(&stamp);
                return Ok((FileState::Large { bytes: stamp.bytes, stamp: known }, Vec::new()));
            }
            let mut read = root.read(path, &ReadRules::at_most(MAX_BYTES));
            if is_closed(&read) {
                opened.extend(root.owner_access(path)?);
                read = root.read(path, &ReadRules::at_most(MAX_BYTES));
            }
            let read = read?;
            Ok((FileState::File { mode: Some(found.mode), blob: read.digest() }, read.bytes))
        }
    }
}

const fn is_closed<T>(found: &Result<T, FileError>) -> bool {
    matches!(found, Err(FileError { problem: FileProblem::PermissionDenied, .. }))
}

/// Brings a path from what was found there to something else. A file may have as many `names`. `locks` is the home's folder
/// of locks, `records` that of what was there before commands. It blocks.
///
/// # Errors
/// Something else stands there by now, which stays; the bytes are not kept; or the system refused.
pub fn bring(
    (locks, records, umask): (&Path, &Path, u32),
    (root, path, names): (&Root, &RelativePath, u64),
    (from, to): (FileState, FileState),
    blob: ReadBlob<'_>,
) -> Result<(), String> {
    let (now, bytes) = state_at(root, path).map_err(|error| error.to_string())?;
    // A command may have closed it, and what it lies in.
    let _above = root.owner_access_above(path);
    let opened = if now.is_folder() { None } else { root.owner_access(path).ok().flatten() };
    // A folder above it may have come with what came before.
    let is_folder = now.is_folder() && to.is_folder();
    if now != from && !is_folder {
        return Err(CHANGED_SINCE.to_owned());
    }
    let kept = to.blob().map(blob).transpose()?.unwrap_or_default();
    let held = is_held(path.as_path()).then(|| (root.path().join(path.as_path()), content(to, &kept)));
    let accepted = accept(records, held);
    // What its owner may not read is looked at once more before it is closed.
    let (to, closed) = match to {
        FileState::File { mode: Some(mode), blob } if mode & READABLE == 0 => {
            (FileState::File { mode: Some(PRIVATE), blob }, Some(mode))
        }
        to => (to, None),
    };
    tools::give_back(locks, (root, path, names), (content(to, &kept), content(now, &bytes)), umask)?;
    if let Some(opened) = opened {
        opened.leave();
    }
    closed.map_or(Ok(()), |mode| root.set_mode(path, mode)).map_err(|error| error.to_string())?;
    finish(accepted);
    Ok(())
}

const fn content(state: FileState, bytes: &[u8]) -> FileContent<'_> {
    match state {
        FileState::Absent => FileContent::Absent,
        FileState::File { mode, .. } => FileContent::File { mode, bytes },
        FileState::Folder { mode } => FileContent::Folder { mode },
        FileState::Link { .. } => FileContent::Link { target: bytes },
        FileState::Unknown => FileContent::Unknown,
        FileState::Large { bytes, stamp } => FileContent::Large { bytes, stamp },
        FileState::Special { device, inode } => FileContent::Special(FileId { device, inode }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_bits_that_somebody_set_since_are_no_tools() {
        let (a, blob) = (FileState::File { mode: Some(0o644), blob: Digest::of(b"a") }, Digest::of(b"a"));
        let with = |mode: u32| FileState::File { mode: Some(mode), blob };
        assert!(!is_same(a, with(0o600)) && !is_same(a, with(0o755)));
        assert!(is_same(with(0o200), with(PRIVATE)), "it died before it closed it");
    }
}
