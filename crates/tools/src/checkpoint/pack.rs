//! The bytes of files, one after another in a file that only grows.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use loom::Digest;
use serde::{Deserialize, Serialize};

use super::{CheckpointError, io_at};

/// Where the bytes of a file lie in its pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// Beginning of the names of packs; a number follows.
const PREFIX: &str = "pack-";

pub(super) fn is_pack(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(PREFIX))
}

/// A pack that is open. Its bytes can be read even after its name is gone.
#[derive(Debug)]
pub(crate) struct Pack {
    path: PathBuf,
    file: File,
    len: u64,
}

impl Pack {
    /// A new one, beside those there are.
    pub(super) fn create(folder: &Path) -> Result<Self, CheckpointError> {
        let names = fs::read_dir(folder).map_err(io_at("listed", folder))?.flatten();
        let numbers = names.filter_map(|entry| {
            let name = entry.file_name();
            name.to_str()?.strip_prefix(PREFIX)?.parse::<u64>().ok()
        });
        let path = folder.join(format!("{PREFIX}{}", numbers.max().map_or(1, |number| number + 1)));
        let open = File::options().create_new(true).read(true).write(true).mode(0o600).open(&path);
        let file = open.map_err(io_at("made", &path))?;
        Ok(Self { path, file, len: 0 })
    }

    pub(super) fn open(folder: &Path, name: &str) -> Result<Self, CheckpointError> {
        let path = folder.join(name);
        let open = File::options().read(true).write(true).open(&path);
        let file = open.map_err(io_at("opened", &path))?;
        let len = file.metadata().map_err(io_at("read", &path))?.len();
        Ok(Self { path, file, len })
    }

    /// A second handle of the pack, to be added to. Under the lock nobody else adds.
    pub(super) fn again(&self) -> Result<Self, CheckpointError> {
        let file = self.file.try_clone().map_err(io_at("opened", &self.path))?;
        let len = file.metadata().map_err(io_at("read", &self.path))?.len();
        Ok(Self { path: self.path.clone(), file, len })
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.path == other.path
    }

    pub(super) fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Place, CheckpointError> {
        let place = Place { offset: self.len, bytes: bytes.len() as u64 };
        self.file.write_all_at(bytes, self.len).map_err(io_at("written", &self.path))?;
        self.len += place.bytes;
        Ok(place)
    }

    /// The bytes of a file, if they still are those.
    pub(super) fn read(&self, place: Place, digest: Digest) -> Result<Vec<u8>, String> {
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = vec![0; usize::try_from(place.bytes).map_err(io::Error::other)?];
            self.file.read_exact_at(&mut bytes, place.offset)?;
            Ok(bytes)
        };
        match read() {
            Ok(bytes) if Digest::of(&bytes) == digest => Ok(bytes),
            Ok(_) => Err("the bytes that were kept are damaged".to_owned()),
            Err(error) => Err(format!("the bytes that were kept cannot be read: {error}")),
        }
    }
}
