//! The timeline: a step back, a step forth, and the list of what was done.

use loom::operation::TimelineEffect;
use loom::{Op, OpKind, OpRecord, RowError, Seq, TreeId, TreeReader, ViewName};
use store::{AttachedWrites, Guard};

use super::{page_size, wording};
use crate::app::App;
use crate::args::tree::{LogArgs, StepArgs};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::tree::{OperationShown, Operations, Stepped};
use crate::rights::Asker;

/// `tree undo` and `tree redo`: of a tree, whoever answers in it.
pub(super) async fn step_in_tree(
    app: &App,
    asker: &Asker,
    args: StepArgs,
    op: Op,
) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = app.tree(asker, &args.tree).await?;
    step(app, asker, (tree, &view), op, Vec::new()).await.map(CommandOutcome::Stepped)
}

/// Takes the newest thing of a view back, or does it again, while the leases of the guards are held.
pub(crate) async fn step(
    app: &App,
    asker: &Asker,
    (tree, view): (TreeId, &ViewName),
    op: Op,
    guards: Vec<Guard>,
) -> Result<Stepped, CommandError> {
    let redone = matches!(op, Op::Redo);
    let with = AttachedWrites { guards, ..AttachedWrites::nothing() };
    let applied = app.change_with(asker, tree, view, op, with).await?;
    let (kind, about, changed) = match applied.seq {
        Some(seq) => app.read(asker, tree, move |rows| taken_back(rows, seq)).await?,
        None => (None, String::new(), true),
    };
    let keys = applied.skipped;
    let skipped = if keys.is_empty() {
        Vec::new()
    } else {
        app.read(asker, tree, move |rows| keys.iter().map(|key| wording::cell(rows, key)).collect()).await?
    };
    Ok(Stepped { operation: applied.seq, kind, about, redone, changed, skipped })
}

/// Characters of a text that says what was undone.
const GLIMPSE: usize = 40;

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

/// What a step undid or did again: the kind of the operation, what it did, and whether the step changed anything. Of
/// several that count as one it is the kind of the first, to which the others belong, and the first text that one of
/// them made.
fn taken_back(rows: &dyn TreeReader, step: Seq) -> Result<(Option<OpKind>, String, bool), RowError> {
    let changed = rows.operation(step)?.is_some_and(|record| !record.op.cells.is_empty());
    let (mut kind, mut change) = (None, String::new());
    for seq in operations_of(rows, step)?.into_iter().rev() {
        let Some(record) = rows.operation(seq)? else { continue };
        if let (None, Some(cell)) = (kind, record.op.cells.first()) {
            change = format!("({})", wording::cell(rows, &cell.key)?);
        }
        kind = kind.or(Some(record.op.kind));
        for (node, _) in record.op.nodes {
            let text = rows.node(node)?.map(|row| first_words(&row.node.text())).unwrap_or_default();
            if !text.is_empty() {
                return Ok((kind, format!("'{text}'"), changed));
            }
        }
    }
    Ok((kind, change, changed))
}

fn first_words(text: &str) -> String {
    let mut words = text.split_whitespace().flat_map(|word| [" ", word]).skip(1).flat_map(str::chars);
    let mut cut: String = words.by_ref().take(GLIMPSE).collect();
    if words.next().is_some() {
        cut.push('…');
    }
    cut
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
    let next = (after > 0).then_some(after + 1);
    Ok(CommandOutcome::Operations(Operations { operations: operations.await?, next }))
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
    Ok(OperationShown {
        seq: record.seq,
        kind: record.op.kind,
        view: record.op.view.as_ref().map(ToString::to_string),
        agent: record.op.agent,
        at: record.op.at.0,
        nodes: record.op.nodes.into_iter().map(|(node, _)| node).collect(),
        changes,
    })
}
