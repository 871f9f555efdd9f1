//! Known secrets: masked in pieces as in one piece, and nothing of them left in what is given out.
#![no_main]

use arbitrary::Arbitrary;
use drawloom_fuzz::pieces::{pieces, text_pieces};
use libfuzzer_sys::fuzz_target;
use text::mask::{Masker, Secret};

#[derive(Arbitrary, Debug)]
struct Input {
    secrets: Vec<String>,
    parts: Vec<Part>,
    seed: u8,
}

/// What a text is made of.
#[derive(Arbitrary, Debug)]
enum Part {
    Text(String),
    /// A secret, from some byte to some byte.
    Piece(u8, u8, u8),
    Percent(u8),
    Json(u8),
    Base64(u8, u8),
}

fuzz_target!(|input: Input| {
    let secrets: Vec<Secret> = input
        .secrets
        .iter()
        .take(4)
        .enumerate()
        .filter_map(|(number, value)| {
            let value: String = value.chars().take(24).collect();
            Secret::new(format!("n{number}"), value).ok()
        })
        .collect();
    let values: Vec<String> =
        input.secrets.iter().take(4).map(|value| value.chars().take(24).collect()).collect();
    let text: String = input.parts.iter().take(40).map(|part| written(part, &values)).collect();
    let masker = Masker::new(&secrets).expect("few secrets");
    let whole = masker.mask(&text);

    let mut stream = masker.stream();
    let mut out: Vec<u8> = Vec::new();
    pieces(text.as_bytes(), input.seed.saturating_add(1))
        .iter()
        .for_each(|piece| out.extend(stream.push(piece)));
    let tail = stream.finish();
    out.extend(tail.rest);
    assert_eq!(out, whole.text.as_bytes());
    assert_eq!(tail.spans, whole.spans);

    let mut stream = masker.text_stream();
    let mut out: String =
        text_pieces(&text, input.seed.saturating_add(1)).iter().map(|piece| stream.push(piece)).collect();
    let tail = stream.finish();
    out += &tail.rest;
    assert_eq!(out, whole.text);

    assert_eq!(masker.finds_in(text.as_bytes()), !whole.spans.is_empty());
    // A value made of the mark's own characters could be put together by a mark.
    let marks = secrets.iter().map(|secret| format!("⟦secret:{}⟧", secret.name()));
    let of_marks = values.iter().any(|value| value.contains(['⟦', '⟧']));
    if !of_marks && !marks.into_iter().any(|mark| masker.finds_in(mark.as_bytes())) {
        assert!(!masker.finds_in(whole.text.as_bytes()), "{:?} in {:?}", values, whole.text);
    }
    // Every value stands in none of the ways the documentation names.
    for (secret, value) in
        secrets.iter().zip(values.iter().filter(|value| Secret::new("n", value.as_str()).is_ok()))
    {
        for written in [value.clone(), percent(value), json(value)] {
            let around = format!("a {written} b");
            assert!(masker.finds_in(around.as_bytes()), "{} as {written:?}", secret.name());
        }
    }
});

fn written(part: &Part, values: &[String]) -> String {
    let value =
        |number: &u8| values.get(usize::from(*number) % values.len().max(1)).cloned().unwrap_or_default();
    match part {
        Part::Text(text) => text.chars().take(60).collect(),
        Part::Piece(number, from, to) => {
            let chars: Vec<char> = value(number).chars().collect();
            let (from, to) = (usize::from(*from) % (chars.len() + 1), usize::from(*to) % (chars.len() + 1));
            chars[from.min(to)..from.max(to)].iter().collect()
        }
        Part::Percent(number) => percent(&value(number)),
        Part::Json(number) => json(&value(number)),
        Part::Base64(number, shift) => {
            base64(&[&b"abc"[..usize::from(shift % 3)], value(number).as_bytes()].concat())
        }
    }
}

/// Every byte but letters and digits percent-encoded.
fn percent(value: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    value.bytes().map(byte).collect()
}

/// As the shortest JSON string writes it, without the quotes.
fn json(value: &str) -> String {
    let char = |c: char| match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        c if c < ' ' => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    value.chars().map(char).collect()
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..=three.len() {
            out.push(char::from(ALPHABET[(bits >> (18 - 6 * place)) as usize & 63]));
        }
        out.extend(std::iter::repeat_n('=', 3 - three.len()));
    }
    out
}
