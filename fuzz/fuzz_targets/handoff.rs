//! A handoff: whatever the text, what is read of it is a document, and findings name lines that there are.
#![no_main]

use continuity::handoff::{Handoff, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let read = Handoff::parse(text).handoff;
    assert_eq!(Handoff::parse(&read.render()).handoff, read);
    let lines = text.split('\n').count();
    assert!(check(text).iter().all(|finding| finding.line.is_none_or(|line| (1..=lines).contains(&line))));
});
