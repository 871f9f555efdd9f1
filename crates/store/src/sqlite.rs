//! The engine SQLite: one file with a write-ahead log, one thread that writes and a few that read.
//!
//! Several processes may have the file open. Each write is an immediate transaction in which numbers are given
//! and cells compared, so that the order of a tree is one for all of them. A commit is synced before it is
//! acknowledged.

pub(crate) mod connection;
mod faults;
pub(crate) mod maintenance;
mod migrate;
pub(crate) mod open;
pub(crate) mod readers;
mod version_3;
mod versions;
pub(crate) mod watcher;
pub(crate) mod writer;

pub(crate) use connection::column;
pub use faults::Faults;
pub use open::Options;
