//! Statements within one transaction, and the names and authors that rows refer to by number.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use loom::{Author, AuthorKind, Digest, Millis, NodeId, TreeId};

use crate::engine::{FromValue, Params, Row, Transaction, Value, ValueRef};
use crate::error::StoreError;

/// Keys, and numbers of names, that a transaction remembers at most.
const KNOWN: usize = 1_024;

/// Names and authors met on a connection. They are never changed once committed; a writer, whose transaction may
/// still be rolled back, starts each one with empty caches.
#[derive(Debug, Default)]
pub(crate) struct Caches {
    names: RefCell<HashMap<(TreeKey, i64), Arc<str>>>,
    authors: RefCell<HashMap<(TreeKey, i64), Author>>,
}

/// The number of a tree in this store. Its nodes are numbered from 1 in their order, and `tree << 32 | number` is
/// the key of their rows: what a tree holds stands together, and two trees can be written at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TreeKey(pub(crate) i64);

impl TreeKey {
    /// The tree of a node's key.
    pub(crate) const fn of(node: i64) -> Self {
        Self(node >> 32)
    }

    /// The key of a node.
    pub(crate) const fn node(self, number: i64) -> i64 {
        self.0 << 32 | number
    }

    /// A key below those of all nodes.
    pub(crate) const fn first(self) -> i64 {
        self.node(0)
    }

    /// A key above those of all nodes.
    pub(crate) const fn last(self) -> i64 {
        self.node(u32::MAX as i64)
    }
}

/// The number in its tree of the node with a key.
pub(crate) const fn number_of(node: i64) -> i64 {
    node & u32::MAX as i64
}

/// One transaction, with what the rules of the store need of it.
pub(crate) struct Db<'c> {
    transaction: &'c dyn Transaction,
    caches: &'c Caches,
    /// Keys of nodes met in this transaction, and numbers of names.
    keys: RefCell<HashMap<NodeId, i64>>,
    numbers: RefCell<HashMap<(TreeKey, Box<str>), i64>>,
    /// The tree whose beginning was read last, and that, in ms.
    started: Cell<Option<(TreeKey, i64)>>,
    /// Events that have no number yet.
    happened: RefCell<Vec<(TreeKey, Vec<u8>)>>,
    /// How far the store's clock goes ahead of the engine's, in ms.
    ahead: Cell<i64>,
}

impl<'c> Db<'c> {
    pub(crate) fn new(transaction: &'c dyn Transaction, caches: &'c Caches) -> Self {
        Self {
            transaction,
            caches,
            keys: RefCell::default(),
            numbers: RefCell::default(),
            started: Cell::default(),
            happened: RefCell::default(),
            ahead: Cell::default(),
        }
    }

    pub(crate) const fn engine(&self) -> &'c dyn Transaction {
        self.transaction
    }

    /// Sets the clock ahead of the engine's, in ms.
    pub(crate) fn set_ahead(&self, ms: i64) {
        self.ahead.set(ms);
    }

    /// Now, by the engine's clock.
    pub(crate) fn now(&self) -> Result<Millis, StoreError> {
        Ok(Millis(self.transaction.now()?.0.saturating_add(self.ahead.get())))
    }

    /// Remembers an event until the transaction is about to end.
    pub(crate) fn happened(&self, tree: TreeKey, what: Vec<u8>) {
        self.happened.borrow_mut().push((tree, what));
    }

    /// The events remembered, oldest first.
    pub(crate) fn take_happened(&self) -> Vec<(TreeKey, Vec<u8>)> {
        self.happened.take()
    }

    /// Runs a statement; returns how many rows it changed.
    pub(crate) fn run(&self, sql: &str, params: impl Params) -> Result<u64, StoreError> {
        params.with(|params| self.transaction.execute(sql, params))
    }

    /// The first row, if there is one.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let (mut read, mut found) = (Some(read), None);
        self.each(sql, params, |row| {
            if let Some(read) = read.take() {
                found = Some(read(row)?);
            }
            Ok(false)
        })?;
        Ok(found)
    }

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
        params.with(|params| self.transaction.query(sql, params, &mut visit))
    }

    /// Each row of an answer that may be large, until `visit` says no.
    pub(crate) fn scan(
        &self,
        sql: &str,
        params: impl Params,
        mut visit: impl FnMut(&Row<'_>) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        params.with(|params| self.transaction.scan(sql, params, &mut visit))
    }

    /// The rows of one statement asked with each of many keys, in one go.
    pub(crate) fn all_of<'v, T, const N: usize>(
        &self,
        sql: &str,
        sets: impl IntoIterator<Item = [Value<'v>; N]>,
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let sets: Vec<[Value<'v>; N]> = sets.into_iter().collect();
        if sets.is_empty() {
            return Ok(Vec::new());
        }
        let sets: Vec<&[Value<'_>]> = sets.iter().map(|set| &set[..]).collect();
        let mut found = Vec::with_capacity(sets.len());
        self.transaction.query_each(sql, &sets, &mut |row| {
            found.push(read(row)?);
            Ok(true)
        })?;
        Ok(found)
    }

    /// Inserts a row that the engine numbers; returns its number.
    pub(crate) fn insert(&self, sql: &str, params: impl Params) -> Result<i64, StoreError> {
        let number = self.one(sql, params, |row| get(row, 0))?;
        number.ok_or_else(|| StoreError::Damaged("a row was inserted without a number".to_owned()))
    }

    /// The number of a name that is in use in a tree.
    pub(crate) fn name_number(&self, tree: TreeKey, name: &str) -> Result<Option<i64>, StoreError> {
        let key = (tree, Box::from(name));
        if let Some(number) = self.numbers.borrow().get(&key) {
            return Ok(Some(*number));
        }
        let sql = "SELECT n FROM names WHERE tree = ?1 AND name = ?2";
        let number = self.one(sql, (tree.0, name), |row| get(row, 0))?;
        if let Some(number) = number {
            note(&self.numbers, key, number);
        }
        Ok(number)
    }

    /// The number of a name in a tree, made if need be.
    pub(crate) fn intern(&self, tree: TreeKey, name: &str) -> Result<i64, StoreError> {
        if let Some(number) = self.name_number(tree, name)? {
            return Ok(number);
        }
        self.insert(
            "INSERT INTO names (tree, n, name)
             VALUES (?1, 1 + (SELECT coalesce(max(n), 0) FROM names WHERE tree = ?1), ?2) RETURNING n",
            (tree.0, name),
        )
    }

    /// The name with a number in a tree.
    pub(crate) fn name(&self, tree: TreeKey, number: i64) -> Result<Arc<str>, StoreError> {
        if let Some(name) = self.caches.names.borrow().get(&(tree, number)) {
            return Ok(Arc::clone(name));
        }
        let sql = "SELECT name FROM names WHERE tree = ?1 AND n = ?2";
        let name: Option<String> = self.one(sql, (tree.0, number), |row| get(row, 0))?;
        let missing = || StoreError::Damaged(format!("name {number} is missing in tree number {}", tree.0));
        let name: Arc<str> = name.ok_or_else(missing)?.into();
        self.caches.names.borrow_mut().insert((tree, number), Arc::clone(&name));
        Ok(name)
    }

    /// The number of an author in a tree, made if need be.
    pub(crate) fn intern_author(&self, tree: TreeKey, author: &Author) -> Result<i64, StoreError> {
        let kind = match author.kind {
            AuthorKind::Human => 0_i64,
            AuthorKind::Model => 1,
            AuthorKind::Tool => 2,
        };
        let name = self.intern(tree, &author.id)?;
        let profile = author.profile.map_or_else(Vec::new, |digest| digest.0.to_vec());
        let found = self.one(
            "SELECT n FROM authors WHERE tree = ?1 AND kind = ?2 AND name = ?3 AND profile = ?4",
            (tree.0, kind, name, &profile),
            |row| get(row, 0),
        )?;
        if let Some(number) = found {
            return Ok(number);
        }
        self.insert(
            "INSERT INTO authors (tree, n, kind, name, profile)
             VALUES (?1, 1 + (SELECT coalesce(max(n), 0) FROM authors WHERE tree = ?1), ?2, ?3, ?4) RETURNING n",
            (tree.0, kind, name, &profile),
        )
    }

    /// The author with a number in a tree.
    pub(crate) fn author(&self, tree: TreeKey, number: i64) -> Result<Author, StoreError> {
        if let Some(author) = self.caches.authors.borrow().get(&(tree, number)) {
            return Ok(author.clone());
        }
        let sql = "SELECT kind, name, profile FROM authors WHERE tree = ?1 AND n = ?2";
        let found = self.one(sql, (tree.0, number), |row| {
            Ok((get::<i64>(row, 0)?, get::<i64>(row, 1)?, get::<Vec<u8>>(row, 2)?))
        })?;
        let damaged =
            || StoreError::Damaged(format!("author {number} of tree number {} cannot be read", tree.0));
        let (kind, name, profile) = found.ok_or_else(damaged)?;
        let kind = match kind {
            0 => AuthorKind::Human,
            1 => AuthorKind::Model,
            2 => AuthorKind::Tool,
            _ => return Err(damaged()),
        };
        let profile = if profile.is_empty() { None } else { Some(digest_of(&profile)?) };
        let author = Author { kind, id: self.name(tree, name)?.to_string(), profile };
        self.caches.authors.borrow_mut().insert((tree, number), author.clone());
        Ok(author)
    }

    /// The number of a node in its tree; none when another tree has it or none.
    pub(crate) fn node_number(&self, tree: TreeKey, id: NodeId) -> Result<Option<i64>, StoreError> {
        let known = self.keys.borrow().get(&id).copied();
        let key = match known {
            Some(_) => known,
            None => self.one("SELECT pk FROM nodes WHERE id = ?1", [id.to_bytes()], |row| get(row, 0))?,
        };
        if let Some(key) = key {
            self.note_key(id, key);
        }
        Ok(key.filter(|key| TreeKey::of(*key) == tree).map(number_of))
    }

    /// Remembers the key of a node that was read or inserted.
    pub(crate) fn note_key(&self, id: NodeId, key: i64) {
        note(&self.keys, id, key);
    }

    /// The id of a node of a tree.
    pub(crate) fn node_id(&self, tree: TreeKey, number: i64) -> Result<NodeId, StoreError> {
        let id = self.one("SELECT id FROM nodes WHERE pk = ?1", [tree.node(number)], |row| id16(row, 0))?;
        let missing = || StoreError::Damaged(format!("node {number} is missing in tree number {}", tree.0));
        id.map(NodeId::from_bytes).ok_or_else(missing)
    }

    /// When a tree was made, in ms.
    pub(crate) fn started(&self, tree: TreeKey) -> Result<i64, StoreError> {
        if let Some((_, started)) = self.started.get().filter(|(of, _)| *of == tree) {
            return Ok(started);
        }
        let created = self.one("SELECT created FROM trees WHERE pk = ?1", [tree.0], |row| get(row, 0))?;
        let started = created.unwrap_or_default();
        self.started.set(Some((tree, started)));
        Ok(started)
    }

    /// The id of a tree.
    pub(crate) fn tree_id(&self, tree: TreeKey) -> Result<TreeId, StoreError> {
        let id = self.one("SELECT id FROM trees WHERE pk = ?1", [tree.0], |row| id16(row, 0))?;
        let missing = || StoreError::Damaged(format!("tree number {} is missing", tree.0));
        id.map(TreeId::from_bytes).ok_or_else(missing)
    }
}

/// Remembers what does not change within a transaction, unless much is remembered already.
fn note<K: Eq + Hash>(known: &RefCell<HashMap<K, i64>>, key: K, number: i64) {
    let mut known = known.borrow_mut();
    if known.len() < KNOWN {
        known.insert(key, number);
    }
}

/// A column. One of another type than the schema says is damage.
pub(crate) fn get<T: FromValue>(row: &Row<'_>, index: usize) -> Result<T, StoreError> {
    let value = row.value(index)?;
    T::from_value(value).ok_or_else(|| StoreError::Damaged(format!("column {index} is of another type")))
}

/// A column of bytes, without a copy.
pub(crate) fn bytes_of<'r>(row: &'r Row<'_>, index: usize) -> Result<&'r [u8], StoreError> {
    match row.value(index)? {
        ValueRef::Blob(bytes) => Ok(bytes),
        _ => Err(no_bytes(index)),
    }
}

fn no_bytes(index: usize) -> StoreError {
    StoreError::Damaged(format!("column {index} holds no bytes"))
}

/// A column of 16 bytes.
pub(crate) fn id16(row: &Row<'_>, index: usize) -> Result<[u8; 16], StoreError> {
    id_of(bytes_of(row, index)?)
}

fn id_of(bytes: &[u8]) -> Result<[u8; 16], StoreError> {
    bytes.try_into().map_err(|_| StoreError::Damaged(format!("an id has {} bytes", bytes.len())))
}

/// A column of 16 bytes, or nothing.
pub(crate) fn optional_id16(row: &Row<'_>, index: usize) -> Result<Option<[u8; 16]>, StoreError> {
    match row.value(index)? {
        ValueRef::Null => Ok(None),
        ValueRef::Blob(bytes) => id_of(bytes).map(Some),
        _ => Err(no_bytes(index)),
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
