//! One folder, held by descriptor, and everything that is opened beneath it.
//!
//! A path is never checked and then opened: between the two, another process can swap a folder for
//! a link. Here the kernel resolves the path from the root's descriptor and refuses to leave it
//! (`openat2`, or one component at a time where that is missing), the result is an `O_PATH`
//! descriptor, every question is asked of that descriptor, and the very same file is then opened
//! for reading. `O_PATH` neither blocks on a FIFO nor disturbs a device or the store's locks.

mod beneath;
mod changes;
mod folder;
#[cfg(test)]
mod folder_tests;
mod listing;
mod owner_access;
mod reading;
mod root_stamp;
mod rules;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::Errno;

use crate::descriptor::descriptor_path;
use crate::error::{FileError, FileKind, FileProblem};
use crate::guard::StoreGuard;
use crate::identity::FileId;
use crate::path::{PathProblem, RelativePath};

pub use folder::{FileReader, OpenFolder};
pub use listing::{DirEntry, FileStamp, Listing, StampedListing};
pub use owner_access::OwnerAccess;
pub use reading::Content;
pub use root_stamp::RootStamp;
pub use rules::{LinkPolicy, Metadata, ReadRules, RootAccess};

pub(crate) use beneath::Resolver;
pub(crate) use reading::read_capped;

/// A folder that tools, cards and documents live beneath.
#[derive(Debug)]
pub struct Root {
    folder: OwnedFd,
    named: PathBuf,
    path: PathBuf,
    id: FileId,
    guard: StoreGuard,
    resolver: Resolver,
    access: RootAccess,
    is_further: bool,
    is_skill: bool,
    /// Folders that nothing here leads into, by canonical paths.
    closed: Vec<PathBuf>,
}

impl Root {
    /// Opens a folder as a root. The path itself may go through links: whoever names a root means
    /// where it leads. Afterwards renaming the folder or swapping a parent changes nothing.
    ///
    /// # Errors
    /// If it does not exist, is no folder, or may not be entered.
    pub fn open(path: &Path, guard: &StoreGuard) -> Result<Self, FileError> {
        Self::open_with(path, guard, Resolver::Kernel)
    }

    /// Opens a root that was written down by its canonical path. Where a link stands on the way by now, it is another
    /// folder's.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`FileProblem::Symlink`].
    pub fn open_again(path: &Path, guard: &StoreGuard) -> Result<Self, FileError> {
        let open = || -> Result<Self, FileProblem> {
            let found = Self::found_again(path, guard)?;
            let folder = reopen(found.as_fd(), OFlags::RDONLY | OFlags::DIRECTORY)?;
            Self::of_folder(folder, (path, path.to_owned()), guard, Resolver::Kernel)
        };
        open().map_err(|problem| FileError::new(path, problem))
    }

    /// [`Self::open_again`] of a folder that is known.
    ///
    /// # Errors
    /// As there, and [`FileProblem::OtherFolder`].
    pub fn open_known(path: &Path, guard: &StoreGuard, known: &RootStamp) -> Result<Self, FileError> {
        let root = Self::open_again(path, guard)?;
        let stamp = root.root_stamp()?;
        match stamp.identity.is_same(&known.identity) {
            true => Ok(root),
            false => Err(FileError::new(path, FileProblem::OtherFolder)),
        }
    }

    /// An `O_PATH` descriptor of a folder by its canonical path.
    fn found_again(path: &Path, guard: &StoreGuard) -> Result<OwnedFd, FileProblem> {
        let above = Self::open(Path::new("/"), guard).map_err(|error| error.problem)?;
        let below = path.strip_prefix("/").map_err(|_| FileProblem::Outside)?;
        above.folder(&RelativePath::from_components(below)?)
    }

    pub(crate) fn open_with(path: &Path, guard: &StoreGuard, resolver: Resolver) -> Result<Self, FileError> {
        let open = || -> Result<Self, FileProblem> {
            let canonical = path.canonicalize()?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = openat(CWD, &canonical, flags, Mode::empty())?;
            Self::of_folder(folder, (path, canonical), guard, resolver)
        };
        open().map_err(|problem| FileError::new(path, problem))
    }

    fn of_folder(
        folder: OwnedFd,
        (named, path): (&Path, PathBuf),
        guard: &StoreGuard,
        resolver: Resolver,
    ) -> Result<Self, FileProblem> {
        let id = FileId::of(&fstat(&folder)?);
        Ok(Self {
            folder,
            named: named.to_path_buf(),
            path,
            id,
            guard: guard.clone(),
            resolver,
            access: RootAccess::ReadWrite,
            is_further: false,
            is_skill: false,
            closed: Vec::new(),
        })
    }

    /// The root as a further one of a session, beside its workspace: its paths are shown whole, and with
    /// [`RootAccess::ReadOnly`] nothing here changes anything in it.
    #[must_use]
    pub fn as_further(self, access: RootAccess) -> Self {
        Self { access, is_further: true, ..self }
    }

    /// The root as the folder of a skill: tools and commands read it, and its skill names it.
    #[must_use]
    pub fn as_skill(self) -> Self {
        Self { access: RootAccess::ReadOnly, is_further: true, is_skill: true, ..self }
    }

    /// Whether it is the folder of a skill.
    pub fn is_skill(&self) -> bool {
        self.is_skill
    }

    /// The root with closed folders, by canonical paths: nothing leads into them, also by links, and they are not
    /// moved.
    #[must_use]
    pub fn closing(self, closed: Vec<PathBuf>) -> Self {
        Self { closed, ..self }
    }

    /// Whether a path lies in a closed folder by its names.
    pub fn is_closed(&self, path: &RelativePath) -> bool {
        let path = self.path.join(path.as_path());
        self.closed.iter().any(|closed| path.starts_with(closed))
    }

    pub fn access(&self) -> RootAccess {
        self.access
    }

    /// Whether it is a further root of a session.
    pub fn is_further(&self) -> bool {
        self.is_further
    }

    /// A path below this root as it is named to whoever asks for it: relative in a workspace, absolute in a further root.
    pub fn shown(&self, path: &RelativePath) -> PathBuf {
        if self.is_further { self.path.join(path.as_path()) } else { path.as_path().to_path_buf() }
    }

    pub(crate) fn failed(&self, path: &RelativePath, problem: impl Into<FileProblem>) -> FileError {
        FileError::new(self.shown(path), problem)
    }

    /// The canonical path at the time of opening: for display and for keys, never for opening.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Device and inode of the folder.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// The folder as it is known again, and its mode now.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn root_stamp(&self) -> Result<RootStamp, FileError> {
        RootStamp::of(&self.folder).map_err(|problem| FileError::new(&self.path, problem))
    }

    /// The path below this root of an absolute path, compared by components (`/w-other` is not
    /// below `/w`), whether it is written with the root's canonical path or as the root was named.
    ///
    /// # Errors
    /// [`PathProblem::Outside`].
    pub fn relative(&self, absolute: &Path) -> Result<RelativePath, PathProblem> {
        let inside = absolute.strip_prefix(&self.path).or_else(|_| absolute.strip_prefix(&self.named));
        RelativePath::from_components(inside.map_err(|_| PathProblem::Outside)?)
    }

    /// Metadata of the file at a path, without opening it.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file) for the way there; the kind of the file is not judged.
    pub fn stat(&self, path: &RelativePath, links: LinkPolicy) -> Result<Metadata, FileError> {
        let stat = || -> Result<Metadata, FileProblem> {
            let file = self.walk(path, links, false)?;
            Ok(Metadata::of(&fstat(&file)?))
        };
        stat().map_err(|problem| self.failed(path, problem))
    }

    /// An `O_PATH` descriptor of what stands at `path`.
    fn walk(&self, path: &RelativePath, links: LinkPolicy, one_device: bool) -> Result<OwnedFd, FileProblem> {
        // Below `/` an absolute link cannot lead out; elsewhere it always counts as leaving.
        let whole_system = self.path == Path::new("/");
        let rules = beneath::WalkRules { links, one_device, whole_system };
        let found = self.resolver.walk(self.folder.as_fd(), path, rules)?;
        if !self.closed.is_empty() {
            let stands = path_of(&found)?;
            if self.closed.iter().any(|closed| stands.starts_with(closed)) {
                return Err(FileProblem::Closed);
            }
        }
        Ok(found)
    }

    /// An `O_PATH` descriptor of a folder below the root; no link on the way is followed.
    pub(crate) fn folder(&self, path: &RelativePath) -> Result<OwnedFd, FileProblem> {
        let found = self.walk(path, LinkPolicy::Refuse, false)?;
        match FileType::from_raw_mode(fstat(&found)?.st_mode) {
            FileType::Directory => Ok(found),
            FileType::Symlink => Err(FileProblem::Symlink),
            _ => Err(FileProblem::NotAFolder),
        }
    }

    pub(crate) fn guard(&self) -> &StoreGuard {
        &self.guard
    }
}

/// Opens for reading the very file an `O_PATH` descriptor stands for, once it is known to be a
/// regular file that is none of the store's.
pub(crate) fn reopen_regular(file: &OwnedFd, guard: &StoreGuard) -> Result<OwnedFd, FileProblem> {
    let stat = fstat(file)?;
    require_regular(&stat)?;
    if guard.covers(FileId::of(&stat)) {
        return Err(FileProblem::StoreFile);
    }
    reopen(file.as_fd(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
}

fn require_regular(stat: &Stat) -> Result<(), FileProblem> {
    match FileKind::of(FileType::from_raw_mode(stat.st_mode)) {
        FileKind::Regular => Ok(()),
        FileKind::Symlink => Err(FileProblem::Symlink),
        other => Err(FileProblem::NotRegular(other)),
    }
}

/// Opens what an `O_PATH` descriptor stands for: there is no second lookup of a name, hence nothing to race.
pub(crate) fn reopen(file: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, FileProblem> {
    openat(CWD, descriptor_path(file), flags | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT => no_proc(),
        other => other.into(),
    })
}

/// The path of what a descriptor stands for, as the kernel has it.
fn path_of(found: &OwnedFd) -> Result<PathBuf, FileProblem> {
    match readlinkat(CWD, descriptor_path(found), Vec::new()) {
        Ok(path) => Ok(OsString::from_vec(path.into_bytes()).into()),
        Err(Errno::NOENT) => Err(no_proc()),
        Err(other) => Err(other.into()),
    }
}

fn no_proc() -> FileProblem {
    let missing = "/proc is not mounted: files cannot be opened safely without it";
    FileProblem::Io(std::io::Error::new(std::io::ErrorKind::Unsupported, missing))
}
