//! A card: what its file says, with the defaults of what it leaves out (spec: capabilities §1).

use std::path::PathBuf;

use loom::Digest;
use serde::{Deserialize, Serialize};

use crate::loading::CardSource;

/// Score from which a card is sent where it does not say another one.
pub const DEFAULT_THRESHOLD: f64 = 0.6;

/// Most characters of a body where the card says nothing of its length.
pub const DEFAULT_MAX_CHARS: usize = 2_400;

/// Largest `token_budget`.
pub const MAX_TOKEN_BUDGET: i64 = 2_000;

/// Kind of a session, which cards may be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionType {
    Main,
    /// One that works apart from the owner's conversation, such as that of a subagent.
    Isolated,
}

impl SessionType {
    pub(crate) const ALL: [Self; 2] = [Self::Main, Self::Isolated];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Isolated => "isolated",
        }
    }
}

/// A card that can be selected.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// `capability_id`: `[a-z0-9][a-z0-9-]{0,63}`.
    pub id: String,
    /// One line; that of the id where the card has none.
    pub name: String,
    /// One line, or nothing.
    pub description: String,
    pub version: String,
    /// `triggers.routerTags`.
    pub tags: Vec<String>,
    /// `triggers.keywords`: literal phrases.
    pub keywords: Vec<String>,
    /// `triggers.tools`: tools after whose calls it is looked at.
    pub tools: Vec<String>,
    pub session_types: Vec<SessionType>,
    /// `triggers.confidenceThreshold`, 0–1.
    pub threshold: f64,
    /// Utterances that should trigger it.
    pub examples: Vec<String>,
    /// Tools and commands whose call counts as a use of it.
    pub uses: Vec<String>,
    /// 1–10; the larger goes first.
    pub priority: u8,
    /// Most characters of the body that are sent.
    pub max_chars: usize,
    pub body: String,
    /// Hash of the bytes of its file.
    pub digest: Digest,
    pub source: CardSource,
    /// The file: below a workspace its path there, else the whole one.
    pub path: PathBuf,
}

/// Whether a text is an id of a card.
pub(crate) fn is_id(id: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    id.len() <= 64 && id.chars().next().is_some_and(fits) && id.chars().all(|c| fits(c) || c == '-')
}
