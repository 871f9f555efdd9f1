//! Words for full-text search: what is indexed, what a query asks for, and when the two meet.
//!
//! SQLite's `unicode61` tokeniser takes a run of Chinese or Japanese for one word. So CJK is indexed by bigrams,
//! and text is brought into a form in which `unicode61` finds exactly the tokens [`tokenize`] gives. One tokeniser
//! of ours decides, whatever the store: [`index_text`] for FTS5, [`Query::matches`] where rows are compared
//! directly; both find the same set (spec: scale §2).
//!
//! | Text | Tokens |
//! |---|---|
//! | `Don't re-read` | `don` `t` `re` `read` |
//! | `Čapek, STRASSE, Straße` | `capek` `strasse` `strasse` |
//! | `漢字検索` | `漢字` `字検` `検索` `索` |
//! | `GPT模型` | `gpt` `模型` `型` |
//!
//! A token is a run of letters, digits, combining marks and private-use characters, as `unicode61` has it (with
//! marks: [`FTS5_TOKENIZER`]). It is compatibility-decomposed (NFKC), without diacritics, points and invisible
//! characters, and case folded. The last character of a CJK run is a token of its own, so that every character of
//! a run begins exactly one token and a query of one character is a prefix search.
//!
//! Not split: scripts without spaces that are not CJK (Thai, Lao, Khmer); a run of them is one word.

mod query;
mod tokens;

pub use query::{Query, Term};
pub use tokens::{for_each_token, index_text, tokenize, words};

/// The value of FTS5's `tokenize` option under which it finds the tokens of [`index_text`]. The categories of
/// marks are added to the default so that words of Indic scripts stay whole.
pub const FTS5_TOKENIZER: &str = "unicode61 remove_diacritics 2 categories 'L* M* N* Co'";
