//! Files that git has around a workspace, kept where no command writes.
//!
//! Whoever may write the index may name any file in it. A file that was in the index before a command ever ran is believed. One that
//! is there since then is believed if what lies in the folder is what git has under its name: who knows the content of a file
//! need not look at it.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Files that git is asked about at a time.
const BATCH: usize = 500;

/// Files of an index, relative to the working tree, with the hash of what git has.
pub(super) type IndexedFiles = HashMap<PathBuf, Vec<u8>>;

/// Reads the answer of `ls-files -s -z`: `MODE HASH STAGE\tNAME` each.
pub(super) fn entries(listed: &[u8]) -> IndexedFiles {
    let entries = listed.split(|byte| *byte == 0).filter_map(|entry| {
        let (head, name) = entry.split_at_checked(entry.iter().position(|byte| *byte == b'\t')?)?;
        let hash = head.split(|byte| *byte == b' ').nth(1)?;
        Some((PathBuf::from(OsStr::from_bytes(&name[1..])), hash.to_vec()))
    });
    entries.collect()
}

/// The record, a file of absolute paths, each ended by a zero.
pub(super) struct TrackedRecord<'a>(&'a Path);

impl<'a> TrackedRecord<'a> {
    pub(super) fn at(file: &'a Path) -> Self {
        Self(file)
    }

    /// Files of the index that may be seen; the record says so from now on. `hash` asks git for the hashes of files, a
    /// line each.
    ///
    /// # Errors
    /// When the record cannot be read or written, or names a file that is not what git has of it.
    pub(super) fn vouched(
        &self,
        tree: &Path,
        roots: &[&Path],
        mut indexed: IndexedFiles,
        hash: impl Fn(&[PathBuf]) -> Result<Vec<u8>, String>,
    ) -> Result<HashSet<PathBuf>, String> {
        let known = self.read().map_err(|error| error.to_string())?;
        // What a command may write is seen anyhow, and a file that is not there may be another when it comes.
        indexed.retain(|name, _| {
            let path = tree.join(name);
            !roots.iter().any(|root| path.starts_with(root)) && path.symlink_metadata().is_ok()
        });
        if let Some(known) = &known {
            let came: Vec<PathBuf> = indexed
                .keys()
                .filter(|name| !known.contains(&tree.join(name)) && is_file(&tree.join(name)))
                .cloned()
                .collect();
            for names in came.chunks(BATCH) {
                let hashes = hash(names)?;
                let mut hashes = hashes.split(|byte| *byte == b'\n');
                for name in names {
                    if hashes.next() != indexed.get(name).map(Vec::as_slice) {
                        return Err(format!("{} is new to git and not what git has of it", name.display()));
                    }
                }
            }
        }
        let of_others = known.iter().flatten().filter(|path| !path.starts_with(tree)).cloned();
        let seen: HashSet<PathBuf> = indexed.into_keys().collect();
        let now: HashSet<PathBuf> = seen.iter().map(|name| tree.join(name)).chain(of_others).collect();
        if known.as_ref() != Some(&now) {
            self.write(&now).map_err(|error| error.to_string())?;
        }
        Ok(seen)
    }

    fn read(&self) -> io::Result<Option<HashSet<PathBuf>>> {
        let bytes = match fs::read(self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let paths = bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(Some(paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()))
    }

    fn write(&self, paths: &HashSet<PathBuf>) -> io::Result<()> {
        let mut bytes = Vec::new();
        for path in paths {
            bytes.extend_from_slice(path.as_os_str().as_bytes());
            bytes.push(0);
        }
        let new = self.0.with_extension(format!("new-{}", std::process::id()));
        File::create(&new)?.write_all(&bytes)?;
        fs::rename(&new, self.0)
    }
}

/// Whether its content is its own: of a link its name and aim alone are seen.
fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_git_is_read() {
        let listed = b"100644 aa11 0\tREADME.md\x00100755 bb22 0\tother/a b\t.rs\0";
        let expected = [("README.md", "aa11"), ("other/a b\t.rs", "bb22")];
        let expected = expected.map(|(name, hash)| (PathBuf::from(name), hash.as_bytes().to_vec()));
        assert_eq!(entries(listed), expected.into());
        assert_eq!(entries(b""), IndexedFiles::new());
    }

    #[test]
    fn a_file_that_a_command_put_into_the_index_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, file) = (folder.path().join("tree"), folder.path().join("record"));
        fs::create_dir(&tree).unwrap();
        for name in ["a", "b", ".env"] {
            fs::write(tree.join(name), name).unwrap();
        }
        let index = |names: &[(&str, &str)]| -> IndexedFiles {
            names.iter().map(|(name, hash)| (PathBuf::from(name), hash.as_bytes().to_vec())).collect()
        };
        // The hash of a file is its name.
        let hash = |names: &[PathBuf]| {
            Ok(names.iter().flat_map(|name| [name.as_os_str().as_bytes(), b"\n"].concat()).collect())
        };
        let record = TrackedRecord::at(&file);
        let vouched = |names: &[(&str, &str)]| record.vouched(&tree, &[], index(names), hash);
        let are = |names: &[&str]| names.iter().map(PathBuf::from).collect::<HashSet<_>>();
        assert_eq!(vouched(&[("a", "changed since"), ("gone", "x")]).unwrap(), are(&["a"]));
        assert_eq!(
            vouched(&[("a", "changed since"), ("b", "b")]).unwrap(),
            are(&["a", "b"]),
            "as git has it"
        );
        let why = vouched(&[("a", "a"), ("b", "b"), (".env", "a guess")]).unwrap_err();
        assert!(why.contains(".env"), "{why}");
        assert_eq!(vouched(&[("b", "b")]).unwrap(), are(&["b"]));
        assert!(vouched(&[("a", "changed since"), ("b", "b")]).is_err(), "it left the index in between");
        fs::remove_file(&file).unwrap();
        assert_eq!(vouched(&[(".env", "a guess")]).unwrap(), are(&[".env"]), "control: nothing ran before");
    }
}
