//! Which processes work on a home now, and which are gone.
//!
//! Every process that opens the store is an *instance*. It holds a `flock` for its life; work that it begins
//! carries its id, and only work whose owner's lock is free is ever taken over (spec: security §7). Whether
//! an owner lives is decided by that lock and by nothing else: not by the process number (it is reused) and
//! not by a time (a stopped process lives). The kernel frees the lock when the process ends, however it
//! ends, and keeps it while the process is merely stopped.
//!
//! **Two names.** A lock file that someone removes from `run/` would make a living owner look dead, so the
//! same locked inode also has a name under `locks/`. An instance is dead only if neither name is locked.
//!
//! **Children.** Descriptors are close-on-exec, so a program we start does not hold the lock on. A child that
//! forks without `exec` must close its descriptors itself, or the instance lives as long as the child.

mod id;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::AtFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::disk::{self, Locked, fd};
use crate::home::{Home, HomeDir, HomeError};

pub use id::{BadInstanceId, InstanceId};

/// More than this of a lock file is not read: ours are under 400 bytes.
const MAX_ABOUT_BYTES: u64 = 4096;
/// A longer command is cut, in characters.
const MAX_COMMAND_CHARS: usize = 200;

/// Why instances could not be registered or listed. Exit 6 (spec: cli §1).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// The home's folders cannot be had.
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("{} could not be {action}", .path.display())]
    Io {
        /// What was tried, as a participle.
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl InstanceError {
    /// What to do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Home(error) => error.hint(),
            Self::Io { .. } => "check the disk and that the home is writable",
        }
    }
}

/// What an instance says about itself, for people: it never decides whether it lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Process number in the namespace of the process that wrote it.
    pub pid: u32,
    /// What it runs, such as `up` or `chat`: without arguments, which may hold a message or a secret.
    pub command: String,
    /// When it started, milliseconds since 1970 by its own clock.
    pub started: i64,
    pub version: String,
    /// Version of the store it writes; 0: one before this was said.
    #[serde(default)]
    pub schema: u32,
}

impl About {
    #[must_use]
    pub fn this_process(command: &str, version: &str, started: i64) -> Self {
        Self {
            pid: std::process::id(),
            command: command.to_owned(),
            started,
            version: version.to_owned(),
            schema: crate::schema::VERSION,
        }
    }
}

impl fmt::Display for About {
    /// `process 4711 (drawloom up)`: how a busy error names who is in the way.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        let command: String = self.command.chars().take(MAX_COMMAND_CHARS).map(visible).collect();
        write!(f, "process {} (drawloom {command})", self.pid)
    }
}

/// An instance that was found, dead or alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundInstance {
    pub id: InstanceId,
    /// Whether its lock is held.
    pub alive: bool,
    /// What it said of itself; `None` if its file is damaged.
    pub about: Option<About>,
}

impl fmt::Display for FoundInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.about {
            Some(about) => about.fmt(f),
            None => write!(f, "instance {} (it left no readable name)", self.id),
        }
    }
}

/// The instances of one home.
#[derive(Debug, Clone)]
pub struct Instances {
    run: Arc<Folder>,
    locks: Arc<Folder>,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    fd: OwnedFd,
}

impl Folder {
    fn open(home: &Home, dir: HomeDir) -> Result<Self, InstanceError> {
        let path = home.dir(dir)?;
        let fd = disk::open_dir(&path).map_err(io_error("opened", &path))?;
        Ok(Self { path, fd })
    }

    fn error(&self, action: &'static str, name: &str) -> impl FnOnce(io::Error) -> InstanceError + use<> {
        io_error(action, &self.path.join(name))
    }

    /// The file of that name, if it is there.
    fn file(&self, name: &str) -> Result<Option<File>, InstanceError> {
        match disk::open_file_at(fd(&self.fd), name, false) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.error("opened", name)(error)),
        }
    }

    fn unlink(&self, name: &str) -> Result<(), InstanceError> {
        disk::unlink(fd(&self.fd), name).map_err(self.error("removed", name))
    }
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> InstanceError + use<> {
    let path = path.to_owned();
    move |source| InstanceError::Io { action, path, source }
}

impl Instances {
    /// The instances of `home`, whose `run/` and `locks/` are created if absent.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub fn of(home: &Home) -> Result<Self, InstanceError> {
        Ok(Self {
            run: Arc::new(Folder::open(home, HomeDir::Run)?),
            locks: Arc::new(Folder::open(home, HomeDir::Locks)?),
        })
    }

    /// Registers this process under `id` until the returned value is dropped or the process ends.
    ///
    /// # Errors
    /// [`InstanceError`], also when `id` is taken: ids are random, so that is a mistake.
    pub fn start(&self, id: InstanceId, about: &About) -> Result<Instance, InstanceError> {
        let (name, twin) = (id.lock_name(), id.twin_name());
        let mut contents =
            serde_json::to_vec(about).map_err(|e| self.run.error("written", &name)(e.into()))?;
        contents.push(b'\n');
        let file = disk::create_locked(&disk::Kernel, fd(&self.run.fd), &name, &contents)
            .map_err(self.run.error("created", &name))?;
        let linked = rustix::fs::linkat(&self.run.fd, &*name, &self.locks.fd, &*twin, AtFlags::empty());
        match linked {
            Ok(()) => {}
            // A file system without hard links: the one name must do.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => {
                tracing::debug!(%id, "no second name for the instance lock on this file system");
            }
            Err(error) => {
                self.run.unlink(&name)?;
                return Err(self.locks.error("created", &twin)(error.into()));
            }
        }
        Ok(Instance { id, instances: self.clone(), _lock: file })
    }

    /// Whether that instance's process still lives: running or stopped, in any process namespace of this
    /// kernel. An error must be treated as *yes*; so must the moment in which another process removes a dead
    /// instance's files, which may look like life but never the other way round.
    ///
    /// # Errors
    /// [`InstanceError`] if a lock file is there but cannot be examined.
    pub fn is_alive(&self, id: InstanceId) -> Result<bool, InstanceError> {
        for (folder, name) in [(&self.run, id.lock_name()), (&self.locks, id.twin_name())] {
            if let Some(file) = folder.file(&name)?
                && disk::is_locked(&file).map_err(folder.error("examined", &name))?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// All instances that left a file, oldest id first.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub fn list(&self) -> Result<Vec<FoundInstance>, InstanceError> {
        self.ids()?
            .into_iter()
            .map(|id| Ok(FoundInstance { id, alive: self.is_alive(id)?, about: self.about(id)? }))
            .collect()
    }

    /// The living instances that may have an older store open, which must end before it is brought up to date
    /// (spec: security §22). One of this program never has: it opens none but its own version's.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub fn older(&self) -> Result<Vec<FoundInstance>, InstanceError> {
        let mut found = self.list()?;
        found.retain(|found| {
            found.alive && found.about.as_ref().is_none_or(|about| about.schema < crate::schema::VERSION)
        });
        Ok(found)
    }

    /// What an instance said about itself; `None` if it left nothing readable.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub fn about(&self, id: InstanceId) -> Result<Option<About>, InstanceError> {
        for (folder, name) in [(&self.run, id.lock_name()), (&self.locks, id.twin_name())] {
            let Some(file) = folder.file(&name)? else { continue };
            let mut text = Vec::new();
            file.take(MAX_ABOUT_BYTES).read_to_end(&mut text).map_err(folder.error("read", &name))?;
            if let Ok(about) = serde_json::from_slice(&text) {
                return Ok(Some(about));
            }
        }
        Ok(None)
    }

    /// Removes the files of dead instances for which `recovered` says that nothing of theirs is left to take
    /// over. Each is removed only while its lock is held, so that nobody is removed who is about to live.
    /// Returns who was removed.
    ///
    /// # Errors
    /// [`InstanceError`]; those removed before it stay removed.
    pub fn remove_dead(
        &self,
        mut recovered: impl FnMut(&FoundInstance) -> bool,
    ) -> Result<Vec<InstanceId>, InstanceError> {
        for folder in [&self.run, &self.locks] {
            disk::sweep_hidden(fd(&folder.fd), |_| Ok(())).map_err(io_error("cleaned", &folder.path))?;
        }
        let mut removed = Vec::new();
        for found in self.list()? {
            if !found.alive && recovered(&found) && self.remove_if_free(found.id)? {
                removed.push(found.id);
            }
        }
        Ok(removed)
    }

    fn remove_if_free(&self, id: InstanceId) -> Result<bool, InstanceError> {
        let names = [(&self.run, id.lock_name()), (&self.locks, id.twin_name())];
        let mut held: Vec<Locked> = Vec::new();
        for (folder, name) in &names {
            let Some(file) = folder.file(name)? else { continue };
            // Both names are one inode as a rule, which our first descriptor has locked already.
            if held.iter().any(|locked| same_file(locked, &file)) {
                continue;
            }
            match Locked::take(file).map_err(folder.error("locked", name))? {
                Some(locked) => held.push(locked),
                None => return Ok(false),
            }
        }
        self.run.unlink(&id.socket_name())?;
        for (folder, name) in &names {
            for locked in &held {
                if disk::names(folder.fd.as_fd(), name, locked).map_err(folder.error("examined", name))? {
                    folder.unlink(name)?;
                }
            }
        }
        Ok(true)
    }

    fn ids(&self) -> Result<Vec<InstanceId>, InstanceError> {
        let mut ids = Vec::new();
        for folder in [&self.run, &self.locks] {
            let names = disk::entries(fd(&folder.fd)).map_err(io_error("read", &folder.path))?;
            ids.extend(names.iter().filter_map(|name| InstanceId::from_file_name(name)));
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }
}

fn same_file(a: &File, b: &File) -> bool {
    match (rustix::fs::fstat(a), rustix::fs::fstat(b)) {
        (Ok(a), Ok(b)) => (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino),
        _ => false,
    }
}

/// This process's registration. Its lock is held, and with it all work that carries its id, until this is
/// dropped; drop it last.
#[derive(Debug)]
pub struct Instance {
    id: InstanceId,
    instances: Instances,
    _lock: Locked,
}

impl Instance {
    /// Id of the instance: the owner of the work it begins.
    #[must_use]
    pub fn id(&self) -> InstanceId {
        self.id
    }
}

impl Drop for Instance {
    /// Removes the files while the lock is still held. A failure leaves a dead instance's files, which
    /// [`Instances::remove_dead`] removes.
    fn drop(&mut self) {
        let Instances { run, locks } = &self.instances;
        for removed in [
            run.unlink(&self.id.socket_name()),
            locks.unlink(&self.id.twin_name()),
            run.unlink(&self.id.lock_name()),
        ] {
            if let Err(error) = removed {
                tracing::warn!(%error, id = %self.id, "an ended instance left a file");
            }
        }
    }
}

#[cfg(test)]
mod tests;
