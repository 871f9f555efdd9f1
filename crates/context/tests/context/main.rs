//! Behaviour of the context crate through its public face.

mod dialogue;
mod document;
mod support;
