//! Plans of rebases that wait to go on, in git folders.
//!
//! A line of a plan may name a program (`exec`), which `git rebase --continue` runs. A command may begin a rebase and leave it to
//! the next one; a program that it adds would run at its owner's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::quarantine::Quarantine;
use crate::root_folders::RootFolders;
use crate::small_file::{LONGEST, read_small_bytes};

/// Name of a plan in its folder.
pub(crate) const PLAN: &str = "git-rebase-todo";

/// Lines that run a program, by the absolute paths of plans.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct RebasePlans(BTreeMap<PathBuf, BTreeSet<Vec<u8>>>);

impl RebasePlans {
    /// Whether a file is a plan.
    pub(crate) fn is_one(path: &Path) -> bool {
        path.ends_with(Path::new("rebase-merge").join(PLAN))
    }

    /// Adds what a plan runs.
    pub(crate) fn add(&mut self, path: PathBuf) {
        let text = read_small_bytes(&path).unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let mut programs: BTreeSet<Vec<u8>> = lines.filter(|line| runs(line)).map(<[u8]>::to_vec).collect();
        // Of one that is longer than what is read, nothing is known.
        if text.len() as u64 >= LONGEST {
            programs.insert(Vec::new());
        }
        if !programs.is_empty() {
            self.0.insert(path, programs);
        }
    }

    /// Moves plans that run more than they did at an earlier look.
    pub(crate) fn take_new(&self, after: &Self, roots: &RootFolders, quarantine: &mut Quarantine) {
        let known = |path: &PathBuf, programs: &BTreeSet<Vec<u8>>| {
            self.0.get(path).is_some_and(|known| programs.is_subset(known))
        };
        for (path, _) in after.0.iter().filter(|(path, programs)| !known(path, programs)) {
            quarantine.take_at(path, roots);
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
}
