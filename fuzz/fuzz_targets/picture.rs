//! A picture that goes along: taken in as one that fits, or refused, whatever the bytes.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use media::{MAX_AREA, MAX_BYTES, MAX_SIDE, fits, measure, take_in, tell};

/// Pixels a picture may have here: enough to scale it, few enough to be fast.
const LIMIT: u64 = 2_000_000;

fuzz_target!(|file: &[u8]| -> Corpus {
    let Ok(picture) = take_in(file, LIMIT) else { return Corpus::Keep };
    assert!(tell(file).is_some_and(|kind| !kind.is_sound()));
    assert_eq!(measure(&picture.bytes), Ok((picture.kind, picture.measure)));
    let (width, height) = (picture.measure.width, picture.measure.height);
    assert!(width.max(height) <= MAX_SIDE && u64::from(width) * u64::from(height) <= MAX_AREA);
    assert!(picture.bytes.len() <= MAX_BYTES && fits(&picture.bytes));
    assert!(take_in(&picture.bytes, LIMIT).is_ok());
    Corpus::Keep
});
