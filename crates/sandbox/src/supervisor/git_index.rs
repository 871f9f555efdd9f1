//! What the index of a working tree names.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use workspace::protected;

/// The question that [`GitIndex::parse`] reads the answer to.
pub(super) const LIST: [&str; 4] = ["ls-files", "-v", "-s", "-z"];

/// Entries of an index, by their paths in the working tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GitIndex(HashMap<PathBuf, IndexEntry>);

/// Entry of an index; in a conflict of all its versions.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IndexEntry {
    /// None of a submodule, where versions differ in it, and of one that git would not write.
    pub(super) kind: Option<EntryKind>,
    /// Hashes of what git has: one, in a conflict up to three, and none of one that git would not write.
    pub(super) hashes: Vec<Vec<u8>>,
    /// One bit a stage, all of one that git would not write.
    stages: u8,
    /// Whether git takes the file for unchanged whatever is in it (`--skip-worktree`, `--assume-unchanged`).
    pub(super) is_unlooked: bool,
}

/// A file or link that git has, to be compared with what stands under its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TrackedFile {
    pub(super) name: PathBuf,
    pub(super) kind: EntryKind,
    /// What git has; one of them is enough.
    pub(super) hashes: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum EntryKind {
    File,
    Link,
}

impl EntryKind {
    pub(super) fn of_mode(mode: &[u8]) -> Option<Self> {
        match mode {
            b"100644" | b"100755" => Some(Self::File),
            b"120000" => Some(Self::Link),
            _ => None,
        }
    }

    /// What stands at a path, if it is one of these.
    fn at(path: &Path) -> Option<Self> {
        let kind = path.symlink_metadata().ok()?.file_type();
        if kind.is_file() { Some(Self::File) } else { kind.is_symlink().then_some(Self::Link) }
    }
}

impl IndexEntry {
    /// Adds a version. Git has one of a name, or one a stage of a conflict; with more of them whoever writes the index could
    /// have any number of contents compared with the file.
    fn add(&mut self, stage: &[u8], hash: &[u8]) {
        let stage = match stage {
            b"0" => 1 << 0,
            b"1" => 1 << 1,
            b"2" => 1 << 2,
            b"3" => 1 << 3,
            _ => u8::MAX,
        };
        let is_free = self.stages & (stage | 1) == 0 && (stage != 1 || self.stages == 0);
        if is_free && stage != u8::MAX {
            self.stages |= stage;
            self.hashes.push(hash.to_vec());
        } else {
            *self = Self { kind: None, hashes: Vec::new(), stages: u8::MAX, is_unlooked: self.is_unlooked };
        }
    }
}

impl GitIndex {
    /// Reads `TAG MODE HASH STAGE\tNAME`, each ended by a zero. A name that git would not take is none: whoever writes the
    /// index writes what it likes. In a sparse working tree git looks at what stands there
    /// although it is skipped; to the question the tree is not shown.
    pub(super) fn parse(listed: &[u8], is_sparse: bool) -> Self {
        let mut entries: HashMap<PathBuf, IndexEntry> = HashMap::new();
        for line in listed.split(|byte| *byte == 0) {
            let Some((head, name)) =
                line.iter().position(|byte| *byte == b'\t').map(|tab| (&line[..tab], &line[tab + 1..]))
            else {
                continue;
            };
            if !is_in_tree(name) {
                continue;
            }
            let mut words = head.split(|byte| *byte == b' ');
            let (Some(tag), Some(mode), Some(hash), Some(stage)) =
                (words.next(), words.next(), words.next(), words.next())
            else {
                continue;
            };
            let kind = EntryKind::of_mode(mode);
            let entry = entries.entry(PathBuf::from(OsStr::from_bytes(name))).or_insert_with(|| IndexEntry {
                kind,
                hashes: Vec::new(),
                stages: 0,
                is_unlooked: false,
            });
            entry.kind = entry.kind.filter(|known| Some(*known) == kind);
            entry.add(stage, hash);
            entry.is_unlooked |= tag == b"S" && !is_sparse || tag.iter().any(u8::is_ascii_lowercase);
        }
        Self(entries)
    }

    /// What it has under a name.
    pub(super) fn tracked(&self, name: &Path, kind: EntryKind) -> TrackedFile {
        let hashes = self.0.get(name).map(|entry| entry.hashes.clone()).unwrap_or_default();
        TrackedFile { name: name.to_owned(), kind, hashes }
    }

    /// All names and their entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&PathBuf, &IndexEntry)> {
        self.0.iter()
    }

    /// What it has below a folder, by the names there.
    pub(super) fn below(self, folder: &Path) -> Self {
        let entries = self.0.into_iter();
        Self(
            entries
                .filter_map(|(name, entry)| Some((name.strip_prefix(folder).ok()?.to_owned(), entry)))
                .collect(),
        )
    }

    /// Whether it has the same of a name as another one; whether git looks there is left out.
    pub(super) fn has_as(&self, name: &Path, other: &Self) -> bool {
        let has =
            |index: &Self| index.0.get(name).map(|entry| (entry.kind, entry.hashes.clone(), entry.stages));
        has(self) == has(other)
    }

    /// All that it names, relative to the tree.
    pub(super) fn names(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// Whether it names a path as of a kind, and git looks at what stands there.
    pub(super) fn has(&self, name: &Path, kind: EntryKind) -> bool {
        self.0.get(name).is_some_and(|entry| entry.kind == Some(kind) && !entry.is_unlooked)
    }

    /// Entries outside of the roots at whose path stands what is of their kind, by folders alone: what lies behind a
    /// link is none of the tree. What git does not look at is left out.
    pub(super) fn standing(&self, tree: &Path, roots: &[&Path]) -> HashMap<PathBuf, EntryKind> {
        let mut folders = Folders { tree, known: HashMap::new() };
        let entries = self.0.iter().filter_map(|(name, entry)| {
            let (kind, path) = (entry.kind?, tree.join(name));
            let is_shown = !entry.is_unlooked && !roots.iter().any(|root| path.starts_with(root));
            let is_there = is_shown && folders.lead_to(name) && EntryKind::at(&path) == Some(kind);
            is_there.then(|| (name.clone(), kind))
        });
        entries.collect()
    }
}

/// Whether a name leads to a place in the tree, by names alone, and to none in a git folder.
fn is_in_tree(name: &[u8]) -> bool {
    let mut names = name.split(|byte| *byte == b'/');
    names.all(|name| {
        !matches!(name, b"" | b"." | b"..") && !protected::is_git_folder(&String::from_utf8_lossy(name))
    })
}

struct Folders<'a> {
    tree: &'a Path,
    known: HashMap<PathBuf, bool>,
}

impl Folders<'_> {
    /// Whether all above a path are folders, and none a link.
    fn lead_to(&mut self, name: &Path) -> bool {
        let Some(above) = name.parent().filter(|above| !above.as_os_str().is_empty()) else { return true };
        if let Some(known) = self.known.get(above) {
            return *known;
        }
        let is_folder = self.tree.join(above).symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        let leads = is_folder && self.lead_to(above);
        self.known.insert(above.to_owned(), leads);
        leads
    }
}

/// Folders that paths lie in.
pub(super) fn folders_of<'a>(names: impl IntoIterator<Item = &'a PathBuf>) -> HashSet<PathBuf> {
    names.into_iter().flat_map(|name| name.ancestors().skip(1)).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn hashes(index: &GitIndex, name: &str) -> Vec<Vec<u8>> {
        index.tracked(Path::new(name), EntryKind::File).hashes
    }

    #[test]
    fn the_answer_of_git_is_read() {
        let listed = b"H 100644 aa11 0\tREADME.md\x00S 100755 bb22 0\tother/a b\t.rs\0h 100644 cc33 0\tc\0\
            M 100644 dd44 1\td\0M 100644 ee55 2\td\0H 160000 ff66 0\tsub\0";
        let index = GitIndex::parse(listed, false);
        assert_eq!(index.0.len(), 5);
        assert!(index.has(Path::new("README.md"), EntryKind::File));
        assert!(!index.has(Path::new("README.md"), EntryKind::Link));
        assert!(
            !index.has(Path::new("other/a b\t.rs"), EntryKind::File)
                && !index.has(Path::new("c"), EntryKind::File)
        );
        assert_eq!(hashes(&index, "other/a b\t.rs"), [b"bb22".to_vec()]);
        assert_eq!(hashes(&index, "d"), [b"dd44".to_vec(), b"ee55".to_vec()]);
        assert_eq!(index.0[Path::new("sub")].kind, None);
        assert_eq!(GitIndex::parse(b"", false), GitIndex::default());
        for stages in ["00", "01", "10", "1231", "0123", "11", "4"] {
            let listed: String =
                stages.chars().map(|stage| format!("M 100644 aa{stage} {stage}\tx\0")).collect();
            let index = GitIndex::parse(listed.as_bytes(), false);
            assert!(!index.has(Path::new("x"), EntryKind::File), "{stages}");
            assert_eq!(hashes(&index, "x"), [] as [Vec<u8>; 0], "{stages}");
        }
        let three = GitIndex::parse(b"M 100644 1 1\tx\0M 100644 2 2\tx\0M 100644 3 3\tx\0", false);
        assert_eq!(hashes(&three, "x").len(), 3);
        for is_sparse in [false, true] {
            let index = GitIndex::parse(b"S 100644 aa11 0\tskipped\0s 100644 aa11 0\tassumed\0", is_sparse);
            assert_eq!(index.has(Path::new("skipped"), EntryKind::File), is_sparse);
            assert!(!index.has(Path::new("assumed"), EntryKind::File));
        }
    }

    #[test]
    fn a_name_that_leads_out_of_the_tree_or_into_a_git_folder_is_none() {
        for name in
            ["../x", "/x", "a/../../x", "a/..", "./x", "a//x", "a/", "", ".git/config", "a/.GIT/x", ".git"]
        {
            let listed = format!("H 100644 aa11 0\t{name}\0");
            assert_eq!(GitIndex::parse(listed.as_bytes(), false), GitIndex::default(), "{name}");
        }
        let listed = b"H 100644 aa11 0\t..x/.gitignore\0";
        assert!(GitIndex::parse(listed, false).has(Path::new("..x/.gitignore"), EntryKind::File));
    }

    #[test]
    fn what_stands_as_another_kind_than_the_index_says_or_behind_a_link_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path();
        fs::create_dir_all(tree.join("real")).unwrap();
        fs::create_dir_all(tree.join("root")).unwrap();
        for name in ["a", ".env", "real/x", "root/y"] {
            fs::write(tree.join(name), "x").unwrap();
        }
        symlink("a", tree.join("link")).unwrap();
        symlink("real", tree.join("way")).unwrap();
        let listed = b"H 100644 1 0\ta\0H 120000 1 0\t.env\0H 120000 1 0\tlink\0H 100644 1 0\tway/x\0\
            H 100644 1 0\treal/x\0H 100644 1 0\troot/y\0H 100644 1 0\tgone\0S 100644 1 0\treal/s\0";
        let root = tree.join("root");
        let standing = GitIndex::parse(listed, false).standing(tree, &[&root]);
        let expected = [("a", EntryKind::File), ("link", EntryKind::Link), ("real/x", EntryKind::File)];
        assert_eq!(standing, expected.map(|(name, kind)| (PathBuf::from(name), kind)).into());
    }
}
