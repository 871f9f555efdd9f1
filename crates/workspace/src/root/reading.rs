//! Reading a file whole, with a cap that holds while the file grows.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use loom::Digest;
use rustix::fs::fstat;

use super::rules::{Metadata, ReadRules};
use super::{Root, path_of, reopen_regular};
use crate::error::{FileError, FileProblem};
use crate::path::RelativePath;

/// A file's bytes, with the facts of the descriptor they were read from.
#[derive(Clone, Debug)]
pub struct Content {
    /// All bytes.
    pub bytes: Vec<u8>,
    /// Owner, mode, links: of the same open file.
    pub metadata: Metadata,
    /// Path of the same open file, without links.
    pub path: PathBuf,
}

impl Content {
    /// The hash of the bytes.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }
}

impl Root {
    /// Opens a regular file for reading, without reading it.
    ///
    /// # Errors
    /// Every refusal of [`FileProblem`]: the way there, the kind of file, the store's files, and
    /// what `rules` add. A file that is too large by its size is refused here already.
    pub fn open_file(&self, path: &RelativePath, rules: &ReadRules) -> Result<File, FileError> {
        let found = self.walk(path, rules.links, rules.one_device);
        let opened = found.and_then(|found| open_found(&found, self, rules));
        opened.map(|(file, _)| file).map_err(|problem| self.failed(path, problem))
    }

    /// Reads a regular file whole.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file); also if the file grows past the limit meanwhile.
    pub fn read(&self, path: &RelativePath, rules: &ReadRules) -> Result<Content, FileError> {
        let read = || -> Result<Content, FileProblem> {
            let found = self.walk(path, rules.links, rules.one_device)?;
            let (file, metadata) = open_found(&found, self, rules)?;
            let bytes = read_capped(file, rules.max_bytes, metadata.bytes)?;
            Ok(Content { bytes, metadata, path: path_of(&found)? })
        };
        read().map_err(|problem| self.failed(path, problem))
    }

    /// Reads a regular file as UTF-8, byte for byte: a mark at the start and CRLF stay.
    ///
    /// # Errors
    /// As [`read`](Self::read), and [`FileProblem::NotUtf8`].
    pub fn read_text(&self, path: &RelativePath, rules: &ReadRules) -> Result<String, FileError> {
        let bytes = self.read(path, rules)?.bytes;
        String::from_utf8(bytes).map_err(|error| {
            self.failed(path, FileProblem::NotUtf8 { valid_up_to: error.utf8_error().valid_up_to() })
        })
    }
}

/// Puts an `O_PATH` descriptor to the rules and opens it.
fn open_found(found: &OwnedFd, root: &Root, rules: &ReadRules) -> Result<(File, Metadata), FileProblem> {
    let metadata = Metadata::of(&fstat(found)?);
    let file = reopen_regular(found, root.guard())?;
    if rules.single_name && metadata.links > 1 {
        return Err(FileProblem::HardLinked { links: metadata.links });
    }
    if metadata.bytes > rules.max_bytes {
        return Err(FileProblem::TooLarge { limit: rules.max_bytes });
    }
    Ok((File::from(file), metadata))
}

/// Reads at most one byte more than the limit: that byte is the proof of too much, whatever size
/// the file claimed to have. The claim saves reads.
pub(crate) fn read_capped(file: impl Read, limit: u64, claimed: u64) -> Result<Vec<u8>, FileProblem> {
    let expected = usize::try_from(claimed.min(limit).saturating_add(1)).unwrap_or(0);
    let mut bytes = Vec::with_capacity(expected);
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(FileProblem::TooLarge { limit }) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_3_a_file_that_grows_is_cut_off_at_the_cap() {
        let endless = std::io::repeat(b'x');
        assert!(matches!(read_capped(endless, 1000, 3), Err(FileProblem::TooLarge { limit: 1000 })));
        assert_eq!(read_capped(&b"abc"[..], 3, u64::MAX).unwrap(), b"abc");
    }
}
