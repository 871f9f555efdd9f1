//! Importers and exporters: how a tree leaves a home, and how one arrives.
//!
//! All functions are synchronous and work over readers, writers and [`loom::TreeReader`]: there is no file, no
//! clock and no store. What is written streams, page by page, so that an export never holds a tree in memory.
//! What is read is taken for hostile: every line is bounded before it is parsed, every record is checked
//! before it is believed, and everything a file says about itself is history, never an order.
//!
//! Entry points: [`own::export`] and [`own::read`] for the own format, [`import::plan_import`] and
//! [`import::plan_copy`] for what an import does to a store, [`html`], [`markdown`], [`plain`],
//! [`annotations`] and [`training`] for what people and other programs read, [`detect`] for a file of unknown
//! kind.

pub mod annotations;
pub mod detect;
pub mod html;
pub mod import;
pub mod markdown;
pub mod own;
pub mod passages;
pub mod plain;
pub mod training;

/// Error of an export that was not written to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The tree could not be read.
    #[error(transparent)]
    Rows(#[from] loom::RowError),
    /// The file could not be written.
    #[error("the export could not be written: {0}")]
    Io(#[from] std::io::Error),
    /// A record without a JSON form.
    #[error("a record could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A content that cannot be hashed.
    #[error("a record could not be written: {0}")]
    NotCanonical(#[from] loom::content::NotCanonical),
    /// A known secret stands in what is to be shared.
    #[error("{what} holds a known secret: forget it, or export without --share")]
    Secret { what: String },
}
