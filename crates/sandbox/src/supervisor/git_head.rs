//! The commit that a working tree stands at, read without git.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use workspace::{GitWorkingTree, read_beginning};

use super::index_check::{Stamp, stamp};
use crate::small_file::read_small_bytes;

/// References that lead to one another, at most, as git has it.
const LONGEST_CHAIN: usize = 5;
/// Bytes of packed references that are read.
const LARGEST: u64 = 64 << 20;

/// Commit of a working tree, with what leads to it. Another one means another commit, or at most another way to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GitHead {
    /// None before the first commit, and where references are kept in tables.
    pub(super) commit: Option<String>,
    /// Texts of the references.
    chain: Vec<Vec<u8>>,
    /// Tables of references, of the working tree and common ones.
    tables: [Option<Stamp>; 2],
}

impl GitHead {
    pub(super) fn of(working: &GitWorkingTree) -> Self {
        let own = working.index.parent().unwrap_or(&working.git_folder);
        let tables =
            [own, &working.git_folder].map(|folder| stamp(&folder.join("reftable").join("tables.list")));
        let mut head = Self { commit: None, chain: Vec::new(), tables };
        let mut text = read_small_bytes(&own.join("HEAD")).unwrap_or_default();
        for _ in 0..LONGEST_CHAIN {
            let next = reference(&text).map(|name| {
                let loose = working.git_folder.join(&name);
                read_small_bytes(&loose).unwrap_or_else(|_| packed(&working.git_folder, &name))
            });
            head.commit = commit(&text);
            head.chain.push(text);
            let Some(next) = next else { break };
            text = next;
        }
        head
    }

    /// Whether there may be a commit.
    pub(super) fn is_born(&self) -> bool {
        self.commit.is_some() || self.tables.iter().any(Option::is_some)
    }
}

/// Name of the reference that a symbolic one leads to.
fn reference(text: &[u8]) -> Option<PathBuf> {
    let name = PathBuf::from(OsStr::from_bytes(text.strip_prefix(b"ref:")?.trim_ascii()));
    let is_plain = name.components().all(|component| matches!(component, Component::Normal(_)));
    (is_plain && name.starts_with("refs")).then_some(name)
}

fn commit(text: &[u8]) -> Option<String> {
    let text = str::from_utf8(text.trim_ascii()).ok()?;
    let is_hash = [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| text.to_owned())
}

/// Hash of a packed reference; nothing if there is none.
fn packed(folder: &Path, name: &Path) -> Vec<u8> {
    let text = read_beginning(&folder.join("packed-refs"), LARGEST).unwrap_or_default();
    let hash = text.split(|byte| *byte == b'\n').find_map(|line| {
        let at = line.iter().position(|byte| *byte == b' ')?;
        (&line[at + 1..] == name.as_os_str().as_bytes()).then(|| line[..at].to_vec())
    });
    hash.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_commit_is_found_loose_packed_and_behind_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join(".git");
        let write = |name: &str, text: &str| {
            fs::create_dir_all(git.join(name).parent().unwrap()).unwrap();
            fs::write(git.join(name), text).unwrap();
        };
        let working = GitWorkingTree {
            tree: folder.path().to_owned(),
            git_folder: git.clone(),
            index: git.join("index"),
        };
        let (one, two) = ("1".repeat(40), "2".repeat(64));
        let commit = || GitHead::of(&working).commit;
        assert_eq!(commit(), None);
        write("HEAD", "ref: refs/heads/main\n");
        assert!(!GitHead::of(&working).is_born());
        write("packed-refs", &format!("# pack-refs\n{two} refs/heads/mains\n{one} refs/heads/main\n"));
        assert_eq!(commit().as_deref(), Some(one.as_str()));
        write("refs/heads/main", "ref: refs/heads/other\n");
        write("refs/heads/other", &format!("{two}\n"));
        assert_eq!(commit().as_deref(), Some(two.as_str()));
        let before = GitHead::of(&working);
        write("refs/heads/other", &format!("{one}\n"));
        assert_ne!(GitHead::of(&working), before);
        for text in ["ref: refs/../../x\n", "ref: refs/heads/../../HEAD\n", "--output=x\n", ""] {
            write("HEAD", text);
            assert_eq!(commit(), None, "{text}");
        }
        write("HEAD", "ref: refs/heads/.invalid\n");
        let before = GitHead::of(&working);
        write("reftable/tables.list", "x\n");
        assert!(GitHead::of(&working).is_born() && GitHead::of(&working) != before);
    }
}
