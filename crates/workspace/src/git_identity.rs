//! Identity of the owner in commits, for the git of their commands (git-config(1)): `user.name` and `user.email` and nothing
//! else, as whatever else a configuration has may run programs.

use std::cell::Cell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::argument::read_beginning;
use crate::git_configuration::{GitConfiguration, GitSetting, git_settings, reached};
use crate::small_file::replace_small_file;

/// Files that include one another, at most: git reads no more.
const INCLUDES: usize = 10;
/// Files that are read at most, and bytes of all of them, or of one in a `HOME` of commands.
const FILES: usize = 100;
const LARGEST: u64 = 1 << 20;
/// The beginning of what is written.
const WRITTEN: &str = "# As the owner's own configuration has it.\n";
/// Bytes of a value that is taken.
const LONGEST: usize = 1_000;

/// Who commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitIdentity {
    pub name: Option<String>,
    pub email: Option<String>,
}

impl GitIdentity {
    /// What the owner's own configuration says for a repository in `folder`: that of `home`, with what it includes. Of
    /// `includeIf` those conditions are judged that name a git folder without wildcards; where another one decides who
    /// commits, nobody does. A value with controls in it is none.
    pub fn of_owner(home: &Path, folder: &Path) -> Self {
        let mut identity = Self::default();
        let (folder, git_folder) = (reached(folder), reached(&folder.join(".git")));
        let around = Surroundings {
            home,
            folder: &folder,
            git_folder: &git_folder,
            bytes: Cell::new(LARGEST),
            files: Cell::new(FILES),
            is_unsure: Cell::new(false),
        };
        // The later one counts.
        for file in [".config/git/config", ".gitconfig"] {
            identity.read(&home.join(file), &around, INCLUDES);
        }
        if around.is_unsure.get() { Self::default() } else { identity }
    }

    fn read(&mut self, file: &Path, around: &Surroundings<'_>, includes: usize) {
        let size = std::fs::metadata(file).map_or(0, |found| found.len());
        if around.files.get() == 0 || around.bytes.get() < size {
            around.is_unsure.set(true);
            return;
        }
        around.files.update(|files| files - 1);
        around.bytes.update(|bytes| bytes - size);
        for setting in git_settings(file) {
            let GitSetting { section, subsection, key, value } = &setting;
            match (section.as_str(), subsection, key.as_str()) {
                ("user", None, "name") => self.name = usable(value),
                ("user", None, "email") => self.email = usable(value),
                ("include", None, "path") if includes > 0 => {
                    self.read(&around.named(value, file), around, includes - 1);
                }
                ("includeif", Some(condition), "path") if includes > 0 => {
                    let included = around.named(value, file);
                    match around.meets(condition, file) {
                        Some(true) => self.read(&included, around, includes - 1),
                        Some(false) => {}
                        None => {
                            let mut other = self.clone();
                            other.read(&included, around, includes - 1);
                            around.is_unsure.set(around.is_unsure.get() || other != *self);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Writes it as the configuration of a `HOME` of commands, below that of any repository. One that says more than who
    /// commits is left as it is. Where nobody commits, what was written before is removed.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn write_to(&self, home: &Path) -> io::Result<()> {
        let text = self.configuration();
        let path = home.join(".gitconfig");
        // What is no file was made by a command, and would keep git from beginning.
        match std::fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => std::fs::remove_dir_all(&path)?,
            Ok(found) if !found.is_file() => std::fs::remove_file(&path)?,
            _ => {}
        }
        match read_beginning(&path, LARGEST) {
            Ok(found) if found == text.as_bytes() || !says_only_who(&found) => return Ok(()),
            Ok(found) if text.is_empty() => {
                let is_ours = found.starts_with(WRITTEN.as_bytes());
                return if is_ours { std::fs::remove_file(&path) } else { Ok(()) };
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound || text.is_empty() => return Ok(()),
            Ok(_) | Err(_) => {}
        }
        replace_small_file(&path, text.as_bytes())
    }

    fn configuration(&self) -> String {
        let line = |key: &str, value: &String| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            format!("\t{key} = \"{value}\"\n")
        };
        let name = self.name.as_ref().map(|name| line("name", name));
        let email = self.email.as_ref().map(|email| line("email", email));
        let lines: String = name.into_iter().chain(email).collect();
        if lines.is_empty() { lines } else { format!("{WRITTEN}[user]\n{lines}") }
    }
}

struct Surroundings<'a> {
    home: &'a Path,
    folder: &'a Path,
    git_folder: &'a Path,
    /// How many bytes may still be read.
    bytes: Cell<u64>,
    /// How many files may still be read.
    files: Cell<usize>,
    /// Whether something decides who commits that is not known.
    is_unsure: Cell<bool>,
}

impl Surroundings<'_> {
    /// A path that a configuration names, from the folder that it lies in.
    fn named(&self, path: &[u8], file: &Path) -> PathBuf {
        let path = Path::new(OsStr::from_bytes(path));
        match path.strip_prefix("~") {
            Ok(below) => self.home.join(below),
            Err(_) => file.parent().unwrap_or(Path::new("/")).join(path),
        }
    }

    /// Whether a condition holds for the repositories of the folder; none of one that is not judged, or holds for some.
    fn meets(&self, condition: &[u8], file: &Path) -> Option<bool> {
        let pattern = condition.strip_prefix(b"gitdir:")?;
        let is_placed = [&b"~/"[..], b"./", b"/"].iter().any(|start| pattern.starts_with(start));
        if !is_placed || pattern.iter().any(|byte| b"*?[\\".contains(byte)) || self.git_folder.is_file() {
            return None;
        }
        let place = reached(&self.named(pattern, file));
        let holds = match pattern.ends_with(b"/") {
            true => self.folder.starts_with(&place),
            false => self.git_folder == place,
        };
        // One below the folder, or a larger one around it.
        let is_near = place.starts_with(self.folder)
            || (!pattern.ends_with(b"/")
                && place.parent().is_some_and(|around| self.folder.starts_with(around)));
        if holds || !is_near { Some(holds) } else { None }
    }
}

fn usable(value: &[u8]) -> Option<String> {
    let value = std::str::from_utf8(value).ok()?.trim();
    let is_usable = !value.is_empty() && value.len() <= LONGEST && !value.chars().any(char::is_control);
    is_usable.then(|| value.to_owned())
}

fn says_only_who(configuration: &[u8]) -> bool {
    let read = GitConfiguration::parse(configuration);
    read.is_whole
        && read.settings.iter().all(|setting| {
            setting.section == "user"
                && setting.subsection.is_none()
                && ["name", "email"].contains(&setting.key.as_str())
        })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn identity(name: &str, email: &str) -> GitIdentity {
        let value = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        GitIdentity { name: value(name), email: value(email) }
    }

    #[test]
    fn it_is_read_as_git_reads_it_with_what_is_included() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        fs::create_dir_all(home.join(".config/git")).unwrap();
        fs::create_dir_all(home.join("work/a/.git")).unwrap();
        fs::write(home.join(".config/git/config"), "[user]\nname = X\nemail = x@example.org\n").unwrap();
        let config = "[user]\nname = \"Ada \\\"L\\\"\" # me\n[user \"other\"]\nname = No\n[user.old]\nemail = no\n\
                      [core]\nfsmonitor = evil\n[include]\npath = more\n\
                      [includeIf \"gitdir:~/work/\"]\npath = ~/work.cfg\n[includeIf \"onbranch:main\"]\npath = other\n";
        fs::write(home.join(".gitconfig"), config).unwrap();
        fs::write(home.join("more"), "[user]\nemail = ada@example.org\n[include]\npath = more\n").unwrap();
        fs::write(home.join("other"), "[core]\neditor = vi\n").unwrap();
        fs::write(home.join("work.cfg"), "[user]\nemail = ada@work.example\n").unwrap();
        let read = |folder: &str| GitIdentity::of_owner(&home, &home.join(folder));
        assert_eq!(read("elsewhere"), identity("Ada \"L\"", "ada@example.org"));
        assert_eq!(read("work/a"), identity("Ada \"L\"", "ada@work.example"));
        // Its folder of git is not this one.
        fs::create_dir(home.join("linked")).unwrap();
        fs::write(home.join("linked/.git"), "gitdir: ../work/a/.git/worktrees/linked\n").unwrap();
        assert_eq!(read("linked"), GitIdentity::default());
        // A repository below it may be another one's.
        assert_eq!(read(""), GitIdentity::default());
        // What is not judged decides.
        fs::write(home.join("other"), "[user]\nemail = other@example.org\n").unwrap();
        assert_eq!(read("elsewhere"), GitIdentity::default());
    }

    #[test]
    fn a_configuration_that_includes_itself_often_is_read_to_an_end_and_names_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let config = "[user]\nname = Ada\n".to_owned() + &"[include]\npath = .gitconfig\n".repeat(8);
        fs::write(folder.path().join(".gitconfig"), config).unwrap();
        assert_eq!(GitIdentity::of_owner(folder.path(), folder.path()), GitIdentity::default());
    }

    #[test]
    fn what_has_controls_is_no_value_and_without_one_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        fs::write(home.join(".gitconfig"), "[user]\nname = \"a\\nb\"\nemail = \"\x1b[2J\"\n").unwrap();
        assert_eq!(GitIdentity::of_owner(home, home), GitIdentity::default());
        let other = tempfile::tempdir().unwrap();
        GitIdentity::default().write_to(other.path()).unwrap();
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
    }

    #[test]
    fn it_replaces_another_identity_and_no_configuration_that_says_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".gitconfig");
        let ada = identity("Ada \\ \"L\"", "ada@example.org");
        for found in [None, Some(""), Some("[user]\n\temail = you@example.com\n")] {
            if let Some(text) = found {
                fs::write(&path, text).unwrap();
            }
            ada.write_to(folder.path()).unwrap();
            assert_eq!(GitIdentity::of_owner(folder.path(), folder.path()), ada, "{found:?}");
        }
        for found in ["[user]\nname = b\n[init]\ndefaultBranch = main\n", "[user\n"] {
            fs::write(&path, found).unwrap();
            ada.write_to(folder.path()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), found);
        }
    }

    #[test]
    fn where_nobody_commits_only_what_was_written_before_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".gitconfig");
        identity("Ada", "").write_to(folder.path()).unwrap();
        GitIdentity::default().write_to(folder.path()).unwrap();
        assert!(!path.exists());
        fs::write(&path, "[user]\nname = Ada\n").unwrap();
        GitIdentity::default().write_to(folder.path()).unwrap();
        assert!(path.exists());
    }

    #[test]
    fn a_link_in_its_place_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (home, outside) = (folder.path().join("home"), folder.path().join("outside"));
        fs::create_dir(&home).unwrap();
        std::os::unix::fs::symlink(&outside, home.join(".gitconfig")).unwrap();
        identity("Ada", "").write_to(&home).unwrap();
        assert!(!outside.exists());
        fs::write(&outside, "").unwrap();
        identity("Ada", "").write_to(&home).unwrap();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "");
        assert_eq!(GitIdentity::of_owner(&home, &home), identity("Ada", ""));
    }

    #[test]
    fn what_is_no_file_goes_and_a_configuration_that_is_too_large_names_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".gitconfig");
        fs::create_dir_all(path.join("below")).unwrap();
        identity("Ada", "").write_to(folder.path()).unwrap();
        assert_eq!(GitIdentity::of_owner(folder.path(), folder.path()), identity("Ada", ""));
        let large = format!("[user]\nname = Ada\n{}", "# large\n".repeat(1 << 18));
        fs::write(&path, large).unwrap();
        assert_eq!(GitIdentity::of_owner(folder.path(), folder.path()), GitIdentity::default());
    }
}
