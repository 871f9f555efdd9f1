//! One SQLite connection within a transaction.

use std::cell::{Cell, OnceCell};
use std::collections::HashSet;
use std::time::SystemTime;

use loom::Millis;
use rusqlite::{Connection, ErrorCode, StatementStatus, ffi, types, types::ToSqlOutput};
use text::bigrams::{Query, index_text};

use super::faults::Faults;
use crate::engine::{Lock, Row, StatementCounter, Transaction, Value, ValueRef, Visit};
use crate::error::StoreError;
use crate::identity::random;
use crate::rows::check::pair_hash;
use crate::rows::forget::NOTE;

/// What a failure of SQLite means. How long a read that was ended could take is told by those who ended it.
pub(crate) fn failure(error: rusqlite::Error) -> StoreError {
    // The index of the log could not grow: no room, though SQLite does not call it that.
    if error.sqlite_error().is_some_and(|found| found.extended_code == ffi::SQLITE_IOERR_SHMSIZE) {
        return StoreError::DiskFull;
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy,
        Some(ErrorCode::DiskFull) => StoreError::DiskFull,
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged(error.to_string()),
        Some(ErrorCode::NotADatabase) => StoreError::Damaged("it does not begin like a store".to_owned()),
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly,
        Some(ErrorCode::OperationInterrupted) => StoreError::TooLong(0),
        _ => StoreError::Sqlite(error),
    }
}

/// A column of a row of SQLite.
pub(crate) fn column<'r>(row: &'r rusqlite::Row<'_>, index: usize) -> Result<ValueRef<'r>, StoreError> {
    let damaged = |what: &str| StoreError::Damaged(format!("column {index} {what}"));
    Ok(match row.get_ref(index).map_err(failure)? {
        types::ValueRef::Null => ValueRef::Null,
        types::ValueRef::Integer(number) => ValueRef::Integer(number),
        types::ValueRef::Blob(bytes) => ValueRef::Blob(bytes),
        types::ValueRef::Text(bytes) => {
            ValueRef::Text(str::from_utf8(bytes).map_err(|_| damaged("is no text"))?)
        }
        types::ValueRef::Real(_) => return Err(damaged("is of a type that no column has")),
    })
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => types::ValueRef::Null,
            Self::Integer(number) => types::ValueRef::Integer(*number),
            Self::Text(text) => types::ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => types::ValueRef::Blob(bytes),
            Self::Short { bytes, len } => types::ValueRef::Blob(&bytes[..usize::from(*len)]),
        }))
    }
}

/// A connection within a transaction.
pub(crate) struct SqliteTransaction<'c> {
    conn: &'c Connection,
    counter: &'c StatementCounter,
    faults: Option<&'c Faults>,
    /// Bytes of text that came into the search index.
    indexed: Cell<u64>,
    /// Words that are borders of pages of the search index, once one was taken out of it.
    borders: OnceCell<HashSet<Vec<u8>>>,
}

impl<'c> SqliteTransaction<'c> {
    pub(crate) const fn reading(conn: &'c Connection, counter: &'c StatementCounter) -> Self {
        Self { conn, counter, faults: None, indexed: Cell::new(0), borders: OnceCell::new() }
    }

    pub(crate) const fn writing(
        conn: &'c Connection,
        counter: &'c StatementCounter,
        faults: &'c Faults,
    ) -> Self {
        Self { conn, counter, faults: Some(faults), indexed: Cell::new(0), borders: OnceCell::new() }
    }

    /// Bytes of text that came into the search index here.
    pub(crate) const fn indexed(&self) -> u64 {
        self.indexed.get()
    }
}

impl SqliteTransaction<'_> {
    /// Notes that a word which is in no text any more stands in the index as the border of a page: merging takes it
    /// out. Borders are the beginnings of words, as long as they have to be to tell one from the one before.
    fn note_borders(&self, text: &str) -> Result<(), StoreError> {
        let sql = "SELECT term FROM search_idx WHERE length(term) > 1";
        let borders = match self.borders.get() {
            Some(borders) => borders,
            None => {
                let mut borders = HashSet::new();
                self.query(sql, &[], &mut |row| {
                    // The first byte names the index that it is part of.
                    borders.extend(crate::db::bytes_of(row, 0)?.get(1..).map(<[u8]>::to_vec));
                    Ok(true)
                })?;
                self.borders.get_or_init(|| borders)
            }
        };
        for word in text::bigrams::tokenize(text) {
            if !borders.contains(word.as_bytes()) {
                continue;
            }
            let mut stands = false;
            let word = format!("\"{word}\"");
            self.query(
                "SELECT 1 FROM search WHERE search MATCH ?1 LIMIT 1",
                &[(&*word).into()],
                &mut |_| {
                    stands = true;
                    Ok(false)
                },
            )?;
            if !stands {
                self.execute(NOTE, &mut [super::scrub::BORDERS.into(), random()?.into()])?;
            }
        }
        Ok(())
    }
}

/// Steps a statement took since its counter stood at `before`. It is never reset: SQLite looks at the clock of a read
/// whenever it has grown by so much, over many short runs of a statement too.
fn steps_since(statement: &rusqlite::Statement<'_>, before: i32) -> i32 {
    statement.get_status(StatementStatus::VmStep).wrapping_sub(before)
}

/// Calls `visit` with the rows of an answer; whether it wants more.
fn each(rows: &mut rusqlite::Rows<'_>, visit: Visit<'_>) -> Result<bool, StoreError> {
    while let Some(row) = rows.next().map_err(failure)? {
        if !visit(&Row::Sqlite(row))? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Transaction for SqliteTransaction<'_> {
    fn execute(&self, sql: &str, params: &mut [Value<'_>]) -> Result<u64, StoreError> {
        if let Some(faults) = self.faults {
            faults.step()?;
        }
        let mut statement = self.conn.prepare_cached(sql).map_err(failure)?;
        for (number, value) in (1..).zip(params) {
            statement.raw_bind_parameter(number, &*value).map_err(failure)?;
            // SQLite copied it: what was made for the statement alone does not stand beside its row.
            *value = Value::Null;
        }
        let before = statement.get_status(StatementStatus::VmStep);
        let done = statement.raw_execute();
        self.counter.add(1, steps_since(&statement, before));
        done.map(|rows| rows as u64).map_err(failure)
    }

    fn query(&self, sql: &str, params: &[Value<'_>], visit: Visit<'_>) -> Result<(), StoreError> {
        self.query_each(sql, &[params], visit)
    }

    fn scan(&self, sql: &str, params: &[Value<'_>], visit: Visit<'_>) -> Result<(), StoreError> {
        self.query(sql, params, visit)
    }

    fn query_each(&self, sql: &str, sets: &[&[Value<'_>]], visit: Visit<'_>) -> Result<(), StoreError> {
        let mut statement = self.conn.prepare_cached(sql).map_err(failure)?;
        if let Some(faults) = self.faults.filter(|_| !statement.readonly()) {
            faults.step()?;
        }
        let (mut ran, before) = (0, statement.get_status(StatementStatus::VmStep));
        let mut run = || {
            for params in sets {
                ran += 1;
                let mut rows = statement.query(rusqlite::params_from_iter(*params)).map_err(failure)?;
                if !each(&mut rows, visit)? {
                    break;
                }
            }
            Ok(())
        };
        let done = run();
        self.counter.add(ran, steps_since(&statement, before));
        done
    }

    fn is_remote(&self) -> bool {
        false
    }

    /// A transaction that writes is the only one.
    fn lock(&self, _lock: Lock<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    fn index(&self, node: i64, text: &str) -> Result<(), StoreError> {
        let text = index_text(text);
        if text.is_empty() {
            return Ok(());
        }
        self.execute(
            "INSERT INTO search (rowid, text) VALUES (?1, ?2)",
            &mut [node.into(), (&*text).into()],
        )?;
        self.indexed.set(self.indexed.get() + text.len() as u64);
        Ok(())
    }

    fn unindex(&self, node: i64, text: &str) -> Result<(), StoreError> {
        let indexed = index_text(text);
        if indexed.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO search (search, rowid, text) VALUES ('delete', ?1, ?2)";
        self.execute(sql, &mut [node.into(), (&*indexed).into()])?;
        self.note_borders(text)
    }

    /// The index says which nodes have all the tokens, newest first; it keeps no places, which would double its size.
    fn candidates(&self, query: &Query, first: i64, last: i64, visit: Visit<'_>) -> Result<(), StoreError> {
        let sql =
            "SELECT rowid FROM search WHERE search MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC";
        self.query(sql, &[expression(query).into(), first.into(), last.into()], visit)
    }

    fn index_sum(&self) -> Result<Option<u64>, StoreError> {
        let is_reader: bool =
            self.conn.query_row("PRAGMA query_only", [], |row| row.get(0)).map_err(failure)?;
        // A table of this connection alone, which shows what is in the index.
        let words =
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.search_words USING fts5vocab(main, search, instance)";
        self.conn
            .execute_batch(&format!("PRAGMA query_only = OFF; {words}; PRAGMA query_only = {is_reader}"))
            .map_err(failure)?;
        let mut sum = 0_u64;
        self.query("SELECT term, doc FROM temp.search_words", &[], &mut |row| {
            let (word, node): (String, i64) = (crate::db::get(row, 0)?, crate::db::get(row, 1)?);
            sum = sum.wrapping_add(pair_hash(&word, node));
            Ok(true)
        })?;
        Ok(Some(sum))
    }

    /// The machine's clock, which is SQLite's too; SQLite's own words know no year above 9999.
    fn now(&self) -> Result<Millis, StoreError> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
    }

    fn problems(&self) -> Result<Vec<String>, StoreError> {
        let mut problems = Vec::new();
        self.query("PRAGMA integrity_check", &[], &mut |row| {
            problems.push(crate::db::get::<String>(row, 0)?);
            Ok(true)
        })?;
        problems.retain(|line| line != "ok");
        Ok(problems)
    }
}

/// What the index is asked: that every token stands in the text, in any order.
fn expression(query: &Query) -> String {
    let quoted =
        query.tokens().map(|(token, prefix)| format!("\"{token}\"{}", if prefix { " *" } else { "" }));
    quoted.collect::<Vec<_>>().join(" AND ")
}
