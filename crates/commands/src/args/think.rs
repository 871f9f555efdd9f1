//! How much a model thinks, as it is typed.

use clap::ValueEnum;
use model::Thinking;
use serde::{Deserialize, Serialize};

/// How much a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Think {
    /// Not at all, or as little as it can.
    Off,
    /// A little.
    Low,
    /// Much.
    High,
}

impl Think {
    /// The words it takes.
    pub const WORDS: [&'static str; 3] = ["off", "low", "high"];

    /// What is asked of a model.
    pub const fn wish(self) -> Thinking {
        match self {
            Self::Off => Thinking::Off,
            Self::Low => Thinking::Low,
            Self::High => Thinking::High,
        }
    }

    /// From a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::from_str(word, false).ok()
    }
}
