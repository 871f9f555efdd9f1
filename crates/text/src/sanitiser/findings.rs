//! What the sanitiser finds, told to the author of a text.

use super::{DetectionKind, sanitise};
use crate::finding::Finding;

impl DetectionKind {
    /// Short name of what is found.
    pub const fn code(self) -> &'static str {
        self.told().0
    }

    const fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::Hidden => ("hidden_characters", "characters that are not seen, or that a terminal obeys"),
            Self::RoleTag => ("role_tag", "a tag or token by which models tell who speaks"),
            Self::RoleMarker => {
                ("role_marker", "a role with a colon at the start of the entry, as if it spoke")
            }
            Self::OverridePhrase => {
                ("override_phrase", "words that would have instructions ignored, or told")
            }
            Self::Encoded => ("encoded_text", "a long text in Base64 or hexadecimal digits"),
        }
    }
}

/// A warning for each line and each kind of what is found in it.
#[must_use]
pub fn findings(text: &str) -> Vec<Finding> {
    // A byte order mark at the beginning is read as one.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut found: Vec<Finding> = Vec::new();
    let (mut line, mut counted) = (1, 0);
    for detection in sanitise(text).detections {
        let start = detection.bytes.start;
        line += text[counted..start].matches('\n').count();
        counted = start;
        let (code, what) = detection.kind.told();
        let is_same = |other: &Finding| other.code == code;
        if found.iter().rev().take_while(|other| other.line == Some(line)).any(is_same) {
            continue;
        }
        let before = text[..start].rsplit('\n').next().unwrap_or_default();
        let column = before.chars().count() + 1;
        found.push(Finding::warning(code, format!("from character {column} on: {what}")).at(line));
    }
    found
}
