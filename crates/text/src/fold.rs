//! Text as drift compares it: white space and case do not count (spec: loom §3, *Drift*).
//!
//! A digest of folded text stays the same when a paragraph is re-wrapped or a heading is written in capitals;
//! everything else moves it. Normalisation forms are *not* folded together: who replaces `é` by `e` + U+0301
//! changed the bytes a model saw.
//!
//! Case folding is Unicode's full folding as far as the standard library's tables carry it: each character is
//! mapped to lower, upper and again to lower case, so `ß`, `ẞ` and `SS` agree, as do `ς`, `σ` and `Σ`, `ﬁ` and
//! `FI`. Two known differences from `CaseFolding.txt`, both harmless for comparison: Cherokee folds to its small
//! letters, and dotless `ı` keeps to itself as there, although its upper case is `I`. The mapping of an assigned
//! character never changes; characters new in a later Unicode may begin to fold.

/// The characters of `text` with white space (Unicode `White_Space`) removed and case folded. Idempotent.
#[must_use]
pub fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            // White_Space in ASCII is TAB to CR and the blank; `is_ascii_whitespace` lacks the vertical tab.
            if !matches!(c, '\t'..='\r' | ' ') {
                out.push(c.to_ascii_lowercase());
            }
        } else if !c.is_whitespace() {
            out.extend(case_folded(c));
        }
    }
    out
}

/// The full case folding of one character: one to three characters.
pub(crate) fn case_folded(c: char) -> impl Iterator<Item = char> {
    let kept = (c == 'ı').then_some(c);
    let mapped =
        kept.is_none().then(|| c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase));
    kept.into_iter().chain(mapped.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_and_case_do_not_count() {
        assert_eq!(folded("The  Quick\r\n\tBrown\u{A0}\u{3000}Fox\u{B}"), "thequickbrownfox");
        assert_eq!(folded("STRASSE"), folded("Straße"));
        assert_eq!(folded("ΣΊΣΥΦΟΣ"), folded("σίσυφος"));
        assert_eq!(folded("oﬃce"), folded("OFFICE"));
    }

    #[test]
    fn everything_else_counts() {
        assert_ne!(folded("don't"), folded("dont"));
        assert_ne!(folded("é"), folded("e\u{301}"));
        assert_ne!(folded("ı"), folded("i"));
        assert_ne!(folded("a\u{200B}b"), folded("ab"));
    }

    #[test]
    fn no_character_folds_differently_the_second_time() {
        for c in ('\0'..=char::MAX).filter(|c| !c.is_whitespace()) {
            let once: String = case_folded(c).collect();
            assert_eq!(folded(&once), once, "{c:?}");
        }
    }

    #[test]
    fn ascii_folds_as_every_other_character() {
        for c in '\0'..=char::MAX {
            let text = c.to_string();
            let by_tables = text.chars().filter(|c| !c.is_whitespace()).flat_map(case_folded);
            assert_eq!(by_tables.collect::<String>(), folded(&text), "{c:?}");
        }
    }
}
