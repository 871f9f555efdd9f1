//! A git folder that a command made: whether anything in it runs by itself.
//!
//! `git init` and `git clone` are everyday commands, and what they make is theirs. A hook that git does not bring as a
//! sample, and a key of the configuration that is not known to be harmless, are how a folder runs programs as soon as
//! its owner calls git, or an editor does.

use std::fs;
use std::path::{Path, PathBuf};

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

/// Files and folders that a configuration names as hooks, or to be read as configuration, and that exist. `config` lies
/// in `folder`.
pub(crate) fn named_in_configuration(config: &Path, folder: &Path) -> Vec<PathBuf> {
    let Ok(metadata) = config.symlink_metadata() else { return Vec::new() };
    if !metadata.is_file() || metadata.len() > LARGEST {
        return Vec::new();
    }
    let text = fs::read_to_string(config).unwrap_or_default();
    let named = text.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        // The key may stand behind its section's head.
        let key = key.rsplit([' ', '\t', ']']).find(|word| !word.is_empty())?.to_ascii_lowercase();
        let value = value.trim().trim_matches('"');
        match key.as_str() {
            // Relative to where hooks run: the working tree, or the folder itself if it is bare.
            "hookspath" if folder.ends_with(".git") => folder.parent()?.join(value).canonicalize().ok(),
            "hookspath" | "path" => folder.join(value).canonicalize().ok(),
            _ => None,
        }
    });
    named.collect()
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
