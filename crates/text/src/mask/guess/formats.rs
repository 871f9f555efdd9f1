//! Formats with a fixed beginning.

use std::ops::Range;

use memchr::memmem;

use super::{Guess, is_body, is_example, is_random, is_url_safe, is_word, run};

pub(super) const AWS: &str = "aws_key_id";
pub(super) const BEARER: &str = "bearer";
const PRIVATE_KEY: &str = "private_key";
/// Bytes of a private key at most, with its lines.
pub(super) const PRIVATE_KEY_BYTES: usize = 32 * 1024;
/// Bytes around the id of an AWS key in which its secret is looked for.
const BESIDE: usize = 256;

/// Whether nothing that is part of a longer word stands before a byte.
fn begins(bytes: &[u8], at: usize) -> bool {
    at == 0 || !is_url_safe(bytes[at - 1])
}

/// A prefix at a byte, and behind it a body of so many bytes of a kind.
fn token(
    bytes: &[u8],
    (at, prefix): (usize, usize),
    lengths: std::ops::RangeInclusive<usize>,
    is: impl Fn(u8) -> bool,
    kind: &'static str,
) -> Option<Guess> {
    let body = at + prefix;
    let length = run(bytes, body, is);
    let fits = begins(bytes, at) && lengths.contains(&length) && is_body(&bytes[body..body + length]);
    // What goes on as a word is another one.
    let ends = bytes.get(body + length).is_none_or(|byte| !is_word(*byte));
    (fits && ends).then_some(Guess { range: at..body + length, kind })
}

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

pub(super) fn aws(bytes: &[u8], at: usize) -> Option<Guess> {
    token(bytes, (at, 4), 16..=16, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit(), AWS)
}

/// The secret key beside an id: the nearest run of 40 letters, digits, slashes and pluses that is no hash.
pub(super) fn aws_secret(bytes: &[u8], id: &Range<usize>) -> Option<Guess> {
    let of_secret = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'/' || byte == b'+';
    let (mut at, end) = (id.start.saturating_sub(BESIDE), (id.end + BESIDE).min(bytes.len()));
    let mut nearest: Option<Range<usize>> = None;
    while at < end {
        let length = run(bytes, at, of_secret);
        let value = &bytes[at..at + length];
        let is_whole = at == 0 || !of_secret(bytes[at - 1]);
        let is_mixed = value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase);
        if length == 40 && is_whole && is_mixed && is_body(value) {
            let distance = |range: &Range<usize>| range.start.abs_diff(id.start);
            let this = at..at + length;
            if nearest.as_ref().is_none_or(|nearest| distance(&this) < distance(nearest)) {
                nearest = Some(this);
            }
        }
        at += length + 1;
    }
    nearest.map(|range| Guess { range, kind: "aws_secret" })
}

pub(super) fn github(bytes: &[u8], at: usize) -> Option<Guess> {
    token(bytes, (at, 4), 36..=255, is_alphanumeric, "github")
}

pub(super) fn github_pat(bytes: &[u8], at: usize) -> Option<Guess> {
    token(bytes, (at, 11), 60..=255, is_word, "github")
}

pub(super) fn gitlab(bytes: &[u8], at: usize) -> Option<Guess> {
    token(bytes, (at, 6), 20..=128, is_url_safe, "gitlab")
}

pub(super) fn slack(bytes: &[u8], at: usize) -> Option<Guess> {
    let guess = token(bytes, (at, 5), 20..=255, |byte| is_alphanumeric(byte) || byte == b'-', "slack")?;
    bytes[guess.range.clone()].iter().any(u8::is_ascii_digit).then_some(guess)
}

pub(super) fn stripe(bytes: &[u8], at: usize) -> Option<Guess> {
    token(bytes, (at, 8), 16..=255, is_alphanumeric, "stripe")
}

/// Keys of OpenAI and of Anthropic. Of the oldest kind a body has no signs.
pub(super) fn openai(bytes: &[u8], at: usize) -> Option<Guess> {
    let rest = &bytes[at + 3..];
    if rest.starts_with(b"ant-") {
        return token(bytes, (at, 7), 32..=255, is_url_safe, "anthropic");
    }
    for named in ["proj-", "svcacct-", "admin-", "or-v1-"] {
        if rest.starts_with(named.as_bytes()) {
            return token(bytes, (at, 3 + named.len()), 32..=255, is_url_safe, "openai");
        }
    }
    let guess = token(bytes, (at, 3), 32..=128, is_alphanumeric, "openai")?;
    is_random(&bytes[guess.range.clone()]).then_some(guess)
}

pub(super) fn google(bytes: &[u8], at: usize) -> Option<Guess> {
    token(bytes, (at, 4), 35..=35, is_url_safe, "google")
}

pub(super) fn npm(bytes: &[u8], at: usize) -> Option<Guess> {
    token(bytes, (at, 4), 36..=36, is_alphanumeric, "npm")
}

pub(super) fn pypi(bytes: &[u8], at: usize) -> Option<Guess> {
    bytes[at + 5..]
        .starts_with(b"AgE")
        .then(|| token(bytes, (at, 5), 50..=512, is_url_safe, "pypi"))
        .flatten()
}

pub(super) fn sendgrid(bytes: &[u8], at: usize) -> Option<Guess> {
    let dot = at + 3 + 22;
    let is_key = run(bytes, at + 3, is_url_safe) == 22 && bytes.get(dot) == Some(&b'.') && begins(bytes, at);
    let secret = run(bytes, dot + 1, is_url_safe);
    let range = at..dot + 1 + secret;
    (is_key && secret == 43 && is_body(&bytes[range.clone()])).then_some(Guess { range, kind: "sendgrid" })
}

pub(super) fn twilio(bytes: &[u8], at: usize) -> Option<Guess> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let guess = token(bytes, (at, 2), 32..=32, is_hex, "twilio")?;
    is_random(&bytes[at + 2..guess.range.end]).then_some(guess)
}

/// The token of a bot: its number stands before the colon.
pub(super) fn telegram(bytes: &[u8], at: usize) -> Option<Guess> {
    let digits = bytes[..at].iter().rev().take(11).take_while(|byte| byte.is_ascii_digit()).count();
    let start = at - digits;
    let is_number = (8..=10).contains(&digits) && begins(bytes, start);
    let length = run(bytes, at + 1, is_url_safe);
    let body = &bytes[at + 1..at + 1 + length];
    let range = start..at + 1 + length;
    (is_number && length == 35 && is_body(body)).then_some(Guess { range, kind: "telegram" })
}

/// Three parts with dots between, of which the first two are JSON.
pub(super) fn jwt(bytes: &[u8], at: usize) -> Option<Guess> {
    let header = run(bytes, at, is_url_safe);
    let claims = at + header + 1;
    let is_claims = bytes.get(claims - 1) == Some(&b'.') && bytes[claims..].starts_with(b"eyJ");
    if !begins(bytes, at) || header < 12 || !is_claims {
        return None;
    }
    let body = run(bytes, claims, is_url_safe);
    let signature = claims + body + 1;
    let signed = run(bytes, signature, is_url_safe);
    let is_signed = bytes.get(signature - 1) == Some(&b'.') && signed >= 20;
    let range = at..signature + signed;
    (is_signed && is_body(&bytes[signature..range.end])).then_some(Guess { range, kind: "jwt" })
}

/// A private key in PEM, with the lines around it; what of it is there, where the end is missing.
pub(super) fn private_key(bytes: &[u8], at: usize) -> Option<Guess> {
    const DASHES: &[u8] = b"-----";
    let begin = at.checked_sub(DASHES.len()).filter(|begin| bytes[*begin..].starts_with(DASHES))?;
    let label = run(bytes, at + 6, |byte| byte.is_ascii_uppercase() || byte == b' ');
    let body = at + 6 + label + DASHES.len();
    let is_label = memmem::find(&bytes[at + 6..at + 6 + label], b"PRIVATE KEY").is_some();
    if !is_label || !bytes[at + 6 + label..].starts_with(DASHES) {
        return None;
    }
    let rest = &bytes[body..bytes.len().min(body + PRIVATE_KEY_BYTES)];
    let end = match memmem::find(rest, b"-----END ") {
        Some(end) => {
            body + end + 9 + run(bytes, body + end + 9, |byte| byte == b' ' || byte.is_ascii_uppercase())
        }
        None => {
            // Base64 in lines, or as one string with escaped line ends.
            let of_key = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=\\\r\n\t ".contains(&byte);
            body + run(rest, 0, of_key)
        }
    };
    let end = end + run(bytes, end, |byte| byte == b'-').min(DASHES.len());
    let key = &bytes[body..end];
    let is_key = key.iter().filter(|byte| byte.is_ascii_alphanumeric()).count() >= 40 && !is_elided(key);
    is_key.then_some(Guess { range: begin..end, kind: PRIVATE_KEY })
}

/// Whether a key is told of and not written out. Long keys hold all short runs of letters.
fn is_elided(key: &[u8]) -> bool {
    memmem::find(key, b"...").is_some() || key.len() < 200 && is_example(key)
}

/// A password between the user and the host of an address.
pub(super) fn url_password(bytes: &[u8], at: usize) -> Option<Guess> {
    let of_part = |byte: u8| byte.is_ascii_graphic() && !b":/?#@\"'<>`{}()[]|\\$".contains(&byte);
    let user = at + 3;
    let colon = user + run(bytes, user, of_part);
    if bytes.get(colon) != Some(&b':') {
        return None;
    }
    let start = colon + 1;
    let end = start + run(bytes, start, of_part);
    let value = &bytes[start..end];
    let has = |is: fn(&u8) -> bool| value.iter().any(is);
    let kinds = [
        has(u8::is_ascii_lowercase),
        has(u8::is_ascii_uppercase),
        has(u8::is_ascii_digit),
        has(u8::is_ascii_punctuation),
    ];
    let is_mixed = kinds.iter().filter(|kind| **kind).count() >= 2;
    let is_host = bytes.get(end) == Some(&b'@') && bytes.get(end + 1).is_some_and(u8::is_ascii_alphanumeric);
    let fits = is_host && value.len() >= 8 && is_mixed && super::variety(value) >= 6 && !is_example(value);
    (fits && !is_words(value)).then_some(Guess { range: start..end, kind: "url_password" })
}

/// Whether a password of an example is one of words and a number (`password1`, `my-password`).
fn is_words(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    [&b"passw"[..], b"secret", b"token", b"test", b"user"]
        .iter()
        .any(|word| memmem::find(&lower, word).is_some())
}

pub(super) fn bearer(bytes: &[u8], at: usize) -> Option<Guess> {
    let is_it = at > 0 && bytes[at - 1].eq_ignore_ascii_case(&b'b') && (at == 1 || !is_word(bytes[at - 2]));
    let start = at + 6;
    let length = run(bytes, start, |byte| is_url_safe(byte) || b".~+/=".contains(&byte));
    let value = &bytes[start..start + length];
    (is_it && length >= 20 && is_random(value))
        .then_some(Guess { range: start..start + length, kind: BEARER })
}

/// Where a private key begins whose end has not come.
pub(super) fn open_private_key(bytes: &[u8]) -> Option<usize> {
    let begin = memmem::rfind(bytes, b"-----BEGIN ")?;
    let rest = &bytes[begin + 5..];
    let is_label = memmem::find(&rest[..rest.len().min(64)], b"PRIVATE KEY").is_some();
    let ended = memmem::find(rest, b"-----END ")
        .is_some_and(|end| memmem::find(&rest[end + 9..], b"-----").is_some());
    (is_label && !ended).then_some(begin)
}
