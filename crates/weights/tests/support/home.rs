//! A home to fetch into, and small weights to fetch.

#![allow(dead_code, reason = "not every suite needs everything")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use drawloom_weights as weights;
use loom::digest::Digest;
use weights::{
    Consent, Converter, FetchEvent, FetchNotice, FetchProgress, Fingerprint, Hub, HubFile, InstalledWeights,
    ObtainRequest, Weights, WeightsError, WeightsFolders, WeightsSources, obtain,
};

/// The bytes of a file that no compression makes small.
pub(crate) fn content() -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(200_000).collect()
}

pub(crate) fn pinned(bytes: &[u8]) -> Fingerprint {
    Fingerprint { bytes: bytes.len() as u64, sha256: Digest::of(bytes) }
}

/// Weights of that content, on the hub alone.
pub(crate) fn tiny(content: &[u8]) -> Weights {
    Weights {
        name: "tiny",
        about: "a test's",
        licence: "MIT",
        file: pinned(content),
        hub: Some(HubFile { repository: "owner/tiny", revision: "abc", path: "tiny.gguf" }),
        wheel: None,
        converted_bytes: 1_000_000,
    }
}

/// A hub at this address that does not go on by itself where it was cut.
pub(crate) fn hub(url: &str) -> WeightsSources {
    let hub = Hub { base_url: url.to_owned(), continuations: 0, ..Hub::default() };
    WeightsSources { hub: Some(hub), index: None }
}

/// Doubles every byte: enough to tell source and result apart.
pub(crate) fn doubled() -> Converter {
    Box::new(|source, target, progress| {
        let bytes: Vec<u8> = std::fs::read(source)?.iter().map(|byte| byte.wrapping_mul(2)).collect();
        progress(1, 1);
        Ok(std::fs::write(target, bytes)?)
    })
}

pub(crate) struct Home {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) folders: WeightsFolders,
    pub(crate) weights: Weights,
    pub(crate) notices: Arc<Mutex<Vec<String>>>,
    pub(crate) progress: Arc<Mutex<Vec<FetchProgress>>>,
}

impl Home {
    pub(crate) fn new(weights: Weights) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let folders = WeightsFolders::of_home(folder.path());
        Self { folder, folders, weights, notices: Arc::default(), progress: Arc::default() }
    }

    pub(crate) async fn pull(&self, sources: &WeightsSources) -> Result<InstalledWeights, WeightsError> {
        self.obtain(sources, Consent::Pull, doubled(), std::future::pending()).await
    }

    pub(crate) async fn obtain(
        &self,
        sources: &WeightsSources,
        consent: Consent,
        convert: Converter,
        cancel: impl Future<Output = ()>,
    ) -> Result<InstalledWeights, WeightsError> {
        let order =
            ObtainRequest { weights: &self.weights, folders: &self.folders, sources, consent, convert };
        let (notices, told) = (Arc::clone(&self.notices), Arc::clone(&self.progress));
        let mut listener = move |event: FetchEvent<'_>| match event {
            FetchEvent::Notice(FetchNotice::Waiting { holder }) => {
                push(&notices, format!("waiting for {holder:?}"));
            }
            FetchEvent::Notice(FetchNotice::Resumed { from }) => push(&notices, format!("resumed at {from}")),
            FetchEvent::Notice(FetchNotice::Restarted { why }) => push(&notices, format!("restarted: {why}")),
            FetchEvent::Notice(FetchNotice::NextSource { failed, error, next }) => {
                push(&notices, format!("{failed} failed with {}, {next} is next", error.code()));
            }
            FetchEvent::Begin { name, consent, .. } => {
                push(&notices, format!("{name}: {}", consent.reason()));
            }
            FetchEvent::Progress(progress) => told.lock().unwrap().push(progress),
            _ => {}
        };
        obtain(order, cancel, &mut listener).await
    }

    /// The notices since the last call.
    pub(crate) fn notices(&self) -> Vec<String> {
        std::mem::take(&mut self.notices.lock().unwrap())
    }

    pub(crate) fn part(&self) -> PathBuf {
        self.folder.path().join("cache/weights/tiny.part")
    }

    pub(crate) fn incoming(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path().join("cache/weights")).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn push(notices: &Mutex<Vec<String>>, notice: String) {
    notices.lock().unwrap().push(notice);
}

/// Waits until a file has at least so many bytes.
pub(crate) async fn has_bytes(path: PathBuf, bytes: u64) {
    while std::fs::metadata(&path).map_or(0, |metadata| metadata.len()) < bytes {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}
