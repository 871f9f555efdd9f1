//! Finding what dead writers left.

use std::collections::VecDeque;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{SpoolError, SpoolHeader, TornHeader, io_error};
use crate::disk::{self, Locked, fd};
use crate::instance::InstanceId;

/// Looks for spools in `dir` that nobody writes any more, in the order of their names.
///
/// A spool is taken only if its lock is free **and** `owner_lives` says that the instance in its header is
/// gone (spec: security §7): a writer that gave up may still be about to commit. Each that is taken stays
/// locked by us until its value is dropped, so that two processes that recover at once do not both get it.
///
/// # Errors
/// [`SpoolError::Io`] if the folder cannot be read. A missing folder holds no spools.
pub fn recover<F>(dir: &Path, owner_lives: F) -> Result<Recovery<F>, SpoolError>
where
    F: FnMut(InstanceId) -> bool,
{
    let folder = match disk::open_dir(dir) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Recovery { folder: None, names: VecDeque::new(), owner_lives });
        }
        Err(error) => return Err(io_error("listed", dir)(error)),
    };
    disk::sweep_hidden(fd(&folder), |_| Ok(())).map_err(io_error("cleaned", dir))?;
    let names = disk::entries(fd(&folder)).map_err(io_error("listed", dir))?;
    let names = names.into_iter().filter(|name| !name.starts_with('.')).collect();
    let folder = Some(Arc::new(Folder { path: dir.to_owned(), fd: folder }));
    Ok(Recovery { folder, names, owner_lives })
}

/// Bytes of a spool that are looked at.
const LOOKED_AT: u64 = 256 * 1024 * 1024;

/// A spool as it is right now, which may be written still.
#[derive(Debug)]
pub struct SeenSpool {
    pub header: SpoolHeader,
    reader: BufReader<std::fs::File>,
}

impl SeenSpool {
    /// The bytes received so far.
    ///
    /// # Errors
    /// As reading a file.
    pub fn body(self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        self.reader.take(LOOKED_AT).read_to_end(&mut body)?;
        Ok(body)
    }
}

/// The spools of a folder as they are right now, also those that are written, one open at a time. One that cannot be
/// read is left out.
///
/// # Errors
/// When the folder cannot be read. A missing folder holds no spools.
pub fn look(dir: &Path) -> Result<impl Iterator<Item = SeenSpool>, SpoolError> {
    let names = match disk::open_dir(dir) {
        Ok(folder) => disk::entries(fd(&folder)).map_err(io_error("listed", dir))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(io_error("listed", dir)(error)),
    };
    let dir = dir.to_owned();
    Ok(names.into_iter().filter(|name| !name.starts_with('.')).filter_map(move |name| {
        let path = dir.join(&name);
        let is_file = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
        let file = is_file.then(|| std::fs::File::open(&path).ok()).flatten()?;
        let mut reader = BufReader::new(file);
        let (header, _) = SpoolHeader::read(&mut reader, &name).ok()?.ok()?;
        Some(SeenSpool { header, reader })
    }))
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    fd: OwnedFd,
}

/// The spools of dead writers, one open at a time unless the caller keeps them.
#[derive(Debug)]
pub struct Recovery<F> {
    folder: Option<Arc<Folder>>,
    names: VecDeque<String>,
    owner_lives: F,
}

#[derive(Debug)]
pub enum Recovered {
    /// A spool with its header: its bytes are exactly what was received.
    Spooled(Spooled),
    /// A file whose header cannot be used.
    Torn(Torn),
}

impl<F: FnMut(InstanceId) -> bool> Iterator for Recovery<F> {
    type Item = Result<Recovered, SpoolError>;

    fn next(&mut self) -> Option<Self::Item> {
        let folder = Arc::clone(self.folder.as_ref()?);
        while let Some(name) = self.names.pop_front() {
            match Claimed::take(&folder, name) {
                Ok(Some(claimed)) => match claimed.examine(&mut self.owner_lives) {
                    Ok(Some(found)) => return Some(Ok(found)),
                    Ok(None) => {}
                    Err(error) => return Some(Err(error)),
                },
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }
}

/// A spool file whose lock we hold.
#[derive(Debug)]
struct Claimed {
    folder: Arc<Folder>,
    name: String,
    file: Locked,
}

impl Claimed {
    /// `None`: somebody writes or recovers it, or it is gone.
    fn take(folder: &Arc<Folder>, name: String) -> Result<Option<Self>, SpoolError> {
        let path = folder.path.join(&name);
        let file = match disk::open_file_at(fd(&folder.fd), &name, false) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("opened", &path)(error)),
        };
        let Some(file) = Locked::take(file).map_err(io_error("locked", &path))? else { return Ok(None) };
        // Whoever held it may have removed it just before we got the lock.
        let there = disk::names(fd(&folder.fd), &name, &file).map_err(io_error("examined", &path))?;
        Ok(there.then(|| Self { folder: Arc::clone(folder), name, file }))
    }

    fn examine(
        self,
        owner_lives: &mut impl FnMut(InstanceId) -> bool,
    ) -> Result<Option<Recovered>, SpoolError> {
        let path = self.path();
        let bytes = self.file.metadata().map_err(io_error("read", &path))?.len();
        let header =
            SpoolHeader::read(BufReader::new(&*self.file), &self.name).map_err(io_error("read", &path))?;
        Ok(match header {
            Ok((header, _)) if owner_lives(header.instance) => None,
            Ok((header, start)) => {
                let length = bytes.saturating_sub(start);
                Some(Recovered::Spooled(Spooled { claimed: self, header, start, length }))
            }
            Err(reason) => Some(Recovered::Torn(Torn { claimed: self, reason, bytes })),
        })
    }

    fn path(&self) -> PathBuf {
        self.folder.path.join(&self.name)
    }

    fn remove(self) -> Result<(), SpoolError> {
        disk::unlink(fd(&self.folder.fd), &self.name).map_err(io_error("removed", &self.path()))
    }
}

/// A dead writer's spool, locked by us. Dropping it leaves it for the next recovery.
#[derive(Debug)]
pub struct Spooled {
    claimed: Claimed,
    header: SpoolHeader,
    start: u64,
    length: u64,
}

impl Spooled {
    /// Whose bytes these are.
    #[must_use]
    pub fn header(&self) -> &SpoolHeader {
        &self.header
    }

    #[must_use]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether nothing had been received.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The bytes as they were received, at most `max` of them.
    ///
    /// # Errors
    /// [`SpoolError::TooLong`], [`SpoolError::Io`].
    pub fn read(&mut self, max: u64) -> Result<Vec<u8>, SpoolError> {
        let path = self.claimed.path();
        if self.length > max {
            return Err(SpoolError::TooLong { path, bytes: self.length, max });
        }
        let mut bytes = Vec::new();
        let mut file = &*self.claimed.file;
        file.seek(SeekFrom::Start(self.start)).map_err(io_error("read", &path))?;
        file.take(self.length).read_to_end(&mut bytes).map_err(io_error("read", &path))?;
        Ok(bytes)
    }

    /// Removes the file: the caller's word that its bytes are in the store, or that its generation had
    /// already ended there.
    ///
    /// # Errors
    /// [`SpoolError::Io`]; it is then found again.
    pub fn committed(self) -> Result<(), SpoolError> {
        self.claimed.remove()
    }
}

/// A file in the spool folder that cannot be read as a spool. It stays until it is discarded.
#[derive(Debug)]
pub struct Torn {
    claimed: Claimed,
    reason: TornHeader,
    bytes: u64,
}

impl Torn {
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.claimed.path()
    }

    /// What is wrong and what to do.
    #[must_use]
    pub fn reason(&self) -> &TornHeader {
        &self.reason
    }

    /// Size of the file in bytes, header and all.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Removes it, once the owner was told.
    ///
    /// # Errors
    /// [`SpoolError::Io`].
    pub fn discard(self) -> Result<(), SpoolError> {
        self.claimed.remove()
    }
}
