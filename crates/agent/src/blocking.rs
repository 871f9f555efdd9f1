//! Work that waits for the disk or a program.

/// Does work on a thread that may block, and panics as it does. Where the runtime shuts down before it begins, it never ends.
pub async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
        Err(_) => std::future::pending().await,
    }
}
