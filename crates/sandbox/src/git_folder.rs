//! A git folder that a command made: whether anything in it runs by itself.
//!
//! `git init` and `git clone` are everyday commands, and what they make is theirs. A hook that git does not bring as a
//! sample, and a key of the configuration that is not known to be harmless, are how a folder runs programs as soon as
//! its owner calls git, or an editor does.

use std::fs;
use std::path::Path;

use workspace::{GitSetting, GitWorkingTree, git_settings, git_working_trees};

use crate::small_file::read_small;

/// Largest configuration that is read, in bytes; a fresh one has a few hundred.
const LARGEST: u64 = 64 << 10;

/// Sections and their keys that name no program and no further file. All else is taken for one that does.
const HARMLESS: [(&str, &[&str]); 6] = [
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
        ],
    ),
    ("remote", &["url", "fetch", "pushurl", "tagopt", "promisor", "partialclonefilter"]),
    ("branch", &["remote", "merge", "rebase"]),
    ("user", &["name", "email"]),
    ("extensions", &["objectformat", "refstorage", "partialclone"]),
    ("submodule", &["url", "active"]),
];

/// Whether a git folder holds only sample hooks and no key that may run a program.
pub(crate) fn is_fresh(folder: &Path) -> bool {
    has_only_samples(&folder.join("hooks"))
        && is_harmless_file(&folder.join("config"))
        && !exists(&folder.join("commondir"))
        && !exists(&folder.join("config.worktree"))
        && !exists(&folder.join("info").join("attributes"))
        && !exists(&folder.join("modules"))
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

fn has_only_samples(hooks: &Path) -> bool {
    let Ok(metadata) = hooks.symlink_metadata() else { return true };
    let Ok(entries) = fs::read_dir(hooks) else { return false };
    let is_sample = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| {
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            is_file && entry.file_name().to_string_lossy().ends_with(".sample")
        })
    };
    metadata.is_dir() && entries.into_iter().all(is_sample)
}

fn is_harmless_file(config: &Path) -> bool {
    let Ok(metadata) = config.symlink_metadata() else { return true };
    metadata.is_file() && metadata.len() <= LARGEST && read_small(config).is_ok_and(|text| is_harmless(&text))
}

/// Whether a configuration has only known keys. What is not understood is not harmless.
fn is_harmless(text: &str) -> bool {
    let mut section = String::new();
    text.lines().map(str::trim).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(head) = line.strip_prefix('[') {
            // The rest of the line could hold a key.
            let Some(head) = head.strip_suffix(']').filter(|head| !head.contains(']')) else { return false };
            let name = head.split([' ', '"', '.']).next().unwrap_or_default();
            section = name.to_ascii_lowercase();
            return HARMLESS.iter().any(|(known, _)| *known == section);
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let key = key.trim().to_ascii_lowercase();
        // `ext::sh -c …` is an address that runs a program; a value may go on in the next line.
        let is_plain = !value.contains("::") && !value.ends_with('\\');
        is_plain && HARMLESS.iter().any(|(known, keys)| *known == section && keys.contains(&key.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
        \tlogallrefupdates = true\n[remote \"origin\"]\n\turl = https://example.com/x.git\n\
        \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";

    #[test]
    fn what_git_makes_is_harmless() {
        assert!(is_harmless(FRESH));
        assert!(is_harmless(""));
        assert!(
            !is_harmless("[remote \"origin\"] uploadpack = ./evil ;]\n"),
            "a key behind a section's head"
        );
    }

    #[test]
    fn what_names_a_program_or_another_file_is_not() {
        for more in [
            "[core]\n\tfsmonitor = ./evil",
            "[core]\n\thooksPath = x",
            "[CORE]\n\tsshCommand=x",
            "[core] fsmonitor = x",
            "[alias]\n\tst = !x",
            "[include]\n\tpath = ../evil",
            "[includeIf \"gitdir:.\"]\n\tpath = ../evil",
            "[filter \"x\"]\n\tclean = x",
            "[credential]\n\thelper = x",
            "[remote \"x\"]\n\tuploadpack = x",
            "[remote \"x\"]\n\turl = ext::sh -c x",
            "[submodule \"x\"]\n\tupdate = !x",
            "[core]\n\tautocrlf = \\\nfsmonitor = x",
            "[extensions]\n\tworktreeConfig = true",
        ] {
            assert!(!is_harmless(&format!("{FRESH}{more}\n")), "{more}");
        }
    }

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
        fs::write(folder.path().join("config"), FRESH).unwrap();
        assert!(is_fresh(folder.path()));
        std::os::unix::fs::symlink("/bin/true", hooks.join("post-checkout.sample")).unwrap();
        assert!(!is_fresh(folder.path()));
    }
}
