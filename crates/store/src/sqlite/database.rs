//! A database of SQLite: a file with its threads, or the one connection of a store in memory.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use super::maintenance;
use super::open::{self, Found, Options};
use super::readers::{Read, Readers};
use super::reading;
use super::watcher::Watcher;
use super::writer::{Job, Task, WriteConnection, Writer};
use crate::db::Db;
use crate::engine::StatementCounts;
use crate::engine::{Answer, Time};
use crate::error::StoreError;
use crate::event::Cursor;
use crate::home::Scratch;
use crate::identity::Backup;

pub(crate) struct Database {
    found: Found,
    newest: watch::Sender<Cursor>,
    /// From the first follower on.
    watcher: Mutex<Option<Watcher>>,
    /// None once the store is being dropped, and in memory.
    readers: Option<Readers>,
    /// None for reading only and in memory.
    writer: Option<Writer>,
    /// The one connection of a store in memory, used where it is asked.
    memory: Option<Mutex<WriteConnection>>,
}

impl Drop for Database {
    fn drop(&mut self) {
        // What waits in a queue is done, then its threads end: first those that read, then the writer, and last the one
        // that copies the log back. Connections that close in the same moment take each other for the last one, and
        // leave the log to the next process.
        let watcher = self.watcher.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let mut readers = self.readers.take().map(Readers::stop).unwrap_or_default();
        readers.extend(watcher.map(Watcher::stop));
        join(readers);
        join(self.writer.take().map(Writer::stop).unwrap_or_default());
    }
}

/// Waits until threads have ended.
pub(crate) fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads.into_iter().filter(|thread| thread.thread().id() != std::thread::current().id()) {
        if thread.join().is_err() {
            tracing::error!("a thread of the store panicked");
        }
    }
}

impl Database {
    /// As [`crate::Store::open_with`].
    pub(crate) fn open(path: &Path, options: &Options) -> Result<Self, StoreError> {
        Self::of(open::prepare(path, options)?, options)
    }

    /// As [`crate::Store::open_for_reading`].
    pub(crate) fn open_for_reading(
        path: &Path,
        scratch: &Scratch,
        options: &Options,
    ) -> Result<Self, StoreError> {
        Self::of(reading::prepare(path, scratch)?, options)
    }

    fn of(found: Found, options: &Options) -> Result<Self, StoreError> {
        let newest = watch::Sender::new(Cursor::default());
        let writer =
            if found.is_read_only() { None } else { Some(Writer::start(&found, options, newest.clone())?) };
        let readers = Some(Readers::start(&found, options.readers, options.limits.read)?);
        Ok(Self { found, newest, watcher: Mutex::new(None), readers, writer, memory: None })
    }

    /// As [`crate::Store::in_memory`].
    pub(crate) fn in_memory(options: &Options) -> Result<Self, StoreError> {
        let found = Found::memory();
        let newest = watch::Sender::new(Cursor::default());
        let conn = open::writer(&found, options)?;
        let memory = Some(Mutex::new(WriteConnection::new(conn, &found, options, newest.clone())?));
        Ok(Self { found, newest, watcher: Mutex::new(None), readers: None, writer: None, memory })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.found.path
    }

    pub(crate) const fn updated_from(&self) -> Option<u32> {
        self.found.updated_from
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.found.is_read_only()
    }

    pub(crate) const fn is_copy(&self) -> bool {
        self.found.is_copy
    }

    pub(crate) fn statement_counts(&self) -> StatementCounts {
        self.found.counter.counts()
    }

    /// Runs a read on a thread that reads; in memory, where there is one connection, on that which writes.
    pub(crate) fn read<T, F>(&self, time: Time, work: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let (reply, mut answer) = oneshot::channel();
        // Nobody waits any more: the answer goes nowhere.
        let read: Read = Box::new(move |db| drop(reply.send(db.and_then(work))));
        if let Some(memory) = &self.memory {
            memory.lock().unwrap_or_else(PoisonError::into_inner).read(read);
            return Box::pin(std::future::ready(answer.try_recv().unwrap_or(Err(StoreError::Panicked))));
        }
        match &self.readers {
            Some(readers) => Box::pin(readers.run(time, read, answer)),
            None => Box::pin(std::future::ready(Err(StoreError::Closed))),
        }
    }

    /// Runs a write in a transaction, which others may share.
    pub(crate) fn write<T, F>(&self, work: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnMut(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        if let Some(memory) = &self.memory {
            let (write, mut answer) = Task::boxed(work);
            memory.lock().unwrap_or_else(PoisonError::into_inner).commit(vec![write]);
            return Box::pin(std::future::ready(answer.try_recv().unwrap_or(Err(StoreError::Closed))));
        }
        match self.writer() {
            Ok(writer) => {
                let (write, answer) = Task::boxed(work);
                Box::pin(writer.run(Job::Write(write), answer))
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    /// Does something between two transactions.
    pub(super) fn run_alone<T, F>(&self, work: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        if let Some(memory) = &self.memory {
            let done = memory.lock().unwrap_or_else(PoisonError::into_inner).run_alone(work);
            return Box::pin(std::future::ready(done));
        }
        match self.writer() {
            Ok(writer) => {
                let (job, answer) = Job::alone(work);
                Box::pin(writer.run(job, answer))
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn writer(&self) -> Result<&Writer, StoreError> {
        self.writer.as_ref().ok_or(StoreError::ReadOnly)
    }

    /// Whether the file of the log is to be cut a piece at a time before all of it is cut.
    pub(super) fn has_long_log_file(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| writer.log.has_long_file())
    }

    /// Whether the log is to be begun anew before more is written that can wait.
    pub(super) fn has_long_log(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| writer.log.is_long())
    }

    /// The file, unless the store is in memory.
    pub(super) const fn file(&self) -> Option<&Found> {
        if self.memory.is_none() { Some(&self.found) } else { None }
    }

    /// As [`crate::Store::backup`].
    pub(crate) async fn copy(&self, to: &Path) -> Result<Backup, StoreError> {
        let (found, to) = (self.found.clone(), to.to_owned());
        self.read(Time::Unbounded, move |_| maintenance::copy(&found, &to)).await
    }

    /// As [`crate::Store::newest`].
    pub(crate) fn newest(&self) -> Result<watch::Receiver<Cursor>, StoreError> {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        // A store in memory has no other process.
        if watcher.is_none() && self.readers.is_some() {
            *watcher = Some(Watcher::start(&self.found, self.newest.clone())?);
        }
        Ok(self.newest.subscribe())
    }
}
