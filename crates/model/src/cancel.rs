//! Stopping a request from outside.
//!
//! A request in flight listens to a [`Cancel`]; whoever holds the [`CancelHandle`] may stop it at
//! any time, also before it has begun. Cancelling is final.

use tokio::sync::watch;

/// Stops what listens to the [`Cancel`]s made with it.
#[derive(Debug, Clone)]
pub struct CancelHandle(watch::Sender<bool>);

impl CancelHandle {
    /// Stops them now, and all that begin to listen later.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }
}

/// Tells a request that it shall stop. Clones listen to the same handle.
#[derive(Debug, Clone)]
pub struct Cancel(Option<watch::Receiver<bool>>);

impl Cancel {
    /// A handle and what listens to it.
    pub fn new() -> (CancelHandle, Self) {
        let (sender, receiver) = watch::channel(false);
        (CancelHandle(sender), Self(Some(receiver)))
    }

    /// One that is never cancelled.
    pub fn never() -> Self {
        Self(None)
    }

    /// Whether it has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(|receiver| *receiver.borrow())
    }

    /// Waits until it is cancelled: for ever, if the handle is gone without having been used.
    /// Cancel-safe.
    pub async fn cancelled(&mut self) {
        if let Some(receiver) = &mut self.0
            && receiver.wait_for(|cancelled| *cancelled).await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
