//! Layers of the router: each gives every card a score of 0 to 1 for a message, and knows nothing of the others (spec:
//! capabilities §3).

mod bm25;
mod letters;
mod likeness;
mod phrases;

pub use bm25::Bm25;
pub use letters::Letters;
pub use likeness::Likeness;
pub(crate) use phrases::fold_plural;
pub use phrases::{FoundPhrase, Phrases};
