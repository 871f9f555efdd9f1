//! The `tree` commands through the table, as every surface runs them, on every kind of store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/home.rs"]
mod home;
#[path = "support/probable.rs"]
mod probable;

mod tree_commands {
    mod branching;
    mod compacting;
    mod drifting;
    mod editing;
    mod editing_again;
    mod finding;
    mod history;
    mod library;
    mod marks;
    mod moving;
    mod naming;
    mod passages;
    mod rights;
    mod showing;
    mod writing;
}
