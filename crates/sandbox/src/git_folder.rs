//! A git folder that a command made: whether anything in it runs by itself.
//!
//! `git init` and `git clone` are everyday commands, and what they make is theirs. A hook that git does not bring as a
//! sample, and a key of the configuration that is not known to be harmless, are how a folder runs programs as soon as
//! its owner calls git, or an editor does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use workspace::protected;
use workspace::{GitConfiguration, GitSetting, GitShape, GitWorkingTree, git_settings, git_working_trees};

use crate::harmless_settings::is_harmless;
use crate::serving_git::linked;
use crate::small_file::read_small_bytes;

/// Largest configuration that is read, in bytes; a fresh one has a few hundred.
const LARGEST: u64 = 64 << 10;

/// Whether a git folder holds only sample hooks and no key that may run a program.
pub(crate) fn is_fresh(folder: &Path) -> bool {
    is_fresh_without_configuration(folder)
        && is_harmless_part(folder, "config")
        && submodules(folder).is_some_and(|all| all.iter().all(|one| is_fresh(one)))
}

/// Whether nothing in a git folder runs by itself but by what its configuration says.
fn is_fresh_without_configuration(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let is_harmless = |entry: io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name == "config" || !protected::runs_in_git_folder(&name) || is_harmless_part(folder, &name)
        })
    };
    entries.into_iter().all(is_harmless)
}

/// Git folders of submodules; none if that cannot be said.
fn submodules(folder: &Path) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut rest = vec![folder.join("modules")];
    if !exists(&rest[0]) {
        return Some(found);
    }
    while let Some(folder) = rest.pop() {
        for entry in fs::read_dir(&folder).ok()? {
            let entry = entry.ok()?;
            let kind = entry.file_type().ok()?;
            let path = entry.path();
            let has_file =
                |name: &str| path.join(name).symlink_metadata().is_ok_and(|metadata| !metadata.is_dir());
            match kind.is_dir() {
                true if GitShape::is_submodule(has_file) => found.push(path),
                true => rest.push(path),
                false if kind.is_file() => {}
                false => return None,
            }
        }
    }
    Some(found)
}

/// Whether a part of a git folder that is protected by its name runs nothing by itself.
pub(crate) fn is_harmless_part(folder: &Path, name: &str) -> bool {
    let part = folder.join(name);
    match name {
        "hooks" => has_only_samples(&part),
        "config" => has_harmless_configuration(folder),
        "info" => !exists(&part.join("attributes")),
        // Older versions of git make an empty one of the first.
        "branches" | "remotes" => is_empty(&part),
        // What git writes before it becomes the configuration, and copies of it: git reads them by no name.
        _ if name.starts_with("config.") && !name.eq_ignore_ascii_case("config.worktree") => true,
        _ => !exists(&part),
    }
}

/// Working trees of a git folder that exist.
pub(crate) fn working_trees(folder: &Path) -> Vec<GitWorkingTree> {
    git_working_trees(folder).into_iter().filter(|working| working.tree.exists()).collect()
}

/// Whether git looks at files of a working tree that it is to skip, if they stand there: as it does where a sparse checkout
/// is configured that expects none.
pub(crate) fn is_sparse(working: &GitWorkingTree) -> bool {
    let own = working.index.with_file_name("config.worktree");
    let settings: Vec<GitSetting> =
        [working.git_folder.join("config"), own].iter().flat_map(|config| git_settings(config)).collect();
    let is = |section: &str, key: &str| {
        let last = settings.iter().rfind(|setting| setting.section == section && setting.key == key);
        last.is_some_and(|setting| setting.value.eq_ignore_ascii_case(b"true"))
    };
    is("core", "sparsecheckout") && !is("sparse", "expectfilesoutsideofpatterns")
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Whether nothing stands at a path, or an empty folder.
fn is_empty(path: &Path) -> bool {
    let is_folder = path.symlink_metadata().map(|metadata| metadata.is_dir());
    is_folder
        .map_or(true, |is_folder| is_folder && fs::read_dir(path).is_ok_and(|mut all| all.next().is_none()))
}

fn has_only_samples(hooks: &Path) -> bool {
    let Ok(metadata) = hooks.symlink_metadata() else { return true };
    let Ok(entries) = fs::read_dir(hooks) else { return false };
    let is_sample = |entry: io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| {
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            is_file && entry.file_name().to_string_lossy().ends_with(".sample")
        })
    };
    metadata.is_dir() && entries.into_iter().all(is_sample)
}

fn has_harmless_configuration(folder: &Path) -> bool {
    let config = folder.join("config");
    let Ok(metadata) = config.symlink_metadata() else { return true };
    let is_of_submodule = || {
        let leads_back = |working: &GitWorkingTree| {
            let file = working.tree.join(".git");
            linked(&working.tree, &file)
                .is_some_and(|linked| folder.canonicalize().is_ok_and(|it| it == linked.own))
        };
        git_working_trees(folder).first().is_some_and(leads_back)
    };
    metadata.is_file()
        && metadata.len() <= LARGEST
        && read_small_bytes(&config)
            .is_ok_and(|text| is_harmless(&GitConfiguration::parse(&text), is_of_submodule()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_tree_is_sparse_by_its_own_configuration_or_the_common_one() {
        let folder = tempfile::tempdir().unwrap();
        let git_folder = folder.path().join(".git");
        fs::create_dir(&git_folder).unwrap();
        let index = git_folder.join("index");
        let working = GitWorkingTree { tree: folder.path().to_owned(), git_folder, index };
        let own = "[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n";
        let expects = format!("{own}[sparse]\n\texpectFilesOutsideOfPatterns = true\n");
        for (common, own, sparse) in [
            ("", "", false),
            ("", own, true),
            (own, "", true),
            (own, "[core]\n\tsparseCheckout = false\n", false),
            ("", &expects, false),
        ] {
            fs::write(working.git_folder.join("config"), common).unwrap();
            fs::write(working.git_folder.join("config.worktree"), own).unwrap();
            assert_eq!(is_sparse(&working), sparse, "{common} {own}");
        }
    }

    #[test]
    fn a_hook_that_is_no_sample_is_not_fresh() {
        let folder = tempfile::tempdir().unwrap();
        let hooks = folder.path().join("hooks");
        fs::create_dir(&hooks).unwrap();
        fs::write(hooks.join("pre-commit.sample"), "x").unwrap();
        fs::write(folder.path().join("config"), "[core]\n\tbare = false\n").unwrap();
        assert!(is_fresh(folder.path()));
        fs::create_dir(folder.path().join("branches")).unwrap();
        assert!(is_fresh(folder.path()));
        fs::write(folder.path().join("branches/origin"), "x").unwrap();
        assert!(!is_fresh(folder.path()));
        fs::remove_dir_all(folder.path().join("branches")).unwrap();
        std::os::unix::fs::symlink("/bin/true", hooks.join("post-checkout.sample")).unwrap();
        assert!(!is_fresh(folder.path()));
    }
}
