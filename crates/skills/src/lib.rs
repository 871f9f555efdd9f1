//! Skills: folders with a `SKILL.md`, which says when it is of use and what is to be done then.
//!
//! Strangers write them, for several programs. They are read leniently, as data, by [`SkillFile`], and checked by the
//! letter of the open specification by [`strict`]. [`Catalog`] finds them in the folders they stand in, by precedence,
//! and says of each that is not offered why. Nothing here runs what a skill brings, and none of its texts is sent.
//!
//! The environment, the programs of the machine and what the owner accepted come in as arguments
//! ([`CatalogRules`]).

mod catalog;
mod discovery;
mod file;
mod mending;
mod metadata;
pub mod own;
pub mod strict;
#[cfg(test)]
mod tests;

pub use catalog::{AcceptedText, Catalog, CatalogRules, Skill, SkillText};
pub use discovery::{FoundFile, MAX_FOLDERS, RefusedPlace, SkillSource, SkillSourceKind, files_below};
pub use file::{KEYS, MAX_BYTES, PLACEHOLDER, PLACEHOLDER_TEXT, SkillFile};
pub use metadata::{Machine, Requirements};
