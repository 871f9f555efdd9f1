//! What a command changed, written down after it as a file tool does before.

use std::collections::HashSet;
use std::path::Path;

use loom::Digest;
use model::Cancel;
use workspace::{Root, StoreGuard};

use crate::changes::{BytesOrigin, ChangeRecorder, FileContent, PlannedChange, line_name, lines_between};
use crate::checkpoint::{Checkpoint, Checkpoints, CommandChange, Differences, StoodState};
use crate::tool::CallScope;

/// Bytes and paths that are written down in one step.
const BATCH_BYTES: u64 = 16 << 20;
const BATCH_PATHS: usize = 512;
/// Changed paths that are told one by one.
const SHOWN: usize = 40;
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
    /// Whether a file stood there that comes from outside: nobody knows which of them was read.
    pub(crate) is_outside: bool,
}

impl ChangedFiles {
    /// In words; none where nothing changed.
    pub(crate) fn told_changes(&self) -> Option<String> {
        let more = (self.more > 0).then(|| format!("and {} more paths", self.more));
        let lines: Vec<&str> =
            self.lines.iter().chain(&more).chain(&self.notes).map(String::as_str).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// Runs something that may change all that stands beneath a root, and writes down what it changed; `is_outside` says
/// that something from outside went into that anyhow. It blocks.
///
/// # Errors
/// What stands there could not be recorded: nothing was run.
pub fn recording<T>(
    checkpoints: &Checkpoints,
    root: &Root,
    (recorder, cancel, is_outside): (&dyn ChangeRecorder, &Cancel, bool),
    run: impl FnOnce() -> T,
) -> Result<(T, ChangedFiles), String> {
    let before = checkpoints
        .record(root, Some(&recorder.name()), cancel)
        .map_err(|error| format!("it was not run, as its workspace could not be recorded: {error}"))?;
    let ran = checkpoints.while_alive(&recorder.name(), is_outside, run);
    Ok((ran, write_down(checkpoints, root, (&before, is_outside), recorder)))
}

/// Paths of a record that come from outside, in order.
fn outside_of<'c>(record: &'c Checkpoint, recorder: &dyn ChangeRecorder) -> Vec<&'c Path> {
    if !recorder.knows_outside() {
        return Vec::new();
    }
    let mut paths = record.paths_of(&recorder.outside(record.digests()).into_iter().collect());
    paths.sort_unstable();
    paths
}

/// The first of some paths, and how many follow.
fn named(paths: &[&Path]) -> String {
    let shown: Vec<String> =
        paths.iter().take(NAMED).map(|path| line_name(&path.display().to_string())).collect();
    let more = paths.len().saturating_sub(NAMED);
    shown.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

/// Looks whether a file stands beneath a root that comes from outside: what a command says that is not recorded is so,
/// too. Before it runs and after: others may bring one meanwhile. It blocks.
pub(crate) fn note_outside(call: &CallScope<'_>, checkpoints: &Checkpoints, root: &Root) {
    if !call.from_outside.get() && call.changes.knows_outside() {
        let record = checkpoints.record(root, None, call.cancel);
        // What cannot be looked at is believed least.
        if record.map_or(true, |record| !outside_of(&record, call.changes).is_empty()) {
            call.from_outside.set(true);
        }
    }
}

/// Records a root again and writes down what differs.
fn write_down(
    checkpoints: &Checkpoints,
    root: &Root,
    (before, is_outside): (&Checkpoint, bool),
    recorder: &dyn ChangeRecorder,
) -> ChangedFiles {
    let mut told = ChangedFiles { is_outside, ..ChangedFiles::default() };
    let mut outside = outside_of(before, recorder);
    // Also of a command that was stopped.
    let after = match checkpoints.record(root, None, &Cancel::never()) {
        Ok(after) => after,
        Err(error) => {
            checkpoints.finish(&recorder.name());
            told.notes.push(format!("which files it changed could not be found out: {error}"));
            told.is_outside |= !outside.is_empty();
            return told;
        }
    };
    // Others may have brought one meanwhile.
    outside.extend(outside_of(&after, recorder));
    outside.sort_unstable();
    outside.dedup();
    told.is_outside |= !outside.is_empty();
    if !outside.is_empty() {
        told.notes.push(format!("this result is from outside, as these files are: {}", named(&outside)));
    }
    let differences = Differences::between(before, &after, None);
    if let Err(why) = keep(root, (before, &after), (&differences.changes, told.is_outside), recorder) {
        told.notes.push(format!("what it changed cannot be given back: {why}"));
    }
    // Nobody comes back for it.
    checkpoints.finish(&recorder.name());
    for change in differences.changes.iter().take(SHOWN) {
        told.lines.push(told_change((before, &after), change));
    }
    told.more = differences.changes.len().saturating_sub(SHOWN);
    if !differences.not_kept.is_empty() {
        let paths: Vec<String> = differences.not_kept.iter().take(SHOWN).map(ToString::to_string).collect();
        let more = differences.not_kept.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        told.notes.push(format!(
            "changed and not kept, too large, too many or unreadable: {}{more}",
            paths.join(", ")
        ));
    }
    if differences.is_cut {
        told.notes
            .push("the workspace has more paths than are recorded: not all changes are known".to_owned());
    }
    told
}

/// Writes down what a command changed whose process died before it did. `all` holds the records of every root. Returns
/// how many paths there are. It blocks.
///
/// # Errors
/// They could not be found out or written down.
pub fn recover_command(
    all: &Path,
    guard: &StoreGuard,
    recorder: &dyn ChangeRecorder,
) -> Result<usize, String> {
    let name = recorder.name();
    let Some((checkpoints, root, before)) = Checkpoints::unfinished(all, &name) else { return Ok(0) };
    let root = Root::open(&root, guard).map_err(|error| error.to_string())?;
    let after = checkpoints.record(&root, None, &Cancel::never()).map_err(|error| error.to_string())?;
    let differences = Differences::between(&before, &after, checkpoints.lived_until(&name));
    let is_outside = checkpoints.was_outside(&name)
        || !outside_of(&before, recorder).is_empty()
        || !outside_of(&after, recorder).is_empty();
    keep(&root, (&before, &after), (&differences.changes, is_outside), recorder)?;
    checkpoints.finish(&name);
    Ok(differences.changes.len())
}

fn keep(
    root: &Root,
    (before, after): (&Checkpoint, &Checkpoint),
    (changes, is_outside): (&[CommandChange], bool),
    recorder: &dyn ChangeRecorder,
) -> Result<(), String> {
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
            .collect::<Result<Vec<_>, String>>()?;
        let planned = batch.iter().zip(&bytes).map(|(change, (old, new))| PlannedChange {
            root: root.path(),
            path: &change.path,
            before: content(&change.before, old),
            after: content(&change.after, new),
            origin: match () {
                // What is not known says nothing.
                () if stood.contains(&Digest::of(new)) || change.after.is_unknown() => BytesOrigin::Files,
                () if is_outside => BytesOrigin::Outside,
                () => BytesOrigin::Call,
            },
        });
        recorder.record(&planned.collect::<Vec<_>>())?;
        rest = more;
    }
    Ok(())
}

const fn content<'b>(state: &StoodState, bytes: &'b [u8]) -> FileContent<'b> {
    match state {
        StoodState::Absent => FileContent::Absent,
        StoodState::File { mode, .. } | StoodState::Unknown { mode } => {
            FileContent::File { mode: Some(*mode), bytes }
        }
        StoodState::Folder { mode } => FileContent::Folder { mode: Some(*mode) },
        StoodState::Link { .. } => FileContent::Link { target: bytes },
    }
}

/// One change in a line.
fn told_change((before, after): (&Checkpoint, &Checkpoint), change: &CommandChange) -> String {
    let path = line_name(&change.path.as_path().display().to_string());
    let kind = |state: &StoodState| match state {
        StoodState::Folder { .. } => "folder ",
        StoodState::Link { .. } => "link ",
        StoodState::Absent | StoodState::File { .. } | StoodState::Unknown { .. } => "",
    };
    let text = |checkpoint: &Checkpoint, state: &StoodState| {
        let bytes = checkpoint.bytes(state).ok().filter(|bytes| !bytes.contains(&0))?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let counts = || {
        if change.before.len() > COMPARED || change.after.len() > COMPARED {
            return None;
        }
        let (came, went) = lines_between(&text(before, &change.before)?, &text(after, &change.after)?);
        Some(format!(" (+{came} −{went})"))
    };
    match (&change.before, &change.after) {
        (StoodState::Absent, after @ StoodState::File { .. }) => {
            format!("made {}{path}{}", kind(after), counts().unwrap_or_default())
        }
        (StoodState::Absent, after) => format!("made {}{path}", kind(after)),
        (before @ StoodState::File { .. }, StoodState::Absent) => {
            format!("deleted {}{path}{}", kind(before), counts().unwrap_or_default())
        }
        (_, StoodState::Unknown { .. }) => {
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
