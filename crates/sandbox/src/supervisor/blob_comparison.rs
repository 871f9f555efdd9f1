//! Whether files are what git has of them: whoever knows the content of a file need not look at it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use super::git_index::GitIndex;
use super::git_query::GitQuery;

/// Bytes of names that git is asked about at a time: less than a program's arguments may have.
const BATCH: usize = 256 << 10;
/// Largest pointer that Git LFS writes, in bytes.
const LARGEST_POINTER: u64 = 1024;

/// The first of these files, in order of their names, that is not what the index names.
///
/// Filters of the owner's own configuration are not known behind the walls, so that line ends count as the same with
/// and without `\r`, and the file that a pointer of Git LFS names as what git has.
///
/// # Errors
/// When git cannot be asked.
pub(super) fn first_differing(
    git: GitQuery<'_>,
    index: &GitIndex,
    mut names: Vec<PathBuf>,
) -> Result<Option<PathBuf>, String> {
    names.sort();
    let differing = with_other_hash(git, index, names, &[])?;
    let differing = with_other_hash(git, index, differing, &["-c", "core.autocrlf=true"])?;
    if differing.is_empty() {
        return Ok(None);
    }
    let pointers = pointers(git, differing.iter().flat_map(|name| index.hashes(name)))?;
    let is_pointed_to = |name: &PathBuf| {
        let pointers = index.hashes(name).iter().filter_map(|hash| pointers.get(hash));
        pointers.into_iter().any(|pointer| pointer.leads_to(&git.folder.join(name), || git.until.is_over()))
    };
    Ok(differing.into_iter().find(|name| !is_pointed_to(name)))
}

/// Files whose hash is not one that the index has.
fn with_other_hash(
    git: GitQuery<'_>,
    index: &GitIndex,
    names: Vec<PathBuf>,
    options: &[&str],
) -> Result<Vec<PathBuf>, String> {
    let mut differing = Vec::new();
    let mut rest = names.into_iter().peekable();
    while rest.peek().is_some() {
        let mut length = 0;
        let mut batch = Vec::new();
        while let Some(name) = rest.next_if(|_| length < BATCH) {
            length += name.as_os_str().len() + 1 + size_of::<usize>();
            batch.push(name);
        }
        let question = options.iter().copied().chain(["hash-object", "--"]).map(OsStr::new);
        let question: Vec<&OsStr> = question.chain(batch.iter().map(|name| name.as_os_str())).collect();
        let hashes = git.answer(&question, &[]).map_err(|error| error.to_string())?;
        let mut hashes = hashes.split(|byte| *byte == b'\n');
        for name in batch {
            let hash = hashes.next().unwrap_or_default();
            if !index.hashes(&name).iter().any(|known| known == hash) {
                differing.push(name);
            }
        }
    }
    Ok(differing)
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

    /// Whether a file is what it stands for; not if the time is over before all of it was read.
    fn leads_to(&self, file: &Path, is_over: impl Fn() -> bool) -> bool {
        let digest = || -> io::Result<Option<String>> {
            let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
            let mut file = File::options().read(true).custom_flags(flags.cast_signed()).open(file)?;
            let metadata = file.metadata()?;
            if !metadata.is_file() || metadata.len() != self.size {
                return Ok(None);
            }
            let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
            loop {
                match file.read(&mut buffer)? {
                    0 => break,
                    _ if is_over() => return Ok(None),
                    length => hasher.update(&buffer[..length]),
                }
            }
            Ok(Some(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
        };
        digest().is_ok_and(|digest| digest.is_some_and(|digest| digest == self.digest))
    }
}

/// Those of these blobs that are pointers of Git LFS, by their hashes.
fn pointers<'a>(
    git: GitQuery<'_>,
    hashes: impl Iterator<Item = &'a Vec<u8>>,
) -> Result<HashMap<Vec<u8>, LfsPointer>, String> {
    let ask = |question: [&str; 2], hashes: &[Vec<u8>]| {
        let input: Vec<u8> = hashes.iter().flat_map(|hash| [hash.as_slice(), b"\n"].concat()).collect();
        git.answer(&question.map(OsStr::new), &input).map_err(|error| error.to_string())
    };
    let all: Vec<Vec<u8>> = hashes.cloned().collect();
    let sizes = ask(["cat-file", "--batch-check"], &all)?;
    let small: Vec<Vec<u8>> = sizes
        .split(|byte| *byte == b'\n')
        .filter_map(BlobHead::parse)
        .filter(|head| head.size <= LARGEST_POINTER)
        .map(|head| head.hash)
        .collect();
    let texts = ask(["cat-file", "--batch"], &small)?;
    let (mut found, mut rest) = (HashMap::new(), texts.as_slice());
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        let Some(head) = BlobHead::parse(line) else { break };
        let Some((text, after)) =
            usize::try_from(head.size).ok().and_then(|size| after.split_at_checked(size))
        else {
            break;
        };
        found.extend(LfsPointer::parse(text).map(|pointer| (head.hash, pointer)));
        rest = after.get(1..).unwrap_or_default();
    }
    Ok(found)
}

struct BlobHead {
    hash: Vec<u8>,
    size: u64,
}

impl BlobHead {
    /// Reads `HASH blob SIZE`.
    fn parse(line: &[u8]) -> Option<Self> {
        let mut words = str::from_utf8(line).ok()?.split(' ');
        let hash = words.next()?.as_bytes().to_vec();
        words.next().filter(|kind| *kind == "blob")?;
        Some(Self { hash, size: words.next()?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// SHA-256 of `x`.
    const OF_X: &str = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";

    #[test]
    fn a_pointer_is_read_and_leads_to_the_file_with_its_size_and_digest_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("large.bin");
        fs::write(&file, "x").unwrap();
        let text = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{OF_X}\nsize 1\n");
        let pointer = LfsPointer::parse(text.as_bytes()).unwrap();
        assert_eq!(pointer, LfsPointer { digest: OF_X.to_owned(), size: 1 });
        assert!(pointer.leads_to(&file, || false));
        assert!(!pointer.leads_to(&file, || true), "the time was over");
        assert!(
            !LfsPointer { size: 2, ..LfsPointer::parse(text.as_bytes()).unwrap() }.leads_to(&file, || false)
        );
        fs::write(&file, "y").unwrap();
        assert!(!pointer.leads_to(&file, || false));
        std::os::unix::fs::symlink(&file, folder.path().join("link")).unwrap();
        assert!(!pointer.leads_to(&folder.path().join("link"), || false));
        for text in
            ["", "x", &text.replace("sha256:2d", "sha256:zz"), &text.replace("size 1", ""), &text[9..]]
        {
            assert_eq!(LfsPointer::parse(text.as_bytes()), None, "{text}");
        }
    }
}
