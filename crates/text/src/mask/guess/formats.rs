//! Formats with a fixed beginning.

use std::ops::Range;

use memchr::memmem;

use super::{COLOUR, Guess, colours, is_body, is_example, is_mixed, is_random, is_url_safe, is_word, run};

pub(super) const AWS: &str = "aws_key_id";
pub(super) const BEARER: &str = "bearer";
const PRIVATE_KEY: &str = "private_key";
/// Bytes of a private key at most, with its lines.
pub(super) const PRIVATE_KEY_BYTES: usize = 32 * 1024;
/// Bytes around the id of an AWS key in which its secret is looked for.
const BESIDE: usize = 256;

/// Whether nothing that is part of a longer word stands before a byte. An escape in a string of JSON, in an address or at a
/// terminal is part of none.
fn begins(bytes: &[u8], at: usize) -> bool {
    at == 0 || !is_url_safe(bytes[at - 1]) || ends_in_escape(&bytes[at.saturating_sub(ESCAPE)..at])
}

/// Bytes of the longest escape: a colour with its numbers, whose first byte is escaped itself.
const ESCAPE: usize = COLOUR + 8;

fn ends_in_escape(before: &[u8]) -> bool {
    let ends = |sign: &[u8], digits: usize| {
        let at = before.len().checked_sub(digits);
        at.is_some_and(|at| before[..at].ends_with(sign) && before[at..].iter().all(u8::is_ascii_hexdigit))
    };
    matches!(before, [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f' | b'v' | b'0' | b'e'])
        || ends(b"%", 2)
        || ends(b"\\x", 2)
        || ends(b"\\u", 4)
        || ends_in_colour(before)
}

fn ends_in_colour(before: &[u8]) -> bool {
    let Some((numbers, start)) = memchr::memrchr(b'[', before).map(|at| (&before[at + 1..], &before[..at]))
    else {
        return false;
    };
    let is_one = numbers.split_last().is_some_and(|(kind, numbers)| {
        kind.is_ascii_alphabetic() && numbers.iter().all(|byte| byte.is_ascii_digit() || *byte == b';')
    });
    let start = start.to_ascii_lowercase();
    is_one
        && [&b"\x1b"[..], b"\\x1b", b"\\u001b", b"\\033", b"\\e"].iter().any(|escape| start.ends_with(escape))
}

/// A prefix at a byte, and behind it a body of so many bytes of a kind.
fn token(
    bytes: &[u8],
    (at, prefix): (usize, usize),
    lengths: std::ops::RangeInclusive<usize>,
    is: impl Fn(u8) -> bool,
    kind: &'static str,
) -> Option<Guess> {
    // As part of a name (`k_ghp_…`) it is one all the same.
    if !begins(bytes, at) && !b"_-".contains(&bytes[at - 1]) {
        return None;
    }
    let body = at + prefix + colours(bytes, at + prefix);
    let length = run(bytes, body, *lengths.end(), is);
    let fits = lengths.contains(&length) && is_body(&bytes[body..body + length]);
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
        let length = run(&bytes[..end], at, 2 * BESIDE + 20, of_secret);
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
    let is_key =
        begins(bytes, at) && run(bytes, at + 3, 22, is_url_safe) == 22 && bytes.get(dot) == Some(&b'.');
    let secret = if is_key { run(bytes, dot + 1, 43, is_url_safe) } else { 0 };
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
    let length = if is_number { run(bytes, at + 1, 35, is_url_safe) } else { 0 };
    let body = &bytes[at + 1..at + 1 + length];
    let range = start..at + 1 + length;
    (is_number && length == 35 && is_body(body)).then_some(Guess { range, kind: "telegram" })
}

/// Bytes of a part of a JWT at most, and of what follows `Bearer`.
const PART: usize = 16 * 1024;

/// Three parts with dots between, of which the first two are JSON.
pub(super) fn jwt(bytes: &[u8], at: usize) -> Option<Guess> {
    if !begins(bytes, at) {
        return None;
    }
    // A part and where the next begins, behind a dot.
    let part = |at: usize| {
        let length = run(bytes, at, PART, is_url_safe);
        (length <= PART && bytes.get(at + length) == Some(&b'.')).then_some((length, at + length + 1))
    };
    let (header, claims) = part(at)?;
    let (_, signature) =
        (header >= 12 && bytes[claims..].starts_with(b"eyJ")).then(|| part(claims)).flatten()?;
    let signed = run(bytes, signature, PART, is_url_safe);
    let range = at..signature + signed;
    ((20..=PART).contains(&signed) && is_body(&bytes[signature..range.end]))
        .then_some(Guess { range, kind: "jwt" })
}

/// Bytes of a part of a key at least that is a line of it, and of all such parts together.
const LINE: usize = 16;
const KEY: usize = 40;
/// Parts that may stand between two lines: numbers of lines, headers, names of a log.
const BETWEEN: usize = 16;
/// Bytes that may stand between two parts.
const GAP: usize = 128;

/// A private key in PEM, with the lines around it; what of it is there, where the end is missing. Its lines are told by their
/// base64, whatever stands beside them: numbers, quotes, escapes, colours. Code that only names both lines has none.
pub(super) fn private_key(bytes: &[u8], at: usize) -> Option<Guess> {
    const DASHES: usize = 5;
    let is_dash = |byte: u8| byte == b'-';
    let is_label = |byte: u8| byte.is_ascii_uppercase() || byte == b' ';
    let begin = at.checked_sub(DASHES).filter(|begin| bytes[*begin..at].iter().all(|byte| is_dash(*byte)))?;
    let label = run(bytes, at + 6, 64, is_label);
    let body = at + 6 + label + DASHES;
    let names_key = memmem::find(&bytes[at + 6..at + 6 + label], b"PRIVATE KEY").is_some();
    if !names_key || run(bytes, at + 6 + label, DASHES, is_dash) < DASHES {
        return None;
    }
    let within = &bytes[..bytes.len().min(body + PRIVATE_KEY_BYTES)];
    let of_key = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    let (mut next, mut end, mut between, mut length) = (body, body, 0, 0);
    while between <= BETWEEN {
        let gap = run(within, next, GAP, |byte| !of_key(byte) && !is_dash(byte));
        let ends_line = within[next..next + gap].iter().all(|byte| b"\r\n\t \\".contains(byte));
        next += gap;
        let dashes = run(within, next, DASHES, is_dash);
        if gap > GAP || next >= within.len() {
            break;
        }
        if dashes >= DASHES {
            let label = next + run(within, next, GAP, is_dash);
            if within[label..].starts_with(b"END ") {
                let behind = label + run(bytes, label, 64, is_label);
                end = behind + run(bytes, behind, DASHES - 1, is_dash);
            }
            break;
        }
        next += dashes;
        let part = run(within, next, PRIVATE_KEY_BYTES, of_key);
        let line = &within[next..next + part];
        let is_line = part >= LINE
            && line.iter().any(u8::is_ascii_uppercase)
            && line.iter().any(u8::is_ascii_lowercase);
        // The last line is a short one.
        if is_line || between == 0 && ends_line && length > 0 {
            end = next + part;
        }
        (between, length) =
            if is_line { (0, length + part) } else { (between + usize::from(part > 0), length) };
        next += part;
    }
    let key = &bytes[body..end];
    let is_elided = key.len() < 200 && is_example(key);
    (length >= KEY && is_mixed(key) && !is_elided).then_some(Guess { range: begin..end, kind: PRIVATE_KEY })
}

/// A password between the user and the host of an address.
pub(super) fn url_password(bytes: &[u8], at: usize) -> Option<Guess> {
    const MOST: usize = 512;
    let of_part = |byte: u8| byte.is_ascii_graphic() && !b":/?#@\"'<>`{}()[]|\\$".contains(&byte);
    let colon = at + 3 + run(bytes, at + 3, MOST, of_part);
    if bytes.get(colon) != Some(&b':') {
        return None;
    }
    let (user, start) = (&bytes[at + 3..colon], colon + 1);
    let end = start + run(bytes, start, MOST, of_part);
    let value = &bytes[start..end];
    let is_host = bytes.get(end) == Some(&b'@') && bytes.get(end + 1).is_some_and(u8::is_ascii_alphanumeric);
    // A port is none, nor is a short word.
    let is_one = value.len() >= 8 && super::variety(value) >= 4
        || value.len() >= 4
            && !value.iter().all(u8::is_ascii_alphabetic)
            && !value.iter().all(u8::is_ascii_digit);
    let fits = is_host && is_one && value != user && !is_example(value) && !is_example_password(value);
    fits.then_some(Guess { range: start..end, kind: "url_password" })
}

/// Words of which passwords of examples are made, longer ones before those they begin with.
const EXAMPLE_WORDS: [&[u8]; 20] = [
    b"password",
    b"passwd",
    b"pass",
    b"secret",
    b"token",
    b"test",
    b"username",
    b"user",
    b"postgres",
    b"mysql",
    b"root",
    b"admin",
    b"guest",
    b"redis",
    b"mongo",
    b"foo",
    b"bar",
    b"pwd",
    b"my",
    b"db",
];

/// Whether a password is one of an example: of such words, with up to four digits behind each (`password1`, `my-password`).
fn is_example_password(value: &[u8]) -> bool {
    value.to_ascii_lowercase().split(|byte| !byte.is_ascii_alphanumeric()).all(|part| {
        let mut rest = part;
        while let Some(behind) = EXAMPLE_WORDS.iter().find_map(|word| rest.strip_prefix(*word)) {
            rest = behind;
        }
        rest.len() <= 4 && rest.iter().all(u8::is_ascii_digit) && (rest.len() < part.len() || part.is_empty())
    })
}

pub(super) fn bearer(bytes: &[u8], at: usize) -> Option<Guess> {
    let is_it = at > 0 && bytes[at - 1].eq_ignore_ascii_case(&b'b') && (at == 1 || !is_word(bytes[at - 2]));
    let start = at + 6;
    let of_value = |byte: u8| is_url_safe(byte) || b".~+/=".contains(&byte);
    let length = if is_it { run(bytes, start, PART, of_value) } else { 0 };
    let value = &bytes[start..start + length];
    ((20..=PART).contains(&length) && is_random(value))
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
