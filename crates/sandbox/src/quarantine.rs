//! Quarantine of a command: what it made of protected names, and what was taken from their places, moved out of the roots to
//! where nothing reads it. Nothing that a command or a person wrote is removed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, openat, readlinkat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use workspace::never_touched;

use crate::accepted_changes::AcceptedPaths;
use crate::git_folder::is_harmless_part;
use crate::kept_entry::KeptEntry;
use crate::outcome::Notice;
use crate::protected_paths::{ProtectedPaths, UnlistedFolder};
use crate::root_folders::{
    RootFolders, give_rights, kind_and_identity, names_in, open_folder, place_of, set_mode, unused_name,
    write_in,
};
use crate::serving_git::{LinkedFolder, linked};
use crate::small_file::read_small;
use crate::walls::Walls;

/// Bytes that are copied of one thing that is moved to another file system, and its folders in one another.
const MOST_COPIED: u64 = 64 << 20;
pub(crate) const DEEPEST: usize = 256;

/// Folder that things are moved to, each into a numbered folder of its own.
#[derive(Debug)]
pub(crate) struct Quarantine {
    folder: PathBuf,
    next: usize,
    notices: Vec<Notice>,
    /// What stays in folders that are taken.
    accepted: AcceptedPaths,
}

impl Quarantine {
    pub(crate) fn new(folder: &Path) -> Self {
        let accepted = AcceptedPaths::default();
        Self { folder: folder.to_owned(), next: 0, notices: Vec::new(), accepted }
    }

    /// The quarantine of a command beside which a person let something be made.
    pub(crate) fn sparing(self, accepted: AcceptedPaths) -> Self {
        Self { accepted, ..self }
    }

    /// Moves what stands under a name in a folder, and notes it. `path` is where it is told to have been.
    ///
    /// # Errors
    /// If it cannot be moved; then it stands where it stood.
    pub(crate) fn take(&mut self, folder: impl AsFd, name: &OsStr, path: &Path) -> io::Result<PathBuf> {
        let to = self.keep(folder, name, path)?;
        self.notices.push(Notice::Quarantined { path: path.to_owned(), to: to.clone() });
        Ok(to)
    }

    /// [`Self::take`] of what nobody accepted: of a folder that holds accepted paths, its other entries, one by one.
    ///
    /// # Errors
    /// As [`Self::take`]; what was moved before stays moved.
    pub(crate) fn take_unaccepted(&mut self, folder: impl AsFd, name: &OsStr, path: &Path) -> io::Result<()> {
        if self.accepted.paths.contains(path) {
            return Ok(());
        }
        let is_folder = kind_and_identity(&folder, name)?.0 == FileType::Directory;
        let below = match is_folder && self.accepted.any_in(path) {
            true => open_folder(&folder, name).and_then(|below| Ok((names_in(&below)?, below))).ok(),
            false => None,
        };
        let Some((names, below)) = below else { return self.take(folder, name, path).map(drop) };
        names.iter().try_for_each(|name| self.take_unaccepted(&below, name, &path.join(name)))
    }

    /// Moves what stands under a name in a folder. The caller tells of it.
    pub(crate) fn keep(&mut self, folder: impl AsFd, name: &OsStr, path: &Path) -> io::Result<PathBuf> {
        let to = self.place()?.join(path.file_name().unwrap_or(name));
        move_to(folder.as_fd(), name, &to)?;
        Ok(to)
    }

    /// Writes what is not to be lost of a path. The caller tells of it.
    pub(crate) fn write(&mut self, entry: &KeptEntry, path: &Path) -> io::Result<PathBuf> {
        let to = self.place()?.join(path.file_name().unwrap_or(path.as_os_str()));
        entry.make(CWD, to.as_os_str())?;
        Ok(to)
    }

    pub(crate) fn into_notices(self) -> Vec<Notice> {
        self.notices
    }

    /// A new folder. Those of earlier commands with the same quarantine stay.
    fn place(&mut self) -> io::Result<PathBuf> {
        let mut folders = DirBuilder::new();
        folders.mode(0o700);
        folders.recursive(true).create(&self.folder)?;
        loop {
            let place = self.folder.join(self.next.to_string());
            self.next += 1;
            match folders.recursive(false).create(&place) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                other => return other.map(|()| place),
            }
        }
    }

    /// Moves what appeared between two looks, and says so.
    pub(crate) fn take_new(
        &mut self,
        before: &ProtectedPaths,
        after: &ProtectedPaths,
        walls: &Walls,
        roots: &RootFolders,
    ) {
        let new = after.new_since(before);
        // A folder of a linked working tree that was there is its owner's, whatever
        // it says by now.
        let is_allowed = |path: &&PathBuf| {
            walls.touches.contains(*path) && is_plain(path)
                || before.worktrees.contains(*path)
                || is_linked(path, before, after)
        };
        let new: BTreeSet<&Path> = new
            .filter(|path| !is_allowed(path))
            .flat_map(|path| match (after.new_links(path, before), after.is_part_of_new(path, before)) {
                // What they lead to was there before, or is new by its own name.
                (Some(links), _) => links,
                // A new git folder keeps its history: only what runs by itself goes.
                (None, true) if is_harmless(path) => Vec::new(),
                (None, _) => vec![path.as_path()],
            })
            .collect();
        for path in new {
            self.take_at(path, roots);
        }
        for UnlistedFolder { path, kind, problem } in &after.unlisted {
            if *kind == io::ErrorKind::PermissionDenied {
                self.take_at(path, roots);
            } else {
                let problem = format!("what is protected in it cannot be found: {problem}");
                self.notices.push(Notice::NotRestored { path: path.clone(), problem });
            }
        }
    }

    /// Moves what no command may write out of folders that one was let to write, and what came in the place of a file or folder
    /// that it was let to write: a link would lead what is allowed elsewhere. It says so.
    pub(crate) fn take_never(
        &mut self,
        (before, after): (&ProtectedPaths, &ProtectedPaths),
        walls: &Walls,
        roots: &RootFolders,
    ) {
        for touched in &walls.touches {
            let Ok(found) = touched.symlink_metadata() else { continue };
            if !found.is_dir() {
                if !is_plain(touched) && !after.is_same_link(touched, before) {
                    self.take_at(touched, roots);
                }
                continue;
            }
            let root = walls.roots.iter().find(|root| touched.starts_with(&root.path));
            match root.map_or_else(|| Ok(Vec::new()), |root| never_touched(&root.path, touched)) {
                Ok(never) => never.iter().for_each(|path| self.take_at(path, roots)),
                // What is in it is not known.
                Err(_) => self.take_at(touched, roots),
            }
        }
    }

    /// Moves what stands at a path, and says so, or why it stays: then nobody may open it, and no command begins until it is
    /// gone.
    pub(crate) fn take_at(&mut self, path: &Path, roots: &RootFolders) {
        let taken =
            roots.parent_of(path).and_then(|(folder, name)| self.take_unaccepted(&folder, name, path));
        // One that is gone was taken by the look of another command that ended meanwhile.
        if let Err(error) = taken
            && error.kind() != io::ErrorKind::NotFound
        {
            let closed =
                roots.parent_of(path).and_then(|(folder, name)| set_mode(place_of(folder, name)?, 0));
            let problem = match closed {
                Ok(()) => format!("{error}; nobody may open it now, and no command begins until it is gone"),
                Err(_) => error.to_string(),
            };
            self.notices.push(Notice::NotRestored { path: path.to_owned(), problem });
        }
    }
}

/// Whether a protected part of a git folder runs nothing by itself.
fn is_harmless(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    path.parent().zip(name).is_some_and(|(folder, name)| is_harmless_part(folder, name))
}

/// Whether a path is one of the files by which a working tree and a git folder of the roots name each other, as
/// `git worktree add` and `git submodule update` make them: they lead git to no configuration but that folder's.
fn is_linked(path: &Path, before: &ProtectedPaths, after: &ProtectedPaths) -> bool {
    let own = path.parent().filter(|_| path.ends_with("gitdir") || path.ends_with("commondir"));
    let file = match own {
        None if path.ends_with(".git") => Some(path.to_owned()),
        None => None,
        Some(own) => read_small(&own.join("gitdir")).ok().map(|file| own.join(file.trim_end())),
    };
    let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    let Some(file) = file.filter(|file| is_file(file) && is_file(path)) else { return false };
    // The kernel's names: a link on the way could lead elsewhere later.
    let Some(tree) = file.parent().filter(|_| file.canonicalize().is_ok_and(|it| it == file)) else {
        return false;
    };
    let leads = |linked: LinkedFolder| {
        let is_own = own.is_none_or(|own| own == linked.own);
        // What runs by itself in one that is new goes.
        let is_safe = [before, after].iter().any(|look| look.git_folders.contains(&linked.common));
        is_own && is_safe
    };
    linked(tree, &file).is_some_and(leads)
}

/// Moves a file, folder or link, whatever rights a command took from it and from the folder it stands in.
fn move_to(folder: BorrowedFd<'_>, name: &OsStr, to: &Path) -> io::Result<()> {
    write_in(folder, || {
        let moved = move_as_it_is(folder, name, to);
        if moved.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
            && kind_and_identity(folder, name)?.0 == FileType::Directory
        {
            // It is written to when it comes below another one.
            give_rights(place_of(folder, name)?, 0o700)?;
            return move_as_it_is(folder, name, to);
        }
        moved
    })
}

/// Moves it by copying where the place is on another file system (or behind another mount of the same).
fn move_as_it_is(folder: BorrowedFd<'_>, name: &OsStr, to: &Path) -> io::Result<()> {
    match renameat_with(folder, name, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::XDEV) => {}
        other => return Ok(other?),
    }
    // Out of the way first, so that what is copied is what is removed.
    let aside = unused_name();
    renameat_with(folder, name, folder, &aside, RenameFlags::NOREPLACE)?;
    if let Err(error) = copy(folder, &aside, to, &mut CopyRoom { bytes: MOST_COPIED, depth: DEEPEST }) {
        let _ = renameat_with(folder, &aside, folder, name, RenameFlags::NOREPLACE);
        let _ = remove(CWD, to.as_os_str());
        return Err(error);
    }
    remove(folder, &aside)
}

/// What may be copied of something: what a command made could fill the disk of its owner, or the stack.
pub(crate) struct CopyRoom {
    pub(crate) bytes: u64,
    /// Folders in one another.
    pub(crate) depth: usize,
}

/// Copies links as links and only plain files; of another kind there is nothing to copy.
pub(crate) fn copy(folder: BorrowedFd<'_>, name: &OsStr, to: &Path, room: &mut CopyRoom) -> io::Result<()> {
    let kind = kind_and_identity(folder, name)?.0;
    if matches!(kind, FileType::Directory | FileType::RegularFile) {
        give_rights(place_of(folder, name)?, if kind == FileType::Directory { 0o700 } else { 0o400 })?;
    }
    match kind {
        FileType::Symlink => {
            use std::os::unix::ffi::OsStrExt as _;
            let target = readlinkat(folder, name, Vec::new())?;
            symlink(OsStr::from_bytes(target.as_bytes()), to)
        }
        FileType::Directory => {
            room.depth = room.depth.checked_sub(1).ok_or_else(|| too_much("it is nested too deep"))?;
            DirBuilder::new().mode(0o700).create(to)?;
            let below = open_folder(folder, name)?;
            for name in names_in(&below)? {
                copy(below.as_fd(), &name, &to.join(&name), room)?;
            }
            room.depth += 1;
            Ok(())
        }
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let from = File::from(openat(folder, name, flags, Mode::empty())?);
            if !from.metadata()?.is_file() {
                return Err(io::Error::other("it was replaced meanwhile"));
            }
            let mut copy = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
            // One that grows meanwhile is not copied for ever.
            let copied = io::copy(&mut from.take(room.bytes.saturating_add(1)), &mut copy)?;
            room.bytes = room.bytes.checked_sub(copied).ok_or_else(|| too_much("there is too much of it"))?;
            copy.sync_all()
        }
        _ => Ok(()),
    }
}

fn too_much(why: &str) -> io::Error {
    io::Error::other(format!("it cannot be copied to another file system: {why}"))
}

/// Removes what was copied, or was never anybody's.
pub(crate) fn remove(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    if kind_and_identity(folder, name)?.0 != FileType::Directory {
        return Ok(unlinkat(folder, name, AtFlags::empty())?);
    }
    let below = open_folder(folder, name)?;
    names_in(&below)?.iter().try_for_each(|name| remove(below.as_fd(), name))?;
    Ok(unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}

/// Whether a file or folder stands at a path, not a link, which would lead what is allowed elsewhere, nor a pipe.
fn is_plain(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file() || found.is_dir())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn what_is_moved_to_another_file_system_is_copied_whole_and_gone() {
        let memory = Path::new("/dev/shm");
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir_in(memory).unwrap();
        if fs::metadata(folder.path()).unwrap().dev() == fs::metadata(elsewhere.path()).unwrap().dev() {
            return;
        }
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("skills/one")).unwrap();
        fs::write(root.join("skills/one/SKILL.md"), "theirs").unwrap();
        symlink("/etc/passwd", root.join("skills/link")).unwrap();
        let walls = Walls::around(&root, &root);
        let roots = RootFolders::open(&walls);
        let path = root.join("skills");
        let (parent, name) = roots.parent_of(&path).unwrap();
        let to = Quarantine::new(&elsewhere.path().join("q")).take(&parent, name, &path).unwrap();
        assert_eq!(fs::read_to_string(to.join("one/SKILL.md")).unwrap(), "theirs");
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("/etc/passwd"));
        assert!(!path.exists());
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
    }

    #[test]
    fn what_is_too_deep_or_too_large_for_another_file_system_is_closed_where_it_stands_and_leaves_no_copy() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
        if fs::metadata(folder.path()).unwrap().dev() == fs::metadata(elsewhere.path()).unwrap().dev() {
            return;
        }
        let root = folder.path().canonicalize().unwrap();
        let large = fs::create_dir(root.join("large")).and_then(|()| File::create(root.join("large/file")));
        large.unwrap().set_len(MOST_COPIED + 1).unwrap();
        fs::create_dir(root.join("deep")).unwrap();
        let mut here = open_folder(CWD, root.join("deep").as_os_str()).unwrap();
        for _ in 0..2_000 {
            rustix::fs::mkdirat(&here, "d", Mode::RWXU).unwrap();
            here = open_folder(&here, OsStr::new("d")).unwrap();
        }
        let roots = RootFolders::open(&Walls::around(&root, &root));
        let mut quarantine = Quarantine::new(&elsewhere.path().join("q"));
        for name in ["large", "deep"] {
            quarantine.take_at(&root.join(name), &roots);
            assert_eq!(fs::metadata(root.join(name)).unwrap().mode() & 0o777, 0, "{name}");
        }
        assert_eq!(quarantine.into_notices().len(), 2);
        for place in fs::read_dir(elsewhere.path().join("q")).unwrap() {
            assert_eq!(fs::read_dir(place.unwrap().path()).unwrap().count(), 0);
        }
        for name in ["large", "deep"] {
            fs::set_permissions(root.join(name), std::os::unix::fs::PermissionsExt::from_mode(0o700))
                .unwrap();
        }
        let removed = std::process::Command::new("/bin/rm").arg("-rf").arg(root.join("deep")).status();
        assert!(removed.unwrap().success());
    }

    #[test]
    fn a_folder_that_became_a_link_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["root/docs", "outside", "quarantine"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        fs::write(path("outside/file"), "theirs").unwrap();
        let roots = RootFolders::open(&Walls::around(&path("root"), &path("root")));
        let mut quarantine = Quarantine::new(&path("quarantine"));
        // Between the look and the move.
        fs::remove_dir(path("root/docs")).unwrap();
        symlink(path("outside"), path("root/docs")).unwrap();
        let file = path("root/docs/file");
        assert!(roots.parent_of(&file).is_err());
        let (made, name) = roots.made_parent_of(&file, &mut quarantine).unwrap();
        assert!(kind_and_identity(&made, name).is_err());
        assert!(path("root/docs").symlink_metadata().unwrap().is_dir());
        assert_eq!(fs::read_to_string(path("outside/file")).unwrap(), "theirs");
        let to = path("quarantine/0/docs");
        assert_eq!(fs::read_link(&to).unwrap(), path("outside"));
        assert_eq!(quarantine.into_notices(), [Notice::Quarantined { path: path("root/docs"), to }]);
    }
}
