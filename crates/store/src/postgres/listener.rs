//! The thread that hears of commits, those of this process among them. It runs from the first follower on.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use super::session::{Link, failure, space};
use crate::error::StoreError;
use crate::event::Cursor;
use crate::shared_events::tell;

/// How long it waits before it connects again.
const AGAIN: Duration = Duration::from_secs(1);

/// The thread, which ends when this is dropped.
pub(super) struct Listener {
    /// Never sent on: closing it ends the thread at once (channel `store.listen`).
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The channel on which commits of a store are told of.
pub(super) fn channel(space: u32) -> String {
    format!("drawloom_{space}")
}

impl Listener {
    pub(super) fn start(link: Arc<Link>, newest: watch::Sender<Cursor>) -> Result<Self, StoreError> {
        let failed = |error| StoreError::io("start a thread", error);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (stop, mut stopped) = oneshot::channel();
        let run = move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        _ = &mut stopped => return,
                        Err(error) = listen(&link, &newest) => {
                            tracing::warn!(%error, "what other processes write is not noticed");
                        }
                    }
                    tokio::select! {
                        _ = &mut stopped => return,
                        () = tokio::time::sleep(AGAIN) => {}
                    }
                }
            });
        };
        let thread =
            std::thread::Builder::new().name("store-listen".to_owned()).spawn(run).map_err(failed)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.take();
        crate::sqlite::join(self.thread.take().into_iter().collect());
    }
}

/// Tells followers of what is there, and of what comes, until the connection ends.
async fn listen(link: &Link, newest: &watch::Sender<Cursor>) -> Result<(), StoreError> {
    let (notices, mut noticed) = mpsc::channel(1);
    let client = link.connect(notices).await?;
    let failed = |error: tokio_postgres::Error| failure(&error);
    let listen = format!("LISTEN {}", channel(space(&client).await?));
    client.batch_execute(&listen).await.map_err(failed)?;
    loop {
        let row = client.query_one("SELECT coalesce(max(pk), 0) FROM events", &[]).await.map_err(failed)?;
        let last: i64 = row.try_get(0).map_err(failed)?;
        tell(newest, Cursor(last.unsigned_abs()));
        if noticed.recv().await.is_none() {
            return Err(StoreError::Closed);
        }
    }
}
