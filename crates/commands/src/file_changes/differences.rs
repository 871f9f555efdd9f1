//! Changes of paths as a person reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use loom::Digest;
use store::FileState;
use text::terminal::{explicit, one_line};

use super::path_changes::PathChange;
use crate::app::App;
use crate::error::CommandError;
use crate::results::file_changes::FileDifference;

/// Bytes of differences after which a file is only named.
const SHOWN_BYTES: usize = 4 << 20;

/// The change of each path, a file that only went elsewhere as one; a folder is named where nothing in it is.
pub(super) async fn differences(
    app: &App,
    paths: impl Iterator<Item = &PathChange>,
) -> Result<Vec<FileDifference>, CommandError> {
    let paths: Vec<&PathChange> = paths.filter(|path| path.before != path.after).collect();
    let moves = moves(&paths);
    let left: BTreeSet<(&Path, &Path)> = moves.values().map(|from| (&*from.root, &*from.path)).collect();
    let mut shown: BTreeSet<(&Path, &Path)> = BTreeSet::new();
    for path in paths.iter().filter(|path| !(path.before.is_folder() || path.after.is_folder())) {
        shown.extend(path.path.ancestors().skip(1).map(|above| (&*path.root, above)));
    }
    let (mut files, mut sum) = (Vec::new(), 0);
    for path in paths {
        let place = (&*path.root, &*path.path);
        let is_folder = path.before.is_folder() || path.after.is_folder();
        if left.contains(&place) || (is_folder && shown.contains(&place)) {
            continue;
        }
        let from = moves.get(&place).copied();
        let diff = match from {
            Some(from) => format!("move from {}\nmove to {}\n", name(&from.path), name(&path.path)),
            None if sum > SHOWN_BYTES => format!("{}: too much to show\n", name(&path.path)),
            None => difference(app, path).await?,
        };
        sum += diff.len();
        files.push(FileDifference {
            root: path.root.clone(),
            path: path.path.clone(),
            is_new: path.before == FileState::Absent,
            is_gone: path.after == FileState::Absent,
            moved_from: from.map(|from| from.path.clone()),
            diff,
        });
    }
    Ok(files)
}

/// Files and links that stand elsewhere as they were, by where they stand.
fn moves<'p>(paths: &[&'p PathChange]) -> BTreeMap<(&'p Path, &'p Path), &'p PathChange> {
    let mut gone: BTreeMap<(Digest, Option<u32>), Vec<&PathChange>> = BTreeMap::new();
    for path in paths.iter().rev().filter(|path| path.after == FileState::Absent) {
        if let Some(key) = key(path.before) {
            gone.entry(key).or_default().push(path);
        }
    }
    let new = paths.iter().filter(|path| path.before == FileState::Absent);
    let from = |path: &&'p PathChange| {
        let from = gone.get_mut(&key(path.after)?)?.pop()?;
        Some(((&*path.root, &*path.path), from))
    };
    new.filter_map(from).collect()
}

fn key(state: FileState) -> Option<(Digest, Option<u32>)> {
    match state {
        FileState::File { mode, blob } => Some((blob, mode)),
        FileState::Link { target } => Some((target, None)),
        FileState::Absent | FileState::Folder { .. } => None,
    }
}

/// A path in a line of a difference: a name of several lines would look like lines of it.
fn name(path: &Path) -> String {
    explicit(&one_line(&path.display().to_string())).into_owned()
}

async fn difference(app: &App, change: &PathChange) -> Result<String, CommandError> {
    let path = name(&change.path);
    let mut out = String::new();
    for (state, did) in [(change.before, "deleted"), (change.after, "new")] {
        match state {
            FileState::Folder { .. } => out += &format!("{did} folder {path}\n"),
            FileState::Link { target } => {
                let target = name(&PathBuf::from(text_of(app, target).await?.unwrap_or_default()));
                out += &format!("{did} link {path} to {target}\n");
            }
            FileState::Absent | FileState::File { .. } => {}
        }
    }
    let file = |state| match state {
        FileState::File { mode, blob } => Some((mode, blob)),
        _ => None,
    };
    let (before, after) = (file(change.before), file(change.after));
    if let (Some((Some(before), _)), Some((Some(after), _))) = (before, after)
        && before != after
    {
        out += &format!("old mode {before:o}\nnew mode {after:o}\n");
    }
    let (before, after) = (before.map(|(_, blob)| blob), after.map(|(_, blob)| blob));
    if before != after {
        let texts = (text_or_none(app, before).await?, text_or_none(app, after).await?);
        out += &match texts {
            (Some(before), Some(after)) => ::tools::unified_diff(&path, before.as_deref(), after.as_deref()),
            _ => {
                let told = |blob: Option<Digest>| {
                    blob.map_or_else(|| "nothing".to_owned(), |blob| format!("bytes with SHA-256 {blob}"))
                };
                format!("{path}: {} becomes {}\n", told(before), told(after))
            }
        };
    }
    Ok(out)
}

/// The text of a file or of nothing; none of bytes that are no text.
async fn text_or_none(app: &App, blob: Option<Digest>) -> Result<Option<Option<String>>, CommandError> {
    match blob {
        None => Ok(Some(None)),
        Some(blob) => Ok(text_of(app, blob).await?.map(Some)),
    }
}

/// The text of a blob, with secrets masked; none of one that holds zero bytes.
async fn text_of(app: &App, blob: Digest) -> Result<Option<String>, CommandError> {
    let bytes = app.runtime.read_blob(blob).await?;
    if bytes.contains(&0) {
        return Ok(None);
    }
    Ok(Some(app.runtime.masker.mask(&String::from_utf8_lossy(&bytes)).text.into_owned()))
}
