//! What of the owner's configuration goes along to the git of their commands (git-config(1)): who commits, what is ignored, and
//! filters, without which a commit would hold other bytes than the owner's. Nothing else, as it may run programs or
//! lead elsewhere.

use std::cell::Cell;
use std::collections::BTreeMap;
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
/// File of a `HOME` of commands with what the owner's git ignores.
const EXCLUDES: &str = ".gitignore_of_owner";
/// Keys of a filter (gitattributes(5)).
const FILTER_KEYS: [&str; 4] = ["clean", "smudge", "process", "required"];
/// Bytes of a value that is taken.
const LONGEST: usize = 1_000;

/// Who commits, and what git makes of files before it keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitIdentity {
    pub name: Option<String>,
    pub email: Option<String>,
    /// File that says what git ignores in every repository.
    pub excludes_file: Option<PathBuf>,
    /// Filters: name, key and value. What they name is run by git, behind the walls of a command as all that it runs.
    pub filters: BTreeMap<(String, String), String>,
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

    /// What git ignores in every repository of the owner's: the file that is configured, else the one in its usual place.
    /// Nothing where there is none.
    pub fn excludes(&self, home: &Path) -> Vec<u8> {
        let path = self.excludes_file.clone().unwrap_or_else(|| home.join(".config/git/ignore"));
        // A pipe would never end.
        let is_file = std::fs::metadata(&path).is_ok_and(|found| found.is_file());
        if is_file { read_beginning(&path, LARGEST).unwrap_or_default() } else { Vec::new() }
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
                ("core", None, "excludesfile") => {
                    self.excludes_file = usable(value).map(|path| around.named(path.as_bytes(), file));
                }
                ("filter", Some(filter), key) if FILTER_KEYS.contains(&key) => {
                    if let (Some(filter), Some(value)) = (usable(filter), usable(value)) {
                        self.filters.insert((filter, key.to_owned()), value);
                    }
                }
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

    /// Writes it as the configuration of a `HOME` of commands, below that of any repository, with what is ignored. One that
    /// says more than this does is left as it is. Where it says nothing, what was written before is removed.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn write_to(&self, home: &Path, excludes: &[u8]) -> io::Result<()> {
        let of_commands = home.join(EXCLUDES);
        make_way(&of_commands)?;
        match excludes {
            [] => drop(std::fs::remove_file(&of_commands)),
            excludes => replace_small_file(&of_commands, excludes)?,
        }
        let text = self.configuration(!excludes.is_empty());
        let path = home.join(".gitconfig");
        make_way(&path)?;
        match read_beginning(&path, LARGEST) {
            Ok(found) if found == text.as_bytes() || !says_only_this(&found) => return Ok(()),
            Ok(found) if text.is_empty() => {
                let is_ours = found.starts_with(WRITTEN.as_bytes());
                return if is_ours { std::fs::remove_file(&path) } else { Ok(()) };
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound || text.is_empty() => return Ok(()),
            Ok(_) | Err(_) => {}
        }
        replace_small_file(&path, text.as_bytes())
    }

    fn configuration(&self, has_excludes: bool) -> String {
        let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"");
        let line = |key: &str, value: &str| format!("\t{key} = \"{}\"\n", escaped(value));
        let name = self.name.as_ref().map(|name| line("name", name));
        let email = self.email.as_ref().map(|email| line("email", email));
        let lines: String = name.into_iter().chain(email).collect();
        let mut text = if lines.is_empty() { lines } else { format!("[user]\n{lines}") };
        if has_excludes {
            text += &format!("[core]\n{}", line("excludesFile", &format!("~/{EXCLUDES}")));
        }
        for ((filter, key), value) in &self.filters {
            text += &format!("[filter \"{}\"]\n{}", escaped(filter), line(key, value));
        }
        if text.is_empty() { text } else { format!("{WRITTEN}{text}") }
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

/// Removes what is no file: a command made it, and it would keep git from beginning.
fn make_way(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(path),
        Ok(found) if !found.is_file() => std::fs::remove_file(path),
        _ => Ok(()),
    }
}

fn says_only_this(configuration: &[u8]) -> bool {
    let read = GitConfiguration::parse(configuration);
    read.is_whole
        && read.settings.iter().all(|GitSetting { section, subsection, key, .. }| {
            match (section.as_str(), subsection) {
                ("user", None) => ["name", "email"].contains(&key.as_str()),
                ("core", None) => key == "excludesfile",
                ("filter", Some(_)) => FILTER_KEYS.contains(&key.as_str()),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn identity(name: &str, email: &str) -> GitIdentity {
        let value = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        GitIdentity { name: value(name), email: value(email), ..GitIdentity::default() }
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
        GitIdentity::default().write_to(other.path(), &[]).unwrap();
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
            ada.write_to(folder.path(), &[]).unwrap();
            assert_eq!(GitIdentity::of_owner(folder.path(), folder.path()), ada, "{found:?}");
        }
        for found in ["[user]\nname = b\n[init]\ndefaultBranch = main\n", "[user\n"] {
            fs::write(&path, found).unwrap();
            ada.write_to(folder.path(), &[]).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), found);
        }
    }

    #[test]
    fn where_nobody_commits_only_what_was_written_before_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".gitconfig");
        identity("Ada", "").write_to(folder.path(), &[]).unwrap();
        GitIdentity::default().write_to(folder.path(), &[]).unwrap();
        assert!(!path.exists());
        fs::write(&path, "[user]\nname = Ada\n").unwrap();
        GitIdentity::default().write_to(folder.path(), &[]).unwrap();
        assert!(path.exists());
    }

    #[test]
    fn a_link_in_its_place_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (home, outside) = (folder.path().join("home"), folder.path().join("outside"));
        fs::create_dir(&home).unwrap();
        std::os::unix::fs::symlink(&outside, home.join(".gitconfig")).unwrap();
        identity("Ada", "").write_to(&home, &[]).unwrap();
        assert!(!outside.exists());
        fs::write(&outside, "").unwrap();
        identity("Ada", "").write_to(&home, &[]).unwrap();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "");
        assert_eq!(GitIdentity::of_owner(&home, &home), identity("Ada", ""));
    }

    #[test]
    fn what_is_no_file_goes_and_a_configuration_that_is_too_large_names_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".gitconfig");
        fs::create_dir_all(path.join("below")).unwrap();
        identity("Ada", "").write_to(folder.path(), &[]).unwrap();
        assert_eq!(GitIdentity::of_owner(folder.path(), folder.path()), identity("Ada", ""));
        let large = format!("[user]\nname = Ada\n{}", "# large\n".repeat(1 << 18));
        fs::write(&path, large).unwrap();
        assert_eq!(GitIdentity::of_owner(folder.path(), folder.path()), GitIdentity::default());
    }

    #[test]
    fn filters_and_what_is_ignored_go_along() {
        let folder = tempfile::tempdir().unwrap();
        let (home, own) = (folder.path().join("home"), folder.path().join("own"));
        fs::create_dir_all(&home).unwrap();
        fs::create_dir_all(&own).unwrap();
        let config = "[filter \"lfs\"]\nclean = git-lfs clean -- %f\nrequired = true\nother = x\n\
                      [core]\nexcludesFile = ~/ignored\nfsmonitor = evil\n[alias]\nx = !evil\n";
        fs::write(home.join(".gitconfig"), config).unwrap();
        fs::write(home.join("ignored"), "*.swp\n").unwrap();
        let read = GitIdentity::of_owner(&home, &home);
        assert_eq!(read.excludes(&home), b"*.swp\n");
        read.write_to(&own, &read.excludes(&home)).unwrap();
        let written = GitIdentity::of_owner(&own, &own);
        assert_eq!((&written.filters, written.excludes(&own)), (&read.filters, b"*.swp\n".to_vec()));
        assert_eq!(written.filters.len(), 2);
        let text = fs::read_to_string(own.join(".gitconfig")).unwrap();
        assert!(!text.contains("evil"), "{text}");
        // They go with the owner's.
        GitIdentity::default().write_to(&own, &[]).unwrap();
        assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
    }

    #[test]
    fn without_a_file_that_is_configured_the_usual_one_counts_and_a_pipe_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        assert_eq!(GitIdentity::default().excludes(home), b"");
        fs::create_dir_all(home.join(".config/git")).unwrap();
        fs::write(home.join(".config/git/ignore"), "*.o\n").unwrap();
        assert_eq!(GitIdentity::default().excludes(home), b"*.o\n");
        let pipe = home.join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        let piped = GitIdentity { excludes_file: Some(pipe), ..GitIdentity::default() };
        assert_eq!(piped.excludes(home), b"");
    }
}
