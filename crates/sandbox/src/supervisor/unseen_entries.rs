//! Covers in the tree of a larger repository, which git is not to take for new files.
//!
//! Where a file is covered, an empty one stands: `git add -A` would take it for the owner's, and a later checkout would write it
//! over what really lies there. So git is told to pass over the covered entries, in this repository alone. Nothing is guarded by
//! that: a command that asks for it can still name one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use workspace::GitWorkingTree;

use crate::request::RootFile;

/// Variable of the environment in which git reads how many settings follow.
const COUNT: &str = "GIT_CONFIG_COUNT";

/// What git does not have of a tree, or not as it stands.
pub(super) struct UnseenEntries {
    /// Entries over which covers stand.
    pub(super) covered: Vec<PathBuf>,
    /// Links, which are seen as links.
    pub(super) links: Vec<PathBuf>,
}

impl UnseenEntries {
    /// Has git pass over them, by settings that an environment names.
    pub(super) fn exclude(
        &self,
        environment: &mut BTreeMap<String, String>,
        files: &mut Vec<RootFile>,
        working: &GitWorkingTree,
    ) {
        let below = |path: &PathBuf| path.strip_prefix(&working.tree).ok().map(pattern);
        let patterns: String = self.covered.iter().chain(&self.links).filter_map(below).collect();
        let own_folder = working.index.parent().and_then(Path::to_str);
        let Some(folder) = own_folder.filter(|_| !patterns.is_empty()) else { return };
        let (settings, excludes) =
            (format!(".git-{}", files.len()), format!(".git-excludes-{}", files.len()));
        let number = environment.get(COUNT).and_then(|count| count.parse::<u32>().ok()).unwrap_or(0);
        environment.insert(COUNT.to_owned(), (number + 1).to_string());
        let condition = format!("includeIf.gitdir:{}.path", literally(folder.as_bytes()));
        environment.insert(format!("GIT_CONFIG_KEY_{number}"), condition);
        environment.insert(format!("GIT_CONFIG_VALUE_{number}"), format!("/{settings}"));
        files.push(RootFile { name: settings, text: format!("[core]\n\texcludesFile = /{excludes}\n") });
        files.push(RootFile { name: excludes, text: patterns });
    }
}

/// The line that excludes one path below the top of a tree.
fn pattern(path: &Path) -> String {
    format!("/{}\n", literally(path.as_os_str().as_bytes()))
}

/// A pattern that stands for these bytes; for those that no line can hold, for any.
fn literally(bytes: &[u8]) -> String {
    let mut written = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => written.push('?'),
                '\\' | '*' | '?' | '[' | ' ' => {
                    let _ = write!(written, "\\{c}");
                }
                c => written.push(c),
            }
        }
        chunk.invalid().iter().for_each(|_| written.push('?'));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covered_entries_are_excluded_by_what_they_are_called() {
        let working =
            GitWorkingTree { tree: "/r".into(), git_folder: "/r/.git".into(), index: "/r/.git/index".into() };
        let (mut environment, mut files) = (BTreeMap::new(), Vec::new());
        environment.insert(COUNT.to_owned(), "1".to_owned());
        let unseen = UnseenEntries { covered: vec!["/r/a b*".into()], links: vec!["/r/x/\n".into()] };
        unseen.exclude(&mut environment, &mut files, &working);
        let said = |name: &str| environment.get(name).map(String::as_str);
        assert_eq!(said(COUNT), Some("2"));
        assert_eq!(said("GIT_CONFIG_KEY_1"), Some("includeIf.gitdir:/r/.git.path"));
        assert_eq!(said("GIT_CONFIG_VALUE_1"), Some("/.git-0"));
        assert_eq!(files[1].text, "/a\\ b\\*\n/x/?\n");
    }
}
