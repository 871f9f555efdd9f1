//! The rules of the store over rows, the same for every engine.

pub(crate) mod attributions;
pub(crate) mod bytes;
mod cell;
pub(crate) mod check;
mod codes;
pub(crate) mod commit;
mod draft;
pub(crate) mod events;
pub(crate) mod forget;
pub(crate) mod generations;
pub(crate) mod import;
mod injections;
pub(crate) mod jobs;
mod lane;
pub(crate) mod leases;
pub(crate) mod maintenance;
pub(crate) mod node;
mod operation;
mod position;
mod prefetch;
pub(crate) mod queries;
pub(crate) mod questions;
pub(crate) mod reader;
pub(crate) mod repair;
pub(crate) mod sessions;
pub(crate) mod trees;
pub(crate) mod workspaces;
