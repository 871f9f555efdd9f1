//! The protected set as it was before a command that no mount keeps from changing it (levels *partial* and *none*).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use workspace::FileId;

use crate::outcome::Notice;
use crate::protected_paths::ProtectedPaths;
use crate::quarantine::move_away;
use crate::walls::Walls;

/// Bytes that are kept of all files together.
const MOST_BYTES: u64 = 64 << 20;

/// A file, folder or link as it was.
#[derive(Debug, PartialEq, Eq)]
enum KeptEntry {
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    Folder {
        entries: BTreeMap<OsString, KeptEntry>,
        mode: u32,
    },
    Link(PathBuf),
    /// A socket, pipe or device, of which there is nothing to keep.
    Other,
}

/// Protected set as it was.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    entries: BTreeMap<PathBuf, KeptEntry>,
    /// Git folders, by what they are rather than where: one that was moved is moved back, with all it holds.
    git_folders: Vec<(PathBuf, FileId)>,
    /// Paths of which nothing could be kept, with the reason.
    not_kept: Vec<(PathBuf, String)>,
}

impl Snapshot {
    pub(crate) fn take(paths: &ProtectedPaths, walls: &Walls) -> Self {
        let mut snapshot = Self::default();
        let folders = paths.git_folders.iter();
        snapshot.git_folders = folders.filter_map(|path| Some((path.clone(), identity(path)?))).collect();
        let mut room = MOST_BYTES;
        for path in &paths.paths {
            if walls.touches.iter().any(|touched| path.starts_with(touched)) {
                continue;
            }
            match keep(path, walls, &mut room) {
                Ok(entry) => _ = snapshot.entries.insert(path.clone(), entry),
                Err(error) => snapshot.not_kept.push((path.clone(), error.to_string())),
            }
        }
        snapshot
    }

    /// Gives back what differs, and says what it was.
    pub(crate) fn restore(&self, walls: &Walls, quarantine: &Path) -> Vec<Notice> {
        let mut notices = self.move_back(walls, quarantine);
        for (path, entry) in &self.entries {
            // More room than before: a file that grew differs, it is not read to its end.
            let now = keep(path, walls, &mut (MOST_BYTES * 2));
            if now.is_ok_and(|now| now == *entry) {
                continue;
            }
            notices.push(match give_back(path, entry, walls) {
                Ok(()) => Notice::Restored(path.clone()),
                Err(error) => Notice::NotRestored { path: path.clone(), problem: error.to_string() },
            });
        }
        let not_kept = self.not_kept.iter().map(|(path, problem)| Notice::NotRestored {
            path: path.clone(),
            problem: format!("it was not kept before the command: {problem}"),
        });
        notices.extend(not_kept);
        notices
    }
}

impl Snapshot {
    /// Moves git folders back that are elsewhere in the roots now. What stands in their place goes to quarantine.
    fn move_back(&self, walls: &Walls, quarantine: &Path) -> Vec<Notice> {
        let gone = |(path, id): &&(PathBuf, FileId)| identity(path) != Some(*id);
        let gone: Vec<_> = self.git_folders.iter().filter(gone).collect();
        if gone.is_empty() {
            return Vec::new();
        }
        let now = ProtectedPaths::of(walls).git_folders;
        let found = |id: &FileId| now.iter().find(|path| identity(path).as_ref() == Some(id));
        gone.into_iter()
            .enumerate()
            .filter_map(|(index, (path, id))| {
                // One that is nowhere was removed; what of it is kept is made again.
                let now = found(id)?;
                let to = quarantine.join(format!("in-place-{index}"));
                let moved = match path.symlink_metadata() {
                    Ok(_) => move_away(path, &to.join(path.file_name().unwrap_or_default()), walls),
                    Err(_) => Ok(()),
                };
                Some(match moved.and_then(|()| fs::rename(now, path)) {
                    Ok(()) => Notice::Restored(path.clone()),
                    Err(error) => Notice::NotRestored { path: path.clone(), problem: error.to_string() },
                })
            })
            .collect()
    }
}

fn identity(path: &Path) -> Option<FileId> {
    rustix::fs::lstat(path).ok().map(|stat| FileId { device: stat.st_dev, inode: stat.st_ino })
}

fn is_touched(path: &Path, walls: &Walls) -> bool {
    walls.touches.iter().any(|touched| touched == path)
}

fn keep(path: &Path, walls: &Walls, room: &mut u64) -> io::Result<KeptEntry> {
    let metadata = path.symlink_metadata()?;
    let mode = metadata.permissions().mode() & 0o7777;
    if is_touched(path, walls) {
        return Ok(KeptEntry::Other);
    }
    if metadata.is_symlink() {
        return Ok(KeptEntry::Link(fs::read_link(path)?));
    }
    if metadata.is_dir() {
        let mut entries = BTreeMap::new();
        for entry in fs::read_dir(path)? {
            let name = entry?.file_name();
            let kept = keep(&path.join(&name), walls, room)?;
            entries.insert(name, kept);
        }
        return Ok(KeptEntry::Folder { entries, mode });
    }
    if !metadata.is_file() {
        return Ok(KeptEntry::Other);
    }
    *room = room.checked_sub(metadata.len()).ok_or_else(|| io::Error::other("there is too much of it"))?;
    Ok(KeptEntry::File { bytes: fs::read(path)?, mode })
}

/// Makes a path what it was. The folder above it is the root, or one that the command may have replaced by a link, which
/// is refused.
fn give_back(path: &Path, entry: &KeptEntry, walls: &Walls) -> io::Result<()> {
    let Some(parent) = path.parent() else { return Err(io::ErrorKind::InvalidInput.into()) };
    if let Err(error) = fs::create_dir_all(parent) {
        return Err(io::Error::other(format!("its folder cannot be made again: {error}")));
    }
    if parent.canonicalize()? != parent {
        return Err(io::Error::other("its folder is a link now"));
    }
    if is_touched(path, walls) {
        return Ok(());
    }
    match entry {
        KeptEntry::Other => Ok(()),
        KeptEntry::Link(target) => {
            remove(path)?;
            symlink(target, path)
        }
        KeptEntry::File { bytes, mode } => {
            // Not written into: the name may lead to another file by now, and the file may have another name.
            remove(path)?;
            fs::write(path, bytes)?;
            fs::set_permissions(path, Permissions::from_mode(*mode))
        }
        KeptEntry::Folder { entries, mode } => {
            if !path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
                remove(path)?;
                fs::create_dir(path)?;
            }
            for name in fs::read_dir(path)?.flatten().map(|entry| entry.file_name()) {
                if !entries.contains_key(&name) {
                    remove(&path.join(name))?;
                }
            }
            for (name, entry) in entries {
                let below = path.join(name);
                if !keep(&below, walls, &mut (MOST_BYTES * 2)).is_ok_and(|now| now == *entry) {
                    give_back(&below, entry, walls)?;
                }
            }
            fs::set_permissions(path, Permissions::from_mode(*mode))
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_replaced_removed_or_added_is_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let walls = Walls::around(&root, &root);
        fs::write(root.join("AGENTS.md"), "ours").unwrap();
        fs::create_dir_all(root.join("skills/a")).unwrap();
        fs::write(root.join("skills/a/SKILL.md"), "skill").unwrap();
        fs::write(root.join(".envrc"), "export A=1").unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let quarantine = elsewhere.path().to_owned();
        let paths = ProtectedPaths::of(&walls);
        let snapshot = Snapshot::take(&paths, &walls);
        assert_eq!(snapshot.restore(&walls, &quarantine), []);

        fs::write(root.join("AGENTS.md"), "theirs").unwrap();
        fs::remove_dir_all(root.join("skills/a")).unwrap();
        fs::write(root.join("skills/new.md"), "new").unwrap();
        fs::remove_file(root.join(".envrc")).unwrap();
        symlink("/etc/passwd", root.join(".envrc")).unwrap();
        let restored: Vec<Notice> =
            [".envrc", "AGENTS.md", "skills"].map(|name| Notice::Restored(root.join(name))).into();
        assert_eq!(snapshot.restore(&walls, &quarantine), restored);
        assert_eq!(fs::read_to_string(root.join("AGENTS.md")).unwrap(), "ours");
        assert_eq!(fs::read_to_string(root.join("skills/a/SKILL.md")).unwrap(), "skill");
        assert!(!root.join("skills/new.md").exists());
        assert_eq!(fs::read_to_string(root.join(".envrc")).unwrap(), "export A=1");
        assert_eq!(snapshot.restore(&walls, &quarantine), []);
    }
}
