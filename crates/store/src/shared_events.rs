//! Events that are read once for all followers of a store, and kept for a while.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit, watch};

use crate::error::StoreError;
use crate::event::{Cursor, Events, StoreEvent};
use crate::principal::Principal;

/// Events that are kept for followers; one that is further behind reads by itself.
pub(crate) const MAX_SHARED_EVENTS: usize = 4_096;

/// An event, and the session of its tree, by which it is told who sees it.
#[derive(Debug, Clone)]
pub(crate) struct SharedEvent {
    pub(crate) event: StoreEvent,
    pub(crate) session: Option<String>,
}

/// Events in their order, and how far they go.
#[derive(Debug)]
pub(crate) struct SharedPage {
    pub(crate) events: Vec<SharedEvent>,
    pub(crate) end: Cursor,
}

/// The newest events, read once for all followers of a store.
#[derive(Debug)]
pub(crate) struct SharedEvents {
    kept: Mutex<Option<EventCache>>,
    /// The one permit to read further.
    reading: Semaphore,
}

/// All events behind `start`, up to `end`.
#[derive(Debug)]
struct EventCache {
    start: Cursor,
    end: Cursor,
    events: VecDeque<SharedEvent>,
}

impl SharedEvents {
    pub(crate) const fn new() -> Self {
        Self { kept: Mutex::new(None), reading: Semaphore::const_new(1) }
    }

    /// How far events were read; none: not at all.
    pub(crate) fn end(&self) -> Option<Cursor> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|kept| kept.end)
    }

    /// The turn to read further, of one follower at a time.
    pub(crate) async fn turn(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        self.reading.acquire().await.map_err(|_| StoreError::Closed)
    }

    /// Keeps the events behind `after`; none: those to come.
    pub(crate) fn keep(&self, after: Option<Cursor>, page: SharedPage) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let start = after.unwrap_or(page.end);
        let kept = kept.get_or_insert_with(|| EventCache { start, end: start, events: VecDeque::new() });
        if kept.end < start {
            *kept = EventCache { start, end: start, events: VecDeque::new() };
        }
        kept.events.extend(page.events);
        kept.end = page.end;
        while kept.events.len() > MAX_SHARED_EVENTS
            && let Some(oldest) = kept.events.pop_front()
        {
            kept.start = oldest.event.cursor;
        }
    }

    /// The next page behind a cursor for a principal; none where not everything behind it is kept.
    pub(crate) fn page(&self, who: &Principal, after: Cursor, limit: usize) -> Option<Events> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.as_ref().filter(|kept| kept.start <= after)?;
        let first = kept.events.partition_point(|shared| shared.event.cursor <= after);
        let seen = kept.events.iter().skip(first);
        let seen = seen.filter(|shared| who.sees(shared.event.tree, shared.session.as_deref()));
        let events: Vec<StoreEvent> = seen.take(limit).map(|shared| shared.event.clone()).collect();
        let next = events.last().filter(|_| events.len() == limit).map_or(kept.end, |last| last.cursor);
        Some(Events { events, next: next.max(after), missed: false })
    }
}

/// Wakes followers, if there is something new.
pub(crate) fn tell(newest: &watch::Sender<Cursor>, last: Cursor) {
    newest.send_if_modified(|known| {
        let later = last > *known;
        if later {
            *known = last;
        }
        later
    });
}
