//! The end of a path, read backwards until a budget is full.

use loom::path::ViewOverrides;
use loom::render::{Pages, Passage};
use loom::{NodeId, RowError, TextOffset, TreeReader, Trust, ViewName};

use crate::estimate::Estimator;
use crate::history::unsent;
use crate::manifest::PathRun;

/// Passages read at a time.
const PAGE: u32 = 64;

/// The end of a path.
pub(crate) struct Tail {
    /// Passages, from the top. Left-out ones are among them.
    pub(crate) passages: Vec<Passage>,
    /// Whether the path (or the window's start) was reached.
    pub(crate) complete: bool,
    /// Bytes cut off the first passage, where the window starts inside it.
    pub(crate) cut: usize,
}

impl Tail {
    /// Reads from the end of `path` up to `start` (the genesis, if none), at most until more than `budget`
    /// tokens were read.
    pub(crate) fn read(
        rows: &dyn TreeReader,
        view: &ViewName,
        path: &ViewOverrides,
        start: Option<TextOffset>,
        estimator: &Estimator,
        budget: u64,
    ) -> Result<Self, RowError> {
        let start = match start {
            // A tip moved above the start finds it anew.
            Some(place) => rows
                .position(place.position)?
                .filter(|position| position.depth <= path.tip.depth)
                .filter(|position| loom::path::is_ancestor(rows, position.id, path.tip.id).unwrap_or(false))
                .map(|position| (position.depth, place.at)),
            None => None,
        };
        let top = start.map_or(0, |(depth, _)| depth);
        let mut passages: Vec<Passage> = Vec::new();
        let mut read = estimator.sum();
        let mut pages = Pages::default();
        let mut depth = Some(path.tip.depth);
        while let Some(to) = depth {
            let page = pages.read(rows, view, path, top.max(to.saturating_sub(PAGE - 1))..=to)?;
            for passage in page.iter().filter(|passage| !passage.excluded) {
                read.add(&passage.text);
            }
            depth = page
                .first()
                .and_then(|first| first.position.depth.checked_sub(1))
                .filter(|next| *next >= top);
            passages.extend(page.into_iter().rev());
            if read.tokens() > budget {
                break;
            }
        }
        passages.reverse();
        let complete = depth.is_none();
        let cut = match start.filter(|_| complete) {
            Some((_, at)) => passages.first().map_or(0, |first| {
                text::grapheme::floor(
                    &first.text,
                    usize::try_from(at).unwrap_or(usize::MAX).min(first.text.len()),
                )
            }),
            None => 0,
        };
        Ok(Self { passages, complete, cut })
    }

    /// The text of the passages that are not left out, from the cut on.
    pub(crate) fn text(&self) -> String {
        let mut all = String::new();
        for (index, passage) in self.passages.iter().enumerate() {
            if !passage.excluded {
                all.push_str(if index == 0 { &passage.text[self.cut..] } else { &passage.text });
            }
        }
        all
    }

    /// Cuts everything before byte `at` of [`Tail::text`] off, and returns the place it now starts at.
    pub(crate) fn cut_to(&mut self, at: usize) -> Option<TextOffset> {
        let mut left =
            at + if self.passages.first().is_some_and(|first| !first.excluded) { self.cut } else { 0 };
        let mut first = 0;
        for (index, passage) in self.passages.iter().enumerate() {
            let len = if passage.excluded { 0 } else { passage.text.len() };
            if left < len || index + 1 == self.passages.len() {
                first = index;
                break;
            }
            left -= len;
        }
        self.passages.drain(..first);
        self.cut = left.min(self.passages.first().map_or(0, |first| first.text.len()));
        self.complete = true;
        self.passages.first().map(|first| TextOffset { position: first.position.id, at: self.cut as u64 })
    }

    /// The run of the path that is sent, as its manifest names it; none of nothing. How much it is, is the
    /// caller's to say: a document sends a text, a dialogue messages.
    pub(crate) fn run(&self, path: &ViewOverrides, chars: u64, tokens: u64) -> Option<PathRun> {
        let (first, last) = (self.passages.first()?, self.passages.last()?);
        let excluded = self.passages.iter().filter(|passage| passage.excluded);
        Some(PathRun {
            from: first.position.id,
            to: last.position.id,
            count: self.passages.len() as u64,
            chars,
            tokens,
            digest: path.digest(&first.position, &last.position),
            excluded: excluded.map(|passage| passage.position.id).collect(),
            cut: self.cut as u64,
            calls: Vec::new(),
        })
    }

    /// What of the path stands above it and is not sent; none where it begins at the top.
    pub(crate) fn above(
        &self,
        rows: &dyn TreeReader,
        path: &ViewOverrides,
    ) -> Result<Option<PathRun>, RowError> {
        let Some(first) = self.passages.first() else { return Ok(None) };
        let whole = unsent(rows, path, 1..=first.position.depth.saturating_sub(1))?;
        let cut = if first.excluded { "" } else { &first.text[..self.cut] };
        let chars = cut.chars().count() as u64;
        let part = || PathRun {
            from: first.position.id,
            to: first.position.id,
            count: 0,
            chars: 0,
            tokens: 0,
            digest: path.digest(&first.position, &first.position),
            excluded: Vec::new(),
            cut: 0,
            calls: Vec::new(),
        };
        let run = whole.or_else(|| (chars > 0).then(part));
        Ok(run.map(|run| PathRun { chars: run.chars + chars, tokens: run.tokens + chars / 4, ..run }))
            .map(|run| run.filter(|run| run.chars > 0))
    }

    /// The lowest trust of what is in it, and a node of trust `outside`.
    pub(crate) fn trust(&self) -> (Trust, Option<NodeId>) {
        let sent = self.passages.iter().filter(|passage| !passage.excluded && !passage.text.is_empty());
        sent.fold((Trust::Owner, None), |(lowest, tainted), passage| {
            let trust = passage.row.node.trust;
            let taints = (trust == Trust::Outside).then_some(passage.row.node.id);
            (lowest.min(trust), tainted.or(taints))
        })
    }
}
