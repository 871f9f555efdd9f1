//! Threads that read, on connections that are kept with their statements prepared; each read is one snapshot. Long
//! reads have threads of their own, and pause between batches while others read.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc, oneshot};

use super::connection::{SqliteTransaction, failure};
use super::open::{self, Found};
use crate::db::{Caches, Db};
use crate::engine::{Answer, ShortRead, StatementCounter, Time, Traffic};
use crate::error::StoreError;

/// Reads that wait for a thread (channel `store.reads`); callers wait for a place.
const QUEUE: usize = 256;

/// How many steps SQLite takes between two looks at the clock.
const STEPS: i32 = 10_000;

/// Long reads at once; further ones wait.
const LONG_READS: usize = 2;

/// A read, given its snapshot, or why there is none. It answers whoever waits for it itself.
pub(super) type Read = Box<dyn FnOnce(Result<&Db<'_>, StoreError>) + Send>;

/// What a read holds until it is answered.
type ReadPlace<'a> = (Option<ShortRead>, Option<SemaphorePermit<'a>>);

pub(crate) struct Readers {
    queue: mpsc::Sender<Read>,
    found: Found,
    limit: Duration,
    /// Short reads, to which long ones give way.
    traffic: Arc<Traffic>,
    threads: Vec<JoinHandle<()>>,
    /// Places for long reads, and their threads.
    long: Semaphore,
    long_threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Readers {
    pub(crate) fn start(found: &Found, count: usize, limit: Duration) -> Result<Self, StoreError> {
        let (queue, reads) = mpsc::channel(QUEUE);
        let reads = Arc::new(Mutex::new(reads));
        let count = match count {
            0 => std::thread::available_parallelism().map_or(2, usize::from).min(4),
            count => count,
        };
        let mut threads = Vec::new();
        // To open one reads the whole schema: the first tells whether it can be, others come when two reads meet.
        let idle = Arc::new(Mutex::new(vec![Reader::open(found)?]));
        for _ in 0..count {
            let (found, idle, reads) = (found.clone(), Arc::clone(&idle), Arc::clone(&reads));
            let run = move || serve(&found, &idle, &reads, limit);
            let thread = std::thread::Builder::new().name("store-read".to_owned()).spawn(run);
            threads.push(thread.map_err(|error| StoreError::io("start a thread", error))?);
        }
        let (long, long_threads) = (Semaphore::new(LONG_READS), Mutex::default());
        let traffic = Arc::default();
        Ok(Self { queue, found: found.clone(), limit, traffic, threads, long, long_threads })
    }

    /// Does a read on one of the threads; what it answers comes by `answer`.
    pub(super) async fn run<T>(
        &self,
        time: Time,
        read: Read,
        answer: oneshot::Receiver<Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let _place = self.begin(time, read).await?;
        match answer.await.map_err(|_| StoreError::Closed)? {
            _ if self.found.is_changed() => Err(StoreError::Busy),
            Err(StoreError::TooLong(_)) => Err(StoreError::TooLong(self.limit.as_secs())),
            answer => answer,
        }
    }

    /// Begins a read. While what comes back is held, long reads give way to a short one, and a long one keeps its
    /// place.
    fn begin(&self, time: Time, read: Read) -> Answer<'_, ReadPlace<'_>> {
        Box::pin(async move {
            match time {
                Time::Bounded => {
                    let short = self.traffic.enter();
                    self.queue.send(read).await.map_err(|_| StoreError::Closed)?;
                    Ok((Some(short), None))
                }
                Time::Unbounded => {
                    let place = self.long.acquire().await.map_err(|_| StoreError::Closed)?;
                    self.start_long(read)?;
                    Ok((None, Some(place)))
                }
            }
        })
    }

    /// Does a read on a thread and a connection of its own.
    fn start_long(&self, read: Read) -> Result<(), StoreError> {
        let mut conn = open::reader(&self.found)?;
        let (traffic, counter) = (Arc::clone(&self.traffic), Arc::clone(&self.found.counter));
        let pause = move || {
            traffic.give_way();
            false
        };
        conn.progress_handler(STEPS, Some(pause)).map_err(failure)?;
        let run = move || answer(&conn, &Caches::default(), &counter, read);
        let thread = std::thread::Builder::new().name("store-read-long".to_owned()).spawn(run);
        let thread = thread.map_err(|error| StoreError::io("start a thread", error))?;
        let mut threads = self.long_threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(())
    }

    /// Ends the threads, when what is queued is done.
    pub(crate) fn stop(self) -> Vec<JoinHandle<()>> {
        drop(self.queue);
        let mut threads = self.threads;
        threads.extend(self.long_threads.into_inner().unwrap_or_else(PoisonError::into_inner));
        threads
    }
}

/// A connection that reads.
struct Reader {
    conn: Connection,
    caches: Caches,
    start: Instant,
    /// When the read has to end, in ms since `start`.
    deadline: Arc<AtomicU64>,
}

impl Reader {
    fn open(found: &Found) -> Result<Self, StoreError> {
        let mut conn = open::reader(found)?;
        let (start, deadline) = (Instant::now(), Arc::new(AtomicU64::new(u64::MAX)));
        let watched = Arc::clone(&deadline);
        let late = move || start.elapsed().as_millis() as u64 > watched.load(Ordering::Relaxed);
        conn.progress_handler(STEPS, Some(late)).map_err(failure)?;
        Ok(Self { conn, caches: Caches::default(), start, deadline })
    }

    fn answer(&self, counter: &StatementCounter, limit: Duration, read: Read) {
        let end = (self.start.elapsed() + limit).as_millis() as u64;
        self.deadline.store(end, Ordering::Relaxed);
        answer(&self.conn, &self.caches, counter, read);
    }
}

fn serve(found: &Found, idle: &Mutex<Vec<Reader>>, reads: &Mutex<mpsc::Receiver<Read>>, limit: Duration) {
    loop {
        let next = reads.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(read) = next else { return };
        let last = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match last.map_or_else(|| Reader::open(found), Ok) {
            Ok(reader) => {
                reader.answer(&found.counter, limit, read);
                idle.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
            }
            Err(error) => read(Err(error)),
        }
    }
}

/// Does a read in a snapshot of its own.
pub(super) fn answer(conn: &Connection, caches: &Caches, counter: &StatementCounter, read: Read) {
    // A panic in a caller's function ends that read alone.
    let done = catch_unwind(AssertUnwindSafe(|| match conn.execute_batch("BEGIN") {
        Ok(()) => read(Ok(&Db::new(&SqliteTransaction::reading(conn, counter), caches))),
        Err(error) => read(Err(failure(error))),
    }));
    if done.is_err() {
        tracing::error!("a function that read the store panicked");
    }
    if !conn.is_autocommit()
        && let Err(error) = conn.execute_batch("ROLLBACK")
    {
        tracing::warn!(%error, "a read of the store could not be ended");
    }
}
