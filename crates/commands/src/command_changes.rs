//! Texts that running commands made or changed: they are looked at when the command ends (spec: security §1).

use std::path::Path;

use loom::Digest;
use sandbox::{FileBefore, before_running_commands};
use workspace::{ReadRules, RelativePath, Root};

/// Why a text of a workspace is not taken, where a command made or changed it; none where none did.
pub(crate) fn made_by_command(records: &Path, root: &Root, path: &Path, digest: Digest) -> Option<String> {
    match before_running_commands(records, &root.path().join(path)) {
        // A command may have ended, and what it changed been given back, since the file was read.
        Ok(FileBefore::AsItStands) => {
            (!is_still(root, path, digest)).then(|| "it was changed while it was read".to_owned())
        }
        Ok(FileBefore::Was(bytes)) if Digest::of(&bytes) == digest => None,
        Ok(FileBefore::New | FileBefore::Was(_)) => Some(
            "a command that runs in the workspace changed it: it is looked at when the command ends"
                .to_owned(),
        ),
        Err(error) => Some(format!("whether a running command changed it cannot be said: {error}")),
    }
}

/// Whether a file is what was read of it.
fn is_still(root: &Root, path: &Path, digest: Digest) -> bool {
    let path = RelativePath::from_components(path).ok();
    let rules = ReadRules::at_most(agent::bootstrap::MAX_BYTES).follow_links();
    let read = path.and_then(|path| root.read(&path, &rules).ok());
    read.is_some_and(|now| now.digest() == digest)
}
