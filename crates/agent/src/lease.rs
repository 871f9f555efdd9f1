//! One turn of a session at a time, whichever process it is in (spec: agent §1, security §7).
//!
//! The lease is a row that is renewed while the turn runs. One whose process is dead is free at once; one that ran
//! out because its process sleeps may be taken over, and what the sleeper then writes is refused by its number. It
//! finds that out at its next renewal, which comes at once when it wakes, and stops what it asks a model for.

use std::sync::{Mutex, PoisonError};

use model::{Cancel, CancelHandle};
use store::instance::{InstanceId, Instances};
use store::{Fence, Guard, Lease, LeaseOwner, Principal, SessionId, StoreError};
use tokio::task::JoinHandle;

use crate::error::AgentError;
use crate::runtime::Runtime;

/// A lease is renewed this often in its time.
const RENEWALS: u32 = 3;
/// A renewal that failed is tried again this often in the time of a lease.
const TRIES: u32 = 30;

/// A session that is held for a turn.
pub(crate) struct SessionLease {
    runtime: Runtime,
    who: Principal,
    name: String,
    fence: Fence,
    /// Cancelled when the turn is, and when the lease is lost.
    cancel: Cancel,
    stop: CancelHandle,
    renewal: JoinHandle<()>,
    released: bool,
}

impl SessionLease {
    /// Takes the lease of a session for a turn that `stopped` ends.
    ///
    /// # Errors
    /// [`AgentError::Busy`] with who has it.
    pub(crate) async fn take(
        runtime: &Runtime,
        who: &Principal,
        session: &SessionId,
        mut stopped: Cancel,
    ) -> Result<Self, AgentError> {
        let name = session.lease();
        release_again(runtime, who, &name).await;
        // A turn is a holder of its own: two turns of one process are two.
        let holder =
            LeaseOwner::new(format!("{}/{}", runtime.instance, runtime.new_id::<loom::GenerationId>()?));
        let fence = loop {
            match runtime.store.acquire_lease(who, &name, &holder, runtime.lease).await {
                Ok(fence) => break fence,
                Err(StoreError::Held { holder, .. }) => runtime.free(who, &name, &holder).await?,
                Err(error) => return Err(error.into()),
            }
        };
        let (stop, cancel) = Cancel::new();
        let renewed = renew(runtime.clone(), who.clone(), name.clone(), fence, stop.clone());
        let stops = stop.clone();
        let renewal = tokio::spawn(async move {
            let forward = async {
                stopped.cancelled().await;
                stops.cancel();
            };
            tokio::join!(renewed, forward);
        });
        Ok(Self {
            runtime: runtime.clone(),
            who: who.clone(),
            name,
            fence,
            cancel,
            stop,
            renewal,
            released: false,
        })
    }

    /// The number of this claim.
    pub(crate) const fn fence(&self) -> Fence {
        self.fence
    }

    /// What a request of the turn listens to.
    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// The lease is lost: nothing more is asked for under it.
    pub(crate) fn lose(&self) {
        self.stop.cancel();
    }

    /// What a write of the turn depends on.
    pub(crate) fn guard(&self) -> Guard {
        Guard { lease: self.name.clone(), fence: self.fence }
    }

    pub(crate) async fn release(mut self) {
        self.renewal.abort();
        release_or_keep(&self.runtime, &self.who, &self.name, self.fence).await;
        // Not before: one that is dropped while it waits is given back all the same.
        self.released = true;
    }
}

impl Drop for SessionLease {
    /// A turn that is dropped where it waits gives its session back, or this process would keep itself waiting.
    fn drop(&mut self) {
        self.renewal.abort();
        if self.released {
            return;
        }
        if let Ok(tasks) = tokio::runtime::Handle::try_current() {
            let (runtime, who, name, fence) =
                (self.runtime.clone(), self.who.clone(), self.name.clone(), self.fence);
            tasks.spawn(async move { release_or_keep(&runtime, &who, &name, fence).await });
        }
    }
}

/// Gives a lease back. One that was taken over meanwhile, or is gone, is not ours to give.
async fn release(runtime: &Runtime, who: &Principal, name: &str, fence: Fence) -> Result<(), StoreError> {
    match runtime.store.release_lease(who, name, fence).await {
        Ok(()) | Err(StoreError::Fenced { .. } | StoreError::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Gives a lease back, or keeps it for when its session is used again.
async fn release_or_keep(runtime: &Runtime, who: &Principal, name: &str, fence: Fence) {
    if let Err(error) = release(runtime, who, name, fence).await {
        tracing::debug!(%error, "a lease could not be given back; it is when the session is used again");
        let mut unreleased = runtime.unreleased.lock().unwrap_or_else(PoisonError::into_inner);
        unreleased.push((name.to_owned(), fence));
    }
}

/// Gives back what the store did not take back when its turn ended: this process would keep itself waiting.
async fn release_again(runtime: &Runtime, who: &Principal, name: &str) {
    release_each(&runtime.unreleased, name, |fence| release(runtime, who, name, fence)).await;
}

/// Removes the claims of a lease from a list once they are released. One whose release fails, or is dropped, stays.
async fn release_each<F: Future<Output = Result<(), StoreError>>>(
    unreleased: &Mutex<Vec<(String, Fence)>>,
    name: &str,
    release: impl Fn(Fence) -> F,
) {
    let listed = || unreleased.lock().unwrap_or_else(PoisonError::into_inner);
    let claims: Vec<Fence> =
        listed().iter().filter(|(of, _)| *of == *name).map(|(_, fence)| *fence).collect();
    for fence in claims {
        match release(fence).await {
            Ok(()) => listed().retain(|(of, claim)| *of != *name || *claim != fence),
            Err(error) => tracing::debug!(%error, "a lease could not be given back once more"),
        }
    }
}

/// Renews a lease until it is lost, and stops the turn then. While the store does not take it, it is tried more often.
async fn renew(runtime: Runtime, who: Principal, name: String, fence: Fence, stop: CancelHandle) {
    let usual = runtime.lease / RENEWALS;
    let mut wait = usual;
    loop {
        tokio::time::sleep(wait).await;
        wait = match runtime.store.renew_lease(&who, &name, fence, runtime.lease).await {
            Ok(()) => usual,
            // The turn's writes are refused from now on: nobody needs what would still come.
            Err(StoreError::Fenced { .. }) => return stop.cancel(),
            Err(error) => {
                // Once for all that fail in a row.
                if wait == usual {
                    tracing::warn!(%error, "a lease could not be renewed; it is tried again");
                }
                runtime.lease / TRIES
            }
        };
    }
}

/// The instance a holder of a session's lease belongs to.
pub(crate) fn instance_of(holder: &LeaseOwner) -> Option<InstanceId> {
    holder.0.split('/').next().and_then(|instance| instance.parse().ok())
}

impl Runtime {
    /// Does something in a session while nobody runs a turn in it. What it writes depends on the guard: a process that
    /// was paused meanwhile writes nothing into another one's turn.
    ///
    /// # Errors
    /// [`AgentError::Answers`] with who runs a turn.
    pub async fn between_turns<T, F: Future<Output = T>>(
        &self,
        who: &Principal,
        session: &SessionId,
        work: impl FnOnce(Guard) -> F,
    ) -> Result<T, AgentError> {
        let held =
            SessionLease::take(self, who, session, Cancel::never()).await.map_err(|error| match error {
                AgentError::Busy { by, .. } => AgentError::Answers { by },
                other => other,
            })?;
        let done = work(held.guard()).await;
        held.release().await;
        Ok(done)
    }

    /// Whether the process that holds a lease lives, running or not. One that cannot be asked about does: nothing
    /// living is ever taken.
    ///
    /// # Errors
    /// When the home's folders cannot be had.
    pub(crate) fn lives(&self, lease: &Lease) -> Result<bool, AgentError> {
        let instances = self.instances()?;
        let instance = lease.holder.as_ref().and_then(instance_of);
        Ok(instance.is_none_or(|id| instances.is_alive(id).unwrap_or(true)))
    }

    /// Whether a process that lives runs a turn in a session.
    ///
    /// # Errors
    /// As the store says, or when the home's folders cannot be had.
    pub async fn is_answering(&self, who: &Principal, session: &SessionId) -> Result<bool, AgentError> {
        let lease = self.store.lease(who, &session.lease()).await?;
        lease.filter(|lease| lease.holder.is_some()).map_or(Ok(false), |lease| self.lives(&lease))
    }

    /// Whether the process that owns something is gone. One that cannot be asked about is not, nor is this one.
    ///
    /// # Errors
    /// When the home's folders cannot be had.
    pub(crate) fn is_gone(&self, owner: &LeaseOwner) -> Result<bool, AgentError> {
        let Some(id) = instance_of(owner) else { return Ok(false) };
        Ok(id != self.instance && !self.instances()?.is_alive(id).unwrap_or(true))
    }

    /// Who a holder is, for people: process and command.
    pub(crate) fn name_of(&self, holder: &LeaseOwner) -> String {
        let about = instance_of(holder)
            .zip(self.instances().ok())
            .and_then(|(id, instances)| instances.about(id).ok().flatten());
        about.map_or_else(|| holder.to_string(), |about| about.to_string())
    }

    pub(crate) fn instances(&self) -> Result<Instances, AgentError> {
        Instances::of(&self.home).map_err(|error| AgentError::Recovery(error.to_string()))
    }

    /// Frees a lease whose holder is dead.
    ///
    /// # Errors
    /// [`AgentError::Busy`] when it lives.
    async fn free(&self, who: &Principal, name: &str, holder: &LeaseOwner) -> Result<(), AgentError> {
        let lease = self.store.lease(who, name).await?;
        let Some(lease) = lease.filter(|lease| lease.holder.as_ref() == Some(holder)) else { return Ok(()) };
        if self.lives(&lease)? {
            return Err(AgentError::Busy { instance: instance_of(holder), by: self.name_of(holder) });
        }
        Ok(release(self, who, name, lease.fence).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[tokio::test]
    async fn a_claim_stays_listed_until_it_is_released() {
        let claims = |fences: &[u64]| -> Vec<(String, Fence)> {
            let named = fences.iter().map(|fence| ("a".to_owned(), Fence(*fence)));
            named.chain([("b".to_owned(), Fence(1))]).collect()
        };
        let unreleased = Mutex::new(claims(&[1, 2]));
        {
            let mut dropped = pin!(release_each(&unreleased, "a", |_| std::future::pending()));
            assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!(*unreleased.lock().unwrap(), claims(&[1, 2]));
        let fails = |fence| async move { if fence == Fence(2) { Err(StoreError::Closed) } else { Ok(()) } };
        release_each(&unreleased, "a", fails).await;
        assert_eq!(*unreleased.lock().unwrap(), claims(&[2]));
        release_each(&unreleased, "a", |_| async { Ok(()) }).await;
        assert_eq!(*unreleased.lock().unwrap(), claims(&[]));
    }
}
