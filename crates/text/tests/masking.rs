//! Known values are masked in every form, wherever a stream is split.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use drawloom_text::mask::{MaskError, MaskedSpan, Masker, Secret, SecretForm};
use proptest::prelude::*;

const KEY: &str = "sk-A1b2/C3+\"ü\" d4&<e5>";

fn masker(secrets: &[(&str, &str)]) -> Masker {
    let secrets: Vec<Secret> =
        secrets.iter().map(|(name, value)| Secret::new(*name, *value).unwrap()).collect();
    Masker::new(&secrets).unwrap()
}

/// Masks `text` in pieces that end at `cuts`.
fn streamed(masker: &Masker, text: &[u8], cuts: &[usize]) -> (Vec<u8>, Vec<MaskedSpan>) {
    let mut stream = masker.stream();
    let mut out = Vec::new();
    let mut from = 0;
    for cut in cuts.iter().copied().chain([text.len()]) {
        out.extend(stream.push(&text[from..cut]));
        from = cut;
    }
    let tail = stream.finish();
    if tail.spans.is_empty() {
        assert!(tail.rest.len() < masker.longest().max(1));
    }
    out.extend(tail.rest);
    (out, tail.spans)
}

#[test]
fn each_form_is_masked_and_named() {
    let masker = masker(&[("openai", KEY)]);
    for (form, written) in [
        (SecretForm::Plain, KEY.to_owned()),
        (SecretForm::Percent, "sk-A1b2%2FC3%2B%22%C3%BC%22%20d4%26%3Ce5%3E".to_owned()),
        (SecretForm::Percent, "sk-A1b2%2fC3%2b%22%c3%bc%22+d4%26%3ce5%3e".to_owned()),
        (SecretForm::Json, "sk-A1b2/C3+\\\"ü\\\" d4&<e5>".to_owned()),
        (SecretForm::Json, "sk-A1b2\\/C3+\\\"\\u00fc\\\" d4\\u0026\\u003ce5\\u003e".to_owned()),
        (SecretForm::Json, "sk-A1b2/C3+\\\\\\\"ü\\\\\\\" d4&<e5>".to_owned()),
        (SecretForm::Base64, "c2stQTFiMi9DMysiw7wiIGQ0JjxlNT4=".to_owned()),
    ] {
        let masked = masker.mask(&written).text.into_owned();
        assert_eq!(masked, "⟦secret:openai⟧", "{written}");
        let text = format!("key={written}&x");
        let masked = masker.mask(&text);
        assert_eq!(masked.text, "key=⟦secret:openai⟧&x");
        let span = &masked.spans[0];
        assert_eq!((span.form, span.input.clone()), (form, 4..4 + written.len()));
        assert_eq!(&masked.text[span.output.clone()], "⟦secret:openai⟧");
    }
}

#[test]
fn every_split_gives_what_the_whole_gives() {
    let masker = masker(&[("a", KEY), ("b", "0123456789"), ("c", "89-overlap")]);
    let text = format!("x {KEY} 0123456789-overlap {KEY}{KEY} c2stQTFiMi9DMysiw7wiIGQ0JjxlNT4= 012345678");
    let whole = masker.mask(&text);
    assert_eq!(whole.spans.len(), 5);
    for cut in 0..=text.len() {
        let (out, spans) = streamed(&masker, text.as_bytes(), &[cut]);
        assert_eq!(String::from_utf8(out).unwrap(), whole.text);
        assert_eq!(spans, whole.spans);
    }
    let each_byte: Vec<usize> = (0..text.len()).collect();
    assert_eq!(streamed(&masker, text.as_bytes(), &each_byte).0, whole.text.as_bytes());
}

#[test]
fn basic_authentication_hides_the_password() {
    let masker = masker(&[("password", "correct horse")]);
    for whole in ["dXNlcjpjb3JyZWN0IGhvcnNl", "YTpjb3JyZWN0IGhvcnNlIQ==", "YWI6Y29ycmVjdCBob3JzZQ=="] {
        assert_eq!(masker.mask(whole).spans.len(), 1, "{whole}");
    }
}

#[test]
fn overlapping_values_leave_nothing_standing() {
    let masker = masker(&[("first", "abcdefgh"), ("second", "efghijkl"), ("long", "abcdefghij")]);
    let masked = masker.mask("-abcdefghijkl-");
    assert_eq!(masked.text, "-⟦secret:long⟧-");
    assert_eq!(masker.mask("abcdefghabcdefgh").text, "⟦secret:first⟧⟦secret:first⟧");
}

#[test]
fn an_endless_repetition_is_one_span_and_holds_back_little() {
    let masker = masker(&[("a", "aaaaaaaa")]);
    let mut stream = masker.stream();
    let mut out = Vec::new();
    for _ in 0..1_000 {
        out.extend(stream.push(b"aaa"));
    }
    assert_eq!(out, "⟦secret:a⟧".as_bytes(), "given out before the end");
    let tail = stream.finish();
    assert_eq!((tail.rest.len(), tail.spans.len()), (0, 1));
    assert_eq!(tail.spans[0].input, 0..3_000);
}

#[test]
fn only_the_beginning_of_a_value_is_held_back() {
    let masker = masker(&[("a", "0123456789"), ("key", &"-----BEGIN KEY-----\nMIIEvQ+/".repeat(100))]);
    let mut stream = masker.text_stream();
    assert_eq!(stream.push("A model's answer passes at once. 01"), "A model's answer passes at once. ");
    assert_eq!(stream.push("23"), "");
    assert_eq!(stream.push("x -----BEGIN"), "0123x ");
    assert_eq!(stream.push(" again"), "-----BEGIN again");
    assert_eq!(stream.push("0123456789,"), "⟦secret:a⟧,");
    assert_eq!(stream.finish().spans.len(), 1);
}

#[test]
fn without_secrets_nothing_is_held_back() {
    let mut stream = masker(&[]).text_stream();
    assert_eq!(stream.push("as it is"), "as it is");
    assert_eq!(masker(&[]).mask("as it is").text, "as it is");
}

#[test]
fn what_cannot_be_masked_is_refused_without_showing_it() {
    let short = Secret::new("pin", "1234567").unwrap_err();
    assert!(matches!(&short, MaskError::TooShort { name } if name == "pin"));
    assert!(!short.to_string().contains("1234567"));
    assert!(Secret::new("pin", "1234567ü").is_ok());
    assert!(matches!(Secret::new("bad⟧name", KEY), Err(MaskError::Name)));
    assert!(matches!(Secret::new("big", "x".repeat(20_000)), Err(MaskError::TooLong { .. })));
    let debug = format!("{:?} {:?}", Secret::new("k", KEY).unwrap(), masker(&[("k", KEY)]).stream());
    assert!(!debug.contains("A1b2"), "{debug}");
}

#[test]
fn text_that_only_looks_like_a_key_is_unchanged() {
    let masker = masker(&[("openai", KEY)]);
    let text = "sk-A1b2/C3+ sk-ABCDEFGHIJKLMNOP ghp_0123456789 c2stQTFiMi9D";
    assert!(matches!(masker.mask(text).text, std::borrow::Cow::Borrowed(_)));
    assert!(!masker.finds_in(text.as_bytes()));
    assert!(masker.finds_in(format!("{text}{KEY}").as_bytes()), "control");
}

proptest! {
    #[test]
    fn any_chunking_gives_what_the_whole_gives(
        secrets in prop::collection::vec("[ab/\"ü]{8,12}", 0..4),
        pieces in prop::collection::vec(prop_oneof!["[ab/\"ü%]{0,10}", Just("\u{0}".to_owned()), "[0-3]"], 0..30),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let named: Vec<(String, &str)> =
            secrets.iter().enumerate().map(|(nth, value)| (format!("s{nth}"), value.as_str())).collect();
        let masker = masker(&named.iter().map(|(name, value)| (name.as_str(), *value)).collect::<Vec<_>>());
        // A digit stands for a secret, so that they occur often and next to each other.
        let text: String = pieces
            .iter()
            .map(|piece| piece.parse().ok().and_then(|nth: usize| secrets.get(nth)).unwrap_or(piece).as_str())
            .collect();
        let whole = masker.mask(&text);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let (out, spans) = streamed(&masker, text.as_bytes(), &cuts);
        prop_assert_eq!(String::from_utf8(out).unwrap(), whole.text.as_ref());
        prop_assert_eq!(&spans, &whole.spans);

        let unmasked = spans.iter().rev().fold(text.clone(), |text, span| {
            format!("{}\u{1}{}", &text[..span.input.start], &text[span.input.end..])
        });
        prop_assert!(secrets.iter().all(|secret| !unmasked.contains(secret.as_str())));

        let mut by_char = masker.text_stream();
        let mut text_out: String = text.chars().map(|c| by_char.push(c.encode_utf8(&mut [0; 4]))).collect();
        text_out += &by_char.finish().rest;
        prop_assert_eq!(text_out, whole.text.as_ref());
    }
}

/// The files of this repository hold nothing that looks like a secret: what a model reads of them is what stands there.
#[test]
fn no_file_of_this_repository_is_altered() {
    let masker = Masker::new(&[]).unwrap();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut folders, mut files, mut altered) = (vec![root], 0, Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders
                    .extend((name != "target" && name != ".git" && name != "node_modules").then_some(path));
            } else if let Some(text) =
                std::fs::read(&path).ok().and_then(|bytes| String::from_utf8(bytes).ok())
            {
                files += 1;
                altered.extend((masker.mask_entering(&text).text != text).then_some(path));
            }
        }
    }
    assert_eq!(altered, [] as [std::path::PathBuf; 0]);
    assert!(files > 100, "{files} were looked at");
}
