//! No byte of a hostile stream reaches a terminal as a control, wherever the stream is split.

use std::ops::RangeInclusive;

use drawloom_text::frame::plain_name;
use drawloom_text::terminal::{Utf8Stream, VisibleStream, explicit, is_unsafe, one_line, visible};
use proptest::prelude::*;

/// What terminals have been attacked with: cursor, screen, title, clipboard, links, modes, device queries, strings,
/// 8-bit controls in one and two bytes, and text direction.
const SEQUENCES: [&[u8]; 44] = [
    b"\x1b[2J",
    b"\x1b[H",
    b"\x1b[2A\x1b[2K",
    b"\x1b[1;1H",
    b"\x1b[31;5m",
    b"\x1b[8m",
    b"\x1b[?25l",
    b"\x1b[?1049h",
    b"\x1b[?1000h",
    b"\x1b[?2004l",
    b"\x1b[6n",
    b"\x1b[c",
    b"\x1b[>c",
    b"\x1b[5i",
    b"\x1b[20t",
    b"\x1b[21t",
    b"\x1b[!p",
    b"\x1b[4h",
    b"\x1b[1;3r",
    b"\x1b[3J",
    b"\x1bc",
    b"\x1b7\x1b8",
    b"\x1bD",
    b"\x1bM",
    b"\x1b(0",
    b"\x1b#8",
    b"\x1b]0;title\x07",
    b"\x1b]2;title\x1b\\",
    b"\x1b]52;c;cm0gLXJm\x07",
    b"\x1b]8;;https://evil.example\x1b\\bank\x1b]8;;\x1b\\",
    b"\x1b]4;1;?\x07",
    b"\x1b]10;?\x1b\\",
    b"\x1b]1337;File=inline=1:AAAA\x07",
    b"\x1bP$qm\x1b\\",
    b"\x1bP+q544e\x1b\\",
    b"\x1b_Gf=24;AAAA\x1b\\",
    b"\x1b^private\x1b\\",
    b"\x1bXstring\x1b\\",
    b"\xc2\x9b31m",
    b"\xc2\x9d0;title\xc2\x9c",
    b"\x9b2J\x9d52;c;AA\x07",
    b"\x08\x08\x08\x7f\x0e\x0f\x05\x00",
    b"approve?\rDENY\x0b\x0c\x85",
    b"\xe2\x80\xaetxt.exe\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c\xe2\x80\x8f",
];

/// Whether a terminal would see anything but text. Checked on bytes, not by the code under test.
fn has_raw_control(bytes: &[u8]) -> bool {
    let c0 = bytes.iter().any(|byte| (*byte < 0x20 && !b"\n\t".contains(byte)) || *byte == 0x7f);
    let in_two = bytes.windows(2).any(|pair| (pair[0] == 0xC2 && pair[1] < 0xA0) || pair == [0xD8, 0x9C]);
    let in_three = bytes
        .windows(3)
        .any(|three| matches!(three, [0xE2, 0x80, 0x8E | 0x8F | 0xAA..=0xAE] | [0xE2, 0x81, 0xA6..=0xA9]));
    c0 || in_two || in_three || std::str::from_utf8(bytes).is_err()
}

fn printed(pieces: &[&[u8]]) -> String {
    let mut stream = VisibleStream::new();
    let mut out: String = pieces.iter().map(|piece| stream.push(piece)).collect();
    out += &stream.finish();
    out
}

#[test]
fn sequences_split_at_every_byte_leave_no_control() {
    for sequence in SEQUENCES {
        assert!(has_raw_control(sequence), "control: {sequence:?} is harmless");
        let whole = visible(&String::from_utf8_lossy(sequence)).into_owned();
        for cut in 0..=sequence.len() {
            let mut stream = VisibleStream::new();
            let mut out = String::new();
            for piece in [&sequence[..cut], &sequence[cut..]] {
                let now = stream.push(piece);
                assert!(!has_raw_control(now.as_bytes()), "{sequence:?} at {cut}: {now:?}");
                out += &now;
            }
            out += &stream.finish();
            assert_eq!(out, whole, "{sequence:?} at {cut}");
        }
        let bytes: Vec<&[u8]> = sequence.chunks(1).collect();
        assert_eq!(printed(&bytes), whole);
    }
}

/// Characters that are not seen: zero-width, text direction, tags, variation selectors.
const UNSEEN: [RangeInclusive<char>; 17] = [
    '\u{AD}'..='\u{AD}',
    '\u{34F}'..='\u{34F}',
    '\u{61C}'..='\u{61C}',
    '\u{115F}'..='\u{1160}',
    '\u{17B4}'..='\u{17B5}',
    '\u{180E}'..='\u{180E}',
    '\u{200B}'..='\u{200F}',
    '\u{2028}'..='\u{2029}',
    '\u{202A}'..='\u{202E}',
    '\u{2060}'..='\u{2064}',
    '\u{2066}'..='\u{2069}',
    '\u{3164}'..='\u{3164}',
    '\u{FE00}'..='\u{FE0F}',
    '\u{FEFF}'..='\u{FEFF}',
    '\u{FFA0}'..='\u{FFA0}',
    '\u{E0000}'..='\u{E007F}',
    '\u{E0100}'..='\u{E01EF}',
];

#[test]
fn text_1_1_to_1_3_what_a_person_approves_and_a_name_in_a_frame_hide_nothing() {
    for c in UNSEEN.into_iter().flatten() {
        let text = format!("r{c}m");
        assert_eq!(explicit(&text), format!("r\\u{{{:x}}}m", u32::from(c)));
        assert_eq!(plain_name(&text), "r_m", "{c:?}");
    }
}

#[test]
fn a_split_line_end_is_one_line_end() {
    assert_eq!(printed(&[b"a\r", b"\nb\r", b"c\r"]), "a\nb␍c␍");
}

/// Bytes that are often near UTF-8, controls and line ends.
fn hostile_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..4),
        prop::sample::select(SEQUENCES.to_vec()).prop_map(<[u8]>::to_vec),
        prop::sample::select(vec!["é", "漢", "🎉", "\r\n", "\r", "\n", "\t", "␛", "\u{202E}", "\u{85}"])
            .prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn pieces_of<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn any_chunking_prints_what_the_whole_prints(
        bytes in hostile_bytes(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut utf8 = Utf8Stream::new();
        let decoded: String = pieces_of(&bytes, &cuts).iter().map(|piece| utf8.push(piece)).collect();
        let dropped = utf8.finish();
        prop_assert!(dropped <= 3);
        prop_assert_eq!(&decoded, &String::from_utf8_lossy(&bytes[..bytes.len() - dropped]));

        let shown = printed(&pieces_of(&bytes, &cuts));
        let whole = String::from_utf8_lossy(&bytes);
        prop_assert_eq!(&shown, &visible(&whole));
        prop_assert!(!has_raw_control(shown.as_bytes()));
    }

    #[test]
    fn showing_twice_is_showing_once(text in "(\\PC|[\u{0}-\u{A0}\u{200B}-\u{202E}\u{2066}-\u{2069}]){0,40}") {
        for show in [visible, one_line, explicit] {
            let once = show(&text).into_owned();
            prop_assert!(!once.contains(is_unsafe));
            prop_assert_eq!(show(&once), once.as_str());
        }
        let broken = one_line(&text).contains(['\n', '\t', '\u{2028}', '\u{2029}']);
        prop_assert!(!broken);
    }
}
