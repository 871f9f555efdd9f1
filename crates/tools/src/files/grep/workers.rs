//! Files searched by several threads, with the results in the order of the walk.
//!
//! The thread of the call walks, hands out files in batches, and takes the results back in the order in which the
//! batches went out; so what is found, and where it is enough, does not depend on which thread was faster. No more
//! than a few batches a thread are out at a time: that bounds results that wait, and folders held open. Threads are
//! started for the second batch; a few files are searched at once by the thread of the call.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope};
use std::time::Instant;

use loom::Digest;
use model::Cancel;
use workspace::{FileReader, OpenFolder, RelativePath, Root};

use super::matches::{FileMatches, Room, Search};
use crate::files::{MAX_BYTES, failed, masked};
use crate::tool::ToolScope;

/// Files of a batch.
const FILES: usize = 256;
/// Folders of a batch, each held open.
const FOLDERS: usize = 4;
/// Batches a thread that are out at a time.
const AHEAD: usize = 3;

/// A file to be searched.
pub(super) struct Candidate {
    pub(super) path: RelativePath,
    pub(super) folder: Arc<OpenFolder>,
    /// Index of the file in the folder's listing.
    pub(super) entry: usize,
    /// What the walk had passed over before it.
    pub(super) passed_over: usize,
}

/// What became of a file; a file in which nothing was found is not told of.
pub(super) enum Outcome {
    Matches(FileMatches),
    /// The file is no text, too long, or cannot be read.
    Unread,
}

/// What all threads need.
#[derive(Clone, Copy)]
pub(super) struct Job<'e> {
    pub(super) scope: &'e ToolScope,
    pub(super) root: &'e Root,
    pub(super) search: &'e Search,
    pub(super) cancel: &'e Cancel,
    pub(super) threads: usize,
    /// When no further file is searched.
    pub(super) until: Instant,
    /// Set where a file was not searched, as it was that late.
    pub(super) is_late: &'e AtomicBool,
}

type Batch = (usize, Vec<Candidate>);
type Outcomes = Vec<Outcome>;

/// Threads that search, and what is on the way to them and back.
pub(super) struct Workers<'s, 'e> {
    threads: &'s Scope<'s, 'e>,
    job: Job<'e>,
    is_enough: &'e AtomicBool,
    batch: Vec<Candidate>,
    /// None before a second batch, and where no thread can be started.
    work: Option<Sender<Batch>>,
    results: Option<Receiver<(usize, Outcomes)>>,
    /// Batches that went out, and those whose results were taken.
    sent: usize,
    taken: usize,
    /// Results that came before those of an earlier batch.
    early: BTreeMap<usize, Outcomes>,
}

impl<'s, 'e> Workers<'s, 'e> {
    /// `is_enough` is set when no more is wanted.
    pub(super) fn new(threads: &'s Scope<'s, 'e>, job: Job<'e>, is_enough: &'e AtomicBool) -> Self {
        Self {
            threads,
            job,
            is_enough,
            batch: Vec::new(),
            work: None,
            results: None,
            sent: 0,
            taken: 0,
            early: BTreeMap::new(),
        }
    }

    /// Adds a file. Gives `take` results, in order, until that says that it is enough. Returns whether more is wanted.
    pub(super) fn add(&mut self, candidate: Candidate, take: &mut dyn FnMut(Outcome) -> bool) -> bool {
        let last = self.batch.last();
        let is_same = last.is_some_and(|last| Arc::ptr_eq(&last.folder, &candidate.folder));
        let folders = self.batch.chunk_by(|one, other| Arc::ptr_eq(&one.folder, &other.folder)).count();
        if self.batch.len() < FILES && (is_same || folders < FOLDERS) {
            self.batch.push(candidate);
            return true;
        }
        let batch = std::mem::replace(&mut self.batch, vec![candidate]);
        self.send(batch, take)
    }

    /// Gives `take` the results that are left.
    pub(super) fn finish(mut self, take: &mut dyn FnMut(Outcome) -> bool) {
        let batch = std::mem::take(&mut self.batch);
        let mut goes_on = self.send(batch, take);
        self.work = None;
        while goes_on && self.taken < self.sent {
            goes_on = self.receive(take);
        }
        if !goes_on {
            self.is_enough.store(true, Ordering::Relaxed);
        }
    }

    fn send(&mut self, batch: Vec<Candidate>, take: &mut dyn FnMut(Outcome) -> bool) -> bool {
        // The only batch, or the first one: most searches have no more.
        if self.work.is_none() && (self.sent == 0 || !self.start()) {
            self.sent += 1;
            self.taken += 1;
            let outcomes = search(self.job, self.is_enough, &batch, &mut Readers::default());
            return self.give(outcomes, take);
        }
        let number = self.sent;
        if let Some(work) = &self.work {
            // They end only after this end is dropped.
            let _ = work.send((number, batch));
            self.sent += 1;
        }
        while self.sent - self.taken >= self.job.threads * AHEAD {
            if !self.receive(take) {
                return false;
            }
        }
        true
    }

    /// Starts the threads; false where one alone is wanted or none can be had.
    fn start(&mut self) -> bool {
        if self.job.threads < 2 {
            return false;
        }
        let (work, batches) = channel::<Batch>();
        let (answers, results) = channel();
        let batches = Arc::new(Mutex::new(batches));
        let (job, is_enough) = (self.job, self.is_enough);
        let mut started = 0;
        for _ in 0..job.threads {
            let (batches, answers) = (Arc::clone(&batches), answers.clone());
            let search = job.search.clone();
            let run = move || serve(Job { search: &search, ..job }, is_enough, &batches, &answers);
            started +=
                usize::from(Builder::new().name("grep".to_owned()).spawn_scoped(self.threads, run).is_ok());
        }
        if started > 0 {
            (self.work, self.results) = (Some(work), Some(results));
        }
        started > 0
    }

    /// Waits for the next results in order.
    fn receive(&mut self, take: &mut dyn FnMut(Outcome) -> bool) -> bool {
        let outcomes = loop {
            if let Some(outcomes) = self.early.remove(&self.taken) {
                break outcomes;
            }
            match self.results.as_ref().map(Receiver::recv) {
                Some(Ok((number, outcomes))) => self.early.insert(number, outcomes),
                // No thread is left.
                _ => return false,
            };
        };
        self.taken += 1;
        self.give(outcomes, take)
    }

    fn give(&self, outcomes: Outcomes, take: &mut dyn FnMut(Outcome) -> bool) -> bool {
        let goes_on = outcomes.into_iter().all(take);
        if !goes_on {
            self.is_enough.store(true, Ordering::Relaxed);
        }
        goes_on
    }
}

/// Searches batches until there are no more.
fn serve(
    job: Job<'_>,
    is_enough: &AtomicBool,
    batches: &Mutex<Receiver<Batch>>,
    answers: &Sender<(usize, Outcomes)>,
) {
    let mut reader = Readers::default();
    loop {
        let next = batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, batch)) = next else { return };
        let mut answer = Answer { number, outcomes: Vec::new(), answers };
        answer.outcomes = search(job, is_enough, &batch, &mut reader);
    }
}

/// What is found in a batch: it is told in any case, as somebody waits for it.
struct Answer<'a> {
    number: usize,
    outcomes: Outcomes,
    answers: &'a Sender<(usize, Outcomes)>,
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        // Nobody listens any more where enough was found.
        let _ = self.answers.send((self.number, std::mem::take(&mut self.outcomes)));
    }
}

/// The reader of a thread, made for the first file.
#[derive(Default)]
struct Readers(Option<FileReader>);

fn search(job: Job<'_>, is_enough: &AtomicBool, batch: &[Candidate], reader: &mut Readers) -> Outcomes {
    let mut outcomes = Outcomes::new();
    // What fills all that may be shown leaves no room for a file behind it.
    let mut room = Room::new(job.search.most);
    for candidate in batch {
        if room.is_full() || is_enough.load(Ordering::Relaxed) || job.cancel.is_cancelled() {
            break;
        }
        if Instant::now() >= job.until {
            job.is_late.store(true, Ordering::Relaxed);
            break;
        }
        let outcome = search_file(job, candidate, reader).unwrap_or(Some(Outcome::Unread));
        if let Some(Outcome::Matches(found)) = &outcome {
            room.count(&found.shown);
        }
        outcomes.extend(outcome);
    }
    outcomes
}

/// What becomes of a file; an error where it is not searched.
fn search_file(job: Job<'_>, candidate: &Candidate, reader: &mut Readers) -> Result<Option<Outcome>, String> {
    let Candidate { path, folder, entry, passed_over } = candidate;
    job.scope.require_read(job.root, path)?;
    let reader = match &mut reader.0 {
        Some(reader) => reader,
        none => none.insert(FileReader::new().map_err(|problem| problem.to_string())?),
    };
    let bytes = reader.read(folder, *entry, MAX_BYTES).map_err(|error| failed(&error))?;
    let named = job.root.shown(path);
    let text = masked(job.scope, &named, bytes)?;
    let shown = job.search.look(&named, &text);
    Ok(shown.map(|shown| {
        Outcome::Matches(FileMatches { digest: Digest::of(bytes), shown, passed_over: *passed_over })
    }))
}
