//! Names of protected files by which they are not protected (hard links).

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use workspace::FileId;

use super::ProtectedPaths;
use crate::folder_list::list;
use crate::walls::Walls;

impl ProtectedPaths {
    /// Protected files that have a name by which they could be written: one that no mount holds.
    pub(crate) fn with_other_names(&self, walls: &Walls) -> Self {
        let mut linked = BTreeMap::<FileId, (u64, BTreeSet<PathBuf>)>::new();
        let mut rest: Vec<PathBuf> = self.paths.iter().cloned().collect();
        while let Some(path) = rest.pop() {
            let Ok(metadata) = path.symlink_metadata() else { continue };
            if metadata.is_dir() {
                let entries = list(&path).ok().flatten().into_iter().flatten().flatten();
                rest.extend(entries.map(|entry| path.join(entry.file_name())));
            } else if metadata.is_file() && metadata.nlink() > 1 {
                let id = FileId { device: metadata.dev(), inode: metadata.ino() };
                linked.entry(id).or_insert_with(|| (metadata.nlink(), BTreeSet::new())).1.insert(path);
            }
        }
        let has_others = |(names, paths): &(u64, BTreeSet<PathBuf>)| {
            (paths.iter().filter(|path| is_mounted(path, walls)).count() as u64) < *names
        };
        let paths = linked.into_values().filter(has_others).flat_map(|(_, paths)| paths).collect();
        Self { paths, ..Self::default() }
    }
}

/// Whether a path at or below a protected one is mounted read-only as that is.
fn is_mounted(path: &Path, walls: &Walls) -> bool {
    // A part of this folder is writable.
    let is_ours = path.components().any(|name| name.as_os_str() == ".drawloom");
    !is_ours && !walls.touches.iter().any(|touched| path.starts_with(touched))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_has_other_names_where_not_each_of_them_is_mounted() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["skills", ".drawloom/run"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for (name, other) in [
            ("AGENTS.md", "CLAUDE.md"),
            ("SOUL.md", "skills/soul.md"),
            ("BOOT.md", "other"),
            ("USER.md", ".drawloom/run/user.md"),
        ] {
            fs::write(root.join(name), "ours").unwrap();
            fs::hard_link(root.join(name), root.join(other)).unwrap();
        }
        fs::write(root.join("GEMINI.md"), "ours").unwrap();
        let mut walls = Walls::around(&root, &root);
        let found = |walls: &Walls| {
            let found = ProtectedPaths::of(walls).with_other_names(walls).paths.into_iter();
            found.map(|path| path.strip_prefix(&root).unwrap().to_owned()).collect::<Vec<_>>()
        };
        let expected = [".drawloom/run/user.md", "BOOT.md", "USER.md"].map(PathBuf::from);
        assert_eq!(found(&walls), expected);
        walls.touches.push(root.join("CLAUDE.md"));
        let expected =
            [".drawloom/run/user.md", "AGENTS.md", "BOOT.md", "CLAUDE.md", "USER.md"].map(PathBuf::from);
        assert_eq!(found(&walls), expected);
    }
}
