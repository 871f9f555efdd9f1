//! Protected files that a command tried to write, as it says itself: behind a mount it is refused as by any read-only file.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use policy::{NamedFile, named_files};
use workspace::protected::{self, NotTouchable, ProtectionMatch};
use workspace::{AllowedRoots, ProtectedPlaces, RelativePath, Root, RootAccess, RootedPath};

use crate::changes::line_name;

/// What programs say of a path behind a read-only mount, and of one that is a mount, in lower case: some say it so.
const REFUSALS: [&str; 2] = ["read-only file system", "device or resource busy"];
/// What `sed -i` says of a file beside the one that it cannot replace, which it does not name.
const OF_SED: [&str; 2] = ["sed: cannot rename ", "sed: couldn't open temporary file "];
/// Paths that are named.
const NAMED: usize = 5;

/// What to do about them, of what a line that ran in `directory` printed; nothing where it names none.
pub(super) fn note(
    roots: &AllowedRoots,
    (directory, line): (&Path, &str),
    printed: &[String],
) -> Option<String> {
    let is_refusal = |line: &&str| {
        let line = line.to_lowercase();
        REFUSALS.iter().any(|refusal| line.contains(refusal))
    };
    let mut lines = printed.iter().flat_map(|text| text.lines()).filter(is_refusal).peekable();
    let is_of_sed = lines.clone().any(|line| OF_SED.iter().any(|begins| line.starts_with(begins)));
    let edited = if is_of_sed { edited(roots, directory, line) } else { Vec::new() };
    // There each word is the name of something protected.
    let here = directory.to_str().and_then(|directory| roots.place(directory).ok());
    let here = here.and_then(|here| Some(here.root.shown(&protected::holder(&here.path)?)));
    let here = here.filter(|_| lines.peek().is_some());
    let words = lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || "\"'`‘’,;()".contains(c)));
    let leads_elsewhere = |word: &&str| here.is_none() || word.starts_with(['/', '.']);
    let named = words.filter(leads_elsewhere).filter_map(|word| held(roots, directory, word));
    let paths: BTreeSet<PathBuf> = named.chain(here.clone()).chain(edited).collect();
    let is_of_git = |path: &PathBuf| path.iter().any(|name| name == ".git");
    let (of_git, files): (Vec<&PathBuf>, Vec<&PathBuf>) =
        paths.iter().take(NAMED).partition(|path| is_of_git(path) || leads_to(roots, path));
    let named = |paths: &[&PathBuf]| {
        paths.iter().map(|path| line_name(&path.display().to_string())).collect::<Vec<_>>()
    };
    let mut notes = Vec::new();
    if !files.is_empty() {
        let files = named(&files);
        notes.push(format!(
            "{} cannot be written by a command that does not name it: run it with touches {files:?}, or use edit or write",
            files.join(", ")
        ));
    }
    if !of_git.is_empty() {
        notes.push(format!(
            "{} is closed to commands, as it is or names what git runs: that line is for the owner to run",
            named(&of_git).join(", ")
        ));
    }
    (!notes.is_empty()).then(|| notes.join("\n"))
}

/// Protected files that are there and that a line names, also by a glob.
fn edited(roots: &AllowedRoots, directory: &Path, line: &str) -> Vec<PathBuf> {
    let mut names = Vec::new();
    for named in named_files(line) {
        match named {
            NamedFile::File(name) => names.push(directory.join(name)),
            NamedFile::Below { folder, depth: 1 } => {
                let entries = fs::read_dir(directory.join(folder)).into_iter().flatten().flatten();
                names.extend(entries.map(|entry| entry.path()));
            }
            NamedFile::Below { .. } | NamedFile::Any => {}
        }
    }
    let files = names.into_iter().filter(|path| path.is_file());
    files.filter_map(|path| held(roots, directory, path.to_str()?)).collect()
}

/// The path by which a call may touch what a word names, as tools are given it; in `.git`, which none may touch, that itself.
fn held(roots: &AllowedRoots, directory: &Path, word: &str) -> Option<PathBuf> {
    let mut named = PathBuf::new();
    for part in directory.join(word.trim_end_matches([':', '.'])).components() {
        match part {
            Component::ParentDir => drop(named.pop()),
            Component::CurDir => {}
            part => named.push(part),
        }
    }
    let RootedPath { root, path } = roots.place(named.to_str()?).ok()?;
    if root.access() == RootAccess::ReadOnly {
        return None;
    }
    let path = match protected::check_touch(&path, named.symlink_metadata().is_ok()) {
        Ok(()) => path,
        Err(NotTouchable::NotThere(holder)) => holder,
        // Below a mount as well: the lock of a configuration of git, a file that an editor writes beside.
        Err(NotTouchable::Never) if path.as_path().iter().any(|name| name == ".git") => path,
        Err(NotTouchable::NotProtected) if is_led_to(root, &path) => path,
        Err(_) => return None,
    };
    Some(root.shown(&path))
}

/// Whether a path is protected by what leads to it alone, such as a configuration of git.
fn is_led_to(root: &Root, path: &RelativePath) -> bool {
    let places = ProtectedPlaces::beneath(root, &[path], &[]);
    matches!(places.protection(path), ProtectionMatch::Protected(_))
        && !matches!(protected::touches(path), ProtectionMatch::Protected(_))
}

/// [`is_led_to`] of a path as tools are given it.
fn leads_to(roots: &AllowedRoots, path: &Path) -> bool {
    let place = path.to_str().and_then(|path| roots.place(path).ok());
    place.is_some_and(|RootedPath { root, path }| is_led_to(root, &path))
}

#[cfg(test)]
mod tests {
    use workspace::{Root, StoreGuard};

    use super::*;

    #[test]
    fn what_programs_say_of_protected_files_is_told_with_what_to_do() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        let roots = AllowedRoots::within(vec![Root::open(&top, &StoreGuard::new()).unwrap()]);
        let noted = |directory: &str, line: &str| {
            note(&roots, (&top.join(directory), "true"), &[String::new(), line.to_owned()])
        };
        let absolute =
            format!("Error: EROFS: read-only file system, open '{}'", top.join("AGENTS.md").display());
        for (directory, line, told) in [
            ("", "/bin/sh: 1: cannot create AGENTS.md: Read-only file system", "AGENTS.md cannot"),
            (
                "",
                "sed: cannot rename ./sedx: Device or resource busy\nsed: AGENTS.md: Device or resource busy",
                "AGENTS.md cannot",
            ),
            ("", "touch: cannot touch 'sub/.envrc': Read-only file system", "touches [\"sub/.envrc\"]"),
            (
                "",
                "error: could not write config file .git/config: Device or resource busy",
                ".git/config is closed",
            ),
            ("", absolute.as_str(), "touches [\"AGENTS.md\"]"),
            ("", "open AGENTS.md: read-only file system", "touches [\"AGENTS.md\"]"),
            ("sub", "touch: cannot touch '.envrc': Read-only file system", "touches [\"sub/.envrc\"]"),
            ("sub", "touch: cannot touch '../AGENTS.md': Read-only file system", "touches [\"AGENTS.md\"]"),
            ("", "touch: cannot touch 'skills/new/one': Read-only file system", "touches [\"skills\"]"),
            ("skills", "touch: cannot touch 'new': Read-only file system", "touches [\"skills\"]"),
        ] {
            let note = noted(directory, line).unwrap();
            assert!(note.contains(told), "{line}: {note}");
        }
        fs::write(top.join("AGENTS.md"), "ours\n").unwrap();
        fs::create_dir_all(top.join("skills/one")).unwrap();
        fs::write(top.join("skills/one/SKILL.md"), "ours\n").unwrap();
        for (ran, line, told) in [
            (
                "sed -i s/a/b/ AGENTS.md",
                "sed: cannot rename ./sedDdKwXf: Device or resource busy",
                "AGENTS.md",
            ),
            ("sed -i s/a/b/ *.md", "sed: cannot rename ./sedDdKwXf: Device or resource busy", "AGENTS.md"),
            (
                "cd skills/one && sed -i s/a/b/ SKILL.md",
                "sed: couldn't open temporary file ./sedk0K8hY: Read-only file system",
                "skills/one/SKILL.md",
            ),
            (
                "sed -i s/a/b/ skills/one/SKILL.md",
                "sed: couldn't open temporary file skills/one/sedk0K8hY: Read-only file system",
                "skills/one/SKILL.md",
            ),
        ] {
            let note = note(&roots, (&top, ran), &[String::new(), line.to_owned()]);
            let note = note.unwrap_or_else(|| panic!("{ran}"));
            assert!(note.contains(&format!("{told:?}")), "{ran}: {note}");
        }
        for (ran, line) in [
            ("sed -i s/a/b/ plain", "sed: cannot rename ./sedDdKwXf: Device or resource busy"),
            ("cat AGENTS.md; cp a /x", "cp: cannot create '/x': Read-only file system"),
        ] {
            assert_eq!(note(&roots, (&top, ran), &[String::new(), line.to_owned()]), None, "{ran}");
        }
        for line in [
            "",
            "cp: cannot create 'x': Read-only file system",
            "AGENTS.md: No such file or directory",
            "/elsewhere/AGENTS.md: Read-only file system",
            ".drawloom/x: Read-only file system",
        ] {
            assert_eq!(noted("", line), None, "{line}");
        }
    }
}
