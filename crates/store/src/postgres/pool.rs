//! Threads with a connection each, as many as work at once.
//!
//! The one used last is used next, so that a process that asks for one thing at a time has one connection. A caller
//! that finds all of them at work waits for a while, and is told that the store is busy.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::connection::PgTransaction;
use super::session::{Link, Session, failure, is_race};
use crate::db::{Caches, Db};
use crate::engine::Time;
use crate::error::{ServerError, StoreError};
use crate::identity::StoreId;

/// How long a caller waits for a thread.
const WAIT: Duration = Duration::from_secs(5);

/// Long reads at once, on connections beside those of the pool; further ones wait.
const LONG_READS: usize = 2;

/// How often a write is done that others overtake.
const ATTEMPTS: usize = 8;

type Job = Box<dyn FnOnce(&mut Worker) + Send>;

/// The threads of a store.
pub(super) struct Pool {
    link: Arc<Link>,
    /// One permit for each thread there may be, but for long reads.
    places: Arc<Semaphore>,
    /// One permit for each long read there may be.
    long: Arc<Semaphore>,
    /// Threads that wait for work (channels `store.pg`, of one job each); none once the pool ends.
    idle: Arc<Mutex<Option<Vec<SyncSender<Job>>>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Pool {
    pub(super) fn new(link: Arc<Link>, size: usize) -> Self {
        let places = Arc::new(Semaphore::new(size.max(1)));
        let long = Arc::new(Semaphore::new(LONG_READS));
        Self { link, places, long, idle: Arc::new(Mutex::new(Some(Vec::new()))), threads: Mutex::default() }
    }

    /// Runs something on a thread. Long reads wait for one another, and take nobody else's place.
    pub(super) async fn run<T, F>(&self, time: Time, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Worker) -> Result<T, StoreError> + Send + 'static,
    {
        let (place, _short) = match time {
            Time::Bounded => {
                let short = self.link.traffic.enter();
                let place = Arc::clone(&self.places).acquire_owned();
                (tokio::time::timeout(WAIT, place).await.map_err(|_| StoreError::Busy)?, Some(short))
            }
            Time::Unbounded => (Arc::clone(&self.long).acquire_owned().await, None),
        };
        let (reply, answer) = oneshot::channel();
        self.start(place.map_err(|_| StoreError::Closed)?, work, move |done| drop(reply.send(done)))?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// As [`Pool::run`], while the caller's thread waits.
    pub(super) fn run_blocking<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Worker) -> Result<T, StoreError> + Send + 'static,
    {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| StoreError::Busy)?;
        let (reply, answer) = sync_channel(1);
        self.start(place, work, move |done| drop(reply.send(done)))?;
        answer.recv().map_err(|_| StoreError::Closed)?
    }

    fn start<T, F>(
        &self,
        place: OwnedSemaphorePermit,
        work: F,
        answer: impl FnOnce(Result<T, StoreError>) + Send + 'static,
    ) -> Result<(), StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Worker) -> Result<T, StoreError> + Send + 'static,
    {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).as_mut().and_then(Vec::pop);
        let thread = match idle {
            Some(thread) => thread,
            None => self.spawn()?,
        };
        let (again, all) = (thread.clone(), Arc::clone(&self.idle));
        let job: Job = Box::new(move |worker| {
            // A panic in a caller's function ends that call alone; nobody hears of its transaction any more.
            let done = catch_unwind(AssertUnwindSafe(|| work(worker)));
            if done.is_err() {
                tracing::error!("a function that used the store panicked");
                worker.session = None;
            }
            if let Some(idle) = all.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                idle.push(again);
            }
            drop(place);
            answer(done.unwrap_or(Err(StoreError::Panicked)));
        });
        thread.send(job).map_err(|_| StoreError::Closed)
    }

    fn spawn(&self) -> Result<SyncSender<Job>, StoreError> {
        let failed = |error| StoreError::io("start a thread", error);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let worker =
            Worker { runtime, link: Arc::clone(&self.link), session: None, caches: Caches::default() };
        let (sender, jobs) = sync_channel(1);
        let thread =
            std::thread::Builder::new().name("store-pg".to_owned()).spawn(move || serve(worker, &jobs));
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread.map_err(failed)?);
        Ok(sender)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Threads end when nobody can send them work; those at work do it first.
        drop(self.idle.lock().unwrap_or_else(PoisonError::into_inner).take());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        crate::sqlite::join(threads);
    }
}

fn serve(mut worker: Worker, jobs: &Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        job(&mut worker);
    }
}

/// A thread with its connection.
pub(super) struct Worker {
    runtime: Runtime,
    link: Arc<Link>,
    session: Option<Session>,
    /// Of reads, which see nothing that is not committed.
    caches: Caches,
}

impl Worker {
    /// Makes the tables, if there are none and they may be made.
    pub(super) fn prepare_tables(&mut self, store: StoreId, makes_tables: bool) -> Result<(), StoreError> {
        self.session = Some(self.runtime.block_on(Session::open(&self.link, Some((store, makes_tables))))?);
        Ok(())
    }

    /// Connects, unless there is a connection that the server has not ended meanwhile.
    fn connect(&mut self) -> Result<(), StoreError> {
        // What came while nobody waited is looked at: the end of the connection is such a thing.
        self.flush();
        if self.session.as_ref().is_none_or(|session| session.client.is_closed()) {
            self.session = None;
            self.session = Some(self.runtime.block_on(Session::open(&self.link, None))?);
        }
        Ok(())
    }

    /// Sends what is to be sent, and takes what is there, without waiting.
    fn flush(&self) {
        self.runtime.block_on(async {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
        });
    }

    /// Runs a statement outside of any transaction.
    pub(super) fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        self.connect()?;
        let session = self.session.as_ref().ok_or(StoreError::Closed)?;
        self.link.trip();
        self.runtime.block_on(session.client.batch_execute(sql)).map_err(|error| failure(&error))
    }

    /// Runs a read in a snapshot of its own.
    pub(super) fn read<T>(
        &mut self,
        time: Time,
        work: impl FnOnce(&Db<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.connect()?;
        let session = self.session.as_ref().ok_or(StoreError::Closed)?;
        let (limit, deadline) = match time {
            Time::Bounded => (self.link.read.as_millis().max(1), Some(Instant::now() + self.link.read)),
            Time::Unbounded => (0, None),
        };
        let begin =
            format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = {limit}");
        let gives_way = time == Time::Unbounded;
        let transaction = PgTransaction::new(&self.runtime, session, &self.link, begin, deadline, gives_way);
        let done = work(&Db::new(&transaction, &self.caches));
        if transaction.has_begun() {
            // Nothing depends on how a read ends: its end is sent, and heard of with the next statement.
            let end = session.client.batch_execute("ROLLBACK");
            drop(futures_util::FutureExt::now_or_never(end));
            self.flush();
        }
        done
    }

    /// Runs a write, again where others were faster.
    pub(super) fn write<T>(
        &mut self,
        mut work: impl FnMut(&Db<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.write_once(&mut work) {
                Err(Failed { raced: true, .. }) if attempt < ATTEMPTS => {}
                done => return done.map_err(|failed| failed.error),
            }
        }
    }

    fn write_once<T>(
        &mut self,
        work: &mut impl FnMut(&Db<'_>) -> Result<T, StoreError>,
    ) -> Result<T, Failed> {
        self.connect()?;
        let session = self.session.as_ref().ok_or(StoreError::Closed)?;
        // All that write share the lock that forgetting has alone.
        let begin = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock_shared({}, 0)",
            session.space.cast_signed()
        );
        let transaction = PgTransaction::new(&self.runtime, session, &self.link, begin, None, false);
        let caches = Caches::default();
        let done = work(&Db::new(&transaction, &caches));
        if !transaction.has_begun() {
            return Ok(done?);
        }
        let last = match &done {
            Ok(_) if transaction.has_events() => {
                format!("NOTIFY {}; COMMIT", super::listener::channel(session.space))
            }
            Ok(_) => "COMMIT".to_owned(),
            Err(_) => "ROLLBACK".to_owned(),
        };
        self.link.trip();
        let ended = self.runtime.block_on(session.client.batch_execute(&last));
        match (done, ended) {
            (Ok(done), Ok(())) => Ok(done),
            (Ok(_), Err(error)) => {
                let failed = match failure(&error) {
                    StoreError::Server(ServerError::Lost(why)) => ServerError::Unacknowledged(why).into(),
                    other => other,
                };
                Err(Failed { error: failed, raced: is_race(&error) })
            }
            (Err(error), _) => Err(Failed { error, raced: transaction.raced() }),
        }
    }
}

/// Why a transaction was not committed.
struct Failed {
    error: StoreError,
    /// Whether it is worth doing again.
    raced: bool,
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self { error, raced: false }
    }
}
