//! `cards` (spec: capabilities §1–4, 7).

mod adding;
mod check;
mod selecting;
mod within_reach;

use std::path::Path;

use capabilities::{Card, RefusedPlace, Registry};

use crate::app::App;
use crate::args::cards::CardsCommand;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::cards::{CardContent, CardShown, CardState, CardsShown};
use crate::rights::Asker;
use crate::skills::path_shown;
use within_reach::{CardFolders, ReachedFolder};

/// `cards`.
///
/// # Errors
/// What is named cannot be read, or written.
pub(crate) async fn command(
    app: &App,
    asker: &Asker,
    command: &CardsCommand,
) -> Result<CommandOutcome, CommandError> {
    match command {
        CardsCommand::List => list(app, asker).await,
        CardsCommand::Check(args) => check::check(app, asker, args).await,
        CardsCommand::New(args) => adding::new(app, asker, args).await,
        CardsCommand::Select(args) => selecting::select(app, asker, args).await,
    }
}

async fn list(app: &App, asker: &Asker) -> Result<CommandOutcome, CommandError> {
    let folders = CardFolders::of(app, asker).await?;
    let settings = &app.settings.cards;
    let mut cards = Vec::new();
    let mut refused = folders.unopened.clone();
    if settings.enabled {
        let Registry { cards: found, refused: files, places, .. } = folders.registry(app);
        cards.extend(found.iter().map(|card| shown(app, card)));
        cards.extend(files.into_iter().map(|file| CardShown {
            id: (!file.id.is_empty()).then(|| masked(app, &file.id)),
            path: path_shown(app, &file.path),
            source: file.source,
            state: CardState::Refused,
            why: Some(masked(app, &file.why)),
            content: None,
        }));
        refused.extend(places);
    }
    for folder in &folders.folders {
        let (state, why) = match (settings.enabled, &folder.why_not) {
            (false, _) => (CardState::Off, "capabilities.enabled is false"),
            (true, Some(why)) => (CardState::NotAllowed, why.as_str()),
            (true, None) => continue,
        };
        cards.extend(unread(app, folder, state, why, &mut refused));
    }
    note_unknown(app, &cards);
    let refused = refused.into_iter().map(|place| place_shown(app, place)).collect();
    Ok(CommandOutcome::Cards(CardsShown { cards, refused }))
}

/// Files of a folder that are not read.
fn unread(
    app: &App,
    folder: &ReachedFolder,
    state: CardState,
    why: &str,
    refused: &mut Vec<RefusedPlace>,
) -> Vec<CardShown> {
    let (files, places) = folder.files();
    refused.extend(places);
    let shown = |path: &Path| CardShown {
        id: None,
        path: path_shown(app, path),
        source: folder.source,
        state,
        why: Some(why.to_owned()),
        content: None,
    };
    files.iter().map(|path| shown(path)).collect()
}

/// Says which ids of the configuration no card has.
fn note_unknown(app: &App, cards: &[CardShown]) {
    let settings = &app.settings.cards;
    let is_known = |id: &String| cards.iter().any(|card| card.id.as_ref() == Some(id));
    for (key, ids) in [("force_include", &settings.force_include), ("exclude", &settings.exclude)] {
        for id in ids.iter().filter(|id| settings.enabled && !is_known(id)) {
            app.frontend.note(&format!("capabilities.{key} names {id}, which no card has that was read"));
        }
    }
}

fn shown(app: &App, card: &Card) -> CardShown {
    let settings = &app.settings.cards;
    let (state, why) = if settings.exclude.contains(&card.id) {
        (CardState::Excluded, Some("capabilities.exclude names it"))
    } else if settings.force_include.contains(&card.id) {
        (CardState::Forced, None)
    } else {
        (CardState::On, None)
    };
    let all = |texts: &[String]| texts.iter().map(|text| masked(app, text)).collect();
    CardShown {
        id: Some(card.id.clone()),
        path: path_shown(app, &card.path),
        source: card.source,
        state,
        why: why.map(str::to_owned),
        content: Some(CardContent {
            name: masked(app, &card.name),
            description: masked(app, &card.description),
            version: masked(app, &card.version),
            tags: all(&card.tags),
            keywords: all(&card.keywords),
            tools: all(&card.tools),
            uses: all(&card.uses),
            examples: card.examples.len(),
            threshold: card.threshold,
            priority: card.priority,
            max_chars: card.max_chars,
        }),
    }
}

fn place_shown(app: &App, RefusedPlace { path, why }: RefusedPlace) -> RefusedPlace {
    RefusedPlace { path: path_shown(app, &path).into(), why: masked(app, &why) }
}

fn masked(app: &App, text: &str) -> String {
    app.runtime.masker.mask_entering(text).text.into_owned()
}
