//! Hashes of files, read by this program itself: nothing that a command may have written decides how.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::conversation::Deadline;

/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LineEnds {
    AsTheyAre,
    /// `\r\n` counts as `\n`.
    Normalized,
}

/// What a file says, or a link.
trait Content: io::Read + io::Seek {}

impl<T: io::Read + io::Seek> Content for T {}

/// A regular file to hash, or the aim of a link, opened below its tree without following a link.
pub(super) struct HashedFile<'a> {
    file: Box<dyn Content>,
    length: u64,
    until: Deadline<'a>,
    /// Hashes by their length in bytes, what stands before the text, and line ends: the file is read once for each.
    known: BTreeMap<(usize, String, LineEnds), String>,
}

impl<'a> HashedFile<'a> {
    /// Opens a file of a tree that is read for no longer than `until`: hashing it fails as timed out then.
    pub(super) fn open(tree: &Path, name: &Path, until: Deadline<'a>) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(open_below(tree, name, flags)?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        Ok(Self { file: Box::new(file), length: metadata.len(), until, known: BTreeMap::new() })
    }

    /// Opens a link of a tree, whose aim is what git has of it.
    pub(super) fn open_link(tree: &Path, name: &Path, until: Deadline<'a>) -> io::Result<Self> {
        let link = open_below(tree, name, OFlags::PATH | OFlags::NOFOLLOW)?;
        let aim = readlinkat(&link, "", Vec::new())?.into_bytes();
        let length = aim.len() as u64;
        Ok(Self { file: Box::new(io::Cursor::new(aim)), length, until, known: BTreeMap::new() })
    }

    /// Bytes of the file when it was opened.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Whether the file is a blob of a length, by the name that git has for it: SHA-1 or SHA-256, by the number of digits.
    pub(super) fn is_blob(&mut self, name: &[u8], length: u64, ends: LineEnds) -> io::Result<bool> {
        let head = format!("blob {length}\0");
        let hash = match name.len() {
            40 => self.hash::<Sha1>(&head, ends)?,
            64 => self.hash::<Sha256>(&head, ends)?,
            _ => return Ok(false),
        };
        Ok(hash.as_bytes() == name)
    }

    /// SHA-256 in lower-case hexadecimal digits.
    pub(super) fn sha256(&mut self) -> io::Result<String> {
        self.hash::<Sha256>("", LineEnds::AsTheyAre)
    }

    fn hash<D: Digest>(&mut self, head: &str, ends: LineEnds) -> io::Result<String> {
        let form = (<D as Digest>::output_size(), head.to_owned(), ends);
        if let Some(known) = self.known.get(&form) {
            return Ok(known.clone());
        }
        self.file.rewind()?;
        let mut hasher = D::new();
        hasher.update(head);
        let mut text = NormalizedText::default();
        let mut piece = vec![0; PIECE];
        loop {
            let length = self.file.read(&mut piece)?;
            if self.until.is_over() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match ends {
                _ if length == 0 => break,
                LineEnds::AsTheyAre => hasher.update(&piece[..length]),
                LineEnds::Normalized => text.push(&piece[..length], |bytes| hasher.update(bytes)),
            }
        }
        text.finish(|bytes| hasher.update(bytes));
        let hash = hasher.finalize().iter().fold(String::new(), |mut digits, byte| {
            let _ = write!(digits, "{byte:02x}");
            digits
        });
        self.known.insert(form, hash.clone());
        Ok(hash)
    }
}

fn open_below(tree: &Path, name: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let tree = openat(CWD, tree, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(tree, name, flags | OFlags::CLOEXEC, Mode::empty(), inside)?)
}

/// Text that comes in pieces and is handed on without the `\r` of each `\r\n`.
#[derive(Default)]
struct NormalizedText {
    /// Whether the last piece ended with `\r`, of which the next one says what it is.
    holds_return: bool,
}

impl NormalizedText {
    fn push(&mut self, piece: &[u8], mut hand_on: impl FnMut(&[u8])) {
        if self.holds_return && !piece.starts_with(b"\n") {
            hand_on(b"\r");
        }
        let held = piece.strip_suffix(b"\r");
        self.holds_return = held.is_some();
        for line in held.unwrap_or(piece).split_inclusive(|byte| *byte == b'\n') {
            match line.strip_suffix(b"\r\n") {
                Some(line) => {
                    hand_on(line);
                    hand_on(b"\n");
                }
                None => hand_on(line),
            }
        }
    }

    fn finish(self, mut hand_on: impl FnMut(&[u8])) {
        if self.holds_return {
            hand_on(b"\r");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, Instant};

    use super::*;

    fn soon() -> Deadline<'static> {
        Deadline { deadline: Instant::now() + Duration::from_secs(60), cancelled: &[] }
    }

    #[test]
    fn a_file_is_the_blob_that_git_names() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        // As `git hash-object` says of `one\ntwo\n`, in repositories of both kinds.
        let names = [
            "814f4a422927b82f5f8a43f8fab6d3839e3983f2",
            "a6b74238e52ca07a0ce235197f8b444a58b98ad8a0e07a20a896e15345546da8",
        ];
        for (text, as_it_is, normalized) in
            [("one\ntwo\n", true, true), ("one\r\ntwo\r\n", false, true), ("one\r\ntwo\r", false, false)]
        {
            fs::write(&file, text).unwrap();
            for name in names {
                let is = |ends| {
                    HashedFile::open(folder.path(), Path::new("file"), soon()).unwrap().is_blob(
                        name.as_bytes(),
                        8,
                        ends,
                    )
                };
                assert_eq!(is(LineEnds::AsTheyAre).unwrap(), as_it_is, "{text:?} {name}");
                assert_eq!(is(LineEnds::Normalized).unwrap(), normalized, "{text:?} {name}");
            }
        }
        let mut file = HashedFile::open(folder.path(), Path::new("file"), soon()).unwrap();
        assert!(!file.is_blob(b"814f4a42", 8, LineEnds::AsTheyAre).unwrap(), "no name of a blob");
        assert!(file.known.is_empty());
        for name in names.iter().chain(&names) {
            assert!(!file.is_blob(name.as_bytes(), 8, LineEnds::AsTheyAre).unwrap());
        }
        assert_eq!(file.known.len(), names.len(), "read once for each form");
    }

    #[test]
    fn line_ends_are_normalized_wherever_a_piece_ends() {
        let text = b"a\r\nb\r\r\nc\rd\n\r\n\r";
        for length in 1..=text.len() {
            let (mut normalized, mut handed) = (NormalizedText::default(), Vec::new());
            for piece in text.chunks(length) {
                normalized.push(piece, |bytes| handed.extend_from_slice(bytes));
            }
            normalized.finish(|bytes| handed.extend_from_slice(bytes));
            assert_eq!(handed, b"a\nb\r\nc\rd\n\n\r", "{length}");
        }
    }

    #[test]
    fn what_is_no_file_is_not_hashed_and_nothing_after_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("tree/real")).unwrap();
        for name in ["tree/file", "tree/real/file", "outside"] {
            fs::write(path(name), "x").unwrap();
        }
        std::os::unix::fs::symlink("file", path("tree/link")).unwrap();
        std::os::unix::fs::symlink("real", path("tree/way")).unwrap();
        rustix::fs::mkfifoat(CWD, path("tree/pipe"), Mode::RUSR).unwrap();
        let open = |name: &str, until| HashedFile::open(&path("tree"), Path::new(name), until);
        for name in
            ["link", "pipe", ".", "gone", "way/file", "../outside", path("tree/file").to_str().unwrap()]
        {
            assert!(open(name, soon()).is_err(), "{name}");
        }
        let link = |name: &str| HashedFile::open_link(&path("tree"), Path::new(name), soon());
        // As `git hash-object` says of `file`.
        let of_aim = b"1a010b1c0f081b2e8901d55307a15c29ff30af0e";
        assert!(link("link").unwrap().is_blob(of_aim, 4, LineEnds::AsTheyAre).unwrap());
        for name in ["file", "gone", "way/file", "../outside"] {
            assert!(link(name).is_err(), "{name}");
        }
        let over = Deadline { deadline: Instant::now(), cancelled: &[] };
        let timed_out = open("file", over).unwrap().sha256().unwrap_err();
        assert_eq!(timed_out.kind(), io::ErrorKind::TimedOut);
    }
}
