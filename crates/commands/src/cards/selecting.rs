//! `cards select`: which cards a message would select, and why not the others. Nothing is sent.

use capabilities::{
    Card, CardScores, Decision, LeftOut, Registry, Router, Selection, SelectionRules, SessionType,
};
use context::Estimator;

use super::masked;
use super::within_reach::CardFolders;
use crate::app::App;
use crate::args::cards::{SelectCardsArgs, SessionTypeArg};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::cards::{CardDecision, CardExplained, CardsSelected};
use crate::rights::Asker;
use crate::skills::path_shown;

/// `cards select`.
///
/// # Errors
/// As the store says.
pub(super) async fn select(
    app: &App,
    asker: &Asker,
    args: &SelectCardsArgs,
) -> Result<CommandOutcome, CommandError> {
    let settings = &app.settings.cards;
    let folders = CardFolders::of(app, asker).await?;
    let cards = if settings.enabled { folders.registry(app) } else { Registry::default() };
    note_left_out(app, &folders, &cards);
    let cards = cards.cards;
    let routing = Router::of(&cards).route(&args.message);
    let estimator = Estimator::default();
    let rules = SelectionRules {
        session_type: match args.session_type {
            SessionTypeArg::Main => SessionType::Main,
            SessionTypeArg::Isolated => SessionType::Isolated,
        },
        max_tokens: settings.max_tokens,
        force_include: &settings.force_include,
        exclude: &settings.exclude,
        tokens: &|text| estimator.of(text),
    };
    let selection = capabilities::select(&cards, &routing, &rules);
    let mut others: Vec<usize> = (0..cards.len()).filter(|index| !selection.order.contains(index)).collect();
    others.sort_by(|one, other| routing.cards[*other].score.total_cmp(&routing.cards[*one].score));
    let order = selection.order.iter().copied().chain(others);
    let explained =
        order.map(|index| explained(app, &cards[index], &routing.cards[index], selection.decisions[index]));
    let cards = explained.collect();
    let Selection { text, tokens, .. } = &selection;
    let mut tags = routing.tags;
    for tag in &mut tags {
        (tag.tag, tag.confidence) = (masked(app, &tag.tag), rounded(tag.confidence));
    }
    Ok(CommandOutcome::CardsSelected(Box::new(CardsSelected {
        tags,
        cards,
        tokens: *tokens,
        max_tokens: settings.max_tokens,
        text: masked(app, text),
    })))
}

/// Says what takes no part.
fn note_left_out(app: &App, folders: &CardFolders, registry: &Registry) {
    if !app.settings.cards.enabled {
        app.frontend.note("cards are switched off: capabilities.enabled is false");
        return;
    }
    let unread = folders.folders.iter().filter(|folder| folder.why_not.is_some());
    let left_out = registry.refused.len() + unread.map(|folder| folder.files().0.len()).sum::<usize>();
    let places = registry.places.len() + folders.unopened.len();
    if left_out + places > 0 {
        let cards = if left_out == 1 { "1 file is".to_owned() } else { format!("{left_out} files are") };
        app.frontend.note(&format!("{cards} left out: `drawloom cards list` says why"));
    }
}

fn explained(app: &App, card: &Card, scores: &CardScores, decision: Decision) -> CardExplained {
    let (decision, tokens, cut) = match decision {
        Decision::Sent { tokens, is_cut, is_forced } => {
            let decision = if is_forced { CardDecision::Forced } else { CardDecision::Sent };
            (decision, Some(tokens), is_cut)
        }
        Decision::LeftOut(why) => (left_out(why), None, false),
    };
    let mut layers = scores.layers;
    for score in [&mut layers.phrases, &mut layers.bm25, &mut layers.letters, &mut layers.likeness] {
        *score = rounded(*score);
    }
    CardExplained {
        id: card.id.clone(),
        path: path_shown(app, &card.path),
        decision,
        score: rounded(scores.score),
        threshold: card.threshold,
        layers,
        matched: scores.keywords.iter().map(|keyword| masked(app, keyword)).collect(),
        tokens,
        cut,
    }
}

const fn left_out(why: LeftOut) -> CardDecision {
    match why {
        LeftOut::Excluded => CardDecision::Excluded,
        LeftOut::SessionType => CardDecision::SessionType,
        LeftOut::Threshold => CardDecision::Threshold,
        LeftOut::NothingFits => CardDecision::NothingFits,
        LeftOut::Budget => CardDecision::Budget,
    }
}

/// A score with three digits behind the point.
fn rounded(score: f64) -> f64 {
    (score * 1_000.0).round() / 1_000.0
}
