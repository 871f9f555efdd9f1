//! The sanitiser: cleaning twice is cleaning once, places are those of the original, and nothing hidden is left.
#![no_main]

use libfuzzer_sys::fuzz_target;
use text::sanitiser::{DetectionKind, sanitise};

fuzz_target!(|text: &str| {
    let once = sanitise(text);
    let again = sanitise(&once.text);
    assert_eq!(again.text, once.text);
    let is_told = |kind| matches!(kind, DetectionKind::OverridePhrase | DetectionKind::Encoded);
    assert!(again.detections.iter().all(|found| is_told(found.kind)), "{again:?}");
    let markers = once.detections.iter().filter(|found| found.kind == DetectionKind::RoleMarker).count();
    assert!(once.text.len() <= text.len() + 2 * markers);
    for found in &once.detections {
        assert!(text.get(found.bytes.clone()).is_some_and(|found| !found.is_empty()), "{found:?}");
    }
    assert!(once.text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t')));
});
