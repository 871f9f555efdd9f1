//! Where git's history of a folder went, by what git keeps of it itself (`logs/HEAD`): no tool gives that back.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use loom::Millis;
use workspace::{GIT_FILE_BYTES, read_beginning, read_regular};

/// Bytes of a log of git that is read.
const LARGEST: u64 = 4 << 20;
/// Digits of a hash as they are shown.
const SHOWN: usize = 7;

/// Says where the commit of the working tree around a folder went since a turn began; none where it is the same, or git has
/// no log of it. It blocks.
pub(super) fn moved(folder: &Path, began: Millis) -> Option<String> {
    let log = read_regular(&git_folder(folder)?.join("logs/HEAD"), LARGEST).ok()?;
    let moves: Vec<HeadMove> = log.split(|byte| *byte == b'\n').filter_map(HeadMove::read).collect();
    let first = moves.iter().find(|found| found.at >= began.0 / 1_000)?;
    let (from, to) = (&first.from, &moves.last()?.to);
    (from != to).then(|| {
        let [from, to] = [from, to].map(|commit| commit.as_deref().unwrap_or("no commit"));
        format!("git's own history stays as it is: since the second in which that turn began HEAD went from {from} to {to}")
    })
}

/// The git folder of the working tree that a folder is in.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let mut named = folder.ancestors().map(|above| above.join(".git"));
    let named = named.find(|named| named.symlink_metadata().is_ok())?;
    if named.is_dir() {
        return Some(named);
    }
    // Of a linked working tree, or a submodule.
    let text = read_beginning(&named, GIT_FILE_BYTES).ok()?;
    Some(named.parent()?.join(OsStr::from_bytes(text.strip_prefix(b"gitdir:")?.trim_ascii())))
}

/// A line of the log: the commits before and after, none where there is none, and when, in s since 1970.
struct HeadMove {
    from: Option<String>,
    to: Option<String>,
    at: i64,
}

impl HeadMove {
    fn read(line: &[u8]) -> Option<Self> {
        let who = String::from_utf8_lossy(line.split(|byte| *byte == b'\t').next()?);
        let words: Vec<&str> = who.split(' ').collect();
        let [from, to, .., at, _zone] = words[..] else { return None };
        let is_hash = |word: &str| word.len() >= SHOWN && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let short = |word: &str| word.bytes().any(|byte| byte != b'0').then(|| word[..SHOWN].to_owned());
        (is_hash(from) && is_hash(to)).then_some(())?;
        Some(Self { from: short(from), to: short(to), at: at.parse().ok()? })
    }
}
