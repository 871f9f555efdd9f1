//! What only a file can show: durability, faults, foreign and damaged files, several processes, bytes.

extern crate drawloom_store as store;

mod suite {
    #[allow(dead_code, reason = "shared with the behavioural suite")]
    pub(crate) mod both;
    #[allow(dead_code, reason = "shared with the behavioural suite")]
    pub(crate) mod home;
}

#[path = "sqlite/bytes.rs"]
mod bytes;
#[path = "sqlite/faults.rs"]
mod faults;
#[path = "sqlite/files.rs"]
mod files;
#[path = "sqlite/processes.rs"]
mod processes;
