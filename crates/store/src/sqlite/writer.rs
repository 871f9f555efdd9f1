//! The one thread of this process that writes.
//!
//! Writes that wait are done together, in one transaction with one fsync: group commit. Each runs in a savepoint
//! of its own, so that a conflict takes back one write alone; when the transaction itself fails, each is done
//! again by itself. Between processes `BEGIN IMMEDIATE` gives the turn.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::hooks::Wal;
use rusqlite::{Connection, OptionalExtension as _};
use tokio::sync::{mpsc, oneshot, watch};

use super::connection::{SqliteTransaction, failure};
use super::faults::Faults;
use super::log::{self, Log};
use super::open::{self, Found, Options};
use super::readers::{self, Read};
use crate::db::{Caches, Db};
use crate::engine::StatementCounter;
use crate::error::StoreError;
use crate::event::Cursor;
use crate::rows::events;
use crate::schema::VERSION;
use crate::shared_events::tell;

/// Writes that wait (channel `store.writes`); callers wait for a place.
const QUEUE: usize = 256;

/// Writes done in one transaction at most.
const GROUP: usize = 64;

/// Pages of the search index that a commit merges at least, if it added to it. Each commit leaves a small segment;
/// sixteen make one of the next size, so that every page is written again some four times in a million commits: a
/// little of that in each keeps up, and no commit does much of it.
const MERGED: u64 = 4;

/// Pages merged for each page of text that was indexed: as often as a large segment is written again.
const MERGED_PER_PAGE: u64 = 4;

/// Free pages that stay with the file, to be used again.
const FREE: i64 = 1024;

/// The share of the file that stays free, as a divisor.
const FREE_SHARE: i64 = 8;

/// Pages that a commit gives back.
const GIVEN_BACK: i64 = 16;

/// A write that can be done again, until it is answered.
pub(crate) trait Write: Send {
    /// Does it; whether it succeeded.
    fn run(&mut self, db: &Db<'_>) -> bool;
    /// Says why it was not done.
    fn fail(&mut self, error: StoreError);
    fn failed(&self) -> bool;
    /// Answers whoever waits for it.
    fn answer(self: Box<Self>);
}

/// A function that writes, and how it ended.
pub(super) struct Task<T, F> {
    work: F,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Task<T, F>
where
    T: Send + 'static,
    F: FnMut(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
{
    /// A write, and where its answer comes.
    pub(super) fn boxed(work: F) -> (Box<dyn Write>, oneshot::Receiver<Result<T, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        (Box::new(Self { work, result: None, reply }), answer)
    }
}

impl<T, F> Write for Task<T, F>
where
    T: Send,
    F: FnMut(&Db<'_>) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, db: &Db<'_>) -> bool {
        let result = (self.work)(db);
        let done = result.is_ok();
        self.result = Some(result);
        done
    }

    fn fail(&mut self, error: StoreError) {
        self.result = Some(Err(error));
    }

    fn failed(&self) -> bool {
        matches!(self.result, Some(Err(_)))
    }

    fn answer(self: Box<Self>) {
        // Nobody waits any more: what was written stays written.
        drop(self.reply.send(self.result.unwrap_or(Err(StoreError::Closed))));
    }
}

pub(crate) enum Job {
    Write(Box<dyn Write>),
    /// Something no transaction may be open for.
    Alone(Box<dyn FnOnce(&Connection) + Send>),
}

impl Job {
    /// Work no transaction may be open for, and where its answer comes.
    pub(super) fn alone<T: Send + 'static>(
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        let job = Self::Alone(Box::new(move |conn| {
            let done = catch_unwind(AssertUnwindSafe(|| work(conn))).unwrap_or_else(|_| {
                tracing::error!("a function that had the store alone panicked");
                Err(StoreError::Panicked)
            });
            drop(reply.send(done));
        }));
        (job, answer)
    }
}

/// The face of the writing thread.
pub(crate) struct Writer {
    queue: mpsc::Sender<Job>,
    pub(crate) log: Arc<Log>,
    threads: Vec<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(
        found: &Found,
        options: &Options,
        newest: watch::Sender<Cursor>,
    ) -> Result<Self, StoreError> {
        let connection = WriteConnection::new(open::writer(found, options)?, found, options, newest)?;
        let (wake, woken) = sync_channel(1);
        let (queue, jobs) = mpsc::channel(QUEUE);
        let (log, writer) = (Arc::clone(&connection.log), queue.downgrade());
        let copied = Arc::clone(&log);
        let thread = Thread { connection, wake };
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
            thread.map_err(|error| StoreError::io("start a thread", error))
        };
        let checkpoints = open::checkpointer(found)?;
        let threads = vec![
            spawn("store-write", Box::new(move || thread.serve(jobs)))?,
            spawn("store-checkpoint", Box::new(move || copied.copy_back(&checkpoints, &woken, &writer)))?,
        ];
        Ok(Self { queue, log, threads })
    }

    /// Does a job on the thread that writes; what it answers comes by `answer`. Writes that wait are done together, and
    /// may be done again, if the transaction they share fails.
    pub(crate) async fn run<T>(
        &self,
        job: Job,
        answer: oneshot::Receiver<Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.queue.send(job).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Ends the threads, when what is queued is done.
    pub(crate) fn stop(self) -> Vec<JoinHandle<()>> {
        drop(self.queue);
        self.threads
    }
}

struct Thread {
    /// Closed before `wake` ends the thread that copies the log back, whose connection is the last one then.
    connection: WriteConnection,
    wake: SyncSender<()>,
}

/// The connection that writes, with what a commit is followed by.
pub(crate) struct WriteConnection {
    conn: Connection,
    counter: Arc<StatementCounter>,
    faults: Faults,
    newest: watch::Sender<Cursor>,
    log: Arc<Log>,
    /// Whether that was done for the log as it stands.
    told: Cell<bool>,
}

impl Thread {
    fn serve(self, mut jobs: mpsc::Receiver<Job>) {
        while let Some(first) = jobs.blocking_recv() {
            let mut group = Vec::new();
            let mut next = Some(first);
            while let Some(job) = next.take() {
                match job {
                    Job::Write(write) => group.push(write),
                    Job::Alone(work) => {
                        self.commit(std::mem::take(&mut group));
                        self.connection.run_alone(work);
                        self.shorten_log();
                    }
                }
                if group.len() < GROUP {
                    next = jobs.try_recv().ok();
                }
            }
            self.commit(group);
        }
    }

    fn commit(&self, group: Vec<Box<dyn Write>>) {
        self.connection.commit(group);
        self.shorten_log();
    }

    /// Wakes the thread that copies the log back, where it is long.
    fn shorten_log(&self) {
        if self.connection.log.is_worth_copying() {
            // One that is under way will see these pages too.
            self.wake.try_send(()).ok();
        }
    }
}

impl WriteConnection {
    pub(crate) fn new(
        mut conn: Connection,
        found: &Found,
        options: &Options,
        newest: watch::Sender<Cursor>,
    ) -> Result<Self, StoreError> {
        let log = Arc::new(Log::new(found.log(), options.limits.wal));
        let seen = Arc::clone(&log);
        let hook = move |_: &mut Wal, pages| {
            seen.note(pages);
            Ok(())
        };
        conn.wal_hook(Some(hook)).map_err(failure)?;
        let (faults, counter) = (options.faults.clone(), Arc::clone(&found.counter));
        Ok(Self { conn, counter, faults, newest, log, told: Cell::new(false) })
    }

    /// Does a read at once.
    pub(super) fn read(&self, read: Read) {
        readers::answer(&self.conn, &Caches::default(), &self.counter, read);
    }

    /// Does something outside of any transaction.
    pub(crate) fn run_alone<T>(&self, work: impl FnOnce(&Connection) -> T) -> T {
        let was_cut = self.log.is_cut();
        let answer = work(&self.conn);
        self.end_transaction();
        if was_cut {
            self.log.end_cut(&self.conn);
        }
        answer
    }

    /// Does writes in one transaction, and answers them.
    pub(super) fn commit(&self, mut group: Vec<Box<dyn Write>>) {
        if group.is_empty() {
            return;
        }
        match self.transaction(&mut group) {
            Ok(()) => {
                self.tell();
                if self.log.is_cut() {
                    self.log.end_cut(&self.conn);
                }
                let long = self.log.bytes() > self.log.limit;
                if long && !self.told.get() {
                    tracing::warn!(
                        bytes = self.log.bytes(),
                        "the store's log is long: a read that does not end holds it"
                    );
                }
                self.told.set(long);
            }
            Err(Failed::Whole(error)) => group.iter_mut().for_each(|write| write.fail(repeat(&error))),
            Err(Failed::One(_)) if group.len() > 1 => {
                group.into_iter().for_each(|write| self.commit(vec![write]));
                return;
            }
            Err(Failed::One(error)) => {
                for write in group.iter_mut().filter(|write| !write.failed()) {
                    write.fail(repeat(&error));
                }
            }
        }
        group.into_iter().for_each(Write::answer);
    }

    fn transaction(&self, group: &mut [Box<dyn Write>]) -> Result<(), Failed> {
        let begun = self.conn.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([]));
        begun.map_err(|error| Failed::Whole(failure(error)))?;
        let result = self.within(group);
        self.end_transaction();
        result
    }

    /// Rolls back what was not committed.
    fn end_transaction(&self) {
        if !self.conn.is_autocommit()
            && let Err(error) = self.conn.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction of the store could not be rolled back");
        }
    }

    fn within(&self, group: &mut [Box<dyn Write>]) -> Result<(), Failed> {
        self.check_version().map_err(Failed::Whole)?;
        let statement = |sql: &str| self.conn.prepare_cached(sql)?.execute([]).map(drop);
        let one = |error| Failed::One(failure(error));
        let mut indexed = 0;
        for write in group {
            statement("SAVEPOINT write").map_err(one)?;
            let caches = Caches::default();
            let transaction = SqliteTransaction::writing(&self.conn, &self.counter, &self.faults);
            let run = AssertUnwindSafe(|| write.run(&Db::new(&transaction, &caches)));
            let done = catch_unwind(run).unwrap_or_else(|_| {
                tracing::error!("a function that wrote the store panicked");
                write.fail(StoreError::Panicked);
                false
            });
            if done {
                indexed += transaction.indexed();
                statement("RELEASE write").map_err(one)?;
            } else if self.conn.is_autocommit() {
                // A full disk may end the whole transaction, with what the others wrote.
                return Err(Failed::One(StoreError::DiskFull));
            } else {
                statement("ROLLBACK TO write").map_err(one)?;
                statement("RELEASE write").map_err(one)?;
            }
        }
        if indexed > 0 {
            self.merge(indexed).map_err(one)?;
        }
        self.give_back().map_err(one)?;
        self.faults.step().map_err(Failed::One)?;
        statement("COMMIT").map_err(one)
    }

    fn tell(&self) {
        match events::last(&Db::new(
            &SqliteTransaction::reading(&self.conn, &self.counter),
            &Caches::default(),
        )) {
            Ok(last) => tell(&self.newest, last),
            // What looks for the writes of other processes will find it.
            Err(error) => tracing::warn!(%error, "the newest event could not be read"),
        }
    }

    /// Does this transaction's share of merging the search index, which took so many bytes of text.
    fn merge(&self, indexed: u64) -> rusqlite::Result<()> {
        let pages = MERGED + MERGED_PER_PAGE * (indexed / log::PAGE);
        let sql = "INSERT INTO search (search, rank) VALUES ('merge', ?1)";
        self.conn.prepare_cached(sql)?.execute([i32::try_from(pages).unwrap_or(i32::MAX)]).map(drop)
    }

    /// Does this transaction's share of giving free pages back, where a good part of the file is free. Not while the
    /// file is scrubbed, which looks at pages by number: this gives them others.
    fn give_back(&self) -> rusqlite::Result<()> {
        let number = |sql| self.conn.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0));
        let free = number("PRAGMA freelist_count")?;
        if free < FREE || free < number("PRAGMA page_count")? / FREE_SHARE {
            return Ok(());
        }
        match number("SELECT count(*) FROM meta WHERE key = 'scrub'")? {
            0 => self.conn.execute_batch(&format!("PRAGMA incremental_vacuum({GIVEN_BACK})")),
            _ => Ok(()),
        }
    }

    /// A newer program may have changed the file since it was opened.
    fn check_version(&self) -> Result<(), StoreError> {
        let mut statement =
            self.conn.prepare_cached("SELECT value FROM meta WHERE key = 'min_writer'").map_err(failure)?;
        let found: Option<u32> = statement.query_row([], |row| row.get(0)).optional().map_err(failure)?;
        let missing = || StoreError::Damaged("it does not say which programs may write it".to_owned());
        let min_writer = found.ok_or_else(missing)?;
        if min_writer <= VERSION {
            return Ok(());
        }
        let backup = format!("the copy beside it that ends in .v{VERSION}.bak");
        Err(StoreError::SchemaTooNew { found: min_writer, known: VERSION, backup })
    }
}

/// Why a transaction was not committed.
enum Failed {
    /// The transaction could not begin: none of its writes would fare better alone.
    Whole(StoreError),
    /// Something in it failed it for all.
    One(StoreError),
}

/// Copies an error for another waiter; one that cannot be copied becomes [`StoreError::Io`].
fn repeat(error: &StoreError) -> StoreError {
    match error {
        StoreError::Busy => StoreError::Busy,
        StoreError::DiskFull => StoreError::DiskFull,
        StoreError::ReadOnly => StoreError::ReadOnly,
        StoreError::Damaged(what) => StoreError::Damaged(what.clone()),
        StoreError::SchemaTooNew { found, known, backup } => {
            StoreError::SchemaTooNew { found: *found, known: *known, backup: backup.clone() }
        }
        other => {
            StoreError::Io { what: "write".to_owned(), source: std::io::Error::other(other.to_string()) }
        }
    }
}
