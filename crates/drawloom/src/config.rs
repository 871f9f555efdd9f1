//! The owner's configuration: `<home>/config.toml` and `keys.toml`, the environment, the command line.
//!
//! This is the only reader of those files; crates below get plain values. A wrong key or value is never
//! skipped silently: a command that would work with half of what the owner wrote is refused, and only
//! `config` and `doctor`, which are how one finds out, go on (spec: cli §5).

mod commands;
mod file;
mod fitting;
mod keys;
mod kind;
pub(crate) mod last_good;
mod layers;
mod limits;
mod path;
mod policy;
#[cfg(test)]
mod reference;
pub(crate) mod rules;
mod sections;
mod servers;
mod set;
mod values;

pub(crate) use commands::{default_model, home, problems, run, unusable_model};
pub(crate) use keys::is_name;
pub(crate) use layers::{Layers, Source};
pub(crate) use path::join;
pub(crate) use sections::{Config, Level, ModelSection, Provider, loose_key};
pub(crate) use set::{add_section, section, set, unset_section};
