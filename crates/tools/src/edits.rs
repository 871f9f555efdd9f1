//! Edits of texts (spec: agent §3 *Edits*): the replacement of one passage, and patches in both common forms.
//!
//! Functions over text only: whoever calls them reads and writes the files, and writes none of a patch unless all of
//! it applies. Nothing is guessed: text is changed where it stands exactly as was said, and in one place. What may
//! differ is what a model cannot see in a file it was shown, and what is kept as the file has it: line endings, a byte
//! order mark, a final newline. Everything else is a [`Miss`], which names the nearest place and the first line that
//! differs, so that the next try can be right.

mod apply;
mod begin_patch;
mod excerpt;
mod hunk;
mod lines;
mod locate;
mod miss;
mod nearest;
mod patch;
mod paths;
mod replace;
mod unified;

pub(crate) use lines::BOM;
pub use miss::{DifferenceKind, LineDifference, Miss, MissReason, Nearest};
pub use patch::{FileAction, FilePatch, Patch, PatchError};
pub use replace::{Replaced, replace};

#[cfg(test)]
mod tests;
