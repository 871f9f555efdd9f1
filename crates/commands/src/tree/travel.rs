//! Moving about: siblings and versions.

use loom::{Mode, Op, Position, PositionId, Role, RowError, TreeReader, path, resolve};

use super::look;
use super::siblings::{Place, Siblings};
use super::telling::{passage, passage_at, word_change};
use crate::app::{App, NamedNode};
use crate::args::NodeArg;
use crate::args::tree::{PassageArg, SwitchArgs};
use crate::error::CommandError;
use crate::results::tree::{Moved, SiblingReached};
use crate::results::{CommandOutcome, Told};
use crate::rights::Asker;

/// Positions that are read at a time.
const PAGE: usize = 64;
/// Digits of the longest number of a sibling: a short id has more characters.
const NUMBER_DIGITS: usize = 3;

/// Goes to a sibling, and on to where the view last was below it.
pub(super) async fn switch(
    app: &App,
    asker: &Asker,
    args: SwitchArgs,
) -> Result<CommandOutcome, CommandError> {
    let number = args.node.as_deref().filter(|node| node.len() <= NUMBER_DIGITS);
    let number = number.and_then(|node| node.parse::<usize>().ok());
    let is_step = args.next || args.prev;
    match (args.node, number) {
        (Some(node), None) if !is_step => {
            let named = app.node(asker, &NodeArg { tree: args.tree, node }).await?;
            Ok(CommandOutcome::Moved(moved(app, asker, &named, Op::Switch(named.position)).await?))
        }
        (node, number) => {
            let to = match number {
                Some(number) if !is_step => SiblingChoice::Number(number),
                _ if args.next => SiblingChoice::Next,
                _ => SiblingChoice::Previous,
            };
            let node = node.filter(|_| is_step);
            let beside = PassageArg { tree: args.tree, node };
            let result = reach(app, asker, &beside, to).await?;
            let sentence = result.sibling.as_ref().map_or_else(String::new, |sibling| {
                let SiblingReached { short_id, text, number, of, .. } = sibling;
                let below = if *short_id == result.short_id {
                    String::new()
                } else {
                    format!("; the path goes on to {}", result.short_id)
                };
                format!("{number} of {of}: {}{below}", passage(short_id, text))
            });
            Ok(CommandOutcome::Moved(Told { result, sentence }))
        }
    }
}

/// Which sibling is gone to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SiblingChoice {
    Next,
    Previous,
    /// From 1, as they are listed.
    Number(usize),
}

/// Goes to a sibling of a passage, of the last of the path that has any if none is named. Pruned ones are passed over.
pub(crate) async fn reach(
    app: &App,
    asker: &Asker,
    beside: &PassageArg,
    to: SiblingChoice,
) -> Result<Moved, CommandError> {
    let place = Place::of(app, asker, beside).await?;
    let Siblings { all, here } = place.siblings(app, asker).await?;
    let of = all.len();
    let (visible, left) = {
        let all = all.clone();
        look(app, asker, place.tree, &place.view, move |rows, tip| {
            let visible = |at: &Position| Ok(!path::is_hidden(rows, at.id)?);
            let visible = all.iter().map(visible).collect::<Result<Vec<bool>, RowError>>()?;
            Ok((visible, turns_below(rows, &all[here], tip)?))
        })
        .await?
    };
    let index = match to {
        SiblingChoice::Next => (here + 1..of).find(|index| visible[*index]),
        SiblingChoice::Previous => (0..here).rev().find(|index| visible[*index]),
        SiblingChoice::Number(number) => number.checked_sub(1).filter(|index| *index < of),
    };
    let index = index.ok_or_else(|| {
        let message = match to {
            SiblingChoice::Next => format!("this is the last of {of} siblings"),
            SiblingChoice::Previous => format!("this is the first of {of} siblings"),
            SiblingChoice::Number(number) => format!("there are {of} siblings, and no number {number}"),
        };
        CommandError::new("no_sibling", 3, message, "`drawloom tree siblings TREE` lists them")
    })?;
    let (position, view) = (all[index].id, place.view.clone());
    let row = look(app, asker, place.tree, &place.view, move |rows, _| {
        let shown = resolve::shown(rows, &view, position)?;
        rows.node(shown)?.ok_or_else(|| RowError::missing("node", shown))
    });
    let row = row.await?;
    let text = row.node.text().into_owned();
    let named = NamedNode {
        tree: place.tree,
        view: place.view,
        node: row.node.id,
        position,
        short_id: row.short_id.clone(),
    };
    let moved = moved(app, asker, &named, Op::Switch(position)).await?.result;
    let left = if index == here { 0 } else { left };
    let (number, from) = (index + 1, here + 1);
    let role = all[index].role;
    let sibling = Some(SiblingReached { short_id: row.short_id, text, number, of, from, left, role });
    Ok(Moved { sibling, ..moved })
}

/// Turns of a conversation that follow a position on the path to the tip.
fn turns_below(rows: &dyn TreeReader, at: &Position, tip: PositionId) -> Result<usize, RowError> {
    if rows.tree()?.mode != Mode::Dialogue {
        return Ok(0);
    }
    let (mut turns, mut was_said, mut next) = (0, false, Some(tip));
    while let Some(from) = next {
        let path = rows.upwards(from, PAGE)?;
        next = path.last().and_then(|last| last.parent);
        for position in path {
            if position.depth <= at.depth {
                // Else it is beside the path.
                return Ok(if position.id == at.id { turns } else { 0 });
            }
            let is_said = position.role == Some(Role::User);
            // A file that was attached goes with its message.
            turns += usize::from(is_said && !was_said);
            was_said = is_said;
        }
    }
    Ok(0)
}

/// Stands at a passage: what is written next goes on from there.
pub(super) async fn go(app: &App, asker: &Asker, args: NodeArg) -> Result<CommandOutcome, CommandError> {
    let named = app.node(asker, &args).await?;
    Ok(CommandOutcome::Moved(moved(app, asker, &named, Op::Move(named.position)).await?))
}

/// Shows a version of its passage.
pub(super) async fn select(app: &App, asker: &Asker, args: NodeArg) -> Result<CommandOutcome, CommandError> {
    let named = app.node(asker, &args).await?;
    let op = Op::Select { position: named.position, version: named.node };
    let mut told = moved(app, asker, &named, op).await?;
    told.sentence = format!("{} is shown now; {}", named.short_id, told.sentence);
    Ok(CommandOutcome::Moved(told))
}

/// Moves a view, and says where it stands and what that changed in its text.
async fn moved(app: &App, asker: &Asker, named: &NamedNode, op: Op) -> Result<Told<Moved>, CommandError> {
    let applied = app.change(asker, named.tree, &named.view, op).await?;
    app.note_committed(&applied.nodes);
    let view = named.view.clone();
    let found = look(app, asker, named.tree, &named.view, move |rows, tip| {
        let shown = resolve::shown(rows, &view, tip)?;
        let short_id = rows.node(shown)?.ok_or_else(|| RowError::missing("node", shown))?.short_id;
        Ok((tip, short_id, passage_at(rows, &view, tip)?))
    });
    let (tip, short_id, at) = found.await?;
    let words = word_change(app, asker, (named.tree, &named.view), applied.seq).await?;
    let sentence = format!("{} stands at {at}{words}", named.view);
    Ok(Told { result: Moved { tip, short_id, sibling: None }, sentence })
}
