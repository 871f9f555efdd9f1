//! What git ignores beneath a root, as the ignore files on the way say.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use workspace::{GitIdentity, ReadRules, RelativePath, Root};

/// Bytes of a `.gitignore` that is read.
const IGNORE_BYTES: u64 = 1 << 20;

/// The ignore files above the folder a walk stands in, the nearest last.
pub(crate) struct Ignores<'r> {
    root: &'r Root,
    files: Vec<Gitignore>,
    /// Ignore files outside of the root that hold for it, for absolute paths: the owner's own, and those of a larger
    /// repository, its top first.
    around: Vec<Gitignore>,
    /// Whether nothing is ignored.
    is_off: bool,
}

impl<'r> Ignores<'r> {
    /// Nothing is ignored.
    pub(crate) const fn none(root: &'r Root) -> Self {
        Self { root, files: Vec::new(), around: Vec::new(), is_off: true }
    }

    /// The ignore files of the folders above one.
    pub(crate) fn above(root: &'r Root, folder: &Path) -> Self {
        let mut ignores = Self { root, files: Vec::new(), around: around(root.path()), is_off: false };
        let mut above: Vec<PathBuf> = folder.ancestors().skip(1).map(Path::to_owned).collect();
        above.reverse();
        above.iter().for_each(|folder| ignores.enter(folder));
        ignores
    }

    /// How many there are: what a walk that leaves a folder goes back to.
    pub(crate) const fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.files.truncate(len);
    }

    /// Takes in the ignore file of a folder, if it has one.
    pub(crate) fn enter(&mut self, folder: &Path) {
        if self.is_off {
            return;
        }
        // Git's own file of a repository counts as far as its root does.
        let names: &[&str] = if folder.join(".git") == Path::new(".git") {
            &[".git/info/exclude", ".gitignore"]
        } else {
            &[".gitignore"]
        };
        let mut builder = GitignoreBuilder::new(folder);
        let mut is_there = false;
        for name in names {
            let Ok(path) = RelativePath::parse(&shown(&folder.join(name))) else { continue };
            let Ok(read) = self.root.read(&path, &ReadRules::at_most(IGNORE_BYTES)) else { continue };
            is_there = true;
            add_lines(&mut builder, &read.bytes);
        }
        self.files.extend(is_there.then(|| builder.build().ok()).flatten());
    }

    pub(crate) fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        // The nearest file that says something decides.
        let said =
            self.files.iter().rev().map(|file| file.matched(path, is_folder)).find(|said| !said.is_none());
        if let Some(said) = said {
            return said.is_ignore();
        }
        if self.around.is_empty() {
            return false;
        }
        let path = self.root.path().join(path);
        let mut said = self.around.iter().rev().map(|file| file.matched(&path, is_folder));
        said.find(|said| !said.is_none()).is_some_and(|said| said.is_ignore())
    }
}

/// The ignore files that hold for a folder and stand outside of it.
fn around(folder: &Path) -> Vec<Gitignore> {
    let has_git = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    let Some(top) = folder.ancestors().find(has_git) else { return Vec::new() };
    let mut found = Vec::new();
    let mut add = |folder: &Path, bytes: &[u8]| {
        if !bytes.is_empty() {
            let mut builder = GitignoreBuilder::new(folder);
            add_lines(&mut builder, bytes);
            found.extend(builder.build().ok());
        }
    };
    if let Some(home) = std::env::home_dir() {
        add(top, &GitIdentity::of_owner(&home, folder).excludes(&home));
    }
    let mut above: Vec<&Path> =
        folder.ancestors().skip(1).take_while(|above| above.starts_with(top)).collect();
    above.reverse();
    if !above.is_empty() {
        add(top, &read(&top.join(".git/info/exclude")));
    }
    for folder in above {
        add(folder, &read(&folder.join(".gitignore")));
    }
    found
}

/// The bytes of an ignore file; none of what is no file, too large or not there.
fn read(path: &Path) -> Vec<u8> {
    let is_read = path.metadata().is_ok_and(|found| found.is_file() && found.len() <= IGNORE_BYTES);
    if is_read { std::fs::read(path).unwrap_or_default() } else { Vec::new() }
}

fn add_lines(builder: &mut GitignoreBuilder, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        // A line that git would not understand says nothing.
        builder.add_line(None, &literal_braces(line)).ok();
    }
}

/// A line in which braces are no alternatives: git knows none.
fn literal_braces(line: &str) -> String {
    let mut out = String::new();
    let mut is_escaped = false;
    for c in line.chars() {
        if matches!(c, '{' | '}') && !is_escaped {
            out.push('\\');
        }
        is_escaped = c == '\\' && !is_escaped;
        out.push(c);
    }
    out
}

/// A path beneath the root as text; a `~` it begins with is a letter of a name.
pub(crate) fn shown(path: &Path) -> String {
    format!("./{}", path.to_string_lossy())
}
