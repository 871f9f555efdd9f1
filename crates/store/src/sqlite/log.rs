//! The write-ahead log, which a thread of its own copies back into the file, and which is begun anew before it is long.
//!
//! SQLite begins a log anew when a transaction finds all of it copied back. While one writer follows the other that
//! never happens by itself, and the end of a copy is always behind them: so the writer copies the last few pages
//! itself. A log of gigabytes takes its room, is read when a store is opened after a crash, and takes a second to cut:
//! what an import left of it is cut a piece at a time.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::Receiver;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::connection::failure;
use super::writer::Job;
use crate::error::StoreError;

/// Bytes of a page, and of what the log writes before it.
pub(crate) const PAGE: u64 = 4096 + 24;

/// Pages in the log from which on it is copied back.
const WORTH_COPYING: i32 = 1000;

/// Pages that the writer copies itself, at most.
const REST: i32 = 512;

/// The `journal_size_limit` of a connection that cuts nothing.
pub(crate) const UNCUT: i64 = -1;

/// The log as the last transaction of this process left it.
pub(crate) struct Log {
    file: PathBuf,
    pages: AtomicI32,
    /// Bytes from which on it is reported, and cut where it begins anew; of a longer one as many at once, at most.
    pub(crate) limit: u64,
    /// Whether its file was longer than that when it was last looked at.
    has_long_file: AtomicBool,
    /// Whether the next transaction cuts it, if it begins it anew.
    is_cut: AtomicBool,
}

impl Log {
    pub(crate) const fn new(file: PathBuf, limit: u64) -> Self {
        let (has_long_file, is_cut) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { file, pages: AtomicI32::new(0), limit, has_long_file, is_cut }
    }

    /// The bytes of its file, of which it may use a part.
    fn file_bytes(&self) -> u64 {
        let bytes = self.file.metadata().map_or(0, |found| found.len());
        self.has_long_file.store(bytes > self.limit, Ordering::Relaxed);
        bytes
    }

    /// Whether its file is to be cut before all of it is cut at once.
    pub(crate) fn has_long_file(&self) -> bool {
        self.has_long_file.load(Ordering::Relaxed)
    }

    /// Has the next transaction of a connection cut it, if it begins it anew.
    fn cut(&self, conn: &Connection) -> rusqlite::Result<()> {
        let left = self.file_bytes().saturating_sub(self.limit).max(self.limit);
        conn.pragma_update(None, "journal_size_limit", i64::try_from(left).unwrap_or(i64::MAX))?;
        self.is_cut.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the next transaction is to cut it.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    /// Ends that after a transaction: one that begins it anew by itself would cut all at once.
    pub(crate) fn end_cut(&self, conn: &Connection) {
        self.is_cut.store(false, Ordering::Relaxed);
        if let Err(error) = conn.pragma_update(None, "journal_size_limit", UNCUT) {
            tracing::warn!(%error, "the store's log may be cut all at once");
        }
        self.file_bytes();
    }

    /// Notes how many pages it has.
    pub(crate) fn note(&self, pages: i32) {
        self.pages.store(pages, Ordering::Relaxed);
    }

    fn pages(&self) -> i32 {
        self.pages.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self) -> u64 {
        u64::try_from(self.pages()).unwrap_or_default() * PAGE
    }

    /// Whether it is time to begin it anew: while it has half its limit.
    pub(crate) fn is_long(&self) -> bool {
        self.bytes() >= self.limit / 2
    }

    pub(crate) fn is_worth_copying(&self) -> bool {
        self.pages() >= WORTH_COPYING || self.is_long() || self.has_long_file()
    }

    /// Copies it back whenever this is woken, without stopping anybody. Where it is long, the writer copies what came
    /// meanwhile, so that its next transaction begins it anew.
    pub(crate) fn copy_back(
        self: Arc<Self>,
        conn: &Connection,
        woken: &Receiver<()>,
        writer: &mpsc::WeakSender<Job>,
    ) {
        while woken.recv().is_ok() {
            let copied = match copy(conn) {
                Ok(copied) => copied,
                Err(error) => {
                    tracing::warn!(%error, "the store's log could not be copied back");
                    continue;
                }
            };
            let is_long = self.is_long() || self.file_bytes() > self.limit;
            if !is_long || self.pages() - copied > REST {
                continue;
            }
            let Some(writer) = writer.upgrade() else { continue };
            let (log, (reply, done)) = (Arc::clone(&self), oneshot::channel());
            let rest = move |conn: &Connection| {
                if copy(conn).is_ok_and(|copied| copied == log.pages()) {
                    log.note(0);
                    if let Err(error) = log.cut(conn) {
                        tracing::warn!(%error, "the store's log cannot be cut");
                    }
                }
                reply.send(()).ok();
            };
            if writer.blocking_send(Job::Alone(Box::new(rest))).is_ok() {
                drop(writer);
                // This thread copies nothing until then: two at once refuse each other.
                done.blocking_recv().ok();
            }
        }
    }
}

/// Copies what no reader holds; returns how many pages of the log are in the file.
fn copy(conn: &Connection) -> Result<i32, StoreError> {
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(2)).map_err(failure)
}
