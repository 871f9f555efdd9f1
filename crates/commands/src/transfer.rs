//! How trees leave a home, and how they arrive (spec: loom §8).
//!
//! `interop` knows the formats and what an import does to a store; here they meet files, the store and the person.
//! An export says what it contains before its first byte is written, and is read in one snapshot. A file that
//! arrives is history: read within bounds, checked record by record, and never run, resumed or granted.

mod authors;
mod contents;
mod export;
mod file;
mod import;
mod imported_tree;
mod source;
mod target;
mod trust;

pub(crate) use authors::naming;
pub(crate) use export::{export, format};
pub(crate) use file::verify_file;
pub(crate) use import::import;
pub(crate) use target::TemporaryFile;
pub(crate) use trust::trust;
