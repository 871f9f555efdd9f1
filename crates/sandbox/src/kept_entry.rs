//! A file, folder or link as it stood at some time, and how it is written again.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, mkdirat, openat, readlinkat, statat, symlinkat};

use crate::quarantine::DEEPEST;
use crate::root_folders::{names_in, open_folder};
use crate::walls::Walls;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KeptEntry {
    File {
        #[serde(with = "base64")]
        bytes: Vec<u8>,
        mode: u32,
    },
    Folder {
        /// In a record, none: they stand beside it.
        #[serde(skip)]
        entries: BTreeMap<OsString, KeptEntry>,
        mode: u32,
    },
    Link(#[serde(with = "crate::path_form")] PathBuf),
    /// A socket, pipe or device, of which there is nothing to keep; or what the command may write.
    Other,
}

/// Bytes in a record.
mod base64 {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&data_encoding::BASE64.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        data_encoding::BASE64.decode(text.as_bytes()).map_err(D::Error::custom)
    }
}

/// Entries by their paths in a record, which need not be text: each as a list of all that it holds, so that no reader of
/// the record goes as deep as they do.
pub(crate) mod entries_by_path {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::KeptEntry;

    #[derive(Serialize, Deserialize)]
    struct Part {
        #[serde(with = "crate::path_form")]
        below: PathBuf,
        /// A folder without what it holds.
        entry: KeptEntry,
    }

    #[derive(Serialize, Deserialize)]
    struct Whole {
        #[serde(with = "crate::path_form")]
        path: PathBuf,
        parts: Vec<Part>,
    }

    fn add_parts(entry: &KeptEntry, below: &Path, parts: &mut Vec<Part>) {
        let part = match entry {
            KeptEntry::Folder { mode, .. } => KeptEntry::Folder { entries: BTreeMap::new(), mode: *mode },
            other => other.clone(),
        };
        parts.push(Part { below: below.to_owned(), entry: part });
        if let KeptEntry::Folder { entries, .. } = entry {
            for (name, entry) in entries {
                add_parts(entry, &below.join(name), parts);
            }
        }
    }

    /// The entry of these parts, each behind the folder it lies in.
    fn whole(parts: Vec<Part>) -> Option<KeptEntry> {
        let mut parts = parts.into_iter();
        let mut whole = parts.next()?.entry;
        for Part { below, entry } in parts {
            let mut at = &mut whole;
            for name in below.parent()? {
                let KeptEntry::Folder { entries, .. } = at else { return None };
                at = entries.get_mut(name)?;
            }
            let KeptEntry::Folder { entries, .. } = at else { return None };
            entries.insert(below.file_name()?.to_owned(), entry);
        }
        Some(whole)
    }

    pub(crate) fn serialize<S: Serializer>(
        entries: &BTreeMap<PathBuf, KeptEntry>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(entries.iter().map(|(path, entry)| {
            let mut parts = Vec::new();
            add_parts(entry, Path::new(""), &mut parts);
            Whole { path: path.clone(), parts }
        }))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<PathBuf, KeptEntry>, D::Error> {
        let entries = Vec::<Whole>::deserialize(deserializer)?.into_iter();
        let entries = entries.map(|Whole { path, parts }| {
            whole(parts)
                .map(|entry| (path, entry))
                .ok_or_else(|| serde::de::Error::custom("a part is missing"))
        });
        entries.collect()
    }
}

/// Whether the command may write a path.
pub(crate) fn is_touched(path: &Path, walls: &Walls) -> bool {
    walls.touches.iter().any(|touched| touched == path)
}

impl KeptEntry {
    /// Reads what stands under a name in a folder. `path` is where that is; `room` are the bytes that may be read.
    ///
    /// # Errors
    /// If nothing stands there, it cannot be read, or there is no room for it.
    pub(crate) fn read(
        folder: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        walls: &Walls,
        room: &mut u64,
    ) -> io::Result<Self> {
        Self::read_to(DEEPEST, folder, name, path, walls, room)
    }

    fn read_to(
        depth: usize,
        folder: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        walls: &Walls,
        room: &mut u64,
    ) -> io::Result<Self> {
        if is_touched(path, walls) {
            return Ok(Self::Other);
        }
        let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let mode = stat.st_mode & 0o7777;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                let target = readlinkat(folder, name, Vec::new())?;
                Ok(Self::Link(OsString::from_vec(target.into_bytes()).into()))
            }
            FileType::Directory => {
                let deeper = depth.checked_sub(1).ok_or_else(|| io::Error::other("it is nested too deep"))?;
                let below = open_folder(folder, name)?;
                let mut entries = BTreeMap::new();
                for name in names_in(&below)? {
                    let kept = Self::read_to(deeper, below.as_fd(), &name, &path.join(&name), walls, room)?;
                    entries.insert(name, kept);
                }
                Ok(Self::Folder { entries, mode })
            }
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = File::from(openat(folder, name, flags, Mode::empty())?);
                if !file.metadata()?.is_file() {
                    return Err(io::Error::other("it was replaced while it was read"));
                }
                let too_much = || io::Error::other("there is too much of it");
                let mut bytes = Vec::new();
                // One that grows meanwhile is not read for ever.
                let length = file.take(*room + 1).read_to_end(&mut bytes)?;
                *room = room.checked_sub(length as u64).ok_or_else(too_much)?;
                Ok(Self::File { bytes, mode })
            }
            _ => Ok(Self::Other),
        }
    }

    /// Makes it under a name that nothing has.
    ///
    /// # Errors
    /// If it cannot be made; what was made of it then stays.
    pub(crate) fn make(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        match self {
            Self::Other => {
                Err(io::Error::other("it was a socket, a pipe or a device, which is not made again"))
            }
            Self::Link(target) => Ok(symlinkat(target.as_os_str().as_bytes(), folder, name)?),
            Self::File { bytes, mode } => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let mut file = File::from(openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?);
                file.write_all(bytes)?;
                file.set_permissions(Permissions::from_mode(*mode))?;
                file.sync_all()
            }
            Self::Folder { entries, mode } => {
                mkdirat(folder, name, Mode::RWXU)?;
                let below = open_folder(folder, name)?;
                for (name, entry) in entries.iter().filter(|(_, entry)| **entry != Self::Other) {
                    entry.make(below.as_fd(), name)?;
                }
                File::from(below).set_permissions(Permissions::from_mode(*mode))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Record(#[serde(with = "entries_by_path")] BTreeMap<PathBuf, KeptEntry>);

    #[test]
    fn a_folder_comes_through_a_record_as_it_was_however_deep_and_one_that_is_deeper_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let depth = |depth: usize| {
            let path = (0..depth).fold(top.join("skills"), |path, _| path.join("d"));
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let deep = depth(DEEPEST - 1);
        std::fs::write(deep.join("file"), b"\xff\0").unwrap();
        std::os::unix::fs::symlink("nowhere", top.join("skills/link")).unwrap();
        std::fs::create_dir(top.join("skills").join(OsStr::from_bytes(b"o\xff"))).unwrap();
        let walls = Walls::around(&top, &top);
        let here = open_folder(rustix::fs::CWD, top.as_os_str()).unwrap();
        let read =
            || KeptEntry::read(here.as_fd(), OsStr::new("skills"), &top.join("skills"), &walls, &mut 100);
        let record = Record([(top.join("skills"), read().unwrap())].into());
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
        depth(DEEPEST);
        assert!(read().unwrap_err().to_string().contains("too deep"));
    }
}
