//! How a store on a database server is reached.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::error::{ServerError, StoreError};
use crate::home::{STORE_ID, rename_new};
use crate::identity::StoreId;
use crate::limits::StoreLimits;

/// Where a store on PostgreSQL is, and who asks.
#[derive(Clone)]
pub struct ServerOptions {
    /// `postgres://user@host/database?sslmode=verify-full`, as libpq reads it; without a password.
    pub url: String,
    /// The user's password, if the server wants one.
    pub password: Option<String>,
    /// The id the home has for its store. A database without tables takes it; one with another id is refused.
    pub store: StoreId,
    /// Whether the tables are made where there are none.
    pub makes_tables: bool,
    /// Connections at most, each with a thread: `pg_pool`.
    pub pool: usize,
    /// What is refused, cut short or reported.
    pub limits: StoreLimits,
}

/// Connections of a process at most, where nothing else is said.
const POOL: usize = 16;

impl ServerOptions {
    /// A database with default limits.
    pub fn new(url: impl Into<String>, store: StoreId) -> Self {
        let limits = StoreLimits::default();
        Self { url: url.into(), password: None, store, makes_tables: true, pool: POOL, limits }
    }

    /// Checks a URL without asking the server. A program without the engine connects to none, and checks none.
    ///
    /// # Errors
    /// [`ServerError::Url`].
    pub fn check_url(url: &str) -> Result<(), ServerError> {
        #[cfg(feature = "postgres")]
        crate::postgres::check_url(url)?;
        #[cfg(not(feature = "postgres"))]
        let _ = url;
        Ok(())
    }
}

impl StoreId {
    /// The id that a home has for its store on a server, made at the first call: 32 hexadecimal digits in `store.id`.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the file cannot be read or made; [`StoreError::Foreign`] when it holds something else.
    pub fn of_home(home: &Path) -> Result<Self, StoreError> {
        let path = home.join(STORE_ID);
        let failed = |error| StoreError::io(format!("open {}", path.display()), error);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let id = data_encoding::HEXLOWER.decode(text.trim().as_bytes()).ok();
                let id = id.and_then(|id| id.try_into().ok()).map(Self);
                return id.ok_or_else(|| StoreError::Foreign(path.display().to_string()));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        // Named when it is whole; the name of another process that was faster stays.
        let id = Self::random()?;
        let new = home.join(format!("{STORE_ID}.{id}"));
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new).map_err(failed)?;
        file.write_all(id.to_string().as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        let named = rename_new(&new, &path);
        if !matches!(named, Ok(true)) {
            std::fs::remove_file(&new).map_err(failed)?;
        }
        Self::of_home(home)
    }
}

impl std::fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerOptions").field("url", &self.url).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_keeps_the_id_of_its_store() {
        let home = tempfile::tempdir().unwrap();
        let id = StoreId::of_home(home.path()).unwrap();
        assert_eq!(StoreId::of_home(home.path()).unwrap(), id);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
        std::fs::write(home.path().join(STORE_ID), "something else").unwrap();
        assert!(matches!(StoreId::of_home(home.path()), Err(StoreError::Foreign(_))));
    }

    #[cfg(not(feature = "postgres"))]
    #[test]
    fn a_program_without_the_engine_says_so() {
        let refused =
            crate::Store::connect(&ServerOptions::new("postgres://u@localhost/d", StoreId([0; 16])));
        assert!(matches!(refused, Err(StoreError::Server(crate::ServerError::NotBuilt))));
    }
}
