//! Protected files that a command tried to write, as it says itself: behind a mount it is refused as by any read-only file.

use std::collections::BTreeSet;
use std::path::Path;

use workspace::RelativePath;
use workspace::protected::{self, ProtectionMatch};

use crate::changes::line_name;

/// What programs say of a path behind a read-only mount, and of one that is a mount.
const REFUSALS: [&str; 2] = ["Read-only file system", "Device or resource busy"];
/// Paths that are named.
const NAMED: usize = 5;

/// What to do about them; nothing where it names none.
pub(super) fn note(errors: &str) -> Option<String> {
    let lines = errors.lines().filter(|line| REFUSALS.iter().any(|refusal| line.contains(refusal)));
    let words = lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || "\"'`‘’,;()".contains(c)));
    let paths: BTreeSet<RelativePath> = words.filter_map(held).collect();
    let (of_git, files): (Vec<&RelativePath>, Vec<&RelativePath>) =
        paths.iter().take(NAMED).partition(|path| path.as_path().iter().any(|name| name == ".git"));
    let named = |paths: &[&RelativePath]| {
        paths.iter().map(|path| line_name(&path.as_path().display().to_string())).collect::<Vec<_>>()
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
            "{} is closed to commands, as it names what git runs: that line is for the owner to run",
            named(&of_git).join(", ")
        ));
    }
    (!notes.is_empty()).then(|| notes.join("\n"))
}

/// A word that names a protected path, or one below it.
fn held(word: &str) -> Option<RelativePath> {
    let word = word.trim_end_matches([':', '.']).trim_start_matches("./");
    let path = RelativePath::parse(word).ok()?;
    // Below one as well: the lock of a configuration of git, a file that an editor writes beside.
    let is_mounted = path.as_path().ancestors().any(protected::is_mounted);
    let is_beside = || matches!(protected::touches(&path), ProtectionMatch::Protected(_));
    (is_mounted || is_beside() && Path::new(word).starts_with(".git")).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_say_of_protected_files_is_told_with_what_to_do() {
        for (line, told) in [
            ("/bin/sh: 1: cannot create AGENTS.md: Read-only file system", "AGENTS.md cannot"),
            (
                "sed: cannot rename ./sedx: Device or resource busy\nsed: AGENTS.md: Device or resource busy",
                "AGENTS.md cannot",
            ),
            ("touch: cannot touch 'sub/.envrc': Read-only file system", "touches [\"sub/.envrc\"]"),
            (
                "error: could not write config file .git/config: Device or resource busy",
                ".git/config is closed",
            ),
        ] {
            let note = note(line).unwrap();
            assert!(note.contains(told), "{note}");
        }
        for line in
            ["", "cp: cannot create 'x': Read-only file system", "AGENTS.md: No such file or directory"]
        {
            assert_eq!(note(line), None, "{line}");
        }
    }
}
