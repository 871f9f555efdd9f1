//! The own format: a tree as JSON Lines, one record a line (spec: loom §8; documented in `docs/formats.md`).
//!
//! A file can be verified by itself, is byte-identical when it is exported again after an import, and says in
//! its first line what it contains. Two things are left out on purpose:
//!
//! - **What follows from other fields.** Depth, jump pointers and sums of positions, counts and digest terms of
//!   texts are computed when a file is read. A file cannot lie about them.
//! - **Trust.** How far a text is believed is for the home that holds it; what arrives is `outside`.
//!
//! Bytes (manifests, responses, blobs) are written as text where they are UTF-8 and as base 64 where they are
//! not, never compressed: a line cannot expand, and the same tree gives the same bytes under every release. A
//! whole file compresses well.

mod bytes;
mod check;
mod contents;
mod imported;
mod line;
mod read;
mod record;
mod source;
mod write;

pub use bytes::Data;
pub use contents::{ExportPart, ExportSummary, ExportVariant, RecordCounts, survey};
pub use imported::{ImportedFile, Materials, ReadProblem, ResponseParser, Unparsed};
pub use line::ReadLimits;
pub use read::{ReadError, read};
pub use record::{
    Absence, BodyRecord, BytesRecord, End, FORMAT, FileHeader, GenerationRecord, NodeRecord, PositionRecord,
    Record, ResponseRecord, VERSION,
};
pub use source::{ArchivedResponse, ExportSource, FileBody, StoredGeneration};
pub use write::{ExportOptions, ExportReport, export};
