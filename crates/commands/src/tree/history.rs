//! The timeline: a step back, a step forth, and the list of what was done.

use loom::operation::TimelineEffect;
use loom::{Op, OpKind, OpRecord, RowError, Seq, TreeId, TreeReader, ViewName};
use store::{AttachedWrites, Guard, SessionId};

use super::telling::{WordChange, tree_argument, word_change};
use super::{narration, page_size, wording};
use crate::app::App;
use crate::args::tree::{LogArgs, StepArgs};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::tree::{OperationShown, Operations, Stepped};
use crate::rights::Asker;

/// `tree undo` and `tree redo`.
pub(super) async fn step_in_tree(
    app: &App,
    asker: &Asker,
    args: StepArgs,
    op: Op,
) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = app.tree(asker, &args.tree).await?;
    step(app, asker, (tree, &view), op).await.map(CommandOutcome::Stepped)
}

/// Takes the newest thing of a view back, or does it again; in a tree of a session, while nobody answers in that.
pub(crate) async fn step(
    app: &App,
    asker: &Asker,
    (tree, view): (TreeId, &ViewName),
    op: Op,
) -> Result<Stepped, CommandError> {
    let session = app.runtime.store.tree(&asker.principal, tree).await?.session;
    let Some(session) = session.map(SessionId) else {
        return step_guarded(app, asker, (tree, view), op, Vec::new()).await;
    };
    // An answer under way would stand beneath what was taken back.
    let step = |guard| Box::pin(step_guarded(app, asker, (tree, view), op, vec![guard]));
    app.runtime.between_turns(&asker.principal, &session, step).await?
}

async fn step_guarded(
    app: &App,
    asker: &Asker,
    (tree, view): (TreeId, &ViewName),
    op: Op,
    guards: Vec<Guard>,
) -> Result<Stepped, CommandError> {
    let redone = matches!(op, Op::Redo);
    let with = AttachedWrites { guards, ..AttachedWrites::nothing() };
    let applied = app.change_with(asker, tree, view, op, with).await?;
    let taken = match applied.seq {
        Some(seq) => Some(app.read(asker, tree, move |rows| TakenBack::by(rows, seq)).await?),
        None => None,
    };
    if let (Some(seq), false) = (applied.seq, redone) {
        let newer = app.read(asker, tree, move |rows| outside_timeline(rows, seq)).await?;
        if !newer.is_empty() {
            app.frontend.note(&format!("undo takes back no names and marks: {}", newer.join(", ")));
        }
    }
    let words = match &taken {
        Some(taken) if taken.moves_text => WordChange::default(),
        _ => word_change(app, asker, (tree, view), applied.seq).await?,
    };
    let keys = applied.skipped;
    let skipped = if keys.is_empty() {
        Vec::new()
    } else {
        app.read(asker, tree, move |rows| keys.iter().map(|key| wording::cell(rows, key)).collect()).await?
    };
    let changed = taken.as_ref().is_none_or(|taken| taken.changed);
    let (kind, did) = taken.map_or((None, None), |taken| (taken.kind, Some(taken.did)));
    Ok(Stepped { operation: applied.seq, kind, did, words, redone, changed, skipped })
}

/// Steps of undo and redo that are gone back over, to the operation they are about.
const STEPS: usize = 256;

/// Operations that a step undid or did again, the newest first: neither undo nor redo.
fn operations_of(rows: &dyn TreeReader, step: Seq) -> Result<Vec<Seq>, RowError> {
    let mut found = vec![step];
    for _ in 0..STEPS {
        let [only] = found.as_slice() else { break };
        found = match rows.operation(*only)?.map(|record| record.op.timeline) {
            Some(TimelineEffect::Undo { of, .. }) => of,
            Some(TimelineEffect::Redo { of, .. }) => vec![of],
            _ => break,
        };
    }
    Ok(found)
}

/// Names and marks that were set since what a step undid, the newest first; they are no part of a timeline.
fn outside_timeline(rows: &dyn TreeReader, step: Seq) -> Result<Vec<String>, RowError> {
    let Some(oldest) = operations_of(rows, step)?.into_iter().min().filter(|oldest| *oldest < step) else {
        return Ok(Vec::new());
    };
    let after = oldest.0.max(step.0.saturating_sub(STEPS as u64));
    let mut found = Vec::new();
    for record in rows.operations(Seq(after), (step.0 - after) as usize)?.into_iter().rev() {
        let stays = match record.op.kind {
            OpKind::Rename => "the title stays",
            OpKind::Bookmark => "the bookmark stays",
            OpKind::Tag => "the tag stays",
            OpKind::Trust => "the trust stays",
            OpKind::Annotate if record.op.agent != agent::DECISION => "the remark stays",
            _ => continue,
        };
        if !found.iter().any(|known| known == stays) {
            found.push(stays.to_owned());
        }
    }
    Ok(found)
}

/// What a step undid or did again.
struct TakenBack {
    /// Of several that count as one that of the first, to which the others belong.
    kind: Option<OpKind>,
    /// What was done, in words.
    did: String,
    /// Whether the step changed anything.
    changed: bool,
    /// Whether text only went from a passage to one beside it.
    moves_text: bool,
}

impl TakenBack {
    fn by(rows: &dyn TreeReader, step: Seq) -> Result<Self, RowError> {
        let changed = rows.operation(step)?.is_some_and(|record| has_changed(&record));
        let records = taken_back(rows, step)?;
        Ok(Self {
            kind: records.first().map(|record| record.op.kind),
            did: narration::operations(rows, &records)?,
            changed,
            moves_text: match records.as_slice() {
                [only] => narration::moves_text(rows, only)?,
                _ => false,
            },
        })
    }
}

/// Whether an undo or redo changed anything: what it was about may have been changed or forgotten since.
fn has_changed(record: &OpRecord) -> bool {
    !record.op.cells.is_empty()
}

/// The records of what a step undid or did again, the oldest first.
fn taken_back(rows: &dyn TreeReader, step: Seq) -> Result<Vec<OpRecord>, RowError> {
    let seqs = operations_of(rows, step)?.into_iter().rev();
    seqs.filter_map(|seq| rows.operation(seq).transpose()).collect()
}

/// Lists operations, newest first. Their numbers have no gap, so that a page is found by counting.
pub(super) async fn log(app: &App, asker: &Asker, args: LogArgs) -> Result<CommandOutcome, CommandError> {
    let limit = page_size(app, args.limit)? as u64;
    let tree = app.tree_named(asker, &args.tree.tree).await?;
    let newest = app.runtime.store.tree(&asker.principal, tree).await?.seq.0;
    let last = args.before.map_or(newest, |before| before.saturating_sub(1).min(newest));
    let after = last.saturating_sub(limit);
    let operations = app.read(asker, tree, move |rows| {
        let records = rows.operations(Seq(after), (last - after) as usize)?;
        records.into_iter().rev().map(|record| shown(rows, record)).collect::<Result<_, _>>()
    });
    let operations = operations.await?;
    let next = (after > 0).then_some(after + 1);
    let named = tree_argument(app, asker, tree).await?;
    let more = next.map(|next| format!("drawloom tree log {named} --before {next}"));
    Ok(CommandOutcome::Operations(Operations { operations, next, more }))
}

/// Cells of one operation that are put into words; a new view copies every selection of another.
const CELLS_SHOWN: usize = 20;

fn shown(rows: &dyn TreeReader, record: OpRecord) -> Result<OperationShown, RowError> {
    let cells = &record.op.cells;
    let mut changes = Vec::new();
    for change in cells.iter().take(CELLS_SHOWN) {
        changes.push(wording::cell(rows, &change.key)?);
    }
    if cells.len() > CELLS_SHOWN {
        changes.push(format!("{} more", cells.len() - CELLS_SHOWN));
    }
    let is_left = !has_changed(&record);
    let did = match record.op.kind {
        OpKind::Undo | OpKind::Redo => {
            let word = match (record.op.kind == OpKind::Undo, is_left) {
                (true, false) => "undid",
                (true, true) => "did not undo",
                (false, false) => "redid",
                (false, true) => "did not redo",
            };
            format!("{word}: {}", narration::operations(rows, &taken_back(rows, record.seq)?)?)
        }
        _ => narration::operation(rows, &record)?,
    };
    Ok(OperationShown {
        seq: record.seq,
        did,
        kind: record.op.kind,
        view: record.op.view.as_ref().map(ToString::to_string),
        agent: record.op.agent,
        at: record.op.at.0,
        nodes: record.op.nodes.into_iter().map(|(node, _)| node).collect(),
        changes,
    })
}
