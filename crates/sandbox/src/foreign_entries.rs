//! Links, pipes, sockets and devices in git folders, of which git makes none.
//!
//! Git writes its files by name: through a link that a command left in place of a message, a log or the index the owner's next
//! `commit` would write to wherever it leads, and at a pipe it would wait for good. What an owner keeps so stays as it was: a
//! folder of objects on another disk, a head of an old repository.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use workspace::FileId;

use crate::kept_entry::KeptEntry;
use crate::outcome::Notice;
use crate::quarantine::Quarantine;
use crate::root_folders::RootFolders;

/// Entries of git folders that are no files and no folders, by their absolute paths.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ForeignEntries(BTreeMap<PathBuf, ForeignEntry>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum ForeignEntry {
    /// What it leads to.
    Link(PathBuf),
    Other(FileId),
}

impl ForeignEntries {
    /// Adds what stands at a path.
    pub(crate) fn add(&mut self, path: PathBuf) {
        let entry = match fs::read_link(&path) {
            Ok(target) => ForeignEntry::Link(target),
            Err(_) => {
                let Ok(metadata) = path.symlink_metadata() else { return };
                ForeignEntry::Other(FileId { device: metadata.dev(), inode: metadata.ino() })
            }
        };
        if !is_head_of_git(&path, &entry) {
            self.0.insert(path, entry);
        }
    }

    /// Keeps the entries that are said to be kept, by their paths and what they are.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Path, &[u8]) -> bool) {
        self.0.retain(|path, entry| match entry {
            ForeignEntry::Link(target) => keep(path, target.as_os_str().as_bytes()),
            ForeignEntry::Other(id) => keep(path, id.to_string().as_bytes()),
        });
    }

    /// Moves what appeared between two looks, or leads elsewhere since, and gives back the links that were there.
    pub(crate) fn take_new(
        &self,
        after: &Self,
        roots: &RootFolders,
        quarantine: &mut Quarantine,
    ) -> Vec<Notice> {
        let mut notices = Vec::new();
        let new = after.0.iter().filter(|(path, entry)| self.0.get(*path) != Some(entry));
        for (path, _) in new {
            quarantine.take_at(path, roots);
            if let Some(ForeignEntry::Link(target)) = self.0.get(path) {
                let link = KeptEntry::Link(target.clone());
                let made = roots.parent_of(path).and_then(|(folder, name)| link.make(folder.as_fd(), name));
                notices.push(match made {
                    Ok(()) => Notice::Restored(path.clone()),
                    Err(error) => Notice::NotRestored { path: path.clone(), problem: error.to_string() },
                });
            }
        }
        notices
    }
}

/// Whether it is a head as git makes it where `core.preferSymlinkRefs` is set, or made it once.
fn is_head_of_git(path: &Path, entry: &ForeignEntry) -> bool {
    let ForeignEntry::Link(target) = entry else { return false };
    path.ends_with("HEAD")
        && target.starts_with("refs")
        && target.components().all(|component| matches!(component, Component::Normal(_)))
}
