//! Rows in SQLite.

pub(crate) mod adopt;
pub(crate) mod apply;
mod bytes;
mod cell_row;
mod codes;
pub(crate) mod db;
mod draft_row;
pub(crate) mod events;
mod faults;
pub(crate) mod find;
pub(crate) mod forget;
mod migrate;
mod node_row;
mod op_row;
pub(crate) mod open;
mod position_row;
pub(crate) mod readers;
pub(crate) mod rows;
mod schema;
pub(crate) mod sent;
pub(crate) mod session_row;
mod shown;
pub(crate) mod tree_row;
pub(crate) mod upkeep;
pub(crate) mod watcher;
pub(crate) mod work;
pub(crate) mod workspace_row;
pub(crate) mod writer;

pub use faults::Faults;
pub use open::Options;
pub(crate) use schema::VERSION as SCHEMA;
