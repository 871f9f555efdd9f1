//! The files and programs that a line of a shell names: those that a question is about as much as the line (spec: security
//! §14).

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use loom::Digest;
use policy::{CommandFacts, CommandStart, NamedFile, named_files};
use sandbox::Walls;
use workspace::{FileKind, FileProblem, ReadRules, RelativePath, Root};

use super::programs::Programs;

/// Bytes of a file whose content is looked at; of a larger one its stamp is.
const MAX_BYTES: u64 = 10 << 20;
/// Files whose stamps are looked at.
const MAX_STAMPS: usize = 100_000;
/// Words of a line that are taken as they stand, beside those that a shell reads.
const MAX_WORDS: usize = 256;

/// A digest over the files beneath the roots that a line names, and over the programs that it may run: another one means
/// that the line would do something else. Where a name is known only once the line runs, the stamps of all that it may mean
/// count. It blocks.
///
/// # Errors
/// A file it names cannot be compared, for this reason.
pub(crate) fn watched(
    roots: &[&Root],
    command: &CommandFacts,
    walls: Option<&Walls>,
) -> Result<Digest, String> {
    let workspace = roots.first().map(|root| root.path());
    let Some(top) = command.further_root.as_deref().or(workspace) else { return Ok(Digest::of(b"")) };
    let directory = top.join(command.directory.as_path());
    let programs = walls.map(|walls| Programs::of(walls, &directory)).unwrap_or_default();
    let mut known = String::new();
    let mut left = MAX_STAMPS;
    for named in named(command) {
        match named {
            NamedFile::File(name) => {
                let named = normalized(&directory, &name);
                match below(roots, &named) {
                    Some((root, path)) => {
                        known += &format!("{}\0{}\n", root.shown(&path).display(), content(root, &path)?);
                    }
                    None => known.extend(programs.installed(&named)),
                }
                known.extend(programs.found(&name));
            }
            NamedFile::Below { folder, depth } => {
                let named = normalized(&directory, &folder);
                let Some((root, path)) = below(roots, &named) else { continue };
                stamps(root, path, depth, (&mut left, &mut known))?;
            }
            NamedFile::Any => {
                for root in roots {
                    stamps(root, RelativePath::root(), usize::MAX, (&mut left, &mut known))?;
                }
                programs.all((&mut left, &mut known))?;
            }
        }
    }
    Ok(Digest::of(known.as_bytes()))
}

pub(super) fn too_many() -> String {
    format!("it may be one of more than {MAX_STAMPS}")
}

fn named(command: &CommandFacts) -> BTreeSet<NamedFile> {
    let mut named = named_files(&command.line);
    // Words that a program takes apart by itself.
    let separates = |c: char| c.is_whitespace() || "|&;<>()$`\"'\\=,:".contains(c);
    let mut words = command.line.split(separates).filter(|word| !word.is_empty());
    named.extend(words.by_ref().take(MAX_WORDS).map(|word| NamedFile::File(word.to_owned())));
    // What reads it as input may be in any folder.
    if words.next().is_some() || command.start == CommandStart::Input {
        named.insert(NamedFile::Any);
    }
    named
}

/// A name as a path without `..`.
fn normalized(directory: &Path, name: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for component in directory.join(name).components() {
        match component {
            Component::ParentDir => drop(path.pop()),
            other => path.push(other),
        }
    }
    path
}

/// A path as one below one of the roots, where it may be one.
fn below<'r>(roots: &[&'r Root], path: &Path) -> Option<(&'r Root, RelativePath)> {
    roots.iter().find_map(|root| Some((*root, root.relative(path).ok()?)))
}

/// What stands at a path.
fn content(root: &Root, path: &RelativePath) -> Result<String, String> {
    let problem = match root.read(path, &ReadRules::at_most(MAX_BYTES).follow_links()) {
        Ok(content) => return Ok(content.digest().to_string()),
        Err(error) => error.problem,
    };
    match problem {
        FileProblem::NotFound | FileProblem::NotAFolder | FileProblem::Path(_) => Ok("nothing".to_owned()),
        FileProblem::NotRegular(kind) => Ok(kind.to_string()),
        problem => match (root.stamp(path), problem) {
            // Where it leads is not looked at.
            (Ok((FileKind::Symlink, _)), FileProblem::TooLarge { .. }) => {
                Err(format!("{path} is a link to a large file"))
            }
            (Ok((kind, stamp)), _) => Ok(format!("{kind} {stamp:?}")),
            (Err(_), FileProblem::Outside) => Ok("outside".to_owned()),
            (Err(error), _) => Err(error.to_string()),
        },
    }
}

/// The stamps of what lies below a folder, so many names deep; of links, what they lead to.
fn stamps(
    root: &Root,
    folder: RelativePath,
    depth: usize,
    (left, known): (&mut usize, &mut String),
) -> Result<(), String> {
    let mut folders = vec![(folder, depth)];
    while let Some((folder, depth)) = folders.pop() {
        let (entries, is_incomplete) = match root.list_stamped(&folder, *left) {
            Ok(listing) => listing,
            Err(error) if matches!(error.problem, FileProblem::NotFound | FileProblem::NotAFolder) => {
                continue;
            }
            Err(error) => return Err(error.to_string()),
        };
        if is_incomplete {
            return Err(too_many());
        }
        *left -= entries.len();
        for (entry, stamp) in entries {
            let Ok(path) = folder.join(&entry.name) else { continue };
            match entry.kind {
                FileKind::Folder if entry.name == ".git" => {}
                FileKind::Folder if depth > 1 => folders.push((path, depth - 1)),
                FileKind::Folder => {}
                FileKind::Symlink => {
                    *known += &format!("{}\0{}\n", root.shown(&path).display(), content(root, &path)?);
                }
                kind => *known += &format!("{}\0{kind} {stamp:?}\n", root.shown(&path).display()),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use policy::NetworkWish;
    use tempfile::TempDir;
    use workspace::StoreGuard;

    use super::*;

    fn folder() -> (TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        for name in ["run.sh", "my run.sh", "sub/run.sh"] {
            fs::write(folder.path().join(name), "echo old\n").unwrap();
        }
        let root = Root::open(folder.path(), &StoreGuard::new()).unwrap();
        (folder, root)
    }

    fn command(line: &str, start: CommandStart) -> CommandFacts {
        let (line, directory) = (line.to_owned(), RelativePath::root());
        CommandFacts {
            line,
            directory,
            directory_is_direct: true,
            further_root: None,
            network: NetworkWish::Off,
            publishes: false,
            start,
        }
    }

    /// Whether another text of a file is seen.
    fn sees(line: &str, start: CommandStart, name: &str) -> bool {
        let (folder, root) = folder();
        let command = command(line, start);
        let before = watched(&[&root], &command, None).unwrap();
        assert_eq!(watched(&[&root], &command, None).unwrap(), before, "{line}: the control");
        fs::write(folder.path().join("new"), "echo new\n").unwrap();
        fs::rename(folder.path().join("new"), folder.path().join(name)).unwrap();
        watched(&[&root], &command, None).unwrap() != before
    }

    #[test]
    fn a_file_that_was_swapped_is_seen_however_it_is_named() {
        for (line, name) in [
            ("sh run.sh", "run.sh"),
            ("sh 'my run.sh'", "my run.sh"),
            ("cd sub && sh run.sh", "sub/run.sh"),
            ("sh ./r*.sh", "run.sh"),
            ("sh */run.sh", "sub/run.sh"),
            ("sh r\\un.sh", "run.sh"),
            ("sh $X", "sub/run.sh"),
            ("sh new.sh", "new.sh"),
            ("tool --files=a,run.sh", "run.sh"),
        ] {
            assert!(sees(line, CommandStart::Foreground, name), "{line}");
        }
        assert!(sees("sh run.sh\n", CommandStart::Input, "sub/run.sh"));
        for (line, name) in [("sh run.sh", "sub/run.sh"), ("sh *.sh", "sub/run.sh"), ("ls sub", "sub/run.sh")]
        {
            assert!(!sees(line, CommandStart::Foreground, name), "the control: {line}");
        }
    }

    #[test]
    fn a_file_too_large_to_be_read_is_known_by_its_stamp_and_behind_a_link_not_at_all() {
        let (folder, root) = folder();
        let large = folder.path().join("large.sh");
        let bytes = usize::try_from(MAX_BYTES).unwrap() + 1;
        let write = |path: &Path, byte: u8| fs::write(path, vec![byte; bytes]).unwrap();
        write(&large, b'o');
        let run = command("sh large.sh", CommandStart::Foreground);
        let before = watched(&[&root], &run, None).unwrap();
        assert_eq!(watched(&[&root], &run, None).unwrap(), before, "the control");
        write(&folder.path().join("new"), b'n');
        fs::rename(folder.path().join("new"), &large).unwrap();
        assert_ne!(watched(&[&root], &run, None).unwrap(), before);
        symlink("large.sh", folder.path().join("link.sh")).unwrap();
        let linked = command("sh link.sh", CommandStart::Foreground);
        assert!(watched(&[&root], &linked, None).unwrap_err().contains("link.sh is a link to a large file"));
    }

    #[test]
    fn a_program_that_was_exchanged_is_seen_however_it_is_named() {
        let (_workspace, root) = folder();
        let sees = |line: &str, walled: bool, exchange: fn(&Path)| {
            let system = tempfile::tempdir().unwrap();
            let [first, second] = ["first", "second"].map(|name| system.path().join(name));
            for path in [&first, &second] {
                fs::create_dir(path).unwrap();
            }
            let program = |path: &Path| {
                fs::write(path, "#!/bin/sh\n").unwrap();
                fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
            };
            program(&second.join("tool"));
            program(&second.join("other"));
            let mut walls = Walls::around(root.path(), system.path());
            let path = std::env::join_paths([&first, &second]).unwrap();
            walls.environment.insert("PATH".to_owned(), path.into_string().unwrap());
            walls.readable = vec![system.path().to_owned()];
            let line = line.replace("SYSTEM", &system.path().to_string_lossy());
            let command = command(&line, CommandStart::Foreground);
            let digest = || watched(&[&root], &command, Some(&walls).filter(|_| walled)).unwrap();
            let before = digest();
            assert_eq!(digest(), before, "{line}: the control");
            exchange(system.path());
            digest() != before
        };
        let exchange: fn(&Path) = |system| {
            fs::rename(system.join("second/other"), system.join("second/tool")).unwrap();
        };
        let shadow: fn(&Path) = |system| {
            fs::copy(system.join("second/tool"), system.join("first/tool")).unwrap();
        };
        for line in [
            "tool x",
            "true && tool",
            "env A=b tool",
            "sh -c 'tool x'",
            "$X",
            "SYSTEM/second/tool x",
            "SYSTEM/first/../second/tool",
        ] {
            assert!(sees(line, true, exchange), "{line}");
            assert!(!sees(line, false, exchange), "the control: {line}");
        }
        assert!(sees("tool x", true, shadow));
        assert!(!sees("SYSTEM/second/tool x", true, shadow), "the control");
        assert!(!sees("ls x", true, exchange), "the control");
    }
}
