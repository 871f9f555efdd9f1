//! The ways a value may be written.

use std::fmt::Write as _;
use std::ops::Range;

use super::SecretForm;

/// Every form of `value` that is searched for, the plain one first. Forms may repeat.
pub(super) fn of(value: &str) -> Vec<(SecretForm, String)> {
    let mut forms = vec![(SecretForm::Plain, value.to_owned())];
    forms.extend(percent(value).map(|text| (SecretForm::Percent, text)));
    forms.extend(json(value).map(|text| (SecretForm::Json, text)));
    // JSON within JSON, by the same encoder: the arguments of a tool call in a request.
    forms.extend(JSON_CHOICES.map(|choice| (SecretForm::Json, json_as(&json_as(value, choice), choice))));
    for encoded in base64(value.as_bytes()) {
        let again = percent(&encoded).chain(json(&encoded)).collect::<Vec<_>>();
        forms.push((SecretForm::Base64, encoded));
        forms.extend(again.into_iter().map(|text| (SecretForm::Base64, text)));
    }
    forms
}

/// Percent-encoded as the common encoders do: they differ in the characters they leave, and in the case of digits.
fn percent(text: &str) -> impl Iterator<Item = String> {
    const LEFT: [&[u8]; 6] = [
        b"-._~",                          // RFC 3986, unreserved
        b"-_.!~*'()",                     // encodeURIComponent
        b"-_.!~*'();/?:@&=+$,#",          // encodeURI
        b"*-._ ",                         // HTML forms; the blank becomes a plus below
        b"",                              // everything but letters and digits
        b"!$%&'()*+,-./:;=?@[\\]^_`{|}~", // the query of the URL standard
    ];
    LEFT.into_iter().flat_map(move |left| {
        [false, true].map(|upper| {
            let mut out = String::with_capacity(text.len() * 3);
            for byte in text.bytes() {
                match byte {
                    b' ' if left.contains(&b' ') => out.push('+'),
                    _ if byte.is_ascii_alphanumeric() || left.contains(&byte) => out.push(char::from(byte)),
                    _ => push_hex(&mut out, "%", u16::from(byte), 2, upper),
                }
            }
            out
        })
    })
}

/// Escaped as in a JSON string, in every way encoders differ.
fn json(text: &str) -> impl Iterator<Item = String> {
    JSON_CHOICES.map(move |choice| json_as(text, choice))
}

/// The choices of [`json_as`], all combinations.
const JSON_CHOICES: Range<u8> = 0..16;

/// One way to escape for JSON. The bits of `choice`: escape non-ASCII, escape `/`, escape `<>&`, digits in upper
/// case.
fn json_as(text: &str, choice: u8) -> String {
    let [ascii, slash, html, upper] = [1, 2, 4, 8].map(|bit| choice & bit != 0);
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0C' => out.push_str("\\f"),
            '/' if slash => out.push_str("\\/"),
            c if c < ' ' || (ascii && !c.is_ascii()) || (html && matches!(c, '<' | '>' | '&')) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    push_hex(&mut out, "\\u", *unit, 4, upper);
                }
            }
            c => out.push(c),
        }
    }
    out
}

fn push_hex(out: &mut String, prefix: &str, number: u16, width: usize, upper: bool) {
    // Writing to a String does not fail.
    let _ = match upper {
        true => write!(out, "{prefix}{number:0width$X}"),
        false => write!(out, "{prefix}{number:0width$x}"),
    };
}

/// What base64 of a longer text shows of `value`, for each place in a group of three bytes it may begin at: the
/// characters that depend on it alone; and the same to the end, where the text ends with it.
pub(super) fn base64(value: &[u8]) -> Vec<String> {
    const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut forms = Vec::new();
    for (before, shared_chars) in [(0, 0), (1, 2), (2, 3)] {
        let mut shifted = vec![0_u8; before];
        shifted.extend_from_slice(value);
        let whole_chars = shifted.len() * 8 / 6;
        for alphabet in [STANDARD, URL] {
            let encoded = sextets(&shifted).map(|sextet| char::from(alphabet[usize::from(sextet)]));
            let to_end: String = encoded.skip(shared_chars).collect();
            let padding = "=".repeat((3 - shifted.len() % 3) % 3);
            forms.push(to_end.chars().take(whole_chars - shared_chars).collect());
            forms.push(format!("{to_end}{padding}"));
            forms.push(to_end);
        }
    }
    forms
}

/// The bits of `bytes` in sixes, the last filled up with zeros.
fn sextets(bytes: &[u8]) -> impl Iterator<Item = u8> {
    bytes.chunks(3).flat_map(|group| {
        let [a, b, c] = [0, 1, 2].map(|at| group.get(at).copied().unwrap_or(0));
        [a >> 2, (a & 0x03) << 4 | b >> 4, (b & 0x0F) << 2 | c >> 6, c & 0x3F]
            .into_iter()
            .take(group.len() + 1)
    })
}

/// A JSON string, in quotes, by the encoder that escapes most.
#[cfg(test)]
pub(super) fn json_string(text: &str) -> String {
    format!("\"{}\"", json_as(text, 15))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(form: SecretForm, value: &str) -> Vec<String> {
        of(value).into_iter().filter(|(found, _)| *found == form).map(|(_, text)| text).collect()
    }

    #[test]
    fn percent_forms_of_the_common_encoders() {
        let forms = texts(SecretForm::Percent, "a b/ü~!");
        for expected in ["a%20b%2F%C3%BC~%21", "a%20b%2f%c3%bc~!", "a+b%2F%C3%BC%7E%21", "a%20b/%C3%BC~!"] {
            assert!(forms.iter().any(|form| form == expected), "{expected}");
        }
    }

    #[test]
    fn json_forms_of_the_common_encoders() {
        let forms = texts(SecretForm::Json, "a\"\\/<ü🎉\n");
        for expected in [
            "a\\\"\\\\/<ü🎉\\n",
            "a\\\"\\\\\\/<\\u00fc\\ud83c\\udf89\\n",
            "a\\\"\\\\/\\u003Cü🎉\\n",
            "a\\\\\\\"\\\\\\\\/<ü🎉\\\\n",
        ] {
            assert!(forms.iter().any(|form| form == expected), "{expected}");
        }
    }

    #[test]
    fn base64_at_each_alignment() {
        let forms = texts(SecretForm::Base64, "correct horse");
        // "correct horse", "user:correct horse" and "a:correct horse!" as an encoder writes them.
        for (whole, part) in [
            ("Y29ycmVjdCBob3JzZQ==", "Y29ycmVjdCBob3JzZQ=="),
            ("dXNlcjpjb3JyZWN0IGhvcnNl", "jb3JyZWN0IGhvcnNl"),
            ("YTpjb3JyZWN0IGhvcnNlIQ==", "jb3JyZWN0IGhvcnNl"),
        ] {
            assert!(whole.contains(part));
            assert!(forms.iter().any(|form| form == part), "{part} in {forms:?}");
        }
    }
}
