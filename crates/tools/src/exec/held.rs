//! Protected files that a command tried to write, as it says itself: behind a mount it is refused as by any read-only file.

use std::collections::{BTreeMap, HashSet};
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
/// Words that are looked at, each once.
const WORDS: usize = 256;

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
    let edited = if is_of_sed { edited(directory, line) } else { Vec::new() };
    // There each word is the name of something protected.
    let here = directory.to_str().and_then(|directory| roots.place(directory).ok());
    let here = here.and_then(|here| Some(here.root.shown(&protected::holder(&here.path)?)));
    let here = here.filter(|_| lines.peek().is_some());
    let words = lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || "\"'`‘’,;()".contains(c)));
    let words = words.filter(|word| here.is_none() || word.starts_with(['/', '.']));
    let mut paths = held(roots, directory, words);
    paths.extend(held(roots, directory, edited.iter().filter_map(|path| path.to_str())));
    paths.extend(here.map(|here| (here.clone(), is_of_git(&here))));
    let (of_git, files): (Vec<_>, Vec<_>) = paths.iter().take(NAMED).partition(|(_, is_closed)| **is_closed);
    let of_git: Vec<&PathBuf> = of_git.into_iter().map(|(path, _)| path).collect();
    let files: Vec<&PathBuf> = files.into_iter().map(|(path, _)| path).collect();
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

/// Files that are there and that a line names, also by a glob.
fn edited(directory: &Path, line: &str) -> Vec<PathBuf> {
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
    names.retain(|path| path.is_file());
    names
}

/// Paths by which a call may touch what words name, as tools are given them, and whether none may: of what git runs or reads
/// as configuration, which is named itself. The roots are walked once at most, whatever the words are.
fn held<'w>(
    roots: &AllowedRoots,
    directory: &Path,
    words: impl Iterator<Item = &'w str>,
) -> BTreeMap<PathBuf, bool> {
    let (mut found, mut others) = (BTreeMap::new(), BTreeMap::<&Path, (&Root, Vec<RelativePath>)>::new());
    let mut seen = HashSet::new();
    for word in words.filter(|word| seen.insert(*word)).take(WORDS) {
        let mut named = PathBuf::new();
        for part in directory.join(word.trim_end_matches([':', '.'])).components() {
            match part {
                Component::ParentDir => drop(named.pop()),
                Component::CurDir => {}
                part => named.push(part),
            }
        }
        let Some(RootedPath { root, path }) = named.to_str().and_then(|named| roots.place(named).ok()) else {
            continue;
        };
        if root.access() == RootAccess::ReadOnly {
            continue;
        }
        match protected::check_touch(&path, named.symlink_metadata().is_ok()) {
            Ok(()) => drop(found.insert(root.shown(&path), is_of_git(path.as_path()))),
            Err(NotTouchable::NotThere(holder)) => {
                found.insert(root.shown(&holder), is_of_git(holder.as_path()));
            }
            // Below a mount as well: the lock of a configuration of git, a file that an editor writes beside.
            Err(NotTouchable::Never) if is_of_git(path.as_path()) => {
                found.insert(root.shown(&path), true);
            }
            Err(NotTouchable::NotProtected) => {
                others.entry(root.path()).or_insert_with(|| (root, Vec::new())).1.push(path);
            }
            Err(_) => {}
        }
    }
    for (root, paths) in others.into_values() {
        let places = ProtectedPlaces::beneath(root, &[], &[]);
        let is_led_to =
            |path: &&RelativePath| matches!(places.protection(path), ProtectionMatch::Protected(_));
        found.extend(paths.iter().filter(is_led_to).map(|path| (root.shown(path), true)));
    }
    found
}

fn is_of_git(path: &Path) -> bool {
    path.iter().any(|name| name == ".git")
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
