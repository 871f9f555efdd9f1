//! Configuration of git, read as git reads it (git-config(1), *Syntax*), and what it names to be run or to be read.
//!
//! What is read here decides what is protected, so that a comment behind a value, a part of it in quotes and a line that goes
//! on in the next one must not hide where hooks lie. Git refuses a file with an error in it; here the rest of the line is
//! passed over, and what was read of the value so far counts: whoever mends the line could mean that.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::iter::Peekable;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::slice::Iter;

use crate::argument::read_beginning;

/// Bytes of a configuration that are read; one for a thousand remotes has a few hundred thousand.
const LARGEST: u64 = 16 << 20;
/// Bytes that are read of a file of git's that names a folder or a program; git takes no longer `.git`.
pub const GIT_FILE_BYTES: u64 = 1 << 20;
/// Links on a way, as the kernel follows them (path_resolution(7)).
const LINKS: usize = 40;
/// Files that include one another, at most: git reads no more.
const INCLUDES: usize = 10;

/// A setting.
#[derive(Debug, PartialEq, Eq)]
pub struct GitSetting {
    /// In lower case, without its subsection.
    pub section: String,
    /// Of a section that has one, in either form.
    pub subsection: Option<Vec<u8>>,
    /// In lower case.
    pub key: String,
    /// Without quotes, escapes and comments; empty of one without a value. Bytes of a path may be no text.
    pub value: Vec<u8>,
}

impl GitSetting {
    fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.value))
    }
}

/// What a configuration says.
#[derive(Debug, PartialEq, Eq)]
pub struct GitConfiguration {
    /// All settings in order, also those without a value.
    pub settings: Vec<GitSetting>,
    /// Whether there is nothing in it that git would refuse.
    pub is_whole: bool,
}

impl GitConfiguration {
    pub fn parse(text: &[u8]) -> Self {
        let (settings, is_whole) = settings(text);
        Self { settings: settings.into_iter().map(|(setting, _)| setting).collect(), is_whole }
    }
}

/// Settings of a file that have a value, in order; none if it cannot be read.
pub fn git_settings(file: &Path) -> Vec<GitSetting> {
    let (settings, _) = settings(&read_beginning(file, LARGEST).unwrap_or_default());
    settings.into_iter().filter(|(_, has_value)| *has_value).map(|(setting, _)| setting).collect()
}

/// Files and folders that a configuration names as hooks or to be read as configuration, also by way of those that it
/// names: paths that need not exist, without links, each with the links on a way to it. Hooks are looked for from each of the
/// `places` where they may run: working trees, and the git folder. `~/` is what git takes for the home of the user.
pub fn named_by_git(
    config: &Path,
    places: &[PathBuf],
    home: Option<&Path>,
) -> BTreeSet<(PathBuf, Vec<PathBuf>)> {
    let mut named = BTreeSet::new();
    // A file counts once for each folder from which its own names are looked for.
    let mut read = BTreeSet::new();
    let mut files = vec![config.to_owned()];
    for _ in 0..INCLUDES {
        let mut included = Vec::new();
        for file in files {
            // From the folder in which the file was named, also where it is a link.
            let folder: Vec<PathBuf> = file.parent().map(Path::to_owned).into_iter().collect();
            for setting in git_settings(&file).iter().filter(|setting| !setting.value.is_empty()) {
                let (places, is_included) = match (setting.section.as_str(), setting.key.as_str()) {
                    ("core", "hookspath") => (places, false),
                    ("include" | "includeif", "path") => (folder.as_slice(), true),
                    _ => continue,
                };
                let path = setting.path();
                let of_home = home.zip(path.strip_prefix("~").ok()).map(|(home, path)| home.join(path));
                for path in places.iter().map(|place| place.join(path)).chain(of_home) {
                    let (target, links) = reached_by_links(&path);
                    if is_included && read.insert((target.clone(), path.parent().map(reached))) {
                        included.push(path);
                    }
                    named.insert((target, links));
                }
            }
        }
        files = included;
    }
    named
}

/// Working tree of a git folder, and the index that git keeps of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitWorkingTree {
    /// Where it stands, or stood: it need not be there.
    pub tree: PathBuf,
    /// Git folder that is common to it and other ones.
    pub git_folder: PathBuf,
    pub index: PathBuf,
}

/// Working trees of a git folder: its own, or the one that its configuration names (of a submodule), and linked ones.
pub fn git_working_trees(folder: &Path) -> Vec<GitWorkingTree> {
    let settings = git_settings(&folder.join("config"));
    let named = settings.iter().rfind(|setting| setting.section == "core" && setting.key == "worktree");
    let own = || folder.parent().filter(|_| folder.ends_with(".git")).map(Path::to_owned);
    let tree = named.map(|setting| reached(&folder.join(setting.path()))).or_else(own);
    let working = |tree, index| GitWorkingTree { tree, git_folder: folder.to_owned(), index };
    let mut trees: Vec<GitWorkingTree> = Vec::new();
    trees.extend(tree.map(|tree| working(tree, folder.join("index"))));
    for entry in fs::read_dir(folder.join("worktrees")).into_iter().flatten().flatten() {
        let entry = entry.path();
        let file = read_beginning(&entry.join("gitdir"), GIT_FILE_BYTES).unwrap_or_default();
        // Absolute, or from the folder that it lies in.
        let file = entry.join(OsStr::from_bytes(file.trim_ascii_end()));
        trees.extend(file.parent().map(|tree| working(reached(tree), entry.join("index"))));
    }
    trees
}

/// Where a path leads, as the kernel knows it, also where there is nothing yet: then what is missing would stand there. A path
/// by more links than the kernel follows leads nowhere, and is given as it is.
pub fn reached(path: &Path) -> PathBuf {
    reached_by_links(path).0
}

/// Where a path leads, and the links on the way, in order.
pub fn reached_by_links(path: &Path) -> (PathBuf, Vec<PathBuf>) {
    use std::path::Component::{CurDir, Normal, ParentDir, Prefix, RootDir};
    let mut links = Vec::new();
    let mut at = PathBuf::new();
    let mut rest: Vec<PathBuf> = components(path);
    while let Some(next) = rest.pop() {
        match next.components().next() {
            None | Some(CurDir) => {}
            Some(RootDir | Prefix(_)) => at = next,
            Some(ParentDir) => _ = at.pop(),
            Some(Normal(_)) => {
                let next = at.join(next);
                // A link to what is not there, too: who writes there makes what it names.
                match next.read_link() {
                    Ok(_) if links.len() == LINKS => return (path.to_owned(), links),
                    Ok(target) => {
                        links.push(next);
                        rest.extend(components(&target));
                    }
                    Err(_) => at = next,
                }
            }
        }
    }
    (at, links)
}

/// Components of a path, the last one first.
fn components(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|component| PathBuf::from(component.as_os_str())).collect()
}

/// Settings, each with whether it has a value, and whether nothing was malformed.
fn settings(text: &[u8]) -> (Vec<(GitSetting, bool)>, bool) {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = Reader { bytes: text.iter().peekable(), last: 0, is_whole: true };
    let mut found = Vec::new();
    let mut section = (String::new(), None);
    while let Some(byte) = reader.next() {
        match byte {
            b'#' | b';' => reader.end_of_line(),
            b'[' => match reader.section() {
                Some(name) => section = name,
                None => reader.malformed(),
            },
            _ if byte.is_ascii_alphabetic() => {
                let (key, value) = reader.setting(byte);
                let has_value = value.is_some();
                let value = value.unwrap_or_default();
                let (section, subsection) = section.clone();
                found.push((GitSetting { section, subsection, key, value }, has_value));
            }
            _ if is_blank(byte) => {}
            _ => reader.malformed(),
        }
    }
    (found, reader.is_whole)
}

/// What git takes for a blank.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

struct Reader<'a> {
    bytes: Peekable<Iter<'a, u8>>,
    last: u8,
    is_whole: bool,
}

impl Reader<'_> {
    /// The next byte, with line ends of Windows as those of Unix.
    fn next(&mut self) -> Option<u8> {
        self.last = *self.bytes.next()?;
        if self.last == b'\r' && self.bytes.peek() == Some(&&b'\n') {
            self.bytes.next();
            self.last = b'\n';
        }
        Some(self.last)
    }

    /// Reads the line to its end, unless it was.
    fn end_of_line(&mut self) {
        while self.last != b'\n' && self.next().is_some() {}
    }

    /// Passes over the rest of a line that git would refuse.
    fn malformed(&mut self) {
        self.is_whole = false;
        self.end_of_line();
    }

    /// Name of a section and its subsection, behind its bracket. A key may follow in the same line.
    fn section(&mut self) -> Option<(String, Option<Vec<u8>>)> {
        let mut name = String::new();
        let quoted = loop {
            match self.next()? {
                b']' => break None,
                byte if is_blank(byte) => break Some(self.subsection(byte)?),
                byte => name.push(byte.to_ascii_lowercase().into()),
            }
        };
        // The older spelling has a dot.
        Some(match name.split_once('.') {
            Some((name, dotted)) => (name.to_owned(), quoted.or(Some(dotted.into()))),
            None => (name, quoted),
        })
    }

    fn subsection(&mut self, mut byte: u8) -> Option<Vec<u8>> {
        while is_blank(byte) && byte != b'\n' {
            byte = self.next()?;
        }
        if byte != b'"' {
            return None;
        }
        let mut name = Vec::new();
        loop {
            match self.next()? {
                b'"' => break,
                b'\n' => return None,
                b'\\' => match self.next()? {
                    b'\n' => return None,
                    escaped => name.push(escaped),
                },
                byte => name.push(byte),
            }
        }
        (self.next()? == b']').then_some(name)
    }

    /// Key and value, if it has one, behind the first letter of the key.
    fn setting(&mut self, first: u8) -> (String, Option<Vec<u8>>) {
        let mut key = String::from(char::from(first.to_ascii_lowercase()));
        let mut byte = self.next();
        while let Some(letter) = byte.filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'-') {
            key.push(letter.to_ascii_lowercase().into());
            byte = self.next();
        }
        while matches!(byte, Some(b' ' | b'\t')) {
            byte = self.next();
        }
        match byte {
            Some(b'=') => return (key, Some(self.value())),
            None | Some(b'\n') => {}
            Some(_) => self.malformed(),
        }
        (key, None)
    }

    fn value(&mut self) -> Vec<u8> {
        let mut value = Vec::new();
        let mut is_quoted = false;
        // Length without the blanks at its end.
        let mut length = 0;
        loop {
            match self.next() {
                None | Some(b'\n') => {
                    self.is_whole &= !is_quoted;
                    break;
                }
                Some(b'#' | b';') if !is_quoted => {
                    self.end_of_line();
                    break;
                }
                Some(blank) if is_blank(blank) && !is_quoted => {
                    if !value.is_empty() {
                        value.push(blank);
                    }
                    continue;
                }
                Some(b'"') => is_quoted = !is_quoted,
                Some(b'\\') => match self.next() {
                    Some(b'\n') => continue,
                    Some(b't') => value.push(b'\t'),
                    Some(b'b') => value.push(8),
                    Some(b'n') => value.push(b'\n'),
                    Some(byte) => {
                        self.is_whole &= matches!(byte, b'"' | b'\\');
                        value.push(byte);
                    }
                    None => {
                        self.is_whole = false;
                        break;
                    }
                },
                Some(byte) => value.push(byte),
            }
            length = value.len();
        }
        value.truncate(length);
        value
    }
}

#[cfg(test)]
mod tests;
