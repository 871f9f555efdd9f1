//! A PostgreSQL server that tests may use, named by `DRAWLOOM_TEST_POSTGRES`: each test has a schema of its own.

use std::sync::atomic::{AtomicU32, Ordering};

use store::{ServerOptions, Store, StoreId};
use tokio_postgres::NoTls;

use super::both::block_on;

/// The server, if there is one.
pub(crate) fn url() -> Option<String> {
    std::env::var("DRAWLOOM_TEST_POSTGRES").ok().filter(|url| !url.is_empty())
}

/// A schema, dropped with this value.
pub(crate) struct Schema {
    server: String,
    name: String,
}

/// The id of every store of a test.
pub(crate) const STORE: StoreId = StoreId([7; 16]);

impl Schema {
    /// A new one, if there is a server.
    pub(crate) fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let server = url()?;
        let name = format!("test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let schema = Self { server, name };
        schema.batch(&format!("CREATE SCHEMA {}", schema.name));
        Some(schema)
    }

    /// The URL under which it is the one schema there is.
    pub(crate) fn url(&self) -> String {
        let sign = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{sign}options=-csearch_path%3D{}", self.server, self.name)
    }

    pub(crate) fn options(&self) -> ServerOptions {
        ServerOptions::new(self.url(), STORE)
    }

    pub(crate) fn open(&self) -> Store {
        Store::connect(&self.options()).unwrap()
    }

    /// Runs statements in this schema.
    pub(crate) fn batch_within(&self, sql: &str) {
        self.batch(&format!("SET search_path = {}; {sql}", self.name));
    }

    /// Where the server listens, if the URL says it in numbers.
    pub(crate) fn address(&self) -> Option<std::net::SocketAddr> {
        self.server.split('@').next_back()?.split('/').next()?.parse().ok()
    }

    /// Runs statements on the server.
    pub(crate) fn batch(&self, sql: &str) {
        let run = || {
            block_on(async {
                let (client, connection) = tokio_postgres::connect(&self.server, NoTls).await.unwrap();
                let driver = tokio::spawn(connection);
                client.batch_execute(sql).await.unwrap();
                drop(client);
                driver.await.unwrap().unwrap();
            });
        };
        // The caller may be on a runtime.
        std::thread::scope(|scope| scope.spawn(run).join().unwrap());
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        self.batch(&format!("DROP SCHEMA {} CASCADE", self.name));
    }
}
