//! What stands beside a passage: its siblings and versions; and the passages with a bookmark, tag or remark.

use std::collections::BTreeSet;

use loom::cell::CellScope;
use loom::reader::Order;
use loom::{
    CellKey, NodeRow, Position, PositionId, PositionKind, Role, RowError, TreeId, TreeReader, ViewName, path,
    resolve,
};

use super::look;
use super::show::{Reader, with_marks};
use super::telling::tree_argument;
use crate::app::App;
use crate::args::tree::PassageArg;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::tree::{FollowedMessage, ListedNodes, NodeShown};
use crate::rights::Asker;

/// Rows that are read at a time.
const PAGE: usize = 256;

/// Lists the siblings of a passage, the oldest first; without a node those of the last passage of the path that has
/// any.
pub(super) async fn siblings(
    app: &App,
    asker: &Asker,
    args: PassageArg,
) -> Result<CommandOutcome, CommandError> {
    let place = Place::of(app, asker, &args).await?;
    let beside = place.siblings(app, asker).await?;
    let (view, here) = (place.view.clone(), beside.here);
    let nodes = look(app, asker, place.tree, &place.view, move |rows, tip| {
        let mut reader = Reader::read(rows, &view, tip)?;
        let shown = |at: &Position| reader.at(at, resolve::shown(rows, &view, at.id)?);
        with_marks(rows, &view, beside.all.iter().map(shown).collect::<Result<Vec<_>, RowError>>()?)
    });
    let nodes = nodes.await?;
    Ok(place.listed(nodes, Some(here)))
}

/// Lists the versions of a passage, the oldest first; without a node those of the end of the path.
pub(super) async fn versions(
    app: &App,
    asker: &Asker,
    args: PassageArg,
) -> Result<CommandOutcome, CommandError> {
    let place = Place::of(app, asker, &args).await?;
    let (view, named) = (place.view.clone(), place.position);
    let (nodes, here) = look(app, asker, place.tree, &place.view, move |rows, tip| {
        let at = path::position(rows, named.unwrap_or(tip))?;
        let mut versions = Vec::new();
        if at.parent.is_none() {
            return Ok((Vec::new(), resolve::shown(rows, &view, at.id)?));
        }
        while let Some(page) = some(rows.versions(at.id, versions.last().map(order), PAGE)?) {
            versions.extend(page);
        }
        let mut reader = Reader::read(rows, &view, tip)?;
        let shown = versions.into_iter().rev().map(|row| reader.at(&at, row.node.id));
        let nodes = with_marks(rows, &view, shown.collect::<Result<Vec<_>, RowError>>()?)?;
        Ok((nodes, resolve::shown(rows, &view, at.id)?))
    })
    .await?;
    let here = nodes.iter().position(|node| node.id == here);
    Ok(place.listed(nodes, here))
}

/// Lists the passages with a bookmark, in the order of the tree; with a node those at it and below it.
pub(super) async fn bookmarks(
    app: &App,
    asker: &Asker,
    args: PassageArg,
) -> Result<CommandOutcome, CommandError> {
    let marked = |rows: &dyn TreeReader| {
        let cells = rows.cells(&CellScope::Bookmarks)?.into_iter();
        Ok(cells
            .filter_map(|(key, cell)| match key {
                CellKey::Bookmark { position } if cell.value.as_text().is_some() => Some(position),
                _ => None,
            })
            .collect())
    };
    passages(app, asker, args, marked).await
}

/// Lists the passages with tags; with a node those at it and below it.
pub(super) async fn tags(app: &App, asker: &Asker, args: PassageArg) -> Result<CommandOutcome, CommandError> {
    let marked = |rows: &dyn TreeReader| {
        let cells = rows.cells(&CellScope::AllTags)?.into_iter();
        Ok(cells
            .filter_map(|(key, cell)| match key {
                CellKey::Tag { position, .. } if cell.value.is_set() => Some(position),
                _ => None,
            })
            .collect())
    };
    passages(app, asker, args, marked).await
}

/// Lists the passages with remarks; with a node those at it and below it.
pub(super) async fn annotations(
    app: &App,
    asker: &Asker,
    args: PassageArg,
) -> Result<CommandOutcome, CommandError> {
    let marked = |rows: &dyn TreeReader| {
        Ok(rows.annotations(None)?.into_iter().filter_map(|remark| remark.parent).collect())
    };
    passages(app, asker, args, marked).await
}

/// Lists passages in the order of the tree; with a node those of them that stand at it and below it.
async fn passages(
    app: &App,
    asker: &Asker,
    args: PassageArg,
    marked: impl FnOnce(&dyn TreeReader) -> Result<BTreeSet<PositionId>, RowError> + Send + 'static,
) -> Result<CommandOutcome, CommandError> {
    let place = Place::of(app, asker, &args).await?;
    let (view, below) = (place.view.clone(), place.position);
    let nodes = look(app, asker, place.tree, &place.view, move |rows, tip| {
        let mut found = Vec::new();
        for position in marked(rows)? {
            if below.map_or(Ok(true), |above| path::is_ancestor(rows, above, position))? {
                found.push(path::position(rows, position)?);
            }
        }
        found.sort_by_key(|position| (position.depth, position.id));
        let mut reader = Reader::read(rows, &view, tip)?;
        let shown = |at: &Position| reader.at(at, resolve::shown(rows, &view, at.id)?);
        let nodes = found.iter().map(shown).collect::<Result<Vec<_>, RowError>>()?;
        with_marks(rows, &view, nodes)
    });
    let nodes = nodes.await?;
    Ok(place.listed(nodes, None))
}

/// The code of an error: no passage has siblings.
pub(crate) const NO_CHOICE: &str = "no_choice";

/// Siblings of a passage, the oldest first.
#[derive(Debug, Clone)]
pub(super) struct Siblings {
    pub(super) all: Vec<Position>,
    /// Index of the passage itself.
    pub(super) here: usize,
}

/// A tree, a view, and a passage if one is named.
pub(super) struct Place {
    pub(super) tree: TreeId,
    pub(super) view: ViewName,
    position: Option<PositionId>,
}

impl Place {
    pub(super) async fn of(app: &App, asker: &Asker, args: &PassageArg) -> Result<Self, CommandError> {
        let (tree, view) = app.tree(asker, &args.tree).await?;
        let position = match &args.node {
            Some(node) => Some(app.node_anywhere(asker, Some(tree), node).await?.position),
            None => None,
        };
        Ok(Self { tree, view, position })
    }

    /// The siblings of the passage that is named, else of the last of the path that has visible ones.
    ///
    /// # Errors
    /// [`NO_CHOICE`] when no passage of the path has any.
    pub(super) async fn siblings(&self, app: &App, asker: &Asker) -> Result<Siblings, CommandError> {
        let named = self.position;
        let found = look(app, asker, self.tree, &self.view, move |rows, tip| match named {
            Some(named) => siblings_of(rows, &path::position(rows, named)?).map(Some),
            None => last_choice(rows, tip),
        });
        if let Some(found) = found.await? {
            return Ok(found);
        }
        let tree = tree_argument(app, asker, self.tree).await?;
        let hint = format!("`drawloom tree regenerate {tree} NODE` asks a model for one");
        Err(CommandError::new(NO_CHOICE, 3, "no sibling of any passage of the path", hint))
    }

    fn listed(self, nodes: Vec<NodeShown>, current: Option<usize>) -> CommandOutcome {
        CommandOutcome::Listed(ListedNodes { tree: self.tree, nodes, current, after: None })
    }
}

/// The siblings of the last passage of the path that has visible ones.
fn last_choice(rows: &dyn TreeReader, tip: PositionId) -> Result<Option<Siblings>, RowError> {
    let mut next = Some(tip);
    while let Some(from) = next {
        let path = rows.upwards(from, PAGE)?;
        next = path.last().and_then(|last| last.parent);
        for at in path {
            let Some(parent) = at.parent else { continue };
            if rows.count_children(parent)? < 2 {
                continue;
            }
            let found = siblings_of(rows, &at)?;
            for (index, sibling) in found.all.iter().enumerate() {
                if index != found.here && !path::is_hidden(rows, sibling.id)? {
                    return Ok(Some(found));
                }
            }
        }
    }
    Ok(None)
}

fn siblings_of(rows: &dyn TreeReader, at: &Position) -> Result<Siblings, RowError> {
    let (mut all, mut before) = (Vec::new(), None);
    if let Some(parent) = at.parent.filter(|_| at.kind == PositionKind::Path) {
        while let Some(page) = some(rows.children(parent, before, PAGE)?) {
            before = page.last().map(|last| path::order_of(rows, last.id)).transpose()?;
            all.extend(page.into_iter().filter(|child| child.kind == PositionKind::Path));
        }
        all.reverse();
    } else {
        all.push(at.clone());
    }
    let here = all.iter().position(|sibling| sibling.id == at.id).unwrap_or_default();
    Ok(Siblings { all, here })
}

/// Numbers of siblings as a list of them shows them, and how many there are.
///
/// # Errors
/// As the store says.
pub(crate) async fn sibling_numbers(
    app: &App,
    asker: &Asker,
    (tree, view): (TreeId, &ViewName),
    positions: Vec<PositionId>,
) -> Result<(Vec<usize>, usize), CommandError> {
    look(app, asker, tree, view, move |rows, tip| {
        let first = positions.first().copied().unwrap_or(tip);
        let all = siblings_of(rows, &path::position(rows, first)?)?.all;
        let number = |of: &PositionId| all.iter().position(|at| at.id == *of).map(|index| index + 1);
        Ok((positions.iter().filter_map(number).collect(), all.len()))
    })
    .await
}

/// Siblings with the message they follow.
pub(crate) async fn with_followed(
    app: &App,
    asker: &Asker,
    view: ViewName,
    found: ListedNodes,
) -> Result<ListedNodes, CommandError> {
    let Some(first) = found.nodes.first() else { return Ok(found) };
    let (are_answers, parent) = (first.role == Some(Role::Assistant), first.parent);
    let after = app.read(asker, found.tree, move |rows| {
        let Some(parent) = parent.map(|parent| path::position(rows, parent)).transpose()? else {
            return Ok(None);
        };
        let shown = resolve::shown(rows, &view, parent.id)?;
        let row = rows.node(shown)?.ok_or_else(|| RowError::missing("node", shown))?;
        // The beginning of the tree holds no text.
        let text = parent.parent.is_some().then(|| row.node.text().into_owned());
        Ok(Some(FollowedMessage { are_answers, short_id: row.short_id, text }))
    });
    Ok(ListedNodes { after: after.await?, ..found })
}

fn some<T>(page: Vec<T>) -> Option<Vec<T>> {
    (!page.is_empty()).then_some(page)
}

fn order(row: &NodeRow) -> Order {
    (row.seq, row.place)
}

#[cfg(test)]
mod tests {
    use loom::Mode;
    use loom::plan::NewText;
    use loom_testing::{Fixture, main_view};

    use super::*;

    #[test]
    fn siblings_are_looked_for_as_far_as_the_path_goes() {
        let mut fixture = Fixture::new(Mode::Dialogue);
        let first = fixture.append("one");
        fixture.append("two");
        let stay = |fixture: &mut Fixture, texts: usize, to| {
            let texts = (0..texts).map(|_| NewText::owner("woven", Some(Role::User))).collect();
            let op = loom::Op::Reply { to, texts, exclude: Vec::new(), part_of: None };
            fixture.run(op).unwrap();
        };
        let found = |fixture: &Fixture| {
            last_choice(&fixture.tree, fixture.tip_of(&main_view())).unwrap().map(|found| found.all.len())
        };
        assert_eq!(found(&fixture), None);
        stay(&mut fixture, 1_500, Some(first));
        assert_eq!(found(&fixture), Some(2));
    }
}
