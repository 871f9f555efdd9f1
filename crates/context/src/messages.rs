//! From nodes to messages: texts, opaque material where it stood, rounds of tool use, what was shown with them.

use loom::Trust;
use model::{ChatPart, Media, MediaPart, OpaquePart, PartId, TextPart, ToolExchange, ToolResult};

use crate::document::Build;
use crate::manifest::KeptCallPart;
use crate::pairs::{Pair, Pairs, shortened};
use crate::piece::RequestPiece;
use crate::render_history::{Line, MessageRole, Pictures, Showing, Spoken};
use crate::segment::{Kind, SegmentOutcome, Source, ToolShare};

/// Messages under construction, with the pieces that cover them.
pub(crate) struct Messages<'b, 'e> {
    pub(crate) build: &'b mut Build<'e>,
    pub(crate) list: Vec<ChatPart>,
    pictures: &'b dyn Pictures,
    /// Pictures and sounds that could not be read.
    pub(crate) unread: u64,
    /// Nodes since the last piece that was closed.
    open: Open,
}

/// Tools that a piece names apart, the dearest; the calls of all others are told together.
const TOOLS: usize = 16;

/// History that no piece covers yet.
struct Open {
    from: u32,
    chars: u64,
    tokens: u64,
    trust: Trust,
    tools: Vec<ToolShare>,
}

impl Open {
    const fn at(from: u32) -> Self {
        Self { from, chars: 0, tokens: 0, trust: Trust::Owner, tools: Vec::new() }
    }

    /// Counts a call with its result.
    fn call(&mut self, tool: &str, chars: u64, tokens: u64) {
        self.chars += chars;
        match self.tools.iter_mut().find(|share| share.tool == tool) {
            Some(share) => {
                (share.calls, share.chars, share.tokens) =
                    (share.calls + 1, share.chars + chars, share.tokens + tokens);
            }
            None => self.tools.push(ToolShare { tool: tool.to_owned(), calls: 1, chars, tokens }),
        }
    }
}

/// The dearest first; those behind the first [`TOOLS`] as one.
fn dearest(mut tools: Vec<ToolShare>) -> Vec<ToolShare> {
    tools.sort_by_key(|share| std::cmp::Reverse(share.tokens));
    let rest = tools.split_off(tools.len().min(TOOLS));
    let others = rest.into_iter().reduce(|all, one| ToolShare {
        tool: "other tools".to_owned(),
        calls: all.calls + one.calls,
        chars: all.chars + one.chars,
        tokens: all.tokens + one.tokens,
    });
    tools.extend(others);
    tools
}

impl<'b, 'e> Messages<'b, 'e> {
    /// After what stands above the boundary.
    pub(crate) fn after(build: &'b mut Build<'e>, list: Vec<ChatPart>, pictures: &'b dyn Pictures) -> Self {
        let from = build.next;
        Self { build, list, pictures, unread: 0, open: Open::at(from) }
    }

    /// Adds the nodes of a stretch, whose texts are taken out of them, and covers them by pieces of run `run`.
    /// `spoken` is the whole window the calls were paired in. Returns the characters that the pieces hold.
    pub(crate) fn say(
        &mut self,
        spoken: &mut [Spoken],
        range: std::ops::Range<usize>,
        pairs: &Pairs,
        costs: &[u64],
        (run, reason): (usize, &str),
    ) -> u64 {
        self.open.from = self.build.next;
        let mut chars = 0;
        let mut next = pairs.all.partition_point(|pair| pair.call.0 < range.start);
        for index in range {
            if spoken[index].excluded {
                continue;
            }
            let calls = pairs.all[next..].partition_point(|pair| pair.call.0 == index);
            self.node(spoken, index, pairs, &pairs.all[next..next + calls]);
            next += calls;
            let said = &mut spoken[index];
            self.open.tokens += costs[index].saturating_sub(said.told);
            self.open.trust = self.open.trust.min(said.trust);
            for shown in std::mem::take(&mut said.injections) {
                chars += self.close(run, reason);
                self.injection(&shown, "shown with this node before, sent again unchanged");
            }
        }
        chars + self.close(run, reason)
    }

    /// Adds a node that is pinned or named, as a piece of its own.
    pub(crate) fn pinned(
        &mut self,
        kind: Kind,
        reason: &str,
        row: &loom::NodeRow,
        place: impl Fn(TextPart) -> ChatPart,
    ) {
        let source = Source::Node { node: row.node.id, position: row.node.position };
        let part = self.build.part(kind, source, reason, Some(row.node.trust), &row.node.text());
        self.list.push(place(part));
        self.open.from = self.build.next;
    }

    /// Adds words of the product's own in the user's place.
    pub(crate) fn product(&mut self, name: &str, reason: &str, text: &str) {
        let source = Source::Product { name: name.to_owned() };
        let part = self.build.part(Kind::Injection, source, reason, Some(Trust::Owner), text);
        self.list.push(ChatPart::Injected(part));
        self.open.from = self.build.next;
    }

    /// Adds something shown, as a piece of its own.
    pub(crate) fn injection(&mut self, shown: &loom::reader::Injection, reason: &str) {
        let source =
            Source::Injection { node: shown.node, ordinal: shown.ordinal, name: shown.source.clone() };
        let part = self.build.part(Kind::Injection, source, reason, Some(shown.trust), &shown.text);
        self.list.push(ChatPart::Injected(part));
        self.open.from = self.build.next;
    }

    /// Covers what was said since the last piece, and returns its characters.
    fn close(&mut self, run: usize, reason: &str) -> u64 {
        let to = self.build.next;
        let Open { from, chars, tokens, trust, tools } = std::mem::replace(&mut self.open, Open::at(to));
        if to > from {
            self.build.pieces.push(RequestPiece {
                parts: (from..to).map(PartId).collect(),
                kind: Kind::History,
                source: Source::Run { run },
                reason: reason.to_owned(),
                chars,
                tokens,
                stable: false,
                trust: Some(trust),
                decision: SegmentOutcome::Sent,
                tools: dearest(tools),
            });
        }
        chars
    }

    /// Adds what a node says. Its calls stand at its end, where their results follow them.
    fn node(&mut self, spoken: &mut [Spoken], index: usize, pairs: &Pairs, calls: &[Pair]) {
        let mut calls = calls.iter();
        let mut opaque: Vec<OpaquePart> = Vec::new();
        let mut round: Vec<ToolExchange> = Vec::new();
        let mut called = false;
        for line in 0..spoken[index].lines.len() {
            match &mut spoken[index].lines[line].0 {
                Line::Text { voice, text } => {
                    let (voice, text) = (*voice, std::mem::take(text));
                    self.flush(&mut opaque);
                    self.open.chars += text.chars().count() as u64;
                    let part = TextPart::new(self.next(), text);
                    self.list.push(match voice {
                        MessageRole::System => ChatPart::System(part),
                        MessageRole::User => ChatPart::User(part),
                        MessageRole::Assistant => ChatPart::Assistant(part),
                    });
                }
                Line::Media(shown) => {
                    let shown = shown.clone();
                    self.flush(&mut opaque);
                    let id = self.next();
                    let part = match self.read(&shown) {
                        Ok(media) => ChatPart::Media(MediaPart { id, media }),
                        Err(line) => {
                            self.open.chars += line.chars().count() as u64;
                            ChatPart::User(TextPart::new(id, line))
                        }
                    };
                    self.list.push(part);
                }
                Line::Opaque { thinking, json } => {
                    let (thinking, json) = (thinking.take(), json.take());
                    self.open.chars += thinking.as_deref().map_or(0, |text| text.chars().count() as u64);
                    opaque.push(OpaquePart { id: self.next(), thinking, json });
                }
                Line::Call(_) => {
                    called = true;
                    let Some(pair) = calls.next() else { continue };
                    let before = std::mem::take(&mut opaque);
                    let cut = pairs.cut(spoken, pair);
                    if cut != Some(KeptCallPart::Nothing) {
                        round.extend(self.exchange(spoken, (pairs, pair), cut, before));
                    }
                }
                Line::Result { .. } => {}
            }
        }
        // What stood with calls that have left would be taken for the beginning of others.
        if !called || !round.is_empty() {
            self.flush(&mut opaque);
        }
        if !round.is_empty() {
            self.list.push(ChatPart::ToolRound(round));
        }
    }

    fn exchange(
        &mut self,
        spoken: &mut [Spoken],
        (pairs, pair): (&Pairs, &Pair),
        cut: Option<KeptCallPart>,
        before: Vec<OpaquePart>,
    ) -> Option<ToolExchange> {
        let Line::Call(call) = &spoken[pair.call.0].lines[pair.call.1].0 else { return None };
        let call = call.clone();
        let tokens = pairs.tokens(spoken, pair, cut, self.build.estimator);
        let result = pair.result.and_then(|(node, line)| {
            let short_id = spoken[node].short_id.clone();
            let Line::Result { status, text, media, .. } = &mut spoken[node].lines[line].0 else {
                return None;
            };
            let mut text = match cut {
                Some(_) => shortened(text, &short_id),
                None => std::mem::take(text),
            };
            let shown = if cut.is_some() { Vec::new() } else { std::mem::take(media) };
            let mut media = Vec::with_capacity(shown.len());
            for shown in shown {
                match self.read(&shown) {
                    Ok(read) => media.push(read),
                    Err(line) => text.push_str(&line),
                }
            }
            Some(ToolResult { status: *status, text, media })
        });
        let missing = || {
            let (status, text) = pair.missing();
            ToolResult { status, text: text.to_owned(), media: Vec::new() }
        };
        let result = result.unwrap_or_else(missing);
        let chars = call.arguments.chars().count() + result.text.chars().count();
        self.open.call(&call.name, chars as u64, tokens);
        Some(ToolExchange { before, call_part: self.next(), call, result_part: self.next(), result })
    }

    /// What is shown, read now that it is sent; else what stands in its place.
    fn read(&mut self, shown: &Showing) -> Result<Media, String> {
        self.pictures.media(shown.blob).ok_or_else(|| {
            self.unread += 1;
            shown.left_out()
        })
    }

    fn flush(&mut self, opaque: &mut Vec<OpaquePart>) {
        self.list.extend(opaque.drain(..).map(ChatPart::Opaque));
    }

    fn next(&mut self) -> PartId {
        let id = PartId(self.build.next);
        self.build.next += 1;
        id
    }
}
