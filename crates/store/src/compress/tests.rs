use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const EVERY: [Option<Dictionary>; 3] =
    [None, Some(Dictionary::OpenAiChat), Some(Dictionary::OpenAiCompletions)];

#[test]
fn dictionaries_are_small_and_carry_their_ids() {
    for entry in &ENTRIES {
        assert!(entry.bytes.len() <= 16 << 10);
        let own = zstd_safe::get_dict_id_from_dict(entry.bytes).map(std::num::NonZero::get);
        assert_eq!(own, Some(entry.id));
    }
    for dictionary in Dictionary::ALL {
        let frame = compress(b"data: {}\n\n", Some(dictionary)).unwrap();
        assert_eq!(dictionary_id(&frame), dictionary.id());
    }
    assert_eq!(dictionary_id(&compress(b"x", None).unwrap()), None);
    assert_eq!(Dictionary::for_dialect("openai_chat"), Some(Dictionary::OpenAiChat));
    assert_eq!(Dictionary::for_dialect("script"), None);
}

/// A published dictionary that changes makes stored responses unreadable.
#[test]
fn published_dictionaries_never_change() {
    let hashes: Vec<String> = ENTRIES.iter().map(|entry| loom::Digest::of(entry.bytes).to_string()).collect();
    assert_eq!(hashes, HASHES);
}

const HASHES: [&str; 2] = [
    "3f7068742654468a7537a856d19b2c38355fe35c20c8f7a234872d9ed6ac87ec",
    "608aa14dfb04965536dfdebf9daa06d3dee82e8dc93690c37a2cd7f86ca588d8",
];

#[test]
fn the_limit_holds_exactly() {
    let body = vec![b'a'; 1000];
    for dictionary in EVERY {
        let frame = compress(&body, dictionary).unwrap();
        assert_eq!(decompress(&frame, 1000).unwrap(), body);
        assert!(matches!(decompress(&frame, 999), Err(CompressError::TooLarge { max: 999 })));
    }
}

#[test]
fn a_bomb_that_hides_its_size_is_refused_while_it_unfolds() {
    // A streaming encoder records no size: the frame does not say what it will become.
    let bomb = zstd::stream::encode_all(std::io::repeat(0).take(64 << 20), 1).unwrap();
    assert!(bomb.len() < 16 << 10);
    assert_eq!(zstd_safe::get_frame_content_size(&bomb).unwrap(), None);
    assert!(matches!(decompress(&bomb, 1 << 20), Err(CompressError::TooLarge { .. })));
    assert_eq!(decompress(&bomb, 64 << 20).unwrap().len(), 64 << 20);
}

#[test]
fn a_window_larger_than_ours_is_refused() {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    std::io::Write::write_all(&mut encoder, b"small").unwrap();
    let frame = encoder.finish().unwrap();
    assert!(matches!(decompress(&frame, 1 << 20), Err(CompressError::Damaged { .. })));
}

#[test]
fn a_frame_of_an_unknown_dictionary_names_it() {
    let mut frame = compress(b"data: {\"id\":\"chatcmpl-", Some(Dictionary::OpenAiChat)).unwrap();
    // Magic number, descriptor, then (the frame being one segment) the id in two bytes.
    frame[5..7].copy_from_slice(&40_199u16.to_le_bytes());
    assert!(matches!(decompress(&frame, 100), Err(CompressError::UnknownDictionary { id: 40_199 })));
}

#[test]
fn truncated_foreign_and_trailing_bytes_are_damage() {
    let frame = compress(&b"data: {}\n\n".repeat(50), Some(Dictionary::OpenAiChat)).unwrap();
    for cut in 0..frame.len() {
        assert!(matches!(decompress(&frame[..cut], 1000), Err(CompressError::Damaged { .. })), "{cut}");
    }
    assert!(matches!(decompress(b"{\"json\":true}", 1000), Err(CompressError::Damaged { .. })));
    let twice = frame.repeat(2);
    assert!(matches!(decompress(&twice, 1000), Err(CompressError::Damaged { .. })));
}

proptest! {
    #[test]
    fn every_body_comes_back(body in vec(any::<u8>(), 0..3000), which in 0..3usize) {
        let frame = compress(&body, EVERY[which]).unwrap();
        prop_assert_eq!(decompress(&frame, body.len() as u64).unwrap(), body);
    }

    /// The checksum: no flipped bit yields other bytes.
    #[test]
    fn a_flipped_bit_never_yields_other_bytes(
        body in vec(any::<u8>(), 1..300), at in any::<prop::sample::Index>(), bit in 0..8u8, which in 0..3usize
    ) {
        let mut frame = compress(&body, EVERY[which]).unwrap();
        let at = at.index(frame.len());
        frame[at] ^= 1 << bit;
        if let Ok(read) = decompress(&frame, 1 << 20) {
            prop_assert_eq!(read, body);
        }
    }
}
