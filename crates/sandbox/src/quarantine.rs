//! Protected names that a command made: moved out of the root, where nothing reads them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2, renameat};
use rustix::io::Errno;

use crate::git_folder::is_fresh;
use crate::outcome::Notice;
use crate::protected_paths::ProtectedPaths;
use crate::walls::Walls;

/// Moves what appeared between two looks into a folder, and says so.
pub(crate) fn move_new(
    before: &ProtectedPaths,
    after: &ProtectedPaths,
    walls: &Walls,
    quarantine: &Path,
) -> Vec<Notice> {
    let new = after.paths.difference(&before.paths);
    let allowed = |path: &&PathBuf| !walls.touches.iter().any(|touched| path.starts_with(touched));
    // What a new git folder holds goes with it, or passes with it.
    let new: BTreeSet<&Path> = new
        .filter(allowed)
        .filter_map(|path| match after.new_owner(path, before) {
            Some(folder) if is_fresh(folder) => None,
            // Of a bare one, which may be any folder by the names in it, the part.
            Some(folder) if folder.ends_with(".git") => Some(folder),
            _ => Some(path.as_path()),
        })
        .collect();
    new.into_iter()
        .enumerate()
        .map(|(index, path)| {
            let name = path.file_name().unwrap_or_default();
            let to = quarantine.join(format!("{index}")).join(name);
            match move_away(path, &to, walls) {
                Ok(()) => Notice::Quarantined { path: path.to_owned(), to },
                Err(error) => Notice::NotRestored { path: path.to_owned(), problem: error.to_string() },
            }
        })
        .collect()
}

/// Moves a file or folder. Its folder is walked to without following a link: another command of the session may be at
/// work in the root.
pub(crate) fn move_away(path: &Path, to: &Path, walls: &Walls) -> io::Result<()> {
    let (Some(parent), Some(name), Some(target)) = (path.parent(), path.file_name(), to.parent()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    fs::create_dir_all(target)?;
    let parent = open_folder(parent, walls)?;
    match renameat(&parent, name, CWD, to) {
        Err(Errno::XDEV) => move_by_copy(&workspace::descriptor_path(&parent).join(name), to),
        other => Ok(other?),
    }
}

fn open_folder(path: &Path, walls: &Walls) -> io::Result<OwnedFd> {
    let mut tops = walls.writable_roots().chain(walls.git_folders.iter().map(PathBuf::as_path));
    let top = tops.find(|top| path.starts_with(top)).ok_or(io::ErrorKind::NotFound)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(CWD, top, flags, Mode::empty())?;
    let below = path.strip_prefix(top).unwrap_or(Path::new(""));
    if below == Path::new("") {
        return Ok(folder);
    }
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(&folder, below, flags, Mode::empty(), inside)?)
}

/// Copies links as links and only plain files; what is of another kind goes.
fn move_by_copy(from: &Path, to: &Path) -> io::Result<()> {
    let kind = from.symlink_metadata()?.file_type();
    if kind.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
        return fs::remove_file(from);
    }
    if kind.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            move_by_copy(&from.join(&name), &to.join(&name))?;
        }
        return fs::remove_dir(from);
    }
    if kind.is_file() {
        fs::copy(from, to)?;
    }
    fs::remove_file(from)
}
