//! Lines that speak to the model that reads them: those in which the sanitiser finds something (spec: security §25).

use skills::Finding;
use text::sanitiser::{DetectionKind, sanitise};

use super::warning;

/// A warning for each line and each kind of what is found in it.
pub(super) fn findings(text: &str) -> Vec<Finding> {
    // A byte order mark at the beginning is read as one.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut found: Vec<Finding> = Vec::new();
    let (mut line, mut counted) = (1, 0);
    for detection in sanitise(text).detections {
        let start = detection.bytes.start;
        line += text[counted..start].matches('\n').count();
        counted = start;
        let (code, what) = told(detection.kind);
        let is_same = |other: &Finding| other.code == code;
        if found.iter().rev().take_while(|other| other.line == Some(line)).any(is_same) {
            continue;
        }
        let before = text[..start].rsplit('\n').next().unwrap_or_default();
        let column = before.chars().count() + 1;
        found.push(warning(code, Some(line), format!("from character {column} on: {what}")));
    }
    found
}

fn told(kind: DetectionKind) -> (&'static str, &'static str) {
    match kind {
        DetectionKind::Hidden => {
            ("hidden_characters", "characters that are not seen, or that a terminal obeys")
        }
        DetectionKind::RoleTag => ("role_tag", "a tag or token by which models tell who speaks"),
        DetectionKind::RoleMarker => {
            ("role_marker", "a role with a colon at the start of the entry, as if it spoke")
        }
        DetectionKind::OverridePhrase => {
            ("override_phrase", "words that would have instructions ignored, or told")
        }
        DetectionKind::Encoded => ("encoded_text", "a long text in Base64 or hexadecimal digits"),
    }
}
