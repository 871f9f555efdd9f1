//! The one folder that holds everything of Drawloom's that is not a workspace's.
//!
//! [`Home::open`] is the only way to a [`Home`], and what it checks is what the rest relies on: the folder
//! is ours alone (0700, files 0600; wrong modes are repaired where we own them), it is really a home and not
//! somebody's documents given by mistake, and it lies on a file system whose locks work (spec: security §8).
//! Paths are functions of [`Home`] so that no other code spells a file name.

mod layout;
mod lost_store;
mod network;
mod scratch;
mod space;

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{Access, AtFlags, CWD, Mode, RenameFlags, linkat, renameat_with};
use rustix::io::Errno;

use crate::error::StoreError;

pub use layout::{
    BACKUPS, CONFIG, DATABASE, EGRESS, HomeDir, KEYS, OLDER_EGRESS, RANDOM_CHARS, STORE_COPIES, STORE_ID,
    UNFINISHED_CONFIG, UnfinishedFile, is_unfinished, known_names, store_log,
};
pub(crate) use layout::{JOURNAL, LOG, SHARED, beside, migration_copy, unfinished_migration_copy};
pub(crate) use lost_store::sign_of_store;
pub use lost_store::{made_with_store, stray_log};
pub use network::{FileSystems, HostFileSystems, NetworkFs};
pub use scratch::{NoRoom, Scratch};
pub use space::{Reserve, ReserveState, Space, SpaceLimits};

/// Why a home cannot be used. Each message says what to do; the exit code for all of them is 6, but for
/// [`HomeError::Empty`] and [`HomeError::NotAHome`], which are usage errors (spec: cli §1).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HomeError {
    /// An empty path was given.
    #[error("the home path is empty")]
    Empty,
    /// The path, or something on the way to it, is not a folder.
    #[error("{} is not a folder", .path.display())]
    NotADirectory {
        /// What is in the way.
        path: PathBuf,
    },
    /// The folder exists, holds other things, and is no home: taking it over would change its modes.
    #[error(
        "{} holds other files{} and is no Drawloom home",
        .path.display(), .other.as_ref().map(|other| format!(" ({})", other.display())).unwrap_or_default()
    )]
    NotAHome {
        /// The folder that was given.
        path: PathBuf,
        /// Name of the first entry that no home has.
        other: Option<PathBuf>,
    },
    /// The folder or one of our files in it belongs to another user.
    #[error("{} belongs to uid {owner}, not to uid {us}", .path.display())]
    ForeignOwner { path: PathBuf, owner: u32, us: u32 },
    /// We may not write there, or the file system is read-only.
    #[error("{} cannot be written", .path.display())]
    NotWritable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// We may not look into it.
    #[error("{} may not be read", .path.display())]
    NotReadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Others may read it and the mode could not be repaired.
    #[error("{} has mode {mode:04o}, open to others, and it cannot be changed", .path.display())]
    OpenToOthers {
        path: PathBuf,
        mode: u32,
        #[source]
        source: io::Error,
    },
    /// A file system whose locks cannot be trusted (spec: security §8).
    #[error(
        "{} lies on a network file system ({kind}), where file locks can lose saved work",
        .path.display()
    )]
    NetworkFileSystem { path: PathBuf, kind: NetworkFs },
    /// A file of the store that is none of its own: SQLite would write through it into what is behind it.
    #[error(
        "{} {what}, so that the store would write into what is not its own",
        .path.display()
    )]
    NotPlain {
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Anything else the system refused.
    #[error("{} could not be {action}", .path.display())]
    Io {
        /// What was tried, as a participle: `opened`, `created`.
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl HomeError {
    /// What to do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Empty => "give a folder with --home or DRAWLOOM_HOME",
            Self::NotADirectory { .. } => "move it away or choose another place with --home",
            Self::NotAHome { .. } => {
                "move what is not Drawloom's elsewhere, or give a new or empty folder with --home"
            }
            Self::ForeignOwner { .. } => "run as its owner, or choose another home with --home",
            Self::NotWritable { .. } => "make it writable, or choose another home with --home",
            Self::NotReadable { .. } => {
                "make it yours to read (chmod u+rwx), or choose another home with --home"
            }
            Self::OpenToOthers { .. } => "chmod it, or choose another home",
            Self::NetworkFileSystem { .. } => {
                "move the home to a local disk with --home, use PostgreSQL, or set store.allow_network_fs"
            }
            Self::NotPlain { .. } => "put a copy in its place (cp it, and mv the copy over it)",
            Self::Io { .. } => "check the disk and the folder's permissions",
        }
    }
}

impl HomeError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied if matches!(action, "opened" | "read") => {
                Self::NotReadable { path: path.to_owned(), source }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::NotWritable { path: path.to_owned(), source }
            }
            io::ErrorKind::NotADirectory => Self::NotADirectory { path: path.to_owned() },
            _ => Self::Io { action, path: path.to_owned(), source },
        }
    }
}

/// What the owner may change about opening a home.
#[derive(Debug, Clone, Copy, Default)]
pub struct HomeOptions {
    /// `store.allow_network_fs`: open it although file locks may not work there.
    pub allow_network_fs: bool,
}

/// An opened home: it exists, is ours alone, and lies where locks work.
#[derive(Clone)]
pub struct Home {
    root: PathBuf,
    repaired: Vec<PathBuf>,
    file_systems: Arc<dyn FileSystems>,
    /// Of a home that is only read: where everything goes that has to be written.
    scratch: Option<Arc<Scratch>>,
}

impl std::fmt::Debug for Home {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Home").field("root", &self.root).field("repaired", &self.repaired).finish()
    }
}

impl Home {
    /// Opens the home at `path`, creating it (0700) if it is absent. A relative path is taken from the
    /// working directory; `~` is the shell's business.
    ///
    /// # Errors
    /// [`HomeError`], before anything was changed, unless it is about a mode that could not be repaired.
    pub fn open(path: &Path, options: HomeOptions) -> Result<Self, HomeError> {
        Self::open_on(path, options, Arc::new(HostFileSystems))
    }

    /// As [`Home::open`], asking `file_systems` what lies where: the seam for tests.
    ///
    /// # Errors
    /// As [`Home::open`].
    pub fn open_on(
        path: &Path,
        options: HomeOptions,
        file_systems: Arc<dyn FileSystems>,
    ) -> Result<Self, HomeError> {
        if path.as_os_str().is_empty() {
            return Err(HomeError::Empty);
        }
        let path = std::path::absolute(path).map_err(HomeError::io("resolved", path))?;
        let existing = nearest_existing(&path)?;
        if !options.allow_network_fs {
            refuse_network(&*file_systems, existing)?;
        }
        if existing != path {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&path)
                .map_err(HomeError::io("created", &path))?;
        }
        // What is committed below counts as saved, so the names that lead to it have to be as well. A home with a
        // store went through here before.
        if existing != path || !path.join(DATABASE).exists() {
            keep_names(&path, existing)?;
        }
        let root = path.canonicalize().map_err(HomeError::io("opened", &path))?;
        let mut home = Self { root, repaired: Vec::new(), file_systems, scratch: None };
        home.refuse_foreign_contents()?;
        // `loom.db` may be a link to another disk: what counts is where its bytes lie.
        if !options.allow_network_fs && home.database().exists() {
            refuse_network(&*home.file_systems, &home.database())?;
        }
        refuse_odd_store(&home.database())?;
        home.check_modes()?;
        rustix::fs::access(&home.root, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|error| HomeError::NotWritable { path: home.root.clone(), source: error.into() })?;
        Ok(home)
    }

    /// Opens a home that is there in order to read it. Nothing of it is changed or needs to be writable: neither its
    /// modes, which may be another user's, nor its folders.
    ///
    /// # Errors
    /// [`HomeError`], when it is no home, or lies where locks do not work.
    pub fn open_for_reading(path: &Path, options: HomeOptions) -> Result<Self, HomeError> {
        let root = path.canonicalize().map_err(HomeError::io("opened", path))?;
        let scratch = Some(Arc::default());
        let home = Self { root, repaired: Vec::new(), file_systems: Arc::new(HostFileSystems), scratch };
        home.refuse_foreign_contents()?;
        if !options.allow_network_fs {
            refuse_network(home.file_systems(), home.root())?;
            if home.database().exists() {
                refuse_network(home.file_systems(), &home.database())?;
            }
        }
        refuse_odd_store(&home.database())?;
        Ok(home)
    }

    /// The private folders of a home that is only read; none of one that is written.
    #[must_use]
    pub fn scratch(&self) -> Option<&Scratch> {
        self.scratch.as_deref()
    }

    /// Files of answers that are not in the store, or not yet.
    #[must_use]
    pub fn unstored_answers(&self) -> usize {
        let Ok(entries) = self.root().join(HomeDir::Spool.name()).read_dir() else { return 0 };
        entries.flatten().filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b".")).count()
    }

    /// The folder that a copy of the store is made in, which takes `bytes`: the home itself, or a private one of
    /// `otherwise` where its disk has no room.
    ///
    /// # Errors
    /// [`StoreError::NoRoom`].
    pub fn place_of_copies(&self, bytes: u64, otherwise: &Scratch) -> Result<PathBuf, StoreError> {
        match &self.scratch {
            Some(scratch) => Ok(scratch.with_room(bytes)?),
            None if scratch::has_room(&self.root, bytes) => Ok(self.root.clone()),
            None => Ok(otherwise.with_room(bytes)?),
        }
    }

    /// The folder itself: absolute, without symlinks.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What had a mode open to others when we came, and was repaired: to be told to the owner.
    #[must_use]
    pub fn repaired(&self) -> &[PathBuf] {
        &self.repaired
    }

    /// The path of a folder of the home, which is created (0700) if it is absent. Of a home that is only read it is
    /// a private one where it is absent, or holds nothing but locks and what can be missed.
    ///
    /// # Errors
    /// [`HomeError::NotADirectory`], [`HomeError::NotWritable`] or [`HomeError::Io`].
    pub fn dir(&self, dir: HomeDir) -> Result<PathBuf, HomeError> {
        let path = self.root.join(dir.name());
        let path = match &self.scratch {
            Some(scratch) if dir.is_written_by_readers() || !path.exists() => {
                let full = |error| {
                    HomeError::io("replaced", &path)(io::Error::new(io::ErrorKind::StorageFull, error))
                };
                scratch.with_room(0).map_err(full)?.join(dir.name())
            }
            _ => path,
        };
        // What is large or the owner's may lie on another disk; nothing else is written through a link.
        if !matches!(dir, HomeDir::Models | HomeDir::DefaultWorkspace) {
            let within = path.ancestors().take_while(|part| *part != self.root);
            if let Some(link) = within.filter(|part| part.is_symlink()).last() {
                return Err(HomeError::NotADirectory { path: link.to_owned() });
            }
        }
        match DirBuilder::new().recursive(true).mode(0o700).create(&path) {
            Ok(()) => Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(HomeError::NotADirectory { path })
            }
            Err(error) => Err(HomeError::io("created", &path)(error)),
        }
    }

    fn file_systems(&self) -> &dyn FileSystems {
        &*self.file_systems
    }

    /// A folder given by mistake (`/`, the user's own folder, a project) must not have its modes changed.
    fn refuse_foreign_contents(&self) -> Result<(), HomeError> {
        let not_a_home = |other| Err(HomeError::NotAHome { path: self.root.clone(), other });
        if self.root.parent().is_none() {
            return not_a_home(None);
        }
        let mut others = BTreeSet::new();
        for entry in self.root.read_dir().map_err(HomeError::io("read", &self.root))? {
            let entry = entry.map_err(HomeError::io("read", &self.root))?;
            let name = entry.file_name();
            if name.to_str().is_some_and(layout::is_ours_alone) {
                return Ok(());
            }
            if !name.to_str().is_some_and(layout::is_known) {
                others.insert(PathBuf::from(name));
            }
        }
        others.pop_first().map_or(Ok(()), |other| not_a_home(Some(other)))
    }

    /// The root and everything in it whose name is ours, and the logins: at start, and no deeper, so that the cost does
    /// not grow with what the home holds. Below, the root's own 0700 keeps others out.
    fn check_modes(&mut self) -> Result<(), HomeError> {
        let us = rustix::process::geteuid().as_raw();
        let mut known = vec![self.root.clone()];
        known.extend(known_names().map(|name| self.root.join(name)));
        let logins = self.root.join(HomeDir::Logins.name());
        if logins.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            let saved = logins.read_dir().map_err(HomeError::io("read", &logins))?;
            known.extend(saved.flatten().map(|entry| entry.path()));
        }
        let root = self.root.metadata().map_err(HomeError::io("read", &self.root))?;
        let is_kept = root.mode() & 0o200 == 0;
        for path in known {
            let metadata = match path.symlink_metadata() {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(HomeError::io("read", &path)(error)),
            };
            if metadata.is_symlink() {
                continue;
            }
            if metadata.uid() != us {
                return Err(HomeError::ForeignOwner { path, owner: metadata.uid(), us });
            }
            if repair_mode(&path, &metadata, is_kept)? {
                self.repaired.push(path);
            }
        }
        Ok(())
    }
}

static FORMER_UMASK: AtomicU32 = AtomicU32::new(0o022);

/// The umask before [`restrict_umask`]: for files that are the owner's and not ours.
#[must_use]
pub fn former_umask() -> u32 {
    FORMER_UMASK.load(Ordering::Relaxed)
}

/// Keeps everything this process creates from others (spec: security §8 "umask set"). It is the process's,
/// not a thread's: to be called once, first thing in `main`.
pub fn restrict_umask() {
    let former = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    FORMER_UMASK.store(former.bits(), Ordering::Relaxed);
}

/// Gives a file another name, unless something has it; whether it was free.
///
/// # Errors
/// What the system says; [`io::ErrorKind::Unsupported`] on a file system that has no way that never replaces a file.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<bool> {
    rename_or_link(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE), from, to)
}

/// A link replaces nothing either, on file systems that cannot rename so. Where there are no links, nothing is
/// renamed: between a look and a rename another process may take the name.
fn rename_or_link(renamed: Result<(), Errno>, from: &Path, to: &Path) -> io::Result<bool> {
    match renamed {
        Ok(()) => return Ok(true),
        Err(Errno::EXIST) => return Ok(false),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        Err(error) => return Err(error.into()),
    }
    match linkat(CWD, from, CWD, to, AtFlags::empty()) {
        Ok(()) => {
            if let Err(error) = std::fs::remove_file(from) {
                tracing::warn!(file = %from.display(), %error, "the former name of a file could not be removed");
            }
            Ok(true)
        }
        Err(Errno::EXIST) => Ok(false),
        Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP) => {
            let why = "this file system cannot name a file without the risk of replacing another";
            Err(io::Error::new(io::ErrorKind::Unsupported, why))
        }
        Err(error) => Err(error.into()),
    }
}

/// Takes a mode's bits for others away, and gives the owner those that are missing unless the home is kept from being
/// written; whether it was open to others.
fn repair_mode(path: &Path, metadata: &Metadata, is_kept: bool) -> Result<bool, HomeError> {
    let mode = metadata.mode() & 0o7777;
    let (owner, others) = if metadata.is_dir() { (0o700, 0o077) } else { (0o600, 0o177) };
    let wanted = if is_kept { mode & owner } else { owner };
    if mode & others != 0 || mode & owner != wanted {
        std::fs::set_permissions(path, Permissions::from_mode(wanted))
            .map_err(|source| HomeError::OpenToOthers { path: path.to_owned(), mode, source })?;
    }
    Ok(mode & others != 0)
}

/// The path itself, or the folder in which its first missing part would be created.
fn nearest_existing(path: &Path) -> Result<&Path, HomeError> {
    for ancestor in path.ancestors() {
        match ancestor.metadata() {
            Ok(metadata) if metadata.is_dir() => return Ok(ancestor),
            Ok(_) => return Err(HomeError::NotADirectory { path: ancestor.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Something above is a file; the walk arrives there.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
            Err(error) => return Err(HomeError::io("read", ancestor)(error)),
        }
    }
    Err(HomeError::NotADirectory { path: path.to_owned() })
}

/// Makes the names of a folder, and of those above it that lie below `existing`, survive power loss.
fn keep_names(path: &Path, existing: &Path) -> Result<(), HomeError> {
    for folder in path.ancestors().skip(1) {
        match File::open(folder).and_then(|folder| folder.sync_all()) {
            // Somebody else's folder that we may pass through and not read is theirs to keep.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            kept => kept.map_err(HomeError::io("brought to the device", folder))?,
        }
        if folder == existing || path == existing {
            break;
        }
    }
    Ok(())
}

/// Refuses a store whose file, log or journal is a pipe or a folder, and a log or journal that is a link or has a second
/// name somewhere.
/// The database itself may be a link to another disk, its log lies beside the file it leads to; and a snapshot of a
/// home may hold it by a second name.
///
/// # Errors
/// [`HomeError::NotPlain`].
pub fn refuse_odd_store(database: &Path) -> Result<(), HomeError> {
    let database = lost_store::real(database);
    for end in ["", LOG, JOURNAL, SHARED] {
        let path = beside(&database, end);
        let what = match path.symlink_metadata() {
            Ok(found) if !found.is_file() => "is not a plain file".to_owned(),
            Ok(found) if found.nlink() > 1 && !end.is_empty() => {
                format!("has {} names (hard links)", found.nlink())
            }
            _ => continue,
        };
        return Err(HomeError::NotPlain { path, what });
    }
    Ok(())
}

fn refuse_network(file_systems: &dyn FileSystems, path: &Path) -> Result<(), HomeError> {
    match file_systems.network_kind(path).map_err(HomeError::io("examined", path))? {
        Some(kind) => Err(HomeError::NetworkFileSystem { path: path.to_owned(), kind }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
