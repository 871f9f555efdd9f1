//! The protected set as it was before a command that no mount keeps from changing it: all of it at levels *partial* and *none*,
//! at level *full* the files that have a further name, by which the command may write.
//!
//! What differs afterwards is not written over: a person may have edited it while the command ran, and nobody can tell. What
//! it was is written beside it and exchanged with what stands there, which goes to quarantine, whole; at no time does the
//! name lead to nothing, or to half a file. What changes again between the comparison and the exchange was written by
//! somebody who is not the command: it stays, and what it was goes to quarantine instead. So does what stands at level *full* in
//! the place of such a file: the command cannot put another one where a mount is.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{Metadata, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, linkat, openat, renameat_with, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use workspace::FileId;

use crate::kept_entry::{KeptEntry, entries_by_path, is_touched};
use crate::outcome::Notice;
use crate::protected_paths::ProtectedPaths;
use crate::quarantine::{CopyRoom, DEEPEST, Quarantine, copy, remove};
use crate::root_folders::{
    RootFolders, give_rights, kind_and_identity, names_in, open_folder, place_of, set_mode, unused_name,
    write_in,
};
use crate::walls::Walls;

/// Bytes that are kept of all files together.
const MOST_BYTES: u64 = 64 << 20;

/// Protected set as it was.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    #[serde(with = "entries_by_path")]
    entries: BTreeMap<PathBuf, KeptEntry>,
    /// Git folders, by what they are rather than where: one that was moved is moved back, with all it holds.
    git_folders: Vec<KeptPlace>,
    /// Files that mounts hold under these names, by what they are: another one there is not the command's.
    #[serde(default)]
    mounted: Vec<KeptPlace>,
    /// Paths of which nothing could be kept, with the reason.
    #[serde(skip)]
    not_kept: Vec<(PathBuf, String)>,
}

/// Path of a git folder or file, and what stood there.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptPlace {
    #[serde(with = "crate::path_form")]
    path: PathBuf,
    id: FileId,
}

impl Snapshot {
    /// Keeps what stands at the paths, or what is `known` to have stood there.
    pub(crate) fn take(paths: &ProtectedPaths, walls: &Walls, roots: &RootFolders, known: &Self) -> Self {
        let mut snapshot = Self::default();
        let folders = paths.git_folders.iter();
        let folder = |path: &PathBuf| {
            let known = known.git_folders.iter().find(|folder| folder.path == *path);
            let id = known.map_or_else(|| identity(path, roots), |folder| Some(folder.id))?;
            Some(KeptPlace { path: path.clone(), id })
        };
        snapshot.git_folders = folders.filter_map(folder).collect();
        let mut room = MOST_BYTES;
        for path in &paths.paths {
            if walls.touches.contains(path) {
                continue;
            }
            if let Some(known) = known.entries.get(path) {
                snapshot.entries.insert(path.clone(), known.clone());
                continue;
            }
            let kept = roots
                .parent_of(path)
                .and_then(|(folder, name)| KeptEntry::read(folder.as_fd(), name, path, walls, &mut room));
            match kept {
                Ok(entry) => _ = snapshot.entries.insert(path.clone(), entry),
                Err(error) => snapshot.not_kept.push((path.clone(), error.to_string())),
            }
        }
        snapshot
    }

    /// [`Self::take`] of files that mounts hold under these names. Of one that is another by now than is `known`, what stands
    /// there is kept.
    pub(crate) fn take_mounted(
        paths: &ProtectedPaths,
        walls: &Walls,
        roots: &RootFolders,
        known: &Self,
    ) -> Self {
        let found = paths.paths.iter();
        // Before they are read: one that is replaced meanwhile is another one.
        let found: Vec<KeptPlace> = found
            .filter_map(|path| Some(KeptPlace { path: path.clone(), id: identity(path, roots)? }))
            .collect();
        let mut still = known.clone();
        let replaced = found.iter().filter(|place| known.is_another(&place.path, Some(place.id)));
        replaced.for_each(|place| _ = still.entries.remove(&place.path));
        let mut snapshot = Self::take(paths, walls, roots, &still);
        // Also what a command that no mounts hold may have put there.
        let is_held = |place: &KeptPlace| {
            !still.entries.contains_key(&place.path) || known.mounted_at(&place.path).is_some()
        };
        snapshot.mounted = found.into_iter().filter(is_held).collect();
        snapshot
    }

    /// Bytes of a file, unless somebody put another one there since.
    pub(crate) fn file(&self, path: &Path) -> Option<&[u8]> {
        let id = |found: Metadata| FileId { device: found.dev(), inode: found.ino() };
        match self.entries.get(path) {
            Some(KeptEntry::File { bytes, .. })
                if !self.is_another(path, path.symlink_metadata().ok().map(id)) =>
            {
                Some(bytes)
            }
            _ => None,
        }
    }

    fn mounted_at(&self, path: &Path) -> Option<FileId> {
        self.mounted.iter().find(|place| place.path == path).map(|place| place.id)
    }

    /// Whether what stands at a path `now` is another file than the one that a mount holds there.
    fn is_another(&self, path: &Path, now: Option<FileId>) -> bool {
        self.mounted_at(path).is_some_and(|id| now != Some(id))
    }

    /// Adds what another one has of paths that count and of which this one has nothing; whether that changes anything.
    pub(crate) fn add_missing(&mut self, other: &Self, counts: impl Fn(&Path) -> bool) -> bool {
        let sizes = |of: &Self| (of.entries.len(), of.git_folders.len(), of.mounted.len());
        let before = sizes(self);
        for (path, entry) in other.entries.iter().filter(|(path, _)| counts(path)) {
            match (self.entries.contains_key(path), other.mounted_at(path)) {
                (true, Some(_)) => {}
                // A command that no mounts hold may put another one there.
                (true, None) => self.mounted.retain(|place| place.path != *path),
                (false, id) => {
                    self.entries.insert(path.clone(), entry.clone());
                    self.mounted.extend(id.map(|id| KeptPlace { path: path.clone(), id }));
                }
            }
        }
        for folder in &other.git_folders {
            if self.git_folders.iter().all(|known| known.path != folder.path) {
                self.git_folders.push(folder.clone());
            }
        }
        sizes(self) != before
    }

    /// Gives back what differs, and says what it was.
    pub(crate) fn restore(
        &self,
        walls: &Walls,
        roots: &RootFolders,
        quarantine: &mut Quarantine,
    ) -> Vec<Notice> {
        let mut notices = self.move_back(walls, roots, quarantine);
        for (path, entry) in &self.entries {
            if walls.touches.contains(path) || stands(path, entry, walls, roots) {
                continue;
            }
            let now = identity(path, roots);
            if self.is_another(path, now) {
                notices.push(beside(path, entry, now.is_some(), quarantine));
                continue;
            }
            let given_back = roots.made_parent_of(path, quarantine).and_then(|(folder, name)| {
                write_in(&folder, || give_back(folder.as_fd(), name, path, entry, walls, quarantine))
            });
            let notice = match given_back {
                Ok(()) => Notice::Restored(path.clone()),
                Err(error) if matches!(error.get_ref(), Some(why) if why.is::<LeftBeside>()) => {
                    notices.push(Notice::Restored(path.clone()));
                    Notice::Lacks(error.to_string())
                }
                // The look of another command that ended meanwhile gave it back.
                Err(_) if stands(path, entry, walls, roots) => continue,
                Err(error) => Notice::NotRestored { path: path.clone(), problem: error.to_string() },
            };
            notices.push(notice);
        }
        let not_kept = self.not_kept.iter().map(|(path, problem)| Notice::NotRestored {
            path: path.clone(),
            problem: format!("it was not kept before the command: {problem}"),
        });
        notices.extend(not_kept);
        notices
    }

    /// Moves git folders back that are elsewhere in the roots now. What stands in their place goes to quarantine.
    fn move_back(&self, walls: &Walls, roots: &RootFolders, quarantine: &mut Quarantine) -> Vec<Notice> {
        let gone = |folder: &&KeptPlace| identity(&folder.path, roots) != Some(folder.id);
        let gone: Vec<_> = self.git_folders.iter().filter(gone).collect();
        if gone.is_empty() {
            return Vec::new();
        }
        let now = ProtectedPaths::of(walls).git_folders;
        let now: BTreeMap<FileId, &PathBuf> =
            now.iter().filter_map(|path| Some((identity(path, roots)?, path))).collect();
        let mut notices = Vec::new();
        for KeptPlace { path, id } in gone {
            // One that is nowhere was removed; what of it is kept is made again. One in another is back with that.
            let Some(now) = now.get(id).filter(|_| identity(path, roots) != Some(*id)) else { continue };
            notices.push(match move_folder(now, path, *id, roots, quarantine) {
                Ok(()) => Notice::Restored(path.clone()),
                Err(error) => Notice::NotRestored { path: path.clone(), problem: error.to_string() },
            });
        }
        notices
    }
}

/// Keeps what stood at a path whose owner replaced or removed it; what they left there is theirs. Both may hold what the command
/// wrote by the file's other name.
fn beside(path: &Path, entry: &KeptEntry, is_there: bool, quarantine: &mut Quarantine) -> Notice {
    let did = if is_there { "replaced" } else { "removed" };
    let kept = match quarantine.write(entry, path) {
        Ok(to) => format!("is kept as {}", to.display()),
        Err(error) => format!("could not be kept: {error}"),
    };
    Notice::Lacks(format!(
        "{} was {did} by somebody else while the command ran, and stays so; until then the command could write to it by \
         another name of the file, so what it was {kept}",
        path.display()
    ))
}

fn identity(path: &Path, roots: &RootFolders) -> Option<FileId> {
    let (folder, name) = roots.parent_of(path).ok()?;
    kind_and_identity(&folder, name).ok().map(|(_, id)| id)
}

/// Whether a path is what it was.
fn stands(path: &Path, entry: &KeptEntry, walls: &Walls, roots: &RootFolders) -> bool {
    roots.parent_of(path).is_ok_and(|(folder, name)| is_as_kept(folder.as_fd(), name, path, entry, walls))
}

fn is_as_kept(folder: BorrowedFd<'_>, name: &OsStr, path: &Path, entry: &KeptEntry, walls: &Walls) -> bool {
    // More room than before: a file that grew differs, it is not read to its end.
    KeptEntry::read(folder, name, path, walls, &mut (MOST_BYTES * 2)).is_ok_and(|now| now == *entry)
}

fn move_folder(
    now: &Path,
    path: &Path,
    id: FileId,
    roots: &RootFolders,
    quarantine: &mut Quarantine,
) -> io::Result<()> {
    let (from, from_name) = roots.parent_of(now)?;
    let (to, name) = roots.made_parent_of(path, quarantine)?;
    if kind_and_identity(&to, name).is_ok() {
        quarantine.take(&to, name, path)?;
    }
    // A folder is written to when it comes below another one.
    let mode = give_rights(place_of(&from, from_name)?, 0o300)?;
    let renamed = write_in(&from, || {
        write_in(&to, || Ok(renameat_with(&from, from_name, &to, name, RenameFlags::NOREPLACE)?))
    });
    match renamed {
        // Between two mounts of one file system; what is left behind is what was copied.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::XDEV) => {
            let room = &mut CopyRoom { bytes: u64::MAX, depth: DEEPEST };
            copy(from.as_fd(), from_name, &workspace::descriptor_path(&to).join(name), room)?;
            quarantine.take(&from, from_name, now).map(drop)
        }
        Err(error) => Err(error),
        Ok(()) if kind_and_identity(&to, name)?.1 == id => set_mode(place_of(&to, name)?, mode),
        // Another one took its name between the look and the move.
        Ok(()) => {
            renameat_with(&to, name, &from, from_name, RenameFlags::NOREPLACE)?;
            Err(io::Error::other("it was moved again meanwhile"))
        }
    }
}

/// What stands at a place when it is compared: its identity, and what it holds where that can be read.
#[derive(PartialEq, Eq)]
struct SeenEntry(FileType, FileId, Option<KeptEntry>);

impl SeenEntry {
    fn at(folder: BorrowedFd<'_>, name: &OsStr, path: &Path, walls: &Walls) -> Option<Self> {
        let (kind, id) = kind_and_identity(folder, name).ok()?;
        Some(Self(kind, id, KeptEntry::read(folder, name, path, walls, &mut (MOST_BYTES * 2)).ok()))
    }
}

/// Makes a name in a folder what it was.
fn give_back(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    path: &Path,
    entry: &KeptEntry,
    walls: &Walls,
    quarantine: &mut Quarantine,
) -> io::Result<()> {
    if is_touched(path, walls) {
        return Ok(());
    }
    let seen = SeenEntry::at(folder, name, path, walls);
    if let (KeptEntry::Folder { entries, mode }, Some(SeenEntry(FileType::Directory, ..))) = (entry, &seen) {
        let place = openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        // One that was closed cannot be listed.
        let permissions =
            || std::fs::set_permissions(workspace::descriptor_path(&place), Permissions::from_mode(*mode));
        permissions()?;
        let here = open_folder(&place, OsStr::new("."))?;
        for name in names_in(&here)?.iter().filter(|name| !entries.contains_key(*name)) {
            quarantine.take_unaccepted(&here, name, &path.join(name))?;
        }
        for (name, entry) in entries {
            let below = path.join(name);
            if !is_as_kept(here.as_fd(), name, &below, entry, walls) {
                give_back(here.as_fd(), name, &below, entry, walls, quarantine)?;
            }
        }
        return Ok(());
    }
    let new = unused_name();
    if let Err(error) = entry.make(folder, &new) {
        let _ = remove(folder, &new);
        return Err(error);
    }
    exchange(folder, &new, name, path, seen, walls, quarantine)
}

/// A path was given back, and what the command left of it is not in quarantine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct LeftBeside(String);

/// Puts what was made under a new name where it belongs, and what stands there into quarantine.
fn exchange(
    folder: BorrowedFd<'_>,
    new: &OsStr,
    name: &OsStr,
    path: &Path,
    seen: Option<SeenEntry>,
    walls: &Walls,
    quarantine: &mut Quarantine,
) -> io::Result<()> {
    let changed = |quarantine: &mut Quarantine| {
        let kept = match quarantine.keep(folder, new, path) {
            Ok(to) => format!("what it was is kept as {}", to.display()),
            Err(error) => format!("what it was stays beside it as {}: {error}", new.display()),
        };
        Err(io::Error::other(format!("it was changed again while it was compared; {kept}")))
    };
    let Some(seen) = seen else {
        return match place(folder, new, name) {
            Err(Errno::EXIST) => changed(quarantine),
            other => Ok(other?),
        };
    };
    let left = match renameat_with(folder, new, folder, name, RenameFlags::EXCHANGE) {
        Ok(()) => new.to_owned(),
        // The file system cannot exchange: both stand under a name all the while.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            let aside = unused_name();
            renameat_with(folder, name, folder, &aside, RenameFlags::empty())?;
            match place(folder, new, name) {
                Err(Errno::EXIST) => return changed(quarantine),
                other => other?,
            }
            aside
        }
        Err(error) => return Err(error.into()),
    };
    if SeenEntry::at(folder, &left, path, walls).as_ref() != Some(&seen) {
        renameat_with(folder, &left, folder, name, RenameFlags::EXCHANGE)?;
        return changed(quarantine);
    }
    match quarantine.take(folder, &left, path) {
        Ok(_) => Ok(()),
        Err(error) => Err(io::Error::other(LeftBeside(format!(
            "what the command left of {} stays beside it as {}: {error}",
            path.display(),
            left.display()
        )))),
    }
}

/// Gives what was made a name that nothing has.
fn place(folder: BorrowedFd<'_>, new: &OsStr, name: &OsStr) -> Result<(), Errno> {
    match renameat_with(folder, new, folder, name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            linkat(folder, new, folder, name, AtFlags::empty())?;
            unlinkat(folder, new, AtFlags::empty())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
