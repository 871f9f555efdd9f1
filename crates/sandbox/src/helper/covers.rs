//! Covers of the protected set at level *full*: read-only mounts of it over the roots.
//!
//! Every folder between a protected path and its root is a mount, too: `mv .git g2` would else carry the protection away with
//! the folder, and leave its name free. Nothing is mounted over what does not exist: a stub would stay behind in the folder.
//!
//! A mount belongs to a file and not to its name. Whoever replaces a protected file outside of the walls (an editor that saves
//! by renaming, `git config`, a checkout) takes the cover away: the kernel drops it with the old file, or leaves it on that
//! under another name. The outer process covers the new one. It learns of a dropped cover at once, and looks for the others
//! once a second. Until then the command could write to the file, so that each one is told of. It could also keep something by
//! which it writes later, in spite of the cover: an open file, another name, or, of a folder, the folder itself. A command that
//! may have that is ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, FileType, OFlags, StatxAttributes, StatxFlags, statx};
use rustix::io::Errno;

use super::mount_calls::{
    MountAccess, PlaceKind, attach, copy_of, make_place, memory_folder, open_below, open_below_as,
    open_place, restrict,
};
use super::mounts::{ROOT_BYTES, below, kind_of, private};
use super::{Failure, Step};
use crate::protection::{Protection, Protections};
use crate::request::HelperRequest;

/// How long a file that was covered anew may be open for writing: an editor has it open for a moment.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a path is looked up that each time is about to be another file, and the pause before it is again.
const LOOKS: usize = 1_000;
const PAUSE: Duration = Duration::from_millis(1);
/// Command of `fcntl` that chooses the signal of a broken lease (`asm-generic/fcntl.h`).
const F_SETSIG: libc::c_int = 10;

/// What is covered.
struct Places {
    /// Folders between a protected path and its root, each before what it holds.
    between: BTreeSet<PathBuf>,
    protected: Vec<PathBuf>,
}

impl Places {
    fn of(request: &HelperRequest, is_there: impl Fn(&PathBuf) -> bool) -> Self {
        let walls = &request.walls;
        let tops: Vec<&Path> =
            walls.writable_roots().chain(walls.git_folders.iter().map(PathBuf::as_path)).collect();
        let is_touched = |path: &&PathBuf| walls.touches.iter().any(|touched| path.starts_with(touched));
        let protected: Vec<&PathBuf> = request.protected.iter().filter(|path| is_there(path)).collect();
        let mut between = BTreeSet::new();
        for path in protected.iter().copied().chain(&walls.touches).chain(private(walls)) {
            let Some(top) =
                tops.iter().filter(|top| path.starts_with(top)).max_by_key(|top| top.as_os_str().len())
            else {
                continue;
            };
            between
                .extend(path.ancestors().skip(1).take_while(|folder| folder != top).map(Path::to_path_buf));
        }
        let protected = protected.into_iter().filter(|path| !is_touched(path)).cloned().collect();
        Self { between, protected }
    }
}

/// Mounts the protected set over the roots.
pub(super) fn protect(
    root: &OwnedFd,
    request: &HelperRequest,
    protections: &Protections,
) -> Result<(), Failure> {
    let is_there = |path: &PathBuf| !request.fleeting.contains(path) || open_below(root, below(path)).is_ok();
    let places = Places::of(request, is_there);
    for folder in &places.between {
        cover_with_itself(root, folder, MountAccess::ReadWrite)?;
    }
    for path in &places.protected {
        let is_ours = path.file_name().is_some_and(|name| name == ".drawloom");
        if is_ours && protections.has(Protection::HiddenDrawloom) && is_folder(root, path) {
            hide_ours(root, path)?;
        } else {
            cover_with_itself(root, path, MountAccess::ReadOnly)?;
        }
    }
    for touched in &request.walls.touches {
        if request.protected.iter().any(|path| touched != path && touched.starts_with(path)) {
            cover_with_itself(root, touched, MountAccess::ReadWrite)?;
        }
    }
    Ok(())
}

/// Whether a path is a folder in the new root. By its own path it would be looked up in the old one.
fn is_folder(root: &OwnedFd, path: &Path) -> bool {
    open_below(root, below(path))
        .is_ok_and(|place| kind_of(&place).is_ok_and(|kind| kind == PlaceKind::Folder))
}

/// Mounts a file or folder over itself. One that is gone meanwhile is passed over: what comes in its place is found
/// after the command.
fn cover_with_itself(root: &OwnedFd, path: &Path, access: MountAccess) -> Result<(), Failure> {
    let find = || open_below(root, below(path));
    let cover = |place: &OwnedFd| {
        let copy = copy_of(place)?;
        restrict(&copy, access, true)?;
        attach(copy, place)
    };
    cover_found(LOOKS, find, cover).step(&format!("protection of {}", path.display()))
}

/// Covers what is found; where that is gone meanwhile, it is looked for again, this many times. Where nothing is found there is
/// nothing to cover.
///
/// # Errors
/// If it cannot be covered, or was gone each time.
fn cover_found<T>(
    looks: usize,
    find: impl Fn() -> io::Result<T>,
    cover: impl Fn(&T) -> io::Result<()>,
) -> io::Result<()> {
    let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    for _ in 0..looks {
        let place = match find() {
            Err(error) if is_gone(&error) => return Ok(()),
            other => other?,
        };
        match cover(&place) {
            Err(error) if is_gone(&error) => thread::sleep(PAUSE),
            other => return other,
        }
    }
    Err(io::Error::other("another one stood there each time"))
}

/// Covers `.drawloom` with an empty folder that holds only `run`.
fn hide_ours(root: &OwnedFd, path: &Path) -> Result<(), Failure> {
    let step = || format!("cover of {}", path.display());
    let place = open_below(root, below(path)).step(&step())?;
    let run = open_below(&place, Path::new("run")).and_then(copy_of).ok();
    let cover = memory_folder(ROOT_BYTES, "755").step(&step())?;
    attach(&cover, place).step(&step())?;
    if let Some(run) = run {
        restrict(&run, MountAccess::ReadWrite, true).step(&step())?;
        let place = make_place(&cover, Path::new("run"), PlaceKind::Folder).step(&step())?;
        attach(run, place).step(&step())?;
    }
    restrict(&cover, MountAccess::ReadOnly, false).step(&step())
}

/// Covers that are looked after while the command runs.
pub(super) struct Covers {
    /// The kernel's list of mounts, which wakes whoever polls it when one comes or goes.
    mounts: File,
    /// Device of the root directory until the walls stand.
    before: u64,
    places: Places,
    /// Files that were open for writing when they were covered anew, since when.
    open: BTreeMap<PathBuf, Instant>,
    /// Paths that were told of as covered anew.
    told: BTreeSet<PathBuf>,
}

/// What became of the covers.
pub(super) enum Renewal {
    /// Paths that were covered anew, each told of once.
    Covered(Vec<PathBuf>),
    /// Path that cannot be kept from the command any more: the command is to be ended.
    Lost(PathBuf),
}

/// What stands at a covered path.
enum Standing {
    Gone,
    Covered,
    /// A file without a cover.
    Bare,
    /// What cannot be covered anew.
    Other,
}

impl Covers {
    /// Looks after the covers that will be made in the mount namespace of this process. Of what other commands may take away
    /// meanwhile, and of what is not there, none is lost.
    pub(super) fn watch(request: &HelperRequest) -> Result<Self, Failure> {
        let mounts = File::open("/proc/self/mountinfo").step("list of mounts")?;
        let before = fs::metadata("/").step("root directory")?.dev();
        let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
        let mut places = Places::of(request, |path| !request.fleeting.contains(path) && is_there(path));
        places.between.retain(is_there);
        Ok(Self { mounts, before, places, open: BTreeMap::new(), told: BTreeSet::new() })
    }

    pub(super) fn event(&self) -> PollFd<'_> {
        PollFd::new(&self.mounts, PollFlags::PRI)
    }

    /// Covers what has lost its cover.
    ///
    /// # Errors
    /// If that fails: then the command is to be ended.
    pub(super) fn renew(&mut self) -> Result<Renewal, Failure> {
        let mut covered = Vec::new();
        if fs::metadata("/").step("root directory")?.dev() == self.before {
            return Ok(Renewal::Covered(covered));
        }
        let root = open_place(Path::new("/")).step("root directory")?;
        let Places { between, protected } = &self.places;
        let folders = between.iter().map(|path| (path, false));
        for (path, is_file) in folders.chain(protected.iter().map(|path| (path, true))) {
            match standing(&root, path).step(&format!("look at {}", path.display()))? {
                Standing::Gone | Standing::Covered => {}
                Standing::Bare if is_file => {
                    cover_with_itself(&root, path, MountAccess::ReadOnly)?;
                    self.open.insert(path.clone(), Instant::now());
                    if self.told.insert(path.clone()) {
                        covered.push(path.clone());
                    }
                }
                Standing::Bare | Standing::Other => return Ok(Renewal::Lost(path.clone())),
            }
        }
        self.open.retain(|path, _| may_be_written(&root, path));
        match self.open.iter().find(|(_, since)| since.elapsed() >= PATIENCE) {
            Some((path, _)) => Ok(Renewal::Lost(path.clone())),
            None => Ok(Renewal::Covered(covered)),
        }
    }

    /// Protected paths at which nothing stands any more.
    pub(super) fn gone(&self) -> Vec<&Path> {
        let Ok(root) = open_place(Path::new("/")) else { return Vec::new() };
        let is_gone = |path: &&Path| matches!(standing(&root, path), Ok(Standing::Gone));
        self.places.protected.iter().map(PathBuf::as_path).filter(is_gone).collect()
    }
}

/// What stands at a path. A file that was taken from it while it was looked up, which has no name any more, is looked up
/// again.
fn standing(root: &OwnedFd, path: &Path) -> io::Result<Standing> {
    for _ in 0..LOOKS {
        let place = match open_below(root, below(path)) {
            Ok(place) => place,
            Err(error) => {
                return match Errno::from_io_error(&error) {
                    Some(Errno::NOENT | Errno::NOTDIR) => Ok(Standing::Gone),
                    // A link was put on the way.
                    Some(Errno::LOOP) => Ok(Standing::Other),
                    _ => Err(error),
                };
            }
        };
        let found = statx(&place, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
        let is_file = FileType::from_raw_mode(found.stx_mode.into()) == FileType::RegularFile;
        return Ok(match found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
            true => Standing::Covered,
            false if found.stx_nlink == 0 => {
                thread::sleep(PAUSE);
                continue;
            }
            false if is_file && found.stx_nlink == 1 => Standing::Bare,
            false => Standing::Other,
        });
    }
    Ok(Standing::Other)
}

/// Whether somebody may have a file open for writing. Of one that is gone nothing is left to write to.
fn may_be_written(root: &OwnedFd, path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match open_below_as(root, below(path), flags) {
        Ok(file) => !can_lease(&file),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Whether the kernel gives a lease of a file for reading, which it does where nobody has it open for writing.
fn can_lease(file: &OwnedFd) -> bool {
    let set = |command: libc::c_int, value: libc::c_int| {
        #[allow(unsafe_code, reason = "rustix offers no leases")]
        // SAFETY: the descriptor is open, and both commands take a number.
        let result = unsafe { libc::fcntl(file.as_raw_fd(), command, value) };
        result == 0
    };
    // Who opens it meanwhile breaks the lease, of which a signal would tell that ends this process.
    set(F_SETSIG, libc::SIGURG)
        && set(libc::F_SETLEASE, libc::F_RDLCK)
        && set(libc::F_SETLEASE, libc::F_UNLCK)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_cannot_be_covered_is_an_error_and_what_is_gone_is_none() {
        let gone = || Err(io::Error::from(io::ErrorKind::NotFound));
        let looks = Cell::new(0);
        let found = || {
            looks.set(looks.get() + 1);
            Ok(())
        };
        let error = cover_found(3, found, |()| gone()).unwrap_err();
        assert_eq!((looks.get(), error.to_string().as_str()), (3, "another one stood there each time"));
        let refused = || Err(io::Error::from(io::ErrorKind::PermissionDenied));
        for tried in [cover_found(3, found, |()| refused()), cover_found(3, refused, |()| Ok(()))] {
            assert_eq!(tried.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
        cover_found(3, found, |()| if looks.get() < 6 { gone() } else { Ok(()) }).unwrap();
        cover_found(3, gone, |()| refused()).unwrap();
    }
}
