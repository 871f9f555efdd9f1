//! The texts of passages become what the document says: in one step, and only where nobody else wrote since.

use std::collections::{HashMap, HashSet};

use loom::path::{ViewOverrides, is_ancestor};
use loom::render::{tip, window};
use loom::{CellKey, MovedText, NodeId, Op, OpTarget, PassageEdit, PositionId, TreeReader, resolve};
use text::passages::{Division, split};

use super::{OpenPassage, OpenText, edited};
use crate::app::App;
use crate::error::CommandError;
use crate::results::tree::PathEdited;
use crate::rights::Asker;
use crate::tree::telling::{WordBudget, WordChange, shown_at, words_of};

/// Bytes of a text from which on it is known where it stands twice.
const MIN_MOVED_BYTES: usize = 16;
/// Passages that are looked for elsewhere, at most.
const MAX_MOVED_PASSAGES: usize = 256;

/// Texts of passages that say nothing any more and that stand whole in another one (ADR 0018).
#[derive(Default)]
struct Moves {
    /// By where they stand now: one for each passage, the longest.
    quoted: HashMap<PositionId, MovedText>,
    /// Where each stood, and where it stands now.
    ways: Vec<[PositionId; 2]>,
}

fn moves(passages: &[OpenPassage], texts: &[String]) -> Moves {
    let mut moves = Moves::default();
    let pairs = || passages.iter().zip(texts).filter(|(passage, text)| passage.text != **text);
    let is_gone = |(passage, text): &(&OpenPassage, &String)| {
        text.trim().is_empty() && passage.text.trim().len() >= MIN_MOVED_BYTES && !passage.is_forgotten
    };
    for (gone, _) in pairs().filter(is_gone).take(MAX_MOVED_PASSAGES) {
        let said = gone.text.trim();
        let from = gone.text.len() - gone.text.trim_start().len();
        let places: Vec<_> = pairs()
            .filter(|(passage, _)| passage.position != gone.position && !passage.text.contains(said))
            .filter_map(|(passage, text)| Some((passage.position, text.find(said)?)))
            .collect();
        // Where it was copied to several places none is the one it went to.
        let [(position, at)] = places.as_slice() else { continue };
        let found = MovedText { node: gone.node, from, to: from + said.len(), at: *at };
        moves.ways.push([gone.position, *position]);
        let held = moves.quoted.entry(*position).or_insert(found);
        if held.to - held.from < found.to - found.from {
            *held = found;
        }
    }
    moves
}

impl OpenText {
    /// Takes the texts of the passages in, as far as nobody else wrote there since; what went in is what they say then.
    /// `file` is what they were read from.
    pub(super) async fn apply(
        &mut self,
        app: &App,
        asker: &Asker,
        mut texts: Vec<String>,
        file: &str,
    ) -> Result<PathEdited, CommandError> {
        self.require_forgotten_apart(app, asker, &texts, file).await?;
        let Moves { quoted: mut moved, ways } = moves(&self.passages, &texts);
        // What was moved to the end is quoted by the last passage.
        let is_at_end = self.passages.last().is_some_and(|last| moved.contains_key(&last.position));
        let mut added = if is_at_end { String::new() } else { self.take_end(&mut texts) };
        if self.stands_behind(app, asker, &added).await? {
            added.clear();
        }
        let pairs = self.passages.iter().zip(texts);
        let changed: Vec<(&OpenPassage, String)> =
            pairs.filter(|(passage, text)| *text != passage.text).collect();
        let (view, at) = (self.view.clone(), changed.iter().map(|(passage, _)| passage.position));
        let at: Vec<PositionId> = at.collect();
        let now = app.read(asker, self.tree, move |rows| {
            let tip = tip(rows, &view)?;
            let shown = at.iter().map(|at| {
                let row = shown_at(rows, &view, *at)?;
                let is_gone = row.purged || !is_read(rows, (*at, row.node.id), tip)?;
                Ok((is_gone, row.node.id, row.node.text().into_owned()))
            });
            shown.collect::<Result<Vec<_>, loom::RowError>>()
        });
        let now = now.await?;
        let mut left: HashSet<PositionId> = changed
            .iter()
            .zip(&now)
            .filter(|((passage, text), (is_gone, shown, says))| {
                passage.is_forgotten || (text != says && (*is_gone || *shown != passage.node))
            })
            .map(|((passage, _), _)| passage.position)
            .collect();
        // What went from one passage to another goes whole, or not at all; each may hold up the next.
        while let Some(way) =
            ways.iter().find(|way| way.iter().filter(|place| left.contains(place)).count() == 1)
        {
            left.extend(way);
        }
        let mut edits = Vec::new();
        for ((passage, text), (_, _, says)) in changed.into_iter().zip(now) {
            if !left.contains(&passage.position) && text != says {
                app.fits_node(&format!("the text of {}", passage.short_id), &text, false)?;
                let (position, from) = (passage.position, passage.node);
                let moved_to = ways.iter().find(|way| way[0] == position).map(|way| way[1]);
                edits.push(PassageEdit { position, from, text, moved: moved.remove(&position), moved_to });
            }
        }
        app.fits_node("the text at the end", &added, true)?;
        let mut done = PathEdited::default();
        if !edits.is_empty() || !added.is_empty() {
            let left_now = self.write(app, asker, (edits, &added), &mut done).await?;
            left.extend(left_now);
        }
        self.name_left(app, asker, &left, &mut done).await?;
        Ok(done)
    }

    /// Whether what was written at the end stands there already: somebody took the same text in.
    async fn stands_behind(&self, app: &App, asker: &Asker, added: &str) -> Result<bool, CommandError> {
        if added.is_empty() {
            return Ok(false);
        }
        let last = self.passages.last().map(|last| last.position);
        let texts: Vec<String> = split(added, Division::Paragraph).into_iter().map(str::to_owned).collect();
        let view = self.view.clone();
        let found = app.read(asker, self.tree, move |rows| {
            let path = ViewOverrides::read(rows, &view, tip(rows, &view)?)?;
            // Of a document that has no passage the end is its beginning.
            let depth = match last {
                Some(last) if !is_ancestor(rows, last, path.tip.id)? => return Ok(false),
                Some(last) => loom::path::position(rows, last)?.depth,
                None => 0,
            };
            let many = u32::try_from(texts.len()).unwrap_or(u32::MAX);
            if path.tip.depth < depth.saturating_add(many) {
                return Ok(false);
            }
            let below = window(rows, &view, &path, Some(depth + many), texts.len())?;
            Ok(below.iter().map(|passage| &passage.text).eq(&texts))
        });
        found.await
    }

    /// Writes what changed, in one step. Returns the passages that were left.
    async fn write(
        &mut self,
        app: &App,
        asker: &Asker,
        (mut edits, added): (Vec<PassageEdit>, &str),
        done: &mut PathEdited,
    ) -> Result<HashSet<PositionId>, CommandError> {
        let texts: Vec<_> =
            split(added, Division::Paragraph).into_iter().map(|text| asker.text(text, None)).collect();
        let grown = texts.len();
        let behind = self.passages.last().map(|last| last.position);
        let op = Op::EditPath { edits: edits.clone(), texts, behind };
        let applied = app.change(asker, self.tree, &self.view, op).await?;
        // Without an operation nothing was taken in.
        let was_left = |key: &CellKey| applied.seq.is_none() || applied.skipped.contains(key);
        let view = self.view.clone();
        let mut left: HashSet<PositionId> = edits.iter().map(|edit| edit.position).collect();
        left.retain(|position| was_left(&CellKey::Selected { view: view.clone(), position: *position }));
        let end_left = !added.is_empty() && was_left(&CellKey::Tip { view: view.clone() });
        let mut words = WordChange { came: if end_left { 0 } else { words_of(added) }, went: 0 };
        edits.retain(|edit| !left.contains(&edit.position));
        let mut budget = WordBudget::default();
        let written: HashMap<PositionId, &str> =
            edits.iter().map(|edit| (edit.position, edit.text.as_str())).collect();
        for passage in &self.passages {
            let Some(text) = written.get(&passage.position) else { continue };
            // Past it a passage counts as replaced.
            let replaced = || WordChange { came: words_of(text), went: words_of(&passage.text) };
            let between = budget.words_between(&passage.text, text).unwrap_or_else(replaced);
            words = WordChange { came: words.came + between.came, went: words.went + between.went };
        }
        (done.words_added, done.words_removed) = (words.came, words.went);
        let at: Vec<PositionId> = edits.iter().map(|edit| edit.position).collect();
        let nodes = applied.nodes.clone();
        let (changed, new) = app
            .read(asker, self.tree, move |rows| {
                let changed = at.iter().map(|at| edited(rows, resolve::shown(rows, &view, *at)?));
                let changed = changed.collect::<Result<Vec<_>, _>>()?;
                let mut new = Vec::new();
                for (node, short_id) in nodes {
                    let row = rows.node(node)?.ok_or_else(|| loom::RowError::missing("node", node))?;
                    if row.node.position.original() == node {
                        let (position, text) = (row.node.position, row.node.text().into_owned());
                        new.push(OpenPassage { position, node, short_id, text, is_forgotten: false });
                    }
                }
                Ok((changed, new))
            })
            .await?;
        let versions: HashMap<PositionId, NodeId> =
            changed.iter().map(|edited| (edited.position, edited.node)).collect();
        for passage in &mut self.passages {
            if let (Some(node), Some(text)) =
                (versions.get(&passage.position), written.get(&passage.position))
            {
                passage.node = *node;
                (*text).clone_into(&mut passage.text);
            }
        }
        done.changed = changed;
        if !end_left {
            // What somebody typed meanwhile stands above it.
            let above = new.len().saturating_sub(grown);
            let new = new.into_iter().skip(above);
            self.passages.extend(new.inspect(|passage| done.added.push(passage.named())));
        }
        left.extend(behind.filter(|_| end_left));
        Ok(left)
    }

    /// Names the passages that were left, and those of them that left the path.
    async fn name_left(
        &self,
        app: &App,
        asker: &Asker,
        left: &HashSet<PositionId>,
        done: &mut PathEdited,
    ) -> Result<(), CommandError> {
        let collided: Vec<_> =
            self.passages.iter().filter(|passage| left.contains(&passage.position)).collect();
        let (view, at): (_, Vec<_>) =
            (self.view.clone(), collided.iter().map(|passage| passage.position).collect());
        let is_off = app.read(asker, self.tree, move |rows| {
            let tip = tip(rows, &view)?;
            let is_off = at.iter().map(|at| {
                let shown = shown_at(rows, &view, *at)?.node.id;
                Ok(!is_read(rows, (*at, shown), tip)?)
            });
            is_off.collect::<Result<Vec<_>, loom::RowError>>()
        });
        let off_path = collided.iter().zip(is_off.await?).filter(|(_, is_off)| *is_off);
        done.off_path = off_path.map(|(passage, _)| passage.named()).collect();
        done.collided = collided.into_iter().map(OpenPassage::named).collect();
        Ok(())
    }

    /// What was written behind the last passage of the path, which belongs below it (spec: loom §2 *Rules*): taken from
    /// the texts, where that passage itself stayed as it was.
    fn take_end(&self, texts: &mut [String]) -> String {
        // What a forgotten passage said is not known: nothing can be told from it.
        let is_known = self.passages.last().is_none_or(|last| !last.is_forgotten);
        let Some(text) = texts.last_mut().filter(|_| self.is_to_the_end && is_known) else {
            return String::new();
        };
        let last = self.passages.last().map_or("", |passage| passage.text.as_str());
        let at_cluster = text::grapheme::floor(text, last.len()) == last.len();
        match text.strip_prefix(last) {
            Some(more) if !more.trim().is_empty() && at_cluster => {
                let more = more.to_owned();
                text.truncate(last.len());
                more
            }
            _ => String::new(),
        }
    }
}

/// Whether a passage stands in the text that ends at the tip: the path leads through it, and it is not left out.
pub(in crate::tree) fn is_read(
    rows: &dyn TreeReader,
    (at, shown): (PositionId, NodeId),
    tip: PositionId,
) -> Result<bool, loom::RowError> {
    for target in [OpTarget::Position(at), OpTarget::Version(shown)] {
        if rows.cell(&CellKey::Excluded { target })?.value.is_set() {
            return Ok(false);
        }
    }
    is_ancestor(rows, at, tip)
}
