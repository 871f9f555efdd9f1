//! The turn engine: from what was said to an answer that is kept.
//!
//! Every request to a model takes one way, whoever asks for it: it is assembled and encoded ([`request`]), made
//! durable with its manifest, sent with every received byte in a spool first ([`exchange`]), and turned into nodes
//! together with its response and usage ([`settle`]). What a process that died had received is made a node by the
//! next one ([`recover`]). A command that continues a document and a turn of a conversation differ only in what is
//! around that way.
//!
//! Invariants: no model call without a durable manifest and generation row; no received byte is looked at before it
//! is in the spool; no lock is held across an await; a second process never takes over work whose owner lives.

pub mod boot;
pub mod desk;
mod earlier;
pub mod error;
pub mod exchange;
pub mod fallback;
pub mod fits;
pub mod form;
mod gallery;
pub mod handover;
mod lease;
mod masking;
pub mod once;
pub mod purse;
mod recover;
pub mod replay;
pub mod request;
pub mod session;
pub mod settle;
pub mod stored;
pub mod turn;

pub use desk::{Client, Desk};
pub use error::AgentError;
pub use exchange::Gate;
pub use fallback::Fallbacks;
pub use form::Form;
pub use gallery::{Keeping, Shown};
pub use lease::LEASE;
pub use once::again;
pub use purse::{Budget, Limit, Purse};
pub use request::{Ask, Prepared};
pub use session::{Chosen, Entered};
pub use settle::{Answered, Made};
pub use turn::{Kept, Manner, Replied, Said, Turn, Turned};
