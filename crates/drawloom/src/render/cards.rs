//! Cards: which can be selected, and which a message selects.

use std::fmt::Write as _;

use commands::results::cards::{
    CardDecision, CardExplained, CardShown, CardState, CardsSelected, CardsShown,
};

use super::columns::{count, wrapped};
use super::{OutputStyle, RenderedOutcome, table};

pub(super) fn list(found: &CardsShown, to: OutputStyle) -> RenderedOutcome {
    let row = |card: &CardShown| -> Vec<String> {
        let id = card.id.as_deref().unwrap_or("-");
        let cells = [id, &card.path, &state(card)];
        cells.map(|cell| to.line(cell).into_owned()).into()
    };
    let rows: Vec<Vec<String>> = found.cards.iter().map(row).collect();
    let refused = found.refused.iter().map(|place| {
        to.line(&format!("{}: not looked at: {}", place.path.display(), place.why)).into_owned()
    });
    RenderedOutcome::new(table::explained(&rows, to))
        .noting(refused)
        .or_saying(to, "no cards: docs/cards.md says how to write one")
}

fn state(card: &CardShown) -> String {
    let state = match card.state {
        CardState::On => "on",
        CardState::Forced => "forced: always sent",
        CardState::Excluded => "excluded",
        CardState::Refused => "refused",
        CardState::NotAllowed => "not allowed",
        CardState::Off => "off",
    };
    match &card.why {
        Some(why) => format!("{state}: {why}"),
        None => state.to_owned(),
    }
}

pub(super) fn selected(found: &CardsSelected, to: OutputStyle) -> RenderedOutcome {
    let CardsSelected { tags, cards, tokens, max_tokens, .. } = found;
    let row = |card: &CardExplained| -> Vec<String> {
        let cells = [card.id.clone(), format!("{:.2}", card.score), decision(card)];
        cells.map(|cell| to.line(&cell).into_owned()).into()
    };
    let mut out = table::explained(&cards.iter().map(row).collect::<Vec<_>>(), to);
    if !tags.is_empty() {
        let tags: Vec<String> = tags.iter().map(|tag| format!("{} {:.2}", tag.tag, tag.confidence)).collect();
        out += &wrapped(&to.line(&format!("tags: {}", tags.join(", "))), "    ", to);
    }
    let sent = cards.iter().filter(|card| card.tokens.is_some()).count();
    let _ = writeln!(
        out,
        "{} of {} would be sent, with {tokens} of {max_tokens} tokens",
        sent,
        count(cards.len() as u64, "card", "cards")
    );
    RenderedOutcome::new(out)
}

/// What became of a card, and by what.
fn decision(card: &CardExplained) -> String {
    let CardExplained { threshold, layers, matched, tokens, cut, .. } = card;
    let what = match card.decision {
        CardDecision::Sent => "sent".to_owned(),
        CardDecision::Forced => "sent, as capabilities.force_include names it".to_owned(),
        CardDecision::Excluded => "left out: capabilities.exclude names it".to_owned(),
        CardDecision::SessionType => "left out: it is for sessions of another kind".to_owned(),
        CardDecision::Threshold => format!("left out: its threshold is {threshold}"),
        CardDecision::NothingFits => "left out: nothing of its text fits into its length".to_owned(),
        CardDecision::Budget => "left out: it does not fit into what is left of the tokens".to_owned(),
    };
    let tokens = tokens.map(|tokens| format!(", {tokens} tokens")).unwrap_or_default();
    let cut = if *cut { ", its end cut off" } else { "" };
    let mut reasons: Vec<String> = matched.iter().map(|keyword| format!("\"{keyword}\"")).collect();
    if layers.names_tag {
        reasons.push("one of its tags".to_owned());
    }
    let words = format!(
        "words {:.2}, pieces of words {:.2}, likeness {:.2}",
        layers.bm25, layers.letters, layers.likeness
    );
    reasons.push(words);
    format!("{what}{tokens}{cut}; {}", reasons.join(", "))
}
