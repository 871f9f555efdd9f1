//! What tools changed in files: shown, and given back (spec: agent §3 *Checkpoints*).
//!
//! A path that only tools touched becomes what it was. One that somebody touched since, or between two changes, is named
//! and left; nothing else is looked at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ::tools::FileContent;
use loom::operation::TimelineEffect;
use loom::{NodeId, Seq, TreeId, TreeReader};
use store::home::HomeDir;
use store::{FileChange, FileChangeId, FileState, LIST_PAGE, SessionId};
use workspace::{FileKind, FileProblem, ReadRules, RelativePath, Root};

use crate::app::App;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::file_changes::{FileDifference, FilesChanged, FilesGivenBack, LeftFile};
use crate::rights::Asker;

/// Bytes of a file that is compared.
const MAX_BYTES: u64 = 10 << 20;

/// All that was done to one path, as one change.
struct PathChange {
    root: PathBuf,
    path: PathBuf,
    before: FileState,
    /// What stood there before the last of them, which may have failed.
    before_last: FileState,
    after: FileState,
    /// Whether each change began where the one before had ended, or had begun.
    is_whole: bool,
    ids: Vec<FileChangeId>,
}

/// Changes that were not given back, by path, in the order of the first change of each.
fn by_path(changes: Vec<FileChange>) -> Vec<PathChange> {
    let mut paths: Vec<PathChange> = Vec::new();
    let mut known: BTreeMap<(PathBuf, PathBuf), usize> = BTreeMap::new();
    for change in changes {
        let key = (change.root.clone(), change.path.clone());
        match known.get(&key).map(|at| &mut paths[*at]) {
            Some(path) => {
                path.is_whole &=
                    is_same(path.after, change.before) || is_same(path.before_last, change.before);
                (path.before_last, path.after) = (change.before, change.after);
                path.ids.push(change.id);
            }
            None => {
                known.insert(key, paths.len());
                let FileChange { id, root, path, before, after, .. } = change;
                paths.push(PathChange {
                    root,
                    path,
                    before,
                    before_last: before,
                    after,
                    is_whole: true,
                    ids: vec![id],
                });
            }
        }
    }
    paths
}

/// Permission bits of a file before it gets its own.
const PRIVATE: u32 = 0o600;

/// Whether what stands there is what a change left.
fn is_same(left: FileState, found: FileState) -> bool {
    match (left, found) {
        // A process that died in between left it as its own files are.
        (FileState::File { blob, mode }, FileState::File { blob: other, mode: found }) if blob == other => {
            mode.is_none() || mode == found || found == Some(PRIVATE)
        }
        (left, found) => left == found,
    }
}

/// Those of a tree that stand, the oldest first.
async fn standing(app: &App, asker: &Asker, tree: TreeId) -> Result<Vec<FileChange>, CommandError> {
    let page = |after| app.runtime.store.file_changes(&asker.principal, tree, after, LIST_PAGE);
    let mut all = store::all_pages(|change: &FileChange| change.id, page).await?;
    all.retain(|change| !change.taken_back);
    Ok(all)
}

/// Shows what tools changed in the files of a conversation and nobody gave back.
pub(crate) async fn diff(app: &App, asker: &Asker, tree: TreeId) -> Result<CommandOutcome, CommandError> {
    let paths = by_path(standing(app, asker, tree).await?);
    Ok(CommandOutcome::FilesChanged(FilesChanged { files: differences(app, paths.iter()).await? }))
}

/// The text of a file, with secrets masked; none where there is no file.
async fn text_of(app: &App, state: FileState) -> Result<Option<String>, CommandError> {
    let Some(blob) = state.blob() else { return Ok(None) };
    let bytes = app.runtime.read_blob(blob).await?;
    Ok(Some(app.runtime.masker.mask(&String::from_utf8_lossy(&bytes)).text.into_owned()))
}

async fn differences<'p>(
    app: &App,
    paths: impl Iterator<Item = &'p PathChange>,
) -> Result<Vec<FileDifference>, CommandError> {
    let mut files = Vec::new();
    for path in paths.filter(|path| path.after != FileState::Folder && path.before != path.after) {
        let (is_new, is_gone) = (path.before == FileState::Absent, path.after == FileState::Absent);
        let (before, after) = (text_of(app, path.before).await?, text_of(app, path.after).await?);
        let name = path.path.display().to_string();
        let diff = ::tools::unified_diff(&name, before.as_deref(), after.as_deref());
        files.push(FileDifference {
            root: path.root.clone(),
            path: path.path.clone(),
            is_new,
            is_gone,
            diff,
        });
    }
    Ok(files)
}

/// Gives back what the last turn changed in files of which anything can be given back, while nobody answers in the
/// session: its tools would go on from what is taken away.
pub(crate) async fn give_back(
    app: &App,
    asker: &Asker,
    tree: TreeId,
) -> Result<CommandOutcome, CommandError> {
    let session = app.runtime.store.tree(&asker.principal, tree).await?.session;
    let Some(session) = session.map(SessionId) else { return give_back_alone(app, asker, tree).await };
    let give_back = |_| Box::pin(give_back_alone(app, asker, tree));
    app.runtime.between_turns(&asker.principal, &session, give_back).await?
}

async fn give_back_alone(app: &App, asker: &Asker, tree: TreeId) -> Result<CommandOutcome, CommandError> {
    let mut done = FilesGivenBack::default();
    for changes in by_turn(app, asker, tree).await? {
        let (mut back, mut paths) = (Vec::new(), Vec::new());
        for path in by_path(changes) {
            match examine(app, &path).await? {
                Ok(Found { is_back: true, .. }) => back.extend(path.ids),
                Ok(found) => paths.push((path, found)),
                Err(why) => done.left.push(LeftFile { path: path.path, why }),
            }
        }
        app.runtime.store.take_back_file_changes(&asker.principal, tree, back).await?;
        if paths.is_empty() {
            continue;
        }
        confirm(app, &paths).await?;
        // What comes back goes first, so that nothing is gone in between; folders go when they are empty.
        let (returning, going): (Vec<_>, Vec<_>) =
            paths.into_iter().partition(|(path, _)| path.before != FileState::Absent);
        for (path, found) in returning.into_iter().chain(going.into_iter().rev()) {
            match give_path_back(app, &path, found).await? {
                Ok(()) => {
                    app.runtime.store.take_back_file_changes(&asker.principal, tree, path.ids).await?;
                    done.given.push(path.path);
                }
                Err(why) => done.left.push(LeftFile { path: path.path, why }),
            }
        }
        break;
    }
    Ok(CommandOutcome::FilesGivenBack(done))
}

/// Shows what is given back, and asks where somebody is there.
async fn confirm(app: &App, paths: &[(PathChange, Found)]) -> Result<(), CommandError> {
    if !app.frontend.is_attended() {
        return Ok(());
    }
    for file in differences(app, paths.iter().map(|(path, _)| path)).await? {
        file.diff.lines().for_each(|line| app.frontend.note(&text::terminal::explicit(line)));
    }
    if app.frontend.confirm(&format!("Give back {} paths as they were before?", paths.len())) {
        return Ok(());
    }
    Err(CommandError::refused("not_confirmed", "nothing was given back", "say yes to give it back"))
}

/// The changes that stand, a turn each, the newest first.
async fn by_turn(app: &App, asker: &Asker, tree: TreeId) -> Result<Vec<Vec<FileChange>>, CommandError> {
    let all = standing(app, asker, tree).await?;
    let mut answers: Vec<NodeId> = all.iter().map(|change| change.id.call.answer).collect();
    answers.dedup();
    let read = move |rows: &dyn TreeReader| {
        let turns = answers.into_iter().map(|answer| Ok((answer, turn_of(rows, answer)?)));
        turns.collect::<Result<BTreeMap<_, _>, loom::RowError>>()
    };
    let turns = app.read(asker, tree, read).await?;
    let mut found: BTreeMap<Option<Seq>, Vec<FileChange>> = BTreeMap::new();
    for change in all {
        let turn = turns.get(&change.id.call.answer).copied().flatten();
        found.entry(turn).or_default().push(change);
    }
    Ok(found.into_values().rev().collect())
}

/// The operation that began the turn of an answer.
fn turn_of(rows: &dyn TreeReader, answer: NodeId) -> Result<Option<Seq>, loom::RowError> {
    let Some(row) = rows.node(answer)? else { return Ok(None) };
    let record = rows.operation(row.seq)?;
    Ok(record.map(|record| match record.op.timeline {
        TimelineEffect::Join(first) => first,
        _ => record.seq,
    }))
}

/// What stands at a path that can be given back.
struct Found {
    /// Whether it is what it was already.
    is_back: bool,
    state: FileState,
    bytes: Vec<u8>,
}

/// What stands at a path, or why it is left.
async fn examine(app: &App, change: &PathChange) -> Result<Result<Found, String>, CommandError> {
    let guard = app.guard.clone();
    let (root, path) = (change.root.clone(), change.path.clone());
    let (was, left, is_whole) = (change.before, [change.after, change.before_last], change.is_whole);
    let found = tokio::task::spawn_blocking(move || {
        let root = Root::open(&root, &guard).map_err(|error| error.to_string())?;
        let (state, bytes) = state_at(&root, &relative(&path)?)?;
        match (state == was, is_whole, left.into_iter().any(|left| is_same(left, state))) {
            (true, ..) => Ok(Found { is_back: true, state, bytes }),
            (_, false, _) => Err("somebody changed it between two changes of tools".to_owned()),
            (_, _, false) if !is_same(was, state) => Err("somebody changed it since".to_owned()),
            _ => Ok(Found { is_back: false, state, bytes }),
        }
    });
    Ok(found.await.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic())))
}

fn relative(path: &Path) -> Result<RelativePath, String> {
    let path = path.to_str().ok_or("its name is no text")?;
    RelativePath::parse(path).map_err(|error| error.to_string())
}

/// Gives one path back, or says why it is left.
async fn give_path_back(
    app: &App,
    change: &PathChange,
    found: Found,
) -> Result<Result<(), String>, CommandError> {
    let before = match change.before.blob() {
        Some(blob) => app.runtime.read_blob(blob).await?,
        None => Vec::new(),
    };
    let locks = app.runtime.home.dir(HomeDir::Locks);
    let locks = locks.map_err(|error| CommandError::new("home", 6, error.to_string(), error.hint()))?;
    let guard = app.guard.clone();
    let (root, path, was) = (change.root.clone(), change.path.clone(), change.before);
    let umask = store::home::former_umask();
    let done = tokio::task::spawn_blocking(move || {
        let root = Root::open(&root, &guard).map_err(|error| error.to_string())?;
        let states = (content(was, &before), content(found.state, &found.bytes));
        ::tools::give_back(&locks, &root, &relative(&path)?, states, umask)
    });
    Ok(done.await.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic())))
}

/// What stands at a path now, with its bytes.
fn state_at(root: &Root, path: &RelativePath) -> Result<(FileState, Vec<u8>), String> {
    match root.read(path, &ReadRules::at_most(MAX_BYTES)) {
        Ok(content) => {
            let state = FileState::File { mode: Some(content.metadata.mode), blob: content.digest() };
            Ok((state, content.bytes))
        }
        Err(error) => match error.problem {
            FileProblem::NotFound => Ok((FileState::Absent, Vec::new())),
            FileProblem::NotRegular(FileKind::Folder) => Ok((FileState::Folder, Vec::new())),
            _ => Err(error.to_string()),
        },
    }
}

const fn content(state: FileState, bytes: &[u8]) -> FileContent<'_> {
    match state {
        FileState::Absent => FileContent::Absent,
        FileState::File { mode, .. } => FileContent::File { mode, bytes },
        FileState::Folder => FileContent::Folder,
    }
}

#[cfg(test)]
mod tests {
    use loom::Digest;
    use store::CallId;

    use super::*;

    fn file(text: &str) -> FileState {
        FileState::File { mode: Some(0o644), blob: Digest::of(text.as_bytes()) }
    }

    fn changed(states: &[(FileState, FileState)]) -> bool {
        let answer = NodeId::from_bytes([1; 16]);
        let changes = (0..).zip(states).map(|(number, (before, after))| FileChange {
            id: FileChangeId { call: CallId { answer, number }, number: 0 },
            root: "/w".into(),
            path: "a".into(),
            before: *before,
            after: *after,
            at: loom::Millis(1),
            taken_back: false,
        });
        let [path] = by_path(changes.collect()).try_into().ok().unwrap();
        path.is_whole
    }

    #[test]
    fn changes_that_follow_each_other_are_one_also_where_one_failed() {
        let (a, b, c, d) = (file("a"), file("b"), file("c"), file("d"));
        let new = FileState::File { mode: None, blob: Digest::of(b"b") };
        assert!(changed(&[(a, b), (b, c)]));
        assert!(changed(&[(FileState::Absent, new), (b, c)]), "the mode of a new file is the system's");
        assert!(changed(&[(a, b), (a, c), (c, d)]), "the first failed");
        assert!(!changed(&[(a, b), (d, c)]), "somebody wrote in between");
    }
}
