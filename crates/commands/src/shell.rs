//! Words as a shell takes them, for commands that are named to people.

use std::borrow::Cow;

/// A word, in quotes where it needs them.
pub fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), Cow::into_owned)
}

/// A word as the last argument of a command: one that begins like an option stands behind `--`.
pub(crate) fn operand(word: &str) -> String {
    let end = if word.starts_with('-') { "-- " } else { "" };
    format!("{end}{}", quoted(word))
}

#[cfg(test)]
mod tests {
    use super::operand;

    #[test]
    fn an_operand_is_read_as_one() {
        for (word, written) in
            [("main", "main"), ("two words", "'two words'"), ("-x", "-- -x"), ("-- a", "-- '-- a'")]
        {
            assert_eq!(operand(word), written);
        }
    }
}
