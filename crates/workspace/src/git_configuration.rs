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
/// Bytes of a file that names a folder.
const LONGEST: u64 = 1 << 16;
/// Links on a way, as the kernel follows them (path_resolution(7)).
const LINKS: usize = 40;
/// Files that include one another, at most: git reads no more.
const INCLUDES: usize = 10;

/// A setting.
#[derive(Debug, PartialEq, Eq)]
pub struct GitSetting {
    /// In lower case, without its subsection.
    pub section: String,
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
        let file = read_beginning(&entry.join("gitdir"), LONGEST).unwrap_or_default();
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
fn reached_by_links(path: &Path) -> (PathBuf, Vec<PathBuf>) {
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
    let mut section = String::new();
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
                found.push((GitSetting { section: section.clone(), key, value }, has_value));
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

    /// Name of a section, behind its bracket. A key may follow in the same line.
    fn section(&mut self) -> Option<String> {
        let mut name = String::new();
        loop {
            match self.next()? {
                b']' => break,
                byte if is_blank(byte) => {
                    self.subsection(byte)?;
                    break;
                }
                byte => name.push(byte.to_ascii_lowercase().into()),
            }
        }
        // Also of the older spelling, with a dot.
        Some(name.split('.').next().unwrap_or_default().to_owned())
    }

    fn subsection(&mut self, mut byte: u8) -> Option<()> {
        while is_blank(byte) && byte != b'\n' {
            byte = self.next()?;
        }
        if byte != b'"' {
            return None;
        }
        loop {
            match self.next()? {
                b'"' => break,
                b'\n' => return None,
                b'\\' if self.next()? == b'\n' => return None,
                _ => {}
            }
        }
        (self.next()? == b']').then_some(())
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
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Vec<(String, String, String)> {
        let value = |setting: GitSetting| {
            (setting.section, setting.key, String::from_utf8_lossy(&setting.value).into_owned())
        };
        let with_value = settings(text).0.into_iter().filter(|(_, has_value)| *has_value);
        with_value.map(|(setting, _)| value(setting)).collect()
    }

    fn value(text: &str) -> String {
        let [(section, key, value)] = &read(format!("[core]\n\thooksPath = {text}\n").as_bytes())[..] else {
            panic!("{text}")
        };
        assert_eq!((section.as_str(), key.as_str()), ("core", "hookspath"));
        value.clone()
    }

    #[test]
    fn links_to_the_own_folder_name_no_file_again_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<char> = ('a'..='j').collect();
        for name in &names {
            std::os::unix::fs::symlink(".", folder.path().join(name.to_string())).unwrap();
        }
        let includes: String = names.iter().map(|name| format!("path = {name}/config\n")).collect();
        let config = folder.path().join("config");
        fs::write(&config, format!("[include]\n{includes}")).unwrap();
        let named = named_by_git(&config, &[], None);
        assert!((1..100).contains(&named.len()), "{}", named.len());
    }

    #[test]
    fn a_value_is_what_git_takes_for_it() {
        for (text, expected) in [
            (".githooks", ".githooks"),
            (".githooks # ours", ".githooks"),
            (".githooks ; ours", ".githooks"),
            ("\\\n  .githooks", ".githooks"),
            ("\"a # b\" # c", "a # b"),
            (".githooks;ours", ".githooks"),
            ("\".githooks\"", ".githooks"),
            ("\"./git\"hooks2", "./githooks2"),
            ("a\"b # c\"d\\\"", "ab # cd\""),
            ("./a\\\nb # c", "./ab"),
            ("a  b \t ", "a  b"),
            ("\"a \" ", "a "),
            ("\\\\a\\tb", "\\a\tb"),
            ("a = b", "a = b"),
            ("", ""),
        ] {
            assert_eq!(value(text), expected, "{text}");
            assert_eq!(value(&format!("{text}\r")), expected, "{text}, with the line end of Windows");
        }
    }

    #[test]
    fn sections_and_keys_are_read_in_each_of_their_forms() {
        let text =
            b"\xef\xbb\xbf[Core]HooksPath=a\n# [other]\n[includeIf \"gitdir:\\\"]/\"] path = b\n; x = y\n\
            [include.old]\npath = c\n[core] ; behind\n  bare\n\tworktree\t=\td\n[a \"b\"]\nc=\"e";
        let found = read(text);
        let expected = [
            ("core", "hookspath", "a"),
            ("includeif", "path", "b"),
            ("include", "path", "c"),
            ("core", "worktree", "d"),
            ("a", "c", "e"),
        ];
        let expected = expected.map(|(section, key, value)| (section.into(), key.into(), value.into()));
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_malformed_hides_nothing_behind_it_and_what_was_read_of_it_counts() {
        let found = read(b"[core\n]\nx y = z\n9 = 1\na = \\q\n[include]\npath = \"x\nPATH = y");
        let expected = [("", "a", "q"), ("include", "path", "x"), ("include", "path", "y")];
        let expected = expected.map(|(section, key, value)| (section.into(), key.into(), value.into()));
        assert_eq!(found, expected);
        assert_eq!(settings(b"[include]\npath = a\xff").0[0].0.value, b"a\xff");
    }

    #[test]
    fn what_git_would_refuse_is_not_whole() {
        for text in ["", "# a\n[a \"b\"]\n\tc\n\td = \"e\" f\\\\ ; g\n", "[a]\r\nb = c\\\r\nd\r\n[e.f] g = h"]
        {
            assert!(GitConfiguration::parse(text.as_bytes()).is_whole, "{text}");
        }
        for text in ["[a\n", "9 = 1\n", "[a]\nb c = d\n", "[a]\nb = \"c\n", "[a]\nb = \\q\n", "[a]\nb = \\"] {
            assert!(!GitConfiguration::parse(text.as_bytes()).is_whole, "{text}");
        }
    }

    fn places_of(named: BTreeSet<(PathBuf, Vec<PathBuf>)>) -> BTreeSet<PathBuf> {
        named.into_iter().map(|(place, _)| place).collect()
    }

    #[test]
    fn hooks_and_included_files_are_named_also_where_they_are_not_there_yet() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("w/.git")).unwrap();
        std::os::unix::fs::symlink("w/away", top.join("link")).unwrap();
        let config = top.join("w/.git/config");
        fs::write(&config, "[core] hooksPath = .githooks\n[includeIf \"gitdir:x\"] path = ../team.cfg ; y\n")
            .unwrap();
        fs::write(top.join("w/team.cfg"), "[include]\npath = ../link\n").unwrap();
        let named = named_by_git(&config, &[top.join("w")], None);
        assert!(named.contains(&(top.join("w/away"), vec![top.join("link")])), "{named:?}");
        assert_eq!(
            places_of(named),
            [top.join("w/.githooks"), top.join("w/away"), top.join("w/team.cfg")].into()
        );
        fs::write(&config, "[core] hooksPath = ~/w/hooks\n").unwrap();
        assert_eq!(places_of(named_by_git(&config, &[], Some(&top))), [top.join("w/hooks")].into());
    }

    #[test]
    fn a_chain_of_links_is_followed_as_far_as_the_kernel_does_and_costs_no_more() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for link in 1..60 {
            symlink(format!("l{}/../l{}", link + 1, link + 1), path(&format!("l{link}"))).unwrap();
            symlink(format!("s{}", link + 1), path(&format!("s{link}"))).unwrap();
        }
        symlink("missing", path("l60")).unwrap();
        assert_eq!(reached(&path("l1")), path("l1"));
        assert_eq!(reached(&path("s20/x")), path("s60/x"));
        assert_eq!(reached(&path("s19/x")), path("s19/x"));
        fs::create_dir(path("s60")).unwrap();
        assert_eq!(path("s20/.").canonicalize().unwrap(), path("s60"));
        assert!(path("s19/.").canonicalize().is_err());
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
        let trees = git_working_trees(&git);
        let tree = |tree: &str, index: &str| {
            let git_folder = if tree == "main/sub" { git.join("modules/sub") } else { git.clone() };
            GitWorkingTree { tree: path(tree), git_folder, index: path(index) }
        };
        assert_eq!(trees, [tree("main", "main/.git/index"), tree("tree", "main/.git/worktrees/tree/index")]);
        let places: Vec<PathBuf> = trees.into_iter().map(|tree| tree.tree).collect();
        let named = named_by_git(&git.join("config"), &places, None);
        assert_eq!(places_of(named), [git.join("more"), path("main/hooks"), path("tree/hooks")].into());
        let module = git.join("modules/sub");
        fs::write(module.join("config"), "[core]\n\tworktree = ../../../sub\n\thooksPath = hooks\n").unwrap();
        assert_eq!(git_working_trees(&module), [tree("main/sub", "main/.git/modules/sub/index")]);
        let named = named_by_git(&module.join("config"), &[path("main/sub")], None);
        assert_eq!(places_of(named), [path("main/sub/hooks")].into());
    }
}
