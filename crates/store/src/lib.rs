//! store
pub mod blobs;
pub mod compress;
mod disk;
pub mod home;
pub mod instance;
pub mod spool;
