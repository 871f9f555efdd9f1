//! What a configuration of git names to be run or to be read as configuration, its text read as git reads it
//! (git-config(1), *Syntax*).

use std::path::{Path, PathBuf};

use crate::argument::read_regular;

/// Bytes of a configuration that is read; one for a thousand remotes has a few hundred thousand.
const LARGEST: u64 = 16 << 20;
/// Files that include one another, at most: git reads no more.
const INCLUDES: usize = 10;

/// One value of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSetting {
    /// Section in lower case, without its subsection.
    pub section: String,
    /// Key in lower case.
    pub key: String,
    /// Value without quotes, escapes and comments; empty where there is none.
    pub value: String,
}

/// Settings of a configuration, in their order. What git refuses is passed over to the end of its line, with what was read
/// of it so far as a value: whoever mends the line could mean that.
pub fn git_settings(text: &str) -> Vec<GitSetting> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut reader = Reader { rest: text.chars().peekable() };
    let (mut section, mut settings) = (String::new(), Vec::new());
    while let Some(first) = reader.rest.next() {
        match first {
            '#' | ';' => reader.skip_line(),
            '[' => section = reader.section(),
            first if first.is_ascii_alphabetic() => {
                let key = reader.key(first);
                let value = reader.value();
                settings.push(GitSetting { section: section.clone(), key, value });
            }
            first if first.is_whitespace() => {}
            _ => reader.skip_line(),
        }
    }
    settings
}

/// Files and folders that a configuration names as hooks or to be read as configuration, also by way of those that it
/// names: paths that need not exist, without links. Hooks are looked for from each of the `places` where they may run:
/// working trees, and the git folder if it is bare.
pub fn named_by_git(config: &Path, places: &[PathBuf]) -> Vec<PathBuf> {
    let mut named = Vec::new();
    let mut files = vec![config.to_owned()];
    for _ in 0..INCLUDES {
        let mut included = Vec::new();
        for file in files {
            for GitSetting { section, key, value } in settings_of(&file) {
                match (section.as_str(), key.as_str()) {
                    ("core", "hookspath") => {
                        named.extend(places.iter().map(|place| reached(&place.join(&value))));
                    }
                    ("include" | "includeif", "path") => {
                        // From the folder in which the file was named, also where it is a link.
                        included.extend(file.parent().map(|folder| folder.join(&value)));
                    }
                    _ => {}
                }
            }
        }
        included.sort_unstable();
        included.dedup();
        included.retain(|file| !named.contains(&reached(file)));
        named.extend(included.iter().map(|file| reached(file)));
        files = included;
    }
    named
}

/// Settings of a file; none of one that cannot be read.
pub(crate) fn settings_of(config: &Path) -> Vec<GitSetting> {
    let bytes = read_regular(config, LARGEST).unwrap_or_default();
    git_settings(&String::from_utf8_lossy(&bytes))
}

/// Where a path leads, as the kernel knows it, also where there is nothing yet: then what is missing would stand there.
pub(crate) fn reached(path: &Path) -> PathBuf {
    reached_within(path, 40)
}

fn reached_within(path: &Path, links: usize) -> PathBuf {
    use std::path::Component::{CurDir, Normal, ParentDir, Prefix, RootDir};
    let mut at = PathBuf::new();
    for component in path.components() {
        match component {
            RootDir | Prefix(_) => at.push(component),
            CurDir => {}
            ParentDir => _ = at.pop(),
            Normal(name) => {
                let next = at.join(name);
                at = match (next.canonicalize(), next.read_link()) {
                    (Ok(there), _) => there,
                    // A link to what is not there: who writes there makes what it names.
                    (Err(_), Ok(target)) if links > 0 => reached_within(&at.join(target), links - 1),
                    (Err(_), _) => next,
                };
            }
        }
    }
    at
}

struct Reader<'t> {
    rest: std::iter::Peekable<std::str::Chars<'t>>,
}

impl Reader<'_> {
    fn skip_line(&mut self) {
        let _read = self.rest.find(|c| *c == '\n');
    }

    /// The name of a section behind its `[`, to its `]`; a line's end ends it too.
    fn section(&mut self) -> String {
        let (mut name, mut is_quoted, mut is_name) = (String::new(), false, true);
        while let Some(c) = self.rest.next() {
            match c {
                '\n' => break,
                '\\' if is_quoted => _ = self.rest.next(),
                '"' => is_quoted = !is_quoted,
                ']' if !is_quoted => break,
                // `[include.x]` is the older way to write a subsection.
                _ if c.is_whitespace() || c == '.' => is_name = false,
                _ if is_name && !is_quoted => name.push(c),
                _ => {}
            }
        }
        name.to_ascii_lowercase()
    }

    fn key(&mut self, first: char) -> String {
        let mut key = String::from(first);
        while let Some(c) = self.rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
            key.push(c);
        }
        key.to_ascii_lowercase()
    }

    /// A value behind its key.
    fn value(&mut self) -> String {
        while self.rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        match self.rest.next() {
            Some('=') => {}
            Some('\n') | None => return String::new(),
            Some(_) => {
                self.skip_line();
                return String::new();
            }
        }
        let (mut value, mut is_quoted) = (String::new(), false);
        // Length without white space at the end that stands in no quotes.
        let mut length = 0;
        while let Some(c) = self.rest.next() {
            match c {
                '\n' => break,
                '#' | ';' if !is_quoted => {
                    self.skip_line();
                    break;
                }
                '"' => {
                    is_quoted = !is_quoted;
                    continue;
                }
                '\\' => match self.rest.next() {
                    Some('\n') => continue,
                    Some('t') => value.push('\t'),
                    Some('n') => value.push('\n'),
                    Some('b') => value.push('\u{8}'),
                    Some(other) => value.push(other),
                    None => {}
                },
                c if c.is_whitespace() && !is_quoted => {
                    if !value.is_empty() {
                        value.push(c);
                    }
                    continue;
                }
                c => value.push(c),
            }
            length = value.len();
        }
        value.truncate(length);
        value
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn hooks(text: &str) -> Vec<String> {
        let settings = git_settings(text).into_iter();
        let hooks = settings
            .filter(|setting| (setting.section.as_str(), setting.key.as_str()) == ("core", "hookspath"));
        hooks.map(|setting| setting.value).collect()
    }

    /// What `git config core.hooksPath` answers to each of these.
    #[test]
    fn a_value_is_read_as_git_reads_it() {
        for (text, value) in [
            ("[core]\n\thooksPath = .githooks\n", ".githooks"),
            ("[core]\n\thooksPath = .githooks # ours\n", ".githooks"),
            ("[core]\n\thooksPath=.githooks;ours\n", ".githooks"),
            ("[core]\n\thooksPath = \".githooks\" ; ours\n", ".githooks"),
            ("[core]\n\thooksPath = \"./git\"hooks2\n", "./githooks2"),
            ("[core]\n\thooksPath = \"a # b\" # c\n", "a # b"),
            ("[core]\n\thooksPath = .git\\\nhooks\n", ".githooks"),
            ("[core]\n\thooksPath = \\\n  .githooks\n", ".githooks"),
            ("[core]\r\n\thooksPath = .githooks\r\n", ".githooks"),
            ("[core]\n\thooksPath = a b  \n", "a b"),
            ("[core]\n\thooksPath = a\\\"b\\\\c\n", "a\"b\\c"),
            ("[CORE]\n\tHOOKSPATH = x\n", "x"),
            ("[core] hooksPath = x", "x"),
            ("[core] # [user]\n hooksPath = x", "x"),
            ("\u{feff}[core]\nhooksPath = x\n", "x"),
        ] {
            assert_eq!(hooks(text), [value], "{text:?}");
        }
        assert_eq!(hooks("[core]\n# hooksPath = x\n[user]\nhooksPath = y\n"), Vec::<String>::new());
        assert_eq!(hooks("[core]\n?\nhooksPath = \"x\n"), ["x"], "what git refuses is read all the same");
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
        let named = named_by_git(&config, &[top.join("w")]);
        assert_eq!(named, [top.join("w/.githooks"), top.join("w/team.cfg"), top.join("w/away")]);
    }
}
