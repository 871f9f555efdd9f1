//! Pure functions over text: make it safe to show, cut it, count it, frame it, find words in it, mask secrets in it,
//! disarm what speaks to a model in it.
//!
//! Every function depends on its arguments alone. There is no I/O, no clock, no randomness and no async, so
//! every caller, the tree core included, may use any of it anywhere, and the same text gives the same answer
//! on every machine.
//!
//! Two rules hold in all modules:
//!
//! - **Linear time.** Whatever the input, work and memory grow at most in proportion to it; a hostile text of
//!   10 MB is only a large text.
//! - **Nothing panics.** Offsets that do not fit are moved to the nearest place that does, or answered with
//!   `None`; bytes that are no UTF-8 become U+FFFD.
//!
//! Units, everywhere: *bytes* are UTF-8 bytes, *characters* are Unicode scalar values, *graphemes* are extended
//! grapheme clusters (UAX #29). A name or a document says which of the three it means.

pub mod bigrams;
pub mod bytes;
pub mod class;
pub mod code;
pub mod cut;
pub mod finding;
pub mod fold;
pub mod frame;
pub mod grapheme;
pub mod kind;
pub mod mask;
pub mod number;
pub mod passages;
pub mod sanitiser;
mod script;
pub mod terminal;
pub mod title;
