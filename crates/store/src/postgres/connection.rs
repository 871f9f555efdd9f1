//! One transaction on a connection.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use loom::Millis;
use sha2::{Digest as _, Sha256};
use text::bigrams::Query;
use tokio::runtime::Runtime;

use super::search;
use super::session::{Link, Rows, Session, failure, is_race};
use crate::db::get;
use crate::engine::{Lock, Row, Transaction, Value, Visit};
use crate::error::StoreError;

/// Numbers of nodes that a search fetches at a time.
const CANDIDATES: i64 = 4_096;

/// Rows that a scan fetches at a time.
const PAGE: usize = 128;

/// A connection within a transaction.
pub(super) struct PgTransaction<'s> {
    runtime: &'s Runtime,
    session: &'s Session,
    link: &'s Link,
    /// What begins it, sent with the first statement.
    begin: RefCell<Option<String>>,
    /// When a read has to end.
    deadline: Option<Instant>,
    /// Whether it pauses between its statements while others read.
    gives_way: bool,
    raced: Cell<bool>,
    /// Whether followers are to be told.
    events: Cell<bool>,
    /// Scans under way, each within a row of the one before.
    scans: Cell<usize>,
}

impl<'s> PgTransaction<'s> {
    pub(super) const fn new(
        runtime: &'s Runtime,
        session: &'s Session,
        link: &'s Link,
        begin: String,
        deadline: Option<Instant>,
        gives_way: bool,
    ) -> Self {
        let (raced, events, scans) = (Cell::new(false), Cell::new(false), Cell::new(0));
        Self {
            runtime,
            session,
            link,
            begin: RefCell::new(Some(begin)),
            deadline,
            gives_way,
            raced,
            events,
            scans,
        }
    }

    /// Whether it was sent at all.
    pub(super) fn has_begun(&self) -> bool {
        self.begin.borrow().is_none()
    }

    /// Whether another transaction was faster, so that it is worth doing again.
    pub(super) const fn raced(&self) -> bool {
        self.raced.get()
    }

    pub(super) const fn has_events(&self) -> bool {
        self.events.get()
    }

    fn run(&self, sql: &str, sets: &[&[Value<'_>]]) -> Result<Vec<Rows>, StoreError> {
        self.send(|begin| self.runtime.block_on(self.session.run(begin, sql, sets)))
    }

    /// Runs a statement that is not prepared for the next time.
    fn run_once(&self, sql: &str, params: &[Value<'_>]) -> Result<Rows, StoreError> {
        self.send(|begin| self.runtime.block_on(self.session.run_once(begin, sql, params)))
    }

    fn send<T>(
        &self,
        send: impl FnOnce(Option<&str>) -> Result<Result<T, StoreError>, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(StoreError::TooLong(self.link.read.as_secs()));
        }
        if self.gives_way {
            self.link.traffic.give_way();
        }
        let begin = self.begin.take();
        self.link.trip();
        send(begin.as_deref()).unwrap_or_else(|error| {
            self.raced.set(self.raced.get() || is_race(&error));
            Err(match failure(&error) {
                StoreError::TooLong(_) => StoreError::TooLong(self.link.read.as_secs()),
                failure => failure,
            })
        })
    }
}

impl Transaction for PgTransaction<'_> {
    fn execute(&self, sql: &str, params: &mut [Value<'_>]) -> Result<u64, StoreError> {
        Ok(self.run(sql, &[params])?.iter().map(|rows| rows.changed).sum())
    }

    fn query(&self, sql: &str, params: &[Value<'_>], visit: Visit<'_>) -> Result<(), StoreError> {
        self.query_each(sql, &[params], visit)
    }

    fn scan(&self, sql: &str, params: &[Value<'_>], visit: Visit<'_>) -> Result<(), StoreError> {
        let depth = self.scans.get();
        self.run_once(&format!("DECLARE scan_{depth} NO SCROLL CURSOR FOR {sql}"), params)?;
        self.scans.set(depth + 1);
        let scanned = (|| loop {
            let page = self.run_once(&format!("FETCH {PAGE} FROM scan_{depth}"), &[])?.rows;
            for row in &page {
                if !visit(&Row::Postgres(row))? {
                    return Ok(());
                }
            }
            if page.len() < PAGE {
                return Ok(());
            }
        })();
        self.scans.set(depth);
        // After an error of the server its transaction is over, and the cursor with it.
        let closed = self.run_once(&format!("CLOSE scan_{depth}"), &[]);
        scanned.and(closed.map(drop))
    }

    /// The whole answer is fetched before the first row is shown: rows ask for more while they are read.
    fn query_each(&self, sql: &str, sets: &[&[Value<'_>]], visit: Visit<'_>) -> Result<(), StoreError> {
        for row in self.run(sql, sets)?.iter().flat_map(|answer| &answer.rows) {
            if !visit(&Row::Postgres(row))? {
                break;
            }
        }
        Ok(())
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn lock(&self, lock: Lock<'_>) -> Result<(), StoreError> {
        self.events.set(self.events.get() || lock == Lock::Events);
        // The keys of locks are two numbers of 32 bits.
        let mut key = [i64::from(self.session.space.cast_signed()), i64::from(key(lock))].map(Value::from);
        let sql = "SELECT 1 FROM pg_advisory_xact_lock(CAST(?1 AS INT), CAST(?2 AS INT))";
        self.execute(sql, &mut key).map(drop)
    }

    fn index(&self, node: i64, text: &str) -> Result<(), StoreError> {
        let tokens = search::tokens(text);
        if tokens.as_deref() == Some("") {
            return Ok(());
        }
        let sql =
            "INSERT INTO search (node, tokens) VALUES (?1, array_to_tsvector(string_to_array(?2, ' ')))";
        self.execute(sql, &mut [node.into(), tokens.into()]).map(drop)
    }

    fn unindex(&self, node: i64, _text: &str) -> Result<(), StoreError> {
        self.execute("DELETE FROM search WHERE node = ?1", &mut [node.into()]).map(drop)
    }

    fn candidates(&self, query: &Query, first: i64, last: i64, visit: Visit<'_>) -> Result<(), StoreError> {
        let sql = "SELECT node FROM search WHERE (tokens @@ CAST(?1 AS tsquery) OR tokens IS NULL)
            AND node BETWEEN ?2 AND ?3 ORDER BY node DESC LIMIT ?4";
        let (expression, mut last) = (search::expression(query), last);
        loop {
            let params: [Value<'_>; 4] = [(&expression).into(), first.into(), last.into(), CANDIDATES.into()];
            let (mut found, mut more) = (0, true);
            self.query(sql, &params, &mut |row| {
                found += 1;
                last = get::<i64>(row, 0)?.saturating_sub(1);
                more = visit(row)?;
                Ok(more)
            })?;
            if !more || found < CANDIDATES {
                return Ok(());
            }
        }
    }

    fn index_sum(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    fn now(&self) -> Result<Millis, StoreError> {
        let mut now = None;
        let sql = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";
        self.query(sql, &[], &mut |row| {
            now = Some(get(row, 0)?);
            Ok(false)
        })?;
        now.map(Millis).ok_or_else(|| StoreError::Damaged("the server has no clock".to_owned()))
    }

    /// A server looks after its files; an index it could not build it names.
    fn problems(&self) -> Result<Vec<String>, StoreError> {
        let mut problems = Vec::new();
        let sql = "SELECT CAST(CAST(i.indexrelid AS regclass) AS TEXT) FROM pg_index i
            JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace s ON s.oid = c.relnamespace
            WHERE s.nspname = current_schema() AND NOT i.indisvalid";
        self.query(sql, &[], &mut |row| {
            problems
                .push(format!("the index {} is not valid: rebuild it by REINDEX", get::<String>(row, 0)?));
            Ok(true)
        })?;
        Ok(problems)
    }
}

/// The second half of the key of a lock.
fn key(lock: Lock<'_>) -> i32 {
    match lock {
        Lock::Everything => 0,
        // Two that meet wait for each other, no more.
        Lock::Tree(number) => (number & i64::from(i32::MAX)) as i32,
        Lock::Events => -1,
        Lock::Jobs => -2,
        Lock::Sessions => -3,
        Lock::Spending => -4,
        Lock::Lease(name) => {
            let hash = Sha256::digest(name.as_bytes());
            i32::from_be_bytes([hash[0] | 0x80, hash[1], hash[2], hash[3] & 0x7f])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_different_things_have_different_keys() {
        let locks = [
            Lock::Everything,
            Lock::Tree(1),
            Lock::Tree(2),
            Lock::Events,
            Lock::Jobs,
            Lock::Sessions,
            Lock::Spending,
            Lock::Lease("a"),
            Lock::Lease("b"),
        ];
        let keys: std::collections::BTreeSet<i32> = locks.into_iter().map(key).collect();
        assert_eq!(keys.len(), locks.len());
    }
}
