//! Search queries: terms of what a person typed.

use super::tokens::{Run, for_each_run};

/// A search: all terms must be met.
///
/// There is no query language to get wrong. Words are separated by white space; `"…"` is a phrase (one that is
/// not closed ends with the query); a `*` behind a word or phrase makes its last token a prefix. Everything else,
/// `AND`, `NOT`, `-`, `:`, `(` and `^` included, is text: letters and digits count, the rest separates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// All of these must be met.
    pub terms: Vec<Term>,
    /// Whether the query had more than [`Query::MAX_TOKENS`] tokens, so that its end was left out.
    pub truncated: bool,
}

/// One condition. Tokens are as [`tokenize`](super::tokenize) gives them: never empty, only letters, digits and
/// marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Term {
    Word(String),
    Prefix(String),
    /// Tokens occur in this order with none between.
    Phrase {
        tokens: Vec<String>,
        /// Whether the last one may be the beginning of a token.
        prefix: bool,
    },
}

impl Query {
    /// Most tokens a query keeps.
    pub const MAX_TOKENS: usize = 64;
    /// Most bytes of a query that are read.
    pub const MAX_BYTES: usize = 16 * 1024;

    /// Reads a query. Every text is one; a text without letters and digits is the empty query.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut end = text.len().min(Self::MAX_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut query = Self { terms: Vec::new(), truncated: end < text.len() };
        let mut left = Self::MAX_TOKENS;
        for (unit, prefix) in units(&text[..end]) {
            let (mut tokens, mut prefix) = tokens_of(unit, prefix);
            if tokens.len() > left {
                tokens.truncate(left);
                prefix = false;
                query.truncated = true;
            }
            left -= tokens.len();
            query.terms.extend(Term::new(tokens, prefix));
        }
        query
    }

    /// Whether nothing is asked for. The empty query is met by nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether a text with these tokens (see [`tokenize`](super::tokenize)) meets the query.
    #[must_use]
    pub fn matches<S: AsRef<str>>(&self, tokens: &[S]) -> bool {
        !self.is_empty() && self.terms.iter().all(|term| term.matches(tokens))
    }

    /// Every token that a text which meets the query has, each with whether a token that begins with it is enough.
    pub fn tokens(&self) -> impl Iterator<Item = (&str, bool)> {
        self.terms.iter().flat_map(Term::tokens)
    }
}

impl Term {
    fn new(mut tokens: Vec<String>, prefix: bool) -> Option<Self> {
        if tokens.len() > 1 {
            return Some(Self::Phrase { tokens, prefix });
        }
        let token = tokens.pop()?;
        Some(if prefix { Self::Prefix(token) } else { Self::Word(token) })
    }

    fn matches<S: AsRef<str>>(&self, tokens: &[S]) -> bool {
        match self {
            Self::Word(word) => tokens.iter().any(|token| token.as_ref() == word),
            Self::Prefix(beginning) => tokens.iter().any(|token| token.as_ref().starts_with(beginning)),
            Self::Phrase { tokens: wanted, prefix } => {
                let Some((last, before)) = wanted.split_last() else { return false };
                tokens.windows(wanted.len()).any(|found| {
                    let same = found.iter().zip(before).all(|(token, wanted)| token.as_ref() == wanted);
                    let ends = found.last().map(AsRef::as_ref);
                    same && ends.is_some_and(|token| token == last || (*prefix && token.starts_with(last)))
                })
            }
        }
    }

    fn tokens(&self) -> impl Iterator<Item = (&str, bool)> {
        let (tokens, prefix) = match self {
            Self::Word(word) => (std::slice::from_ref(word), false),
            Self::Prefix(beginning) => (std::slice::from_ref(beginning), true),
            Self::Phrase { tokens, prefix } => (&tokens[..], *prefix),
        };
        let last = tokens.len().saturating_sub(1);
        tokens.iter().enumerate().map(move |(at, token)| (token.as_str(), prefix && at == last))
    }
}

/// The words and phrases of a query, each with whether a `*` follows it.
fn units(mut text: &str) -> impl Iterator<Item = (&str, bool)> {
    std::iter::from_fn(move || {
        text = text.trim_start();
        if text.is_empty() {
            return None;
        }
        let (unit, rest) = match text.strip_prefix('"') {
            Some(phrase) => phrase.split_once('"').unwrap_or((phrase, "")),
            None => text.split_at(text.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(text.len())),
        };
        let (word, starred) = match unit.strip_suffix('*') {
            Some(word) if !text.starts_with('"') => (word, true),
            _ => (unit, false),
        };
        let after_phrase = rest.strip_prefix('*').filter(|_| text.starts_with('"'));
        text = after_phrase.unwrap_or(rest);
        Some((word, starred || after_phrase.is_some()))
    })
}

/// The tokens to search for, and whether the last one may be the beginning of a token.
fn tokens_of(unit: &str, starred: bool) -> (Vec<String>, bool) {
    let mut tokens = Vec::new();
    let mut prefix = false;
    let mut ends_in_bigram = false;
    for_each_run(unit, |run| {
        run.index(&mut |token| tokens.push(token.to_owned()));
        (prefix, ends_in_bigram) = match run {
            Run::Word(_) => (starred, false),
            Run::Cjk(run) => {
                let single = run.chars().nth(1).is_none();
                // In a text another character may follow, and make a bigram of the single one.
                (single, !single)
            }
        };
    });
    if ends_in_bigram {
        // The single token that ends a run stands only where the run ends in the text too.
        tokens.pop();
    }
    (tokens, prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bigrams::tokenize;

    fn finds(query: &str, text: &str) -> bool {
        Query::parse(query).matches(&tokenize(text))
    }

    #[test]
    fn terms_as_typed() {
        let phrase = |tokens: &[&str], prefix| Term::Phrase {
            tokens: tokens.iter().map(|token| (*token).to_owned()).collect(),
            prefix,
        };
        assert_eq!(
            Query::parse("Über \"new York\" dep* re-read \"open end").terms,
            [
                Term::Word("uber".to_owned()),
                phrase(&["new", "york"], false),
                Term::Prefix("dep".to_owned()),
                phrase(&["re", "read"], false),
                phrase(&["open", "end"], false),
            ]
        );
        assert_eq!(
            Query::parse("\"new yo\"* 漢 漢字 漢字検 字a*").terms,
            [
                phrase(&["new", "yo"], true),
                Term::Prefix("漢".to_owned()),
                Term::Word("漢字".to_owned()),
                phrase(&["漢字", "字検"], false),
                phrase(&["字", "a"], true),
            ]
        );
    }

    #[test]
    fn words_phrases_and_prefixes_are_met() {
        let text = "The quick brown fox; re-reading Čapek";
        for met in ["fox quick", "\"quick brown\"", "bro*", "\"brown fo\"*", "re-read*", "capek"] {
            assert!(finds(met, text), "{met}");
        }
        for missed in ["fox cat", "\"brown quick\"", "bro", "\"brown fo\"", "", "\"\"", "* - AND"] {
            assert!(!finds(missed, text), "{missed}");
        }
    }

    #[test]
    fn cjk_is_found_by_any_of_its_parts() {
        let text = "新しい漢字検索、GPT模型 v2。";
        for met in ["漢", "索", "漢字", "字検索", "型", "模型", "GPT模型", "模型 v2", "\"検索、GPT\"", "し"]
        {
            assert!(finds(met, text), "{met}");
        }
        for missed in ["字漢", "索漢", "漢索", "検索GP", "字型"] {
            assert!(!finds(missed, text), "{missed}");
        }
    }

    #[test]
    fn only_the_last_token_of_a_phrase_may_be_a_beginning() {
        let query = Query::parse("a b* \"c d\"* NOT x:y^2 (");
        let tokens: Vec<_> = query.tokens().collect();
        let words = [("a", false), ("b", true), ("c", false), ("d", true)];
        let rest = [("not", false), ("x", false), ("y", false), ("2", false)];
        assert_eq!(tokens, [words, rest].concat());
        assert_eq!(Query::parse("\"*-").tokens().count(), 0);
    }

    #[test]
    fn an_overlong_query_is_cut_and_says_so() {
        let many = Query::parse(&"word ".repeat(100));
        assert_eq!((many.terms.len(), many.truncated), (Query::MAX_TOKENS, true));
        let one = Query::parse(&"漢字".repeat(50));
        assert!(one.truncated && one.matches(&tokenize(&"漢字".repeat(60))));
        assert!(Query::parse(&"é".repeat(10_000)).truncated);
        assert!(!Query::parse("a b").truncated);
    }
}
