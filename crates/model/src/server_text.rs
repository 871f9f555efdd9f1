//! Text a stranger's server sent, made fit for an error message.

/// The most of a server's message that is kept, in bytes.
pub(crate) const MAX_MESSAGE_BYTES: usize = 2048;

/// Makes control and bidirectional characters visible and cuts at [`MAX_MESSAGE_BYTES`].
pub(crate) fn sanitised(text: &str) -> String {
    let mut out = String::new();
    for c in text.trim().chars() {
        let escape = is_hidden(c);
        let width = if escape { 10 } else { c.len_utf8() };
        if out.len() + width > MAX_MESSAGE_BYTES - '…'.len_utf8() {
            out.push('…');
            break;
        }
        if escape {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// A short excerpt of bytes for a message.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    let end = bytes.len().min(120);
    let text = sanitised(&String::from_utf8_lossy(&bytes[..end]));
    if bytes.len() > end { format!("{text}…") } else { text }
}

fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_not_sent_to_a_terminal() {
        assert_eq!(sanitised("a\u{1b}[31m\u{202e}b\nc"), "a\\u{1b}[31m\\u{202e}b\nc");
    }

    #[test]
    fn long_messages_are_cut_at_a_character() {
        let cut = sanitised(&"ä".repeat(4000));
        assert!(cut.len() <= MAX_MESSAGE_BYTES && cut.ends_with('…'));
    }
}
