//! What an index names, read without git, for a comparison with what git says of it later.

/// Bytes of an index that are read.
pub(super) const LARGEST: u64 = 64 << 20;
/// Bytes of times, mode and size before the hash of an entry, and where the mode begins.
const BEFORE_HASH: usize = 40;
const MODE: usize = 24;
const IS_EXTENDED: u16 = 0x4000;
const NAME_LENGTH: u16 = 0x0fff;

/// The entries of an index in the form of [`super::git_index::LIST`], without what is said of times and whether git looks
/// at them. None of one that is split, compressed or of an unknown form.
pub(super) fn listing(index: &[u8], hash_length: usize) -> Option<Vec<u8>> {
    let body = index.get(..index.len().checked_sub(hash_length)?)?;
    let (head, mut rest) = body.split_at_checked(12)?;
    if !head.starts_with(b"DIRC") || !matches!(number(head, 4)?, 2 | 3) {
        return None;
    }
    let mut listed = Vec::new();
    for _ in 0..number(head, 8)? {
        let flags_at = BEFORE_HASH + hash_length;
        let flags = u16::from_be_bytes(rest.get(flags_at..flags_at + 2)?.try_into().ok()?);
        let name_at = flags_at + if flags & IS_EXTENDED == 0 { 2 } else { 4 };
        let name = rest.get(name_at..)?.split(|byte| *byte == 0).next()?;
        if usize::from(flags & NAME_LENGTH) != name.len().min(usize::from(NAME_LENGTH)) {
            return None;
        }
        let hash = hex(rest.get(BEFORE_HASH..flags_at)?);
        let stage = flags >> 12 & 3;
        listed.extend(format!("H {:06o} {hash} {stage}\t", number(rest, MODE)?).bytes());
        listed.extend_from_slice(name);
        listed.push(0);
        // Ended by one to eight zeros.
        rest = rest.get(((name_at + name.len()) / 8 + 1) * 8..)?;
    }
    while !rest.is_empty() {
        // Whatever changes what the entries mean begins with a small letter; `sdir` says that one may be a folder.
        let known = rest.first()?.is_ascii_uppercase() || rest.starts_with(b"sdir");
        let length = usize::try_from(number(rest, 4)?).ok()?;
        rest = rest.get(8..)?.get(length..).filter(|_| known)?;
    }
    Some(listed)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::super::git_index::{GitIndex, LIST};
    use super::*;

    #[test]
    fn an_index_is_read_as_git_lists_it_or_not_at_all() {
        for (format, hash_length) in [("sha1", 20), ("sha256", 32)] {
            let folder = tempfile::tempdir().unwrap();
            let git = |arguments: &[&str]| {
                let done = Command::new("git").args(arguments).current_dir(folder.path()).output().unwrap();
                assert!(done.status.success(), "{done:?}");
                done.stdout
            };
            let read = || {
                let index = fs::read(folder.path().join(".git/index")).unwrap();
                listing(&index, hash_length).map(|listed| GitIndex::parse(&listed, false))
            };
            git(&["init", "-q", "--object-format", format]);
            for length in 1..20 {
                fs::write(folder.path().join("n".repeat(length)), format!("{length}")).unwrap();
            }
            fs::create_dir(folder.path().join("a b")).unwrap();
            fs::write(folder.path().join("a b/ü"), "").unwrap();
            std::os::unix::fs::symlink("n", folder.path().join("link")).unwrap();
            git(&["add", "-A"]);
            let listed = || GitIndex::parse(&git(&LIST), false);
            assert_eq!(read(), Some(listed()));
            assert!(read().unwrap().has(Path::new("link"), super::super::git_index::EntryKind::Link));
            fs::write(folder.path().join("new"), "").unwrap();
            git(&["add", "-N", "new"]);
            assert_eq!(read(), Some(listed()), "version 3");
            git(&["update-index", "--index-version", "4"]);
            assert_eq!(read(), None, "compressed names");
            git(&["update-index", "--index-version", "2"]);
            git(&["update-index", "--split-index"]);
            assert_eq!(read(), None, "a split index");
        }
        assert_eq!(listing(b"", 20), None);
    }
}
