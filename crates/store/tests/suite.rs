//! One behavioural suite, run against every store of one file and in memory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

extern crate drawloom_store as store;

mod suite {
    mod attributing;
    mod both;
    mod calls;
    mod drafts;
    mod drifting;
    mod exporting;
    mod following;
    mod forgetting;
    mod generations;
    mod home;
    mod importing;
    mod listing;
    mod names;
    mod outcomes;
    mod principals;
    mod questions;
    #[cfg(feature = "postgres")]
    mod screen;
    mod searching;
    #[cfg(feature = "postgres")]
    #[allow(dead_code, reason = "shared with the tests of a server alone")]
    mod server;
    mod sessions;
    mod showing;
    mod spending;
    #[cfg(feature = "postgres")]
    mod stopping;
    mod titles;
    mod twins;
    mod undoing;
    mod views;
    mod work;
    mod workspaces;
    mod writing;
}
