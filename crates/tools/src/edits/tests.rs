//! Behaviour of edits by their public face.

mod begin_patch;
mod laws;
mod misses;
mod replacing;
mod unified;

use super::{FilePatch, Miss, MissReason, Nearest, Patch, PatchError};

/// The only file of a patch.
fn only(patch: &str) -> FilePatch {
    let mut patch = Patch::parse(patch).unwrap_or_else(|error| panic!("{error}\n{patch}"));
    assert_eq!(patch.files.len(), 1, "{patch:?}");
    patch.files.remove(0)
}

/// What a patch of one file makes of its text.
fn apply(patch: &str, text: &str) -> Result<String, Miss> {
    only(patch).apply(text)
}

fn error(patch: &str) -> PatchError {
    Patch::parse(patch).expect_err(patch)
}

fn nearest(miss: &Miss) -> &Nearest {
    match &miss.reason {
        MissReason::NotFound(Some(nearest)) => nearest,
        reason => panic!("{reason:?}"),
    }
}
