//! What no command may write, in a folder that a person let one write (spec: security §1).

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::git_shape::GitShape;
use crate::path::RelativePath;
use crate::protected::{Protection, ProtectionMatch, is_git_folder, touches, touches_anywhere};

/// Entries of a folder that are looked at.
const MAX_ENTRIES: usize = 20_000;

/// Whether no tool writes an absolute path, whoever allows it: it lies in a folder of git, whatever that is called, or in
/// `.drawloom`, or is what a memory observed.
pub fn lies_in_never(path: &Path) -> bool {
    let below = path.strip_prefix("/").ok().and_then(|below| RelativePath::from_components(below).ok());
    let is_named =
        path.iter().filter_map(OsStr::to_str).any(|name| is_git_folder(name) || name == ".drawloom");
    is_named
        || below
            .is_some_and(|below| touches_anywhere(&below) == ProtectionMatch::Protected(Protection::Never))
        || path.ancestors().skip(1).any(|folder| shape_of(folder) != GitShape::Other)
}

/// Whether git finds a repository at a folder: its `.git` is a git folder, or a file or link that names one.
pub fn is_git_repository(folder: &Path) -> bool {
    let git = folder.join(".git");
    git.symlink_metadata().is_ok_and(|found| !found.is_dir() || shape_of(&git) == GitShape::Complete)
}

fn shape_of(folder: &Path) -> GitShape {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    let has_file = |name: &str| folder.join(name).symlink_metadata().is_ok_and(|found| !found.is_dir());
    GitShape::of(has, has_file)
}

/// Paths in a folder below a root that no command may write, whoever allows it: git folders, bare ones too, `.drawloom`
/// and its like, and what is no file, folder or link. No link is followed.
///
/// # Errors
/// It cannot be read whole, or has more entries than are looked at.
pub fn never_touched(root: &Path, folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        if shape_of(&folder) != GitShape::Other {
            found.push(folder);
            continue;
        }
        for entry in folder.read_dir()? {
            let entry = entry?;
            seen += 1;
            if seen > MAX_ENTRIES {
                return Err(io::Error::other("it has more entries than are looked at"));
            }
            let (path, kind) = (entry.path(), entry.file_type()?);
            let is_other = !kind.is_file() && !kind.is_dir() && !kind.is_symlink();
            if is_other || is_never(root, &path) {
                found.push(path);
            } else if kind.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(found)
}

fn is_never(root: &Path, path: &Path) -> bool {
    let below = path.strip_prefix(root).ok().and_then(Path::to_str);
    let below = below.and_then(|below| RelativePath::parse(&format!("./{below}")).ok());
    below.is_some_and(|below| touches(&below) == ProtectionMatch::Protected(Protection::Never))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn what_no_command_may_write_is_found_however_deep_it_lies() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        for folder in [
            "skills/one/.git/hooks",
            "skills/.drawloom",
            "skills/bare/objects",
            "skills/bare/refs",
            "skills/plain",
        ] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("skills/bare/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(root.join("skills/plain/AGENTS.md"), "theirs\n").unwrap();
        fs::create_dir(root.join("skills/linked")).unwrap();
        fs::write(root.join("skills/linked/.git"), "gitdir: elsewhere\n").unwrap();
        symlink("/", root.join("skills/away")).unwrap();
        let _socket = UnixListener::bind(root.join("skills/socket")).unwrap();
        let mut found = never_touched(root, &root.join("skills")).unwrap();
        found.sort();
        let found: Vec<_> =
            found.iter().map(|path| path.strip_prefix(root).unwrap().to_str().unwrap()).collect();
        assert_eq!(
            found,
            ["skills/.drawloom", "skills/bare", "skills/linked/.git", "skills/one/.git", "skills/socket"]
        );
        assert!(never_touched(root, &root.join("skills/bare")).unwrap() == [root.join("skills/bare")]);
        assert!(never_touched(root, &root.join("missing")).is_err());
    }
}
