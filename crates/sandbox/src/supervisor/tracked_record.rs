//! Files that git had in a working tree before any command could write its index, kept where no command writes.
//!
//! Whoever may write the index may name any file in it, so that it is believed once: before the first command that may write
//! the git folder, at whatever level, from whichever workspace. The record only loses entries since then, before any command
//! that may write the index: what its owner took out of it nobody puts back.
//!
//! A record is known by the git folder of its working tree, however that is called by now. Another git folder in the same
//! place, as a backup brings it, begins with the record that was used there.
//!
//! Each command holds a lock of its git folder, shared, until it is over. A working tree of which there is no record yet gets
//! its own while nobody holds that; where somebody does, its index may have been written, and nothing of it is believed.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};
use workspace::{GitWorkingTree, read_small_file};

use super::conversation::Deadline;
use super::git_index::{EntryKind, GitIndex};
use super::index_check;
/// Bytes of a file of a record, at most.
const LONGEST: u64 = 256 << 20;
/// Pause between two looks at a lock.
const PAUSE: Duration = Duration::from_millis(5);

/// Records of working trees, below one folder of the home.
#[derive(Clone, Copy)]
pub(super) struct TrackedRecords<'a>(&'a Path);

/// Lock of a git folder, held while a command may write it.
pub(super) struct GitFolderLock(#[allow(dead_code, reason = "held, not read")] File);

impl<'a> TrackedRecords<'a> {
    /// Records in a folder, which is made.
    pub(super) fn open(folder: &'a Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        Ok(Self(folder))
    }

    /// A folder that holds nothing and that no command reaches, made if it is not there.
    pub(super) fn empty_folder(self) -> io::Result<PathBuf> {
        let folder = self.0.join("empty");
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        folder.canonicalize()
    }

    pub(super) fn of(self, tree: &GitWorkingTree) -> TrackedRecord<'a> {
        let place = digest(&[tree.tree.as_path(), tree.index.as_path()]);
        let name = identity(tree).map(|identity| digest(&[Path::new(&identity)]));
        let file = self.0.join(name.as_ref().unwrap_or(&place));
        TrackedRecord { records: self, file, place }
    }

    /// Sees to it that there is a record of each working tree of a git folder, without what its index lost. `index` asks git for one's index; where it
    /// cannot be had nothing is believed. None when the time was over, or somebody cancelled, before it was done.
    pub(super) fn begin(
        self,
        git_folder: &Path,
        trees: &[GitWorkingTree],
        until: Deadline<'_>,
        index: impl Fn(&GitWorkingTree) -> Option<GitIndex>,
    ) -> io::Result<Option<GitFolderLock>> {
        let file = self.lock_file(&format!("{}.lock", digest(&[git_folder])))?;
        let lacking = || trees.iter().filter(|tree| !self.of(tree).file.exists());
        while !until.is_over() {
            if lacking().next().is_some() && has(file.try_lock())? {
                for tree in lacking() {
                    let record = self.of(tree);
                    if record.adopt()? {
                        continue;
                    }
                    let seen = seen(tree);
                    let index = index(tree);
                    // An answer that did not come in time is none.
                    if until.is_over() {
                        return Ok(None);
                    }
                    let known = index.map(|index| index.standing(&tree.tree, &[])).unwrap_or_default();
                    record.write(&known)?;
                    record.keep_seen(&seen)?;
                }
            }
            if has(file.try_lock_shared())? {
                // What lacks one now came while another command runs.
                for tree in lacking() {
                    let record = self.of(tree);
                    if !record.adopt()? {
                        record.write(&HashMap::new())?;
                    }
                }
                for tree in trees {
                    let record = self.of(tree);
                    record.keep_place()?;
                    if !record.lose(tree, until, &index)? {
                        return Ok(None);
                    }
                }
                return Ok(Some(GitFolderLock(file)));
            }
            thread::sleep(PAUSE);
        }
        Ok(None)
    }

    fn lock_file(self, name: &str) -> io::Result<File> {
        workspace::open_lock_file(&self.0.join(name))
    }
}

fn text_of(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&read_small_file(path, LONGEST)?).into_owned())
}

fn unless_missing<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

fn has(locked: Result<(), TryLockError>) -> io::Result<bool> {
    match locked {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Inode and time of birth of the git folder of a working tree, which it has wherever it is moved; none where the file system
/// does not know the time.
fn identity(tree: &GitWorkingTree) -> Option<String> {
    let metadata = fs::metadata(tree.index.parent()?).ok()?;
    let born = metadata.created().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos();
    (born > 0).then(|| format!("{} {born}", metadata.ino()))
}

/// Stamp of an index, taken before git is asked for it: what comes after that is looked at the next time.
fn seen(tree: &GitWorkingTree) -> String {
    format!("{:?}", index_check::stamp(&tree.index))
}

fn digest(paths: &[&Path]) -> String {
    let mut hasher = Sha256::new();
    for path in paths {
        hasher.update(path.as_os_str().as_bytes());
        hasher.update([0]);
    }
    hasher.finalize().iter().take(16).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Record of one working tree: a letter for the kind of each entry and its path in the tree, ended by a zero.
pub(super) struct TrackedRecord<'a> {
    records: TrackedRecords<'a>,
    file: PathBuf,
    /// Name of the place of its working tree.
    place: String,
}

impl TrackedRecord<'_> {
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Begins with the record that was last used in this place, of another git folder. Whether there is one.
    fn adopt(&self) -> io::Result<bool> {
        let last = unless_missing(text_of(&self.last()))?.unwrap_or_else(|| self.place.clone());
        let last = self.records.0.join(last);
        if last == self.file || !last.exists() {
            return Ok(false);
        }
        workspace::replace_small_file(&self.file, &read_small_file(&last, LONGEST)?)?;
        Ok(true)
    }

    /// Keeps which record is used in this place.
    fn keep_place(&self) -> io::Result<()> {
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        match unless_missing(text_of(&self.last()))?.is_some_and(|last| last == name) {
            true => Ok(()),
            false => workspace::replace_small_file(&self.last(), name.as_bytes()),
        }
    }

    fn last(&self) -> PathBuf {
        self.records.0.join(format!("{}.last", self.place))
    }

    /// Takes out what the index lost since it was last looked at for this. Where git cannot be asked nothing is believed
    /// any more. False when the time was over before it was done.
    fn lose(
        &self,
        tree: &GitWorkingTree,
        until: Deadline<'_>,
        index: impl Fn(&GitWorkingTree) -> Option<GitIndex>,
    ) -> io::Result<bool> {
        let seen = seen(tree);
        if unless_missing(text_of(&self.seen()))?.is_some_and(|before| before == seen) {
            return Ok(true);
        }
        let index = index(tree);
        if until.is_over() {
            return Ok(false);
        }
        self.believed(&index.unwrap_or_default())?;
        self.keep_seen(&seen)?;
        Ok(true)
    }

    fn keep_seen(&self, stamp: &str) -> io::Result<()> {
        workspace::replace_small_file(&self.seen(), stamp.as_bytes())
    }

    fn seen(&self) -> PathBuf {
        self.file.with_extension("seen")
    }

    /// Entries that are believed: the record loses those that the index no longer has as what they were.
    ///
    /// # Errors
    /// When the record cannot be read, or those cannot be taken out of it.
    pub(super) fn believed(&self, index: &GitIndex) -> io::Result<HashMap<PathBuf, EntryKind>> {
        let kept = |known: HashMap<PathBuf, EntryKind>| -> HashMap<_, _> {
            known.into_iter().filter(|(name, kind)| index.has(name, *kind)).collect()
        };
        let known = self.read()?;
        let before = known.len();
        let known = kept(known);
        if known.len() == before {
            return Ok(known);
        }
        // Another process may take out others at the same time.
        let changing = self.records.lock_file("changing.lock")?;
        changing.lock()?;
        let known = kept(self.read()?);
        self.write(&known)?;
        Ok(known)
    }

    fn read(&self) -> io::Result<HashMap<PathBuf, EntryKind>> {
        let bytes = read_small_file(&self.file, LONGEST)?;
        let entries = bytes.split(|byte| *byte == 0).filter_map(|entry| {
            let (kind, name) = entry.split_first()?;
            let kind = match kind {
                b'f' => EntryKind::File,
                b'l' => EntryKind::Link,
                _ => return None,
            };
            Some((PathBuf::from(OsStr::from_bytes(name)), kind))
        });
        Ok(entries.collect())
    }

    fn write(&self, known: &HashMap<PathBuf, EntryKind>) -> io::Result<()> {
        let mut bytes = Vec::new();
        for (name, kind) in known {
            bytes.push(match kind {
                EntryKind::File => b'f',
                EntryKind::Link => b'l',
            });
            bytes.extend_from_slice(name.as_os_str().as_bytes());
            bytes.push(0);
        }
        workspace::replace_small_file(&self.file, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn soon() -> Deadline<'static> {
        Deadline { deadline: Instant::now() + SOON, cancelled: &[] }
    }

    struct Trees {
        _folder: tempfile::TempDir,
        records: PathBuf,
        git: PathBuf,
        tree: GitWorkingTree,
    }

    fn trees() -> Trees {
        let folder = tempfile::tempdir().unwrap();
        let (records, tree) = (folder.path().join("records"), folder.path().join("tree"));
        fs::create_dir_all(&tree).unwrap();
        for name in ["a", "b", ".env"] {
            fs::write(tree.join(name), name).unwrap();
        }
        let git = tree.join(".git");
        let tree = GitWorkingTree { index: git.join("index"), git_folder: git.clone(), tree };
        Trees { _folder: folder, records, git, tree }
    }

    fn index(names: &[&str]) -> GitIndex {
        let listed = names.iter().map(|name| format!("H 100644 1 0\t{name}\0"));
        GitIndex::parse(listed.collect::<String>().as_bytes(), false)
    }

    impl Trees {
        fn records(&self) -> TrackedRecords<'_> {
            TrackedRecords::open(&self.records).unwrap()
        }

        fn begin(&self, names: &[&str]) -> Option<GitFolderLock> {
            let trees = [self.tree.clone()];
            self.records().begin(&self.git, &trees, soon(), |_| Some(index(names))).unwrap()
        }

        fn believed(&self, names: &[&str]) -> Vec<PathBuf> {
            let believed = self.records().of(&self.tree).believed(&index(names)).unwrap();
            let mut names: Vec<PathBuf> = believed.into_keys().collect();
            names.sort();
            names
        }
    }

    #[test]
    fn a_file_that_came_to_the_index_later_is_never_believed_and_one_that_left_it_no_longer() {
        let trees = trees();
        drop(trees.begin(&["a", "b", "gone"]).unwrap());
        assert_eq!(trees.believed(&["a", "b", ".env", "gone"]), ["a", "b"].map(PathBuf::from));
        drop(trees.begin(&["a", "b", ".env"]).unwrap());
        assert_eq!(trees.believed(&["b", ".env"]), ["b"].map(PathBuf::from));
        assert_eq!(trees.believed(&["a", "b", ".env"]), ["b"].map(PathBuf::from));
    }

    #[test]
    fn what_left_the_index_between_two_commands_leaves_the_record_before_the_next_one() {
        let trees = trees();
        fs::create_dir_all(&trees.git).unwrap();
        for (text, names) in [("1", ["a", "b"].as_slice()), ("22", &["a"]), ("333", &["a", "b"])] {
            fs::write(&trees.tree.index, text).unwrap();
            drop(trees.begin(names).unwrap());
        }
        assert_eq!(trees.believed(&["a", "b"]), ["a"].map(PathBuf::from));
        // Where nobody can say what it has, nothing.
        fs::write(&trees.tree.index, "4444").unwrap();
        drop(
            trees
                .records()
                .begin(&trees.git, std::slice::from_ref(&trees.tree), soon(), |_| None)
                .unwrap()
                .unwrap(),
        );
        assert_eq!(trees.believed(&["a", "b"]), [] as [PathBuf; 0]);
    }

    #[test]
    fn a_git_folder_that_was_moved_keeps_its_record_and_one_in_the_same_place_begins_with_it() {
        let mut trees = trees();
        fs::create_dir_all(&trees.git).unwrap();
        drop(trees.begin(&["a", "b"]).unwrap());
        // Restored from a backup.
        let aside = trees.tree.tree.with_file_name("aside");
        fs::rename(&trees.git, &aside).unwrap();
        fs::create_dir(&trees.git).unwrap();
        drop(trees.begin(&["a", ".env"]).unwrap());
        assert_eq!(trees.believed(&["a", "b", ".env"]), ["a"].map(PathBuf::from));
        // The first one elsewhere, after another in its place.
        let tree = trees.tree.tree.with_file_name("moved");
        fs::rename(&trees.tree.tree, &tree).unwrap();
        trees.git = tree.join(".git");
        fs::remove_dir(&trees.git).unwrap();
        fs::rename(&aside, &trees.git).unwrap();
        trees.tree = GitWorkingTree { index: trees.git.join("index"), git_folder: trees.git.clone(), tree };
        drop(trees.begin(&["a", "b", ".env"]).unwrap());
        assert_eq!(trees.believed(&["a", "b", ".env"]), ["a", "b"].map(PathBuf::from));
    }

    #[test]
    fn what_became_a_link_in_the_index_and_what_git_no_longer_looks_at_leaves_the_record() {
        let trees = trees();
        drop(trees.begin(&["a", "b"]).unwrap());
        let record = trees.records().of(&trees.tree);
        let listed = b"H 120000 1 0\ta\0S 100644 1 0\tb\0";
        assert!(record.believed(&GitIndex::parse(listed, false)).unwrap().is_empty());
        assert_eq!(trees.believed(&["a", "b"]), [] as [PathBuf; 0]);
    }

    #[test]
    fn of_a_tree_that_comes_while_a_command_runs_nothing_is_believed() {
        let trees = trees();
        let running = trees.records().begin(&trees.git, &[], soon(), |_| None).unwrap().unwrap();
        drop(trees.begin(&["a", ".env"]).unwrap());
        assert_eq!(trees.believed(&["a", ".env"]), [] as [PathBuf; 0]);
        drop(running);
        fs::remove_file(trees.records().of(&trees.tree).file()).unwrap();
        drop(trees.begin(&["a"]).unwrap());
        assert_eq!(trees.believed(&["a"]), ["a"].map(PathBuf::from), "control: nobody runs");
    }

    #[test]
    fn whoever_comes_while_a_record_is_made_waits_for_it_and_makes_no_other() {
        let trees = trees();
        let (at_work, go_on) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                let tree = [trees.tree.clone()];
                let made = trees.records().begin(&trees.git, &tree, soon(), |_| {
                    at_work.wait();
                    go_on.wait();
                    Some(index(&["a"]))
                });
                made.unwrap().unwrap()
            });
            at_work.wait();
            let second = scope.spawn(|| trees.begin(&["a", ".env"]).unwrap());
            go_on.wait();
            drop((first.join().unwrap(), second.join().unwrap()));
        });
        assert_eq!(trees.believed(&["a", ".env"]), ["a"].map(PathBuf::from));
    }

    #[test]
    fn whoever_is_cancelled_meanwhile_leaves_no_record() {
        let trees = trees();
        let (cancelled, cancel) = rustix::pipe::pipe().unwrap();
        let cancelled = [cancelled];
        let mut cancel = Some(cancel);
        drop(cancel.take());
        let tree = [trees.tree.clone()];
        let until = Deadline { deadline: Instant::now() + SOON, cancelled: &cancelled };
        assert!(trees.records().begin(&trees.git, &tree, until, |_| None).unwrap().is_none());
        assert!(!trees.records().of(&trees.tree).file().exists());
    }
}
