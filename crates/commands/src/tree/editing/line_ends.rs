//! Line ends of an edited text: its editor may have given it others than the text had.

/// The text of one node out of a file that an editor got from here: many editors end the last line, and take blank ones
/// behind it away.
pub(in crate::tree) fn as_edited(text: &str, saved: &str) -> String {
    let saved = with_line_ends_of(text, saved);
    let ended = if text.ends_with('\n') {
        return with_break_of(text, &saved);
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

/// An edited text with the line ends and without the byte order mark that its editor may have given it.
pub(super) fn with_line_ends_of(old: &str, saved: &str) -> String {
    let saved = if old.starts_with('\u{feff}') { saved } else { saved.trim_start_matches('\u{feff}') };
    let lines = old.matches('\n').count();
    let saved = &match saved.contains('\n') || old.contains('\r') {
        true => saved.to_owned(),
        false => saved.replace('\r', "\n"),
    };
    match old.matches("\r\n").count() {
        0 if !old.contains('\r') => saved.replace("\r\n", "\n"),
        ends if ends == lines && !saved.contains('\r') => saved.replace('\n', "\r\n"),
        _ => saved.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::with_line_ends_of;

    #[test]
    fn line_ends_of_an_editor_are_those_of_the_text() {
        assert_eq!(with_line_ends_of("a\nb", "\u{feff}a\r\nc\r\n"), "a\nc\n");
        assert_eq!(with_line_ends_of("a\r\nb\r\n", "a\nc\n"), "a\r\nc\r\n");
        assert_eq!(with_line_ends_of("a\r\nb\n", "a\nc\r\n"), "a\nc\r\n", "mixed: as it was saved");
        assert_eq!(with_line_ends_of("", "a\r\n"), "a\n");
        assert_eq!(with_line_ends_of("a\nb", "a\rc\r"), "a\nc\n", "an editor that ends lines so");
    }
}
