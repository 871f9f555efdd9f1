//! Following: events as they come, from this process and from others, each once and in order.
//!
//! A follower holds no queue. It reads the next page behind its own cursor, and waits for the store's word that
//! there is more only when it has read everything: one that is slow is behind, and loses nothing until it is
//! [`EVENT_RETENTION`](crate::EVENT_RETENTION) events behind, which it is told.

use std::sync::Arc;

use tokio::sync::watch;

use crate::error::StoreError;
use crate::event::{Cursor, Events};
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
            self.newest.borrow_and_update();
            let page = self.store.events_after(&self.who, self.after, PAGE).await?;
            self.after = page.next;
            if page.missed || !page.events.is_empty() {
                return Ok(page);
            }
            self.newest.changed().await.map_err(|_| StoreError::Closed)?;
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
