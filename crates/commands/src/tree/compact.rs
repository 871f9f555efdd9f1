//! Moving the start of the window on purpose (spec: context §6).

use context::dialogue::{DialogueRequest, dialogue};
use context::document::{DocumentRequest, document};
use context::{
    ContextError, ContinuationForm, Coverage as _, CoveredBy, Estimator, NothingRemembered, PathRun,
    TargetModel, TokenBudget, unsent,
};
use loom::path::{ViewOverrides, ancestor_at, is_ancestor, position};
use loom::{
    Ascent, CellKey, Mode, Op, Position, PositionId, PositionKind, Refusal, Role, RowError, TextOffset,
    TreeReader, ViewName, resolve,
};
use text::grapheme;

use super::look;
use super::telling::passage_at;
use crate::app::App;
use crate::args::tree::{Compact, Sampling};
use crate::error::CommandError;
use crate::model_selection::{self, Share};
use crate::results::CommandOutcome;
use crate::results::tree::Compacted;
use crate::rights::Asker;

/// Moves the window's start to a node, or so that half of what is sent now leaves.
pub(crate) async fn compact(app: &App, asker: &Asker, args: Compact) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = app.tree(asker, &args.tree).await?;
    let to = match &args.to {
        Some(name) => Some(app.node_named(asker, Some(tree), name).await?.1),
        None => None,
    };
    // Without a model nothing limits what would be sent: to move to a place nobody is asked to choose one.
    let shares = match (app.settings.model.as_deref(), to) {
        (None, Some(_)) => Vec::new(),
        _ => model_selection::shares(app, asker, tree, &Sampling::default()).await.unwrap_or_default(),
    };
    // Without flags one model is asked.
    let asked = shares.first().map(|Share { model, params, .. }| {
        let info = model.info();
        let limit = params.max_tokens.map(u64::from);
        Asked {
            budget: TokenBudget::new(info.window.into(), info.output_limit.into(), limit),
            target: TargetModel::of(info),
            form: ContinuationForm::of(info),
            estimator: agent::calibration::estimator(&app.runtime.home, model.as_ref()),
        }
    });
    let name = view.clone();
    let found = look(app, asker, tree, &view, move |rows, tip| {
        let window = Window::read(rows, &name, tip, asked)?;
        match to {
            Some(to) => window.from(to),
            None => window.half(),
        }
    });
    let NewStart { place, moves, is_back, between, now } = found.await??;
    // Nothing remembers yet: what leaves is kept in the tree, and nothing of it is sent.
    let covered_by = between.run.map_or(CoveredBy::Nothing, |run| NothingRemembered.covered(&run)).as_str();
    let (leaves, returns) = if is_back { (0, between.count) } else { (between.count, 0) };
    let start = if moves { place.position } else { now };
    let (chars, dry_run) = (between.chars, args.dry_run);
    let name = view.clone();
    let start_named = look(app, asker, tree, &view, move |rows, _| passage_at(rows, &name, start)).await?;
    let compacted = Compacted { leaves, returns, chars, covered_by, start, start_named, moves, dry_run };
    if !args.dry_run && moves {
        if leaves > 0 {
            app.frontend.note(&beforehand(&compacted));
        }
        // The genesis holds no text: a window that starts there starts at the top.
        let to = (place.at > 0 || !is_root(app, asker, tree, place.position).await?).then_some(place);
        app.change(asker, tree, &view, Op::Compact { to, by_hand: true }).await?;
    }
    Ok(CommandOutcome::Compacted(compacted))
}

/// What is about to leave, in one line.
fn beforehand(done: &Compacted) -> String {
    let Compacted { leaves, chars, covered_by, .. } = done;
    format!("passages that leave the window: {leaves}, {chars} characters; covered by: {covered_by}")
}

async fn is_root(app: &App, asker: &Asker, tree: loom::TreeId, at: PositionId) -> Result<bool, CommandError> {
    app.read(asker, tree, move |rows| Ok(rows.tree()?.root == at)).await
}

type Start = Result<NewStart, CommandError>;

/// A place the window is to start at.
struct NewStart {
    place: TextOffset,
    /// Whether that is another place than the one it was moved to before.
    moves: bool,
    /// Whether text comes back into the window, instead of leaving it.
    is_back: bool,
    /// What leaves or comes back.
    between: Stretch,
    /// The position at which the window starts now.
    now: PositionId,
}

/// A stretch of the path.
#[derive(Default)]
struct Stretch {
    /// Passages, the last of which may be there in part.
    count: u64,
    chars: u64,
    /// Passages that are there whole.
    run: Option<PathRun>,
}

/// A place on the path: a depth, and a byte of the text there. The top of the window is the first passage's beginning.
type Place = (u32, usize);

/// What the next request would hold.
struct Window<'a> {
    rows: &'a dyn TreeReader,
    view: &'a ViewName,
    mode: Mode,
    path: ViewOverrides,
    first: Position,
    /// The first byte of it that is sent.
    cut: usize,
    /// Where it was moved to: what is sent may begin further down, for lack of room.
    stored: Place,
}

impl<'a> Window<'a> {
    fn read(
        rows: &'a dyn TreeReader,
        view: &'a ViewName,
        tip: PositionId,
        asked: Option<Asked>,
    ) -> Result<Self, RowError> {
        let tree = rows.tree()?;
        let sent = match asked {
            Some(asked) => sent(rows, view, tree.mode, asked)?,
            None => None,
        };
        let (moved_to, at) = stored(rows, view, tip)?.unwrap_or((tree.root, 0));
        let (first, cut) = sent.unwrap_or((moved_to, at));
        let path = ViewOverrides::read(rows, view, tip)?;
        let stored = (position(rows, moved_to)?.depth.max(1), at);
        Ok(Self { rows, view, mode: tree.mode, path, first: position(rows, first)?, cut, stored })
    }

    /// The window that starts at a position.
    fn from(&self, to: PositionId) -> Result<Start, RowError> {
        let at = position(self.rows, to)?;
        if at.kind != PositionKind::Path {
            return Ok(Err(Refusal::OffPath(to).into()));
        }
        if !is_ancestor(self.rows, to, self.path.tip.id)? {
            return Ok(Err(Refusal::NotOnPath(to).into()));
        }
        Ok(Ok(self.start_at(TextOffset { position: to, at: 0 }, &at)?))
    }

    /// The window without its first half: at a paragraph, sentence or cluster of a document, at a turn of a
    /// dialogue.
    fn half(&self) -> Result<Start, RowError> {
        let begin = self.path.above(&self.first).counts;
        let text = self.text(&self.first)?;
        let cut_off = grapheme::count(&text[..grapheme::floor(&text, self.cut)]) as u64;
        let begin_at = begin.graphemes + cut_off;
        let total = self.path.total().counts;
        let sent = total.graphemes.saturating_sub(begin_at);
        let middle = self.path.locate(self.rows, begin_at + sent / 2)?;
        let Some((at, offset)) = middle.filter(|_| sent >= 2) else { return Ok(Err(nothing())) };
        let start = match self.mode {
            Mode::Buffer => {
                let slack = total.bytes.saturating_sub(begin.bytes) / 8;
                Some(self.in_text(&at, offset, slack)?)
            }
            Mode::Dialogue => self.turn(&at)?.map(|turn| (TextOffset { position: turn.id, at: 0 }, turn)),
        };
        let Some((place, at)) = start else { return Ok(Err(nothing())) };
        Ok(Ok(self.start_at(place, &at)?))
    }

    /// A good place from cluster `offset` of a position on, at most `slack` bytes behind it: a paragraph begins
    /// more often at a position than inside one.
    fn in_text(&self, at: &Position, offset: u64, slack: u64) -> Result<(TextOffset, Position), RowError> {
        let mut text = self.text(at)?;
        let clusters = usize::try_from(offset).unwrap_or(usize::MAX);
        let byte = grapheme::offset_of(&text, clusters).unwrap_or(text.len());
        let to = byte.saturating_add(usize::try_from(slack).unwrap_or(usize::MAX));
        let mut starts = vec![(0, at.clone())];
        // Enough to see that a paragraph begins at `to`, which the text behind it may decide.
        while text.len() <= to
            && let Some((_, last)) = starts.last()
            && let Some(next) = ancestor_at(self.rows, self.path.tip.id, last.depth + 1)?
        {
            let more = self.text(&next)?;
            starts.push((text.len(), next));
            text.push_str(&more);
        }
        let found = text::cut::window_start(&text, &(byte..=to.min(text.len())));
        let found = if found < text.len() { found } else { byte };
        let (start, position) =
            starts.into_iter().rfind(|(start, _)| *start <= found).unwrap_or((0, at.clone()));
        Ok((TextOffset { position: position.id, at: (found - start) as u64 }, position))
    }

    /// The beginning of a turn near a position: the next one, else the one before, but not the first of all. However
    /// many results of tools stand between, it is read once from the end of the path.
    fn turn(&self, near: &Position) -> Result<Option<Position>, RowError> {
        let first = (self.first.depth + 1).max(2);
        let mut next = None;
        for position in Ascent::new(self.rows, self.path.tip.id) {
            let position = position?;
            let is_before = position.depth < near.depth;
            if position.depth < first || (is_before && next.is_some()) {
                break;
            }
            if position.role == Some(Role::User) {
                next = Some(position);
                if is_before {
                    break;
                }
            }
        }
        Ok(next)
    }

    /// What leaves or comes back where the window starts at a place of this position. Nothing does where it was moved
    /// there before, or starts further down for lack of room: another model may have more.
    fn start_at(&self, place: TextOffset, at: &Position) -> Result<NewStart, RowError> {
        let new = (at.depth.max(1), usize::try_from(place.at).unwrap_or(usize::MAX));
        let now = (self.first.depth.max(1), self.cut);
        let is_back = new < self.stored;
        let between = if is_back {
            self.between(new, self.stored)?
        } else if new > now {
            self.between(now, new)?
        } else {
            Stretch::default()
        };
        Ok(NewStart { place, moves: new != self.stored, is_back, between, now: self.first.id })
    }

    /// What stands between two places.
    fn between(&self, from: Place, to: Place) -> Result<Stretch, RowError> {
        let run = unsent(self.rows, &self.path, from.0..=to.0.saturating_sub(1))?;
        let (count, chars) = run.as_ref().map_or((0, 0), |run| (run.count, run.chars));
        let above = |place: Place| -> Result<u64, RowError> {
            if place.1 == 0 {
                return Ok(0);
            }
            let Some(at) = ancestor_at(self.rows, self.path.tip.id, place.0)? else { return Ok(0) };
            let text = self.text(&at)?;
            Ok(text[..grapheme::floor(&text, place.1)].chars().count() as u64)
        };
        let chars = (chars + above(to)?).saturating_sub(above(from)?);
        Ok(Stretch { count: count + u64::from(to.1 > 0), chars, run })
    }

    /// What is rendered of a position.
    fn text(&self, at: &Position) -> Result<String, RowError> {
        if self.path.at(at.depth).is_some_and(|here| here.excluded) {
            return Ok(String::new());
        }
        let shown = resolve::shown(self.rows, self.view, at.id)?;
        let row = self.rows.node(shown)?.ok_or_else(|| RowError::missing("node", shown))?;
        Ok(row.node.text().into_owned())
    }
}

/// Code of the error where nothing is long enough to leave.
pub(crate) const NOTHING_TO_COMPACT: &str = "nothing_to_compact";

fn nothing() -> CommandError {
    let hint = "name the node it should start at with --to, or write more first";
    CommandError::new(NOTHING_TO_COMPACT, 3, "the window cannot be halved", hint)
}

/// The model whose window it is.
struct Asked {
    budget: TokenBudget,
    target: TargetModel,
    form: ContinuationForm,
    estimator: Estimator,
}

/// Where the next request would begin, if one could be made.
fn sent(
    rows: &dyn TreeReader,
    view: &ViewName,
    mode: Mode,
    asked: Asked,
) -> Result<Option<(PositionId, usize)>, RowError> {
    let view = view.clone();
    let Asked { budget, target, form, estimator } = asked;
    let assembled = match mode {
        Mode::Buffer => {
            let (way, from) = (form, None);
            let (context, instruction) = (Vec::new(), Vec::new());
            let drafts = false;
            let request = DocumentRequest {
                view,
                from,
                way,
                budget,
                drafts,
                system: None,
                context,
                instruction,
                again: None,
                before: None,
            };
            document(rows, &request, &estimator)
        }
        Mode::Dialogue => dialogue(rows, &DialogueRequest::new(view, target, budget), &estimator),
    };
    match assembled {
        Ok(assembled) => {
            // The first turn may stand before a gap: the window is what is behind it.
            let run = assembled.runs.last();
            Ok(run.map(|run| (run.from, usize::try_from(run.cut).unwrap_or(usize::MAX))))
        }
        Err(ContextError::Rows(error)) => Err(error),
        // A request that cannot be made yet is no reason not to move the window.
        Err(_) => Ok(None),
    }
}

/// Where the window was moved to, if that is on the path still.
fn stored(
    rows: &dyn TreeReader,
    view: &ViewName,
    tip: PositionId,
) -> Result<Option<(PositionId, usize)>, RowError> {
    let Some(place) = rows.cell(&CellKey::WindowStart { view: view.clone() })?.value.as_place() else {
        return Ok(None);
    };
    let on_path = rows.position(place.position)?.is_some() && is_ancestor(rows, place.position, tip)?;
    Ok(on_path.then_some((place.position, usize::try_from(place.at).unwrap_or(usize::MAX))))
}
