//! One turn of a session at a time, whichever process it is in (spec: agent §1, security §7).
//!
//! The lease is a row that is renewed while the turn runs. One whose process is dead is free at once; one that ran
//! out because its process sleeps may be taken over, and what the sleeper then writes is refused by its number.

use std::time::Duration;

use store::instance::{InstanceId, Instances};
use store::{Fence, Guard, Holder, Principal, SessionId, StoreError};
use tokio::task::JoinHandle;

use crate::desk::Desk;
use crate::error::AgentError;

/// How long a lease lasts that is not renewed.
const LASTS: Duration = Duration::from_secs(30);
/// How often it is renewed.
const RENEWED: Duration = Duration::from_secs(10);

/// A session that is held for a turn.
pub(crate) struct Held {
    desk: Desk,
    who: Principal,
    name: String,
    fence: Fence,
    renewal: JoinHandle<()>,
}

impl Held {
    /// Takes the lease of a session.
    ///
    /// # Errors
    /// [`AgentError::Busy`] with who has it.
    pub(crate) async fn take(desk: &Desk, who: &Principal, session: &SessionId) -> Result<Self, AgentError> {
        let name = session.lease();
        // A turn is a holder of its own: two turns of one process are two.
        let holder = Holder::new(format!("{}/{}", desk.instance, desk.new_id::<loom::GenerationId>()?));
        let fence = loop {
            match desk.store.acquire_lease(who, &name, &holder, LASTS, desk.now()).await {
                Ok(fence) => break fence,
                Err(StoreError::Held { holder, .. }) => desk.free(who, &name, &holder).await?,
                Err(error) => return Err(error.into()),
            }
        };
        let renewal = tokio::spawn(renew(desk.clone(), who.clone(), name.clone(), fence));
        Ok(Self { desk: desk.clone(), who: who.clone(), name, fence, renewal })
    }

    /// What a write of the turn depends on.
    pub(crate) fn guard(&self) -> Guard {
        Guard { lease: self.name.clone(), fence: self.fence }
    }

    /// Gives it back.
    pub(crate) async fn release(self) {
        self.renewal.abort();
        // One that was taken over meanwhile is not ours to give back.
        let released = self.desk.store.release_lease(&self.who, &self.name, self.fence).await;
        if let Err(error) = released {
            tracing::debug!(%error, "a lease was gone before it was given back");
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

/// Renews a lease until it is lost.
async fn renew(desk: Desk, who: Principal, name: String, fence: Fence) {
    let mut ticks = tokio::time::interval(RENEWED);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        match desk.store.renew_lease(&who, &name, fence, LASTS, desk.now()).await {
            Ok(()) => {}
            // The turn's writes are refused from now on.
            Err(StoreError::Fenced { .. }) => return,
            Err(error) => tracing::warn!(%error, "a lease could not be renewed; it is tried again"),
        }
    }
}

/// The instance a holder of a session's lease belongs to.
pub(crate) fn instance_of(holder: &Holder) -> Option<InstanceId> {
    holder.0.split('/').next().and_then(|instance| instance.parse().ok())
}

impl Desk {
    /// Frees a lease whose holder is dead.
    ///
    /// # Errors
    /// [`AgentError::Busy`] when it lives.
    async fn free(&self, who: &Principal, name: &str, holder: &Holder) -> Result<(), AgentError> {
        let instance = instance_of(holder);
        let instances = Instances::of(&self.home).map_err(|error| AgentError::Recovery(error.to_string()))?;
        // An owner that cannot be asked about counts as alive: nothing living is ever taken.
        let lives = instance.is_none_or(|id| instances.is_alive(id).unwrap_or(true));
        if lives {
            let about = instance.and_then(|id| instances.about(id).ok().flatten());
            let by = about.map_or_else(|| holder.to_string(), |about| about.to_string());
            return Err(AgentError::Busy { instance, by });
        }
        let lease = self.store.lease(who, name).await?;
        if let Some(lease) = lease.filter(|lease| lease.holder.as_ref() == Some(holder)) {
            match self.store.release_lease(who, name, lease.fence).await {
                Ok(()) | Err(StoreError::Fenced { .. } | StoreError::NotFound(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
