//! Values that are assigned to a name which says that they are secret.

use super::{Guess, colours, is_random, is_word, run};

pub(super) const VALUE: &str = "value";
/// Characters of a value at least, and at most.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=512;
/// Bytes of a name that are looked at.
const NAME: usize = 48;
/// Of the names with `key` those that are secret, in lower case.
const SECRET_KEYS: [&str; 12] = [
    "api", "access", "private", "secret", "encrypt", "signing", "auth", "master", "account", "service",
    "client", "session",
];
/// Ends of names whose value only names a secret, in lower case.
const NOT_THE_VALUE: [&str; 14] = [
    "id", "url", "uri", "name", "file", "path", "type", "env", "hash", "digest", "arn", "ref", "version",
    "user",
];

/// A value of a name with `secret`, `token` or `password`; a mark is none.
pub(super) fn value(bytes: &[u8], at: usize) -> Option<Guess> {
    let sign = crate::mask::MARK.as_bytes();
    let is_mark = |begin: usize| bytes[begin..].starts_with(sign);
    if at.checked_sub(sign.len() - "secret:".len()).is_some_and(is_mark) {
        return None;
    }
    assigned(bytes, at, |_| true)
}

/// A value of a name with `key`, if it is one of a secret key.
pub(super) fn key(bytes: &[u8], at: usize) -> Option<Guess> {
    assigned(bytes, at, |name| SECRET_KEYS.iter().any(|word| name.contains(word)) && !name.contains("public"))
}

fn is_name(byte: u8) -> bool {
    is_word(byte) || byte == b'-' || byte == b'.'
}

/// Blanks around a sign, and backslashes before a quote, at most.
const BLANKS: usize = 64;
const ESCAPES: usize = 3;

fn assigned(bytes: &[u8], at: usize, is_secret: impl Fn(&str) -> bool) -> Option<Guess> {
    let end = at + run(bytes, at, NAME, is_name);
    if end - at > NAME {
        return None;
    }
    let is_blank = |byte: u8| byte == b' ' || byte == b'\t';
    let is_escape = |byte: u8| byte == b'\\';
    let mut next = end + colours(bytes, end);
    next += run(bytes, next, ESCAPES, is_escape);
    next += usize::from(bytes.get(next).is_some_and(|byte| b"\"'".contains(byte)));
    next += run(bytes, next, BLANKS, is_blank);
    // `=`, `:`, `:=` and `=>`, also as an address has them, but no comparison and no path.
    let sign = match bytes.get(next..next + 3) {
        Some([b'%', b'3', b'D' | b'd' | b'A' | b'a']) => 3,
        _ => run(bytes, next, 2, |byte| b"=:>".contains(&byte)),
    };
    if !(matches!(bytes.get(next..next + sign)?, b"=" | b":" | b":=" | b"=>")
        || sign == 3 && bytes[next] == b'%')
    {
        return None;
    }
    let before = bytes[..at].iter().rev().take(NAME).take_while(|byte| is_name(**byte)).count();
    let name = String::from_utf8_lossy(&bytes[at - before..end]).to_ascii_lowercase();
    let last = name.rsplit(['_', '-', '.']).next().unwrap_or_default();
    if !is_secret(&name) || NOT_THE_VALUE.contains(&last) {
        return None;
    }
    next += sign;
    next += colours(bytes, next);
    next += run(bytes, next, BLANKS, is_blank);
    let escapes = run(bytes, next, ESCAPES, is_escape);
    let quote = bytes.get(next + escapes).copied().filter(|byte| b"\"'`".contains(byte));
    let start = next + quote.map_or(0, |_| escapes + 1);
    let length = run(bytes, start, *LENGTHS.end(), is_of_value);
    let found = &bytes[start..start + length];
    let after = bytes.get(start + length).copied();
    let is_whole = match quote {
        Some(quote) => after == Some(if escapes > 0 { b'\\' } else { quote }),
        // What goes on so is a call, an index, or a place in code.
        None => after.is_none_or(|after| !b"([{\"'`".contains(&after)),
    };
    let fits = is_whole && LENGTHS.contains(&length) && is_random(found) && !is_known_kind(found);
    fits.then_some(Guess { range: start..start + length, kind: VALUE })
}

/// Whether a byte may be part of a value that is assigned.
pub(super) fn is_of_value(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"'`,;()[]{}<>|\\".contains(&byte)
}

/// Whether a value is of a kind that is no secret by itself: a UUID, a digest that says so, an address, a variable.
fn is_known_kind(value: &[u8]) -> bool {
    let is_uuid = value.len() == 36
        && value.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    let starts =
        |with: &str| value.len() >= with.len() && value[..with.len()].eq_ignore_ascii_case(with.as_bytes());
    is_uuid
        || ["sha1", "sha256", "sha384", "sha512", "md5", "$", "%", "data:", "/", "./", "../"]
            .iter()
            .any(|with| starts(with))
        || memchr::memmem::find(value, b"://").is_some()
        || memchr::memmem::find(value, b"::").is_some()
        || is_compound_word(value)
}

/// Whether all parts between signs are words or short numbers.
fn is_compound_word(value: &[u8]) -> bool {
    value.split(|byte| !byte.is_ascii_alphanumeric()).all(|part| {
        let letters = part.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        // `v2`, `sha256`, `2024`, `key1`.
        part.len() - letters <= 4 && part[letters..].iter().all(u8::is_ascii_digit)
    })
}
