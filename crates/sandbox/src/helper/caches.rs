//! Mounts of a session's package caches.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, mkdirat, mknodat};

use super::mount_calls::{
    MountAccess, OverlayFolders, PlaceKind, attach, copy_of, make_place, open_below, open_place, overlay,
    restrict,
};
use crate::caches::{CacheLayers, CacheState};
use crate::protection::{Protection, Protections};

/// Folders of a package cache, opened while their paths lead to them.
pub(super) struct CacheFolders<'a> {
    folder: OwnedFd,
    own: OwnedFd,
    covered: &'a [PathBuf],
}

/// Opens the folders of a package cache.
///
/// # Errors
/// Why no command has it.
pub(super) fn open<'a>(
    layers: &'a CacheLayers,
    protections: &Protections,
) -> Result<CacheFolders<'a>, String> {
    let covered = layers.covered.as_deref().map_err(Clone::clone)?;
    let covered = if protections.has(Protection::CacheCovers) { covered } else { &[] };
    let open = |path| open_place(path).map_err(|error| error.to_string());
    Ok(CacheFolders { folder: open(&layers.folder)?, own: open(&layers.own)?, covered })
}

/// Mounts a package cache at a place: as the lower layer of an overlay, else read-only, else not at all.
pub(super) fn mount(cache: &CacheFolders<'_>, place: &OwnedFd, protections: &Protections) -> CacheState {
    let absent = |problem: io::Error| CacheState::Absent(problem.to_string());
    if !protections.has(Protection::CacheLayers) {
        let shown = copy_of(&cache.folder).and_then(|copy| attach(copy, place));
        return shown.map_or_else(absent, |()| CacheState::Layered);
    }
    let layered = match protections.has_overlay() {
        true => layered(cache).and_then(|mount| attach(mount, place)),
        false => Err(io::ErrorKind::Unsupported.into()),
    };
    let Err(problem) = layered else { return CacheState::Layered };
    match read_only(cache, place) {
        Ok(()) => CacheState::ReadOnly(format!("there is no overlay ({problem})")),
        Err(problem) => absent(problem),
    }
}

fn layered(cache: &CacheFolders<'_>) -> io::Result<OwnedFd> {
    let made = |name: &str| {
        mkdirat(&cache.own, name, Mode::RWXU)?;
        open_below(&cache.own, Path::new(name))
    };
    let (upper, work) = (made("upper")?, made("work")?);
    for path in cache.covered {
        remove_in(&upper, path)?;
    }
    overlay(&OverlayFolders { lower: cache.folder.try_clone()?, upper, work })
}

/// Leaves in an upper folder what says that a file of the lower one was removed. Nothing below the overlay can take it back:
/// what is removed there from the upper folder leaves such a mark, too.
fn remove_in(upper: &OwnedFd, path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = make_place(upper, parent, PlaceKind::Folder)?;
    Ok(mknodat(&parent, name, FileType::CharacterDevice, Mode::empty(), 0)?)
}

/// Mounts a folder read-only, and an empty file over each of those that are covered. What fails half way stays where it is:
/// no command is given it.
fn read_only(cache: &CacheFolders<'_>, place: &OwnedFd) -> io::Result<()> {
    let copy = copy_of(&cache.folder)?;
    restrict(&copy, MountAccess::ReadOnly, true)?;
    attach(&copy, place)?;
    if cache.covered.is_empty() {
        return Ok(());
    }
    let empty = make_place(&cache.own, Path::new("empty"), PlaceKind::File)?;
    for path in cache.covered {
        let cover = copy_of(&empty)?;
        restrict(&cover, MountAccess::ReadOnly, false)?;
        attach(cover, open_below(&copy, path)?)?;
    }
    Ok(())
}
