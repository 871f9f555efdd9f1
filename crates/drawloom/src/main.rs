//! drawloom
fn main() {}
