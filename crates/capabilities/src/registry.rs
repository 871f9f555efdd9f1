//! All cards that count, by their ids, and the files that were refused (spec: capabilities §2).

use std::path::PathBuf;

use text::finding::Finding;

use crate::card::Card;
use crate::loading::{CardFolder, CardSource, FoundCard, LoadingRules, RefusedPlace, read_folder};

/// A file that is no card.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedCard {
    /// The id that it names; empty without one.
    pub id: String,
    pub path: PathBuf,
    pub source: CardSource,
    pub why: String,
}

/// Findings of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedCard {
    pub path: PathBuf,
    pub findings: Vec<Finding>,
}

/// Cards by their ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registry {
    pub cards: Vec<Card>,
    pub refused: Vec<RefusedCard>,
    /// Places that were not looked at.
    pub places: Vec<RefusedPlace>,
    /// What was found in every file, in the order in which they were read.
    pub checked: Vec<CheckedCard>,
}

impl Registry {
    /// Reads folders. Of two files with one id the one of the source that goes first counts, then the one whose path
    /// does.
    #[must_use]
    pub fn read(folders: &[CardFolder<'_>], rules: &LoadingRules<'_>) -> Self {
        let mut registry = Self::default();
        let mut found: Vec<(CardSource, FoundCard)> = Vec::new();
        for folder in folders {
            let (files, places) = read_folder(folder, rules);
            found.extend(files.into_iter().map(|file| (folder.source, file)));
            registry.places.extend(places);
        }
        found.sort_by(|(one, first), (other, second)| (one, &first.path).cmp(&(other, &second.path)));
        for (source, FoundCard { path, mut file }) in found {
            let id = file.id.clone();
            let first = registry.cards.iter().find(|card| card.id == id).map(|card| card.path.clone());
            if let (Some(_), Some(first)) = (&file.card, first) {
                let why = format!("the id {id} is that of {} already", first.display());
                file.findings.push(Finding::error("doubled_id", why));
            }
            match (file.refusal().map(|finding| finding.why.clone()), file.card.take()) {
                (None, Some(card)) => registry.cards.push(card),
                (why, _) => {
                    let why = why.unwrap_or_default();
                    registry.refused.push(RefusedCard { id, path: path.clone(), source, why });
                }
            }
            registry.checked.push(CheckedCard { path, findings: file.findings });
        }
        registry.cards.sort_by(|one, other| one.id.cmp(&other.id));
        registry
    }
}
