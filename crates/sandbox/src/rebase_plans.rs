//! What rebases, merges of commits and applied patches that wait to go on run, in git folders.
//!
//! A line of a plan may name a program (`exec`), which `git rebase --continue` runs, and so does a strategy: git runs
//! `git-merge-NAME`, which with a `/` in it is a path. A command may begin a rebase and leave it to
//! the next one; a program that it adds would run at its owner's. Options of a strategy (`strategy_opts`) are not looked at: none
//! of git's own strategies runs anything by them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use workspace::{GIT_FILE_BYTES, git_settings};

use crate::quarantine::Quarantine;
use crate::root_folders::RootFolders;
use crate::small_file::read_small_bytes;

/// Names of the files in their folders.
pub(crate) const FILES: [&str; 5] = ["git-rebase-todo", "strategy", "gpg_sign_opt", "apply-opt", "opts"];
/// Strategies that git brings along.
const STRATEGIES: [&[u8]; 6] = [b"ort", b"recursive", b"resolve", b"octopus", b"ours", b"subtree"];
/// Beginnings of the options that git notes for `git apply`, each in quotes. Others make it write files of any name.
const OF_APPLY: [&[u8]; 9] = [
    b"'--whitespace=",
    b"'--ignore-space-change'",
    b"'--ignore-whitespace'",
    b"'--directory=",
    b"'--exclude=",
    b"'--include=",
    b"'--reject'",
    b"'-C",
    b"'-p",
];

/// What runs a program, by the absolute paths of the files that say so.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct RebasePlans(BTreeMap<PathBuf, BTreeSet<Vec<u8>>>);

impl RebasePlans {
    /// Whether a file tells of what waits.
    pub(crate) fn is_one(path: &Path) -> bool {
        PlanKind::of(path).is_some()
    }

    /// Adds what a file runs.
    pub(crate) fn add(&mut self, path: PathBuf) {
        let Some(kind) = PlanKind::of(&path) else { return };
        let text = read_small_bytes(&path).unwrap_or_default();
        let mut programs = kind.programs(&path, &text);
        // Of one that is longer than what is read, nothing is known.
        if text.len() as u64 >= GIT_FILE_BYTES {
            programs.insert(Vec::new());
        }
        if !programs.is_empty() {
            self.0.insert(path, programs);
        }
    }

    /// Keeps the programs that are said to be kept, by the files that name them.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Path, &[u8]) -> bool) {
        self.0.retain(|path, programs| {
            programs.retain(|program| keep(path, program));
            !programs.is_empty()
        });
    }

    /// Moves files that run more than they did at an earlier look.
    pub(crate) fn take_new(&self, after: &Self, roots: &RootFolders, quarantine: &mut Quarantine) {
        let known = |path: &PathBuf, programs: &BTreeSet<Vec<u8>>| {
            self.0.get(path).is_some_and(|known| programs.is_subset(known))
        };
        for (path, _) in after.0.iter().filter(|(path, programs)| !known(path, programs)) {
            quarantine.take_at(path, roots);
        }
    }
}

#[derive(Clone, Copy)]
enum PlanKind {
    /// Lines of a rebase.
    Plan,
    /// Name of a strategy.
    Strategy,
    /// `options.strategy` of a configuration.
    Options,
    /// Option to sign, which git hands on as it is.
    Signing,
    /// Options of `git apply`.
    Applying,
}

impl PlanKind {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let folder = path.parent()?.file_name().and_then(OsStr::to_str)?;
        Some(match (folder, name) {
            ("rebase-merge", "git-rebase-todo") => Self::Plan,
            ("rebase-merge" | "rebase-apply", "strategy") => Self::Strategy,
            ("rebase-merge" | "rebase-apply", "gpg_sign_opt") => Self::Signing,
            ("rebase-apply", "apply-opt") => Self::Applying,
            ("sequencer", "opts") => Self::Options,
            _ => return None,
        })
    }

    fn programs(self, path: &Path, text: &[u8]) -> BTreeSet<Vec<u8>> {
        let line = text.strip_suffix(b"\n").unwrap_or(text);
        let is_foreign = |strategy: &[u8]| !strategy.is_empty() && !STRATEGIES.contains(&strategy);
        match self {
            Self::Plan => {
                let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
                lines.filter(|line| runs(line)).map(<[u8]>::to_vec).collect()
            }
            Self::Strategy => {
                [line].into_iter().filter(|line| is_foreign(line)).map(<[u8]>::to_vec).collect()
            }
            Self::Options => {
                let options = git_settings(path).into_iter();
                let strategies = options.filter(|it| it.section == "options" && it.key == "strategy");
                strategies.map(|it| it.value).filter(|value| is_foreign(value)).collect()
            }
            Self::Signing => {
                let is_known =
                    |line: &&[u8]| line.is_empty() || line.starts_with(b"-S") || *line == b"--no-gpg-sign";
                [line].into_iter().filter(|line| !is_known(line)).map(<[u8]>::to_vec).collect()
            }
            Self::Applying => {
                let words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
                let is_known = |word: &&[u8]| OF_APPLY.iter().any(|option| word.starts_with(option));
                words.filter(|word| !is_known(word)).map(<[u8]>::to_vec).collect()
            }
        }
    }
}

/// Whether a line without blanks around it names a program.
fn runs(line: &[u8]) -> bool {
    let word = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    matches!(word, b"exec" | b"x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_runs_a_program_is_told_from_others() {
        for line in ["exec make", "x make", "exec\tmake", "x\tmake", "exec"] {
            assert!(runs(line.as_bytes()), "{line}");
        }
        for line in ["", "pick 1 exec", "# exec make", "execute", "break", "xx make"] {
            assert!(!runs(line.as_bytes()), "{line}");
        }
    }
    #[test]
    fn strategies_and_options_that_git_does_not_write_are_told_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let counts = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            let mut plans = RebasePlans::default();
            plans.add(path);
            plans != RebasePlans::default()
        };
        for (name, harmless, running) in [
            ("rebase-merge/strategy", "ort\n", "x/../evil\n"),
            ("rebase-apply/strategy", "octopus", "theirs"),
            ("rebase-merge/strategy", "", " ort\n"),
            (
                "sequencer/opts",
                "[options]\n\tstrategy = ort\n\tedit = true\n",
                "[options]\n\tstrategy = x/../evil\n",
            ),
            ("sequencer/opts", "[options]\n\tmainline = 1\n", "[OPTIONS]\nStrategy=\"x/../evil\" ; ort\n"),
            ("sequencer/opts", "", "[options] strategy = evil\n\tstrategy = ort\n"),
            ("rebase-merge/gpg_sign_opt", "-Skey\n", "--exec=evil\n"),
            (
                "rebase-apply/apply-opt",
                "'-p1' '--whitespace=fix'\n",
                "'-p1' '--build-fake-ancestor=../../x'\n",
            ),
            ("rebase-apply/apply-opt", "", "--build-fake-ancestor=../../x"),
            ("rebase-merge/git-rebase-todo", "pick 1 one\n", "exec evil\n"),
        ] {
            assert!(!counts(name, harmless), "{name}: {harmless}");
            assert!(counts(name, running), "{name}: {running}");
        }
        for name in ["strategy", "opts", "sequencer/strategy", "rebase-merge/opts"] {
            assert!(!counts(name, "evil\n"), "{name}");
        }
    }
}
