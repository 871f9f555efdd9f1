//! Words as a shell takes them, for commands that are named to people.

use std::borrow::Cow;

/// A word, in quotes where it needs them.
pub(crate) fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), Cow::into_owned)
}
