//! Merging and splitting passages: text goes to the passage above, or to one below that is empty.
//!
//! A position is fixed at creation, so none is put between two others (ADR 0018). What was merged leaves an empty
//! version, and a passage parts where the tail has somewhere to go: above such a one, and at the end of the path.

use loom::drift::is_drifted;
use loom::path::{ViewOverrides, is_hidden};
use loom::render::{Passage, window};
use loom::{
    Mode, NodeId, Op, PositionId, PositionKind, Refusal, RowError, ShownPassage, Slot, TreeReader, ViewName,
    resolve,
};
use store::StoreError;

use super::branch::byte_of;
use super::telling::{passage, shown_at, tree_argument};
use super::{editing, look, words};
use crate::app::{App, NamedNode};
use crate::args::NodeArg;
use crate::args::tree::Split;
use crate::error::CommandError;
use crate::results::tree::{Edited, NodeNamed};
use crate::results::{CommandOutcome, Told};
use crate::rights::Asker;

/// Children of a passage that are looked through for branches.
const MOST_CHILDREN: usize = 64;

/// Joins a passage's text to that of the one above it.
pub(super) async fn merge(app: &App, asker: &Asker, args: NodeArg) -> Result<CommandOutcome, CommandError> {
    let named = app.node(asker, &args).await?;
    let path = PassagesOfPath::read(app, asker, &named).await?;
    path.merged_into(app)?;
    let path = path.committed(app, asker, &named).await?;
    let above = path.merged_into(app)?;
    let upper = &path.passages[above];
    path.tell_of_branches(app, upper, "reads both texts");
    let op = Op::Merge { passages: path.shown(above..=path.at), keep: path.keeps(path.at) };
    app.change(asker, named.tree, &named.view, op).await?;
    done(app, asker, &named, upper.position.id, None).await
}

/// Parts a passage behind words or at an offset.
pub(super) async fn split(app: &App, asker: &Asker, args: Split) -> Result<CommandOutcome, CommandError> {
    let arg = NodeArg { tree: args.tree.clone(), node: args.node.clone() };
    let named = app.node(asker, &arg).await?;
    let path = PassagesOfPath::read(app, asker, &named).await?;
    path.parted(&args)?;
    let path = path.committed(app, asker, &named).await?;
    let (cut, last) = path.parted(&args)?;
    let upper = &path.passages[path.at];
    path.tell_of_branches(app, upper, "ends earlier");
    let keep = last > path.at && path.keeps(last);
    let op = Op::Split { passages: path.shown(path.at..=last), at: cut as u64, keep };
    let applied = app.change(asker, named.tree, &named.view, op).await?;
    let made = applied.nodes.last().map(|(node, _)| *node);
    let tail = if last > path.at { Tail::At(path.passages[last].position.id) } else { Tail::New(made) };
    done(app, asker, &named, upper.position.id, Some(tail)).await
}

/// Where the tail of a passage stands.
enum Tail {
    At(PositionId),
    New(Option<NodeId>),
}

/// The passages of a view's path, with the one that is named. A pending edit is the text of its passage.
struct PassagesOfPath {
    /// The tree as a command takes it.
    tree: String,
    passages: Vec<Passage>,
    has_drafts: bool,
    /// Whether the working buffer holds text, which will stand at the end.
    is_written_on: bool,
    /// Index of the named one.
    at: usize,
    /// For each whether its model's text followed from something else than what stands above it now.
    drifted: Vec<bool>,
    /// Where what the named one quotes was written.
    quoted_from: Option<PositionId>,
    /// How many branches leave each of the last two passages that take part, by position.
    branches: Vec<(PositionId, usize)>,
}

impl PassagesOfPath {
    async fn read(app: &App, asker: &Asker, named: &NamedNode) -> Result<Self, CommandError> {
        let (tree, view, position) = (named.tree, named.view.clone(), named.position);
        if app.read(asker, tree, |rows| Ok(rows.tree()?.mode)).await? == Mode::Dialogue {
            return Err(StoreError::Refused(Refusal::NoDocument).into());
        }
        let shown = tree_argument(app, asker, tree).await?;
        let name = view.clone();
        let found =
            look(app, asker, tree, &view, move |rows, tip| Self::of(rows, shown, &name, tip, position));
        found.await?.ok_or_else(|| StoreError::Refused(Refusal::NotOnPath(position)).into())
    }

    /// The passages after drafts were committed: what is typed is text of the path like any other.
    async fn committed(self, app: &App, asker: &Asker, named: &NamedNode) -> Result<Self, CommandError> {
        if !self.has_drafts {
            return Ok(self);
        }
        let applied = app.change(asker, named.tree, &named.view, Op::Commit).await?;
        app.note_committed(&applied.nodes);
        Self::read(app, asker, named).await
    }

    fn of(
        rows: &dyn TreeReader,
        tree: String,
        view: &ViewName,
        tip: PositionId,
        position: PositionId,
    ) -> Result<Option<Self>, RowError> {
        let path = ViewOverrides::read(rows, view, tip)?;
        let mut passages = window(rows, view, &path, None, usize::MAX)?;
        passages.retain(|passage| passage.position.parent.is_some());
        let Some(at) = passages.iter().position(|passage| passage.position.id == position) else {
            return Ok(None);
        };
        let mut drifted = vec![false; passages.len()];
        for (passage, drifted) in passages.iter().zip(&mut drifted).skip(at + 1) {
            *drifted = is_drifted(rows, &path, &passage.position, &passage.row)?;
        }
        let quoted = passages[at].row.node.quote.as_ref().map(|quote| rows.node(quote.node)).transpose()?;
        let quoted_from = quoted.flatten().map(|row| row.node.position);
        // The passage above that may take the text in, and the named one.
        let above = passages[..at].iter().rposition(|above| !above.text.is_empty());
        let mut branches = Vec::new();
        for index in above.into_iter().chain([at]) {
            let next = passages.get(index + 1).map(|next| next.position.id);
            let mut others = 0;
            for child in rows.children(passages[index].position.id, None, MOST_CHILDREN)? {
                let is_other = child.kind == PositionKind::Path && Some(child.id) != next;
                others += usize::from(is_other && !is_hidden(rows, child.id)?);
            }
            branches.push((passages[index].position.id, others));
        }
        let drafts = rows.drafts(view)?;
        let is_written_on =
            drafts.iter().any(|(slot, draft)| *slot == Slot::Buffer && !draft.text.is_empty());
        let has_drafts = !drafts.is_empty();
        Ok(Some(Self { tree, passages, has_drafts, is_written_on, at, drifted, quoted_from, branches }))
    }

    /// The passage above that the named one is joined to.
    fn merged_into(&self, app: &App) -> Result<usize, CommandError> {
        let (lower, id) = (&self.passages[self.at], &self.passages[self.at].row.short_id);
        if lower.excluded {
            return Err(StoreError::Refused(Refusal::LeftOut(lower.position.id)).into());
        }
        if lower.text.is_empty() {
            return Err(CommandError::usage(
                format!("{id} is empty: there is nothing to merge"),
                format!("`drawloom tree show {}` shows the passages", self.tree),
            ));
        }
        let says_something = |above: &Passage| above.excluded || !above.text.is_empty();
        let above = self.passages[..self.at].iter().rposition(says_something).ok_or_else(|| {
            CommandError::usage(
                format!("{id} is the first passage: there is none above it"),
                "name the passage below it",
            )
        })?;
        let upper = &self.passages[above];
        if upper.excluded {
            let upper = &upper.row.short_id;
            return Err(CommandError::usage(
                format!("{upper}, which stands above {id}, is left out of the text"),
                format!("take it in first: `drawloom tree include {} {upper}`", self.tree),
            ));
        }
        let joined = upper.text.len() + lower.text.len();
        app.fits_node_bytes(&format!("the text of {} and {id}", upper.row.short_id), joined as u64)?;
        Ok(above)
    }

    /// Where the named passage is cut, in bytes, and which passage takes the tail: itself where that is a new one.
    fn parted(&self, args: &Split) -> Result<(usize, usize), CommandError> {
        let upper = &self.passages[self.at];
        if upper.excluded {
            return Err(StoreError::Refused(Refusal::LeftOut(upper.position.id)).into());
        }
        let (id, text) = (&upper.row.short_id, &upper.text);
        let cut = match (&args.after, args.at) {
            (Some(words), _) => words::one(text, words)?.end,
            (None, Some(offset)) => byte_of(id, text, offset)?,
            (None, None) => {
                return Err(CommandError::usage("no place is given", "give --after WORDS or --at OFFSET"));
            }
        };
        if cut == 0 || cut == text.len() {
            let side = if cut == 0 { "before" } else { "behind" };
            return Err(CommandError::usage(
                format!("nothing of {id} stands {side} this place: there is nothing to part"),
                "name a place within its text",
            ));
        }
        let below = &self.passages[self.at + 1..];
        let is_free =
            |passage: &&Passage| passage.text.is_empty() && !passage.excluded && !passage.row.purged;
        let free = below.iter().take_while(is_free).count();
        if free == 0 && (self.is_written_on || !below.is_empty()) {
            let follows = below.first().map_or("what is typed", |below| below.row.short_id.as_str());
            let message = format!(
                "{follows} follows {id}: a passage parts only at the end of the path or above an empty passage, as no \
                 passage is put between two others"
            );
            let tree = &self.tree;
            let hint = format!(
                "go on from there with `drawloom tree branch {tree} {id} --after WORDS`, or write a break into it with \
                 `drawloom tree edit {tree}`"
            );
            return Err(CommandError::new("not_parted", 2, message, hint));
        }
        // What was merged goes back to where it stood.
        let home = below[..free].iter().position(|passage| Some(passage.position.id) == self.quoted_from);
        Ok((cut, if free == 0 { self.at } else { self.at + 1 + home.unwrap_or(0) }))
    }

    fn shown(&self, range: std::ops::RangeInclusive<usize>) -> Vec<ShownPassage> {
        let shown = self.passages[range].iter();
        shown
            .map(|passage| ShownPassage { position: passage.position.id, node: passage.row.node.id })
            .collect()
    }

    /// Whether what stands below a passage is accepted as it is: the text of the path stays, so that nothing drifts of
    /// it. Where something had drifted before, its mark stays.
    fn keeps(&self, at: usize) -> bool {
        at + 1 < self.passages.len() && !self.drifted[at + 1..].contains(&true)
    }

    /// Other branches go on from the same passage, and read its new text.
    fn tell_of_branches(&self, app: &App, passage: &Passage, what: &str) {
        let of = self.branches.iter().find(|(position, _)| *position == passage.position.id);
        if let Some((_, others @ 1..)) = of {
            let (branches, go) = if *others == 1 { ("branch", "goes") } else { ("branches", "go") };
            app.frontend.note(&format!(
                "{others} other {branches} {go} on from {}, which {what} there too",
                passage.row.short_id
            ));
        }
    }
}

/// What stands there now: the passage that took the text in or was parted, and its tail.
async fn done(
    app: &App,
    asker: &Asker,
    named: &NamedNode,
    upper: PositionId,
    tail: Option<Tail>,
) -> Result<CommandOutcome, CommandError> {
    let view = named.view.clone();
    let read = app.read(asker, named.tree, move |rows| {
        let tail = match tail {
            None | Some(Tail::New(None)) => None,
            Some(Tail::New(Some(node))) => Some(node),
            Some(Tail::At(position)) => Some(resolve::shown(rows, &view, position)?),
        };
        let tail = tail.map(|node| rows.node(node)).transpose()?.flatten();
        let upper = shown_at(rows, &view, upper)?;
        let first = passage(&upper.short_id, &upper.node.text());
        let sentence = match &tail {
            Some(tail) => format!("parted: {first} and {}", passage(&tail.short_id, &tail.node.text())),
            None => format!("joined: {first} holds both texts"),
        };
        let tail = tail.map(|row| NodeNamed { node: row.node.id, short_id: row.short_id });
        let result = Edited { tail, ..editing::edited(rows, upper.node.id)? };
        Ok(Told { result, sentence })
    });
    Ok(CommandOutcome::Edited(read.await?))
}
