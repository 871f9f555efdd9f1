//! Foreign bytes on a terminal: no control is left, wherever the stream is cut, and showing twice is showing once.
//! The first byte says how the rest is cut.
#![no_main]

use drawloom_fuzz::pieces::pieces;
use libfuzzer_sys::fuzz_target;
use text::terminal::{Utf8Stream, VisibleStream, explicit, is_unsafe, one_line, visible};

fuzz_target!(|input: &[u8]| {
    let Some((seed, bytes)) = input.split_first() else { return };
    let text = String::from_utf8_lossy(bytes);
    let mut stream = VisibleStream::new();
    let mut shown = String::new();
    for piece in pieces(bytes, seed.saturating_add(1)) {
        shown += &stream.push(piece);
        assert!(!raw_control(&shown), "{shown:?}");
    }
    shown += &stream.finish();
    assert_eq!(shown, visible(&text));
    assert!(!raw_control(&shown));

    let mut utf8 = Utf8Stream::new();
    let decoded: String =
        pieces(bytes, seed.saturating_add(1)).iter().map(|piece| utf8.push(piece)).collect();
    let dropped = utf8.finish();
    assert_eq!(decoded, String::from_utf8_lossy(&bytes[..bytes.len() - dropped]));

    for show in [visible, one_line, explicit] {
        let once = show(&text).into_owned();
        assert!(!once.contains(is_unsafe) && !raw_control(&once));
        assert_eq!(show(&once), once);
    }
    assert!(!one_line(&text).contains(['\n', '\t', '\u{2028}', '\u{2029}']));
});

/// Told without the code under test.
fn raw_control(text: &str) -> bool {
    text.chars().any(|c| {
        let control = (c.is_control() && c != '\n' && c != '\t') || ('\u{80}'..'\u{a0}').contains(&c);
        control || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}
