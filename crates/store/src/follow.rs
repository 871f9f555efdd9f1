//! Following: events as they come, from this process and from others, each once and in order.
//!
//! New events are read once for all followers of a process, and kept for a while. A follower holds no queue: it takes
//! the next page behind its own cursor, and waits for the store's word that there is more only when it has taken
//! everything. One that is slow is behind, holds nobody, and reads by itself what is no longer kept here; it loses
//! nothing until it is [`EVENT_RETENTION`](crate::EVENT_RETENTION) events behind, which it is told.

use std::sync::Arc;

use tokio::sync::watch;

use crate::error::StoreError;
use crate::event::{Cursor, Events};
use crate::principal::Principal;
use crate::shared_events::MAX_SHARED_EVENTS;
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
        self.read_up_to(newest).await?;
        match self.store.shared_events().page(&self.who, self.after, PAGE) {
            Some(page) => Ok(page),
            None => self.store.events_after(&self.who, self.after, PAGE).await,
        }
    }

    async fn read_up_to(&self, newest: Cursor) -> Result<(), StoreError> {
        let shared = self.store.shared_events();
        if shared.end() >= Some(newest) {
            return Ok(());
        }
        let _turn = shared.turn().await?;
        let end = shared.end();
        if end >= Some(newest) {
            return Ok(());
        }
        // Of what nobody followed for long only the newest are kept.
        let after = end.map(|end| end.max(Cursor(newest.0.saturating_sub(MAX_SHARED_EVENTS as u64))));
        let page = self.store.read_events(after, MAX_SHARED_EVENTS).await?;
        shared.keep(after, page);
        Ok(())
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
