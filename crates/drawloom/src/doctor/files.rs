//! Files of the home that only a plain file may be: locks, logins, accepted tools, and records of commands and of what stood
//! before them (spec: security §8).

use std::path::{Path, PathBuf};

use agent::command_records;
use commands::results::maintenance::{Check, State};
use store::home::HomeDir;
use workspace::open_small_file;

use super::check;

/// What stands in the place of one, with what to do.
pub(super) fn checks(home: &Path) -> Option<Check> {
    let mut odd = Vec::new();
    for dir in [HomeDir::Locks, HomeDir::Logins, HomeDir::AcceptedTools] {
        odd.extend(entries(&home.join(dir.name())).iter().filter_map(|path| problem(path)));
    }
    let mut folders = vec![home.join(HomeDir::CheckpointCache.name()), command_records(home)];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
            match is_folder && !is_named_as_a_file(&path) {
                true => folders.push(path),
                false => odd.extend(problem(&path)),
            }
        }
    }
    let fix = "what is to stand there is made anew; a login or accepted tools are asked for once more";
    (!odd.is_empty()).then(|| check("files", State::Fail, odd.join("; "), fix))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort_unstable();
    entries
}

fn is_named_as_a_file(path: &Path) -> bool {
    let is = |name: &str| path.file_name().is_some_and(|other| other == name);
    is("lock") || path.extension().is_some_and(|extension| extension == "lock" || extension == "json")
}

fn problem(path: &Path) -> Option<String> {
    open_small_file(path).err().map(|error| error.to_string())
}
