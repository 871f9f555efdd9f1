//! Frames that what is inside cannot close (spec: capabilities §5; cases: attacks §1, 11 and 12).
//!
//! Text from elsewhere is set apart by a Markdown fence longer than any run of backticks within, so that an open
//! fence, comment or table, or a forged end of the frame, stays inside. The frame marks a border for a reader, a
//! model above all; it neither changes nor judges the text. The rows around the fence carry names, which come
//! from elsewhere too and are confined to one line without brackets.

use crate::class::{is_bidi_control, is_invisible};

/// The two ends of a frame. The framed text is `open`, the text unchanged, `close`, so that a manifest can tell
/// framing and content apart by bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFrame {
    /// Opening line before the text; ends with a line feed.
    pub open: String,
    /// Closing line behind the text; begins with a line feed where the text does not end with one.
    pub close: String,
}

impl TextFrame {
    /// A frame for exactly this `text`. `label` says what it is (a card's id and hash, a file's name).
    #[must_use]
    pub fn around(label: &str, text: &str) -> Self {
        let fence = fence(text);
        let label = plain_name(label);
        let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        Self { open: format!("{fence}text {label}\n"), close: format!("{line_end}{fence}\n") }
    }

    /// `text` between the two ends; `text` must be the one the frame was made for.
    #[must_use]
    pub fn wrap(&self, text: &str) -> String {
        [&self.open, text, &self.close].concat()
    }
}

/// A fence of backticks, at least three, one longer than the longest run in `text`.
#[must_use]
pub fn fence(text: &str) -> String {
    let mut longest = 0_usize;
    let mut run = 0_usize;
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat((longest + 1).max(3))
}

/// A name fit to stand in a frame: one line of at most 120 characters, never empty. Controls, invisible and bidi
/// characters, brackets, braces, angle brackets, backticks and bars become `_`. Idempotent.
#[must_use]
pub fn plain_name(name: &str) -> String {
    let confined: String =
        name.chars().take(NAME_CHARS).map(|c| if is_confined(c) { c } else { '_' }).collect();
    match confined.trim() {
        "" => "_".to_owned(),
        name => name.to_owned(),
    }
}

fn is_confined(c: char) -> bool {
    const MARKUP: &[char] =
        &['[', ']', '<', '>', '{', '}', '`', '|', '⟦', '⟧', '【', '】', '［', '］', '＜', '＞', '｜'];
    !(MARKUP.contains(&c) || c.is_control() || is_bidi_control(c) || is_invisible(c))
}

/// Longest name, in characters.
const NAME_CHARS: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that would close a fence of `length` backticks in CommonMark, where CR, LF and CR LF end lines.
    fn closing_lines(text: &str, length: usize) -> usize {
        text.split(['\n', '\r'])
            .filter(|line| {
                let line = line.trim_matches([' ', '\t']);
                line.len() >= length && line.bytes().all(|byte| byte == b'`')
            })
            .count()
    }

    #[test]
    fn nothing_inside_closes_the_frame() {
        for text in ["", "plain", "```\ncode", "a\r`````\rb", "````````", "<!-- `` ``` `````` "] {
            let frame = TextFrame::around("card", text);
            let length = fence(text).len();
            assert_eq!(closing_lines(text, length), 0);
            assert_eq!(closing_lines(&frame.wrap(text), length), 1);
        }
    }

    #[test]
    fn a_fence_as_short_as_its_text_could_be_closed() {
        assert_eq!(closing_lines("````", 3), 1, "control: why the length is computed");
    }

    #[test]
    fn the_text_is_kept_byte_for_byte() {
        let text = "line\r\n\u{202E}x";
        let frame = TextFrame::around("f.md", text);
        assert_eq!(frame.wrap(text), format!("```text f.md\n{text}\n```\n"));
    }

    #[test]
    fn a_name_cannot_leave_its_place() {
        assert_eq!(plain_name("Ann]\n[system"), "Ann___system");
        assert_eq!(plain_name("a```\u{200B}<|im_start|>"), "a______im_start__");
        assert_eq!(plain_name(" \u{85} "), "_");
        assert_eq!(plain_name(&"x".repeat(500)).len(), NAME_CHARS);
    }
}
