//! A git folder that a command made: whether anything in it runs by itself.
//!
//! `git init` and `git clone` are everyday commands, and what they make is theirs. A hook that git does not bring as a
//! sample, and a key of the configuration that is not known to be harmless, are how a folder runs programs as soon as
//! its owner calls git, or an editor does.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::git_config::{Setting, settings_in};
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

/// Files that include one another, at most: git ends there.
const INCLUDES: usize = 10;

/// Files and folders that a configuration names as hooks, or to be read as configuration, and that exist; also by way of
/// those. Hooks are looked for from each of the `places` where they may run: working trees, and the folder if it is bare.
pub(crate) fn named_in_configuration(
    config: &Path,
    places: &[PathBuf],
    owner_home: Option<&Path>,
) -> Vec<PathBuf> {
    let mut named = Vec::new();
    let mut files = vec![config.to_owned()];
    for _ in 0..INCLUDES {
        let mut included = Vec::new();
        for file in files {
            let folder = file.parent().map(Path::to_owned).into_iter().collect::<Vec<_>>();
            for setting in settings_in(&file).into_iter().filter(|setting| !setting.value.is_empty()) {
                let (places, found) = match (setting.section.as_str(), setting.key.as_str()) {
                    ("core", "hookspath") => (places, &mut named),
                    ("include" | "includeif", "path") => (folder.as_slice(), &mut included),
                    _ => continue,
                };
                let path = Path::new(OsStr::from_bytes(&setting.value));
                let of_home = owner_home.zip(path.strip_prefix("~").ok()).map(|(home, path)| home.join(path));
                let paths = places.iter().map(|place| place.join(path)).chain(of_home);
                found.extend(paths.filter_map(|path| path.canonicalize().ok()));
            }
        }
        included.retain(|file| !named.contains(file));
        named.extend(included.iter().cloned());
        files = included;
    }
    named
}

/// Working tree of a git folder, and the index that git keeps of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkingTree {
    pub(crate) tree: PathBuf,
    /// Git folder that is common to it and other ones.
    pub(crate) git_folder: PathBuf,
    pub(crate) index: PathBuf,
}

/// Working trees of a git folder: its own, one that a configuration names (of a submodule), linked ones.
pub(crate) fn working_trees(folder: &Path) -> Vec<WorkingTree> {
    let named = settings_in(&folder.join("config")).into_iter();
    let mut named = named.filter(|setting| setting.section == "core" && setting.key == "worktree");
    let named = named
        .next_back()
        .and_then(|setting| folder.join(OsStr::from_bytes(&setting.value)).canonicalize().ok());
    let own = folder.parent().filter(|_| folder.ends_with(".git")).map(Path::to_owned);
    let mut trees = Vec::new();
    let working = |tree, index| WorkingTree { tree, git_folder: folder.to_owned(), index };
    trees.extend(named.or(own).map(|tree| working(tree, folder.join("index"))));
    for entry in fs::read_dir(folder.join("worktrees")).into_iter().flatten().flatten() {
        let file = read_small(&entry.path().join("gitdir")).unwrap_or_default();
        // Absolute, or from the folder that it lies in.
        let file = entry.path().join(file.trim_end());
        let tree = file.parent().and_then(|tree| tree.canonicalize().ok());
        trees.extend(tree.map(|tree| working(tree, entry.path().join("index"))));
    }
    trees
}

/// Whether git looks at files of a working tree that it is to skip, if they stand there: as it does where a sparse checkout
/// is configured that expects none.
pub(crate) fn is_sparse(working: &WorkingTree) -> bool {
    let own = working.index.with_file_name("config.worktree");
    let settings: Vec<Setting> =
        [working.git_folder.join("config"), own].iter().flat_map(|config| settings_in(config)).collect();
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
    fn hooks_are_looked_for_from_every_working_tree_and_by_way_of_included_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in [
            "main/.git/worktrees/tree",
            "main/hooks",
            "tree/hooks",
            "main/.git/modules/sub",
            "main/sub/hooks",
        ] {
            fs::create_dir_all(path(name)).unwrap();
        }
        let git = path("main/.git");
        fs::write(git.join("config"), "[include]\n\tpath = more\n").unwrap();
        fs::write(git.join("more"), "[core] hooksPath = hooks\n").unwrap();
        fs::write(git.join("worktrees/tree/gitdir"), format!("{}\n", path("tree/.git").display())).unwrap();
        let trees = working_trees(&git);
        let tree = |tree: &str, index: &str| {
            let git_folder = if tree == "main/sub" { git.join("modules/sub") } else { git.clone() };
            WorkingTree { tree: path(tree), git_folder, index: path(index) }
        };
        assert_eq!(trees, [tree("main", "main/.git/index"), tree("tree", "main/.git/worktrees/tree/index")]);
        let places: Vec<PathBuf> = trees.into_iter().map(|tree| tree.tree).collect();
        let named = named_in_configuration(&git.join("config"), &places, None);
        assert_eq!(named, [git.join("more"), path("main/hooks"), path("tree/hooks")]);
        fs::write(git.join("config"), "[core] hooksPath = ~/main/hooks\n").unwrap();
        let home = path("");
        assert_eq!(named_in_configuration(&git.join("config"), &[], Some(&home)), [path("main/hooks")]);

        let module = git.join("modules/sub");
        fs::write(module.join("config"), "[core]\n\tworktree = ../../../sub\n\thooksPath = hooks\n").unwrap();
        assert_eq!(working_trees(&module), [tree("main/sub", "main/.git/modules/sub/index")]);
        let named = named_in_configuration(&module.join("config"), &[path("main/sub")], None);
        assert_eq!(named, [path("main/sub/hooks")]);
    }

    #[test]
    fn a_working_tree_is_sparse_by_its_own_configuration_or_the_common_one() {
        let folder = tempfile::tempdir().unwrap();
        let git_folder = folder.path().join(".git");
        fs::create_dir(&git_folder).unwrap();
        let index = git_folder.join("index");
        let working = WorkingTree { tree: folder.path().to_owned(), git_folder, index };
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
