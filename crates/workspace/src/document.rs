//! Replacing a person's text without ever losing one (spec: security §18, continuity §4).
//!
//! Editors take no lock. Between looking at a file and renaming over it, a person may save, and
//! the save would be gone. So a replacement is an *exchange*: the new text is written beside the
//! old and the two change places in one step; then what was displaced is read. If it is not the
//! text the caller had seen, the two change back, ours is kept beside under its own name, and the
//! caller is told. When the call returns, both texts are on the disk. A file system without
//! exchange has a short gap in which the name is free; see [`Documents::recover`] for a crash in it.
//!
//! The temporary file's name carries the hash of the text it is meant to hold, so that a start
//! after a crash can tell ours (removed) from anybody else's (kept): see [`Documents::recover`].
//!
//! Two things cannot be held from outside: an editor that opened the file before the exchange and
//! writes through that descriptor after we have read what was displaced; and a save that overwrites
//! ours in place, followed by our death before the last look, which finds such a save.

mod calls;
mod conflict;
mod locate;
mod recover;
mod remove;
mod replace;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use data_encoding::HEXLOWER;
use loom::Digest;
use rustix::io::Errno;

use crate::error::{FileError, FileProblem};
use crate::lock::WorkspaceLock;
use crate::path::RelativePath;
use crate::root::{FileStamp, LinkPolicy, Root};

use calls::{Calls, Kernel};
use locate::Location;
pub use recover::{KnownTexts, RecoveredDocument};
pub use remove::RemoveOutcome;

/// The documents of one root, for the holder of its lock.
pub struct Documents<'a> {
    root: &'a Root,
    calls: &'a dyn Calls,
    links: LinkPolicy,
    /// Names that a document may have at most.
    names: u64,
}

/// A document's text and the hash to expect when replacing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentText {
    /// The bytes as they are in the file.
    pub bytes: Vec<u8>,
    pub digest: Digest,
}

/// Content a replacement expects to find: the digest the caller last read, or no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Absent,
    /// A text with this digest.
    Text(Digest),
}

/// Destination of the new text after a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmerged {
    /// Beside it, as `NAME.drawloom-<time>`.
    Beside,
    /// At this path; its folder is made if missing (a handoff draft:
    /// `.drawloom/handoffs/<time>-unmerged.md`).
    At(RelativePath),
}

/// The time that names kept texts, as the caller writes it (`20261121T224200Z`): letters, digits,
/// `-` and `_`, at most 40.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp(String);

impl Stamp {
    /// Takes a time stamp that is fit for a file name, or nothing.
    pub fn new(text: &str) -> Option<Self> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let fine = !text.is_empty() && text.len() <= 40 && text.chars().all(fits);
        fine.then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[derive(Clone, Debug)]
pub struct Replacement<'a> {
    pub text: &'a [u8],
    /// Content the file must have now.
    pub expected: Expected,
    /// For the names of kept texts.
    pub stamp: Stamp,
    /// Destination of the new text after a conflict.
    pub unmerged: Unmerged,
    /// Permission bits that the file has from the moment it has its name; none: those of the old file, or of a new one.
    pub mode: Option<u32>,
}

/// Outcome of a replacement. No text is lost in either case.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum ReplaceOutcome {
    /// The text is in the file, and on the disk as far as the system says.
    Saved(Saved),
    /// Conflict: the file held a text other than the expected one. That text stays; the new text is kept beside it.
    Conflict {
        /// The text in the file now; `None` if the file is gone or is no plain file.
        found: Option<Digest>,
        /// Path of the new text, relative to the root.
        ours: RelativePath,
        /// Further texts of other writers that were caught on the way and kept beside.
        others: Vec<RelativePath>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Digest to expect at the next replacement.
    pub digest: Digest,
    /// False if the file held this text already and nothing was written.
    pub changed: bool,
}

/// Error of reading or replacing a document.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The path, the kind of file, its links, or the store's guard.
    #[error(transparent)]
    File(#[from] FileError),
    /// The lock is for another workspace.
    #[error("the lock is for another workspace than the document")]
    WrongLock,
    /// A step failed; it is not tried again (spec: security §18). What the file holds now was read
    /// back from the disk.
    #[error("{}: not saved: {step} failed: {source}; the file holds {}", path.display(), held(.on_disk))]
    NotSaved {
        path: PathBuf,
        step: &'static str,
        source: std::io::Error,
        /// The hash of what is in the file now; `None` if that cannot be read.
        on_disk: Option<Digest>,
    },
}

fn held(on_disk: &Option<Digest>) -> String {
    on_disk.map_or_else(|| "nothing that can be read".to_owned(), |digest| format!("the text {digest}"))
}

impl<'a> Documents<'a> {
    /// The documents of `root`, for whoever holds its lock.
    ///
    /// # Errors
    /// [`DocumentError::WrongLock`].
    pub fn new(root: &'a Root, lock: &'a WorkspaceLock) -> Result<Self, DocumentError> {
        Self::with_calls(root, lock, &Kernel)
    }

    fn with_calls(
        root: &'a Root,
        lock: &'a WorkspaceLock,
        calls: &'a dyn Calls,
    ) -> Result<Self, DocumentError> {
        let links = LinkPolicy::Follow;
        let fits = lock.workspace() == root.id();
        if fits { Ok(Self { root, calls, links, names: 1 }) } else { Err(DocumentError::WrongLock) }
    }

    /// Refuses a document that is a link: what was judged by its name is what is written.
    #[must_use]
    pub fn refuse_links(self) -> Self {
        Self { links: LinkPolicy::Refuse, ..self }
    }

    /// Takes a document with as many names (hard links): the caller sees to each of them.
    #[must_use]
    pub fn with_names(self, names: u64) -> Self {
        Self { names, ..self }
    }

    /// A failure as its caller is told.
    fn failed(&self, path: &RelativePath, spot: Option<&Location>, failure: Failure) -> DocumentError {
        let path = path.as_path().to_path_buf();
        match failure {
            Failure::Refused(problem) => DocumentError::File(FileError { path, problem }),
            Failure::Step(step, errno) => DocumentError::NotSaved {
                path,
                step,
                source: errno.into(),
                on_disk: spot.and_then(|spot| self.digest_at(spot, &spot.name)),
            },
        }
    }
}

impl fmt::Debug for Documents<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Documents").field("root", self.root).finish_non_exhaustive()
    }
}

/// Purpose of a temporary file beside a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Holds the new text until the exchange, the old one after it.
    New,
    /// Holds the old text while the name is free, where there is no exchange.
    Old,
    /// Holds a file that is about to be removed and is known by its stamp. The hash is half of that of the stamp, then the
    /// time of its last change, which another name takes from the file.
    Stamped,
}

/// The name of a working file: `.NAME.drawloom-<random>-<hash>.new` (or `.old`, `.big`), where the hash is
/// that of the text it was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WorkName {
    of: OsString,
    hash: String,
    purpose: Purpose,
}

const MARK: &str = ".drawloom-";

/// Bytes of a document's name in that of a working file: with what is added it is a name that a file system takes. A
/// longer one is told by its digest.
const MAX_NAME: usize = 255 - 64;

/// A document's name as working files have it.
fn stem(name: &OsStr) -> OsString {
    if name.len() <= MAX_NAME { name.to_owned() } else { short(Digest::of(name.as_bytes())).into() }
}

impl WorkName {
    /// A fresh name nobody can guess.
    fn fresh(of: &OsStr, digest: Digest, purpose: Purpose) -> Result<OsString, Errno> {
        Self::fresh_with(of, &short(digest), purpose)
    }

    /// One for a file with a stamp, and the digest by which that is known.
    fn fresh_stamped(of: &OsStr, stamp: &FileStamp, digest: Digest) -> Result<OsString, Errno> {
        Self::fresh_with(of, &stamped(stamp.changed, digest), Purpose::Stamped)
    }

    fn fresh_with(of: &OsStr, hash: &str, purpose: Purpose) -> Result<OsString, Errno> {
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).map_err(|_| Errno::IO)?;
        let ending = match purpose {
            Purpose::New => "new",
            Purpose::Old => "old",
            Purpose::Stamped => "big",
        };
        let mut name = OsString::from(".");
        name.push(stem(of));
        name.push(format!("{MARK}{}-{hash}.{ending}", HEXLOWER.encode(&random)));
        Ok(name)
    }

    /// When a file with a stamp was changed last, in ns since 1970, before it got this name.
    fn changed(&self) -> Option<i64> {
        let changed = HEXLOWER.decode(self.hash.get(16..)?.as_bytes()).ok()?;
        Some(i64::from_be_bytes(changed.try_into().ok()?)).filter(|_| self.purpose == Purpose::Stamped)
    }

    /// Reads a name back; nothing if it is not one of ours.
    fn parse(name: &OsStr) -> Option<Self> {
        let text = name.as_bytes().strip_prefix(b".")?;
        let at = text.len().checked_sub(MARK.len() + 16 + 1 + 32 + 4)?;
        let (of, rest) = text.split_at(at);
        let rest = std::str::from_utf8(rest).ok()?.strip_prefix(MARK)?;
        let (random, rest) = rest.split_once('-')?;
        let (hash, ending) = rest.split_once('.')?;
        let hex = |text: &str| HEXLOWER.decode(text.as_bytes()).is_ok();
        let purpose = match ending {
            "new" => Purpose::New,
            "old" => Purpose::Old,
            "big" => Purpose::Stamped,
            _ => return None,
        };
        let ours = !of.is_empty() && random.len() == 16 && hash.len() == 32 && hex(random) && hex(hash);
        ours.then(|| Self { of: OsStr::from_bytes(of).to_os_string(), hash: hash.to_owned(), purpose })
    }
}

/// The first 128 bits of a digest, in hexadecimal: enough to recognise our own text in a file name.
fn short(digest: Digest) -> String {
    HEXLOWER.encode(&digest.0[..16])
}

/// The hash in the name of a file that is known by its stamp.
fn stamped(changed: i64, digest: Digest) -> String {
    HEXLOWER.encode(&digest.0[..8]) + &HEXLOWER.encode(&changed.to_be_bytes())
}

/// A failure on the way to a [`DocumentError`]: a refusal, or a step that failed.
#[derive(Debug)]
enum Failure {
    Refused(FileProblem),
    Step(&'static str, Errno),
}

impl<P: Into<FileProblem>> From<P> for Failure {
    fn from(problem: P) -> Self {
        Self::Refused(problem.into())
    }
}

/// Names the step a system call belongs to.
fn step<T>(name: &'static str, result: Result<T, Errno>) -> Result<T, Failure> {
    result.map_err(|errno| Failure::Step(name, errno))
}
