//! Whether files are what git has of them: whoever knows the content of a file need not look at it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::Instant;

use super::conversation::Deadline;
use super::file_hash::{HashedFile, LineEnds};
use super::git_index::{EntryKind, TrackedFile};
use super::git_query::{AT_MOST, GitQuery};

/// Largest pointer that Git LFS writes, in bytes.
const LARGEST_POINTER: u64 = 1024;

/// The first of these files of a tree, in order of their names, that are not what git has of them.
///
/// No filter is run: which one a file has, and what that does, a command may decide. Line ends count as the same with and
/// without `\r`, and the file that a pointer of Git LFS names as what git has.
///
/// # Errors
/// When git cannot be asked, or the files cannot be read in time.
pub(super) fn differing(
    git: GitQuery<'_>,
    tree: &Path,
    mut files: Vec<TrackedFile>,
    at_most: usize,
) -> Result<Vec<TrackedFile>, String> {
    files.sort();
    let open = |file: &TrackedFile| {
        // Each for itself, as the number of files is no fault of any.
        let deadline = git.until.deadline.min(Instant::now() + AT_MOST);
        let until = Deadline { deadline, ..git.until };
        match file.kind {
            EntryKind::File => HashedFile::open(tree, &file.name, until),
            EntryKind::Link => HashedFile::open_link(tree, &file.name, until),
        }
    };
    let mut unequal = Vec::new();
    for file in files {
        let is_raw = |mut opened: HashedFile<'_>| {
            let length = opened.length();
            any(file.hashes.iter(), |hash| opened.is_blob(hash, length, LineEnds::AsTheyAre))
        };
        if !compared(open(&file).and_then(is_raw))? {
            unequal.push(file);
        }
    }
    // No filter is for links.
    if unequal.iter().all(|file| file.kind == EntryKind::Link) {
        unequal.truncate(at_most);
        return Ok(unequal);
    }
    let blobs = blobs(git, unequal.iter().flat_map(|file| &file.hashes))?;
    let mut differing = Vec::new();
    for file in unequal {
        if differing.len() == at_most {
            break;
        }
        let is_filtered = |mut opened: HashedFile<'_>| {
            any(file.hashes.iter(), |hash| {
                blobs.get(hash).map_or(Ok(false), |blob| blob.is_of(hash, &mut opened))
            })
        };
        if file.kind == EntryKind::Link || !compared(open(&file).and_then(is_filtered))? {
            differing.push(file);
        }
    }
    Ok(differing)
}

/// A file that cannot be read is none that git has; one that is not read in time is nothing yet.
fn compared(is_same: io::Result<bool>) -> Result<bool, String> {
    match is_same {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            Err("files that are new to git could not be compared in time".to_owned())
        }
        is_same => Ok(is_same.unwrap_or(false)),
    }
}

fn any<T>(mut all: impl Iterator<Item = T>, mut is: impl FnMut(T) -> io::Result<bool>) -> io::Result<bool> {
    all.try_fold(false, |found, one| Ok(found || is(one)?))
}

/// What git has under a name.
struct Blob {
    size: u64,
    pointer: Option<LfsPointer>,
}

impl Blob {
    /// Whether a file is what git would make this of it: its line ends normalized, or by Git LFS.
    fn is_of(&self, name: &[u8], file: &mut HashedFile<'_>) -> io::Result<bool> {
        if let Some(pointer) = &self.pointer
            && pointer.leads_to(file)?
        {
            return Ok(true);
        }
        // Otherwise there is no `\r` to take away.
        Ok(self.size < file.length() && file.is_blob(name, self.size, LineEnds::Normalized)?)
    }
}

/// What Git LFS has in the place of a file.
#[derive(Debug, PartialEq, Eq)]
struct LfsPointer {
    /// SHA-256 in lower-case hexadecimal digits.
    digest: String,
    size: u64,
}

impl LfsPointer {
    fn parse(text: &[u8]) -> Option<Self> {
        let text = str::from_utf8(text).ok()?;
        let mut lines = text.lines();
        lines.next()?.strip_prefix("version https://git-lfs.github.com/spec/")?;
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        let digest = value("oid")?.strip_prefix("sha256:")?;
        let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let size = value("size")?.parse().ok()?;
        is_digest.then(|| Self { digest: digest.to_ascii_lowercase(), size })
    }

    /// Whether a file is what it stands for.
    fn leads_to(&self, file: &mut HashedFile<'_>) -> io::Result<bool> {
        Ok(file.length() == self.size && file.sha256()? == self.digest)
    }
}

/// Blobs of these names that git has, by name.
fn blobs<'a>(
    git: GitQuery<'_>,
    names: impl Iterator<Item = &'a Vec<u8>>,
) -> Result<HashMap<Vec<u8>, Blob>, String> {
    let ask = |question: [&str; 2], names: &[Vec<u8>]| {
        let input: Vec<u8> = names.iter().flat_map(|name| [name.as_slice(), b"\n"].concat()).collect();
        git.answer(&question.map(OsStr::new), &input).map_err(|error| error.to_string())
    };
    let all: Vec<Vec<u8>> = names.cloned().collect();
    let heads = ask(["cat-file", "--batch-check"], &all)?;
    let mut found: HashMap<Vec<u8>, Blob> = heads
        .split(|byte| *byte == b'\n')
        .filter_map(BlobHead::parse)
        .map(|head| (head.name, Blob { size: head.size, pointer: None }))
        .collect();
    let small = found.iter().filter(|(_, blob)| blob.size <= LARGEST_POINTER);
    let small: Vec<Vec<u8>> = small.map(|(name, _)| name.clone()).collect();
    if small.is_empty() {
        return Ok(found);
    }
    let texts = ask(["cat-file", "--batch"], &small)?;
    let mut rest = texts.as_slice();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        let Some(head) = BlobHead::parse(line) else { break };
        let Some((text, after)) =
            usize::try_from(head.size).ok().and_then(|size| after.split_at_checked(size))
        else {
            break;
        };
        if let Some(blob) = found.get_mut(&head.name) {
            blob.pointer = LfsPointer::parse(text);
        }
        rest = after.get(1..).unwrap_or_default();
    }
    Ok(found)
}

struct BlobHead {
    name: Vec<u8>,
    size: u64,
}

impl BlobHead {
    /// Reads `NAME blob SIZE`.
    fn parse(line: &[u8]) -> Option<Self> {
        let mut words = str::from_utf8(line).ok()?.split(' ');
        let name = words.next()?.as_bytes().to_vec();
        words.next().filter(|kind| *kind == "blob")?;
        Some(Self { name, size: words.next()?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    /// SHA-256 of `x`.
    const OF_X: &str = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";

    #[test]
    fn a_pointer_is_read_and_leads_to_the_file_with_its_size_and_digest_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.bin");
        let until = Deadline { deadline: Instant::now() + Duration::from_secs(60), cancelled: &[] };
        let leads = |pointer: &LfsPointer| {
            pointer
                .leads_to(&mut HashedFile::open(folder.path(), Path::new("large.bin"), until).unwrap())
                .unwrap()
        };
        fs::write(&path, "x").unwrap();
        let text = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{OF_X}\nsize 1\n");
        let pointer = LfsPointer::parse(text.as_bytes()).unwrap();
        assert_eq!(pointer, LfsPointer { digest: OF_X.to_owned(), size: 1 });
        assert!(leads(&pointer));
        assert!(!leads(&LfsPointer { size: 2, ..LfsPointer::parse(text.as_bytes()).unwrap() }));
        fs::write(&path, "y").unwrap();
        assert!(!leads(&pointer));
        for text in
            ["", "x", &text.replace("sha256:2d", "sha256:zz"), &text.replace("size 1", ""), &text[9..]]
        {
            assert_eq!(LfsPointer::parse(text.as_bytes()), None, "{text}");
        }
    }
}
