//! Behaviour of edits by their public face.

mod replacing;

use super::{Miss, MissReason, Nearest};

fn nearest(miss: &Miss) -> &Nearest {
    match &miss.reason {
        MissReason::NotFound(Some(nearest)) => nearest,
        reason => panic!("{reason:?}"),
    }
}
