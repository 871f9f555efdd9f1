//! Text in HTML.

use std::fmt;

/// A text that stands between tags or in a quoted attribute.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut from = 0;
        for (at, c) in self.0.char_indices() {
            let entity = match c {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => "&quot;",
                '\'' => "&#39;",
                // What HTML has no place for; a carriage return would be read as a line end.
                '\r' => "&#13;",
                c if c.is_control() && !matches!(c, '\n' | '\t') => "\u{fffd}",
                _ => continue,
            };
            f.write_str(&self.0[from..at])?;
            f.write_str(entity)?;
            from = at + c.len_utf8();
        }
        f.write_str(&self.0[from..])
    }
}

/// A text whose web addresses are links.
pub(super) struct Linked<'a>(pub(super) &'a str);

impl fmt::Display for Linked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((start, end)) = address(rest) {
            let url = Escaped(&rest[start..end]);
            write!(f, "{}<a rel=\"noopener noreferrer\" href=\"{url}\">{url}</a>", Escaped(&rest[..start]))?;
            rest = &rest[end..];
        }
        Escaped(rest).fmt(f)
    }
}

/// The first web address in a text, in bytes.
fn address(text: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    loop {
        let found = text[from..].find("://")? + from;
        let scheme = ["https", "http"].into_iter().find(|scheme| text[from..found].ends_with(scheme));
        let Some(scheme) = scheme else {
            from = found + 3;
            continue;
        };
        let start = found - scheme.len();
        let ends =
            |c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"' | ')' | ']' | '`');
        let rest = &text[found + 3..];
        let long = rest.find(ends).unwrap_or(rest.len());
        let end = found + 3 + rest[..long].trim_end_matches(['.', ',', ';', ':', '!', '?', '\'']).len();
        if end > found + 3 {
            return Some((start, end));
        }
        from = found + 3;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_an_attribute_or_opens_a_tag() {
        let hostile = "\"'><script>alert(1)</script>&amp;\u{0}\u{9b}";
        let safe = Escaped(hostile).to_string();
        assert!(!safe.contains(['<', '>', '"', '\'', '\u{0}', '\u{9b}']), "{safe}");
        assert!(safe.contains("&amp;amp;"));
    }

    #[test]
    fn addresses_are_links_and_nothing_else_is() {
        let linked =
            Linked("see ![x](https://e.test/a?b=1&c=2\"onx=1), or javascript://e and ://").to_string();
        let link = "<a rel=\"noopener noreferrer\" href=\"https://e.test/a?b=1&amp;c=2\">https://e.test/a?b=1&amp;c=2</a>";
        assert!(linked.contains(link), "{linked}");
        assert_eq!(linked.matches("<a ").count(), 1);
    }
}
