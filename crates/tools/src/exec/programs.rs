//! Programs that the commands of a session find, and what a question says of how a line runs (spec: security §14).

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use policy::{CommandFacts, named_programs};
use sandbox::Walls;
use text::terminal::{explicit, one_line};

use super::watched_files::too_many;
use crate::tool::ToolScope;

/// What a question says of how a line runs: its programs, the level of its sandbox and its folder. It is compared again once
/// the question is answered. None where no command runs. It blocks.
pub(crate) fn how_it_runs(scope: &ToolScope, command: &CommandFacts, line: &str) -> Option<String> {
    let commands = scope.commands.as_ref()?;
    let folder = PathBuf::from(command.directory.to_string());
    let below = |root: &PathBuf| root.join(&folder).components().collect();
    let folder: PathBuf = command.further_root.as_ref().map_or(folder.clone(), below);
    let workspace = scope.roots.all().find(|root| !root.is_further());
    let directory = workspace.map_or(folder.clone(), |root| root.path().join(&folder));
    let programs = Programs::of(&commands.walls, &directory);
    // A name with a folder says it itself.
    let found = |name: String| {
        if name.contains('/') { Some(name) } else { Some(programs.path(&name)?.display().to_string()) }
    };
    let found: Vec<String> = named_programs(line).into_iter().filter_map(found).collect();
    let runs = if found.is_empty() { String::new() } else { format!("runs {}, ", found.join(" and ")) };
    let told = format!("{runs}level {}, in {}", commands.session.level(), folder.display());
    Some(explicit(&one_line(&told)).into_owned())
}

/// Programs outside of the roots, as the walls of a command have them.
#[derive(Default)]
pub(super) struct Programs<'w> {
    /// Folders of `PATH`, in its order.
    search_path: Vec<PathBuf>,
    readable: &'w [PathBuf],
}

impl<'w> Programs<'w> {
    pub(super) fn of(walls: &'w Walls, directory: &Path) -> Self {
        let search_path = walls.environment.get("PATH").map(String::as_str).unwrap_or_default();
        let search_path = std::env::split_paths(search_path).map(|folder| directory.join(folder)).collect();
        Self { search_path, readable: &walls.readable }
    }

    /// The program that a shell runs by a name without a folder.
    pub(super) fn found(&self, name: &str) -> Option<String> {
        self.path(name).and_then(|path| stamp(&path, Metadata::is_file))
    }

    /// Where a shell finds a name without a folder.
    fn path(&self, name: &str) -> Option<PathBuf> {
        let is_program = |path: &PathBuf| {
            fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
        };
        let mut paths = self.search_path.iter().map(|folder| folder.join(name));
        if name.contains('/') { None } else { paths.find(is_program) }
    }

    /// A file that the machine has for all commands.
    pub(super) fn installed(&self, path: &Path) -> Option<String> {
        let is_readable = self.readable.iter().any(|folder| path.starts_with(folder));
        is_readable.then(|| stamp(path, Metadata::is_file)).flatten()
    }

    /// All that a name may mean that is known only once the line runs.
    pub(super) fn all(&self, (left, known): (&mut usize, &mut String)) -> Result<(), String> {
        let folders: BTreeSet<PathBuf> =
            self.search_path.iter().filter_map(|folder| fs::canonicalize(folder).ok()).collect();
        for folder in folders {
            let mut names: Vec<PathBuf> =
                fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
            *left = left.checked_sub(names.len()).ok_or_else(too_many)?;
            names.sort_unstable();
            known.extend(names.iter().filter_map(|path| stamp(path, Metadata::is_file)));
        }
        Ok(())
    }
}

/// A path, where it leads, and what stands there, if it is so.
fn stamp(path: &Path, is_so: impl Fn(&Metadata) -> bool) -> Option<String> {
    let found = fs::metadata(path).ok().filter(is_so)?;
    let leads_to = fs::canonicalize(path).unwrap_or_default();
    let changed = (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
    let stamp = (found.dev(), found.ino(), found.mode(), found.len(), changed);
    Some(format!("{}\0{}\0{stamp:?}\n", path.display(), leads_to.display()))
}
