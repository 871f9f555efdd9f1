//! Closing a store: the threads end in an order in which the last connection copies the log back.

use std::sync::PoisonError;
use std::thread::JoinHandle;

use super::SqliteStore;
use super::readers::Readers;
use super::watcher::Watcher;
use super::writer::Writer;

impl Drop for SqliteStore {
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
fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads.into_iter().filter(|thread| thread.thread().id() != std::thread::current().id()) {
        if thread.join().is_err() {
            tracing::error!("a thread of the store panicked");
        }
    }
}
