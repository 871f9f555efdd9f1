//! Whether a text stands somewhere, in any form masking knows (spec: loom §9).
//!
//! Masking searches for each form of a short value. A text to be found may have megabytes, and there may be a great
//! many: so what is searched is decoded instead, a layer at a time (JSON within JSON, percent-encoding), and each
//! layer is searched for the text as it is and as base64 shows it.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::memchr;
use memchr::memmem::Finder;

use super::forms::base64;

/// How often JSON within JSON is decoded.
const JSON_LAYERS: usize = 4;

/// Texts that are each searched for by themselves; more are searched for together, by their first bytes.
const FEW: usize = 48;

/// Bytes by which many texts are told apart.
const KEY: usize = 8;

/// Bytes of a text that are looked for in base64.
const BASE64: usize = 16 * 1024;

/// Texts to be found in bytes.
#[derive(Debug, Clone, Default)]
pub struct TextFinder {
    few: Vec<Finder<'static>>,
    /// By their first bytes.
    many: HashMap<[u8; KEY], Vec<Box<[u8]>>>,
    /// Texts with percent signs, decoded once: an encoder that leaves `%` writes them so that decoding goes further.
    decoded: Vec<Finder<'static>>,
}

impl TextFinder {
    /// Adds a text, in every form. The empty one is nowhere.
    pub fn add(&mut self, text: &str) {
        self.add_without_base64(text);
        if text.chars().count() < super::MIN_CHARS {
            return;
        }
        let beginning = &text.as_bytes()[..text.len().min(BASE64)];
        let mut forms = base64(beginning);
        // One that goes on where another ends says nothing more.
        forms.sort_unstable();
        forms.dedup_by(|longer, shorter| longer.starts_with(&**shorter));
        forms.iter().for_each(|form| self.add_form(form.as_bytes()));
    }

    /// Adds a text that is not looked for in base64: an id, or one of the many of a whole tree.
    pub fn add_without_base64(&mut self, text: &str) {
        self.add_form(text.as_bytes());
        let decoded =
            [false, true].into_iter().filter_map(|is_form| percent_decoded(text.as_bytes(), is_form));
        // A short one would be found in what has nothing to do with it.
        let told = decoded.filter(|decoded| decoded.len() >= KEY);
        self.decoded.extend(told.map(|text| Finder::new(&text).into_owned()));
    }

    /// Whether there is nothing to be found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.is_empty()
    }

    fn add_form(&mut self, form: &[u8]) {
        if form.is_empty() || self.few.iter().any(|few| few.needle() == form) {
            return;
        }
        match form.first_chunk::<KEY>() {
            Some(key) if self.few.len() >= FEW => {
                let same = self.many.entry(*key).or_default();
                if !same.iter().any(|known| **known == *form) {
                    same.push(form.into());
                }
            }
            _ => self.few.push(Finder::new(form).into_owned()),
        }
    }

    /// Whether any of the texts stands in `bytes`, in any form.
    #[must_use]
    pub fn occurs_in(&self, bytes: &[u8]) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut layer = Cow::Borrowed(bytes);
        for _ in 0..=JSON_LAYERS {
            if self.stands_in(&layer) || self.stands_percent_encoded_in(&layer) {
                return true;
            }
            match json_decoded(&layer) {
                Some(decoded) => layer = Cow::Owned(decoded),
                None => return false,
            }
        }
        false
    }

    fn stands_percent_encoded_in(&self, bytes: &[u8]) -> bool {
        // A form writes blanks as plus signs, everything else leaves plus signs as they are.
        let mut layers = [false, true].into_iter().filter_map(|is_form| percent_decoded(bytes, is_form));
        layers.any(|layer| {
            self.stands_in(&layer) || self.decoded.iter().any(|text| text.find(&layer).is_some())
        })
    }

    fn stands_in(&self, bytes: &[u8]) -> bool {
        if self.few.iter().any(|text| text.find(bytes).is_some()) {
            return true;
        }
        !self.many.is_empty()
            && bytes.windows(KEY).enumerate().any(|(at, window)| {
                let same = window.first_chunk().and_then(|key| self.many.get(key));
                same.is_some_and(|texts| texts.iter().any(|text| bytes[at..].starts_with(text)))
            })
    }
}

/// Bytes with the escapes of JSON strings decoded, wherever they stand; none if there are none. What is no escape
/// stays.
fn json_decoded(bytes: &[u8]) -> Option<Vec<u8>> {
    let first = memchr(b'\\', bytes)?;
    let mut out = Vec::with_capacity(bytes.len());
    out.extend_from_slice(&bytes[..first]);
    let mut rest = &bytes[first..];
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let Some((&kind, after)) = rest.split_first() else {
            out.push(byte);
            break;
        };
        let plain = match kind {
            b'"' | b'\\' | b'/' => kind,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'f' => 12,
            b'u' => match unicode_escape(after) {
                Some((c, length)) => {
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    rest = &after[length..];
                    continue;
                }
                None => {
                    out.push(byte);
                    continue;
                }
            },
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.push(plain);
        rest = after;
    }
    Some(out)
}

/// The character whose escape goes on with `digits`, behind the `\u`, and the bytes of it that are read.
fn unicode_escape(digits: &[u8]) -> Option<(char, usize)> {
    let unit = |digits: &[u8]| {
        let digits = str::from_utf8(digits.get(..4)?).ok()?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(digits)?;
    match char::from_u32(u32::from(first)) {
        Some(c) => Some((c, 4)),
        None => {
            let second = unit(digits.get(4..)?.strip_prefix(b"\\u")?)?;
            let c = char::decode_utf16([first, second]).next()?.ok()?;
            Some((c, 10))
        }
    }
}

/// Bytes with percent-encoding decoded; none if there is nothing to decode.
fn percent_decoded(bytes: &[u8], is_form: bool) -> Option<Vec<u8>> {
    memchr(b'%', bytes).or_else(|| if is_form { memchr(b'+', bytes) } else { None })?;
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let code = || u8::from_str_radix(str::from_utf8(after.get(..2)?).ok()?, 16).ok();
        match byte {
            b'%' => match code() {
                Some(code) => {
                    out.push(code);
                    rest = &after[2..];
                }
                None => out.push(byte),
            },
            b'+' if is_form => out.push(b' '),
            _ => out.push(byte),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::forms;
    use super::*;

    fn finder(text: &str) -> TextFinder {
        let mut finder = TextFinder::default();
        finder.add(text);
        finder
    }

    #[test]
    fn every_form_masking_knows_is_found() {
        for text in ["said \"né\"\nand left, 100 % \\ sure/🎉", "plain words alone", "a+b <c> & d=e?"] {
            let finder = finder(text);
            for (form, written) in forms::of(text) {
                assert!(finder.occurs_in(format!("x {written} y").as_bytes()), "{form:?}: {written}");
            }
            assert!(!finder.occurs_in(b"said nothing of the kind \\u00e9 %20 \\"));
        }
    }

    #[test]
    fn json_within_json_within_json_is_found() {
        let text = "he said \"né\"\nand left";
        let mut written = text.to_owned();
        for depth in 0..=JSON_LAYERS {
            assert!(finder(text).occurs_in(written.as_bytes()), "{depth}: {written}");
            written = format!("{{\"t\":{}}}", forms::json_string(&written));
        }
    }

    #[test]
    fn many_texts_are_found_as_few_are() {
        let mut finder = TextFinder::default();
        for number in 0..500 {
            finder.add_without_base64(&format!("the same beginning {number}."));
        }
        assert!(finder.occurs_in(b"\"the same beginning 499.\""));
        assert!(!finder.occurs_in(b"\"the same beginning 500.\""));
        assert!(!TextFinder::default().occurs_in(b"anything") && !self::finder("").occurs_in(b"anything"));
    }

    #[test]
    fn a_text_of_megabytes_is_found() {
        let text = "line of text, \"quoted\"\n".repeat(200_000);
        let written = forms::json_string(&text);
        assert!(finder(&text).occurs_in(written.as_bytes()));
        assert!(!finder(&text).occurs_in(&written.as_bytes()[..written.len() - 20]));
    }

    #[test]
    fn a_text_with_percent_signs_is_found_behind_an_encoder_that_leaves_them() {
        let finder = finder("%a0 A ఎਸ");
        assert!(finder.occurs_in(b"q=%a0%20A%20%e0%b0%8e%e0%a8%b8"));
        assert!(finder.occurs_in(b"q=%25a0%20A%20%e0%b0%8e%e0%a8%b8"));
    }

    proptest! {
        #[test]
        fn any_text_is_found_in_any_form(text in "\\PC{8,40}", before in "[a-z ]{0,9}") {
            let finder = finder(&text);
            for (form, written) in forms::of(&text) {
                prop_assert!(finder.occurs_in(format!("{before}{written}").as_bytes()), "{form:?}: {written}");
            }
        }

        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = finder("words to be found").occurs_in(&bytes);
            json_decoded(&bytes);
            percent_decoded(&bytes, true);
        }
    }
}
