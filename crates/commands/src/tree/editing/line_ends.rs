//! Line ends of an edited text: its editor may have given it others than the text had.

/// The text of one node out of a file that an editor got from here: many editors end the last line, and take blank ones
/// behind it away.
pub(in crate::tree) fn as_edited(text: &str, saved: &str) -> String {
    let saved = with_line_ends_of(text, saved);
    let ended = if text.ends_with('\n') {
        return with_break_of(text, &saved);
    } else if text.ends_with('\r') {
        // It is the text's own, and the line end that was added stands behind it.
        saved.strip_suffix('\n')
    } else {
        saved.strip_suffix("\r\n").or_else(|| saved.strip_suffix('\n'))
    };
    ended.unwrap_or(&saved).to_owned()
}

/// A new text of a passage with at least the line ends behind it that the old one had: what parts it from the next one
/// is none of its words.
pub(in crate::tree) fn with_break_of(old: &str, new: &str) -> String {
    let break_of = |text: &str| text.len() - text.trim_end_matches(['\r', '\n']).len();
    let (before, now) = (break_of(old), break_of(new));
    if now >= before || new.trim().is_empty() {
        return new.to_owned();
    }
    format!("{}{}", &new[..new.len() - now], &old[old.len() - before..])
}

/// An edited text with the line ends and without the byte order mark that its editor may have given it. A carriage return
/// alone is text of its line.
pub(in crate::tree) fn with_line_ends_of(old: &str, saved: &str) -> String {
    let saved = if old.starts_with('\u{feff}') { saved } else { saved.trim_start_matches('\u{feff}') };
    if old.contains('\n') && !old.contains('\r') && !saved.contains('\n') {
        // An editor that ends every line so.
        return saved.replace('\r', "\n");
    }
    // The last one may be a carriage return of the text, with the line end that was added behind it.
    let is_own = old.ends_with('\r') && saved.ends_with("\r\n");
    let (saved, last) = saved.split_at(if is_own { saved.len() - "\r\n".len() } else { saved.len() });
    let (both, lines) = (old.matches("\r\n").count(), old.matches('\n').count());
    let alone = |text: &str| text.matches('\r').count() - text.matches("\r\n").count();
    let given = match both {
        // An editor that ends lines so; where few are, they were written.
        0 if saved.matches("\r\n").count() * 2 > saved.matches('\n').count() => saved.replace("\r\n", "\n"),
        1.. if both == lines && !saved.contains("\r\n") && alone(saved) <= alone(old) => {
            saved.replace('\n', "\r\n")
        }
        _ => saved.to_owned(),
    };
    given + last
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{as_edited, with_line_ends_of};

    #[test]
    fn line_ends_of_an_editor_are_those_of_the_text() {
        assert_eq!(with_line_ends_of("a\nb", "\u{feff}a\r\nc\r\n"), "a\nc\n");
        assert_eq!(with_line_ends_of("a\r\nb\r\n", "a\nc\n"), "a\r\nc\r\n");
        assert_eq!(with_line_ends_of("a\r\nb\n", "a\nc\r\n"), "a\nc\r\n", "mixed: as it was saved");
        assert_eq!(with_line_ends_of("", "a\r\n"), "a\n");
        assert_eq!(with_line_ends_of("a\nb\n", "Y\r\na\nb\n"), "Y\r\na\nb\n", "mixed: as it was saved");
        assert_eq!(with_line_ends_of("Two. \r", "Two. \r\n\nNew"), "Two. \r\n\nNew");
        assert_eq!(with_line_ends_of("a\nb", "a\rc\r"), "a\nc\n", "an editor that ends lines so");
    }

    #[test]
    fn a_carriage_return_alone_is_text() {
        assert_eq!(with_line_ends_of("bad\rchar", "good\nchar\n"), "good\nchar\n");
        assert_eq!(with_line_ends_of("a\rb\rc\r", "a\nb\nc\n"), "a\nb\nc\n");
        assert_eq!(with_line_ends_of("abc", "a\rc"), "a\rc");
        assert_eq!(with_line_ends_of("a\rb\n", "a\rc\r\n"), "a\rc\n");
        assert_eq!(with_line_ends_of("a\rb\r\nc", "a\rb\nd\n"), "a\rb\r\nd\r\n");
        assert_eq!(as_edited("bad\rchar", "good\nchar\n"), "good\nchar");
        assert_eq!(as_edited("a\rb\r", "a\rc\r\n"), "a\rc\r");
    }

    proptest! {
        /// A text that an editor did not change is the same, also where the editor ends its last line.
        #[test]
        fn what_is_saved_as_it_was_is_no_change(text in "[a\r\n\u{feff}]{0,8}") {
            prop_assert_eq!(as_edited(&text, &text), text.clone());
            let ended = as_edited(&text, &format!("{text}\n"));
            prop_assert_eq!(ended.trim_end_matches('\n'), text.trim_end_matches('\n'));
        }
    }
}
