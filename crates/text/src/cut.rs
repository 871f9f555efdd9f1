//! Cutting text: head and tail of a long file, paragraph and sentence borders of a document.
//!
//! No function here cuts inside a grapheme cluster. Paragraphs are separated by blank lines (lines of nothing
//! but white space). Sentences are found by their punctuation, in scripts with and without spaces; an
//! abbreviation may be taken for an end, which costs a less pretty cut and nothing else.

mod beginning;
mod boundary;
mod boundary_scan;
mod head_tail;
mod mark_scan;
mod paragraph;
mod sentence;
mod text_slice;
mod window;

pub use beginning::beginning;
pub use boundary::Boundary;
pub use boundary_scan::BoundaryScan;
pub use head_tail::{HeadTail, Omission, head_tail};
pub use paragraph::paragraph_starts;
pub use sentence::{sentence_ends, sentence_starts};
pub use window::{note_position, window_start};
