//! The search index: which nodes hold which tokens, without their places, in a GIN index.
//!
//! The tokens are ours ([`text::bigrams`]), so that every engine finds the same nodes. The index only says what may
//! match: a long token stands in it by its beginning, and a text with more tokens than a row takes by none, in an
//! index of its own that every search looks through.

use std::collections::BTreeSet;

use text::bigrams::{Query, tokenize};

pub(super) const TABLE: &str = "
CREATE TABLE search (node BIGINT PRIMARY KEY, tokens TSVECTOR);
CREATE INDEX search_tokens ON search USING gin (tokens);
CREATE INDEX search_all ON search (node) WHERE tokens IS NULL;
";

/// Bytes of a token that stand in the index.
const TOKEN: usize = 128;

/// Bytes of tokens that a row takes: less than the 1 MiB of a `tsvector`.
const ROW: usize = 1_000_000;

/// The tokens of a text, each once, separated by blanks; none when there are more than a row takes.
pub(super) fn tokens(text: &str) -> Option<String> {
    let tokens: BTreeSet<String> = tokenize(text).iter().map(|token| beginning(token).to_owned()).collect();
    // Each costs a few bytes besides its own.
    let size: usize = tokens.iter().map(|token| token.len() + 4).sum();
    (size <= ROW).then(|| tokens.into_iter().collect::<Vec<_>>().join(" "))
}

/// As much of a token as stands in the index.
fn beginning(token: &str) -> &str {
    let end = (0..=token.len().min(TOKEN)).rev().find(|end| token.is_char_boundary(*end));
    &token[..end.unwrap_or_default()]
}

/// What the index is asked: that every token stands in the text, in any order.
pub(super) fn expression(query: &Query) -> String {
    let quoted = query
        .tokens()
        .map(|(token, prefix)| format!("'{}'{}", beginning(token), if prefix { ":*" } else { "" }));
    quoted.collect::<Vec<_>>().join(" & ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_asked_for() {
        assert_eq!(expression(&Query::parse("Über \"new yo\"* dep*")), "'uber' & 'new' & 'yo':* & 'dep':*");
    }

    #[test]
    fn tokens_stand_once_and_long_ones_by_their_beginning() {
        assert_eq!(tokens("b a B").unwrap(), "a b");
        assert_eq!(tokens(&"é".repeat(500)).unwrap().len(), TOKEN);
        let many: String = (0..300_000).map(|number| format!("{number} ")).collect();
        assert_eq!(tokens(&many), None);
    }
}
