//! The words in a stretch of a request's body, without the wire around them.

/// Keys whose values are words of somebody, in the bodies of every dialect.
const WORDS: [&str; 7] =
    ["content", "text", "thinking", "reasoning_content", "arguments", "output", "prompt"];

/// The texts in a stretch of JSON that begins inside of a string, as it was escaped there; an empty line between two. One
/// that holds none gives nothing.
pub(super) fn sent_words(stretch: &[u8]) -> String {
    let stretch = String::from_utf8_lossy(stretch);
    let (mut texts, mut key) = (Vec::<String>::new(), String::new());
    let mut rest = &*stretch;
    // It begins as a text that began before.
    let mut is_text = true;
    loop {
        let end = end_of_string(rest);
        let string = unescaped(&rest[..end]);
        rest = rest.get(end + 1..).unwrap_or_default();
        let is_key = rest.trim_start().starts_with(':');
        if is_text && !is_key {
            texts.extend((!string.is_empty()).then_some(string));
        } else if is_key {
            key = string;
        }
        let Some(begin) = rest.find('"') else { break };
        // A value stands behind its key; in a list of several, behind a comma.
        let between = &rest[..begin];
        is_text = WORDS.contains(&key.as_str())
            && !between.contains(['{', '}'])
            && between.contains([':', ',', '[']);
        rest = &rest[begin + 1..];
    }
    texts.join("\n\n")
}

/// Where a string ends: at its quote, or with the stretch.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.unwrap_or(text.len())
}

/// What a string of JSON says; as it stands where a stretch begins or ends within an escape.
fn unescaped(string: &str) -> String {
    serde_json::from_str(&format!("\"{string}\"")).unwrap_or_else(|_| string.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_stretch_are_read_without_the_wire() {
        for (stretch, words) in [
            ("a \\\"quote\\\"\\nand more", "a \"quote\"\nand more"),
            ("here?\"},{\"role\":\"assistant\",\"content\":\"ok", "here?\n\nok"),
            (
                "here?\"}]},{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"o\\\\k\"},{\"type\":\"x\",\"id\":\"7\"",
                "here?\n\no\\k",
            ),
            ("", ""),
            ("cut in an escape \\u00", "cut in an escape \\u00"),
        ] {
            assert_eq!(sent_words(stretch.as_bytes()), words, "{stretch}");
        }
    }
}
