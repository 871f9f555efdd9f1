//! What is sent, why, and what it costs.
//!
//! Every request to a model is assembled here. It is an ordered list of [`Segment`]s, each with its source,
//! its reason and its price; together with the named framing between them they cover the body byte for byte
//! ([`mod@cover`]). The [`Manifest`] holds the list, the runs of the path that stood in the window, and how the
//! body is stored; it is durable before anything is sent, and its digest is in the chain hash of the nodes
//! made from it.
//!
//! Work is proportional to the window, never to the tree: [`document`] and [`dialogue`] read the path from its
//! end until the budget is full.

pub mod body;
pub mod bootstrap;
pub mod budget;
pub mod cover;
pub mod dialogue;
pub mod document;
pub mod estimate;
pub mod fit;
pub mod held;
pub mod manifest;
pub mod piece;
pub mod segment;
pub mod signals;
mod tail;
pub mod wrap;
pub mod zone;

pub use body::{BodyDelta, StoredBody};
pub use bootstrap::{BootFile, Bootstrap};
pub use budget::Budget;
pub use cover::cover;
pub use estimate::{Estimator, Features};
pub use fit::Fit;
pub use manifest::{Manifest, ModelRef, PathRun, Way};
pub use piece::{Assembled, ContextError, Piece};
pub use segment::{Decision, Kind, Segment, Source};
pub use signals::Signal;
pub use wrap::{Load, Wrap, WrapMode};
pub use zone::Zone;
