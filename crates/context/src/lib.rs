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

pub mod activation;
pub mod body;
pub mod bootstrap;
pub mod budget;
pub mod calibration;
mod choice;
mod circling;
pub mod cover;
pub mod coverage;
pub mod dialogue;
pub mod document;
pub mod elicitation;
pub mod estimate;
mod folder_instructions;
pub mod given_back;
pub mod held;
mod history;
pub mod injection;
pub mod manifest;
pub mod memory;
mod messages;
mod of_prompt;
mod pairs;
pub mod piece;
pub mod plan;
pub mod prefix;
mod prefix_builder;
mod priors;
pub mod render_history;
pub mod replay;
pub mod reuse;
pub mod segment;
pub mod signals;
pub mod skills;
mod tail;
pub mod target;
pub mod tools;
pub mod trim;
mod units;
pub mod window_beginning;
pub mod wrap;
pub mod zone;

pub use activation::{ChangedFiles, Previous};
pub use body::{BodyDelta, StoredBody};
pub use bootstrap::{BootFile, Bootstrap, SystemPrompt, WorkspaceTrust};
pub use budget::TokenBudget;
pub use calibration::Calibration;
pub use cover::cover;
pub use coverage::{Coverage, CoveredBy, NothingRemembered};
pub use estimate::{Estimator, Features};
pub use folder_instructions::FolderInstructions;
pub use given_back::GivenBackFiles;
pub use history::unsent;
pub use injection::Offer;
pub use manifest::{CallCut, ContinuationForm, KeptCallPart, Manifest, ModelRef, PathRun};
pub use memory::{Memory, Observation};
pub use of_prompt::of_prompt;
pub use piece::{Assembled, ContextError, RequestPiece};
pub use plan::Plan;
pub use prefix::Prefix;
pub use render_history::{NoPictures, Pictures};
pub use replay::ReplayConstraints;
pub use segment::{Kind, Segment, SegmentOutcome, Source};
pub use signals::Signal;
pub use skills::{RefusedSkill, SkillEntry, SkillListing, SkillsIndex};
pub use target::TargetModel;
pub use tools::ToolSpec;
pub use trim::Strategy;
pub use wrap::{Load, WrapDecision, WrapMode};
pub use zone::Zone;
