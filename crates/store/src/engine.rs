//! What the rules of the store are written over: one transaction of a database engine.
//!
//! Statements are SQL that every engine reads (`?1` names a parameter), so that a rule stands once and a join is one
//! round trip. What engines do each in their own way (the search index, the clock, locks) are methods of
//! [`Transaction`]; none has a default.

mod counter;
mod traffic;
mod value;

use std::pin::Pin;

use loom::Millis;
use text::bigrams::Query;

use crate::error::StoreError;

pub(crate) use counter::StatementCounter;
pub use counter::StatementCounts;
pub(crate) use traffic::{ShortRead, Traffic};
pub(crate) use value::{FromValue, NONE, Params, Row, Value, ValueRef, params};

/// An answer of the store to come, on the heap: plans and imports are large, and futures hold futures.
pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Whether a read may take as long as it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    /// The read ends within [`crate::StoreLimits::read`].
    Bounded,
    /// An integrity check or a copy of everything: where others are not waited for.
    Unbounded,
}

/// Called with each row; returns whether the next one is wanted.
pub(crate) type Visit<'v> = &'v mut dyn FnMut(&Row<'_>) -> Result<bool, StoreError>;

/// What writers take turns at. What has a unique name in its table needs none: the loser is done again, and finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock<'a> {
    /// A tree, by its number, with all that belongs to it.
    Tree(i64),
    /// A lease, by its name.
    Lease(&'a str),
    /// Jobs, of all trees.
    Jobs,
    /// Sessions, and which trees they have.
    Sessions,
    /// What the home spends: what is reserved is compared with what is spent by one transaction after the other.
    Spending,
    /// The numbers of events: taken last, so that their order is that of commits.
    Events,
    /// The whole store: every other transaction that writes has ended.
    Everything,
}

/// One transaction that writes, or one snapshot that reads.
pub(crate) trait Transaction {
    /// Runs a statement that changes rows; returns how many rows it changed. An engine that has a parameter of its own
    /// may let go of the one given.
    fn execute(&self, sql: &str, params: &mut [Value<'_>]) -> Result<u64, StoreError>;

    /// Runs a statement that returns rows.
    fn query(&self, sql: &str, params: &[Value<'_>], visit: Visit<'_>) -> Result<(), StoreError>;

    /// As [`Transaction::query`], for an answer that may be large: no more than a page of it is in memory, where an
    /// engine would fetch the whole.
    fn scan(&self, sql: &str, params: &[Value<'_>], visit: Visit<'_>) -> Result<(), StoreError>;

    /// Runs one statement with many sets of parameters, in one round trip where there are round trips; the rows come
    /// in the order of the sets. A set for which there is no row is passed over.
    fn query_each(&self, sql: &str, sets: &[&[Value<'_>]], visit: Visit<'_>) -> Result<(), StoreError>;

    /// Whether each call is a round trip, so that it pays to ask for more than is needed yet.
    fn is_remote(&self) -> bool;

    /// Waits for other transactions that hold a lock, and holds it until this one ends. What is read after it is
    /// what they committed. A rule takes it before it reads what it then writes.
    fn lock(&self, lock: Lock<'_>) -> Result<(), StoreError>;

    /// Adds a node's text to the search index, if it has words.
    fn index(&self, node: i64, text: &str) -> Result<(), StoreError>;

    /// Takes a node's text out of the search index, which has to be told what it was.
    fn unindex(&self, node: i64, text: &str) -> Result<(), StoreError>;

    /// Calls `visit` with the numbers of nodes from `first` to `last` whose text may match, the greatest first.
    fn candidates(&self, query: &Query, first: i64, last: i64, visit: Visit<'_>) -> Result<(), StoreError>;

    /// The sum of [`crate::rows::check::pair_hash`] over the words of the index and their nodes; none where the engine
    /// does not tell them.
    fn index_sum(&self) -> Result<Option<u64>, StoreError>;

    fn now(&self) -> Result<Millis, StoreError>;

    /// What the engine itself finds wrong with its files.
    fn problems(&self) -> Result<Vec<String>, StoreError>;
}
