//! The request for a dialogue: turns by role, newest first, whole turns (spec: context §3 *History*).

use loom::path::Exceptions;
use loom::render::{Passage, tip};
use loom::{Block, CellKey, NodeId, PositionId, Role, Rows, ToolStatus, Trust, ViewName};
use model::{Chat, ChatPart, PartId, Prompt, TextPart, ToolCall, ToolExchange, ToolResult};

use crate::bootstrap::Bootstrap;
use crate::budget::Budget;
use crate::document::{Build, Pinned};
use crate::estimate::Estimator;
use crate::piece::{Assembled, ContextError, Piece};
use crate::segment::{Decision, Kind, Source};
use crate::tail::Tail;

/// What a turn is asked with.
#[derive(Debug, Clone)]
pub struct DialogueRequest {
    /// The view.
    pub view: ViewName,
    /// Where to answer; the view's tip, if none.
    pub from: Option<PositionId>,
    /// The tokens it may have.
    pub budget: Budget,
    /// What stands above the cache boundary.
    pub bootstrap: Bootstrap,
    /// Nodes sent before the newest turn.
    pub context: Vec<NodeId>,
    /// Nodes sent before everything else, as instructions.
    pub instruction: Vec<NodeId>,
}

/// The part of the window, one in so many, that may stand above the cache boundary (spec: context §3 *Fixed share*).
const FIXED_SHARE: u64 = 5;

/// Who the agent is and the owner's files, each with its piece.
fn prefix(build: &mut Build<'_>, bootstrap: &Bootstrap, tokens: u64) -> Vec<TextPart> {
    let mut parts = Vec::new();
    if !bootstrap.identity.is_empty() {
        let source = Source::Product { name: "identity".to_owned() };
        let identity = &bootstrap.identity;
        parts.push(build.part(Kind::Identity, source, "always", Some(Trust::Owner), identity));
    }
    for fitted in bootstrap.fit(tokens, build.estimator) {
        let file = fitted.file;
        let source = Source::File { path: file.name.clone(), digest: file.digest };
        let kind = if file.name == "HANDOFF.md" { Kind::Handoff } else { Kind::File };
        parts.push(build.part(kind, source, "of this session's kind", Some(file.trust), &fitted.text));
        if let (Some((from, to)), Some(piece)) = (fitted.cut, build.pieces.last_mut()) {
            piece.decision = Decision::Trimmed { from: from as u64, to: to as u64 };
        }
    }
    for piece in &mut build.pieces {
        piece.stable = true;
    }
    for (name, why) in &bootstrap.left_out {
        build.pieces.push(Piece {
            parts: Vec::new(),
            kind: Kind::File,
            source: Source::Product { name: name.clone() },
            reason: "of this session's kind".to_owned(),
            chars: 0,
            tokens: 0,
            stable: true,
            trust: None,
            decision: Decision::LeftOut { why: why.clone() },
        });
    }
    parts
}

/// Puts the request for a dialogue together.
///
/// # Errors
/// [`ContextError::Empty`] when nothing was said yet, [`ContextError::TooLong`] when the newest turn alone
/// does not fit.
pub fn dialogue(
    rows: &dyn Rows,
    request: &DialogueRequest,
    estimator: &Estimator,
) -> Result<Assembled, ContextError> {
    let mut build = Build { estimator, next: 0, pieces: Vec::new() };
    let pinned = Pinned::of(rows, &request.view, &request.context, &request.instruction)?;
    let share = request.budget.window / FIXED_SHARE;
    let begun = prefix(&mut build, &request.bootstrap, share);
    let fixed = pinned.tokens(estimator)
        + build.pieces.iter().map(|piece| piece.tokens).sum::<u64>()
        + estimator.of_messages(begun.len());
    let room = request.budget.budget.saturating_sub(fixed);
    let at = match request.from {
        Some(from) => from,
        None => tip(rows, &request.view)?,
    };
    let path = Exceptions::read(rows, &request.view, at)?;
    let start = rows.cell(&CellKey::WindowStart { view: request.view.clone() })?.value.as_place();
    let mut tail = Tail::read(rows, &request.view, &path, start, estimator, room)?;
    let mut new_start = None;
    if !tail.complete || cost(&tail.passages, estimator) > room {
        // Rare and large: the window starts anew at most at 60 % of what history may have.
        let first = fitting(&tail.passages, room * 6 / 10, room, estimator)?;
        tail.passages.drain(..first);
        new_start = tail.passages.first().map(|passage| loom::Place { position: passage.position.id, at: 0 });
    }
    // Turns are sent whole, wherever in one the window was set to start.
    tail.cut = 0;
    let said: Vec<&Passage> = tail.passages.iter().filter(|passage| !passage.excluded).collect();
    if said.iter().all(|passage| passage.row.node.content.is_empty()) {
        return Err(ContextError::Empty);
    }
    let mut messages: Vec<ChatPart> = begun.into_iter().map(ChatPart::System).collect();
    for row in pinned.head.iter().chain(&pinned.instruction) {
        let source = Source::Node { node: row.node.id, position: row.node.position };
        let text = row.node.text().into_owned();
        messages.push(ChatPart::System(build.part(
            Kind::Head,
            source,
            "pinned by the owner",
            Some(row.node.trust),
            &text,
        )));
    }
    let (trust, tainted_by) = tail.trust();
    let newest = said.iter().rposition(|passage| passage.position.role == Some(Role::User));
    let (older, latest) = said.split_at(newest.unwrap_or(0));
    history(&mut build, &mut messages, older, trust, "newest first, fits");
    for row in pinned.context.iter().chain(pinned.note.iter().map(|(row, _)| row)) {
        let source = Source::Node { node: row.node.id, position: row.node.position };
        let text = row.node.text().into_owned();
        let part = build.part(Kind::ExtraInput, source, "context you named", Some(row.node.trust), &text);
        messages.push(ChatPart::Injected(part));
    }
    history(&mut build, &mut messages, latest, trust, "the newest turn");
    // Turns count their own messages; the pinned ones are added here.
    let around = estimator.of_messages(messages.len().saturating_sub(said.len()));
    let tokens = build.pieces.iter().map(|piece| piece.tokens).sum::<u64>() + around;
    let chars = tail.passages.iter().map(|passage| passage.text.chars().count() as u64).sum();
    let run = tail.run(&path, chars, cost(&tail.passages, estimator));
    Ok(Assembled {
        prompt: Prompt::Chat(Chat { messages, ..Chat::default() }),
        pieces: build.pieces,
        runs: run.into_iter().collect(),
        way: None,
        held: String::new(),
        new_start,
        inputs: pinned.inputs.clone(),
        tokens,
        trust: pinned.trust().min(trust).min(request.bootstrap.trust()),
        tainted_by: tainted_by.or(pinned.tainted),
    })
}

/// Tokens of passages as messages.
fn cost(passages: &[Passage], estimator: &Estimator) -> u64 {
    let said = passages.iter().filter(|passage| !passage.excluded);
    said.map(|passage| passage_cost(passage, estimator)).sum()
}

fn passage_cost(passage: &Passage, estimator: &Estimator) -> u64 {
    passage.row.node.content.iter().map(|block| estimator.of(&spoken(block))).sum::<u64>()
        + estimator.of_messages(1)
}

/// The index of the first passage of a window of whole turns with at most `target` tokens. The newest turn is
/// always kept, if it fits into `room` at all.
fn fitting(
    passages: &[Passage],
    target: u64,
    room: u64,
    estimator: &Estimator,
) -> Result<usize, ContextError> {
    let mut used = 0;
    let mut first = None;
    for (index, passage) in passages.iter().enumerate().rev() {
        if !passage.excluded {
            used += passage_cost(passage, estimator);
        }
        let begins_turn = passage.position.role == Some(Role::User);
        if begins_turn && (used <= target || first.is_none()) {
            if used > room {
                return Err(ContextError::TooLong {
                    what: "the newest turn".to_owned(),
                    needed: used,
                    budget: room,
                });
            }
            first = Some(index);
        } else if used > target && first.is_some() {
            break;
        }
    }
    Ok(first.unwrap_or(passages.len().saturating_sub(1)))
}

/// Adds turns as messages, and one piece that covers them.
fn history(
    build: &mut Build<'_>,
    messages: &mut Vec<ChatPart>,
    said: &[&Passage],
    trust: Trust,
    reason: &str,
) {
    let before = build.next;
    let mut round: Vec<ToolExchange> = Vec::new();
    let mut chars = 0;
    let mut tokens = 0;
    for passage in said {
        let node = &passage.row.node;
        chars += passage.text.chars().count() as u64;
        tokens += passage_cost(passage, build.estimator);
        let text = passage.text.clone();
        match passage.position.role {
            Some(Role::Tool) => {
                for block in &node.content {
                    answer(&mut round, block);
                }
                continue;
            }
            _ => flush(messages, &mut round),
        }
        if !text.is_empty() {
            let part = TextPart::new(next(build), text);
            messages.push(match passage.position.role {
                Some(Role::System) => ChatPart::System(part),
                Some(Role::Assistant) => ChatPart::Assistant(part),
                _ => ChatPart::User(part),
            });
        }
        for block in &node.content {
            if let Block::ToolCall { id, name, arguments } = block {
                let call = ToolCall { id: id.clone(), name: name.clone(), arguments: arguments.to_string() };
                let unknown =
                    ToolResult { status: ToolStatus::Unknown, text: String::new(), media: Vec::new() };
                round.push(ToolExchange {
                    before: Vec::new(),
                    call_part: next(build),
                    call,
                    result_part: next(build),
                    result: unknown,
                });
            }
        }
    }
    flush(messages, &mut round);
    if build.next > before {
        build.pieces.push(Piece {
            parts: (before..build.next).map(PartId).collect(),
            kind: Kind::History,
            source: Source::Run { run: 0 },
            reason: reason.to_owned(),
            chars,
            tokens,
            stable: false,
            trust: Some(trust),
            decision: Decision::Sent,
        });
    }
}

fn next(build: &mut Build<'_>) -> PartId {
    let id = PartId(build.next);
    build.next += 1;
    id
}

/// Pairs a result with its call; one without a call is left out.
fn answer(round: &mut [ToolExchange], block: &Block) {
    let Block::ToolResult { call_id, status, blocks } = block else { return };
    let Some(exchange) = round.iter_mut().find(|exchange| exchange.call.id == *call_id) else { return };
    exchange.result = ToolResult {
        status: *status,
        text: loom::content::plain_text(blocks).into_owned(),
        media: Vec::new(),
    };
}

fn flush(messages: &mut Vec<ChatPart>, round: &mut Vec<ToolExchange>) {
    if !round.is_empty() {
        messages.push(ChatPart::ToolRound(std::mem::take(round)));
    }
}

/// The words of a block, for the estimate.
fn spoken(block: &Block) -> String {
    match block {
        Block::Text { text } => text.clone(),
        Block::ToolCall { name, arguments, .. } => format!("{name}{arguments}"),
        Block::ToolResult { blocks, .. } => blocks.iter().map(spoken).collect(),
        Block::Thinking { .. } | Block::Image { .. } | Block::Audio { .. } | Block::Opaque { .. } => {
            String::new()
        }
    }
}
