//! Calls and their results, paired by the id of the call, in order of the calls (spec: loom §5 *Tools*).

use std::collections::HashMap;

use loom::{PositionId, Role, RowError, ToolStatus, TreeReader};

use crate::estimate::Estimator;
use crate::manifest::{CallCut, KeptCallPart};
use crate::render_history::{Line, Spoken};

/// What is sent for the result of a call that was started and has none.
const UNKNOWN: &str =
    "[The outcome of this call is unknown: it was started, and no result of it stands here.]";
/// What is sent for the result of a call that never started.
const NOT_RUN: &str = "[This call was not run: its turn ended before it began.]";
/// Characters of the head and of the tail that are kept of a result that is shortened.
const HEAD: usize = 600;
/// See [`HEAD`].
const TAIL: usize = 200;

/// A call and where its result stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pair {
    /// Index of the call's answer among the nodes, and its line in it.
    pub(crate) call: (usize, usize),
    /// Which of the calls of its answer, from 0.
    pub(crate) number: u32,
    /// The result among the nodes, and its line.
    pub(crate) result: Option<(usize, usize)>,
    /// Of one without a result, whether it was started.
    started: bool,
}

impl Pair {
    /// What is sent where there is no result.
    pub(crate) const fn missing(&self) -> (ToolStatus, &'static str) {
        if self.started { (ToolStatus::Unknown, UNKNOWN) } else { (ToolStatus::Denied, NOT_RUN) }
    }
}

/// The calls of a window and what became of them.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    pub(crate) all: Vec<Pair>,
    cuts: HashMap<(PositionId, u32), KeptCallPart>,
    /// Whether some of the cuts are of this request.
    new_cuts: bool,
}

impl Pairs {
    /// Pairs the calls of a window, and reads of those without a result whether they were started. A result belongs to the newest answer before it; one without a call there is
    /// nobody's.
    pub(crate) fn of(rows: &dyn TreeReader, spoken: &[Spoken], cuts: &[CallCut]) -> Result<Self, RowError> {
        let mut all: Vec<Pair> = Vec::new();
        let mut open = 0;
        for (node, said) in spoken.iter().enumerate().filter(|(_, said)| !said.excluded) {
            if said.position.role == Some(Role::Assistant) {
                open = all.len();
            }
            let mut number = 0;
            for (line, (what, _)) in said.lines.iter().enumerate() {
                match what {
                    Line::Call(_) => {
                        all.push(Pair { call: (node, line), number, result: None, started: false });
                        number += 1;
                    }
                    Line::Result { call, .. } => {
                        let pair = all[open..].iter_mut().find(|pair| {
                            pair.result.is_none() && call_id(spoken, pair).is_some_and(|id| id == call)
                        });
                        if let Some(pair) = pair {
                            pair.result = Some((node, line));
                        }
                    }
                    Line::Text { .. } | Line::Media(_) | Line::Opaque { .. } => {}
                }
            }
        }
        let mut started = (None, Vec::new());
        for pair in all.iter_mut().filter(|pair| pair.result.is_none()) {
            let answer = spoken[pair.call.0].position.id;
            if started.0 != Some(answer) {
                started = (Some(answer), rows.started_calls(answer.original())?);
            }
            pair.started = started.1.contains(&pair.number);
        }
        let cuts = cuts.iter().map(|cut| ((cut.answer, cut.call), cut.kept)).collect();
        Ok(Self { all, cuts, new_cuts: false })
    }

    /// What is kept of a call; none for all of it.
    pub(crate) fn cut(&self, spoken: &[Spoken], pair: &Pair) -> Option<KeptCallPart> {
        self.cuts.get(&(spoken[pair.call.0].position.id, pair.number)).copied()
    }

    pub(crate) fn set(&mut self, spoken: &[Spoken], pair: &Pair, kept: KeptCallPart) {
        self.cuts.insert((spoken[pair.call.0].position.id, pair.number), kept);
        self.new_cuts = true;
    }

    /// Whether more is cut than in the request before.
    pub(crate) const fn has_new_cuts(&self) -> bool {
        self.new_cuts
    }

    /// Whether nothing is kept of a call.
    pub(crate) fn is_gone(&self, answer: PositionId, call: u32) -> bool {
        self.cuts.get(&(answer, call)) == Some(&KeptCallPart::Nothing)
    }

    /// The calls of these nodes that are cut, in order.
    pub(crate) fn cuts_in(&self, spoken: &[Spoken], from: usize) -> Vec<CallCut> {
        let kept = self.all.iter().filter(|pair| pair.call.0 >= from).filter_map(|pair| {
            let kept = self.cut(spoken, pair)?;
            Some(CallCut { answer: spoken[pair.call.0].position.id, call: pair.number, kept })
        });
        kept.collect()
    }

    /// Tokens of a call as it would be sent with so much of it kept.
    pub(crate) fn tokens(
        &self,
        spoken: &[Spoken],
        pair: &Pair,
        kept: Option<KeptCallPart>,
        estimator: &Estimator,
    ) -> u64 {
        let call = spoken[pair.call.0].lines[pair.call.1].1 + estimator.of_messages(1);
        match (kept, pair.result) {
            (Some(KeptCallPart::Nothing), _) => 0,
            (_, None) => call + estimator.of(pair.missing().1),
            (None, Some((node, line))) => call + spoken[node].lines[line].1,
            (Some(KeptCallPart::Shortened), Some((node, line))) => {
                let (what, whole) = &spoken[node].lines[line];
                let short = match what {
                    Line::Result { text, .. } => estimator.of(&shortened(text, &spoken[node].short_id)),
                    _ => 0,
                };
                call + short.min(*whole)
            }
        }
    }

    /// Tokens of each node, as it is sent: those of a result count with its call.
    pub(crate) fn costs(&self, spoken: &[Spoken], estimator: &Estimator) -> Vec<u64> {
        let mut costs: Vec<u64> = spoken.iter().map(|said| said.tokens).collect();
        for pair in &self.all {
            for (node, line) in [Some(pair.call), pair.result].into_iter().flatten() {
                costs[node] = costs[node].saturating_sub(spoken[node].lines[line].1);
            }
            costs[pair.call.0] += self.tokens(spoken, pair, self.cut(spoken, pair), estimator);
        }
        costs
    }
}

fn call_id<'a>(spoken: &'a [Spoken], pair: &Pair) -> Option<&'a str> {
    match &spoken[pair.call.0].lines[pair.call.1].0 {
        Line::Call(call) => Some(&call.id),
        _ => None,
    }
}

/// The head and the tail of a result, with where the whole of it is.
pub(crate) fn shortened(text: &str, node: &str) -> String {
    let chars = text.chars().count();
    if chars <= HEAD + TAIL {
        return text.to_owned();
    }
    let at = |index: usize| text.char_indices().nth(index).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (text::grapheme::floor(text, at(HEAD)), text::grapheme::ceil(text, at(chars - TAIL)));
    let kept = text[..head].chars().count() + text[tail..].chars().count();
    format!(
        "{}\n[{} characters of this result are left out here; the whole of it is node {node}]\n{}",
        &text[..head],
        chars - kept,
        &text[tail..]
    )
}
