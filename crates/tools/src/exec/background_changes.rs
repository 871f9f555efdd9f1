//! What commands in the background change, written down by the calls of a turn (spec: agent §3 *Checkpoints*).
//!
//! The roots are recorded when the first of them begins. Each look at one compares with that and writes down what differs,
//! as a change of the call that looks. So does each call that changes files itself, before it does and after: there the
//! paths that it changed are its own. A command that such a call runs to its end changes all that differs meanwhile: what was
//! recorded when it began and ended is what the next look compares with. Whatever is changed before the first call of another turn is nobody's, as the owner works then.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loom::{Seq, ToolStatus, TreeId};
use model::Cancel;
use policy::CommandStart;
use workspace::RootAccess;

use super::CommandScope;
use super::changed_files::{
    ChangedFiles, OtherChanges, RecordedRoot, RootStates, SignFiles, holds_outside, outside_of, record_now,
    recording_from, write_down,
};
use crate::changes::{BytesOrigin, ChangeRecorder};
use crate::checkpoint::{Checkpoint, CheckpointError, RootRecords};
use crate::tool::{CallScope, Tool, ToolOutput, ToolScope};

/// What stood beneath the writable roots of a session when it was last known whose changes they hold; nothing while no
/// command runs in the background.
#[derive(Debug, Default)]
pub struct BackgroundChanges(Mutex<Option<Baseline>>);

/// The scope of a call, and where its commands run.
type CommandPlace<'c> = (&'c ToolScope, &'c CommandScope);

/// A turn: the operation that began it, whose number is one of its tree.
pub(crate) type TurnName = (TreeId, Option<Seq>);

#[derive(Debug)]
struct Baseline {
    /// The turn that it was made in.
    turn: TurnName,
    records: RootStates,
    /// Paths of what the walls hold that one of the commands was let to touch.
    touches: Vec<PathBuf>,
    /// Whether a file from outside stood there since the first command began: one that runs may have read it.
    is_outside: bool,
}

impl BackgroundChanges {
    /// Records what stands there before a command begins, unless one runs already.
    ///
    /// # Errors
    /// It could not be recorded: nothing may begin.
    pub(super) fn begin(
        &self,
        call: &CallScope<'_>,
        commands: &CommandScope,
        touches: &[PathBuf],
    ) -> Result<(), String> {
        let mut baseline = self.locked();
        if baseline.is_none() {
            let made =
                Baseline::made((call.scope, commands), turn_of(call), (false, call.cancel), Vec::new());
            *baseline =
                Some(made.map_err(|why| {
                    format!("it was not run, as its workspace could not be recorded: {why}")
                })?);
        }
        if let Some(baseline) = baseline.as_mut() {
            baseline.touches.extend_from_slice(touches);
        }
        Ok(())
    }

    /// Adds what a command in the foreground was let to touch, as long as one in the background runs, which may change it
    /// too; all that they were let to touch together.
    fn with_touches(&self, touches: &[PathBuf]) -> Vec<PathBuf> {
        let mut baseline = self.locked();
        let Some(baseline) = baseline.as_mut() else { return touches.to_vec() };
        baseline.touches.extend_from_slice(touches);
        baseline.touches.clone()
    }

    /// Forgets what was recorded for a command that did not begin.
    fn has_not_begun(&self, commands: &CommandScope) {
        let mut baseline = self.locked();
        if !commands.processes.any_runs() {
            *baseline = None;
        }
    }

    /// Goes on from what stands there now, if that was recorded in another turn.
    fn enter(&self, call: &CallScope<'_>, commands: &CommandScope) {
        let mut baseline = self.locked();
        if let Some(before) = baseline.as_ref().filter(|before| before.turn != turn_of(call)) {
            let runs = commands.processes.any_runs();
            *baseline = before.anew((call.scope, commands), call.changes, turn_of(call), runs);
        }
    }

    fn locked(&self) -> MutexGuard<'_, Option<Baseline>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what was changed in a turn since the last time, and goes on from what stands there now.
    pub(crate) fn settle(
        &self,
        place: CommandPlace<'_>,
        changes: &dyn ChangeRecorder,
        turn: TurnName,
    ) -> Option<ChangedFiles> {
        self.settle_at(place, changes, turn, record_now)
    }

    /// [`Self::settle`] where `stands` says what stands beneath a root now.
    fn settle_at(
        &self,
        (scope, commands): CommandPlace<'_>,
        changes: &dyn ChangeRecorder,
        turn: TurnName,
        stands: impl Fn(RootRecords<'_>) -> Result<Arc<Checkpoint>, CheckpointError>,
    ) -> Option<ChangedFiles> {
        let mut baseline = self.locked();
        let before = baseline.as_ref()?;
        // A command that ends meanwhile is looked at once more.
        let runs = commands.processes.any_runs();
        if before.turn != turn {
            return None;
        }
        let roots: Vec<RecordedRoot<'_>> = writable(scope, commands)
            .filter_map(|of| Some((of, Arc::clone(record_of(&before.records, of)?))))
            .collect();
        let is_read_outside = |of: RootRecords<'_>| {
            of.root.access() == RootAccess::ReadOnly && holds_outside(of, changes, &Cancel::never())
        };
        let is_outside = commands.meets(changes)
            || before.is_outside
            || commands.checkpoints.of_roots(&scope.roots).into_iter().any(is_read_outside);
        // Bytes that nobody approved with the call, whatever it is.
        let (own, touches) = (changes.own_paths(), before.touches.clone());
        let mut written = None;
        changes.beside(&mut || {
            let others = OtherChanges { own: &own, touches: &touches };
            written = Some(write_down(&roots, &stands, (is_outside, BytesOrigin::Files), (changes, others)));
        });
        let (changed, after) = written?;
        *baseline = runs.then(|| Baseline { turn, records: after, is_outside: changed.is_outside, touches });
        Some(changed)
    }

    /// Goes on from what stood there when a command of a call had run to its end, as all that differs was written down.
    fn follow(&self, records: RootStates, is_outside: bool) {
        if let Some(baseline) = self.locked().as_mut() {
            baseline.records = records;
            baseline.is_outside |= is_outside;
        }
    }
}

impl Baseline {
    fn made(
        (scope, commands): CommandPlace<'_>,
        turn: TurnName,
        (is_outside, cancel): (bool, &Cancel),
        touches: Vec<PathBuf>,
    ) -> Result<Self, String> {
        let record = |of: RootRecords<'_>| {
            let record = of.checkpoints.record(of.root, None, cancel);
            record.map(|record| (of.root.path().to_owned(), record)).map_err(|error| error.to_string())
        };
        let records: Result<_, String> = writable(scope, commands).map(record).collect();
        Ok(Self { turn, records: records?, touches, is_outside })
    }

    /// Baseline of what stands there now, whoever changed it; none where no command runs or recording fails.
    fn anew(
        &self,
        place: CommandPlace<'_>,
        changes: &dyn ChangeRecorder,
        turn: TurnName,
        runs: bool,
    ) -> Option<Self> {
        if !runs {
            return None;
        }
        let is_outside =
            self.is_outside || self.records.iter().any(|(_, record)| !outside_of(record, changes).is_empty());
        let made = Self::made(place, turn, (is_outside, &Cancel::never()), self.touches.clone());
        made.inspect_err(|why| tracing::warn!(why, "what commands in the background change is not recorded"))
            .ok()
    }
}

fn turn_of(call: &CallScope<'_>) -> TurnName {
    (call.place.tree, call.place.turn)
}

fn record_of<'c>(records: &'c RootStates, of: RootRecords<'_>) -> Option<&'c Arc<Checkpoint>> {
    records.iter().find(|(root, _)| root == of.root.path()).map(|(_, record)| record)
}

fn writable<'c>(scope: &'c ToolScope, commands: &'c CommandScope) -> impl Iterator<Item = RootRecords<'c>> {
    let roots = commands.checkpoints.of_roots(&scope.roots).into_iter();
    roots.filter(|of| of.root.access() == RootAccess::ReadWrite)
}

/// Runs a command of a call to its end and writes down what changed meanwhile; `is_outside` says that something from
/// outside goes into that anyhow, and it may change what it `touches` of what the walls hold. What commands in the
/// background changed until it begins is written down before. It blocks.
///
/// # Errors
/// What stands there could not be recorded: nothing was run.
pub(crate) fn recording_beside<T>(
    call: &CallScope<'_>,
    commands: &CommandScope,
    (is_outside, touches): (bool, &[PathBuf]),
    run: impl FnOnce(SignFiles) -> T,
) -> Result<(T, ChangedFiles), String> {
    let background = &commands.background_changes;
    let begins = |stood: &[RecordedRoot<'_>]| {
        let states: RootStates =
            stood.iter().map(|(of, record)| (of.root.path().to_owned(), Arc::clone(record))).collect();
        let stands = |of: RootRecords<'_>| record_of(&states, of).cloned().map_or_else(|| record_now(of), Ok);
        let place = (call.scope, commands);
        let settled = background.settle_at(place, call.changes, turn_of(call), stands);
        call.background.borrow_mut().extend(settled);
    };
    let roots = commands.checkpoints.of_roots(&call.scope.roots);
    let recorder = (call.changes, call.cancel, is_outside);
    let touches = background.with_touches(touches);
    let (ran, changed, stands) = recording_from(&roots, recorder, &touches, begins, run)?;
    background.follow(stands, changed.is_outside);
    // Somebody may have reached a command of the session meanwhile.
    call.meets_commands(commands);
    call.from_outside.set(call.from_outside.get() || changed.is_outside);
    Ok((ran, changed))
}

/// Runs a call, and writes down what commands in the background changed: before a call that changes files, and after a
/// look at one.
pub(crate) fn beside_commands(
    tool: &Tool,
    (call, arguments): (&CallScope<'_>, &serde_json::Value),
    run: impl FnOnce() -> ToolOutput,
) -> ToolOutput {
    let Some(commands) = &call.scope.commands else { return run() };
    let changes = &commands.background_changes;
    changes.enter(call, commands);
    let settle = || changes.settle((call.scope, commands), call.changes, turn_of(call));
    let looks = tool.steers_commands();
    let is_writer = !call.plan_mode && tool.changes_files(call.scope, arguments);
    let start = tool.command(call.scope, arguments).map(|command| command.start);
    let before = if !looks && is_writer && start != Some(CommandStart::Foreground) { settle() } else { None };
    let mut output = run();
    // A command that begins here is first looked at later, and so is what follows one that ended.
    let after = if looks || is_writer && start.is_none() { settle() } else { None };
    if start == Some(CommandStart::Background) && output.status != ToolStatus::Ok {
        changes.has_not_begun(commands);
    }
    let changed: Vec<ChangedFiles> = before.into_iter().chain(call.background.take()).chain(after).collect();
    if changed.iter().any(|changed| changed.is_outside) {
        output = output.from_outside();
    }
    let told: Vec<String> = changed.iter().filter_map(ChangedFiles::told_changes).collect();
    if !told.is_empty() {
        let told = told.join("\n");
        let masked = |text: &str| call.scope.masker.mask_entering(text).text.into_owned();
        output.brief.extend(changed.iter().flat_map(ChangedFiles::brief).map(|line| masked(&line)));
        let told = masked(&told);
        output.add_beside(&format!("[files changed in the background]\n{told}"));
    }
    output
}
