//! Following: events as they come, from this process and from others, each once and in order.
//!
//! New events are read once for all followers of a process, and kept for a while. A follower holds no queue: it takes
//! the next page behind its own cursor, and waits for the store's word that there is more only when it has taken
//! everything. One that is slow is behind, holds nobody, and reads by itself what is no longer kept here; it loses
//! nothing until it is [`EVENT_RETENTION`](crate::EVENT_RETENTION) events behind, which it is told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, watch};

use crate::error::StoreError;
use crate::event::{Cursor, Events, StoreEvent};
use crate::principal::Principal;
use crate::store::Store;

/// Events read at a time.
const PAGE: usize = 256;

/// Follows a store from a cursor on, with the eyes of a principal: at most 200 ms behind other processes, at once
/// within this one (spec: security §7).
///
/// # Errors
/// As [`Store::newest`].
pub fn follow(store: Arc<Store>, who: Principal, after: Cursor) -> Result<Follower, StoreError> {
    let newest = store.newest()?;
    Ok(Follower { store, who, after, newest })
}

/// Reads events as they come.
pub struct Follower {
    store: Arc<Store>,
    who: Principal,
    after: Cursor,
    newest: watch::Receiver<Cursor>,
}

impl Follower {
    /// The next events, at least one unless some were missed. Waits for them. Dropping the future loses none.
    ///
    /// # Errors
    /// What [`Store::events_after`] fails with; asked again, it goes on where it was.
    pub async fn next(&mut self) -> Result<Events, StoreError> {
        loop {
            // Seen before reading: what is written meanwhile wakes.
            let newest = *self.newest.borrow_and_update();
            let page = self.page(newest).await?;
            self.after = page.next;
            if page.missed || !page.events.is_empty() {
                return Ok(page);
            }
            self.newest.changed().await.map_err(|_| StoreError::Closed)?;
        }
    }

    /// The next page: out of what is kept, which is read up to `newest` if nobody did so yet.
    async fn page(&self, newest: Cursor) -> Result<Events, StoreError> {
        let shared = self.store.shared_events();
        shared.read_up_to(&self.store, newest).await?;
        match shared.page(&self.who, self.after) {
            Some(page) => Ok(page),
            None => self.store.events_after(&self.who, self.after, PAGE).await,
        }
    }

    /// What was read so far: where another follower goes on.
    pub const fn cursor(&self) -> Cursor {
        self.after
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").field("who", &self.who).field("after", &self.after).finish_non_exhaustive()
    }
}

/// Events that are kept for followers; one that is further behind reads by itself.
const MAX_SHARED_EVENTS: usize = 4_096;

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
    fn end(&self) -> Option<Cursor> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|kept| kept.end)
    }

    async fn read_up_to(&self, store: &Store, newest: Cursor) -> Result<(), StoreError> {
        if self.end() >= Some(newest) {
            return Ok(());
        }
        let _turn = self.reading.acquire().await.map_err(|_| StoreError::Closed)?;
        let end = self.end();
        if end >= Some(newest) {
            return Ok(());
        }
        // Of what nobody followed for long only the newest are kept.
        let after = end.map(|end| end.max(Cursor(newest.0.saturating_sub(MAX_SHARED_EVENTS as u64))));
        let page = store.read_events(after, MAX_SHARED_EVENTS).await?;
        self.keep(after, page);
        Ok(())
    }

    /// Keeps the events behind `after`; none: those to come.
    fn keep(&self, after: Option<Cursor>, page: SharedPage) {
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
    fn page(&self, who: &Principal, after: Cursor) -> Option<Events> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.as_ref().filter(|kept| kept.start <= after)?;
        let first = kept.events.partition_point(|shared| shared.event.cursor <= after);
        let seen = kept.events.iter().skip(first);
        let seen = seen.filter(|shared| who.sees(shared.event.tree, shared.session.as_deref()));
        let events: Vec<StoreEvent> = seen.take(PAGE).map(|shared| shared.event.clone()).collect();
        let next = events.last().filter(|_| events.len() == PAGE).map_or(kept.end, |last| last.cursor);
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
