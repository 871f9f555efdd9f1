//! The engine SQLite: one file with a write-ahead log, one thread that writes and a few that read.
//!
//! Several processes may have the file open. Each write is an immediate transaction in which numbers are given
//! and cells compared, so that the order of a tree is one for all of them. A commit is synced before it is
//! acknowledged.

mod connection;
mod database;
mod faults;
mod log;
mod maintenance;
mod migrate;
mod open;
mod pages;
mod readers;
mod reading;
mod scrub;
mod versions;
mod watcher;
mod writer;

pub(crate) use connection::column;
pub(crate) use database::Database;
#[cfg(feature = "postgres")]
pub(crate) use database::join;
pub use faults::Faults;
pub use open::Options;
