//! What a command changed, written down after it as a file tool does before.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loom::Digest;
use model::Cancel;
use workspace::protected::is_held;
use workspace::{Root, RootAccess, is_git_repository};

use crate::changes::{
    BytesOrigin, ChangeRecorder, FileContent, OwnPaths, PlannedChange, line_name, lines_between,
    unkept_digest,
};
use crate::checkpoint::{
    Checkpoint, CheckpointError, CommandChange, Differences, RootCheckpoints, RootRecords, StoodState,
};
use crate::exec::CommandScope;
use crate::tool::CallScope;

/// Bytes and paths that are written down in one step.
const BATCH_BYTES: u64 = 16 << 20;
const BATCH_PATHS: usize = 512;
/// Changed paths that are told one by one.
const SHOWN: usize = 40;
/// Of those, the ones that a person reads while a turn goes on; and how many notes.
const BRIEF: usize = 8;
/// Files from outside that are named.
const NAMED: usize = 5;
/// Bytes of a file whose lines are compared.
const COMPARED: u64 = 1 << 20;

/// What a command changed.
#[derive(Debug, Default)]
pub struct ChangedFiles {
    /// A line for each path.
    lines: Vec<String>,
    more: usize,
    /// What cannot be given back, and why.
    notes: Vec<String>,
    /// Roots whose changes could not be written down, or not be found out.
    unwritten: Vec<PathBuf>,
    /// Whether a file stood there that comes from outside: nobody knows which of them was read.
    pub(crate) is_outside: bool,
}

impl ChangedFiles {
    /// What cannot be given back, a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether anything was changed that is told, or cannot be given back.
    pub(crate) fn are_some(&self) -> bool {
        !self.lines.is_empty() || !self.is_written()
    }

    /// Whether all that was found out is written down.
    pub(crate) fn is_written(&self) -> bool {
        self.unwritten.is_empty()
    }

    /// In words; none where nothing changed.
    pub(crate) fn told_changes(&self) -> Option<String> {
        let more = (self.more > 0).then(|| format!("and {} more paths", self.more));
        let lines: Vec<&str> =
            self.lines.iter().chain(&more).chain(&self.notes).map(String::as_str).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// What a person reads of it: the first paths, how many more there are, and what cannot be given back.
    pub(crate) fn brief(&self) -> impl Iterator<Item = String> + '_ {
        let more = self.more + self.lines.len().saturating_sub(BRIEF);
        let more = (more > 0).then(|| format!("[more files: {more}; /diff shows them]"));
        self.lines.iter().take(BRIEF).cloned().chain(more).chain(self.notes.iter().take(BRIEF).cloned())
    }
}

/// Runs something that may change all that stands beneath the writable ones of some roots, and writes down what it
/// changed, also to protected files at the paths that it `touches`; `is_outside` says that something from outside went into
/// that anyhow. The times of the files that `run` gets say until when it ran, should this process be killed. It blocks.
///
/// # Errors
/// What stands there could not be recorded: nothing was run.
pub fn recording<T>(
    roots: &[RootRecords<'_>],
    recorder: (&dyn ChangeRecorder, &Cancel, bool),
    touches: &[PathBuf],
    run: impl FnOnce(SignFiles) -> T,
) -> Result<(T, ChangedFiles), String> {
    let (ran, changed, _) = recording_from(roots, recorder, touches, |_| (), run)?;
    Ok((ran, changed))
}

/// Files whose time is marked while what is recorded runs.
pub(crate) type SignFiles = Vec<PathBuf>;

/// [`recording`] whose `begins` sees what stood there before; what stands there after is returned, too. What the
/// walls hold is changed at the paths that it `touches` alone.
pub(super) fn recording_from<T>(
    roots: &[RootRecords<'_>],
    (recorder, cancel, is_outside): (&dyn ChangeRecorder, &Cancel, bool),
    touches: &[PathBuf],
    begins: impl FnOnce(&[RecordedRoot<'_>]),
    run: impl FnOnce(SignFiles) -> T,
) -> Result<(T, ChangedFiles, RootStates), String> {
    let name = recorder.name();
    let mut before = Vec::new();
    let mut is_outside = is_outside;
    for of in roots {
        if of.root.access() == RootAccess::ReadOnly {
            is_outside |= holds_outside(*of, recorder, cancel);
            continue;
        }
        match of.checkpoints.record(of.root, Some(&name), cancel) {
            Ok(record) => before.push((*of, record)),
            Err(error) => {
                before.iter().for_each(|(of, _)| of.checkpoints.finish(&name));
                return Err(format!("it was not run, as its workspace could not be recorded: {error}"));
            }
        }
    }
    begins(&before);
    let mut repositories: Vec<&Path> = before.iter().map(|(of, _)| of.root.path()).collect();
    repositories.retain(|root| is_git_repository(root));
    let ran = run(before.iter().map(|(of, _)| of.checkpoints.begin(&name, is_outside)).collect());
    // Others may have brought one meanwhile.
    let read_only = roots.iter().filter(|of| of.root.access() == RootAccess::ReadOnly);
    let is_outside =
        read_only.fold(is_outside, |is, of| is || holds_outside(*of, recorder, &Cancel::never()));
    let others = OtherChanges { own: &OwnPaths::new(), touches };
    let (mut changed, after) =
        write_down(&before, record_now, (is_outside, BytesOrigin::Call), (recorder, others));
    repositories.retain(|root| !is_git_repository(root));
    changed.notes.extend(repositories.into_iter().map(lost_repository));
    // What is left is written down once the call is found without a result.
    let is_written =
        |(of, _): &&RecordedRoot<'_>| !changed.unwritten.iter().any(|root| root == of.root.path());
    before.iter().filter(is_written).for_each(|(of, _)| of.checkpoints.finish(&name));
    if !changed.unwritten.is_empty() {
        recorder.leave(&changed.notes.join("; "));
    }
    Ok((ran, changed, after))
}

/// Says that git finds no repository where it found one.
fn lost_repository(root: &Path) -> String {
    let root = line_name(&root.display().to_string());
    format!(
        "git finds no repository in {root} any more: what went of its .git is not recorded and cannot be given back"
    )
}

/// A file or link that something changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPath {
    /// Below the workspace, or absolute.
    pub path: PathBuf,
    /// Lines that came and went; none of what is too large or no text.
    pub lines: Option<(usize, usize)>,
}

/// Runs something, and finds what it changed beneath the writable ones of some roots. Nothing is kept of it. It blocks.
///
/// # Errors
/// What stands there could not be recorded: nothing was run.
pub fn comparing<T>(
    roots: &[RootRecords<'_>],
    run: impl FnOnce() -> T,
) -> Result<(T, Result<Vec<ChangedPath>, String>), String> {
    let record = |of: &RootRecords<'_>| {
        let record = of.checkpoints.record(of.root, None, &Cancel::never());
        record.map_err(|error| error.to_string())
    };
    let mut before = Vec::new();
    for of in roots.iter().filter(|of| of.root.access() != RootAccess::ReadOnly) {
        before.push((of, record(of)?));
    }
    let ran = run();
    let mut changed = Vec::new();
    for (of, before) in before {
        let after = match record(of) {
            Ok(after) => after,
            Err(why) => return Ok((ran, Err(why))),
        };
        let differences = Differences::between(&before, &after, None);
        for change in &differences.changes {
            let is_folder = |state: &StoodState| matches!(state, StoodState::Folder { .. });
            if !is_folder(&change.before) && !is_folder(&change.after) {
                let lines = changed_lines((&before, &after), change);
                changed.push(ChangedPath { path: shown(of.root, change.path.as_path()), lines });
            }
        }
    }
    Ok((ran, Ok(changed)))
}

/// A writable root and what stood there before.
pub(super) type RecordedRoot<'r> = (RootRecords<'r>, Arc<Checkpoint>);

/// Tells what else changed from what a command changed.
#[derive(Clone, Copy)]
pub(super) struct OtherChanges<'o> {
    /// Paths that the call itself changed, by their roots.
    pub(super) own: &'o OwnPaths,
    /// Paths that commands were let to touch of what the walls hold.
    pub(super) touches: &'o [PathBuf],
}

impl OtherChanges<'_> {
    fn hold(self, root: &Path, path: &Path) -> bool {
        let is_touched = || self.touches.iter().any(|touched| root.join(path).starts_with(touched));
        self.own.contains(&(root.to_owned(), path.to_owned())) || is_held(path) && !is_touched()
    }
}

/// Roots and what stands there.
pub(super) type RootStates = Vec<(PathBuf, Arc<Checkpoint>)>;

/// What stands beneath a root now, also where a command was stopped.
pub(super) fn record_now(of: RootRecords<'_>) -> Result<Arc<Checkpoint>, CheckpointError> {
    of.checkpoints.record(of.root, None, &Cancel::never())
}

/// Whether a file stands beneath a root that comes from outside. What cannot be looked at is believed least.
pub(super) fn holds_outside(of: RootRecords<'_>, recorder: &dyn ChangeRecorder, cancel: &Cancel) -> bool {
    recorder.knows_outside()
        && of
            .checkpoints
            .record(of.root, None, cancel)
            .map_or(true, |record| !outside_of(&record, recorder).is_empty())
}

/// Paths of a record that come from outside, in order.
pub(super) fn outside_of<'c>(record: &'c Checkpoint, recorder: &dyn ChangeRecorder) -> Vec<&'c Path> {
    if !recorder.knows_outside() {
        return Vec::new();
    }
    let mut paths = record.paths_of(&recorder.outside(record.digests()).into_iter().collect());
    paths.sort_unstable();
    paths
}

/// A recorded path as it is named.
fn shown(root: &Root, path: &Path) -> PathBuf {
    if root.is_further() { root.path().join(path) } else { path.to_owned() }
}

/// The first of some paths, and how many follow.
fn named(paths: &BTreeSet<PathBuf>) -> String {
    let shown: Vec<String> =
        paths.iter().take(NAMED).map(|path| line_name(&path.display().to_string())).collect();
    let more = paths.len().saturating_sub(NAMED);
    shown.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

/// Looks whether a file stands beneath a root that comes from outside: what a command says that is not recorded is so,
/// too. Before it runs and after: others may bring one meanwhile. It blocks.
pub(crate) fn note_outside(call: &CallScope<'_>, checkpoints: &RootCheckpoints) {
    if !call.from_outside.get() {
        let roots = checkpoints.of_roots(&call.scope.roots);
        let is_outside = roots.into_iter().any(|of| holds_outside(of, call.changes, call.cancel));
        call.from_outside.set(is_outside);
    }
}

/// Runs a command of a call that can change nothing.
pub(crate) fn looking<T>(call: &CallScope<'_>, commands: &CommandScope, run: impl FnOnce() -> T) -> T {
    note_outside(call, &commands.checkpoints);
    let ran = run();
    call.meets_commands(commands);
    note_outside(call, &commands.checkpoints);
    ran
}

/// Asks what stands beneath the roots after and writes down what differs, and where its bytes come from unless from outside.
/// Returns the new records, too; the old one of a root whose changes could not be kept.
pub(super) fn write_down(
    roots: &[RecordedRoot<'_>],
    stands: impl Fn(RootRecords<'_>) -> Result<Arc<Checkpoint>, CheckpointError>,
    (is_outside, origin): (bool, BytesOrigin),
    (recorder, others): (&dyn ChangeRecorder, OtherChanges<'_>),
) -> (ChangedFiles, RootStates) {
    let mut told = ChangedFiles { is_outside, ..ChangedFiles::default() };
    let mut outside = BTreeSet::new();
    let (mut records, mut new) = (Vec::new(), Vec::new());
    for (of, before) in roots {
        let mut find = |record: &Checkpoint| {
            let paths = outside_of(record, recorder).into_iter();
            outside.extend(paths.map(|path| shown(of.root, path)));
        };
        find(before);
        match stands(*of) {
            Ok(after) => {
                // Others may have brought one meanwhile.
                find(&after);
                records.push((of, before, after));
            }
            Err(error) => {
                new.push((of.root.path().to_owned(), Arc::clone(before)));
                if error.is_of_the_home() {
                    told.unwritten.push(of.root.path().to_owned());
                }
                told.notes.push(format!("which files it changed could not be found out: {error}"));
            }
        }
    }
    told.is_outside |= !outside.is_empty();
    if !outside.is_empty() {
        told.notes.push(format!("this result is from outside, as these files are: {}", named(&outside)));
    }
    for (of, before, after) in records {
        let is_kept = write_down_root(*of, (before, &after), (origin, (recorder, others)), &mut told);
        new.push((of.root.path().to_owned(), if is_kept { after } else { Arc::clone(before) }));
    }
    (told, new)
}

/// Writes down what differs in one root. Whether that is kept.
fn write_down_root(
    of: RootRecords<'_>,
    (before, after): (&Checkpoint, &Checkpoint),
    (origin, (recorder, others)): (BytesOrigin, (&dyn ChangeRecorder, OtherChanges<'_>)),
    told: &mut ChangedFiles,
) -> bool {
    let mut differences = Differences::between(before, after, None);
    differences.changes.retain(|change| !others.hold(of.root.path(), change.path.as_path()));
    let origin = if told.is_outside { BytesOrigin::Outside } else { origin };
    let kept = keep(of.root, (before, after), (&differences.changes, origin), recorder);
    let is_kept = kept.is_ok();
    if let Err(error) = kept {
        if matches!(error, UnkeptChanges::Unwritten(_)) {
            told.unwritten.push(of.root.path().to_owned());
        }
        told.notes.push(format!("what it changed cannot be given back: {error}"));
    }
    let room = SHOWN.saturating_sub(told.lines.len());
    for change in differences.changes.iter().take(room) {
        told.lines.push(told_change(of.root, (before, after), change));
    }
    told.more += differences.changes.len().saturating_sub(room);
    if differences.unnamed > 0 {
        let unnamed = differences.unnamed;
        told.notes.push(format!(
            "{unnamed} more files changed that are not kept: too large, too many or unreadable"
        ));
    }
    if differences.is_cut {
        let folder = match of.root.is_further() {
            true => line_name(&of.root.path().display().to_string()),
            false => "the workspace".to_owned(),
        };
        told.notes.push(format!("{folder} has more paths than are recorded: not all changes are known"));
    }
    is_kept
}

/// Why changes are not kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnkeptChanges {
    /// The bytes that were recorded are not those that stood there.
    #[error("{0}")]
    Damaged(String),
    /// Changes could not be written down by now.
    #[error("{0}")]
    Unwritten(String),
}

/// Writes changes down, a batch at a time.
pub(super) fn keep(
    root: &Root,
    (before, after): (&Checkpoint, &Checkpoint),
    (changes, origin): (&[CommandChange], BytesOrigin),
    recorder: &dyn ChangeRecorder,
) -> Result<(), UnkeptChanges> {
    let stood: HashSet<Digest> = before.digests().into_iter().collect();
    let mut rest = changes;
    while !rest.is_empty() {
        let mut sum = 0;
        let fits = |change: &&CommandChange| {
            sum += change.before.len() + change.after.len();
            sum <= BATCH_BYTES
        };
        let count = rest.iter().take(BATCH_PATHS).take_while(fits).count().max(1);
        let (batch, more) = rest.split_at(count);
        let bytes = batch
            .iter()
            .map(|change| Ok((before.bytes(&change.before)?, after.bytes(&change.after)?)))
            .collect::<Result<Vec<_>, String>>()
            .map_err(UnkeptChanges::Damaged)?;
        let planned = batch.iter().zip(&bytes).map(|(change, (old, new))| PlannedChange {
            root: root.path(),
            path: &change.path,
            before: content(&change.before, old),
            after: content(&change.after, new),
            origin: match () {
                // What is not known says nothing.
                () if stood.contains(&Digest::of(new)) || change.after.is_unknown() => BytesOrigin::Files,
                () => origin,
            },
        });
        recorder.record_found(&planned.collect::<Vec<_>>()).map_err(UnkeptChanges::Unwritten)?;
        rest = more;
    }
    Ok(())
}

fn content<'b>(state: &StoodState, bytes: &'b [u8]) -> FileContent<'b> {
    match state {
        StoodState::Absent => FileContent::Absent,
        StoodState::File { mode, .. } => FileContent::File { mode: Some(*mode), bytes },
        StoodState::Unknown => FileContent::Unknown,
        StoodState::Special(id) => FileContent::Special(*id),
        StoodState::Large { stamp } => FileContent::Large { bytes: stamp.bytes, stamp: unkept_digest(stamp) },
        StoodState::Folder { mode } => FileContent::Folder { mode: Some(*mode) },
        StoodState::Link { .. } => FileContent::Link { target: bytes },
    }
}

/// Lines that came and went; none of a file that is too large or no text.
fn changed_lines(
    (before, after): (&Checkpoint, &Checkpoint),
    change: &CommandChange,
) -> Option<(usize, usize)> {
    let text = |checkpoint: &Checkpoint, state: &StoodState| {
        let bytes = checkpoint.bytes(state).ok().filter(|bytes| !bytes.contains(&0))?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    if change.before.len() > COMPARED
        || change.after.len() > COMPARED
        || change.after.is_unknown()
        || [&change.before, &change.after].into_iter().any(|side| matches!(side, StoodState::Large { .. }))
    {
        return None;
    }
    Some(lines_between(&text(before, &change.before)?, &text(after, &change.after)?))
}

/// One change in a line.
fn told_change(root: &Root, (before, after): (&Checkpoint, &Checkpoint), change: &CommandChange) -> String {
    let path = line_name(&root.shown(&change.path).display().to_string());
    let kind = |state: &StoodState| match state {
        StoodState::Folder { .. } => "folder ",
        StoodState::Link { .. } => "link ",
        StoodState::Special(_) => "pipe or socket ",
        StoodState::Absent | StoodState::File { .. } | StoodState::Unknown | StoodState::Large { .. } => "",
    };
    let counts = || {
        let (came, went) = changed_lines((before, after), change)?;
        Some(format!(" (+{came} −{went})"))
    };
    match (&change.before, &change.after) {
        (StoodState::Absent, after @ StoodState::File { .. }) => {
            format!("made {}{path}{}", kind(after), counts().unwrap_or_default())
        }
        (StoodState::Absent, StoodState::Large { stamp }) => {
            let size = text::bytes::size(stamp.bytes);
            format!("made {path} ({size}: its bytes are not kept, so it can be removed and not brought back)")
        }
        (StoodState::Absent, StoodState::Unknown) => {
            format!("made {path} (its bytes are not kept, so it stays when the rest is given back)")
        }
        (StoodState::Large { stamp }, after) => {
            let did = if *after == StoodState::Absent { "deleted" } else { "changed" };
            let size = text::bytes::size(stamp.bytes);
            format!("{did} {path} (it had {size}: its bytes were not kept, so it is not brought back)")
        }
        (StoodState::Absent, after) => format!("made {}{path}", kind(after)),
        (before @ StoodState::File { .. }, StoodState::Absent) => {
            format!("deleted {}{path}{}", kind(before), counts().unwrap_or_default())
        }
        (_, StoodState::Unknown | StoodState::Large { .. }) => {
            format!("changed {path} (what stood there is kept, not what it became)")
        }
        (before, StoodState::Absent) => format!("deleted {}{path}", kind(before)),
        (StoodState::File { mode, digest, .. }, StoodState::File { mode: new, digest: same, .. })
            if digest == same =>
        {
            format!("changed {path} (mode {mode:o} to {new:o})")
        }
        (StoodState::File { .. }, StoodState::File { .. }) => {
            format!("changed {path}{}", counts().unwrap_or_default())
        }
        (_, after) => format!("changed {}{path}", kind(after)),
    }
}
