//! Refuses to build against an SQLite without the table of its pages: forgetting could not take a text out of them.

use std::env;

const FLAG: &str = "SQLITE_ENABLE_DBPAGE_VTAB";

fn main() {
    println!("cargo::rerun-if-env-changed=LIBSQLITE3_FLAGS");
    if !env::var("LIBSQLITE3_FLAGS").is_ok_and(|flags| flags.contains(FLAG)) {
        println!("cargo::error=set LIBSQLITE3_FLAGS=-D{FLAG}, as .cargo/config.toml of the repository does");
    }
}
