//! A picture that goes along: imported as one that can be sent, or refused, whatever the bytes.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use media::{MAX_AREA, MAX_BYTES, MAX_SIDE, detect, dimensions, import_picture, is_sendable};

/// Pixels a picture may have here: enough to scale it, few enough to be fast.
const LIMIT: u64 = 2_000_000;

fuzz_target!(|file: &[u8]| -> Corpus {
    let Ok(picture) = import_picture(file, LIMIT) else { return Corpus::Keep };
    assert!(detect(file).is_some_and(|kind| !kind.is_sound()));
    assert_eq!(dimensions(&picture.bytes), Ok((picture.kind, picture.dimensions)));
    let (width, height) = (picture.dimensions.width, picture.dimensions.height);
    assert!(width.max(height) <= MAX_SIDE && u64::from(width) * u64::from(height) <= MAX_AREA);
    assert!(picture.bytes.len() <= MAX_BYTES && is_sendable(&picture.bytes));
    assert!(import_picture(&picture.bytes, LIMIT).is_ok());
    Corpus::Keep
});
