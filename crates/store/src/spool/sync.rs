//! One thread of the process brings spools to the device, so that no thread that serves waits for a disk, and no
//! byte waits for the next one.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::disk::{self, Disk, fd};

/// How long bytes that were received wait for the device, at most.
pub const SYNC_EVERY: Duration = Duration::from_millis(250);

/// A spool's file as the thread sees it: opened once more, so that closing it gives nobody's lock away.
pub(super) struct SyncedFile {
    disk: Arc<dyn Disk>,
    file: File,
    dir: OwnedFd,
    state: Mutex<State>,
    /// Held while the file is brought to the device: who waits for it finds it there.
    syncing: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    is_dirty: bool,
    /// Whether the entry in the directory has been synced.
    entry_synced: bool,
    failed: bool,
}

impl SyncedFile {
    /// A file that is dirty, as every new one is.
    pub(super) fn new(disk: Arc<dyn Disk>, dir: &OwnedFd, name: &str) -> io::Result<Arc<Self>> {
        let file = disk::open_file_at(fd(dir), name, true)?;
        let (state, syncing) = (Mutex::default(), Mutex::new(()));
        let file = Arc::new(Self { disk, file, dir: dir.try_clone()?, state, syncing });
        file.mark_dirty();
        Ok(file)
    }

    /// Has the file brought to the device within [`SYNC_EVERY`].
    pub(super) fn mark_dirty(self: &Arc<Self>) {
        let newly = !std::mem::replace(&mut lock(&self.state).is_dirty, true);
        if newly {
            SYNCER.add(Arc::downgrade(self));
        }
    }

    /// Whether bringing it to the device failed, after which its state there is unknown.
    pub(super) fn has_failed(&self) -> bool {
        lock(&self.state).failed
    }

    pub(super) fn fail(&self) {
        lock(&self.state).failed = true;
    }

    /// Brings the file to the device. It is not tried again after a failure, because a second fsync can succeed
    /// without having saved.
    pub(super) fn sync(&self) -> io::Result<()> {
        let _turn = lock(&self.syncing);
        let entry_synced = {
            let mut state = lock(&self.state);
            if state.failed || !std::mem::take(&mut state.is_dirty) {
                return Ok(());
            }
            state.entry_synced
        };
        let mut synced = self.disk.sync(&self.file);
        if synced.is_ok() && !entry_synced {
            synced = disk::sync_dir(&*self.disk, fd(&self.dir));
        }
        let mut state = lock(&self.state);
        state.failed |= synced.is_err();
        state.entry_synced |= synced.is_ok();
        synced
    }
}

/// The files that are dirty, and the thread that waits for them.
struct Syncer {
    dirty: Mutex<Vec<Weak<SyncedFile>>>,
    added: Condvar,
}

static SYNCER: LazyLock<Syncer> = LazyLock::new(|| {
    let run = || -> () { SYNCER.run() };
    if let Err(error) = std::thread::Builder::new().name("spool-sync".to_owned()).spawn(run) {
        tracing::error!(%error, "spools are brought to the device only when they end");
    }
    Syncer { dirty: Mutex::default(), added: Condvar::new() }
});

impl Syncer {
    fn add(&self, file: Weak<SyncedFile>) {
        lock(&self.dirty).push(file);
        self.added.notify_one();
    }

    /// Brings everything dirty to the device together, [`SYNC_EVERY`] after the first of it at the latest.
    fn run(&self) {
        loop {
            let mut dirty = lock(&self.dirty);
            while dirty.is_empty() {
                dirty = self.added.wait(dirty).unwrap_or_else(PoisonError::into_inner);
            }
            drop(dirty);
            std::thread::sleep(SYNC_EVERY);
            let dirty = std::mem::take(&mut *lock(&self.dirty));
            for file in dirty.iter().filter_map(Weak::upgrade) {
                if let Err(error) = file.sync() {
                    tracing::warn!(%error, "a spool could not be brought to the device");
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
