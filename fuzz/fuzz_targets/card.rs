//! A card: whatever the bytes, findings name lines that there are, and what is sent of it fits and stays as it is.
#![no_main]

use capabilities::{Card, CardFile, CardSource, sanitised_body};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let file = CardFile::read(bytes, CardSource::Repo);
    let lines = String::from_utf8_lossy(bytes).split('\n').count();
    assert!(file.findings.iter().all(|finding| finding.line.is_none_or(|line| (1..=lines).contains(&line))));
    assert_eq!(file.card.is_none(), file.refusal().is_some());
    let Some(card) = file.card else { return };
    let once = sanitised_body(&card);
    assert!(once.text.chars().count() <= card.max_chars);
    let again = sanitised_body(&Card { body: once.text.clone(), ..card });
    assert_eq!(again.text.trim(), once.text.trim());
});
