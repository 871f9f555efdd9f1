//! Pictures and sounds: blobs of the home, kept before the nodes that show them and read when they are sent.
//!
//! A blob has no owner in the store: it is there as long as a node shows it. Whoever keeps one holds a shared lock
//! until its node is durable, and whoever removes one holds the lock alone and looks once more whether a node shows
//! it, so that none is removed between its bytes and its node.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::sync::Arc;
use std::time::Duration;

use context::Pictures;
use loom::Digest;
use media::MediaKind;
use model::Media;
use store::blobs::{BlobError, Blobs};
use store::home::{Home, HomeDir};
use store::{LIST_PAGE, Principal, all_pages};

use crate::error::AgentError;
use crate::runtime::Runtime;

/// The lock of those who keep and remove blobs.
const LOCK: &str = "blobs.lock";
/// How often it is tried: nobody has it for longer than a few nodes take to be written.
const LOOK: Duration = Duration::from_millis(5);

/// The pictures and sounds of a home, as they are sent. The folder is not looked for before one is asked for.
pub(crate) struct StoredMedia {
    home: Arc<Home>,
}

impl StoredMedia {
    pub(crate) const fn of(home: Arc<Home>) -> Self {
        Self { home }
    }

    /// What comes of a blob; what cannot be read is not there.
    fn ask<T>(&self, blob: Digest, ask: impl FnOnce(&Blobs) -> Result<T, BlobError>) -> Option<T> {
        let asked = blobs(&self.home).and_then(|blobs| Ok(ask(&blobs)?));
        asked.inspect_err(|error| tracing::warn!(%error, %blob, "a picture or sound is left out")).ok()
    }
}

impl Pictures for StoredMedia {
    fn size(&self, blob: Digest) -> Option<u64> {
        self.ask(blob, |blobs| blobs.size(blob)).flatten()
    }

    /// The media type is told anew: that of the node may be a stranger's or a model's word.
    fn media(&self, blob: Digest) -> Option<Media> {
        let bytes = self.ask(blob, |blobs| blobs.get(blob))?;
        let kind = media::detect(&bytes)?;
        let (kind, bytes) = if kind.is_sound() {
            (kind, Some(bytes).filter(|bytes| bytes.len() <= media::MAX_SOUND_BYTES)?)
        } else if media::is_sendable(&bytes) {
            (kind, bytes)
        } else {
            // Made by a model, or imported: those that were taken in fit.
            let picture = media::import_picture(&bytes, media::MAX_PIXELS);
            let picture = picture.inspect_err(|why| tracing::warn!(%why, %blob, "a picture is left out"));
            picture.ok().map(|picture| (picture.kind, picture.bytes))?
        };
        Some(Media { mime: kind.mime().to_owned(), data: bytes.into() })
    }
}

/// A picture or a sound that a node shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaFacts {
    /// What its first bytes say; none for what they do not tell.
    pub kind: Option<MediaKind>,
    /// The size of a picture.
    pub measure: Option<media::Dimensions>,
    pub bytes: u64,
    pub path: std::path::PathBuf,
}

/// Holds off the removal of blobs until the nodes that show them are durable.
#[must_use = "what is kept may be removed once this is dropped"]
pub struct MediaHold {
    _lock: Option<File>,
}

impl Runtime {
    /// Keeps pictures and sounds: they survive a loss of power when this returns, and are not removed before the
    /// guard is dropped.
    ///
    /// # Errors
    /// [`AgentError::Blobs`].
    pub async fn keep_blobs<B>(&self, all: Vec<B>) -> Result<MediaHold, AgentError>
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        if all.is_empty() {
            return Ok(MediaHold { _lock: None });
        }
        self.kept_files.add(all.iter().map(|bytes| bytes.as_ref().len()).sum());
        let lock = self.locked(File::try_lock_shared).await?;
        self.with_blobs(move |blobs| all.iter().try_for_each(|bytes| blobs.put(bytes.as_ref()).map(drop)))
            .await?;
        Ok(MediaHold { _lock: Some(lock) })
    }

    /// Holds off the removal of pictures and sounds that are kept already.
    ///
    /// # Errors
    /// [`AgentError::Refused`] when one of them is not there any more.
    pub(crate) async fn hold_blobs(&self, all: &[Digest]) -> Result<MediaHold, AgentError> {
        if all.is_empty() {
            return Ok(MediaHold { _lock: None });
        }
        let lock = self.locked(File::try_lock_shared).await?;
        let named = all.to_vec();
        let look = move |blobs: &Blobs| -> Result<bool, BlobError> {
            for blob in named {
                if blobs.size(blob)?.is_none() {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        if !self.with_blobs(look).await? {
            return Err(AgentError::Refused("a picture or sound of it was removed meanwhile".to_owned()));
        }
        Ok(MediaHold { _lock: Some(lock) })
    }

    /// The bytes of a blob.
    ///
    /// # Errors
    /// [`AgentError::Blobs`]: it is not there, or damaged.
    pub async fn read_blob(&self, blob: Digest) -> Result<Vec<u8>, AgentError> {
        self.with_blobs(move |blobs| blobs.get(blob)).await
    }

    /// Works on the blobs, on a thread that may wait for the device.
    pub(crate) async fn with_blobs<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Blobs) -> Result<T, BlobError> + Send + 'static,
    ) -> Result<T, AgentError> {
        let home = Arc::clone(&self.home);
        let done = tokio::task::spawn_blocking(move || Ok(work(&blobs(&home)?)?)).await;
        done.unwrap_or_else(|failed| Err(AgentError::Home(failed.to_string())))
    }

    /// Removes those of some blobs that no node shows. Returns how many there were.
    ///
    /// # Errors
    /// [`AgentError::Blobs`]; as the store says. Asked again, it goes on.
    pub(crate) async fn remove_blobs(&self, who: &Principal, all: &[Digest]) -> Result<u64, AgentError> {
        if all.is_empty() {
            return Ok(0);
        }
        let _lock = self.locked(File::try_lock).await?;
        let mut unshown: Vec<Digest> = Vec::new();
        for blob in all {
            if !self.store.shows_blob(who, *blob).await? {
                unshown.push(*blob);
            }
        }
        self.with_blobs(move |blobs| remove_all(blobs, unshown)).await
    }

    /// Removes every blob that no node shows: a process may have died between its bytes and its node, or between
    /// the removal of the node and that of the bytes.
    ///
    /// # Errors
    /// As [`Runtime::remove_blobs`].
    pub(crate) async fn sweep_blobs(&self, who: &Principal) -> Result<(), AgentError> {
        let _lock = self.locked(File::try_lock).await?;
        let page = |after| self.store.blobs(who, after, LIST_PAGE);
        let shown: BTreeSet<Digest> = all_pages(|blob: &Digest| *blob, page).await?.into_iter().collect();
        let sweep = move |blobs: &Blobs| {
            let readable = blobs.ids().filter_map(|blob| {
                blob.inspect_err(|error| tracing::warn!(%error, "a folder of blobs is left as it is")).ok()
            });
            let unshown = readable.filter(|blob| !shown.contains(blob)).collect();
            remove_all(blobs, unshown)
        };
        self.with_blobs(sweep).await.map(drop)
    }

    /// What a blob is; none if it is not there.
    pub fn shown(&self, blob: Digest) -> Option<MediaFacts> {
        let blobs = blobs(&self.home).ok()?;
        let bytes = blobs.get(blob).ok()?;
        let measured = media::dimensions(&bytes).ok();
        Some(MediaFacts {
            kind: media::detect(&bytes),
            measure: measured.map(|(_, measure)| measure),
            bytes: bytes.len() as u64,
            path: blobs.path_of(blob),
        })
    }

    /// The lock, once it is free: no thread waits for it, as the task that has it may need the same one.
    async fn locked(&self, take: fn(&File) -> Result<(), TryLockError>) -> Result<File, AgentError> {
        let path = self.home.dir(HomeDir::Locks).map_err(failed)?.join(LOCK);
        let file = workspace::open_lock_file(&path).map_err(failed)?;
        loop {
            match take(&file) {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOOK).await,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }
}

/// Removes blobs, and then what processes that died while they kept one left. Returns how many blobs were there.
///
/// # Errors
/// The first blob that could not be removed; the others are.
fn remove_all(blobs: &Blobs, all: Vec<Digest>) -> Result<u64, BlobError> {
    let (mut removed, mut failed) = (0, None);
    for blob in all {
        match blobs.remove(blob) {
            Ok(_) => removed += 1,
            Err(BlobError::Missing { .. }) => {}
            Err(error) => {
                tracing::warn!(%error, %blob, "a blob could not be removed");
                failed.get_or_insert(error);
            }
        }
    }
    if let Err(error) = blobs.sweep() {
        tracing::warn!(%error, "what processes that died left of blobs could not be removed");
    }
    failed.map_or(Ok(removed), Err)
}

/// The blobs of a home. How large one may be was decided when it was taken in, or by its provider.
fn blobs(home: &Home) -> Result<Blobs, AgentError> {
    let dir = home.dir(HomeDir::Blobs).map_err(failed)?;
    Ok(Blobs::open(&dir, u64::MAX)?)
}

fn failed(error: impl std::fmt::Display) -> AgentError {
    AgentError::Home(error.to_string())
}

#[cfg(test)]
mod tests;
