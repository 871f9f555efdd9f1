//! The request for a document: its text and nothing that is not the owner's (spec: context §7).
//!
//! No system prompt but one that the owner wants there, no injections. What is longer than the budget starts later: the start moves forward by a
//! quarter of the window to a paragraph (else a sentence, else a cluster) and stays there, so that prefix and
//! cache live in between. No marker stands in the prose.

use loom::operation::TimelineEffect;
use loom::path::ViewOverrides;
use loom::render::tip;
use loom::{
    CellKey, CellValue, NodeId, NodeRow, OpKind, OriginRole, PositionId, RowError, Seq, Slot, TreeReader,
    Trust, ViewName, resolve,
};
use model::{Chat, ChatPart, PartId, Prompt, TextPart};

use crate::bootstrap::SystemPrompt;
use crate::budget::TokenBudget;
use crate::estimate::Estimator;
use crate::held;
use crate::manifest::ContinuationForm;
use crate::of_prompt::messages;
use crate::piece::{Assembled, ContextError, RequestPiece};
use crate::prefix::Prefix;
use crate::replay::ReplayConstraints;
use crate::segment::{Kind, SegmentOutcome, Source};
use crate::tail::Tail;
use crate::window_beginning::{WindowBeginning, first_words};

/// Paragraphs before the end at which a note stands, where nothing is said of it.
pub const DEFAULT_NOTE_DEPTH: u64 = 3;

/// What a continuation is asked with.
#[derive(Debug, Clone)]
pub struct DocumentRequest {
    pub view: ViewName,
    /// Where to continue; the view's tip, if none.
    pub from: Option<PositionId>,
    /// The way the model takes it.
    pub way: ContinuationForm,
    /// The tokens it may have.
    pub budget: TokenBudget,
    /// Whether pending edits and the working buffer count as text: for a look at the next request.
    pub drafts: bool,
    /// System prompt of the owner's, sent before everything else.
    pub system: Option<SystemPrompt>,
    /// Nodes sent before the document.
    pub context: Vec<NodeId>,
    /// Nodes sent before everything else, as instructions.
    pub instruction: Vec<NodeId>,
    /// The request that this one repeats.
    pub again: Option<ReplayConstraints>,
    /// Where the text of the request before began, and after how many bytes of that passage.
    pub before: Option<(PositionId, u64)>,
}

/// The instruction of the *instructed* way.
const CONTINUE: &str = "Continue the text exactly where it ends. Write only the continuation, in the same language, \
                        voice and form. Do not repeat, explain or comment.";

/// What the *prefill* way asks, since a chat begins with its user.
const WRITE: &str = "Write the text.";

/// Puts the request for a document together.
///
/// # Errors
/// [`ContextError::Empty`] when there is no text at all, [`ContextError::TooLong`] when head, note and extra
/// inputs take more than half of the budget.
pub fn document(
    rows: &dyn TreeReader,
    request: &DocumentRequest,
    estimator: &Estimator,
) -> Result<Assembled, ContextError> {
    let mut build = Build { estimator, next: 0, pieces: Vec::new() };
    let pinned = Pinned::read(rows, request)?;
    let fixed = pinned.tokens(estimator);
    if fixed > request.budget.budget / 2 {
        return Err(ContextError::TooLong {
            what: "what is pinned (system prompt, head, note and extra inputs)".to_owned(),
            needed: fixed,
            budget: request.budget.budget / 2,
        });
    }
    // What stands around the text, and a token a piece for what rounding adds.
    let around = estimator.of_messages(4) + estimator.of(CONTINUE) + 16;
    let room = request.budget.budget.saturating_sub(fixed + around);
    let at = match request.from {
        Some(from) => from,
        None => tip(rows, &request.view)?,
    };
    let path = ViewOverrides::read(rows, &request.view, at)?;
    let set = rows.cell(&CellKey::WindowStart { view: request.view.clone() })?;
    let start = match &request.again {
        Some(again) => again.start,
        None => set.value.as_place(),
    };
    let mut tail = Tail::read(rows, &request.view, &path, start, estimator, room)?;
    if start.is_some() && request.again.is_none() && moved_by_itself(rows, set.seq)? {
        let whole = Tail::read(rows, &request.view, &path, None, estimator, room)?;
        let tokens = |tail: &Tail| if tail.complete { estimator.of(&tail.text()) } else { u64::MAX };
        // A smaller window than this one's asked for it, or text that is gone.
        if tokens(&whole) <= room || tokens(&tail) < room / LITTLE {
            tail = whole;
        }
    }
    let buffer = match rows.draft(&request.view, Slot::Buffer)? {
        Some(draft) if request.drafts && request.from.is_none() => draft.text,
        _ => String::new(),
    };
    let mut new_start = None;
    let mut text = tail.text();
    let buffer_tokens = estimator.of(&buffer);
    if buffer_tokens > room {
        return Err(ContextError::TooLong {
            what: "the uncommitted text".to_owned(),
            needed: buffer_tokens,
            budget: room,
        });
    }
    if !tail.complete || estimator.of(&text) + buffer_tokens > room {
        let target =
            room.saturating_sub(request.budget.window / 4).max(room / 4).saturating_sub(buffer_tokens);
        let cut = cut_for(&text, target, estimator);
        new_start = tail.cut_to(cut);
        text = tail.text();
    }
    let (trust, tainted_by) = tail.trust();
    let lowest = pinned.trust().min(trust);
    let left = tail.above(rows, &path)?;
    let run = tail.run(&path, text.chars().count() as u64, estimator.of(&text));

    // The white space at the very end is held back, whichever part it stands in.
    let full = format!("{text}{buffer}");
    let (sent, held) = held::split(&full);
    let in_text = &text[..text.len().min(sent.len())];
    let in_buffer = &sent[in_text.len()..];
    let begins = match (&left, tail.passages.first()) {
        (Some(_), Some(first)) => {
            let cut_off = if first.excluded { "" } else { &first.text[..tail.cut] };
            // The chapter is looked for where somebody is told of it: the rest of the tree costs nothing else.
            let is_new = run.as_ref().map(|run| (run.from, run.cut)) != request.before;
            Some(if request.drafts || is_new {
                let depth = first.position.depth;
                let found = WindowBeginning::find(rows, &request.view, &path, depth, cut_off, in_text)?;
                WindowBeginning { is_new, ..found }
            } else {
                WindowBeginning { words: first_words(in_text), chapter: None, is_new }
            })
        }
        _ => None,
    };
    if sent.is_empty() && pinned.is_empty() {
        return Err(ContextError::Empty);
    }
    let prompt = build.prompt(request.way, &pinned, in_text, in_buffer, trust);
    if let Some(run) = &left {
        let mut piece = RequestPiece::left_out(Kind::Document, Source::Left { left: 0 }, ABOVE_WINDOW);
        (piece.chars, piece.tokens) = (run.chars, run.tokens);
        build.pieces.push(piece);
    }
    let tokens =
        build.pieces.iter().filter(|piece| !piece.parts.is_empty()).map(|piece| piece.tokens).sum::<u64>()
            + estimator.of_messages(messages(&prompt));
    let assembled = Assembled {
        prompt,
        pieces: build.pieces,
        runs: run.into_iter().collect(),
        begins,
        left: left.into_iter().collect(),
        prefix: request.system.as_ref().map(Prefix::of_document),
        injected: Vec::new(),
        notices: Vec::new(),
        way: Some(request.way),
        held: held.to_owned(),
        new_start,
        inputs: pinned.inputs,
        tokens,
        trust: lowest,
        tainted_by: tainted_by.or(pinned.tainted),
    };
    match &request.again {
        Some(again) => again.checked(assembled),
        None => Ok(assembled),
    }
}

/// A part of the room so small that a start which leaves no more of it is found anew (decision 25).
const LITTLE: u64 = 8;

/// Whether a window's start was moved for lack of room, and not by hand.
fn moved_by_itself(rows: &dyn TreeReader, seq: Seq) -> Result<bool, RowError> {
    let moved = rows.operation(seq)?.filter(|moved| moved.op.kind == OpKind::Compact);
    Ok(moved.is_some_and(|moved| moved.op.timeline == TimelineEffect::None))
}

/// Why the beginning of a document is not sent.
const ABOVE_WINDOW: &str = "it stands above the start of the window";
/// The byte at which a text may begin so that the rest has about `target` tokens.
fn cut_for(text: &str, target: u64, estimator: &Estimator) -> usize {
    // The rest shrinks as the cut moves right, so the first fitting place is found by halving.
    let (mut low, mut high) = (0, text.len());
    while low < high {
        let middle = text::grapheme::floor(text, low + (high - low) / 2);
        if middle <= low {
            break;
        }
        if estimator.of(&text[middle..]) > target { low = middle } else { high = middle }
    }
    let slack = (text.len() - high) / 8;
    text::cut::window_start(text, &(high..=high + slack))
}

/// What is sent besides the text: head, note, extra inputs.
#[derive(Default)]
pub(crate) struct Pinned {
    pub(crate) system: Option<SystemPrompt>,
    pub(crate) head: Option<NodeRow>,
    pub(crate) note: Option<(NodeRow, usize)>,
    pub(crate) context: Vec<NodeRow>,
    pub(crate) instruction: Vec<NodeRow>,
    pub(crate) inputs: Vec<(OriginRole, NodeId)>,
    pub(crate) tainted: Option<NodeId>,
}

impl Pinned {
    fn read(rows: &dyn TreeReader, request: &DocumentRequest) -> Result<Self, RowError> {
        let pinned = Self::of(rows, &request.view, &request.context, &request.instruction)?;
        Ok(Self { system: request.system.clone(), ..pinned })
    }

    pub(crate) fn of(
        rows: &dyn TreeReader,
        view: &ViewName,
        context: &[NodeId],
        instruction: &[NodeId],
    ) -> Result<Self, RowError> {
        let mut pinned = Self::default();
        pinned.head = pinned.shown(rows, view, &CellKey::Head)?;
        let depth = match rows.cell(&CellKey::NoteDepth)?.value {
            CellValue::Number(depth) => usize::try_from(depth).unwrap_or(usize::MAX),
            _ => DEFAULT_NOTE_DEPTH as usize,
        };
        pinned.note = pinned.shown(rows, view, &CellKey::Note)?.map(|row| (row, depth));
        pinned.context = rows.nodes(context)?;
        pinned.instruction = rows.nodes(instruction)?;
        pinned.inputs = context.iter().map(|node| (OriginRole::Context, *node)).collect();
        pinned.inputs.extend(instruction.iter().map(|node| (OriginRole::Instruction, *node)));
        let tainted = pinned.rows().find(|row| row.node.trust == Trust::Outside).map(|row| row.node.id);
        pinned.tainted = tainted;
        Ok(pinned)
    }

    /// A pinned text that is there and not empty.
    fn shown(
        &self,
        rows: &dyn TreeReader,
        view: &ViewName,
        key: &CellKey,
    ) -> Result<Option<NodeRow>, RowError> {
        let Some(position) = rows.cell(key)?.value.as_position() else { return Ok(None) };
        let row = rows.node(resolve::shown(rows, view, position)?)?;
        Ok(row.filter(|row| !row.node.text().is_empty()))
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &NodeRow> {
        let note = self.note.iter().map(|(row, _)| row);
        self.head.iter().chain(note).chain(&self.context).chain(&self.instruction)
    }

    pub(crate) fn tokens(&self, estimator: &Estimator) -> u64 {
        let system = self.system.as_ref().map_or(0, |system| estimator.of(&system.text));
        system + self.rows().map(|row| estimator.of(&row.node.text())).sum::<u64>()
    }

    pub(crate) fn trust(&self) -> Trust {
        self.rows().map(|row| row.node.trust).min().unwrap_or(Trust::Owner)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows().next().is_none()
    }
}

/// Parts and pieces under construction.
pub(crate) struct Build<'a> {
    pub(crate) estimator: &'a Estimator,
    pub(crate) next: u32,
    pub(crate) pieces: Vec<RequestPiece>,
}

impl Build<'_> {
    /// A part and its piece.
    pub(crate) fn part(
        &mut self,
        kind: Kind,
        source: Source,
        reason: &str,
        trust: Option<Trust>,
        text: &str,
    ) -> TextPart {
        let id = PartId(self.next);
        self.next += 1;
        self.pieces.push(RequestPiece {
            parts: vec![id],
            kind,
            source,
            reason: reason.to_owned(),
            chars: text.chars().count() as u64,
            tokens: self.estimator.of(text),
            stable: false,
            trust,
            decision: SegmentOutcome::Sent,
            tools: Vec::new(),
        });
        TextPart::new(id, text)
    }

    fn system(&mut self, system: &SystemPrompt) -> TextPart {
        let source = Source::Product { name: system.source.clone() };
        self.part(Kind::Identity, source, &system.reason, Some(Trust::Owner), &system.text)
    }

    fn node(&mut self, kind: Kind, reason: &str, row: &NodeRow) -> TextPart {
        let source = Source::Node { node: row.node.id, position: row.node.position };
        let text = row.node.text().into_owned();
        self.part(kind, source, reason, Some(row.node.trust), &text)
    }

    fn prompt(
        &mut self,
        way: ContinuationForm,
        pinned: &Pinned,
        text: &str,
        buffer: &str,
        trust: Trust,
    ) -> Prompt {
        match way {
            ContinuationForm::Raw => self.raw(pinned, text, buffer, trust),
            ContinuationForm::Prefill | ContinuationForm::Instructed => {
                self.chat(way, pinned, text, buffer, trust)
            }
        }
    }

    /// Everything in one text: instructions, head, extra inputs, the document with the note in its place.
    fn raw(&mut self, pinned: &Pinned, text: &str, buffer: &str, trust: Trust) -> Prompt {
        let mut parts = Vec::new();
        if let Some(system) = &pinned.system {
            parts.push(self.system(system));
            if !system.text.ends_with("\n\n") {
                parts.push(self.part(Kind::Framing, Source::Dialect, "a blank line", None, "\n\n"));
            }
        }
        for (row, kind, reason) in leading(pinned) {
            parts.push(self.node(kind, reason, row));
            let ends = row.node.text().ends_with("\n\n");
            if !ends {
                parts.push(self.part(Kind::Framing, Source::Dialect, "a blank line", None, "\n\n"));
            }
        }
        // The buffer is text of the path once it is sent: paragraphs are counted in both.
        let whole = format!("{text}{buffer}");
        let note_at =
            pinned.note.as_ref().map(|(row, depth)| (row, text::cut::note_position(&whole, *depth)));
        let (before, note) = match note_at {
            Some((row, at)) => (&whole[..at], Some(row)),
            None => (whole.as_str(), None),
        };
        let in_text = text.len().min(before.len());
        self.passage(&mut parts, &before[..in_text], &before[in_text..], trust);
        if let Some(row) = note {
            if !before.is_empty() && !before.ends_with('\n') {
                parts.push(self.part(Kind::Framing, Source::Dialect, "a blank line", None, "\n\n"));
            }
            parts.push(self.node(Kind::Note, "the tree's note", row));
            if !row.node.text().ends_with("\n\n") {
                parts.push(self.part(Kind::Framing, Source::Dialect, "a blank line", None, "\n\n"));
            }
        }
        let in_buffer = before.len() - in_text;
        self.passage(&mut parts, &text[in_text..], &buffer[in_buffer..], trust);
        Prompt::Raw(parts)
    }

    /// Text of the path and of the working buffer, as far as there is any.
    fn passage(&mut self, parts: &mut Vec<TextPart>, text: &str, buffer: &str, trust: Trust) {
        if !text.is_empty() {
            let reason = "the text of the path";
            parts.push(self.part(Kind::Document, Source::Run { run: 0 }, reason, Some(trust), text));
        }
        if !buffer.is_empty() {
            let reason = "not committed yet";
            parts.push(self.part(Kind::Buffer, Source::WorkingBuffer, reason, Some(Trust::Owner), buffer));
        }
    }

    /// Pinned texts as system parts, the document as the assistant's beginning or as what is to be continued.
    fn chat(
        &mut self,
        way: ContinuationForm,
        pinned: &Pinned,
        text: &str,
        buffer: &str,
        trust: Trust,
    ) -> Prompt {
        let mut messages = Vec::new();
        let product = |build: &mut Self, name: &str, text: &str| {
            let source = Source::Product { name: name.to_owned() };
            build.part(
                Kind::Identity,
                source,
                "the way this model continues a text",
                Some(Trust::Owner),
                text,
            )
        };
        messages.extend(pinned.system.iter().map(|system| ChatPart::System(self.system(system))));
        if way == ContinuationForm::Instructed {
            messages.push(ChatPart::System(product(self, "continue", CONTINUE)));
        }
        for (row, kind, reason) in leading(pinned) {
            messages.push(ChatPart::System(self.node(kind, reason, row)));
        }
        if let Some((row, _)) = &pinned.note {
            messages.push(ChatPart::System(self.node(Kind::Note, "the tree's note", row)));
        }
        let whole = format!("{text}{buffer}");
        if way == ContinuationForm::Instructed {
            let reason = "the text of the path";
            let part = self.part(Kind::Document, Source::Run { run: 0 }, reason, Some(trust), &whole);
            messages.push(ChatPart::User(part));
            return Prompt::Chat(Chat { messages, ..Chat::default() });
        }
        messages.push(ChatPart::User(product(self, "write", WRITE)));
        let reason = "the text of the path";
        let prefill = self.part(Kind::Document, Source::Run { run: 0 }, reason, Some(trust), &whole);
        Prompt::Chat(Chat { messages, prefill: Some(prefill), ..Chat::default() })
    }
}

/// Instructions, head and extra inputs, in the order they are sent.
fn leading(pinned: &Pinned) -> Vec<(&NodeRow, Kind, &'static str)> {
    let instructions =
        pinned.instruction.iter().map(|row| (row, Kind::ExtraInput, "an instruction you named"));
    let head = pinned.head.iter().map(|row| (row, Kind::Head, "the tree's head"));
    let context = pinned.context.iter().map(|row| (row, Kind::ExtraInput, "context you named"));
    head.chain(instructions).chain(context).collect()
}
