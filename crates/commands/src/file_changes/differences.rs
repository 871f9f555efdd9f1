//! Changes of paths as a person reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use loom::{Digest, NodeId};
use store::FileState;
use text::mask::Masker;
use text::terminal::{explicit, one_line};

use super::changed_lines::lines;
use super::path_changes::PathChange;
use super::{not_kept, shown as shown_path};
use crate::app::App;
use crate::error::CommandError;
use crate::results::file_changes::{ChangeKind, FileDifference};
use crate::rights::Asker;

/// Bytes of differences after which a file is only named.
const SHOWN_BYTES: usize = 4 << 20;

/// The change of each path, a file that only went elsewhere as one; a folder is named where nothing in it is, or where
/// its mode is another.
pub(super) async fn differences(
    app: &App,
    asker: &Asker,
    paths: impl Iterator<Item = &PathChange>,
) -> Result<Vec<FileDifference>, CommandError> {
    let paths: Vec<&PathChange> = paths.filter(|path| path.before != path.after).collect();
    let moves = moves(&paths);
    let left: BTreeSet<(&Path, &Path)> = moves.values().map(|from| (&*from.root, &*from.path)).collect();
    let mut shown: BTreeSet<(&Path, &Path)> = BTreeSet::new();
    for path in paths.iter().filter(|path| !(path.before.is_folder() || path.after.is_folder())) {
        shown.extend(path.path.ancestors().skip(1).map(|above| (&*path.root, above)));
    }
    let workspace = app.workspace.folder.as_deref();
    let name = |path: &PathChange| name(&shown_path(workspace, &path.root, &path.path));
    let (mut files, mut sum, mut compared) = (Vec::new(), 0, 0);
    for path in paths {
        let place = (&*path.root, &*path.path);
        let is_folder = (path.before.is_folder() || path.after.is_folder()) && !path.is_folder_mode();
        if left.contains(&place) || (is_folder && shown.contains(&place)) {
            continue;
        }
        let from = moves.get(&place).copied();
        let diff = match from {
            Some(from) => format!("move from {}\nmove to {}\n", name(from), name(path)),
            None if sum > SHOWN_BYTES => format!("{}: too much to show\n", name(path)),
            None => difference(app, asker, path).await?,
        };
        sum += diff.len();
        let lines = match from {
            Some(_) => Some((0, 0)),
            None => lines(app, path, &mut compared).await,
        };
        let is_known = (path.before, path.after) != (FileState::Absent, FileState::Unknown);
        let is_kept = is_known && not_kept(app, asker, path.before).await?.is_none();
        let by: BTreeSet<NodeId> = path.ids.iter().map(|id| id.call.answer).collect();
        files.push(FileDifference {
            root: path.root.clone(),
            path: shown_path(workspace, &path.root, &path.path),
            kind: match (from, path.before, path.after) {
                (Some(_), ..) => ChangeKind::Moved,
                (None, FileState::Absent, _) => ChangeKind::New,
                (None, _, FileState::Absent) => ChangeKind::Deleted,
                _ => ChangeKind::Changed,
            },
            added: lines.map(|(added, _)| added),
            removed: lines.map(|(_, removed)| removed),
            by: by.into_iter().collect(),
            kept: is_kept,
            moved_from: from.map(|from| shown_path(workspace, &from.root, &from.path)),
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

/// What stands there, to be found elsewhere; none of an empty file, which is like any other.
fn key(state: FileState) -> Option<(Digest, Option<u32>)> {
    match state {
        FileState::File { mode, blob } => (blob != Digest::of(b"")).then_some((blob, mode)),
        FileState::Link { target } => Some((target, None)),
        FileState::Absent
        | FileState::Folder { .. }
        | FileState::Unknown
        | FileState::Large { .. }
        | FileState::Special { .. } => None,
    }
}

/// A path in a line of a difference: a name of several lines would look like lines of it.
fn name(path: &Path) -> String {
    explicit(&one_line(&path.display().to_string())).into_owned()
}

async fn difference(app: &App, asker: &Asker, change: &PathChange) -> Result<String, CommandError> {
    let path = shown_path(app.workspace.folder.as_deref(), &change.root, &change.path);
    let mut sides = Vec::new();
    for state in [change.before, change.after] {
        // What is not known to be the command's is shown as that, beside what stood there.
        if !matches!(state, FileState::Unknown | FileState::Special { .. })
            && let Some(why) = not_kept(app, asker, state).await?
        {
            return Ok(format!("{}: {why}\n", name(&path)));
        }
        let bytes = match state.blob() {
            Some(blob) => app.runtime.read_blob(blob).await?,
            None => Vec::new(),
        };
        sides.push((state, bytes));
    }
    let [before, after] = [&sides[0], &sides[1]].map(|(state, bytes)| (*state, bytes.as_slice()));
    Ok(difference_of(&path, before, after, &app.runtime.masker))
}

/// What stands at a path before and after, with the bytes of files and the targets of links, as a difference.
pub(super) fn difference_of(
    path: &Path,
    before: (FileState, &[u8]),
    after: (FileState, &[u8]),
    masker: &Masker,
) -> String {
    let path = name(path);
    let masked = |bytes: &[u8]| masker.mask(&String::from_utf8_lossy(bytes)).text.into_owned();
    let mut out = String::new();
    let are_folders = before.0.is_folder() && after.0.is_folder();
    for ((state, bytes), other, did) in [(before, after.0, "deleted"), (after, before.0, "new")] {
        match state {
            FileState::File { .. } if bytes.is_empty() && !matches!(other, FileState::File { .. }) => {
                let _ = writeln!(out, "{did} empty file {path}");
            }
            FileState::Folder { .. } if are_folders => {}
            FileState::Folder { .. } => drop(writeln!(out, "{did} folder {path}")),
            FileState::Link { .. } => {
                let _ = writeln!(out, "{did} link {path} to {}", name(Path::new(&masked(bytes))));
            }
            FileState::Special { .. } => drop(writeln!(out, "{did} pipe or socket {path}")),
            FileState::Unknown if other == FileState::Absent => {
                let _ = writeln!(out, "{did} file {path}, whose bytes are not kept");
            }
            FileState::Large { bytes, .. } => {
                let size = text::bytes::size(bytes);
                let _ = writeln!(out, "{did} file {path} of {size}, whose bytes are not kept");
            }
            FileState::Unknown => {
                let _ = writeln!(out, "{path}: what stands there is not known to be what the command left");
            }
            FileState::Absent | FileState::File { .. } => {}
        }
    }
    let is_known = after.0 != FileState::Unknown;
    let mode = |(state, _)| match state {
        FileState::File { mode, .. } | FileState::Folder { mode } => mode,
        _ => None,
    };
    if are_folders == (before.0.is_folder() || after.0.is_folder())
        && let (Some(old), Some(new)) = (mode(before), mode(after))
        && old != new
    {
        let _ = writeln!(out, "{path}: old mode {old:o}\n{path}: new mode {new:o}");
    }
    let [before, after] = [before, after].map(FileSide::of);
    let blob = |side: &Option<FileSide<'_>>| side.as_ref().map(|side| side.blob);
    if blob(&before) == blob(&after) {
        return out;
    }
    if [&before, &after].into_iter().flatten().any(|side| side.bytes.contains(&0)) {
        if !is_known {
            return out;
        }
        let told = |side: &Option<FileSide<'_>>| {
            blob(side).map_or_else(|| "nothing".to_owned(), |blob| format!("bytes with SHA-256 {blob}"))
        };
        let _ = writeln!(out, "{path}: {} becomes {}", told(&before), told(&after));
        return out;
    }
    let [before, mut after] = [before, after].map(|side| side.map(|side| masked(side.bytes)));
    if !is_known {
        after = Some(String::new());
    }
    out += &::tools::unified_diff(&path, before.as_deref(), after.as_deref());
    if out.is_empty() {
        let _ = writeln!(out, "{path}: differs in nothing but what is masked");
    }
    out
}

/// A file on one side of a difference.
struct FileSide<'b> {
    blob: Digest,
    bytes: &'b [u8],
}

impl<'b> FileSide<'b> {
    /// None of anything but a file.
    const fn of((state, bytes): (FileState, &'b [u8])) -> Option<Self> {
        match state {
            FileState::File { blob, .. } => Some(Self { blob, bytes }),
            _ => None,
        }
    }
}
