//! The home as a whole: forget, purge, backup, restore, integrity.

mod archive;
mod backup;
pub mod backups;
mod input_history;
pub(crate) mod leftovers;
mod removal;
mod restore;

pub(crate) use backup::backup;
pub(crate) use removal::{forget, purge};
pub use restore::{RestoreTo, refuse_within, restore};

use std::path::PathBuf;

use loom::Digest;
use store::blobs::Blobs;
use store::home::HomeDir;
use store::{LIST_PAGE, Principal, Store, StoreError, all_pages};

use crate::app::App;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::maintenance::Checked;
use crate::rights::Asker;

/// `store check`.
pub(crate) async fn check(app: &App, asker: &Asker, repair: bool) -> Result<CommandOutcome, CommandError> {
    let repaired = if repair { Some(app.runtime.store.repair(&asker.principal).await?) } else { None };
    let mut problems = app.runtime.store.check(&asker.principal).await?;
    let shown = shown_blobs(&app.runtime.store, &asker.principal).await?;
    problems.extend(missing_blobs(app.runtime.home.root().join(HomeDir::Blobs.name()), shown).await?);
    Ok(CommandOutcome::Checked(Checked { ok: problems.is_empty(), problems, repaired }))
}

/// Every blob that a node shows.
async fn shown_blobs(store: &Store, who: &Principal) -> Result<Vec<Digest>, StoreError> {
    all_pages(|blob: &Digest| *blob, |after| store.blobs(who, after, LIST_PAGE)).await
}

/// A line for each blob that nodes show and that is missing or damaged in a folder. They are hashed on a thread of
/// its own, so that Ctrl-C drops what waits for it.
async fn missing_blobs(dir: PathBuf, shown: Vec<Digest>) -> Result<Vec<String>, StoreError> {
    let hashed = tokio::task::spawn_blocking(move || {
        let blobs = Blobs::open(&dir, u64::MAX);
        let problem = |blob: &Digest| match &blobs {
            Ok(blobs) => blobs.check(*blob).err().map(|error| error.to_string()),
            Err(_) => Some(format!("blob {blob} is not there: restore it from a backup")),
        };
        shown.iter().filter_map(problem).collect()
    });
    hashed.await.map_err(|_| StoreError::Closed)
}
