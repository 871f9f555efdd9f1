//! Signs of life of a command: the time of files, marked while it runs.
//!
//! The outer helper gives them, which lives as long as the command: its supervisor may be stopped meanwhile.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

use rustix::event::Timespec;
use workspace::open_small_file;

use crate::running_commands::SIGN_OF_LIFE;

/// Pause between two of them, as it is waited for.
pub(super) const PAUSE: Timespec = Timespec { tv_sec: SIGN_OF_LIFE.as_secs() as i64, tv_nsec: 0 };

/// Files whose time is marked.
#[derive(Debug)]
pub(super) struct SignsOfLife {
    files: Vec<File>,
    next: Instant,
}

impl SignsOfLife {
    /// Opens the files, before other namespaces are entered. One that cannot be opened is passed over.
    pub(super) fn open(files: &[PathBuf]) -> Self {
        let files = files.iter().filter_map(|file| open_small_file(file).ok()).collect();
        Self { files, next: Instant::now() }
    }

    /// Marks the time, once a second.
    pub(super) fn give(&mut self) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + SIGN_OF_LIFE;
        for file in &self.files {
            // Nobody is told who could do something about it.
            let _ = file.set_modified(SystemTime::now());
        }
    }
}
