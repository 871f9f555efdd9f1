//! Text that is not ours, made safe for a terminal (spec: security §26; cli, *Text that is not ours*).
//!
//! A terminal obeys what it prints: an escape sequence in a model's answer can write the clipboard, repaint an
//! approval line or hide where a link leads. No list of dangerous sequences would be complete, so none is kept:
//! the control characters that could *begin* one are made visible, whatever follows them. What remains is plain
//! text, and as every rule looks at one character only (CR before LF apart), it cannot be evaded by where a
//! stream happens to be split.
//!
//! | Function | For | Besides controls and bidi controls also shown |
//! |---|---|---|
//! | [`visible`], [`VisibleStream`] | text of several lines | nothing; LF and TAB work, CR LF is LF |
//! | [`one_line`] | file names, titles, error lines | LF, TAB, U+2028, U+2029 |
//! | [`explicit`] | what a person approves (spec: security §14) | everything invisible |
//!
//! C0 and DEL become their control pictures (`␛`), all else `\u{…}`. A text may hold such a picture or such an
//! escape itself; telling the two apart is not promised.

mod unstyled_stream;
mod utf8_stream;
mod visible_stream;

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::class::{is_bidi_control, is_invisible};

pub use unstyled_stream::UnstyledStream;
pub use utf8_stream::Utf8Stream;
pub use visible_stream::VisibleStream;

/// `text` with every control but LF and TAB, and every bidi control, made visible. CR LF becomes LF.
///
/// Idempotent; borrowed when there is nothing to show.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(is_unsafe) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    out.push_str(&text[..first]);
    let mut held_cr = false;
    push_visible(&text[first..], &mut held_cr, &mut out);
    push_held_cr(&mut held_cr, &mut out);
    Cow::Owned(out)
}

/// `text` on one line: as [`visible`], with line ends and tabs made visible too. Idempotent.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    rewrite(text, |c| is_unsafe(c) || matches!(c, '\n' | '\t' | '\u{2028}' | '\u{2029}'))
}

/// `text` with nothing hidden: as [`visible`], with zero-width and other invisible characters written out too.
/// Line feeds and tabs work; CR is always shown. Idempotent.
#[must_use]
pub fn explicit(text: &str) -> Cow<'_, str> {
    rewrite(text, |c| is_unsafe(c) || is_invisible(c))
}

/// Whether a terminal might act on the character: C0 but LF and TAB, DEL, C1, bidi controls.
#[must_use]
pub fn is_unsafe(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t')) || is_bidi_control(c)
}

fn rewrite(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&hidden) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if hidden(c) {
            push_shown(c, &mut out);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Appends `text` as [`visible`] shows it; a CR at the end waits in `held_cr` for what follows.
fn push_visible(text: &str, held_cr: &mut bool, out: &mut String) {
    for c in text.chars() {
        if *held_cr && c != '\n' {
            push_shown('\r', out);
        }
        *held_cr = c == '\r';
        if *held_cr {
            continue;
        }
        if is_unsafe(c) {
            push_shown(c, out);
        } else {
            out.push(c);
        }
    }
}

fn push_held_cr(held_cr: &mut bool, out: &mut String) {
    if std::mem::take(held_cr) {
        push_shown('\r', out);
    }
}

fn push_shown(c: char, out: &mut String) {
    let picture = match c {
        '\0'..='\x1F' => char::from_u32(0x2400 + u32::from(c)),
        '\x7F' => Some('␡'),
        _ => None,
    };
    match picture {
        Some(picture) => out.push(picture),
        // Writing to a String does not fail.
        None => drop(write!(out, "\\u{{{:x}}}", u32::from(c))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_borrowed() {
        let text = "naïve\tcafé\n漢字 🎉👩\u{200D}💻";
        assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
    }

    #[test]
    fn controls_are_shown_not_obeyed() {
        assert_eq!(visible("\x1b[2J\x07"), "␛[2J␇");
        assert_eq!(visible("\x7f\u{9b}31m\u{85}"), "␡\\u{9b}31m\\u{85}");
        assert_eq!(visible("user\u{202E}gpj.exe\u{2066}\u{61C}"), "user\\u{202e}gpj.exe\\u{2066}\\u{61c}");
    }

    #[test]
    fn a_lone_carriage_return_cannot_overwrite_a_line() {
        assert_eq!(visible("safe\rEVIL"), "safe␍EVIL");
        assert_eq!(visible("a\r\nb\r\r\nc\r"), "a\nb␍\nc␍");
    }

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(one_line("a\nb\tc\r\nd\u{2028}e"), "a␊b␉c␍␊d\\u{2028}e");
    }

    #[test]
    fn an_approval_hides_nothing() {
        assert_eq!(explicit("rm\u{200B} -r\u{E0041}\n\u{FEFF}x"), "rm\\u{200b} -r\\u{e0041}\n\\u{feff}x");
        assert_eq!(visible("rm\u{200B}"), "rm\u{200B}", "prose keeps its joiners");
    }
}
