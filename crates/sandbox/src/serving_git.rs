//! Git folders that serve a root and lie outside of it (spec: security §1).
//!
//! A `.git` file is a file of the workspace: whoever wrote it may name any folder. One is believed only if that folder
//! points back at the root, which nobody can have done who only writes below the root.

use std::path::{Path, PathBuf};

use workspace::git_settings;

use crate::small_file::read_small;

/// Git folders outside of a root that git uses in it: of the repository that the root is a folder, a linked worktree or
/// a submodule of. None where git would look in the root itself.
pub fn git_folders_serving(root: &Path) -> Vec<PathBuf> {
    let Ok(root) = root.canonicalize() else { return Vec::new() };
    for folder in root.ancestors() {
        let named = folder.join(".git");
        let Ok(metadata) = named.symlink_metadata() else { continue };
        let found = match metadata.is_dir() {
            true => Some(named),
            false => linked(folder, &named).map(|linked| linked.common),
        };
        return found.into_iter().filter(|found| !found.starts_with(&root)).collect();
    }
    Vec::new()
}

/// Folders that a `.git` file leads to, without links.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LinkedFolder {
    /// Git folder of a submodule; of a linked working tree, the folder that the git folder has of it.
    pub(crate) own: PathBuf,
    /// Git folder that all working trees share; of a submodule the same as `own`.
    pub(crate) common: PathBuf,
}

/// What a `.git` file leads to, if that points back at it.
pub(crate) fn linked(worktree: &Path, file: &Path) -> Option<LinkedFolder> {
    let own = path_in(read_small(file).ok()?.strip_prefix("gitdir:")?, worktree)?;
    if let Ok(back) = read_small(&own.join("gitdir")) {
        let common = path_in(&read_small(&own.join("commondir")).ok()?, &own)?;
        let is_ours = path_in(&back, &own)? == file.canonicalize().ok()?;
        return (is_ours && own.parent() == Some(&common.join("worktrees")))
            .then_some(LinkedFolder { own, common });
    }
    let mut settings = git_settings(&own.join("config")).into_iter();
    let back = settings.rfind(|setting| setting.section == "core" && setting.key == "worktree")?;
    let is_ours = path_in(std::str::from_utf8(&back.value).ok()?, &own)? == worktree;
    is_ours.then(|| LinkedFolder { common: own.clone(), own })
}

fn path_in(text: &str, folder: &Path) -> Option<PathBuf> {
    folder.join(text.trim()).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_folder_a_worktree_and_a_submodule_are_served_from_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().canonicalize().unwrap().join(name);
        write(&path("main/.git/HEAD"), "x");
        fs::create_dir_all(path("main/part")).unwrap();
        assert_eq!(git_folders_serving(&path("main")), [] as [PathBuf; 0]);
        assert_eq!(git_folders_serving(&path("main/part")), [path("main/.git")]);

        write(&path("tree/.git"), &format!("gitdir: {}\n", path("main/.git/worktrees/tree").display()));
        write(&path("main/.git/worktrees/tree/commondir"), "../..\n");
        write(&path("main/.git/worktrees/tree/gitdir"), &format!("{}\n", path("tree/.git").display()));
        assert_eq!(git_folders_serving(&path("tree")), [path("main/.git")]);

        write(&path("main/sub/.git"), "gitdir: ../.git/modules/sub\n");
        write(&path("main/.git/modules/sub/config"), "[core]\n\tworktree = ../../../sub\n");
        assert_eq!(git_folders_serving(&path("main/sub")), [path("main/.git/modules/sub")]);
    }

    #[test]
    fn a_file_that_names_a_folder_which_does_not_know_it_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().canonicalize().unwrap().join(name);
        write(&path("keys/id"), "x");
        write(&path("root/.git"), &format!("gitdir: {}\n", path("keys").display()));
        assert_eq!(git_folders_serving(&path("root")), [] as [PathBuf; 0]);
        // Nor one that knows another.
        write(&path("main/.git/worktrees/tree/commondir"), "../..\n");
        write(&path("tree/.git"), "x");
        write(&path("main/.git/worktrees/tree/gitdir"), &format!("{}\n", path("tree/.git").display()));
        write(&path("root/.git"), &format!("gitdir: {}\n", path("main/.git/worktrees/tree").display()));
        assert_eq!(git_folders_serving(&path("root")), [] as [PathBuf; 0]);
    }
}
