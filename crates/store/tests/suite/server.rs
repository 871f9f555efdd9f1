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

    /// Runs statements in this schema; whether they were taken.
    pub(crate) fn try_batch_within(&self, sql: &str) -> bool {
        let sql = format!("SET search_path = {}; {sql}", self.name);
        self.run(async |client| client.batch_execute(&sql).await.is_ok())
    }

    /// The columns of a table that are no part of its key, with their types.
    pub(crate) fn columns(&self, table: &str) -> Vec<(String, String)> {
        let sql = "SELECT c.column_name::text, c.data_type::text FROM information_schema.columns c
            WHERE c.table_schema = $1 AND c.table_name = $2 AND NOT EXISTS (
                SELECT 1 FROM information_schema.table_constraints t
                JOIN information_schema.key_column_usage k USING (constraint_schema, constraint_name)
                WHERE t.constraint_type = 'PRIMARY KEY' AND t.table_schema = c.table_schema
                    AND t.table_name = c.table_name AND k.column_name = c.column_name)";
        self.run(async |client| {
            let rows = client.query(sql, &[&self.name, &table]).await.unwrap();
            rows.iter().map(|row| (row.get(0), row.get(1))).collect()
        })
    }

    /// Where the server listens, if the URL says it in numbers.
    pub(crate) fn address(&self) -> Option<std::net::SocketAddr> {
        self.server.split('@').next_back()?.split('/').next()?.parse().ok()
    }

    /// Runs statements on the server.
    pub(crate) fn batch(&self, sql: &str) {
        self.run(async |client| client.batch_execute(sql).await.unwrap());
    }

    /// Does something on a connection of its own.
    fn run<T: Send>(&self, work: impl AsyncFnOnce(&tokio_postgres::Client) -> T + Send) -> T {
        let run = || {
            block_on(async {
                let (client, connection) = tokio_postgres::connect(&self.server, NoTls).await.unwrap();
                let driver = tokio::spawn(connection);
                let done = work(&client).await;
                drop(client);
                driver.await.unwrap().unwrap();
                done
            })
        };
        // The caller may be on a runtime.
        std::thread::scope(|scope| scope.spawn(run).join().unwrap())
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        self.batch(&format!("DROP SCHEMA {} CASCADE", self.name));
    }
}
