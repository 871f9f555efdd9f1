//! Statements on one connection, prepared once, with errors that say what they mean.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use loom::{Author, AuthorKind, Digest, NodeId, TreeId};
use rusqlite::{CachedStatement, Connection, ErrorCode, Params, Row, ffi};

use super::faults::Faults;
use crate::error::StoreError;

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

/// Names and authors met on a connection. They are never changed once committed; a writer, whose transaction may
/// still be rolled back, starts each one with empty caches.
#[derive(Debug, Default)]
pub(crate) struct Caches {
    names: RefCell<HashMap<i64, Arc<str>>>,
    authors: RefCell<HashMap<i64, Author>>,
}

/// One connection, within a transaction.
pub(crate) struct Db<'c> {
    conn: &'c Connection,
    caches: &'c Caches,
    faults: Option<&'c Faults>,
    indexed: Cell<u64>,
}

impl<'c> Db<'c> {
    pub(crate) const fn reading(conn: &'c Connection, caches: &'c Caches) -> Self {
        Self { conn, caches, faults: None, indexed: Cell::new(0) }
    }

    pub(crate) const fn writing(conn: &'c Connection, caches: &'c Caches, faults: &'c Faults) -> Self {
        Self { conn, caches, faults: Some(faults), indexed: Cell::new(0) }
    }

    /// Runs a statement; returns how many rows it changed.
    pub(crate) fn run(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        if let Some(faults) = self.faults {
            faults.step()?;
        }
        self.conn.prepare_cached(sql).and_then(|mut statement| statement.execute(params)).map_err(failure)
    }

    /// Counts bytes of text that came into the search index.
    pub(crate) fn count_indexed(&self, bytes: usize) {
        self.indexed.set(self.indexed.get() + bytes as u64);
    }

    /// Bytes of text that came into the search index here.
    pub(crate) const fn indexed(&self) -> u64 {
        self.indexed.get()
    }

    /// The number of the row inserted last.
    pub(crate) fn inserted(&self) -> i64 {
        self.conn.last_insert_rowid()
    }

    /// The first row, if there is one.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut statement = self.conn.prepare_cached(sql).map_err(failure)?;
        let mut rows = statement.query(params).map_err(failure)?;
        rows.next().map_err(failure)?.map(read).transpose()
    }

    /// A statement to be asked again and again: finding it among the prepared ones costs as much as a short answer.
    pub(crate) fn statement(&self, sql: &str) -> Result<Statement<'_>, StoreError> {
        self.conn.prepare_cached(sql).map(Statement).map_err(failure)
    }

    /// All rows.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        self.each(sql, params, |row| {
            found.push(read(row)?);
            Ok(true)
        })?;
        Ok(found)
    }

    /// Each row, until `visit` says no.
    pub(crate) fn each(
        &self,
        sql: &str,
        params: impl Params,
        mut visit: impl FnMut(&Row<'_>) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.conn.prepare_cached(sql).map_err(failure)?;
        let mut rows = statement.query(params).map_err(failure)?;
        while let Some(row) = rows.next().map_err(failure)? {
            if !visit(row)? {
                break;
            }
        }
        Ok(())
    }

    /// The number of a name that is in use.
    pub(crate) fn name_pk(&self, name: &str) -> Result<Option<i64>, StoreError> {
        self.one("SELECT pk FROM names WHERE name = ?1", [name], |row| get(row, 0))
    }

    /// The number of a name, made if need be.
    pub(crate) fn intern(&self, name: &str) -> Result<i64, StoreError> {
        if let Some(pk) = self.name_pk(name)? {
            return Ok(pk);
        }
        self.run("INSERT INTO names (name) VALUES (?1)", [name])?;
        Ok(self.inserted())
    }

    /// The name with a number.
    pub(crate) fn name(&self, pk: i64) -> Result<Arc<str>, StoreError> {
        if let Some(name) = self.caches.names.borrow().get(&pk) {
            return Ok(Arc::clone(name));
        }
        let name: Option<String> =
            self.one("SELECT name FROM names WHERE pk = ?1", [pk], |row| get(row, 0))?;
        let name: Arc<str> = name.ok_or_else(|| StoreError::Damaged(format!("name {pk} is missing")))?.into();
        self.caches.names.borrow_mut().insert(pk, Arc::clone(&name));
        Ok(name)
    }

    /// The number of an author, made if need be.
    pub(crate) fn intern_author(&self, author: &Author) -> Result<i64, StoreError> {
        let kind = match author.kind {
            AuthorKind::Human => 0,
            AuthorKind::Model => 1,
            AuthorKind::Tool => 2,
        };
        let name = self.intern(&author.id)?;
        let profile = author.profile.map_or_else(Vec::new, |digest| digest.0.to_vec());
        let found = self.one(
            "SELECT pk FROM authors WHERE kind = ?1 AND name = ?2 AND profile = ?3",
            (kind, name, &profile),
            |row| get(row, 0),
        )?;
        if let Some(pk) = found {
            return Ok(pk);
        }
        self.run("INSERT INTO authors (kind, name, profile) VALUES (?1, ?2, ?3)", (kind, name, &profile))?;
        Ok(self.inserted())
    }

    /// The author with a number.
    pub(crate) fn author(&self, pk: i64) -> Result<Author, StoreError> {
        if let Some(author) = self.caches.authors.borrow().get(&pk) {
            return Ok(author.clone());
        }
        let found = self.one("SELECT kind, name, profile FROM authors WHERE pk = ?1", [pk], |row| {
            Ok((get::<i64>(row, 0)?, get::<i64>(row, 1)?, get::<Vec<u8>>(row, 2)?))
        })?;
        let damaged = || StoreError::Damaged(format!("author {pk} cannot be read"));
        let (kind, name, profile) = found.ok_or_else(damaged)?;
        let kind = match kind {
            0 => AuthorKind::Human,
            1 => AuthorKind::Model,
            2 => AuthorKind::Tool,
            _ => return Err(damaged()),
        };
        let profile = if profile.is_empty() { None } else { Some(digest_of(&profile)?) };
        let author = Author { kind, id: self.name(name)?.to_string(), profile };
        self.caches.authors.borrow_mut().insert(pk, author.clone());
        Ok(author)
    }

    /// The number of a node of a tree.
    pub(crate) fn node_pk(&self, tree: i64, id: NodeId) -> Result<Option<i64>, StoreError> {
        let found = self.one("SELECT pk, tree FROM nodes WHERE id = ?1", [id.to_bytes()], |row| {
            Ok((get::<i64>(row, 0)?, get::<i64>(row, 1)?))
        })?;
        Ok(found.filter(|(_, of)| *of == tree).map(|(pk, _)| pk))
    }

    /// The id of a node.
    pub(crate) fn node_id(&self, pk: i64) -> Result<NodeId, StoreError> {
        let id = self.one("SELECT id FROM nodes WHERE pk = ?1", [pk], |row| id16(row, 0))?;
        id.map(NodeId::from_bytes).ok_or_else(|| StoreError::Damaged(format!("node number {pk} is missing")))
    }

    /// The id of a tree.
    pub(crate) fn tree_id(&self, pk: i64) -> Result<TreeId, StoreError> {
        let id = self.one("SELECT id FROM trees WHERE pk = ?1", [pk], |row| id16(row, 0))?;
        id.map(TreeId::from_bytes).ok_or_else(|| StoreError::Damaged(format!("tree number {pk} is missing")))
    }
}

/// Runs a read on a connection, in a snapshot of its own.
pub(crate) fn snapshot<T>(
    conn: &Connection,
    work: impl FnOnce(&Db<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    conn.execute_batch("BEGIN").map_err(failure)?;
    let answer = work(&Db::reading(conn, &Caches::default()));
    conn.execute_batch("ROLLBACK").map_err(failure)?;
    answer
}

/// A statement prepared for many questions.
pub(crate) struct Statement<'a>(CachedStatement<'a>);

impl Statement<'_> {
    /// The first row, if there is one.
    pub(crate) fn one<T>(
        &mut self,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut rows = self.0.query(params).map_err(failure)?;
        rows.next().map_err(failure)?.map(read).transpose()
    }
}

/// A column.
pub(crate) fn get<T: rusqlite::types::FromSql>(row: &Row<'_>, index: usize) -> Result<T, StoreError> {
    row.get(index).map_err(column_failure)
}

/// A column of another type than the schema says is damage.
fn column_failure(error: rusqlite::Error) -> StoreError {
    match error {
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..) => StoreError::Damaged(error.to_string()),
        other => failure(other),
    }
}

/// A column of bytes, without a copy.
pub(crate) fn bytes_of<'r>(row: &'r Row<'_>, index: usize) -> Result<&'r [u8], StoreError> {
    let value = row.get_ref(index).map_err(column_failure)?;
    value.as_blob().map_err(|error| StoreError::Damaged(format!("column {index}: {error}")))
}

/// A column of 16 bytes.
pub(crate) fn id16(row: &Row<'_>, index: usize) -> Result<[u8; 16], StoreError> {
    let bytes = bytes_of(row, index)?;
    bytes.try_into().map_err(|_| StoreError::Damaged(format!("an id has {} bytes", bytes.len())))
}

/// A column of 16 bytes, or nothing.
pub(crate) fn optional_id16(row: &Row<'_>, index: usize) -> Result<Option<[u8; 16]>, StoreError> {
    match row.get_ref(index).map_err(column_failure)? {
        rusqlite::types::ValueRef::Null => Ok(None),
        _ => id16(row, index).map(Some),
    }
}

/// A column with a digest.
pub(crate) fn digest(row: &Row<'_>, index: usize) -> Result<Digest, StoreError> {
    digest_of(bytes_of(row, index)?)
}

fn digest_of(bytes: &[u8]) -> Result<Digest, StoreError> {
    let fixed = bytes.try_into();
    fixed.map(Digest).map_err(|_| StoreError::Damaged(format!("a digest has {} bytes", bytes.len())))
}

/// A number that is never negative, as SQLite keeps it.
pub(crate) fn signed(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::Malformed("a number out of range".to_owned()))
}

/// A number that is never negative, as SQLite kept it.
pub(crate) fn unsigned(row: &Row<'_>, index: usize) -> Result<u64, StoreError> {
    let number: i64 = get(row, index)?;
    u64::try_from(number).map_err(|_| StoreError::Damaged(format!("column {index} is negative")))
}
