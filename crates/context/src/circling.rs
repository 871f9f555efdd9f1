//! What was said last, in the form in which signs of going in circles are looked for, and the notice they lead to
//! (spec: context §5 *Signals*).

use loom::{Role, ToolStatus};

use crate::injection::Offer;
use crate::render_history::{Line, Spoken};
use crate::signals::{RecentTurns, Signal, noticed};
use crate::zone::Zone;

/// Nodes that are looked at.
const NODES: usize = 40;
const ANSWERS: usize = 4;
const QUESTIONS: usize = 12;
/// Characters of a text that are compared.
const CHARS: usize = 1_500;

/// The notice about a window that is this full; none while there is room and nothing goes in circles.
pub(crate) fn notice(zone: Zone, spoken: &[Spoken]) -> Option<Offer> {
    // Beyond these a sign changes nothing.
    let signal = (zone < Zone::Orange).then(|| signal(spoken)).flatten();
    let shown = noticed(zone, signal);
    match signal {
        Some(signal) if shown != zone => Some(Offer::circling(shown, signal)),
        _ => Offer::zone(zone),
    }
}

fn signal(spoken: &[Spoken]) -> Option<Signal> {
    let recent = &spoken[spoken.len().saturating_sub(NODES)..];
    let recent = || recent.iter().filter(|said| said.says());
    let last = |role: Role, most: usize| {
        let texts = recent().filter(move |said| said.position.role == Some(role)).filter_map(text);
        let all: Vec<&str> = texts.collect();
        all[all.len().saturating_sub(most)..].to_vec()
    };
    let lines = || recent().flat_map(|said| &said.lines).map(|(line, _)| line);
    let failed = lines().filter_map(|line| match line {
        Line::Result { call, status, .. } if *status != ToolStatus::Ok => Some(call.as_str()),
        _ => None,
    });
    let made = |id: &str| {
        lines().find_map(|line| match line {
            Line::Call(call) if call.id == id => Some(format!("{} {}", call.name, call.arguments)),
            _ => None,
        })
    };
    let failed: Vec<String> = failed.filter_map(made).collect();
    let failed: Vec<&str> = failed.iter().map(String::as_str).collect();
    let (answers, questions) = (last(Role::Assistant, ANSWERS), last(Role::User, QUESTIONS));
    Signal::of(&RecentTurns { answers: &answers, questions: &questions, failed_calls: &failed })
}

/// The beginning of the first text of a node.
fn text(said: &Spoken) -> Option<&str> {
    said.lines.iter().find_map(|(line, _)| match line {
        Line::Text { text, .. } => {
            Some(text.char_indices().nth(CHARS).map_or(text.as_str(), |(end, _)| &text[..end]))
        }
        _ => None,
    })
}
