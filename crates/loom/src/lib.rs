//! The tree under every conversation and document.
//!
//! `loom` is pure: no I/O, no clock, no async. It never holds a tree. An operation is *planned* over a
//! [`ReadSet`] of the few rows it reads, and yields a [`Plan`]: rows to insert (never changed again), cells
//! to set (each with the old value it expects) and the operation record that says so. A store applies the
//! plan in one transaction; a cell that changed meanwhile makes it refuse, and the caller plans again.
//! Reads ([`path`], [`render`], [`drift`]) are functions over [`TreeReader`], the small face a store shows from its
//! own threads.
//!
//! Why positions and versions: an edit is one insert, whatever hangs below it. A child follows from *any*
//! version of its parent position, so no edge is ever rewritten (spec: loom §1).
//!
//! Entry points: [`plan::plan`] for every change, [`reader::TreeReader`] for every read, [`verify`] for the proof
//! that what is stored is complete and agrees with itself.

pub mod ascent;
pub mod attribution;
pub mod call_lines;
pub mod cell;
pub mod content;
pub mod digest;
pub mod draft;
pub mod drift;
pub mod generation;
pub mod id;
pub mod memory;
pub mod node;
pub mod operation;
pub mod path;
pub mod plan;
pub mod position;
pub mod read_set;
pub mod reader;
pub mod record;
pub mod render;
pub mod resolve;
pub mod seal;
pub mod shared;
pub mod short_id;
pub mod source;
pub mod tree;
pub mod verify;

pub use ascent::{Answers, Ascent};
pub use cell::{Cell, CellChange, CellKey, CellValue, KeepScope, OpTarget, TextOffset};
pub use content::{Block, Counts, ToolStatus};
pub use digest::{Digest, PathDigest};
pub use draft::{Draft, Slot, Splice};
pub use generation::{GenerationId, GenerationPlace, GenerationRow, GenerationSettings, Purpose, Run};
pub use id::{IdSource, Millis, NodeId, PositionId, Seq, TreeId, ViewName};
pub use node::{
    Author, AuthorKind, Finish, ModelSource, Node, NodeRow, Origin, OriginRole, Quote, ResponsePart, Role,
    SourceKind, Trust,
};
pub use operation::{OpKind, OpRecord, Operation, Timeline};
pub use plan::{MovedText, Op, PassageEdit, Plan, PlanError, Refusal, ShownPassage};
pub use position::{Position, PositionKind, Sums};
pub use read_set::{ReadKey, ReadSet};
pub use reader::{RowError, TreeReader};
pub use tree::{Mode, TreeRow};
