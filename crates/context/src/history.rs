//! The end of a path as a dialogue sends it, read backwards until a budget is full.

use std::collections::HashMap;

use loom::path::{ViewOverrides, ancestor_at, is_ancestor};
use loom::reader::Injection;
use loom::render::Pages;
use loom::{NodeId, Position, PositionId, RowError, TextOffset, TreeReader, ViewName};

use crate::manifest::PathRun;
use crate::pairs::Pairs;
use crate::render_history::{Renderer, Spoken};

/// Passages read at a time.
const PAGE: u32 = 64;

/// The nodes of a path from where its window starts.
pub(crate) struct History {
    /// The nodes, from the top. Left-out ones are among them.
    pub(crate) spoken: Vec<Spoken>,
    /// Whether the window's start, or the top, was reached.
    pub(crate) complete: bool,
    /// Where the window starts; none at the top, or if that is not on the path.
    pub(crate) start: Option<PositionId>,
}

impl History {
    /// Reads from the end of `path` up to the window's start, at most until more than `room` tokens were read. A
    /// window begins with a turn: one that starts inside a turn goes on to the next, or back to the beginning of
    /// the newest.
    pub(crate) fn read(
        rows: &dyn TreeReader,
        view: &ViewName,
        path: &ViewOverrides,
        start: Option<TextOffset>,
        speaker: &Renderer<'_>,
        room: u64,
    ) -> Result<Self, RowError> {
        let start = on_path(rows, path, start)?;
        let mut top = start.as_ref().map_or(0, |start| start.depth);
        let mut spoken: Vec<Spoken> = Vec::new();
        let mut shown = Shown::default();
        let mut tokens = 0;
        let mut passed = false;
        let mut pages = Pages::default();
        let mut depth = Some(path.tip.depth);
        while let Some(to) = depth {
            let page = pages.read(rows, view, path, top.max(to.saturating_sub(PAGE - 1))..=to)?;
            let Some(first) = page.first().map(|first| first.position.clone()) else { break };
            shown.read(rows, &first)?;
            let mut said: Vec<Spoken> = Vec::with_capacity(page.len() + spoken.len());
            for passage in page {
                let along = shown.by_node.remove(&passage.row.node.id).unwrap_or_default();
                said.push(speaker.speak(passage, along));
            }
            tokens += said.iter().map(|said| said.tokens).sum::<u64>();
            said.append(&mut spoken);
            spoken = said;
            passed = start.as_ref().is_some_and(|start| first.depth <= start.depth);
            if passed && !spoken.iter().any(Spoken::is_user) {
                // What the newest turn answers to stands above the start.
                top = 0;
            }
            depth = first.depth.checked_sub(1).filter(|next| *next >= top);
            // The newest turn is read whole, however long it is.
            if (tokens > room || passed) && turns(&spoken).into_iter().any(|turn| turn > 0) {
                break;
            }
        }
        let complete = depth.is_none() || passed;
        if let Some(start) = &start {
            align(&mut spoken, start.depth);
        }
        Ok(Self { spoken, complete, start: start.map(|start| start.id) })
    }

    /// The first turn of a path, which stands above everything that is read here.
    pub(crate) fn first_turn(
        rows: &dyn TreeReader,
        view: &ViewName,
        path: &ViewOverrides,
        before: u32,
        speaker: &Renderer<'_>,
    ) -> Result<Vec<Spoken>, RowError> {
        let to = before.saturating_sub(1).min(PAGE);
        let page = Pages::default().read(rows, view, path, 0..=to)?;
        let mut shown = Shown::default();
        if let Some(first) = page.first() {
            shown.read(rows, &first.position)?;
        }
        let mut spoken = Vec::new();
        for passage in page {
            let along = shown.by_node.remove(&passage.row.node.id).unwrap_or_default();
            spoken.push(speaker.speak(passage, along));
        }
        let end = turns(&spoken).get(1).copied().unwrap_or(spoken.len());
        // A turn that does not end here is not the first turn whole.
        let whole = end < spoken.len() || to + 1 == before;
        spoken.truncate(if whole { end } else { 0 });
        Ok(spoken)
    }
}

/// The run of nodes from `from` on. Its characters are counted where it is written down.
pub(crate) fn run(
    spoken: &[Spoken],
    path: &ViewOverrides,
    from: usize,
    pairs: &Pairs,
    tokens: u64,
) -> Option<PathRun> {
    let said = spoken.get(from..)?;
    let (first, last) = (said.first()?, said.last()?);
    let excluded = said.iter().filter(|said| said.excluded).map(|said| said.position.id);
    Some(PathRun {
        from: first.position.id,
        to: last.position.id,
        count: said.len() as u64,
        chars: 0,
        tokens,
        digest: path.digest(&first.position, &last.position),
        excluded: excluded.collect(),
        cut: 0,
        calls: pairs.cuts_in(spoken, from),
    })
}

/// The run of the path between two depths, both included, none of which is sent; none where there is none. What it
/// holds is told from sums, not read.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn unsent(
    rows: &dyn TreeReader,
    path: &ViewOverrides,
    depths: std::ops::RangeInclusive<u32>,
) -> Result<Option<PathRun>, RowError> {
    if depths.is_empty() {
        return Ok(None);
    }
    let first = ancestor_at(rows, path.tip.id, *depths.start())?;
    let last = ancestor_at(rows, path.tip.id, *depths.end())?;
    let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
    let sums = path.above(&last).plus(path.own(&last)).minus(path.above(&first));
    Ok(Some(PathRun {
        count: u64::from(depths.end() - depths.start()) + 1,
        chars: sums.counts.chars,
        // Nobody counts what is not sent: four characters a token is near enough for a figure.
        tokens: sums.counts.chars / 4,
        digest: sums.digest,
        from: first.id,
        to: last.id,
        excluded: Vec::new(),
        cut: 0,
        calls: Vec::new(),
    }))
}

/// Where turns begin: with what the user said, all of it.
pub(crate) fn turns(spoken: &[Spoken]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut within = false;
    for (index, said) in spoken.iter().enumerate().filter(|(_, said)| !said.excluded) {
        let user = said.is_user();
        if user && !within {
            starts.push(index);
        }
        within = user;
    }
    starts
}

/// Has a window that starts at `depth` begin with a turn.
fn align(spoken: &mut Vec<Spoken>, depth: u32) {
    let at = spoken.iter().position(|said| said.position.depth >= depth && said.is_user());
    let at = at.or_else(|| turns(spoken).into_iter().rfind(|at| spoken[*at].position.depth < depth));
    spoken.drain(..at.unwrap_or(0));
}

/// The window's start, where it is on the path: a tip moved above the start finds it anew.
fn on_path(
    rows: &dyn TreeReader,
    path: &ViewOverrides,
    start: Option<TextOffset>,
) -> Result<Option<Position>, RowError> {
    let Some(place) = start else { return Ok(None) };
    let Some(position) = rows.position(place.position)? else { return Ok(None) };
    let above = position.depth <= path.tip.depth && is_ancestor(rows, position.id, path.tip.id)?;
    Ok(Some(position).filter(|_| above))
}

/// What was shown with nodes, read a page at a time from the newest.
#[derive(Default)]
pub(crate) struct Shown {
    pub(crate) by_node: HashMap<NodeId, Vec<Injection>>,
    before: Option<NodeId>,
}

impl Shown {
    /// Reads what was shown with nodes that are not older than a page's first original. A version that an older
    /// position shows is newer than its original, so that it has been read by the time the position is met.
    pub(crate) fn read(&mut self, rows: &dyn TreeReader, first: &Position) -> Result<(), RowError> {
        let from = first.id.original();
        for injection in rows.injections(from, self.before)? {
            self.by_node.entry(injection.node).or_default().push(injection);
        }
        self.before = Some(from);
        Ok(())
    }
}
