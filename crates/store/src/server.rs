//! How a store on a database server is reached.

use crate::limits::Limits;
use crate::store::StoreId;

/// Where a store on PostgreSQL is, and who asks.
#[derive(Clone)]
pub struct ServerOptions {
    /// `postgres://user@host/database?sslmode=verify-full`, as libpq reads it; without a password.
    pub url: String,
    /// The user's password, if the server wants one.
    pub password: Option<String>,
    /// The id the home has for its store. A database without tables takes it; one with another id is refused.
    pub store: StoreId,
    /// Connections at most, each with a thread: `pg_pool`.
    pub pool: usize,
    /// What is refused, cut short or reported.
    pub limits: Limits,
}

/// Connections of a process at most, where nothing else is said.
const POOL: usize = 16;

impl ServerOptions {
    /// A database with default limits.
    pub fn new(url: impl Into<String>, store: StoreId) -> Self {
        Self { url: url.into(), password: None, store, pool: POOL, limits: Limits::default() }
    }
}

impl std::fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerOptions").field("url", &self.url).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(feature = "postgres")))]
mod tests {
    use super::*;
    use crate::{ServerError, Store, StoreError};

    #[test]
    fn a_program_without_the_engine_says_so() {
        let refused = Store::connect(&ServerOptions::new("postgres://u@localhost/d", StoreId([0; 16])));
        assert!(matches!(refused, Err(StoreError::Server(ServerError::NotBuilt))));
    }
}
