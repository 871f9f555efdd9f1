//! Trees that leave a home and arrive in one, through the table of commands.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod transfer {
    mod exporting;
    mod forgetting;
    mod home;
    mod importing;
    mod law;
    mod requests;
    mod trusting;
}
