//! What the fuzz targets share: ways to cut bytes into pieces, and someone who works at a tree.
//!
//! A target asserts laws, so that it finds wrong answers as well as panics. Each keeps its input small enough
//! that one run takes milliseconds: what libFuzzer reports as a timeout is then a finding too.

pub mod desk;
pub mod pieces;
