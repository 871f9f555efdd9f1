//! stub
pub(crate) const VERSION: u32 = 1;
#[derive(Debug)] pub struct Faults; #[derive(Debug)] pub struct Options; #[derive(Debug)] pub struct SqliteStore;
