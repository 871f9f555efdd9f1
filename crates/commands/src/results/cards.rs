//! Results of `cards`.

use capabilities::{CardSource, TagScore};
use serde::Serialize;

use super::checks::TextProblem;

/// Whether a card can be selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CardState {
    On,
    /// `capabilities.force_include` names it.
    Forced,
    /// `capabilities.exclude` names it.
    Excluded,
    /// A rule of files, of frontmatter or of texts.
    Refused,
    /// Not read: the folder is not allowed, or the workspace not trusted.
    NotAllowed,
    /// Not read: cards are switched off.
    Off,
}

/// A card, or a file that is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CardShown {
    /// Without one, where the file was not read or names none.
    pub id: Option<String>,
    pub path: String,
    pub source: CardSource,
    pub state: CardState,
    /// Why it cannot be selected.
    pub why: Option<String>,
    /// What the file says; none where it was not read or is refused.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub content: Option<CardContent>,
}

/// What the file of a card says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CardContent {
    pub name: String,
    pub description: String,
    pub version: String,
    pub tags: Vec<String>,
    pub keywords: Vec<String>,
    pub tools: Vec<String>,
    pub uses: Vec<String>,
    pub examples: usize,
    pub threshold: f64,
    pub priority: u8,
    /// Most characters of its text that are sent.
    pub max_chars: usize,
}

/// `cards list`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CardsShown {
    /// Cards that can be selected by their ids, then the others by their paths.
    pub cards: Vec<CardShown>,
    /// Folders that were not looked at.
    pub refused: Vec<capabilities::RefusedPlace>,
}

/// `cards check`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CardsChecked {
    /// Whether there is no error.
    pub ok: bool,
    /// How many were checked.
    pub cards: usize,
    pub problems: Vec<TextProblem>,
}

/// `cards new`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CardWritten {
    pub id: String,
    pub path: String,
}

/// What became of a card for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CardDecision {
    Sent,
    Forced,
    Excluded,
    SessionType,
    Threshold,
    NothingFits,
    Budget,
}

/// Scores of a card for a message, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CardExplained {
    pub id: String,
    pub path: String,
    pub decision: CardDecision,
    /// Likelihood that it is wanted, 0-1.
    pub score: f64,
    pub threshold: f64,
    pub layers: capabilities::fusion::LayerScores,
    /// Keywords of it that stand in the message.
    pub matched: Vec<String>,
    /// Tokens that it adds to what is sent.
    pub tokens: Option<u64>,
    /// Whether the end of its text is cut off.
    pub cut: bool,
}

/// `cards select`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CardsSelected {
    pub tags: Vec<TagScore>,
    /// Cards that are sent in their order, then the others by their scores.
    pub cards: Vec<CardExplained>,
    /// Tokens of what is sent, and most that there may be.
    pub tokens: u64,
    pub max_tokens: u64,
    /// What would be sent.
    pub text: String,
}
