//! Bytes of changed files are kept for a time and up to a size for each root (spec: scale §4 `kept_files`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use loom::{Digest, Millis};
use store::{KeptFiles, Principal};

use crate::error::AgentError;
use crate::runtime::Runtime;

/// How often they are looked at, in ms, where little was kept since.
const EVERY: i64 = 24 * 60 * 60 * 1_000;
/// Share of the bound that may be kept between two looks.
const SHARE: u64 = 8;

/// How much is kept of what tools changed, in each root, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptFileBounds {
    pub bytes: u64,
    pub age: Duration,
}

impl KeptFileBounds {
    /// Since when bytes are kept.
    fn oldest(&self, now: Millis) -> Millis {
        let age = i64::try_from(self.age.as_millis()).unwrap_or(i64::MAX);
        Millis(now.0.saturating_sub(age))
    }
}

impl Default for KeptFileBounds {
    fn default() -> Self {
        Self { bytes: 1 << 30, age: Duration::from_secs(30 * 24 * 60 * 60) }
    }
}

/// What is kept of changed files: its bounds, and when this process looked last.
#[derive(Debug, Default)]
pub struct FileRetention {
    bounds: KeptFileBounds,
    /// In ms since 1970; 0 before the first look.
    looked: AtomicI64,
    /// Bytes that this process kept since.
    since: AtomicU64,
}

impl FileRetention {
    pub fn new(bounds: KeptFileBounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Since when bytes are kept.
    pub(crate) fn oldest(&self, now: Millis) -> Millis {
        self.bounds.oldest(now)
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.since.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Runtime {
    /// Drops the oldest bytes of changed files that are over the bounds, at most once a day, or sooner where much was
    /// kept. What fails is done again next time.
    pub(crate) async fn expire_kept_files(&self, since: Millis) {
        if let Err(error) = self.try_expire_kept_files(since).await {
            tracing::warn!(%error, "bytes of changed files are not dropped yet");
        }
    }

    async fn try_expire_kept_files(&self, since: Millis) -> Result<(), AgentError> {
        let (of, now) = (&self.kept_files, self.now().0);
        let is_much = of.since.load(Ordering::Relaxed) > of.bounds.bytes / SHARE;
        if !is_much && now - of.looked.load(Ordering::Relaxed) < EVERY {
            return Ok(());
        }
        let who = Principal::Owner;
        let is_due = self.store.begin_file_expiry(&who, Millis(EVERY)).await? || is_much;
        of.looked.store(now, Ordering::Relaxed);
        if !is_due {
            return Ok(());
        }
        of.since.store(0, Ordering::Relaxed);
        let kept = self.store.kept_files(&who).await?;
        if kept.files.is_empty() {
            return Ok(());
        }
        let bounds = of.bounds;
        let until = self.with_blobs(move |blobs| {
            // One whose size cannot be told takes no room.
            Ok(expired(&kept, bounds, since, |blob| blobs.size(blob).ok().flatten().unwrap_or(0)))
        });
        let (until, mut after) = (until.await?, None);
        if until.is_empty() {
            return Ok(());
        }
        loop {
            after = self.store.expire_files(&who, until.clone(), after).await?;
            if after.is_none() {
                return self.end_forgetting().await;
            }
        }
    }
}

/// Roots of which something is over the bounds, with the time of the newest that is. What the turn that began at `since`
/// changed can be given back, however much it is.
fn expired(
    kept: &KeptFiles,
    bounds: KeptFileBounds,
    since: Millis,
    size: impl Fn(Digest) -> u64,
) -> BTreeMap<PathBuf, Millis> {
    let oldest = bounds.oldest(kept.now);
    let mut until = BTreeMap::new();
    let mut sums = vec![0_u64; kept.roots.len()];
    for file in &kept.files {
        let sum = &mut sums[file.root];
        *sum = sum.saturating_add(size(file.blob));
        if file.at < since && (*sum > bounds.bytes || file.at < oldest) {
            until.entry(kept.roots[file.root].clone()).or_insert(file.at);
        }
    }
    until
}

#[cfg(test)]
mod tests {
    use store::KeptFile;

    use super::*;

    #[test]
    fn the_oldest_go_over_the_size_of_a_root_and_whatever_is_too_old() {
        let file =
            |root, at, name: &str| KeptFile { root, at: Millis(at), blob: Digest::of(name.as_bytes()) };
        let kept = KeptFiles {
            now: Millis(100_000),
            roots: vec!["/a".into(), "/b".into(), "/c".into()],
            files: vec![
                file(0, 99_000, "1"),
                file(1, 98_000, "2"),
                file(0, 97_000, "3"),
                file(0, 96_000, "4"),
                file(2, 60_000, "5"),
                file(2, 10_000, "6"),
            ],
        };
        let bounds = |bytes, seconds| KeptFileBounds { bytes, age: Duration::from_secs(seconds) };
        let since =
            |since, bounds| expired(&kept, bounds, Millis(since), |_| 10).into_iter().collect::<Vec<_>>();
        let until = |bounds| since(100_000, bounds);
        assert_eq!(until(bounds(30, 100)), []);
        assert_eq!(until(bounds(20, 100)), [("/a".into(), Millis(96_000))]);
        assert_eq!(until(bounds(10, 60)), [("/a".into(), Millis(97_000)), ("/c".into(), Millis(10_000))]);
        let of_earlier = [("/a".into(), Millis(96_000)), ("/c".into(), Millis(10_000))];
        assert_eq!(since(97_000, bounds(10, 100)), of_earlier, "a turn keeps its own");
    }
}
