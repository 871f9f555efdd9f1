//! Files of the system that not everybody may read: passwords, keys of the machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Depth of folders that are looked into.
const DEEPEST: usize = 4;

/// Entries of `/etc` that not everybody may read. As administrator a command would be their owner.
pub(super) fn of_the_system() -> &'static [PathBuf] {
    static HIDDEN: OnceLock<Vec<PathBuf>> = OnceLock::new();
    HIDDEN.get_or_init(|| {
        let mut hidden = Vec::new();
        look_into(Path::new("/etc"), DEEPEST, &mut hidden);
        hidden
    })
}

fn look_into(folder: &Path, depth: usize, hidden: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        let mode = metadata.permissions().mode();
        if metadata.is_dir() {
            match mode & 0o005 == 0o005 {
                true if depth > 0 => look_into(&entry.path(), depth - 1, hidden),
                true => {}
                false => hidden.push(entry.path()),
            }
        } else if !metadata.is_symlink() && mode & 0o004 == 0 {
            hidden.push(entry.path());
        }
    }
}
